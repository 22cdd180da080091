//! Options and engines of fio that there are none of here, each with the reason or the way.

/// What fio itself is for.
const ELSEWHERE: &str =
    "fio itself reaches every target of ugeom, see docs/run.md, \"The real fio\"";

const OPTIONS: &[(&str, &str)] = &[
    ("atomic", "no engine makes atomic writes"),
    (
        "bs_is_seq_rand",
        "set the sizes of reads and writes, or of two jobs",
    ),
    ("cgroup", "start ugeom in the group, as with systemd-run(1)"),
    (
        "cgroup_nodelete",
        "start ugeom in the group, as with systemd-run(1)",
    ),
    (
        "cgroup_weight",
        "start ugeom in the group, as with systemd-run(1)",
    ),
    ("gid", "start ugeom as that group"),
    ("gpu_dev_id", ELSEWHERE),
    ("ignore_zone_limits", "there are no zoned devices"),
    ("job_max_open_zones", "there are no zoned devices"),
    ("max_open_zones", "there are no zoned devices"),
    (
        "merge_blktrace_file",
        "merge traces before, as with `sort -m`",
    ),
    ("opendir", "name the files, as with the shell's globs"),
    ("profile", "write the job that the profile stands for"),
    ("read_beyond_wp", "there are no zoned devices"),
    ("sync_file_range", "use fdatasync"),
    ("trim_backlog", "use a job of trims beside the writer"),
    ("trim_backlog_batch", "use a job of trims beside the writer"),
    ("trim_percentage", "use a job of trims beside the writer"),
    ("trim_verify_zero", "use a job of trims beside the writer"),
    ("uid", "start ugeom as that user"),
    ("unlink_each_loop", "use unlink, and the loop of a shell"),
    ("verify_state_load", "use verify_only, which needs no state"),
    ("write_barrier", "use fdatasync"),
    (
        "write_hist_log",
        "use --output-format=json+, which has the histograms",
    ),
    (
        "log_hist_msec",
        "use --output-format=json+, which has the histograms",
    ),
    (
        "log_hist_coarseness",
        "use --output-format=json+, which has the histograms",
    ),
    ("zonecapacity", "there are no zoned devices"),
    ("zone_reset_frequency", "there are no zoned devices"),
    ("zone_reset_threshold", "there are no zoned devices"),
];

/// The engines of fio 3.33 that are none of ours.
const ENGINES: &[&str] = &[
    "cpuio",
    "dev-dax",
    "dfs",
    "e4defrag",
    "exec",
    "external",
    "falloc",
    "filecreate",
    "filedelete",
    "filestat",
    "ftruncate",
    "gfapi",
    "gfapi_async",
    "http",
    "ime_aio",
    "ime_psync",
    "ime_psyncv",
    "io_uring_cmd",
    "libblkio",
    "libcufile",
    "libhdfs",
    "libiscsi",
    "libpmem",
    "libzbc",
    "mtd",
    "nbd",
    "net",
    "netsplice",
    "nfs",
    "pmemblk",
    "rados",
    "rbd",
    "rdma",
    "sg",
    "solarisaio",
    "splice",
    "syslet-rw",
    "windowsaio",
    "xnvme",
];

/// Why there is no such option; `None` for a name that fio does not have either.
pub fn reason(name: &str) -> Option<&'static str> {
    let found = OPTIONS.iter().find(|(refused, _)| *refused == name);
    found.map(|(_, reason)| *reason)
}

/// Why there is no such engine; `None` for a name that fio does not have either.
pub fn engine(name: &str) -> Option<&'static str> {
    match name {
        "nbd" => Some("name the server as a target, or see docs/run.md"),
        _ => ENGINES.contains(&name).then_some(ELSEWHERE),
    }
}
