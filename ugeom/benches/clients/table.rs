//! Values of rounds, printed as medians with an interval.

use crate::shared::Failure;
use ugeom_measure::center::{Center, OBSERVATIONS_MIN};
use ugeom_measure::summary::median;

const CONFIDENCE: f64 = 0.95;

/// `MEDIAN (LOW to HIGH)`: the interval of the median, which 7 rounds know with 98 %. With too few
/// rounds for one, the lowest and highest.
pub(crate) fn middle(values: &[f64], digits: usize) -> Result<String, Failure> {
    let (estimate, low, high) = if values.len() < OBSERVATIONS_MIN {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (median(values)?, low, high)
    } else {
        let interval = Center::of(values)?.at(CONFIDENCE)?;
        (interval.estimate, interval.low, interval.high)
    };
    Ok(format!(
        "{estimate:.digits$} ({low:.digits$} to {high:.digits$})"
    ))
}

/// The ratio of each round.
pub(crate) fn ratios(of: &[f64], to: &[f64]) -> Vec<f64> {
    of.iter().zip(to).map(|(of, to)| of / to).collect()
}
