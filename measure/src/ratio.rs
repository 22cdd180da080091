//! Intervals of a ratio: of two independent means, of two means measured in the same rounds, and of
//! the typical (geometric) ratio.
//!
//! Sources: Fieller, *Some problems in interval estimation*, J. R. Statist. Soc. B 16 (1954), for
//! both forms of the ratio of means; for unequal spreads the degrees of freedom are Satterthwaite's
//! at the estimated ratio (Tamhane and Logan, *Finding the maximum safe dose level for
//! heteroscedastic data*, J. Biopharm. Stat. 14, 2004). The log form is the Student or Welch
//! interval of the logarithms, taken back by the exponential.
//!
//! Which one: Fieller's compares totals (the mean of many reads); the log form compares typical
//! rounds and treats "twice as slow" and "twice as fast" alike.

use serde::{Deserialize, Serialize};

use crate::distributions::{student_critical, student_two_sided_p};
use crate::error::{Error, require_count, require_finite, require_pairs};
use crate::interval::{Effect, Interval, student_of};
use crate::summary::{Moments, mean};
use crate::two_samples::{satterthwaite, welch};

/// A ratio with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The ratio and its interval: 1.05 for 5 % more.
    pub interval: Interval,
    /// The probability of a ratio at least this far from 1 if the truth were 1.
    pub p_value: f64,
}

/// The ratio of two means with all that Fieller's theorem needs, so that its interval can be had at
/// any confidence without the raw values.
///
/// The numerator is kept as `rest`, the numerator minus the estimated ratio times the denominator.
/// Its mean is zero, and its variance does not cancel when numerator and denominator rise and fall
/// together, as they do within rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RatioOfMeans {
    /// The estimated ratio.
    pub ratio: f64,
    /// The mean of the denominator.
    pub denominator: f64,
    /// The variance of that mean.
    pub variance_denominator: f64,
    /// The variance of the mean of `rest`.
    pub variance_rest: f64,
    /// The covariance of both means.
    pub covariance_rest: f64,
    /// The degrees of freedom of Student's t.
    pub degrees_of_freedom: f64,
    /// The probability of a ratio at least this far from 1 if the truth were 1.
    pub p_value: f64,
}

impl RatioOfMeans {
    /// Of two independent samples.
    ///
    /// # Errors
    /// [`Error::UnboundedRatio`] when the denominator is zero, [`Error::ZeroVariance`] when neither
    /// sample varies; as [`Moments::new`].
    pub fn independent(numerator: Moments, denominator: Moments) -> Result<Self, Error> {
        let (above, below) = (numerator.checked()?, denominator.checked()?);
        require_denominator(FIELLER, below)?;
        let ratio = above.mean / below.mean;
        if above.sd == 0.0 && below.sd == 0.0 {
            return Err(Error::ZeroVariance {
                what: FIELLER,
                value: ratio,
            });
        }
        let degrees_of_freedom = satterthwaite(&[
            (above.standard_error(), above.n - 1),
            (ratio.abs() * below.standard_error(), below.n - 1),
        ]);
        // A ratio of 1 is a difference of 0; the same degrees of freedom keep both answers in step.
        let t = (above.mean - below.mean) / above.standard_error().hypot(below.standard_error());
        let variance_denominator = below.variance_of_mean();
        Ok(Self {
            ratio,
            denominator: below.mean,
            variance_denominator,
            variance_rest: above.variance_of_mean() + ratio * ratio * variance_denominator,
            covariance_rest: -ratio * variance_denominator,
            degrees_of_freedom,
            p_value: student_two_sided_p(t, degrees_of_freedom),
        })
    }

    /// Of values that belong together in pairs, as two cells of one round do.
    ///
    /// # Errors
    /// [`Error::UnequalLengths`], [`Error::TooFew`] with fewer than 3 pairs, [`Error::NotFinite`],
    /// [`Error::UnboundedRatio`] when the mean of the denominator is zero.
    pub fn paired(numerator: &[f64], denominator: &[f64]) -> Result<Self, Error> {
        require_pairs(FIELLER, numerator.len(), denominator.len())?;
        require_count(FIELLER, 3, numerator.len() as u64)?;
        let below = Moments::of(denominator)?;
        require_denominator(FIELLER, below)?;
        let ratio = mean(numerator)? / below.mean;
        let with_factor = |factor: f64| -> Vec<f64> {
            let pairs = numerator.iter().zip(denominator);
            pairs.map(|(above, below)| above - factor * below).collect()
        };
        let rest = with_factor(ratio);
        let above = Moments::of(&rest)?;
        let products = rest
            .iter()
            .zip(denominator)
            .map(|(rest, value)| (rest - above.mean) * (value - below.mean));
        let n = rest.len() as f64;
        Ok(Self {
            ratio,
            denominator: below.mean,
            variance_denominator: below.variance_of_mean(),
            variance_rest: above.variance_of_mean(),
            covariance_rest: products.sum::<f64>() / (n - 1.0) / n,
            degrees_of_freedom: n - 1.0,
            p_value: p_of_zero(student_of(&with_factor(1.0), 0.5))?,
        })
    }

    /// Fieller's interval: solves `(rest - step * denominator)^2 = t^2 variance(rest - step *
    /// denominator)` for the two steps from the estimated ratio to the ends.
    ///
    /// # Errors
    /// [`Error::UnboundedRatio`] when the denominator cannot be told from zero at this confidence,
    /// [`Error::ZeroVariance`] when the ratio is the same in every pair, [`Error::OutOfRange`] for
    /// the confidence, [`Error::NotFinite`].
    pub fn at(&self, confidence: f64) -> Result<Ratio, Error> {
        let critical = student_critical(confidence, self.degrees_of_freedom)?;
        if self.variance_rest == 0.0 {
            return Err(Error::ZeroVariance {
                what: FIELLER,
                value: self.ratio,
            });
        }
        let t2 = critical * critical;
        let square = self.denominator * self.denominator - t2 * self.variance_denominator;
        if square.is_nan() || square <= 0.0 {
            return Err(Error::UnboundedRatio {
                what: FIELLER,
                denominator: self.denominator,
                standard_error: self.variance_denominator.sqrt(),
            });
        }
        let middle = -t2 * self.covariance_rest / square;
        let reach = (t2 * self.variance_rest / square + middle * middle).sqrt();
        let interval = Interval {
            estimate: self.ratio,
            low: self.ratio + middle - reach,
            high: self.ratio + middle + reach,
            confidence,
        };
        require_finite(FIELLER, &[interval.low, interval.estimate, interval.high])?;
        Ok(Ratio {
            interval,
            p_value: self.p_value,
        })
    }
}

/// What errors call it.
const FIELLER: &str = "Fieller's interval";

/// The geometric mean of `numerator / denominator` over pairs, with the interval of the logarithms
/// taken back: the typical ratio within a round.
///
/// # Errors
/// [`Error::UnequalLengths`], [`Error::TooFew`] with fewer than 3 pairs, [`Error::NotFinite`],
/// [`Error::OutOfRange`] for a value that is not above 0 or for the confidence,
/// [`Error::ZeroVariance`] when the ratio is the same in every pair.
pub fn log_ratio_paired(
    numerator: &[f64],
    denominator: &[f64],
    confidence: f64,
) -> Result<Ratio, Error> {
    const WHAT: &str = "the log-ratio interval of pairs";
    require_pairs(WHAT, numerator.len(), denominator.len())?;
    require_count(WHAT, 3, numerator.len() as u64)?;
    let (above, below) = (logarithms(WHAT, numerator)?, logarithms(WHAT, denominator)?);
    let logs: Vec<f64> = above
        .iter()
        .zip(&below)
        .map(|(above, below)| above - below)
        .collect();
    exponentials(student_of(&logs, confidence))
}

/// The ratio of the geometric means of two independent samples, by Welch's interval of the
/// logarithms.
///
/// # Errors
/// As [`log_ratio_paired`], except that the samples may differ in length and need 2 values each.
pub fn log_ratio(numerator: &[f64], denominator: &[f64], confidence: f64) -> Result<Ratio, Error> {
    const WHAT: &str = "the log-ratio interval";
    let above = Moments::of(&logarithms(WHAT, numerator)?)?;
    let below = Moments::of(&logarithms(WHAT, denominator)?)?;
    exponentials(welch(below, above, confidence))
}

/// A denominator of exactly zero has no ratio at all.
fn require_denominator(what: &'static str, below: Moments) -> Result<(), Error> {
    if below.mean == 0.0 {
        let standard_error = below.standard_error();
        return Err(Error::UnboundedRatio {
            what,
            denominator: 0.0,
            standard_error,
        });
    }
    Ok(())
}

/// The p-value of "no difference", where pairs that differ by a constant leave no doubt.
fn p_of_zero(difference: Result<Effect, Error>) -> Result<f64, Error> {
    match difference {
        Ok(effect) => Ok(effect.p_value),
        Err(Error::ZeroVariance { value, .. }) => Ok(if value == 0.0 { 1.0 } else { 0.0 }),
        Err(other) => Err(other),
    }
}

/// The logarithms of values that must be above zero.
fn logarithms(what: &'static str, values: &[f64]) -> Result<Vec<f64>, Error> {
    require_finite(what, values)?;
    match values.iter().find(|value| **value <= 0.0) {
        Some(value) => Err(Error::OutOfRange {
            what,
            value: *value,
            rule: "above 0",
        }),
        None => Ok(values.iter().map(|value| value.ln()).collect()),
    }
}

/// From the difference of logarithms back to the ratio.
fn exponentials(logs: Result<Effect, Error>) -> Result<Ratio, Error> {
    match logs {
        Ok(effect) => Ok(Ratio {
            interval: effect.interval.through(f64::exp),
            p_value: effect.p_value,
        }),
        Err(Error::ZeroVariance { what, value }) => Err(Error::ZeroVariance {
            what,
            value: value.exp(),
        }),
        Err(other) => Err(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fieller(above: Moments, below: Moments, confidence: f64) -> Result<Ratio, Error> {
        RatioOfMeans::independent(above, below)?.at(confidence)
    }

    fn fieller_paired(above: &[f64], below: &[f64], confidence: f64) -> Result<Ratio, Error> {
        RatioOfMeans::paired(above, below)?.at(confidence)
    }

    /// Fieller's definition: at either end of the interval, `numerator - end * denominator` is
    /// exactly one critical value away from zero.
    #[test]
    fn both_ends_of_fiellers_interval_satisfy_his_equation() {
        let (above, below) = (
            Moments::new(12, 57.0, 6.0).unwrap(),
            Moments::new(7, 23.0, 4.0).unwrap(),
        );
        let interval = fieller(above, below, 0.9).unwrap().interval;
        let ratio = interval.estimate;
        let df = satterthwaite(&[
            (above.standard_error(), 11),
            (ratio * below.standard_error(), 6),
        ]);
        let critical = student_critical(0.9, df).unwrap();
        for end in [interval.low, interval.high] {
            let error = above.standard_error().hypot(end * below.standard_error());
            let t = (above.mean - end * below.mean) / error;
            assert!(
                (t.abs() - critical).abs() < 1e-10,
                "{end}: {t} instead of {critical}"
            );
        }
        assert!(interval.low < ratio && ratio < interval.high);
    }

    #[test]
    fn both_ends_of_the_paired_interval_satisfy_fiellers_equation() {
        let above = [10.1, 12.5, 9.3, 14.0, 11.2, 10.0];
        let below = [5.2, 6.0, 4.9, 6.6, 5.9, 4.8];
        let interval = fieller_paired(&above, &below, 0.95).unwrap().interval;
        let critical = student_critical(0.95, 5.0).unwrap();
        for end in [interval.low, interval.high] {
            let rest: Vec<f64> = above
                .iter()
                .zip(&below)
                .map(|(above, below)| above - end * below)
                .collect();
            let moments = Moments::of(&rest).unwrap();
            assert!((moments.mean.abs() / moments.standard_error() - critical).abs() < 1e-9);
        }
    }

    #[test]
    fn rounds_that_drift_together_do_not_widen_the_ratio() {
        // Every round is slower than the one before, yet the ratio stays 1.02 within 1e-9.
        let below: Vec<f64> = (0..10).map(|round| 1e3 * f64::from(round + 1)).collect();
        let sign = |round: usize| if round.is_multiple_of(2) { 1e-9 } else { -1e-9 };
        let above: Vec<f64> = below
            .iter()
            .enumerate()
            .map(|(round, value)| value * (1.02 + sign(round)))
            .collect();
        for ratio in [fieller_paired, log_ratio_paired] {
            let interval = ratio(&above, &below, 0.95).unwrap().interval;
            assert!(
                interval.contains(1.02) && interval.half_width() < 2e-9,
                "{interval}"
            );
        }
    }

    #[test]
    fn a_ratio_and_its_inverse_have_inverse_log_intervals() {
        let (one, other) = ([3.0, 4.0, 5.0, 4.5], [1.0, 1.5, 1.2, 1.1]);
        for ratio in [log_ratio, log_ratio_paired] {
            let up = ratio(&one, &other, 0.95).unwrap().interval;
            let down = ratio(&other, &one, 0.95).unwrap().interval;
            assert!((up.low * down.high - 1.0).abs() < 1e-12);
            assert!((up.estimate * down.estimate - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn what_has_no_ratio_is_refused() {
        let good = Moments::new(5, 10.0, 1.0).unwrap();
        let around_zero = Moments::new(5, 0.1, 1.0).unwrap();
        let unbounded = fieller(good, around_zero, 0.95);
        assert!(matches!(
            unbounded,
            Err(Error::UnboundedRatio {
                denominator: 0.1,
                ..
            })
        ));
        let zero = Moments::new(5, 0.0, 0.0).unwrap();
        assert!(matches!(
            fieller(good, zero, 0.95),
            Err(Error::UnboundedRatio { .. })
        ));
        let flat = Moments::new(5, 5.0, 0.0).unwrap();
        assert!(matches!(
            fieller(flat, flat, 0.95),
            Err(Error::ZeroVariance { value: 1.0, .. })
        ));
        assert!(fieller(good, flat, 0.95).is_ok() && fieller(flat, good, 0.95).is_ok());
        let values = [1.0, 2.0, 3.0];
        let doubled = fieller_paired(&[2.0, 4.0, 6.0], &values, 0.95);
        assert!(matches!(
            doubled,
            Err(Error::ZeroVariance { value: 2.0, .. })
        ));
        assert!(matches!(
            fieller_paired(&values[1..], &values, 0.95),
            Err(Error::UnequalLengths { .. })
        ));
        assert!(matches!(
            fieller_paired(&values[1..], &values[1..], 0.95),
            Err(Error::TooFew {
                needed: 3,
                got: 2,
                ..
            })
        ));
        let nan = [1.0, f64::NAN, 3.0];
        assert!(matches!(
            fieller_paired(&nan, &values, 0.95),
            Err(Error::NotFinite { .. })
        ));
        let zeros = [0.0, 1.0, 2.0];
        let refused = log_ratio_paired(&zeros, &values, 0.95);
        assert!(matches!(refused, Err(Error::OutOfRange { value: 0.0, .. })));
    }
}
