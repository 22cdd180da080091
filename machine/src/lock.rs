//! Locks on files, so that two programs do not write to one image.
//!
//! Open file description locks (`fcntl(2)`, `F_OFD_SETLK`): they belong to the open file and not
//! to the process, end when the file is closed, and are seen by qemu, which uses them, too.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Locks the whole of a file for writing, at once or not at all. The file must be open for
/// writing.
///
/// # Errors
/// EAGAIN or EACCES when somebody else holds a lock on any part of it; else what `fcntl` says.
pub fn lock_exclusively(file: &File) -> io::Result<()> {
    let mut lock = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        // 0 means: to the end, wherever that will be.
        l_len: 0,
        l_pid: 0,
    };
    // SAFETY: the descriptor is open for the duration of the call, and the pointer is to a live
    // `flock`, which is what F_OFD_SETLK takes.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw mut lock) };
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no file locks")]
    fn a_second_lock_on_the_same_file_is_refused_until_the_first_is_closed() -> io::Result<()> {
        let path = std::env::temp_dir().join(format!("ugeom-lock-{}", std::process::id()));
        let first = File::create(&path)?;
        let second = File::options().write(true).open(&path)?;
        lock_exclusively(&first)?;
        let refused = lock_exclusively(&second).expect_err("held by the first");
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        drop(first);
        let free = lock_exclusively(&second);
        std::fs::remove_file(&path)?;
        free
    }
}
