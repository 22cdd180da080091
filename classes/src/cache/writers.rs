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
}

/// The writes that are under way, by number.
#[derive(Default)]
pub struct Writers {
    count: AtomicUsize,
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
        let write = Some(Write {
            first,
            last,
            contested,
        });
        self.count.fetch_add(1, Ordering::SeqCst);
        match writes.iter().position(Option::is_none) {
            Some(free) => {
                writes[free] = write;
                free
            }
            None => {
                writes.push(write);
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
            && place.take().is_some()
        {
            self.count.fetch_sub(1, Ordering::SeqCst);
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
}
