//! A histogram as files hold it: only the buckets that are not empty, each named by its smallest
//! value, so that a reader needs no knowledge of the layout.
//!
//! `{"count":3,"sum":"301","min":1,"max":200,"buckets":[[1,1],[100,1],[200,1]]}`; the sum is a
//! string because it may pass 2^64, which few readers of JSON survive.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::bucket::{index, range};
use super::plain::Histogram;

/// The form in saved results: occupied buckets only.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Saved {
    count: u64,
    sum: String,
    min: u64,
    max: u64,
    buckets: Vec<(u64, u64)>,
}

/// Why a saved histogram is refused.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum Damaged {
    #[error("the histogram's sum {0:?} is not a whole number")]
    Sum(String),
    #[error("the histogram's bucket {0} is empty, out of order or does not begin there")]
    Bucket(u64),
    #[error("the histogram's buckets hold {held} values, but its count is {count}")]
    Count { held: u128, count: u64 },
    #[error("the histogram's smallest and largest value {min} and {max} do not fit its buckets")]
    Ends { min: u64, max: u64 },
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Saved::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let saved = Saved::deserialize(deserializer)?;
        saved.try_into().map_err(serde::de::Error::custom)
    }
}

impl From<&Histogram> for Saved {
    fn from(histogram: &Histogram) -> Self {
        Self {
            count: histogram.count(),
            sum: histogram.sum().to_string(),
            min: histogram.min().unwrap_or(0),
            max: histogram.max().unwrap_or(0),
            buckets: histogram
                .buckets()
                .map(|bucket| (bucket.low, bucket.count))
                .collect(),
        }
    }
}

impl TryFrom<Saved> for Histogram {
    type Error = Damaged;

    fn try_from(saved: Saved) -> Result<Self, Damaged> {
        let sum = saved
            .sum
            .parse()
            .map_err(|_| Damaged::Sum(saved.sum.clone()))?;
        let mut held = 0_u128;
        let mut previous = None;
        for (low, count) in &saved.buckets {
            let in_order = previous.is_none_or(|previous| previous < *low);
            if *count == 0 || !in_order || range(index(*low)).0 != *low {
                return Err(Damaged::Bucket(*low));
            }
            held += u128::from(*count);
            previous = Some(*low);
        }
        if held.min(u128::from(u64::MAX)) != u128::from(saved.count) {
            return Err(Damaged::Count {
                held,
                count: saved.count,
            });
        }
        let (min, max) = (saved.min, saved.max);
        if let (Some((first, _)), Some((last, _))) = (saved.buckets.first(), saved.buckets.last()) {
            let fits = index(min) == index(*first) && index(max) == index(*last) && min <= max;
            if !fits {
                return Err(Damaged::Ends { min, max });
            }
        }
        Ok(Self::from_parts(saved.buckets.into_iter(), sum, min, max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Histogram, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_saved_histogram_reads_back_as_itself() {
        let mut histogram = Histogram::new();
        let text = serde_json::to_string(&histogram).unwrap();
        assert_eq!(read(&text).unwrap(), histogram);
        for value in [1, 100, 200, u64::MAX, u64::MAX] {
            histogram.record(value);
        }
        let text = serde_json::to_string(&histogram).unwrap();
        assert!(text.contains(r#""sum":"36893488147419103531""#), "{text}");
        assert_eq!(read(&text).unwrap(), histogram);
    }

    #[test]
    fn a_damaged_histogram_is_refused_with_the_reason() {
        let text = |count: u64, sum: &str, ends: [u64; 2], buckets: &str| {
            let [min, max] = ends;
            format!(
                r#"{{"count":{count},"sum":"{sum}","min":{min},"max":{max},"buckets":{buckets}}}"#
            )
        };
        assert!(read(&text(2, "3", [1, 2], "[[1,1],[2,1]]")).is_ok());
        for (damaged, reason) in [
            (text(2, "x", [1, 2], "[[1,1],[2,1]]"), "not a whole number"),
            (
                text(3, "3", [1, 2], "[[1,1],[2,1]]"),
                "hold 2 values, but its count is 3",
            ),
            (
                text(2, "3", [1, 2], "[[2,1],[1,1]]"),
                "bucket 1 is empty, out of order",
            ),
            (text(1, "3", [1, 2], "[[1,0],[2,1]]"), "bucket 1 is empty"),
            (
                text(1, "129", [129, 129], "[[129,1]]"),
                "does not begin there",
            ),
            (text(2, "3", [1, 3], "[[1,1],[2,1]]"), "1 and 3 do not fit"),
            (
                text(2, "257", [129, 128], "[[128,2]]"),
                "129 and 128 do not fit",
            ),
        ] {
            let error = read(&damaged).unwrap_err();
            assert!(error.contains(reason), "{damaged}: {error}");
        }
    }
}
