//! The file of a Unix socket: made where a killed server left one behind, and removed by the server
//! that has made it.

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The file of a socket that this process listens to. It is removed when this is dropped.
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device and number of the file that is ours.
    file: Option<(u64, u64)>,
}

impl SocketFile {
    /// The file that lies there now.
    pub fn of(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            file: file_of(path),
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Another server may have put its own there.
        if self.file.is_some() && file_of(&self.path) == self.file {
            // It may have been removed meanwhile.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn file_of(path: &Path) -> Option<(u64, u64)> {
    let facts = fs::symlink_metadata(path).ok()?;
    Some((facts.dev(), facts.ino()))
}

/// The kind of file at the path of a new socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occupied {
    Free,
    /// A socket that a killed server has left behind.
    Stale,
}

/// Looks whether a socket may be made at `path`.
///
/// # Errors
/// In plain words: a server listens there, or the file is no socket.
pub(crate) fn look(path: &Path) -> Result<Occupied, String> {
    let Ok(facts) = fs::symlink_metadata(path) else {
        return Ok(Occupied::Free);
    };
    if !facts.file_type().is_socket() {
        return Err("the path exists and is not a socket".to_owned());
    }
    // Without waiting: a server that accepts no client now has a queue, which may be full.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
    let connected = socket.and_then(|socket| {
        let address = SocketAddrUnix::new(path)?;
        rustix::net::connect(&socket, &address)
    });
    match connected {
        Err(Errno::CONNREFUSED) => Ok(Occupied::Stale),
        _ => Err("the path is in use: another server listens to it".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn a_socket_without_a_server_is_stale_and_one_with_a_full_queue_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        assert_eq!(look(&path), Ok(Occupied::Free));
        drop(UnixListener::bind(&path).expect("a socket"));
        assert_eq!(look(&path), Ok(Occupied::Stale));
        fs::remove_file(&path).expect("no socket");
        let address = SocketAddrUnix::new(&path).expect("an address");
        let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None);
        let socket = socket.expect("a socket");
        rustix::net::bind(&socket, &address).expect("bound");
        rustix::net::listen(&socket, 0).expect("it listens");
        let _first = UnixStream::connect(&path).expect("a connection fills the queue");
        assert!(look(&path).unwrap_err().contains("in use"));
        fs::remove_file(&path).expect("no socket");
        fs::write(&path, b"data").expect("a file");
        assert!(look(&path).unwrap_err().contains("not a socket"));
    }

    #[test]
    fn only_the_file_that_was_made_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let own = UnixListener::bind(&path).expect("a socket");
        let file = SocketFile::of(&path);
        fs::remove_file(&path).expect("no socket");
        fs::write(folder.path().join("other"), b"").expect("a file");
        fs::rename(folder.path().join("other"), &path).expect("it takes the place");
        drop((own, file));
        assert!(path.exists());
        let file = SocketFile::of(&path);
        drop(file);
        assert!(!path.exists());
    }
}
