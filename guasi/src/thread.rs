//! The thread of a worker: how it begins, and the ways in which it ends.
//!
//! A request may end its thread with pthread_exit(3). That unwinds the stack through the frames of
//! the worker, which therefore hold nothing that has to be dropped while a request runs: what a
//! worker owns lies in a [`Life`], which the thread names in thread-local memory, and whose end is
//! that of the thread.

use std::cell::Cell;
use std::ffi::c_void;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::AtomicI32;

use crate::roster::Seat;
use crate::shared::Shared;
use crate::stack;

/// The state of a worker for its whole life.
pub(crate) struct Life {
    pub(crate) shared: Arc<Shared>,
    pub(crate) seat: Arc<Seat>,
    pub(crate) tid: Arc<AtomicI32>,
    /// It begins as a searcher.
    pub(crate) searching: bool,
    pub(crate) room: stack::Room,
}

/// The life of this thread, if it is a worker's.
struct Own(Cell<*mut Life>);

thread_local! {
    static OWN: Own = const { Own(Cell::new(ptr::null_mut())) };
}

impl Drop for Own {
    fn drop(&mut self) {
        let life = self.0.replace(ptr::null_mut());
        if !life.is_null() {
            // SAFETY: from `Thread::start`, and not shared; the thread has left its frames.
            let life = unsafe { Box::from_raw(life) };
            stack::leave();
            life.shared.leave(&life.seat);
        }
    }
}

/// The first function of the thread. Nothing in it has a destructor.
extern "C-unwind" fn begin(life: *mut c_void) -> *mut c_void {
    let life = life.cast::<Life>();
    OWN.with(|own| own.0.set(life));
    // SAFETY: the life is this thread's, and ends after this frame, with `stack::leave`.
    unsafe {
        stack::prepare((*life).room.as_ptr());
        let Life {
            shared, seat, tid, ..
        } = &*life;
        shared.work(seat, tid, (*life).searching);
    }
    ptr::null_mut()
}

/// A thread that was started and not yet joined.
pub(crate) struct Thread(libc::pthread_t);

// SAFETY: a pthread_t, which is a pointer on musl, may be used by every thread of the process:
// POSIX says so of pthread_join and pthread_detach.
unsafe impl Send for Thread {}
// SAFETY: a shared reference gives no access to the value.
unsafe impl Sync for Thread {}

impl Thread {
    /// Starts a thread with a stack of so many bytes, at least.
    pub(crate) fn start(stack_bytes: usize, life: Life) -> io::Result<Thread> {
        let life = Box::into_raw(Box::new(life));
        // SAFETY: `begin` takes over the life.
        let started = unsafe { create(stack_bytes, life.cast()) };
        if started.is_err() {
            // SAFETY: there is no thread that it could belong to.
            drop(unsafe { Box::from_raw(life) });
        }
        started.map(Thread)
    }

    /// Waits until the thread has ended, unless it is the one that asks: a cleanup may close its
    /// own context.
    pub(crate) fn join(self) {
        // SAFETY: the thread was not joined or detached before; both take the value.
        unsafe {
            if libc::pthread_equal(self.0, libc::pthread_self()) == 0 {
                libc::pthread_join(self.0, ptr::null_mut());
            } else {
                libc::pthread_detach(self.0);
            }
        }
    }
}

/// # Safety
/// The life is one for [`begin`].
unsafe fn create(stack_bytes: usize, life: *mut c_void) -> io::Result<libc::pthread_t> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let mut thread = MaybeUninit::<libc::pthread_t>::uninit();
    // SAFETY: the attributes are made before they are used, and used before they are destroyed;
    // `begin` has the type that the C library calls, but for the unwinding that it may do itself.
    let result = unsafe {
        let attributes = attributes.as_mut_ptr();
        match libc::pthread_attr_init(attributes) {
            0 => {
                stack::set(attributes, stack_bytes);
                type Begin = extern "C-unwind" fn(*mut c_void) -> *mut c_void;
                type Called = extern "C" fn(*mut c_void) -> *mut c_void;
                let called = std::mem::transmute::<Begin, Called>(begin);
                let result = libc::pthread_create(thread.as_mut_ptr(), attributes, called, life);
                libc::pthread_attr_destroy(attributes);
                result
            }
            error => error,
        }
    };
    match result {
        // SAFETY: pthread_create(3) has written it.
        0 => Ok(unsafe { thread.assume_init() }),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}
