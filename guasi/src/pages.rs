//! Large arrays of zeroes whose pages come into being when they are first touched: straight from
//! the system, since an allocator may fill memory that it uses again, all of it, with zeroes by
//! hand.

#[cfg(not(miri))]
use kernel::{map, unmap};
#[cfg(miri)]
use model::{map, unmap};

use std::alloc::Layout;
use std::ops::Deref;
use std::ptr::NonNull;

/// An array that begins as zeroes. Its values are not dropped.
pub(crate) struct Pages<T> {
    base: NonNull<T>,
    len: usize,
}

// SAFETY: the array owns its memory, which does not belong to a thread.
unsafe impl<T: Send> Send for Pages<T> {}
// SAFETY: it lends shared references only.
unsafe impl<T: Sync> Sync for Pages<T> {}

impl<T> Pages<T> {
    /// `len` values; `None` when there is no memory for them.
    ///
    /// # Safety
    /// Zero bytes are a value of `T`, which needs not be dropped and is aligned to a page at most.
    pub(crate) unsafe fn new(len: usize) -> Option<Pages<T>> {
        let layout = Layout::array::<T>(len).ok()?;
        let base = match layout.size() {
            0 => NonNull::dangling(),
            bytes => map(bytes)?.cast(),
        };
        Some(Pages { base, len })
    }
}

impl<T> Deref for Pages<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: mapped for that many values, which zero bytes are, until this is dropped.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }
}

impl<T> Drop for Pages<T> {
    fn drop(&mut self) {
        let bytes = self.len * size_of::<T>();
        if bytes > 0 {
            // SAFETY: mapped in `new`, and no borrow of a value is left.
            unsafe { unmap(self.base.cast(), bytes) };
        }
    }
}

#[cfg(not(miri))]
mod kernel {
    use std::ptr::{self, NonNull};

    /// Maps so many zero bytes, without reserving memory for them.
    pub(super) fn map(bytes: usize) -> Option<NonNull<u8>> {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address that the kernel chooses replaces nothing.
        let base = unsafe { libc::mmap(ptr::null_mut(), bytes, rights, flags, -1, 0) };
        let mapped = base != libc::MAP_FAILED;
        mapped.then(|| NonNull::new(base.cast())).flatten()
    }

    /// # Safety
    /// The range was mapped by `map`, and nothing points into it any more.
    pub(super) unsafe fn unmap(base: NonNull<u8>, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { libc::munmap(base.as_ptr().cast(), bytes) };
    }
}

#[cfg(miri)]
mod model {
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::ptr::NonNull;

    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes, 4096).unwrap()
    }

    pub(super) fn map(bytes: usize) -> Option<NonNull<u8>> {
        // SAFETY: the size is not 0.
        NonNull::new(unsafe { alloc_zeroed(layout(bytes)) })
    }

    /// # Safety
    /// The range was mapped by `map`, and nothing points into it any more.
    pub(super) unsafe fn unmap(base: NonNull<u8>, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { dealloc(base.as_ptr(), layout(bytes)) };
    }
}
