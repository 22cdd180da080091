//! Where control sockets lie, and how one is made that no other user can open.

use super::ControlError;
use crate::socket_file::{self, SocketFile};
use rustix::fs::{AtFlags, CWD, Mode};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use ugeom_machine::temporary::name_beside;

/// How many clients may wait to be accepted.
const BACKLOG: i32 = 16;

/// The folders in which servers put their sockets unless they are told where, the first that can be
/// used: of the user's session, or one for temporary files (`$TMPDIR`, `/tmp`) that no other user
/// can enter.
pub(super) fn folders() -> Vec<PathBuf> {
    let session = std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty());
    let session = session.map(|dir| PathBuf::from(dir).join("ugeom"));
    let user = rustix::process::geteuid().as_raw();
    let shared = std::env::temp_dir().join(format!("ugeom-{user}"));
    session.into_iter().chain([shared]).collect()
}

/// Where the socket of this process lies unless a path is given; its folder is made.
///
/// # Errors
/// `Place`: neither folder can be made, or they are not safe.
pub fn default_path() -> Result<PathBuf, ControlError> {
    let mut result = None;
    for folder in folders() {
        match make_private(&folder) {
            Ok(()) => return Ok(folder.join(format!("{}.sock", std::process::id()))),
            Err(problem) => {
                result.get_or_insert(ControlError::Place {
                    path: folder,
                    problem,
                });
            }
        }
    }
    Err(result.unwrap_or(ControlError::Place {
        path: PathBuf::new(),
        problem: "its directory does not exist".to_owned(),
    }))
}

/// Makes a folder that only we can enter, or finds that it is one.
fn make_private(folder: &Path) -> Result<(), String> {
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(error.to_string());
        }
        _ => {}
    }
    is_private(folder)
}

/// A user who can write to the folder could pretend to be a server.
pub(super) fn is_private(folder: &Path) -> Result<(), String> {
    let facts = fs::symlink_metadata(folder).map_err(|error| error.to_string())?;
    let own = facts.uid() == rustix::process::geteuid().as_raw();
    if !facts.is_dir() || !own || facts.mode() & 0o077 != 0 {
        return Err("other users have access to the directory".to_owned());
    }
    Ok(())
}

/// A socket that is listened to. Its file is removed when it is dropped.
pub(super) struct Listening {
    pub fd: OwnedFd,
    _file: SocketFile,
}

/// Listens to `path`, which only we and root can connect to.
///
/// The socket is made under another name, gets its mode before a client could connect, and is moved
/// to its place when it listens: a client that finds it there can use it.
pub(super) fn listen(path: &Path) -> Result<Listening, ControlError> {
    let wrong = |problem: String| ControlError::Place {
        path: path.to_owned(),
        problem,
    };
    let system = |errno: Errno| wrong(errno.to_string());
    // A stale socket is replaced by the one that is moved there.
    socket_file::look(path).map_err(wrong)?;
    // bind(2) fails where a file is.
    let made = name_beside(path);
    let address = SocketAddrUnix::new(&made)
        .map_err(|_| wrong("the path is too long for a Unix socket".to_owned()))?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
    let fd = fd.map_err(system)?;
    rustix::net::bind(&fd, &address).map_err(system)?;
    let mode = Mode::RUSR | Mode::WUSR;
    let done = rustix::fs::chmodat(CWD, &made, mode, AtFlags::empty())
        .and_then(|()| rustix::net::listen(&fd, BACKLOG))
        .and_then(|()| rustix::fs::rename(&made, path));
    if let Err(errno) = done {
        // It is of no use any more.
        let _ = fs::remove_file(&made);
        return Err(system(errno));
    }
    Ok(Listening {
        fd,
        _file: SocketFile::of(path),
    })
}

/// Whether a process of the user `peer` may look at a server of the user `own`.
pub(super) fn may_look(peer: u32, own: u32) -> bool {
    peer == own || peer == 0
}
