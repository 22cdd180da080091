//! From events to requests: which events belong to one request, and which requests of lower devices
//! one request of an upper device became. Pure: no input, no clock.
//!
//! A [`Span`] is the passage of a bio through one device. It begins when the bio enters the device
//! and ends when the device reports the last part of it. Spans form trees; the root is what a
//! program or a file system asked for.
//!
//! | step | how it is recognised |
//! |---|---|
//! | bio to request | address of the request's first bio, else device and first sector |
//! | merge | the open request that ends where the bio begins, or the reverse |
//! | split | the open bio of the device that begins where the part begins; parts end together |
//! | partition, dm, md | the remap event names the device above and the sector there |
//! | loop | the worker that executes the device's work submits for its oldest request |
//! | FUSE | number of the request; the thread that sends it; its server's own times |
//! | requeue | the request is issued again; the time between is `Phase::Requeued` |
//!
//! Spans whose link was a choice between several carry `ambiguous`. Spans that never end are
//! counted as unmatched and never as in flight: a source may lose events without telling.

mod group;
mod live;
pub mod parts;
mod passing;
#[cfg(test)]
mod tests;

use crate::event::{Dev, Event, EventKind, FAILED, Op, WINDOW_CLOSED, WINDOW_OPEN};
use group::Groups;
use live::Live;
use std::collections::{HashMap, HashSet};

/// Spans that are open at a time, at most; older ones are given up as unmatched.
const OPEN_MAX: usize = 1 << 14;
/// Spans of one root, at most. Later spans count as time of the layer above.
const SPANS_OF_ROOT_MAX: usize = 1024;
/// Threads that are remembered.
const THREADS_MAX: usize = 1 << 17;
/// A root that ended waits so long for its thread to run again, ns.
const WAKE_MAX_NS: u64 = 100_000_000;
/// A thread that does not run so long after its request has ended most likely does not wait for it,
/// ns.
const WAKE_USUAL_NS: u64 = 20_000_000;

/// The cause of a span's wait, or its worker.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub enum Phase {
    /// Entered the device; a request is not allocated yet.
    Block,
    /// Has a request, in the plug of its thread.
    Plug,
    /// In a scheduler or a list of the hardware queue.
    Scheduler,
    /// The driver was busy and gave it back.
    Requeued,
    /// With the driver of a loop device, whose worker has not begun.
    Worker,
    /// With the driver and the device; of a bio-based device its whole work.
    Device,
    /// The layer below has ended, this one has not reported it yet.
    Return,
    /// Reported; accounting and the call of the layer above follow.
    Completing,
    /// The thread that waited is not running yet.
    WakeUp,
}

impl Phase {
    /// All of them, in the order of a request's life.
    pub const ALL: [Self; 9] = [
        Self::Block,
        Self::Plug,
        Self::Scheduler,
        Self::Requeued,
        Self::Worker,
        Self::Device,
        Self::Return,
        Self::Completing,
        Self::WakeUp,
    ];

    /// The word for it in tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Block => "wait for request",
            Self::Plug => "plug",
            Self::Scheduler => "scheduler",
            Self::Requeued => "driver busy",
            Self::Worker => "wait for worker",
            Self::Device => "driver, device",
            Self::Return => "return",
            Self::Completing => "completion",
            Self::WakeUp => "wake-up",
        }
    }
}

/// The linker's view of the devices.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Topology {
    /// Partitions: they have no events of their own but the remap.
    pub partitions: HashSet<Dev>,
    /// Loop devices, and where their first byte lies if they stand on a block device: its number
    /// and the sector.
    pub loops: HashMap<Dev, Option<(Dev, u64)>>,
    /// The source reports `EventKind::Done`, which is then a request's end; else
    /// `EventKind::Complete` is.
    pub has_done: bool,
    /// The source tells of `EventKind::Run`.
    pub has_run: bool,
}

/// The passage of a bio through a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// The device, or the connection of a FUSE server with [`FUSE`] set.
    pub dev: Dev,
    /// The operation of the request on the device.
    pub op: Op,
    /// First sector, 512 bytes each.
    pub sector: u64,
    /// Length in sectors of 512 bytes.
    pub sectors: u32,
    /// The thread that submitted it.
    pub tid: u32,
    /// The process of that.
    pub pid: u32,
    /// When it entered the device, ns.
    pub start_ns: u64,
    /// When the device had reported all of it, ns.
    pub end_ns: u64,
    /// From when on it was in which phase, in order; the first begins with the span.
    pub phases: Vec<(u64, Phase)>,
    /// The span above it, by position in [`Tree::spans`].
    pub parent: Option<usize>,
    /// Its link was one of several that fitted.
    pub ambiguous: bool,
    /// The device reported an error.
    pub failed: bool,
    /// The file that it is for: the number of its file system, and its inode. None where the kernel
    /// or the source do not tell.
    pub file: Option<(Dev, u64)>,
}

/// Marks the number of a FUSE connection among devices.
pub(crate) const FUSE: Dev = 1 << 31;
/// Marks, beside [`FUSE`], the server of a connection.
pub(crate) const SERVER: Dev = 1 << 30;

/// A request with all that it became. The first span is the root.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    /// The root, then its descendants; parents before children.
    pub spans: Vec<Span>,
}

/// How complete the links are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Quality {
    /// Events that were read.
    pub events: u64,
    /// Requests to the uppermost device that ended.
    pub roots: u64,
    /// Spans of all devices that ended.
    pub spans: u64,
    /// Ended spans whose link was one of several that fitted.
    pub ambiguous: u64,
    /// Spans whose end was not seen.
    pub unmatched_starts: u64,
    /// Ends whose start was not seen, as of requests that began before the trace.
    pub unmatched_ends: u64,
    /// Flushes that the kernel made for several waiting requests: they have no request above.
    pub shared_flushes: u64,
    /// Events that are older than the start of their span.
    pub clock_backwards: u64,
    /// Spans beyond the largest number of a root.
    pub left_out: u64,
    /// FUSE servers that ceased to tell when they had their requests.
    #[serde(default)]
    pub silent_servers: u64,
}

/// A bio that was remapped.
#[derive(Clone, Copy, Debug)]
struct Remap {
    bio: u64,
    parent: Option<u64>,
    at_ns: u64,
}

/// Links events. Ended roots are taken with [`Linker::take`].
#[derive(Debug, Default)]
pub struct Linker {
    topology: Topology,
    live: Live,
    groups: Groups,
    /// The remaps of each thread that no other event of the bio has followed yet.
    remaps: HashMap<u32, Remap>,
    /// The span that each thread submitted last.
    queued: HashMap<u32, u64>,
    /// Ends of devices that handed bios on, by device and whether they read.
    handed_on: HashMap<(Dev, bool), u64>,
    /// The loop device whose work a thread executes.
    workers: HashMap<u32, Dev>,
    /// The loop device that each work belongs to.
    works: HashMap<u64, Dev>,
    /// The loop device to which a thread issued last.
    issued: HashMap<u32, Dev>,
    /// Open FUSE requests: connection and number.
    fuse: HashMap<(Dev, u64), u64>,
    /// Ended roots that wait for their thread to run.
    waking: HashMap<u32, Vec<u64>>,
    /// When a thread ran last.
    ran: HashMap<u32, u64>,
    ended: Vec<Tree>,
    quality: Quality,
    longest_ns: u64,
    last_sweep_ns: u64,
}

impl Linker {
    /// A linker for these devices.
    pub fn new(topology: Topology) -> Self {
        Self {
            topology,
            ..Self::default()
        }
    }

    /// Takes an event. Events must come in the order of their times.
    pub fn event(&mut self, event: &Event) {
        self.quality.events += 1;
        match event.kind {
            EventKind::Queue => self.queue(event),
            EventKind::Remap => self.remap(event),
            EventKind::Split => self.split(event),
            EventKind::GetRequest => self.get_request(event),
            EventKind::BackMerge => self.merge(event, true),
            EventKind::FrontMerge => self.merge(event, false),
            EventKind::RequestMerge => self.groups.join(event),
            EventKind::Insert => self.advance(event, Phase::Scheduler),
            EventKind::Issue => self.issue(event),
            EventKind::Requeue => self.advance(event, Phase::Requeued),
            EventKind::Complete => self.complete(event),
            EventKind::Done => self.done(event),
            EventKind::BioComplete => self.bio_complete(event),
            EventKind::WorkQueue => self.work_queue(event),
            EventKind::WorkStart => self.work_start(event),
            EventKind::WorkEnd => {
                self.workers.remove(&event.tid);
            }
            EventKind::FuseSend => self.fuse_send(event),
            EventKind::FuseEnd => self.fuse_end(event),
            EventKind::Run => self.run(event),
            EventKind::Served => self.served(event),
            EventKind::Window => self.window(event),
            EventKind::UringSubmit
            | EventKind::UringWork
            | EventKind::UringComplete
            | EventKind::Lost => {}
        }
        if event.time_ns.saturating_sub(self.last_sweep_ns) > WAKE_MAX_NS {
            self.last_sweep_ns = event.time_ns;
            self.forget_sleepers(event.time_ns);
        }
    }

    /// The roots that ended since the last call.
    pub fn take(&mut self) -> Vec<Tree> {
        std::mem::take(&mut self.ended)
    }

    /// Ends the trace: roots that wait for a wake-up are done, open ones are unmatched.
    pub fn finish(&mut self) -> (Vec<Tree>, Quality) {
        self.forget_sleepers(u64::MAX);
        self.quality.unmatched_starts += self.live.give_up();
        (self.take(), self.quality())
    }

    /// How complete the links are so far.
    pub fn quality(&self) -> Quality {
        Quality {
            unmatched_starts: self.quality.unmatched_starts + self.live.given_up,
            clock_backwards: self.live.clock_backwards,
            left_out: self.live.left_out,
            ..self.quality
        }
    }

    /// Whether a request of the sample has not ended, or its thread may still begin to run soon.
    pub(crate) fn is_waiting(&self, now_ns: u64) -> bool {
        self.live.is_waiting(now_ns.saturating_sub(WAKE_USUAL_NS))
    }

    /// The longest request of the sample so far, ns.
    pub(crate) fn longest_ns(&self) -> u64 {
        self.longest_ns
    }

    /// Roots belong to the sample from now on, or do not, or nothing more is seen of any.
    fn window(&mut self, event: &Event) {
        self.live.outside = event.extra != WINDOW_OPEN;
        if event.extra == WINDOW_CLOSED {
            self.forget_sleepers(u64::MAX);
            self.quality.unmatched_starts += self.live.give_up();
            self.groups = Groups::default();
            self.remaps.clear();
            self.queued.clear();
            self.workers.clear();
            self.issued.clear();
            self.fuse.clear();
            self.ran.clear();
        }
    }

    fn queue(&mut self, event: &Event) {
        // A thread that submits again has not waited for what ended before.
        self.wake(event.tid, None);
        let bio = bio_of(event);
        let remapped = match self.remaps.get(&event.tid) {
            Some(remap) if remap.bio == bio => Some(remap.parent),
            _ => None,
        };
        self.remaps.remove(&event.tid);
        let (parent, ambiguous) = match remapped {
            Some(parent) => (parent, false),
            None => self.parent_by_worker(event),
        };
        let serial = self
            .live
            .begin(event, event.dev, parent, Phase::Block, ambiguous);
        match self.groups.enter(bio, serial) {
            // An address is used again after its end only, so that end was lost.
            Some(old) if event.id != 0 => {
                self.groups.forget(old);
                self.live.drop_open(old);
            }
            // Two reads of one place.
            Some(old) => self.live.mark_ambiguous(&[old, serial]),
            None => {}
        }
        self.live.parts_expected(serial, 1);
        let above = parent.filter(|above| self.is_partition(*above));
        self.live.is_for(above, serial);
        if self.queued.len() >= THREADS_MAX {
            self.queued.clear();
        }
        self.queued.insert(event.tid, serial);
    }

    fn remap(&mut self, event: &Event) {
        let (above, sector) = (event.other as Dev, event.extra);
        let bio = bio_of(event);
        let earlier = match self.remaps.get(&event.tid) {
            Some(remap) if remap.bio == bio => remap.parent,
            _ => None,
        };
        let parent = match self.topology.partitions.contains(&above) {
            true => {
                let (parent, ambiguous) = match earlier {
                    Some(earlier) => (Some(earlier), false),
                    None => self.parent_by_worker(event),
                };
                let at = Event { sector, ..*event };
                Some(self.live.begin(&at, above, parent, Phase::Block, ambiguous))
            }
            false => self.live.holding(above, sector).map(|(serial, several)| {
                if several {
                    self.live.mark_ambiguous(&[serial]);
                }
                serial
            }),
        };
        if self.remaps.len() >= THREADS_MAX {
            self.remaps.clear();
        }
        let at_ns = event.time_ns;
        self.remaps.insert(event.tid, Remap { bio, parent, at_ns });
    }

    /// The request of a loop device for which its worker submits.
    fn parent_by_worker(&mut self, event: &Event) -> (Option<u64>, bool) {
        let Some(dev) = self.workers.get(&event.tid).copied() else {
            return (None, false);
        };
        let exact = self.topology.loops.get(&dev).copied().flatten();
        let exact = exact.filter(|(below, _)| *below == event.dev);
        let wanted = exact.map(|(_, start)| event.sector.saturating_sub(start));
        let found = self.live.at_worker(dev, wanted, u64::from(event.sectors));
        if let Some((serial, _)) = found {
            self.live.phase(serial, event.time_ns, Phase::Device);
        }
        (
            found.map(|(serial, _)| serial),
            found.is_some_and(|(_, several)| several),
        )
    }

    fn split(&mut self, event: &Event) {
        let Some((serial, _)) = self.live.holding(event.dev, event.sector) else {
            self.quality.unmatched_ends += 1;
            return;
        };
        self.groups.alias(bio_of(event), serial);
        // Without addresses the rest is known by where it begins: it enters no device again.
        if event.id == 0 {
            self.groups.alias(place(event.dev, event.extra), serial);
        }
        self.live.parts_expected(serial, 1);
    }

    fn get_request(&mut self, event: &Event) {
        let bio = bio_of(event);
        let Some(serial) = self.on_device(event) else {
            self.quality.unmatched_ends += 1;
            return;
        };
        self.live.phase(serial, event.time_ns, Phase::Plug);
        self.groups.open(event, bio, serial);
        self.live.part_allocated(serial);
    }

    fn merge(&mut self, event: &Event, back: bool) {
        let bio = bio_of(event);
        let Some(serial) = self.on_device(event) else {
            self.quality.unmatched_ends += 1;
            return;
        };
        self.live.phase(serial, event.time_ns, Phase::Plug);
        match self.groups.add(event, bio, serial, back) {
            Some(()) => self.live.part_allocated(serial),
            None => self.quality.unmatched_ends += 1,
        }
    }

    fn advance(&mut self, event: &Event, phase: Phase) {
        let Some(group) = self.groups.of_request(event) else { return };
        for serial in self.groups.members(group) {
            self.live.phase(serial, event.time_ns, phase);
        }
    }

    fn issue(&mut self, event: &Event) {
        let is_loop = self.topology.loops.contains_key(&event.dev);
        let Some(group) = self.groups.of_request(event) else {
            if event.op == Op::Flush {
                self.quality.shared_flushes += 1;
            }
            return;
        };
        let phase = if is_loop {
            Phase::Worker
        } else {
            Phase::Device
        };
        for serial in self.groups.members(group) {
            self.live.phase(serial, event.time_ns, phase);
            if is_loop {
                self.live.wait_for_worker(event.dev, serial);
            }
        }
        if is_loop {
            if self.issued.len() >= THREADS_MAX {
                self.issued.clear();
            }
            self.issued.insert(event.tid, event.dev);
        }
    }

    fn complete(&mut self, event: &Event) {
        let Some(group) = self.groups.of_request(event) else {
            // The kernel's own flushes have no bio.
            if event.op != Op::Flush {
                self.quality.unmatched_ends += 1;
            }
            return;
        };
        let failed = event.extra & FAILED != 0;
        for serial in self.groups.members(group) {
            self.live.phase(serial, event.time_ns, Phase::Completing);
            self.live.failed(serial, failed);
        }
        let bytes = event.extra & (FAILED - 1);
        if self.groups.is_whole(group, bytes / 512) && !self.topology.has_done {
            self.end_group(group, event.time_ns);
        }
    }

    fn done(&mut self, event: &Event) {
        if let Some(group) = self.groups.of_request(event) {
            self.end_group(group, event.time_ns);
        }
    }

    fn end_group(&mut self, group: u64, time_ns: u64) {
        for serial in self.groups.close(group) {
            if self.live.part_ended(serial) {
                self.end(serial, time_ns);
            }
        }
    }

    fn bio_complete(&mut self, event: &Event) {
        let bio = bio_of(event);
        let is_here = |serial: u64| self.live.dev(serial) == event.dev;
        if self.groups.is_alias(bio) && self.groups.newest_of(bio).is_some_and(is_here) {
            self.groups.forget_alias(bio);
            return;
        }
        // With addresses, several spans of a bio are devices that hand it on: the lowest ends.
        let known = match event.id {
            0 => self.groups.span_of(bio),
            _ => None,
        };
        match known.or_else(|| self.on_device(event)) {
            Some(serial) => {
                self.live.phase(serial, event.time_ns, Phase::Completing);
                self.live.failed(serial, event.extra & FAILED != 0);
                self.end(serial, event.time_ns);
            }
            None => self.quality.unmatched_ends += 1,
        }
    }

    fn work_queue(&mut self, event: &Event) {
        if let Some(dev) = self.issued.get(&event.tid) {
            if self.works.len() >= THREADS_MAX {
                self.works.clear();
            }
            self.works.insert(event.id, *dev);
        }
    }

    fn work_start(&mut self, event: &Event) {
        if let Some(dev) = self.works.get(&event.id).copied() {
            self.workers.insert(event.tid, dev);
            if let Some(serial) = self.live.first_at_worker(dev) {
                self.live.phase(serial, event.time_ns, Phase::Device);
            }
        }
    }

    fn fuse_send(&mut self, event: &Event) {
        self.wake(event.tid, None);
        let (parent, ambiguous) = self.parent_by_worker(event);
        let dev = event.dev | FUSE;
        let serial = self
            .live
            .begin(event, dev, parent, Phase::Device, ambiguous);
        if let Some(old) = self.fuse.insert((event.dev, event.id), serial) {
            self.live.drop_open(old);
        }
    }

    fn fuse_end(&mut self, event: &Event) {
        match self.fuse.remove(&(event.dev, event.id)) {
            Some(serial) => self.end(serial, event.time_ns),
            None => self.quality.unmatched_ends += 1,
        }
    }

    /// A server has told when it had a request: the rest are wake-ups and copies.
    fn served(&mut self, event: &Event) {
        let Some(sent) = self.fuse.get(&(event.dev, event.id)).copied() else {
            self.quality.unmatched_ends += 1;
            return;
        };
        self.live.was(sent, Phase::Worker);
        self.live.phase(sent, event.extra, Phase::Device);
        let taken = Event {
            time_ns: event.extra,
            op: self.live.op(sent),
            ..*event
        };
        let dev = event.dev | FUSE | SERVER;
        let serial = self
            .live
            .begin(&taken, dev, Some(sent), Phase::Device, false);
        self.end(serial, event.time_ns);
    }

    /// Ends a span, and the partitions above it, which end with it.
    fn end(&mut self, serial: u64, time_ns: u64) {
        let mut next = Some(serial);
        while let Some(serial) = next {
            self.groups.forget(serial);
            let Some(ended) = self.live.end(serial, time_ns) else { return };
            self.quality.spans += 1;
            self.quality.ambiguous += u64::from(ended.ambiguous);
            match ended.parent {
                Some(parent) => {
                    self.live.phase(parent, time_ns, Phase::Return);
                    let is_partition = self.is_partition(parent);
                    let handed_on = self.live.has_handed_on(parent);
                    let ends = is_partition || (handed_on && self.live.part_ended(parent));
                    if ends {
                        self.live.failed(parent, ended.failed);
                    }
                    if handed_on && ends {
                        self.count_handed_on(parent);
                    }
                    next = ends.then_some(parent);
                }
                None => {
                    self.root_ended(serial, ended.tid);
                    next = None;
                }
            }
        }
        while let Some(old) = self.live.oldest_beyond(OPEN_MAX) {
            self.groups.forget(old);
            self.live.drop_open(old);
        }
    }

    fn is_partition(&self, serial: u64) -> bool {
        self.topology.partitions.contains(&self.live.dev(serial))
    }

    fn root_ended(&mut self, serial: u64, tid: u32) {
        self.quality.roots += u64::from(self.live.belongs(serial));
        // A request is accounted after its bio was reported: the thread may run before that.
        let reported_ns = self.live.last_phase_ns(serial);
        let ran = self.ran.get(&tid).is_some_and(|at| *at >= reported_ns);
        if !ran && self.topology.has_run && self.waking.len() < THREADS_MAX {
            self.waking.entry(tid).or_default().push(serial);
        } else {
            self.hand_over(serial, None);
        }
    }

    /// Takes a root that ended out of those that live; one that is not in the sample is dropped.
    fn hand_over(&mut self, serial: u64, run_ns: Option<u64>) {
        let belongs = self.live.belongs(serial);
        let tree = self.live.collect(serial, run_ns);
        let root = tree.as_ref().and_then(|tree| tree.spans.first());
        if let Some(root) = root.filter(|_| belongs) {
            self.longest_ns = self
                .longest_ns
                .max(root.end_ns.saturating_sub(root.start_ns));
        }
        self.ended.extend(tree.filter(|_| belongs));
    }

    fn run(&mut self, event: &Event) {
        self.wake(event.tid, Some(event.time_ns));
        if self.ran.len() >= THREADS_MAX {
            self.ran.clear();
        }
        self.ran.insert(event.tid, event.time_ns);
    }

    /// The thread of ended roots runs again, or was never asleep.
    fn wake(&mut self, tid: u32, at_ns: Option<u64>) {
        for serial in self.waking.remove(&tid).unwrap_or_default() {
            self.hand_over(serial, at_ns);
        }
    }

    fn forget_sleepers(&mut self, now_ns: u64) {
        let late = |live: &Live, serials: &Vec<u64>| {
            let last = serials.last().map_or(0, |serial| live.end_of(*serial));
            now_ns.saturating_sub(last) > WAKE_MAX_NS
        };
        let live = &self.live;
        let tids = self
            .waking
            .iter()
            .filter(|(_, serials)| late(live, serials));
        let tids: Vec<u32> = tids.map(|(tid, _)| *tid).collect();
        for tid in tids {
            self.wake(tid, None);
        }
    }
}

/// The key of a bio: its address, else its place.
fn bio_of(event: &Event) -> u64 {
    match event.id {
        0 => place(event.dev, event.sector),
        address => address,
    }
}

/// A key of a device and a sector that no kernel address has: those have their top bits set.
fn place(dev: Dev, sector: u64) -> u64 {
    (u64::from(dev).rotate_left(43) ^ sector) & (u64::MAX >> 1)
}
