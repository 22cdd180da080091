//! Zeroed pages: from the system, or from the allocator under Miri, which knows no mappings.

#[cfg(not(miri))]
pub(super) use kernel::{discard, map, unmap};
#[cfg(miri)]
pub(super) use model::{discard, map, unmap};

use std::io;
use std::ptr::NonNull;

/// Zeroed pages that are given back when nobody has them any more.
pub(super) struct Memory {
    base: NonNull<u8>,
    len: u64,
}

// SAFETY: the value owns its mapping, which does not belong to a thread.
unsafe impl Send for Memory {}
// SAFETY: sharing it shows nothing but an address; who follows that has his own reasons.
unsafe impl Sync for Memory {}

impl Memory {
    /// Maps `len` zero bytes.
    pub fn map(len: u64) -> io::Result<Self> {
        Ok(Self {
            base: map(len)?,
            len,
        })
    }

    /// Where they begin.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped in `map`; those who follow the address keep the value.
        unsafe { unmap(self.base, self.len) };
    }
}

#[cfg(not(miri))]
mod kernel {
    use std::io;
    use std::ptr::{self, NonNull};

    use rustix::mm::{Advice, MapFlags, ProtFlags};

    /// Maps `len` zero bytes, without reserving memory for them. Transparent huge pages are
    /// declined: one written sector would take 2 MiB, and sparse images (an ext4 file system
    /// writes a little every 128 MiB) would not stay sparse.
    pub fn map(len: u64) -> io::Result<NonNull<u8>> {
        if len == 0 {
            return Ok(NonNull::dangling());
        }
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address that the kernel chooses replaces nothing.
        let base = unsafe {
            let read_write = ProtFlags::READ | ProtFlags::WRITE;
            rustix::mm::mmap_anonymous(ptr::null_mut(), len as usize, read_write, flags)?
        };
        // SAFETY: advice about the mapping just made; it changes no content. A kernel without
        // huge pages refuses it, which is as good.
        let _ = unsafe { rustix::mm::madvise(base, len as usize, Advice::LinuxNoHugepage) };
        NonNull::new(base.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))
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
    /// The range lies inside what `map` returned.
    pub unsafe fn discard(base: *mut u8, len: usize) -> io::Result<()> {
        // SAFETY: the caller's promise; copies that race are made in the same way.
        unsafe { crate::shared_bytes::fill(base, 0, len) };
        Ok(())
    }

    /// # Safety
    /// `base` and `len` are those of a call of `map`.
    pub unsafe fn unmap(base: NonNull<u8>, len: u64) {
        // SAFETY: the caller's promise.
        unsafe { dealloc(base.as_ptr(), layout(len)) };
    }
}
