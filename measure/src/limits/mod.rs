//! Limits of a device: the time of a transfer as a function of its size.
//!
//! ```text
//!   t(b) = (a^p + (b/W)^p)^(1/p)        rate   W |            ________   slope 1: W
//!                                                |         _/
//!   a  the time of a transaction                |       _/   <- knee at b = a * W
//!   W  the bandwidth                             |     _/
//!   p  how sharply one limit takes over          |   _/      1/a transactions a second
//!                                                +------------------------ size b
//! ```
//!
//! With p = 1 the two times add up (the device does one after the other); with p without bound the
//! longer one counts alone (it does both at once). Real devices lie between. At the knee both
//! limits take equally long.
//!
//! Sources: the two ends are the latency-bandwidth law of R. W. Hockney ("Parametrization of
//! computer performance", Parallel Computing 5, 1987: `n_1/2` is the knee at p = 1) and the
//! roofline of S. Williams, A. Waterman and D. Patterson (CACM 52(4), 2009); the power mean between
//! them is the blending of two limits of S. W. Churchill and R. Usagi (AIChE Journal 18, 1972).
//! The fit minimises the squares of `ln t - ln t(b)`, relative residuals, by the method of
//! Levenberg and Marquardt (D. W. Marquardt, J. SIAM 11, 1963); the lack of fit is tested against
//! the scatter of repetitions (Draper and Smith, *Applied Regression Analysis*, chapter 2).

mod fit;
mod lack;
#[cfg(test)]
mod tests;

use crate::bootstrap::Bootstrap;
use crate::error::{Error, require_count, require_finite, require_pairs};
use crate::interval::Interval;
use serde::{Deserialize, Serialize};

pub use lack::LackOfFit;

/// Three parameters and something left to judge them by.
const SIZES_MIN: u64 = 4;

/// Above this sharpness the model cannot be told from the longer of the two times: at the knee
/// they differ by 1.1 %.
pub(crate) const SHARPNESS_MAX: f64 = 64.0;

/// The limits of a device. Sizes and times may have any unit; rates are sizes per time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// `a`: the time of a transfer without size.
    pub transaction_time: f64,
    /// `1/W`: the time of one unit of size.
    pub unit_time: f64,
    /// `p`, from 1 to [`SHARPNESS_MAX`].
    pub sharpness: f64,
}

impl Limits {
    /// The time of a transfer of this size.
    pub fn time(&self, size: f64) -> f64 {
        fit::Parameters::of(self).at(size.ln()).ln_time.exp()
    }

    /// The most transactions in a unit of time.
    pub fn transaction_rate(&self) -> f64 {
        1.0 / self.transaction_time
    }

    /// The most size in a unit of time.
    pub fn bandwidth(&self) -> f64 {
        1.0 / self.unit_time
    }

    /// The size at which both limits take equally long.
    pub fn knee(&self) -> f64 {
        self.transaction_time / self.unit_time
    }

    /// How much of the time of a transfer is due to its being a transaction: 1 far below the
    /// knee, 0.5 at it, 0 far above.
    pub fn transaction_share(&self, size: f64) -> f64 {
        fit::Parameters::of(self).at(size.ln()).transaction_share
    }
}

/// Limits fitted to one time a size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fitted {
    /// The limits that fit the points best.
    pub limits: Limits,
    /// For each size, by how much the time is above the model: 0.01 for 1 %.
    pub residuals: Vec<f64>,
    /// The root of the mean square of the residuals.
    pub rms: f64,
}

impl Fitted {
    /// Fits at least four different sizes, each with its time.
    ///
    /// # Errors
    /// [`Error::TooFew`] with fewer than four different sizes, [`Error::UnequalLengths`],
    /// [`Error::NotFinite`], [`Error::OutOfRange`] for a size or time that is not above zero.
    pub fn of(sizes: &[f64], times: &[f64]) -> Result<Self, Error> {
        let logarithms = logarithms(sizes, times)?;
        Ok(Self::from_points(
            &logarithms,
            &fit::Parameters::starts(&logarithms),
        ))
    }

    fn from_points(points: &[fit::Point], starts: &[fit::Parameters]) -> Self {
        let parameters = fit::best(points, starts);
        let residuals: Vec<f64> = points
            .iter()
            .map(|point| (point.ln_time - parameters.at(point.ln_size).ln_time).exp_m1())
            .collect();
        let squares: f64 = residuals.iter().map(|residual| residual * residual).sum();
        Self {
            limits: parameters.limits(),
            rms: (squares / residuals.len() as f64).sqrt(),
            residuals,
        }
    }

    /// The largest residual, without its sign.
    pub fn worst(&self) -> f64 {
        self.residuals
            .iter()
            .fold(0.0, |worst, one| one.abs().max(worst))
    }
}

/// Limits fitted to rounds: each round has one time a size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlockedLimits {
    /// The fit to the geometric means over the rounds.
    pub fitted: Fitted,
    /// The interval of `a`.
    pub transaction_time: Interval,
    /// The interval of `W`.
    pub bandwidth: Interval,
    /// The interval of `p`.
    pub sharpness: Interval,
    /// The interval of the knee.
    pub knee: Interval,
    /// Whether the model fits as well as the scatter of the rounds lets expect; none when the
    /// rounds do not scatter.
    pub lack_of_fit: Option<LackOfFit>,
}

impl BlockedLimits {
    /// Fits at least three rounds over the same sizes. The intervals are percentiles of fits to
    /// rounds that are drawn again, whole rounds at a time.
    ///
    /// # Errors
    /// As [`Fitted::of`]; [`Error::TooFew`] with fewer than three rounds, [`Error::OutOfRange`]
    /// for the settings of the bootstrap.
    pub fn of<R: AsRef<[f64]>>(
        sizes: &[f64],
        rounds: &[R],
        bootstrap: &Bootstrap,
    ) -> Result<Self, Error> {
        require_count("limits by rounds", 3, rounds.len() as u64)?;
        let mut logarithms_of = Vec::with_capacity(rounds.len());
        for round in rounds {
            let points = logarithms(sizes, round.as_ref())?;
            logarithms_of.push(points.iter().map(|point| point.ln_time).collect::<Vec<_>>());
        }
        let drawable: Vec<&[f64]> = logarithms_of.iter().map(Vec::as_slice).collect();
        let points = |drawn: &[&[f64]]| means(sizes, drawn);
        let all = points(&drawable);
        let fitted = Fitted::from_points(&all, &fit::Parameters::starts(&all));
        let near = [fit::Parameters::of(&fitted.limits)];
        let statistics = |drawn: &[&[f64]]| {
            let limits = fit::best(&points(drawn), &near).limits();
            [
                limits.transaction_time,
                limits.bandwidth(),
                limits.sharpness,
                limits.knee(),
            ]
        };
        let [transaction_time, bandwidth, sharpness, knee] =
            bootstrap.percentiles(&drawable, statistics)?;
        Ok(Self {
            lack_of_fit: LackOfFit::of(&drawable, &fitted),
            fitted,
            transaction_time,
            bandwidth,
            sharpness,
            knee,
        })
    }

    /// The interval of the transaction rate.
    pub fn transaction_rate(&self) -> Interval {
        let time = &self.transaction_time;
        Interval {
            estimate: 1.0 / time.estimate,
            low: 1.0 / time.high,
            high: 1.0 / time.low,
            confidence: time.confidence,
        }
    }
}

/// The points of a fit, on logarithmic scales.
fn logarithms(sizes: &[f64], times: &[f64]) -> Result<Vec<fit::Point>, Error> {
    const WHAT: &str = "a fit of limits";
    require_pairs(WHAT, sizes.len(), times.len())?;
    for (what, values) in [
        ("the size of a transfer", sizes),
        ("the time of a transfer", times),
    ] {
        require_finite(what, values)?;
        if let Some(value) = values.iter().find(|value| **value <= 0.0) {
            let (value, rule) = (*value, "above zero");
            return Err(Error::OutOfRange { what, value, rule });
        }
    }
    let mut different = sizes.to_vec();
    different.sort_unstable_by(f64::total_cmp);
    different.dedup();
    require_count(WHAT, SIZES_MIN, different.len() as u64)?;
    let point = |(size, time): (&f64, &f64)| fit::Point {
        ln_size: size.ln(),
        ln_time: time.ln(),
    };
    Ok(sizes.iter().zip(times).map(point).collect())
}

/// For each size the mean of the logarithms of its times.
fn means(sizes: &[f64], drawn: &[&[f64]]) -> Vec<fit::Point> {
    let rounds = drawn.len() as f64;
    let mean = |index: usize| drawn.iter().map(|round| round[index]).sum::<f64>() / rounds;
    let point = |(index, size): (usize, &f64)| fit::Point {
        ln_size: size.ln(),
        ln_time: mean(index),
    };
    sizes.iter().enumerate().map(point).collect()
}
