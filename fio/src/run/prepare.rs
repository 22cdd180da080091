//! Preparation of a job: its target is found and measured, and missing files are made.

use std::collections::BTreeMap;
use std::sync::Arc;

use ugeom_classes::Target;

use super::{Copy, Watcher};
use crate::draws::Seeds;
use crate::files::make_folders;
use crate::layout::{Layout, lay_out};
use crate::places::Region;
use crate::replay;
use crate::target::{Meaning, file_regions, meaning, null_regions, open_stack, stack_region};
use ugeom_job::error::JobError;
use ugeom_job::settings::{Distribution, FileOperation, Job};
use ugeom_machine::cpu::configured_cores;
use ugeom_measure::units::Size;

/// The targets of all jobs that are stacks, by their text.
pub(super) type Stacks = BTreeMap<String, Arc<Target>>;

/// A copy of a job that is to run.
pub(super) struct JobCopy<'a> {
    pub(super) job: &'a Job,
    /// Its number among all copies of all jobs.
    number: u32,
    /// The number of the copy of its job.
    clone: u32,
    pub(super) group: u32,
    /// The job needs files of an earlier job: it is prepared when its turn comes.
    pub(super) is_late: bool,
}

/// A copy of a job, or why it cannot begin: the others run, as by fio.
pub(super) enum Prepared {
    Ready(Box<Copy>),
    Failed(JobError),
}

/// All copies of all jobs, in fio's order: of a job the first, then the others, the last one first.
pub(super) fn entries(jobs: &[Job]) -> Vec<JobCopy<'_>> {
    let mut entries = Vec::new();
    let mut group = 0;
    for (index, job) in jobs.iter().enumerate() {
        if index > 0 && (job.stonewall || job.new_group) {
            group += 1;
        }
        let logs = jobs[..index]
            .iter()
            .any(|other| other.write_iolog.is_some());
        let is_late = index > 0 && (!job.create_serialize || (logs && job.read_iolog.is_some()));
        for clone in std::iter::once(0).chain((1..job.numjobs).rev()) {
            entries.push(JobCopy {
                job,
                number: entries.len() as u32,
                clone,
                group,
                is_late,
            });
        }
    }
    entries
}

/// Asks whether a copy of a job may write to its target, if it is known.
fn ask(job: &Job, target: &Meaning, watcher: &mut dyn Watcher) -> Result<(), JobError> {
    if !job.changes_data() && !job.deletes_files() {
        return Ok(());
    }
    let allowed = watcher.may_write(target);
    allowed.map_err(|message| JobError::target(&job.name, message))
}

/// Whether the system has the cores that a job is to run on.
fn has_cores(job: &Job) -> Result<(), JobError> {
    let cores = configured_cores();
    match job.cpus_allowed.last().filter(|last| **last >= cores) {
        None => Ok(()),
        Some(core) => {
            let message = format!("there is no CPU {core}: the last one is {}", cores - 1);
            Err(JobError::language(job.origin_of("cpus_allowed"), message))
        }
    }
}

impl JobCopy<'_> {
    /// Refuses a job that is prepared later, as far as possible before any job runs.
    pub(super) fn refuse_early(&self, watcher: &mut dyn Watcher) -> Result<(), JobError> {
        match self.job.read_iolog {
            Some(_) => Ok(()),
            None => ask(self.job, &meaning(self.job, self.clone), watcher),
        }
    }

    /// Finds the target, measures it, and makes the files that are missing.
    ///
    /// # Errors
    /// What forbids all jobs: as by fio, a `size` below one request and a missing directory; data
    /// that is not to be overwritten, and a stack that cannot be opened.
    pub(super) fn prepare(
        &self,
        jobs: &[Job],
        stacks: &mut Stacks,
        watcher: &mut dyn Watcher,
    ) -> Result<Prepared, JobError> {
        let clone = self.clone;
        has_cores(self.job)?;
        let job = &replay::planned(self.job, clone)?;
        let target = meaning(job, clone);
        ask(job, &target, watcher)?;
        let seeds = Seeds::of(job, self.number);
        watcher.seeded(&job.name, self.number, seeds.all());
        is_large_enough(job)?;
        let mut stack = None;
        match &target {
            Meaning::Stack(text) => stack = Some(self.stack(job, text, jobs, stacks, watcher)?),
            Meaning::Paths(paths) if job.file_operation() != Some(FileOperation::Create) => {
                make_folders(job, paths)?;
            }
            _ => {}
        }
        let regions = match regions(job, clone, &target, stack.as_deref(), &seeds, watcher) {
            Ok(regions) => regions,
            Err(error) if stack.is_some() => return Err(error),
            Err(error) => return Ok(Prepared::Failed(error)),
        };
        Ok(Prepared::Ready(Box::new(Copy {
            job: job.clone(),
            number: self.number,
            clone,
            group: self.group,
            target,
            regions,
            stack,
            seeds,
        })))
    }

    /// The stack of a job, which is opened for the first of those that work on it.
    fn stack(
        &self,
        job: &Job,
        text: &str,
        jobs: &[Job],
        stacks: &mut Stacks,
        watcher: &mut dyn Watcher,
    ) -> Result<Arc<Target>, JobError> {
        if job.file_operation().is_some() || job.range_call().is_some() {
            return Err(needs_files(job, text));
        }
        if self.clone == 0 {
            say_options_of_files(job, text, watcher);
        }
        if let Some(open) = stacks.get(text) {
            return Ok(Arc::clone(open));
        }
        let of = |job: &&Job| job.filename.as_deref() == Some(text);
        let writer = jobs.iter().filter(of).find(|job| job.changes_data());
        let open = open_stack(writer.unwrap_or(job), text)?;
        stacks.insert(text.to_owned(), Arc::clone(&open));
        Ok(open)
    }
}

/// The regions of a job, whose missing files are made.
fn regions(
    job: &Job,
    clone: u32,
    target: &Meaning,
    stack: Option<&Target>,
    seeds: &Seeds,
    watcher: &mut dyn Watcher,
) -> Result<Vec<Region>, JobError> {
    let mut layouts = Vec::new();
    let regions = match (target, stack) {
        (Meaning::Paths(paths), _) => {
            let (regions, missing) = file_regions(job, clone, paths, seeds)?;
            layouts = missing;
            regions
        }
        (_, Some(stack)) => vec![stack_region(job, clone, stack)?],
        _ if !job.makes_requests() => Vec::new(),
        _ => null_regions(job, clone, seeds)?,
    };
    fits(job, &regions)?;
    say_zones_that_do_not_fit(job, &regions, watcher);
    covers(job, &regions)?;
    make_files(job, &layouts, seeds, watcher)?;
    Ok(regions)
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
        "sync_file_range",
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

/// Whether `size` has room for a request.
fn is_large_enough(job: &Job) -> Result<(), JobError> {
    let unit = job.smallest_bytes();
    match job.size {
        Some(Size::Bytes(bytes)) if bytes < unit && job.makes_requests() => {
            let message = format!("size={bytes} is smaller than a request, {unit} bytes");
            Err(JobError::language(job.origin_of("size"), message))
        }
        _ => Ok(()),
    }
}

/// Whether there is room for a request in all files together.
fn fits(job: &Job, regions: &[Region]) -> Result<(), JobError> {
    let unit = job.smallest_bytes();
    let lengths = regions.iter().map(|region| region.length);
    let whole = lengths.fold(0, u64::saturating_add);
    let Some(first) = regions.first().filter(|_| whole < unit) else {
        return Ok(());
    };
    let name = match regions.len() {
        1 => first.name.clone(),
        files => format!("{} and {} other files", first.name, files - 1),
    };
    let message = format!("requests of {unit} bytes do not fit into {name}: {whole} bytes");
    Err(JobError::no_room(&job.name, job.origin_of("bs"), message))
}

/// Says which zones of `zoned_abs` reach past the end of a file: the first request there ends the
/// job, as by fio.
fn say_zones_that_do_not_fit(job: &Job, regions: &[Region], watcher: &mut dyn Watcher) {
    let kinds = job.distribution.iter().zip(job.rw.does);
    let ends = kinds.filter_map(|(distribution, does)| match distribution {
        Distribution::ZonedBytes(zones) if does => Some(zones.iter().map(|zone| zone.1).sum()),
        _ => None,
    });
    let end: u64 = ends.max().unwrap_or(0);
    if let Some(region) = regions.iter().find(|region| region.length < end) {
        let (origin, name) = (job.origin_of("random_distribution"), &region.name);
        watcher.note(&format!(
            "{origin}the zones end at byte {end} of {name}, which has {} bytes: the first request \
             past its end ends the job",
            region.length
        ));
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
    if job.keeps_files {
        // As by fio, a short file stays as it is.
        for Layout { path, bytes, .. } in layouts {
            watcher.note(&format!(
                "{}: {} is shorter than {bytes} bytes, and --readonly keeps it so: reads past its \
                 end find nothing",
                job.name,
                path.display()
            ));
        }
        return Ok(());
    }
    if !job.changes_data() {
        // A job that reads makes a file longer that has less than its size.
        let paths = layouts.iter().map(|layout| layout.path.clone()).collect();
        let allowed = watcher.may_write(&Meaning::Paths(paths));
        allowed.map_err(|message| JobError::target(&job.name, message))?;
    }
    let bytes = layouts.iter().map(|layout| layout.bytes).sum();
    watcher.laying_out(&job.name, layouts.len(), bytes);
    lay_out(job, layouts, seeds, &|| watcher.cancelled())
}
