//! A trace while it runs: the source, events in the order of their times, the linker, and the
//! comparison with the kernel's own counters.

#[cfg(test)]
mod tests;
mod wish;

use crate::event::{Dev, Event, EventKind, Op, WINDOW_CLOSED, WINDOW_CLOSING, WINDOW_OPEN};
use crate::link::{FUSE, Linker, Quality, SERVER, Topology, Tree};
use crate::sample::{Seen, Turn, Windows};
use crate::source::{self, Choice, Source};
use crate::tree::{Class, KernelTree, Node};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use ugeom_machine::clock;
use wish::{counters, wish_of};

/// An event is held back so long for earlier ones of other processors, ns.
const LATE_NS: u64 = 2_000_000;

/// The traced devices, and their names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scope {
    /// Devices whose requests are divided, as events number them.
    pub tops: Vec<Dev>,
    /// Whole disks whose events are needed; none for all.
    pub disks: Vec<Dev>,
    /// FUSE connections whose requests are needed.
    #[serde(default)]
    pub connections: Vec<u32>,
    /// The linker's view of the devices.
    pub topology: Topology,
    /// Names of devices by their numbers.
    pub names: BTreeMap<Dev, String>,
}

/// As events number a device.
pub fn dev_of((major, minor): (u32, u32)) -> Dev {
    major << 20 | minor
}

/// The number that stands for a FUSE connection among devices.
pub fn fuse_dev(connection: u32) -> Dev {
    connection | FUSE
}

/// The number that stands for the server of a FUSE connection.
pub fn server_dev(connection: u32) -> Dev {
    connection | FUSE | SERVER
}

impl Scope {
    /// The chains of these nodes; all devices when there are none.
    pub fn of(tree: &KernelTree, nodes: &[usize]) -> Self {
        let mut scope = Self::default();
        for (at, node) in tree.nodes.iter().enumerate() {
            let Some(number) = node.number else { continue };
            let dev = match node.class {
                Class::Fs => continue,
                Class::Fuse => fuse_dev(number.1),
                _ => dev_of(number),
            };
            scope.names.entry(dev).or_insert_with(|| node.name.clone());
            match node.class {
                Class::Part => {
                    scope.topology.partitions.insert(dev);
                }
                Class::Loop => {
                    scope.topology.loops.insert(dev, exact(tree, at));
                }
                _ => {}
            }
        }
        for top in nodes {
            let chain = tree.chain(*top);
            // The top of a file is the device of its file system.
            let first = chain.iter().find_map(|at| device(&tree.nodes[*at]));
            scope.tops.extend(first);
            for at in chain {
                let node = &tree.nodes[at];
                scope.connections.extend(connection(node));
                if node.class != Class::Part && node.class != Class::Fuse {
                    scope.disks.extend(device(node));
                }
            }
        }
        if nodes.is_empty() {
            scope.connections = tree.nodes.iter().filter_map(connection).collect();
        }
        for all in [&mut scope.disks, &mut scope.connections] {
            all.sort_unstable();
            all.dedup();
        }
        scope
    }

    /// The name of a device.
    pub fn name(&self, dev: Dev) -> String {
        let known = self.names.get(&dev).cloned();
        known.unwrap_or_else(|| match dev & FUSE {
            0 => format!("{}:{}", dev >> 20, dev & 0xf_ffff),
            _ if dev & SERVER != 0 => format!("server of fuse {}", dev & !FUSE & !SERVER),
            _ => format!("fuse {}", dev & !FUSE),
        })
    }
}

/// The number of a FUSE connection.
pub fn connection(node: &Node) -> Option<u32> {
    let number = node.number.filter(|_| node.class == Class::Fuse)?;
    Some(number.1)
}

/// The number of a block device, or of the connection of a FUSE server.
fn device(node: &Node) -> Option<Dev> {
    match node.class {
        Class::Fs | Class::File => None,
        Class::Fuse => Some(fuse_dev(node.number?.1)),
        _ => node.number.map(dev_of),
    }
}

/// Where the first byte of a loop device lies, if it stands on a block device.
fn exact(tree: &KernelTree, at: usize) -> Option<(Dev, u64)> {
    let node = &tree.nodes[at];
    let offset = node.fact("offset").and_then(|text| text.parse().ok());
    let offset: u64 = offset.unwrap_or(0);
    let mut below = &tree.nodes[*node.below.first()?];
    let mut sector = offset / 512;
    if below.class == Class::Part {
        sector += below.start_bytes? / 512;
        below = &tree.nodes[*below.below.first()?];
    }
    Some((device(below)?, sector))
}

/// Events of a device beside its counters of diskstats.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Name of the device that was checked.
    pub device: String,
    /// Ends of reads that were seen.
    pub reads_seen: u64,
    /// Reads that diskstats counted while events were certainly recorded, and while they may have
    /// been.
    pub reads_counted: (u64, u64),
    /// Ends of writes and discards that were seen. A write that waits for flushes may be reported
    /// twice.
    pub writes_seen: u64,
    /// Writes and discards that diskstats counted, as for reads.
    pub writes_counted: (u64, u64),
}

impl Check {
    /// Whether the counts agree: no read too many or too few, no write too few.
    pub fn agrees(&self) -> bool {
        let (least, most) = self.reads_counted;
        (least..=most).contains(&self.reads_seen) && self.writes_seen >= self.writes_counted.0
    }
}

/// A trace that runs.
pub struct Session {
    source: Box<dyn Source>,
    linker: Linker,
    pending: Vec<Event>,
    /// Events before this moment have all arrived.
    complete_ns: u64,
    /// The last look left events to the next.
    is_behind: bool,
    /// Ends since the window began; and those before it that devices which hand their bios on had.
    ends: HashMap<(Dev, bool), u64>,
    handed_on: HashMap<(Dev, bool), u64>,
    /// Counters right before and after the beginning of the window.
    before: [Counters; 2],
    /// Counters at the start, and what earlier windows have seen and the kernel counted in them.
    first: Counters,
    earlier: BTreeMap<Dev, Check>,
    sampling: Option<Sampling>,
    /// Counters at a moment whose events have not all arrived.
    look: Option<(u64, Counters)>,
    counted: Count,
    missed: Option<String>,
    scope: Scope,
    servers: Vec<Server>,
    /// When it began, CLOCK_MONOTONIC, ns.
    pub start_ns: u64,
}

/// The sampling state, if not everything is recorded.
struct Sampling {
    windows: Windows,
    /// Events that the source gave so far.
    events: u64,
    count: u64,
    /// Time in which something was recorded, before this window, and when that began, ns.
    recorded_ns: u64,
    since_ns: u64,
    share: f64,
}

/// The extent of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The cost that was allowed, per cent of the time of a processor.
    pub allowed_percent: f64,
    /// The recorded events times the assumed cost of one, per cent of the time of the trace.
    pub cost_percent: f64,
    /// The assumed cost of an event, ns.
    pub event_ns: f64,
    /// Windows in which events were recorded.
    pub windows: u64,
    /// Their share of the time of the trace, per cent.
    pub recorded_percent: f64,
    /// Requests of the traced devices that diskstats counted during the whole trace. It counts
    /// merged ones as one.
    pub counted: u64,
}

/// Asks a FUSE server for its requests since the last question: the kernel's number of each, and
/// when it was taken and its reply was begun, CLOCK_MONOTONIC, ns. And how many there was no room
/// for so far.
pub type Passages = Box<dyn FnMut() -> std::io::Result<(Vec<(u64, u64, u64)>, u64)> + Send>;

/// A FUSE server that tells of its requests.
struct Server {
    connection: u32,
    passages: Passages,
    /// Requests that it had no room for.
    lost: u64,
    /// It has failed to answer, and is asked no more.
    failed: bool,
}

/// Reads the kernel's counters.
type Count = fn(&Scope) -> Counters;

type Counters = BTreeMap<Dev, (u64, u64)>;

/// The result of a trace.
pub struct Ended {
    /// The requests that ended last, each as a tree of spans.
    pub trees: Vec<Tree>,
    /// How complete the links are.
    pub quality: Quality,
    /// Events that the source lost.
    pub lost: u64,
    /// Each traced device beside its counters.
    pub checks: Vec<Check>,
    /// The extent of the sample, if it is one.
    pub sample: Option<Sample>,
}

impl Session {
    /// Opens the first of these sources that works.
    ///
    /// # Errors
    /// Why none does.
    pub fn start(scope: Scope, choices: &[Choice]) -> Result<Self, String> {
        let wish = wish_of(&scope);
        Self::start_with(scope, counters, || source::open(&wish, choices))
    }

    fn start_with(
        mut scope: Scope,
        counters: Count,
        open: impl FnOnce() -> Result<Box<dyn Source>, String>,
    ) -> Result<Self, String> {
        let first = counters(&scope);
        let source = open()?;
        let start_ns = clock::now_ns();
        let second = counters(&scope);
        let mut topology = scope.topology.clone();
        topology.has_done = source.kinds().contains(&EventKind::Done);
        topology.has_run = source.kinds().contains(&EventKind::Run);
        scope.topology.clone_from(&topology);
        Ok(Self {
            linker: Linker::new(topology),
            source,
            pending: Vec::new(),
            complete_ns: 0,
            is_behind: false,
            ends: HashMap::new(),
            handed_on: HashMap::new(),
            first: first.clone(),
            before: [first, second],
            earlier: BTreeMap::new(),
            sampling: None,
            look: None,
            counted: counters,
            missed: None,
            scope,
            servers: Vec::new(),
            start_ns,
        })
    }

    /// Records only so much that this costs at most a share (0 to 1) of the time of a processor. To
    /// be called before events are read.
    pub fn sample(&mut self, share: f64) {
        let event_ns = Choice::event_ns(self.source.name());
        self.sampling = Some(Sampling {
            windows: Windows::new(share, event_ns, self.start_ns),
            events: 0,
            count: 1,
            recorded_ns: 0,
            since_ns: self.start_ns,
            share,
        });
        self.pending.push(window(self.start_ns, WINDOW_OPEN));
    }

    /// Asks the server of a connection, too, from now on.
    pub fn ask(&mut self, connection: u32, name: String, passages: Passages) {
        let dev = server_dev(connection);
        self.scope.names.insert(dev, name);
        self.servers.push(Server {
            connection,
            passages,
            lost: 0,
            failed: false,
        });
    }

    /// The servers' reports since the last look, as events; a server that fails is not asked again.
    fn ask_servers(&mut self) {
        let pending = &mut self.pending;
        for server in self.servers.iter_mut().filter(|server| !server.failed) {
            let Ok((told, lost)) = (server.passages)() else {
                server.failed = true;
                continue;
            };
            server.lost = lost;
            pending.extend(told.into_iter().map(|(unique, taken, replied)| Event {
                time_ns: replied,
                kind: EventKind::Served,
                cpu: 0,
                op: Op::Other,
                tid: 0,
                pid: 0,
                dev: server.connection,
                sector: 0,
                sectors: 0,
                id: unique,
                other: 0,
                extra: taken,
            }));
        }
    }

    /// Name of the source of events: `bpf`, `tracefs` or `perf`.
    pub fn source(&self) -> &'static str {
        self.source.name()
    }

    /// The devices that are traced, with their layers.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Events that were lost so far.
    pub fn lost(&self) -> u64 {
        let servers = self.servers.iter().map(|server| server.lost);
        self.source.lost() + servers.sum::<u64>()
    }

    /// How complete the links are so far.
    pub fn quality(&self) -> Quality {
        self.with_servers(self.linker.quality())
    }

    fn with_servers(&self, quality: Quality) -> Quality {
        let failed = self.servers.iter().filter(|server| server.failed);
        Quality {
            silent_servers: failed.count() as u64,
            ..quality
        }
    }

    /// Reads new events; `keep` gets each event in the order of times. To be called every
    /// few milliseconds. The requests that ended.
    ///
    /// # Errors
    /// The error of reading.
    pub fn poll(&mut self, keep: &mut dyn FnMut(&Event)) -> std::io::Result<Vec<Tree>> {
        let now_ns = clock::now_ns();
        if self.is_paused() {
            // Servers go on; what they tell belongs to no window.
            self.ask_servers();
            self.pending.clear();
            self.turn(now_ns, keep)?;
            return Ok(self.linker.take());
        }
        let left_ns = self.read()?;
        self.is_behind = left_ns.is_some();
        let read_ns = left_ns.unwrap_or(now_ns).saturating_sub(LATE_NS);
        // Unread events are read with the next look.
        self.complete_ns = self.complete_ns.min(read_ns);
        self.feed(self.complete_ns, keep);
        self.compare(self.complete_ns);
        self.turn(now_ns, keep)?;
        self.complete_ns = read_ns;
        Ok(self.linker.take())
    }

    /// Whether the last look left events, so that the next one should come at once.
    pub fn is_behind(&self) -> bool {
        self.is_behind
    }

    fn is_paused(&self) -> bool {
        let sampling = self.sampling.as_ref();
        sampling.is_some_and(|sampling| sampling.windows.is_paused())
    }

    /// Reads events: the time up to which none is left, where some are.
    fn read(&mut self) -> std::io::Result<Option<u64>> {
        let before = self.pending.len();
        let left_ns = self.source.read(&mut self.pending)?;
        if let Some(sampling) = &mut self.sampling {
            sampling.events += (self.pending.len() - before) as u64;
        }
        self.ask_servers();
        Ok(left_ns)
    }

    /// Begins or ends a window of the sample.
    fn turn(&mut self, now_ns: u64, keep: &mut dyn FnMut(&Event)) -> std::io::Result<()> {
        let Some(sampling) = &mut self.sampling else { return Ok(()) };
        let seen = Seen {
            events: sampling.events,
            complete_ns: self.complete_ns,
            is_waiting: self.linker.is_waiting(now_ns),
            longest_ns: self.linker.longest_ns(),
        };
        match sampling.windows.turn(now_ns, seen) {
            Turn::Stay => {}
            Turn::Close => self.pending.push(window(now_ns, WINDOW_CLOSING)),
            Turn::Pause => {
                sampling.recorded_ns += now_ns.saturating_sub(sampling.since_ns);
                self.end_window(keep)?;
                self.source.rest(true);
                let closed = window(now_ns, WINDOW_CLOSED);
                keep(&closed);
                self.linker.event(&closed);
            }
            Turn::Open => {
                (sampling.count, sampling.since_ns) = (sampling.count + 1, now_ns);
                self.source.rest(false);
                let first = (self.counted)(&self.scope);
                self.source.gate(true);
                let open_ns = clock::now_ns();
                self.before = [first, (self.counted)(&self.scope)];
                self.pending.push(window(open_ns, WINDOW_OPEN));
            }
        }
        Ok(())
    }

    /// Reads the rest of a window, and adds what it saw and what the kernel counted meanwhile.
    fn end_window(&mut self, keep: &mut dyn FnMut(&Event)) -> std::io::Result<()> {
        let third = (self.counted)(&self.scope);
        self.source.gate(false);
        let fourth = (self.counted)(&self.scope);
        // A program that runs still fills its slot.
        std::thread::sleep(std::time::Duration::from_millis(2));
        while let Some(left_ns) = self.read()? {
            self.feed(left_ns.saturating_sub(LATE_NS), keep);
        }
        self.feed(u64::MAX, keep);
        self.look = None;
        let [first, second] = &self.before;
        for dev in &self.scope.disks {
            let of = |counters: &Counters| counters.get(dev).copied();
            let counters = [of(first), of(second), of(&third), of(&fourth)];
            let [Some(a), Some(b), Some(c), Some(d)] = counters else { continue };
            let (reads, writes) = (self.seen(*dev, true), self.seen(*dev, false));
            // Some drivers count nothing, as that of memory disks.
            if d == (0, 0) && reads + writes > 0 {
                continue;
            }
            let check = self.earlier.entry(*dev).or_insert_with(|| Check {
                device: self.scope.name(*dev),
                ..Check::default()
            });
            check.reads_seen += reads;
            check.reads_counted.0 += c.0.saturating_sub(b.0);
            check.reads_counted.1 += d.0.saturating_sub(a.0);
            check.writes_seen += writes;
            check.writes_counted.0 += c.1.saturating_sub(b.1);
            check.writes_counted.1 += d.1.saturating_sub(a.1);
        }
        self.ends.clear();
        for key in self
            .scope
            .disks
            .iter()
            .flat_map(|dev| [(*dev, true), (*dev, false)])
        {
            self.handed_on
                .insert(key, self.linker.handed_on(key.0, key.1));
        }
        Ok(())
    }

    /// Ends since the window began.
    fn seen(&self, dev: Dev, is_read: bool) -> u64 {
        let of = |ends: &HashMap<_, u64>| ends.get(&(dev, is_read)).copied().unwrap_or(0);
        let handed_on = self.linker.handed_on(dev, is_read);
        of(&self.ends) + handed_on.saturating_sub(of(&self.handed_on))
    }

    fn sampled(&self, now_ns: u64) -> Option<Sample> {
        let sampling = self.sampling.as_ref()?;
        let event_ns = Choice::event_ns(self.source.name());
        let whole_ns = now_ns.saturating_sub(self.start_ns).max(1) as f64;
        let last_ns = match sampling.windows.is_paused() {
            true => 0,
            false => now_ns.saturating_sub(sampling.since_ns),
        };
        let now = (self.counted)(&self.scope);
        let ended = |dev: &Dev| {
            let (first, now) = (self.first.get(dev)?, now.get(dev)?);
            Some(now.0.saturating_sub(first.0) + now.1.saturating_sub(first.1))
        };
        let counted = self.scope.tops.iter().filter_map(ended);
        Some(Sample {
            allowed_percent: 100.0 * sampling.share,
            cost_percent: 100.0 * sampling.events as f64 * event_ns / whole_ns,
            event_ns,
            windows: sampling.count,
            recorded_percent: 100.0 * (sampling.recorded_ns + last_ns) as f64 / whole_ns,
            counted: counted.sum(),
        })
    }

    /// Why another source is to take over, and which there are; none while this one is believed, or
    /// is the last one.
    pub fn successors(&self) -> Option<(&str, Vec<Choice>)> {
        let why = self.missed.as_deref()?;
        let others = Choice::after(self.source.name());
        (!others.is_empty()).then_some((why, others))
    }

    /// Compares the ends up to a moment with counters of an earlier one.
    fn compare(&mut self, complete_ns: u64) {
        match &self.look {
            Some((at_ns, now)) if *at_ns < complete_ns => {
                let seen = |dev: Dev, read| self.seen(dev, read);
                let missed = self.scope.disks.iter().find_map(|dev| {
                    let (before, now) = (self.before[1].get(dev)?, now.get(dev)?);
                    let counted = [
                        now.0.saturating_sub(before.0),
                        now.1.saturating_sub(before.1),
                    ];
                    let (counted, seen) = match misses(counted[0], seen(*dev, true)) {
                        true => (counted[0], seen(*dev, true)),
                        false => (counted[1], seen(*dev, false)),
                    };
                    misses(counted, seen).then(|| {
                        let name = self.scope.name(*dev);
                        format!("{name}: {seen} of {counted} completions were seen")
                    })
                });
                if self.source.lost() == 0 {
                    self.missed = self.missed.take().or(missed);
                }
                self.look = None;
            }
            Some(_) => {}
            None => {
                let now = (self.counted)(&self.scope);
                // After the counters: all that they counted is earlier.
                self.look = Some((clock::now_ns(), now));
            }
        }
    }

    fn feed(&mut self, until_ns: u64, keep: &mut dyn FnMut(&Event)) {
        self.pending.sort_by_key(|event| event.time_ns);
        let count = self
            .pending
            .partition_point(|event| event.time_ns < until_ns);
        for event in self.pending.drain(..count) {
            let is_bio = event.kind == EventKind::BioComplete;
            let is_end = match self.source.kinds().contains(&EventKind::Done) {
                true => event.kind == EventKind::Done,
                false => event.kind == EventKind::Complete && event.op != Op::Flush,
            };
            if is_bio || is_end {
                *self
                    .ends
                    .entry((event.dev, event.op == Op::Read))
                    .or_default() += 1;
            }
            keep(&event);
            self.linker.event(&event);
        }
    }

    /// Stops recording, and reads the events that are left.
    ///
    /// # Errors
    /// The error of reading.
    pub fn finish(mut self, keep: &mut dyn FnMut(&Event)) -> std::io::Result<Ended> {
        let now_ns = clock::now_ns();
        if !self.is_paused() {
            self.end_window(keep)?;
        }
        let sample = self.sampled(now_ns);
        let (trees, quality) = self.linker.finish();
        let quality = self.with_servers(quality);
        let lost = self.lost();
        Ok(Ended {
            trees,
            quality,
            lost,
            checks: self.earlier.into_values().collect(),
            sample,
        })
    }
}

/// An event that says which requests belong to the sample.
fn window(time_ns: u64, extra: u64) -> Event {
    Event {
        time_ns,
        kind: EventKind::Window,
        op: Op::Other,
        extra,
        ..Event::ZERO
    }
}

/// Whether so few of the counted ends were seen that the source cannot be believed.
fn misses(counted: u64, seen: u64) -> bool {
    counted >= 100 && seen < counted - counted / 50
}
