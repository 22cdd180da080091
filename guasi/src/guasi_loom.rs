//! Queue, roster, completions and the state of a request under every interleaving that matters, as
//! the model checker loom enumerates them:
//! `RUSTFLAGS="--cfg loom" cargo test -p ugeom-guasi --release --lib loom`.
//!
//! A lost wake-up shows as a deadlock, a request that runs twice or never as a failed assertion, a
//! missing ordering as a race on the payload cell.

use std::time::Duration;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use crate::done::{Done, Take};
use crate::queue::{Entry, Queue};
use crate::roster::{NO_LIMIT, Roster, Seat, Summoned, Woken};
use crate::state::{self, State, Withdrawal};
use crate::sync::{AtomicU32, Ordering, fence};

fn entry(slot: u32) -> Entry {
    Entry {
        slot,
        generation: 9,
    }
}

/// A model of threads that each take several locks: two preemptions, which loom advises as the
/// least.
fn two_preemptions(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(model);
}

#[test]
fn loom_two_workers_take_each_entry_once() {
    loom::model(|| {
        let queue = Arc::new(Queue::new(2).unwrap());
        let payload = Arc::new([UnsafeCell::new(0), UnsafeCell::new(0)]);
        let worker = |queue: Arc<Queue>, payload: Arc<[UnsafeCell<u32>; 2]>| {
            move || {
                let entry = queue.pop()?;
                // SAFETY: an entry is taken once, so that the cell is this thread's.
                payload[entry.slot as usize].with_mut(|cell| unsafe { *cell += 1 });
                Some(entry.slot)
            }
        };
        let other = thread::spawn(worker(Arc::clone(&queue), Arc::clone(&payload)));
        for cell in payload.iter() {
            // SAFETY: not submitted yet.
            cell.with_mut(|cell| unsafe { *cell = 10 });
        }
        assert!(queue.push(&[entry(0), entry(1)]));
        let mine = worker(Arc::clone(&queue), Arc::clone(&payload))();
        let theirs = other.join().unwrap();
        assert!(mine.is_some());
        assert_ne!(mine, theirs);
    });
}

#[test]
fn loom_a_cell_is_filled_again_only_after_it_was_read() {
    loom::model(|| {
        let queue = Arc::new(Queue::new(1).unwrap());
        assert!(queue.push(&[entry(1)]));
        let taker = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.pop())
        };
        let pushed = queue.push(&[entry(2)]);
        let first = taker.join().unwrap();
        assert_eq!(first, Some(entry(1)));
        assert_eq!(queue.pop(), pushed.then(|| entry(2)));
    });
}

/// State shared by the models of sleeping workers.
struct Floor {
    queue: Queue,
    roster: Roster,
    taken: AtomicU32,
}

impl Floor {
    fn new(searching_max: u32) -> Arc<Floor> {
        Arc::new(Floor {
            queue: Queue::new(4).unwrap(),
            roster: Roster::new(searching_max),
            taken: AtomicU32::new(0),
        })
    }

    fn has_work(&self) -> bool {
        !self.queue.is_empty()
    }

    fn summon(&self) {
        // All workers that may be are started: it wakes one or leaves it.
        let summoned = self.roster.summon(0, || self.has_work());
        assert_eq!(summoned, Summoned::Settled);
    }

    fn submit(&self, slot: u32) {
        assert!(self.queue.push(&[entry(slot)]));
        if self.roster.needs_summons() {
            self.summon();
        }
    }

    /// A worker as in `shared`, until it has taken `wanted` entries.
    fn work(&self, seat: &std::sync::Arc<Seat>, wanted: u32) {
        assert!(seat.number < 2, "two workers at most");
        let (mut searching, mut mine) = (false, 0);
        while mine < wanted {
            if !searching && self.roster.has_surplus() {
                let rested = self.roster.rest(seat, Duration::MAX, 0, || false);
                searching = rested == Some(Woken::Called);
            }
            if self.queue.pop().is_some() {
                mine += 1;
                self.taken.fetch_add(1, Ordering::Relaxed);
                if std::mem::take(&mut searching) && self.roster.found_work(|| self.has_work()) {
                    self.summon();
                }
                continue;
            }
            if std::mem::take(&mut searching) {
                self.roster.stop_search();
            } else if self.roster.try_search() {
                searching = true;
                continue;
            }
            let idle_limit = Duration::MAX;
            match self.roster.sleep(seat, idle_limit, 0, || self.has_work()) {
                Woken::Called => searching = true,
                Woken::Leave => unreachable!("it has no limit"),
            }
        }
        if searching {
            self.roster.stop_search();
        }
    }

    /// Two workers that take an entry each.
    fn two_workers(floor: &Arc<Floor>) -> [thread::JoinHandle<()>; 2] {
        [0, 1].map(|number| {
            let floor = Arc::clone(floor);
            thread::spawn(move || floor.work(&std::sync::Arc::new(Seat::new(number)), 1))
        })
    }
}

#[test]
fn loom_no_submission_is_left_to_sleeping_workers() {
    loom::model(|| {
        let floor = Floor::new(1);
        let worker = {
            let floor = Arc::clone(&floor);
            thread::spawn(move || floor.work(&std::sync::Arc::new(Seat::new(0)), 2))
        };
        floor.submit(0);
        floor.submit(1);
        worker.join().unwrap();
        assert_eq!(floor.taken.load(Ordering::Relaxed), 2);
    });
}

#[test]
fn loom_two_submitters_leave_nothing_behind() {
    two_preemptions(|| {
        let floor = Floor::new(1);
        let worker = {
            let floor = Arc::clone(&floor);
            thread::spawn(move || floor.work(&std::sync::Arc::new(Seat::new(0)), 2))
        };
        let other = {
            let floor = Arc::clone(&floor);
            thread::spawn(move || floor.submit(0))
        };
        floor.submit(1);
        other.join().unwrap();
        worker.join().unwrap();
    });
}

#[test]
fn loom_two_sleeping_workers_both_get_theirs() {
    two_preemptions(|| {
        let floor = Floor::new(0);
        let workers = Floor::two_workers(&floor);
        assert!(floor.queue.push(&[entry(0), entry(1)]));
        if floor.roster.needs_summons() {
            floor.summon();
        }
        for worker in workers {
            worker.join().unwrap();
        }
    });
}

/// A searcher that gives up may find work of two submissions that relied on it, and then blocks in
/// the first.
#[test]
fn loom_work_that_is_found_before_a_sleep_calls_the_next_worker() {
    two_preemptions(|| {
        let floor = Floor::new(1);
        let workers = Floor::two_workers(&floor);
        floor.submit(0);
        floor.submit(1);
        for worker in workers {
            worker.join().unwrap();
        }
    });
}

/// A worker that is done with its entry is in a call that does not return, and counts as at work.
#[test]
fn loom_a_lifted_limit_leaves_no_work_to_workers_that_rest() {
    two_preemptions(|| {
        let floor = Floor::new(0);
        floor.roster.workers.store(2, Ordering::Relaxed);
        floor.roster.set_limit(1);
        let workers = Floor::two_workers(&floor);
        floor.submit(0);
        floor.submit(1);
        floor.roster.set_limit(NO_LIMIT);
        fence(Ordering::SeqCst);
        if floor.has_work() && floor.roster.needs_summons() {
            floor.summon();
        }
        for worker in workers {
            worker.join().unwrap();
        }
    });
}

/// A submitter that finds the limit reached leaves its work to a worker that is not yet asleep.
#[test]
fn loom_work_at_the_limit_is_taken_by_workers_that_are_at_work() {
    two_preemptions(|| {
        let floor = Floor::new(0);
        floor.roster.workers.store(1, Ordering::Relaxed);
        floor.roster.set_limit(1);
        let worker = {
            let floor = Arc::clone(&floor);
            thread::spawn(move || floor.work(&std::sync::Arc::new(Seat::new(0)), 2))
        };
        floor.submit(0);
        floor.submit(1);
        worker.join().unwrap();
    });
}

fn fetch(done: &Done, wanted: usize) -> Vec<u32> {
    let mut got = Vec::new();
    loop {
        match done.take(1, (wanted, wanted), |slot| got.push(slot), |_| {}) {
            Take::Taken(_) => return got,
            Take::Only(seen) => done.sleep(1, wanted - seen, seen, |sleepers, count| {
                sleepers.wait(count, None);
            }),
        }
    }
}

#[test]
fn loom_a_fetcher_that_waits_for_two_gets_both() {
    loom::model(|| {
        let done = Arc::new(Done::new(1, 2).unwrap());
        let workers = [0, 1].map(|slot| {
            let done = Arc::clone(&done);
            thread::spawn(move || done.push(0, slot))
        });
        let mut got = fetch(&done, 2);
        got.sort_unstable();
        assert_eq!(got, [0, 1]);
        for worker in workers {
            worker.join().unwrap();
        }
    });
}

#[test]
fn loom_two_fetchers_both_get_one() {
    loom::model(|| {
        let done = Arc::new(Done::new(1, 2).unwrap());
        let other = {
            let done = Arc::clone(&done);
            thread::spawn(move || fetch(&done, 1))
        };
        let worker = {
            let done = Arc::clone(&done);
            thread::spawn(move || {
                done.push(0, 0);
                done.push(0, 1);
            })
        };
        let mine = fetch(&done, 1);
        let theirs = other.join().unwrap();
        worker.join().unwrap();
        assert_ne!(mine, theirs);
    });
}

#[test]
fn loom_cancelling_and_beginning_have_one_winner() {
    loom::model(|| {
        let state = Arc::new(State::new());
        let payload = Arc::new(UnsafeCell::new(1));
        let generation = state.submit();
        let worker = {
            let (state, payload) = (Arc::clone(&state), Arc::clone(&payload));
            thread::spawn(move || {
                let began = state.begin(generation, 5);
                if began {
                    // SAFETY: the beginning thread has the payload.
                    payload.with_mut(|cell| unsafe { *cell += 1 });
                    if !state.end(generation, 5) {
                        state.end_asked(generation, || {});
                    }
                }
                began
            })
        };
        let withdrawal = state.withdraw(generation);
        match withdrawal {
            // SAFETY: the withdrawing thread has the payload.
            Withdrawal::Withdrawn => payload.with_mut(|cell| unsafe { *cell += 1 }),
            Withdrawal::Signal(worker) => {
                assert_eq!(worker, 5);
                state.sent();
            }
            Withdrawal::Ended => {}
            other => panic!("{other:?}"),
        }
        let began = worker.join().unwrap();
        assert_eq!(began, withdrawal != Withdrawal::Withdrawn);
        let ended = state::stage(state.load());
        let expected = if began {
            state::COMPLETE
        } else {
            state::CANCELED
        };
        assert_eq!(ended, expected);
    });
}

#[test]
fn loom_a_signal_is_sent_before_its_request_ends() {
    loom::model(|| {
        let state = Arc::new(State::new());
        // Signals that the worker's thread has received: written by the canceller, read by the
        // worker when it settles.
        let signals = Arc::new(UnsafeCell::new(0));
        let generation = state.submit();
        assert!(state.begin(generation, 5));
        let canceller = {
            let (state, signals) = (Arc::clone(&state), Arc::clone(&signals));
            thread::spawn(move || {
                if state.withdraw(generation) == Withdrawal::Signal(5) {
                    // SAFETY: the worker reads it after `sent` only.
                    signals.with_mut(|cell| unsafe { *cell += 1 });
                    state.sent();
                }
            })
        };
        if !state.end(generation, 5) {
            state.end_asked(generation, || {
                // SAFETY: the canceller has written before `sent`.
                signals.with(|cell| assert_eq!(unsafe { *cell }, 1));
            });
        }
        canceller.join().unwrap();
    });
}

#[test]
fn loom_a_request_is_released_once() {
    loom::model(|| {
        let state = Arc::new(State::new());
        let generation = state.submit();
        assert!(state.begin(generation, 5) && state.end(generation, 5));
        let other = {
            let state = Arc::clone(&state);
            thread::spawn(move || state.release(generation))
        };
        let before = state.fetched() & state::FETCHED;
        assert_eq!(before, 0);
        let mine = state.release(generation);
        // The other one may have come before it was fetched.
        assert_ne!(mine, other.join().unwrap());
        assert_eq!(state::generation(state.load()), generation + 1);
    });
}

#[test]
fn loom_what_is_taken_back_does_not_begin() {
    loom::model(|| {
        let state = Arc::new(State::new());
        let generation = state.submit();
        let worker = {
            let state = Arc::clone(&state);
            thread::spawn(move || state.begin(generation, 5))
        };
        let taken_back = state.take_back(generation);
        assert_ne!(worker.join().unwrap(), taken_back);
    });
}
