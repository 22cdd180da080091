//! The blocks being written below, so that a concurrent read of the old contents is never kept, and
//! two writes keep their order.

use std::sync::atomic::{AtomicUsize, Ordering};
use ugeom_machine::mutex::Mutex;

/// One write: the blocks that it touches.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    /// Number of the first block that it covers.
    pub first: u64,
    /// Number of the last block that it covers.
    pub last: u64,
    /// Another write touches one of them.
    pub contested: bool,
    /// It only flushes the cache.
    pub cleans: bool,
    /// It is done below, and on its way into the buffers.
    pub keeping: bool,
}

/// The writes that are in flight, by number.
#[derive(Default)]
pub struct Writers {
    count: AtomicUsize,
    /// Those of them that change the data of the media.
    changes: AtomicUsize,
    writes: Mutex<Vec<Option<Write>>>,
}

impl Writers {
    /// A write begins; its number. A read of one of the blocks that begins from now on learns
    /// of it by [`Writers::touch`].
    pub fn enter(&self, first: u64, last: u64) -> usize {
        let mut writes = self.writes.lock();
        let mut contested = false;
        for other in writes.iter_mut().flatten() {
            if other.first <= last && first <= other.last {
                other.contested = true;
                contested = true;
            }
        }
        let write = Write {
            first,
            last,
            contested,
            cleans: false,
            keeping: false,
        };
        self.add(&mut writes, write)
    }

    /// A write begins, unless another one touches one of its blocks: then it has to wait.
    pub(crate) fn try_enter(&self, first: u64, last: u64, cleans: bool) -> Option<usize> {
        let mut writes = self.writes.lock();
        let mut others = writes.iter().flatten();
        if others.any(|other| other.first <= last && first <= other.last) {
            return None;
        }
        let write = Write {
            first,
            last,
            contested: false,
            cleans,
            keeping: false,
        };
        Some(self.add(&mut writes, write))
    }

    fn add(&self, writes: &mut Vec<Option<Write>>, write: Write) -> usize {
        self.count.fetch_add(1, Ordering::SeqCst);
        if !write.cleans {
            self.changes.fetch_add(1, Ordering::SeqCst);
        }
        match writes.iter().position(Option::is_none) {
            Some(free) => {
                writes[free] = Some(write);
                free
            }
            None => {
                writes.push(Some(write));
                writes.len() - 1
            }
        }
    }

    /// A write is done below: whether it may go into the buffers. It may not when another one
    /// touched one of its blocks meanwhile: which of them the media holds is not known.
    pub fn keep(&self, number: usize) -> bool {
        let mut writes = self.writes.lock();
        let write = writes.get_mut(number).and_then(Option::as_mut);
        let Some(write) = write.filter(|write| !write.contested) else { return false };
        write.keeping = true;
        true
    }

    /// Waits until none of the others that touch a block of this write is on its way into the
    /// buffers: it began before this one, and what it brings is older. That is the time of a copy,
    /// which takes no lock that the caller could hold.
    pub(crate) fn wait_for_keepers(&self, number: usize) {
        while self.has_keeper(number) {
            std::thread::yield_now();
        }
    }

    fn has_keeper(&self, number: usize) -> bool {
        let writes = self.writes.lock();
        let Some(own) = writes.get(number).copied().flatten() else { return false };
        // It is contested, or it does not ask for itself.
        let mut keepers = writes.iter().flatten().filter(|other| other.keeping);
        keepers.any(|other| other.first <= own.last && own.first <= other.last)
    }

    /// A write has ended.
    pub fn leave(&self, number: usize) {
        if let Some(place) = self.writes.lock().get_mut(number)
            && let Some(write) = place.take()
        {
            self.count.fetch_sub(1, Ordering::SeqCst);
            if !write.cleans {
                self.changes.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }

    /// True when a write that is in flight touches the block.
    pub fn touch(&self, block: u64) -> bool {
        if self.count.load(Ordering::SeqCst) == 0 {
            return false;
        }
        let writes = self.writes.lock();
        let mut writes = writes.iter().flatten();
        writes.any(|write| write.first <= block && block <= write.last)
    }

    /// True when a write that changes the block is in flight.
    pub(crate) fn is_changing(&self, block: u64) -> bool {
        if self.changes.load(Ordering::SeqCst) == 0 {
            return false;
        }
        let writes = self.writes.lock();
        let mut changes = writes.iter().flatten().filter(|write| !write.cleans);
        changes.any(|write| write.first <= block && block <= write.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn of_two_writes_to_a_block_neither_is_kept() {
        let writers = Writers::default();
        let (one, two) = (writers.enter(0, 3), writers.enter(3, 5));
        assert!(!writers.keep(one) && !writers.keep(two));
        writers.leave(one);
        assert!(
            !writers.keep(two),
            "they overlapped, in whichever order they ended"
        );
        writers.leave(two);
        let alone = writers.enter(3, 3);
        assert!(writers.keep(alone));
    }

    #[test]
    fn a_write_that_began_later_ends_after_the_copy_of_the_one_before() {
        let writers = Writers::default();
        let first = writers.enter(0, 3);
        assert!(writers.keep(first));
        let later = writers.enter(2, 2);
        let elsewhere = writers.enter(4, 4);
        assert!(
            !writers.keep(later),
            "the first one is not done with its buffers"
        );
        writers.wait_for_keepers(elsewhere);
        let copied = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                writers.wait_for_keepers(later);
                assert!(copied.load(Ordering::SeqCst), "it waited");
            });
            std::thread::yield_now();
            copied.store(true, Ordering::SeqCst);
            writers.leave(first);
        });
    }
}
