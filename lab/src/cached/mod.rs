//! `ugeom lab cached`: what does a cached read cost, and why?
//!
//! The measurement of 2006 on today's machine: reading cached data, random against
//! sequential, 4 and 16 KiB at a time, from the kernel's page cache, from a mapping, and through
//! the cache class with a hash and with a splay tree; the same while buffers are recycled all the
//! time; and lookups alone. `docs/lab-cached.md` is the page for users.

mod counting;
mod counts;
mod findings;
mod matrix;
mod names;
mod orders;
mod page;
mod profile;
pub mod published;
mod reading;
mod steps;
mod subject;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use ugeom_experiment::served::ServerKind;
use ugeom_experiment::{Common, Experiment, Process};
use ugeom_harness as harness;
use ugeom_harness::HarnessError;
use ugeom_harness::host::{Host, TargetFacts};
use ugeom_harness::processes::{PROCESSES_SHORT, Protocol};
use ugeom_harness::scratch::{self, ScratchPlace};
use ugeom_load::devices;
use ugeom_machine::clock;
use ugeom_measure::units::size_human;

pub use findings::compute;
pub use orders::Order;
pub use page::page;
pub use subject::{Counted, Document, EXPERIMENT, Extent, Subject};

/// The user's options.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedOptions {
    /// The file to read; none for a temporary one.
    #[serde(with = "ugeom_classes::optional_path")]
    pub file: Option<PathBuf>,
    /// The temporary file that all processes read.
    #[serde(with = "ugeom_classes::optional_path")]
    pub temporary: Option<PathBuf>,
    /// How much of it, bytes; none for [`SIZE_BYTES`], or [`SIZE_BYTES_SHORT`] with a budget.
    pub size_bytes: Option<u64>,
    /// How much was to be read where the time does not allow that, bytes.
    #[serde(default)]
    pub wanted_bytes: Option<u64>,
    /// The servers through which the cache is read, too.
    #[serde(skip)]
    pub servers: Vec<ServerKind>,
    /// Time budget, seed and processes, as for every experiment.
    pub common: Common,
}

/// How much is read, bytes: more than processors cache.
pub const SIZE_BYTES: u64 = 1 << 30;

/// The same where the time is short, bytes.
pub(crate) const SIZE_BYTES_SHORT: u64 = 128 << 20;

/// The least that means anything, bytes.
pub const SIZE_BYTES_MIN: u64 = 4 << 20;

/// The memory disk of 2006's regime, bytes, and of it the cache, per cent.
const RECYCLED_BYTES: u64 = 400 << 20;
const RECYCLED_PERCENT: u64 = 15;

/// Blocks of the large index, and of 2006's best case.
const INDEX_BLOCKS: u64 = 256 << 10;
const INDEX_BLOCKS_SMALL: u64 = 64;

/// `lab cached`: the gain and the cost of a cache.
pub struct Cached;

impl Experiment for Cached {
    const NAME: &'static str = EXPERIMENT;
    const ROUNDS: u64 = 5;
    const COMPUTE: fn(&mut Document) = compute;
    const PAGE: fn(&Document) -> ugeom_report::Page = page;
    type Options = CachedOptions;
    type Subject = Subject;
    type Prepared = ScratchPlace;

    fn common(options: &mut CachedOptions) -> &mut Common {
        &mut options.common
    }

    fn set_servers(options: &mut CachedOptions, servers: &[ServerKind]) {
        options.servers = servers.to_vec();
    }

    fn prepare(
        options: &mut CachedOptions,
        seed: u64,
        cancelled: &AtomicBool,
    ) -> Result<ScratchPlace, HarnessError> {
        let bytes = planned(options, &Host::now()).size_bytes;
        let place = ScratchPlace::of(options.file.as_deref(), bytes, seed, cancelled)?;
        if options.file.is_none() {
            options.temporary = Some(place.path().to_path_buf());
        }
        if options.size_bytes.is_none() {
            let affordable = affordable_bytes(options, place.path(), bytes, seed)?;
            options.wanted_bytes = (affordable < bytes).then_some(bytes);
            options.size_bytes = Some(affordable);
        }
        Ok(place)
    }

    fn protocol(options: &CachedOptions, protocol: Protocol) -> Protocol {
        let short = extent(options) == Extent::Short && options.common.processes.is_none();
        let processes = match short {
            true => protocol.processes / 2,
            false => protocol.processes,
        };
        Protocol {
            processes: processes.max(PROCESSES_SHORT.min(protocol.processes)),
            ..protocol
        }
    }

    fn measure(
        options: &CachedOptions,
        process: Process<'_, '_>,
    ) -> Result<Document, HarnessError> {
        let host = process.host();
        let mut subject = planned(options, &host);
        let path = options.file.as_ref().or(options.temporary.as_ref());
        let path: &Path = path.ok_or_else(|| HarnessError::Load {
            job: EXPERIMENT.to_owned(),
            problem: "there is no file to read".to_owned(),
        })?;
        fit_to_file(path, &mut subject)?;
        if options.file.is_none() {
            // The pages of the file lie elsewhere in each process, as everything else does: else
            // their places would be an error of all processes, which no interval covers.
            scratch::forget_pages(path)?;
        }
        let mut sources = matrix::Sources::new(path, subject.size_bytes, process.share.seed)?;
        let mut cases = matrix::cases(&mut sources, path, extent(options), &mut subject)?;
        cases.extend(matrix::served(&sources, &options.servers, &mut subject)?);
        subject.resident_percent[0] = resident_percent(&sources)?;
        let settings = process.settings();
        let read_before_bytes = devices::read_by_this_process_bytes();
        let (measured, error) =
            harness::run_keeping(&mut cases, &settings, process.meter, process.control);
        if let Some(error) = error.filter(|_| measured.rounds.is_empty()) {
            return Err(error);
        }
        subject.resident_percent[1] = resident_percent(&sources)?;
        let read_bytes = devices::read_by_this_process_bytes();
        let read_bytes = read_bytes.zip(read_before_bytes);
        subject.own_read_bytes = read_bytes.map(|(after, before)| after.saturating_sub(before));
        subject.caches = sources.ledger.rows();
        let mut document = Document::new(EXPERIMENT, host, settings, subject, measured);
        document.target = match options.file {
            Some(_) => TargetFacts::of(path),
            None => TargetFacts::of_temporary(path),
        };
        Ok(document)
    }

    /// The counts of the caches are added up; the reads of the process from devices, too.
    fn join(whole: &mut Document, others: &[Document]) {
        for other in others {
            let (sum, more) = (&mut whole.subject, &other.subject);
            for (sum, more) in sum.caches.iter_mut().zip(&more.caches) {
                sum.join(more);
            }
            let read = sum.own_read_bytes.zip(more.own_read_bytes);
            sum.own_read_bytes = read.map(|(sum, more)| sum.saturating_add(more));
            sum.resident_percent[1] = more.resident_percent[1];
        }
    }
}

fn extent(options: &CachedOptions) -> Extent {
    match options.common.limit_ns() {
        Some(_) => Extent::Short,
        None => Extent::Whole,
    }
}

/// How much a trial fills caches with, bytes.
const TRIAL_BYTES: u64 = 16 << 20;

/// Of its share of the budget a process may need this to fill its caches.
const FILLING_SHARE: f64 = 0.4;

/// How much of a file processes can fill their caches with in the time that there is: that of a
/// trial with little of it, and in proportion. It is halved, so that a small change of the machine
/// does not change the measurement.
fn affordable_bytes(
    options: &CachedOptions,
    path: &Path,
    wanted_bytes: u64,
    seed: u64,
) -> Result<u64, HarnessError> {
    let Some(limit_ns) = options
        .common
        .limit_ns()
        .filter(|_| wanted_bytes > TRIAL_BYTES)
    else {
        return Ok(wanted_bytes);
    };
    let processes = options.common.processes.unwrap_or(PROCESSES_SHORT).max(1);
    let share_ns = limit_ns as f64 / f64::from(processes) * FILLING_SHARE;
    let trial = CachedOptions {
        size_bytes: Some(TRIAL_BYTES),
        ..options.clone()
    };
    let started_ns = clock::now_ns();
    let mut subject = planned(&trial, &Host::now());
    fit_to_file(path, &mut subject)?;
    let fixed = matrix::lookups(&subject)?;
    let fixed_ns = (clock::now_ns() - started_ns) as f64;
    drop(fixed);
    let started_ns = clock::now_ns();
    let mut sources = matrix::Sources::new(path, subject.size_bytes, seed)?;
    let filled = matrix::filled(&mut sources, path, extent(options), &mut subject)?;
    let filling_ns = (clock::now_ns() - started_ns) as f64;
    drop(filled);
    Ok(halved(wanted_bytes, |bytes| {
        let times = bytes as f64 / subject.size_bytes.max(1) as f64;
        fixed_ns + filling_ns * times <= share_ns
    }))
}

/// The largest of `bytes`, a half, a quarter and an eighth that fits; the eighth if none does.
fn halved(bytes: u64, fits: impl Fn(u64) -> bool) -> u64 {
    let smallest = (bytes / 8).max(SIZE_BYTES_MIN);
    let halves = [bytes, bytes / 2, bytes / 4];
    let found = halves.into_iter().find(|bytes| fits(*bytes));
    found.unwrap_or(smallest).max(smallest)
}

/// The planned measurement, as far as the memory allows.
fn planned(options: &CachedOptions, host: &Host) -> Subject {
    let extent = extent(options);
    let usual_bytes = match extent {
        Extent::Whole => SIZE_BYTES,
        Extent::Short => SIZE_BYTES_SHORT,
    };
    let wanted_bytes = options
        .size_bytes
        .unwrap_or(usual_bytes)
        .max(SIZE_BYTES_MIN);
    let mut left_out = extent.left_out();
    if let Some(wanted_bytes) = options.wanted_bytes {
        left_out.push(format!(
            "the rest of {}, with which filling the caches takes too long for the budget",
            size_human(wanted_bytes)
        ));
    }
    // The file's own pages, a copy a cache, and the two stores whose steps are measured alone.
    let copies = extent.caches().len() as u64 + 3;
    let room_bytes = host.memory_available_bytes / 10 * 8 / copies;
    let whole_blocks = |bytes: u64| bytes / subject::MAIN_BLOCK_BYTES * subject::MAIN_BLOCK_BYTES;
    let size_bytes = whole_blocks(match host.memory_available_bytes {
        // The system does not say.
        0 => wanted_bytes,
        _ => wanted_bytes.min(room_bytes).max(SIZE_BYTES_MIN),
    });
    if size_bytes < whole_blocks(wanted_bytes) {
        left_out.push(format!(
            "the rest of {}, of which the free memory does not hold {copies} copies",
            size_human(wanted_bytes)
        ));
    }
    let recycled_media_bytes = RECYCLED_BYTES.min(size_bytes);
    Subject {
        file: options.file.as_ref().map(|path| path.display().to_string()),
        size_bytes,
        size_wanted_bytes: wanted_bytes,
        reads_bytes: vec![4 << 10, 16 << 10],
        blocks_bytes: vec![4 << 10, 16 << 10, 64 << 10],
        orders: extent.orders(),
        recycled_media_bytes,
        recycled_cache_bytes: whole_blocks(recycled_media_bytes * RECYCLED_PERCENT / 100),
        index_blocks: INDEX_BLOCKS,
        index_blocks_small: INDEX_BLOCKS_SMALL,
        overhead_bytes_a_block: 0.0,
        resident_percent: [0.0; 2],
        own_read_bytes: None,
        caches: Vec::new(),
        through: Vec::new(),
        left_out,
    }
}

/// Reads less when the file is shorter; refuses one that is too short for anything.
fn fit_to_file(path: &Path, subject: &mut Subject) -> Result<(), HarnessError> {
    let name = path.display().to_string();
    let about = std::fs::metadata(path).map_err(HarnessError::open(&name))?;
    let refuse = |problem: String| {
        let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, problem);
        Err(HarnessError::open(&name)(source))
    };
    if !about.is_file() {
        return refuse("only a regular file lies in the kernel's cache and can be mapped".into());
    }
    if about.len() < SIZE_BYTES_MIN {
        return refuse(format!(
            "it has {} bytes; a cache needs at least {SIZE_BYTES_MIN}",
            about.len()
        ));
    }
    let whole = about.len() / subject::MAIN_BLOCK_BYTES * subject::MAIN_BLOCK_BYTES;
    if whole < subject.size_bytes {
        subject.left_out.push(format!(
            "the rest of {}, of which the file has {}",
            size_human(subject.size_bytes),
            size_human(about.len())
        ));
    }
    subject.size_bytes = subject.size_bytes.min(whole);
    Ok(())
}

fn resident_percent(sources: &matrix::Sources) -> Result<f64, HarnessError> {
    let resident = sources.mapping.resident_bytes();
    let resident = resident.map_err(HarnessError::os("the file", "asking what is in memory"))?;
    Ok(resident as f64 * 100.0 / sources.mapping.len() as f64)
}
