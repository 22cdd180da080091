//! Least squares lines.
//!
//! Source: Draper and Smith, *Applied Regression Analysis*, chapter 1; checked against the
//! certified values of NIST's dataset Norris.

use crate::error::{Error, finite, require_count, require_pairs};
use crate::summary::mean;

/// A line fitted by least squares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// The slope: units of y for each unit of x.
    pub slope: f64,
    /// The value of y at x = 0.
    pub intercept: f64,
}

impl Line {
    /// Fits a line to at least 3 points with at least 2 different x. Sums are of distances to the
    /// mean, where squares keep their digits.
    ///
    /// # Errors
    /// [`Error::UnequalLengths`], [`Error::TooFew`], [`Error::NotFinite`], [`Error::ZeroVariance`]
    /// when all x are equal, [`Error::Overflow`].
    pub fn fit(x: &[f64], y: &[f64]) -> Result<Self, Error> {
        const WHAT: &str = "a regression line";
        require_pairs(WHAT, x.len(), y.len())?;
        require_count(WHAT, 3, x.len() as u64)?;
        let (mean_x, mean_y) = (mean(x)?, mean(y)?);
        if x.iter().all(|value| *value == x[0]) {
            return Err(Error::ZeroVariance {
                what: WHAT,
                value: x[0],
            });
        }
        let xx: f64 = x.iter().map(|x| (x - mean_x).powi(2)).sum();
        let xy: f64 = x
            .iter()
            .zip(y)
            .map(|(x, y)| (x - mean_x) * (y - mean_y))
            .sum();
        let slope = finite(WHAT, xy / xx)?;
        let intercept = finite(WHAT, mean_y - slope * mean_x)?;
        Ok(Self { slope, intercept })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_without_a_line_are_refused() {
        let (x, y) = ([1.0, 2.0, 3.0], [1.0, 2.0, 4.0]);
        let error = |x: &[f64], y: &[f64]| Line::fit(x, y).expect_err("refused");
        assert!(matches!(error(&x[..2], &y[..2]), Error::TooFew { .. }));
        assert!(matches!(error(&x[..2], &y), Error::UnequalLengths { .. }));
        assert!(matches!(
            error(&[1.0; 3], &y),
            Error::ZeroVariance { value: 1.0, .. }
        ));
        assert!(matches!(
            error(&x, &[1.0, f64::NAN, 2.0]),
            Error::NotFinite { index: 1, .. }
        ));
        let huge = [-f64::MAX, 0.0, f64::MAX];
        assert!(Line::fit(&huge, &huge).is_err());
    }
}
