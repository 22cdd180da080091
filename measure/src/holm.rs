//! Many comparisons at once: Holm's step-down correction, which keeps the probability of any false
//! claim among all of them at the stated level.
//!
//! Source: Holm, *A simple sequentially rejective multiple test procedure*, Scandinavian Journal of
//! Statistics 6 (1979). Checked against R's `p.adjust(method = "holm")`.

use serde::{Deserialize, Serialize};

use crate::error::{Error, require_confidence};

/// What Holm's procedure says about one of several comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tested {
    /// The corrected p-value: compare it with the level that holds for all together.
    pub adjusted_p: f64,
    /// The level that the uncorrected p-value had to meet.
    pub level: f64,
    /// Whether it did, so that the difference is proven.
    pub proven: bool,
}

/// Judges all p-values together, at `alpha` for the whole family; the answers have their order.
///
/// # Errors
/// [`Error::OutOfRange`] for a p-value that is not within 0 to 1 or an `alpha` that is not strictly
/// between them.
pub fn holm(p_values: &[f64], alpha: f64) -> Result<Vec<Tested>, Error> {
    require_confidence(1.0 - alpha)?;
    if let Some(wrong) = p_values.iter().find(|p| !(0.0..=1.0).contains(*p)) {
        return Err(Error::OutOfRange {
            what: "a p-value",
            value: *wrong,
            rule: "within 0 to 1",
        });
    }
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut tested = vec![
        Tested {
            adjusted_p: 1.0,
            level: alpha,
            proven: false
        };
        order.len()
    ];
    let (mut largest, mut stopped) = (0.0_f64, None);
    for (rank, index) in order.into_iter().enumerate() {
        let left = (p_values.len() - rank) as f64;
        let p = p_values[index];
        largest = largest.max((left * p).min(1.0));
        // After the first failure all others fail with it, whatever their own p-value; they would
        // have had to meet the level at which the procedure stopped.
        if stopped.is_none() && p > alpha / left {
            stopped = Some(alpha / left);
        }
        tested[index] = Tested {
            adjusted_p: largest,
            level: stopped.unwrap_or(alpha / left),
            proven: stopped.is_none(),
        };
    }
    Ok(tested)
}

/// The confidence that each of `comparisons` intervals needs so that all of them hold together with
/// the given one (Bonferroni's inequality).
///
/// # Errors
/// [`Error::OutOfRange`] unless the confidence lies strictly between 0 and 1.
pub(crate) fn simultaneous_confidence(confidence: f64, comparisons: usize) -> Result<f64, Error> {
    require_confidence(confidence)?;
    Ok(1.0 - (1.0 - confidence) / comparisons.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn adjusted(p_values: &[f64], expected: &[f64]) {
        let tested = holm(p_values, 0.05).unwrap();
        for (tested, expected) in tested.iter().zip(expected) {
            assert!(
                (tested.adjusted_p - expected).abs() < 1e-12,
                "{tested:?} {expected}"
            );
        }
    }

    #[test]
    fn adjusted_values_are_those_of_r() {
        // p.adjust(c(0.01, 0.02, 0.03, 0.04), "holm")
        adjusted(&[0.01, 0.02, 0.03, 0.04], &[0.04, 0.06, 0.06, 0.06]);
        adjusted(&[0.04, 0.01, 0.03, 0.005], &[0.06, 0.03, 0.06, 0.02]);
        adjusted(&[0.5, 0.9], &[1.0, 1.0]);
        adjusted(&[0.03], &[0.03]);
        adjusted(&[], &[]);
    }

    #[test]
    fn after_the_first_failure_nothing_more_is_proven() {
        // 0.013 fails at 0.05 / 3, and 0.02 fails with it although it is below 0.05 / 2.
        let tested = holm(&[0.02, 0.001, 0.018, 0.9], 0.05).unwrap();
        let proven: Vec<bool> = tested.iter().map(|tested| tested.proven).collect();
        assert_eq!(proven, [false, true, false, false]);
        assert!((tested[1].level - 0.0125).abs() < 1e-15);
        assert!((tested[0].level - 0.05 / 3.0).abs() < 1e-15);
        assert_eq!(tested[0].level, tested[3].level);
    }

    #[test]
    fn what_is_not_a_probability_is_refused() {
        for wrong in [-0.1, 1.1, f64::NAN] {
            assert!(matches!(
                holm(&[0.5, wrong], 0.05),
                Err(Error::OutOfRange { .. })
            ));
            assert!(holm(&[0.5], wrong).is_err());
        }
        assert_eq!(simultaneous_confidence(0.95, 5), Ok(0.99));
        assert_eq!(simultaneous_confidence(0.95, 0), Ok(0.95));
        assert!(simultaneous_confidence(1.0, 2).is_err());
    }

    proptest! {
        #[test]
        fn proven_means_an_adjusted_value_of_at_most_alpha(
            p_values in vec(0.0_f64..=1.0, 1..20),
            scale in 0.001_f64..=1.0,
        ) {
            let p_values: Vec<f64> = p_values.iter().map(|p| p * scale).collect();
            let tested = holm(&p_values, 0.05).unwrap();
            for (tested, p) in tested.iter().zip(&p_values) {
                prop_assert_eq!(tested.proven, tested.adjusted_p <= 0.05);
                prop_assert!(tested.adjusted_p >= *p && tested.adjusted_p <= 1.0);
                prop_assert!(tested.adjusted_p <= p_values.len() as f64 * p + 1e-15);
            }
        }

        #[test]
        fn a_value_that_met_its_level_would_have_been_proven(
            p_values in vec(0.0_f64..=0.1, 1..10),
            which: prop::sample::Index,
        ) {
            let which = which.index(p_values.len());
            let level = holm(&p_values, 0.05).unwrap()[which].level;
            let mut changed = p_values;
            changed[which] = level * 0.999_999;
            prop_assert!(holm(&changed, 0.05).unwrap()[which].proven);
        }
    }
}
