//! `ugeom lab engines`: can threads that make blocking calls stand beside the kernel's
//! asynchronous I/O?
//!
//! The experiment of 2007 on today's machine: random reads and writes of 4 KiB past the system's
//! cache, 100, 1000 and 10,000 at a time, by libaio, by io_uring, by GUASI, and by one thread a
//! request; limited by size and not by time, interleaved, judged pair by pair. Beside it, what an
//! engine costs by itself, and what it costs to make any call asynchronous. `docs/lab-engines.md`
//! is the page for users.

mod account;
mod cells;
mod cost;
mod findings;
mod job;
mod plan;
pub mod published;
mod report;
mod schedulers;
mod subject;
#[cfg(test)]
mod tests;
mod threads;
mod ways;

use std::path::PathBuf;
use std::rc::Rc;
use ugeom_harness::HarnessError;
use ugeom_harness::host::{Host, TargetFacts};
use ugeom_harness::scratch::Place;
use ugeom_harness::{self as harness, Control, Meter, Phase, Progress, Settings};

use schedulers::Schedulers;

pub use findings::compute;
pub use report::page;
pub use subject::{Document, EXPERIMENT, JobDetail, Latency, Side, Subject};

/// The size of 2007, bytes.
pub const SIZE_BYTES: u64 = 256 << 20;

/// The same where the time is limited, bytes: writing the file takes of that, too.
pub const SIZE_BYTES_SHORT: u64 = 64 << 20;

/// The depths of 2007.
pub const DEPTHS: [u32; 3] = [100, 1000, 10_000];

/// The most rounds: intervals hardly become narrower with more.
const ROUNDS_MAX: u64 = 20;

/// How precisely times are to be known, as a share.
const PRECISION: f64 = 0.02;

/// What the user asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The file or device to write over; none for a temporary file.
    pub target: Option<PathBuf>,
    /// How many requests at a time.
    pub depths: Vec<u32>,
    /// The part of the file that is used, bytes; none for [`SIZE_BYTES`], or [`SIZE_BYTES_SHORT`]
    /// with a budget.
    pub size_bytes: Option<u64>,
    /// Whether the job is repeated with every scheduler that the device can have.
    pub schedulers: bool,
    /// The time that it may take, ns; none for whole runs, as many as precision needs.
    pub budget_ns: Option<u64>,
    /// The seed of the order of cells; none for one of the clock.
    pub seed: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            target: None,
            depths: DEPTHS.to_vec(),
            size_bytes: None,
            schedulers: false,
            budget_ns: None,
            seed: None,
        }
    }
}

impl Options {
    fn size(&self) -> u64 {
        let usual = match self.budget_ns {
            Some(_) => SIZE_BYTES_SHORT,
            None => SIZE_BYTES,
        };
        self.size_bytes.unwrap_or(usual)
    }
}

/// Measures. A target is written over.
///
/// # Errors
/// When the file cannot be made or opened past the cache, when its device has no schedulers to try
/// or they may not be set, or when a cell fails.
pub fn run(
    options: &Options,
    meter: &dyn Meter,
    control: &mut Control<'_>,
) -> Result<Document, HarnessError> {
    let started_ns = meter.now_ns();
    let host = Host::now().with_wakeups();
    let seed = options.seed.unwrap_or(host.started_unix_s);
    let bytes = options.size() + cost::BLOCKS * job::BLOCK_BYTES;
    let place = Place::of(options.target.as_deref(), bytes, seed, control.cancelled)?;
    let path = place.path();
    let target = TargetFacts::of(path);
    let schedulers = match options.schedulers {
        true => Some(Rc::new(Schedulers::below(path)?)),
        false => None,
    };
    let mut matrix = cells::Matrix::open(path, options)?;
    let tried = matrix.try_ways(options)?;
    let left_ns = || {
        let spent_ns = meter.now_ns().saturating_sub(started_ns);
        Some(options.budget_ns?.saturating_sub(spent_ns))
    };
    let times = schedulers.as_ref().map_or(1, |all| all.all.len() as u64);
    let plan = matrix.plan(&tried, left_ns().map(|ns| ns / times));
    matrix.jobs(&plan, schedulers.as_ref());
    matrix.costs(seed)?;
    let mut settings = Settings {
        seed,
        rounds_max: ROUNDS_MAX,
        precision: PRECISION,
        budget_ns: left_ns(),
        ..Settings::default()
    };
    if let Some(budget_ns) = settings.budget_ns {
        let run_ns = plan::calibrated_run_ns(budget_ns, matrix.cells.len() as u64);
        settings.run_ns = run_ns.clamp(settings.run_ns_min, settings.run_ns);
        // The plan has shared out the time already.
        settings.run_ns_min = settings.run_ns;
    }
    let measuring = Rc::clone(&matrix.measuring);
    let mut progress = |progress: &Progress<'_>| {
        measuring.set(progress.phase == Phase::Measuring);
        (control.progress)(progress);
    };
    let mut watched = Control {
        progress: &mut progress,
        cancelled: control.cancelled,
    };
    let measured = harness::run(&mut matrix.cells, &settings, meter, &mut watched)?;
    let subject = matrix.subject();
    // The device has its own scheduler again before anything is said.
    drop(schedulers);
    // What was asked for, not what preparing left of it.
    settings.budget_ns = options.budget_ns;
    let mut document = Document::new(EXPERIMENT, host, settings, subject, measured);
    document.target = target;
    compute(&mut document);
    Ok(document)
}
