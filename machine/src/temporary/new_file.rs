//! A file that is written beside the old one, which it replaces when it is whole.

use super::{name_beside, sync_folder_of};
use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// A file that is being written. Dropped before [`NewFile::keep`], it leaves the old file.
pub struct NewFile {
    /// Where its bytes go.
    pub file: File,
    /// Its temporary name, and the name that it gets; none if it is written in place.
    names: Option<(PathBuf, PathBuf)>,
}

impl NewFile {
    /// Begins a temporary file in the same folder. A device, a pipe, stdout, and a file in a folder
    /// that cannot be written to are written in place.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::make(path, None)
    }

    /// The same; only its owner can read the new file, even if others can read the old one.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create_private(path: &Path) -> io::Result<Self> {
        Self::make(path, Some(Permissions::from_mode(0o600)))
    }

    fn make(path: &Path, mode: Option<Permissions>) -> io::Result<Self> {
        let in_place = |file| Self { file, names: None };
        let old = fs::metadata(path).ok();
        if let Some(standard) = old.as_ref().and_then(standard) {
            return Ok(in_place(standard.try_clone_to_owned()?.into()));
        }
        let is_other = old.as_ref().is_some_and(|old| !old.is_file());
        // A link to nothing, and a descriptor of this process, have no folder of their own.
        let has_no_folder = (old.is_none() && path.is_symlink()) || is_descriptor(path);
        if is_other || has_no_folder {
            return File::create(path).map(in_place);
        }
        let name = match old {
            Some(_) => path.canonicalize()?,
            None => path.to_owned(),
        };
        let temporary = name_beside(&name);
        let mut options = File::options();
        options.write(true).create_new(true);
        options.mode(mode.as_ref().map_or(0o666, PermissionsExt::mode));
        let file = match (options.open(&temporary), &old) {
            (Ok(file), _) => file,
            (Err(error), Some(_)) if is_closed_folder(&error) => {
                return File::create(path).map(in_place);
            }
            (Err(error), _) => return Err(error),
        };
        let new = Self {
            file,
            names: Some((temporary, name)),
        };
        if let Some(old) = &old {
            // Only root can give files to others.
            let _ = fchown(&new.file, Some(old.uid()), Some(old.gid()));
            new.file
                .set_permissions(mode.unwrap_or_else(|| old.permissions()))?;
        }
        Ok(new)
    }

    /// Gives the file its name, with all of it and the name on the medium.
    ///
    /// # Errors
    /// It could not be written or renamed, and the old file stays; or the name is not durable.
    pub fn keep(mut self) -> io::Result<()> {
        if let Some((temporary, name)) = &self.names {
            self.file.sync_all()?;
            fs::rename(temporary, name)?;
            let named = sync_folder_of(name);
            self.names = None;
            return named;
        }
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some((temporary, _)) = &self.names {
            // A file that cannot be removed stays under a recognisable name.
            let _ = fs::remove_file(temporary);
        }
    }
}

/// A file may be writable in a folder that is not.
fn is_closed_folder(error: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem)
}

fn is_descriptor(path: &Path) -> bool {
    ["/dev/fd", "/proc/self/fd"]
        .iter()
        .any(|folder| path.starts_with(folder))
}

/// Stdout or stderr, where a file is what one of them goes to: a file of that name in its place
/// would take the output away.
fn standard(about: &Metadata) -> Option<BorrowedFd<'static>> {
    static STDOUT: std::sync::LazyLock<io::Stdout> = std::sync::LazyLock::new(io::stdout);
    static STDERR: std::sync::LazyLock<io::Stderr> = std::sync::LazyLock::new(io::stderr);
    let same = |standard: &BorrowedFd<'_>| {
        rustix::fs::fstat(standard)
            .is_ok_and(|it| (it.st_dev, it.st_ino) == (about.dev(), about.ino()))
    };
    [STDOUT.as_fd(), STDERR.as_fd()].into_iter().find(same)
}

/// Whether writing to a path takes away nothing: a device, a pipe, stdout.
pub fn is_added_to(about: &Metadata) -> bool {
    !about.is_file() || standard(about).is_some()
}

// Without unsafe code there is nothing for Miri.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::{FileTypeExt, symlink};

    fn write(path: &Path, text: &[u8]) -> io::Result<()> {
        let mut new = NewFile::create(path)?;
        new.file.write_all(text)?;
        new.keep()
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }

    #[test]
    fn a_file_that_was_not_finished_leaves_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        fs::write(&path, "old").unwrap();
        let mut new = NewFile::create(&path).unwrap();
        new.file.write_all(b"half of the").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        drop(new);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["a.json"]);
    }

    #[test]
    fn a_replaced_file_keeps_its_mode_and_its_links() {
        let folder = tempfile::tempdir().unwrap();
        let [path, link] = ["a.json", "link"].map(|name| folder.path().join(name));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("a.json", &link).unwrap();
        write(&link, b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"new");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        assert_eq!(names(folder.path()).len(), 2);
    }

    #[test]
    fn a_private_file_takes_its_rights_from_no_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("backup");
        for old in [false, true] {
            if old {
                fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
            }
            let mut new = NewFile::create_private(&path).unwrap();
            new.file.write_all(b"key").unwrap();
            new.keep().unwrap();
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "old: {old}");
        }
    }

    #[test]
    fn a_pipe_is_written_to_and_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            0o600.into(),
            0,
        )
        .unwrap();
        let reader = std::thread::spawn({
            let path = path.clone();
            move || fs::read(path).unwrap()
        });
        write(&path, b"new").unwrap();
        assert_eq!(reader.join().unwrap(), b"new");
        assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
    }
}
