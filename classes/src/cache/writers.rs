//! Which blocks are being written below, so that a read of the old contents that is under way at
//! the same time is never kept, and of two writes neither is taken for the later one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One write: the blocks that it touches.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    /// The first block.
    pub first: u64,
    /// The last block.
    pub last: u64,
    /// Another write touches one of them.
    pub contested: bool,
    /// It only brings below what the cache holds.
    pub cleans: bool,
}

/// The writes that are under way, by number.
#[derive(Default)]
pub struct Writers {
    count: AtomicUsize,
    /// Those of them that change what the media is to hold.
    changes: AtomicUsize,
    writes: Mutex<Vec<Option<Write>>>,
}

impl Writers {
    fn lock(&self) -> MutexGuard<'_, Vec<Option<Write>>> {
        // Nothing panics while the list is locked.
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A write begins; its number. Whoever begins a read of one of the blocks from now on learns
    /// of it by [`Writers::touch`].
    pub fn enter(&self, first: u64, last: u64) -> usize {
        let mut writes = self.lock();
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
        };
        self.add(&mut writes, write)
    }

    /// A write begins, unless another one touches one of its blocks: then it has to wait.
    pub fn try_enter(&self, first: u64, last: u64, cleans: bool) -> Option<usize> {
        let mut writes = self.lock();
        let mut others = writes.iter().flatten();
        if others.any(|other| other.first <= last && first <= other.last) {
            return None;
        }
        let write = Write {
            first,
            last,
            contested: false,
            cleans,
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

    /// How it stands with a write that is under way.
    pub fn get(&self, number: usize) -> Option<Write> {
        self.lock().get(number).copied().flatten()
    }

    /// A write has ended.
    pub fn leave(&self, number: usize) {
        if let Some(place) = self.lock().get_mut(number)
            && let Some(write) = place.take()
        {
            self.count.fetch_sub(1, Ordering::SeqCst);
            if !write.cleans {
                self.changes.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }

    /// True when a write that is under way touches the block.
    pub fn touch(&self, block: u64) -> bool {
        if self.count.load(Ordering::SeqCst) == 0 {
            return false;
        }
        let writes = self.lock();
        let mut writes = writes.iter().flatten();
        writes.any(|write| write.first <= block && block <= write.last)
    }

    /// True when a write that changes the block is under way.
    pub fn is_changing(&self, block: u64) -> bool {
        if self.changes.load(Ordering::SeqCst) == 0 {
            return false;
        }
        let writes = self.lock();
        let mut changes = writes.iter().flatten().filter(|write| !write.cleans);
        changes.any(|write| write.first <= block && block <= write.last)
    }
}
