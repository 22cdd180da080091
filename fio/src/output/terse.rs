//! fio's terse output, versions 2 to 5: one line a job, its fields separated by semicolons, times
//! in us.
//!
//! The fields, in their order, are those of fio(1), TERSE OUTPUT; trims have none in version 3, and
//! samples of request rates are in version 5 alone. Version 2 has no version of the program and no
//! disks, and a description has a line of its own.

use std::fmt::Display;
use std::ops::Range;

use ugeom_measure::Histogram;

use super::{FIO_VERSION, latency_shares, percents};
use crate::outcome::{DiskOutcome, JobOutcome, Outcome};
use crate::tally::RequestCounts;
use ugeom_job::settings::{GoesOn, Unified};

/// The version that is printed when none is named.
pub const TERSE_VERSION: u32 = 3;

/// There are always so many percentiles; those that were not asked for are zeroes.
const PERCENTILES: usize = 20;

/// Fields in their order.
struct Line(String);

impl Line {
    fn put(&mut self, field: impl Display) {
        if !self.0.is_empty() {
            self.0.push(';');
        }
        self.0.push_str(&field.to_string());
    }
}

/// The lines of an outcome, version 2 to 5.
pub fn terse(outcome: &Outcome, version: u32) -> String {
    let line = |job: &JobOutcome| one_job(job, outcome, version) + "\n";
    outcome.jobs.iter().map(line).collect()
}

fn one_job(job: &JobOutcome, outcome: &Outcome, version: u32) -> String {
    let mut line = Line(String::new());
    line.put(version);
    if version > 2 {
        line.put(FIO_VERSION);
    }
    line.put(&job.job.name);
    line.put(job.group);
    line.put(job.errno());
    let tally = &job.tally;
    if job.job.unified == Unified::Mixed {
        one_side(&mut line, job, outcome, &tally.mixed(), 0..3, version);
    } else {
        let kinds = if version == 3 { 2 } else { 3 };
        for (kind, side) in tally.sides[..kinds].iter().enumerate() {
            one_side(&mut line, job, outcome, side, kind..kind + 1, version);
        }
        if job.job.unified == Unified::Both {
            one_side(&mut line, job, outcome, &tally.mixed(), 0..3, version);
        }
    }
    let share = |ns: u64| 100.0 * ns as f64 / tally.elapsed_ns.max(1) as f64;
    let usage = &tally.usage;
    line.put(format!("{:.6}%", share(usage.user_ns)));
    line.put(format!("{:.6}%", share(usage.system_ns)));
    line.put(usage.switches.voluntary + usage.switches.involuntary);
    line.put(usage.faults_major);
    line.put(usage.faults_minor);
    for share in percents(tally.depths) {
        line.put(format!("{share:.1}%"));
    }
    let mut shares = latency_shares(tally);
    // There are no fields for nanoseconds: they count in the first one for microseconds.
    shares.us[0] += shares.ns.iter().sum::<f64>();
    for share in shares.us.iter().chain(&shares.ms) {
        line.put(format!("{share:.2}%"));
    }
    if version > 2 {
        for disk in &outcome.disks {
            one_disk(&mut line, disk);
        }
    }
    if job.job.goes_on != GoesOn::default() {
        line.put(tally.errors);
        line.put(tally.first_error);
    }
    if let Some(description) = &job.job.description {
        if version == 2 {
            line.0.push('\n');
        }
        line.put(description);
    }
    line.0
}

/// One kind of requests, or those of several kinds together.
fn one_side(
    line: &mut Line,
    job: &JobOutcome,
    outcome: &Outcome,
    side: &RequestCounts,
    kinds: Range<usize>,
    version: u32,
) {
    line.put(side.bytes / 1024);
    line.put(side.bytes_per_s() / 1024);
    line.put(side.iops_issued() as u64);
    line.put(side.runtime_ms());
    latency(line, &side.slat);
    latency(line, &side.clat);
    let list = &job.job.percentile_list;
    // There is room for one list: that of lat goes before that of clat.
    let wanted = job.job.percentiles;
    let times = if wanted.lat { &side.lat } else { &side.clat };
    for index in 0..PERCENTILES {
        match list.get(index).filter(|_| wanted.lat || wanted.clat) {
            Some(percent) => {
                let ns = times.percentile(*percent).unwrap_or(0);
                line.put(format!("{percent:.6}%={}", ns / 1000));
            }
            None => line.put("0%=0"),
        }
    }
    latency(line, &side.lat);
    let (min, max) = side.bw.ends();
    line.put(min);
    line.put(max);
    let group = outcome.jobs.iter().filter(|other| other.group == job.group);
    let all: u64 = group
        .flat_map(|other| &other.tally.sides[kinds.clone()])
        .map(RequestCounts::bytes_per_s)
        .sum();
    let share = side.bw.mean() * 1024.0 * 100.0 / all.max(1) as f64;
    line.put(format!("{:.6}%", share.min(100.0)));
    line.put(format!("{:.6}", side.bw.mean()));
    line.put(format!("{:.6}", side.bw.deviation()));
    if version >= 5 {
        line.put(side.bw.count());
        let (min, max) = side.iops.ends();
        line.put(min);
        line.put(max);
        line.put(format!("{:.6}", side.iops.mean()));
        line.put(format!("{:.6}", side.iops.deviation()));
        line.put(side.iops.count());
    }
}

/// Smallest, largest, mean and deviation.
fn latency(line: &mut Line, histogram: &Histogram) {
    line.put(histogram.min().unwrap_or(0) / 1000);
    line.put(histogram.max().unwrap_or(0) / 1000);
    line.put(format!("{:.6}", histogram.mean().unwrap_or(0.0) / 1e3));
    let deviation = histogram.standard_deviation().unwrap_or(0.0);
    line.put(format!("{:.6}", deviation / 1e3));
}

fn one_disk(line: &mut Line, disk: &DiskOutcome) {
    let counts = disk.counts();
    line.put(&disk.name);
    for count in [counts.ios, counts.merges, counts.ticks_ms].concat() {
        line.put(count);
    }
    line.put(counts.queue_ms);
    line.put(format!("{:.2}%", counts.util));
}
