//! An open file of a thread's own.
//!
//! The kernel reports a failed write-back once per open file (`errseq_t`): if two threads share one
//! and both flush it, only one of them gets the error. `dup(2)` copies the descriptor, not the open
//! file.

use rustix::fs::{Mode, OFlags, fcntl_getfl, fstat, open, stat};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;

/// Where Linux shows the open files of this process.
pub(super) const OWN_FILES: &str = "/proc/self/fd";

/// The file that a thread works on.
pub(super) struct ThreadFile {
    pub file: Arc<File>,
    /// Other threads flush it, too.
    pub shared: bool,
}

impl ThreadFile {
    /// The file opened once more for a thread that writes.
    pub fn to_write(file: &Arc<File>, path: &Path) -> Self {
        let own = reopened(file, Path::new(OWN_FILES), path);
        let shared = own.is_err();
        if let Err(errno) = &own {
            log::info!(
                "{}: it cannot be opened once more ({errno}), so threads share one open file, and \
                 FLUSHes run one at a time",
                path.display()
            );
        }
        let file = own.map_or_else(|_| Arc::clone(file), Arc::new);
        Self { file, shared }
    }
}

/// The file opened once more: as an entry of `own_files`, or else by its path, if that still leads
/// to it.
fn reopened(file: &File, own_files: &Path, path: &Path) -> Result<File, Errno> {
    let kept = OFlags::ACCMODE | OFlags::DIRECT;
    let flags = fcntl_getfl(file)? & kept | OFlags::CLOEXEC;
    let entry = own_files.join(file.as_raw_fd().to_string());
    if let Ok(own) = open(entry, flags, Mode::empty()) {
        return Ok(own.into());
    }
    let wanted = fstat(file)?;
    // Looked at before it is opened: what is there now may wait in open(2), or rewind a tape.
    let is_it =
        |found: &rustix::fs::Stat| (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino);
    if !is_it(&stat(path)?) {
        return Err(Errno::STALE);
    }
    let own = open(path, flags, Mode::empty())?;
    match is_it(&fstat(&own)?) {
        true => Ok(own.into()),
        false => Err(Errno::STALE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::{Seek, SeekFrom};

    /// Two open files have an offset each, and one that is shared has one.
    fn is_own(file: &File, other: &File) -> bool {
        let (mut file, mut other) = (file, other);
        file.seek(SeekFrom::Start(7)).expect("seeks");
        other.stream_position().expect("tells") != 7
    }

    #[test]
    fn a_file_is_opened_once_more_with_and_without_proc() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("disk.img");
        fs::write(&path, [1; 512]).expect("an image");
        let open = || File::options().read(true).write(true).open(&path);
        let file = open().expect("opens");
        assert!(!is_own(&file, &file.try_clone().expect("dup")));
        for own_files in [Path::new(OWN_FILES), folder.path()] {
            let own = reopened(&file, own_files, &path).expect("again");
            assert!(is_own(&file, &own));
            let flags = |file: &File| fcntl_getfl(file).expect("flags");
            assert_eq!(flags(&file), flags(&own));
        }
        fs::rename(&path, folder.path().join("moved")).expect("renames");
        let gone = reopened(&file, folder.path(), &path);
        assert_eq!(gone.err(), Some(Errno::NOENT));
        fs::write(&path, [2; 512]).expect("another image");
        let other = reopened(&file, folder.path(), &path);
        assert_eq!(other.err(), Some(Errno::STALE));
        reopened(&file, Path::new(OWN_FILES), &path).expect("wherever it is");
    }
}
