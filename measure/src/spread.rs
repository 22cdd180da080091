//! An absolute time or rate: its median, and its percentiles within one measurement.
//!
//! A confidence interval of it would be wrong. Observations of one measurement share the state of
//! the machine (clock, caches, other programs), which a repetition a minute later does not share,
//! and no formula on the values of one measurement can know that variance
//! (`docs/statistics.md`, "Times and rates"). So the ends are percentiles of the observations, and
//! nothing is claimed of a repetition. Ratios and differences within rounds have a
//! [`Center`] with confidence intervals.
//!
//! Percentiles are interpolated between order statistics: Hyndman and Fan, *Sample Quantiles in
//! Statistical Packages*, The American Statistician 50 (1996), definition 7, the default of R and
//! NumPy.

use crate::center::Center;
use crate::error::Error;
use crate::interval::{Interval, SPREAD};

/// The share of the observations below the low end, and above the high end.
const TAIL: f64 = 0.1;

/// Observations of an absolute quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread(Center);

impl Spread {
    /// Of at least [`crate::center::OBSERVATIONS_MIN`] observations.
    ///
    /// # Errors
    /// [`Error::TooFew`], [`Error::NotFinite`].
    pub fn of(values: &[f64]) -> Result<Self, Error> {
        Center::of(values).map(Self)
    }

    /// The median of the values, in their unit.
    pub fn estimate(&self) -> f64 {
        self.0.estimate()
    }

    /// The median, and the 10th and the 90th percentile as the ends of an interval without
    /// confidence ([`Interval::is_spread`]).
    pub fn interval(&self) -> Interval {
        Interval {
            estimate: self.estimate(),
            low: percentile(self.sorted(), TAIL),
            high: percentile(self.sorted(), 1.0 - TAIL),
            confidence: SPREAD,
        }
    }

    /// The observations, smallest first.
    pub fn sorted(&self) -> &[f64] {
        self.0.sorted()
    }

    /// The observations that are far from the others, as [`Center::apart`].
    pub fn apart(&self) -> Vec<f64> {
        self.0.apart()
    }
}

/// Of at least one ascending value.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    let (low, high) = (sorted[below], sorted[above]);
    low + (high - low) * (place - below as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// numpy.percentile([1..12], [10, 90]) and of [3, 1, 4, 1, 5, 9, 2, 6].
    #[test]
    fn the_ends_are_the_percentiles_of_numpy() {
        let ends = |values: &[f64]| {
            let interval = Spread::of(values).unwrap().interval();
            assert!(interval.is_spread());
            [interval.low, interval.estimate, interval.high]
        };
        let twelve: Vec<f64> = (1..=12).map(f64::from).collect();
        let near = |seen: [f64; 3], known: [f64; 3]| {
            let off = seen.iter().zip(known).map(|(a, b)| (a - b).abs());
            assert!(off.fold(0.0, f64::max) < 1e-12, "{seen:?}");
        };
        near(ends(&twelve), [2.1, 6.5, 10.9]);
        near(
            ends(&[3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0]),
            [1.0, 3.5, 6.9],
        );
        assert!(Spread::of(&twelve[..5]).is_err());
    }

    proptest! {
        #[test]
        fn the_ends_lie_around_the_median_and_within_the_values(
            values in proptest::collection::vec(-10.0_f64..10.0, 6..40),
        ) {
            let spread = Spread::of(&values).unwrap();
            let interval = spread.interval();
            prop_assert!(interval.contains(interval.estimate));
            let (least, most) = (spread.sorted()[0], spread.sorted()[values.len() - 1]);
            prop_assert!(interval.lies_within(least, most));
        }
    }
}
