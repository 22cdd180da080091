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

/// What the index knows of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The buffer that holds it.
    pub slot: u32,
    /// It is being read from below: the buffer holds nothing yet.
    pub busy: bool,
    /// It was written below while it was being read: what arrives is not to be kept.
    pub stale: bool,
}

/// What finding a block came to.
#[derive(Clone, Copy, Debug)]
pub enum Found<P> {
    /// It is not there.
    Absent,
    /// Its entry is being changed.
    Changing,
    /// It is there.
    At(P, Entry),
}

/// An index.
pub trait Index: Send + Sync + Sized + 'static {
    /// Where an entry stands, and its version.
    type Place: Copy;

    /// The name of the kind, as the option has it.
    const NAME: &'static str;

    /// An empty index for `slots` buffers in `1 << shard_bits` shards.
    ///
    /// # Errors
    /// What the system says about its memory.
    fn new(slots: u32, shard_bits: u32) -> io::Result<Self>;

    /// Looks a block up.
    fn find(&self, block: u64) -> Found<Self::Place>;

    /// True when the entry is what it was when it was found, and so were the bytes of its buffer.
    fn unchanged(&self, place: Self::Place) -> bool;

    /// Adds a block, busy; false when there is no room for its entry. Its shard is locked.
    fn insert(&self, block: u64, slot: u32) -> bool;

    /// Takes a block out and says what it was. Its shard is locked.
    fn remove(&self, block: u64) -> Option<Entry>;

    /// Puts other flags into the entry of a block that is there. Its shard is locked.
    fn update(&self, block: u64, entry: Entry);

    /// Copies into the buffer of a block, so that no reader takes half of it for the whole; false
    /// when the buffer is leased, and then nothing was done. Its shard is locked.
    fn write(&self, block: u64, slab: &Slab, within: usize, from: &[u8]) -> bool;

    /// Asks the processor for what a look-up of the block will read.
    fn prefetch(&self, block: u64);

    /// Memory that it takes, bytes.
    fn memory_bytes(&self) -> usize;
}

/// Spreads block numbers; a bijection of numbers below 2^[`BLOCK_BITS`], so that the rest of a
/// number, after a part of it chose the place, is all there is to compare. Two rounds of
/// xor-shift and multiplication, as in the finaliser of MurmurHash3.
#[inline]
#[must_use]
pub fn spread(block: u64) -> u64 {
    const MASK: u64 = (1 << BLOCK_BITS) - 1;
    const HALF: u32 = BLOCK_BITS / 2;
    let mut x = block & MASK;
    x ^= x >> HALF;
    x = x.wrapping_mul(0xff51_afd7_ed55_8ccd) & MASK;
    x ^= x >> HALF;
    x = x.wrapping_mul(0xc4ce_b9fe_1a85_ec53) & MASK;
    x ^ (x >> HALF)
}
