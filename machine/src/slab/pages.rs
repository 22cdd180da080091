//! Memory for blocks: huge pages from the system, or the allocator under Miri.

#[cfg(not(miri))]
pub(super) use kernel::{map, unmap};
#[cfg(miri)]
pub(super) use model::{map, unmap};

#[cfg(not(miri))]
mod kernel {
    use rustix::mm::{Advice, MapFlags, ProtFlags};
    use std::io;
    use std::ptr::{self, NonNull};

    /// The huge page that x86_64 and arm64 (with pages of 4 KiB) have in common, bytes.
    const HUGE_BYTES: usize = 2 << 20;

    /// Maps `len` zero bytes (not 0) that begin at a huge page, and asks for huge pages.
    pub fn map(len: usize) -> io::Result<NonNull<u8>> {
        let read_write = ProtFlags::READ | ProtFlags::WRITE;
        let room = len
            .checked_add(HUGE_BYTES)
            .ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: a new mapping at an address that the kernel chooses replaces nothing.
        let base = unsafe {
            rustix::mm::mmap_anonymous(ptr::null_mut(), room, read_write, MapFlags::PRIVATE)?
        };
        let skip = base.addr().wrapping_neg() % HUGE_BYTES;
        let kept = len.next_multiple_of(4096);
        // SAFETY: both parts lie inside the mapping just made, which no other code knows, on both
        // sides of what is kept; they begin and end at pages.
        let _ = unsafe {
            let before = if skip > 0 {
                rustix::mm::munmap(base, skip)
            } else {
                Ok(())
            };
            let after = room - skip - kept;
            if after >= 4096 {
                let tail = base.byte_add(skip + kept);
                before.and(rustix::mm::munmap(tail, after / 4096 * 4096))
            } else {
                before
            }
        };
        // SAFETY: `skip` is inside the mapping.
        let base = unsafe { base.byte_add(skip) };
        // SAFETY: advice about the mapping just made; it changes no content. A kernel without
        // huge pages refuses it, which is as good.
        let _ = unsafe { rustix::mm::madvise(base, kept, Advice::LinuxHugepage) };
        NonNull::new(base.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    /// Gives a mapping back.
    ///
    /// # Safety
    /// `base` and `len` are those of a call of `map`; no pointer into it is used any more.
    pub unsafe fn unmap(base: NonNull<u8>, len: usize) {
        let kept = len.next_multiple_of(4096);
        // SAFETY: the caller's promise. It fails only for a range that was never mapped.
        let _ = unsafe { rustix::mm::munmap(base.as_ptr().cast(), kept) };
    }
}

#[cfg(miri)]
mod model {
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::io;
    use std::ptr::NonNull;

    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len, 4096).unwrap()
    }

    pub fn map(len: usize) -> io::Result<NonNull<u8>> {
        // SAFETY: the length is not 0.
        let base = unsafe { alloc_zeroed(layout(len)) };
        NonNull::new(base).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    /// # Safety
    /// `base` and `len` are those of a call of `map`.
    pub unsafe fn unmap(base: NonNull<u8>, len: usize) {
        // SAFETY: the caller's promise.
        unsafe { dealloc(base.as_ptr(), layout(len)) };
    }
}
