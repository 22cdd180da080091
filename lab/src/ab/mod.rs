//! `ugeom ab`: is B faster than A? Two targets, job files or commands, run in the same rounds.
//!
//! | question | file |
//! |---|---|
//! | what is a side, a target, a job file or a command? | `side.rs` |
//! | how is a target read? | `reading.rs` |
//! | how is a job file run? | `job.rs` |
//! | how is a command run? | `command.rs` |
//! | how long are runs? | `level.rs` |
//! | what is the answer? | `answer.rs` |
//! | how is it shown? | `page.rs` |
//!
//! A round runs A, B and A once more (the noise), in random order. Sides of another kind are a
//! variant of [`Side`] and a way to make a cell of it.

mod answer;
mod command;
mod job;
mod level;
mod others;
mod page;
mod printed;
mod reading;
mod side;
#[cfg(test)]
mod tests;

pub use answer::{Answer, answer};
pub use job::Jobs;
pub use others::other_sides;
pub use page::page;
pub use printed::Printed;
pub use reading::Load;
pub use side::Side;

use serde::{Deserialize, Serialize};
use ugeom_classes::spec;
use ugeom_harness::HarnessError;
use ugeom_harness::document;
use ugeom_harness::figure::{Figure, Unit};
use ugeom_harness::host::Host;
use ugeom_harness::{self as harness, Cell, Control, Meter, Settings};
use ugeom_measure::Noise;

/// The name of the experiment in documents.
pub const EXPERIMENT: &str = "ab";

/// The names of the cells: both sides, and the first one again.
pub const CELLS: [&str; 3] = ["A", "B", "A again"];

/// The time that it takes where nothing is said, ns.
pub const BUDGET_NS: u64 = 15_000_000_000;

/// The most rounds where nothing is said.
const ROUNDS_MAX: u64 = 200;

/// No budget makes runs shorter than this, ns.
const RUN_NS_MIN: u64 = 1_000_000;

/// A result.
pub type Document = document::Document<Subject>;

/// What to compare, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// What is what: A and B.
    pub subject: Subject,
    /// So many rounds, whatever time they take; else as many as precision or the budget allow.
    pub rounds: Option<u64>,
    /// How long it may take, ns.
    pub budget_ns: u64,
    /// The length of a run, ns.
    pub run_ns: u64,
    /// The seed of the order; one of the clock if none.
    pub seed: Option<u64>,
}

/// What was compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// The base.
    pub a: Side,
    /// What is compared with it.
    pub b: Side,
    /// How targets are read.
    pub load: Load,
    /// What commands print, where that is their result.
    pub printed: Option<Printed>,
    /// The confidence of the verdict.
    pub confidence: f64,
    /// The share within which both count as the same, and that a plan is made for.
    pub same_within: f64,
    /// How the stacks of both sides work, each as `KEY=VALUE`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// How that of B works, over what is said for both.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_b: Vec<String>,
}

impl Subject {
    /// How the stack of the side of that name works.
    ///
    /// # Errors
    /// [`HarnessError::Compare`] for a setting that there is not.
    fn settings(&self, cell: &str) -> Result<spec::Settings, HarnessError> {
        let of_b = if cell == CELLS[1] {
            &self.set_b[..]
        } else {
            &[]
        };
        let texts = self.set.iter().chain(of_b);
        texts
            .into_iter()
            .try_fold(spec::Settings::default(), |below, text| {
                let one = spec::Settings::parse(text)
                    .map_err(|problem| HarnessError::Compare(format!("{text}: {problem}")))?;
                Ok(one.over(below))
            })
    }
}

impl Options {
    fn settings(&self, host: &Host) -> Settings {
        let seed = self.seed.unwrap_or(host.started_unix_s);
        // Ten rounds with their warm-up fit into the budget.
        let share_ns = self.budget_ns / (2 * harness::ROUNDS_MIN * CELLS.len() as u64);
        let run_ns = match self.rounds {
            Some(_) => self.run_ns,
            None => self.run_ns.min(share_ns.max(RUN_NS_MIN)),
        };
        let plain = Settings {
            seed,
            run_ns,
            confidence: self.subject.confidence,
            // The difference of two means that are known so well is known to half a tolerance.
            precision: self.subject.same_within / 4.0,
            rounds_max: ROUNDS_MAX,
            budget_ns: Some(self.budget_ns),
            ..Settings::default()
        };
        match self.rounds {
            Some(rounds) => Settings {
                rounds_min: rounds,
                rounds_max: rounds,
                precision: 0.0,
                budget_ns: None,
                ..plain
            },
            None => plain,
        }
    }
}

/// Measures both sides. What was measured before the user stopped it, or before one of them
/// failed, is kept, but for the trials that find the length of runs.
///
/// # Errors
/// A target that cannot be opened or is too small, a job or a command that fails, before there is
/// a measured run.
pub fn run(
    options: &Options,
    jobs: &Jobs<'_>,
    meter: &dyn Meter,
    control: &mut Control<'_>,
) -> Result<Document, HarnessError> {
    let host = Host::now().with_wakeups();
    let settings = options.settings(&host);
    let subject = &options.subject;
    let cancelled = control.cancelled;
    let sides = [&subject.a, &subject.b, &subject.a];
    let mut cells: Vec<Cell<'_>> = Vec::new();
    for (name, side) in CELLS.into_iter().zip(sides) {
        cells.push(side.cell(name, subject, settings.run_ns, jobs, cancelled)?);
    }
    level::level(&mut cells, settings.run_ns, control)?;
    let (measured, error) = harness::run_keeping(&mut cells, &settings, meter, control);
    if let Some(error) = error
        && measured.rounds.is_empty()
        && measured
            .unfinished
            .as_ref()
            .is_none_or(|one| one.calibrating)
    {
        return Err(error);
    }
    let mut document = Document::new(EXPERIMENT, host, settings, subject.clone(), measured);
    compute(&mut document);
    Ok(document)
}

/// Noise and figures.
fn compute(document: &mut Document) {
    let confidence = document.subject.confidence;
    let blocks = document.blocks();
    if let (Ok(first), Ok(second)) = (blocks.values(0), blocks.values(2)) {
        document.noise = Noise::of(&first, &second, confidence).ok();
    }
    let compared = answer::compared(document);
    for judged in compared.iter().flat_map(|compared| &compared.metrics) {
        for row in &judged.rows {
            let Some(ratio) = row.ratio else { continue };
            let id = format!("ab.{}", judged.metric.id());
            let what = format!("{} of B against A", judged.metric.what());
            let mut figure = Figure::plain(&id, &what, Unit::Times, ratio);
            figure.p_value = Some(row.difference.p_value);
            figure.proven = Some(row.adjusted_p <= 1.0 - confidence);
            document.figures.push(figure);
        }
    }
}
