//! The states of workers: idle, searching; and which one is woken or started when work comes.
//!
//! A worker *searches* while it looks at the queues without having found anything: spinning, just
//! woken, just started. As long as one searches no other is woken, and the last searcher that
//! finds work sees to it that the rest of the work gets a worker, too. So wake-ups come one after
//! the other and only as many as there is work for, a submitter wakes one worker at most, and none
//! while one spins. A worker that finds work when it is about to sleep is a searcher, too.
//!
//! **No work is forgotten.** Submitters publish work, fence, and look for searchers and idle
//! workers; workers announce that they are idle (or stop searching), fence, and look for work. One
//! of the two sees the other. `summon` itself holds a place among the searchers while it decides,
//! and looks again after it gave the place back.
//!
//! **A limit on the workers at work** is set only while a worker watches (`watch`) that requests
//! are taken. At the limit, a submitter calls no worker: each worker at work takes the next request
//! after its call. The submitter publishes its work before it looks at the limit, so that a worker
//! whose call ends at that moment sees the work. Above the limit, workers rest between two calls:
//! they announce that they are idle, fence, and look at the limit; the watcher lifts the limit,
//! fences, and looks for work. One of the two sees the other.

use std::time::Duration;

use std::sync::Arc;

use crate::parker::Parker;
use crate::sync::{AtomicU32, Mutex, MutexGuard, Ordering, Padded, fence};

/// State shared by a worker and its wakers.
pub(crate) struct Seat {
    /// The number of the worker, and its place in the table of workers.
    pub(crate) number: u32,
    parker: Parker,
}

impl Seat {
    pub(crate) fn new(number: u32) -> Seat {
        Seat {
            number,
            parker: Parker::default(),
        }
    }
}

pub(crate) struct Roster {
    searching: Padded<AtomicU32>,
    idle_count: Padded<AtomicU32>,
    /// Sleeping workers; the last to fall asleep is woken first, so that workers that are not
    /// needed stay asleep and leave.
    idle: Mutex<Vec<Arc<Seat>>>,
    /// Workers that live or are being started.
    pub(crate) workers: AtomicU32,
    searching_max: u32,
    /// So many workers at work are enough; [`NO_LIMIT`] while no watcher watches.
    limit: Padded<AtomicU32>,
}

/// Each waiting request gets a worker.
pub(crate) const NO_LIMIT: u32 = u32::MAX;

/// The result of `summon`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Summoned {
    /// A worker searches already, or has been woken, or all workers that may be are at work.
    Settled,
    /// The caller has to start a worker, which begins as a searcher; when it cannot it calls
    /// `start_failed`.
    Start,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// Called, or there is work; the worker is a searcher now.
    Called,
    /// No call came in time, and there are more workers than wanted: it is off the books.
    Leave,
}

impl Roster {
    /// At most `searching_max` workers spin at a time.
    pub(crate) fn new(searching_max: u32) -> Roster {
        Roster {
            searching: Padded(AtomicU32::new(0)),
            idle_count: Padded(AtomicU32::new(0)),
            idle: Mutex::new(Vec::new()),
            workers: AtomicU32::new(0),
            searching_max,
            limit: Padded(AtomicU32::new(NO_LIMIT)),
        }
    }

    /// After work was published: whether a worker has to be called.
    pub(crate) fn needs_summons(&self) -> bool {
        fence(Ordering::SeqCst);
        self.searching.load(Ordering::Relaxed) == 0 && !self.is_full()
    }

    /// Whether there is a limit, and as many workers are at work.
    fn is_full(&self) -> bool {
        let limit = self.limit.load(Ordering::Relaxed);
        limit != NO_LIMIT && self.at_work() >= limit
    }

    /// Workers that have something to do.
    pub(crate) fn at_work(&self) -> u32 {
        let workers = self.workers.load(Ordering::Relaxed);
        workers.saturating_sub(self.idle_count.load(Ordering::Relaxed))
    }

    /// Sets the limit. For the watcher, which lifts it before it ends its watch, and then calls a
    /// worker if work is waiting.
    pub(crate) fn set_limit(&self, limit: u32) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Wakes a worker, or asks for a new one while there are fewer than `workers_max`. `has_work`
    /// looks at the queues.
    pub(crate) fn summon(&self, workers_max: u32, has_work: impl Fn() -> bool) -> Summoned {
        loop {
            let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
            if self
                .searching
                .compare_exchange(0, 1, success, failure)
                .is_err()
                || self.wake_one()
            {
                return Summoned::Settled;
            }
            if self.enroll(workers_max) {
                return Summoned::Start;
            }
            if !self.give_up_search(&has_work) {
                return Summoned::Settled;
            }
        }
    }

    /// The worker that `summon` asked for could not be started. Returns whether it is to be called
    /// again, since a worker has become idle meanwhile.
    #[cfg(not(all(loom, test)))]
    pub(crate) fn start_failed(&self, has_work: impl Fn() -> bool) -> bool {
        self.workers.fetch_sub(1, Ordering::AcqRel);
        self.give_up_search(&has_work)
    }

    /// Counts one more worker if fewer than `workers_max` live.
    pub(crate) fn enroll(&self, workers_max: u32) -> bool {
        let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        let more = |count| (count < workers_max).then_some(count + 1);
        self.workers.fetch_update(success, failure, more).is_ok()
    }

    /// Gives back the caller's place among the searchers. True when there is work and a worker
    /// idle, which a submitter may have left to the searcher that the caller was.
    fn give_up_search(&self, has_work: impl Fn() -> bool) -> bool {
        self.searching.fetch_sub(1, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        self.idle_count.load(Ordering::Relaxed) > 0 && has_work()
    }

    fn wake_one(&self) -> bool {
        if self.idle_count.load(Ordering::Acquire) == 0 {
            return false;
        }
        let mut idle = self.idle.lock();
        let seat = idle.pop();
        self.idle_count.store(idle.len() as u32, Ordering::Release);
        drop(idle);
        match seat {
            Some(seat) => {
                seat.parker.wake_all();
                true
            }
            None => false,
        }
    }

    /// A worker without work asks whether it may search. At most `searching_max` do so unasked.
    pub(crate) fn try_search(&self) -> bool {
        let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        let more = |count| (count < self.searching_max).then_some(count + 1);
        self.searching.fetch_update(success, failure, more).is_ok()
    }

    /// A searcher has found nothing and stops; it will look once more, in `sleep`.
    pub(crate) fn stop_search(&self) {
        self.searching.fetch_sub(1, Ordering::AcqRel);
    }

    /// A searcher has found work. Returns whether it was the last one and more work is waiting, so
    /// that it has to `summon` a worker.
    pub(crate) fn found_work(&self, has_work: impl Fn() -> bool) -> bool {
        if self.searching.fetch_sub(1, Ordering::AcqRel) != 1 {
            return false;
        }
        fence(Ordering::SeqCst);
        has_work() && !self.is_full()
    }

    /// Whether more workers are at work than the limit allows.
    #[inline]
    pub(crate) fn has_surplus(&self) -> bool {
        let limit = self.limit.load(Ordering::Relaxed);
        limit != NO_LIMIT && self.at_work() > limit
    }

    /// A worker that does not search rests, whether or not there is work, if more workers than the
    /// limit are at work; otherwise as [`Roster::sleep`]. `None` if it is not to rest.
    pub(crate) fn rest(
        &self,
        seat: &Arc<Seat>,
        idle_limit: Duration,
        workers_min: u32,
        is_closing: impl Fn() -> bool,
    ) -> Option<Woken> {
        let seen = seat.parker.count();
        let idle = self.idle.lock();
        // Under the lock, so that no more workers rest than are too many.
        let workers = self.workers.load(Ordering::Relaxed);
        let limit = self.limit.load(Ordering::Relaxed);
        if limit == NO_LIMIT || workers.saturating_sub(idle.len() as u32) <= limit {
            return None;
        }
        self.list_idle(idle, seat);
        let is_lifted = self.limit.load(Ordering::Relaxed) != limit;
        if (is_lifted || is_closing()) && self.strike_off(seat) {
            self.searching.fetch_add(1, Ordering::AcqRel);
            return Some(Woken::Called);
        }
        Some(self.wait(seat, seen, idle_limit, workers_min))
    }

    /// Announces that a worker is idle; what it looks at then is not older.
    fn list_idle(&self, mut idle: MutexGuard<'_, Vec<Arc<Seat>>>, seat: &Arc<Seat>) {
        idle.push(Arc::clone(seat));
        self.idle_count.store(idle.len() as u32, Ordering::Release);
        drop(idle);
        fence(Ordering::SeqCst);
    }

    /// A worker that does not search sleeps until it is called, at most for `idle_limit`; then it
    /// leaves if more than `workers_min` live, or sleeps on.
    pub(crate) fn sleep(
        &self,
        seat: &Arc<Seat>,
        idle_limit: Duration,
        workers_min: u32,
        has_work: impl Fn() -> bool,
    ) -> Woken {
        let seen = seat.parker.count();
        self.list_idle(self.idle.lock(), seat);
        if has_work() && self.strike_off(seat) {
            // Submitters that saw it searching have called no other worker. As a searcher it calls
            // one when it finds more than it takes.
            self.searching.fetch_add(1, Ordering::AcqRel);
            return Woken::Called;
        }
        self.wait(seat, seen, idle_limit, workers_min)
    }

    /// Waits on the list of the idle.
    fn wait(&self, seat: &Arc<Seat>, seen: u32, idle_limit: Duration, workers_min: u32) -> Woken {
        let mut limit = Some(idle_limit);
        while seat.parker.count() == seen {
            let start = std::time::Instant::now();
            seat.parker.wait(seen, limit);
            let Some(left) = limit else { continue };
            match left.saturating_sub(start.elapsed()) {
                Duration::ZERO => {
                    if self.leaves(seat, workers_min) {
                        return Woken::Leave;
                    }
                    limit = None;
                }
                left => limit = Some(left),
            }
        }
        Woken::Called
    }

    /// Takes a worker from the list of the idle; false when it has just been called.
    fn strike_off(&self, seat: &Arc<Seat>) -> bool {
        let mut idle = self.idle.lock();
        let Some(place) = idle.iter().position(|other| Arc::ptr_eq(other, seat)) else {
            return false;
        };
        idle.remove(place);
        self.idle_count.store(idle.len() as u32, Ordering::Release);
        true
    }

    /// Takes a worker off the books if it was not called and more than `workers_min` live. The
    /// count goes down before the list shrinks, so that a submitter that finds no idle worker may
    /// start one.
    fn leaves(&self, seat: &Arc<Seat>, workers_min: u32) -> bool {
        let mut idle = self.idle.lock();
        let Some(place) = idle.iter().position(|other| Arc::ptr_eq(other, seat)) else {
            return false;
        };
        let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        let fewer = |count| (count > workers_min).then(|| count - 1);
        let leaves = self.workers.fetch_update(success, failure, fewer).is_ok();
        if leaves {
            idle.remove(place);
            self.idle_count.store(idle.len() as u32, Ordering::Release);
        }
        leaves
    }

    /// Calls all workers that sleep, at the end.
    #[cfg(not(all(loom, test)))]
    pub(crate) fn wake_all(&self) {
        let seats = std::mem::take(&mut *self.idle.lock());
        self.idle_count.store(0, Ordering::Relaxed);
        self.searching
            .fetch_add(seats.len() as u32, Ordering::AcqRel);
        for seat in seats {
            seat.parker.wake_all();
        }
    }

    /// How many workers sleep.
    #[cfg(not(all(loom, test)))]
    pub(crate) fn idle(&self) -> u32 {
        self.idle_count.load(Ordering::Relaxed)
    }
}
