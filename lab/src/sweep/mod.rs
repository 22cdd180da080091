//! `ugeom lab sweep`: what limits this device: transactions, bandwidth, or the processor?
//!
//! The experiment of 2004 on today's machine: the same bytes in blocks of 512 bytes to 512 KiB,
//! past the system's cache and through it in turns, with what the program, the processors and the
//! device did in each; and then the diagnosis in words. `docs/lab-sweep.md` is the page for users.

mod blocks;
mod cells;
mod dd;
mod diagnosis;
mod findings;
pub mod published;
mod report;
mod subject;
#[cfg(test)]
mod tests;
mod walk;

use std::path::Path;
use ugeom_harness::HarnessError;
use ugeom_harness::host::{Host, TargetFacts};
use ugeom_harness::scratch::Scratch;
use ugeom_harness::{self as harness, Control, Meter, Settings};

pub use cells::{direct_reads, is_path};
pub use dd::dd;
pub use findings::{Findings, compute};
pub use report::page;
pub use subject::{CellFacts, Document, EXPERIMENT, Part, Role, SetLimits, Subject, Way};

/// What the user asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The target to measure; none for a temporary file and a simulated disk.
    pub target: Option<String>,
    /// The smallest block, bytes.
    pub min_bytes: u64,
    /// The largest block, bytes.
    pub max_bytes: u64,
    /// The bytes that each block size moves.
    pub bytes: u64,
    /// Writes instead of reads.
    pub write: bool,
    /// Takes blocks at random.
    pub random: bool,
    /// Past the system's cache.
    pub direct: bool,
    /// Through the system's cache.
    pub buffered: bool,
    /// All bytes and as many rounds as precision needs, whatever time that takes.
    pub full: bool,
    /// The seed of the random order; none for one of the clock.
    pub seed: Option<u64>,
    /// The time that it may take, ns; none for [`BUDGET_NS`]. Without meaning when `full`.
    pub budget_ns: Option<u64>,
}

impl Default for Options {
    /// 64 MiB of each block of 512 bytes to 512 KiB, read in order, both ways, as in 2004.
    fn default() -> Self {
        Self {
            target: None,
            min_bytes: 512,
            max_bytes: 512 << 10,
            bytes: 64 << 20,
            write: false,
            random: false,
            direct: true,
            buffered: true,
            full: false,
            seed: None,
            budget_ns: None,
        }
    }
}

impl Options {
    /// The blocks: doubling from the smallest to the largest.
    pub fn blocks_bytes(&self) -> Vec<u64> {
        let next = |block: &u64| block.checked_mul(2);
        let doubling = std::iter::successors(Some(self.min_bytes.max(1)), next);
        doubling
            .take_while(|block| *block <= self.max_bytes)
            .collect()
    }
}

/// The time that the experiment may take when nothing else is said, ns.
pub const BUDGET_NS: u64 = 15_000_000_000;

/// A run is as long as its bytes take, or this, ns.
const RUN_NS: u64 = 60_000_000_000;

/// What the simulated disk is, when no target was named: the drive of 2004.
const SIMULATED: &str = "disk:64m,preset=ata2004,data=0";

/// Measures, and computes the figures. What was measured before a target failed is kept, and the
/// document says what failed.
///
/// # Errors
/// [`HarnessError`] when a target cannot be opened, fails before anything is measured, or loses at
/// the end what was written. When `control` asks to stop, what was measured until then is the
/// result.
pub fn run(
    options: &Options,
    meter: &dyn Meter,
    control: &mut Control<'_>,
) -> Result<Document, HarnessError> {
    let started_ns = meter.now_ns();
    let host = Host::now().with_wakeups();
    let seed = options.seed.unwrap_or(host.started_unix_s);
    let cancelled = control.cancelled;
    // The temporary file is removed when this returns, whatever happens.
    let (targets, _scratch) = match &options.target {
        Some(text) => (vec![("target", text.clone())], None),
        None => {
            let scratch = Scratch::new(None, options.bytes, seed, cancelled)?;
            let file = scratch.path().display().to_string();
            let targets = vec![("file", file), ("disk", SIMULATED.to_owned())];
            (targets, Some(scratch))
        }
    };
    let mut matrix = cells::Matrix::new(options, seed, cancelled);
    for (name, text) in &targets {
        matrix.add(name, text)?;
    }
    if matrix.is_empty() {
        return Err(matrix.nothing());
    }
    let set_up_ns = meter.now_ns().saturating_sub(started_ns);
    let settings = settings(options, seed, set_up_ns);
    let facts = targets
        .first()
        .map(|(_, text)| TargetFacts::of(Path::new(text)));
    let mut document = measure(matrix, host, &settings, meter, control)?;
    document.target = facts.flatten();
    Ok(document)
}

/// Measures the cells of a matrix.
fn measure(
    mut matrix: cells::Matrix<'_>,
    host: Host,
    settings: &Settings,
    meter: &dyn Meter,
    control: &mut Control<'_>,
) -> Result<Document, HarnessError> {
    let written = matrix.take_written();
    let (mut cells, subject) = matrix.finish();
    let (measured, error) = harness::run_keeping(&mut cells, settings, meter, control);
    // The handles are closed with the cells: layers that keep writes write them now.
    drop(cells);
    for stack in written {
        stack.finish().map_err(HarnessError::subject)?;
    }
    if let Some(error) = error
        && measured.rounds.is_empty()
        && measured.unfinished.is_none()
    {
        return Err(error);
    }
    let mut document = Document::new(EXPERIMENT, host, settings.clone(), subject, measured);
    compute(&mut document);
    Ok(document)
}

/// How to measure. Setting up counts against the budget.
fn settings(options: &Options, seed: u64, set_up_ns: u64) -> Settings {
    let budget_ns = options.budget_ns.unwrap_or(BUDGET_NS);
    Settings {
        seed,
        run_ns: RUN_NS,
        budget_ns: (!options.full).then_some(budget_ns.saturating_sub(set_up_ns)),
        ..Settings::default()
    }
}
