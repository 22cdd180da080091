//! Ctrl-C as a flag: long work looks at it, ends early, and keeps what it has.

use std::io;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_signal: libc::c_int) {
    // An atomic store is all that a handler may safely do here (signal-safety(7)).
    ASKED.store(true, Ordering::Relaxed);
}

/// From now on the first SIGINT of the process only sets the flag that is returned; the second
/// ends the process as it always did (`SA_RESETHAND`). System calls that the first interrupts are
/// started again where they can be (`SA_RESTART`).
///
/// # Errors
/// What sigaction(2) fails with.
pub fn catch() -> io::Result<&'static AtomicBool> {
    let handler: extern "C" fn(libc::c_int) = note;
    // SAFETY: a sigaction of zeroes is a valid one: it blocks no other signal.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    action.sa_flags = libc::SA_RESETHAND | libc::SA_RESTART;
    // SAFETY: the handler stores to an atomic and nothing else, which is safe at any point of any
    // thread; the old action is not asked for.
    let result = unsafe { libc::sigaction(libc::SIGINT, &raw const action, ptr::null_mut()) };
    if result == 0 {
        Ok(&ASKED)
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no signals")]
    fn the_first_interrupt_sets_the_flag_and_does_no_more() {
        let asked = catch().unwrap();
        assert!(!asked.load(Ordering::Relaxed));
        // SAFETY: raise(3) has no requirements; the handler is the one above.
        assert_eq!(unsafe { libc::raise(libc::SIGINT) }, 0);
        assert!(asked.load(Ordering::Relaxed));
    }
}
