//! Readings of the reference loop ([`super::loops`]) decide whether a run is valid; the result of a
//! run never does.

use super::Sample;
use std::collections::BTreeMap;

/// A run is valid when neither reading beside it is slower than the fastest decile of all readings
/// by more than this share.
const TOLERANCE: f64 = 0.05;

/// The fastest decile has no meaning before there are so many readings.
const READINGS_MIN: usize = 10;

/// Readings of the reference loop, and their verdict on single runs. Those on one core and those on
/// several are not compared: processors that share a core are slower together.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    /// By the number of cores.
    readings_ns: BTreeMap<u32, Vec<u64>>,
}

impl Reference {
    /// Of the readings beside samples.
    pub fn of<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Self {
        let mut reference = Self::default();
        samples.into_iter().for_each(|sample| reference.add(sample));
        reference
    }

    /// Adds the readings around a run.
    pub(super) fn add(&mut self, sample: &Sample) {
        if let Some(around_ns) = sample.reference_ns {
            let known = self.readings_ns.entry(sample.reference_cores).or_default();
            known.extend(around_ns);
        }
    }

    /// The fastest decile on so many cores, ns; none before there are enough readings.
    pub(crate) fn fast_ns(&self, cores: u32) -> Option<u64> {
        let readings = self.readings_ns.get(&cores)?;
        if readings.len() < READINGS_MIN {
            return None;
        }
        let mut sorted = readings.clone();
        let decile = sorted.len() / 10;
        Some(*sorted.select_nth_unstable(decile).1)
    }

    /// The judge of runs; it takes every run for valid while there are too few readings.
    pub fn judge(&self) -> Judge {
        let known = self.readings_ns.keys();
        let fast_ns = known.filter_map(|cores| Some((*cores, self.fast_ns(*cores)?)));
        Judge {
            fast_ns: fast_ns.collect(),
        }
    }
}

/// Says which runs are valid.
#[derive(Clone, Debug, Default)]
pub struct Judge {
    /// The fastest decile, by the number of cores, ns.
    fast_ns: BTreeMap<u32, u64>,
}

impl Judge {
    /// The same judge, if readings on one core were as fast as this in earlier processes.
    #[must_use]
    pub(super) fn knowing(mut self, fast_ns: Option<u64>) -> Self {
        if let Some(fast_ns) = fast_ns {
            let own = self.fast_ns.entry(1).or_insert(fast_ns);
            *own = fast_ns.min(*own);
        }
        self
    }

    /// Whether the cores were as fast as they can be on both sides of a run.
    pub(crate) fn is_valid(&self, sample: &Sample) -> bool {
        let fast_ns = self.fast_ns.get(&sample.reference_cores);
        match (fast_ns, sample.reference_ns) {
            (Some(fast_ns), Some(around_ns)) => {
                let limit_ns = *fast_ns as f64 * (1.0 + TOLERANCE);
                around_ns.into_iter().all(|ns| ns as f64 <= limit_ns)
            }
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beside(around_ns: [u64; 2], cores: u32) -> Sample {
        Sample {
            reference_ns: Some(around_ns),
            reference_cores: cores,
            ..Sample::default()
        }
    }

    #[test]
    fn a_run_in_a_slow_phase_is_not_valid_and_few_readings_judge_nothing() {
        let few = Reference::of(&vec![beside([100; 2], 1); 4]);
        assert!(few.judge().is_valid(&beside([1000, 1000], 1)));
        let mut many = Reference::of(&vec![beside([100; 2], 1); 45]);
        many.add(&beside([150, 150], 1));
        let judge = many.judge();
        assert!(judge.is_valid(&beside([100, 105], 1)));
        assert!(!judge.is_valid(&beside([100, 106], 1)));
        assert!(!judge.is_valid(&beside([130, 100], 1)));
        let simulated = Sample::default();
        assert!(
            judge.is_valid(&simulated),
            "a simulated machine has no core"
        );
        assert!(
            !judge
                .clone()
                .knowing(Some(90))
                .is_valid(&beside([100; 2], 1))
        );
        assert!(judge.knowing(Some(200)).is_valid(&beside([100; 2], 1)));
    }

    #[test]
    fn cores_together_have_a_time_of_their_own() {
        let mut samples = vec![beside([100; 2], 1); 45];
        samples.extend(vec![beside([200; 2], 2); 45]);
        let judge = Reference::of(&samples).judge();
        assert!(judge.is_valid(&beside([205; 2], 2)) && !judge.is_valid(&beside([205; 2], 1)));
        assert!(!judge.is_valid(&beside([300, 200], 2)));
    }
}
