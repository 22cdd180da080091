//! Interrupting the system call that a worker is in.
//!
//! A canceller sends the worker's thread a real-time signal whose handler is installed without
//! `SA_RESTART`, so that a call that waits ends with EINTR (signal(7)). A signal that arrives a
//! moment before the call begins would be lost: the call would wait all the same. So the handler,
//! when the request that it is for still runs, sets a timer of its own thread, which sends the
//! signal again every [`REPEAT_NS`] until the request has ended. A worker names the request for the
//! handler before it begins it: a thread that sees it running may send at once. The name is the
//! slot and the word that the slot has while this worker runs this request, since the slot may be
//! another request's by the time that the worker tries to begin.
//!
//! Workers block every other signal that is not a fault: handlers of the program run in its
//! threads.

use std::cell::Cell;
use std::ffi::c_void;
use std::io;
use std::mem;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering, compiler_fence};

use crate::calls::errno;
use crate::slab::Slot;
use crate::state;
use crate::work;

/// How long after a signal that did not end the call the next one follows.
const REPEAT_NS: i64 = 1_000_000;

/// No timer was made.
const NO_TIMER: i32 = -1;

/// Signals that say that the thread itself has failed; blocking them would hide it.
const FAULTS: [i32; 6] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGTRAP,
    libc::SIGABRT,
];

thread_local! {
    /// The slot of the request that this thread runs or is about to begin.
    static CURRENT: AtomicPtr<Slot> = const { AtomicPtr::new(ptr::null_mut()) };
    /// The slot's word while it does ([`state::active`]).
    static RUNNING: AtomicU64 = const { AtomicU64::new(0) };
    /// The timer that repeats the signal, made when it is first needed.
    static TIMER: Cell<i32> = const { Cell::new(NO_TIMER) };
}

/// The signal that interrupts, with its handler installed: the highest real-time signal that the
/// program has no handler for.
///
/// # Errors
/// EAGAIN when the program handles all of them.
pub(crate) fn signal() -> io::Result<i32> {
    static SIGNAL: OnceLock<Option<i32>> = OnceLock::new();
    let found = SIGNAL.get_or_init(|| (libc::SIGRTMIN()..=libc::SIGRTMAX()).rev().find(install));
    found.ok_or_else(|| io::Error::from_raw_os_error(libc::EAGAIN))
}

/// Installs the handler unless the signal is in use.
fn install(signal: &i32) -> bool {
    let handler: extern "C" fn(libc::c_int) = on_signal;
    // SAFETY: a sigaction of zeroes is a valid one; the handler does only what handlers may
    // (signal-safety(7)): atomics, thread-local numbers without destructors, system calls.
    unsafe {
        let mut old: libc::sigaction = mem::zeroed();
        let mut new: libc::sigaction = mem::zeroed();
        new.sa_sigaction = handler as libc::sighandler_t;
        libc::sigaction(*signal, ptr::null(), &raw mut old) == 0
            && old.sa_sigaction == libc::SIG_DFL
            && libc::sigaction(*signal, &raw const new, ptr::null_mut()) == 0
    }
}

extern "C" fn on_signal(signal: libc::c_int) {
    let errno = errno();
    if is_asked() {
        repeat(signal);
    }
    // SAFETY: the location is this thread's own.
    unsafe { *libc::__errno_location() = errno };
}

/// Whether an early end was asked for of the request that this thread runs, and of no other one in
/// the same slot.
fn is_asked() -> bool {
    let current = CURRENT.with(|current| current.load(Ordering::Relaxed));
    let running = RUNNING.with(|running| running.load(Ordering::Relaxed));
    // SAFETY: the worker keeps the slab as long as it names a slot of it.
    unsafe { current.as_ref() }.is_some_and(|slot| {
        const WISH: u64 = state::SENDING | state::ASKED;
        let word = slot.state.load();
        word & !WISH == running && word & WISH != 0
    })
}

/// The code that a thread runs.
pub(crate) enum Running {
    /// A function of C, at this address.
    Function(*const c_void),
    /// Something else, or nothing.
    Other,
}

/// The code that this thread runs, for a handler of a fault.
pub(crate) fn running() -> Running {
    let current = CURRENT.with(|current| current.load(Ordering::Relaxed));
    // SAFETY: the worker keeps the slab as long as it names a slot of it.
    let Some(slot) = (unsafe { current.as_ref() }) else {
        return Running::Other;
    };
    // SAFETY: this thread runs the request, so that its payload is this thread's, and written.
    match unsafe { work::function(slot.payload.get()) } {
        Some(function) => Running::Function(function),
        None => Running::Other,
    }
}

/// The slot of the request that this thread runs, and its word; `None` when it runs none.
///
/// # Safety
/// The slot is one of the caller's, which outlives `'a`.
pub(crate) unsafe fn unfinished<'a>() -> Option<(&'a Slot, u64)> {
    let current = CURRENT.with(|current| current.load(Ordering::Relaxed));
    let running = RUNNING.with(|running| running.load(Ordering::Relaxed));
    // SAFETY: the caller's promise.
    unsafe { current.as_ref() }.map(|slot| (slot, running))
}

/// Lets the signal come again. Without a timer (ENOMEM) it was sent once, and no more.
fn repeat(signal: libc::c_int) {
    let timer = TIMER.with(|timer| {
        if timer.get() == NO_TIMER {
            timer.set(new_timer(signal));
        }
        timer.get()
    });
    set_timer(timer, REPEAT_NS);
}

fn new_timer(signal: libc::c_int) -> i32 {
    let mut timer = NO_TIMER;
    // SAFETY: the event and the identifier live through the call. The system call itself, since the
    // function of the C library may take a lock.
    unsafe {
        let mut event: libc::sigevent = mem::zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_notify_thread_id = thread_id();
        let (clock, event) = (libc::CLOCK_MONOTONIC, &raw mut event);
        if libc::syscall(libc::SYS_timer_create, clock, event, &raw mut timer) != 0 {
            return NO_TIMER;
        }
    }
    timer
}

/// Lets the timer run out after `ns`; 0 stops it.
fn set_timer(timer: i32, ns: i64) {
    let mut time = [0i64; 4];
    time[3] = ns;
    // SAFETY: four words of time, as struct itimerspec has them; a wrong timer is answered with
    // EINVAL.
    unsafe { libc::syscall(libc::SYS_timer_settime, timer, 0, time.as_ptr(), 0usize) };
}

/// The kernel's number of this thread.
pub(crate) fn thread_id() -> i32 {
    // Not libc::gettid: std refers to it weakly, and a static program of musl that was linked as
    // one unit then has no such function.
    // SAFETY: gettid(2) has no requirements.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// Blocks all signals in this worker but the one that interrupts, and faults.
pub(crate) fn prepare_thread(signal: i32) {
    // The first access may allocate where thread-local memory is made late: not in the handler.
    clear_current();
    TIMER.with(Cell::get);
    // SAFETY: the set is ours and initialised by sigfillset.
    unsafe {
        let mut set: libc::sigset_t = mem::zeroed();
        libc::sigfillset(&raw mut set);
        libc::sigdelset(&raw mut set, signal);
        for fault in FAULTS {
            libc::sigdelset(&raw mut set, fault);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const set, ptr::null_mut());
    }
}

/// Names the request that this thread is about to begin, for the handler: its slot, which stays
/// until `clear_current`, and the slot's word while this worker runs it.
#[inline]
pub(crate) fn set_current(slot: &Slot, active: u64) {
    RUNNING.with(|running| running.store(active, Ordering::Relaxed));
    // The handler runs in this thread: only the compiler could get the order wrong.
    compiler_fence(Ordering::SeqCst);
    let slot = ptr::from_ref(slot).cast_mut();
    CURRENT.with(|current| current.store(slot, Ordering::Relaxed));
    compiler_fence(Ordering::SeqCst);
}

/// This thread runs no request.
#[inline]
pub(crate) fn clear_current() {
    CURRENT.with(|current| current.store(ptr::null_mut(), Ordering::Relaxed));
    compiler_fence(Ordering::SeqCst);
}

/// Sends the signal to the thread `tid` of this process.
pub(crate) fn send(tid: i32, signal: i32) {
    // SAFETY: tgkill(2) on a thread of this process; one that is gone is answered with ESRCH.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, signal) };
}

/// Makes sure that no signal for the request that has just ended reaches the next one: stops the
/// timer, and enters the kernel, on the way back from which a pending signal is handled.
pub(crate) fn settle() {
    let timer = TIMER.with(Cell::get);
    if timer != NO_TIMER {
        set_timer(timer, 0);
    }
    thread_id();
}

/// Gives the timer back when the thread ends.
pub(crate) fn leave_thread() {
    let timer = TIMER.with(|timer| timer.replace(NO_TIMER));
    if timer != NO_TIMER {
        // SAFETY: the timer is ours and not used again.
        unsafe { libc::syscall(libc::SYS_timer_delete, timer) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slab::Slab;

    /// The handler's view when the request was withdrawn before this worker could begin it, and the
    /// slot was used again at once.
    #[test]
    fn a_wish_for_the_next_request_of_a_slot_is_not_this_threads() {
        let slab = Slab::new(1).unwrap();
        let slot = slab.slot(0);
        let first = slot.state.submit();
        set_current(slot, state::active(first, 3));
        assert!(slot.state.begin(first, 3));
        assert!(!is_asked(), "not asked yet");
        slot.state.withdraw(first);
        assert!(is_asked());
        slot.state.sent();
        assert!(is_asked());
        slot.state.end_asked(first, || {});
        assert!(!is_asked(), "it has ended");
        slot.state.fetched();
        assert!(slot.state.release(first));
        let second = slot.state.submit();
        for worker in [3, 4] {
            slot.state.begin(second, worker);
            slot.state.withdraw(second);
            assert!(!is_asked(), "that of another request, on worker {worker}");
        }
        clear_current();
    }
}
