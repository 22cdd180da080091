//! Zeroed pages: from the system, or from the allocator under Miri, which knows no mappings.

#[cfg(not(miri))]
pub(super) use kernel::{discard, map, populate_huge, unmap};
#[cfg(miri)]
pub(super) use model::{discard, map, populate_huge, unmap};

use std::io;
use std::ptr::NonNull;

/// Size and alignment of a transparent huge page that x86_64 and arm64 (with pages of 4 KiB) have
/// in common, bytes.
pub(super) const HUGE_BYTES: u64 = 2 << 20;

/// Zeroed pages that are given back when the last owner is dropped.
pub(super) struct Memory {
    base: NonNull<u8>,
    len: u64,
}

// SAFETY: the value owns its mapping, which does not belong to a thread.
unsafe impl Send for Memory {}
// SAFETY: sharing it shows nothing but an address; code that follows it argues for itself.
unsafe impl Sync for Memory {}

impl Memory {
    /// Maps `len` zero bytes.
    pub fn map(len: u64) -> io::Result<Self> {
        Ok(Self {
            base: map(len)?,
            len,
        })
    }

    /// Address of the first page.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped in `map`; code that follows the address keeps the value.
        unsafe { unmap(self.base, self.len) };
    }
}

#[cfg(not(miri))]
mod kernel {
    use std::io;
    use std::ptr::{self, NonNull};

    use rustix::mm::{Advice, MapFlags, ProtFlags};

    const HUGE_BYTES: usize = super::HUGE_BYTES as usize;

    /// The unit of lengths of mappings, bytes.
    const PAGE_BYTES: usize = 4096;

    /// Maps `len` zero bytes, without reserving memory for them; they begin at a huge page if they
    /// are as long as one. Transparent huge pages are declined: one written sector would take 2
    /// MiB, and sparse images (an ext4 file system writes a little every 128 MiB) would not stay
    /// sparse. [`populate_huge`] asks for them one by one.
    pub fn map(len: u64) -> io::Result<NonNull<u8>> {
        if len == 0 {
            return Ok(NonNull::dangling());
        }
        let len = len as usize;
        let spare = if len < HUGE_BYTES { 0 } else { HUGE_BYTES };
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address that the kernel chooses replaces nothing.
        let base = unsafe {
            let read_write = ProtFlags::READ | ProtFlags::WRITE;
            rustix::mm::mmap_anonymous(ptr::null_mut(), len + spare, read_write, flags)?
        };
        let skip = match spare {
            0 => 0,
            _ => base.addr().wrapping_neg() % HUGE_BYTES,
        };
        let kept = len.next_multiple_of(PAGE_BYTES);
        let behind = (len + spare).next_multiple_of(PAGE_BYTES) - skip - kept;
        // SAFETY: both parts lie inside the mapping just made, before and behind what is kept, and
        // begin and end at pages.
        unsafe {
            if skip > 0 {
                rustix::mm::munmap(base, skip)?;
            }
            if behind > 0 {
                rustix::mm::munmap(base.byte_add(skip + kept), behind)?;
            }
        }
        // SAFETY: `skip` is inside the mapping.
        let base = unsafe { base.byte_add(skip) };
        // SAFETY: advice about the mapping just made; it changes no content. A kernel without
        // huge pages refuses it, which is as good.
        let _ = unsafe { rustix::mm::madvise(base, kept, Advice::LinuxNoHugepage) };
        NonNull::new(base.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))
    }

    /// Puts a huge page where no page is yet, if the system has one. The advice is taken back, so
    /// that the kernel makes no other part of the mapping huge, now or later.
    ///
    /// # Safety
    /// The block of [`HUGE_BYTES`] lies inside a mapping made by `map` and is aligned to its
    /// length.
    pub unsafe fn populate_huge(base: *mut u8) {
        let base = base.cast();
        // SAFETY: advice about the caller's block. Populating is a write fault that changes no
        // content. A refusal leaves small pages, or none, which the first access brings.
        unsafe {
            if rustix::mm::madvise(base, HUGE_BYTES, Advice::LinuxHugepage).is_ok() {
                let _ = rustix::mm::madvise(base, PAGE_BYTES, Advice::LinuxPopulateWrite);
                let _ = rustix::mm::madvise(base, HUGE_BYTES, Advice::LinuxNoHugepage);
            }
        }
    }

    /// Gives pages back to the system; they read as zero afterwards (madvise(2)).
    ///
    /// # Safety
    /// The range consists of whole pages of a mapping made by `map`, into which no reference
    /// points.
    pub unsafe fn discard(base: *mut u8, len: usize) -> io::Result<()> {
        // SAFETY: the caller's promise.
        Ok(unsafe { rustix::mm::madvise(base.cast(), len, Advice::LinuxDontNeed) }?)
    }

    /// Gives a mapping back.
    ///
    /// # Safety
    /// `base` and `len` are a mapping made by `map`, to which no pointer is used any more.
    pub unsafe fn unmap(base: NonNull<u8>, len: u64) {
        if len > 0 {
            // SAFETY: the caller's promise. It fails only for a range that was never mapped.
            let _ = unsafe { rustix::mm::munmap(base.as_ptr().cast(), len as usize) };
        }
    }
}

#[cfg(miri)]
mod model {
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::io;
    use std::ptr::NonNull;

    fn layout(len: u64) -> Layout {
        Layout::from_size_align(len.max(1) as usize, 4096).unwrap()
    }

    pub fn map(len: u64) -> io::Result<NonNull<u8>> {
        // SAFETY: the layout's size is not 0.
        let base = unsafe { alloc_zeroed(layout(len)) };
        NonNull::new(base).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))
    }

    /// # Safety
    /// The range lies inside of the mapping.
    pub unsafe fn discard(base: *mut u8, len: usize) -> io::Result<()> {
        // SAFETY: the caller's promise; copies that race are made in the same way.
        unsafe { crate::shared_bytes::fill(base, 0, len) };
        Ok(())
    }

    /// The allocator has no huge pages.
    ///
    /// # Safety
    /// None is needed; the other model's is.
    pub unsafe fn populate_huge(_base: *mut u8) {}

    /// # Safety
    /// `base` and `len` are those of a call of `map`.
    pub unsafe fn unmap(base: NonNull<u8>, len: u64) {
        // SAFETY: the caller's promise.
        unsafe { dealloc(base.as_ptr(), layout(len)) };
    }
}
