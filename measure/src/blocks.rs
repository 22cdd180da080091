//! A table of rounds and cases: a round runs every case once, and cases are compared by their
//! differences within rounds, so that a slowdown of a whole round cancels.
//!
//! Source: the randomised complete block design, with the paired form of Student's interval; Box,
//! Hunter and Hunter, *Statistics for Experimenters*, chapters 3 and 4.

use crate::error::{Error, require_count, require_finite, require_pairs};
use crate::interval::{Effect, student_of};
use crate::ratio::{Ratio, log_ratio_paired};

/// With fewer rounds than this there is no telling a difference from an accident.
pub const ROUNDS_MIN: u64 = 3;

/// Rounds by cases, every round complete.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Blocks {
    cases: Vec<String>,
    rounds: Vec<Vec<f64>>,
}

impl Blocks {
    /// An empty table with these cases.
    pub fn new<S: Into<String>>(cases: impl IntoIterator<Item = S>) -> Self {
        Self {
            cases: cases.into_iter().map(Into::into).collect(),
            rounds: Vec::new(),
        }
    }

    /// Adds one round: a value for each case, in the order of the cases whatever the order in which
    /// they ran.
    ///
    /// # Errors
    /// [`Error::UnequalLengths`] when a case has no value or there are values without a case,
    /// [`Error::NotFinite`] with the index of the case.
    pub fn push_round(&mut self, values: Vec<f64>) -> Result<(), Error> {
        const WHAT: &str = "a round and its cases";
        require_pairs(WHAT, values.len(), self.cases.len())?;
        require_finite(WHAT, &values)?;
        self.rounds.push(values);
        Ok(())
    }

    /// The names of the cases.
    pub fn cases(&self) -> &[String] {
        &self.cases
    }

    /// The rounds so far, each with one value a case.
    pub fn rounds(&self) -> &[Vec<f64>] {
        &self.rounds
    }

    /// The index of the case of this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.cases.iter().position(|case| case == name)
    }

    /// The values of one case, round by round.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] when there is no such case.
    pub fn values(&self, case: usize) -> Result<Vec<f64>, Error> {
        if case >= self.cases.len() {
            return Err(Error::OutOfRange {
                what: "the index of a case",
                value: case as f64,
                rule: "below the number of cases",
            });
        }
        Ok(self.rounds.iter().map(|round| round[case]).collect())
    }

    /// The interval of a weighted sum of cases within rounds: a difference of differences, or the
    /// mean of some cases against the mean of others.
    ///
    /// # Errors
    /// [`Error::TooFew`] with fewer than [`ROUNDS_MIN`] rounds, [`Error::ZeroVariance`] when the
    /// sum is the same in every round, [`Error::OutOfRange`] when there is no such case or for the
    /// confidence, [`Error::NotFinite`] for a weight that is not finite.
    pub fn contrast(&self, weights: &[(usize, f64)], confidence: f64) -> Result<Effect, Error> {
        self.require_rounds()?;
        let mut sums = vec![0.0; self.rounds.len()];
        for (case, weight) in weights {
            for (sum, value) in sums.iter_mut().zip(self.values(*case)?) {
                *sum += weight * value;
            }
        }
        student_of(&sums, confidence)
    }

    /// The interval of the typical (geometric mean) ratio within a round, `changed / base`.
    ///
    /// # Errors
    /// As [`Blocks::contrast`]; [`Error::OutOfRange`] when a value is not above 0.
    pub fn typical_ratio(
        &self,
        base: usize,
        changed: usize,
        confidence: f64,
    ) -> Result<Ratio, Error> {
        self.require_rounds()?;
        log_ratio_paired(&self.values(changed)?, &self.values(base)?, confidence)
    }

    /// Refuses a table with too few rounds for any comparison.
    fn require_rounds(&self) -> Result<(), Error> {
        require_count(
            "a comparison within rounds",
            ROUNDS_MIN,
            self.rounds.len() as u64,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rounds: &[[f64; 3]]) -> Blocks {
        let mut blocks = Blocks::new(["md0", "md0s1", "md0s1c"]);
        rounds
            .iter()
            .for_each(|round| blocks.push_round(round.to_vec()).unwrap());
        blocks
    }

    /// The rounds drift by far more than the cases differ.
    const DRIFTING: [[f64; 3]; 5] = [
        [100.0, 102.0, 104.0],
        [120.0, 122.1, 124.0],
        [90.0, 91.9, 94.1],
        [150.0, 152.0, 153.9],
        [101.0, 103.1, 105.0],
    ];

    #[test]
    fn a_drift_that_all_cases_share_cancels() {
        let blocks = table(&DRIFTING);
        let step = blocks.contrast(&[(1, 1.0), (0, -1.0)], 0.95).unwrap();
        assert!((step.estimate() - 2.02).abs() < 1e-9);
        assert!(step.interval.half_width() < 0.12 && step.p_value < 1e-5);
        assert_eq!(step.degrees_of_freedom, 4.0);
    }

    #[test]
    fn a_difference_within_rounds_is_the_paired_student_interval() {
        // Student's own sleep data (Biometrika 6, 1908): mean difference 1.58, sd 1.2299, t 4.0621,
        // 95 % interval 0.7001142 to 2.4598858 (R: t.test(paired = TRUE)).
        let drug_1 = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let drug_2 = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let mut blocks = Blocks::new(["drug 1", "drug 2"]);
        for (one, two) in drug_1.iter().zip(drug_2) {
            blocks.push_round(vec![*one, two]).unwrap();
        }
        let effect = blocks.contrast(&[(1, 1.0), (0, -1.0)], 0.95).unwrap();
        assert!((effect.interval.low - 0.700_114_2).abs() < 5e-8);
        assert!((effect.interval.high - 2.459_885_8).abs() < 5e-8);
        assert!((effect.p_value - 0.002_833).abs() < 5e-7);
    }

    #[test]
    fn two_rounds_are_refused_in_plain_words() {
        let refused = table(&DRIFTING[..2])
            .contrast(&[(1, 1.0), (0, -1.0)], 0.95)
            .unwrap_err();
        assert_eq!(
            refused.to_string(),
            "a comparison within rounds needs at least 3 values, there are 2"
        );
        assert!(table(&DRIFTING[..2]).typical_ratio(0, 1, 0.95).is_err());
    }

    #[test]
    fn a_ragged_round_a_missing_case_and_a_nan_are_refused() {
        let mut blocks = table(&DRIFTING);
        assert!(matches!(
            blocks.push_round(vec![1.0]),
            Err(Error::UnequalLengths { .. })
        ));
        let nan = blocks.push_round(vec![1.0, f64::NAN, 1.0]);
        assert!(matches!(nan, Err(Error::NotFinite { index: 1, .. })));
        assert_eq!(blocks.rounds().len(), 5);
        assert!(matches!(blocks.values(3), Err(Error::OutOfRange { .. })));
        assert_eq!(blocks.position("md0s1c"), Some(2));
    }
}
