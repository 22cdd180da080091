//! Copies from and to a mapped file that survive the file's becoming shorter: SIGBUS turned into a
//! result.
//!
//! The signal arrives in the thread that touched the page, at the instruction that did. If the
//! page lies in the range that this thread has declared ([`run`]), the handler marks the mapping as
//! lost and puts an empty page in the place of the missing one: the copy goes on, and its result is
//! thrown away. Any other SIGBUS goes where it went before.

use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, compiler_fence};

/// The mapping that a thread copies from or to.
#[derive(Clone, Copy)]
struct Guarded {
    base: *mut u8,
    /// Whole pages, bytes; 0 when there is no mapping.
    len: usize,
    /// Set before a page of the mapping is replaced.
    lost: *const AtomicBool,
}

const NOTHING: Guarded = Guarded {
    base: ptr::null_mut(),
    len: 0,
    lost: ptr::null(),
};

thread_local! {
    /// Without a destructor and constant at first, so that the handler may look at it.
    static GUARDED: Cell<Guarded> = const { Cell::new(NOTHING) };
}

/// Size of a page, bytes: known before the first signal.
static PAGE_BYTES: AtomicUsize = AtomicUsize::new(4096);

/// The earlier action of SIGBUS.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Size of a page, bytes.
pub fn page_bytes() -> usize {
    PAGE_BYTES.load(Ordering::Relaxed)
}

/// Makes the process catch SIGBUS, once. To be called before [`run`].
///
/// # Errors
/// The error of sigaction(2).
pub fn install() -> io::Result<()> {
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

/// Restores what a thread copied from or to before, also when the copy panics: a range that is not
/// a mapping any more must not be taken for one.
struct Restore(Guarded);

impl Drop for Restore {
    #[inline]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        GUARDED.set(self.0);
    }
}

/// Runs `copy`, which touches the `len` bytes from `base` on by means of
/// [`shared_bytes`](crate::shared_bytes). `false`: some page of the mapping was not there, in this
/// copy or an earlier one, and `lost` is set; the file has to be mapped anew.
///
/// # Safety
/// The range is a mapping of the caller's, from its first byte to its last. It has no use any more
/// once `lost` is set, so that any page of it may be replaced by an empty one, and no reference
/// points into it. `lost` belongs to this mapping alone.
#[inline]
pub unsafe fn run(base: *mut u8, len: usize, lost: &AtomicBool, copy: impl FnOnce()) -> bool {
    let restore = Restore(GUARDED.replace(Guarded { base, len, lost }));
    // The handler runs in this thread: only the compiler could get the order wrong.
    compiler_fence(Ordering::SeqCst);
    copy();
    drop(restore);
    // Another thread may have lost a page that this copy found replaced: it said so before.
    !lost.load(Ordering::SeqCst)
}

/// The handler: a thread-local cell, atomics, and the system calls mmap and sigaction, which are
/// safe in a handler of a signal that the thread itself has caused.
extern "C" fn caught(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel gives a handler of SA_SIGINFO a valid record, and SIGBUS has an address.
    let address = unsafe { (*info).si_addr() }.addr();
    let Guarded { base, len, lost } = GUARDED.get();
    let whole = len.next_multiple_of(page_bytes());
    let inside = len > 0
        && address
            .checked_sub(base.addr())
            .is_some_and(|at| at < whole);
    if inside {
        // SAFETY: `run` was given a reference that lives until it has taken this away again.
        unsafe { (*lost).store(true, Ordering::SeqCst) };
        let page = base.with_addr(address & !(page_bytes() - 1));
        // SAFETY: the promise of `run`.
        if unsafe { replace(page) } {
            return;
        }
    }
    pass_on();
}

/// Puts an empty page in the place of the one at `page`.
///
/// # Safety
/// The page belongs to a mapping that has no use any more, and into which no reference points.
unsafe fn replace(page: *mut u8) -> bool {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: the caller's promise.
    let placed = unsafe { libc::mmap(page.cast(), page_bytes(), rights, flags, -1, 0) };
    placed == page.cast()
}

/// Restores the old handler: the access that caused the signal is made again, and meets it.
fn pass_on() {
    if let Some(before) = BEFORE.get() {
        // SAFETY: an action that was in force before.
        unsafe { libc::sigaction(libc::SIGBUS, before, ptr::null_mut()) };
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_copy_that_panics_leaves_no_range_behind() {
        let lost = AtomicBool::new(false);
        let base = ptr::without_provenance_mut(4096);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: nothing is touched, so that no page is replaced.
            unsafe { run(base, 4096, &lost, || panic!("in the copy")) }
        }));
        assert!(panicked.is_err());
        assert_eq!(GUARDED.get().len, 0);
    }

    #[test]
    fn a_copy_inside_another_gives_the_range_of_the_other_back() {
        let (outer, inner) = (AtomicBool::new(false), AtomicBool::new(true));
        let base = ptr::without_provenance_mut(4096);
        // SAFETY: nothing is touched.
        let whole = unsafe {
            run(base, 4096, &outer, || {
                assert!(!run(base, 8192, &inner, || assert_eq!(
                    GUARDED.get().len,
                    8192
                )));
                assert_eq!(GUARDED.get().len, 4096);
            })
        };
        assert!(whole);
    }
}
