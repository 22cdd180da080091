//! The wake-up behind a mailbox: an eventfd; in a model check and under Miri, a condition variable.

#[cfg(not(any(loom, miri)))]
pub(super) use kernel::Signal;
#[cfg(any(loom, miri))]
pub(super) use model::Signal;

#[cfg(not(any(loom, miri)))]
mod kernel {
    use std::io;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
    use std::time::Duration;

    use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
    use rustix::io::Errno;

    /// Descriptors that fit beside the signal without an allocation.
    const USUAL_FDS: usize = 7;

    pub struct Signal {
        fd: OwnedFd,
    }

    impl Signal {
        pub fn new() -> io::Result<Signal> {
            let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            Ok(Signal { fd })
        }

        /// The descriptor that is readable once set.
        pub fn fd(&self) -> BorrowedFd<'_> {
            self.fd.as_fd()
        }

        /// Wakes the waiter, or lets the next wait return at once.
        pub fn set(&self) {
            // It fails only with EAGAIN when the counter is full: then it is set already.
            let _ = retry(|| rustix::io::write(&self.fd, &1u64.to_ne_bytes()));
        }

        /// Waits until set, until a descriptor is readable, until `timeout` or a Unix signal.
        pub fn wait(&self, fds: &[BorrowedFd<'_>], timeout: Option<Duration>) -> io::Result<()> {
            let timeout = timeout.map(|t| Timespec {
                tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: t.subsec_nanos().into(),
            });
            let own = PollFd::from_borrowed_fd(self.fd.as_fd(), PollFlags::IN);
            if fds.len() <= USUAL_FDS {
                let mut polled: [PollFd<'_>; USUAL_FDS + 1] = std::array::from_fn(|i| match i {
                    0 => own.clone(),
                    i => readable(fds.get(i - 1).copied().unwrap_or(self.fd.as_fd())),
                });
                self.poll(&mut polled[..=fds.len()], timeout.as_ref())
            } else {
                let mut polled = vec![own];
                polled.extend(fds.iter().map(|fd| readable(*fd)));
                self.poll(&mut polled, timeout.as_ref())
            }
        }

        fn poll(&self, fds: &mut [PollFd<'_>], timeout: Option<&Timespec>) -> io::Result<()> {
            match poll(fds, timeout) {
                Err(Errno::INTR) => return Ok(()),
                Err(error) => return Err(error.into()),
                Ok(_) => {}
            }
            if !fds[0].revents().is_empty() {
                // Takes the whole count at once; EAGAIN means that there was none, as wished.
                let _ = retry(|| rustix::io::read(&self.fd, &mut [0u8; 8]));
            }
            Ok(())
        }
    }

    fn readable(fd: BorrowedFd<'_>) -> PollFd<'_> {
        PollFd::from_borrowed_fd(fd, PollFlags::IN)
    }

    fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
        loop {
            match call() {
                Err(Errno::INTR) => {}
                other => return other,
            }
        }
    }
}

/// The same behaviour in terms that a model checker and Miri follow. Descriptors are ignored.
#[cfg(any(loom, miri))]
mod model {
    use std::io;
    use std::os::fd::BorrowedFd;
    use std::time::Duration;

    #[cfg(loom)]
    use crate::mutex::modelled::{Condvar, Mutex};
    #[cfg(not(loom))]
    use crate::mutex::{Condvar, Mutex};

    pub struct Signal {
        set: Mutex<bool>,
        changed: Condvar,
    }

    impl Signal {
        pub fn new() -> io::Result<Signal> {
            Ok(Signal {
                set: Mutex::new(false),
                changed: Condvar::new(),
            })
        }

        pub fn set(&self) {
            *self.set.lock() = true;
            self.changed.notify_all();
        }

        /// A timeout of zero polls. Loom has no time: there any other waits for ever.
        pub fn wait(&self, _fds: &[BorrowedFd<'_>], timeout: Option<Duration>) -> io::Result<()> {
            let mut set = self.set.lock();
            while !*set && timeout != Some(Duration::ZERO) {
                #[cfg(not(loom))]
                if let Some(timeout) = timeout {
                    set = self.changed.wait_timeout(set, timeout).0;
                    break;
                }
                set = self.changed.wait(set);
            }
            *set = false;
            Ok(())
        }
    }
}
