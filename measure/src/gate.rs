//! Is one side slower than another by more than a limit? Three outcomes, so that "not shown" is
//! never taken for "shown not".
//!
//! Of one ratio (changed to base) an observation, the one-sided bounds of the median: FAIL when the
//! lower one is above the limit, PASS when the upper one is below it, else UNDECIDED. A wrong FAIL
//! and a wrong PASS have each at most the probability of a bound that does not hold, whatever the
//! distribution. Both cannot be true at once.

use serde::{Deserialize, Serialize};

use crate::center::{Bounds, Center};

/// The probability of a wrong FAIL where the truth is the limit itself: that of one end of a 95 %
/// interval, so that FAIL never stands beside "not significant".
pub const ALPHA: f64 = 0.025;

/// The answer of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Slower by more than the limit.
    Fail,
    /// Not slower by the limit.
    Pass,
    /// The interval has values on both sides of the limit.
    Undecided,
}

impl Outcome {
    /// The word that reports print: `FAIL`, `PASS`, `UNDECIDED`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fail => "FAIL",
            Self::Pass => "PASS",
            Self::Undecided => "UNDECIDED",
        }
    }

    /// The outcome of several gates: one FAIL fails, and only if all pass do all pass.
    pub fn of_all(outcomes: impl IntoIterator<Item = Self>) -> Self {
        let mut whole = Self::Pass;
        for one in outcomes {
            match one {
                Self::Fail => return Self::Fail,
                Self::Undecided => whole = Self::Undecided,
                Self::Pass => {}
            }
        }
        whole
    }
}

/// A gate's answer with its evidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// The outcome for CI.
    pub outcome: Outcome,
    /// The limit as a share: 0.05 for 5 % slower.
    pub limit: f64,
    /// One-sided bounds of the ratio of times; none with too few observations.
    pub bounds: Option<Bounds>,
}

impl Gate {
    /// Judges ratios of times, changed to base, one an observation; `alpha` is the share of a
    /// family's [`ALPHA`] that this one has.
    pub fn of(ratios: &[f64], limit: f64, alpha: f64) -> Self {
        let center = Center::of(ratios).ok();
        let bounds = center.and_then(|center| center.bounds(alpha));
        let border = 1.0 + limit;
        let outcome = match bounds {
            Some(bounds) if bounds.low > border => Outcome::Fail,
            Some(bounds) if bounds.high < border => Outcome::Pass,
            _ => Outcome::Undecided,
        };
        Self {
            outcome,
            limit,
            bounds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::normal_quantile;

    /// Pairs of fresh processes, whose ratio has noise of 2 % on each side.
    fn outcomes(truth: f64, pairs: usize, tries: usize) -> [usize; 3] {
        let mut random = fastrand::Rng::with_seed(22);
        let mut noise = || normal_quantile(random.f64().clamp(1e-9, 1.0 - 1e-9)) * 0.02;
        let mut counts = [0; 3];
        for _ in 0..tries {
            let ratio = |_| (truth.ln() + noise() - noise()).exp();
            let ratios: Vec<f64> = (0..pairs).map(ratio).collect();
            counts[Gate::of(&ratios, 0.05, ALPHA).outcome as usize] += 1;
        }
        counts
    }

    #[test]
    fn false_alarms_are_as_rare_as_stated_and_large_steps_are_found() {
        let [fail, pass, _] = outcomes(1.0, 12, 1000);
        assert_eq!(fail, 0);
        assert!(pass > 950, "{pass}");
        let [fail, pass, _] = outcomes(1.05, 12, 1000);
        assert!(fail < 50 && pass < 50, "{fail} {pass}");
        let [fail, ..] = outcomes(1.10, 12, 1000);
        assert!(fail > 950, "{fail}");
    }

    #[test]
    fn few_observations_decide_nothing_and_one_failure_fails_all() {
        assert_eq!(Gate::of(&[1.0; 4], 0.05, ALPHA).outcome, Outcome::Undecided);
        use Outcome::{Fail, Pass, Undecided};
        assert_eq!(Outcome::of_all([Pass, Undecided, Fail]), Fail);
        assert_eq!(Outcome::of_all([Pass, Undecided]), Undecided);
        assert_eq!(Outcome::of_all([Pass, Pass]), Pass);
    }
}
