//! Least squares lines.
//!
//! Sources: Draper and Smith, *Applied Regression Analysis*, chapter 1 (slope, intercept and their
//! standard errors); checked against the certified values of NIST's dataset Norris.

use serde::{Deserialize, Serialize};

use crate::error::{Error, finite, require_count, require_pairs};
use crate::interval::Effect;
use crate::summary::mean;

/// A fitted line with the standard errors of its two parameters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The number of points.
    pub n: u64,
    /// The slope: units of y for each unit of x.
    pub slope: f64,
    /// The value of y at x = 0.
    pub intercept: f64,
    /// The standard error of the slope.
    pub slope_error: f64,
    /// The standard error of the intercept.
    pub intercept_error: f64,
    /// The standard deviation of the residuals (n - 2 below the line).
    pub residual_sd: f64,
    /// The share of the variance of y that the line explains; none when y does not vary.
    pub r_squared: Option<f64>,
}

impl Line {
    /// Fits a line to at least 3 points with at least 2 different x.
    ///
    /// # Errors
    /// [`Error::UnequalLengths`], [`Error::TooFew`], [`Error::NotFinite`], [`Error::ZeroVariance`]
    /// when all x are equal, [`Error::Overflow`].
    pub fn fit(x: &[f64], y: &[f64]) -> Result<Self, Error> {
        const WHAT: &str = "a regression line";
        require_pairs(WHAT, x.len(), y.len())?;
        require_count(WHAT, 3, x.len() as u64)?;
        let centred = Centred::of(WHAT, x, y)?;
        let n = x.len() as f64;
        let residual_squares = centred.residual_squares();
        let residual_sd = (residual_squares / (n - 2.0)).sqrt();
        let slope_error = residual_sd / centred.xx.sqrt();
        let spread_of_y: f64 = centred.y.iter().map(|y| y * y).sum();
        Ok(Self {
            n: x.len() as u64,
            slope: centred.slope,
            intercept: finite(WHAT, centred.intercept())?,
            slope_error: finite(WHAT, slope_error)?,
            intercept_error: residual_sd * (1.0 / n + centred.mean_x.powi(2) / centred.xx).sqrt(),
            residual_sd,
            r_squared: (spread_of_y > 0.0).then(|| 1.0 - residual_squares / spread_of_y),
        })
    }

    /// The slope with its interval, on n - 2 degrees of freedom.
    ///
    /// # Errors
    /// [`Error::ZeroVariance`] when every point lies on the line, [`Error::OutOfRange`] for the
    /// confidence.
    pub fn slope_effect(&self, confidence: f64) -> Result<Effect, Error> {
        let df = self.n.saturating_sub(2) as f64;
        Effect::new("the slope", self.slope, self.slope_error, df, confidence)
    }

    /// The intercept with its interval.
    ///
    /// # Errors
    /// As [`Line::slope_effect`].
    pub fn intercept_effect(&self, confidence: f64) -> Result<Effect, Error> {
        let df = self.n.saturating_sub(2) as f64;
        Effect::new(
            "the intercept",
            self.intercept,
            self.intercept_error,
            df,
            confidence,
        )
    }

    /// The value of the line at `x`.
    pub fn at(&self, x: f64) -> f64 {
        self.intercept + self.slope * x
    }
}

/// Points moved to their centre, where sums of squares keep their digits.
struct Centred {
    mean_x: f64,
    mean_y: f64,
    x: Vec<f64>,
    y: Vec<f64>,
    xx: f64,
    slope: f64,
}

impl Centred {
    /// Centres points of equal number and finds the slope.
    fn of(what: &'static str, x: &[f64], y: &[f64]) -> Result<Self, Error> {
        let (mean_x, mean_y) = (mean(x)?, mean(y)?);
        if x.iter().all(|value| *value == x[0]) {
            return Err(Error::ZeroVariance { what, value: x[0] });
        }
        let x: Vec<f64> = x.iter().map(|x| x - mean_x).collect();
        let y: Vec<f64> = y.iter().map(|y| y - mean_y).collect();
        let xx: f64 = x.iter().map(|x| x * x).sum();
        let xy: f64 = x.iter().zip(&y).map(|(x, y)| x * y).sum();
        let slope = finite(what, xy / xx)?;
        Ok(Self {
            mean_x,
            mean_y,
            x,
            y,
            xx,
            slope,
        })
    }

    fn intercept(&self) -> f64 {
        self.mean_y - self.slope * self.mean_x
    }

    fn residual_squares(&self) -> f64 {
        self.x
            .iter()
            .zip(&self.y)
            .map(|(x, y)| (y - self.slope * x).powi(2))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_without_a_line_are_refused() {
        let (x, y) = ([1.0, 2.0, 3.0], [1.0, 2.0, 4.0]);
        assert!(matches!(
            Line::fit(&x[..2], &y[..2]),
            Err(Error::TooFew { .. })
        ));
        assert!(matches!(
            Line::fit(&x[..2], &y),
            Err(Error::UnequalLengths { .. })
        ));
        assert!(matches!(
            Line::fit(&[1.0; 3], &y),
            Err(Error::ZeroVariance { value: 1.0, .. })
        ));
        assert!(matches!(
            Line::fit(&x, &[1.0, f64::NAN, 2.0]),
            Err(Error::NotFinite { index: 1, .. })
        ));
        let exact = Line::fit(&x, &[2.0, 4.0, 6.0]).unwrap();
        assert!(matches!(
            exact.slope_effect(0.95),
            Err(Error::ZeroVariance { value: 2.0, .. })
        ));
        assert_eq!(exact.at(4.0), 8.0);
        assert_eq!(Line::fit(&x, &[5.0; 3]).unwrap().r_squared, None);
        let huge = [-f64::MAX, 0.0, f64::MAX];
        assert!(Line::fit(&huge, &huge).is_err());
    }
}
