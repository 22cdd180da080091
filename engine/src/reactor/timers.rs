//! Timers of a reactor: a sorted set, so that one that is cancelled is gone at once.

use std::collections::BTreeSet;

use super::Event;

/// The handle of a timer, to cancel it by and to know its event by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timer {
    due_ns: u64,
    /// Tells timers apart that are due at the same moment, in the order in which they were made.
    number: u64,
}

#[derive(Default)]
pub(super) struct Timers {
    waiting: BTreeSet<Timer>,
    made: u64,
}

impl Timers {
    pub fn add(&mut self, due_ns: u64) -> Timer {
        self.made += 1;
        let timer = Timer {
            due_ns,
            number: self.made,
        };
        self.waiting.insert(timer);
        timer
    }

    pub fn cancel(&mut self, timer: Timer) {
        self.waiting.remove(&timer);
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn next_due_ns(&self) -> Option<u64> {
        self.waiting.first().map(|timer| timer.due_ns)
    }

    /// Appends due timers to `events`, earliest first.
    pub fn collect_due(&mut self, now_ns: u64, events: &mut Vec<Event>) {
        while let Some(first) = self.waiting.first().filter(|first| first.due_ns <= now_ns) {
            events.push(Event::Due(*first));
            self.waiting.pop_first();
        }
    }
}
