//! The difference between the means of two independent samples: Welch's interval, and the pooled
//! Student interval that ministat and the oldest published figures use.
//!
//! Sources: Welch, *The generalization of Student's problem when several different population
//! variances are involved*, Biometrika 34 (1947); Satterthwaite, Biometrics Bulletin 2 (1946), for
//! the degrees of freedom; NIST/SEMATECH e-Handbook 1.3.5.3 for both forms.

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::interval::{Effect, Interval};
use crate::summary::Moments;

/// Welch's interval of `changed - base`, which does not assume equal spreads.
///
/// # Errors
/// [`Error::ZeroVariance`] when neither sample varies; as [`Moments::new`] for impossible moments;
/// [`Error::OutOfRange`] unless the confidence lies strictly between 0 and 1.
pub fn welch(base: Moments, changed: Moments, confidence: f64) -> Result<Effect, Error> {
    const WHAT: &str = "Welch's interval";
    let (base, changed) = (base.checked()?, changed.checked()?);
    let difference = changed.mean - base.mean;
    let standard_error = base.standard_error().hypot(changed.standard_error());
    if standard_error == 0.0 {
        return Err(Error::ZeroVariance {
            what: WHAT,
            value: difference,
        });
    }
    let df = satterthwaite(&[
        (base.standard_error(), base.n - 1),
        (changed.standard_error(), changed.n - 1),
    ]);
    Effect::new(WHAT, difference, standard_error, df, confidence)
}

/// Satterthwaite's degrees of freedom of a sum of independent mean squares, given as standard
/// errors with their own degrees of freedom, not all of them zero.
pub(crate) fn satterthwaite(parts: &[(f64, u64)]) -> f64 {
    // Only the shares count; scaled by the largest they can neither overflow nor vanish.
    let largest = parts
        .iter()
        .fold(0.0_f64, |largest, (error, _)| largest.max(*error));
    let shares = parts
        .iter()
        .map(|(error, df)| ((error / largest).powi(2), *df as f64));
    let (mut sum, mut weighted) = (0.0, 0.0);
    for (share, df) in shares {
        sum += share;
        weighted += share * share / df;
    }
    sum * sum / weighted
}

/// The difference `changed - base` under the assumption that both samples have the same spread:
/// the two-sample Student test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pooled {
    /// The difference of the means.
    pub difference: f64,
    /// The pooled standard deviation ("pooled s" in ministat's output).
    pub pooled_sd: f64,
    /// The standard error of the difference, `pooled_sd * sqrt(1/n1 + 1/n2)`.
    pub standard_error: f64,
    /// `n1 + n2 - 2`.
    pub degrees_of_freedom: f64,
}

impl Pooled {
    /// Pools the variances of two samples, weighted by their degrees of freedom.
    ///
    /// # Errors
    /// As [`Moments::new`] for impossible moments.
    pub fn new(base: Moments, changed: Moments) -> Result<Self, Error> {
        let (base, changed) = (base.checked()?, changed.checked()?);
        let (n1, n2) = (base.n as f64, changed.n as f64);
        let df = n1 + n2 - 2.0;
        let weight = |n: f64| ((n - 1.0) / df).sqrt();
        let pooled_sd = (weight(n1) * base.sd).hypot(weight(n2) * changed.sd);
        Ok(Self {
            difference: changed.mean - base.mean,
            pooled_sd,
            standard_error: pooled_sd * (1.0 / n1 + 1.0 / n2).sqrt(),
            degrees_of_freedom: df,
        })
    }

    /// The interval and p-value by Student's distribution.
    ///
    /// # Errors
    /// [`Error::ZeroVariance`] when neither sample varies, [`Error::OutOfRange`] unless the
    /// confidence lies strictly between 0 and 1.
    pub fn effect(&self, confidence: f64) -> Result<Effect, Error> {
        Effect::new(
            "the pooled interval",
            self.difference,
            self.standard_error,
            self.degrees_of_freedom,
            confidence,
        )
    }

    /// The interval with a critical value from a printed table, for reproducing a program that
    /// carries such a table; `confidence` is only the label.
    pub fn interval_with(&self, critical: f64, confidence: f64) -> Interval {
        Interval::around(self.difference, critical * self.standard_error, confidence)
    }
}

/// [`Pooled`] with its interval: the classic two-sample Student interval of `changed - base`.
///
/// # Errors
/// As [`Pooled::new`] and [`Pooled::effect`].
pub fn pooled(base: Moments, changed: Moments, confidence: f64) -> Result<Effect, Error> {
    Pooled::new(base, changed)?.effect(confidence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn welchs_published_degrees_of_freedom_are_reproduced() {
        // NIST e-Handbook 1.3.5.3, AUTO83B.DAT: t -12.62059 pooled (326 degrees of freedom, pooled
        // sd 6.34260), -12.94627 unequal (136.8750 degrees of freedom).
        let american = Moments::new(249, 20.144_58, 6.414_70).unwrap();
        let japanese = Moments::new(79, 30.481_01, 6.107_71).unwrap();
        let equal = Pooled::new(japanese, american).unwrap();
        assert!((equal.pooled_sd - 6.342_60).abs() < 1e-5);
        assert_eq!(equal.degrees_of_freedom, 326.0);
        assert!((equal.difference / equal.standard_error + 12.620_59).abs() < 1e-4);
        let unequal = welch(japanese, american, 0.95).unwrap();
        assert!((unequal.estimate() / unequal.standard_error + 12.946_27).abs() < 1e-4);
        assert!((unequal.degrees_of_freedom - 136.875).abs() < 1e-3);
    }

    #[test]
    fn equal_samples_make_both_methods_agree() {
        let base = Moments::new(8, 10.0, 2.0).unwrap();
        let changed = Moments::new(8, 12.0, 2.0).unwrap();
        let (one, other) = (
            welch(base, changed, 0.95).unwrap(),
            pooled(base, changed, 0.95).unwrap(),
        );
        assert!((one.interval.low - other.interval.low).abs() < 1e-12);
        assert!((one.degrees_of_freedom - 14.0).abs() < 1e-12);
    }

    #[test]
    fn a_sample_without_spread_leaves_the_other_ones_degrees_of_freedom() {
        let flat = Moments::new(9, 1.0, 0.0).unwrap();
        let varied = Moments::new(4, 2.0, 0.5).unwrap();
        assert_eq!(welch(flat, varied, 0.9).unwrap().degrees_of_freedom, 3.0);
        let neither = welch(flat, flat, 0.9);
        assert!(matches!(
            neither,
            Err(Error::ZeroVariance { value: 0.0, .. })
        ));
        assert!(matches!(
            pooled(flat, flat, 0.9),
            Err(Error::ZeroVariance { .. })
        ));
    }

    #[test]
    fn spreads_near_the_ends_of_the_number_range_neither_overflow_nor_vanish() {
        for sd in [1e-200, 1e200] {
            let sample = Moments::new(10, 0.0, sd).unwrap();
            let effect = welch(sample, sample, 0.95).unwrap();
            assert!((effect.degrees_of_freedom - 18.0).abs() < 1e-9);
            assert!((effect.interval.half_width() / sd - 0.939_6).abs() < 1e-3);
        }
    }
}
