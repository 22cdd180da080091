//! Settings that have no effect, which a warning says.

use super::options::{ANYWAY, NO_EFFECT, OPTIONS};
use super::settings::{Job, Verify, WRITE};

/// A setting that changes nothing in a job.
#[derive(Clone, PartialEq, Eq)]
struct Idle {
    option: String,
    text: String,
}

impl Idle {
    fn new(job: &Job, option: &str, why: &str) -> Self {
        let origin = job.origin_of(option);
        Self {
            option: option.to_owned(),
            text: format!("{origin}{option} has no effect: {why}"),
        }
    }
}

/// Says which settings change nothing: each once, and those of several jobs (`[global]`) only if
/// they change nothing in any of them.
pub fn without_effect(jobs: &[Job]) -> Vec<String> {
    let of_jobs: Vec<(&Job, Vec<Idle>)> = jobs.iter().map(|job| (job, of_job(job))).collect();
    let mut said: Vec<String> = Vec::new();
    for (job, idle) in of_jobs
        .iter()
        .flat_map(|(job, all)| all.iter().map(move |idle| (job, idle)))
    {
        let origin = job.origin_of(&idle.option);
        let has_effect = |(other, all): &(&Job, Vec<Idle>)| {
            other.was_set(&idle.option)
                && other.origin_of(&idle.option) == origin
                && all.iter().all(|other| other.option != idle.option)
        };
        if !said.contains(&idle.text) && !of_jobs.iter().any(has_effect) {
            said.push(idle.text.clone());
        }
    }
    said
}

/// Values of options without an effect that ask for the default behaviour, or for nothing that a
/// user sees; none: any value.
const MET: &[(&str, &[&str])] = &[
    ("allow_mounted_write", &["0"]),
    ("block_error_percentiles", &["0"]),
    ("dedupe_global", &["0"]),
    ("error_dump", &["0"]),
    ("force_async", &["0"]),
    ("hipri", &["0"]),
    (
        "iomem_align",
        &["1", "512", "1k", "2k", "4k", "4096", "$pagesize"],
    ),
    ("log_compression", &[]),
    ("mem", &["malloc", "mmap"]),
    ("nowait", &["0"]),
    ("rate_ignore_thinktime", &["0"]),
    ("softrandommap", &["0"]),
    ("sqthread_poll", &["0"]),
    ("uncached", &["0"]),
    ("unique_filename", &["0", "1", ""]),
    ("userspace_reap", &["0"]),
    ("verifysort", &["1", ""]),
    ("write_barrier", &["0"]),
    ("write_hint", &["none"]),
];

/// Whether a setting that changes nothing asks for the default behaviour.
fn is_met(job: &Job, option: &str) -> bool {
    let named = |(name, _): &&(String, String)| name == option;
    let of_job = job.own.iter().rev().find(named);
    let Some((_, value)) = of_job.or_else(|| job.global.iter().rev().find(named)) else {
        return false;
    };
    let met = MET.iter().find(|(name, _)| *name == option);
    met.is_some_and(|(_, values)| values.is_empty() || values.contains(&value.as_str()))
}

/// Settings of writes, in a job that makes none.
fn without_writes(job: &Job, say: &mut dyn FnMut(&str, &str)) {
    if !job.rw.does[WRITE] {
        for option in [
            "fsync",
            "fdatasync",
            "sync_file_range",
            "sync",
            "overwrite",
            "refill_buffers",
        ] {
            say(option, "the job writes nothing");
        }
    }
}

/// Settings of trims, in a job that trims none of its writes.
fn without_trims(job: &Job, say: &mut dyn FnMut(&str, &str)) {
    let why = match job.trimming.percent > 0 {
        _ if job.verify == Verify::No => "verify is not set",
        true if job.trimming.backlog == 0 => "trim_backlog is not set",
        true => return,
        false => "trim_percentage is not set",
    };
    let options = [
        "trim_percentage",
        "trim_backlog",
        "trim_backlog_batch",
        "trim_verify_zero",
    ];
    options.iter().for_each(|option| say(option, why));
}

/// Settings of queues, with an engine that has none.
fn without_queue(job: &Job, say: &mut dyn FnMut(&str, &str)) {
    if job.is_sync() {
        let why = format!("{} runs one request at a time", job.ioengine);
        let depth_matters = job.iodepth > 1;
        for option in ["iodepth_low", "iodepth_batch", "iodepth_batch_complete_min"] {
            say(option, &why);
        }
        if depth_matters {
            say("iodepth", &why);
        }
    }
}

/// Says which settings of a job change nothing.
fn of_job(job: &Job) -> Vec<Idle> {
    let mut found = Vec::new();
    for (option, _) in &job.origins {
        let entry = OPTIONS.find(option);
        let why = entry.and_then(|entry| entry.doc.help.strip_prefix(NO_EFFECT));
        if let Some(why) = why.filter(|why| !why.ends_with(ANYWAY))
            && !is_met(job, option)
        {
            found.push(Idle::new(job, option, why));
        }
    }
    let mut say = |option: &str, why: &str| {
        if job.was_set(option) {
            found.push(Idle::new(job, option, why));
        }
    };
    without_queue(job, &mut say);
    if !matches!(job.ioengine.as_str(), "guasi" | "auto") {
        let why = format!("{} is not guasi", job.ioengine);
        say("guasi_workers", &why);
        say("guasi_backend", &why);
    }
    let is_mix = job.rw.does.iter().filter(|does| **does).count() > 1 && !job.rw.trim_then_write;
    if !is_mix {
        say("rwmixread", "the job does not mix reads and writes");
        say("rwmixwrite", "the job does not mix reads and writes");
    }
    if !job.rw.random {
        say("random_distribution", "the places are not random");
    }
    without_writes(job, &mut say);
    if job
        .rw
        .does
        .iter()
        .zip(&job.sizes)
        .all(|(does, sizes)| !does || !sizes.is_fixed())
    {
        say("bs", "bsrange or bssplit is set");
    }
    if job.verify == Verify::No {
        for option in ["do_verify", "verify_pattern"] {
            say(option, "verify is not set");
        }
    }
    without_trims(job, &mut say);
    if job.bw_log.is_none() && job.lat_log.is_none() && job.iops_log.is_none() {
        say("log_avg_msec", "no log is written");
    }
    if job.hist_log.is_none() {
        say("log_hist_msec", "write_hist_log is not set");
        say("log_hist_coarseness", "write_hist_log is not set");
    }
    if job.thinktime_ns == 0 {
        say("thinktime_blocks", "there is no thinktime");
        say("thinktime_blocks_type", "there is no thinktime");
    }
    if job.steady.is_none() {
        say("steadystate_duration", "steadystate is not set");
        say("steadystate_ramp_time", "steadystate is not set");
        say("steadystate_check_interval", "steadystate is not set");
    }
    if job.rate == [0; 3] && job.rate_iops == [0; 3] {
        say("rate_process", "there is no rate");
    }
    found
}
