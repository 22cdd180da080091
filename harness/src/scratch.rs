//! Temporary files to measure on: written in full, with content that cannot be compressed, and
//! synced. They have no name in any folder (O_TMPFILE, or removed as soon as they are made), so
//! none is left behind, not even after SIGKILL; this process and its children reach one through
//! `/proc`.
//!
//! A sparse file would be read from no disk at all, and content that a drive or a file system can
//! compress is not moved as it is.

use crate::HarnessError;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use ugeom_measure::units::size_human;

/// How much is made at a time, bytes.
const PIECE_BYTES: usize = 1 << 20;

/// A temporary file that is gone when this is dropped.
#[derive(Debug)]
pub struct Scratch {
    file: File,
    path: PathBuf,
    bytes: u64,
}

impl Scratch {
    /// Writes a file of `bytes` into `folder`, or into the current one. `seed` decides its content.
    /// It ends early when `cancelled` is set.
    ///
    /// # Errors
    /// [`HarnessError::Os`] when there is not room enough, when it cannot be written, or when it
    /// was cancelled.
    pub fn new(
        folder: Option<&Path>,
        bytes: u64,
        seed: u64,
        cancelled: &AtomicBool,
    ) -> Result<Self, HarnessError> {
        let folder = folder.map_or_else(|| PathBuf::from("."), Path::to_path_buf);
        let name = folder.display().to_string();
        require_room(&folder, bytes)?;
        let file = tempfile::tempfile_in(&folder)
            .map_err(HarnessError::os(&name, "making a temporary file"))?;
        fill(&file, bytes, seed, cancelled)
            .map_err(HarnessError::os(name, "writing a temporary file"))?;
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        let path = PathBuf::from(path);
        Ok(Self { file, path, bytes })
    }

    /// Where this process and its children find it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file, open for reading and writing.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Size of the file, bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// A file to measure on: the user's own, or a temporary one.
#[derive(Debug)]
pub enum ScratchPlace {
    /// The one that the user named.
    Given(PathBuf),
    /// A temporary one, because none was named.
    Temporary(Scratch),
}

impl ScratchPlace {
    /// The file that was named, or else a temporary one in the current folder.
    ///
    /// # Errors
    /// As [`Scratch::new`].
    pub fn of(
        given: Option<&Path>,
        bytes: u64,
        seed: u64,
        cancelled: &AtomicBool,
    ) -> Result<Self, HarnessError> {
        match given {
            Some(path) => Ok(Self::Given(path.to_path_buf())),
            None => Scratch::new(None, bytes, seed, cancelled).map(Self::Temporary),
        }
    }

    /// Path of the given or the temporary file.
    pub fn path(&self) -> &Path {
        match self {
            Self::Given(path) => path,
            Self::Temporary(scratch) => scratch.path(),
        }
    }
}

/// Gives the kernel's pages of a file back, so that those that it is read into next lie elsewhere.
/// Without effect where they are the file (tmpfs), or written to.
///
/// # Errors
/// [`HarnessError::Os`] when the file cannot be opened.
pub fn forget_pages(path: &Path) -> Result<(), HarnessError> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(HarnessError::open(&name))?;
    // A file system that does not know the advice keeps its pages, and nothing else is lost.
    let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
    Ok(())
}

/// Asks the file system, so that the disk is not filled first and the error told then.
fn require_room(folder: &Path, bytes: u64) -> Result<(), HarnessError> {
    let name = folder.display().to_string();
    let about = rustix::fs::statvfs(folder)
        .map_err(|errno| HarnessError::os(&name, "reading the free space")(errno.into()))?;
    let free_bytes = about.f_bavail.saturating_mul(about.f_frsize);
    if free_bytes > bytes {
        return Ok(());
    }
    let (wanted, free) = (size_human(bytes), size_human(free_bytes));
    let problem = format!("no room in {name} for a temporary file of {wanted} ({free} free)");
    let source = io::Error::new(io::ErrorKind::StorageFull, problem);
    Err(HarnessError::subject(source))
}

fn fill(mut file: &File, bytes: u64, seed: u64, cancelled: &AtomicBool) -> io::Result<()> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut piece = vec![0; PIECE_BYTES];
    let mut left = bytes;
    while left > 0 {
        if cancelled.load(Ordering::Relaxed) {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "it was stopped"));
        }
        random.fill(&mut piece);
        let length = left.min(PIECE_BYTES as u64);
        file.write_all(&piece[..length as usize])?;
        left -= length;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use ugeom_testkit::{begins, has};

    static GO_ON: AtomicBool = AtomicBool::new(false);

    #[test]
    fn it_is_written_in_full_incompressible_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = 3 * PIECE_BYTES as u64 + 512;
        let scratch = Scratch::new(Some(folder.path()), bytes, 7, &GO_ON).unwrap();
        let content = std::fs::read(scratch.path()).unwrap();
        assert_eq!((content.len() as u64, scratch.bytes()), (bytes, bytes));
        let about = scratch.file().metadata().unwrap();
        assert!(about.blocks() * 512 >= bytes, "it has holes: {about:?}");
        // Of incompressible content every byte value is as frequent as any other.
        let mut counts = [0_u64; 256];
        content
            .iter()
            .for_each(|byte| counts[usize::from(*byte)] += 1);
        let expected = bytes as f64 / 256.0;
        let chi_squared: f64 = counts
            .iter()
            .map(|count| (*count as f64 - expected).powi(2) / expected)
            .sum();
        // 255 degrees of freedom: 99.99 % lie below 347.
        assert!(chi_squared < 347.0, "{chi_squared}");
        assert_ne!(content[..4096], content[PIECE_BYTES..PIECE_BYTES + 4096]);
        // Whether its path is gone cannot be asked: another test may have the descriptor's number.
        assert_eq!(about.nlink(), 0, "it would stay behind: {about:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_does_not_fit_is_not_begun() {
        let folder = tempfile::tempdir().unwrap();
        let error = Scratch::new(Some(folder.path()), 1 << 60, 7, &GO_ON).unwrap_err();
        let error = error.to_string();
        begins(&error, "no room in ");
        has(&error, " for a temporary file of 1 EiB (");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let nowhere = Scratch::new(Some(Path::new("/nonexistent")), 1, 7, &GO_ON);
        assert!(
            nowhere
                .unwrap_err()
                .to_string()
                .starts_with("/nonexistent: ")
        );
    }

    #[test]
    fn a_stop_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let stopped = AtomicBool::new(true);
        let error = Scratch::new(Some(folder.path()), 4096, 7, &stopped).unwrap_err();
        assert!(error.to_string().ends_with("it was stopped"), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
