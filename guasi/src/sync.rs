//! What threads share: atomics and locks of the standard library, or those of the model checker.

#[cfg(all(loom, test))]
pub(crate) use loom::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering, fence};
#[cfg(all(loom, test))]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(all(loom, test)))]
pub(crate) use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(all(loom, test)))]
pub(crate) use std::sync::{Mutex, MutexGuard};

use std::ops::Deref;
use std::sync::PoisonError;

/// A value that shares no cache line with its neighbours. 128 bytes: the processor fetches pairs.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

impl<T> Deref for Padded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Locks; a thread that panicked while it held the lock left nothing half done (no code between
/// lock and unlock can panic).
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `count` zeroes. The pages of a large array come into being when they are first touched.
#[cfg(not(all(loom, test)))]
pub(crate) fn zeroes_u32(count: usize) -> Box<[AtomicU32]> {
    // SAFETY: an atomic of zero bytes is the number zero.
    unsafe { Box::<[AtomicU32]>::new_zeroed_slice(count).assume_init() }
}

/// `count` zeroes. The pages of a large array come into being when they are first touched.
#[cfg(not(all(loom, test)))]
pub(crate) fn zeroes_u64(count: usize) -> Box<[AtomicU64]> {
    // SAFETY: an atomic of zero bytes is the number zero.
    unsafe { Box::<[AtomicU64]>::new_zeroed_slice(count).assume_init() }
}

#[cfg(all(loom, test))]
pub(crate) fn zeroes_u32(count: usize) -> Box<[AtomicU32]> {
    (0..count).map(|_| AtomicU32::new(0)).collect()
}

#[cfg(all(loom, test))]
pub(crate) fn zeroes_u64(count: usize) -> Box<[AtomicU64]> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}
