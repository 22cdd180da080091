//! The eventfd that is readable while there is something to fetch, for threads that wait with
//! epoll.
//!
//! It is made when it is first asked for; until then a worker reads one word and writes nothing.
//!
//! ```text
//!   OFF    not asked for       QUIET   the descriptor is not readable; the next end raises it
//!   RAISED it is readable, and stays so until a fetcher has taken everything
//! ```

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;

use crate::sync::{AtomicU32, Mutex, Ordering, Padded, fence};

const OFF: u32 = 0;
const QUIET: u32 = 1;
const RAISED: u32 = 2;

#[derive(Default)]
pub(crate) struct Event {
    state: Padded<AtomicU32>,
    fd: OnceLock<OwnedFd>,
    making: Mutex<()>,
}

impl Event {
    /// The descriptor; `has_any` tells whether there is something to fetch already, `made` hears of
    /// it when it is new.
    pub(crate) fn fd(
        &self,
        has_any: impl Fn() -> bool,
        made: impl FnOnce(RawFd) -> io::Result<()>,
    ) -> io::Result<BorrowedFd<'_>> {
        let making = self.making.lock();
        if self.fd.get().is_none() {
            let fd = eventfd()?;
            made(fd.as_raw_fd())?;
            if self.fd.set(fd).is_ok() {
                self.state.store(QUIET, Ordering::SeqCst);
                self.raise_if(has_any);
            }
        }
        drop(making);
        match self.fd.get() {
            Some(fd) => Ok(fd.as_fd()),
            None => Err(io::Error::from_raw_os_error(libc::EBADF)),
        }
    }

    /// After something was pushed for the fetchers (by a sequentially consistent exchange, as the
    /// look here is: either this look sees the descriptor quiet, or the fetcher who made it quiet
    /// sees the push).
    #[inline]
    pub(crate) fn raise(&self) {
        if self.state.load(Ordering::SeqCst) == QUIET {
            self.write();
        }
    }

    /// A fetcher has taken everything that it saw. `others` write to the descriptor as well.
    pub(crate) fn lower(&self, others: bool, has_any: impl Fn() -> bool) {
        if !others && self.state.load(Ordering::Relaxed) != RAISED {
            return;
        }
        if let Some(fd) = self.fd.get() {
            let mut count = 0u64;
            // SAFETY: eight bytes, ours. EAGAIN when another fetcher was faster.
            unsafe { libc::read(fd.as_raw_fd(), (&raw mut count).cast(), 8) };
        }
        self.state.store(QUIET, Ordering::SeqCst);
        self.raise_if(has_any);
    }

    fn raise_if(&self, has_any: impl Fn() -> bool) {
        fence(Ordering::SeqCst);
        if has_any() {
            self.write();
        }
    }

    #[cold]
    fn write(&self) {
        let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        let raised = self.state.compare_exchange(QUIET, RAISED, success, failure);
        if let (Ok(_), Some(fd)) = (raised, self.fd.get()) {
            let one = 1u64;
            // SAFETY: eight bytes, ours. The counter cannot be full: it is read before each QUIET.
            unsafe { libc::write(fd.as_raw_fd(), (&raw const one).cast(), 8) };
        }
    }

    pub(crate) fn is_off(&self) -> bool {
        self.state.load(Ordering::Relaxed) == OFF
    }
}

fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: eventfd(2) has no requirements; what it returns is a new descriptor of ours.
    unsafe {
        match libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd)),
        }
    }
}
