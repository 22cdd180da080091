//! The results of system calls as the C library tells them.

use std::io;

/// 0 for a call that is done; anything else, and the reason is in `errno`.
pub(crate) fn done(result: impl Into<i64>) -> io::Result<()> {
    match result.into() {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
