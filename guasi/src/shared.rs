//! State shared by a context, its workers and its ring, and the paths of a request through it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32};
use std::time::Duration;

use ugeom_machine::clock;
use ugeom_machine::cpu::Usage;

use crate::context::GuasiError;
use crate::done::Done;
use crate::event::Event;
use crate::fork;
use crate::inline::Inline;
use crate::interrupt;
use crate::queue::{Entry, Queues};
use crate::ring::Ring;
use crate::roster::{Roster, Seat, Summoned, Woken};
use crate::settings::{Backend, Settings};
use crate::slab::{Slab, Slot};
use crate::stack::{self, Room};
use crate::state::{self, Withdrawal};
use crate::sync::{AtomicU32, AtomicU64, Mutex, Ordering, Padded};
use crate::thread::{Life, Thread};
use crate::watch::Watch;
use crate::work::Outcome;

pub(crate) struct Shared {
    pub(crate) slab: Slab,
    pub(crate) queues: Queues,
    pub(crate) done: Done,
    pub(crate) roster: Roster,
    pub(crate) event: Event,
    pub(crate) ring: Option<Ring>,
    /// Runs cached reads, beside a ring.
    pub(crate) inline: Option<Inline>,
    /// The executor of system calls, and the reason.
    pub(crate) why: String,
    /// Priorities from here on were never used, and need not be looked at.
    pub(crate) priorities_used: AtomicU32,
    pub(crate) closing: AtomicBool,
    workers: Mutex<Workers>,
    workers_min: u32,
    workers_max: u32,
    idle: Duration,
    pub(crate) spin_ns: u64,
    cores: u32,
    pub(crate) watch: Watch,
    /// When a yield last took long, in ticks.
    no_yield_from: AtomicU64,
    /// How long a call takes a worker about, in ticks.
    call_ticks: Padded<AtomicU64>,
    stack_bytes: usize,
    signal: i32,
    /// The process in which the context was made ([`fork::number`]).
    process: u32,
    /// Ended requests could not be kept whole when this process was forked.
    results_lost: AtomicBool,
}

/// How long a call takes at least that is taken to wait for something, ns: several times what a
/// read from the page cache takes, and less than any device.
const CALL_WAITS_NS: u64 = 10_000;

/// How long a fetcher has to wait at least for a sleep to cost less than looking out, ns, where the
/// core that it sleeps on has other work and need not be woken.
const SLEEP_PAYS_NS: u64 = 12_000;

/// How often a thread that polls lets others run on its core, ns. A look at the scheduler costs
/// about a tenth of that.
pub(crate) const YIELD_NS: u64 = 2_000;

/// A yield that takes longer than this, ns, gave the core to a thread that has its own work to do.
const YIELD_LONG_NS: u64 = 1_000_000;

/// For how long there is no yield after that, ns: so at most one hundredth of the time is lost.
const YIELDS_PAUSE_NS: u64 = 100 * YIELD_LONG_NS;

/// After how many calls a worker that always has work notes how long they take.
const JUDGED_CALLS: u64 = 64;

/// The calls of a worker since it last recorded their times.
#[derive(Default)]
struct Busy {
    since: u64,
    calls: u64,
}

impl Busy {
    /// A call begins; every so often tells the mean time of those before it, in ticks.
    #[inline]
    fn begin(&mut self) -> Option<u64> {
        let is_due = self.calls == JUDGED_CALLS;
        let mean = if is_due { self.end() } else { None };
        if self.calls == 0 {
            self.since = clock::ticks();
        }
        self.calls += 1;
        mean
    }

    /// The mean time of a call since the last such note, in ticks; `None` when there was none.
    fn end(&mut self) -> Option<u64> {
        let calls = std::mem::take(&mut self.calls);
        let mean = || clock::ticks().wrapping_sub(self.since) / calls;
        (calls > 0).then(mean)
    }
}

/// The table of workers. For starting, ending and interrupting them, not for running requests.
#[derive(Default)]
struct Workers {
    table: Vec<Option<Worker>>,
    /// Threads that have ended, or are about to without touching anything more.
    left: Vec<Thread>,
    /// The usage of those that have ended.
    used: Usage,
}

struct Worker {
    tid: Arc<AtomicI32>,
    thread: Option<Thread>,
}

impl Shared {
    pub(crate) fn new(settings: &Settings) -> Result<Shared, GuasiError> {
        let slots = settings.requests.next_power_of_two() as usize;
        let cores = ugeom_machine::cpu::online_cores();
        let spin_ns = u64::try_from(settings.spin.as_nanos()).unwrap_or(u64::MAX);
        if spin_ns > 0 {
            // Calibrates the clock now rather than in the first wait.
            clock::ns_to_ticks(spin_ns);
        }
        let (ring, why) = open_ring(settings, slots)?;
        let is_inline = settings.backend == Backend::Auto && ring.is_some();
        Ok(Shared {
            inline: is_inline.then(Inline::default),
            ring,
            why,
            slab: Slab::new(slots).ok_or_else(no_memory)?,
            queues: Queues::new(settings.priorities, slots).ok_or_else(no_memory)?,
            done: Done::new(settings.priorities as usize, slots).ok_or_else(no_memory)?,
            roster: Roster::new(u32::try_from(cores.div_ceil(2)).unwrap_or(1)),
            event: Event::default(),
            priorities_used: AtomicU32::new(1),
            closing: AtomicBool::new(false),
            workers: Mutex::default(),
            workers_min: settings.workers_min,
            workers_max: settings.workers_max,
            idle: settings.idle,
            // One core: a thread that polls keeps the other from working.
            spin_ns: if cores > 1 { spin_ns } else { 0 },
            cores: u32::try_from(cores).unwrap_or(1),
            watch: Watch::new(u32::try_from(cores).unwrap_or(1)),
            // Long ago.
            no_yield_from: AtomicU64::new(clock::ticks().wrapping_sub(u64::MAX / 2)),
            call_ticks: Padded(AtomicU64::new(0)),
            stack_bytes: match settings.stack_bytes {
                0 => stack::default_bytes(),
                bytes => bytes,
            },
            signal: interrupt::signal().map_err(GuasiError::System)?,
            process: fork::number(),
            results_lost: AtomicBool::new(false),
        })
    }

    /// Whether this process is a child of the one in which the context was made: it has no workers
    /// and no ring here.
    #[inline]
    pub(crate) fn is_orphan(&self) -> bool {
        self.process != fork::number()
    }

    /// For an orphan: ended requests are unknown.
    pub(crate) fn lose_results(&self) {
        self.results_lost.store(true, Ordering::Relaxed);
    }

    /// Whether it is not.
    pub(crate) fn has_lost_results(&self) -> bool {
        self.results_lost.load(Ordering::Relaxed)
    }

    pub(crate) fn priorities(&self) -> usize {
        self.priorities_used.load(Ordering::Acquire) as usize
    }

    pub(crate) fn has_work(&self) -> bool {
        let mut queues = self.queues.used(self.priorities());
        queues.any(|queue| !queue.is_empty())
    }

    /// The next request to run: of the lowest priority number, then the oldest.
    pub(crate) fn pop(&self) -> Option<Entry> {
        for queue in self.queues.used(self.priorities()) {
            if let Some(entry) = queue.pop() {
                if let Some(next) = queue.peek() {
                    self.slab.prefetch(next.slot);
                }
                return Some(entry);
            }
        }
        None
    }

    /// After work was queued: sees to it that a worker takes it.
    #[inline]
    pub(crate) fn notify(self: &Arc<Shared>) -> io::Result<()> {
        if self.roster.needs_summons() {
            self.summon()
        } else {
            Ok(())
        }
    }

    #[cold]
    fn summon(self: &Arc<Shared>) -> io::Result<()> {
        loop {
            match self.roster.summon(self.workers_max, || self.has_work()) {
                Summoned::Settled => return Ok(()),
                Summoned::Start => {}
            }
            let Err(error) = self.start_worker(true) else { return Ok(()) };
            if !self.roster.start_failed(|| self.has_work()) {
                return match self.roster.workers.load(Ordering::Acquire) {
                    0 => Err(error),
                    // The others will come to it.
                    _ => Ok(()),
                };
            }
        }
    }

    /// Starts the workers that are always there.
    pub(crate) fn start_min(self: &Arc<Shared>) -> io::Result<()> {
        for _ in 0..self.workers_min {
            self.roster.enroll(self.workers_max);
            if let Err(error) = self.start_worker(false) {
                self.roster.workers.fetch_sub(1, Ordering::AcqRel);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Starts a worker that is counted already.
    fn start_worker(self: &Arc<Shared>, searching: bool) -> io::Result<()> {
        let tid = Arc::new(AtomicI32::new(0));
        let mut workers = self.workers.lock();
        if self.closing.load(Ordering::SeqCst) {
            // `close` waits for those that it finds in the table, perhaps just now.
            return Err(io::Error::from_raw_os_error(libc::ECANCELED));
        }
        let ended = std::mem::take(&mut workers.left);
        let free = workers.table.iter().position(Option::is_none);
        let number = free.unwrap_or_else(|| {
            workers.table.push(None);
            workers.table.len() - 1
        });
        let life = Life {
            shared: Arc::clone(self),
            seat: Arc::new(Seat::new(number as u32)),
            tid: Arc::clone(&tid),
            searching,
            room: Room::new(),
        };
        let thread = Thread::start(self.stack_bytes, life)?;
        workers.table[number] = Some(Worker {
            tid,
            thread: Some(thread),
        });
        drop(workers);
        join_all(ended);
        Ok(())
    }

    /// The life of a worker, up to [`Shared::leave`]. While a request runs, which may end the
    /// thread, there is nothing to drop here.
    pub(crate) fn work(self: &Arc<Shared>, seat: &Arc<Seat>, tid: &AtomicI32, mut searching: bool) {
        interrupt::prepare_thread(self.signal);
        tid.store(interrupt::thread_id(), Ordering::Release);
        let mut busy = Busy::default();
        loop {
            if searching && self.begins_watch() {
                searching = false;
                // Another worker takes what this one was called for.
                if self.roster.found_work(|| self.has_work()) {
                    let _ = self.summon();
                }
                self.watch();
            }
            if !searching && self.roster.has_surplus() {
                let is_closing = || self.closing.load(Ordering::Acquire);
                let roster = &self.roster;
                match roster.rest(seat, self.idle, self.workers_min, is_closing) {
                    Some(Woken::Called) => searching = true,
                    Some(Woken::Leave) => break,
                    None => {}
                }
            }
            if let Some(entry) = self.pop() {
                if std::mem::take(&mut searching) && self.roster.found_work(|| self.has_work()) {
                    // It can only fail to start one more; this one will come to it.
                    let _ = self.summon();
                }
                self.note_calls(busy.begin());
                self.run(entry, seat.number);
                continue;
            }
            if self.closing.load(Ordering::Acquire) {
                break;
            }
            self.note_calls(busy.end());
            let spins = self.spin_ns > 0 && !self.is_crowded();
            if spins && (searching || self.roster.try_search()) {
                searching = true;
                let start = clock::ticks();
                if self.spin_until(start, self.spin_ns, (1, YIELD_NS), || self.has_work()) {
                    continue;
                }
            }
            if std::mem::take(&mut searching) {
                self.roster.stop_search();
            }
            let has_work = || self.has_work() || self.closing.load(Ordering::Acquire);
            match self
                .roster
                .sleep(seat, self.idle, self.workers_min, has_work)
            {
                Woken::Called => searching = true,
                Woken::Leave => break,
            }
        }
        if searching {
            self.roster.stop_search();
        }
    }

    /// A worker's thread ends: after its work, or in the middle of a request that has ended it.
    pub(crate) fn leave(self: &Arc<Shared>, seat: &Seat) {
        interrupt::leave_thread();
        // SAFETY: the thread is this context's worker.
        let unfinished = unsafe { interrupt::unfinished() };
        if let Some((slot, active)) = unfinished {
            self.end_unfinished(slot, active, seat.number);
        }
        let mut workers = self.workers.lock();
        workers.used = workers.used.plus(&Usage::of_thread());
        let entry = workers
            .table
            .get_mut(seat.number as usize)
            .and_then(Option::take);
        workers.left.extend(entry.and_then(|worker| worker.thread));
        drop(workers);
        if unfinished.is_some() {
            self.replace_worker();
        }
    }

    /// Ends the request in which a worker's thread has ended.
    fn end_unfinished(&self, slot: &Slot, active: u64, worker: u32) {
        // Only a cleanup that was not called is left.
        self.discard(slot);
        interrupt::clear_current();
        slot.store(Outcome::failed(libc::ECANCELED));
        let generation = state::generation(active);
        if !slot.state.end(generation, worker) {
            slot.state.end_asked(generation, interrupt::settle);
        }
        self.finished_here(slot, self.slab.index(slot));
    }

    /// A worker has ended out of turn: sees to it that there are as many as there have to be.
    fn replace_worker(self: &Arc<Shared>) {
        let before = self.roster.workers.fetch_sub(1, Ordering::AcqRel);
        if self.closing.load(Ordering::SeqCst) {
            return;
        }
        // Where no thread can be started, the next submission tries again.
        if before <= self.workers_min && self.roster.enroll(self.workers_max) {
            if self.start_worker(false).is_err() {
                self.roster.workers.fetch_sub(1, Ordering::AcqRel);
            }
        } else if self.has_work() {
            let _ = self.notify();
        }
    }

    /// Notes the mean time of a worker's calls, where it differs much from what is known: fetchers
    /// look at it all the time.
    #[inline]
    fn note_calls(&self, mean: Option<u64>) {
        let Some(mean) = mean else { return };
        let known = self.call_ticks.load(Ordering::Relaxed);
        if known.abs_diff(mean) > known / 4 {
            self.call_ticks.store(mean, Ordering::Relaxed);
        }
    }

    /// Whether calls wait for something in more workers than there are cores: then results and new
    /// work come by wake-ups anyway, and a core is better left to what the calls wait for.
    pub(crate) fn is_crowded(&self) -> bool {
        self.call_ticks.load(Ordering::Relaxed) > clock::ns_to_ticks(CALL_WAITS_NS)
            && self.roster.at_work() > self.cores + 1
    }

    /// Whether a fetcher that misses so many results had better sleep at once: workers fill the
    /// cores, so that a thread that polls keeps one of them from working, and they will take longer
    /// than falling asleep and being woken on a core that is awake.
    pub(crate) fn is_long(&self, missing: usize) -> bool {
        let at_work = self.roster.at_work();
        let calls_ticks = self
            .call_ticks
            .load(Ordering::Relaxed)
            .saturating_mul(missing as u64);
        at_work >= self.cores
            && calls_ticks / u64::from(at_work.max(1)) > clock::ns_to_ticks(SLEEP_PAYS_NS)
    }

    /// Polls until `max_ns` after `start` (a reading of the clock in ticks), with `pauses` short
    /// pauses between two checks, and yields the core every `yield_ns`. Returns whether `found`
    /// became true.
    pub(crate) fn spin_until(
        &self,
        start: u64,
        max_ns: u64,
        (pauses, yield_ns): (u32, u64),
        found: impl Fn() -> bool,
    ) -> bool {
        let limit = clock::ns_to_ticks(max_ns);
        let stretch = clock::ns_to_ticks(yield_ns);
        // A stretch may be without end.
        let mut next_yield = clock::ticks().wrapping_sub(start).saturating_add(stretch);
        loop {
            if found() {
                return true;
            }
            let spent = clock::ticks().wrapping_sub(start);
            if spent >= limit {
                return false;
            }
            if spent >= next_yield {
                self.let_others_run();
                next_yield = clock::ticks().wrapping_sub(start).saturating_add(stretch);
            }
            for _ in 0..pauses {
                std::hint::spin_loop();
            }
        }
    }

    /// Gives this core to a thread that waits for it: it may be the very one that is looked out
    /// for. Not for a while after that took long: then strangers have the core, for a slice of time
    /// each, and a thread that sleeps gets it back sooner than one that yields.
    fn let_others_run(&self) {
        let before = clock::ticks();
        if before.wrapping_sub(self.no_yield_from.load(Ordering::Relaxed))
            < clock::ns_to_ticks(YIELDS_PAUSE_NS)
        {
            return;
        }
        std::thread::yield_now();
        let now = clock::ticks();
        if now.wrapping_sub(before) > clock::ns_to_ticks(YIELD_LONG_NS) {
            self.no_yield_from.store(now, Ordering::Relaxed);
        }
    }

    /// Runs a request in this thread, unless it was withdrawn.
    fn run(&self, entry: Entry, worker: u32) {
        let slot = self.slab.slot(entry.slot);
        // First: a signal that comes as soon as the request has begun finds what it is for.
        interrupt::set_current(slot, state::active(entry.generation, worker));
        if !slot.state.begin(entry.generation, worker) {
            return interrupt::clear_current();
        }
        let private = slot.private.load(Ordering::Relaxed);
        // SAFETY: the request is active in this worker, so that its payload is this worker's,
        // written and not yet run.
        let outcome = unsafe {
            let payload = slot.payload.get();
            ((*payload).table.assume_init().run)(payload, private)
        };
        interrupt::clear_current();
        slot.store(outcome);
        if !slot.state.end(entry.generation, worker) {
            slot.state.end_asked(entry.generation, interrupt::settle);
        }
        self.finished_here(slot, entry.slot);
    }

    /// Hands a request that has ended to the fetchers. Returns whether one of them, which may sleep
    /// in the ring, is to be woken.
    pub(crate) fn finished(&self, slot: &Slot, index: u32) -> bool {
        let priority = slot.priority.load(Ordering::Relaxed);
        let wakes = self.done.push(priority as usize, index);
        if self.is_orphan() {
            // The descriptor is shared with the parent, and the sleepers are there.
            return false;
        }
        self.event.raise();
        wakes
    }

    /// The same, for threads that do not hold the ring.
    #[inline]
    fn finished_here(&self, slot: &Slot, index: u32) {
        if self.finished(slot, index)
            && let Some(ring) = &self.ring
        {
            ring.nudge();
        }
    }

    /// Whether there is something to fetch.
    pub(crate) fn has_any(&self) -> bool {
        let completed =
            || !self.is_orphan() && self.ring.as_ref().is_some_and(Ring::has_completions);
        self.done.has_any(self.priorities()) || completed()
    }

    /// Ends a request that waits, or asks for the end of one that runs.
    pub(crate) fn cancel(&self, index: u32, generation: u32) -> Withdrawal {
        let slot = self.slab.slot(index);
        let withdrawal = slot.state.withdraw(generation);
        match withdrawal {
            Withdrawal::Withdrawn => {
                self.discard(slot);
                slot.store(Outcome::failed(libc::ECANCELED));
                self.finished_here(slot, index);
            }
            Withdrawal::Signal(state::RING) => {
                // The ring's cancellation names the request: it needs no protection from the next.
                slot.state.sent();
                if let Some(ring) = &self.ring
                    && !self.is_orphan()
                {
                    ring.interrupt(index, generation);
                }
            }
            Withdrawal::Signal(worker) => {
                self.interrupt(worker);
                slot.state.sent();
            }
            _ => {}
        }
        withdrawal
    }

    /// Signals a worker, as `withdraw` demands: the worker runs the request and cannot
    /// end it before `sent`, so that it is there, with its number set, unless it is only now being
    /// entered, by whom the lock is held.
    pub(crate) fn interrupt(&self, worker: u32) {
        if self.is_orphan() {
            return;
        }
        let workers = self.workers.lock();
        if let Some(Some(worker)) = workers.table.get(worker as usize) {
            interrupt::send(worker.tid.load(Ordering::Acquire), self.signal);
        }
    }

    /// Drops the work of a request, for the thread that withdrew it.
    pub(crate) fn discard(&self, slot: &Slot) {
        let private = slot.private.load(Ordering::Relaxed);
        // SAFETY: the request was withdrawn by this thread, so that the payload is this thread's,
        // written and never run.
        unsafe {
            let payload = slot.payload.get();
            ((*payload).table.assume_init().discard)(payload, private);
        }
    }

    /// How many workers live.
    pub(crate) fn workers(&self) -> u32 {
        self.roster.workers.load(Ordering::Acquire)
    }

    /// The usage of all workers, of running ones as far as the kernel reports it.
    pub(crate) fn workers_usage(&self) -> Usage {
        let workers = self.workers.lock();
        let tids = workers.table.iter().flatten();
        let living = tids.filter_map(|worker| Usage::of_task(worker.tid.load(Ordering::Acquire)));
        living.fold(workers.used, |all, one| all.plus(&one))
    }

    /// Cancels everything, and waits until every worker has left.
    pub(crate) fn close(self: &Arc<Shared>) {
        if self.is_orphan() {
            // Workers and ring are the parent's. Their memory here is never given back: pages of
            // the ring are not mapped in this process, and something else may be in their place.
            if !self.closing.swap(true, Ordering::SeqCst) {
                std::mem::forget(Arc::clone(self));
            }
            return;
        }
        self.closing.store(true, Ordering::SeqCst);
        for index in 0..self.slab.used() {
            let generation = crate::state::generation(self.slab.slot(index).state.load());
            self.cancel(index, generation);
        }
        self.done.wake_all();
        if let Some(ring) = &self.ring {
            ring.nudge();
        }
        self.drain_ring();
        self.roster.wake_all();
        let mut workers = self.workers.lock();
        let table = workers.table.iter_mut().flatten();
        let mut threads: Vec<_> = table.filter_map(|worker| worker.thread.take()).collect();
        threads.append(&mut workers.left);
        drop(workers);
        join_all(threads);
    }
}

fn no_memory() -> GuasiError {
    GuasiError::System(io::Error::from_raw_os_error(libc::ENOMEM))
}

/// The ring that is asked for, if it can be had, and the reason.
fn open_ring(settings: &Settings, slots: usize) -> Result<(Option<Ring>, String), GuasiError> {
    if settings.backend == Backend::Workers {
        return Ok((None, "workers: asked for".to_owned()));
    }
    match Ring::new(settings, slots) {
        Ok(ring) if settings.backend == Backend::Ring => {
            Ok((Some(ring), "ring: asked for".to_owned()))
        }
        Ok(ring) => Ok((Some(ring), "ring: the kernel allows it".to_owned())),
        Err((reason, source)) if settings.backend == Backend::Ring => {
            Err(GuasiError::NoRing { reason, source })
        }
        Err((reason, _)) => Ok((None, format!("workers: io_uring cannot be used: {reason}"))),
    }
}

impl Slot {
    pub(crate) fn store(&self, outcome: Outcome) {
        self.result.store(outcome.result, Ordering::Relaxed);
        self.error.store(outcome.error, Ordering::Relaxed);
    }
}

fn join_all(threads: Vec<Thread>) {
    for thread in threads {
        thread.join();
    }
}
