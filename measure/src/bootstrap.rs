//! Intervals of any statistic by resampling the rounds: for medians, percentiles and whatever else
//! has no formula.
//!
//! Sources: Efron and Tibshirani, *An Introduction to the Bootstrap* (1993): the percentile
//! interval of chapter 13. Whole rounds are drawn, so that what a round's cases share stays
//! together. With fewer than about 10 rounds it is too narrow; prefer Student's where it fits the
//! question.

use fastrand::Rng;

use crate::error::{Error, require_confidence, require_count};
use crate::interval::Interval;
use crate::summary::percentile_of_sorted;

/// With fewer rounds than this there is nothing to resample.
const ROUNDS_MIN: u64 = 3;

const WHAT: &str = "the bootstrap";

/// How to resample. The same seed gives the same interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// How many times the rounds are drawn again, 100 to 1,000,000.
    pub resamples: u32,
    /// The seed of the random numbers.
    pub seed: u64,
    /// The confidence of the interval: 0.95 for 95 %.
    pub confidence: f64,
}

impl Default for Bootstrap {
    /// 2,000 resamples (Efron and Tibshirani ask for at least 1,000), seed 0, 95 %.
    fn default() -> Self {
        Self {
            resamples: 2000,
            seed: 0,
            confidence: 0.95,
        }
    }
}

/// The statistics of all resamples, sorted, and that of the rounds themselves.
struct Resampled {
    estimate: f64,
    sorted: Vec<f64>,
}

impl Bootstrap {
    /// The percentile intervals of several statistics of the same resamples, such as the parameters
    /// of one fit. One that never varies has an interval without width. A round may be a number, a
    /// pair of cases or a borrowed row.
    ///
    /// # Errors
    /// [`Error::TooFew`] with fewer than 3 rounds, [`Error::OutOfRange`] for the confidence or the
    /// number of resamples, [`Error::NotFinite`] when the statistic of a resample is not a finite
    /// number (the index counts resamples, the rounds themselves being 0).
    pub fn percentiles<T: Copy, const N: usize>(
        &self,
        rounds: &[T],
        statistics: impl Fn(&[T]) -> [f64; N],
    ) -> Result<[Interval; N], Error> {
        self.require(rounds.len())?;
        let estimates = statistics(rounds);
        let mut sorted = [const { Vec::new() }; N];
        let mut random = Rng::with_seed(self.seed);
        let mut drawn = rounds.to_vec();
        for resample in 1..=self.resamples as usize {
            drawn.fill_with(|| rounds[random.usize(..rounds.len())]);
            for (values, value) in sorted.iter_mut().zip(statistics(&drawn)) {
                values.push(checked(resample, value)?);
            }
        }
        let mut intervals = estimates.map(|estimate| Interval::exact(estimate, self.confidence));
        let tail = 0.5 * (1.0 - self.confidence);
        for (interval, mut sorted) in intervals.iter_mut().zip(sorted) {
            let estimate = checked(0, interval.estimate)?;
            sorted.sort_unstable_by(f64::total_cmp);
            *interval = self.interval(&Resampled { estimate, sorted }, tail, 1.0 - tail);
        }
        Ok(intervals)
    }

    fn interval(&self, resampled: &Resampled, low: f64, high: f64) -> Interval {
        Interval {
            estimate: resampled.estimate,
            low: percentile_of_sorted(&resampled.sorted, low * 100.0),
            high: percentile_of_sorted(&resampled.sorted, high * 100.0),
            confidence: self.confidence,
        }
    }

    /// Refuses settings and numbers of rounds that there is no bootstrap for.
    fn require(&self, rounds: usize) -> Result<(), Error> {
        require_confidence(self.confidence)?;
        require_count(WHAT, ROUNDS_MIN, rounds as u64)?;
        if (100..=1_000_000).contains(&self.resamples) {
            return Ok(());
        }
        Err(Error::OutOfRange {
            what: "the number of resamples",
            value: f64::from(self.resamples),
            rule: "within 100 to 1,000,000",
        })
    }
}

fn checked(index: usize, value: f64) -> Result<f64, Error> {
    if value.is_finite() {
        return Ok(value);
    }
    Err(Error::NotFinite {
        what: "the statistic of the bootstrap",
        index,
        value,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::median;

    /// Efron and Tibshirani, table 14.1: the spatial test, A.
    const SPATIAL: [f64; 26] = [
        48.0, 36.0, 20.0, 29.0, 42.0, 42.0, 20.0, 42.0, 22.0, 41.0, 45.0, 14.0, 6.0, 0.0, 33.0,
        28.0, 34.0, 4.0, 32.0, 24.0, 47.0, 41.0, 24.0, 26.0, 30.0, 41.0,
    ];

    fn plug_in_variance(values: &[f64]) -> f64 {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        values
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>()
            / n
    }

    #[test]
    fn the_textbooks_example_is_reproduced() {
        let bootstrap = Bootstrap {
            resamples: 20_000,
            seed: 7,
            confidence: 0.90,
        };
        let intervals = bootstrap.percentiles(&SPATIAL, |drawn| [plug_in_variance(drawn)]);
        let [interval] = intervals.unwrap();
        // Chapters 13 and 14: estimate 171.5, 90 % interval (100.8, 233.9) from 2,000 resamples.
        assert!((interval.estimate - 171.5).abs() < 0.05);
        assert!((interval.low - 100.8).abs() < 3.0, "{interval}");
        assert!((interval.high - 233.9).abs() < 3.0, "{interval}");
    }

    #[test]
    fn the_same_seed_gives_the_same_interval_and_another_one_nearly() {
        let middle = |values: &[f64]| [median(values).unwrap_or(f64::NAN)];
        let one = Bootstrap {
            seed: 1,
            ..Bootstrap::default()
        };
        let two = Bootstrap {
            seed: 2,
            ..Bootstrap::default()
        };
        let [interval] = one.percentiles(&SPATIAL, middle).unwrap();
        assert_eq!([interval], one.percentiles(&SPATIAL, middle).unwrap());
        let [other] = two.percentiles(&SPATIAL, middle).unwrap();
        assert!((interval.low - other.low).abs() < 4.0);
        assert!(interval.contains(31.0) && interval.half_width() > 2.0);
    }

    #[test]
    fn rounds_of_several_cases_are_drawn_whole() {
        let rounds: Vec<[f64; 2]> = SPATIAL
            .iter()
            .map(|value| [*value + 1.0, 2.0 * (value + 1.0)])
            .collect();
        let ratio = |rounds: &[[f64; 2]]| {
            let sum = |case: usize| rounds.iter().map(|round| round[case]).sum::<f64>();
            [sum(1) / sum(0)]
        };
        let [interval] = Bootstrap::default().percentiles(&rounds, ratio).unwrap();
        assert!((interval.low - 2.0).abs() < 1e-9 && (interval.high - 2.0).abs() < 1e-9);
    }

    #[test]
    fn several_statistics_of_the_same_resamples_have_the_intervals_of_each_alone() {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let bootstrap = Bootstrap::default();
        let both = |values: &[f64]| [mean(values), plug_in_variance(values), 4.0];
        let [first, second, third] = bootstrap.percentiles(&SPATIAL, both).unwrap();
        let alone = bootstrap.percentiles(&SPATIAL, |drawn| [mean(drawn)]);
        assert_eq!([first], alone.unwrap());
        let variance = bootstrap.percentiles(&SPATIAL, |drawn| [plug_in_variance(drawn)]);
        assert_eq!([second], variance.unwrap());
        assert_eq!((third.low, third.high), (4.0, 4.0));
    }

    #[test]
    fn what_cannot_be_resampled_is_refused() {
        let mean = |values: &[f64]| [values.iter().sum::<f64>() / values.len() as f64];
        let good = Bootstrap::default();
        assert!(matches!(
            good.percentiles(&SPATIAL[..2], mean),
            Err(Error::TooFew { .. })
        ));
        for (resamples, confidence) in [(99, 0.95), (1_000_001, 0.95), (1000, 1.0)] {
            let wrong = Bootstrap {
                resamples,
                confidence,
                seed: 0,
            };
            assert!(matches!(
                wrong.percentiles(&SPATIAL, mean),
                Err(Error::OutOfRange { .. })
            ));
        }
        let nan = good.percentiles(&SPATIAL, |_| [f64::NAN]);
        assert!(matches!(nan, Err(Error::NotFinite { .. })));
    }
}
