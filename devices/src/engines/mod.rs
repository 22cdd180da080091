//! `ugeom lab engines`: can threads that make blocking calls stand beside the kernel's
//! asynchronous I/O?
//!
//! The experiment of 2007 on today's machine: random reads and writes of 4 KiB past the system's
//! cache, 100, 1000 and 10,000 at a time, by libaio, by io_uring, by GUASI, and by one thread a
//! request; limited by size and not by time, interleaved, judged pair by pair. Beside it, what an
//! engine costs by itself, and what it costs to make any call asynchronous. `docs/lab-engines.md`
//! is the page for users.

mod account;
mod cases;
mod cost;
mod findings;
mod job;
mod methods;
mod plan;
pub mod published;
mod report;
mod schedulers;
mod subject;
#[cfg(test)]
mod tests;
mod threads;

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use ugeom_experiment::{Common, Experiment, Process};
use ugeom_harness::HarnessError;
use ugeom_harness::host::TargetFacts;
use ugeom_harness::processes::{PROCESSES_SHORT, Protocol, processes_for};
use ugeom_harness::scratch::ScratchPlace;
use ugeom_harness::{self as harness, Control, Phase, Progress, Settings};
use ugeom_machine::clock;

use schedulers::Schedulers;

pub use findings::compute;
pub use plan::EnginesPlan;
pub use report::page;
pub use subject::{Document, EXPERIMENT, JobDetail, Latency, Side, Subject};

/// The size of 2007, bytes.
pub const SIZE_BYTES: u64 = 256 << 20;

/// The depths of 2007.
pub const DEPTHS: [u32; 3] = [100, 1000, 10_000];

/// The user's options.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnginesOptions {
    /// The file or device to write over; none for a temporary file.
    #[serde(with = "ugeom_classes::optional_path")]
    pub target: Option<PathBuf>,
    /// The temporary file that all processes write.
    #[serde(with = "ugeom_classes::optional_path")]
    pub temporary: Option<PathBuf>,
    /// How many requests at a time.
    pub depths: Vec<u32>,
    /// The part of the file that is used, bytes; none for [`SIZE_BYTES`].
    pub size_bytes: Option<u64>,
    /// Whether the job is repeated with every scheduler that the device can have.
    pub schedulers: bool,
    /// The requests of a run at each depth, as trials found them.
    pub plan: EnginesPlan,
    /// Time budget, seed and processes, as for every experiment.
    pub common: Common,
}

impl Default for EnginesOptions {
    fn default() -> Self {
        Self {
            target: None,
            temporary: None,
            depths: DEPTHS.to_vec(),
            size_bytes: None,
            schedulers: false,
            plan: EnginesPlan::default(),
            common: Common::default(),
        }
    }
}

impl EnginesOptions {
    fn size(&self) -> u64 {
        self.size_bytes.unwrap_or(SIZE_BYTES)
    }

    fn file(&self) -> &Path {
        let file = self.target.as_deref().or(self.temporary.as_deref());
        file.unwrap_or(Path::new(""))
    }
}

/// The experiment. A target is written over.
pub struct Engines;

impl Experiment for Engines {
    const NAME: &'static str = EXPERIMENT;
    const ROUNDS: u64 = 1;
    const COMPUTE: fn(&mut Document) = compute;
    const PAGE: fn(&Document) -> ugeom_report::Page = page;
    type Options = EnginesOptions;
    type Subject = Subject;
    type Prepared = ScratchPlace;

    fn common(options: &mut EnginesOptions) -> &mut Common {
        &mut options.common
    }

    /// Makes the file, and finds out how long runs may be.
    fn prepare(
        options: &mut EnginesOptions,
        seed: u64,
        cancelled: &AtomicBool,
    ) -> Result<ScratchPlace, HarnessError> {
        let started_ns = clock::now_ns();
        let bytes = options.size() + cost::BLOCKS * job::BLOCK_BYTES;
        let place = ScratchPlace::of(options.target.as_deref(), bytes, seed, cancelled)?;
        if options.target.is_none() {
            options.temporary = Some(place.path().to_path_buf());
        }
        let times = match options.schedulers {
            true => Schedulers::below(place.path())?.all.len() as u64,
            false => 1,
        };
        let mut matrix = cases::Matrix::open(place.path(), options)?;
        let tried = matrix.try_ways(options)?;
        let runs = u64::from(processes(options));
        let limit_ns = options.common.limit_ns();
        let left_ns = limit_ns.map(|ns| ns.saturating_sub(clock::now_ns() - started_ns) / times);
        options.plan = matrix.plan(&tried, left_ns, runs);
        options.plan.left_out.splice(0..0, matrix.left_out());
        Ok(place)
    }

    fn protocol(options: &EnginesOptions, protocol: Protocol) -> Protocol {
        Protocol {
            processes: processes(options),
            ..protocol
        }
    }

    fn measure(
        options: &EnginesOptions,
        process: Process<'_, '_>,
    ) -> Result<Document, HarnessError> {
        let host = process.host();
        let path = options.file();
        let target = match options.target {
            Some(_) => TargetFacts::of(path),
            None => TargetFacts::of_temporary(path),
        };
        let schedulers = match options.schedulers {
            true => Some(Rc::new(Schedulers::below(path)?)),
            false => None,
        };
        let mut matrix = cases::Matrix::open(path, options)?;
        matrix.ready_ways(&options.plan)?;
        matrix.jobs(&options.plan, schedulers.as_ref());
        matrix.costs(process.share.seed)?;
        // Requests of repeated runs would be counted twice.
        let settings = Settings {
            repeat_disturbed: false,
            ..process.settings()
        };
        let measuring = Rc::clone(&matrix.measuring);
        let cancelled = process.control.cancelled;
        let mut progress = |progress: &Progress<'_>| {
            measuring.set(progress.phase == Phase::Measuring);
            (process.control.progress)(progress);
        };
        let mut watched = Control {
            progress: &mut progress,
            cancelled,
        };
        let measured = harness::run(&mut matrix.cases, &settings, process.meter, &mut watched)?;
        let subject = matrix.subject();
        // The device gets its own scheduler back before the result is shown.
        drop(schedulers);
        let mut document = Document::new(EXPERIMENT, host, settings, subject, measured);
        document.target = target;
        Ok(document)
    }

    fn join(whole: &mut Document, others: &[Document]) {
        for (index, job) in whole.subject.jobs.iter_mut().enumerate() {
            let others = others
                .iter()
                .filter_map(|other| other.subject.jobs.get(index));
            job.join(&others.collect::<Vec<_>>());
        }
    }
}

fn processes(options: &EnginesOptions) -> u32 {
    let limit_ns = options.common.limit_ns();
    // As few as can show a difference among the four pairs of a depth, since a round takes long.
    let usual = processes_for(limit_ns).min(PROCESSES_SHORT);
    options.common.processes.unwrap_or(usual)
}
