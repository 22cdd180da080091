//! Options and engines of fio that there are none of here, each with the reason or the way.

/// The advice for jobs that need fio itself.
const ELSEWHERE: &str =
    "fio itself reaches every target of ugeom, see docs/run.md, \"fio on a stack\"";

/// How images of Ceph are reached.
const RBD: &str =
    "serve the image, as with `qemu-nbd rbd:POOL/IMAGE`, and name that server as a target";

/// The engines of other systems.
const WINDOWS: &str = "it is Windows' own; on Linux write ioengine=libaio or io_uring";
const SOLARIS: &str = "it is Solaris' own; on Linux write ioengine=libaio or io_uring";

/// The engines that pass commands to a device, past the block layer.
const COMMANDS: &str =
    "it sends commands past the block layer; write ioengine=io_uring and the block device";

/// The engines for persistent memory.
const PERSISTENT: &str = "write ioengine=mmap and a file on a file system with dax";

const OPTIONS: &[(&str, &str)] = &[
    ("atomic", "no engine makes atomic writes"),
    ("cgroup", "start ugeom in the group, as with systemd-run(1)"),
    (
        "cgroup_nodelete",
        "start ugeom in the group, as with systemd-run(1)",
    ),
    (
        "cgroup_weight",
        "start ugeom in the group, as with systemd-run(1)",
    ),
    ("gpu_dev_id", ELSEWHERE),
    (
        "iodepth_mode",
        "use latency_target, or a job for each depth with stonewall",
    ),
    (
        "merge_blktrace_iters",
        "merge traces before, as with `sort -m`",
    ),
    (
        "merge_blktrace_scalars",
        "merge traces before, as with `sort -m`",
    ),
    (
        "merge_blktrace_file",
        "merge traces before, as with `sort -m`",
    ),
    ("profile", "write out the jobs of the profile"),
    (
        "random_sequence_stride",
        "replay a trace with read_iolog for places in a given order",
    ),
    ("rbdname", RBD),
    (
        "spr_num_regions",
        "fill the device twice with rw=randwrite, norandommap=0",
    ),
    (
        "spr_op",
        "fill the device twice with rw=randwrite, norandommap=0",
    ),
    (
        "sprandom",
        "fill the device twice with rw=randwrite, norandommap=0",
    ),
];

/// Options of fio's engines that are none of ours. They may stand before the engine is named.
#[rustfmt::skip]
const ENGINE_OPTIONS: &[&str] = &[
    "arguments", "bindname", "brick", "busy_poll", "chunk_size", "clientname", "clustername",
    "cmd_type", "conf", "cont", "cuda_io", "donorname",
    "gpu_dev_ids", "grace_time", "hostname", "http_host", "http_mode",
    "http_pass", "http_s3_key", "http_s3_keyid", "http_s3_region", "http_user", "http_verbose",
    "https", "inplace", "interface", "libblkio_driver", "libblkio_path", "listen", "mss",
    "namenode", "nfs_url", "nodelay", "object_class", "pingpong", "pool", "port", "program",
    "protocol", "readfua", "serverip", "sg_write_mode", "skip_bad", "std_redirect",
    "stream_id", "touch_objects", "ttl", "uri", "verb", "volume", "window_size",
    "writefua", "xnvme_async",
];

/// The engines of fio that are none of ours.
const ENGINES: &[&str] = &[
    "cpp_null",
    "dfs",
    "dircreate",
    "dirdelete",
    "dirstat",
    "e4defrag",
    "exec",
    "external",
    "filexattr",
    "gfapi",
    "gfapi_async",
    "http",
    "ime_aio",
    "ime_psync",
    "ime_psyncv",
    "libblkio",
    "libcufile",
    "libhdfs",
    "libhipfile",
    "libiscsi",
    "librpma_apm_client",
    "librpma_apm_server",
    "librpma_gpspm_client",
    "librpma_gpspm_server",
    "libzbc",
    "mtd",
    "nbd",
    "net",
    "netsplice",
    "nfs",
    "page_fault",
    "rados",
    "rbd",
    "rdma",
    "spdk",
    "spdk_bdev",
    "syslet-rw",
    "xnvme",
];

/// The options of fio that there are none of here, but for those of its engines.
pub fn names() -> impl Iterator<Item = &'static str> {
    OPTIONS.iter().map(|(name, _)| *name)
}

/// Why there is no such option; `None` for a name that fio does not have either.
pub fn reason(name: &str) -> Option<&'static str> {
    let found = OPTIONS.iter().find(|(refused, _)| *refused == name);
    let of_engine = ENGINE_OPTIONS.contains(&name).then_some(ELSEWHERE);
    found.map(|(_, reason)| *reason).or(of_engine)
}

/// Why there is no such engine; `None` for a name that fio does not have either.
pub fn engine(name: &str) -> Option<&'static str> {
    match name {
        "rbd" => Some(RBD),
        "nbd" => Some("name the server as a target, or see docs/run.md"),
        "windowsaio" => Some(WINDOWS),
        "solarisaio" => Some(SOLARIS),
        "io_uring_cmd" | "sg" => Some(COMMANDS),
        "dev-dax" | "libpmem" | "pmemblk" => Some(PERSISTENT),
        _ if name.starts_with("external:") => Some(ELSEWHERE),
        _ => ENGINES.contains(&name).then_some(ELSEWHERE),
    }
}
