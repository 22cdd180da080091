//! Options of time: when a job begins and ends, and how fast it makes requests.

use super::values::{count, steady};
use super::{OptionEntry, idle_switch, option, switch};
use crate::settings::Job;
use crate::value::{
    bytes, float, microseconds, milliseconds, nonzero, number, numbers_by_direction, range,
    seconds, truth,
};
use ugeom_classes::spec::OptionDefault::{Absent, Value};
use ugeom_classes::{set_choice, set_field};

/// In the order in which help shows them.
#[rustfmt::skip]
pub const ENTRIES: &[OptionEntry<Job>] = &[
    option("startdelay", "TIME[-TIME]", Value("0"),
        "delay before the job starts; of a range, a random one",
        set_field!(job, text => startdelay_ns = range(text, seconds)?)),
    option("ramp_time", "TIME", Value("0"), "time before counting starts",
        set_field!(ramp_time_ns = seconds)),
    option("runtime", "TIME", Value("0"), "end after this time",
        set_field!(runtime_ns = seconds)).also(&["timeout"]),
    switch("time_based", Value("0"), "start again until `runtime` is over",
        set_field!(time_based = nonzero)),
    option("rate", "SIZE[,...]", Value("0"),
        "bandwidth limit, bytes per second; total latencies count from when a request was due",
        set_field!(job, text => rate = numbers_by_direction(text, &job.rate, bytes)?)),
    option("rate_iops", "N[,...]", Value("0"),
        "IOPS limit; total latencies count from when a request was due",
        set_field!(job, text => rate_iops = numbers_by_direction(text, &job.rate_iops, number)?)),
    option("rate_process", "linear|poisson", Value("linear"), "arrival process of a rate",
        set_choice!(rate_poisson = [("linear", false), ("poisson", true)])),
    option("thinktime", "TIME", Value("0"),
        "pause between requests, after those in flight, us without a unit",
        set_field!(thinktime_ns = microseconds)),
    option("thinktime_blocks", "N", Value("1"), "requests between pauses",
        set_field!(thinktime_blocks = count)),
    option("steadystate", "CRITERION:LIMIT", Absent,
        "end when iops, iops_slope, bw or bw_slope stays within LIMIT (or LIMIT% of the mean)",
        set_field!(steady = steady)).also(&["ss"]),
    option("steadystate_duration", "TIME", Value("0"), "duration for which the criterion must hold",
        set_field!(steady_duration_ns = seconds)).also(&["ss_dur"]),
    option("steadystate_ramp_time", "TIME", Value("0"), "time before the criterion is checked",
        set_field!(steady_ramp_ns = seconds)).also(&["ss_ramp"]),
    option("steadystate_check_interval", "TIME", Value("1"), "interval of checks",
        set_field!(steady_interval_ns = seconds)).also(&["ss_interval"]),
    option("thinktime_spin", "TIME", Value("0"), "part of the pause that polls, us without a unit",
        set_field!(thinktime_spin_ns = microseconds)),
    option("thinktime_blocks_type", "complete|issue", Value("complete"),
        "whether requests count for thinktime_blocks when they end or when they are issued",
        set_choice!(thinktime_by_issue = [("complete", false), ("issue", true)])),
    option("thinktime_iotime", "TIME", Value("0"),
        "pause after this time instead of after thinktime_blocks, s without a unit",
        set_field!(thinktime_iotime_ns = seconds)),
    option("rate_min", "SIZE[,...]", Value("0"),
        "minimum bandwidth, bytes per second over a rate_cycle; less is an error",
        set_field!(job, text =>
            rate_min = numbers_by_direction(text, &job.rate_min, bytes)?)).also(&["ratemin"]),
    option("rate_iops_min", "N[,...]", Value("0"),
        "minimum IOPS over a rate_cycle; fewer are an error",
        set_field!(job, text =>
            rate_iops_min = numbers_by_direction(text, &job.rate_iops_min, number)?)),
    option("rate_cycle", "TIME", Value("1s"),
        "interval of rate_min and rate_iops_min, ms without a unit",
        set_field!(rate_cycle_ns = milliseconds)).also(&["ratecycle"]),
    idle_switch("rate_ignore_thinktime",
        "no effect: a rate counts from when requests were due, pauses or not"),
    option("max_latency", "TIME[,...]", Value("0"),
        "longest latency; a longer one is an error, us without a unit",
        |job, text| {
            let limits = numbers_by_direction(text, &[job.max_latency_ns; 3], microseconds)?;
            if limits != [limits[0]; 3] {
                return Err("one limit for reads, writes and trims".to_owned().into());
            }
            job.max_latency_ns = limits[0];
            Ok(())
        }),
    option("latency_target", "TIME", Value("0"),
        "find the largest queue depth up to iodepth with this latency, us without a unit",
        set_field!(latency.target_ns = microseconds)),
    option("latency_window", "TIME", Value("0"),
        "time that latency_target measures a queue depth, us without a unit",
        set_field!(latency.window_ns = microseconds)),
    option("latency_percentile", "PERCENT", Value("100"),
        "share of requests that must meet latency_target",
        |job, text| {
            let percent = float(text)?;
            if !(0.0..=100.0).contains(&percent) {
                return Err(format!("`{text}` is not a percentage").into());
            }
            job.latency.percentile = percent;
            Ok(())
        }),
    switch("latency_run", Value("0"), "continue the search of latency_target after a result",
        set_field!(latency.runs_on = truth)),
];
