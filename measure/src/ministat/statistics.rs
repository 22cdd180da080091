//! The statistics of ministat for a data set, and for two of them.

use super::{Confidence, DataSet, Version};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// One line of the table. An overflow is infinite or NaN, as the original prints it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// The number of values.
    pub n: usize,
    /// The smallest value, ministat's Min.
    pub min: f64,
    /// The largest value, ministat's Max.
    pub max: f64,
    /// The median, as the version defines it.
    pub median: f64,
    /// The arithmetic mean, ministat's Avg.
    pub mean: f64,
    /// The sample variance (n - 1 below the line). In the classic version it may be negative: it
    /// is the difference of two large sums.
    pub variance: f64,
    /// Its root; NaN when it is negative.
    pub sd: f64,
}

impl Statistics {
    /// Computes a data set's line and sorts its values, which the plot needs.
    ///
    /// Sums are taken in the order of the lines in the classic version, of the sorted values for
    /// the current version's squares: the last digits depend on it.
    pub(super) fn of(set: &DataSet, version: Version) -> (Self, Vec<f64>) {
        let n = set.values.len();
        let count = n as f64;
        let sum = set.values.iter().fold(0.0, |sum, value| sum + value);
        let mut sorted = set.values.clone();
        // Stable, and with both zeros alike, as the original's; which one is the median is printed.
        sorted.sort_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
        let mean = sum / count;
        let middle = n / 2;
        let (median, variance) = match version {
            Version::Classic => {
                let fold = |squares: f64, value: &f64| squares + value * value;
                let squares = set.values.iter().fold(0.0, fold);
                let variance = (squares - sum * sum / count) / (count - 1.0);
                (sorted[middle], variance)
            }
            Version::Current => {
                let fold = |squares: f64, value: &f64| squares + (value - mean) * (value - mean);
                let squares = sorted.iter().fold(0.0, fold);
                let median = match n % 2 {
                    0 => (sorted[middle] + sorted[middle - 1]) / 2.0,
                    _ => sorted[middle],
                };
                (median, squares / (count - 1.0))
            }
        };
        let statistics = Self {
            n,
            min: sorted[0],
            max: sorted[n - 1],
            median,
            mean,
            variance,
            sd: variance.sqrt(),
        };
        (statistics, sorted)
    }
}

/// A data set against the first one: the two-sample Student test with pooled variance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Whether the difference is larger than its interval's half width.
    pub proven: bool,
    /// The difference of the means.
    pub difference: f64,
    /// The half width of its interval.
    pub half_width: f64,
    /// The difference in per cent of the first set's mean; infinite when that is zero.
    pub percent: f64,
    /// The half width in per cent, as the version computes it.
    pub percent_half_width: f64,
    /// The pooled standard deviation.
    pub pooled_sd: f64,
    /// Student's t from the table.
    pub critical: f64,
    /// n1 + n2 - 2.
    pub degrees_of_freedom: usize,
}

impl Difference {
    /// Compares `set` with `reference`.
    pub(super) fn of(
        set: &Statistics,
        reference: &Statistics,
        confidence: Confidence,
        version: Version,
    ) -> Self {
        let degrees_of_freedom = set.n + reference.n - 2;
        let critical = confidence.critical(degrees_of_freedom);
        let (n, m) = (set.n as f64, reference.n as f64);
        let df = degrees_of_freedom as f64;
        let pooled = ((n - 1.0) * set.variance + (m - 1.0) * reference.variance) / df;
        let pooled_sd = pooled.sqrt();
        let half_width = critical * (pooled_sd * (1.0 / n + 1.0 / m).sqrt());
        let difference = set.mean - reference.mean;
        let relative = match version {
            Version::Classic => half_width,
            Version::Current => {
                let (square, other) = (set.mean * set.mean, reference.mean * reference.mean);
                let spread =
                    (n - 1.0) * set.variance + (m - 1.0) * reference.variance * square / other;
                critical * (spread * ((n + m) / (n * m * (n + m - 2.0)))).sqrt()
            }
        };
        Self {
            proven: difference.abs() > half_width,
            difference,
            half_width,
            percent: difference * 100.0 / reference.mean,
            percent_half_width: relative * 100.0 / reference.mean,
            pooled_sd,
            critical,
            degrees_of_freedom,
        }
    }
}
