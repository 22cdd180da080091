//! The statistics while the server is watched, and the rate of samples.

use super::figures;
use super::message::{Answer, Figures, Timing};
use crate::shown::Shown;
use std::sync::Arc;
use ugeom_machine::clock;
use ugeom_stack::{Stack, Statistics};

/// A sample that is younger serves every client, ns.
const FRESH_NS: u64 = 20_000_000;

/// How many requests a second are timed at most, as far as the load is known.
const SAMPLES_PER_S: u64 = 4_000;

/// One request in so many is timed while the load is not known.
const ONE_IN_AT_FIRST: u32 = 16;

/// However large the load is, one request in so many is timed.
const ONE_IN_MAX: u32 = 1024;

/// The statistics, and the last observation.
pub(crate) struct Watch {
    stack: Stack,
    shown: Shown,
    /// The statistics before the first sample.
    before: Statistics,
    clock_ns: f64,
    /// Requests that had ended at the last look, and when that was.
    seen: Option<(u64, u64)>,
    /// The last answer, and whether consumers are in it.
    last: Option<(u64, bool, Arc<str>)>,
}

impl Watch {
    pub(crate) fn new(stack: Stack, shown: Shown) -> Self {
        let before = stack.options().statistics;
        Self {
            stack,
            shown,
            before,
            clock_ns: clock_cost_ns(),
            seen: None,
            last: None,
        }
    }

    /// Takes a sample, or returns the latest one.
    pub(crate) fn figures(&mut self, consumers: bool) -> Arc<str> {
        let begin_ns = clock::now_ns();
        if let Some((at_ns, with, text)) = &self.last
            && *with == consumers
            && begin_ns.saturating_sub(*at_ns) < FRESH_NS
        {
            return Arc::clone(text);
        }
        let figures = self.look(consumers);
        let text: Arc<str> = Answer::Figures(Box::new(figures)).line().into();
        self.last = Some((begin_ns, consumers, Arc::clone(&text)));
        text
    }

    /// Looks, and adapts the share of timed requests to the load.
    pub(crate) fn look(&mut self, consumers: bool) -> Figures {
        let begin_ns = clock::now_ns();
        let look = self.stack.look();
        let look_ns = clock::now_ns().saturating_sub(begin_ns);
        self.follow(figures::most_ended(&look), begin_ns);
        let statistics = self.stack.options().statistics;
        let timing = Timing {
            counts: statistics != Statistics::Off,
            one_in: match statistics {
                Statistics::Time { one_in } => one_in,
                _ => 0,
            },
            clock_ns: self.clock_ns,
            look_ns,
        };
        figures::of(&look, &self.shown, begin_ns, timing, consumers)
    }

    /// Chooses how many requests are timed, by how many there were since the last look. A server
    /// that was started with times, or without counts, has them chosen already.
    fn follow(&mut self, ended: u64, at_ns: u64) {
        if self.before != Statistics::Counts {
            return;
        }
        let one_in = match self.seen.replace((ended, at_ns)) {
            None => ONE_IN_AT_FIRST,
            Some((before, since_ns)) => {
                let ns = u128::from(at_ns.saturating_sub(since_ns).max(1));
                let rate = u128::from(ended.saturating_sub(before)) * 1_000_000_000 / ns;
                sampling(u64::try_from(rate).unwrap_or(u64::MAX))
            }
        };
        let wanted = Statistics::Time { one_in };
        if self.stack.options().statistics != wanted {
            self.stack.set_statistics(wanted);
        }
    }

    /// The server is not watched any more.
    pub(crate) fn rest(&mut self) {
        self.seen = None;
        self.last = None;
        // The choice of another watch stays.
        let chosen = self.before == Statistics::Counts;
        if chosen && self.stack.options().statistics != self.before {
            self.stack.set_statistics(self.before);
        }
    }
}

/// Of how many requests one is timed when there are `rate` of them a second: a power of four, so
/// that it seldom changes.
fn sampling(rate: u64) -> u32 {
    let mut one_in = 1;
    while one_in < ONE_IN_MAX && rate / u64::from(one_in) > SAMPLES_PER_S {
        one_in *= 4;
    }
    one_in
}

/// The cost of a reading of the clock: the least of many short loops.
fn clock_cost_ns() -> f64 {
    const READINGS: u64 = 64;
    let loops = (0..64).map(|_| {
        let begin = clock::ticks();
        let last = (0..READINGS).fold(begin, |_, _| std::hint::black_box(clock::ticks()));
        clock::ticks_to_ns(last.saturating_sub(begin))
    });
    loops.min().unwrap_or(0) as f64 / READINGS as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_follows_the_load() {
        assert_eq!(sampling(0), 1);
        assert_eq!(sampling(4_000), 1);
        assert_eq!(sampling(5_000), 4);
        assert_eq!(sampling(60_000), 16);
        assert_eq!(sampling(200_000), 64);
        assert_eq!(sampling(1_000_000), 256);
        assert_eq!(sampling(u64::MAX), ONE_IN_MAX);
        for rate in [10_000, 100_000, 1_000_000, 3_000_000] {
            let samples = rate / u64::from(sampling(rate));
            assert!((1_000..=4_000).contains(&samples), "{rate}: {samples}");
        }
    }

    #[test]
    fn a_reading_of_the_clock_costs_something() {
        let cost_ns = clock_cost_ns();
        assert!(cost_ns > 0.0, "{cost_ns}");
    }
}
