//! A mutex, a lock of readers and writers, and a condition variable without poisoning.
//!
//! A panic is a defect, which has been reported when others hear of it. What a mutex of this
//! program guards is changed in steps that do not panic, so it is whole, and the others go on.

use std::sync::{self, MutexGuard, PoisonError, RwLockReadGuard, RwLockWriteGuard, TryLockError};
use std::time::Duration;

/// [`std::sync::Mutex`], whose lock cannot fail.
#[derive(Debug, Default)]
pub struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    /// Guards a value.
    pub const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    /// Waits for the value.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value, unless another thread has it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The value, which nothing else has.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value by itself.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// [`std::sync::RwLock`], whose locks cannot fail.
#[derive(Debug, Default)]
pub struct RwLock<T>(sync::RwLock<T>);

impl<T> RwLock<T> {
    /// Waits until nothing writes the value.
    #[inline]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nothing else has the value.
    #[inline]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// [`std::sync::Condvar`] for such a mutex.
#[derive(Debug, Default)]
pub struct Condvar(sync::Condvar);

impl Condvar {
    /// Without waiters.
    pub const fn new() -> Self {
        Self(sync::Condvar::new())
    }

    /// Wakes one waiter.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all waiters.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    /// Waits until it is woken, at times without a reason.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// The same, at most for a time; whether that has passed.
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        time: Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        let waited = self.0.wait_timeout(guard, time);
        let (guard, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        (guard, timeout.timed_out())
    }

    /// Waits as long as that holds.
    pub fn wait_while<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        holds: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        let waited = self.0.wait_while(guard, holds);
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    /// The same, at most for a time; whether it still holds then.
    pub fn wait_timeout_while<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        time: Duration,
        holds: impl FnMut(&mut T) -> bool,
    ) -> (MutexGuard<'a, T>, bool) {
        let waited = self.0.wait_timeout_while(guard, time, holds);
        let (guard, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        (guard, timeout.timed_out())
    }
}

/// The same of the model checker, where a panic ends the model.
#[cfg(loom)]
pub mod modelled {
    use loom::sync::{self, MutexGuard};

    /// See [`super::Mutex`].
    #[derive(Debug, Default)]
    pub struct Mutex<T>(sync::Mutex<T>);

    impl<T> Mutex<T> {
        /// See [`super::Mutex::new`].
        pub fn new(value: T) -> Self {
            Self(sync::Mutex::new(value))
        }

        /// See [`super::Mutex::lock`].
        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap()
        }
    }

    /// See [`super::Condvar`].
    #[derive(Debug, Default)]
    pub struct Condvar(sync::Condvar);

    impl Condvar {
        /// See [`super::Condvar::new`].
        pub fn new() -> Self {
            Self(sync::Condvar::new())
        }

        /// See [`super::Condvar::notify_all`].
        pub fn notify_all(&self) {
            self.0.notify_all();
        }

        /// See [`super::Condvar::wait`].
        pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            self.0.wait(guard).unwrap()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_panic_of_one_thread_locks_no_other_out() {
        let mutex = Mutex::new(1);
        thread::scope(|scope| {
            let panics = scope.spawn(|| {
                let mut locked = mutex.lock();
                *locked = 2;
                panic!("on purpose");
            });
            panics.join().unwrap_err();
        });
        assert_eq!(*mutex.lock(), 2);
        assert_eq!(mutex.into_inner(), 2);
    }

    #[test]
    fn a_waiter_is_woken_or_tired() {
        let (mutex, changed) = (Mutex::new(false), Condvar::new());
        let (guard, still) =
            changed.wait_timeout_while(mutex.lock(), Duration::from_millis(1), |set| !*set);
        drop(guard);
        assert!(still);
        thread::scope(|scope| {
            scope.spawn(|| {
                *mutex.lock() = true;
                changed.notify_all();
            });
            assert!(*changed.wait_while(mutex.lock(), |set| !*set));
        });
    }
}
