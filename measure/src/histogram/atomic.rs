//! A histogram that one thread writes while others look.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::bucket::{BUCKETS, index, range};
use super::plain::Histogram;

/// The histogram of a thread that others may read at any time. A look does not stop the writer, so
/// it may miss the value that is just being recorded; nothing is ever lost for the next look.
///
/// Every access is relaxed: the counts say how many, not what else has happened. [`record`] loads
/// and stores, which costs a fifth of an atomic addition but is for **one** writer at a time; where
/// several threads share a histogram they call [`record_shared`], or counts are lost.
///
/// [`record`]: AtomicHistogram::record
/// [`record_shared`]: AtomicHistogram::record_shared
pub struct AtomicHistogram {
    counts: Box<[AtomicU64; BUCKETS]>,
    /// Stops at the largest number, from where on the mean comes from the buckets.
    sum: AtomicU64,
    min: AtomicU64,
    max: AtomicU64,
}

impl Default for AtomicHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl AtomicHistogram {
    /// An empty histogram; the only allocation it will ever make.
    pub fn new() -> Self {
        Self {
            counts: Box::new([const { AtomicU64::new(0) }; BUCKETS]),
            sum: AtomicU64::new(0),
            min: AtomicU64::new(u64::MAX),
            max: AtomicU64::new(0),
        }
    }

    /// Counts one value; for one writing thread at a time.
    #[inline]
    pub fn record(&self, value: u64) {
        let bucket = &self.counts[index(value)];
        bucket.store(bucket.load(Relaxed).wrapping_add(1), Relaxed);
        self.sum
            .store(self.sum.load(Relaxed).saturating_add(value), Relaxed);
        if value < self.min.load(Relaxed) {
            self.min.store(value, Relaxed);
        }
        if value > self.max.load(Relaxed) {
            self.max.store(value, Relaxed);
        }
    }

    /// Counts one value; for any number of writing threads.
    pub fn record_shared(&self, value: u64) {
        self.counts[index(value)].fetch_add(1, Relaxed);
        let mut sum = self.sum.load(Relaxed);
        while let Err(now) =
            self.sum
                .compare_exchange_weak(sum, sum.saturating_add(value), Relaxed, Relaxed)
        {
            sum = now;
        }
        self.min.fetch_min(value, Relaxed);
        self.max.fetch_max(value, Relaxed);
    }

    /// Forgets everything, for a writer that begins anew. Values that are recorded meanwhile may or
    /// may not stay.
    pub fn clear(&self) {
        for count in self.counts.iter() {
            count.store(0, Relaxed);
        }
        self.sum.store(0, Relaxed);
        self.min.store(u64::MAX, Relaxed);
        self.max.store(0, Relaxed);
    }

    /// The counts so far. Number and percentiles come from one pass over the buckets; the mean may
    /// be off by the few values that were recorded during that pass, but it always lies where the
    /// buckets allow.
    pub fn snapshot(&self) -> Histogram {
        let filled: Vec<(u64, u64)> = self
            .counts
            .iter()
            .enumerate()
            .map(|(bucket, count)| (range(bucket).0, count.load(Relaxed)))
            .filter(|(_, count)| *count > 0)
            .collect();
        let (Some((first, _)), Some((last, _))) = (filled.first(), filled.last()) else {
            return Histogram::new();
        };
        // A value may show in its bucket before it shows in the ends or after it; the buckets
        // decide.
        let (low, high) = (range(index(*first)), range(index(*last)));
        let min = self.min.load(Relaxed).clamp(low.0, low.1);
        let max = self.max.load(Relaxed).clamp(high.0, high.1).max(min);
        let sum = match self.sum.load(Relaxed) {
            u64::MAX => sum_with(&filled, |low, high| low + (high - low) / 2),
            sum => u128::from(sum).clamp(
                sum_with(&filled, |low, _| low),
                sum_with(&filled, |_, high| high),
            ),
        };
        Histogram::from_parts(filled.into_iter(), sum, min, max)
    }
}

/// The sum with every value moved to one place of its bucket.
fn sum_with(filled: &[(u64, u64)], place: impl Fn(u64, u64) -> u64) -> u128 {
    let terms = filled.iter().map(|(low, count)| {
        let (low, high) = range(index(*low));
        u128::from(place(low, high)) * u128::from(*count)
    });
    terms.fold(0, u128::saturating_add)
}

impl std::fmt::Debug for AtomicHistogram {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("AtomicHistogram")
            .field(&self.snapshot())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    #[test]
    fn a_quiet_atomic_histogram_equals_the_plain_one() {
        let (atomic, shared) = (AtomicHistogram::new(), AtomicHistogram::new());
        let mut plain = Histogram::new();
        assert_eq!(atomic.snapshot(), plain);
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..10_000 {
            let value = random.u64(..) >> random.u32(20..64);
            atomic.record(value);
            shared.record_shared(value);
            plain.record(value);
        }
        assert_eq!(atomic.snapshot(), plain);
        assert_eq!(shared.snapshot(), plain);
        shared.clear();
        assert_eq!(shared.snapshot(), Histogram::new());
    }

    #[test]
    fn a_value_that_has_only_reached_its_bucket_is_told_within_that_bucket() {
        let atomic = AtomicHistogram::new();
        atomic.counts[index(1000)].store(1, Relaxed);
        let (low, high) = range(index(1000));
        let seen = atomic.snapshot();
        assert_eq!(
            (seen.count(), seen.min(), seen.max()),
            (1, Some(high), Some(high))
        );
        assert_eq!(seen.mean(), Some(low as f64));
        // And the other way round: the ends and the sum are there, the bucket is not yet.
        let atomic = AtomicHistogram::new();
        atomic.record(1000);
        atomic.min.store(1, Relaxed);
        atomic.max.store(1 << 40, Relaxed);
        atomic.sum.store(1 << 40, Relaxed);
        let seen = atomic.snapshot();
        assert_eq!((seen.min(), seen.max()), (Some(low), Some(high)));
        assert_eq!(seen.mean(), Some(high as f64));
    }

    #[test]
    fn a_sum_beyond_u64_falls_back_to_the_buckets() {
        let atomic = AtomicHistogram::new();
        let mut plain = Histogram::new();
        for value in [u64::MAX, 1 << 63, 3 << 62] {
            atomic.record(value);
            plain.record(value);
        }
        let (got, expected) = (atomic.snapshot().mean().unwrap(), plain.mean().unwrap());
        assert!(
            (got / expected - 1.0).abs() < 0.008,
            "{got} instead of {expected}"
        );
    }

    #[test]
    fn a_reader_sees_a_growing_and_consistent_histogram_while_it_is_written() {
        const VALUES: u64 = 50_000;
        let histogram = AtomicHistogram::new();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                (0..VALUES).for_each(|value| histogram.record(value % 1000 + 1));
                done.store(true, Relaxed);
            });
            let mut before = 0;
            while !done.load(Relaxed) {
                let now = histogram.snapshot();
                assert!(now.count() >= before && now.max() <= Some(1000));
                if let (Some(min), Some(mean)) = (now.min(), now.mean()) {
                    assert!(min >= 1 && (1.0..=1003.0).contains(&mean), "{now:?}");
                }
                before = now.count();
            }
        });
        let whole = histogram.snapshot();
        assert_eq!((whole.count(), whole.max()), (VALUES, Some(1000)));
        assert_eq!(whole.mean(), Some(500.5));
    }

    #[test]
    fn several_writers_of_a_shared_histogram_lose_nothing() {
        let histogram = AtomicHistogram::new();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|value| histogram.record_shared(value)));
            }
        });
        let whole = histogram.snapshot();
        assert_eq!((whole.count(), whole.sum()), (40_000, 4 * 49_995_000));
    }
}
