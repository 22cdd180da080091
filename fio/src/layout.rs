//! Files that are made before a job runs: filled where they are read, else reserved.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};

use super::content::Content;
use super::draws::Seeds;
use ugeom_job::error::JobError;
use ugeom_job::settings::{Fallocate, Job, WRITE};

/// The size of a write that fills new files, bytes.
const PIECE_BYTES: usize = 1 << 20;
/// Files that are written before the first of them is flushed. The journal of a file system then
/// commits many files at a time. Each is open meanwhile.
const BATCH_FILES: usize = 256;

/// A file that has to be made or made longer before a job can run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Path of the file.
    pub path: PathBuf,
    /// How long it must be, bytes.
    pub bytes: u64,
    /// It is read: it must hold data, not holes.
    pub filled: bool,
}

/// Makes files, or makes them longer. Files that will be read are written with the content of the
/// job's writes; files that will only be written are reserved. An interrupt ends it: files may be
/// missing then.
///
/// # Errors
/// The error of the first that could not be made.
pub fn lay_out(
    job: &Job,
    layouts: &[Layout],
    seeds: &Seeds,
    cancelled: &dyn Fn() -> bool,
) -> Result<(), JobError> {
    let mut filler = Filler::new(job, seeds);
    for batch in layouts.chunks(BATCH_FILES) {
        let mut written = Vec::new();
        for layout in batch {
            if cancelled() {
                return Ok(());
            }
            let (file, has) = make(job, layout)?;
            if layout.filled && has < layout.bytes {
                filler.fill(job, layout, &file, has, cancelled)?;
                written.push((layout, file));
            }
        }
        if job.create_fsync {
            for (layout, file) in &written {
                let flushed = file.sync_all();
                flushed.map_err(|error| failed(job, layout, "writing", error))?;
            }
        }
    }
    Ok(())
}

fn failed(job: &Job, layout: &Layout, doing: &str, error: std::io::Error) -> JobError {
    let (origin, bytes) = (job.origin_of("size"), layout.bytes);
    let message = format!("{origin}{doing} {}, {bytes} bytes", layout.path.display());
    JobError::caused(&job.name, message, error)
}

/// Opens a file, reserves its space, and sets its length if it need not be filled. Answers with
/// the length that it had, too.
fn make(job: &Job, layout: &Layout) -> Result<(File, u64), JobError> {
    let failed = |doing: &str, error| failed(job, layout, doing, error);
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&layout.path)
        .map_err(|error| failed("making", error))?;
    let has = file
        .metadata()
        .map_err(|error| failed("looking at", error))?
        .len();
    let how = match job.fallocate {
        Fallocate::Native => Some(FallocateFlags::empty()),
        Fallocate::Keep => Some(FallocateFlags::KEEP_SIZE),
        Fallocate::None | Fallocate::Truncate => None,
    };
    // Not every file system can: the file then grows as it is written.
    let reserved = how.map_or(Ok(()), |how| fallocate(&file, how, 0, layout.bytes));
    if let Err(error @ rustix::io::Errno::NOSPC) = reserved {
        return Err(failed("reserving", error.into()));
    }
    let grows = matches!(job.fallocate, Fallocate::None | Fallocate::Keep);
    // Mapped memory must have a file behind it.
    if !layout.filled && (!grows || job.ioengine == "mmap") {
        file.set_len(layout.bytes.max(has))
            .map_err(|error| failed("making", error))?;
    }
    Ok((file, has))
}

/// The content of new files.
struct Filler {
    content: Content,
    piece: Vec<u8>,
    /// The length of a block of content, bytes.
    block: usize,
}

impl Filler {
    fn new(job: &Job, seeds: &Seeds) -> Self {
        let block = (job.sizes[WRITE].max as usize).clamp(1, PIECE_BYTES);
        Self {
            content: Content::new(job, seeds, 0),
            piece: vec![0; PIECE_BYTES / block * block],
            block,
        }
    }

    /// Fills a file behind its end; an interrupt undoes that.
    fn fill(
        &mut self,
        job: &Job,
        layout: &Layout,
        file: &File,
        has: u64,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), JobError> {
        let failed = |doing: &str, error| failed(job, layout, doing, error);
        let mut at = has;
        while at < layout.bytes {
            if cancelled() {
                let undone = match has {
                    0 => std::fs::remove_file(&layout.path),
                    has => file.set_len(has),
                };
                return undone.map_err(|error| failed("removing", error));
            }
            let count = (layout.bytes - at).min(self.piece.len() as u64) as usize;
            let piece = &mut self.piece[..count];
            for (index, block) in piece.chunks_mut(self.block).enumerate() {
                let offset = at + (index * self.block) as u64;
                self.content.lay_out(block, offset);
            }
            file.write_all_at(piece, at)
                .map_err(|error| failed("writing", error))?;
            at += count as u64;
        }
        if job.create_fsync && layout.bytes - has <= PIECE_BYTES as u64 {
            // Advice: starts writing, so that the flushes of a batch need not wait for each other.
            // All of it is dirty still, and stays in the cache.
            let _ = fadvise(file, has, None, Advice::DontNeed);
        }
        Ok(())
    }
}
