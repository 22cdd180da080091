//! Options of reports: measurements and logs.

use super::values::percentiles;
use super::{OptionEntry, idle, idle_switch, named, option, switch};
use crate::settings::{Job, Unified, Unmeasured};
use crate::value::{milliseconds, number32, truth};
use ugeom_classes::spec::OptionDefault::Value;
use ugeom_classes::spec::values::text;
use ugeom_classes::{set_choice, set_field};

/// In the order in which help shows them.
#[rustfmt::skip]
pub const ENTRIES: &[OptionEntry<Job>] = &[
    switch("gtod_reduce", Value("0"),
        "sets disable_slat, disable_clat, disable_lat and disable_bw_measurement",
        |job, text| {
            if truth(text)? {
                job.unmeasured = Unmeasured { slat: true, clat: true, lat: true, bw: true };
            }
            Ok(())
        }),
    switch("disable_slat", Value("0"), "measure no submission latencies",
        set_field!(unmeasured.slat = truth)),
    switch("disable_clat", Value("0"), "measure no completion latencies",
        set_field!(unmeasured.clat = truth)),
    switch("disable_lat", Value("0"), "measure no total latencies",
        set_field!(unmeasured.lat = truth)),
    switch("disable_bw_measurement", Value("0"), "write no log of bandwidths",
        set_field!(unmeasured.bw = truth)).also(&["disable_bw"]),
    option("percentile_list", "P[:P...]",
        Value("1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99"),
        "percentiles to report", set_field!(percentile_list = percentiles)),
    switch("clat_percentiles", Value("1"), "percentiles of completion latencies",
        set_field!(percentiles.clat = truth)),
    switch("lat_percentiles", Value("0"), "percentiles of total latencies",
        set_field!(percentiles.lat = truth)),
    switch("slat_percentiles", Value("0"), "percentiles of submission latencies",
        set_field!(percentiles.slat = truth)),
    named("write_bw_log", "PREFIX", "write bandwidths to PREFIX_bw.N.log",
        set_field!(bw_log = text)),
    named("write_lat_log", "PREFIX", "write latencies to PREFIX_{slat,clat,lat}.N.log",
        set_field!(lat_log = text)),
    named("write_iops_log", "PREFIX", "write IOPS to PREFIX_iops.N.log",
        set_field!(iops_log = text)),
    named("write_hist_log", "PREFIX",
        "write histograms of latencies to PREFIX_clat_hist.N.log, a line each log_hist_msec",
        set_field!(hist_log = text)),
    option("log_hist_msec", "TIME", Value("0"),
        "interval of lines of write_hist_log, ms without a unit; 0: no lines",
        set_field!(log_hist_ns = milliseconds)),
    option("log_hist_coarseness", "0..6", Value("0"), "write_hist_log joins 2^N bins",
        |job, text| match number32(text)? {
            coarseness @ 0..=6 => {
                job.log_hist_coarseness = coarseness;
                Ok(())
            }
            other => Err(format!("{other} is not within 0 to 6").into()),
        }),
    option("log_avg_msec", "TIME", Value("0"), "average the logs over this time, ms without a unit",
        set_field!(log_avg_ns = milliseconds)),
    switch("log_offset", Value("0"), "logs have the offset of each request",
        set_field!(log_offset = truth)),
    switch("log_prio", Value("0"),
        "logs have the class and level of each request's I/O priority, as ioprio_set(2) has them",
        set_field!(log_prio = truth)),
    switch("log_max_value", Value("0"), "with log_avg_msec, the largest value instead of the mean",
        set_field!(log_max = truth)),
    switch("log_unix_epoch", Value("0"), "times in logs count from 1970",
        set_field!(log_epoch = truth)),
    switch("log_alternate_epoch", Value("0"),
        "times in logs are those of the clock log_alternate_epoch_clock_id",
        set_field!(log_epoch = truth)),
    option("log_alternate_epoch_clock_id", "N", Value("0"),
        "with log_alternate_epoch or log_unix_epoch, the clock of clock_gettime(2): 0 realtime, 1 \
         monotonic, 2 CPU time of the program, 3 of the thread",
        |job, text| match number32(text)? {
            clock @ 0..=3 => {
                job.log_clock = clock as i32;
                Ok(())
            }
            other => Err(format!("{other} is not within 0 to 3").into()),
        }),
    switch("per_job_logs", Value("1"), "0: one log for all jobs that write to the same name",
        set_field!(per_job_logs = truth)),
    option("unified_rw_reporting", "none|mixed|both", Value("none"),
        "report reads, writes and trims together, or both ways",
        set_choice!(unified = [
            ("none", Unified::No), ("mixed", Unified::Mixed), ("both", Unified::Both),
            ("0", Unified::No), ("1", Unified::Mixed), ("2", Unified::Both),
        ])),
    option("bwavgtime", "TIME", Value("500ms"), "interval of bandwidth samples, ms without a unit",
        set_field!(bw_sample_ns = milliseconds)),
    option("iopsavgtime", "TIME", Value("500ms"), "interval of IOPS samples, ms without a unit",
        set_field!(iops_sample_ns = milliseconds)),
    switch("disk_util", Value("1"), "report the utilisation of the disks below",
        set_field!(disk_util = truth)),
    switch("stats", Value("1"), "0: leave the job out of the report", set_field!(stats = truth)),
    idle("clocksource", "gettimeofday|clock_gettime|cpu",
        "no effect: the fastest steady clock is read in any case"),
    idle("gtod_cpu", "CPU", "no effect: no thread is needed to read the clock"),
    idle("log_entries", "N", "no effect: logs grow as they need to"),
    idle("log_compression", "SIZE", "no effect: logs are compressed when the job has ended"),
    idle("log_compression_cpus", "CPUS", "no effect: logs are compressed when the job has ended"),
    switch("log_store_compressed", Value("0"),
        "compress the logs, except histograms, to PREFIX_*.N.log.fz; --inflate-log prints them",
        set_field!(log_packed = truth)),
    idle_switch("block_error_percentiles", "no effect: errors end the job, or are counted"),
    option("significant_figures", "N", Value("4"),
        "characters of a number in the normal output, 1 to 10",
        |job, text| {
            let figures = text.trim().parse().ok();
            let figures = figures.filter(|figures| (1..=10).contains(figures));
            job.figures = figures.ok_or_else(|| format!("`{text}` is not within 1 to 10"))?;
            Ok(())
        }),
    option("kb_base", "1000|1024", Value("1024"),
        "bytes of k in sizes of the whole section, or behind it on a command line; kib is then \
         1000 or 1024",
        |job, text| {
            job.decimal_units = match text.trim() {
                "1000" => true,
                "1024" => false,
                _ => return Err(format!("`{text}` is neither 1000 nor 1024").into()),
            };
            Ok(())
        }),
    option("unit_base", "0|1|8", Value("0"),
        "unit of rates in the normal output: 1 bits, 8 bytes, 0 that of the engine, bytes",
        |job, text| {
            job.rates_in_bits = match text.trim() {
                "1" => true,
                "0" | "8" => false,
                _ => return Err(format!("`{text}` is not one of 0, 1, 8").into()),
            };
            Ok(())
        }),
];
