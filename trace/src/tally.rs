//! The totals of requests: for each layer counts, inclusive and exclusive times and their phases,
//! over time and for each process. Memory does not grow with the number of requests.

use crate::event::{Dev, Op};
use crate::files::{self, FileId};
use crate::link::parts::divide;
use crate::link::{Phase, Span, Tree};
use std::collections::{BTreeMap, HashMap};
use ugeom_measure::Histogram;

/// Paths through devices beyond this number count in the layer above.
const PATHS_MAX: usize = 256;
/// Processes beyond this number count as one.
const PROCESSES_MAX: usize = 4096;
/// Files beyond this number count as one.
const FILES_MAX: usize = 4096;
/// Files whose names are looked up.
const FILES_NAMED_MAX: usize = 256;
/// Columns of the heat map; when they are full, two become one.
const COLUMNS_MAX: usize = 240;
/// Width of a column at the start, ns.
const COLUMN_NS: u64 = 10_000_000;
/// Rows of the heat map: powers of two of ns.
pub const ROWS: usize = 40;

/// A layer on one way from the top.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Number of the layer's device.
    pub dev: Dev,
    /// The layer above, by its position.
    pub above: Option<usize>,
    /// How many layers are above it.
    pub depth: usize,
    /// From entering the layer to its report, ns. The wake-up that follows is that of the thread.
    pub inclusive: Histogram,
    /// The part of that with no open span in a layer below, ns.
    pub exclusive: Histogram,
    /// Exclusive time by phases, ns.
    pub phases: [u128; Phase::ALL.len()],
    /// Exclusive time of spans whose link was a choice, ns.
    pub ambiguous_ns: u128,
    /// Bytes that were asked for.
    pub bytes: u128,
    /// Requests that read and have ended.
    pub reads: u64,
    /// Requests that wrote and have ended.
    pub writes: u64,
    /// Requests that ended with an error.
    pub failed: u64,
}

/// Requests of a process, or to a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Number of requests that ended.
    pub requests: u64,
    /// Their whole time, ns.
    pub whole_ns: u128,
}

/// The name of a process that runs; empty when it has ended.
fn comm(pid: u32) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    text.trim_end().to_owned()
}

/// Numbers of requests by time and latency: a heat map.
#[derive(Clone, Debug)]
pub struct Heat {
    /// When the first column begins, ns; 0 without requests.
    pub start_ns: u64,
    /// The width of a column, ns.
    pub column_ns: u64,
    /// Requests by column and power of two of their whole time.
    pub columns: Vec<[u32; ROWS]>,
}

/// The requests of a trace, summed up by layer, process, file and time.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Layers, each after the one above it.
    pub layers: Vec<Layer>,
    /// The whole time of requests, ns.
    pub whole: Histogram,
    /// The part of that in which a thread waits for a processor after the last layer has ended, ns.
    pub wake_up: Histogram,
    /// Requests by process; 0 are those beyond the largest number.
    pub processes: BTreeMap<u32, Process>,
    /// Requests by file; none are those that belong to no file, or beyond the largest number.
    pub files: BTreeMap<Option<FileId>, Process>,
    /// Requests that came to lower devices directly: how many, and their time, ns.
    pub others: BTreeMap<Dev, Process>,
    /// Numbers of requests by time and latency.
    pub heat: Heat,
    names: HashMap<u32, String>,
    /// Names of files, and processes of those that have none yet.
    file_names: HashMap<FileId, Option<String>>,
    file_users: Vec<(FileId, u32)>,
    paths: HashMap<(Option<usize>, Dev), usize>,
    /// Devices whose requests are divided; none for all.
    tops: Vec<Dev>,
}

impl Tally {
    /// Counts requests to these devices; of all when there are none.
    pub fn new(tops: Vec<Dev>) -> Self {
        Self {
            layers: Vec::new(),
            whole: Histogram::new(),
            wake_up: Histogram::new(),
            processes: BTreeMap::new(),
            files: BTreeMap::new(),
            others: BTreeMap::new(),
            heat: Heat {
                start_ns: 0,
                column_ns: COLUMN_NS,
                columns: Vec::new(),
            },
            names: HashMap::new(),
            file_names: HashMap::new(),
            file_users: Vec::new(),
            paths: HashMap::new(),
            tops,
        }
    }

    /// Looks up the names of processes and files that were not looked up yet, as long as they are
    /// there.
    pub fn learn_names(&mut self) {
        if self.names.len() < self.processes.len() {
            for pid in self.processes.keys() {
                self.names.entry(*pid).or_insert_with(|| comm(*pid));
            }
        }
        for (file, pid) in self.file_users.drain(..) {
            let name = || files::name(file, pid);
            self.file_names.entry(file).or_insert_with(name);
        }
    }

    /// The name of a file, if it was found.
    pub fn file_name(&self, file: FileId) -> Option<&str> {
        self.file_names.get(&file)?.as_deref()
    }

    /// The name of a process, if it ran when it was looked up.
    pub fn name(&self, pid: u32) -> &str {
        self.names.get(&pid).map_or("", String::as_str)
    }

    /// Takes a request in.
    pub fn add(&mut self, tree: &Tree) {
        let Some(root) = tree.spans.first() else { return };
        let whole_ns = root.end_ns - root.start_ns;
        if !self.tops.is_empty() && !self.tops.contains(&root.dev) {
            let others = self.others.entry(root.dev).or_default();
            others.requests += 1;
            others.whole_ns += u128::from(whole_ns);
            return;
        }
        self.whole.record(whole_ns);
        self.heat.add(root.start_ns, whole_ns);
        let known = self.processes.len() < PROCESSES_MAX || self.processes.contains_key(&root.pid);
        let process = self
            .processes
            .entry(if known { root.pid } else { 0 })
            .or_default();
        process.requests += 1;
        process.whole_ns += u128::from(whole_ns);
        self.count_file(root, whole_ns);
        self.divide(tree);
    }

    fn count_file(&mut self, root: &Span, whole_ns: u64) {
        let is_known = self.files.contains_key(&root.file);
        let file = root
            .file
            .filter(|_| is_known || self.files.len() < FILES_MAX);
        if let Some(file) = file.filter(|_| !is_known && self.files.len() < FILES_NAMED_MAX) {
            self.file_users.push((file, root.pid));
        }
        let requests = self.files.entry(file).or_default();
        requests.requests += 1;
        requests.whole_ns += u128::from(whole_ns);
    }

    fn divide(&mut self, tree: &Tree) {
        let mut layers: Vec<usize> = Vec::with_capacity(tree.spans.len());
        for span in &tree.spans {
            let wake_up = span.phases.iter().find(|it| it.1 == Phase::WakeUp);
            let end_ns = wake_up.map_or(span.end_ns, |(from_ns, _)| *from_ns);
            let above = span.parent.and_then(|parent| layers.get(parent).copied());
            let at = self.layer(above, span.dev);
            layers.push(at);
            let layer = &mut self.layers[at];
            layer.inclusive.record(end_ns - span.start_ns);
            layer.bytes += u128::from(span.sectors) * 512;
            layer.reads += u64::from(span.op == Op::Read);
            layer.writes += u64::from(span.op == Op::Write);
            layer.failed += u64::from(span.failed);
        }
        let mut own = vec![0_u64; tree.spans.len()];
        for part in divide(tree) {
            if part.phase == Phase::WakeUp {
                self.wake_up.record(part.ns);
                continue;
            }
            own[part.span] += part.ns;
            let layer = &mut self.layers[layers[part.span]];
            layer.phases[part.phase as usize] += u128::from(part.ns);
            if tree.spans[part.span].ambiguous {
                layer.ambiguous_ns += u128::from(part.ns);
            }
        }
        for (at, ns) in layers.iter().zip(own) {
            self.layers[*at].exclusive.record(ns);
        }
    }

    fn layer(&mut self, above: Option<usize>, dev: Dev) -> usize {
        if let Some(at) = self.paths.get(&(above, dev)) {
            return *at;
        }
        if let (true, Some(above)) = (self.layers.len() >= PATHS_MAX, above) {
            return above;
        }
        let at = self.layers.len();
        self.layers.push(Layer {
            dev,
            above,
            depth: above.map_or(0, |above| self.layers[above].depth + 1),
            inclusive: Histogram::new(),
            exclusive: Histogram::new(),
            phases: [0; Phase::ALL.len()],
            ambiguous_ns: 0,
            bytes: 0,
            reads: 0,
            writes: 0,
            failed: 0,
        });
        self.paths.insert((above, dev), at);
        at
    }

    /// Layers in the order of a tree: each with those below it behind it.
    pub fn in_order(&self) -> Vec<usize> {
        let below = |of: Option<usize>| {
            let is_below = move |at: &usize| self.layers[*at].above == of;
            (0..self.layers.len())
                .rev()
                .filter(is_below)
                .collect::<Vec<_>>()
        };
        let (mut open, mut order) = (below(None), Vec::new());
        while let Some(at) = open.pop() {
            order.push(at);
            open.extend(below(Some(at)));
        }
        order
    }

    /// The exclusive times of all layers and wake-ups added up, ns: the whole, unless a layer is
    /// missing.
    pub(crate) fn parts_ns(&self) -> u128 {
        let layers = self.layers.iter().map(|layer| layer.exclusive.sum());
        layers.sum::<u128>() + self.wake_up.sum()
    }

    /// Forgets the figures and keeps the layers, for an interval of a live view.
    pub fn clear(&mut self) {
        let fresh = Self::new(std::mem::take(&mut self.tops));
        *self = fresh;
    }
}

impl Heat {
    fn add(&mut self, at_ns: u64, whole_ns: u64) {
        if self.columns.is_empty() {
            self.start_ns = at_ns;
        }
        let since = at_ns.saturating_sub(self.start_ns);
        while since / self.column_ns >= COLUMNS_MAX as u64 {
            self.column_ns *= 2;
            let pairs = self.columns.chunks(2).map(|pair| {
                let mut sum = pair[0];
                for (row, more) in sum.iter_mut().zip(pair.get(1).into_iter().flatten()) {
                    *row = row.saturating_add(*more);
                }
                sum
            });
            self.columns = pairs.collect();
        }
        let column = (since / self.column_ns) as usize;
        if column >= self.columns.len() {
            self.columns.resize(column + 1, [0; ROWS]);
        }
        let row = whole_ns.max(1).ilog2() as usize;
        let cell = &mut self.columns[column][row.min(ROWS - 1)];
        *cell = cell.saturating_add(1);
    }
}

/// A percentile with its 95 % interval, ns: the values at the ranks between which the percentile
/// lies in 95 of 100 samples (normal approximation of the binomial; Conover, Practical
/// Nonparametric Statistics, 3rd edition, section 3.2). None where the values are too few: all of
/// them lie on one side of the percentile in more than 2.5 of 100 samples.
pub fn percentile(of: &Histogram, percent: f64) -> Option<[u64; 3]> {
    let (n, p) = (of.count() as f64, percent / 100.0);
    if p.max(1.0 - p).powf(n) > 0.025 {
        return None;
    }
    let half = 1.96 * (n * p * (1.0 - p)).sqrt();
    let rank = |rank: f64| of.percentile((100.0 * rank / n).clamp(0.0, 100.0));
    Some([
        rank(n * p - half)?,
        rank(n * p)?,
        rank((n * p + half).ceil())?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(at_ns: u64, pid: u32, ns: u64) -> Tree {
        let span = |dev, start_ns, end_ns, parent| Span {
            dev,
            op: Op::Read,
            sector: 0,
            sectors: 8,
            tid: pid,
            pid,
            start_ns,
            end_ns,
            phases: vec![(start_ns, Phase::Block)],
            parent,
            ambiguous: false,
            failed: false,
            file: None,
        };
        let below = span(2, at_ns + ns / 4, at_ns + ns / 2, Some(0));
        Tree {
            spans: vec![span(1, at_ns, at_ns + ns, None), below],
        }
    }

    #[test]
    fn the_parts_of_all_layers_are_the_whole() {
        let mut tally = Tally::new(vec![1]);
        for number in 0..1000_u64 {
            tally.add(&tree(number * 1_000_000, 1, 1000 + number));
        }
        assert_eq!(tally.parts_ns(), tally.whole.sum());
        assert_eq!(tally.in_order(), [0, 1]);
        assert_eq!(tally.layers[1].depth, 1);
        let [low, middle, high] = percentile(&tally.whole, 50.0).unwrap();
        assert!(
            low < 1500 && (1480..1520).contains(&middle) && high > 1500,
            "{low} {high}"
        );
    }

    #[test]
    fn a_wake_up_is_the_time_of_no_layer() {
        let mut tally = Tally::new(vec![1]);
        let mut tree = tree(0, 1, 1000);
        tree.spans[0].phases.push((1000, Phase::WakeUp));
        tree.spans[0].end_ns = 9000;
        tally.add(&tree);
        let top = &tally.layers[0];
        assert_eq!((top.inclusive.sum(), top.exclusive.sum()), (1000, 750));
        assert_eq!((tally.wake_up.sum(), tally.whole.sum()), (8000, 9000));
        assert_eq!(tally.parts_ns(), 9000);
    }

    #[test]
    fn a_percentile_of_too_few_values_has_no_interval() {
        for (percent, enough) in [(50.0, 6), (99.0, 368), (99.9, 3688)] {
            let of = |count: u64| {
                let mut histogram = Histogram::new();
                (0..count).for_each(|value| histogram.record(1000 * value));
                percentile(&histogram, percent)
            };
            assert_eq!(of(enough - 1), None, "{percent}");
            let [low, value, high] = of(enough).expect("an interval");
            assert!(low <= value && value <= high, "{low} {value} {high}");
        }
    }

    #[test]
    fn an_hour_of_many_processes_takes_no_more_memory_than_a_second() {
        let mut tally = Tally::new(Vec::new());
        for number in 0..100_000_u64 {
            tally.add(&tree(number * 36_000_000, number as u32 + 1, 1000));
        }
        assert!(tally.processes.len() <= PROCESSES_MAX + 1);
        assert!(tally.heat.columns.len() <= COLUMNS_MAX);
        let counted: u64 = tally
            .heat
            .columns
            .iter()
            .flatten()
            .map(|n| u64::from(*n))
            .sum();
        assert_eq!((counted, tally.layers.len()), (100_000, 2));
    }

    #[test]
    fn requests_to_lower_devices_are_counted_apart() {
        let mut tally = Tally::new(vec![7]);
        tally.add(&tree(0, 1, 1000));
        assert_eq!(
            tally.others[&1],
            Process {
                requests: 1,
                whole_ns: 1000
            }
        );
        assert_eq!(tally.whole.count(), 0);
    }
}
