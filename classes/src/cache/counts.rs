//! The counters of the cache, and the recent reads of each thread.
//!
//! A thread counts in a lane of its own with plain loads and stores; a reader sums. There are so
//! many lanes that threads rarely share one; those that do, count with atomic additions. A thread
//! that ends leaves its lane to the next.

use std::cell::{Cell, OnceCell};
use std::sync::atomic::{AtomicU64, Ordering};
use ugeom_machine::mutex::Mutex;
use ugeom_stack::Fact;

macro_rules! counts {
    ($($(#[$doc:meta])* $count:ident $name:ident,)*) => {
        /// One thing that is counted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Count { $($(#[$doc])* $count,)* }

        /// The counts of all lanes, added up.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Totals { $($(#[$doc])* pub $name: u64,)* }

        impl Totals {
            const COUNT: usize = [$(Count::$count),*].len();

            fn of(sum: impl Fn(Count) -> u64) -> Self {
                Self { $($name: sum(Count::$count),)* }
            }

            /// The names and values, as `show` and confxml have them.
            pub fn facts(&self) -> Vec<Fact> {
                vec![$((stringify!($name), self.$name.to_string()),)*]
            }
        }
    };
}

counts! {
    /// Blocks that a read found in the cache.
    Hits hits,
    /// Blocks that a read did not find, and that were read from below.
    Misses misses,
    /// Blocks that a read went past the cache for, as no buffer was free or a write was in flight.
    Bypasses bypasses,
    /// Blocks that made room for others.
    Evictions evictions,
    /// Times that a request waited for a block that another one reads.
    Waits waits,
    /// Blocks that were read ahead.
    ReadAhead readahead,
    /// Blocks that were read ahead, and then used.
    ReadAheadUsed readahead_used,
    /// Blocks that were read ahead, and made room for others or were dropped before they were used.
    ReadAheadWasted readahead_wasted,
    /// Hits that were lent to their reader in place of a copy.
    Leases leases,
    /// WRITE requests that were done when they were in memory.
    Writes writes,
    /// Blocks that were read because a WRITE changes a part of them.
    Fills fills,
    /// Writes that the flusher made below.
    WritesBelow writes_below,
    /// Those of them that failed.
    WriteErrors write_errors,
    /// Blocks dropped because their content became invalid.
    Drops drops,
}

const LANES: usize = 64;
/// The lane of all threads that found none of their own.
const SHARED: usize = LANES - 1;
/// Blocks that a thread remembers to have read last.
const RECENT: usize = 4;

#[repr(align(128))]
struct Lane {
    counts: [AtomicU64; Totals::COUNT],
    recent: [AtomicU64; RECENT],
}

/// Counts in lanes, so that threads which count at the same time share no cache line.
pub struct Lanes {
    lanes: Box<[Lane]>,
}

/// Free lanes: those that ended threads had, and all from a number on.
struct Vacant {
    left: Vec<usize>,
    next: usize,
}

static VACANT: Mutex<Vacant> = Mutex::new(Vacant {
    left: Vec::new(),
    next: 0,
});

/// A lane that a thread has until it ends.
struct Tenancy(usize);

impl Drop for Tenancy {
    fn drop(&mut self) {
        // Work of an ending thread is counted with the others.
        OWN.set(SHARED);
        VACANT.lock().left.push(self.0);
    }
}

thread_local! {
    static OWN: Cell<usize> = const { Cell::new(usize::MAX) };
    static TENANCY: OnceCell<Tenancy> = const { OnceCell::new() };
}

/// The lane of this thread.
#[inline(always)]
fn own_lane() -> usize {
    match OWN.get() {
        usize::MAX => choose_lane(),
        own => own,
    }
}

#[cold]
fn choose_lane() -> usize {
    let mut vacant = VACANT.lock();
    let own = vacant.left.pop().unwrap_or_else(|| {
        vacant.next = (vacant.next + 1).min(LANES);
        vacant.next - 1
    });
    drop(vacant);
    OWN.set(own);
    if own != SHARED {
        // Fails only in a thread that is ending already: the lane is then not used again.
        let _ = TENANCY.try_with(|tenancy| tenancy.set(Tenancy(own)));
    }
    own
}

impl Lane {
    #[inline(always)]
    fn add(&self, what: Count, number: u64, shared: bool) {
        let count = &self.counts[what as usize];
        if shared {
            count.fetch_add(number, Ordering::Relaxed);
        } else {
            // No other thread writes here, so nothing is lost between the load and the store.
            let sum = count.load(Ordering::Relaxed).wrapping_add(number);
            count.store(sum, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn is_new_use(&self, block: u64) -> bool {
        let recent = &self.recent[block as usize % RECENT];
        if recent.load(Ordering::Relaxed) == block {
            return false;
        }
        recent.store(block, Ordering::Relaxed);
        true
    }
}

impl Default for Lanes {
    fn default() -> Self {
        Self::new()
    }
}

impl Lanes {
    /// Lanes for all threads, at 0.
    pub fn new() -> Self {
        let lane = |_| Lane {
            counts: [const { AtomicU64::new(0) }; Totals::COUNT],
            recent: [const { AtomicU64::new(u64::MAX) }; RECENT],
        };
        Self {
            lanes: (0..LANES).map(lane).collect(),
        }
    }

    /// Adds `number` to a counter of the calling thread's lane.
    #[inline]
    pub fn add(&self, what: Count, number: u64) {
        let own = own_lane();
        self.lanes[own].add(what, number, own == SHARED);
    }

    /// Notes that this thread reads from a block; true when it is not one that it read from just
    /// before. Small reads of a large block, one after the other, are one use of the block.
    #[inline]
    pub(crate) fn is_new_use(&self, block: u64) -> bool {
        self.lanes[own_lane()].is_new_use(block)
    }

    /// The same for a block that a read has found, which is counted.
    #[inline]
    pub fn hit(&self, block: u64) -> bool {
        let own = own_lane();
        let lane = &self.lanes[own];
        lane.add(Count::Hits, 1, own == SHARED);
        lane.is_new_use(block)
    }

    /// The sums over all threads.
    pub fn totals(&self) -> Totals {
        Totals::of(|what| {
            let counts = self.lanes.iter().map(|lane| &lane.counts[what as usize]);
            counts.map(|count| count.load(Ordering::Relaxed)).sum()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_end_leave_their_lanes_to_others() {
        let lanes = Lanes::new();
        for _ in 0..4 * LANES {
            std::thread::scope(|scope| {
                scope.spawn(|| lanes.add(Count::Hits, 1));
            });
        }
        assert_eq!(lanes.totals().hits, 4 * LANES as u64);
        // Other tests of the process may have some at the same time, but not all.
        assert!(
            VACANT.lock().next < LANES,
            "one thread at a time takes no lane more"
        );
    }

    #[test]
    fn what_many_threads_count_at_once_is_all_there() {
        let lanes = Lanes::new();
        std::thread::scope(|scope| {
            for _ in 0..LANES + 8 {
                scope.spawn(|| (0..100).for_each(|_| lanes.add(Count::Misses, 1)));
            }
        });
        assert_eq!(lanes.totals().misses, 100 * (LANES as u64 + 8));
    }
}
