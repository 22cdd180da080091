//! The users of a block of a slab: readers with leases, or one writer that fills it.

use super::sync::{AtomicU32, Ordering};

/// Set while the block is being filled; the other bits count the leases.
const FILLING: u32 = 1 << 31;

/// The state of a block.
pub(super) struct State(AtomicU32);

impl State {
    /// A block without an owner and without leases.
    pub fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// True while the block is being filled or leases it.
    #[inline]
    pub fn is_held(&self) -> bool {
        self.0.load(Ordering::Acquire) != 0
    }

    /// Takes it to fill it; false while it is held.
    #[inline]
    pub fn take(&self) -> bool {
        // Acquire: what the readers before have loaded is loaded.
        let taken = self
            .0
            .compare_exchange(0, FILLING, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok()
    }

    /// The block is filled: its owner gives it to the readers.
    #[inline]
    pub fn give_back(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// One reader more; false while it is being filled.
    #[inline]
    pub fn lease(&self) -> bool {
        let mut now = self.0.load(Ordering::Relaxed);
        while now & FILLING == 0 {
            let more =
                self.0
                    .compare_exchange_weak(now, now + 1, Ordering::Acquire, Ordering::Relaxed);
            match more {
                Ok(_) => return true,
                Err(other) => now = other,
            }
        }
        false
    }

    /// A reader gives its lease back.
    #[inline]
    pub(crate) fn end_lease(&self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}
