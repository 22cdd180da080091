//! The C interface of libguasi 0.25 on top of `ugeom-guasi`: 7 functions and 17 wrappers, with the
//! same types and constants, so that a program that was built for the original runs unchanged.
//!
//! ```text
//!   program --> guasi_submit (one jump) --> submit.c (collects the parameters) --+
//!           --> guasi__read, ... (calls.rs) -------------------------------------+--> Context
//!           --> guasi_create, _free, _fetch, _req_* (here) --> handles.rs -------+
//! ```
//!
//! Handles are names with generations and no addresses (`handles`), so that what C allows any
//! program to do with them (free twice, use after free) is answered with EINVAL. guasi(3) is in
//! `man/guasi.3`.

#![deny(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

mod calls;
mod handles;

use std::ffi::{c_int, c_long, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::time::Duration;

use ugeom_guasi::{
    Backend, CCall, CCleanup, CFunction, Cancel, Context, GuasiError, Info, PARAMS_MAX,
    PRIORITIES_MAX, Settings, Status, Work,
};

/// A context: `guasi_t` of `guasi.h`.
pub type GuasiHandle = *mut c_void;

/// A request: `guasi_req_t` of `guasi.h`.
pub type RequestHandle = *mut c_void;

const _: () = assert!(
    size_of::<usize>() == 8,
    "handles need 64 bits, and struct guasi_reqinfo 40 bytes"
);

/// Requests from submission to release that a context has room for.
const REQUESTS: u32 = 1 << handles::SLOT_BITS;
const _: () = assert!(REQUESTS <= ugeom_guasi::REQUESTS_MAX);

/// `struct guasi_reqinfo` of `guasi.h`, with the same layout.
#[repr(C)]
pub struct RequestInfo {
    /// As given to `guasi_submit`.
    pub private: *mut c_void,
    /// As given to `guasi_submit`.
    pub asid: *mut c_void,
    /// The result of the call; -1 before it ended, and when it was cancelled.
    pub result: isize,
    /// `errno` after the call; -1 while it has not ended, ECANCELED when it was cancelled.
    pub error: c_long,
    /// 0 cancelled, 1 waiting, 2 running, 3 complete.
    pub status: c_int,
}

const _: () = assert!(size_of::<RequestInfo>() == 40);

fn set_errno(error: i32) {
    // SAFETY: the location is this thread's own.
    unsafe { *libc::__errno_location() = error };
}

/// The failure value of a function that returns a pointer.
fn null(error: i32) -> *mut c_void {
    set_errno(error);
    ptr::null_mut()
}

fn minus_one(error: i32) -> c_int {
    set_errno(error);
    -1
}

fn handle(bits: u64) -> *mut c_void {
    ptr::without_provenance_mut(bits as usize)
}

fn bits(handle: *mut c_void) -> u64 {
    handle.addr() as u64
}

/// Runs the body of a function of the interface: a panic, which must not reach the frames of C, is
/// told as EFAULT.
#[inline]
fn sheltered<T>(failed: T, body: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => result,
        Err(_) => {
            set_errno(libc::EFAULT);
            failed
        }
    }
}

/// The error number for what went wrong.
fn number(error: &GuasiError) -> i32 {
    match error {
        GuasiError::Setting { .. } | GuasiError::Priority { .. } => libc::EINVAL,
        GuasiError::NoWorker(error)
        | GuasiError::System(error)
        | GuasiError::NoRing { source: error, .. } => error.raw_os_error().unwrap_or(libc::EAGAIN),
        GuasiError::Forked => libc::EPERM,
        _ => libc::EAGAIN,
    }
}

/// The stack of a worker: `GUASI_STACK`, bytes, or with K, M or G. 0 is what the system gives a
/// thread. `None` when it has no meaning.
fn stack_bytes() -> Option<usize> {
    match std::env::var_os("GUASI_STACK") {
        None => Some(0),
        Some(text) => bytes_of(text.to_str()?),
    }
}

fn bytes_of(text: &str) -> Option<usize> {
    let units = [("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30)];
    let unit = units.iter().find(|(letter, _)| {
        text.get(text.len().wrapping_sub(1)..)
            .is_some_and(|last| last.eq_ignore_ascii_case(letter))
    });
    let (digits, unit) = match unit {
        Some((_, unit)) => (&text[..text.len() - 1], *unit),
        None => (text, 1),
    };
    digits.parse::<usize>().ok()?.checked_mul(unit)
}

/// The executor of system calls: `GUASI_BACKEND`, so that programs built for the original can
/// choose. `None` when it has no meaning.
fn backend() -> Option<Backend> {
    match std::env::var_os("GUASI_BACKEND") {
        None => Some(Backend::Workers),
        Some(name) => name.to_str()?.parse().ok(),
    }
}

/// `guasi_create`: a context with `min_threads` workers at least, at most `max_threads` (0: as many
/// as needed) and priorities 0 to `max_priority` - 1.
///
/// NULL and EINVAL for numbers out of range, another `GUASI_BACKEND` than `workers`, `ring` and
/// `auto`, or a `GUASI_STACK` that is no length; EAGAIN or ENOMEM when the workers cannot be
/// started or memory is short, ENFILE when there are 4,095 contexts.
#[unsafe(no_mangle)]
pub extern "C" fn guasi_create(
    min_threads: c_int,
    max_threads: c_int,
    max_priority: c_int,
) -> GuasiHandle {
    sheltered(ptr::null_mut(), || {
        create(min_threads, max_threads, max_priority)
    })
}

fn create(min_threads: c_int, max_threads: c_int, max_priority: c_int) -> GuasiHandle {
    let numbers = (
        u32::try_from(min_threads),
        u32::try_from(max_threads),
        u32::try_from(max_priority),
    );
    let (Ok(min), Ok(max), Ok(priorities @ 1..=PRIORITIES_MAX)) = numbers else {
        return null(libc::EINVAL);
    };
    let (Some(backend), Some(stack_bytes)) = (backend(), stack_bytes()) else {
        return null(libc::EINVAL);
    };
    // The original takes a minimum above the maximum for the maximum.
    let min = if max == 0 { min } else { min.min(max) };
    let settings = Settings::new()
        .workers(min, max)
        .priorities(priorities)
        .requests(REQUESTS)
        .backend(backend)
        .stack_bytes(stack_bytes);
    match settings.open() {
        Err(error) => null(number(&error)),
        Ok(context) => match handles::insert(context) {
            Some(bits) => handle(bits),
            None => null(libc::ENFILE),
        },
    }
}

/// `guasi_free`: cancels what waits, interrupts what runs, waits until it has ended, and forgets
/// the context with all its requests. EINVAL in `errno` for a handle that names no context.
#[unsafe(no_mangle)]
pub extern "C" fn guasi_free(hctx: GuasiHandle) {
    if !sheltered(false, || handles::remove(bits(hctx))) {
        set_errno(libc::EINVAL);
    }
}

/// Submits for every function of the interface.
fn submit(hctx: GuasiHandle, asid: *mut c_void, prio: c_int, work: impl Work) -> RequestHandle {
    let (Some(guard), Ok(priority)) = (handles::context(bits(hctx)), u32::try_from(prio)) else {
        return null(libc::EINVAL);
    };
    sheltered(ptr::null_mut(), || {
        let asid = asid.expose_provenance();
        match guard.context().submit(priority, asid, work) {
            Ok(id) => handle(guard.request(id)),
            Err(error) => null(number(&error)),
        }
    })
}

/// `guasi_submit` with its parameters in an array, for `submit.c`.
///
/// # Safety
/// As guasi(3) says of `guasi_submit`; `params` holds `nparams` parameters.
unsafe extern "C" fn submit_params(
    hctx: GuasiHandle,
    private: *mut c_void,
    asid: *mut c_void,
    prio: c_int,
    function: Option<CFunction>,
    cleanup: Option<CCleanup>,
    params: *const isize,
    nparams: c_int,
) -> RequestHandle {
    let (Some(function), Ok(count @ 0..=PARAMS_MAX)) = (function, usize::try_from(nparams)) else {
        return null(libc::EINVAL);
    };
    // SAFETY: `params` holds that many, by contract.
    let params = unsafe { std::slice::from_raw_parts(params, count) };
    // SAFETY: the caller of `guasi_submit` promises what `CCall` asks for.
    match unsafe { CCall::new(function, cleanup, private, params) } {
        Some(call) => submit(hctx, asid, prio, call),
        None => null(libc::EINVAL),
    }
}

// The name by which `submit.c` finds it: hidden, since a name that Rust gives would be exported,
// and the original library has 24.
#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".globl guasi_submit_params",
    ".hidden guasi_submit_params",
    ".type guasi_submit_params, @function",
    "guasi_submit_params: jmp {function}",
    function = sym submit_params,
);
#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(
    ".globl guasi_submit_params",
    ".hidden guasi_submit_params",
    ".type guasi_submit_params, %function",
    "guasi_submit_params: b {function}",
    function = sym submit_params,
);

unsafe extern "C" {
    /// In `submit.c`; variadic, and only jumped to.
    fn guasi_submit_variadic();
}

/// `guasi_submit`: a request to call `proc(priv, params)`, then `cleanup(priv, params)`. NULL and
/// EINVAL for a wrong handle, priority or number of parameters, EAGAIN when 1,048,576 requests are
/// in use or no worker can be started, EPERM in a child of the process that made the context.
///
/// It only jumps: all registers and the stack reach the function in `submit.c` as they are. The
/// linker exports from this library what Rust defines, not what C does.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub extern "C" fn guasi_submit() {
    std::arch::naked_asm!("jmp {}", sym guasi_submit_variadic)
}

/// `guasi_submit`, as on x86_64.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub extern "C" fn guasi_submit() {
    std::arch::naked_asm!("b {}", sym guasi_submit_variadic)
}

/// `guasi_fetch`: waits until `minreqs` requests have ended, at most `timeo` ms (negative: no
/// limit), and stores up to `maxreqs` of them in `reqs`. Their number; -1 and EINVAL for a wrong
/// handle or number.
///
/// # Safety
/// `reqs` has room for `maxreqs` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn guasi_fetch(
    hctx: GuasiHandle,
    reqs: *mut RequestHandle,
    minreqs: c_int,
    maxreqs: c_int,
    timeo: c_long,
) -> c_int {
    let (Some(guard), Ok(max)) = (handles::context(bits(hctx)), usize::try_from(maxreqs)) else {
        return minus_one(libc::EINVAL);
    };
    if reqs.is_null() && max > 0 {
        return minus_one(libc::EINVAL);
    }
    let min = usize::try_from(minreqs).unwrap_or(0);
    let timeout = u64::try_from(timeo).ok().map(Duration::from_millis);
    sheltered(-1, || {
        let mut count = 0;
        guard.context().fetch(min, max, timeout, |info| {
            // SAFETY: at most `max` are handed over, for which there is room.
            unsafe { reqs.add(count).write(handle(guard.request(info.id))) };
            count += 1;
        });
        c_int::try_from(count).unwrap_or(c_int::MAX)
    })
}

fn info_of(hreq: RequestHandle) -> Option<Info> {
    let (guard, id) = handles::request(bits(hreq))?;
    guard.context().info(id)
}

fn status(info: &Info) -> c_int {
    match info.status {
        Status::Canceled => 0,
        Status::Pending => 1,
        Status::Active => 2,
        Status::Complete => 3,
    }
}

/// `guasi_req_cancel`: cancels a request that waits, interrupts one that runs. Its status: 0 when
/// it will never run, 2 when it runs and is being interrupted, 3 when it is over; -1 and EINVAL for
/// a handle that names no request.
#[unsafe(no_mangle)]
pub extern "C" fn guasi_req_cancel(hreq: RequestHandle) -> c_int {
    let Some((guard, id)) = handles::request(bits(hreq)) else {
        return minus_one(libc::EINVAL);
    };
    sheltered(-1, || match guard.context().cancel(id) {
        Cancel::Canceled => 0,
        Cancel::Interrupted => 2,
        Cancel::Complete => guard.context().info(id).as_ref().map_or(3, status),
        Cancel::Unknown => minus_one(libc::EINVAL),
    })
}

/// `guasi_req_info`: 0, and what is known about the request in `*rinf`; -1 and EINVAL for a handle
/// that names no request, or a NULL.
///
/// # Safety
/// `rinf` is NULL or points to a `struct guasi_reqinfo`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn guasi_req_info(hreq: RequestHandle, rinf: *mut RequestInfo) -> c_int {
    let Some(info) = sheltered(None, || info_of(hreq)).filter(|_| !rinf.is_null()) else {
        return minus_one(libc::EINVAL);
    };
    let ended = matches!(info.status, Status::Canceled | Status::Complete);
    let known = RequestInfo {
        private: info.private,
        asid: ptr::with_exposed_provenance_mut(info.tag),
        result: info.result,
        error: if ended { c_long::from(info.error) } else { -1 },
        status: status(&info),
    };
    // SAFETY: not NULL, and a `struct guasi_reqinfo` by contract.
    unsafe { rinf.write(known) };
    0
}

/// `guasi_req_free`: forgets a request that was fetched. EINVAL in `errno`, and nothing else, for
/// one that was not, or that was freed before.
#[unsafe(no_mangle)]
pub extern "C" fn guasi_req_free(hreq: RequestHandle) {
    let release = |(guard, id): (handles::Guard, _)| {
        let context: &Context = guard.context();
        context.release(id)
    };
    let released = sheltered(false, || handles::request(bits(hreq)).is_some_and(release));
    if !released {
        set_errno(libc::EINVAL);
    }
}
