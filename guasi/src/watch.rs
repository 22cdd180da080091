//! Whether few workers complete as many calls as all: a worker that watches the others finds out.
//!
//! A call that sleeps briefly (a read of a fast disk) costs a switch of threads. With a worker for
//! each request a second one follows: the worker finds no request when its call returns, sleeps,
//! and is woken for the next. With fewer workers than requests it finds one. But a slow disk needs
//! all requests at once, and a request on which the others depend must not wait for them. So the
//! rates are measured: when more workers than a few are at work, one of them watches, and lets all
//! and few work in turn. While few complete as many calls it stays, tries again now and then, and
//! lifts the limit when no request is taken for a moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, fence};
use std::time::Duration;

use ugeom_machine::clock;

use crate::roster::NO_LIMIT;
use crate::shared::Shared;
use crate::sync::{Mutex, Ordering};

/// As few workers as this are never too many, nor as few as [`FEW_PER_CORE`] times the cores.
const FEW: u32 = 32;
const FEW_PER_CORE: u32 = 4;

/// The time between two looks at the requests that were taken.
const NAP: Duration = Duration::from_millis(1);

/// Looks in one window of a trial.
const WINDOW_NAPS: u32 = 4;

/// Windows of a trial with few workers, and as many with all.
const WINDOWS: u32 = 4;

/// Fewer calls than this in a trial are slow ones: what they wait for may need all at once.
const CALLS_MIN: u64 = 400;

/// The least rate of few workers, as a part of that of all: they take less CPU time, and the rates
/// of such short windows vary by a few percent.
const ENOUGH: f64 = 0.95;

/// A part of the rate in the trial: so many looks in a row below it lead to another trial.
const SLOWER: f64 = 0.25;
const SLOW_NAPS: u32 = 16;

/// Looks in a row, in which a request waited and none was taken, that end the watch: so long waits
/// a request on which all calls depend. The scheduler takes the cores away for shorter times.
const STALLED_NAPS: u32 = 8;

/// Looks in a row without a waiting request that end the watch.
const IDLE_NAPS: u32 = 100;

/// The time between two trials, ns: doubled while they end alike.
const PAUSE_MIN_NS: u64 = 250_000_000;
const PAUSE_MAX_NS: u64 = 8_000_000_000;

/// Whether a worker watches, and when.
pub(crate) struct Watch {
    few: u32,
    is_watched: AtomicBool,
    /// No watch begins before this time, in ticks.
    not_before: AtomicU64,
    /// The time after the next watch that ends without a limit, ns.
    pause_ns: AtomicU64,
    tried: Mutex<Tried>,
}

/// The calls of all workers, and of few, and in how many ticks of the clock: of the last trial,
/// half of those of the one before it, and so on.
#[derive(Clone, Copy, Default)]
struct Tried {
    all: (u64, u64),
    few: (u64, u64),
}

/// The end of a trial, or of a time with few workers.
enum Found {
    /// Few workers complete so many calls in a tick of the clock, about as many as all.
    Few(f64),
    /// It is time for another trial.
    Due,
    /// Few are slower, or no request was taken for a moment.
    All,
    /// There is no more work than few workers take, or the context ends.
    NoWork,
}

impl Watch {
    pub(crate) fn new(cores: u32) -> Watch {
        Watch {
            few: FEW.max(cores.saturating_mul(FEW_PER_CORE)),
            is_watched: AtomicBool::new(false),
            not_before: AtomicU64::new(0),
            pause_ns: AtomicU64::new(PAUSE_MIN_NS),
            tried: Mutex::default(),
        }
    }
}

/// Requests that were taken, and when.
struct Reading {
    taken: u64,
    ticks: u64,
}

/// Looks in a row that ended alike.
#[derive(Default)]
struct Streak(u32);

impl Streak {
    /// How many there are, with one more that ends so or not.
    fn count(&mut self, ends_so: bool) -> u32 {
        self.0 = if ends_so { self.0 + 1 } else { 0 };
        self.0
    }
}

impl Shared {
    /// Whether the caller, a worker that was called, is to watch now.
    pub(crate) fn begins_watch(&self) -> bool {
        let watch = &self.watch;
        self.roster.at_work() > watch.few
            && !watch.is_watched.load(Ordering::Relaxed)
            && clock::ticks() >= watch.not_before.load(Ordering::Relaxed)
            && !watch.is_watched.swap(true, Ordering::AcqRel)
    }

    /// The watch of a worker, until it is of no more use.
    pub(crate) fn watch(self: &Arc<Shared>) {
        let watch = &self.watch;
        let mut again_ns = 2 * PAUSE_MIN_NS;
        let found = loop {
            let rate = match self.trial() {
                Found::Few(rate) => rate,
                found => break found,
            };
            watch.pause_ns.store(PAUSE_MIN_NS, Ordering::Relaxed);
            match self.keep_few(rate, again_ns) {
                Found::Due => again_ns = (again_ns * 2).min(PAUSE_MAX_NS),
                found => break found,
            }
        };
        self.set_limit(NO_LIMIT);
        let pause_ns = match found {
            Found::NoWork => 0,
            _ => watch.pause_ns.load(Ordering::Relaxed),
        };
        let longer_ns = (pause_ns * 2).clamp(PAUSE_MIN_NS, PAUSE_MAX_NS);
        watch.pause_ns.store(longer_ns, Ordering::Relaxed);
        let next = clock::ticks().saturating_add(clock::ns_to_ticks(pause_ns));
        watch.not_before.store(next, Ordering::Relaxed);
        watch.is_watched.store(false, Ordering::Release);
    }

    fn set_limit(self: &Arc<Shared>, limit: u32) {
        self.roster.set_limit(limit);
        // Pairs with those of submitters and of workers that rest.
        fence(Ordering::SeqCst);
        if self.has_work() {
            // Where no worker can be started, those at work come to it.
            let _ = self.notify();
        }
    }

    fn reading(&self) -> Reading {
        let queues = self.queues.used(self.priorities());
        Reading {
            taken: queues.map(|queue| queue.taken()).sum(),
            ticks: clock::ticks(),
        }
    }

    /// Lets all and few work in turn; at the end only few may.
    fn trial(self: &Arc<Shared>) -> Found {
        let half = |(calls, ticks)| (calls / 2, ticks / 2);
        let before = *self.watch.tried.lock();
        let (mut all, mut few) = (half(before.all), half(before.few));
        for _ in 0..WINDOWS {
            for (limit, sum) in [(NO_LIMIT, &mut all), (self.watch.few + 1, &mut few)] {
                self.set_limit(limit);
                // Workers come and go.
                std::thread::sleep(NAP);
                let first = self.reading();
                let (mut last, mut stalled) = (self.reading(), Streak::default());
                for _ in 0..WINDOW_NAPS {
                    std::thread::sleep(NAP);
                    let now = self.reading();
                    if self.closing.load(Ordering::Acquire) {
                        return Found::NoWork;
                    }
                    let is_stalled = now.taken == last.taken && self.has_work();
                    if stalled.count(is_stalled) >= STALLED_NAPS {
                        return Found::All;
                    }
                    last = now;
                }
                sum.0 += last.taken - first.taken;
                sum.1 += last.ticks.wrapping_sub(first.ticks);
            }
        }
        *self.watch.tried.lock() = Tried { all, few };
        let rate = |(calls, ticks): (u64, u64)| calls as f64 / ticks.max(1) as f64;
        if all.0.min(few.0) < CALLS_MIN || rate(few) < rate(all) * ENOUGH {
            return Found::All;
        }
        Found::Few(rate(few))
    }

    /// Lets few work, for so long at most.
    fn keep_few(&self, rate: f64, most_ns: u64) -> Found {
        let most = clock::ns_to_ticks(most_ns);
        let first = self.reading();
        let mut last = self.reading();
        let (mut idle, mut stalled, mut slow) =
            (Streak::default(), Streak::default(), Streak::default());
        loop {
            std::thread::sleep(NAP);
            let (now, has_work) = (self.reading(), self.has_work());
            let calls = now.taken - last.taken;
            let expected = rate * now.ticks.wrapping_sub(last.ticks) as f64;
            let is_slow = (calls as f64) < expected * SLOWER;
            if self.closing.load(Ordering::Acquire) || idle.count(!has_work) >= IDLE_NAPS {
                return Found::NoWork;
            }
            if stalled.count(has_work && calls == 0) >= STALLED_NAPS {
                return Found::All;
            }
            if slow.count(has_work && is_slow) >= SLOW_NAPS
                || now.ticks.wrapping_sub(first.ticks) > most
            {
                return Found::Due;
            }
            last = now;
        }
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::{Context, Outcome, Settings};
    use std::sync::Barrier;

    /// A context, and calls that wait for each other, three times as many as few.
    fn calls_that_wait_for_each_other() -> (Context, usize, Arc<Barrier>) {
        let context = Settings::new().workers(0, 0).open().unwrap();
        let count = context.shared.watch.few as usize * 3;
        (context, count, Arc::new(Barrier::new(count)))
    }

    fn submit(context: &Context, barrier: &Arc<Barrier>) {
        let barrier = Arc::clone(barrier);
        let wait = move || {
            barrier.wait();
            Outcome::done(0)
        };
        context.submit(0, 0, wait).unwrap();
    }

    #[test]
    fn a_limit_is_lifted_for_calls_that_wait_for_requests() {
        let (context, count, barrier) = calls_that_wait_for_each_other();
        let shared = &context.shared;
        // As the watcher, which counts as a worker.
        assert!(!shared.watch.is_watched.swap(true, Ordering::AcqRel));
        let few = shared.watch.few;
        shared.set_limit(few);
        (0..count).for_each(|_| submit(&context, &barrier));
        let found = shared.keep_few(0.0, u64::MAX / 2);
        assert!(matches!(found, Found::All), "the calls come to an end");
        assert_eq!(shared.roster.at_work(), few);
        assert_eq!(context.workers(), few);
        shared.set_limit(NO_LIMIT);
        assert_eq!(context.collect(count, count, None, |_| ()), count);
        assert!(context.workers() >= count as u32);
    }

    #[test]
    fn workers_above_the_limit_rest_and_come_back() {
        let (context, count, barrier) = calls_that_wait_for_each_other();
        let shared = &context.shared;
        assert!(!shared.watch.is_watched.swap(true, Ordering::AcqRel));
        (0..count).for_each(|_| submit(&context, &barrier));
        assert_eq!(context.collect(count, count, None, |_| ()), count);
        let few = shared.watch.few;
        shared.set_limit(few);
        let yields = || {
            std::thread::yield_now();
            Outcome::done(0)
        };
        let works = (0..20_000).map(|tag| (tag, yields));
        assert_eq!(context.submit_batch(0, works, |_| ()).unwrap(), 20_000);
        assert_eq!(context.collect(20_000, 20_000, None, |_| ()), 20_000);
        let all = context.workers();
        assert!(all >= count as u32 && context.idle_workers() >= all - few);
        shared.set_limit(NO_LIMIT);
        (0..count).for_each(|_| submit(&context, &barrier));
        assert_eq!(context.collect(count, count, None, |_| ()), count);
    }

    #[test]
    fn a_context_ends_while_workers_rest() {
        let (context, count, barrier) = calls_that_wait_for_each_other();
        let shared = &context.shared;
        assert!(!shared.watch.is_watched.swap(true, Ordering::AcqRel));
        (0..count).for_each(|_| submit(&context, &barrier));
        assert_eq!(context.collect(count, count, None, |_| ()), count);
        shared.set_limit(1);
        let works = (0..1000).map(|tag| (tag, || Outcome::done(0)));
        assert_eq!(context.submit_batch(0, works, |_| ()).unwrap(), 1000);
        context.close();
        assert_eq!(context.collect(1000, 1000, None, |_| ()), 1000);
    }
}
