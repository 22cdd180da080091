//! An estimate with its interval, and Student's interval of one mean.
//!
//! Sources: Student, *The probable error of a mean*, Biometrika 6 (1908); NIST/SEMATECH e-Handbook
//! of Statistical Methods, 1.3.5.2 (confidence limits for the mean).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::distributions::{student_critical, student_two_sided_p};
use crate::error::{Error, require_confidence, require_finite};
use crate::summary::Moments;

/// The confidence of an interval that claims nothing: see [`Interval::is_spread`].
pub(crate) const SPREAD: f64 = 0.0;

/// An estimate and the interval that covers the true value with the stated confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The best single value.
    pub estimate: f64,
    /// Lower end, in the unit of the values.
    pub low: f64,
    /// Upper end, in the unit of the values.
    pub high: f64,
    /// How often such intervals cover the truth: 0.95 for 95 %. 0 where the ends are the 10th and
    /// the 90th percentile of the observations ([`crate::Spread`]).
    pub confidence: f64,
}

/// A confidence in whole per cent, as it is printed. It is rounded down: never more than an
/// interval covers, and never 100.
pub fn percent(confidence: f64) -> u32 {
    // A little room: 0.95 times 100 may be less than 95.
    (confidence * 100.0 + 1e-9).floor().clamp(0.0, 99.0) as u32
}

impl Interval {
    /// `estimate` plus and minus `half_width`.
    pub fn around(estimate: f64, half_width: f64, confidence: f64) -> Self {
        Self {
            estimate,
            low: estimate - half_width,
            high: estimate + half_width,
            confidence,
        }
    }

    /// A value that did not vary at all, as a simulated clock gives: an interval without width.
    pub fn exact(value: f64, confidence: f64) -> Self {
        Self::around(value, 0.0, confidence)
    }

    /// Whether the ends are percentiles of the observations, and no confidence interval.
    pub fn is_spread(&self) -> bool {
        self.confidence == SPREAD
    }

    /// The texts of the ends as they are printed: `(1.01 to 1.07)`, those of a spread
    /// `[1.01 to 1.07]`.
    pub fn ends(&self, low: impl fmt::Display, high: impl fmt::Display) -> String {
        match self.is_spread() {
            true => format!("[{low} to {high}]"),
            false => format!("({low} to {high})"),
        }
    }

    /// Half of the distance between the ends.
    pub fn half_width(&self) -> f64 {
        0.5 * (self.high - self.low)
    }

    /// The half width as a share of the estimate, for stopping by precision: 0.01 for plus and
    /// minus 1 %. Infinite when the estimate is zero.
    pub fn relative_half_width(&self) -> f64 {
        let estimate = self.estimate.abs();
        if estimate == 0.0 {
            f64::INFINITY
        } else {
            self.half_width() / estimate
        }
    }

    /// Whether `value` lies inside, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Whether the whole interval lies within `low` to `high`, ends included.
    pub fn lies_within(&self, low: f64, high: f64) -> bool {
        low <= self.low && self.high <= high
    }

    /// All three values times `factor`: another unit, or a cost divided by a number of layers.
    pub fn scaled(&self, factor: f64) -> Self {
        let (one, other) = (self.low * factor, self.high * factor);
        Self {
            estimate: self.estimate * factor,
            low: one.min(other),
            high: one.max(other),
            confidence: self.confidence,
        }
    }

    /// All three values through a function that never falls, as an exponential.
    pub(crate) fn through(&self, rising: impl Fn(f64) -> f64) -> Self {
        Self {
            estimate: rising(self.estimate),
            low: rising(self.low),
            high: rising(self.high),
            confidence: self.confidence,
        }
    }
}

/// `1.04 (1.01 to 1.07)`, a spread `1.04 [1.01 to 1.07]`; a precision, as in `{:.2}`, applies to
/// all three.
impl fmt::Display for Interval {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: f64| match out.precision() {
            Some(digits) => format!("{value:.digits$}"),
            None => value.to_string(),
        };
        let [estimate, low, high] = [self.estimate, self.low, self.high].map(text);
        write!(out, "{estimate} {}", self.ends(low, high))
    }
}

/// A mean, a difference or a slope together with what its interval was built from, so that other
/// confidences and corrections for many comparisons can be had without the raw values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// The effect and its interval, in the unit of the values.
    pub interval: Interval,
    /// The standard error of the estimate.
    pub standard_error: f64,
    /// The degrees of freedom of Student's t.
    pub degrees_of_freedom: f64,
    /// The probability of an estimate at least this far from zero if the truth were zero.
    pub p_value: f64,
}

impl Effect {
    /// From an estimate, its standard error and the degrees of freedom.
    ///
    /// # Errors
    /// [`Error::ZeroVariance`] when the standard error is 0 and nothing can be judged,
    /// [`Error::OutOfRange`] for an impossible confidence, standard error or number of degrees of
    /// freedom, [`Error::NotFinite`].
    pub fn new(
        what: &'static str,
        estimate: f64,
        standard_error: f64,
        degrees_of_freedom: f64,
        confidence: f64,
    ) -> Result<Self, Error> {
        require_finite(what, &[estimate, standard_error])?;
        let critical = student_critical(confidence, degrees_of_freedom)?;
        if standard_error < 0.0 {
            return Err(Error::OutOfRange {
                what: "the standard error",
                value: standard_error,
                rule: "0 or more",
            });
        }
        if standard_error == 0.0 {
            return Err(Error::ZeroVariance {
                what,
                value: estimate,
            });
        }
        let interval = Interval::around(estimate, critical * standard_error, confidence);
        require_finite(what, &[interval.low, interval.high])?;
        let p_value = student_two_sided_p(estimate / standard_error, degrees_of_freedom);
        Ok(Self {
            interval,
            standard_error,
            degrees_of_freedom,
            p_value,
        })
    }

    /// The point estimate, between the ends of the interval.
    pub fn estimate(&self) -> f64 {
        self.interval.estimate
    }

    /// The same effect at another confidence.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless the confidence lies strictly between 0 and 1.
    pub fn at(&self, confidence: f64) -> Result<Self, Error> {
        require_confidence(confidence)?;
        Self::new(
            "an effect",
            self.interval.estimate,
            self.standard_error,
            self.degrees_of_freedom,
            confidence,
        )
    }

    /// All values times `factor`, which must not be 0: another unit, or the other direction.
    pub fn scaled(&self, factor: f64) -> Self {
        Self {
            interval: self.interval.scaled(factor),
            standard_error: self.standard_error * factor.abs(),
            ..*self
        }
    }
}

/// Student's interval of the mean of one sample. The p-value asks whether the mean is zero.
///
/// # Errors
/// [`Error::ZeroVariance`] when the values do not vary; as [`Moments::new`] for impossible moments;
/// [`Error::OutOfRange`] unless the confidence lies strictly between 0 and 1.
pub(crate) fn student(sample: Moments, confidence: f64) -> Result<Effect, Error> {
    let sample = sample.checked()?;
    let df = (sample.n - 1) as f64;
    Effect::new(
        "the mean's interval",
        sample.mean,
        sample.standard_error(),
        df,
        confidence,
    )
}

/// [`student`] of raw values.
///
/// # Errors
/// As [`student`] and [`Moments::of`].
pub fn student_of(values: &[f64], confidence: f64) -> Result<Effect, Error> {
    student(Moments::of(values)?, confidence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_interval_of_a_mean_is_reproduced() {
        // NIST e-Handbook 1.3.5.2, ZARR13.DAT: n 195, mean 9.261460, sd 0.022789, 95 % interval
        // 9.258242 to 9.264679.
        let effect = student(Moments::new(195, 9.261_460, 0.022_789).unwrap(), 0.95).unwrap();
        assert!((effect.interval.low - 9.258_242).abs() < 1e-6);
        assert!((effect.interval.high - 9.264_679).abs() < 1e-6);
        assert_eq!(effect.degrees_of_freedom, 194.0);
    }

    #[test]
    fn an_interval_excludes_zero_exactly_when_its_p_value_is_below_its_level() {
        let effect = student_of(&[1.0, 2.0, 3.0, 4.0, 9.0], 0.95).unwrap();
        let tight = effect.at(1.0 - effect.p_value * 1.001).unwrap();
        let wide = effect.at(1.0 - effect.p_value * 0.999).unwrap();
        assert!(tight.interval.low > 0.0 && wide.interval.low < 0.0);
    }

    #[test]
    fn impossible_input_is_refused() {
        let sample = Moments::new(5, 1.0, 0.5).unwrap();
        for confidence in [0.0, 1.0, -1.0, 95.0, f64::NAN] {
            assert!(matches!(
                student(sample, confidence),
                Err(Error::OutOfRange { .. })
            ));
        }
        let flat = student_of(&[7.0; 10], 0.95);
        assert!(matches!(flat, Err(Error::ZeroVariance { value: 7.0, .. })));
        let saved = Moments {
            n: 1,
            mean: 0.0,
            sd: 1.0,
        };
        assert!(matches!(student(saved, 0.95), Err(Error::TooFew { .. })));
        let huge = Moments {
            n: 2,
            mean: f64::MAX,
            sd: f64::MAX,
        };
        assert!(matches!(student(huge, 0.95), Err(Error::NotFinite { .. })));
    }

    #[test]
    fn scaling_by_a_negative_factor_keeps_the_ends_in_order() {
        let interval = Interval {
            estimate: 2.0,
            low: 1.0,
            high: 4.0,
            confidence: 0.9,
        };
        let negated = interval.scaled(-1.0);
        assert_eq!(
            (negated.estimate, negated.low, negated.high),
            (-2.0, -4.0, -1.0)
        );
        assert_eq!(format!("{negated:.1}"), "-2.0 (-4.0 to -1.0)");
        assert!(interval.lies_within(1.0, 4.0) && !interval.lies_within(1.1, 9.0));
        assert!(
            Interval::exact(0.0, 0.95)
                .relative_half_width()
                .is_infinite()
        );
    }
}
