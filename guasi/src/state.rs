//! The life of a request as one word, so that a worker, a canceller and the owner agree by single
//! exchanges.
//!
//! ```text
//!            begin           end
//!  PENDING ---------> ACTIVE ------> COMPLETE ---+ release
//!     |                 |  ^            |        +--------> FREE (next generation)
//!     | withdraw        +--+         (fetched)   |
//!     +-----------------------------> CANCELED --+
//! ```
//!
//! | bits | meaning |
//! |---|---|
//! | 0 to 2 | the stage |
//! | 3 | `FETCHED`: the owner has it; only then it may be released |
//! | 4 | `SENDING`: a canceller is about to signal the worker, which must not go on meanwhile |
//! | 5 | `ASKED`: the worker was signalled for this request |
//! | 8 to 31 | the worker, while active |
//! | 32 to 63 | the generation |
//!
//! **An interruption reaches its request or none.** The canceller sets `SENDING` on the active
//! request before it signals, and takes it away afterwards; the worker ends the request only
//! without
//! `SENDING`. When it then finds `ASKED`, the signal is already pending for its thread or has been
//! handled, and one system call (see `interrupt::settle`) handles what is pending before the worker
//! takes its next request.

use crate::sync::{AtomicU64, Ordering};

pub(crate) const FREE: u64 = 0;
pub(crate) const PENDING: u64 = 1;
pub(crate) const ACTIVE: u64 = 2;
pub(crate) const COMPLETE: u64 = 3;
pub(crate) const CANCELED: u64 = 4;
const STAGE: u64 = 7;
pub(crate) const FETCHED: u64 = 1 << 3;
pub(crate) const SENDING: u64 = 1 << 4;
pub(crate) const ASKED: u64 = 1 << 5;
const WORKER_SHIFT: u32 = 8;
const WORKER_MASK: u64 = (1 << 24) - 1;

/// The worker that is none: the request is with the ring.
#[cfg(not(all(loom, test)))]
pub(crate) const RING: u32 = WORKER_MASK as u32;

#[derive(Default)]
pub(crate) struct State(AtomicU64);

/// The result of a cancellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Withdrawal {
    /// It will never run, and now belongs to the canceller.
    Withdrawn,
    /// It runs on this worker, which has to be signalled, and `sent` called.
    Signal(u32),
    /// A thread is signalling, or has.
    Asked,
    /// It has ended before.
    Ended,
    /// It is no more.
    Gone,
}

pub(crate) fn stage(word: u64) -> u64 {
    word & STAGE
}

pub(crate) fn generation(word: u64) -> u32 {
    (word >> 32) as u32
}

/// The word of a request while a worker runs it and no cancellation was asked for.
pub(crate) fn active(generation: u32, worker: u32) -> u64 {
    word(generation, ACTIVE | u64::from(worker) << WORKER_SHIFT)
}

fn word(generation: u32, low: u64) -> u64 {
    u64::from(generation) << 32 | low
}

impl State {
    #[cfg(all(loom, test))]
    pub(crate) fn new() -> State {
        State(AtomicU64::new(0))
    }

    pub(crate) fn load(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// A filled slot becomes a request that waits. For the submitter, who owns the slot alone.
    /// Returns its generation.
    pub(crate) fn submit(&self) -> u32 {
        let generation = generation(self.0.load(Ordering::Relaxed));
        self.0.store(word(generation, PENDING), Ordering::Release);
        generation
    }

    /// A worker takes the request; false when it was withdrawn before.
    pub(crate) fn begin(&self, generation: u32, worker: u32) -> bool {
        // Acquire: what the submitter wrote into the slot.
        self.exchange(
            word(generation, PENDING),
            active(generation, worker),
            Ordering::Acquire,
        )
    }

    /// The worker ends the request. False when a canceller is signalling or has: then `end_asked`.
    pub(crate) fn end(&self, generation: u32, worker: u32) -> bool {
        // Release: the result goes before.
        self.exchange(
            active(generation, worker),
            word(generation, COMPLETE),
            Ordering::Release,
        )
    }

    /// The worker waits until the canceller has sent its signal, lets `settle` make sure that it is
    /// handled, and ends the request.
    #[cold]
    pub(crate) fn end_asked(&self, generation: u32, settle: impl FnOnce()) {
        while self.0.load(Ordering::Acquire) & SENDING != 0 {
            relax();
        }
        settle();
        self.0.store(word(generation, COMPLETE), Ordering::Release);
    }

    /// A canceller wants the request to end.
    pub(crate) fn withdraw(&self, of: u32) -> Withdrawal {
        let mut now = self.0.load(Ordering::Acquire);
        loop {
            if generation(now) != of {
                return Withdrawal::Gone;
            }
            let (next, answer) = match stage(now) {
                FREE => return Withdrawal::Gone,
                PENDING => (word(of, CANCELED), Withdrawal::Withdrawn),
                ACTIVE if now & (SENDING | ASKED) != 0 => return Withdrawal::Asked,
                ACTIVE => {
                    let worker = (now >> WORKER_SHIFT & WORKER_MASK) as u32;
                    (now | SENDING, Withdrawal::Signal(worker))
                }
                _ => return Withdrawal::Ended,
            };
            let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
            match self.0.compare_exchange_weak(now, next, success, failure) {
                Ok(_) => return answer,
                Err(other) => now = other,
            }
        }
    }

    /// The signal that `withdraw` asked for has been sent.
    pub(crate) fn sent(&self) {
        // From SENDING to ASKED in one step. Release: the signal was sent before.
        self.0.fetch_xor(SENDING | ASKED, Ordering::Release);
    }

    /// Whether an early end was asked for.
    #[cfg(not(all(loom, test)))]
    pub(crate) fn is_asked(&self) -> bool {
        self.load() & (SENDING | ASKED) != 0
    }

    /// A worker gives the request back, to be begun once more; false when its end was asked for.
    #[cfg(not(all(loom, test)))]
    pub(crate) fn hand_back(&self, generation: u32, worker: u32) -> bool {
        self.exchange(
            active(generation, worker),
            word(generation, PENDING),
            Ordering::AcqRel,
        )
    }

    /// The owner has it now.
    pub(crate) fn fetched(&self) -> u64 {
        self.0.fetch_or(FETCHED, Ordering::Acquire)
    }

    /// The owner gives it up; false when it is not this generation's, or was not fetched, or was
    /// released before.
    pub(crate) fn release(&self, of: u32) -> bool {
        let now = self.0.load(Ordering::Acquire);
        generation(now) == of
            && now & FETCHED != 0
            && self.exchange(now, word(of.wrapping_add(1), FREE), Ordering::AcqRel)
    }

    /// The owner fetches and releases in one: it holds the request alone, ended, as `word`.
    #[cfg(not(all(loom, test)))]
    pub(crate) fn recycle(&self, now: u64) {
        let next = word(generation(now).wrapping_add(1), FREE);
        self.0.store(next, Ordering::Release);
    }

    /// The submitter takes back a request that no worker can run; false when one has begun.
    pub(crate) fn take_back(&self, of: u32) -> bool {
        self.exchange(
            word(of, PENDING),
            word(of.wrapping_add(1), FREE),
            Ordering::AcqRel,
        )
    }

    fn exchange(&self, from: u64, to: u64, success: Ordering) -> bool {
        let failure = Ordering::Relaxed;
        self.0.compare_exchange(from, to, success, failure).is_ok()
    }
}

/// Another thread is between two instructions; it may have lost its processor there.
fn relax() {
    #[cfg(all(loom, test))]
    loom::thread::yield_now();
    #[cfg(not(all(loom, test)))]
    std::thread::yield_now();
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_request_goes_through_its_stages_once() {
        let state = State::default();
        let generation = state.submit();
        assert!(!state.release(generation));
        assert!(state.begin(generation, 7));
        assert!(!state.begin(generation, 8));
        assert!(!state.end(generation, 8));
        assert!(state.end(generation, 7));
        assert!(!state.release(generation), "it was not fetched");
        state.fetched();
        assert!(state.release(generation));
        assert!(!state.release(generation), "twice");
        assert_eq!(state.submit(), generation + 1);
    }

    #[test]
    fn what_is_withdrawn_never_begins() {
        let state = State::default();
        let generation = state.submit();
        assert_eq!(state.withdraw(generation), Withdrawal::Withdrawn);
        assert!(!state.begin(generation, 0));
        assert_eq!(state.withdraw(generation), Withdrawal::Ended);
        assert_eq!(state.withdraw(generation + 1), Withdrawal::Gone);
    }

    #[test]
    fn an_active_request_is_signalled_once_and_ends_after_the_signal() {
        let state = State::default();
        let generation = state.submit();
        assert!(state.begin(generation, 3));
        assert_eq!(state.withdraw(generation), Withdrawal::Signal(3));
        assert_eq!(state.withdraw(generation), Withdrawal::Asked);
        assert!(!state.end(generation, 3), "the signal is on its way");
        state.sent();
        assert_eq!(state.withdraw(generation), Withdrawal::Asked);
        let mut settled = false;
        state.end_asked(generation, || settled = true);
        assert!(settled);
        assert_eq!(stage(state.load()), COMPLETE);
    }
}
