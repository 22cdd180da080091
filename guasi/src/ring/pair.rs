//! The io_urings of a context: one for a single thread and, from the second thread on, another.
//!
//! With IORING_SETUP_COOP_TASKRUN a completion does not interrupt the thread that submitted the
//! request: it is posted when that thread enters the kernel, at the latest with its next interrupt
//! of the clock. On a loop device that halves the CPU time of a request; another thread that waits
//! would hear of it late. The flags of a ring cannot be changed. So a context begins with such a
//! ring, and continues with one that interrupts as soon as a second thread submits or fetches, or
//! an eventfd is to be told; requests of the first ring complete there.

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

use io_uring::{IoUring, Probe};

use super::setup::{self, Wish};
use crate::settings::Settings;

pub(super) struct Pair {
    first: IoUring,
    /// Whether the context continues with a second ring when a second thread comes.
    is_for_one: bool,
    /// The thread that has used the context so far, as `this_thread` names it; 0 for none.
    user: AtomicUsize,
    /// None inside: the kernel gave no second ring.
    second: OnceLock<Option<IoUring>>,
    depth: u32,
}

impl Pair {
    /// The first ring, and its features.
    pub(super) fn new(settings: &Settings) -> Result<(Pair, Probe), setup::Refusal> {
        let depth = settings.ring_depth;
        let (first, is_quiet, probe) = setup::ring(depth, Wish::Quiet)?;
        let pair = Pair {
            first,
            is_for_one: is_quiet && !settings.one_thread,
            user: AtomicUsize::new(0),
            second: OnceLock::new(),
            depth,
        };
        Ok((pair, probe))
    }

    /// The ring that new requests go to.
    pub(super) fn current(&self) -> &IoUring {
        self.second().unwrap_or(&self.first)
    }

    /// All rings that may have requests, the first one first.
    pub(super) fn all(&self) -> impl Iterator<Item = &IoUring> {
        std::iter::once(&self.first).chain(self.second())
    }

    /// Whether new requests go to the second ring.
    pub(super) fn has_second(&self) -> bool {
        self.second().is_some()
    }

    fn second(&self) -> Option<&IoUring> {
        self.second.get().and_then(Option::as_ref)
    }

    /// Whether this thread is another than the only one so far, and a second ring was not tried.
    #[inline]
    pub(super) fn has_new_user(&self) -> bool {
        if !self.is_for_one {
            return false;
        }
        let (this, user) = (this_thread(), self.user.load(Ordering::Relaxed));
        user != this && self.second.get().is_none() && {
            let set = (self.user).compare_exchange(0, this, Ordering::Relaxed, Ordering::Relaxed);
            set.is_err_and(|user| user != this)
        }
    }

    /// Whether this thread is the only one that has used the context so far.
    #[inline]
    pub(super) fn has_one_user(&self) -> bool {
        self.is_for_one
            && self.second.get().is_none()
            && self.user.load(Ordering::Relaxed) == this_thread()
    }

    /// Makes the second ring. False if it was tried before, is not needed, or cannot be had: then
    /// the first one serves all threads.
    pub(super) fn open_second(&self) -> bool {
        if !self.is_for_one || self.second.get().is_some() {
            return false;
        }
        let made = setup::ring(self.depth, Wish::Interrupt);
        let is_new = self.second.set(made.ok().map(|(ring, ..)| ring)).is_ok();
        // Before this thread looks for requests that the first user holds.
        fence(Ordering::SeqCst);
        is_new && self.has_second()
    }

    /// Whether completions that wait for the submitter to enter that ring can be for this thread.
    pub(super) fn posts_for_this_thread(&self, ring: &IoUring) -> bool {
        let is_first = ptr::eq(ring, &raw const self.first);
        is_first && (!self.is_for_one || self.user.load(Ordering::Relaxed) == this_thread())
    }
}

/// A number that no two threads have at a time.
#[inline]
fn this_thread() -> usize {
    thread_local! {
        static MARK: u8 = const { 0 };
    }
    MARK.with(|mark| ptr::from_ref(mark).addr())
}
