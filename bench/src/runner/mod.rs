//! Runs cells in rounds: a round runs every cell once, in random order, so that what slows a whole
//! round down is shared by all cells and cancels in their differences.
//!
//! The rules (`docs/statistics.md` gives the reasons):
//! - the length of a run is calibrated, 50 ms by default; each run begins with a warm-up that is
//!   not counted;
//! - at least ten rounds; then it stops when every cell's mean is known precisely enough, for all
//!   cells together and in whole rounds, never because a difference looks significant;
//! - to fit a time budget, first repetitions are left out, down to ten rounds, then runs are made
//!   shorter; what was shortened is told.

mod calibrate;
mod meter;
mod stop;
#[cfg(test)]
mod tests;

use crate::BenchError;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};

pub use meter::{CpuTimes, Machine, Meter};
pub use stop::Precision;

/// What one run of a cell took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunResult {
    /// The wall time of all iterations together, by the cell's own clock, ns.
    pub ns_total: u64,
}

/// How many iterations a run of a cell has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// As many as fill the time of a run.
    Calibrated,
    /// A fixed number, after a fixed number that is not counted.
    Exactly {
        /// Iterations before the measured ones.
        warm_up: u64,
        /// Measured iterations.
        iterations: u64,
    },
}

/// The work of a cell: it does so many iterations and says how long they took together.
pub type Run<'a> = Box<dyn FnMut(u64) -> Result<RunResult, BenchError> + 'a>;

/// One thing to measure.
pub struct Cell<'a> {
    /// Its name, unique among the cells.
    pub name: String,
    /// The work.
    pub run: Run<'a>,
    /// How long a run is.
    pub length: Length,
    /// The number of iterations is a multiple of this (2 for work that two threads share).
    pub step: u64,
}

impl<'a> Cell<'a> {
    /// A cell of calibrated length.
    pub fn new(
        name: impl Into<String>,
        run: impl FnMut(u64) -> Result<RunResult, BenchError> + 'a,
    ) -> Self {
        let (length, step) = (Length::Calibrated, 1);
        Self {
            name: name.into(),
            run: Box::new(run),
            length,
            step,
        }
    }

    /// The same cell with runs of this length.
    #[must_use]
    pub fn with_length(mut self, length: Length) -> Self {
        self.length = length;
        self
    }

    /// The same cell with iterations in multiples of `step`.
    #[must_use]
    pub fn in_steps_of(mut self, step: u64) -> Self {
        self.step = step.max(1);
        self
    }
}

/// How to measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The seed of the order of the cells.
    pub seed: u64,
    /// The wanted wall time of a run, ns.
    pub run_ns: u64,
    /// The shortest run that a budget may force, ns.
    pub run_ns_min: u64,
    /// The fewest rounds.
    pub rounds_min: u64,
    /// The most rounds.
    pub rounds_max: u64,
    /// Enough when the half width of every cell's interval is below this share of its mean.
    pub precision: f64,
    /// The confidence of that interval.
    pub confidence: f64,
    /// The time that all this may take, ns; none for as long as it needs.
    pub budget_ns: Option<u64>,
}

/// Fewer rounds than this are not run, whatever the budget.
pub const ROUNDS_MIN: u64 = 10;

impl Default for Settings {
    /// Runs of 50 ms (2 ms at least), 10 to 50 rounds, until each mean is known to 1 % at 95 %.
    fn default() -> Self {
        Self {
            seed: 0,
            run_ns: 50_000_000,
            run_ns_min: 2_000_000,
            rounds_min: ROUNDS_MIN,
            rounds_max: 50,
            precision: 0.01,
            confidence: 0.95,
            budget_ns: None,
        }
    }
}

/// What the runner is doing, for a progress bar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress<'a> {
    /// The phase.
    pub phase: Phase,
    /// The cell that comes next.
    pub cell: &'a str,
    /// Runs that are done.
    pub done: u64,
    /// Runs in all, as far as is known; a precise result needs fewer.
    pub total: u64,
}

/// The phases of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Finding the length of runs, which also warms up.
    Calibrating,
    /// Measuring, round by round.
    Measuring,
}

/// The caller's way to watch and to stop a measurement.
pub struct Control<'a> {
    /// Called before each run.
    pub progress: &'a mut dyn FnMut(&Progress<'_>),
    /// Set by a signal handler: the measurement ends and keeps its whole rounds.
    pub cancelled: &'a AtomicBool,
}

impl Control<'_> {
    /// Whether somebody asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// One measured run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Iterations.
    pub iterations: u64,
    /// Wall time of all of them, ns.
    pub wall_ns: u64,
    /// CPU time meanwhile.
    pub cpu: CpuTimes,
}

impl Sample {
    /// Wall time of one iteration, ns.
    pub fn ns_per_iteration(&self) -> f64 {
        self.wall_ns as f64 / self.iterations.max(1) as f64
    }
}

/// One round: every cell once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    /// The indexes of the cells in the order in which they ran.
    pub order: Vec<usize>,
    /// A sample for each cell, in the order of the cells.
    pub samples: Vec<Sample>,
}

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
}

/// What was left out to fit the budget.
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
    /// The names of the cells.
    pub cells: Vec<String>,
    /// The whole rounds.
    pub rounds: Vec<Round>,
    /// Why it ended.
    pub ended: Ended,
    /// What was shortened.
    pub shortened: Shortened,
    /// The least precise cell; none with fewer than two rounds.
    pub precision: Option<Precision>,
    /// How long all this took, ns.
    pub elapsed_ns: u64,
}

impl Measured {
    /// The wall times of one iteration as a table of rounds and cells, ns.
    pub fn blocks(&self) -> ugeom_measure::Blocks {
        self.table(Sample::ns_per_iteration)
    }

    /// Any value of the samples as a table of rounds and cells.
    pub fn table(&self, value: impl Fn(&Sample) -> f64) -> ugeom_measure::Blocks {
        let mut blocks = ugeom_measure::Blocks::new(self.cells.iter().cloned());
        for round in &self.rounds {
            // Whole rounds of finite values only are kept, so that this cannot be refused.
            let _ = blocks.push_round(round.samples.iter().map(&value).collect());
        }
        blocks
    }
}

/// Measures the cells.
///
/// # Errors
/// What the work of a cell fails with.
pub fn run(
    cells: &mut [Cell<'_>],
    settings: &Settings,
    meter: &dyn Meter,
    control: &mut Control<'_>,
) -> Result<Measured, BenchError> {
    let started_ns = meter.now_ns();
    let plan = calibrate::plan(cells, settings, meter, control)?;
    let mut random = fastrand::Rng::with_seed(settings.seed);
    let names: Vec<String> = cells.iter().map(|cell| cell.name.clone()).collect();
    let mut rounds: Vec<Round> = Vec::new();
    let first_ns = meter.now_ns();
    let ended = loop {
        let elapsed_ns = meter.now_ns().saturating_sub(first_ns);
        let spent_ns = meter.now_ns().saturating_sub(started_ns);
        let next_ns = elapsed_ns / (rounds.len() as u64).max(1);
        if let Some(reason) = stop::reason(&rounds, settings, spent_ns, next_ns) {
            break reason;
        }
        let total = planned_rounds(settings, &rounds, spent_ns, next_ns);
        match one_round(
            cells,
            &plan,
            &mut random,
            meter,
            control,
            (rounds.len() as u64, total),
        )? {
            Some(round) => rounds.push(round),
            None => break Ended::Cancelled,
        }
    };
    let precision = stop::worst(&rounds, &names, settings.confidence);
    let imprecise = precision
        .as_ref()
        .is_none_or(|worst| worst.relative > settings.precision);
    Ok(Measured {
        cells: names,
        rounds,
        ended,
        shortened: Shortened {
            run_ns_wanted: settings.run_ns,
            run_ns: plan.run_ns,
            rounds: ended == Ended::Budget && imprecise,
        },
        precision,
        elapsed_ns: meter.now_ns().saturating_sub(started_ns),
    })
}

/// How many rounds there will be if precision does not end it earlier.
fn planned_rounds(settings: &Settings, rounds: &[Round], spent_ns: u64, next_ns: u64) -> u64 {
    let fit = match settings.budget_ns {
        Some(budget_ns) if next_ns > 0 => {
            rounds.len() as u64 + budget_ns.saturating_sub(spent_ns) / next_ns
        }
        Some(_) => settings.rounds_min,
        None => settings.rounds_max,
    };
    fit.clamp(
        settings.rounds_min,
        settings.rounds_max.max(settings.rounds_min),
    )
}

/// Runs every cell once; `None` when somebody asked to stop meanwhile. `at` is the number of this
/// round and of all.
fn one_round(
    cells: &mut [Cell<'_>],
    plan: &calibrate::Plan,
    random: &mut fastrand::Rng,
    meter: &dyn Meter,
    control: &mut Control<'_>,
    at: (u64, u64),
) -> Result<Option<Round>, BenchError> {
    let count = cells.len() as u64;
    let mut order: Vec<usize> = (0..cells.len()).collect();
    random.shuffle(&mut order);
    let mut samples = vec![Sample::default(); cells.len()];
    for (position, index) in order.iter().copied().enumerate() {
        if control.is_cancelled() {
            return Ok(None);
        }
        let cell = &mut cells[index];
        (control.progress)(&Progress {
            phase: Phase::Measuring,
            cell: &cell.name,
            done: at.0 * count + position as u64,
            total: at.1 * count,
        });
        samples[index] = sample(cell, &plan.lengths[index], meter)?;
    }
    Ok(Some(Round { order, samples }))
}

/// The warm-up and one measured run of a cell.
fn sample(
    cell: &mut Cell<'_>,
    length: &calibrate::RunLength,
    meter: &dyn Meter,
) -> Result<Sample, BenchError> {
    if length.warm_up > 0 {
        (cell.run)(length.warm_up)?;
    }
    let before = meter.cpu();
    let result = (cell.run)(length.iterations)?;
    let cpu = meter.cpu().since(&before);
    Ok(Sample {
        iterations: length.iterations,
        wall_ns: result.ns_total,
        cpu,
    })
}
