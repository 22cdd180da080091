//! The files of `verify_state_save` and `verify_state_load`, in fio's format.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use ugeom_classes::result_file::refuse_carrying;
use ugeom_format::verify_state::{FILE_BYTES_MAX, VerifyState};

use ugeom_job::error::JobError;
use ugeom_job::settings::Job;

/// The file of a job that has this number among all, from 0: in the folder of `--aux-path`.
fn path(job: &Job, number: u32) -> PathBuf {
    let name = VerifyState::file_name(&job.name, number.into());
    match &job.aux_path {
        Some(folder) => Path::new(folder).join(name),
        None => name.into(),
    }
}

/// The state of an earlier job; `None` without `verify_state_load`.
///
/// # Errors
/// The file cannot be read, or is not a valid state.
pub(super) fn load(job: &Job, number: u32) -> Result<Option<VerifyState>, JobError> {
    if !job.verifying.loads {
        return Ok(None);
    }
    let path = path(job, number);
    let state = read(&path).and_then(|file| {
        VerifyState::decode(&file)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    });
    state.map(Some).map_err(|error| {
        let message = format!("verify_state_load: reading {}", path.display());
        JobError::caused(&job.name, message, error)
    })
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than is decoded: such a file is refused. A FIFO without a writer is empty.
    let nonblocking = OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(nonblocking)
        .open(path)?;
    file.take(FILE_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes the state of a job. A failure is returned as a warning: as in fio, the job succeeds.
pub(super) fn save(job: &Job, number: u32, state: &VerifyState) -> Option<String> {
    let path = path(job, number);
    let bytes = state
        .encode()
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error));
    let written = bytes.and_then(|bytes| {
        refuse_carrying(&path, |_| false)?;
        create(&path)?.write_all(&bytes)
    });
    let say = |error| {
        format!(
            "{}: verify_state_save: writing {}: {error}",
            job.name,
            path.display()
        )
    };
    written.err().map(say)
}

/// As by fio, the state is on the medium when the job has ended: its next run may follow a crash.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).write(true).truncate(true).mode(0o644);
    options.custom_flags(OFlags::SYNC.bits() as i32).open(path)
}
