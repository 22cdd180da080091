//! Shared primitives: atomics and locks of the standard library, or those of the model checker.

#[cfg(all(loom, test))]
pub(crate) use loom::sync::MutexGuard;
#[cfg(all(loom, test))]
pub(crate) use loom::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(all(loom, test)))]
pub(crate) use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(all(loom, test)))]
pub(crate) use std::sync::{MutexGuard, OnceLock};
#[cfg(not(all(loom, test)))]
pub(crate) use ugeom_machine::mutex::Mutex;
#[cfg(all(loom, test))]
pub(crate) use ugeom_machine::mutex::modelled::Mutex;

use std::ops::Deref;

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
