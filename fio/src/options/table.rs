//! The table itself.

use super::values::{self, distribution, one_of, percentiles, rw, sizes, split, steady};
use super::{files, measured, switch, with};
use crate::settings::{Fill, Job, Verify};
use crate::value::{
    amount, by_direction, bytes, cores, microseconds, milliseconds, number, number32, percentage,
    range, seconds, truth,
};
use ugeom_classes::set_field;
use ugeom_classes::spec::OptionDefault::{Absent, Depends, Value};
use ugeom_classes::spec::OptionTable;
use ugeom_classes::spec::values::text;

/// At most so many jobs or requests: what is started is a thread, and a buffer.
const MANY: u32 = 32_768;

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

/// The engines of fio that there are here.
const ENGINES: &[&str] = &[
    "sync", "psync", "vsync", "pvsync", "pvsync2", "io_uring", "libaio", "mmap", "null", "guasi",
    "auto",
];

/// Every option, in the order in which help shows them.
pub const OPTIONS: OptionTable<Job> = OptionTable(&[
    with(
        "name",
        &[],
        "NAME",
        Absent,
        "what the job is called in reports",
        set_field!(name = text),
    ),
    with(
        "description",
        &[],
        "TEXT",
        Absent,
        "a remark, which is printed",
        set_field!(description = text),
    ),
    with(
        "rw",
        &["readwrite"],
        "PATTERN",
        Value("read"),
        "read, write, trim, randread, randwrite, randtrim, rw, randrw, trimwrite, randtrimwrite; \
         `:N` draws a place every N requests, or leaves gaps in a sequence",
        set_field!(rw = rw),
    ),
    with(
        "bs",
        &["blocksize"],
        "SIZE[,SIZE[,SIZE]]",
        Value("4k"),
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
        Absent,
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
        Absent,
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
        Depends("the whole target"),
        "how much of the target is worked on, all files together",
        set_field!(size = amount),
    ),
    with(
        "io_size",
        &["io_limit"],
        "SIZE|PERCENT%",
        Depends("size"),
        "how much is transferred, if not `size`",
        set_field!(io_size = amount),
    ),
    with(
        "offset",
        &[],
        "SIZE|PERCENT%",
        Value("0"),
        "where in the target to begin",
        set_field!(offset = amount),
    ),
    with(
        "offset_increment",
        &[],
        "SIZE|PERCENT%",
        Value("0"),
        "added to offset for each of `numjobs`",
        set_field!(offset_increment = amount),
    ),
    with(
        "filename",
        &[],
        "PATH[:PATH...]|STACK",
        Absent,
        "files, block devices, or a stack such as 'md:1g | nop:delay=1ms'",
        set_field!(filename = text),
    ),
    with(
        "directory",
        &[],
        "PATH",
        Absent,
        "where files without a path are",
        set_field!(directory = text),
    ),
    with(
        "nrfiles",
        &[],
        "N",
        Value("1"),
        "how many files, used in turn",
        set_field!(nrfiles = count),
    ),
    with(
        "filesize",
        &[],
        "SIZE[-SIZE]",
        Depends("size, divided by nrfiles"),
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
        Value("0"),
        "end after so many requests",
        set_field!(number_ios = number),
    ),
    with(
        "loops",
        &[],
        "N",
        Value("1"),
        "do it all so many times",
        |job, text| {
            job.loops = number(text)?.max(1);
            Ok(())
        },
    ),
    with(
        "ioengine",
        &[],
        "ENGINE",
        Value("psync"),
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
        Depends("1..iodepth, at most 2000"),
        "threads of ioengine=guasi (MAX alone: 1..MAX)",
        |job, text| {
            job.guasi.workers = Some(text.parse()?);
            Ok(())
        },
    ),
    with(
        "guasi_backend",
        &[],
        "BACKEND",
        Value("workers"),
        "who makes the calls of ioengine=guasi: workers, ring (io_uring), auto",
        |job, text| {
            job.guasi.backend = text.parse()?;
            Ok(())
        },
    ),
    switch(
        "direct",
        &[],
        Value("0"),
        "past the cache of the system (O_DIRECT)",
        set_field!(direct = truth),
    ),
    switch(
        "buffered",
        &[],
        Value("1"),
        "the reverse of direct",
        |job, text| {
            job.direct = !truth(text)?;
            Ok(())
        },
    ),
    with(
        "iodepth",
        &[],
        "N",
        Value("1"),
        "requests in flight",
        set_field!(iodepth = count),
    ),
    with(
        "iodepth_low",
        &[],
        "N",
        Depends("iodepth"),
        "once full, drain to so many before more are submitted",
        set_field!(iodepth_low = count),
    ),
    with(
        "iodepth_batch",
        &["iodepth_batch_submit"],
        "N",
        Depends("as many as were reaped together"),
        "requests submitted with one call",
        set_field!(iodepth_batch = count),
    ),
    with(
        "iodepth_batch_complete_min",
        &["iodepth_batch_complete"],
        "N",
        Value("1"),
        "the least number of requests to reap at a time",
        set_field!(iodepth_batch_complete_min = count_or_none),
    ),
    with(
        "iodepth_batch_complete_max",
        &[],
        "N",
        Depends("iodepth"),
        "the largest number of requests to reap at a time",
        set_field!(iodepth_batch_complete_max = count),
    ),
    with(
        "numjobs",
        &[],
        "N",
        Value("1"),
        "so many of this job",
        set_field!(numjobs = count),
    ),
    switch(
        "thread",
        &[],
        Value("1"),
        "jobs are threads, which they are here in any case",
        set_field!(thread = truth),
    ),
    switch(
        "group_reporting",
        &[],
        Value("0"),
        "report the jobs of a group together",
        set_field!(group_reporting = truth),
    ),
    switch(
        "new_group",
        &[],
        Value("0"),
        "begin a group of reports",
        set_field!(new_group = truth),
    ),
    switch(
        "stonewall",
        &["wait_for_previous"],
        Value("0"),
        "begin when all jobs before have ended",
        set_field!(stonewall = truth),
    ),
    switch(
        "exitall",
        &[],
        Value("0"),
        "end all jobs that run beside this one when it ends",
        set_field!(exitall = truth),
    ),
    with(
        "startdelay",
        &[],
        "TIME[-TIME]",
        Value("0"),
        "begin later",
        |job, text| {
            job.startdelay_ns = range(text, seconds)?;
            Ok(())
        },
    ),
    with(
        "ramp_time",
        &[],
        "TIME",
        Value("0"),
        "work so long before anything is counted",
        set_field!(ramp_time_ns = seconds),
    ),
    with(
        "runtime",
        &["timeout"],
        "TIME",
        Value("0"),
        "end after so long",
        set_field!(runtime_ns = seconds),
    ),
    switch(
        "time_based",
        &[],
        Value("0"),
        "begin anew until `runtime` is over",
        set_field!(time_based = truth),
    ),
    with(
        "cpus_allowed",
        &[],
        "CPUS",
        Depends("all"),
        "the processors to run on: 0,2-3",
        set_field!(cpus_allowed = cores),
    ),
    with(
        "cpus_allowed_policy",
        &[],
        "shared|split",
        Value("shared"),
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
        Value("50"),
        "share of reads in a mix",
        set_field!(rwmixread = percentage),
    ),
    with(
        "rwmixwrite",
        &[],
        "PERCENT",
        Value("50"),
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
        Value("0"),
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
        Value("0"),
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
        Value("linear"),
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
        Value("0"),
        "pause between requests, us without a unit",
        set_field!(thinktime_ns = microseconds),
    ),
    with(
        "thinktime_blocks",
        &[],
        "N",
        Value("1"),
        "requests between pauses",
        set_field!(thinktime_blocks = count),
    ),
    with(
        "fsync",
        &[],
        "N",
        Value("0"),
        "fdatasync after so many writes",
        set_field!(fsync = number32),
    ),
    with(
        "fdatasync",
        &[],
        "N",
        Value("0"),
        "fdatasync after so many writes",
        set_field!(fdatasync = number32),
    ),
    switch(
        "end_fsync",
        &[],
        Value("0"),
        "fsync the files at the end",
        set_field!(end_fsync = truth),
    ),
    files::SYNC,
    files::OVERWRITE,
    files::CREATE_SERIALIZE,
    files::INVALIDATE,
    files::FADVISE_HINT,
    files::UNLINK,
    files::FALLOCATE,
    with(
        "random_distribution",
        &[],
        "random|zipf:T|pareto:H|normal:D|zoned:A/S:...",
        Value("random"),
        "how random places are spread",
        |job, text| {
            job.distribution = by_direction(text, &job.distribution, distribution)?;
            Ok(())
        },
    ),
    switch(
        "norandommap",
        &[],
        Value("0"),
        "random places may repeat before all were visited",
        set_field!(norandommap = truth),
    ),
    switch(
        "randrepeat",
        &["allrandrepeat"],
        Value("1"),
        "the same random places in each run",
        set_field!(randrepeat = truth),
    ),
    with(
        "randseed",
        &[],
        "N",
        Value("0"),
        "where random numbers begin",
        set_field!(randseed = number),
    ),
    with(
        "verify",
        &[],
        "crc32c|pattern",
        Value("none"),
        "check what is read; after writing, read back",
        |job, text| {
            job.verify = match text {
                "0" | "none" => Verify::No,
                "crc32c" | "crc32c-intel" => Verify::Crc32c,
                "pattern" => Verify::Pattern,
                _ => return Err(format!("`{text}` is none of crc32c, pattern").into()),
            };
            Ok(())
        },
    ),
    switch(
        "do_verify",
        &[],
        Value("1"),
        "read back what was written when `verify` is set",
        set_field!(do_verify = truth),
    ),
    with(
        "verify_pattern",
        &[],
        "PATTERN",
        Absent,
        "the bytes of verify=pattern: 0xdeadbeef, \"abc\", %o",
        set_field!(verify_pattern = values::bytes_pattern),
    ),
    with(
        "buffer_pattern",
        &[],
        "PATTERN",
        Absent,
        "write these bytes",
        |job, text| {
            job.fill = Fill::Pattern(values::bytes_pattern(text)?);
            Ok(())
        },
    ),
    switch(
        "zero_buffers",
        &[],
        Value("0"),
        "write zeroes",
        |job, text| {
            job.fill = if truth(text)? {
                Fill::Zero
            } else {
                Fill::Random
            };
            Ok(())
        },
    ),
    switch(
        "refill_buffers",
        &[],
        Value("0"),
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
    measured::GTOD_REDUCE,
    measured::DISABLE_SLAT,
    measured::DISABLE_CLAT,
    measured::DISABLE_LAT,
    measured::DISABLE_BW_MEASUREMENT,
    with(
        "percentile_list",
        &[],
        "P[:P...]",
        Value("1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99"),
        "which percentiles to report",
        set_field!(percentile_list = percentiles),
    ),
    switch(
        "clat_percentiles",
        &[],
        Value("1"),
        "percentiles of completion latencies",
        set_field!(percentiles.clat = truth),
    ),
    switch(
        "lat_percentiles",
        &[],
        Value("0"),
        "percentiles of total latencies",
        set_field!(percentiles.lat = truth),
    ),
    switch(
        "slat_percentiles",
        &[],
        Value("0"),
        "percentiles of submission latencies",
        set_field!(percentiles.slat = truth),
    ),
    with(
        "write_bw_log",
        &[],
        "PREFIX",
        Absent,
        "write bandwidths to PREFIX_bw.N.log",
        set_field!(bw_log = text),
    ),
    with(
        "write_lat_log",
        &[],
        "PREFIX",
        Absent,
        "write latencies to PREFIX_{slat,clat,lat}.N.log",
        set_field!(lat_log = text),
    ),
    with(
        "write_iops_log",
        &[],
        "PREFIX",
        Absent,
        "write request rates to PREFIX_iops.N.log",
        set_field!(iops_log = text),
    ),
    with(
        "log_avg_msec",
        &[],
        "TIME",
        Value("0"),
        "average the logs over this time, ms without a unit",
        set_field!(log_avg_ns = milliseconds),
    ),
    with(
        "steadystate",
        &["ss"],
        "CRITERION:LIMIT",
        Absent,
        "end when iops, iops_slope, bw or bw_slope stays within LIMIT (or LIMIT% of the mean)",
        set_field!(steady = steady),
    ),
    with(
        "steadystate_duration",
        &["ss_dur"],
        "TIME",
        Value("0"),
        "how long it must stay there",
        set_field!(steady_duration_ns = seconds),
    ),
    with(
        "steadystate_ramp_time",
        &["ss_ramp"],
        "TIME",
        Value("0"),
        "do not look before",
        set_field!(steady_ramp_ns = seconds),
    ),
]);
