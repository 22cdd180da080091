//! The work of a request: a function of C, a system call that a ring may run as well, or a closure.
//!
//! All three are written into the request's own slot, so that a request needs no memory of its own.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use crate::calls::{self, IoCall};
use crate::slab::Payload;

/// The most parameters of a [`CCall`].
pub const PARAMS_MAX: usize = 16;

/// Words in a slot for the work: a function, its cleanup, and its parameters.
pub(crate) const PAYLOAD_WORDS: usize = PARAMS_MAX + 2;

/// How a call ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The return value of the call, -1 where a system call has failed.
    pub result: isize,
    /// `errno` after it; 0 when it left it alone.
    pub error: i32,
}

impl Outcome {
    /// Something went well and returned `result`.
    pub fn done(result: isize) -> Outcome {
        Outcome { result, error: 0 }
    }

    /// It failed, as system calls do: -1 and an error number.
    pub fn failed(error: i32) -> Outcome {
        Outcome { result: -1, error }
    }
}

/// How to run the work in a payload, or to drop it. Either is called once.
pub(crate) struct Table {
    pub(crate) run: unsafe fn(*mut Payload, *mut c_void) -> Outcome,
    pub(crate) discard: unsafe fn(*mut Payload, *mut c_void),
}

/// Something that a context can run: [`CCall`], [`Io`], or a closure `FnOnce() -> Outcome + Send`
/// that takes at most 144 bytes, aligned to 8.
pub trait Work: sealed::Write {}

impl<W: sealed::Write> Work for W {}

pub(crate) mod sealed {
    use super::{IoCall, Payload, c_void};

    /// Writing oneself into a slot.
    pub trait Write {
        /// The call, where a ring may run it as well.
        #[doc(hidden)]
        fn io_call(&self) -> Option<&IoCall> {
            None
        }

        /// The private pointer that goes to the function.
        #[doc(hidden)]
        fn private(&self) -> *mut c_void {
            std::ptr::null_mut()
        }

        /// # Safety
        /// The payload is the caller's, and what it held before has been run or discarded.
        #[doc(hidden)]
        #[expect(private_interfaces, reason = "sealed")]
        unsafe fn write(self, payload: *mut Payload);
    }
}
use sealed::Write;

/// A function of C: the private pointer, and the parameters.
/// It may end its thread (pthread_exit(3)): the request then ends with -1 and ECANCELED.
pub type CFunction = unsafe extern "C-unwind" fn(*mut c_void, *const isize) -> isize;

/// Called after the function, or instead of it when the request was cancelled before.
pub type CCleanup = unsafe extern "C-unwind" fn(*mut c_void, *const isize);

/// A call of a C function with up to [`PARAMS_MAX`] parameters.
pub struct CCall<'a> {
    function: CFunction,
    cleanup: Option<CCleanup>,
    private: *mut c_void,
    params: &'a [isize],
}

impl<'a> CCall<'a> {
    /// The call `function(private, params)`, then `cleanup(private, params)`. `None` with more than
    /// [`PARAMS_MAX`] parameters.
    ///
    /// # Safety
    /// Both functions may be called from any thread, with these arguments, until the request has
    /// ended; what the arguments point to lives until then.
    pub unsafe fn new(
        function: CFunction,
        cleanup: Option<CCleanup>,
        private: *mut c_void,
        params: &'a [isize],
    ) -> Option<CCall<'a>> {
        (params.len() <= PARAMS_MAX).then_some(CCall {
            function,
            cleanup,
            private,
            params,
        })
    }
}

/// A [`CCall`] as it lies in a payload.
#[repr(C)]
struct CWords {
    function: CFunction,
    cleanup: Option<CCleanup>,
    params: [isize; PARAMS_MAX],
}

const _: () = assert!(size_of::<CWords>() == PAYLOAD_WORDS * 8);

static C_TABLE: Table = Table {
    run: run_c,
    discard: discard_c,
};

impl Write for CCall<'_> {
    fn private(&self) -> *mut c_void {
        self.private
    }

    #[expect(private_interfaces, reason = "sealed")]
    unsafe fn write(self, payload: *mut Payload) {
        // SAFETY: the payload is ours and has room; the parameters fit (checked in `new`). Those
        // that are not given are never read: a function knows how many it takes.
        unsafe {
            (*payload).table.write(&C_TABLE);
            let words = (&raw mut (*payload).words).cast::<CWords>();
            (&raw mut (*words).function).write(self.function);
            (&raw mut (*words).cleanup).write(self.cleanup);
            let params = (&raw mut (*words).params).cast::<isize>();
            ptr::copy_nonoverlapping(self.params.as_ptr(), params, self.params.len());
        }
    }
}

/// The function of a request of C; `None` for other requests.
///
/// # Safety
/// The payload is written, and the caller's.
pub(crate) unsafe fn function(payload: *mut Payload) -> Option<*const c_void> {
    // SAFETY: the caller's promise; the table says what the payload is.
    unsafe {
        let table = (*payload).table.assume_init();
        let words = (&raw const (*payload).words).cast::<CWords>();
        ptr::eq(table, &raw const C_TABLE).then(|| (*words).function as *const c_void)
    }
}

/// Unwound through when the function ends its thread: nothing here has a destructor.
unsafe fn run_c(payload: *mut Payload, private: *mut c_void) -> Outcome {
    // SAFETY: the payload was written by `CCall::write`; the promise of `CCall::new` holds.
    unsafe {
        let words = (&raw mut (*payload).words).cast::<CWords>();
        let params = (&raw const (*words).params).cast::<isize>();
        calls::clear_errno();
        let result = ((*words).function)(private, params);
        let error = calls::errno();
        // Once, also when it ends its thread, and what it leaves is discarded.
        if let Some(cleanup) = (*words).cleanup.take() {
            cleanup(private, params);
        }
        Outcome { result, error }
    }
}

unsafe fn discard_c(payload: *mut Payload, private: *mut c_void) {
    // SAFETY: as in `run_c`.
    unsafe {
        let words = (&raw mut (*payload).words).cast::<CWords>();
        let params = (&raw const (*words).params).cast::<isize>();
        if let Some(cleanup) = (*words).cleanup.take() {
            cleanup(private, params);
        }
    }
}

/// A system call on memory that the caller keeps alive.
pub struct Io {
    call: IoCall,
    private: *mut c_void,
}

impl Io {
    /// # Safety
    /// What the call's pointers name stays valid, and memory that it writes to is touched by no
    /// code else, until the request has ended.
    pub unsafe fn new(call: IoCall) -> Io {
        Io {
            call,
            private: ptr::null_mut(),
        }
    }

    /// The same with a private pointer, which the request's information shows.
    #[must_use]
    pub fn with_private(self, private: *mut c_void) -> Io {
        Io { private, ..self }
    }
}

static IO_TABLE: Table = Table {
    run: run_io,
    discard: discard_io,
};

const _: () = assert!(size_of::<IoCall>() <= PAYLOAD_WORDS * 8 && align_of::<IoCall>() <= 8);

impl Write for Io {
    fn io_call(&self) -> Option<&IoCall> {
        Some(&self.call)
    }

    fn private(&self) -> *mut c_void {
        self.private
    }

    #[expect(private_interfaces, reason = "sealed")]
    unsafe fn write(self, payload: *mut Payload) {
        // SAFETY: the payload is ours and has room.
        unsafe {
            (*payload).table.write(&IO_TABLE);
            (&raw mut (*payload).words)
                .cast::<IoCall>()
                .write(self.call);
        }
    }
}

unsafe fn run_io(payload: *mut Payload, _private: *mut c_void) -> Outcome {
    // SAFETY: the table says what the payload is, and the promise of `Io::new` holds.
    unsafe { calls::perform(&*(&raw const (*payload).words).cast::<IoCall>()) }
}

unsafe fn discard_io(_payload: *mut Payload, _private: *mut c_void) {}

/// The type of a closure.
struct Closure<F>(std::marker::PhantomData<F>);

impl<F: FnOnce() -> Outcome + Send + 'static> Closure<F> {
    const FITS: () = assert!(
        size_of::<F>() <= PAYLOAD_WORDS * 8 && align_of::<F>() <= 8,
        "a closure of a request has at most 144 bytes, aligned to 8: box its captures"
    );
    const TABLE: Table = Table {
        run: run_closure::<F>,
        discard: discard_closure::<F>,
    };
}

impl<F: FnOnce() -> Outcome + Send + 'static> Write for F {
    #[expect(private_interfaces, reason = "sealed")]
    unsafe fn write(self, payload: *mut Payload) {
        const { Closure::<F>::FITS };
        // SAFETY: the payload is ours and has room.
        unsafe {
            (*payload).table.write(&Closure::<F>::TABLE);
            (&raw mut (*payload).words).cast::<F>().write(self);
        }
    }
}

/// A panic ends the call with EFAULT and not the worker.
unsafe fn run_closure<F: FnOnce() -> Outcome>(
    payload: *mut Payload,
    _private: *mut c_void,
) -> Outcome {
    // SAFETY: the payload holds an `F` that no other thread takes.
    let closure = unsafe { (&raw mut (*payload).words).cast::<F>().read() };
    catch_unwind(AssertUnwindSafe(closure)).unwrap_or(Outcome::failed(libc::EFAULT))
}

unsafe fn discard_closure<F>(payload: *mut Payload, _private: *mut c_void) {
    // SAFETY: as in `run_closure`.
    let closure = unsafe { (&raw mut (*payload).words).cast::<F>().read() };
    // A destructor that panics must not end the worker.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(closure)));
}
