//! When requests were in this server: for a trace of the kernel's layers, which sees them leave the
//! kernel and come back only.
//!
//! Nothing is noted unless a client of the control socket asks. Then each thread notes into a list
//! of its own, whose lock it shares with that client alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use ugeom_machine::clock;
use ugeom_machine::mutex::Mutex;

/// Passages of a thread that are kept until they are taken; more are counted as lost.
const KEPT_MAX: usize = 1 << 16;

/// The kernel's number of a request; when it was taken, and when its reply was begun,
/// CLOCK_MONOTONIC, ns.
pub type Passage = (u64, u64, u64);

/// The passages of all threads.
#[derive(Default)]
pub struct Passages {
    connection: AtomicU64,
    on: AtomicBool,
    lost: AtomicU64,
    lists: Mutex<Vec<Arc<Mutex<Vec<Passage>>>>>,
}

/// Where a thread notes them.
pub(super) struct Notes {
    of: Arc<Passages>,
    list: Arc<Mutex<Vec<Passage>>>,
}

impl Passages {
    /// The number of the kernel's connection, once there is a mount.
    pub(crate) fn connection(&self) -> Option<u32> {
        let number = u32::try_from(self.connection.load(Ordering::Relaxed)).ok();
        number.filter(|number| *number > 0)
    }

    pub(super) fn of_connection(&self, number: u32) {
        self.connection.store(u64::from(number), Ordering::Relaxed);
    }

    /// Begins to take notes.
    pub(crate) fn begin(&self) {
        self.on.store(true, Ordering::Relaxed);
    }

    /// Ends it, and forgets those that were not taken.
    pub(crate) fn end(&self) {
        self.on.store(false, Ordering::Relaxed);
        self.take();
    }

    /// The records since the last call, and the number of lost ones so far.
    pub(crate) fn take(&self) -> (Vec<Passage>, u64) {
        let lists = self.lists.lock();
        let mut all = Vec::new();
        for list in lists.iter() {
            all.append(&mut list.lock());
        }
        (all, self.lost.load(Ordering::Relaxed))
    }

    pub(super) fn notes(self: &Arc<Self>) -> Notes {
        let list = Arc::default();
        self.lists.lock().push(Arc::clone(&list));
        Notes {
            of: Arc::clone(self),
            list,
        }
    }
}

impl Notes {
    /// The time, ns; 0 while no notes are taken.
    #[inline]
    pub(super) fn begin(&self) -> u64 {
        match self.of.on.load(Ordering::Relaxed) {
            true => clock::now_ns(),
            false => 0,
        }
    }

    /// The reply to a request begins that was taken at a time of [`Notes::begin`].
    #[inline]
    pub(super) fn end(&self, unique: u64, taken_ns: u64) {
        if taken_ns > 0 {
            self.keep((unique, taken_ns, clock::now_ns()));
        }
    }

    #[cold]
    fn keep(&self, passage: Passage) {
        let mut list = self.list.lock();
        if list.len() < KEPT_MAX {
            list.push(passage);
        } else {
            self.of.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passages_are_noted_while_they_are_wanted_and_what_has_no_room_is_counted() {
        let passages = Arc::new(Passages::default());
        let (one, two) = (passages.notes(), passages.notes());
        one.end(1, one.begin());
        assert_eq!(passages.take(), (Vec::new(), 0), "nothing is asked for yet");
        passages.begin();
        one.end(2, one.begin());
        two.end(3, two.begin());
        let (all, lost) = passages.take();
        let numbers: Vec<u64> = all.iter().map(|(unique, ..)| *unique).collect();
        assert_eq!((numbers, lost), (vec![2, 3], 0));
        assert!(all.iter().all(|(_, taken, replied)| taken <= replied));
        for unique in 0..KEPT_MAX as u64 + 5 {
            one.end(unique, 1);
        }
        let (all, lost) = passages.take();
        assert_eq!((all.len(), lost), (KEPT_MAX, 5));
        one.end(9, one.begin());
        passages.end();
        assert_eq!(passages.take().0, Vec::new());
    }
}
