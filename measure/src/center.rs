//! The middle of a few independent observations: their median, its interval from order statistics,
//! and the sign test. All three hold for any continuous distribution, skewed or with outliers, and
//! they cannot contradict each other: the interval excludes a value exactly when the sign test
//! rejects it. Any monotone transformation (a logarithm, a ratio's inverse) leaves them unchanged.
//!
//! Absolute times and rates have a [`crate::Spread`] instead: their observations depend on the
//! state of the machine.
//!
//! Source: Hahn and Meeker, *Statistical Intervals* (1991), section 5.2, and Conover, *Practical
//! Nonparametric Statistics* (1999), sections 3.2 and 3.4.

use crate::error::{Error, require_confidence, require_count, require_finite};
use crate::interval::Interval;
use crate::summary::median;
use serde::{Deserialize, Serialize};

/// Fewer observations than this have no interval of 95 %: the smallest to the largest of 5 covers
/// 93.75 %.
pub const OBSERVATIONS_MIN: usize = 6;

/// How many observations an interval of the median needs that covers at least `confidence`: the
/// smallest to the largest of n cover 1 - 2^(1 - n). At least [`OBSERVATIONS_MIN`].
pub fn observations_for(confidence: f64) -> usize {
    let missed = (1.0 - confidence).max(f64::MIN_POSITIVE);
    // A confidence of 1 needs more than any measurement has.
    let exact = 1.0 - missed.log2();
    (exact - 1e-9).ceil().max(OBSERVATIONS_MIN as f64) as usize
}

/// Observations in ascending order, with their median.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Center {
    sorted: Vec<f64>,
}

impl Center {
    /// Of at least [`OBSERVATIONS_MIN`] observations.
    ///
    /// # Errors
    /// [`Error::TooFew`], [`Error::NotFinite`].
    pub fn of(values: &[f64]) -> Result<Self, Error> {
        const WHAT: &str = "the middle of observations";
        require_count(WHAT, OBSERVATIONS_MIN as u64, values.len() as u64)?;
        require_finite(WHAT, values)?;
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Ok(Self { sorted })
    }

    /// The observations, smallest first.
    pub fn sorted(&self) -> &[f64] {
        &self.sorted
    }

    /// The observations that are far from the others: a fifth of the middle and five times the
    /// median deviation. They are told, not left out.
    pub fn apart(&self) -> Vec<f64> {
        let middle = self.estimate();
        let deviations: Vec<f64> = self.sorted.iter().map(|it| (it - middle).abs()).collect();
        let typical = median(&deviations).unwrap_or(0.0);
        let limit = (5.0 * typical).max(middle.abs() / 5.0);
        let far = self
            .sorted
            .iter()
            .filter(|it| (**it - middle).abs() > limit);
        far.copied().collect()
    }

    /// The estimate that intervals are about: the median.
    pub fn estimate(&self) -> f64 {
        // There are observations, and they are finite.
        median(&self.sorted).unwrap_or(f64::NAN)
    }

    /// The shortest symmetric pair of order statistics that covers the true median with at least
    /// `confidence`; [`Interval::confidence`] is what the pair covers. Where even the smallest and
    /// the largest cover less, they are the interval, and it says how little.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless the confidence lies strictly between 0 and 1.
    pub fn at(&self, confidence: f64) -> Result<Interval, Error> {
        require_confidence(confidence)?;
        let n = self.sorted.len();
        let rank = rank(n, 1.0 - confidence).max(1);
        Ok(Interval {
            estimate: self.estimate(),
            low: self.sorted[rank - 1],
            high: self.sorted[n - rank],
            confidence: 1.0 - 2.0 * below(n, rank - 1),
        })
    }

    /// Bounds of the true median, each of which holds with at least `1 - alpha` by itself; and the
    /// probability with which a bound misses. None when observations are too few.
    pub fn bounds(&self, alpha: f64) -> Option<Bounds> {
        let n = self.sorted.len();
        let rank = rank(n, 2.0 * alpha);
        (rank > 0).then(|| Bounds {
            low: self.sorted[rank - 1],
            high: self.sorted[n - rank],
            alpha: below(n, rank - 1),
        })
    }

    /// The two-sided p-value of the sign test: the probability of observations as one-sided as
    /// these if the true median were `null`. Observations that equal it count for neither side.
    pub fn p_value(&self, null: f64) -> f64 {
        let at_most = self.sorted.iter().filter(|value| **value <= null).count();
        let at_least = self.sorted.iter().filter(|value| **value >= null).count();
        let n = self.sorted.len();
        (2.0 * below(n, at_most.min(at_least))).min(1.0)
    }
}

/// One-sided bounds of a median.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// The median is at least this.
    pub low: f64,
    /// The median is at most this.
    pub high: f64,
    /// The probability with which one of them does not hold.
    pub alpha: f64,
}

/// The largest rank k such that the k-th of each end covers at least `1 - alpha`; 0 when none does.
fn rank(n: usize, alpha: f64) -> usize {
    // A little room: 0.05 and the sum of halves that equals it are not the same number.
    let fits = |k: usize| 2.0 * below(n, k - 1) <= alpha * (1.0 + 1e-9);
    // The coverage falls as k grows.
    let (mut low, mut high) = (0, n / 2);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if fits(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

/// The probability of at most `count` heads in `n` throws of a coin.
fn below(n: usize, count: usize) -> f64 {
    if 2 * count >= n {
        return 1.0
            - if count >= n {
                0.0
            } else {
                below(n, n - count - 1)
            };
    }
    // The largest term is the last one; its logarithm never underflows, however many there are.
    let (mut scaled, mut sum, mut log) = (1.0, 1.0, -(n as f64) * std::f64::consts::LN_2);
    for k in 0..count {
        log += ((n - k) as f64 / (k + 1) as f64).ln();
    }
    for k in (0..count).rev() {
        scaled *= (k + 1) as f64 / (n - k) as f64;
        sum += scaled;
    }
    sum * log.exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Hahn and Meeker, table A.15: ranks of the intervals of a median at 95 %, and what they
    /// cover.
    #[test]
    fn as_many_observations_as_are_needed_cover_the_confidence() {
        for confidence in [0.9, 0.95, 0.975, 0.99, 1.0 - 0.05 / 63.0] {
            let needed = observations_for(confidence);
            let covered = |n: usize| 1.0 - 2_f64.powi(1 - n as i32);
            assert!(covered(needed) >= confidence, "{confidence}: {needed}");
            let fewer = needed - 1;
            assert!(fewer < OBSERVATIONS_MIN || covered(fewer) < confidence);
        }
        assert_eq!((observations_for(0.95), observations_for(0.975)), (6, 7));
    }

    #[test]
    fn the_ranks_are_those_of_the_tables() {
        let known = [
            (6, 1, 0.969),
            (9, 2, 0.961),
            (12, 3, 0.961),
            (15, 4, 0.965),
            (17, 5, 0.951),
            (20, 6, 0.959),
        ];
        for (n, rank, covered) in known {
            let values: Vec<f64> = (1..=n).map(f64::from).collect();
            let interval = Center::of(&values).unwrap().at(0.95).unwrap();
            assert_eq!(interval.low, f64::from(rank), "{n}");
            assert_eq!(interval.high, f64::from(n + 1 - rank), "{n}");
            assert!((interval.confidence - covered).abs() < 5e-4, "{interval:?}");
        }
        let six: Vec<f64> = (1..=6).map(f64::from).collect();
        let wide = Center::of(&six).unwrap().at(0.99).unwrap();
        assert_eq!((wide.low, wide.high), (1.0, 6.0));
        assert!(wide.confidence < 0.99, "it does not claim what it lacks");
        assert!(Center::of(&six[..5]).is_err());
    }

    #[test]
    fn a_process_in_another_state_is_told() {
        let mut values = vec![12.8, 12.9, 12.9, 13.0, 13.1, 12.7];
        assert!(Center::of(&values).unwrap().apart().is_empty());
        values.push(7.9);
        assert_eq!(Center::of(&values).unwrap().apart(), [7.9]);
    }

    /// scipy.stats.binomtest(1, 12).pvalue and (0, 12).
    #[test]
    fn the_sign_test_is_that_of_scipy() {
        let values: Vec<f64> = (0..12).map(|one| f64::from(one) - 0.5).collect();
        let center = Center::of(&values).unwrap();
        assert!((center.p_value(0.0) - 0.006_347_656_25).abs() < 1e-12);
        assert!((center.p_value(-1.0) - 0.000_488_281_25).abs() < 1e-12);
        assert_eq!(center.p_value(5.0), 1.0);
    }

    /// scipy.stats.binom.cdf(2, 12, 0.5) and .cdf(469, 1000, 0.5): one-sided bounds.
    #[test]
    fn bounds_hold_one_by_one_and_many_observations_do_not_underflow() {
        let values: Vec<f64> = (1..=12).map(f64::from).collect();
        let bounds = Center::of(&values).unwrap().bounds(0.05).unwrap();
        assert_eq!((bounds.low, bounds.high), (3.0, 10.0));
        assert!((bounds.alpha - 0.019_287_109).abs() < 1e-9, "{bounds:?}");
        let six = Center::of(&values[..6]).unwrap();
        assert!(six.bounds(0.01).is_none());
        let many: Vec<f64> = (1..=100_000).map(f64::from).collect();
        let interval = Center::of(&many).unwrap().at(0.95).unwrap();
        // 50,000 - 1.96 * sqrt(100,000) / 2
        assert!((interval.low - 49_690.0).abs() <= 1.0, "{interval:?}");
        assert!((0.95..0.951).contains(&interval.confidence));
    }

    proptest! {
        #[test]
        fn interval_and_test_never_contradict(
            values in proptest::collection::vec(-10.0_f64..10.0, 6..40),
            null in -10.0_f64..10.0,
            confidence in 0.9_f64..0.99,
        ) {
            let center = Center::of(&values).unwrap();
            let interval = center.at(confidence).unwrap();
            // With too few observations for the confidence nothing is significant, see `Figure`.
            prop_assume!(interval.confidence >= confidence);
            let rejected = center.p_value(null) <= 1.0 - confidence;
            prop_assert_eq!(rejected, !interval.contains(null));
        }

        #[test]
        fn a_monotone_change_of_scale_moves_the_ends_with_it(
            values in proptest::collection::vec(0.1_f64..10.0, 7..8),
        ) {
            let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
            let (plain, log) = (Center::of(&values).unwrap(), Center::of(&logs).unwrap());
            let (plain, log) = (plain.at(0.95).unwrap(), log.at(0.95).unwrap());
            prop_assert_eq!(plain.low.ln(), log.low);
            prop_assert_eq!(plain.high.ln(), log.high);
        }
    }
}
