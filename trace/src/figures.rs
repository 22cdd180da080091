//! The result of a trace: figures that are printed, saved and drawn.

use crate::event::{Dev, Event};
use crate::files::FileId;
use crate::link::{Phase, Quality, Topology, Tree};
use crate::session::{Check, Sample, Scope, fuse_dev};
use crate::tally::{ROWS, Tally, percentile};
use crate::uring::{Uring, UringFigures};
use crate::workers::{WorkerFigures, Workers};
use serde::{Deserialize, Serialize};
use ugeom_measure::Histogram;
use ugeom_report::text::counted;

/// The name of the experiment in documents.
pub const EXPERIMENT: &str = "trace";
/// Processes that are listed.
const PROCESSES_SHOWN: usize = 20;
/// Files that are listed.
const FILES_SHOWN: usize = 20;

/// The totals of the requests of one layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayerFigures {
    /// Name of the layer's device.
    pub name: String,
    /// How many layers are above it.
    pub depth: usize,
    /// Requests that passed it.
    pub requests: u64,
    /// How many of them read.
    pub reads: u64,
    /// How many of them failed.
    #[serde(default)]
    pub failed: u64,
    /// Bytes that they were for.
    pub bytes: u64,
    /// Mean time from entering the layer to its report, ns.
    pub inclusive_mean_ns: f64,
    /// Mean of the part for which no layer below was open, ns.
    pub exclusive_mean_ns: f64,
    /// Its exclusive time as a share of the whole time of all requests, per cent.
    pub share_percent: f64,
    /// Percentiles of the exclusive time, each with its 95 % interval: low, value, high, ns. One
    /// for which the requests are too few is left out.
    pub exclusive_percentiles_ns: Vec<(f64, [u64; 3])>,
    /// Exclusive time by phases, ns, all requests.
    pub phases_ns: Vec<(Phase, u64)>,
}

/// The waits of threads for a processor after the last layer of their request has ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WakeUpFigures {
    /// Requests whose thread slept.
    pub requests: u64,
    /// All of these waits, ns.
    pub whole_ns: u64,
    /// Their share of the whole time of all requests, per cent.
    pub share_percent: f64,
    /// Percentiles of a wait, each with its 95 % interval, ns.
    pub percentiles_ns: Vec<(f64, [u64; 3])>,
}

/// The totals of the requests of one process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessFigures {
    /// Its number; 0 stands for those that were not counted apart.
    pub pid: u32,
    /// Its name; empty when it had ended before it was looked up.
    pub name: String,
    /// Requests of the process that ended.
    pub requests: u64,
    /// Their mean time, ns.
    pub mean_ns: f64,
}

/// The totals of the requests for one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileFigures {
    /// Its path, or its number where the path is not known; empty for requests that belong to no
    /// file, and those to files beyond the largest number.
    pub name: String,
    /// Its inode; 0 without a file.
    pub inode: u64,
    /// Requests for the file that ended.
    pub requests: u64,
    /// Their mean time, ns.
    pub mean_ns: f64,
}

/// Requests to a device below that did not come through the traced one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OtherFigures {
    /// Name of the device below.
    pub name: String,
    /// Number of its requests.
    pub requests: u64,
    /// Their mean time, ns.
    pub mean_ns: f64,
}

/// Latencies over time: requests by column and power of two of ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeatFigures {
    /// The width of a column, ns.
    pub column_ns: u64,
    /// The columns; each begins with requests below 2 ns.
    pub columns: Vec<Vec<u32>>,
}

/// The result of a trace: its form in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Traced {
    /// The version of the schema.
    pub schema: u32,
    /// The program and its version.
    pub program: String,
    /// [`EXPERIMENT`], by which readers know the result.
    pub experiment: String,
    /// Names of the devices that were traced.
    pub targets: Vec<String>,
    /// Where the events came from.
    pub source: String,
    /// How long it was, s.
    pub seconds: f64,
    /// Requests that ended while the trace ran.
    pub requests: u64,
    /// Their mean time, ns.
    pub mean_ns: f64,
    /// Percentiles of their time, each with its 95 % interval, ns.
    pub percentiles_ns: Vec<(f64, [u64; 3])>,
    /// The time of all requests, ns.
    pub whole_ns: u64,
    /// The exclusive times of all layers and wake-ups, ns.
    pub parts_ns: u64,
    /// Wake-ups, which are in no layer.
    #[serde(default)]
    pub wake_up: WakeUpFigures,
    /// The part of the exclusive times whose layer was a choice between several requests, per cent
    /// of the whole.
    pub ambiguous_percent: f64,
    /// Events that the source lost.
    pub lost: u64,
    /// How complete the links are.
    pub quality: Quality,
    /// Events beside the kernel's counters.
    pub checks: Vec<Check>,
    /// The extent of the sample; none when all requests were recorded.
    #[serde(default)]
    pub sample: Option<Sample>,
    /// Layers, each with those below it behind it.
    pub layers: Vec<LayerFigures>,
    /// Processes with the most time.
    pub processes: Vec<ProcessFigures>,
    /// Files with the most time; none where the source does not tell files.
    #[serde(default)]
    pub files: Vec<FileFigures>,
    /// Other requests to the devices below.
    pub others: Vec<OtherFigures>,
    /// The waiting times of io_uring requests.
    #[serde(default)]
    pub urings: Vec<UringFigures>,
    /// Where the workers of loop devices ran.
    #[serde(default)]
    pub workers: Vec<WorkerFigures>,
    /// Number of requests by time and latency: a heat map.
    pub heat: HeatFigures,
}

/// The subject of a trace.
pub struct About<'a> {
    /// Names of the devices that were traced.
    pub targets: Vec<String>,
    /// Where the events came from.
    pub source: &'a str,
    /// How long it was, s.
    pub seconds: f64,
    /// The traced devices, for their names.
    pub scope: &'a Scope,
}

/// All that is summed up while a trace runs, or is read back.
pub struct Sums {
    topology: Topology,
    tally: Tally,
    workers: Workers,
    uring: Uring,
}

impl Sums {
    /// Nothing yet, of requests to the devices of a scope.
    pub fn new(scope: &Scope) -> Self {
        Self {
            topology: scope.topology.clone(),
            tally: Tally::new(scope.tops.clone()),
            workers: Workers::default(),
            uring: Uring::new(&scope.tops),
        }
    }

    /// Takes an event in, in the order of their times.
    pub fn event(&mut self, event: &Event) {
        self.workers.event(event, &self.topology);
        self.uring.event(event, &self.topology);
    }

    /// Takes in requests that have ended, behind their events.
    pub fn requests(&mut self, trees: &[Tree]) {
        for tree in trees {
            self.uring.tree(tree);
            self.tally.add(tree);
        }
    }

    /// Looks up the names of processes and files, while they are there.
    pub fn learn_names(&mut self) {
        self.tally.learn_names();
    }

    /// The figures of all of it.
    pub fn figures(&self, about: &About<'_>, found: (u64, Quality, Vec<Check>)) -> Traced {
        Traced {
            workers: self.workers.figures(&|dev| about.scope.name(dev)),
            urings: self.uring.figures(),
            ..Traced::new(about, &self.tally, found)
        }
    }
}

/// The percentiles of latency that `trace` reports, with a CI each.
pub(crate) const PERCENTS: [f64; 3] = [50.0, 99.0, 99.9];

impl Traced {
    /// The figures of the counts.
    pub fn new(
        about: &About<'_>,
        tally: &Tally,
        (lost, quality, checks): (u64, Quality, Vec<Check>),
    ) -> Self {
        let whole = tally.whole.sum();
        let ambiguous: u128 = tally.layers.iter().map(|layer| layer.ambiguous_ns).sum();
        let layers = tally.in_order().into_iter();
        Self {
            schema: 1,
            program: concat!("ugeom ", env!("CARGO_PKG_VERSION")).to_owned(),
            experiment: EXPERIMENT.to_owned(),
            targets: about.targets.clone(),
            source: about.source.to_owned(),
            seconds: about.seconds,
            requests: tally.whole.count(),
            mean_ns: tally.whole.mean().unwrap_or(0.0),
            percentiles_ns: percentiles(&tally.whole),
            whole_ns: narrow(whole),
            parts_ns: narrow(tally.parts_ns()),
            wake_up: WakeUpFigures {
                requests: tally.wake_up.count(),
                whole_ns: narrow(tally.wake_up.sum()),
                share_percent: share(tally.wake_up.sum(), whole),
                percentiles_ns: percentiles(&tally.wake_up),
            },
            ambiguous_percent: share(ambiguous, whole),
            lost,
            quality,
            checks,
            sample: None,
            layers: layers.map(|at| layer(about.scope, tally, at)).collect(),
            processes: processes(tally),
            files: files(about.scope, tally),
            others: others(about.scope, tally),
            urings: Vec::new(),
            workers: Vec::new(),
            heat: HeatFigures {
                column_ns: tally.heat.column_ns,
                columns: tally
                    .heat
                    .columns
                    .iter()
                    .map(|column| column.to_vec())
                    .collect(),
            },
        }
    }

    /// The same of a sample.
    #[must_use]
    pub fn of_sample(self, sample: Option<Sample>) -> Self {
        Self { sample, ..self }
    }

    /// The defects of the result, in sentences.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.lost > 0 {
            let share = 100.0 * self.lost as f64 / (self.lost + self.quality.events) as f64;
            // Each lost event spoils at most one request of each layer above it.
            let most = self.lost;
            warnings.push(format!(
                "{} events were lost ({share:.2} %), so at most {most} requests are missing or \
                 have wrong parts, {:.2} % of all",
                self.lost,
                100.0 * most as f64 / (most + self.requests).max(1) as f64
            ));
        }
        let open = self.quality.unmatched_starts;
        if open > 0 && self.requests > 0 {
            let open = counted(open, "request");
            warnings.push(format!("{open} began, and no completion was recorded"));
        }
        if self.quality.silent_servers > 0 {
            warnings.push(
                "a FUSE server ceased to report its times: from then on its time is counted for \
                 the connection above it"
                    .to_owned(),
            );
        }
        // Without requests, what others did to the devices below changes no figure.
        let matters = |check: &&Check| self.requests > 0 || self.targets.contains(&check.device);
        let checks = self.checks.iter().filter(matters);
        warnings.extend(checks.filter(|check| !check.agrees()).map(|check| {
            format!(
                "{}: {} and {} traced; diskstats has {} and {}",
                check.device,
                counted(check.reads_seen, "read"),
                counted(check.writes_seen, "write"),
                range(check.reads_counted),
                range(check.writes_counted)
            )
        }));
        warnings
    }
}

/// `6847 to 6983`, or one number.
pub(crate) fn range((least, most): (u64, u64)) -> String {
    match least == most {
        true => least.to_string(),
        false => format!("{least} to {most}"),
    }
}

fn layer(scope: &Scope, tally: &Tally, at: usize) -> LayerFigures {
    let layer = &tally.layers[at];
    let phases = Phase::ALL.into_iter().zip(layer.phases);
    LayerFigures {
        name: scope.name(layer.dev),
        depth: layer.depth,
        requests: layer.inclusive.count(),
        reads: layer.reads,
        failed: layer.failed,
        bytes: narrow(layer.bytes),
        inclusive_mean_ns: layer.inclusive.mean().unwrap_or(0.0),
        exclusive_mean_ns: layer.exclusive.mean().unwrap_or(0.0),
        share_percent: share(layer.exclusive.sum(), tally.whole.sum()),
        exclusive_percentiles_ns: percentiles(&layer.exclusive),
        phases_ns: phases
            .filter(|(_, ns)| *ns > 0)
            .map(|(phase, ns)| (phase, narrow(ns)))
            .collect(),
    }
}

fn percentiles(of: &Histogram) -> Vec<(f64, [u64; 3])> {
    let one = |percent| Some((percent, percentile(of, percent)?));
    PERCENTS.into_iter().filter_map(one).collect()
}

fn processes(tally: &Tally) -> Vec<ProcessFigures> {
    let mut all: Vec<_> = tally.processes.iter().collect();
    all.sort_by_key(|(_, process)| std::cmp::Reverse(process.whole_ns));
    let figures = |(pid, process): &(&u32, &crate::tally::Process)| ProcessFigures {
        pid: **pid,
        name: tally.name(**pid).to_owned(),
        requests: process.requests,
        mean_ns: process.whole_ns as f64 / process.requests.max(1) as f64,
    };
    all.iter().take(PROCESSES_SHOWN).map(figures).collect()
}

fn files(scope: &Scope, tally: &Tally) -> Vec<FileFigures> {
    let mut all: Vec<_> = tally.files.iter().collect();
    if all.iter().all(|(file, _)| file.is_none()) {
        return Vec::new();
    }
    all.sort_by_key(|(_, requests)| std::cmp::Reverse(requests.whole_ns));
    let figures = |(file, requests): &(&Option<FileId>, &crate::tally::Process)| FileFigures {
        name: file.map_or_else(String::new, |file| file_name(scope, tally, file)),
        inode: file.map_or(0, |(_, inode)| inode),
        requests: requests.requests,
        mean_ns: requests.whole_ns as f64 / requests.requests.max(1) as f64,
    };
    all.iter().take(FILES_SHOWN).map(figures).collect()
}

/// The path, else the inode, else the device whose page cache it is.
fn file_name(scope: &Scope, tally: &Tally, file: FileId) -> String {
    if let Some(name) = tally.file_name(file) {
        return name.to_owned();
    }
    let (system, inode) = file;
    let device = Dev::try_from(inode).ok();
    let device = device.and_then(|inode| scope.names.get(&inode));
    let known = |dev: Dev| scope.names.get(&dev);
    match (known(system), known(fuse_dev(system)), device) {
        (Some(name), _, _) | (None, Some(name), _) => format!("inode {inode} on {name}"),
        (None, None, Some(name)) => format!("{name}: the device's own page cache"),
        _ => format!("inode {inode} on {}", scope.name(system)),
    }
}

fn others(scope: &Scope, tally: &Tally) -> Vec<OtherFigures> {
    let figures = |(dev, other): (&u32, &crate::tally::Process)| OtherFigures {
        name: scope.name(*dev),
        requests: other.requests,
        mean_ns: other.whole_ns as f64 / other.requests.max(1) as f64,
    };
    tally.others.iter().map(figures).collect()
}

fn share(part: u128, whole: u128) -> f64 {
    if whole == 0 {
        0.0
    } else {
        100.0 * part as f64 / whole as f64
    }
}

/// 2^64 ns are 584 years.
fn narrow(sum: u128) -> u64 {
    u64::try_from(sum).unwrap_or(u64::MAX)
}

/// Rows of the heat map that have a request: the first and the last power of two.
pub(crate) fn used_rows(heat: &HeatFigures) -> Option<(usize, usize)> {
    let used = |row: &usize| {
        heat.columns
            .iter()
            .any(|column| column.get(*row) > Some(&0))
    };
    let first = (0..ROWS).find(used)?;
    let last = (0..ROWS).rev().find(used)?;
    Some((first, last))
}
