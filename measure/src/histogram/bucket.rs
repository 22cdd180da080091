//! The bucket of a value, and the range of values of a bucket.

use serde::{Deserialize, Serialize};

/// The number of buckets for each doubling, as a power of two.
const BITS: u32 = 6;

/// The number of buckets: 128 exact ones, then 64 for each of the 57 remaining doublings.
pub const BUCKETS: usize = (64 - BITS as usize + 1) << BITS;

/// A bucket that holds something: the values from `low` to `high`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// The smallest value that falls into it.
    pub low: u64,
    /// The largest value that falls into it.
    pub high: u64,
    /// How many values fell into it.
    pub count: u64,
}

impl Bucket {
    /// The value that stands for all in the bucket: its middle, at most 1/128 off.
    pub fn middle(&self) -> u64 {
        self.low + self.high.saturating_sub(self.low) / 2
    }
}

/// The bucket of a value. Both halves of the range share one formula: setting the low seven bits
/// makes every value below 128 shift by nothing, so that there is no branch.
#[inline]
pub(super) fn index(value: u64) -> usize {
    let shift = (u64::BITS - 1 - BITS) - (value | ((2 << BITS) - 1)).leading_zeros();
    ((shift as usize) << BITS) + (value >> shift) as usize
}

/// The smallest and the largest value of a bucket below [`BUCKETS`].
pub(super) fn range(index: usize) -> (u64, u64) {
    let shift = (index >> BITS).saturating_sub(1);
    let low = ((index - (shift << BITS)) as u64) << shift;
    (low, low + ((1 << shift) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_a_gap_to_the_end_of_u64() {
        let mut next = 0_u64;
        for bucket in 0..BUCKETS {
            let (low, high) = range(bucket);
            assert_eq!(low, next, "bucket {bucket}");
            assert_eq!((index(low), index(high)), (bucket, bucket));
            assert!(high == low || (high - low) as f64 / 2.0 / low as f64 <= 1.0 / 128.0);
            next = high.wrapping_add(1);
        }
        assert_eq!(next, 0, "the last bucket ends at the largest u64");
    }

    #[test]
    fn values_to_127_have_a_bucket_of_their_own() {
        for value in 0..128 {
            assert_eq!(range(index(value)), (value, value));
        }
        assert_eq!(range(index(128)), (128, 129));
    }
}
