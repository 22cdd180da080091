//! `ugeom lab engines`: can threads that make blocking calls stand beside the kernel's
//! asynchronous I/O?
//!
//! The experiment of 2007 on today's machine: random reads and writes of 4 KiB past the system's
//! cache, 100, 1000 and 10,000 at a time, by libaio, by io_uring, and by one thread a request;
//! limited by size and not by time, interleaved, judged pair by pair. `docs/lab-engines.md` is the
//! page for users.

mod cells;
mod findings;
mod job;
pub mod published;
mod report;
mod subject;
#[cfg(test)]
mod tests;

use crate::BenchError;
use crate::harness::{self, Control, Meter, Phase, Progress, Settings};
use crate::host::{Host, TargetFacts};
use crate::scratch::Scratch;
use std::path::{Path, PathBuf};

pub use findings::compute;
pub use report::page;
pub use subject::{Document, EXPERIMENT, JobDetail, Latency, Side, Subject};

/// The time that it may take when nothing else is said, ns.
pub const BUDGET_NS: u64 = 15_000_000_000;

/// The size of 2007, bytes.
pub const SIZE_BYTES: u64 = 256 << 20;

/// The depths of 2007.
pub const DEPTHS: [u32; 3] = [100, 1000, 10_000];

/// What the user asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The file or device to write over; none for a temporary file.
    pub target: Option<PathBuf>,
    /// How many requests at a time.
    pub depths: Vec<u32>,
    /// The part of the file that is used, bytes.
    pub size_bytes: u64,
    /// Whole runs, as many rounds as precision needs.
    pub full: bool,
    /// The seed of the order of cells; none for one of the clock.
    pub seed: Option<u64>,
    /// The time that it may take, ns; none for [`BUDGET_NS`]. Without meaning when `full`.
    pub budget_ns: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            target: None,
            depths: DEPTHS.to_vec(),
            size_bytes: SIZE_BYTES,
            full: false,
            seed: None,
            budget_ns: None,
        }
    }
}

/// Measures. A target is written over.
///
/// # Errors
/// When the file cannot be made or opened past the cache, or a cell fails.
pub fn run(
    options: &Options,
    meter: &dyn Meter,
    control: &mut Control<'_>,
) -> Result<Document, BenchError> {
    let started_ns = meter.now_ns();
    let host = Host::now();
    let seed = options.seed.unwrap_or(host.started_unix_s);
    let scratch = match &options.target {
        None => {
            let bytes = options.size_bytes;
            Some(Scratch::new(None, bytes, seed, control.cancelled)?)
        }
        Some(_) => None,
    };
    let path: &Path = match (&scratch, &options.target) {
        (Some(scratch), _) => scratch.path(),
        (None, Some(target)) => target,
        (None, None) => Path::new("."),
    };
    let target = TargetFacts::of(path);
    let set_up_ns = meter.now_ns().saturating_sub(started_ns);
    let budget_ns = options.budget_ns.unwrap_or(BUDGET_NS);
    let settings = Settings {
        seed,
        rounds_max: 20,
        precision: 0.02,
        budget_ns: (!options.full).then_some(budget_ns.saturating_sub(set_up_ns)),
        ..Settings::default()
    };
    let mut matrix = cells::Matrix::new(path, options, &settings)?;
    let measuring = std::rc::Rc::clone(&matrix.measuring);
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
    let mut document = Document::new(EXPERIMENT, host, settings, subject, measured);
    document.target = target;
    compute(&mut document);
    Ok(document)
}
