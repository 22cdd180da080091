//! Runs cases in rounds: a round runs every case once, in random order, so that a slowdown of a
//! whole round is shared by all cases and cancels in their differences.
//!
//! The rules (`docs/statistics.md` gives the reasons):
//! - the length of a run is calibrated, 50 ms by default; each run begins with a warm-up that is
//!   not counted;
//! - at least ten rounds; then it stops when every case's mean is known precisely enough, for all
//!   cases together and in whole rounds, never because a difference looks significant;
//! - to fit a time budget, first repetitions are left out, down to ten rounds, then runs are made
//!   shorter; what was shortened is told;
//! - around each run the reference loop shows whether a core of it was slow; buffers lie elsewhere
//!   and threads sit elsewhere in each run ([`Reference`], [`Placement`], [`Seats`]);
//! - each round begins with the null floor: an empty loop, and reading the clock;
//! - around each run the CPU times, context switches and the counters of the device are read; what
//!   was measured before a case fails, or before the user stops, is kept.

mod calibrate;
mod case;
pub mod device;
mod floor;
mod loops;
mod measured;
mod meter;
mod placement;
mod reference;
mod run;
mod sample;
mod seats;
mod stop;
#[cfg(test)]
mod tests;

use crate::HarnessError;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use calibrate::{TRIAL_SHARE, WARM_UP_SHARE};
pub use device::{Counters, DeviceCounts, total};
pub use floor::NullFloor;
pub use loops::{CHAINS, CROWDED_NS, fill_core};
pub use measured::{Ended, Failure, Measured, Precision, Shortened};
pub use meter::{CpuTimes, Machine, Meter, Reading};
pub use placement::Placement;
pub use reference::{Judge, Reference};
pub use run::{run, run_keeping};
pub use sample::{Round, RunResult, Sample, Unfinished, Work};
pub use seats::Seats;

/// How many iterations a run of a case has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// As many as fill the time of a run.
    Calibrated,
    /// As many as fill the time of a run, but no more than this: work that has an end.
    AtMost(u64),
    /// A fixed number, after a fixed number that is not counted.
    Exactly {
        /// Iterations before the measured ones.
        warm_up: u64,
        /// Iterations that are counted.
        iterations: u64,
    },
}

/// The calibrated length of the runs of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLength {
    /// Iterations that are not counted.
    pub warm_up: u64,
    /// Iterations that are counted.
    pub iterations: u64,
}

/// The work of a case: it does so many iterations and says how long they took together.
pub type Run<'a> = Box<dyn FnMut(u64) -> Result<RunResult, HarnessError> + 'a>;

/// The preparation of a case before a run and outside of it.
pub type Prepare<'a> = Box<dyn FnMut() -> Result<(), HarnessError> + 'a>;

/// One thing to measure.
pub struct Case<'a> {
    /// Its name, unique among the cases.
    pub name: String,
    /// Runs so many iterations.
    pub run: Run<'a>,
    /// How long a run is.
    pub length: Length,
    /// The number of iterations is a multiple of this (2 for work that two threads share).
    pub step: u64,
    /// The device that the work ends at, if it has counters.
    pub device: Option<Arc<dyn Counters>>,
    /// The preparation of each counted run, such as emptying a cache; no time, CPU time or transfer
    /// of it is counted.
    pub prepare: Option<Prepare<'a>>,
    /// The place of the buffer that the work reads into, which changes before each run.
    pub placement: Option<Placement>,
    /// The cores that the work runs on, which are drawn anew before each run; none where the system
    /// places its threads.
    pub seats: Option<Seats>,
}

impl<'a> Case<'a> {
    /// A case of calibrated length.
    pub fn new(
        name: impl Into<String>,
        run: impl FnMut(u64) -> Result<RunResult, HarnessError> + 'a,
    ) -> Self {
        let (length, step) = (Length::Calibrated, 1);
        Self {
            name: name.into(),
            run: Box::new(run),
            length,
            step,
            device: None,
            prepare: None,
            placement: None,
            seats: None,
        }
    }

    /// The same case, prepared like this before each of its counted runs.
    #[must_use]
    pub fn preparing(mut self, prepare: impl FnMut() -> Result<(), HarnessError> + 'a) -> Self {
        self.prepare = Some(Box::new(prepare));
        self
    }

    /// The same case with the counters of this device beside each of its runs.
    #[must_use]
    pub fn observing(mut self, device: Arc<dyn Counters>) -> Self {
        self.device = Some(device);
        self
    }

    /// The same case with a buffer that lies elsewhere in each run.
    #[must_use]
    pub fn moving(mut self, placement: Placement) -> Self {
        self.placement = Some(placement);
        self
    }

    /// The same case on cores that are drawn before each run.
    #[must_use]
    pub fn seated(mut self, seats: Seats) -> Self {
        self.seats = Some(seats);
        self
    }

    /// The same case with runs of this length.
    #[must_use]
    pub fn with_length(mut self, length: Length) -> Self {
        self.length = length;
        self
    }

    /// The same case with iterations in multiples of `step`.
    #[must_use]
    pub fn in_steps_of(mut self, step: u64) -> Self {
        self.step = step.max(1);
        self
    }
}

/// The length of runs, the number of rounds, and their end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The seed of the order of the cases.
    pub seed: u64,
    /// The wanted wall time of a run, ns.
    pub run_ns: u64,
    /// The shortest run that a budget may force, ns.
    pub run_ns_min: u64,
    /// Fewest rounds, also where the precision is reached before.
    pub rounds_min: u64,
    /// Most rounds, also where the precision is not reached.
    pub rounds_max: u64,
    /// Enough when the half width of every case's interval is below this share of its mean.
    pub precision: f64,
    /// The confidence of that interval.
    pub confidence: f64,
    /// The time that all this may take, ns; none for as long as it needs.
    pub budget_ns: Option<u64>,
    /// The rounds for which the length of runs is chosen.
    #[serde(default = "rounds_planned")]
    pub rounds_planned: u64,
    /// Whether runs beside which the core was slow are repeated while there is time.
    #[serde(default)]
    pub repeat_disturbed: bool,
    /// Where they are known already, from another process: the lengths of the cases' runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lengths: Vec<RunLength>,
    /// The fastest decile of the reference loop in earlier processes, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference_ns: Option<u64>,
}

fn rounds_planned() -> u64 {
    ROUNDS_MIN
}

/// The fewest rounds, for any budget.
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
            rounds_planned: ROUNDS_MIN,
            repeat_disturbed: false,
            lengths: Vec::new(),
            reference_ns: None,
        }
    }
}

/// The harness's activity, for a progress bar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress<'a> {
    /// Whether it calibrates or measures.
    pub phase: Phase,
    /// The case that comes next.
    pub case: &'a str,
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
    /// A control without progress reports, which never asks for a stop.
    #[must_use]
    pub fn silent() -> Self {
        static NEVER: AtomicBool = AtomicBool::new(false);
        Self {
            // A closure without state takes no memory, so nothing is leaked.
            progress: Box::leak(Box::new(|_: &Progress<'_>| {})),
            cancelled: &NEVER,
        }
    }

    /// Whether a stop was asked for.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}
