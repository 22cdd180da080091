//! The table itself.

use super::Entry;
use super::values::{self, distribution, percentiles, rw, sizes, split, steady};
use crate::settings::{Fill, Job, Verify};
use crate::value::{
    amount, by_direction, bytes, cores, number, number32, percentage, range, time_ns, truth,
};

const SECOND_NS: u64 = 1_000_000_000;
const MILLISECOND_NS: u64 = 1_000_000;
const MICROSECOND_NS: u64 = 1_000;

/// At most so many jobs or requests: what is started is a thread, and a buffer.
const MANY: u32 = 32_768;

type Set = fn(&mut Job, &str) -> Result<(), String>;

const fn with(
    name: &'static str,
    aliases: &'static [&'static str],
    takes: &'static str,
    help: &'static str,
    set: Set,
) -> Entry {
    Entry {
        name,
        aliases,
        takes,
        help,
        bare: None,
        set,
    }
}

const fn switch(
    name: &'static str,
    aliases: &'static [&'static str],
    help: &'static str,
    set: Set,
) -> Entry {
    Entry {
        name,
        aliases,
        takes: "BOOL",
        help,
        bare: Some("1"),
        set,
    }
}

/// A number from 1 to [`MANY`].
fn count(text: &str) -> Result<u32, String> {
    match number32(text)? {
        count if (1..=MANY).contains(&count) => Ok(count),
        count => Err(format!("{count} is not within 1 to {MANY}")),
    }
}

/// 0 or a number up to [`MANY`].
fn count_or_none(text: &str) -> Result<u32, String> {
    match text.trim() {
        "0" => Ok(0),
        text => count(text),
    }
}

fn one_of(text: &str, known: &[&str]) -> Result<(), String> {
    match known.contains(&text) {
        true => Ok(()),
        false => Err(format!("`{text}` is none of {}", known.join(", "))),
    }
}

/// The engines of fio that there are here.
const ENGINES: &[&str] = &[
    "sync", "psync", "vsync", "pvsync", "pvsync2", "io_uring", "libaio", "mmap", "null", "guasi",
    "auto",
];

/// Evaluates to a setter that puts what `$read` makes of the text into a field.
macro_rules! into {
    ($($field:ident).+ = $read:expr) => {
        |job, text| {
            job.$($field).+ = $read(text)?;
            Ok(())
        }
    };
}

/// Every option, in the order in which help shows them.
pub const OPTIONS: &[Entry] = &[
    with(
        "name",
        &[],
        "NAME",
        "what the job is called in reports",
        |job, text| {
            job.name = text.to_owned();
            Ok(())
        },
    ),
    with(
        "description",
        &[],
        "TEXT",
        "a remark, which is printed",
        |job, text| {
            job.description = Some(text.to_owned());
            Ok(())
        },
    ),
    with(
        "rw",
        &["readwrite"],
        "PATTERN",
        "read, write, trim, randread, randwrite, randtrim, rw, randrw, trimwrite, randtrimwrite; \
         `:N` draws a place every N requests, or leaves gaps in a sequence",
        into!(rw = rw),
    ),
    with(
        "bs",
        &["blocksize"],
        "SIZE[,SIZE[,SIZE]]",
        "size of requests: read,write,trim",
        |job, text| {
            job.sizes = by_direction(text, &job.sizes, sizes)?;
            Ok(())
        },
    ),
    with(
        "bsrange",
        &["blocksize_range"],
        "MIN-MAX[,...]",
        "range of sizes of requests",
        |job, text| {
            job.sizes = by_direction(text, &job.sizes, sizes)?;
            Ok(())
        },
    ),
    with(
        "bssplit",
        &[],
        "SIZE/PERCENT:...[,...]",
        "sizes of requests with their shares",
        |job, text| {
            job.sizes = by_direction(text, &job.sizes, split)?;
            Ok(())
        },
    ),
    with(
        "size",
        &[],
        "SIZE|PERCENT%",
        "how much of the target is worked on, all files together",
        |job, text| {
            job.size = Some(amount(text)?);
            Ok(())
        },
    ),
    with(
        "io_size",
        &["io_limit"],
        "SIZE|PERCENT%",
        "how much is transferred, if not `size`",
        |job, text| {
            job.io_size = Some(amount(text)?);
            Ok(())
        },
    ),
    with(
        "offset",
        &[],
        "SIZE|PERCENT%",
        "where in the target to begin",
        into!(offset = amount),
    ),
    with(
        "offset_increment",
        &[],
        "SIZE|PERCENT%",
        "added to offset for each of `numjobs`",
        into!(offset_increment = amount),
    ),
    with(
        "filename",
        &[],
        "PATH[:PATH...]|STACK",
        "files, block devices, or a stack such as 'md:1g | nop:delay=1ms'",
        |job, text| {
            job.filename = Some(text.to_owned());
            Ok(())
        },
    ),
    with(
        "directory",
        &[],
        "PATH",
        "where files without a path are",
        |job, text| {
            job.directory = Some(text.to_owned());
            Ok(())
        },
    ),
    with(
        "nrfiles",
        &[],
        "N",
        "how many files, used in turn",
        into!(nrfiles = count),
    ),
    with(
        "filesize",
        &[],
        "SIZE[-SIZE]",
        "the size of each file",
        |job, text| {
            job.filesize = Some(range(text, bytes)?);
            Ok(())
        },
    ),
    with(
        "number_ios",
        &[],
        "N",
        "end after so many requests",
        into!(number_ios = number),
    ),
    with("loops", &[], "N", "do it all so many times", |job, text| {
        job.loops = number(text)?.max(1);
        Ok(())
    }),
    with(
        "ioengine",
        &[],
        "ENGINE",
        "psync, sync, pvsync, io_uring, libaio, guasi, mmap, null, auto",
        |job, text| {
            one_of(text, ENGINES)?;
            job.ioengine = text.to_owned();
            Ok(())
        },
    ),
    with(
        "guasi_workers",
        &[],
        "MIN..MAX",
        "threads of ioengine=guasi (MAX alone: 1..MAX); unless set 1..iodepth, at most 2000",
        |job, text| {
            job.guasi.workers = Some(text.parse()?);
            Ok(())
        },
    ),
    with(
        "guasi_backend",
        &[],
        "BACKEND",
        "who makes the calls of ioengine=guasi: workers, ring (io_uring), auto",
        |job, text| {
            job.guasi.backend = text.parse()?;
            Ok(())
        },
    ),
    switch(
        "direct",
        &[],
        "past the cache of the system (O_DIRECT)",
        into!(direct = truth),
    ),
    switch("buffered", &[], "the reverse of direct", |job, text| {
        job.direct = !truth(text)?;
        Ok(())
    }),
    with(
        "iodepth",
        &[],
        "N",
        "requests in flight",
        into!(iodepth = count),
    ),
    with(
        "iodepth_low",
        &[],
        "N",
        "once full, drain to so many before more are submitted",
        into!(iodepth_low = count),
    ),
    with(
        "iodepth_batch",
        &["iodepth_batch_submit"],
        "N",
        "requests submitted with one call [default: as many as were reaped together]",
        into!(iodepth_batch = count),
    ),
    with(
        "iodepth_batch_complete_min",
        &["iodepth_batch_complete"],
        "N",
        "the least number of requests to reap at a time",
        into!(iodepth_batch_complete_min = count_or_none),
    ),
    with(
        "iodepth_batch_complete_max",
        &[],
        "N",
        "the largest number of requests to reap at a time",
        into!(iodepth_batch_complete_max = count),
    ),
    with(
        "numjobs",
        &[],
        "N",
        "so many of this job",
        into!(numjobs = count),
    ),
    switch(
        "thread",
        &[],
        "jobs are threads, which they are here in any case",
        into!(thread = truth),
    ),
    switch(
        "group_reporting",
        &[],
        "report the jobs of a group together",
        into!(group_reporting = truth),
    ),
    switch(
        "new_group",
        &[],
        "begin a group of reports",
        into!(new_group = truth),
    ),
    switch(
        "stonewall",
        &["wait_for_previous"],
        "begin when all jobs before have ended",
        into!(stonewall = truth),
    ),
    with(
        "startdelay",
        &[],
        "TIME[-TIME]",
        "begin later",
        |job, text| {
            job.startdelay_ns = range(text, |text| time_ns(text, SECOND_NS))?;
            Ok(())
        },
    ),
    with(
        "ramp_time",
        &[],
        "TIME",
        "work so long before anything is counted",
        |job, text| {
            job.ramp_time_ns = time_ns(text, SECOND_NS)?;
            Ok(())
        },
    ),
    with(
        "runtime",
        &["timeout"],
        "TIME",
        "end after so long",
        |job, text| {
            job.runtime_ns = time_ns(text, SECOND_NS)?;
            Ok(())
        },
    ),
    switch(
        "time_based",
        &[],
        "begin anew until `runtime` is over",
        into!(time_based = truth),
    ),
    with(
        "cpus_allowed",
        &[],
        "CPUS",
        "the processors to run on: 0,2-3",
        into!(cpus_allowed = cores),
    ),
    with(
        "cpus_allowed_policy",
        &[],
        "shared|split",
        "one processor for each job, or all for all",
        |job, text| {
            one_of(text, &["shared", "split"])?;
            job.cpus_split = text == "split";
            Ok(())
        },
    ),
    with(
        "rwmixread",
        &[],
        "PERCENT",
        "share of reads in a mix",
        into!(rwmixread = percentage),
    ),
    with(
        "rwmixwrite",
        &[],
        "PERCENT",
        "share of writes in a mix",
        |job, text| {
            job.rwmixread = 100 - percentage(text)?;
            Ok(())
        },
    ),
    with(
        "rate",
        &[],
        "SIZE[,...]",
        "at most so many bytes a second; latencies count from when a \
         request was due",
        |job, text| {
            job.rate = by_direction(text, &job.rate, bytes)?;
            Ok(())
        },
    ),
    with(
        "rate_iops",
        &[],
        "N[,...]",
        "at most so many requests a second; latencies count from \
         when a request was due",
        |job, text| {
            job.rate_iops = by_direction(text, &job.rate_iops, number)?;
            Ok(())
        },
    ),
    with(
        "rate_process",
        &[],
        "linear|poisson",
        "how requests come at a rate",
        |job, text| {
            one_of(text, &["linear", "poisson"])?;
            job.rate_poisson = text == "poisson";
            Ok(())
        },
    ),
    with(
        "thinktime",
        &[],
        "TIME",
        "pause between requests, us without a unit",
        |job, text| {
            job.thinktime_ns = time_ns(text, MICROSECOND_NS)?;
            Ok(())
        },
    ),
    with(
        "thinktime_blocks",
        &[],
        "N",
        "requests between pauses",
        into!(thinktime_blocks = count),
    ),
    with(
        "fsync",
        &[],
        "N",
        "fdatasync after so many writes",
        into!(fsync = number32),
    ),
    with(
        "fdatasync",
        &[],
        "N",
        "fdatasync after so many writes",
        into!(fdatasync = number32),
    ),
    switch(
        "end_fsync",
        &[],
        "fsync the files at the end",
        into!(end_fsync = truth),
    ),
    switch(
        "invalidate",
        &[],
        "drop the files from the cache before",
        into!(invalidate = truth),
    ),
    switch(
        "unlink",
        &[],
        "remove the files afterwards",
        into!(unlink = truth),
    ),
    with(
        "fallocate",
        &[],
        "none|native|posix|keep|0|1",
        "reserve the space of new files",
        |job, text| {
            one_of(text, &["none", "native", "posix", "keep", "0", "1"])?;
            job.fallocate = !matches!(text, "none" | "0");
            Ok(())
        },
    ),
    with(
        "random_distribution",
        &[],
        "random|zipf:T|pareto:H|normal:D|zoned:A/S:...",
        "how random places are spread",
        |job, text| {
            job.distribution = by_direction(text, &job.distribution, distribution)?;
            Ok(())
        },
    ),
    switch(
        "norandommap",
        &[],
        "random places may repeat before all were visited",
        into!(norandommap = truth),
    ),
    switch(
        "randrepeat",
        &["allrandrepeat"],
        "the same random places in each run",
        into!(randrepeat = truth),
    ),
    with(
        "randseed",
        &[],
        "N",
        "where random numbers begin",
        into!(randseed = number),
    ),
    with(
        "verify",
        &[],
        "crc32c|pattern",
        "check what is read; after writing, read back",
        |job, text| {
            job.verify = match text {
                "0" | "none" => Verify::No,
                "crc32c" | "crc32c-intel" => Verify::Crc32c,
                "pattern" => Verify::Pattern,
                _ => return Err(format!("`{text}` is none of crc32c, pattern")),
            };
            Ok(())
        },
    ),
    switch(
        "do_verify",
        &[],
        "read back what was written when `verify` is set",
        into!(do_verify = truth),
    ),
    with(
        "verify_pattern",
        &[],
        "PATTERN",
        "the bytes of verify=pattern: 0xdeadbeef, \"abc\", %o",
        into!(verify_pattern = values::bytes_pattern),
    ),
    with(
        "buffer_pattern",
        &[],
        "PATTERN",
        "write these bytes",
        |job, text| {
            job.fill = Fill::Pattern(values::bytes_pattern(text)?);
            Ok(())
        },
    ),
    switch("zero_buffers", &[], "write zeroes", |job, text| {
        job.fill = if truth(text)? {
            Fill::Zero
        } else {
            Fill::Random
        };
        Ok(())
    }),
    switch(
        "refill_buffers",
        &[],
        "new random bytes for each write",
        |job, text| {
            job.fill = if truth(text)? {
                Fill::Refill
            } else {
                Fill::Random
            };
            Ok(())
        },
    ),
    with(
        "percentile_list",
        &[],
        "P[:P...]",
        "which percentiles to report",
        into!(percentile_list = percentiles),
    ),
    switch(
        "clat_percentiles",
        &[],
        "percentiles of completion latencies",
        into!(percentiles.clat = truth),
    ),
    switch(
        "lat_percentiles",
        &[],
        "percentiles of total latencies",
        into!(percentiles.lat = truth),
    ),
    switch(
        "slat_percentiles",
        &[],
        "percentiles of submission latencies",
        into!(percentiles.slat = truth),
    ),
    with(
        "write_bw_log",
        &[],
        "PREFIX",
        "write bandwidths to PREFIX_bw.N.log",
        |job, text| {
            job.bw_log = Some(text.to_owned());
            Ok(())
        },
    ),
    with(
        "write_lat_log",
        &[],
        "PREFIX",
        "write latencies to PREFIX_{slat,clat,lat}.N.log",
        |job, text| {
            job.lat_log = Some(text.to_owned());
            Ok(())
        },
    ),
    with(
        "write_iops_log",
        &[],
        "PREFIX",
        "write request rates to PREFIX_iops.N.log",
        |job, text| {
            job.iops_log = Some(text.to_owned());
            Ok(())
        },
    ),
    with(
        "log_avg_msec",
        &[],
        "TIME",
        "average the logs over this time, ms without a unit",
        |job, text| {
            job.log_avg_ns = time_ns(text, MILLISECOND_NS)?;
            Ok(())
        },
    ),
    with(
        "steadystate",
        &["ss"],
        "CRITERION:LIMIT",
        "end when iops, iops_slope, bw or bw_slope stays within LIMIT (or LIMIT% of the mean)",
        |job, text| {
            job.steady = Some(steady(text)?);
            Ok(())
        },
    ),
    with(
        "steadystate_duration",
        &["ss_dur"],
        "TIME",
        "how long it must stay there",
        |job, text| {
            job.steady_duration_ns = time_ns(text, SECOND_NS)?;
            Ok(())
        },
    ),
    with(
        "steadystate_ramp_time",
        &["ss_ramp"],
        "TIME",
        "do not look before",
        |job, text| {
            job.steady_ramp_ns = time_ns(text, SECOND_NS)?;
            Ok(())
        },
    ),
];
