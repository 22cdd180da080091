//! Lines about jobs before and while they run.

use super::number::Numbers;
use crate::run::Progress;
use crate::tally::Phase;
use ugeom_job::settings::{Job, READ, Sizes, TRIM, WRITE};

/// The line that describes a job.
pub fn title(job: &Job, group: u32) -> String {
    if !job.makes_requests() {
        return format!(
            "{} ({}): ioengine={}, cpuload={}, cpucycle={}",
            job.name,
            if job.cpu.sorts { "qsort" } else { "noop" },
            job.ioengine,
            job.cpu.load_percent,
            job.cpu.busy_ns / 1000
        );
    }
    let size = |bytes: u64| {
        let [size, _] = Numbers::of(job).size(bytes);
        size
    };
    let sizes = |sizes: &Sizes| format!("{}-{}", size(sizes.min), size(sizes.max));
    format!(
        "{}: (g={group}): rw={}, bs=(R) {}, (W) {}, (T) {}, ioengine={}, iodepth={}",
        job.name,
        job.rw.name,
        sizes(&job.sizes[READ]),
        sizes(&job.sizes[WRITE]),
        sizes(&job.sizes[TRIM]),
        job.ioengine,
        job.iodepth
    )
}

/// How many threads start.
pub fn started(jobs: &[Job]) -> String {
    let threads: u32 = jobs.iter().map(|job| job.numjobs).sum();
    let s = if threads == 1 { "" } else { "s" };
    format!("Starting {threads} thread{s}")
}

/// The line that is drawn again and again: `Jobs: 1 (f=1): [r(1)][50.0%][r=..][r=..][eta 00m:01s]`.
pub fn progress_line(progress: &Progress<'_>) -> String {
    let active = progress
        .jobs
        .iter()
        .filter(|(_, phase)| *phase != Phase::Ended);
    let files: u32 = active.clone().map(|(job, _)| job.nrfiles).sum();
    let limits = limits(active.clone().map(|(job, _)| *job));
    let mut line = format!("Jobs: {} (f={files}){limits}: [", active.count());
    let letters: Vec<char> = progress
        .jobs
        .iter()
        .map(|(job, phase)| letter(job, *phase))
        .collect();
    for (index, run) in letters.chunk_by(|a, b| a == b).enumerate() {
        if index > 0 {
            line.push(',');
        }
        line.push_str(&format!("{}({})", run[0], run.len()));
    }
    line.push(']');
    match progress.done {
        Some(done) => line.push_str(&format!("[{:.1}%]", done * 100.0)),
        None => line.push_str("[-.-%]"),
    }
    let kinds = ["r", "w", "t"].into_iter().zip(progress.rates);
    let busy: Vec<(&str, (f64, f64))> = kinds.filter(|(_, rate)| rate.1 > 0.0).collect();
    if let Some((job, _)) = progress.jobs.last().filter(|_| !busy.is_empty()) {
        let numbers = Numbers::of(job);
        let bytes = |(kind, rate): &(&str, (f64, f64))| {
            let [rate, _] = numbers.rate(rate.0 as u64);
            format!("{kind}={rate}")
        };
        let requests =
            |(kind, rate): &(&str, (f64, f64))| format!("{kind}={}", numbers.count(rate.1 as u64));
        let bytes: Vec<String> = busy.iter().map(bytes).collect();
        let requests: Vec<String> = busy.iter().map(requests).collect();
        line.push_str(&format!(
            "[{}][{} IOPS]",
            bytes.join(","),
            requests.join(",")
        ));
    }
    let left = progress.left_s.map_or("--".to_owned(), duration);
    line.push_str(&format!("[eta {left}]"));
    line
}

/// The sums of the smallest and largest rates of jobs: `, 0-400 IOPS`; nothing without any.
fn limits<'a>(jobs: impl Iterator<Item = &'a Job>) -> String {
    let (mut bytes, mut requests, mut numbers) = ([0; 2], [0; 2], None);
    for job in jobs {
        for kind in (0..3).filter(|kind| job.rw.does[*kind]) {
            bytes[0] += job.rate_min[kind];
            bytes[1] += job.rate[kind];
            requests[0] += job.rate_iops_min[kind];
            requests[1] += job.rate_iops[kind];
        }
        numbers = Some(Numbers::of(job));
    }
    match numbers {
        Some(numbers) if bytes != [0; 2] => {
            let [low, high] = bytes.map(|bytes| numbers.rate(bytes)[0].clone());
            format!(", {low}-{high}")
        }
        _ if requests != [0; 2] => format!(", {}-{} IOPS", requests[0], requests[1]),
        _ => String::new(),
    }
}

/// fio's letters for the state of a job (fio(1), "Interim output").
fn letter(job: &Job, phase: Phase) -> char {
    match (phase, job.rw.does, job.rw.random) {
        (Phase::Waiting, ..) => 'I',
        (Phase::Ramping, ..) => '/',
        (Phase::Verifying, ..) => 'V',
        (Phase::Ended, ..) => '_',
        (Phase::Running, [true, false, false], false) => 'R',
        (Phase::Running, [true, false, false], true) => 'r',
        (Phase::Running, [false, true, false], false) => 'W',
        (Phase::Running, [false, true, false], true) => 'w',
        (Phase::Running, [_, _, true], false) => 'D',
        (Phase::Running, [_, _, true], true) => 'd',
        (Phase::Running, _, false) => 'M',
        (Phase::Running, _, true) => 'm',
    }
}

fn duration(seconds: u64) -> String {
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let (minutes, seconds) = (seconds / 60 % 60, seconds % 60);
    let mut text = String::new();
    if days > 0 {
        text.push_str(&format!("{days:02}d:"));
    }
    if days > 0 || hours > 0 {
        text.push_str(&format!("{hours:02}h:"));
    }
    text.push_str(&format!("{minutes:02}m:{seconds:02}s"));
    text
}
