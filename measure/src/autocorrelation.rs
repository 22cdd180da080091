//! Samples that follow one another and are not independent: how many independent ones they are
//! worth.
//!
//! The mean of n values with autocorrelations r_k varies like that of n / (1 + 2 sum r_k)
//! independent ones. The sum is taken over Geyer's initial monotone sequence: pairs of
//! neighbouring lags, as long as their sum is positive, and never rising. Source: Geyer,
//! *Practical Markov chain Monte Carlo*, Statistical Science 7 (1992), section 3.3.
//!
//! In a short series such a sum is mostly noise. So a correction is made only where the
//! correlation of neighbours is proven, one-sided at 95 %: Anderson, *Distribution of the serial
//! correlation coefficient*, Ann. Math. Statist. 13 (1942).

use serde::{Deserialize, Serialize};

use crate::distributions::normal_quantile;
use crate::error::{Error, require_count};
use crate::summary::{Moments, mean};

const WHAT: &str = "the autocorrelation";

/// Fewer values than this say nothing about their correlation.
const VALUES_MIN: usize = 8;

/// How many independent values a series is worth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Independence {
    /// The number of values.
    pub n: u64,
    /// How many independent ones they are worth: `n` unless the correlation is proven.
    pub n_effective: f64,
    /// The correlation of neighbours; none with fewer than 8 values or without spread.
    pub neighbours: Option<f64>,
    /// Whether that is proven to be above 0.
    pub correlated: bool,
}

/// The autocorrelation at a lag: the covariance of values so far apart, divided by the variance
/// (both with n below the line).
///
/// # Errors
/// [`Error::TooFew`] unless there are at least two values more than the lag, [`Error::NotFinite`],
/// [`Error::ZeroVariance`].
pub fn autocorrelation(values: &[f64], lag: usize) -> Result<f64, Error> {
    require_count(WHAT, lag as u64 + 2, values.len() as u64)?;
    let centred = centred(values)?;
    let own = covariance(&centred, 0);
    if own == 0.0 {
        let value = values[0];
        return Err(Error::ZeroVariance { what: WHAT, value });
    }
    Ok(covariance(&centred, lag) / own)
}

fn centred(values: &[f64]) -> Result<Vec<f64>, Error> {
    let mean = mean(values)?;
    Ok(values.iter().map(|value| value - mean).collect())
}

fn covariance(centred: &[f64], lag: usize) -> f64 {
    let later = centred.iter().skip(lag);
    centred.iter().zip(later).map(|(a, b)| a * b).sum()
}

impl Independence {
    /// Looks at a series in the order in which it was measured.
    ///
    /// # Errors
    /// [`Error::TooFew`] without a value, [`Error::NotFinite`], [`Error::Overflow`].
    pub fn of(values: &[f64]) -> Result<Self, Error> {
        let n = values.len() as f64;
        let independent = Self {
            n: values.len() as u64,
            n_effective: n,
            neighbours: None,
            correlated: false,
        };
        let centred = centred(values)?;
        let own = covariance(&centred, 0);
        if values.len() < VALUES_MIN || own <= 0.0 || !own.is_finite() {
            return Ok(independent);
        }
        let neighbours = covariance(&centred, 1) / own;
        let by_chance = (normal_quantile(0.95) * (n - 2.0).sqrt() - 1.0) / (n - 1.0);
        let correlated = neighbours > by_chance;
        let n_effective = if correlated {
            (n / time(&centred, own)).clamp(1.0, n)
        } else {
            n
        };
        Ok(Self {
            n_effective,
            neighbours: Some(neighbours),
            correlated,
            ..independent
        })
    }

    /// The moments of the series with as many values as it is worth, at least 2.
    ///
    /// # Errors
    /// As [`Moments::of`].
    pub fn moments(&self, values: &[f64]) -> Result<Moments, Error> {
        let plain = Moments::of(values)?;
        Moments::new((self.n_effective as u64).max(2), plain.mean, plain.sd)
    }
}

/// `1 + 2 sum r_k` over the initial monotone sequence: how many values are worth one.
fn time(centred: &[f64], own: f64) -> f64 {
    let (mut sum, mut last) = (0.0, f64::INFINITY);
    // Beyond half of the series there are too few pairs to say anything.
    for first in (0..centred.len() / 2).step_by(2) {
        let pair = (covariance(centred, first) + covariance(centred, first + 1)) / own;
        if pair <= 0.0 {
            break;
        }
        last = pair.min(last);
        sum += last;
    }
    (2.0 * sum - 1.0).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::normal_quantile;

    /// x_k = phi x_(k-1) + e: r_k = phi^k, so that 1 + 2 sum r_k = (1 + phi) / (1 - phi).
    fn autoregressive(phi: f64, n: usize, seed: u64) -> Vec<f64> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut value = 0.0;
        let mut next = || {
            value = phi * value + normal_quantile(random.f64().clamp(1e-12, 1.0 - 1e-12));
            value
        };
        (0..n).map(|_| next()).collect()
    }

    #[test]
    fn a_first_order_process_is_worth_what_its_theory_says() {
        for phi in [0.3, 0.5, 0.8] {
            let values = autoregressive(phi, 20_000, 7);
            let independence = Independence::of(&values).unwrap();
            let share = independence.n_effective / 20_000.0;
            let expected = (1.0 - phi) / (1.0 + phi);
            assert!(independence.correlated);
            assert!(
                (share / expected - 1.0).abs() < 0.1,
                "{phi}: {share} {expected}"
            );
        }
    }

    #[test]
    fn independent_values_are_worth_their_number_in_19_of_20_series() {
        let correlated = (0..1000)
            .filter(|seed| {
                let values = autoregressive(0.0, 30, *seed);
                Independence::of(&values).unwrap().correlated
            })
            .count();
        // 5 % of 1000, within three standard deviations (20.7).
        assert!((30..=70).contains(&correlated), "{correlated}");
        let values = autoregressive(0.0, 30, 1);
        assert_eq!(Independence::of(&values).unwrap().n_effective, 30.0);
    }

    #[test]
    fn alternating_values_are_not_worth_more_than_their_number() {
        let values: Vec<f64> = (0..40).map(|index| f64::from(index % 2)).collect();
        let independence = Independence::of(&values).unwrap();
        assert!(!independence.correlated && independence.n_effective == 40.0);
        assert!(independence.neighbours.is_some_and(|r| r < -0.9));
    }

    #[test]
    fn a_drift_leaves_few_independent_values() {
        let values: Vec<f64> = (0..40).map(f64::from).collect();
        let independence = Independence::of(&values).unwrap();
        assert!(independence.correlated && independence.n_effective < 5.0);
        let moments = independence.moments(&values).unwrap();
        assert!(moments.n < 5 && moments.n >= 2 && moments.mean == 19.5);
    }

    #[test]
    fn short_and_flat_series_are_taken_as_they_are() {
        for values in [&[1.0, 2.0, 3.0][..], &[5.0; 20]] {
            let independence = Independence::of(values).unwrap();
            assert_eq!(independence.n_effective, values.len() as f64);
            assert_eq!(independence.neighbours, None);
        }
        assert!(Independence::of(&[]).is_err());
        assert!(matches!(
            autocorrelation(&[1.0; 9], 1),
            Err(Error::ZeroVariance { .. })
        ));
        assert!(autocorrelation(&[1.0, 2.0], 1).is_err());
    }
}
