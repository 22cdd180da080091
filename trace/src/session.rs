//! A trace while it runs: the source, events in the order of their times, the linker, and the
//! comparison with the kernel's own counters.

#[cfg(test)]
mod tests;

use crate::event::{Dev, Event, Kind, Op};
use crate::link::{FUSE, Linker, Quality, SERVER, Topology, Tree};
use crate::source::{self, Choice, Source, Wish};
use crate::tree::{Class, KernelTree, Node};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use ugeom_format::diskstats;
use ugeom_machine::clock;

/// An event is held back so long for earlier ones of other processors, ns.
const LATE_NS: u64 = 2_000_000;
/// Memory for the events of a processor, bytes.
const RING_BYTES: usize = 4 << 20;

/// Which devices are traced, and what they are called.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scope {
    /// Devices whose requests are divided, as events number them.
    pub tops: Vec<Dev>,
    /// Whole disks whose events are needed; none for all.
    pub disks: Vec<Dev>,
    /// What the linker must know.
    pub topology: Topology,
    /// Names by numbers.
    pub names: BTreeMap<Dev, String>,
}

/// As events number a device.
#[must_use]
pub fn dev_of((major, minor): (u32, u32)) -> Dev {
    major << 20 | minor
}

impl Scope {
    /// The chains of these nodes; all devices when there are none.
    #[must_use]
    pub fn of(tree: &KernelTree, nodes: &[usize]) -> Self {
        let mut scope = Self::default();
        for (at, node) in tree.nodes.iter().enumerate() {
            let Some(number) = node.number else {
                continue;
            };
            let dev = match node.class {
                Class::Fs => continue,
                Class::Fuse => number.1 | FUSE,
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
                if node.class != Class::Part && node.class != Class::Fuse {
                    scope.disks.extend(device(node));
                }
            }
        }
        scope.disks.sort_unstable();
        scope.disks.dedup();
        scope
    }

    /// The name of a device.
    #[must_use]
    pub fn name(&self, dev: Dev) -> String {
        let known = self.names.get(&dev).cloned();
        known.unwrap_or_else(|| match dev & FUSE {
            0 => format!("{}:{}", dev >> 20, dev & 0xf_ffff),
            _ if dev & SERVER != 0 => format!("server of fuse {}", dev & !FUSE & !SERVER),
            _ => format!("fuse {}", dev & !FUSE),
        })
    }
}

/// The number of a block device, or of the connection of a FUSE server.
fn device(node: &Node) -> Option<Dev> {
    match node.class {
        Class::Fs | Class::File => None,
        Class::Fuse => Some(node.number?.1 | FUSE),
        _ => node.number.map(dev_of),
    }
}

/// Where the first byte of a loop device lies, if it stands on a block device.
fn exact(tree: &KernelTree, at: usize) -> Option<(Dev, u64)> {
    let node = &tree.nodes[at];
    let offset = node.config.iter().find(|(name, _)| name == "offset");
    let offset: u64 = offset.and_then(|(_, text)| text.parse().ok()).unwrap_or(0);
    let mut below = &tree.nodes[*node.below.first()?];
    let mut sector = offset / 512;
    if below.class == Class::Part {
        sector += below.start_bytes? / 512;
        below = &tree.nodes[*below.below.first()?];
    }
    Some((device(below)?, sector))
}

/// Events of a device beside its counters of diskstats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The device.
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
    #[must_use]
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
    ends: HashMap<(Dev, bool), u64>,
    before: [Counters; 2],
    /// Counters at a moment whose events have not all arrived.
    look: Option<(u64, Counters)>,
    counted: Count,
    missed: Option<String>,
    scope: Scope,
    servers: Vec<Server>,
    /// When it began, CLOCK_MONOTONIC, ns.
    pub start_ns: u64,
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

/// What a trace ends with.
pub struct Ended {
    /// The last requests.
    pub trees: Vec<Tree>,
    /// How complete the links are.
    pub quality: Quality,
    /// Events that the source lost.
    pub lost: u64,
    /// Each traced device beside its counters.
    pub checks: Vec<Check>,
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
        topology.has_done = source.kinds().contains(&Kind::Done);
        topology.has_run = source.kinds().contains(&Kind::Run);
        scope.topology.clone_from(&topology);
        Ok(Self {
            linker: Linker::new(topology),
            source,
            pending: Vec::new(),
            complete_ns: 0,
            ends: HashMap::new(),
            before: [first, second],
            look: None,
            counted: counters,
            missed: None,
            scope,
            servers: Vec::new(),
            start_ns,
        })
    }

    /// The FUSE connections of the chains.
    #[must_use]
    pub fn connections(&self) -> Vec<u32> {
        let fuse = self.scope.names.keys();
        let fuse = fuse.filter(|dev| **dev & FUSE != 0 && **dev & SERVER == 0);
        fuse.map(|dev| dev & !FUSE).collect()
    }

    /// Asks the server of a connection, too, from now on.
    pub fn ask(&mut self, connection: u32, name: String, passages: Passages) {
        let dev = connection | FUSE | SERVER;
        self.scope.names.insert(dev, name);
        self.servers.push(Server {
            connection,
            passages,
            lost: 0,
            failed: false,
        });
    }

    /// What the servers have told since the last look, as events; one that fails is asked no more.
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
                kind: Kind::Served,
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

    /// The source's name.
    #[must_use]
    pub fn source(&self) -> &'static str {
        self.source.name()
    }

    /// The devices.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Events that were lost so far.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let servers = self.servers.iter().map(|server| server.lost);
        self.source.lost() + servers.sum::<u64>()
    }

    /// How complete the links are so far.
    #[must_use]
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

    /// Reads what has happened; `keep` gets each event in the order of times. To be called every
    /// few milliseconds. The requests that ended.
    ///
    /// # Errors
    /// What reading fails with.
    pub fn poll(&mut self, keep: &mut dyn FnMut(&Event)) -> std::io::Result<Vec<Tree>> {
        let now_ns = clock::now_ns();
        self.source.read(&mut self.pending)?;
        self.ask_servers();
        self.feed(self.complete_ns, keep);
        self.compare(self.complete_ns);
        self.complete_ns = now_ns.saturating_sub(LATE_NS);
        Ok(self.linker.take())
    }

    /// Why another source is to take over, and which there are; none while this one is believed, or
    /// is the last one.
    #[must_use]
    pub fn successors(&self) -> Option<(&str, Vec<Choice>)> {
        let why = self.missed.as_deref()?;
        let others = Choice::after(self.source.name());
        (!others.is_empty()).then_some((why, others))
    }

    /// Compares the ends up to a moment with counters of an earlier one.
    fn compare(&mut self, complete_ns: u64) {
        match &self.look {
            Some((at_ns, now)) if *at_ns < complete_ns => {
                let seen = |dev: Dev, read| self.ends.get(&(dev, read)).copied().unwrap_or(0);
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
            let is_bio = event.kind == Kind::BioComplete;
            let is_end = match self.source.kinds().contains(&Kind::Done) {
                true => event.kind == Kind::Done,
                false => event.kind == Kind::Complete && event.op != Op::Flush,
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

    /// Ends the trace.
    ///
    /// # Errors
    /// What reading fails with.
    pub fn finish(mut self, keep: &mut dyn FnMut(&Event)) -> std::io::Result<Ended> {
        let third = (self.counted)(&self.scope);
        self.source.gate(false);
        let fourth = (self.counted)(&self.scope);
        // A program that runs still fills its slot.
        std::thread::sleep(std::time::Duration::from_millis(2));
        self.source.read(&mut self.pending)?;
        self.ask_servers();
        self.feed(u64::MAX, keep);
        let (trees, quality) = self.linker.finish();
        let quality = self.with_servers(quality);
        let [first, second] = &self.before;
        let seen = |dev: Dev, read| self.ends.get(&(dev, read)).copied().unwrap_or(0);
        let checks = self.scope.disks.iter().filter_map(|dev| {
            let of = |counters: &Counters| counters.get(dev).copied();
            let [a, b, c, d] = [of(first)?, of(second)?, of(&third)?, of(&fourth)?];
            Some(Check {
                device: self.scope.name(*dev),
                reads_seen: seen(*dev, true),
                reads_counted: (c.0.saturating_sub(b.0), d.0.saturating_sub(a.0)),
                writes_seen: seen(*dev, false),
                writes_counted: (c.1.saturating_sub(b.1), d.1.saturating_sub(a.1)),
            })
        });
        Ok(Ended {
            trees,
            quality,
            lost: self.lost(),
            checks: checks.collect(),
        })
    }
}

/// Whether so few of the counted ends were seen that the source cannot be believed.
fn misses(counted: u64, seen: u64) -> bool {
    counted >= 100 && seen < counted - counted / 50
}

/// All kinds of events that requests of these devices can have.
fn wish_of(scope: &Scope) -> Wish {
    let kallsyms = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let has_loop = !scope.topology.loops.is_empty();
    let functions = match has_loop {
        true => source::addresses(&kallsyms, &["loop_workfn", "loop_rootcg_workfn"]),
        false => Vec::new(),
    };
    let has_fuse = scope.names.keys().any(|dev| dev & FUSE != 0);
    let wanted = |kind: &Kind| match kind {
        Kind::WorkQueue | Kind::WorkStart | Kind::WorkEnd => !functions.is_empty(),
        Kind::FuseSend | Kind::FuseEnd => has_fuse,
        Kind::Served => false,
        _ => true,
    };
    let block_tops = scope.tops.iter().filter(|dev| **dev & FUSE == 0);
    Wish {
        kinds: Kind::ALL.into_iter().filter(wanted).collect(),
        devices: scope.disks.clone(),
        // Bios of a partition carry the number of its disk.
        tops: match block_tops
            .clone()
            .any(|dev| scope.topology.partitions.contains(dev))
        {
            true => scope.disks.clone(),
            false => block_tops.copied().collect(),
        },
        functions,
        ring_bytes: RING_BYTES,
    }
}

/// Reads, and writes with discards, of each device.
fn counters(scope: &Scope) -> Counters {
    let text = std::fs::read_to_string("/proc/diskstats").unwrap_or_default();
    let devices = diskstats::parse(&text).unwrap_or_default();
    let wanted = devices.into_iter().filter_map(|device| {
        let dev = dev_of((device.major, device.minor));
        let discards = device.stat.discards.unwrap_or_default().completed;
        let counted = (
            device.stat.reads.completed,
            device.stat.writes.completed + discards,
        );
        scope.disks.contains(&dev).then_some((dev, counted))
    });
    wanted.collect()
}
