//! [`RangeLock`]: locks on byte ranges of a provider, in the order of arrival.
//!
//! ```text
//!   claims, oldest first:   [0..8 X]  [4..12 S]  [20..24 X]  [8..16 X]
//!   granted?                 yes       no: 0..8   yes         no: 4..12
//! ```
//!
//! A claim is granted when no older one that still lives is in its way: their ranges overlap, and
//! one of them is exclusive. So claims that do not touch each other never wait for each other,
//! no claim is overtaken by those it waits for, and since claims wait for older ones only, no
//! circle of waiters can form as long as no thread holds one claim while waiting for another.
//!
//! A claim can be waited for, or it calls a waker when it is granted: a server that must not block
//! does the latter.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::task::Waker;
use sync::{Condvar, Mutex};

#[cfg(all(test, loom))]
#[path = "range_lock_loom.rs"]
mod range_lock_loom;
#[cfg(all(test, not(loom), not(miri)))]
#[path = "range_lock_tests.rs"]
mod range_lock_tests;

/// The primitives: those of the model checker when there is one.
mod sync {
    #[cfg(loom)]
    pub use ugeom_machine::mutex::modelled::{Condvar, Mutex};
    #[cfg(not(loom))]
    pub use ugeom_machine::mutex::{Condvar, Mutex};
}

/// The purpose of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Others may share the range, except for exclusive claims.
    Shared,
    /// No other claim may have any byte of the range.
    Exclusive,
}

/// The claims on the bytes of one provider, shared by all its users.
#[derive(Default)]
pub struct RangeLock {
    queue: Mutex<Queue>,
    granted: Condvar,
}

#[derive(Default)]
struct Queue {
    next_ticket: u64,
    /// All claims that live, oldest first, and so in the order of their tickets.
    claims: VecDeque<QueuedClaim>,
}

struct QueuedClaim {
    ticket: u64,
    range: Range<u64>,
    share: Share,
    /// How many older claims are in its way.
    in_the_way: usize,
    /// Waker for the moment when none is left.
    waker: Option<Waker>,
}

impl QueuedClaim {
    fn conflicts_with(&self, range: &Range<u64>, share: Share) -> bool {
        let start = self.range.start.max(range.start);
        let end = self.range.end.min(range.end);
        start < end && (self.share == Share::Exclusive || share == Share::Exclusive)
    }
}

impl RangeLock {
    /// A lock without claims.
    pub fn new() -> Self {
        Self::default()
    }

    /// Claims the bytes of `range`; an empty range is granted at once. The claim waits in the
    /// queue from now on, holds the range once it is granted, and ends when it is dropped.
    #[must_use]
    pub fn claim(self: &Arc<Self>, range: Range<u64>, share: Share) -> Claim {
        let mut queue = self.queue.lock();
        let ticket = queue.next_ticket;
        queue.next_ticket += 1;
        let older = queue.claims.iter();
        let in_the_way = older
            .filter(|entry| entry.conflicts_with(&range, share))
            .count();
        queue.claims.push_back(QueuedClaim {
            ticket,
            range,
            share,
            in_the_way,
            waker: None,
        });
        drop(queue);
        Claim {
            lock: Arc::clone(self),
            ticket,
        }
    }
}

impl Queue {
    /// The place of a claim that lives.
    fn place(&self, ticket: u64) -> usize {
        self.claims.partition_point(|entry| entry.ticket < ticket)
    }

    fn is_granted(&self, ticket: u64) -> bool {
        let entry = self.claims.get(self.place(ticket));
        entry.is_none_or(|entry| entry.in_the_way == 0)
    }

    /// Takes a claim out. True when another one is granted by that; the wakers to call then
    /// are appended to `wakers`.
    fn remove(&mut self, ticket: u64, wakers: &mut Vec<Waker>) -> bool {
        let place = self.place(ticket);
        let Some(gone) = self.claims.remove(place) else { return false };
        let mut grants = false;
        for entry in self.claims.range_mut(place..) {
            if entry.conflicts_with(&gone.range, gone.share) {
                entry.in_the_way -= 1;
                if entry.in_the_way == 0 {
                    grants = true;
                    wakers.extend(entry.waker.take());
                }
            }
        }
        grants
    }
}

/// A claim on a range of bytes, granted or not yet; dropping it gives the range up.
pub struct Claim {
    lock: Arc<RangeLock>,
    ticket: u64,
}

impl Claim {
    /// True once the range may be used.
    pub fn is_granted(&self) -> bool {
        self.lock.queue.lock().is_granted(self.ticket)
    }

    /// True once the range may be used; else `waker` is woken, once, when it may be, by the thread
    /// that gives the last range up that is in the way.
    pub fn is_granted_or_wakes(&self, waker: &Waker) -> bool {
        let mut queue = self.lock.queue.lock();
        if queue.is_granted(self.ticket) {
            return true;
        }
        let place = queue.place(self.ticket);
        if let Some(entry) = queue.claims.get_mut(place) {
            entry.waker = Some(waker.clone());
        }
        false
    }

    /// Waits until the range may be used.
    pub fn wait(&self) {
        let mut queue = self.lock.queue.lock();
        while !queue.is_granted(self.ticket) {
            queue = self.lock.granted.wait(queue);
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut wakers = Vec::new();
        let grants = self.lock.queue.lock().remove(self.ticket, &mut wakers);
        if grants {
            self.lock.granted.notify_all();
        }
        // Without the lock: a woken thread may claim immediately.
        wakers.into_iter().for_each(Waker::wake);
    }
}
