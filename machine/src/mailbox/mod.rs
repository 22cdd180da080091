//! A lock-free mailbox: many threads post, one owner takes everything at once, in order, and is
//! woken only when it sleeps.
//!
//! ```text
//!   head = null      empty, the owner is awake
//!   head = PARKED    empty, the owner sleeps or is about to: the thread that posts must wake it
//!   head = node ---> node ---> null      newest first; `take` turns the chain around
//! ```
//!
//! A post is one compare-and-exchange of the head, so that a post by a thread which finds the
//! owner awake costs no system call and touches nothing but the head and the value.
//!
//! Lifetime: `post` touches the mailbox after the value has become visible to the owner. The
//! mailbox therefore lives in an `Arc`, and each thread that posts holds a clone (or a borrow) of
//! its own: it must not reach the mailbox through the very value that it posts.

mod fifo;
mod signal;

#[cfg(test)]
mod letter;
#[cfg(all(test, loom))]
mod mailbox_loom;
#[cfg(all(test, not(loom)))]
mod tests;

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr;
use std::time::Duration;

use fifo::Chain;
pub use fifo::{Fifo, Handle, Link};
use signal::Signal;
use sync::{AtomicPtr, Ordering};

use crate::clock;

/// The atomics: those of the model checker when there is one.
mod sync {
    #[cfg(loom)]
    pub use loom::sync::atomic::{AtomicPtr, Ordering};
    #[cfg(not(loom))]
    pub use std::sync::atomic::{AtomicPtr, Ordering};
}

/// A queue from many threads to one owner.
///
/// Aligned to two cache lines (the processor fetches pairs), so that the head shares none with
/// the counts of the `Arc` around it.
#[repr(align(128))]
pub struct Mailbox<H: Handle> {
    head: AtomicPtr<H::Node>,
    signal: Signal,
    spin_ns: u64,
}

// SAFETY: the mailbox owns the posted handles, which are Send.
unsafe impl<H: Handle> Send for Mailbox<H> {}
// SAFETY: threads share only the atomic head and the signal; a chain taken from the head belongs
// to the thread that took it.
unsafe impl<H: Handle> Sync for Mailbox<H> {}

impl<H: Handle> Mailbox<H> {
    /// An empty mailbox whose owner sleeps as soon as it parks.
    ///
    /// # Errors
    /// When no eventfd can be had (EMFILE, ENFILE, ENOMEM; eventfd(2)).
    pub fn new() -> io::Result<Mailbox<H>> {
        Mailbox::with_spin(0)
    }

    /// An empty mailbox whose owner polls for posts for up to `spin_ns` before it sleeps: a
    /// hand-over to a spinning thread takes a fraction of a microsecond, one to a sleeping thread
    /// some microseconds, or tens in a virtual machine. A core is busy meanwhile.
    ///
    /// # Errors
    /// As [`Mailbox::new`].
    pub fn with_spin(spin_ns: u64) -> io::Result<Mailbox<H>> {
        let head = AtomicPtr::new(ptr::null_mut());
        Ok(Mailbox {
            head,
            signal: Signal::new()?,
            spin_ns,
        })
    }

    /// Hands `value` to the owner, and wakes it if it is parked.
    pub fn post(&self, value: H) {
        let node = value.into_node();
        self.push((node, node));
    }

    fn push(&self, (newest, oldest): Chain<H::Node>) {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            let below = if head == parked() {
                ptr::null_mut()
            } else {
                head
            };
            fifo::set_next::<H>(oldest, below);
            // Release: the owner sees what the values hold. Nothing of the owner's is read here.
            let (success, failure) = (Ordering::Release, Ordering::Relaxed);
            match self
                .head
                .compare_exchange_weak(head, newest.as_ptr(), success, failure)
            {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
        if head == parked() {
            self.signal.set();
        }
    }

    /// Takes everything posted so far, oldest first. For the owner only: when two threads take,
    /// each gets a part.
    pub fn take(&self) -> Fifo<H> {
        if self.is_empty() {
            return Fifo::new();
        }
        // Only the owner replaces a chain by something else, so that the head is still a chain.
        // Acquire: pairs with the release of every post on the chain; each post extends the
        // release sequence of those before it.
        let newest = self.head.swap(ptr::null_mut(), Ordering::Acquire);
        if newest == parked() {
            Fifo::new()
        } else {
            Fifo::from_newest_first(newest)
        }
    }

    /// Whether nothing is waiting to be taken.
    pub fn is_empty(&self) -> bool {
        let head = self.head.load(Ordering::Relaxed);
        head.is_null() || head == parked()
    }

    /// Lets the owner's current park return, or its next one if it is not parked.
    pub fn wake(&self) {
        self.signal.set();
    }

    /// Polls for posts for up to `max_ns`. Returns whether there are any.
    pub fn spin(&self, max_ns: u64) -> bool {
        if !self.is_empty() {
            return true;
        }
        let start = clock::ticks();
        let limit = clock::ns_to_ticks(max_ns);
        while clock::ticks().wrapping_sub(start) < limit {
            if !self.is_empty() {
                return true;
            }
            std::hint::spin_loop();
        }
        false
    }

    /// Sleeps until something is posted, the mailbox is nudged, one of `fds` is readable (or in
    /// error), or `timeout` has passed. It may also return for no reason, as when a Unix signal
    /// arrives; a post or a nudge that happened before is never missed. For the owner only.
    ///
    /// With a spin, descriptors are looked at after it.
    ///
    /// # Errors
    /// The error of ppoll(2) (ENOMEM, EINVAL for too many descriptors).
    pub fn park(&self, fds: &[BorrowedFd<'_>], timeout: Option<Duration>) -> io::Result<()> {
        let timeout = match (self.spin_ns, timeout) {
            (0, timeout) => timeout,
            (spin_ns, timeout) => {
                let left_ns = timeout.map_or(u128::MAX, |t| t.as_nanos());
                let spin_ns = spin_ns.min(u64::try_from(left_ns).unwrap_or(u64::MAX));
                if self.spin(spin_ns) {
                    return Ok(());
                }
                timeout.map(|t| t.saturating_sub(Duration::from_nanos(spin_ns)))
            }
        };
        match self.fall_asleep() {
            Some(_asleep) => self.signal.wait(fds, timeout),
            None => Ok(()),
        }
    }

    /// Says that the owner is about to sleep on [`Mailbox::wake_fd`] by means of its own, with
    /// which it waits for other things, too: from now on a post writes to that descriptor. `None`:
    /// something waits to be taken, and it must not sleep. For the owner only.
    ///
    /// A post or a nudge that came before, or comes while the guard lives, makes the descriptor
    /// readable. The guard does not read it: watch it for edges, each of which is a wake-up.
    pub fn fall_asleep(&self) -> Option<Asleep<'_, H>> {
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        let empty = ptr::null_mut();
        let told = self
            .head
            .compare_exchange(empty, parked(), success, failure);
        told.is_ok().then_some(Asleep { mailbox: self })
    }

    /// The descriptor (eventfd(2)) through which the sleeping owner is woken. It is the same for
    /// the whole life of the mailbox.
    #[cfg(not(any(loom, miri)))]
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.signal.fd()
    }
}

/// The owner of a mailbox sleeps; dropping this wakes it up.
pub struct Asleep<'a, H: Handle> {
    mailbox: &'a Mailbox<H>,
}

impl<H: Handle> Drop for Asleep<'_, H> {
    fn drop(&mut self) {
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        // Fails when there was a post, whose chain stays for `take`. Its poster may set the signal
        // only now; the next sleep then ends at once, once.
        let head = &self.mailbox.head;
        let _ = head.compare_exchange(parked(), ptr::null_mut(), success, failure);
    }
}

impl<H: Handle> Drop for Mailbox<H> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// Marks the head while the owner sleeps. No node lies at address 1 (contract of `Handle`).
fn parked<N>() -> *mut N {
    ptr::without_provenance_mut(1)
}
