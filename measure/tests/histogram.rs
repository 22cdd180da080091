//! The histogram against the exact sorted data and against an independent one (`hdrhistogram`).

use proptest::collection::vec;
use proptest::prelude::*;
use ugeom_measure::{AtomicHistogram, Histogram};

/// Values of every order of magnitude.
fn value() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0_u32..64).prop_map(|(value, shift)| value >> shift)
}

fn filled(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    values.iter().for_each(|value| histogram.record(*value));
    histogram
}

/// The nearest-rank percentile of sorted data.
fn exact_percentile(sorted: &[u64], per_mille: usize) -> u64 {
    let rank = (per_mille * sorted.len()).div_ceil(1000).max(1);
    sorted[rank - 1]
}

proptest! {
    #[test]
    fn percentiles_are_within_one_per_cent_of_the_sorted_data(
        mut values in vec(value(), 1..300),
        per_mille in 0_usize..=1000,
    ) {
        let histogram = filled(&values);
        values.sort_unstable();
        let exact = exact_percentile(&values, per_mille);
        let got = histogram.percentile(per_mille as f64 / 10.0).unwrap();
        if exact < 128 {
            prop_assert_eq!(got, exact);
        } else {
            prop_assert!(got.abs_diff(exact) as f64 <= exact as f64 / 128.0, "{got} {exact}");
        }
    }

    #[test]
    fn number_sum_and_ends_are_exact(values in vec(value(), 1..300)) {
        let histogram = filled(&values);
        prop_assert_eq!(histogram.count(), values.len() as u64);
        let sum: u128 = values.iter().map(|value| u128::from(*value)).sum();
        prop_assert_eq!(histogram.sum(), sum);
        prop_assert_eq!(histogram.min(), values.iter().copied().min());
        prop_assert_eq!(histogram.max(), values.iter().copied().max());
        let counts: u64 = histogram.buckets().map(|bucket| bucket.count).sum();
        prop_assert_eq!(counts, histogram.count());
        for bucket in histogram.buckets() {
            let inside = values.iter().filter(|v| (bucket.low..=bucket.high).contains(v));
            prop_assert_eq!(inside.count() as u64, bucket.count);
        }
    }

    #[test]
    fn it_agrees_with_hdrhistogram(
        values in vec(value().prop_map(|value| value.min(u64::MAX >> 2)), 1..300),
        per_mille in 0_usize..=1000,
    ) {
        let histogram = filled(&values);
        let mut oracle = hdrhistogram::Histogram::<u64>::new(3).unwrap();
        values.iter().for_each(|value| oracle.record(*value).unwrap());
        let got = histogram.percentile(per_mille as f64 / 10.0).unwrap() as f64;
        // Where the rank is a whole number (28 % of 225), the oracle's product can be a little
        // more, and it takes the next value.
        let quantile = per_mille as f64 / 1000.0;
        let agrees = [quantile, quantile - 1e-9].iter().any(|quantile| {
            let expected = oracle.value_at_quantile(quantile.max(0.0)) as f64;
            (got - expected).abs() <= expected * (1.0 / 128.0 + 0.001) + 0.5
        });
        prop_assert!(agrees, "{got} at {quantile}");
        let mean = histogram.mean().unwrap();
        prop_assert!((mean - oracle.mean()).abs() <= mean * 0.001 + 0.5);
        let sd = histogram.standard_deviation().unwrap();
        prop_assert!((sd - oracle.stdev()).abs() <= (oracle.max() as f64) * 0.01 + 0.5);
    }

    #[test]
    fn merging_equals_recording_everything_in_one(
        left in vec(value(), 0..100),
        right in vec(value(), 0..100),
    ) {
        let mut merged = filled(&left);
        merged.merge(&filled(&right));
        let all: Vec<u64> = left.iter().chain(&right).copied().collect();
        prop_assert_eq!(&merged, &filled(&all));
        let text = serde_json::to_string(&merged).unwrap();
        prop_assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), merged);
    }

    #[test]
    fn recording_many_equals_recording_often(value in value(), times in 0_u64..50) {
        let mut many = Histogram::new();
        many.record_many(value, times);
        let often: Vec<u64> = (0..times).map(|_| value).collect();
        prop_assert_eq!(many, filled(&often));
    }

    #[test]
    fn the_atomic_one_agrees_with_the_plain_one(values in vec(value(), 0..100)) {
        let atomic = AtomicHistogram::new();
        let values: Vec<u64> = values.iter().map(|value| value >> 8).collect();
        values.iter().for_each(|value| atomic.record(*value));
        prop_assert_eq!(atomic.snapshot(), filled(&values));
    }
}
