//! A stdout that is closed when the program starts (`ugeom show disk.img >&-`).
//!
//! Rust's runtime opens `/dev/null` in the place of a closed descriptor before `main`, so that
//! no file gets its number, and results would be lost without an error. So the descriptor is looked
//! at earlier, when the program is loaded.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

#[used]
// SAFETY: the loader calls each function of this section once, before `main`, on the only thread.
// `look` needs nothing that the runtime sets up later.
#[unsafe(link_section = ".init_array")]
static AT_LOADING: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: F_GETFD takes no pointer; a number that is no descriptor fails with EBADF.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    CLOSED.store(flags < 0, Ordering::Relaxed);
}

/// Whether stdout was closed when the program started.
pub fn was_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

/// Makes writes to a stdout that was closed fail with EPIPE, like those to a pipe without a reader.
///
/// # Errors
/// The error of pipe(2) or dup2(2).
pub fn refuse_where_closed() -> io::Result<()> {
    if !was_closed() {
        return Ok(());
    }
    let (_reader, writer) = io::pipe()?;
    // SAFETY: the runtime's /dev/null, which nothing owns, gives way to the writer, which is open.
    let moved = unsafe { libc::dup2(writer.as_raw_fd(), libc::STDOUT_FILENO) };
    match moved {
        libc::STDOUT_FILENO => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
