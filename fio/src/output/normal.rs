//! fio's normal output: block after block, to the letter of fio 3.33.

use std::fmt::Write as _;

use ugeom_machine::clock::local_time_text;
use ugeom_measure::Histogram;

use super::number::{Numbers, short};
use super::{BUCKET_ENDS, LATE_NS, late, latency_shares, percents};
use crate::outcome::{DiskOutcome, Idleness, JobOutcome, Outcome};
use crate::tally::{RequestCounts, Samples, Tally, per_second};
use ugeom_job::settings::{DIRECTIONS, TRIM, Unified, WRITE};

/// The smallest share that is shown as one, percent.
const LEAST_LATENCY: f64 = 0.01;
const LEAST_DEPTH: f64 = 0.1;
/// So many shares of latencies stand in a line.
const IN_A_LINE: usize = 5;

/// The text of an outcome.
pub fn normal(outcome: &Outcome) -> String {
    let mut out = String::new();
    let has_begun = |job: &&JobOutcome| job.pid > 0 || job.trouble.is_some();
    for job in outcome.jobs.iter().filter(has_begun) {
        let _ = writeln!(out);
        one_job(&mut out, job, outcome);
    }
    groups(&mut out, outcome);
    disks(&mut out, &outcome.disks);
    if let Some(idleness) = &outcome.idleness {
        cpu_idleness(&mut out, idleness);
    }
    out
}

fn one_job(out: &mut String, job: &JobOutcome, outcome: &Outcome) {
    let errno = job.errno();
    let why = match &job.trouble {
        Some(trouble) => format!(" ({})", without_number(&trouble.message, errno)),
        None if errno != 0 => format!(" ({})", error_text(errno)),
        None => String::new(),
    };
    let _ = writeln!(
        out,
        "{}: (groupid={}, jobs={}): err={errno:2}{why}: pid={}: {}",
        job.job.name,
        job.group,
        job.jobs,
        job.pid,
        local_time_text(job.ended_unix_s)
    );
    if let Some(description) = &job.job.description {
        let _ = writeln!(out, "  Description  : [{description}]");
    }
    if job.job.unified != Unified::Mixed {
        for (kind, side) in job.tally.sides.iter().enumerate() {
            if side.has_run() {
                one_side(out, job, outcome, Some(kind), side);
            }
        }
    }
    if job.job.unified != Unified::No {
        one_side(out, job, outcome, None, &job.tally.mixed());
    }
    syncs(out, &job.tally.syncs);
    latencies(out, &job.tally);
    cpu(out, job);
    depths(out, job);
    if let Some(steady) = &job.steady {
        let yes = if steady.attained { "yes" } else { "no" };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let numbers = Numbers::of(&job.job);
        let [bw, other_bw] = numbers.rate(mean(&steady.bw) as u64);
        let _ = writeln!(
            out,
            "  steadystate  : attained={yes}, bw={bw} ({other_bw}), iops={}, {} mean dev={:.3}",
            numbers.count(mean(&steady.iops) as u64),
            steady.wanted.split([':', '_']).next().unwrap_or(""),
            steady.criterion
        );
    }
}

/// One kind of requests; `kind` is none for all together.
fn one_side(
    out: &mut String,
    job: &JobOutcome,
    outcome: &Outcome,
    kind: Option<usize>,
    side: &RequestCounts,
) {
    let numbers = Numbers::of(&job.job);
    let [bw, other_bw] = numbers.rate(side.bytes_per_s());
    let [size, _] = numbers.size(side.bytes);
    let zones = match kind {
        Some(WRITE | TRIM) => "; 0 zone resets",
        _ => "",
    };
    let _ = writeln!(
        out,
        "  {}: IOPS={}, BW={bw} ({other_bw})({size}/{}msec){zones}",
        kind.map_or("mixed", |kind| DIRECTIONS[kind]),
        numbers.count(side.iops_issued() as u64),
        side.runtime_ms()
    );
    let wanted = job.job.percentiles;
    latency_line(out, "slat", &side.slat);
    latency_line(out, "clat", &side.clat);
    latency_line(out, " lat", &side.lat);
    let of_priorities = of_priorities(side, wanted.lat);
    for (name, _, times) in &of_priorities {
        latency_line(out, name, times);
    }
    let list = &job.job.percentile_list;
    for (name, histogram, wanted) in [
        ("slat", &side.slat, wanted.slat),
        ("clat", &side.clat, wanted.clat),
        ("lat", &side.lat, wanted.lat),
    ] {
        if wanted && histogram.count() > 0 && !list.is_empty() {
            percentiles(out, name, histogram, list);
        }
    }
    if (wanted.clat || wanted.lat) && !list.is_empty() {
        for (name, share, times) in &of_priorities {
            let name = format!("{name} ({share:.2}% of IOs)");
            percentiles(out, &name, times, list);
        }
    }
    samples(out, outcome, job, kind, side);
}

/// Names of the I/O priorities, their shares of the requests in percent, and their latencies, where
/// there is more than one.
fn of_priorities(side: &RequestCounts, total: bool) -> Vec<(String, f64, &Histogram)> {
    let kind = if total { "lat" } else { "clat" };
    let all: u64 = side
        .by_priority
        .iter()
        .map(|(_, times)| times.count())
        .sum();
    let named = side.by_priority.iter().map(|(priority, times)| {
        let name = format!("{kind} prio {}/{}", priority >> 13, priority & 7);
        (
            name,
            100.0 * times.count() as f64 / all.max(1) as f64,
            times,
        )
    });
    match side.by_priority.len() {
        0 | 1 => Vec::new(),
        _ => named.collect(),
    }
}

/// fio changes to the next unit when all of the smallest, largest and deviation are large.
fn unit_of(min: f64, max: f64, deviation: f64) -> (&'static str, f64) {
    let is_large = |by: f64| min / by > 2000.0 && max / by > 99_999.0 && deviation / by > 1000.0;
    match (is_large(1.0), is_large(1000.0)) {
        (false, _) => ("nsec", 1.0),
        (true, false) => ("usec", 1e3),
        (true, true) => ("msec", 1e6),
    }
}

fn latency_line(out: &mut String, name: &str, histogram: &Histogram) {
    let (Some(min), Some(max)) = (histogram.min(), histogram.max()) else {
        return;
    };
    if max == 0 {
        return;
    }
    let mean = histogram.mean().unwrap_or(0.0);
    let deviation = histogram.standard_deviation().unwrap_or(0.0);
    let (unit, by) = unit_of(min as f64, max as f64, deviation);
    let shown = |value: u64| short(value / by as u64, 6, false, "");
    let _ = writeln!(
        out,
        "    {name} ({unit}): min={}, max={}, avg={:5.2}, stdev={:5.2}",
        shown(min),
        shown(max),
        mean / by,
        deviation / by
    );
}

fn percentiles(out: &mut String, name: &str, histogram: &Histogram, list: &[f64]) {
    let values: Vec<u64> = list
        .iter()
        .map(|p| histogram.percentile(*p).unwrap_or(0))
        .collect();
    let (min, max) = (
        values.iter().min().copied().unwrap_or(0),
        values.iter().max().copied().unwrap_or(0),
    );
    let (unit, by) = if min > 2_000_000 && max > 99_999_999 {
        ("msec", 1_000_000)
    } else if min > 2000 && max > 99_999 {
        ("usec", 1000)
    } else {
        ("nsec", 1)
    };
    let _ = write!(out, "    {name} percentiles ({unit}):\n     |");
    let in_a_line = 4;
    for (index, (percent, value)) in list.iter().zip(&values).enumerate() {
        if index > 0 && index % in_a_line == 0 {
            out.push_str("     |");
        }
        let is_last = index + 1 == list.len();
        let value = value.div_ceil(by);
        let end = if is_last { "\n" } else { "," };
        let _ = write!(out, " {percent:5.2}th=[{value:5}]{end}");
        if !is_last && index % in_a_line == in_a_line - 1 {
            out.push('\n');
        }
    }
}

fn samples(
    out: &mut String,
    outcome: &Outcome,
    job: &JobOutcome,
    kind: Option<usize>,
    side: &RequestCounts,
) {
    if side.bw.count() == 0 {
        return;
    }
    let group = outcome.jobs.iter().filter(|other| other.group == job.group);
    let all: u64 = group
        .flat_map(|other| &other.tally.sides[kind.map_or(0..3, |kind| kind..kind + 1)])
        .map(RequestCounts::bytes_per_s)
        .sum();
    let share = (side.bw.mean() * 1024.0 * 100.0 / all.max(1) as f64).min(100.0);
    let (unit, by) = Numbers::of(&job.job).sampled(side.bw.mean());
    let sampled = |samples: &Samples, by: f64| {
        let (min, max) = samples.ends();
        let (min, max) = (min / by as u64, max / by as u64);
        let (mean, deviation) = (samples.mean() / by, samples.deviation() / by);
        (
            format!("min={min:5}, max={max:5}"),
            format!(
                "avg={mean:5.2}, stdev={deviation:5.2}, samples={}",
                samples.count()
            ),
        )
    };
    let (ends, mean) = sampled(&side.bw, by);
    let _ = writeln!(out, "   bw ({unit:>5}/s): {ends}, per={share:3.2}%, {mean}");
    let (ends, mean) = sampled(&side.iops, 1.0);
    let _ = writeln!(out, "   iops        : {ends}, {mean}");
}

fn syncs(out: &mut String, syncs: &Histogram) {
    if syncs.count() > 0 {
        let _ = writeln!(out, "  fsync/fdatasync/sync_file_range:");
        latency_line(out, "sync", syncs);
    }
}

fn latencies(out: &mut String, tally: &Tally) {
    let shares = latency_shares(tally);
    let ends = |unit: &str| BUCKET_ENDS.map(|end| format!("{end}={unit}"));
    let labels = ends("");
    shares_of(out, "nsec", &labels, &shares.ns);
    shares_of(out, "usec", &labels, &shares.us);
    let mut labels = labels.to_vec();
    labels.extend(["2000=".to_owned(), ">=2000=".to_owned()]);
    shares_of(out, "msec", &labels, &shares.ms);
}

fn shares_of(out: &mut String, unit: &str, labels: &[String], shares: &[f64]) {
    let shown: Vec<String> = labels
        .iter()
        .zip(shares)
        .filter(|(_, share)| **share > 0.0)
        .map(|(label, share)| format!("{label}{:.2}%", share.max(LEAST_LATENCY)))
        .collect();
    for line in shown.chunks(IN_A_LINE) {
        let _ = writeln!(out, "  lat ({unit})   : {}", line.join(", "));
    }
}

fn cpu(out: &mut String, job: &JobOutcome) {
    let usage = &job.tally.usage;
    let elapsed_ns = job.tally.elapsed_ns.max(1) as f64;
    let _ = writeln!(
        out,
        "  cpu          : usr={:3.2}%, sys={:3.2}%, ctx={}, majf={}, minf={}",
        100.0 * usage.user_ns as f64 / elapsed_ns,
        100.0 * usage.system_ns as f64 / elapsed_ns,
        usage.switches.voluntary + usage.switches.involuntary,
        usage.faults_major,
        usage.faults_minor
    );
}

fn depths(out: &mut String, job: &JobOutcome) {
    let line = |labels: [&str; 7], counts: [u64; 7]| {
        let shown: Vec<String> = labels
            .iter()
            .zip(percents(counts))
            .map(|(label, share)| {
                let share = if share > 0.0 {
                    share.max(LEAST_DEPTH)
                } else {
                    share
                };
                format!("{label}={share:3.1}%")
            })
            .collect();
        shown.join(", ")
    };
    let batches = ["0", "4", "8", "16", "32", "64", ">=64"];
    let tally = &job.tally;
    let depths = line(["1", "2", "4", "8", "16", "32", ">=64"], tally.depths);
    let _ = writeln!(out, "  IO depths    : {depths}");
    let _ = writeln!(out, "     submit    : {}", line(batches, tally.submits));
    let _ = writeln!(out, "     complete  : {}", line(batches, tally.completes));
    let [r, w, t] = [0, 1, 2].map(|kind| tally.sides[kind].issued());
    let [short_r, short_w, short_t] = [0, 1, 2].map(|kind| tally.sides[kind].short);
    let _ = writeln!(
        out,
        "     issued rwts: total={r},{w},{t},{} short={short_r},{short_w},{short_t},0 \
         dropped=0,0,0,0",
        tally.fsyncs
    );
    if job.job.continues() {
        let first = tally.first_error;
        let what = match first {
            0 => "Success".to_owned(),
            number => error_text(number),
        };
        let _ = writeln!(
            out,
            "     errors    : total={}, first_error={first}/<{what}>",
            tally.errors
        );
    }
    if tally.lateness.count() > 0 {
        let (late, all) = (late(&tally.lateness), tally.lateness.count());
        let _ = writeln!(
            out,
            "     late starts: {late} of {all} began more than {} us after their time",
            LATE_NS / 1000
        );
        percentiles(out, "lateness", &tally.lateness, &job.job.percentile_list);
    }
    let goal = job.job.latency;
    let depth = match tally.latency_depth {
        0 => job.job.iodepth,
        depth => depth,
    };
    let _ = writeln!(
        out,
        "     latency   : target={}, window={}, percentile={:.2}%, depth={depth}",
        goal.target_ns,
        goal.window_ns / 1000,
        goal.percentile
    );
}

/// The text of an error without its number, which stands before it.
fn error_text(number: i32) -> String {
    without_number(
        &std::io::Error::from_raw_os_error(number).to_string(),
        number,
    )
}

fn without_number(text: &str, number: i32) -> String {
    text.replace(&format!(" (os error {number})"), "")
}

fn groups(out: &mut String, outcome: &Outcome) {
    let mut groups: Vec<u32> = outcome.jobs.iter().map(|job| job.group).collect();
    groups.dedup();
    for group in groups {
        let _ = writeln!(out, "\nRun status group {group} (all jobs):");
        let jobs = || outcome.jobs.iter().filter(|job| job.group == group);
        let Some(last) = jobs().next_back() else { continue };
        // As in fio, the last job of a group decides.
        let numbers = Numbers::of(&last.job);
        for (kind, name) in DIRECTIONS.iter().enumerate() {
            let sides: Vec<&RequestCounts> = jobs()
                .filter(|job| job.job.unified != Unified::Mixed)
                .map(|job| &job.tally.sides[kind])
                .filter(|side| side.has_run())
                .collect();
            if !sides.is_empty() {
                group_line(out, name, &sides, numbers);
            }
        }
        let unified = jobs().filter(|job| job.job.unified != Unified::No);
        let mixed: Vec<RequestCounts> = unified.map(|job| job.tally.mixed()).collect();
        if mixed.iter().any(RequestCounts::has_run) {
            group_line(
                out,
                "mixed",
                &mixed.iter().collect::<Vec<&RequestCounts>>(),
                numbers,
            );
        }
    }
}

fn group_line(out: &mut String, name: &str, sides: &[&RequestCounts], numbers: Numbers) {
    let rates = sides.iter().map(|side| side.bytes_per_s());
    let times = sides.iter().map(|side| side.runtime_ms());
    let (first, last) = (times.clone().min().unwrap_or(0), times.max().unwrap_or(0));
    let bytes: u64 = sides.iter().map(|side| side.bytes).sum();
    let (min, max) = (rates.clone().min().unwrap_or(0), rates.max().unwrap_or(0));
    let [all, other_all] = numbers.rate(per_second(bytes, last));
    let [min, other_min] = numbers.rate(min);
    let [max, other_max] = numbers.rate(max);
    let [io, other_io] = numbers.size(bytes);
    let name = name.to_uppercase();
    let _ = writeln!(
        out,
        "{name:>7}: bw={all} ({other_all}), {min}-{max} ({other_min}-{other_max}), \
         io={io} ({other_io}), run={first}-{last}msec"
    );
}

fn cpu_idleness(out: &mut String, idleness: &Idleness) {
    let _ = writeln!(out, "\nCPU idleness:\n  system: {:.2}%", idleness.system);
    if !idleness.cores.is_empty() {
        let cores = idleness.cores.iter().map(|idle| format!("{idle:.2}%"));
        let cores: Vec<String> = cores.collect();
        let _ = writeln!(out, "  percpu: {}", cores.join(", "));
    }
}

fn disks(out: &mut String, disks: &[DiskOutcome]) {
    if disks.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nDisk stats (read/write):");
    for disk in disks {
        let counts = disk.counts();
        let _ = writeln!(
            out,
            "  {}: ios={}/{}, merge={}/{}, ticks={}/{}, in_queue={}, util={:3.2}%",
            disk.name,
            counts.ios[0],
            counts.ios[1],
            counts.merges[0],
            counts.merges[1],
            counts.ticks_ms[0],
            counts.ticks_ms[1],
            counts.queue_ms,
            counts.util
        );
    }
}
