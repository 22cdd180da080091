//! The description of one sample: number, mean, spread, middle and ends.
//!
//! Sources: the two-pass variance with its correction term is Chan, Golub and LeVeque, *Algorithms
//! for computing the sample variance*, The American Statistician 37 (1983), eq. 1.7; the running
//! form is Welford, Technometrics 4 (1962); merging two running sums is Chan et al., eq. 2.1.
//! Percentiles are type 7 of Hyndman and Fan, *Sample quantiles in statistical packages*, The
//! American Statistician 50 (1996): the default of R, NumPy and spreadsheets.

use serde::{Deserialize, Serialize};

use crate::error::{Error, finite, require_count, require_finite};

/// The arithmetic mean of at least one value.
///
/// # Errors
/// [`Error::TooFew`] without a value, [`Error::NotFinite`], [`Error::Overflow`].
pub fn mean(values: &[f64]) -> Result<f64, Error> {
    const WHAT: &str = "the mean";
    require_count(WHAT, 1, values.len() as u64)?;
    require_finite(WHAT, values)?;
    let n = values.len() as f64;
    let first = values.iter().sum::<f64>() / n;
    // The second pass takes back what the first one lost to rounding.
    let rest = values.iter().map(|value| value - first).sum::<f64>() / n;
    finite(WHAT, first + rest)
}

/// The sample variance, with n - 1 below the line.
///
/// # Errors
/// [`Error::TooFew`] with fewer than 2 values, [`Error::NotFinite`], [`Error::Overflow`].
pub(crate) fn variance(values: &[f64]) -> Result<f64, Error> {
    const WHAT: &str = "the variance";
    require_count(WHAT, 2, values.len() as u64)?;
    let mean = mean(values)?;
    if values.iter().all(|value| *value == values[0]) {
        // The mean of equal values may differ from them in the last bit, their spread is 0 all
        // the same.
        return Ok(0.0);
    }
    finite(
        WHAT,
        sum_of_squares(values, mean) / (values.len() as f64 - 1.0),
    )
}

/// The sum of the squared deviations from `mean`, with the correction for a rounded mean.
fn sum_of_squares(values: &[f64], mean: f64) -> f64 {
    let (mut squares, mut deviations) = (0.0, 0.0);
    for value in values {
        let deviation = value - mean;
        squares += deviation * deviation;
        deviations += deviation;
    }
    squares - deviations * deviations / values.len() as f64
}

/// The sample standard deviation, the square root of [`variance`].
///
/// # Errors
/// As [`variance`].
pub fn standard_deviation(values: &[f64]) -> Result<f64, Error> {
    variance(values).map(f64::sqrt)
}

/// The median: the middle value, or the mean of the middle two.
///
/// # Errors
/// [`Error::TooFew`] without a value, [`Error::NotFinite`].
pub fn median(values: &[f64]) -> Result<f64, Error> {
    percentile(values, 50.0)
}

/// The percentile by linear interpolation (Hyndman and Fan's type 7): with the values sorted and
/// counted from 0, the value at position `(n - 1) * percent / 100`.
///
/// # Errors
/// [`Error::TooFew`] without a value, [`Error::NotFinite`], [`Error::OutOfRange`] when `percent` is
/// not within 0 to 100.
pub fn percentile(values: &[f64], percent: f64) -> Result<f64, Error> {
    const WHAT: &str = "a percentile";
    require_count(WHAT, 1, values.len() as u64)?;
    require_finite(WHAT, values)?;
    require_percent(percent)?;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Ok(percentile_of_sorted(&sorted, percent))
}

/// Refuses a value that is not a percentage.
fn require_percent(percent: f64) -> Result<(), Error> {
    if (0.0..=100.0).contains(&percent) {
        return Ok(());
    }
    Err(Error::OutOfRange {
        what: "the percentile",
        value: percent,
        rule: "within 0 to 100",
    })
}

/// [`percentile`] of values that are sorted, finite and at least one.
pub(crate) fn percentile_of_sorted(sorted: &[f64], percent: f64) -> f64 {
    let position = (sorted.len() - 1) as f64 * percent / 100.0;
    let below = position.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    let (low, high) = (sorted[below], sorted[above]);
    let weight = position - below as f64;
    // Weighted so that two values of opposite sign near the largest number cannot overflow.
    if weight == 0.0 {
        low
    } else {
        low * (1.0 - weight) + high * weight
    }
}

/// Number, mean and standard deviation: all that Student's and Welch's intervals need, so that a
/// published row can be judged without its raw values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    /// The number of values, at least 2.
    pub n: u64,
    /// Arithmetic mean, in the unit of the values.
    pub mean: f64,
    /// Their sample standard deviation (n - 1 below the line).
    pub sd: f64,
}

impl Moments {
    /// From a published row.
    ///
    /// # Errors
    /// [`Error::TooFew`] when `n` is below 2, [`Error::NotFinite`] for a mean (index 0) or a
    /// deviation (index 1) that is not finite, [`Error::OutOfRange`] for a negative deviation.
    pub fn new(n: u64, mean: f64, sd: f64) -> Result<Self, Error> {
        Self { n, mean, sd }.checked()
    }

    /// Mean and deviation of raw values.
    ///
    /// # Errors
    /// As [`variance`].
    pub fn of(values: &[f64]) -> Result<Self, Error> {
        let sd = standard_deviation(values)?;
        Self {
            n: values.len() as u64,
            mean: mean(values)?,
            sd,
        }
        .checked()
    }

    /// The same moments, or why no interval can be built on them: the fields are public and may
    /// come from a saved file.
    pub(crate) fn checked(self) -> Result<Self, Error> {
        const WHAT: &str = "a sample";
        require_count(WHAT, 2, self.n)?;
        require_finite(WHAT, &[self.mean, self.sd])?;
        if self.sd < 0.0 {
            return Err(Error::OutOfRange {
                what: "the standard deviation",
                value: self.sd,
                rule: "0 or more",
            });
        }
        Ok(self)
    }

    /// The standard error of the mean, `sd / sqrt(n)`.
    pub(crate) fn standard_error(&self) -> f64 {
        self.sd / (self.n as f64).sqrt()
    }
}

/// One sample at a glance. The unit is that of the values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The number of values.
    pub n: u64,
    /// The arithmetic mean of the values.
    pub mean: f64,
    /// The sample standard deviation (n - 1 below the line).
    pub sd: f64,
    /// The standard error of the mean.
    pub standard_error: f64,
    /// The median, as [`median`] defines it.
    pub median: f64,
    /// The smallest of the values.
    pub min: f64,
    /// The largest of the values.
    pub max: f64,
}

impl Summary {
    /// Summarises at least two values.
    ///
    /// # Errors
    /// [`Error::TooFew`] with fewer than 2 values, [`Error::NotFinite`], [`Error::Overflow`].
    pub fn of(values: &[f64]) -> Result<Self, Error> {
        let moments = Moments::of(values)?;
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        Ok(Self {
            n: moments.n,
            mean: moments.mean,
            sd: moments.sd,
            standard_error: moments.standard_error(),
            median: percentile_of_sorted(&sorted, 50.0),
            min: sorted[0],
            max: sorted[sorted.len() - 1],
        })
    }

    /// The moments for intervals.
    pub fn moments(&self) -> Moments {
        Moments {
            n: self.n,
            mean: self.mean,
            sd: self.sd,
        }
    }
}

/// Mean and variance of a stream, one value at a time and in constant memory (Welford).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Running {
    n: u64,
    mean: f64,
    squares: f64,
}

impl Running {
    /// A summary of nothing, to add values to.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one value in. A value that is not finite makes the results so, and
    /// [`Running::moments`] then refuses.
    pub fn push(&mut self, value: f64) {
        self.n = self.n.saturating_add(1);
        let before = value - self.mean;
        self.mean += before / self.n as f64;
        self.squares += before * (value - self.mean);
    }

    /// Takes in all that another stream has seen.
    pub fn merge(&mut self, other: &Self) {
        if other.n == 0 {
            return;
        }
        let (mine, theirs) = (self.n as f64, other.n as f64);
        let apart = other.mean - self.mean;
        self.n = self.n.saturating_add(other.n);
        self.mean += apart * theirs / (mine + theirs);
        self.squares += other.squares + apart * apart * mine * theirs / (mine + theirs);
    }

    /// How many values were taken in.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Number, mean and standard deviation so far.
    ///
    /// # Errors
    /// [`Error::TooFew`] with fewer than 2 values, [`Error::NotFinite`] when one was not finite.
    pub fn moments(&self) -> Result<Moments, Error> {
        require_count("the variance", 2, self.n)?;
        Moments::new(
            self.n,
            self.mean,
            (self.squares / (self.n as f64 - 1.0)).sqrt(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_interpolate_as_type_7_does() {
        // R: quantile(c(15, 20, 35, 40, 50), c(.05, .3, .4, .5, 1), type = 7)
        let values = [50.0, 15.0, 40.0, 20.0, 35.0];
        for (percent, expected) in [
            (0.0, 15.0),
            (5.0, 16.0),
            (30.0, 23.0),
            (40.0, 29.0),
            (50.0, 35.0),
            (100.0, 50.0),
        ] {
            let got = percentile(&values, percent).unwrap();
            assert!(
                (got - expected).abs() < 1e-12,
                "{percent}: {got} instead of {expected}"
            );
        }
    }

    #[test]
    fn the_median_of_an_even_number_is_the_mean_of_the_middle_two() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Ok(2.5));
        assert_eq!(median(&[3.0, 1.0, 2.0]), Ok(2.0));
    }

    #[test]
    fn equal_values_have_no_spread_even_where_their_mean_is_rounded() {
        assert_eq!(variance(&[0.1; 7]), Ok(0.0));
    }

    #[test]
    fn sums_do_not_lose_digits_to_rounding() {
        // Added up naively, a million times 0.1 is off in the 11th digit.
        assert_eq!(mean(&vec![0.1; 1_000_000]), Ok(0.1));
        // Two neighbouring floats: their mean is neither, so it is rounded to one of them, and
        // yet their variance is half of the squared gap.
        let low = f64::from(1 << 30);
        let gap = low.next_up() - low;
        assert_eq!(variance(&[low, low.next_up()]), Ok(gap * gap / 2.0));
    }

    #[test]
    fn what_cannot_be_summarised_is_refused_with_its_reason() {
        assert_eq!(
            mean(&[]),
            Err(Error::TooFew {
                what: "the mean",
                needed: 1,
                got: 0
            })
        );
        assert!(matches!(
            Summary::of(&[1.0]),
            Err(Error::TooFew {
                needed: 2,
                got: 1,
                ..
            })
        ));
        assert!(matches!(
            Summary::of(&[1.0, f64::NAN]),
            Err(Error::NotFinite { index: 1, .. })
        ));
        assert!(matches!(
            median(&[f64::INFINITY]),
            Err(Error::NotFinite { index: 0, .. })
        ));
        assert!(matches!(
            variance(&[f64::MAX, f64::MIN]),
            Err(Error::Overflow { .. })
        ));
        assert!(matches!(
            mean(&[f64::MAX, f64::MAX]),
            Err(Error::Overflow { .. })
        ));
        assert!(matches!(
            percentile(&[1.0], 100.1),
            Err(Error::OutOfRange { .. })
        ));
        assert!(matches!(
            percentile(&[1.0], f64::NAN),
            Err(Error::OutOfRange { .. })
        ));
        assert!(matches!(
            Moments::new(5, 1.0, -1.0),
            Err(Error::OutOfRange { .. })
        ));
    }

    #[test]
    fn a_running_sum_agrees_with_two_passes_however_it_was_split() {
        let mut random = fastrand::Rng::with_seed(1);
        let values: Vec<f64> = (0..1000).map(|_| 1e6 + random.f64()).collect();
        let whole = Moments::of(&values).unwrap();
        for split in [0, 1, 500, 1000] {
            let (mut left, mut right) = (Running::new(), Running::new());
            values[..split].iter().for_each(|value| left.push(*value));
            values[split..].iter().for_each(|value| right.push(*value));
            left.merge(&right);
            let merged = left.moments().unwrap();
            assert_eq!(merged.n, 1000);
            assert!((merged.mean / whole.mean - 1.0).abs() < 1e-14);
            assert!((merged.sd / whole.sd - 1.0).abs() < 1e-8);
        }
    }
}
