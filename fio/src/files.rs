//! The files of a worker: their folders are made, they are opened, and removed.

use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Advice, OFlags, fadvise};
use ugeom_engine::AccessOrder;
use ugeom_job::error::JobError;
use ugeom_job::settings::{FadviseHint, Job, READ, RangeCall, Verify, WRITE, WriteSync};

use super::target::split_names;

/// The size of a read of `pre_read`, bytes.
const READ_BYTES: usize = 1 << 20;
/// The mode of new folders, as by fio.
const FOLDER_MODE: u32 = 0o700;

/// Makes the folders of a job's files, as fio does. Those that `directory` names must be there.
///
/// # Errors
/// The reason why they could not be made.
pub fn make_folders(job: &Job, paths: &[PathBuf]) -> Result<(), JobError> {
    let named = job.directory.as_deref().map_or(Vec::new(), split_names);
    let parents = paths.iter().filter_map(|path| path.parent());
    let missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let makes = job.allow_file_create && !job.keeps_files;
    for folder in parents.filter(missing).filter(|_| makes) {
        let lacks = |name: &&String| folder.starts_with(name) && !Path::new(name).is_dir();
        if let Some(name) = named.iter().find(lacks) {
            let message = format!("{name} is not a directory");
            return Err(JobError::language(job.origin_of("directory"), message));
        }
        let mut maker = DirBuilder::new();
        let made = maker.recursive(true).mode(FOLDER_MODE).create(folder);
        made.map_err(|error| JobError::caused(&job.name, folder.display().to_string(), error))?;
    }
    Ok(())
}

/// Removes the files of a worker and opens them anew (`unlink_each_loop`): what is written is made.
///
/// # Errors
/// The error of the first that cannot be removed or opened.
pub fn renew_files(job: &Job, paths: &[PathBuf]) -> Result<Vec<Arc<File>>, JobError> {
    remove_files(job, paths)?;
    open_files_as(job, paths, job.changes_data() && job.allow_file_create)
}

/// Removes the files of a worker that exist.
///
/// # Errors
/// The error of the first that cannot be removed.
pub fn remove_files(job: &Job, paths: &[PathBuf]) -> Result<(), JobError> {
    for path in paths.iter().filter(|path| path.is_file()) {
        std::fs::remove_file(path).map_err(|error| {
            JobError::caused(&job.name, format!("{}: removing", path.display()), error)
        })?;
    }
    Ok(())
}

/// Opens the files of a worker.
///
/// # Errors
/// The error of the first that cannot be opened.
pub fn open_files(job: &Job, paths: &[PathBuf]) -> Result<Vec<Arc<File>>, JobError> {
    let creates = job.changes_data() && (job.create_on_open || job.fill_device);
    open_files_as(job, paths, creates)
}

/// Opens the files of a worker, and makes those that are missing if it `creates`.
fn open_files_as(job: &Job, paths: &[PathBuf], creates: bool) -> Result<Vec<Arc<File>>, JobError> {
    let writes = job.changes_data() || job.range_call() == Some(RangeCall::Allocate);
    let reads = job.rw.does[READ] || (job.rw.does[WRITE] && job.verify != Verify::No);
    let open = |path: &PathBuf| {
        let mut options = OpenOptions::new();
        options.read(reads || !writes).write(writes).create(creates);
        let mut flags = match job.sync {
            WriteSync::None => OFlags::empty(),
            WriteSync::Sync => OFlags::SYNC,
            WriteSync::Dsync => OFlags::DSYNC,
        };
        flags.set(OFlags::DIRECT, job.direct);
        options.custom_flags(flags.bits() as i32);
        let file = options.open(path);
        let file = file.map_err(|error| {
            let name = path.display().to_string();
            JobError::caused(&job.name, name, error)
        })?;
        if job.pre_read {
            File::open(path)
                .and_then(|file| read_all(&file))
                .map_err(|error| {
                    let name = format!("{}: reading", path.display());
                    JobError::caused(&job.name, name, error)
                })?;
        } else if job.invalidate && !job.direct {
            // Advice: the system may keep pages, as with fio.
            let _ = fadvise(&file, 0, None, Advice::DontNeed);
        }
        if let Some(order) = order_of(job) {
            let advice = match order {
                AccessOrder::Random => Advice::Random,
                AccessOrder::Sequential => Advice::Sequential,
            };
            let _ = fadvise(&file, 0, None, advice);
        }
        Ok(Arc::new(file))
    };
    paths.iter().map(open).collect()
}

/// `fadvise_hint`: the order of a job's requests, as far as the kernel is to know it.
pub(crate) fn order_of(job: &Job) -> Option<AccessOrder> {
    match job.fadvise_hint {
        FadviseHint::None => None,
        FadviseHint::Pattern if job.rw.random => Some(AccessOrder::Random),
        FadviseHint::Pattern | FadviseHint::Sequential => Some(AccessOrder::Sequential),
        FadviseHint::Random => Some(AccessOrder::Random),
    }
}

/// `pre_read`: brings a file into the cache.
fn read_all(file: &File) -> std::io::Result<()> {
    use std::os::unix::fs::FileExt;
    let mut piece = vec![0; READ_BYTES];
    let mut at = 0;
    loop {
        match file.read_at(&mut piece, at)? {
            0 => return Ok(()),
            bytes => at += bytes as u64,
        }
    }
}
