//! State shared by the connections of a geom: FLUSHes in flight, the number of failed ones, and
//! whether the server is unreachable.
//!
//! A server with several connections has one disk. When that loses writes, the server may report it
//! to one FLUSH only, over one connection, whichever connections the writes came over. So a FLUSH
//! that fails costs the writes of all links that no FLUSH has covered, and those in flight, which
//! the server may have done and lost before it answers them; and a FLUSH counts when all have
//! succeeded that were in flight with it, over any link ([`Overlap`]).

use super::answer_timeout::AnswerTimeout;
use crate::failures::Failures;
use crate::overlap::Overlap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use ugeom_machine::mutex::Mutex;
use ugeom_stack::Losses;

/// The error of FLUSHes after a failed one.
const FAILED: &str =
    "the server failed a FLUSH before, and the writes that it should have covered may be lost";

/// Whose FLUSH it is.
pub(super) enum Flushed {
    /// Of the flight in this slot.
    Flight(u32),
    /// Of another thread: its number, and how many writes it covers.
    Asked(u64, u64),
}

/// FLUSHes in flight that room is made for.
const FLUSHES: usize = 16;

/// The links' common account.
pub(super) struct Together {
    /// FLUSHes that have failed, or may have.
    failures: Failures,
    /// Requests have failed for want of a server, and none has answered since: those that follow
    /// wait for one attempt to connect only.
    gone: AtomicBool,
    pub answer_timeout: AnswerTimeout,
    /// Links with acknowledged writes that no FLUSH has covered.
    unflushed: AtomicUsize,
    links: AtomicU64,
    flushes: Mutex<Flushes>,
}

struct Flushes {
    /// All in flight, with the numbers of their links.
    overlap: Overlap<(u64, Flushed)>,
    /// Those that wait for no other any more, and whether they have succeeded.
    released: Vec<(u64, Flushed, bool)>,
}

impl Flushes {
    fn settle(&mut self) {
        while let Some(((link, flushed), good)) = self.overlap.release() {
            self.released.push((link, flushed, good));
        }
    }
}

impl Together {
    pub fn new(losses: &Arc<Losses>, timeout: Duration) -> Arc<Self> {
        Arc::new(Self {
            failures: Failures::new(losses, FAILED),
            gone: AtomicBool::new(false),
            answer_timeout: AnswerTimeout::new(timeout),
            unflushed: AtomicUsize::new(0),
            links: AtomicU64::new(0),
            flushes: Mutex::new(Flushes {
                overlap: Overlap::new(FLUSHES),
                released: Vec::new(),
            }),
        })
    }

    /// The number of a new link.
    pub fn add(&self) -> u64 {
        self.links.fetch_add(1, Ordering::Relaxed)
    }

    pub fn losses(&self) -> &Losses {
        self.failures.losses()
    }

    /// FLUSHes that have failed over any link.
    pub fn failures(&self) -> &Failures {
        &self.failures
    }

    /// True from the first request that failed for want of a server until one answers.
    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    pub fn set_gone(&self, gone: bool) {
        if self.is_gone() != gone {
            self.gone.store(gone, Ordering::Relaxed);
            if !gone {
                self.answer_timeout.restore();
            }
        }
    }

    /// One link more has acknowledged writes that no FLUSH has covered, or one less.
    pub fn set_unflushed(&self, unflushed: bool) {
        match unflushed {
            true => self.unflushed.fetch_add(1, Ordering::SeqCst),
            false => self.unflushed.fetch_sub(1, Ordering::SeqCst),
        };
    }

    /// A FLUSH is sent; its generation.
    pub fn begin(&self) -> u64 {
        self.flushes.lock().overlap.begin()
    }

    /// A FLUSH of this link was answered well. It is [released](Together::take) when it counts.
    pub fn succeeded(&self, link: u64, generation: u64, flushed: Flushed) {
        let mut flushes = self.flushes.lock();
        flushes.overlap.succeeded(generation, (link, flushed));
        flushes.settle();
    }

    /// A FLUSH has failed. Earlier writes of any link may be gone, and the server may report
    /// success for the next FLUSH.
    pub fn failed(&self, generation: u64) {
        let mut flushes = self.flushes.lock();
        self.failures.failed();
        if self.unflushed.load(Ordering::SeqCst) > 0 {
            // Before one that was in flight beside it is answered.
            self.losses().record(FAILED);
        }
        flushes.overlap.failed(generation);
        flushes.settle();
    }

    /// The connection of this link is gone: its requests in flight are sent again.
    pub fn forget(&self, link: u64) {
        let mut flushes = self.flushes.lock();
        flushes.overlap.retain(|(its, _)| *its != link);
        flushes.released.retain(|(its, ..)| *its != link);
    }

    /// One of this link that waits for no other any more, and whether it has succeeded.
    pub fn take(&self, link: u64) -> Option<(Flushed, bool)> {
        let released = &mut self.flushes.lock().released;
        let at = released.iter().position(|(its, ..)| *its == link)?;
        let (_, flushed, good) = released.remove(at);
        Some((flushed, good))
    }

    /// A link other than this one for which there is something to take.
    pub fn released_of_others(&self, link: Option<u64>) -> Option<u64> {
        let flushes = self.flushes.lock();
        let mut links = flushes.released.iter().map(|(its, ..)| *its);
        links.find(|its| Some(*its) != link)
    }
}
