//! Copies from a mapped file that survive the file's becoming shorter: SIGBUS turned into a
//! result.
//!
//! The signal arrives in the thread that touched the page, at the instruction that did. If the
//! page lies in the range that this thread has declared, the handler puts an empty page of memory
//! in its place and notes that: the copy goes on, and its result is thrown away. Any other SIGBUS
//! goes where it went before.

use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

thread_local! {
    /// First address and length of the range that this thread copies from or to; 0, 0 if none.
    /// Without a destructor and constant at first, so that the handler may look at it.
    static RANGE: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    /// A page of the range was replaced.
    static HIT: Cell<bool> = const { Cell::new(false) };
}

/// Size of a page, bytes: known before the first signal.
static PAGE_BYTES: AtomicUsize = AtomicUsize::new(4096);

/// What SIGBUS meant before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Size of a page, bytes.
pub(super) fn page_bytes() -> usize {
    PAGE_BYTES.load(Ordering::Relaxed)
}

/// Makes the process catch SIGBUS, once.
///
/// # Errors
/// What sigaction(2) says.
pub(super) fn install() -> io::Result<()> {
    static DONE: OnceLock<Result<(), i32>> = OnceLock::new();
    let done = DONE.get_or_init(|| {
        PAGE_BYTES.store(rustix::param::page_size(), Ordering::Relaxed);
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = caught;
        // SAFETY: a sigaction of zeroes is a valid one, and a place for the old one.
        let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        // SAFETY: as above.
        let mut before: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: asks only, into a place of ours.
        unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut before) };
        BEFORE.get_or_init(|| before);
        // SAFETY: the handler does only what is safe in one, see there.
        if unsafe { libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) } == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error().raw_os_error().unwrap_or(0))
        }
    });
    done.map_err(io::Error::from_raw_os_error)
}

/// Runs `copy`, which touches the `len` bytes from `base` on. `false`: some page of them was not
/// there; the range has to be mapped anew before it is used again.
pub(super) fn run(base: *mut u8, len: usize, copy: impl FnOnce()) -> bool {
    RANGE.set((base.addr(), len.next_multiple_of(page_bytes())));
    HIT.set(false);
    // The copy is a plain access to memory, which the compiler could otherwise move out of here.
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    copy();
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    RANGE.set((0, 0));
    !HIT.get()
}

/// The handler: thread-local cells, atomics, and the system calls mmap and sigaction, which are
/// safe in a handler of a signal that the thread itself has caused.
extern "C" fn caught(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel gives a handler of SA_SIGINFO a valid record, and SIGBUS has an address.
    let address = unsafe { (*info).si_addr() }.addr();
    let (start, len) = RANGE.get();
    let page = address & !(page_bytes() - 1);
    let inside = len > 0 && address >= start && address < start + len;
    if inside && replace(page) {
        HIT.set(true);
        return;
    }
    pass_on();
}

/// Puts an empty page in the place of the one at `address`.
fn replace(address: usize) -> bool {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let place = ptr::with_exposed_provenance_mut(address);
    // SAFETY: the page belongs to a mapping of this thread's engine, which is about to be dropped;
    // nobody holds a reference into it.
    let page = unsafe { libc::mmap(place, page_bytes(), rights, flags, -1, 0) };
    page == place
}

/// Restores what was there before: the access that caused the signal is made again, and meets it.
fn pass_on() {
    if let Some(before) = BEFORE.get() {
        // SAFETY: an action that was in force before.
        unsafe { libc::sigaction(libc::SIGBUS, before, ptr::null_mut()) };
    }
}
