//! Whether the file that is written to is still where it was opened, and as long.
//!
//! A file that is removed while it is open, or replaced by another one that is renamed over it,
//! takes writes up to its last close, and is gone with that (`unlink(2)`, `rename(2)`). The system
//! reports no error, so the path is compared with the open file: at each FLUSH, and at the end. Nor
//! does it when another program cuts the file short (`cp NEW FILE` does).

use crate::path::path_of;
use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, open, stat};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use ugeom_stack::{Command, Losses};

/// The reason for the loss at the end.
const REMOVED: &str = "the file was removed, or another one replaced it, while it was open";

/// The reason for the loss where the file has become shorter.
const CUT: &str = "another program has cut the file short while it was open";

/// A file that nothing makes shorter.
struct Sized {
    /// The largest size that it was seen with.
    bytes: AtomicU64,
    is_cut: AtomicBool,
    losses: Arc<Losses>,
}

/// A regular file that is open for writing.
pub(crate) struct Presence {
    path: PathBuf,
    sized: Option<Sized>,
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
            sized: None,
            file,
            is_written: AtomicBool::new(false),
            is_reported: AtomicBool::new(false),
        })
    }

    /// The same for a file that nothing makes shorter: what is lost behind its end is recorded.
    pub fn watch_size(path: &str, losses: &Arc<Losses>) -> Option<Self> {
        let mut presence = Self::watch(path)?;
        let about = fstat(&presence.file).ok()?;
        presence.sized = Some(Sized {
            bytes: AtomicU64::new(about.st_size.cast_unsigned()),
            is_cut: AtomicBool::new(false),
            losses: Arc::clone(losses),
        });
        Some(presence)
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

    /// Warns once when the file is no longer there, and when it has become shorter.
    #[cold]
    fn look(&self) {
        let Ok(own) = fstat(&self.file) else { return };
        self.look_at_size(own.st_size.cast_unsigned());
        if self.is_reported.load(Ordering::Relaxed) {
            return;
        }
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

    fn look_at_size(&self, bytes: u64) {
        let Some(sized) = &self.sized else { return };
        let before = sized.bytes.fetch_max(bytes, Ordering::Relaxed);
        let is_lost = bytes < before && self.is_written.load(Ordering::Relaxed);
        if !is_lost || sized.is_cut.swap(true, Ordering::Relaxed) {
            return;
        }
        sized.losses.record_range(bytes..before, CUT);
        log::warn!(
            "{}: another program has cut the file short while it is open for writing, to {bytes} \
             of {before} bytes: what was written behind them is lost",
            self.path.display()
        );
    }

    /// Why what was written is lost at the end; `None` where it is not.
    pub fn lost(&self) -> Option<&'static str> {
        let own = fstat(&self.file).ok()?;
        if !self.is_written.load(Ordering::Relaxed) {
            return None;
        }
        if own.st_nlink == 0 {
            return Some(REMOVED);
        }
        self.look_at_size(own.st_size.cast_unsigned());
        let is_cut = |it: &Sized| it.is_cut.load(Ordering::Relaxed);
        self.sized.as_ref().is_some_and(is_cut).then_some(CUT)
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
    fn what_was_written_is_lost_where_the_file_becomes_shorter() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        let cut = |bytes: u64| {
            let file = fs::File::options().write(true).open(&path);
            file.and_then(|it| it.set_len(bytes)).expect("cut");
        };
        fs::write(&path, "xyz").expect("a file");
        let losses = Arc::<Losses>::default();
        let text = path.to_str().expect("a path");
        let presence = Presence::watch_size(text, &losses).expect("a regular file");
        let recorded = losses.last();
        cut(2);
        presence.sees(Command::Flush);
        assert_eq!(presence.lost(), None, "nothing was written");
        presence.sees(Command::Write);
        cut(9);
        presence.sees(Command::Flush);
        assert_eq!((presence.lost(), losses.last()), (None, recorded));
        cut(5);
        presence.sees(Command::Flush);
        assert!(losses.last() > recorded, "the FLUSH fails");
        cut(9);
        assert_eq!(presence.lost(), Some(CUT));
    }

    #[test]
    fn a_file_without_a_name_is_not_watched() {
        let file = tempfile::tempfile().expect("a file");
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        assert!(Presence::watch(&path).is_none());
        assert!(Presence::watch("/dev/null").is_none());
    }
}
