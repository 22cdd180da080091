//! A context: submit, fetch, cancel, ask, release.

use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thiserror::Error;
use ugeom_machine::clock;
use ugeom_machine::cpu::Usage;

use crate::calls::IoCall;
use crate::done::Take;
use crate::fork;
use crate::parker::Parker;
use crate::queue::{Entry, SLOT_BITS};
use crate::ring::{Drive, Ring};
use crate::settings::Settings;
use crate::shared::{Shared, YIELD_NS};
use crate::slab::{BATCH, Slot};
use crate::state::{self, Withdrawal};
use crate::sync::Ordering;
use crate::work::Work;

/// Why a context could not be made, or a request not be taken.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum GuasiError {
    #[error("{what} is {value}; it can be {} to {}", limits.0, limits.1)]
    Setting {
        what: &'static str,
        value: u32,
        /// The least and the largest value.
        limits: (u32, u32),
    },
    #[error("no worker can be started")]
    NoWorker(#[source] io::Error),
    /// A ring was asked for, and the kernel gives us none.
    #[error("io_uring cannot be used: {reason}")]
    NoRing {
        /// The missing or forbidden feature, in plain words.
        reason: String,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The kernel's means for a context are not to be had.
    #[error("the context cannot be made")]
    System(#[source] io::Error),
    #[error("priority {priority} is not below {priorities}")]
    Priority {
        /// The priority of the request.
        priority: u32,
        /// The number of priorities of the context.
        priorities: u32,
    },
    #[error("the context belongs to the process from which this one was forked")]
    Forked,
    /// As many requests as the context was made for are submitted and not released.
    #[error("all {requests} requests of the context are in use")]
    Full {
        /// The number of requests.
        requests: u32,
    },
}

/// Names a request: its slot, and a generation that no other request in this slot had or will have
/// (for 2^32 requests). An old name is recognised as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

impl RequestId {
    /// The name as a number: the generation in the upper half, the slot in the lower.
    pub fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.slot)
    }

    /// The reverse of `to_bits`. A number that names no request does no harm.
    pub fn from_bits(bits: u64) -> RequestId {
        RequestId {
            slot: bits as u32,
            generation: (bits >> 32) as u32,
        }
    }
}

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Cancelled before it ran; it never will.
    Canceled,
    /// Waiting for a worker.
    Pending,
    /// A worker, or the kernel, runs it.
    Active,
    /// It has run; its result is set.
    Complete,
}

/// The state of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Names the request to its context, as for a cancellation.
    pub id: RequestId,
    /// The submitter's tag, which identifies it.
    pub tag: usize,
    /// The private pointer of the call.
    pub private: *mut c_void,
    /// Whether it waits, runs, has run or was cancelled.
    pub status: Status,
    /// The result of the call; -1 before it ended, and when it was cancelled.
    pub result: isize,
    /// `errno` after the call, ECANCELED when it was cancelled before it ran; 0 before it ended.
    pub error: i32,
}

/// The result of `cancel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancel {
    /// It will never run, and can be fetched.
    Canceled,
    /// It runs, and is being interrupted: a call that waits ends with EINTR. It can be fetched when
    /// it has ended.
    Interrupted,
    /// It had ended before.
    Complete,
    /// There is no such request (any more).
    Unknown,
}

/// Runs calls in other threads, or in a ring. All of it may be used from several threads at once.
///
/// Dropping it cancels what waits, interrupts what runs, and waits for the end of that: memory that
/// was lent to a request is free afterwards.
pub struct Context {
    pub(crate) shared: Arc<Shared>,
}

impl Context {
    pub(crate) fn open(settings: &Settings) -> Result<Context, GuasiError> {
        settings.check()?;
        let shared = Arc::new(Shared::new(settings)?);
        fork::register(&shared);
        let context = Context { shared };
        context.shared.start_min().map_err(GuasiError::NoWorker)?;
        Ok(context)
    }

    /// Submits one request. `tag` is for the submitter to recognise it by.
    ///
    /// # Errors
    /// `Priority`, `Full`, `NoWorker`, `Forked`; nothing was submitted, and `work` was dropped (a
    /// cleanup has not run).
    pub fn submit<W: Work>(
        &self,
        priority: u32,
        tag: usize,
        work: W,
    ) -> Result<RequestId, GuasiError> {
        let work = match self.submit_inline(priority, tag, work) {
            Ok(id) => return Ok(id),
            Err(work) => work,
        };
        let mut id = None;
        self.submit_batch(priority, [(tag, work)], |submitted| id = Some(submitted))?;
        id.ok_or(self.full())
    }

    /// Submits and runs a cached read, where that is wanted; else hands the work back.
    #[inline]
    fn submit_inline<W: Work>(&self, priority: u32, tag: usize, work: W) -> Result<RequestId, W> {
        let shared = &*self.shared;
        let (Some(inline), Some(ring), Some(call)) = (&shared.inline, &shared.ring, work.io_call())
        else {
            return Err(work);
        };
        let is_open = !shared.is_orphan() && self.check_priority(priority).is_ok();
        let mut slot = [0];
        if !inline.wants(call)
            || !is_open
            || ring.has_queue(shared.priorities())
            || shared.slab.take(shared.done.links(), &mut slot) == 0
        {
            return Err(work);
        }
        // SAFETY: the maker of the work has promised the conditions of `Io::new`.
        let Some(outcome) = (unsafe { inline.run(call) }) else {
            shared.slab.put(shared.done.links(), &slot);
            return Err(work);
        };
        let entry = self.fill(slot[0], priority, tag, work);
        shared.end_inline(entry, outcome);
        let Entry { slot, generation } = entry;
        Ok(RequestId { slot, generation })
    }

    /// Submits requests with one wake-up for all, and hands each name to `submitted`. Returns how
    /// many there was room for; the rest is dropped.
    ///
    /// # Errors
    /// `Priority`; `Forked`; `Full` when there was no room at all; `NoWorker` when nothing would
    /// run them.
    /// Nothing was submitted then.
    pub fn submit_batch<W: Work>(
        &self,
        priority: u32,
        works: impl IntoIterator<Item = (usize, W), IntoIter: ExactSizeIterator>,
        mut submitted: impl FnMut(RequestId),
    ) -> Result<usize, GuasiError> {
        if self.shared.is_orphan() {
            return Err(GuasiError::Forked);
        }
        self.check_priority(priority)?;
        let mut works = works.into_iter();
        let mut total = 0;
        let mut uses_ring = false;
        while works.len() > 0 {
            let mut slots = [0; BATCH];
            let want = works.len().min(BATCH);
            let count = self
                .shared
                .slab
                .take(self.shared.done.links(), &mut slots[..want]);
            let mut entries = [Entry::default(); BATCH];
            // A bit for each: the filled slots, and those for the ring.
            let (mut filled, mut ringed) = (0, 0);
            for ((tag, work), slot) in works.by_ref().take(count).zip(&slots) {
                ringed |= u64::from(self.is_for_ring(&work)) << filled;
                entries[filled] = self.fill(*slot, priority, tag, work);
                filled += 1;
            }
            let entries = &entries[..filled];
            let published = self.publish_all(priority, entries, ringed, total == 0)?;
            for Entry { slot, generation } in &entries[..published] {
                submitted(RequestId {
                    slot: *slot,
                    generation: *generation,
                });
            }
            total += published;
            uses_ring |= ringed != 0;
            if count == 0 || published < filled {
                break;
            }
        }
        if uses_ring {
            self.shared.drive(Drive::Submit);
        }
        match total {
            0 if works.len() > 0 => Err(self.full()),
            total => Ok(total),
        }
    }

    /// Whether the ring runs it.
    #[inline]
    fn is_for_ring(&self, work: &impl Work) -> bool {
        match (work.io_call(), &self.shared.ring) {
            (Some(call), Some(ring)) => ring.takes(call),
            _ => false,
        }
    }

    /// Queues filled slots, each to its worker or ring, in order. Returns how many; the others are
    /// free again. `withdraw` as for `publish`.
    fn publish_all(
        &self,
        priority: u32,
        entries: &[Entry],
        ringed: u64,
        withdraw: bool,
    ) -> Result<usize, GuasiError> {
        let mut start = 0;
        while start < entries.len() {
            let is_ringed = |at: usize| ringed >> at & 1;
            let differs = |&at: &usize| is_ringed(at) != is_ringed(start);
            let end = (start..entries.len())
                .find(differs)
                .unwrap_or(entries.len());
            let run = &entries[start..end];
            let published = match &self.shared.ring {
                Some(ring) if is_ringed(start) == 1 => {
                    let was_idle = ring.push(priority, run);
                    if was_idle == Some(true) {
                        self.shared.done.stir();
                    }
                    Ok(was_idle.is_some())
                }
                _ => self.publish(priority, run, withdraw && start == 0),
            };
            if !matches!(published, Ok(true)) {
                // An error has taken its run back already, and is told when it is the first.
                let from = if published.is_err() { end } else { start };
                self.take_back(&entries[from..]);
                return if start == 0 {
                    published.map(|_| 0)
                } else {
                    Ok(start)
                };
            }
            start = end;
        }
        Ok(start)
    }

    fn check_priority(&self, priority: u32) -> Result<(), GuasiError> {
        let priorities = self.shared.queues.count();
        if priority >= priorities {
            return Err(GuasiError::Priority {
                priority,
                priorities,
            });
        }
        if priority >= self.shared.priorities_used.load(Ordering::Relaxed) {
            self.shared
                .priorities_used
                .fetch_max(priority + 1, Ordering::AcqRel);
        }
        Ok(())
    }

    fn full(&self) -> GuasiError {
        GuasiError::Full {
            requests: self.shared.slab.count(),
        }
    }

    fn fill(&self, slot: u32, priority: u32, tag: usize, work: impl Work) -> Entry {
        let place = self.shared.slab.slot(slot);
        place.tag.store(tag, Ordering::Relaxed);
        place.private.store(work.private(), Ordering::Relaxed);
        place.priority.store(priority, Ordering::Relaxed);
        let file = work.io_call().and_then(IoCall::file_and_offset);
        let file = file.map_or(-1, |(fd, _)| fd as isize);
        place.result.store(file, Ordering::Relaxed);
        place.error.store(0, Ordering::Relaxed);
        // SAFETY: the slot was free and is this thread's alone until it is submitted.
        unsafe { work.write(place.payload.get()) };
        let generation = place.state.submit();
        Entry { slot, generation }
    }

    /// Queues filled slots for workers. False when the queue has no room: many that were cancelled
    /// are still in it. When no worker can run them, and `withdraw`, they are taken back: else some
    /// of the batch runs already.
    fn publish(
        &self,
        priority: u32,
        entries: &[Entry],
        withdraw: bool,
    ) -> Result<bool, GuasiError> {
        if !self.shared.queues.push(priority, entries) {
            return Ok(false);
        }
        match self.shared.notify() {
            Err(error) if withdraw && self.take_back(entries) => Err(GuasiError::NoWorker(error)),
            _ => Ok(true),
        }
    }

    /// Makes slots free again whose requests do not run. False when one runs.
    fn take_back(&self, entries: &[Entry]) -> bool {
        let mut freed = Vec::with_capacity(entries.len());
        for Entry { slot, generation } in entries {
            let place = self.shared.slab.slot(*slot);
            if place.state.take_back(*generation) {
                freed.push(*slot);
            }
        }
        self.shared.slab.put(self.shared.done.links(), &freed);
        freed.len() == entries.len()
    }

    /// Waits until `min` requests have ended, at most for `timeout` (`None`: no limit), and hands
    /// up to `max` of them to `f`: those of the lowest priority number first, then in the order
    /// in which they ended. Returns how many; fewer than `min` when the time is over, or the
    /// context closes. They stay known until they are released. A `min` above `max` counts as
    /// `max`.
    pub fn fetch<F>(&self, min: usize, max: usize, timeout: Option<Duration>, mut f: F) -> usize
    where
        F: FnMut(Info),
    {
        self.gather(min, max, timeout, |index, slot| {
            f(info(index, slot, slot.state.fetched()));
        })
    }

    /// As `fetch`, and releases the requests that it hands over.
    pub fn collect<F>(&self, min: usize, max: usize, timeout: Option<Duration>, mut f: F) -> usize
    where
        F: FnMut(Info),
    {
        let (slab, links) = (&self.shared.slab, self.shared.done.links());
        let mut freed = [0; BATCH];
        let mut count = 0;
        let total = self.gather(min, max, timeout, |index, slot| {
            let word = slot.state.load();
            f(info(index, slot, word));
            slot.state.recycle(word);
            freed[count] = index;
            count += 1;
            if count == BATCH {
                slab.put(links, &freed);
                count = 0;
            }
        });
        slab.put(links, &freed[..count]);
        total
    }

    fn gather(
        &self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        mut each: impl FnMut(u32, &Slot),
    ) -> usize {
        let shared = &*self.shared;
        let is_orphan = shared.is_orphan();
        if is_orphan && shared.has_lost_results() {
            return 0;
        }
        // Nothing more ends in an orphan.
        let mut min = if is_orphan { 0 } else { min.min(max) };
        let (mut deadline, mut began) = (None, None);
        let mut take = |min| {
            shared.done.take(
                shared.priorities(),
                (min, max),
                |index| each(index, shared.slab.slot(index)),
                |index| shared.slab.prefetch(index),
            )
        };
        // The ring can wait while all that is wanted is there.
        if !is_orphan
            && shared.event.is_off()
            && shared.ring.as_ref().is_some_and(Ring::can_wait)
            && let Take::Taken(count) = take(max)
        {
            return count;
        }
        let got = loop {
            self.shared.drive(Drive::Fetch);
            let priorities = shared.priorities();
            let seen = match take(min) {
                Take::Taken(count) => break count,
                Take::Only(count) => count,
            };
            let left = time_left(timeout, &mut deadline);
            if left == Some(Duration::ZERO) || shared.closing.load(Ordering::Acquire) {
                min = 0;
            } else {
                self.wait(priorities, (min, seen), left, &mut began);
            }
        };
        // The ring writes to the descriptor for all of its completions.
        let has_ring = shared.ring.is_some();
        if !is_orphan && !shared.event.is_off() && (got > 0 || has_ring) {
            shared.event.lower(has_ring, || shared.has_any());
        }
        got
    }

    /// Waits until more has ended: by looking out first, in all for the time that is set, then
    /// asleep; in the ring while that has requests. `began` is when the fetch began to wait,
    /// and what it saw then.
    fn wait(
        &self,
        priorities: usize,
        (min, seen): (usize, usize),
        left: Option<Duration>,
        began: &mut Option<(u64, usize)>,
    ) {
        let shared = &*self.shared;
        let missing = min - seen;
        if let Some(ring) = shared.ring.as_ref().filter(|ring| !ring.is_idle()) {
            let sleeper = ring.lie_down(missing);
            shared.done.sleep(shared.priorities(), 1, seen, |_, _| {
                ring.sleep(&sleeper, left)
            });
            return ring.wake_up(&sleeper);
        }
        let left_ns = left.map_or(u64::MAX, |left| {
            u64::try_from(left.as_nanos()).unwrap_or(u64::MAX)
        });
        let spin_ns = shared.spin_ns.min(left_ns);
        // Each look takes the line that workers push to away from them: the more is missing, the
        // less often it pays to look.
        let pauses = missing.min(32) as u32;
        let yield_ns = match missing {
            ..MANY => u64::MAX,
            _ => YIELD_NS,
        };
        let found = || shared.done.has_new(priorities);
        let (start, seen_first) = *began.get_or_insert_with(|| (clock::ticks(), seen));
        // Looking out keeps a core from a worker, where there are as many workers: not for long
        // when results come so slowly that the rest will take longer than it may.
        let spent = clock::ticks().wrapping_sub(start);
        let rest =
            spent.saturating_mul(missing as u64) / seen.saturating_sub(seen_first).max(1) as u64;
        let is_slow = spent >= clock::ns_to_ticks(shared.spin_ns / 10)
            && seen > seen_first
            && rest > clock::ns_to_ticks(shared.spin_ns / 2);
        let sleeps_at_once =
            is_slow || shared.is_crowded() || (missing >= MANY && shared.is_long(missing));
        if spin_ns > 0
            && !sleeps_at_once
            && shared.spin_until(start, spin_ns, (pauses, yield_ns), found)
        {
            return;
        }
        let park = |sleepers: &Parker, count| {
            // A submitter to the idle ring wakes us from here on.
            if shared.ring.as_ref().is_none_or(Ring::is_idle) {
                sleepers.wait(count, left);
            }
        };
        shared.done.sleep(shared.priorities(), missing, seen, park);
    }

    /// Ends a request that waits, or asks for the end of one that runs. An interruption reaches
    /// this request or none.
    pub fn cancel(&self, id: RequestId) -> Cancel {
        if self.shared.slab.get(id.slot).is_none() {
            return Cancel::Unknown;
        }
        self.shared.drive(Drive::Ask);
        match self.shared.cancel(id.slot, id.generation) {
            Withdrawal::Withdrawn => Cancel::Canceled,
            Withdrawal::Signal(_) | Withdrawal::Asked => Cancel::Interrupted,
            Withdrawal::Ended => Cancel::Complete,
            Withdrawal::Gone => Cancel::Unknown,
        }
    }

    /// The state of a request; `None` when there is no such one (any more).
    pub fn info(&self, id: RequestId) -> Option<Info> {
        let slot = self.shared.slab.get(id.slot)?;
        let known =
            |word| state::generation(word) == id.generation && state::stage(word) != state::FREE;
        let may_have_ended = |stage| stage == state::PENDING || stage == state::ACTIVE;
        if may_have_ended(state::stage(slot.state.load())) {
            self.shared.drive(Drive::Ask);
        }
        let word = slot.state.load();
        let info = info(id.slot, slot, word);
        // Released while we read: what was read may belong to the next request.
        (known(word) && known(slot.state.load())).then_some(info)
    }

    /// Forgets a request that was fetched. False when it was not, or is not known (any more).
    pub fn release(&self, id: RequestId) -> bool {
        let shared = &self.shared;
        let known = shared.slab.get(id.slot);
        let released = known.is_some_and(|slot| slot.state.release(id.generation));
        if released {
            shared.slab.put(shared.done.links(), &[id.slot]);
        }
        released
    }

    /// A descriptor that is readable while there is something to fetch, for epoll(7) and the like.
    ///
    /// # Errors
    /// The error of eventfd(2), or the ring's registration of it.
    pub fn event_fd(&self) -> io::Result<BorrowedFd<'_>> {
        let shared = &self.shared;
        let tell = |fd| shared.ring.as_ref().map_or(Ok(()), |ring| ring.tell(fd));
        shared.event.fd(|| shared.has_any(), tell)
    }

    /// Whether the context was made before this process was forked from the one that has its
    /// workers. It then takes no requests, hands over ended ones, and waits for nothing.
    pub fn is_orphan(&self) -> bool {
        self.shared.is_orphan()
    }

    /// The executor of system calls, and the reason in words: `ring: REASON` or `workers: REASON`.
    pub fn backend(&self) -> &str {
        &self.shared.why
    }

    /// Whether a ring of the kernel runs system calls.
    pub fn has_ring(&self) -> bool {
        self.shared.ring.is_some()
    }

    /// How many workers live now.
    pub fn workers(&self) -> u32 {
        self.shared.workers()
    }

    /// How many of them sleep: there is nothing to do, or fewer complete as many calls.
    pub fn idle_workers(&self) -> u32 {
        self.shared.roster.idle()
    }

    /// The usage of all workers so far. For those that live the kernel rounds times down to 10 ms
    /// each; after [`Context::close`] it is exact.
    pub fn workers_usage(&self) -> Usage {
        self.shared.workers_usage()
    }

    /// Ends the context for all threads that use it: cancels waiting requests, interrupts running
    /// ones, waits until they have ended. Fetches return the requests that there are.
    pub fn close(&self) {
        self.shared.close();
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        self.shared.close();
    }
}

/// The remaining time, which runs from the first call; `None` is no limit.
fn time_left(
    timeout: Option<Duration>,
    deadline: &mut Option<Option<Instant>>,
) -> Option<Duration> {
    let timeout = timeout?;
    let now = Instant::now();
    // A time beyond what the clock can tell is no limit.
    let end = *deadline.get_or_insert_with(|| now.checked_add(timeout));
    end.map(|end| end.saturating_duration_since(now))
}

/// The state of a request from its slot, whose state was `word`.
fn info(index: u32, slot: &Slot, word: u64) -> Info {
    let (result, error) = (
        slot.result.load(Ordering::Relaxed),
        slot.error.load(Ordering::Relaxed),
    );
    let status = match state::stage(word) {
        state::PENDING => Status::Pending,
        state::ACTIVE => Status::Active,
        state::CANCELED => Status::Canceled,
        _ => Status::Complete,
    };
    let (result, error) = match status {
        Status::Pending | Status::Active => (-1, 0),
        Status::Canceled => (-1, libc::ECANCELED),
        Status::Complete => (result, error),
    };
    Info {
        id: RequestId {
            slot: index,
            generation: state::generation(word),
        },
        tag: slot.tag.load(Ordering::Relaxed),
        private: slot.private.load(Ordering::Relaxed),
        status,
        result,
        error,
    }
}

/// A thread that waits for so many results leaves the core to the workers.
const MANY: usize = 16;

const _: () = assert!(crate::settings::REQUESTS_MAX < 1 << SLOT_BITS);
