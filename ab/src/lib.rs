//! `ugeom ab`: which candidate is faster? Targets, job files or commands, run in the same rounds.
//!
//! | question | file |
//! |---|---|
//! | what is a side, a target, a job file or a command? | `side.rs` |
//! | which candidates does a parameter make? | `scan.rs` |
//! | how is a target read? | `reading.rs` |
//! | how is a job file run? | `job.rs` |
//! | how is a command run, and what around it? | `command.rs`, `shell.rs`, `words.rs` |
//! | how long are runs? | `level.rs` |
//! | in which processes and rounds? | `processes.rs` |
//! | what do the samples say? | `judge.rs` |
//! | what is the answer? | `answer.rs` |
//! | how is it shown? | `page.rs` |
//!
//! A round runs every candidate once, in random order, and where targets are read the first one
//! once more (A/A). A process is one observation: targets and job files are measured in fresh
//! processes of this program, and a command is a fresh process itself.

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

mod answer;
mod command;
mod job;
mod judge;
mod level;
mod others;
mod page;
mod printed;
mod processes;
mod reading;
mod scan;
mod shell;
mod side;
#[cfg(test)]
mod tests;
mod words;

pub use answer::{Answer, answer};
pub use job::Jobs;
#[cfg(test)]
use judge::contest;
pub use judge::{Contest, Judgement, gate};
pub use others::other_sides;
pub use page::page;
pub use printed::Printed;
pub use processes::{run, worker};
pub use reading::Load;
pub use scan::{Scan, scanned};
pub use shell::Shell;
pub use side::Side;

use serde::{Deserialize, Serialize};
use ugeom_classes::spec;
use ugeom_harness::HarnessError;
use ugeom_harness::document;

/// The name of the experiment in documents.
pub const EXPERIMENT: &str = "ab";

/// The case that measures a shell which does nothing.
const SHELL: &str = "shell";

/// The result of a comparison, with its candidates.
pub type Document = document::Document<Subject>;

/// The candidates, and the rules of the comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AbOptions {
    /// The candidates, and how they are run and judged.
    pub subject: Subject,
    /// So many rounds (of each process, where there are processes), whatever time they take.
    pub rounds: Option<u64>,
    /// In so many processes; as many as the budget allows if none. Commands are processes.
    pub processes: Option<u32>,
    /// How long it may take, ns.
    pub budget_ns: u64,
    /// The length of a run, ns.
    pub run_ns: u64,
    /// The seed of the order; one of the clock if none.
    pub seed: Option<u64>,
    /// Whether job files may overwrite content.
    pub destroy: bool,
}

/// One of those that are compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// Its name, which is that of its case: `A`, `B`, or the name that the user or a parameter
    /// gives.
    pub name: String,
    /// The target, jobs or command to measure.
    pub side: Side,
    /// Stack settings of this candidate, each as `KEY=VALUE`; they override those of all others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// Run once before all measurements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    /// Run before each measured run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepare: Option<String>,
    /// Run after each measured run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conclude: Option<String>,
    /// Run once after all measurements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup: Option<String>,
    /// Runs that ended with an exit code other than 0, which was ignored.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_runs: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Candidate {
    /// One without a name and without commands around it.
    pub fn of(side: Side) -> Self {
        Self {
            name: String::new(),
            side,
            set: Vec::new(),
            setup: None,
            prepare: None,
            conclude: None,
            cleanup: None,
            failed_runs: 0,
        }
    }
}

/// The candidates, and everything that decides how they are run and judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// The candidates; the first one is the base.
    pub candidates: Vec<Candidate>,
    /// How targets are read.
    pub load: Load,
    /// The unit of printed results, if commands print their result.
    pub printed: Option<Printed>,
    /// The confidence of the verdicts of a metric together.
    pub confidence: f64,
    /// The share within which two count as equivalent.
    pub same_within: f64,
    /// How the stacks of all targets work, each as `KEY=VALUE`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// How commands are started.
    pub shell: Shell,
    /// Runs of each command that are not counted.
    pub warmup: u64,
    /// Whether commands may end with an exit code other than 0.
    pub ignore_failure: bool,
    /// A limit as a share: is a candidate slower than the base by more?
    pub fail_if_slower: Option<f64>,
}

impl Subject {
    /// Candidates under the usual rules. Those without a name are called A, B, C and so on.
    pub fn of(mut candidates: Vec<Candidate>) -> Self {
        let mut taken: Vec<String> = vec![SHELL.to_owned()];
        for (at, candidate) in candidates.iter_mut().enumerate() {
            if candidate.name.is_empty() {
                candidate.name = letter(at);
            }
            // Names are those of cases, and no two cases have one.
            while taken.contains(&candidate.name) {
                candidate.name.push('\'');
            }
            taken.push(candidate.name.clone());
        }
        Self {
            candidates,
            load: Load::default(),
            printed: None,
            confidence: 0.95,
            same_within: 0.01,
            set: Vec::new(),
            shell: Shell::default(),
            warmup: 1,
            ignore_failure: false,
            fail_if_slower: None,
        }
    }

    /// The name of the base.
    fn base(&self) -> &str {
        self.candidates.first().map_or("", |first| &first.name)
    }

    /// The case that does the same as the base.
    fn again(&self) -> String {
        format!("{} again", self.base())
    }

    /// Whether all candidates are commands.
    fn is_of_commands(&self) -> bool {
        let is_command = |one: &Candidate| matches!(one.side, Side::Command(_));
        self.candidates.iter().all(is_command)
    }

    /// How the stack of a candidate works.
    ///
    /// # Errors
    /// [`HarnessError::Compare`] for a setting that there is not.
    fn settings(&self, candidate: &Candidate) -> Result<spec::Settings, HarnessError> {
        let texts = self.set.iter().chain(&candidate.set);
        texts
            .into_iter()
            .try_fold(spec::Settings::default(), |below, text| {
                let one = spec::Settings::parse(text)
                    .map_err(|problem| HarnessError::Compare(format!("{text}: {problem}")))?;
                Ok(one.over(below))
            })
    }
}

/// `A` to `Z`, `AA`, `AB` and so on.
fn letter(at: usize) -> String {
    let last = char::from(b'A' + (at % 26) as u8);
    match at / 26 {
        0 => last.to_string(),
        more => letter(more - 1) + &last.to_string(),
    }
}
