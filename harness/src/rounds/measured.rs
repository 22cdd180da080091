//! The outcome of a measurement: whole rounds, the reason for their end, and reductions.

use super::{Round, RunLength, Sample, Unfinished};
use serde::{Deserialize, Serialize};

/// Why a measurement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// Every mean is known precisely enough.
    Precise,
    /// The most rounds were run.
    RoundsMax,
    /// The time was over.
    Budget,
    /// The user stopped it.
    Cancelled,
    /// A case failed; [`Measured`] has the error.
    Failed,
}

/// How precisely the least precise case is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Precision {
    /// Name of the case with the widest interval.
    #[serde(rename = "cell")]
    pub case: String,
    /// The half width of the interval of its mean, as a share of the mean: 0.01 for 1 %.
    pub relative: f64,
}

/// The case that could not go on, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Name of the case that failed.
    #[serde(rename = "cell")]
    pub case: String,
    /// The error, in plain words.
    pub error: String,
}

/// The reductions to fit the budget.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shortened {
    /// The length of a run that was wanted, ns.
    pub run_ns_wanted: u64,
    /// The length of a run that fitted, ns.
    pub run_ns: u64,
    /// Whether rounds that precision asked for were left out.
    pub rounds: bool,
}

impl Shortened {
    /// Whether anything was shortened.
    pub fn any(&self) -> bool {
        self.rounds || self.run_ns < self.run_ns_wanted
    }
}

/// A finished (or stopped) measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The names of the cases.
    #[serde(rename = "cells")]
    pub cases: Vec<String>,
    /// The lengths of their runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lengths: Vec<RunLength>,
    /// Runs that were repeated because the core was slow beside them.
    #[serde(default)]
    pub repeated: u64,
    /// The rounds in which every case ran.
    pub rounds: Vec<Round>,
    /// The reason for the end of the rounds: precision, the budget, or the user.
    pub ended: Ended,
    /// The reductions to fit the budget.
    pub shortened: Shortened,
    /// The least precise case; none with fewer than two rounds.
    pub precision: Option<Precision>,
    /// How long all this took, ns.
    pub elapsed_ns: u64,
    /// The round that was not finished, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<Unfinished>,
    /// The failure of a case that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

impl Measured {
    /// Whole rounds of which nothing was left out: of a simulated machine, or of a fixture of a
    /// test.
    pub fn of(cases: Vec<String>, rounds: Vec<Round>) -> Self {
        Self {
            cases,
            lengths: Vec::new(),
            repeated: 0,
            rounds,
            ended: Ended::RoundsMax,
            shortened: Shortened {
                run_ns_wanted: 1,
                run_ns: 1,
                rounds: false,
            },
            precision: None,
            elapsed_ns: 1,
            unfinished: None,
            failure: None,
        }
    }

    /// The wall times of one iteration as a table of rounds and cases, ns.
    pub fn blocks(&self) -> ugeom_measure::Blocks {
        self.table(Sample::ns_per_iteration)
    }

    /// Any value of the samples as a table of rounds and cases.
    pub fn table(&self, value: impl Fn(&Sample) -> f64) -> ugeom_measure::Blocks {
        let mut blocks = ugeom_measure::Blocks::new(self.cases.iter().cloned());
        for round in &self.rounds {
            // Whole rounds of finite values only are kept, so that this cannot be refused.
            let _ = blocks.push_round(round.samples.iter().map(&value).collect());
        }
        blocks
    }
}
