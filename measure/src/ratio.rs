//! The interval of the typical (geometric) ratio of two sides that were measured in the same
//! rounds: Student's interval of the logarithms, exponentiated. It treats "twice as
//! slow" and "twice as fast" alike.

use serde::{Deserialize, Serialize};

use crate::error::{Error, require_count, require_finite, require_pairs};
use crate::interval::{Effect, Interval, student_of};

/// A ratio with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The ratio and its interval: 1.05 for 5 % more.
    pub interval: Interval,
    /// The probability of a ratio at least this far from 1 if the truth were 1.
    pub p_value: f64,
}

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
        let interval = log_ratio_paired(&above, &below, 0.95).unwrap().interval;
        assert!(
            interval.contains(1.02) && interval.half_width() < 2e-9,
            "{interval}"
        );
    }

    #[test]
    fn a_ratio_and_its_inverse_have_inverse_log_intervals() {
        let (one, other) = ([3.0, 4.0, 5.0, 4.5], [1.0, 1.5, 1.2, 1.1]);
        let up = log_ratio_paired(&one, &other, 0.95).unwrap().interval;
        let down = log_ratio_paired(&other, &one, 0.95).unwrap().interval;
        assert!((up.low * down.high - 1.0).abs() < 1e-12);
        assert!((up.estimate * down.estimate - 1.0).abs() < 1e-12);
    }

    #[test]
    fn what_has_no_ratio_is_refused() {
        let values = [1.0, 2.0, 3.0];
        let refused = |above: &[f64], below: &[f64]| log_ratio_paired(above, below, 0.95).err();
        assert!(matches!(
            refused(&[2.0; 3], &[1.0; 3]),
            Some(Error::ZeroVariance { .. })
        ));
        assert!(matches!(
            refused(&values[1..], &values),
            Some(Error::UnequalLengths { .. })
        ));
        assert!(matches!(
            refused(&values[1..], &values[1..]),
            Some(Error::TooFew {
                needed: 3,
                got: 2,
                ..
            })
        ));
        let nan = [1.0, f64::NAN, 3.0];
        assert!(matches!(
            refused(&nan, &values),
            Some(Error::NotFinite { .. })
        ));
        let zeros = [0.0, 1.0, 2.0];
        assert!(matches!(
            refused(&zeros, &values),
            Some(Error::OutOfRange { value: 0.0, .. })
        ));
    }
}
