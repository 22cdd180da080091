//! `opendir`: the files below a directory, as if `filename` named them.

use std::borrow::Cow;
use std::fs;
use std::io;

use ugeom_job::error::JobError;
use ugeom_job::settings::Job;

/// How many files there may be: each is opened.
const FILES_MAX: usize = 1 << 16;
/// How deep directories may lie in each other.
const DEPTH_MAX: usize = 64;

/// The jobs with the files of their directories.
///
/// # Errors
/// A directory that cannot be read or has no files.
pub(super) fn opened(jobs: &[Job]) -> Result<Cow<'_, [Job]>, JobError> {
    if jobs.iter().all(|job| job.opendir.is_none()) {
        return Ok(Cow::Borrowed(jobs));
    }
    let mut jobs = jobs.to_vec();
    for job in &mut jobs {
        let Some(folder) = job.opendir.take() else {
            continue;
        };
        let mut names: Vec<String> = job.filename.take().into_iter().collect();
        let named = names.len();
        let walked = walk(&folder, 0, &mut names);
        let found = walked.and_then(|()| match names.len() > named {
            true => Ok(()),
            false => Err(io::Error::other("there are no files in it")),
        });
        if let Err(error) = found {
            let origin = job.origin_of("opendir");
            return Err(JobError::language(origin, format!("{folder}: {error}")));
        }
        job.filename = Some(names.join(":"));
    }
    Ok(Cow::Owned(jobs))
}

/// Adds the files below a directory, in the order of readdir(3), as they are written in `filename`.
/// As by fio, symbolic links are left out.
fn walk(folder: &str, depth: usize, names: &mut Vec<String>) -> io::Result<()> {
    if depth > DEPTH_MAX {
        return Err(io::Error::other("directories lie too deep in each other"));
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| !name.contains('|')) else {
            let message = format!("{}: such a name cannot be given", entry.path().display());
            return Err(io::Error::other(message));
        };
        let path = format!("{folder}/{name}");
        if kind.is_dir() {
            walk(&path, depth + 1, names)?;
        } else if kind.is_file() {
            names.push(path.replace('\\', r"\\").replace(':', r"\:"));
        }
        if names.len() > FILES_MAX {
            let message = format!("there are more than {FILES_MAX} files in it");
            return Err(io::Error::other(message));
        }
    }
    Ok(())
}
