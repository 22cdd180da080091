//! One job at work, in a thread of its own.
//!
//! ```text
//!   fill:    place -> content -> door.submit      until `iodepth` are in flight
//!            door.flush                           once a batch
//!   collect: door.reap -> latencies, counts       sleeping in door.wait when there is nothing
//!            fill                                 once for `iodepth_batch_complete_max` of them
//! ```
//!
//! Completions are reaped with one call and processed one after the other, with new requests in
//! between, so that `iodepth` requests are in flight as fio counts them.
//!
//! The clock is not read for each request, but at the begin of a round, after each batch has been
//! handed over, and when requests have come back. That is what makes a request cheap; it also means
//! that requests of one batch share their stamps.

mod account;
mod batch;
mod conditions;
mod depth;
mod errors;
mod fill;
mod flow;
mod granules;
mod histograms;
mod iolog;
mod limits;
mod locks;
mod logs;
mod loops;
mod mix;
mod operations;
mod pace;
mod passes;
mod plain;
mod priorities;
mod range_syncs;
mod read_back;
mod samples;
mod state;
mod syncs;
#[cfg(test)]
mod tests;
mod traced;
mod trims;
mod written;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use ugeom_format::verify_state::VerifyState;
use ugeom_load::door::{Door, Event, Kind, Request};
use ugeom_machine::clock;
use ugeom_machine::cpu::Usage;

use super::content::Content;
use super::draws::{Purpose, Seeds};
use super::places::{Place, Places, Region};
use super::tally::{Live, Phase, Tally};
use conditions::Pauses;
use depth::DepthSearch;
pub use flow::Flow;
use flow::Share;
use granules::Granules;
pub use iolog::Iolog;
use limits::{Limits, goal_bytes};
pub use locks::{FileLocks, Held};
pub use logs::Logs;
use mix::Mix;
use operations::Operations;
use pace::Pace;
use passes::Passes;
use priorities::Drawn;
pub use samples::{LogError, inflate_log};
use state::States;
use syncs::Syncs;
pub use traced::Traces;
use trims::Trims;
use ugeom_job::error::JobError;
use ugeom_job::settings::{FileLocking, Job, READ, TRIM, Unmeasured, Verify, WRITE};
use written::Written;

/// How long a worker sleeps at the most before it looks whether it should stop, ms.
const NAP_MS: u64 = 200;

/// How long before a request is due a worker does not sleep any more, ns: at the begin, and the
/// least and the most. In between, a little more than waking up has taken lately.
const SPIN_NS: u64 = 50_000;
const SPIN_LEAST_NS: u64 = 5_000;
const SPIN_MOST_NS: u64 = 100_000;

/// How long a job whose turn it is not waits before it looks again, ns.
const FLOW_NAP_NS: u64 = 1_000;

/// The times before which there are no requests while a pause, or a pass, waits for those in
/// flight.
const DRAINED: u64 = u64::MAX;
const PASSED: u64 = u64::MAX - 1;

/// The reading of the clock `ns` after the reading `now`, or the last one before those two.
fn later(now: u64, ns: u64) -> u64 {
    now.saturating_add(clock::ns_to_ticks(ns)).min(PASSED - 1)
}

/// The input of a worker.
pub struct Task<'a> {
    pub job: &'a Job,
    /// The parts of files that requests may go to.
    pub regions: &'a [Region],
    /// Its files, none for a stack.
    pub paths: &'a [PathBuf],
    /// Its number among all, from 0.
    pub number: u32,
    /// Where its random numbers begin.
    pub seeds: Seeds,
    /// Requests are handed over and end in the same call: there is no time between.
    pub blocking: bool,
    /// Its published state.
    pub live: &'a Live,
    /// Set from outside when the job should end.
    pub stop: &'a AtomicBool,
    /// The jobs that it shares requests with (`flow`).
    pub flow: Option<&'a Flow>,
    /// The files that jobs lock (`lockfile`).
    pub locks: &'a FileLocks,
    /// The writes of an earlier job (`verify_state_load`).
    pub state: Option<&'a VerifyState>,
}

/// The error of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The number of the error, as errno(3) has it.
    pub errno: i32,
    /// The error, its place, and the reason.
    pub message: String,
}

/// The result of a worker.
pub struct Done {
    pub tally: Tally,
    /// The logs that were asked for.
    pub logs: Option<Logs>,
    /// The state for a later job (`verify_state_save`).
    pub state: Option<VerifyState>,
    /// Why it ended early.
    pub trouble: Option<Trouble>,
}

#[derive(Clone, Copy)]
struct Slot {
    request: Request,
    number: u16,
    priority: u16,
    /// When the request was due.
    due: u64,
    /// When its batch was begun, and handed over.
    begun: u64,
    issued: u64,
    in_flight: bool,
}

const NO_REQUEST: Request = Request {
    kind: Kind::Sync,
    file: 0,
    offset: 0,
    length: 0,
};

const IDLE: Slot = Slot {
    request: NO_REQUEST,
    number: 0,
    priority: 0,
    due: 0,
    begun: 0,
    issued: 0,
    in_flight: false,
};

/// One copy of a job on its thread: makes the requests and counts them.
pub struct Worker<'a, D> {
    task: &'a Task<'a>,
    door: D,
    places: Places,
    content: Content,
    pace: Option<Pace>,
    mix: Mix,
    /// The kind of the next request, which was chosen and is not due yet.
    waiting_kind: Option<usize>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    queued: Vec<u32>,
    /// The job asks for batches (`iodepth_batch`); and how many requests are in one that is not
    /// full.
    in_batches: bool,
    batched: u32,
    events: Vec<Event>,
    /// How many of the reaped events wait to be taken in.
    unaccounted: usize,
    tally: Tally,
    logs: Option<Logs>,
    written: Option<Written>,
    granules: Option<Granules>,
    states: States,
    trouble: Option<Trouble>,
    limits: Limits,
    /// To be made before any other request, with the time when it is due if it has one.
    next_up: Option<(Request, Option<u64>)>,
    traces: Traces,
    depth: Option<DepthSearch>,
    share: Option<Share<'a>>,
    held: Option<Held<'a>>,
    operations: Option<Operations<'a>>,
    passes: Option<Passes>,
    syncs: Option<Syncs>,
    trims: Option<Trims>,
    /// How many requests are handed over together at the most, where the job does not say.
    batch_max: usize,
    /// Latencies of requests that are not measured.
    unmeasured: Unmeasured,
    priorities: Option<Drawn<'a>>,
    /// The I/O priority of the thread.
    priority: u16,
    /// How many blocks are still read back before other requests are made (`verify_backlog`).
    checks_left: u64,
    /// The number of the write that each slot reads back; none without `verify`.
    checks: Vec<Option<u16>>,
    /// The extra checks per request: see [`Worker::may_make`].
    has_conditions: bool,
    pauses: Pauses,
    /// How long before a request is due there is no more sleep, ns.
    spin_ns: u64,
    /// How long written data has been read back, ns.
    checked_ns: u64,
    /// How much of the written data has been read back.
    checked_bytes: u64,
    /// The bytes of all verifying reads.
    read_back_bytes: u64,
    /// When rates were compared with `rate_min` last, and the work until then.
    min_rates_at: u64,
    min_rates_done: [(u64, u64); 3],
    /// Nothing is to be made before.
    not_before: Option<u64>,
    draining: bool,
    finished: bool,
    counting: bool,
    started: u64,
    usage_at_start: Usage,
    write_number: u64,
}

impl<'a, D: Door> Worker<'a, D> {
    /// A worker that is ready to begin.
    /// Fails where there is no memory for the map of its places.
    pub fn new(task: &'a Task<'a>, traces: Traces, mut door: D) -> Result<Self, JobError> {
        let job = task.job;
        let mut content = Content::new(job, &task.seeds, task.number as u16);
        let slots = slots(job);
        // Buffers of reads take memory when they are used.
        let fills = if job.rw.does[WRITE] { slots } else { 0 };
        for slot in 0..fills {
            content.prepare(door.buffer(slot));
        }
        let bytes = goal_bytes(task);
        task.live.goal_bytes.store(bytes, Relaxed);
        let writes = job.rw.does[WRITE] && job.verify != Verify::No && job.do_verify;
        let places = Places::new(job, task.regions, &task.seeds)?;
        Ok(Self {
            task,
            door,
            written: writes.then(|| Written::new(places.are_mapped())),
            granules: Granules::of(job, slots).filter(|_| writes || job.serialize_overlap),
            places,
            content,
            pace: Pace::new(job, task.seeds.seed(Purpose::Poisson)),
            priorities: Drawn::of(job, &task.seeds),
            priority: priorities::of_thread(job),
            mix: Mix::new(job.rwmixread, &task.seeds),
            waiting_kind: None,
            slots: vec![IDLE; slots as usize],
            free: (0..slots).rev().collect(),
            queued: Vec::with_capacity(slots as usize),
            in_batches: job.iodepth_batch.is_some_and(|batch| batch != 1),
            batched: 0,
            events: Vec::with_capacity(slots as usize),
            unaccounted: 0,
            tally: Tally::default(),
            logs: Logs::of(job),
            states: States::of(task),
            trouble: None,
            limits: Limits::new(task),
            next_up: None,
            traces,
            depth: DepthSearch::of(job),
            share: task.flow.map(|flow| Share::new(flow, job)),
            held: task.locks.of(job, task.number, task.regions),
            operations: Operations::of(task),
            passes: Passes::of(task),
            syncs: Syncs::of(task),
            trims: Trims::of(task).filter(|_| writes),
            batch_max: batch::most(job),
            unmeasured: match job.file_operation() {
                Some(_) => Unmeasured::ALL,
                None => job.unmeasured,
            },
            checks_left: 0,
            checks: match job.verify {
                Verify::No => Vec::new(),
                _ => vec![None; slots as usize],
            },
            has_conditions: has_conditions(task) || (writes && slots > 1),
            pauses: Pauses::default(),
            spin_ns: SPIN_NS,
            checked_ns: 0,
            checked_bytes: 0,
            read_back_bytes: 0,
            min_rates_at: 0,
            min_rates_done: [(0, 0); 3],
            not_before: None,
            draining: false,
            finished: false,
            counting: false,
            started: 0,
            usage_at_start: Usage::default(),
            write_number: 0,
        })
    }

    pub fn run(self) -> Done {
        self.run_by(Self::work)
    }

    /// Does the job; `work` makes its requests.
    fn run_by(mut self, work: impl FnOnce(&mut Self)) -> Done {
        let now = clock::ticks();
        // Of a job that ends before `ramp_time` is over, all counts.
        self.started = now;
        self.usage_at_start = self.usage(false);
        let ramp_ns = self.task.job.ramp_time_ns;
        self.limits.ramp_end = later(now, ramp_ns);
        if let Some(pace) = &mut self.pace {
            pace.start(now);
        }
        self.task.live.enter(Phase::Ramping);
        if ramp_ns == 0 {
            self.start_counting(now);
        }
        if self.task.job.verifying.only {
            self.suppose_written();
        } else {
            work(&mut self);
            self.repeat();
        }
        if self.trouble.is_none() {
            self.end_sync();
        }
        self.note_elapsed();
        self.share = None;
        self.held = None;
        // As by fio, the end of the time leaves unchecked what has been written since.
        let stopped = self.task.stop.load(Relaxed) || clock::ticks() >= self.limits.end;
        let checks = self.trouble.is_none() && !stopped && self.task.job.do_verify;
        if checks {
            self.read_back();
        }
        self.close_log();
        if let Some(depth) = &self.depth {
            self.tally.latency_depth = depth.depth();
        }
        let ended = self.in_flight() == 0;
        self.tally.usage = self.usage(ended).since(&self.usage_at_start);
        priorities::sort(self.task.job, &mut self.tally);
        if self.task.live.publishes {
            self.publish(true);
        }
        let end_ns = clock::ticks_to_ns(clock::ticks().saturating_sub(self.started));
        for (_, log) in self.logs.iter_mut().flat_map(Logs::each) {
            log.end(end_ns);
        }
        self.task.live.enter(Phase::Ended);
        Done {
            state: self.state(checks),
            tally: self.tally,
            logs: self.logs,
            trouble: self.trouble,
        }
    }

    /// The warm-up has ended: drops its counts.
    fn start_counting(&mut self, now: u64) {
        self.tally = Tally::default();
        self.logs = Logs::of(self.task.job);
        self.counting = true;
        self.started = now;
        self.min_rates_at = now;
        self.min_rates_done = [(0, 0); 3];
        self.usage_at_start = self.usage(false);
        self.states.begin_counting(self.write_number);
        if self.limits.runtime_ticks > 0 {
            self.limits.end = now.saturating_add(self.limits.runtime_ticks);
        }
        self.task.live.enter(Phase::Running);
    }

    /// The usage of this thread and those of its engine.
    fn usage(&mut self, ended: bool) -> Usage {
        Usage::of_thread().plus(&self.door.helpers_usage(ended))
    }

    /// Notes how long requests have been made, and how long what was written has been read back.
    fn note_elapsed(&mut self) {
        let all_ns = clock::ticks_to_ns(clock::ticks().saturating_sub(self.started));
        let elapsed_ns = all_ns.saturating_sub(self.checked_ns);
        self.tally.elapsed_ns = elapsed_ns + self.checked_ns;
        let only_checks = !self.task.job.rw.does[READ] && self.checked_ns > 0;
        for (number, side) in self.tally.sides.iter_mut().enumerate() {
            let (made_ns, checked_ns) = match number == READ {
                true if only_checks => (0, self.checked_ns),
                true => (elapsed_ns, self.checked_ns),
                false => (elapsed_ns, 0),
            };
            if side.requests > 0 {
                side.runtime_ns = (made_ns + checked_ns).max(1);
            }
        }
    }

    /// Shares the counts (`--status-interval`); exactly when everything has
    /// `ended`.
    #[cold]
    fn publish(&mut self, ended: bool) {
        self.note_elapsed();
        let mut tally = self.tally.clone();
        if !ended {
            tally.usage = self.usage(false).since(&self.usage_at_start);
        }
        self.task.live.publish(tally);
    }

    fn in_flight(&self) -> u32 {
        (self.slots.len() - self.free.len()) as u32
    }

    fn work(&mut self) {
        let together = self.together();
        loop {
            let now = clock::ticks();
            self.look_at_the_clock(now);
            self.fill(now);
            if self.in_flight() == 0 {
                if self.finished {
                    return;
                }
                self.begin_pause();
                self.sleep_until_due();
                continue;
            }
            self.collect(together);
        }
    }

    /// How many completions are processed before new requests are made.
    fn together(&self) -> usize {
        let job = self.task.job;
        let least = job.iodepth_batch_complete_min.max(1);
        job.iodepth_batch_complete_max.max(least) as usize
    }

    #[inline]
    fn look_at_the_clock(&mut self, now: u64) {
        if !self.counting && now >= self.limits.ramp_end {
            self.start_counting(now);
        }
        if now >= self.limits.end || self.task.stop.load(Relaxed) {
            self.finished = true;
        }
        if self.has_conditions && self.counting {
            self.search_depth(now);
            if self.task.live.is_asked() {
                self.publish(false);
            }
        }
        if self.has_min_rates() {
            self.compare_min_rates(now);
        }
    }

    /// Sleeps until shortly before the next request is due, and spins for the rest: what a sleep
    /// takes too long would count as latency of the request.
    fn sleep_until_due(&mut self) {
        let Some(due) = self.not_before else {
            return;
        };
        let now = clock::ticks();
        if now < self.pauses.spin_until {
            return std::hint::spin_loop();
        }
        let ns = clock::ticks_to_ns(due.saturating_sub(now));
        match ns.checked_sub(self.spin_ns) {
            Some(ns) => {
                let ns = ns.min(NAP_MS * 1_000_000);
                std::thread::sleep(Duration::from_nanos(ns));
                let slept_ns = clock::ticks_to_ns(clock::ticks().saturating_sub(now));
                self.spin_ns = spin_after(self.spin_ns, slept_ns.saturating_sub(ns));
            }
            // Another job has what is waited for, and may need this core to give it back.
            None if self.held.is_some() || self.share.is_some() => std::thread::yield_now(),
            None => std::hint::spin_loop(),
        }
    }

    /// The next request and when it is due; `None` when there is none now.
    #[inline]
    fn next_request(&mut self, now: u64) -> Option<(Request, u64)> {
        if let Some((request, due)) = self.next_up.take() {
            return Some((request, due.unwrap_or(now)));
        }
        if self.traces.replay.is_some() {
            return self.next_of_trace(now);
        }
        let kind = self.waiting_kind.take();
        if self.syncs.is_some() && kind.is_none() {
            let sync = self.due_sync();
            if sync.is_some() || self.not_before.is_some() {
                return sync.map(|sync| (sync, now));
            }
        }
        let kind = kind.unwrap_or_else(|| self.choose_kind());
        let mut due = now;
        if let Some(pace) = &self.pace
            && let Some(when) = pace.due(kind)
        {
            if when > now {
                self.waiting_kind = Some(kind);
                self.not_before = Some(when);
                return None;
            }
            due = when;
        }
        let (kind, place) = self.next_place(kind)?;
        let request = Request {
            kind: [Kind::Read, Kind::Write, Kind::Trim][kind],
            file: place.file,
            offset: place.offset,
            length: place.length,
        };
        self.after_choosing(kind, place.length);
        Some((request, due))
    }

    #[inline]
    fn choose_kind(&mut self) -> usize {
        self.mix.kind(self.task.job, self.pace.as_ref())
    }

    /// The next place within the limits, and the kind of its request, which is chosen again where a
    /// file ends; the job is finished when there is none.
    #[inline]
    fn next_place(&mut self, kind: usize) -> Option<(usize, Place)> {
        let mut kind = Some(kind);
        while self.limits.requests_left > 0 {
            let (job, pace) = (self.task.job, self.pace.as_ref());
            let mut choose = || {
                let kind = kind.take();
                kind.unwrap_or_else(|| self.mix.kind(job, pace))
            };
            if self.limits.bytes_left > 0
                && let Some((kind, place)) = self.places.next(&mut choose)
            {
                // As by fio, the writes of ranges that were trimmed fill the amount.
                let counts = kind != TRIM || !job.rw.trim_then_write;
                self.limits
                    .take(if counts { place.length.into() } else { 0 });
                if let Some(passes) = &mut self.passes {
                    passes.count(self.task, kind, &place);
                }
                self.mix.made(kind);
                return Some((kind, place));
            }
            if !self.limits.has_bytes() || !self.limits.next_pass() {
                break;
            }
            self.restart_places();
            kind = None;
            if self.task.job.loops > 1 && !self.task.job.time_based && self.in_flight() > 0 {
                self.not_before = Some(PASSED);
            }
            // The next request is chosen after it.
            self.next_up = self.due_sync().map(|sync| (sync, None));
            if self.next_up.is_some() || self.not_before.is_some() {
                return None;
            }
        }
        self.finished = true;
        None
    }

    /// A pass begins: every place is free again.
    fn restart_places(&mut self) {
        self.places.restart();
        self.mix.restart(&self.task.seeds);
        self.content.restart(&self.task.seeds);
        self.syncs.iter_mut().for_each(Syncs::begin_pass);
    }

    /// The consequences of a request: the next one's time, a check for a pause, a sync.
    #[inline]
    fn after_choosing(&mut self, kind: usize, length: u32) {
        let job = self.task.job;
        if let Some(pace) = &mut self.pace {
            pace.made(kind, length);
        }
        if job.thinktime_ns > 0 {
            self.pauses.made();
        }
        if kind == WRITE
            && let Some(syncs) = &mut self.syncs
        {
            syncs.wrote();
        }
    }
}

/// Whether something is asked for per request besides the usual: see [`Worker::may_make`].
fn has_conditions(task: &Task<'_>) -> bool {
    let job = task.job;
    task.flow.is_some()
        || task.live.publishes
        || job.file_operation().is_some()
        || job.serialize_overlap
        || (slots(job) > 1 && job.limits_open_files(task.regions.len()))
        || job.file_locking != FileLocking::No
        || job.latency.target_ns > 0
        || job.thinktime_ns > 0
        || job.trimming.percent > 0
        || job.verifying.backlog > 0
        || task.state.is_some()
}

/// How long to spin after a sleep that took `late_ns` too long: at once as long as waking up takes,
/// and shorter bit by bit where it has become faster.
fn spin_after(spin_ns: u64, late_ns: u64) -> u64 {
    let needed = late_ns.saturating_add(late_ns / 4);
    let spin_ns = needed.max(spin_ns - spin_ns / 16);
    spin_ns.clamp(SPIN_LEAST_NS, SPIN_MOST_NS)
}

/// How many requests a worker has in flight at the most.
pub fn slots(job: &Job) -> u32 {
    if job.is_sync() { 1 } else { job.iodepth }
}
