//! Bios that wait for a moment: a binary heap, earliest first, in order of arrival when equal.

use crate::bio::Bio;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

struct Waiting {
    due_ns: u64,
    arrival: u64,
    bio: Bio,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        // Reversed: the standard heap gives the greatest first.
        (other.due_ns, other.arrival).cmp(&(self.due_ns, self.arrival))
    }
}

/// One thread's waiting bios.
pub(crate) struct Timers {
    heap: BinaryHeap<Waiting>,
    arrivals: u64,
}

impl Timers {
    pub(crate) fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            arrivals: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Keeps a bio until the moment that it carries.
    pub(crate) fn push(&mut self, bio: Bio) {
        self.arrivals += 1;
        let due_ns = bio.body().due_ns;
        self.heap.push(Waiting {
            due_ns,
            arrival: self.arrivals,
            bio,
        });
    }

    /// The next bio whose moment has come.
    pub(crate) fn pop_due(&mut self, now_ns: u64) -> Option<Bio> {
        if self.heap.peek()?.due_ns > now_ns {
            return None;
        }
        self.heap.pop().map(|waiting| waiting.bio)
    }

    /// When the earliest is due, in clock nanoseconds.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        self.heap.peek().map(|waiting| waiting.due_ns)
    }

    /// Takes out those that have been cancelled.
    pub(crate) fn take_cancelled(&mut self) -> Vec<Bio> {
        if !self.heap.iter().any(|waiting| waiting.bio.is_cancelled()) {
            return Vec::new();
        }
        let (cancelled, kept): (Vec<_>, Vec<_>) = self
            .heap
            .drain()
            .partition(|waiting| waiting.bio.is_cancelled());
        self.heap = kept.into();
        cancelled.into_iter().map(|waiting| waiting.bio).collect()
    }
}
