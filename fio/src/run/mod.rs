//! Running jobs: waves of them, one thread each, watched by the thread that asked.

mod burn;
mod commands;
mod directories;
mod disks;
mod prepare;
mod sampling;
mod states;
mod thread;
mod wave;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use ugeom_classes::Target;
use ugeom_stack::LostAtTheEnd;

use super::draws::Seeds;
use super::outcome::{JobOutcome, Outcome};
use super::places::Region;
use super::tally::Phase;
use super::target::Meaning;
use disks::Disks;
use prepare::{JobCopy, Prepared, Stacks, entries};
use ugeom_job::error::JobError;
use ugeom_job::settings::Job;
use wave::run_wave;

/// Reports to the caller, which may stop the run.
pub trait Watcher {
    /// Something to say, once.
    fn note(&mut self, text: &str);
    /// A job makes new files, of so many bytes together.
    fn laying_out(&mut self, job: &str, files: usize, bytes: u64);
    /// How it goes; called several times a second.
    fn progress(&mut self, progress: &Progress<'_>);
    /// True when everything should end soon.
    fn cancelled(&self) -> bool;
    /// A copy of a job gets its random numbers from these seeds (`--debug=random`).
    fn seeded(&mut self, job: &str, number: u32, seeds: &[u64]) {
        let _ = (job, number, seeds);
    }
    /// Whether reports are wanted while jobs run (`--status-interval`).
    fn wants_reports(&self) -> bool {
        false
    }
    /// Whether it is time for such a report.
    fn is_report_due(&mut self) -> bool {
        false
    }
    /// The results so far.
    fn report(&mut self, outcome: Outcome) {
        let _ = outcome;
    }
    /// Asked before a job writes to a target: an error forbids it.
    ///
    /// # Errors
    /// Why it must not be written.
    fn may_write(&mut self, target: &Meaning) -> Result<(), String>;
}

/// The status line (`--eta`).
pub struct Progress<'a> {
    /// The jobs of this wave, with where each is.
    pub jobs: &'a [(&'a Job, Phase)],
    /// Bytes and requests a second now: reads, writes, trims.
    pub rates: [(f64, f64); 3],
    /// The rates are newer than those of the last [`Progress`].
    pub is_new: bool,
    /// The share that is done, from 0 to 1, as far as is known.
    pub done: Option<f64>,
    /// The time that is left, s.
    pub left_s: Option<u64>,
}

/// One copy of a job.
struct Copy {
    job: Job,
    number: u32,
    /// The number of the copy of its job.
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
/// A job that cannot be run at all. Failures during a job are in its outcome, and so is data that a
/// stack loses at the end.
pub fn run(jobs: &[Job], watcher: &mut dyn Watcher) -> Result<Outcome, JobError> {
    let mut stacks = BTreeMap::new();
    let jobs = &directories::opened(jobs)?;
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

fn run_waves(
    jobs: &[Job],
    stacks: &mut Stacks,
    watcher: &mut dyn Watcher,
) -> Result<Outcome, JobError> {
    ugeom_machine::open_files::raise();
    let entries = entries(jobs);
    let mut early = Vec::new();
    for entry in &entries {
        early.push(match entry.is_late {
            true => entry.refuse_early(watcher).map(|()| None)?,
            false => Some(entry.prepare(jobs, stacks, watcher)?),
        });
    }
    let idle = |entry: &JobCopy<'_>| JobOutcome::not_begun(entry.job, entry.group);
    if watcher.cancelled() {
        // Files may be missing.
        let jobs = entries.iter().map(idle).filter(|job| job.job.stats);
        return Ok(Outcome {
            jobs: jobs.collect(),
            ..Outcome::default()
        });
    }
    let counted = early.iter().filter_map(|prepared| match prepared {
        Some(Prepared::Ready(copy)) if copy.job.disk_util => Some(&**copy),
        _ => None,
    });
    let disks = Disks::below(counted);
    // It holds for all jobs, as by fio.
    let exitall = jobs.iter().any(|job| job.exitall);
    let mut outcome = Outcome::default();
    let mut copies = entries.iter().zip(early).peekable();
    while copies.peek().is_some() {
        let mut wave: Vec<Copy> = Vec::new();
        // Those that cannot begin, at their places.
        let mut failed = Vec::new();
        let mut waiting = Vec::new();
        let mut group = None;
        while let Some((entry, early)) = copies.next_if(|(entry, _)| {
            !entry.job.stonewall || group.is_none() || group == Some(entry.group)
        }) {
            group = Some(entry.group);
            waiting.push(entry);
            let prepared = early.map_or_else(|| entry.prepare(jobs, stacks, watcher), Ok);
            match prepared.unwrap_or_else(Prepared::Failed) {
                Prepared::Ready(copy) => wave.push(*copy),
                Prepared::Failed(error) => failed.push((
                    wave.len() + failed.len(),
                    JobOutcome::failed(entry.job, entry.group, &error),
                )),
            }
        }
        if watcher.cancelled() {
            outcome.jobs.extend(waiting.into_iter().map(idle));
            outcome.jobs.extend(copies.map(|(entry, _)| idle(entry)));
            break;
        }
        wave.iter_mut().for_each(|copy| copy.job.exitall = exitall);
        let so_far = |jobs: Vec<JobOutcome>| reported(&outcome.jobs, jobs, &disks);
        let (mut jobs, goes_on) = run_wave(&wave, &so_far, watcher)?;
        for (place, job) in failed {
            jobs.insert(place, job);
        }
        outcome.jobs.extend(jobs);
        if !goes_on || watcher.cancelled() {
            // Waiting jobs do not begin any more, and are reported, as by fio.
            outcome.jobs.extend(copies.map(|(entry, _)| idle(entry)));
            break;
        }
    }
    Ok(reported(&[], outcome.jobs, &disks))
}

/// The report of jobs that ran earlier and those that ran last.
fn reported(earlier: &[JobOutcome], last: Vec<JobOutcome>, disks: &Disks) -> Outcome {
    let jobs = earlier.iter().cloned().chain(last);
    Outcome {
        jobs: jobs.filter(|job| job.job.stats).collect(),
        disks: disks.since(),
        idleness: None,
        lost: Vec::new(),
        warnings: Vec::new(),
    }
}
