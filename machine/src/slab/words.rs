//! [`Words`]: an array of atomic words on huge pages, for tables that are read all over the place:
//! with small pages each look-up would miss in the processor's table of pages as well.

use super::pages;
use std::io;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// An array of words, which are 0 at first. It begins at a page.
pub struct Words {
    base: NonNull<AtomicU64>,
    len: usize,
}

// SAFETY: the array owns its mapping, which does not belong to a thread.
unsafe impl Send for Words {}
// SAFETY: the words are only reached as atomics.
unsafe impl Sync for Words {}

impl Words {
    /// Maps `len` words, all of them 0.
    ///
    /// # Errors
    /// EINVAL when there are none, or too many; else what mmap(2) says.
    pub fn new(len: usize) -> io::Result<Self> {
        let bytes = len.checked_mul(size_of::<AtomicU64>());
        let bytes = bytes.filter(|bytes| *bytes > 0 && *bytes < isize::MAX as usize / 2);
        let base = pages::map(bytes.ok_or(io::ErrorKind::InvalidInput)?)?.cast();
        Ok(Self { base, len })
    }
}

impl Deref for Words {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the mapping holds `len` words, pages begin as zeroes, which are valid words, and
        // it lives as long as this.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`; the exclusive borrow means that no other thread reads a word.
        unsafe { pages::unmap(self.base.cast(), self.len * size_of::<AtomicU64>()) };
    }
}
