//! Folders for sockets and mounts that only this user can enter.

use super::unused;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::{Path, PathBuf};

/// A folder in `$TMPDIR` or `/tmp`, removed when this is dropped.
pub struct PrivateFolder(PathBuf);

impl PrivateFolder {
    /// Makes one. Those that killed processes of this user have left behind are removed.
    ///
    /// # Errors
    /// The folder cannot be made; the message names it.
    pub fn create() -> io::Result<Self> {
        let parent = std::env::temp_dir();
        remove_stale(&parent);
        let path = parent.join(unused());
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        Ok(Self(path))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path of a socket in it.
    ///
    /// # Errors
    /// It is longer than the address of a socket can be (unix(7)).
    pub fn socket(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.0.join(name);
        SocketAddr::from_pathname(&path).map_err(|error| {
            let bytes = path.as_os_str().len();
            let reason = format!(
                "$TMPDIR is too long for a socket (at most 107 bytes with its name, here {bytes}); \
                 set a shorter one",
            );
            io::Error::new(error.kind(), reason)
        })?;
        Ok(path)
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // A folder that cannot be removed stays in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Removes folders of this user in `parent` whose process has ended and whose sockets no server
/// listens to. Nothing but sockets and empty folders, at which mounts were, is removed with them:
/// what holds a file or a mount is left, and what cannot be removed is not ours to report.
fn remove_stale(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let own = entry.metadata().is_ok_and(|facts| {
            facts.is_dir() && facts.uid() == rustix::process::geteuid().as_raw()
        });
        if own && name.to_str().and_then(process_of).is_some_and(has_ended) {
            remove_remains(&entry.path());
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

/// The process in the name of a folder.
fn process_of(name: &str) -> Option<i32> {
    let (pid, random) = name.strip_prefix("ugeom-")?.split_once('-')?;
    let is_random = random.len() == 8 && random.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_random.then(|| pid.parse().ok())?
}

fn has_ended(pid: i32) -> bool {
    let pid = rustix::process::Pid::from_raw(pid);
    let asked = pid.map(rustix::process::test_kill_process);
    asked == Some(Err(rustix::io::Errno::SRCH))
}

/// Removes empty folders, and the sockets without a server: one in another PID namespace may have
/// the folder.
fn remove_remains(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        // Fails where something is in it, or mounted on it.
        let _ = std::fs::remove_dir(entry.path());
        let is_socket = entry.file_type().is_ok_and(|kind| kind.is_socket());
        let refused = std::io::ErrorKind::ConnectionRefused;
        if is_socket
            && UnixStream::connect(entry.path()).is_err_and(|error| error.kind() == refused)
        {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

// Without unsafe code there is nothing for Miri.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_path_that_no_socket_can_have_is_refused_with_the_reason() {
        let folder = PrivateFolder(PathBuf::from("/tmp").join("x".repeat(100)));
        let error = folder.socket("nbd").unwrap_err().to_string();
        assert!(
            error.starts_with("$TMPDIR is too long for a socket"),
            "{error}"
        );
        let folder = PrivateFolder::create().unwrap();
        let socket = folder.socket("nbd").unwrap();
        drop(UnixListener::bind(&socket).unwrap());
        let path = folder.path().to_owned();
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o700);
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn folders_of_ended_servers_are_removed_and_no_others() {
        let parent = tempfile::tempdir().expect("a folder");
        // No process has this number: it is above the kernel's limit.
        let ended = 0x7fff_fff0;
        let make = |pid: i32, random: &str| {
            let path = parent.path().join(format!("ugeom-{pid}-{random}"));
            std::fs::create_dir(&path).expect("a folder");
            path
        };
        let own = std::process::id().cast_signed();
        let empty = make(ended, "00000001");
        let stale = make(ended, "00000002");
        drop(UnixListener::bind(stale.join("nbd")).expect("a socket"));
        std::fs::create_dir(stale.join("mnt")).expect("a folder");
        let runs = make(own, "00000003");
        let listens = make(ended, "00000004");
        let _listener = UnixListener::bind(listens.join("nbd")).expect("a socket");
        let full = make(ended, "00000005");
        std::fs::write(full.join("data"), b"x").expect("a file");
        let other = make(ended, "x");
        remove_stale(parent.path());
        assert!(!empty.exists() && !stale.exists());
        assert!(runs.exists() && other.exists() && full.join("data").exists());
        assert!(listens.join("nbd").exists());
    }
}
