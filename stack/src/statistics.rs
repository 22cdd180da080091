//! Statistics of consumers (and, summed up, of providers): off, counts, or counts and sampled time.
//!
//! Each thread counts in a block of its own: only it writes, every thread may read. A provider's
//! figures are the sums over its consumers. Time is taken for one request in N, chosen at random,
//! by the clock's ticks at the start and the end of each hop; see `docs/statistics.md`.

use crate::bio::slot::{Body, Hop};
use crate::bio::{COMMANDS, Command, Flags};
use crate::cx::Cx;
use crate::error::Errno;
use crate::snapshot::{Edge, Snapshot};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use ugeom_machine::clock;
use ugeom_measure::histogram::{AtomicHistogram, Histogram};

mod registry;

pub(crate) use registry::Registry;

/// How much is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Statistics {
    /// No request is counted or timed.
    Off,
    /// Operations, bytes, errors, in flight.
    #[default]
    Counts,
    /// That, and the time of one request in `one_in`.
    Time {
        /// One request in this many, at random; 1 is every request.
        one_in: u32,
    },
}

/// A level as a type, for one copy of the loop each.
pub(crate) trait Level {
    const COUNTS: bool;
    const TIME: bool;
}

pub(crate) struct Off;
pub(crate) struct Counts;
pub(crate) struct Time;

impl Level for Off {
    const COUNTS: bool = false;
    const TIME: bool = false;
}

impl Level for Counts {
    const COUNTS: bool = true;
    const TIME: bool = false;
}

impl Level for Time {
    const COUNTS: bool = true;
    const TIME: bool = true;
}

/// The figures of one consumer on one thread.
#[repr(align(64))]
#[derive(Default)]
pub(crate) struct EdgeCounters {
    /// Requests that took more than one step through here, and those of them that came back.
    /// Requests on the plain path are never seen in flight, and only counted when they are done.
    entered: AtomicU64,
    left: AtomicU64,
    errors: AtomicU64,
    operations: [AtomicU64; COMMANDS],
    bytes: [AtomicU64; COMMANDS],
    time: OnceLock<Box<EdgeTime>>,
}

/// The sampled times of one consumer on one thread. A kind of request that never came by takes no
/// memory, and nothing to look at.
#[derive(Default)]
struct EdgeTime {
    read: OnceLock<AtomicHistogram>,
    write: OnceLock<AtomicHistogram>,
    delete: OnceLock<AtomicHistogram>,
    other: OnceLock<AtomicHistogram>,
    exclusive_ns: AtomicU64,
    busy_ns: AtomicU64,
}

/// The counters of one thread, indexed by `Edge::stat`.
pub(crate) type CounterBlock = [EdgeCounters];

/// A block for `edges` consumers.
pub(crate) fn new_block(edges: usize) -> Arc<CounterBlock> {
    (0..edges).map(|_| EdgeCounters::default()).collect()
}

/// Adds without a locked instruction: the thread is the only writer.
#[inline(always)]
fn bump(counter: &AtomicU64, by: u64) {
    counter.store(
        counter.load(Ordering::Relaxed).wrapping_add(by),
        Ordering::Relaxed,
    );
}

/// A step of a request begins.
#[inline(always)]
pub(crate) fn started<L: Level>(
    snapshot: &Snapshot,
    cx: &Cx,
    edge: &Edge,
    hop: &mut Hop,
    flags: Flags,
) {
    let Some(counters) = cx.counters.get(edge.stat as usize) else { return };
    bump(&counters.entered, 1);
    if L::TIME && flags.contains(Flags::MARKED) {
        hop.in_flight = in_flight(snapshot, cx, edge.stat) as u32;
        hop.started_ticks = clock::ticks();
    }
}

/// Requests in flight at a consumer, as far as this thread knows: those that were counted there,
/// and those that passed it in a run.
fn in_flight(snapshot: &Snapshot, cx: &Cx, stat: u32) -> u64 {
    let of = |stat: u32| {
        let counters = cx.counters.get(stat as usize);
        counters.map_or(0, EdgeCounters::in_flight)
    };
    let runs = snapshot.runs.iter();
    let runs = runs.filter(|run| run.members.contains(&stat));
    of(stat) + runs.map(|run| of(run.stat)).sum::<u64>()
}

/// A request that has passed the first `hops` of [`Cx::passed`] leaves the plain path: it is in
/// flight there.
#[inline(always)]
pub(crate) fn entered<L: Level>(cx: &Cx, hops: usize) {
    if L::COUNTS {
        for stat in cx.passed.iter().take(hops) {
            if let Some(counters) = cx.counters.get(*stat as usize) {
                bump(&counters.entered, 1);
            }
        }
    }
}

/// A request that went well has passed these hops of [`Cx::passed`], there and back.
#[inline(always)]
pub(crate) fn passed(cx: &Cx, hops: Range<usize>, body: &Body) {
    let (command, bytes) = (body.command as usize, body.completed);
    let block: &CounterBlock = &cx.counters;
    for stat in cx.passed.get(hops).unwrap_or_default() {
        if let Some(counters) = block.get(*stat as usize) {
            bump(&counters.operations[command], 1);
            bump(&counters.bytes[command], bytes);
        }
    }
}

/// The same for a request that the first geom ended.
#[inline(always)]
pub(crate) fn passed_one(cx: &Cx, stat: u32, body: &Body) {
    if let Some(counters) = cx.counters.get(stat as usize) {
        let command = body.command as usize;
        bump(&counters.operations[command], 1);
        bump(&counters.bytes[command], body.completed);
    }
}

/// A start that has to be repeated does not count.
pub(crate) fn taken_back(cx: &Cx, edge: &Edge) {
    if let Some(counters) = cx.counters.get(edge.stat as usize) {
        bump(&counters.left, 1);
    }
}

/// A step of a request has ended.
#[inline(always)]
pub(crate) fn ended(cx: &Cx, edge: &Edge, body: &Body) {
    let Some(counters) = cx.counters.get(edge.stat as usize) else { return };
    bump(&counters.left, 1);
    bump(&counters.operations[body.command as usize], 1);
    bump(&counters.bytes[body.command as usize], body.completed);
    if body.error != 0 && !is_no_answer(body) {
        bump(&counters.errors, 1);
    }
}

/// A question that the provider has no answer to, which is no fault of anything.
#[cold]
fn is_no_answer(body: &Body) -> bool {
    let question = matches!(body.command, Command::GetAttr | Command::Extents);
    question && i32::from(body.error) == Errno::OPNOTSUPP.raw_os_error()
}

/// Takes the time of a marked bio that leaves the hop `top`.
#[inline]
pub(crate) fn timed(snapshot: &Snapshot, cx: &Cx, edge: &Edge, body: &mut Body, top: usize) {
    if !body.flags.contains(Flags::MARKED) {
        return;
    }
    let Some(counters) = cx.counters.get(edge.stat as usize) else { return };
    let hop = body.hops[top % body.hops.len()];
    let span = clock::ticks().saturating_sub(hop.started_ticks);
    let below = std::mem::replace(&mut body.below_ticks, span) + body.children_ticks;
    body.children_ticks = 0;
    let time = counters.time.get_or_init(Box::default);
    let span_ns = clock::ticks_to_ns(span);
    time.of(body.command).record(span_ns);
    bump(
        &time.exclusive_ns,
        clock::ticks_to_ns(span.saturating_sub(below)),
    );
    // A request that shares the provider with n others counts for a part of the time only, so
    // that requests side by side do not make the provider busy twice. n is the mean of the
    // requests in flight when it started and now. (With queued dispatch one thread sees starts
    // and another ends, so n is not known and each counts in full: an upper bound.)
    let now = in_flight(snapshot, cx, edge.stat);
    let around = (u64::from(hop.in_flight) + now + 1).max(2);
    bump(&time.busy_ns, span_ns * 2 / around);
}

/// A clone starts: the time that any clone is in flight is not the parent's own.
pub(crate) fn child_started(parent: &mut Body) {
    if parent.flags.contains(Flags::MARKED) {
        if parent.children_live == 0 {
            parent.children_since_ticks = clock::ticks();
        }
        parent.children_live += 1;
    }
}

/// A clone has come back: with the last of those in flight, a stretch of union time ends.
pub(crate) fn child_ended(parent: &mut Body) {
    if parent.flags.contains(Flags::MARKED) {
        parent.children_live = parent.children_live.saturating_sub(1);
        if parent.children_live == 0 {
            let now = clock::ticks();
            parent.children_ticks += now.saturating_sub(parent.children_since_ticks);
        }
    }
}

/// Draws after how many requests one is timed.
#[inline]
pub(crate) fn draw(cx: &mut Cx, one_in: u32) {
    // Uniform from 1 to 2N-1 has the mean N and follows no period of the caller's.
    cx.sample_left = cx.random.u32(1..one_in.max(1).saturating_mul(2));
}

/// Chooses whether a request is timed; called once a request.
#[inline]
pub(crate) fn choose(cx: &mut Cx, one_in: u32, body: &mut Body) {
    cx.sample_left = cx.sample_left.wrapping_sub(1);
    if cx.sample_left != 0 {
        body.flags = body.flags.without(Flags::MARKED);
        return;
    }
    draw(cx, one_in);
    body.flags = body.flags.with(Flags::MARKED);
    body.below_ticks = 0;
    body.children_ticks = 0;
    body.children_live = 0;
}

impl EdgeTime {
    fn of(&self, command: Command) -> &AtomicHistogram {
        let kind = match command {
            Command::Read => &self.read,
            Command::Write => &self.write,
            Command::Delete => &self.delete,
            _ => &self.other,
        };
        kind.get_or_init(AtomicHistogram::new)
    }

    fn clear(&self) {
        for kind in [&self.read, &self.write, &self.delete, &self.other] {
            if let Some(kind) = kind.get() {
                kind.clear();
            }
        }
        self.exclusive_ns.store(0, Ordering::Relaxed);
        self.busy_ns.store(0, Ordering::Relaxed);
    }

    /// Adds these times to `total`.
    fn add_to(&self, total: &mut TimeTotals) {
        total.exclusive_ns += self.exclusive_ns.load(Ordering::Relaxed);
        total.busy_ns += self.busy_ns.load(Ordering::Relaxed);
        let kinds = [
            (&self.read, &mut total.read),
            (&self.write, &mut total.write),
            (&self.delete, &mut total.delete),
            (&self.other, &mut total.other),
        ];
        for (kind, sum) in kinds {
            if let Some(kind) = kind.get() {
                sum.merge(&kind.snapshot());
            }
        }
    }
}

impl EdgeCounters {
    /// Requests in flight, as far as this thread knows: with queued dispatch one thread sees them
    /// enter and another leave.
    #[inline(always)]
    fn in_flight(&self) -> u64 {
        let entered = self.entered.load(Ordering::Relaxed);
        entered.saturating_sub(self.left.load(Ordering::Relaxed))
    }

    fn clear(&self) {
        let counters = self.operations.iter().chain(&self.bytes);
        for counter in counters.chain([&self.entered, &self.left, &self.errors]) {
            counter.store(0, Ordering::Relaxed);
        }
        if let Some(time) = self.time.get() {
            time.clear();
        }
    }

    /// Adds these figures to `total`.
    fn add_to(&self, total: &mut Totals) {
        let entered = self.entered.load(Ordering::Relaxed);
        let left = self.left.load(Ordering::Relaxed);
        total.in_flight = total.in_flight.wrapping_add(entered).wrapping_sub(left);
        total.errors += self.errors.load(Ordering::Relaxed);
        for (sum, count) in total.operations.iter_mut().zip(&self.operations) {
            *sum += count.load(Ordering::Relaxed);
        }
        for (sum, count) in total.bytes.iter_mut().zip(&self.bytes) {
            *sum += count.load(Ordering::Relaxed);
        }
        if let Some(time) = self.time.get() {
            time.add_to(total.time.get_or_insert_with(Box::default));
        }
    }
}

/// The figures of a consumer or provider, summed over threads.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Requests that are in flight; modulo 2^64 while threads are summed up.
    in_flight: u64,
    /// Requests that ended with an error.
    pub errors: u64,
    /// Requests that ended, by `Command as usize`.
    pub operations: [u64; COMMANDS],
    /// Bytes done, by `Command as usize`.
    pub bytes: [u64; COMMANDS],
    /// The sampled times, when any were taken.
    pub time: Option<Box<TimeTotals>>,
}

/// Sampled times. Multiply sums by the number of requests to one that was sampled
/// (`Statistics::Time::one_in`, while that stays the same) for an estimate of the whole.
#[derive(Clone, Debug, Default)]
pub struct TimeTotals {
    /// How long reads took from entering to leaving the provider, ns.
    pub read: Histogram,
    /// The same for writes.
    pub write: Histogram,
    /// The same for DELETE.
    pub delete: Histogram,
    /// The same for all other commands.
    pub other: Histogram,
    /// Sum of the time that the provider's geom took by itself: the span of each sampled request
    /// minus the span of the hop below it, or minus the union of its clones, ns.
    pub exclusive_ns: u64,
    /// Sum of the sampled spans, each divided by the number of requests that shared the provider,
    /// ns: an estimate of the time during which it was busy.
    pub busy_ns: u64,
}

impl Totals {
    /// Requests that entered and have not ended. A request that needs no waiting is done before
    /// any thread can look.
    pub fn in_flight(&self) -> u64 {
        // The threads were read one after the other, so the sum can be off by what happened
        // meanwhile, but a queue is never shorter than empty.
        (self.in_flight as i64).max(0) as u64
    }

    /// All requests that ended.
    pub fn ended(&self) -> u64 {
        self.operations.iter().sum()
    }

    /// Adds the figures of `other`, field by field.
    pub fn add(&mut self, other: &Self) {
        self.in_flight = self.in_flight.wrapping_add(other.in_flight);
        self.errors += other.errors;
        for (sum, count) in self.operations.iter_mut().zip(&other.operations) {
            *sum += count;
        }
        for (sum, count) in self.bytes.iter_mut().zip(&other.bytes) {
            *sum += count;
        }
        if let Some(time) = &other.time {
            let sum = self.time.get_or_insert_with(Box::default);
            sum.read.merge(&time.read);
            sum.write.merge(&time.write);
            sum.delete.merge(&time.delete);
            sum.other.merge(&time.other);
            sum.exclusive_ns += time.exclusive_ns;
            sum.busy_ns += time.busy_ns;
        }
    }
}
