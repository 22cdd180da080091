//! Blocks of memory of one size, allocated once: the data of a cache. On huge pages where the
//! system has them, shared by threads without locks.
//!
//! A block is reached in three ways: threads copy out of it and into it ([`Slab::copy_out`],
//! [`Slab::copy_in`]); a request below fills it while no other thread may use it ([`Fill`]); and a
//! reader holds it as it is, so that it can be sent without a copy ([`Lease`]). The owner knows the
//! number of a block and whether a copy was torn, as with [`crate::region::Region`].

use crate::buffer::{IoMemory, Segment};
use crate::copy;
use crate::prefetch::{prefetch, touch};
use crate::shared_bytes;
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

mod pages;
#[cfg(all(test, loom))]
mod slab_loom;
mod state;
mod words;

use state::State;
pub use words::Words;

/// The atomics of the states: those of the model checker when there is one.
mod sync {
    #[cfg(loom)]
    pub use loom::sync::atomic::{AtomicU32, Ordering};
    #[cfg(not(loom))]
    pub use std::sync::atomic::{AtomicU32, Ordering};
}

/// Blocks of one size.
pub struct Slab {
    pub(crate) base: NonNull<u8>,
    mapped_bytes: usize,
    block_bytes: usize,
    states: Box<[State]>,
    /// Number of leases that are not dropped yet.
    leases: AtomicU32,
}

// SAFETY: the slab owns its mapping, which does not belong to a thread.
unsafe impl Send for Slab {}
// SAFETY: the memory is reached through copies by raw pointers, and through `Fill` and `Lease`,
// which the states keep apart from each other; see `copy_out` for copies that race.
unsafe impl Sync for Slab {}

impl Slab {
    /// Maps `blocks` blocks of `block_bytes` each, aligned to huge pages. Memory is taken as it is
    /// first used; from then on it stays.
    ///
    /// # Errors
    /// EINVAL for sizes that are 0 or overflow; else what mmap(2) says.
    pub fn new(blocks: u32, block_bytes: usize) -> io::Result<Arc<Self>> {
        let mapped_bytes = block_bytes.checked_mul(blocks as usize);
        let mapped_bytes = mapped_bytes.filter(|bytes| *bytes > 0 && *bytes < isize::MAX as usize);
        let Some(mapped_bytes) = mapped_bytes else {
            let message = format!("{blocks} blocks of {block_bytes} bytes cannot be mapped");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        };
        let base = pages::map(mapped_bytes)?;
        Ok(Arc::new(Self {
            base,
            mapped_bytes,
            block_bytes,
            states: (0..blocks).map(|_| State::new()).collect(),
            leases: AtomicU32::new(0),
        }))
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> u32 {
        self.states.len() as u32
    }

    /// The size of a block, bytes.
    pub fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    #[inline]
    fn at(&self, block: u32, within: usize, len: usize) -> *mut u8 {
        let fits = within <= self.block_bytes && len <= self.block_bytes - within;
        assert!(
            fits && (block as usize) < self.states.len(),
            "{len} bytes at {within} of block {block} are not in the slab"
        );
        // SAFETY: the assertion keeps the address inside the mapping.
        unsafe {
            self.base
                .as_ptr()
                .add(block as usize * self.block_bytes + within)
        }
    }

    /// Copies from a place in a block into `into`, faster after [`Slab::expect`].
    ///
    /// # Panics
    /// When the range leaves the block.
    #[inline]
    pub fn copy_out(&self, block: u32, within: usize, into: &mut [u8]) {
        let from = self.at(block, within, into.len());
        // SAFETY: the range lies inside the mapping, and `into`, an exclusive borrow, cannot
        // overlap it. The block may be written meanwhile, by `copy_in` or by a fill: the
        // caller then gets any mixture of bytes, which it throws away when its version of the
        // block says that it changed.
        unsafe { copy::copy_asked(from, into) };
    }

    /// Asks the processor for the beginning of a range of a block that will be copied out soon.
    ///
    /// # Panics
    /// When the range leaves the block.
    #[inline]
    pub fn expect(&self, block: u32, within: usize, len: usize) {
        let from = self.at(block, within, len);
        if len > 0 {
            // SAFETY: the byte lies inside the mapping. It is thrown away, so that it does not
            // matter when it is written.
            unsafe { touch(from) };
        }
        copy::ask(from, len);
    }

    /// The same with nothing but memcpy(3): what copies are held against when they are measured.
    ///
    /// # Panics
    /// When the range leaves the block.
    #[inline]
    pub fn copy_out_plain(&self, block: u32, within: usize, into: &mut [u8]) {
        let from = self.at(block, within, into.len());
        // SAFETY: as in `copy_out`.
        unsafe { shared_bytes::load(from, into) };
    }

    /// Copies `from` to a place in a block; false, and nothing is done, while the block is being
    /// filled or leases the block.
    ///
    /// # Panics
    /// When the range leaves the block.
    #[inline]
    pub fn copy_in(&self, block: u32, within: usize, from: &[u8]) -> bool {
        let to = self.at(block, within, from.len());
        let state = &self.states[block as usize];
        if !state.take() {
            return false;
        }
        // SAFETY: the range lies inside the mapping; no reference to the block exists, since
        // its state belongs to this copy, and `from` cannot overlap it. For races with copies out
        // of the block see `copy_out`.
        unsafe { shared_bytes::store(from, to) };
        state.give_back();
        true
    }

    /// Asks for the memory that [`Slab::is_held`] looks at.
    #[inline]
    pub fn expect_state(&self, block: u32) {
        prefetch(&self.states[block as usize]);
    }

    /// True while the block is being filled or leases the block.
    #[inline]
    pub fn is_held(&self, block: u32) -> bool {
        self.states[block as usize].is_held()
    }

    /// Takes the first `bytes` of a block for the thread that fills it, and of further blocks in
    /// the given order, to be filled as one. `None` when a block is held already.
    ///
    /// # Panics
    /// When `bytes` is not in the last of the blocks, or there is no block.
    #[must_use]
    pub fn fill(self: &Arc<Self>, blocks: &[u32], last_bytes: usize) -> Option<Fill> {
        let (last, others) = blocks.split_last().expect("at least one block");
        let segment = |block: u32, len: usize| Segment {
            base: self.at(block, 0, len),
            len,
        };
        let mut fill = Fill {
            slab: Arc::clone(self),
            first: [segment(*last, last_bytes)],
            all: Vec::new(),
            held: Vec::new(),
            single: *last,
        };
        if !others.is_empty() {
            let others = others.iter().map(|block| segment(*block, self.block_bytes));
            fill.all.extend(others);
            fill.all.push(fill.first[0]);
        }
        for block in blocks {
            if !self.states[*block as usize].take() {
                fill.single = NO_OWNER;
                return None;
            }
            if others.is_empty() {
                return Some(fill);
            }
            fill.single = NO_OWNER;
            fill.held.push(*block);
        }
        Some(fill)
    }

    /// How many leases live.
    pub fn leases(&self) -> u32 {
        self.leases.load(Ordering::Relaxed)
    }

    /// Leases a range of a block to a reader: it keeps its bytes until the lease is dropped.
    /// `None` while it is being filled.
    ///
    /// # Panics
    /// When the range leaves the block.
    #[must_use]
    pub fn lease(self: &Arc<Self>, block: u32, within: usize, len: usize) -> Option<Lease> {
        let segment = Segment {
            base: self.at(block, within, len),
            len,
        };
        if !self.states[block as usize].lease() {
            return None;
        }
        self.leases.fetch_add(1, Ordering::Relaxed);
        Some(Lease {
            slab: Arc::clone(self),
            block,
            segment: [segment],
        })
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`; leases and fills hold the slab, so no user is left.
        unsafe { pages::unmap(self.base, self.mapped_bytes) };
    }
}

/// In place of a block's number: none.
const NO_OWNER: u32 = u32::MAX;

/// The exclusive right to fill blocks, for a read below. Dropping it gives them back.
pub struct Fill {
    slab: Arc<Slab>,
    first: [Segment; 1],
    all: Vec<Segment>,
    held: Vec<u32>,
    single: u32,
}

// SAFETY: the segments lie in the slab, which the value keeps alive, outside the value itself.
// The states let no lease and no copy into the blocks happen while it lives. Copies out of them by
// raw pointers may race (`Slab::copy_out`), which `is_watched` tells the filling thread.
unsafe impl IoMemory for Fill {
    fn segments(&self) -> &[Segment] {
        if self.all.is_empty() {
            &self.first
        } else {
            &self.all
        }
    }

    fn is_watched(&self) -> bool {
        true
    }
}

impl Drop for Fill {
    fn drop(&mut self) {
        if self.single != NO_OWNER {
            self.slab.states[self.single as usize].give_back();
        }
        for block in &self.held {
            self.slab.states[*block as usize].give_back();
        }
    }
}

/// A range of a block that keeps its bytes for a reader. Dropping it gives the block back.
pub struct Lease {
    slab: Arc<Slab>,
    block: u32,
    segment: [Segment; 1],
}

impl Lease {
    /// The leased bytes, which stay as they are until the lease ends.
    pub fn bytes(&self) -> &[u8] {
        let [segment] = self.segment;
        // SAFETY: the range lies in the slab, which the lease keeps alive, and is initialised
        // (pages begin as zeroes); while the lease lives no thread fills the block or copies into
        // it.
        unsafe { std::slice::from_raw_parts(segment.base, segment.len) }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.slab.states[self.block as usize].end_lease();
        self.slab.leases.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
