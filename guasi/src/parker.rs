//! A place where threads sleep until a word changes: a futex; in a model check, a lock and a
//! condition variable.

#[cfg(all(loom, test))]
pub(crate) use model::Parker;
#[cfg(not(all(loom, test)))]
pub(crate) use system::Parker;

#[cfg(not(all(loom, test)))]
mod system {
    use std::ptr;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    /// A counter that threads wait on. A thread reads the count, looks whether it may go on, and
    /// sleeps only while the count is still the same; the thread that lets it go on counts up.
    #[derive(Default)]
    pub(crate) struct Parker {
        count: AtomicU32,
    }

    impl Parker {
        pub(crate) fn count(&self) -> u32 {
            self.count.load(Ordering::Acquire)
        }

        /// Sleeps until the count differs from `seen`, at most for `timeout`. It may return for no
        /// reason, as when a Unix signal arrives.
        pub(crate) fn wait(&self, seen: u32, timeout: Option<Duration>) {
            let timespec = timeout.map(|timeout| libc::timespec {
                tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: timeout.subsec_nanos().into(),
            });
            let limit = timespec.as_ref().map_or(ptr::null(), ptr::from_ref);
            // SAFETY: word and time live through the call; the kernel only reads them.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.count.as_ptr(),
                    libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                    seen,
                    limit,
                );
            }
        }

        /// Counts up and wakes all that sleep.
        pub(crate) fn wake_all(&self) {
            self.count.fetch_add(1, Ordering::Release);
            // SAFETY: the word lives through the call; waking has no other requirement.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.count.as_ptr(),
                    libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                    i32::MAX,
                );
            }
        }
    }
}

#[cfg(all(loom, test))]
mod model {
    use std::time::Duration;
    use ugeom_machine::mutex::modelled::{Condvar, Mutex};

    #[derive(Default)]
    pub(crate) struct Parker {
        count: Mutex<u32>,
        changed: Condvar,
    }

    impl Parker {
        pub(crate) fn count(&self) -> u32 {
            *self.count.lock()
        }

        /// The model has no time: it waits for ever.
        pub(crate) fn wait(&self, seen: u32, _timeout: Option<Duration>) {
            let mut count = self.count.lock();
            while *count == seen {
                count = self.changed.wait(count);
            }
        }

        pub(crate) fn wake_all(&self) {
            *self.count.lock() += 1;
            self.changed.notify_all();
        }
    }
}
