//! Running jobs: waves of them, one thread each, watched by the thread that asked.

mod commands;
mod disks;
mod sampling;
mod wave;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use ugeom_classes::Target;
use ugeom_stack::LostAtTheEnd;

use super::draws::Seeds;
use super::error::JobError;
use super::layout::{Layout, lay_out};
use super::outcome::Outcome;
use super::places::Region;
use super::replay;
use super::settings::{Distribution, FileOperation, Job};
use super::tally::Phase;
use super::target::{
    Meaning, file_regions, make_folders, meaning, null_regions, open_stack, raise_open_files,
    stack_region,
};
use disks::Disks;
use wave::run_wave;

/// What the caller wants to be told, and may want to stop.
pub trait Watcher {
    /// Something to say, once.
    fn note(&mut self, text: &str);
    /// Files are made.
    fn laying_out(&mut self, job: &str, files: usize, bytes: u64);
    /// How it goes; called several times a second.
    fn progress(&mut self, progress: &Progress<'_>);
    /// True when everything should end soon.
    fn cancelled(&self) -> bool;
    /// A copy of a job gets its random numbers from these seeds (`--debug=random`).
    fn seeded(&mut self, job: &str, number: u32, seeds: &[u64]) {
        let _ = (job, number, seeds);
    }
    /// Asked before a job writes to a target: an error forbids it.
    ///
    /// # Errors
    /// Why it must not be written.
    fn may_write(&mut self, target: &Meaning) -> Result<(), String>;
}

/// What the status line shows (`--eta`).
pub struct Progress<'a> {
    /// The jobs of this wave, with where each is.
    pub jobs: &'a [(&'a Job, Phase)],
    /// Bytes and requests a second now: reads, writes, trims.
    pub rates: [(f64, f64); 3],
    /// The share that is done, from 0 to 1, as far as is known.
    pub done: Option<f64>,
    /// The time that is left, s.
    pub left_s: Option<u64>,
}

/// One copy of a job.
struct Copy {
    job: Job,
    number: u32,
    /// Which of the copies of its job it is.
    clone: u32,
    group: u32,
    target: Meaning,
    regions: Vec<Region>,
    stack: Option<Arc<Target>>,
    seeds: Seeds,
}

impl Copy {
    fn paths(&self) -> &[PathBuf] {
        match &self.target {
            Meaning::Paths(paths) => paths,
            _ => &[],
        }
    }
}

/// Runs jobs, wave after wave: a job with `stonewall` waits for all before it.
///
/// # Errors
/// A job that cannot be run at all. What goes wrong while one runs is in its outcome, and so is
/// data that a stack loses at the end.
pub fn run(jobs: &[Job], watcher: &mut dyn Watcher) -> Result<Outcome, JobError> {
    let mut stacks = BTreeMap::new();
    let outcome = run_waves(jobs, &mut stacks, watcher);
    // All handles are closed: layers that keep writes have written them, or have lost them.
    let lost = stacks.values().filter_map(|one| one.stack.finish().err());
    let lost: Vec<LostAtTheEnd> = lost.collect();
    match outcome {
        Ok(outcome) => Ok(Outcome { lost, ..outcome }),
        Err(error) => match lost.into_iter().next() {
            None => Err(error),
            Some(lost) => {
                watcher.note(&error.to_string());
                Err(lost.into())
            }
        },
    }
}

/// The targets of all jobs that are stacks, by their text.
type Stacks = BTreeMap<String, Arc<Target>>;

fn run_waves(
    jobs: &[Job],
    stacks: &mut Stacks,
    watcher: &mut dyn Watcher,
) -> Result<Outcome, JobError> {
    raise_open_files();
    let mut copies = prepare(jobs, stacks, watcher)?;
    // It holds for all jobs, as by fio.
    let exitall = jobs.iter().any(|job| job.exitall);
    copies
        .iter_mut()
        .for_each(|copy| copy.job.exitall = exitall);
    if watcher.cancelled() {
        // Files may be missing.
        return Ok(Outcome::default());
    }
    let disks = Disks::below(copies.iter().filter(|copy| copy.job.disk_util));
    let mut outcome = Outcome::default();
    let mut wave: Vec<Copy> = Vec::new();
    for copy in copies {
        let first = outcome.jobs.is_empty() && wave.is_empty();
        let is_wall =
            copy.job.stonewall && !first && wave.last().is_none_or(|last| last.group != copy.group);
        if is_wall {
            let (jobs, goes_on) = run_wave(&wave, watcher)?;
            outcome.jobs.extend(jobs);
            wave.clear();
            if watcher.cancelled() || !goes_on {
                // What waited for others does not begin any more.
                break;
            }
        }
        wave.push(copy);
    }
    outcome.jobs.extend(run_wave(&wave, watcher)?.0);
    outcome.jobs.retain(|job| job.job.stats);
    outcome.disks = disks.since();
    Ok(outcome)
}

/// Finds every target, measures it, and makes the files that are missing.
fn prepare(
    jobs: &[Job],
    stacks: &mut Stacks,
    watcher: &mut dyn Watcher,
) -> Result<Vec<Copy>, JobError> {
    let mut copies = Vec::new();
    let mut group = 0;
    let writes = |text: &str| {
        let of = |job: &&Job| job.filename.as_deref() == Some(text);
        jobs.iter().filter(of).find(|job| job.changes_data())
    };
    for (index, job) in jobs.iter().enumerate() {
        if index > 0 && (job.stonewall || job.new_group) {
            group += 1;
        }
        for clone in 0..job.numjobs {
            let job = &replay::planned(job, clone)?;
            let number = copies.len() as u32;
            let target = meaning(job, clone);
            if job.changes_data() || job.deletes_files() {
                let allowed = watcher.may_write(&target);
                allowed.map_err(|message| JobError::target(&job.name, message))?;
            }
            let seeds = Seeds::of(job, number - clone + place_of_clone(clone, job.numjobs));
            watcher.seeded(&job.name, number, seeds.all());
            let (mut stack, mut layouts) = (None, Vec::new());
            let regions = match &target {
                Meaning::Nothing => null_regions(job, clone)?,
                Meaning::Stack(text) if job.file_operation().is_some() => {
                    return Err(needs_files(job, text));
                }
                Meaning::Stack(text) => {
                    if clone == 0 {
                        say_options_of_files(job, text, watcher);
                    }
                    if !stacks.contains_key(text) {
                        let opener = writes(text).unwrap_or(job);
                        stacks.insert(text.clone(), open_stack(opener, text)?);
                    }
                    let Some(open) = stacks.get(text) else {
                        continue;
                    };
                    stack = Some(Arc::clone(open));
                    vec![stack_region(job, clone, open)?]
                }
                Meaning::Paths(paths) => {
                    if job.file_operation() != Some(FileOperation::Create) {
                        make_folders(job, paths)?;
                    }
                    let (regions, missing) = file_regions(job, clone, paths, &seeds)?;
                    layouts = missing;
                    regions
                }
            };
            fits(job, &regions)?;
            zones_fit(job, &regions)?;
            covers(job, &regions)?;
            make_files(job, &layouts, &seeds, watcher)?;
            copies.push(Copy {
                job: job.clone(),
                number,
                clone,
                group,
                target,
                regions,
                stack,
                seeds,
            });
        }
    }
    Ok(copies)
}

/// The position of a clone in fio's order: the first, then the others, the last one first.
fn place_of_clone(clone: u32, clones: u32) -> u32 {
    match clone {
        0 => 0,
        clone => clones - clone,
    }
}

/// The error of an engine that works on files, for a job on a stack.
fn needs_files(job: &Job, stack: &str) -> JobError {
    let message = format!("{} works on files: `{stack}` is a stack", job.ioengine);
    JobError::language(job.origin_of("ioengine"), message)
}

/// Says which settings hold for files and block devices alone.
fn say_options_of_files(job: &Job, target: &str, watcher: &mut dyn Watcher) {
    for option in [
        "sync",
        "overwrite",
        "fadvise_hint",
        "create_on_open",
        "file_append",
        "fill_device",
        "pre_read",
        "unlink_each_loop",
    ] {
        if job.was_set(option) {
            let origin = job.origin_of(option);
            watcher.note(&format!(
                "{origin}{option} has no effect: `{target}` is a stack"
            ));
        }
    }
}

fn fits(job: &Job, regions: &[Region]) -> Result<(), JobError> {
    let unit = job.smallest_bytes();
    match regions.iter().find(|region| region.length < unit) {
        None => Ok(()),
        Some(Region { name, length, .. }) => {
            let message =
                format!("requests of {unit} bytes do not fit into {name}: {length} bytes");
            Err(JobError::language(job.origin_of("bs"), message))
        }
    }
}

/// Whether the zones of `zoned_abs` end within each file.
fn zones_fit(job: &Job, regions: &[Region]) -> Result<(), JobError> {
    let kinds = job.distribution.iter().zip(job.rw.does);
    let ends = kinds.filter_map(|(distribution, does)| match distribution {
        Distribution::ZonedBytes(zones) if does => Some(zones.iter().map(|zone| zone.1).sum()),
        _ => None,
    });
    let end: u64 = ends.max().unwrap_or(0);
    match regions.iter().find(|region| region.length < end) {
        None => Ok(()),
        Some(Region { name, length, .. }) => {
            let message =
                format!("the zones end at byte {end} of {name}, which has {length} bytes");
            let origin = job.origin_of("random_distribution");
            Err(JobError::language(origin, message))
        }
    }
}

/// Whether a trace ends before its target does.
fn covers(job: &Job, regions: &[Region]) -> Result<(), JobError> {
    let Some((end, _)) = job.filesize.filter(|_| job.read_iolog.is_some()) else {
        return Ok(());
    };
    match regions.iter().find(|region| region.length < end) {
        None => Ok(()),
        Some(Region { name, length, .. }) => {
            let message = format!(
                "the trace reaches up to byte {end} of {name}, which has {length} bytes: use \
                 replay_scale"
            );
            Err(JobError::language(job.origin_of("read_iolog"), message))
        }
    }
}

fn make_files(
    job: &Job,
    layouts: &[Layout],
    seeds: &Seeds,
    watcher: &mut dyn Watcher,
) -> Result<(), JobError> {
    if layouts.is_empty() {
        return Ok(());
    }
    let bytes = layouts.iter().map(|layout| layout.bytes).sum();
    watcher.laying_out(&job.name, layouts.len(), bytes);
    lay_out(job, layouts, seeds, &|| watcher.cancelled())
}
