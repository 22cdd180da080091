//! `ugeom lab sweep`: what limits this device: transactions, bandwidth, or the processor?
//!
//! The experiment of 2004 on today's machine: the same bytes in blocks of 512 bytes to 512 KiB,
//! direct (O_DIRECT) and buffered in turns, with what the program, the processors and the
//! device did in each; and then the diagnosis in words. `docs/lab-sweep.md` is the page for users.

mod blocks;
mod cases;
mod dd;
mod diagnosis;
mod findings;
pub mod published;
mod report;
mod subject;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;
use ugeom_classes::quoted_path;
use ugeom_experiment::targets;
use ugeom_experiment::{Common, Experiment, Process};
use ugeom_harness::HarnessError;
use ugeom_harness::host::{Host, TEMPORARY_FILE, TargetFacts};
use ugeom_harness::processes::{PROCESSES_SHORT, Protocol};
use ugeom_harness::scratch::Scratch;
use ugeom_harness::{self as harness, Control, Meter, Settings};

pub use cases::{direct_reads, is_file, is_path};
pub use dd::dd;
pub use findings::{Findings, compute};
pub use report::page;
pub use subject::{
    CacheMode, CaseFacts, Document, EXPERIMENT, Role, SetLimits, Subject, SweepTarget,
};

/// The user's options.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepOptions {
    /// The target to measure; none for a temporary file and a simulated disk.
    pub target: Option<String>,
    /// The temporary file that all processes read.
    pub temporary: Option<String>,
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
    /// Direct reads (O_DIRECT) of the target.
    pub direct: bool,
    /// Buffered reads through the page cache.
    pub buffered: bool,
    /// The seed of random places, the same in all processes.
    pub places_seed: u64,
    /// Time budget, seed and processes, as for every experiment.
    pub common: Common,
}

impl Default for SweepOptions {
    /// 64 MiB of each block of 512 bytes to 512 KiB, read in order, both ways, as in 2004.
    fn default() -> Self {
        Self {
            target: None,
            temporary: None,
            min_bytes: 512,
            max_bytes: 512 << 10,
            bytes: 64 << 20,
            write: false,
            random: false,
            direct: true,
            buffered: true,
            places_seed: 0,
            common: Common::default(),
        }
    }
}

impl SweepOptions {
    /// The blocks: doubling from the smallest to the largest.
    pub(crate) fn blocks_bytes(&self) -> Vec<u64> {
        let next = |block: &u64| block.checked_mul(2);
        let doubling = std::iter::successors(Some(self.min_bytes.max(1)), next);
        doubling
            .take_while(|block| *block <= self.max_bytes)
            .collect()
    }
}

/// A run is as long as its bytes take, or this, ns.
const RUN_NS: u64 = 60_000_000_000;

/// The parameters of the simulated disk without a target: the drive of 2004.
const SIMULATED: &str = "disk:64m,preset=ata2004,data=0";

/// The experiment. A failure of a target keeps the earlier measurements, and the document names it.
pub struct Sweep;

impl Experiment for Sweep {
    const NAME: &'static str = EXPERIMENT;
    const ROUNDS: u64 = 1;
    const COMPUTE: fn(&mut Document) = compute;
    const PAGE: fn(&Document) -> ugeom_report::Page = page;
    type Options = SweepOptions;
    type Subject = Subject;
    type Prepared = Option<Scratch>;

    fn common(options: &mut SweepOptions) -> &mut Common {
        &mut options.common
    }

    fn prepare(
        options: &mut SweepOptions,
        seed: u64,
        cancelled: &AtomicBool,
    ) -> Result<Option<Scratch>, HarnessError> {
        options.places_seed = seed;
        if let Some(text) = &options.target {
            return targets::check(text).map(|()| None);
        }
        let scratch = Scratch::new(None, options.bytes, seed, cancelled)?;
        options.temporary = Some(quoted_path(scratch.path()));
        Ok(Some(scratch))
    }

    /// A run moves all bytes where there is time. Short runs would read what a drive has read
    /// ahead since the last one, so that there are few processes and one round of each.
    fn protocol(options: &SweepOptions, protocol: Protocol) -> Protocol {
        let usual = protocol.processes.min(PROCESSES_SHORT);
        Protocol {
            run_ns: RUN_NS,
            processes: options.common.processes.unwrap_or(usual),
            ..protocol
        }
    }

    fn measure(options: &SweepOptions, process: Process<'_, '_>) -> Result<Document, HarnessError> {
        let host = process.host();
        let targets = match (&options.target, &options.temporary) {
            (Some(text), _) => vec![("target", text.clone())],
            (None, file) => {
                let file = file.iter().map(|file| ("file", file.clone()));
                file.chain([("disk", SIMULATED.to_owned())]).collect()
            }
        };
        let cancelled = process.control.cancelled;
        let mut matrix = cases::Matrix::new(options, options.places_seed, cancelled);
        for (name, text) in &targets {
            matrix.add(name, text)?;
        }
        if matrix.is_empty() {
            return Err(matrix.nothing());
        }
        // A run that waits for a device is not faster on a faster core.
        let settings = Settings {
            repeat_disturbed: false,
            ..process.settings()
        };
        let mut document = measure(matrix, host, &settings, process.meter, process.control)?;
        let first = targets
            .first()
            .and_then(|(_, text)| targets::bottom_file(text));
        document.target = first.and_then(|file| match options.target {
            Some(_) => TargetFacts::of(&file),
            None => TargetFacts::of_temporary(&file),
        });
        if options.target.is_none()
            && let Some(part) = document.subject.parts.first_mut()
        {
            part.target = TEMPORARY_FILE.to_owned();
        }
        Ok(document)
    }
}

/// Measures the cases of a matrix.
fn measure(
    mut matrix: cases::Matrix<'_>,
    host: Host,
    settings: &Settings,
    meter: &dyn Meter,
    control: &mut Control<'_>,
) -> Result<Document, HarnessError> {
    let written = matrix.take_written();
    let (mut cases, subject) = matrix.finish();
    let (measured, error) = harness::run_keeping(&mut cases, settings, meter, control);
    // The handles are closed with the cases: layers that keep writes write them now.
    drop(cases);
    for stack in written {
        stack.finish().map_err(HarnessError::subject)?;
    }
    if let Some(error) = error
        && measured.rounds.is_empty()
        && measured.unfinished.is_none()
    {
        return Err(error);
    }
    let settings = settings.clone();
    Ok(Document::new(EXPERIMENT, host, settings, subject, measured))
}
