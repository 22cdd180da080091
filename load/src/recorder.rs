//! The recording of requests while they are made.

use super::door::Request;
use ugeom_machine::clock;
use ugeom_measure::Histogram;

/// When a request was taken up, handed over and ended, in the units of its recorder's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// It was taken up.
    pub begun: u64,
    /// It was handed over, as one of a batch.
    pub issued: u64,
    /// It, or the first of its batch, was seen to have ended.
    pub ended: u64,
}

/// Notes requests, or does not: one copy of a loop each.
pub trait Recorder {
    /// A reading of the clock; 0 when no times are taken.
    fn now(&mut self) -> u64;

    /// A request took so long.
    fn took(&mut self, request: &Request, times: Times);

    /// The clock was read, and `in_flight` requests were with the door since it was read before.
    #[inline(always)]
    fn seen(&mut self, now: u64, in_flight: usize) {
        let _ = (now, in_flight);
    }

    /// All was handed over that can be: whether every slot is in use, and whether there are more
    /// requests to come; `done` of them have ended.
    #[inline(always)]
    fn filled(&mut self, is_full: bool, has_more: bool, done: u64) {
        let _ = (is_full, has_more, done);
    }
}

/// A recorder for loops without latencies: it reads no clock.
pub struct Unwatched;

impl Recorder for Unwatched {
    #[inline(always)]
    fn now(&mut self) -> u64 {
        0
    }

    #[inline(always)]
    fn took(&mut self, _request: &Request, _times: Times) {}
}

/// Takes the time of every request.
pub struct Watched<'a>(pub &'a mut Histogram);

impl Recorder for Watched<'_> {
    #[inline(always)]
    fn now(&mut self) -> u64 {
        clock::ticks()
    }

    #[inline(always)]
    fn took(&mut self, _request: &Request, times: Times) {
        // A thread that moves to another core may see the counter of that one a little behind.
        let ticks = times.ended.saturating_sub(times.begun);
        self.0.record(clock::ticks_to_ns(ticks));
    }
}
