//! Shared primitives: atomics and locks of the standard library, or those of the model checker.

#[cfg(all(loom, test))]
pub(crate) use loom::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering, fence};
#[cfg(all(loom, test))]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(all(loom, test)))]
pub(crate) use std::sync::OnceLock;
#[cfg(not(all(loom, test)))]
pub(crate) use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(all(loom, test)))]
pub(crate) use std::sync::{Mutex, MutexGuard};

use std::ops::Deref;
use std::sync::PoisonError;
#[cfg(not(all(loom, test)))]
use std::sync::TryLockError;

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

/// Locks if the lock is free.
#[cfg(not(all(loom, test)))]
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Numbers that begin as zeroes.
#[cfg(not(all(loom, test)))]
pub(crate) type Zeroes<T> = crate::pages::Pages<T>;
#[cfg(all(loom, test))]
pub(crate) type Zeroes<T> = Box<[T]>;

/// `count` zeroes; `None` when there is no memory for them.
#[cfg(not(all(loom, test)))]
pub(crate) fn zeroes_u32(count: usize) -> Option<Zeroes<AtomicU32>> {
    // SAFETY: an atomic of zero bytes is the number zero.
    unsafe { Zeroes::new(count) }
}

/// The same, of 64 bits.
#[cfg(not(all(loom, test)))]
pub(crate) fn zeroes_u64(count: usize) -> Option<Zeroes<AtomicU64>> {
    // SAFETY: an atomic of zero bytes is the number zero.
    unsafe { Zeroes::new(count) }
}

#[cfg(all(loom, test))]
pub(crate) fn zeroes_u32(count: usize) -> Option<Zeroes<AtomicU32>> {
    Some((0..count).map(|_| AtomicU32::new(0)).collect())
}

#[cfg(all(loom, test))]
pub(crate) fn zeroes_u64(count: usize) -> Option<Zeroes<AtomicU64>> {
    Some((0..count).map(|_| AtomicU64::new(0)).collect())
}
