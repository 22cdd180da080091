//! The stacks of workers: how long they are, and the message when a request needs more.
//!
//! Any function may be a request, so that a stack is as long as the system's: address space, of
//! which pages come into being as they are touched. Below it lies a guard that nothing may touch.
//! A hit prints the name of the function, before the process ends as it would have.
//!
//! Sources: pthread_attr_init(3), pthread_setattr_default_np(3), sigaltstack(2), dladdr(3).

use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::fmt::Write;
use std::mem::{self, MaybeUninit};
use std::ptr;
use std::sync::OnceLock;

use crate::interrupt::{self, Running};

/// Room for the handler, which cannot run on a stack that is full, bytes: many times what it needs
/// with the registers of the largest processors.
const HANDLER_BYTES: usize = 64 << 10;

/// The guard area below a stack, bytes: more than most functions' own variables, so that few can
/// step over it.
const GUARD_BYTES: usize = 64 << 10;

thread_local! {
    /// First address of the guard of this worker, and of its stack; 0, 0 in other threads. Constant
    /// at first and without a destructor, so that the handler may look.
    static GUARD: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    /// The end of the stack.
    static END: Cell<usize> = const { Cell::new(0) };
}

/// Memory for the handler of one worker; not touched before there is a use for it.
pub(crate) struct Room(*mut MaybeUninit<[u8; HANDLER_BYTES]>);

impl Room {
    pub(crate) fn new() -> Room {
        Room(Box::into_raw(Box::new_uninit()))
    }

    pub(crate) fn as_ptr(&self) -> *mut c_void {
        self.0.cast()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // SAFETY: from `new`; the worker that it was for has ended.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// The earlier action of SIGSEGV.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// The default length of a thread's stack, bytes: as
/// pthread_setattr_default_np(3) has set it, or the limit of the process (ulimit -s), or 8 MiB.
pub(crate) fn default_bytes() -> usize {
    const USUAL: usize = 8 << 20;
    if cfg!(miri) {
        return USUAL;
    }
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let mut bytes = 0;
    // SAFETY: the attributes are filled in before they are asked, and destroyed afterwards.
    unsafe {
        let attributes = attributes.as_mut_ptr();
        if libc::pthread_attr_init(attributes) == 0 {
            // Those of `init` have no length of their own: that of the default is used.
            libc::pthread_attr_getstacksize(attributes, &raw mut bytes);
            libc::pthread_attr_destroy(attributes);
        }
    }
    if bytes == 0 { USUAL } else { bytes }
}

/// Sets the length of a stack, at least the least that the system allows, and that of its guard.
///
/// # Safety
/// The attributes were initialised.
pub(crate) unsafe fn set(attributes: *mut libc::pthread_attr_t, bytes: usize) {
    // SAFETY: takes a number.
    let least = unsafe { libc::sysconf(libc::_SC_THREAD_STACK_MIN) };
    let least = usize::try_from(least).unwrap_or(0) + HANDLER_BYTES;
    // The guard is a part of the stack for the C library.
    let bytes = bytes.max(least).saturating_add(GUARD_BYTES);
    let whole = bytes.checked_next_multiple_of(4096).unwrap_or(bytes);
    // SAFETY: the caller's promise. A length that cannot be is refused by pthread_create(3).
    unsafe {
        libc::pthread_attr_setguardsize(attributes, GUARD_BYTES);
        libc::pthread_attr_setstacksize(attributes, whole);
    }
}

/// Makes this worker tell when its stack is full.
///
/// # Safety
/// `room` is that of a [`Room`] that stays until [`leave`].
pub(crate) unsafe fn prepare(room: *mut c_void) {
    if cfg!(miri) {
        return;
    }
    install();
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: the attributes are filled in before they are asked, and destroyed afterwards; the
    // advice is about this thread's own stack, and changes no content; the alternative stack is
    // the caller's promise.
    unsafe {
        let attributes = attributes.as_mut_ptr();
        if libc::pthread_getattr_np(libc::pthread_self(), attributes) != 0 {
            return;
        }
        let (mut base, mut bytes, mut guard) = (ptr::null_mut(), 0, 0);
        libc::pthread_attr_getstack(attributes, &raw mut base, &raw mut bytes);
        libc::pthread_attr_getguardsize(attributes, &raw mut guard);
        libc::pthread_attr_destroy(attributes);
        let (start, end) = (base.addr(), base.addr() + bytes);
        // Some versions count the guard in, and some have it below; a page is touched either way.
        GUARD.set((start.saturating_sub(guard), start + guard));
        END.set(end);
        // One touched page of a huge one would be 2 MiB.
        libc::madvise(base, bytes, libc::MADV_NOHUGEPAGE);
        let stack = libc::stack_t {
            ss_sp: room,
            ss_flags: 0,
            ss_size: HANDLER_BYTES,
        };
        libc::sigaltstack(&raw const stack, ptr::null_mut());
    }
}

/// Gives the room of the handler back.
pub(crate) fn leave() {
    if cfg!(miri) {
        return;
    }
    GUARD.set((0, 0));
    let none = libc::stack_t {
        ss_sp: ptr::null_mut(),
        ss_flags: libc::SS_DISABLE,
        ss_size: 0,
    };
    // SAFETY: a valid description; what was there before is not asked for.
    unsafe { libc::sigaltstack(&raw const none, ptr::null_mut()) };
}

/// Catches SIGSEGV, once in a process.
fn install() {
    static DONE: OnceLock<()> = OnceLock::new();
    DONE.get_or_init(|| {
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut c_void) = caught;
        // SAFETY: a sigaction of zeroes is a valid one; the handler does only what is safe in a
        // thread that has just caused a fault.
        unsafe {
            let mut before: libc::sigaction = mem::zeroed();
            libc::sigaction(libc::SIGSEGV, ptr::null(), &raw mut before);
            BEFORE.get_or_init(|| before);
            let mut action: libc::sigaction = mem::zeroed();
            action.sa_sigaction = handler as libc::sighandler_t;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(libc::SIGSEGV, &raw const action, ptr::null_mut());
        }
    });
}

/// Tells of a full stack; anything else goes where it went before.
extern "C" fn caught(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives a handler of SA_SIGINFO a valid record, and SIGSEGV has an address.
    let address = unsafe { (*info).si_addr() }.addr();
    let (start, end) = GUARD.get();
    if (start..end).contains(&address) {
        tell(END.get() - end);
        return restore();
    }
    match BEFORE.get() {
        Some(before)
            if before.sa_flags & libc::SA_SIGINFO != 0 && before.sa_sigaction > libc::SIG_IGN =>
        {
            type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut c_void);
            // SAFETY: a handler of SA_SIGINFO has this type.
            let handler: Handler = unsafe { mem::transmute(before.sa_sigaction) };
            handler(signal, info, context);
        }
        _ => restore(),
    }
}

/// Restores the old handler: the access that caused the signal is made again, and meets it.
fn restore() {
    if let Some(before) = BEFORE.get() {
        // SAFETY: an action that was in force before.
        unsafe { libc::sigaction(libc::SIGSEGV, before, ptr::null_mut()) };
    }
}

/// A text of limited length: nothing may be allocated here.
struct Text {
    bytes: [u8; 512],
    len: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let room = &mut self.bytes[self.len..];
        let len = text.len().min(room.len());
        room[..len].copy_from_slice(&text.as_bytes()[..len]);
        self.len += len;
        Ok(())
    }
}

/// Names the function that this worker runs.
fn tell(stack_bytes: usize) {
    let mut text = Text {
        bytes: [0; 512],
        len: 0,
    };
    let _ = text.write_str("guasi: ");
    match interrupt::running() {
        Running::Function(address) => name(&mut text, address),
        Running::Other => {
            let _ = text.write_str("a request");
        }
    }
    let _ = writeln!(
        text,
        " has overflowed its stack of {} KiB (GUASI_STACK sets another length)",
        stack_bytes >> 10
    );
    // SAFETY: the bytes live until the call returns. Where stderr is gone nothing can be told.
    unsafe { libc::write(2, text.bytes.as_ptr().cast(), text.len) };
}

/// Appends the name of a function as the dynamic linker knows it: `name`, or `file(+offset)`.
fn name(text: &mut Text, address: *const c_void) {
    // SAFETY: a record of zeroes is a valid one.
    let mut found: libc::Dl_info = unsafe { mem::zeroed() };
    // SAFETY: the record lives through the call, and its texts as long as the function's library.
    let known = unsafe { libc::dladdr(address, &raw mut found) } != 0;
    let string = |pointer: *const libc::c_char| {
        // SAFETY: as above.
        let bytes = (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) });
        bytes.and_then(|bytes| bytes.to_str().ok())
    };
    let exact = found.dli_saddr.cast_const() == address;
    let _ = match (string(found.dli_sname), string(found.dli_fname)) {
        (Some(name), _) if known && exact => write!(text, "the function {name}"),
        (_, Some(file)) if known => {
            let offset = address.addr().wrapping_sub(found.dli_fbase.addr());
            write!(text, "the function {file}(+{offset:#x})")
        }
        _ => write!(text, "the function at {:#x}", address.addr()),
    };
}
