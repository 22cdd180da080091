//! fio's JSON: the same keys, in the same order, with the same units.

use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::ser::{Formatter, PrettyFormatter};
use serde_json::{Value, json};
use ugeom_machine::clock::local_time_text;
use ugeom_measure::Histogram;

use super::{BUCKET_ENDS, FIO_VERSION, late, latency_shares, percents};
use crate::outcome::{DiskOutcome, Idleness, JobOutcome, Outcome};
use crate::tally::{RequestCounts, Tally};
use ugeom_job::settings::{DIRECTIONS, Job, Unified};

/// Keys and values in the order in which they stand.
struct Object(Vec<(String, Item)>);

enum Item {
    Plain(Value),
    Object(Object),
    List(Vec<Object>),
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, item) in &self.0 {
            match item {
                Item::Plain(value) => map.serialize_entry(key, value)?,
                Item::Object(object) => map.serialize_entry(key, object)?,
                Item::List(objects) => map.serialize_entry(key, objects)?,
            }
        }
        map.end()
    }
}

impl Object {
    fn new() -> Self {
        Self(Vec::new())
    }

    fn put(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.0.push((key.into(), Item::Plain(value.into())));
        self
    }

    fn object(mut self, key: &str, object: Self) -> Self {
        self.0.push((key.to_owned(), Item::Object(object)));
        self
    }
}

/// fio's layout, which scripts search without a parser: a blank on either side of a colon, six
/// decimals.
struct Layout(PrettyFormatter<'static>);

impl Formatter for Layout {
    fn begin_object_value<W: Write + ?Sized>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(b" : ")
    }

    fn write_f64<W: Write + ?Sized>(&mut self, to: &mut W, value: f64) -> io::Result<()> {
        write!(to, "{value:.6}")
    }

    fn begin_object<W: Write + ?Sized>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.begin_object(to)
    }

    fn end_object<W: Write + ?Sized>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_object(to)
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(to, first)
    }

    fn end_object_value<W: Write + ?Sized>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_object_value(to)
    }

    fn begin_array<W: Write + ?Sized>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.begin_array(to)
    }

    fn end_array<W: Write + ?Sized>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_array(to)
    }

    fn begin_array_value<W: Write + ?Sized>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(to, first)
    }

    fn end_array_value<W: Write + ?Sized>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_array_value(to)
    }
}

fn laid_out(root: &Object) -> Result<String, serde_json::Error> {
    let mut text = Vec::new();
    let layout = Layout(PrettyFormatter::new());
    root.serialize(&mut serde_json::Serializer::with_formatter(
        &mut text, layout,
    ))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The JSON of an outcome; `bins` adds the histograms (`json+`).
///
/// # Errors
/// None that could be caused from outside.
pub fn json(outcome: &Outcome, bins: bool) -> Result<String, serde_json::Error> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let mut root = Object::new()
        .put("fio version", FIO_VERSION)
        .put("timestamp", now.as_secs())
        .put("timestamp_ms", now.as_millis() as u64)
        .put("time", local_time_text(now.as_secs()));
    let global = outcome.jobs.first().map(|job| job.job.global.as_slice());
    if let Some(global) = global.filter(|global| !global.is_empty()) {
        root = root.object("global options", options(global));
    }
    let jobs = outcome.jobs.iter().map(|job| one_job(job, outcome, bins));
    root.0.push(("jobs".to_owned(), Item::List(jobs.collect())));
    let disks = outcome.disks.iter().map(one_disk);
    root.0
        .push(("disk_util".to_owned(), Item::List(disks.collect())));
    if let Some(idleness) = &outcome.idleness {
        root = root.object("cpu_idleness", cpu_idleness(idleness));
    }
    if !outcome.warnings.is_empty() {
        root = root.put("warnings", outcome.warnings.as_slice());
    }
    let mut text = laid_out(&root)?;
    text.push('\n');
    Ok(text)
}

fn cpu_idleness(idleness: &Idleness) -> Object {
    let cores = idleness.cores.iter().enumerate();
    cores.fold(
        Object::new().put("system", idleness.system),
        |object, (core, idle)| object.put(format!("cpu-{core}"), *idle),
    )
}

fn options(options: &[(String, String)]) -> Object {
    let put = |object: Object, (key, value): &(String, String)| object.put(key, value.as_str());
    options.iter().fold(Object::new(), put)
}

/// The options of a job, with those that programs look for whether they were set or not.
fn job_options(job: &Job) -> Object {
    let mut all = job.own.clone();
    if !all.iter().any(|(key, _)| key == "name") {
        all.insert(0, ("name".to_owned(), job.name.clone()));
    }
    let sizes = job.sizes.iter().zip(job.rw.does).find(|(_, does)| *does);
    let bytes = sizes.map_or(0, |(sizes, _)| sizes.min);
    let bytes = match bytes % 1024 {
        0 => format!("{}k", bytes / 1024),
        _ => bytes.to_string(),
    };
    let global = |key: &str| job.global.iter().find(|(name, _)| name == key);
    for (key, value) in [
        ("bs", bytes),
        ("rw", job.rw.name.to_owned()),
        ("iodepth", job.iodepth.to_string()),
        ("numjobs", job.numjobs.to_string()),
    ] {
        if !all.iter().any(|(name, _)| name == key) {
            let value = global(key).map_or(value, |(_, value)| value.clone());
            all.push((key.to_owned(), value));
        }
    }
    options(&all)
}

fn one_job(job: &JobOutcome, outcome: &Outcome, bins: bool) -> Object {
    let tally = &job.tally;
    let mut object = Object::new()
        .put("jobname", job.job.name.as_str())
        .put("groupid", job.group)
        .put("job_start", job.begun_unix_ms)
        .put("error", job.errno())
        .put("eta", 0)
        .put(
            "elapsed",
            job.ended_unix_s.saturating_sub(job.begun_unix_ms / 1000) + 1,
        );
    if let Some(description) = &job.job.description {
        object = object.put("desc", description.as_str());
    }
    object = object.object("job options", job_options(&job.job));
    if job.job.unified != Unified::Mixed {
        for (kind, side) in tally.sides.iter().enumerate() {
            object = object.object(
                DIRECTIONS[kind],
                one_side(job, outcome, Some(kind), side, bins),
            );
        }
    }
    if job.job.unified != Unified::No {
        let mixed = tally.mixed();
        object = object.object("mixed", one_side(job, outcome, None, &mixed, bins));
    }
    let syncs = Object::new().put("total_ios", tally.fsyncs).object(
        "lat_ns",
        latencies(&tally.syncs, Some(&job.job.percentile_list), bins),
    );
    // As in fio, what is reported together has no syncs.
    if job.job.unified != Unified::Mixed {
        object = object.object("sync", syncs);
    }
    object = usage(object, tally);
    object = distributions(object, job);
    match &job.steady {
        Some(steady) => object.object("steadystate", steadystate(steady)),
        None => object,
    }
}

/// Shares of queue depths, batches and latencies, and the errors.
fn distributions(mut object: Object, job: &JobOutcome) -> Object {
    let tally = &job.tally;
    let depth_labels = ["1", "2", "4", "8", "16", "32", ">=64"];
    let batch_labels = ["0", "4", "8", "16", "32", "64", ">=64"];
    object = object
        .object(
            "iodepth_level",
            shares(&depth_labels, &percents(tally.depths)),
        )
        .object(
            "iodepth_submit",
            shares(&batch_labels, &percents(tally.submits)),
        )
        .object(
            "iodepth_complete",
            shares(&batch_labels, &percents(tally.completes)),
        );
    let found = latency_shares(tally);
    let labels = BUCKET_ENDS.map(|end| end.to_string());
    let mut labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    object = object
        .object("latency_ns", shares(&labels, &found.ns))
        .object("latency_us", shares(&labels, &found.us));
    labels.extend(["2000", ">=2000"]);
    object = object
        .object("latency_ms", shares(&labels, &found.ms))
        .put(
            "latency_depth",
            match tally.latency_depth {
                0 => job.job.iodepth,
                depth => depth,
            },
        )
        .put("latency_target", job.job.latency.target_ns)
        .put("latency_percentile", job.job.latency.percentile)
        .put("latency_window", job.job.latency.window_ns / 1000);
    if tally.lateness.count() > 0 {
        let lateness = latencies(&tally.lateness, Some(&job.job.percentile_list), false);
        object = object
            .put("late_starts", late(&tally.lateness))
            .object("lateness_ns", lateness);
    }
    if job.job.continues() {
        object = object
            .put("total_err", tally.errors)
            .put("first_error", tally.first_error);
    }
    object
}

fn steadystate(steady: &crate::steady::SteadyState) -> Object {
    let rounded = |values: &[f64]| {
        values
            .iter()
            .map(|value| *value as u64)
            .collect::<Vec<u64>>()
    };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let data = Object::new()
        .put("bw_mean", mean(&steady.bw) as u64)
        .put("iops_mean", mean(&steady.iops) as u64)
        .put("iops", rounded(&steady.iops))
        .put("bw", rounded(&steady.bw));
    Object::new()
        .put("ss", steady.wanted.as_str())
        .put("duration", steady.duration_s)
        .put("attained", u8::from(steady.attained))
        .put("criterion", format!("{:.6}%", steady.criterion))
        .put("max_deviation", steady.deviation)
        .put("slope", steady.slope)
        .object("data", data)
}

fn usage(object: Object, tally: &Tally) -> Object {
    let elapsed_ns = tally.elapsed_ns.max(1) as f64;
    let usage = &tally.usage;
    object
        .put("job_runtime", tally.elapsed_ns / 1_000_000)
        .put("usr_cpu", 100.0 * usage.user_ns as f64 / elapsed_ns)
        .put("sys_cpu", 100.0 * usage.system_ns as f64 / elapsed_ns)
        .put("ctx", usage.switches.voluntary + usage.switches.involuntary)
        .put("majf", usage.faults_major)
        .put("minf", usage.faults_minor)
}

fn shares(labels: &[&str], shares: &[f64]) -> Object {
    let put = |object: Object, (label, share): (&&str, &f64)| object.put(*label, *share);
    labels.iter().zip(shares).fold(Object::new(), put)
}

/// One kind of requests; `kind` is none for all together.
fn one_side(
    job: &JobOutcome,
    outcome: &Outcome,
    kind: Option<usize>,
    side: &RequestCounts,
    bins: bool,
) -> Object {
    let bytes = side.bytes_per_s();
    let wanted = job.job.percentiles;
    let list = |wanted: bool| wanted.then_some(job.job.percentile_list.as_slice());
    let (bw_min, bw_max) = side.bw.ends();
    let (iops_min, iops_max) = side.iops.ends();
    let group = outcome.jobs.iter().filter(|other| other.group == job.group);
    let all: f64 = group
        .flat_map(|other| &other.tally.sides[kind.map_or(0..3, |kind| kind..kind + 1)])
        .map(|side| side.bytes_per_s() as f64 / 1024.0)
        .sum();
    let share = match side.bw.count() == 0 || all == 0.0 {
        true => 0.0,
        false => (100.0 * side.bw.mean() / all).min(100.0),
    };
    let mut object = Object::new()
        .put("io_bytes", side.bytes)
        .put("io_kbytes", side.bytes / 1024)
        .put("bw_bytes", bytes)
        .put("bw", bytes / 1024)
        .put("iops", side.iops_issued())
        .put("runtime", side.runtime_ms())
        .put("total_ios", side.issued())
        .put("short_ios", side.short)
        .put("drop_ios", 0)
        .object("slat_ns", latencies(&side.slat, list(wanted.slat), bins))
        .object("clat_ns", latencies(&side.clat, list(wanted.clat), bins))
        .object("lat_ns", latencies(&side.lat, list(wanted.lat), bins));
    if side.by_priority.len() > 1 {
        let each = by_priority(side, wanted.lat, list(wanted.lat || wanted.clat), bins);
        object.0.push(("prios".to_owned(), Item::List(each)));
    }
    object
        .put("bw_min", bw_min)
        .put("bw_max", bw_max)
        .put("bw_agg", share)
        .put("bw_mean", side.bw.mean())
        .put("bw_dev", side.bw.deviation())
        .put("bw_samples", side.bw.count())
        .put("iops_min", iops_min)
        .put("iops_max", iops_max)
        .put("iops_mean", side.iops.mean())
        .put("iops_stddev", side.iops.deviation())
        .put("iops_samples", side.iops.count())
}

/// Latencies of the requests of each I/O priority.
fn by_priority(side: &RequestCounts, total: bool, list: Option<&[f64]>, bins: bool) -> Vec<Object> {
    let name = if total { "lat_ns" } else { "clat_ns" };
    let one = |(priority, times): &(u16, Histogram)| {
        Object::new()
            .put("prioclass", priority >> 13)
            .put("prio", priority & 7)
            .object(name, latencies(times, list, bins))
    };
    side.by_priority.iter().map(one).collect()
}

fn latencies(histogram: &Histogram, list: Option<&[f64]>, bins: bool) -> Object {
    let mut object = Object::new()
        .put("min", histogram.min().unwrap_or(0))
        .put("max", histogram.max().unwrap_or(0))
        .put("mean", histogram.mean().unwrap_or(0.0))
        .put("stddev", histogram.standard_deviation().unwrap_or(0.0))
        .put("N", histogram.count());
    let Some(list) = list.filter(|_| histogram.count() > 0) else {
        return object;
    };
    let percentiles = list.iter().fold(Object::new(), |object, percent| {
        object.put(
            format!("{percent:.6}"),
            histogram.percentile(*percent).unwrap_or(0),
        )
    });
    object = object.object("percentile", percentiles);
    if bins {
        let bins = histogram.buckets().fold(Object::new(), |object, bucket| {
            // The middle that fio takes: half of an odd width is rounded up.
            let middle = bucket.low + (bucket.high - bucket.low).div_ceil(2);
            object.put(middle.to_string(), bucket.count)
        });
        object = object.object("bins", bins);
    }
    object
}

fn one_disk(disk: &DiskOutcome) -> Object {
    let counts = disk.counts();
    Object::new()
        .put("name", disk.name.as_str())
        .put("read_ios", counts.ios[0])
        .put("write_ios", counts.ios[1])
        .put("read_merges", counts.merges[0])
        .put("write_merges", counts.merges[1])
        .put("read_ticks", counts.ticks_ms[0])
        .put("write_ticks", counts.ticks_ms[1])
        .put("in_queue", counts.queue_ms)
        .put("util", json!(counts.util))
}
