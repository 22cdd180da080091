//! The null floor: the time of measuring nothing, on this machine and at this moment.
//!
//! Every round begins with it, so that a result states the smallest step that is not the cost of
//! the loop around it and of the clock.

use serde::{Deserialize, Serialize};
use std::hint::black_box;
use ugeom_machine::clock;

/// Batches of which the middle one counts: one that lost its core meanwhile does not.
const BATCHES: usize = 5;

/// Turns of the empty loop in a batch: a few microseconds.
const TURNS: u64 = 10_000;

/// Readings of the clock in a batch: some tens of microseconds.
const READINGS: u64 = 1000;

/// The lower bound of every measurement on this machine: an empty loop, and the clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NullFloor {
    /// A turn of an empty loop, ns.
    pub loop_ns: f64,
    /// Reading the clock that runs are timed with, ns.
    pub clock_ns: f64,
}

impl NullFloor {
    /// Measures it; about a quarter of a millisecond.
    pub fn now() -> Self {
        Self {
            loop_ns: middle(TURNS, || {}),
            clock_ns: middle(READINGS, || {
                black_box(clock::now_ns());
            }),
        }
    }

    /// The mean of several; none of none.
    pub fn mean(floors: &[Self]) -> Option<Self> {
        if floors.is_empty() {
            return None;
        }
        let of =
            |part: fn(&Self) -> f64| floors.iter().map(part).sum::<f64>() / floors.len() as f64;
        Some(Self {
            loop_ns: of(|one| one.loop_ns),
            clock_ns: of(|one| one.clock_ns),
        })
    }
}

/// The time of one call of `work`, ns, in the middle one of [`BATCHES`] batches.
fn middle(turns: u64, mut work: impl FnMut()) -> f64 {
    let mut batches: [f64; BATCHES] = std::array::from_fn(|_| {
        let start_ns = clock::now_ns();
        for turn in 0..turns {
            black_box(turn);
            work();
        }
        (clock::now_ns() - start_ns) as f64 / turns as f64
    });
    batches.sort_by(f64::total_cmp);
    batches[BATCHES / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_reads_the_clock_takes_longer_than_an_empty_one() {
        let floor = NullFloor::now();
        assert!(floor.loop_ns > 0.0, "{floor:?}");
        assert!(floor.clock_ns > floor.loop_ns, "{floor:?}");
    }

    #[test]
    fn the_mean_is_that_of_each_part() {
        let floor = |loop_ns, clock_ns| NullFloor { loop_ns, clock_ns };
        assert_eq!(
            NullFloor::mean(&[floor(1.0, 20.0), floor(3.0, 30.0)]),
            Some(floor(2.0, 25.0))
        );
        assert_eq!(NullFloor::mean(&[]), None);
    }
}
