//! How many rounds it would take to prove a difference.
//!
//! Source: NIST/SEMATECH e-Handbook 7.2.2.2, *Sample sizes required*: n is the smallest number with
//! n >= ((t(1 - alpha/2) + t(power)) sd / difference)^2, Student's t with n - 1 degrees of freedom.

use crate::distributions::student_quantile;
use crate::error::{Error, require_confidence};

/// More rounds than this are not told apart from "not in practice".
const ROUNDS_MAX: f64 = 1e9;

/// The number of rounds with which a difference of this size is proven with the probability
/// `power`, when the differences of single rounds have this standard deviation.
///
/// # Errors
/// [`Error::OutOfRange`] unless difference and deviation are above 0 and finite, and confidence and
/// power strictly between 0 and 1; or when it would take more than a thousand million.
pub fn rounds_needed(sd: f64, difference: f64, confidence: f64, power: f64) -> Result<u64, Error> {
    require_confidence(confidence)?;
    require_confidence(power)?;
    for (what, value) in [("the deviation", sd), ("the wanted difference", difference)] {
        if !(value > 0.0 && value.is_finite()) {
            return Err(Error::OutOfRange {
                what,
                value,
                rule: "above 0",
            });
        }
    }
    let enough = |rounds: f64| {
        let t = |p| student_quantile(p, rounds - 1.0);
        let sum = t(1.0 - (1.0 - confidence) / 2.0) + t(power);
        rounds >= (sum * sd / difference).powi(2)
    };
    let mut high = 2.0;
    while !enough(high) {
        high *= 2.0;
        if high > ROUNDS_MAX {
            return Err(Error::OutOfRange {
                what: "the number of rounds",
                value: high,
                rule: "below a thousand million",
            });
        }
    }
    // What is needed falls as rounds grow, so that there is one place where it is enough.
    let mut low = (high / 2.0).max(2.0);
    while high - low > 1.0 {
        let middle = ((low + high) / 2.0).floor();
        if enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(if enough(low) { low } else { high } as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nists_example_is_reproduced() {
        // One-sided at 5 %, which is two-sided at 10 %, power 0.9, a difference of one deviation:
        // 9 by the normal distribution, 11 by Student's.
        assert_eq!(rounds_needed(1.0, 1.0, 0.90, 0.90), Ok(11));
    }

    #[test]
    fn half_the_difference_takes_four_times_the_rounds() {
        let rounds = |difference| rounds_needed(1.0, difference, 0.95, 0.8).unwrap();
        // (1.96 + 0.8416)^2 = 7.849 for many degrees of freedom.
        assert_eq!(rounds(0.01), 78_491);
        assert!((rounds(0.02) as f64 / rounds(0.01) as f64 - 0.25).abs() < 1e-3);
        assert_eq!(rounds(100.0), 2);
    }

    #[test]
    fn so_many_rounds_prove_it_as_often_as_was_asked() {
        let rounds = rounds_needed(1.0, 0.5, 0.95, 0.8).unwrap();
        let mut random = fastrand::Rng::with_seed(5);
        let proven = (0..2000)
            .filter(|_| {
                let normal = |_| {
                    let p = random.f64().clamp(1e-12, 1.0 - 1e-12);
                    0.5 + crate::distributions::normal_quantile(p)
                };
                let values: Vec<f64> = (0..rounds).map(normal).collect();
                let effect = crate::interval::student_of(&values, 0.95).unwrap();
                effect.p_value <= 0.05
            })
            .count();
        // 80 % of 2000, within three standard deviations (54).
        assert!((1546..=1654).contains(&proven), "{rounds} rounds: {proven}");
    }

    #[test]
    fn impossible_plans_are_refused() {
        assert!(rounds_needed(0.0, 1.0, 0.95, 0.8).is_err());
        assert!(rounds_needed(1.0, 0.0, 0.95, 0.8).is_err());
        assert!(rounds_needed(1.0, f64::NAN, 0.95, 0.8).is_err());
        assert!(rounds_needed(1.0, 1.0, 0.95, 1.0).is_err());
        assert!(rounds_needed(1.0, 1e-9, 0.95, 0.8).is_err());
    }
}
