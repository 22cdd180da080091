//! Whether a model misses more than repetitions scatter.

use super::Fitted;
use crate::distributions::fisher_upper_tail;
use serde::{Deserialize, Serialize};

/// The model has three parameters.
const PARAMETERS: f64 = 3.0;

/// Logarithms of equal times differ by their rounding; a variance below this is none.
const ROUNDING: f64 = 1e-24;

/// The test of a lack of fit: the mean square of what the model misses over that of the scatter
/// within each size. A tiny p-value says that the model is not the whole truth; how much it misses
/// is what [`Fitted::rms`] says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LackOfFit {
    /// The ratio of the mean squares.
    pub f: f64,
    /// The probability of a ratio this large if the model were exact.
    pub p_value: f64,
    /// The standard deviation of one time around the mean of its size, after what a whole round
    /// shares is taken away: 0.01 for 1 %.
    pub scatter: f64,
}

impl LackOfFit {
    /// Judges a fit to the means of `rounds`, which hold the logarithms of the times.
    pub(super) fn of(rounds: &[&[f64]], fitted: &Fitted) -> Option<Self> {
        let (count, sizes) = (rounds.len() as f64, fitted.residuals.len() as f64);
        let missing_df = sizes - PARAMETERS;
        let scatter_df = (count - 1.0) * (sizes - 1.0);
        let missing: f64 = fitted.residuals.iter().map(|one| one.ln_1p().powi(2)).sum();
        let scatter = scatter(rounds) / scatter_df;
        if missing_df <= 0.0 || scatter.is_nan() || scatter <= ROUNDING {
            return None;
        }
        let f = count * missing / missing_df / scatter;
        Some(Self {
            f,
            p_value: fisher_upper_tail(f, missing_df, scatter_df),
            scatter: scatter.sqrt(),
        })
    }
}

/// The squares that are left when the mean of each size and of each round is taken away.
fn scatter(rounds: &[&[f64]]) -> f64 {
    let (count, sizes) = (
        rounds.len() as f64,
        rounds.first().map_or(0, |round| round.len()),
    );
    let of_size = |size: usize| rounds.iter().map(|round| round[size]).sum::<f64>() / count;
    let of_sizes: Vec<f64> = (0..sizes).map(of_size).collect();
    let of_all = of_sizes.iter().sum::<f64>() / sizes as f64;
    let in_round = |round: &&[f64]| {
        let of_round = round.iter().sum::<f64>() / sizes as f64;
        let left = |(value, of_size): (&f64, &f64)| value - of_size - of_round + of_all;
        round
            .iter()
            .zip(&of_sizes)
            .map(|pair| left(pair).powi(2))
            .sum::<f64>()
    };
    rounds.iter().map(in_round).sum()
}
