//! What threads share: atomics and locks of the standard library, or those of the model checker.

#[cfg(all(loom, test))]
pub(crate) use loom::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering, fence};
#[cfg(all(loom, test))]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(any(tsan, all(loom, test))))]
pub(crate) use std::sync::OnceLock;
#[cfg(not(all(loom, test)))]
pub(crate) use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(any(tsan, all(loom, test))))]
pub(crate) use std::sync::{Mutex, MutexGuard};
#[cfg(tsan)]
pub(crate) use watched::{Mutex, MutexGuard, OnceLock};

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

/// Under ThreadSanitizer: the lock of the standard library, with a word beside it that says what it
/// does. The waiting in that lock is compiled without the sanitizer, which would take what two
/// threads do under the lock for a race.
#[cfg(tsan)]
mod watched {
    use std::ops::{Deref, DerefMut};
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{self, LockResult, PoisonError, TryLockError, TryLockResult};

    /// A cell that is set once, with a word that shows the sanitizer what setting publishes.
    pub(crate) struct OnceLock<T> {
        inner: sync::OnceLock<T>,
        word: AtomicU32,
    }

    impl<T> OnceLock<T> {
        pub(crate) const fn new() -> Self {
            Self {
                inner: sync::OnceLock::new(),
                word: AtomicU32::new(0),
            }
        }

        pub(crate) fn set(&self, value: T) -> Result<(), T> {
            self.word.fetch_add(1, Ordering::Release);
            self.inner.set(value)
        }

        pub(crate) fn get(&self) -> Option<&T> {
            let value = self.inner.get();
            self.word.load(Ordering::Acquire);
            value
        }
    }

    #[derive(Default)]
    pub(crate) struct Mutex<T> {
        inner: sync::Mutex<T>,
        /// How often it was unlocked.
        turns: AtomicU32,
    }

    pub(crate) struct MutexGuard<'a, T> {
        inner: sync::MutexGuard<'a, T>,
        turns: &'a AtomicU32,
    }

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Mutex<T> {
            Mutex {
                inner: sync::Mutex::new(value),
                turns: AtomicU32::new(0),
            }
        }

        pub(crate) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
            let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            self.turns.load(Ordering::Acquire);
            Ok(MutexGuard {
                inner,
                turns: &self.turns,
            })
        }

        pub(crate) fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
            let inner = match self.inner.try_lock() {
                Ok(inner) => inner,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return Err(TryLockError::WouldBlock),
            };
            self.turns.load(Ordering::Acquire);
            Ok(MutexGuard {
                inner,
                turns: &self.turns,
            })
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            &self.inner
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            &mut self.inner
        }
    }

    /// Before the lock inside is given back.
    impl<T> Drop for MutexGuard<'_, T> {
        fn drop(&mut self) {
            self.turns.fetch_add(1, Ordering::Release);
        }
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
