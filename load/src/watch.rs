//! Whether and how the time of requests is taken.

use ugeom_machine::clock;
use ugeom_measure::Histogram;

/// Takes times, or does not: one copy of the loop each.
pub(super) trait Watch {
    /// A reading of the clock, ticks; 0 when no times are taken.
    fn now(&self) -> u64;
    /// A request took from one reading to the other.
    fn took(&mut self, from_ticks: u64, to_ticks: u64);
}

/// Takes no times.
pub(super) struct Unwatched;

impl Watch for Unwatched {
    #[inline(always)]
    fn now(&self) -> u64 {
        0
    }

    #[inline(always)]
    fn took(&mut self, _from_ticks: u64, _to_ticks: u64) {}
}

/// Takes the time of every request.
pub(super) struct Watched<'a>(pub &'a mut Histogram);

impl Watch for Watched<'_> {
    #[inline(always)]
    fn now(&self) -> u64 {
        clock::ticks()
    }

    #[inline(always)]
    fn took(&mut self, from_ticks: u64, to_ticks: u64) {
        // A thread that moves to another core may see the counter of that one a little behind.
        let ticks = to_ticks.saturating_sub(from_ticks);
        self.0.record(clock::ticks_to_ns(ticks));
    }
}
