//! Where a block lies in the cache: the index, of which there are two. [`hash::Hash`] is the one to
//! use; [`splay::Splay`] is the one that the measurement of 2006 blames, to compare with.
//!
//! Finding takes no lock of the caller's. Changing an index is done by one thread a shard at a
//! time; the shards' locks ([`super::store`]) see to that. A reader learns whether the block
//! changed while he copied from it by asking [`Index::unchanged`].

pub mod hash;
pub mod splay;

use std::io;
use ugeom_machine::slab::Slab;

/// Block numbers have fewer bits than this: 4 KiB blocks of 2^63 bytes have 51.
pub const BLOCK_BITS: u32 = 54;

/// The index entry of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The buffer that holds it.
    pub slot: u32,
    /// It is being read from below: the buffer holds nothing yet.
    pub busy: bool,
    /// It was written below while it was being read: the data is not kept.
    pub stale: bool,
}

/// The result of a lookup.
#[derive(Clone, Copy, Debug)]
pub enum Lookup<P> {
    /// It is not there.
    Absent,
    /// Its entry is being changed.
    Changing,
    /// The block is cached: where its entry stands, and a copy of the entry.
    At(P, Entry),
}

/// The map from blocks to buffers.
pub trait Index: Send + Sync + Sized + 'static {
    /// Where an entry stands, and its version.
    type Place: Copy;

    /// The name of the kind, as the option has it.
    const NAME: &'static str;

    /// An empty index for `slots` buffers in `1 << shard_bits` shards.
    ///
    /// # Errors
    /// The system's error about its memory.
    fn new(slots: u32, shard_bits: u32) -> io::Result<Self>;

    /// Looks a block up.
    fn find(&self, block: u64) -> Lookup<Self::Place>;

    /// True when neither the entry nor the bytes of its buffer have changed since it was found.
    fn unchanged(&self, place: Self::Place) -> bool;

    /// True when a block is there, in any state. Its shard is locked.
    fn holds(&self, block: u64) -> bool;

    /// Adds a block, busy; false when there is no room for its entry. Its shard is locked.
    fn insert(&self, block: u64, slot: u32) -> bool;

    /// Takes a block out and returns its entry. Its shard is locked.
    fn remove(&self, block: u64) -> Option<Entry>;

    /// Data read for a busy block is not kept. Its shard is locked.
    fn flag_stale(&self, block: u64);

    /// A busy block has arrived and can be found; false when it is not to be kept, and nothing was
    /// done. Its shard is locked.
    fn publish(&self, block: u64) -> bool;

    /// Copies into the buffer of a block, so that no reader takes half of it for the whole; false
    /// when the buffer is leased, and then nothing was done. Its shard is locked.
    fn write(&self, block: u64, slab: &Slab, within: usize, from: &[u8]) -> bool;

    /// Prefetches the cache lines that a look-up of the block reads.
    fn prefetch(&self, block: u64);

    /// Memory that it takes, bytes.
    fn memory_bytes(&self) -> usize;
}

/// Spreads block numbers: a bijection from the numbers below 2^[`BLOCK_BITS`] to the highest
/// `BLOCK_BITS` of a word. Any number of the highest bits chooses a place, what is left of the word
/// is all there is to compare, and one multiplication is all that a look-up waits for before it
/// asks for memory.
///
/// The factor is that of Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4): 2^54
/// over the golden ratio, odd. It lays the blocks of a sequential range, and of one with steps,
/// evenly over all places. The lower bits of the word are worth less.
#[inline]
pub fn spread(block: u64) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15 >> UNUSED_BITS | 1;
    block.wrapping_mul(FACTOR << UNUSED_BITS)
}

/// Bits at the end of a spread number that are 0.
const UNUSED_BITS: u32 = u64::BITS - BLOCK_BITS;

/// The shard of a spread number, of `1 << shard_bits`: its highest bits.
#[inline]
pub(crate) fn shard_of(spread: u64, shard_bits: u32) -> usize {
    // In two steps, as no shift takes 64.
    (spread >> 1 >> (u64::BITS - 1 - shard_bits)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreading_loses_nothing() {
        // The inverse of an odd factor, by Newton's iteration.
        let factor = spread(1) >> UNUSED_BITS;
        let mut inverse = factor;
        for _ in 0..6 {
            inverse = inverse.wrapping_mul(2_u64.wrapping_sub(factor.wrapping_mul(inverse)));
        }
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..1000 {
            let block = random.u64(0..1 << BLOCK_BITS);
            let back = (spread(block) >> UNUSED_BITS).wrapping_mul(inverse);
            assert_eq!(back & ((1 << BLOCK_BITS) - 1), block);
        }
    }

    #[test]
    fn shards_get_equal_parts_of_ranges_and_steps() {
        for step in [1, 2, 3, 16, 1 << 20, (1 << 30) - 1] {
            for shard_bits in [0, 3, 6] {
                let mut counts = vec![0_u32; 1 << shard_bits];
                for block in 0..1_u64 << 16 {
                    counts[shard_of(spread(block * step), shard_bits)] += 1;
                }
                let even = (1 << 16) >> shard_bits;
                let close = even / 8 * 7..=even / 8 * 9;
                assert!(
                    counts.iter().all(|count| close.contains(count)),
                    "{step} {counts:?}"
                );
            }
        }
    }
}
