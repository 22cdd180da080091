//! Whether the file that is written to is still where it was opened.
//!
//! A file that is removed while it is open, or replaced by another one that is renamed over it,
//! takes writes up to its last close, and is gone with that (`unlink(2)`, `rename(2)`). The system
//! reports no error, so the path is compared with the open file: at each FLUSH, and at the end.

use crate::path::path_of;
use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, open, stat};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use ugeom_stack::Command;

/// The reason for the loss at the end.
const REMOVED: &str = "the file was removed, or another one replaced it, while it was open";

/// A regular file that is open for writing.
pub(crate) struct Presence {
    path: PathBuf,
    /// The file without access to its bytes (`O_PATH`).
    file: OwnedFd,
    is_written: AtomicBool,
    is_reported: AtomicBool,
}

impl Presence {
    /// Watches a file; `None` where it has no name that could be removed: a block device, an
    /// unlinked file under `/proc/PID/fd`.
    pub fn watch(path: &str) -> Option<Self> {
        let path = path_of(path);
        let file = open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let about = fstat(&file).ok()?;
        let is_regular = FileType::from_raw_mode(about.st_mode) == FileType::RegularFile;
        (is_regular && about.st_nlink > 0).then(|| Self {
            path,
            file,
            is_written: AtomicBool::new(false),
            is_reported: AtomicBool::new(false),
        })
    }

    /// A request is on its way to the file. A FLUSH looks for the file.
    #[inline]
    pub fn sees(&self, command: Command) {
        match command {
            Command::Write | Command::Delete | Command::Zero => self.wrote(),
            Command::Flush => self.look(),
            Command::Read | Command::Extents | Command::GetAttr => {}
        }
    }

    fn wrote(&self) {
        // A store alone would take the line from the other threads at every write.
        if !self.is_written.load(Ordering::Relaxed) {
            self.is_written.store(true, Ordering::Relaxed);
        }
    }

    /// Warns once when the file is no longer there.
    #[cold]
    fn look(&self) {
        if self.is_reported.load(Ordering::Relaxed) {
            return;
        }
        let Ok(own) = fstat(&self.file) else { return };
        let is_gone = own.st_nlink == 0;
        let is_there = stat(&self.path).is_ok_and(|found| is_same(&found, &own));
        if is_there && !is_gone || self.is_reported.swap(true, Ordering::Relaxed) {
            return;
        }
        let (path, process, fd) = (
            self.path.display(),
            std::process::id(),
            self.file.as_raw_fd(),
        );
        match is_gone {
            true => log::warn!(
                "{path}: the file was removed, or another one replaced it, while it is open for \
                 writing: it is lost when ugeom ends; `cp /proc/{process}/fd/{fd} NEW` saves it"
            ),
            false => log::warn!(
                "{path}: the file that is open for writing is no longer there: it was moved, and \
                 takes all writes where it is now"
            ),
        }
    }

    /// Why what was written is lost at the end; `None` where it is not.
    pub fn lost(&self) -> Option<&'static str> {
        let is_gone = || fstat(&self.file).is_ok_and(|own| own.st_nlink == 0);
        (self.is_written.load(Ordering::Relaxed) && is_gone()).then_some(REMOVED)
    }
}

fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn watched(path: &std::path::Path) -> Presence {
        Presence::watch(path.to_str().expect("a path")).expect("a regular file")
    }

    #[test]
    fn a_file_is_lost_that_has_no_name_any_more_and_was_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, other) = (folder.path().join("a"), folder.path().join("b"));
        type Change<'a> = &'a dyn Fn() -> std::io::Result<()>;
        let cases: [(Change<'_>, bool, bool); 4] = [
            (&|| Ok(()), false, false),
            (&|| fs::remove_file(&path), true, true),
            (&|| fs::rename(&other, &path), true, true),
            (&|| fs::rename(&path, &other), true, false),
        ];
        for (number, (change, is_reported, is_lost)) in cases.into_iter().enumerate() {
            for file in [&path, &other] {
                fs::write(file, "x").expect("a file");
            }
            let presence = watched(&path);
            change().expect("a change");
            presence.sees(Command::Flush);
            let reported = presence.is_reported.load(Ordering::Relaxed);
            assert_eq!(reported, is_reported, "{number}");
            assert_eq!(presence.lost(), None, "{number}: nothing was written");
            presence.sees(Command::Write);
            assert_eq!(presence.lost().is_some(), is_lost, "{number}");
        }
    }

    #[test]
    fn a_file_without_a_name_is_not_watched() {
        let file = tempfile::tempfile().expect("a file");
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        assert!(Presence::watch(&path).is_none());
        assert!(Presence::watch("/dev/null").is_none());
    }
}
