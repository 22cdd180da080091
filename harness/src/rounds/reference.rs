//! The reference loop: work in registers alone, done right before and right after every run. Its
//! time is that of the core and of nothing else, so it shows the phases in which the core is slower
//! (another thread on the same core, a lower clock, time that the hypervisor took), which neither
//! CPU time nor steal time show. It decides which runs are valid; the result of a run never does.

use std::hint::black_box;
use ugeom_machine::clock;

/// Steps of the loop: about 60 us, long beside an interrupt and short beside a run.
const STEPS: u32 = 30_000;

/// A run is valid when neither reading beside it is slower than the fastest decile of all readings
/// by more than this share.
const TOLERANCE: f64 = 0.05;

/// The fastest decile has no meaning before there are so many readings.
const READINGS_MIN: usize = 10;

/// Runs the loop once; returns its time, ns.
pub(super) fn now_ns() -> u64 {
    let start_ns = clock::now_ns();
    let mut state = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..STEPS {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    black_box(state);
    clock::now_ns().saturating_sub(start_ns)
}

/// Readings of the reference loop, and what they say of single runs.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    readings_ns: Vec<u64>,
}

impl Reference {
    /// Of readings that were taken elsewhere: in earlier processes.
    pub fn of(readings_ns: Vec<u64>) -> Self {
        Self { readings_ns }
    }

    /// Adds the readings around a run.
    pub(super) fn add(&mut self, around_ns: [u64; 2]) {
        self.readings_ns.extend(around_ns);
    }

    /// The fastest decile, ns; none before there are enough readings.
    pub fn fast_ns(&self) -> Option<u64> {
        if self.readings_ns.len() < READINGS_MIN {
            return None;
        }
        let mut sorted = self.readings_ns.clone();
        let decile = sorted.len() / 10;
        Some(*sorted.select_nth_unstable(decile).1)
    }

    /// The judge of runs; it takes every run for valid while there are too few readings.
    pub fn judge(&self) -> Judge {
        Judge {
            limit_ns: self
                .fast_ns()
                .map(|fast_ns| fast_ns as f64 * (1.0 + TOLERANCE)),
        }
    }
}

/// Says which runs are valid.
#[derive(Clone, Copy, Debug)]
pub struct Judge {
    limit_ns: Option<f64>,
}

impl Judge {
    /// Whether the core was as fast as it can be on both sides of a run.
    pub fn is_valid(&self, around_ns: Option<[u64; 2]>) -> bool {
        match (self.limit_ns, around_ns) {
            (Some(limit_ns), Some(around_ns)) => {
                around_ns.into_iter().all(|ns| ns as f64 <= limit_ns)
            }
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_in_a_slow_phase_is_not_valid_and_few_readings_judge_nothing() {
        let few = Reference::of(vec![100; 9]);
        assert!(few.judge().is_valid(Some([1000, 1000])));
        let mut many = Reference::of(vec![100; 90]);
        many.add([150, 150]);
        let judge = many.judge();
        assert!(judge.is_valid(Some([100, 105])));
        assert!(!judge.is_valid(Some([100, 106])));
        assert!(!judge.is_valid(Some([130, 100])));
        assert!(judge.is_valid(None), "a simulated machine has no core");
    }

    #[test]
    fn the_loop_takes_time() {
        assert!(now_ns() > 1000);
    }
}
