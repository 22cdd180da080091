//! The histogram of one thread.

use super::bucket::{BUCKETS, Bucket, index, range};

/// Counts of values in 3,776 buckets, with exact number, sum, smallest and largest.
#[derive(Clone, PartialEq, Eq)]
pub struct Histogram {
    counts: Box<[u64; BUCKETS]>,
    count: u64,
    /// The sum, in two words.
    sum_low: u64,
    sum_high: u64,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram; the only allocation it will ever make.
    pub fn new() -> Self {
        Self {
            counts: Box::new([0; BUCKETS]),
            count: 0,
            sum_low: 0,
            sum_high: 0,
            min: u64::MAX,
            max: 0,
        }
    }

    /// Counts one value. Counts stop at their largest number instead of wrapping.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.add_to_bucket(index(value), 1);
        // Three words change with every value: the bucket, the number, the sum. The others change
        // so rarely that a branch, which is foreseen, costs less than storing them each time.
        let (low, carried) = self.sum_low.overflowing_add(value);
        self.sum_low = low;
        if carried {
            self.carry();
        }
        if value < self.min {
            self.min = value;
        }
        if value > self.max {
            self.max = value;
        }
    }

    #[cold]
    fn carry(&mut self) {
        match self.sum_high.checked_add(1) {
            Some(high) => self.sum_high = high,
            None => self.set_sum(u128::MAX),
        }
    }

    fn set_sum(&mut self, sum: u128) {
        (self.sum_low, self.sum_high) = (sum as u64, (sum >> 64) as u64);
    }

    /// Counts `times` equal values.
    pub fn record_many(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        self.add_to_bucket(index(value), times);
        let sum = u128::from(value) * u128::from(times);
        self.set_sum(self.sum().saturating_add(sum));
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    #[inline]
    fn add_to_bucket(&mut self, bucket: usize, times: u64) {
        self.counts[bucket] = self.counts[bucket].saturating_add(times);
        self.count = self.count.saturating_add(times);
    }

    /// Takes in all that another histogram has counted.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts.iter()) {
            *mine = mine.saturating_add(*theirs);
        }
        self.count = self.count.saturating_add(other.count);
        self.set_sum(self.sum().saturating_add(other.sum()));
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Forgets everything, keeps the memory.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        (self.count, self.min, self.max) = (0, u64::MAX, 0);
        self.set_sum(0);
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all values, exact.
    pub fn sum(&self) -> u128 {
        u128::from(self.sum_high) << 64 | u128::from(self.sum_low)
    }

    /// The smallest value, exact; none when empty.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// The largest value, exact; none when empty.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// The mean, exact to the rounding of the division; none when empty.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum() as f64 / self.count as f64)
    }

    /// The standard deviation (n below the line, as fio's), from the middles of the buckets and so
    /// within their width; none when empty.
    pub fn standard_deviation(&self) -> Option<f64> {
        let mean = self.mean()?;
        let squares: f64 = self
            .buckets()
            .map(|bucket| {
                bucket.count as f64 * (self.clamped(bucket.middle()) as f64 - mean).powi(2)
            })
            .sum();
        Some((squares / self.count as f64).sqrt())
    }

    /// The value that at least `percent` of all values do not exceed (nearest rank: the one at rank
    /// `ceil(percent / 100 * count)` in sorted order), as the middle of its bucket: exact to 127,
    /// within 0.8 % above, never outside of the smallest and largest value. None when empty or when
    /// `percent` is not within 0 to 100.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        if self.count == 0 || !(0.0..=100.0).contains(&percent) {
            return None;
        }
        let rank = rank(percent, self.count);
        let mut seen = 0_u64;
        for bucket in self.buckets() {
            seen = seen.saturating_add(bucket.count);
            if seen >= rank {
                return Some(self.clamped(bucket.middle()));
            }
        }
        Some(self.max)
    }

    fn clamped(&self, value: u64) -> u64 {
        value.max(self.min).min(self.max)
    }

    /// The buckets that hold something, from the smallest values to the largest.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(bucket, count)| {
                let (low, high) = range(bucket);
                Bucket {
                    low,
                    high,
                    count: *count,
                }
            })
    }

    /// Puts a histogram together from its parts, which must fit each other: `min` and `max` lie
    /// within the first and the last filled bucket.
    pub(super) fn from_parts(
        buckets: impl Iterator<Item = (u64, u64)>,
        sum: u128,
        min: u64,
        max: u64,
    ) -> Self {
        let mut histogram = Self::new();
        for (low, count) in buckets {
            histogram.add_to_bucket(index(low), count);
        }
        if histogram.count > 0 {
            (histogram.min, histogram.max) = (min, max);
            histogram.set_sum(sum);
        }
        histogram
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Histogram")
            .field("count", &self.count)
            .field("min", &self.min())
            .field("mean", &self.mean())
            .field("max", &self.max())
            .finish_non_exhaustive()
    }
}

/// The nearest rank, from 1. A product that misses a whole number by a rounding error only is that
/// number: 99.9 % of 1,000 is the 999th value.
fn rank(percent: f64, count: u64) -> u64 {
    let exact = percent * count as f64 / 100.0;
    let nearest = exact.round();
    let close = (exact - nearest).abs() <= exact * 4.0 * f64::EPSILON;
    let rank = if close { nearest } else { exact.ceil() };
    (rank as u64).clamp(1, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_histogram_has_no_values_to_tell() {
        let empty = Histogram::new();
        assert_eq!(
            (empty.count(), empty.min(), empty.max(), empty.mean()),
            (0, None, None, None)
        );
        assert_eq!(
            (empty.percentile(50.0), empty.standard_deviation()),
            (None, None)
        );
        assert_eq!(empty.buckets().count(), 0);
    }

    #[test]
    fn values_to_127_are_exact_at_every_percentile() {
        let mut histogram = Histogram::new();
        (1..=100).for_each(|value| histogram.record(value));
        for percent in 1..=100_u64 {
            assert_eq!(histogram.percentile(percent as f64), Some(percent));
        }
        assert_eq!(histogram.percentile(0.0), Some(1));
        assert_eq!(histogram.percentile(99.01), Some(100));
        assert_eq!(histogram.percentile(-1.0), None);
        assert_eq!(histogram.percentile(f64::NAN), None);
        assert_eq!((histogram.mean(), histogram.sum()), (Some(50.5), 5050));
        let sd = histogram.standard_deviation().unwrap();
        assert!((sd - (9999.0_f64 / 12.0).sqrt()).abs() < 1e-9);
    }

    #[test]
    fn the_ends_of_the_range_are_counted_without_a_clamp() {
        let mut histogram = Histogram::new();
        for value in [0, 1 << 63, u64::MAX] {
            histogram.record(value);
        }
        assert_eq!(
            (histogram.min(), histogram.max()),
            (Some(0), Some(u64::MAX))
        );
        assert_eq!(
            histogram.percentile(100.0),
            Some(histogram.buckets().last().unwrap().middle())
        );
        assert_eq!(histogram.sum(), u128::from(u64::MAX) + (1 << 63));
    }

    #[test]
    fn a_sum_that_exceeds_a_word_is_exact_and_one_that_exceeds_two_stops() {
        let mut histogram = Histogram::new();
        for _ in 0..5 {
            histogram.record(u64::MAX);
            histogram.record(3);
        }
        assert_eq!(histogram.sum(), 5 * (u128::from(u64::MAX) + 3));
        let largest = Histogram::from_parts([(5, 1)].into_iter(), u128::MAX - 1, 5, 5);
        let mut more = largest.clone();
        more.record(7);
        assert_eq!(more.sum(), u128::MAX);
        histogram.merge(&largest);
        assert_eq!(histogram.sum(), u128::MAX);
    }

    #[test]
    fn counts_that_would_overflow_stop_instead() {
        let mut histogram = Histogram::new();
        histogram.record_many(5, u64::MAX);
        histogram.record_many(5, 2);
        histogram.record_many(7, 0);
        let copy = histogram.clone();
        histogram.merge(&copy);
        assert_eq!((histogram.count(), histogram.max()), (u64::MAX, Some(5)));
        assert_eq!(histogram.percentile(50.0), Some(5));
        histogram.clear();
        assert_eq!(histogram, Histogram::new());
    }

    #[test]
    fn ranks_that_miss_a_whole_number_by_rounding_only_are_not_moved_up() {
        assert_eq!(rank(99.9, 1000), 999);
        assert_eq!(rank(99.99, 10_000), 9_999);
        assert_eq!(1.1 * 3000.0 / 100.0, 33.000_000_000_000_01);
        assert_eq!(rank(1.1, 3000), 33);
        assert_eq!(rank(99.9, 1001), 1000);
        assert_eq!(rank(0.0, 10), 1);
        assert_eq!(rank(100.0, u64::MAX), u64::MAX);
    }
}
