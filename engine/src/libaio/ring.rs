//! Reaping in user space: the completions lie in a ring that the kernel has mapped into the
//! process, and taking them from there costs no system call.
//!
//! The ring is the kernel's `struct aio_ring` (fs/aio.c), not promised as an interface, but known
//! by its magic number and used by fio and others (`userspace_reap`) for many years. Where it
//! looks different, io_getevents(2) is asked instead.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::abi::{Context, Event};

/// `AIO_RING_MAGIC` of the kernel's `fs/aio.c`.
const MAGIC: u32 = 0xa10a_10a1;

/// The head of the ring; the events follow.
#[repr(C)]
struct Header {
    id: u32,
    places: u32,
    head: AtomicU32,
    tail: AtomicU32,
    magic: u32,
    compatible: u32,
    incompatible: u32,
    header_bytes: u32,
}

/// The kernel's ring of completions.
pub(super) struct Ring {
    header: NonNull<Header>,
    places: u32,
}

// SAFETY: the mapping belongs to the context, not to a thread; one engine alone takes from it.
unsafe impl Send for Ring {}

impl Ring {
    /// The ring of a context, if it is of the kind that is known.
    pub fn of(context: Context) -> Option<Ring> {
        let _unchecked = Unchecked::begin();
        let address = usize::try_from(context.0).ok()?;
        let header = NonNull::new(std::ptr::with_exposed_provenance_mut::<Header>(address))?;
        // SAFETY: a context is the address of its ring, which is mapped until io_destroy(2).
        let known = unsafe {
            let header = header.as_ptr();
            (*header).magic == MAGIC
                && (*header).incompatible == 0
                && (*header).header_bytes as usize == size_of::<Header>()
                && (*header).places > 0
        };
        // SAFETY: as above; the number of places never changes.
        let places = unsafe { (*header.as_ptr()).places };
        known.then_some(Ring { header, places })
    }

    /// Takes the oldest completion.
    pub fn take(&mut self) -> Option<Event> {
        let _unchecked = Unchecked::begin();
        // SAFETY: mapped until io_destroy(2), which the engine calls last; the kernel changes only
        // the tail and the events behind it.
        unsafe {
            let header = self.header.as_ptr();
            let head = (*header).head.load(Ordering::Relaxed);
            // Acquire: the kernel writes an event before it moves the tail.
            if head == (*header).tail.load(Ordering::Acquire) {
                return None;
            }
            let events = header.add(1).cast::<Event>();
            let event = events.add((head % self.places) as usize).read_volatile();
            // Release: the place is the kernel's again once the event has been read.
            let next = (head + 1) % self.places;
            (*header).head.store(next, Ordering::Release);
            Some(event)
        }
    }
}

/// While it lives, ThreadSanitizer ignores the memory accesses of this thread. io_setup(2) maps the
/// ring in the kernel, so that what other threads wrote to an earlier mapping at the same address
/// would be reported as a race. Other builds have nothing here.
struct Unchecked;

impl Unchecked {
    fn begin() -> Unchecked {
        #[cfg(tsan)]
        // SAFETY: the runtime counts up; it does not use the file and the line.
        unsafe {
            AnnotateIgnoreReadsBegin(c"".as_ptr(), 0);
        }
        Unchecked
    }
}

#[cfg(tsan)]
impl Drop for Unchecked {
    fn drop(&mut self) {
        // SAFETY: the runtime counts down what `begin` counted up on this thread.
        unsafe { AnnotateIgnoreReadsEnd(c"".as_ptr(), 0) }
    }
}

// compiler-rt/lib/tsan/rtl/tsan_interface_ann.cpp: both ignore reads and writes.
#[cfg(tsan)]
unsafe extern "C" {
    fn AnnotateIgnoreReadsBegin(file: *const std::ffi::c_char, line: std::ffi::c_int);
    fn AnnotateIgnoreReadsEnd(file: *const std::ffi::c_char, line: std::ffi::c_int);
}
