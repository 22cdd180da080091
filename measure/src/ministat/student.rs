//! ministat's table of Student's t: confidences, and quantiles with three decimals.

use crate::distributions::student_quantile;
use serde::{Deserialize, Serialize};

/// The confidences that the table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names are the levels in per cent")]
pub enum Confidence {
    P80,
    P90,
    #[default]
    P95,
    P98,
    P99,
    /// Called 99.5 %, but the column holds the quantiles of 99.8 % (3.090 for a normal
    /// distribution, where 99.5 % would be 2.807): the table that it was taken from has 0.999 as
    /// its last column, not 0.9975.
    P99_5,
}

/// Degrees of freedom above this take the row of infinity.
const ROWS: usize = 100;

/// So many degrees of freedom stand for infinity: the quantiles agree with the normal ones to more
/// digits than are kept.
const INFINITE: f64 = 1e12;

/// Entries of the printed table (NIST/SEMATECH e-Handbook 1.3.6.7.2) that are not the rounded
/// quantile: degrees of freedom and entry, all in the last column. A data set has three values, so
/// that the rows above 4 are never used.
const MISPRINTS: &[(usize, f64)] = &[
    (7, 4.782),
    (8, 4.499),
    (9, 4.296),
    (10, 4.143),
    (11, 4.024),
    (12, 3.929),
];

impl Confidence {
    /// All of them, from the lowest.
    pub const ALL: [Self; 6] = [
        Self::P80,
        Self::P90,
        Self::P95,
        Self::P98,
        Self::P99,
        Self::P99_5,
    ];

    /// The confidence as it is called, in per cent.
    pub fn percent(self) -> f64 {
        match self {
            Self::P80 => 80.0,
            Self::P90 => 90.0,
            Self::P95 => 95.0,
            Self::P98 => 98.0,
            Self::P99 => 99.0,
            Self::P99_5 => 99.5,
        }
    }

    /// The one that is called so; none for other numbers.
    pub fn from_percent(percent: f64) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.percent() == percent)
    }

    /// The share of the distribution below the quantile that the table really holds.
    fn below(self) -> f64 {
        match self {
            Self::P80 => 0.90,
            Self::P90 => 0.95,
            Self::P95 => 0.975,
            Self::P98 => 0.99,
            Self::P99 => 0.995,
            Self::P99_5 => 0.999,
        }
    }

    /// Student's t as the table has it, with three decimals.
    pub(crate) fn critical(self, degrees_of_freedom: usize) -> f64 {
        let misprint = |entry: &&(usize, f64)| entry.0 == degrees_of_freedom;
        if self == Self::P99_5
            && let Some(entry) = MISPRINTS.iter().find(misprint)
        {
            return entry.1;
        }
        let row = match degrees_of_freedom {
            1..=ROWS => degrees_of_freedom as f64,
            _ => INFINITE,
        };
        (student_quantile(self.below(), row) * 1000.0).round() / 1000.0
    }
}
