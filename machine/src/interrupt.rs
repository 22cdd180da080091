//! SIGINT (Ctrl-C) and SIGTERM (timeout(1)) as a flag: long work looks at it, ends early, and keeps
//! its results. And the signals that ask a server to end, as a descriptor that a thread can wait
//! on. And a way to end a wait of another thread of this process, and writes past the limit of
//! file sizes as errors.

use crate::call::done;
use std::io;
use std::mem;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::thread::JoinHandleExt;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread::JoinHandle;

static ASKED: AtomicBool = AtomicBool::new(false);

/// The number of the last signal that asked for the end; 0 before one did.
static ASKED_BY: AtomicI32 = AtomicI32::new(0);

extern "C" fn note(signal: libc::c_int) {
    // Atomic stores are all that a handler may safely do here (signal-safety(7)).
    ASKED_BY.store(signal, Ordering::Relaxed);
    ASKED.store(true, Ordering::Relaxed);
}

/// Whether SIGTERM, and not Ctrl-C, asked for the end last.
pub fn is_by_sigterm() -> bool {
    ASKED_BY.load(Ordering::Relaxed) == libc::SIGTERM
}

/// Whether a signal asked for the end, by [`catch`], [`catch_hangup`] or [`end_signals`].
pub fn is_asked() -> bool {
    ASKED_BY.load(Ordering::Relaxed) != 0
}

/// From now on the first SIGINT and the first SIGTERM of the process only set the flag that is
/// returned; the second of either ends the process as it always did (`SA_RESETHAND`). System calls
/// that the first interrupts are started again where they can be (`SA_RESTART`).
///
/// # Errors
/// The error of sigaction(2).
pub fn catch() -> io::Result<&'static AtomicBool> {
    handle(libc::SIGINT, note)?;
    handle(libc::SIGTERM, note)?;
    Ok(&ASKED)
}

/// SIGHUP, too, sets the flag of [`catch`] from now on, unless the process was started to ignore it
/// (nohup(1)).
///
/// # Errors
/// The error of sigaction(2).
pub fn catch_hangup() -> io::Result<()> {
    match is_ignored(libc::SIGHUP)? {
        true => Ok(()),
        false => handle(libc::SIGHUP, note),
    }
}

/// From now on a write past the limit of file sizes (`RLIMIT_FSIZE`) fails with EFBIG, as any other
/// write does that finds no room, and does not end the process with SIGXFSZ. Programs that this one
/// starts get the signal as always: the handler ends with exec(2), an ignored signal would not.
///
/// # Errors
/// The error of sigaction(2).
pub fn let_long_writes_fail() -> io::Result<()> {
    match is_ignored(libc::SIGXFSZ)? {
        true => Ok(()),
        false => set(libc::SIGXFSZ, ignore, libc::SA_RESTART),
    }
}

/// Whether the process was started to ignore a signal.
fn is_ignored(signal: libc::c_int) -> io::Result<bool> {
    // SAFETY: a sigaction of zeroes is a valid one.
    let mut before: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: no action is set; the pointer is to room for the present one.
    done(unsafe { libc::sigaction(signal, ptr::null(), &raw mut before) })?;
    Ok(before.sa_sigaction == libc::SIG_IGN)
}

/// Lets `handler` run at the first `signal`; the second has its usual effect.
fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) -> io::Result<()> {
    set(signal, handler, libc::SA_RESETHAND | libc::SA_RESTART)
}

fn set(
    signal: libc::c_int,
    handler: extern "C" fn(libc::c_int),
    flags: libc::c_int,
) -> io::Result<()> {
    // SAFETY: a sigaction of zeroes is a valid one: it blocks no other signal.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    action.sa_flags = flags;
    // SAFETY: the handlers of this file do nothing, store to an atomic or write to a descriptor,
    // which is safe at any point of any thread; the old action is not asked for.
    done(unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) })
}

/// The end of a pipe to which a signal that asks for the end writes; -1 while there is none.
static TOLD: AtomicI32 = AtomicI32::new(-1);

extern "C" fn tell(signal: libc::c_int) {
    ASKED_BY.store(signal, Ordering::Relaxed);
    let byte = signal as u8;
    // SAFETY: write(2) is allowed in a handler (signal-safety(7)); the byte lives until it returns,
    // and the descriptor is never closed. It can only fail where no reader is left.
    unsafe { libc::write(TOLD.load(Ordering::Relaxed), (&raw const byte).cast(), 1) };
}

/// From now on SIGTERM, SIGINT and SIGHUP do not end the process but make the returned descriptor
/// readable: its bytes are the numbers of the signals. The second signal of a kind ends the process
/// as it always did. To be called once in a process.
///
/// # Errors
/// The error of pipe(2) or sigaction(2).
pub fn end_signals() -> io::Result<OwnedFd> {
    let mut ends = [0; 2];
    // SAFETY: the pointer is to room for two descriptors.
    done(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    // SAFETY: the kernel has just made both descriptors for us.
    let [reader, writer] = ends.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    TOLD.store(writer.into_raw_fd(), Ordering::Relaxed);
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        handle(signal, tell)?;
    }
    Ok(reader)
}

/// The signal of [`nudge`]: one without effect on a thread that does not listen for it.
const NUDGE: libc::c_int = libc::SIGURG;

extern "C" fn ignore(_signal: libc::c_int) {}

/// From now on [`nudge`] ends system calls in which threads of this process wait.
///
/// # Errors
/// The error of sigaction(2).
pub fn allow_nudges() -> io::Result<()> {
    // Without SA_RESTART system calls end with EINTR.
    set(NUDGE, ignore, 0)
}

/// Ends the system call in which a thread waits, if it does, with EINTR. Does nothing before
/// [`allow_nudges`], and to a thread that has ended.
pub fn nudge<T>(thread: &JoinHandle<T>) {
    // SAFETY: the thread is neither joined nor detached as long as its handle is there, so its
    // number means it; the signal's action is one that returns.
    // The cast: musl's pthread_t is a pointer where std has a number.
    unsafe { libc::pthread_kill(thread.as_pthread_t() as libc::pthread_t, NUDGE) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no signals")]
    fn a_signal_that_asks_for_the_end_can_be_read() {
        let reader = end_signals().unwrap();
        // SAFETY: raise(3) has no requirements; the handler is the one above.
        assert_eq!(unsafe { libc::raise(libc::SIGHUP) }, 0);
        let mut bytes = [0; 4];
        assert_eq!(rustix::io::read(&reader, &mut bytes).unwrap(), 1);
        assert_eq!(i32::from(bytes[0]), libc::SIGHUP);
        assert!(is_asked());
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no signals")]
    fn a_thread_that_waits_is_nudged() {
        allow_nudges().unwrap();
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let waits = std::thread::spawn(move || rustix::io::read(&theirs, &mut [0; 1]));
        while !waits.is_finished() {
            nudge(&waits);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(waits.join().unwrap(), Err(rustix::io::Errno::INTR));
        drop(ours);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no signals")]
    fn the_first_of_each_signal_sets_the_flag_and_does_no_more() {
        let asked = catch().unwrap();
        assert!(!asked.load(Ordering::Relaxed));
        for signal in [libc::SIGINT, libc::SIGTERM] {
            // SAFETY: raise(3) has no requirements; the handler is the one above.
            assert_eq!(unsafe { libc::raise(signal) }, 0);
            assert!(asked.swap(false, Ordering::Relaxed), "signal {signal}");
            assert_eq!(is_by_sigterm(), signal == libc::SIGTERM);
        }
    }
}
