//! The dirty parts of each buffer: a word a buffer.
//!
//! ```text
//!   [ cleaning | 0 ... 0 | 32 parts of the block: written here and not below ]
//! ```
//!
//! A buffer whose word is not 0 is not used for another block. Words change under the lock of the
//! block's shard; the flusher reads them without it, and checks again under it.

use super::unflushed::Unflushed;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use ugeom_machine::prefetch::prefetch;

/// The dirty parts are being written to the layer below. Bytes written into the buffer meanwhile
/// are dirty again.
const CLEANING: u64 = 1 << 63;
/// Parts of a block that are dirty or not, at most.
const PARTS: u64 = 32;

/// The words of all buffers. Without any for a cache that writes through.
pub struct Dirty {
    words: Box<[AtomicU64]>,
    /// log2 of the size of a part: a sector, or a 32nd of a block when that is more.
    part_shift: u32,
    /// Buffers whose word is not 0, and how many there may be.
    buffers: AtomicUsize,
    limit: usize,
    /// Counts the blocks that moved from one buffer to another, so that a search through all words
    /// can tell whether it may have missed one.
    moves: AtomicU64,
    /// Writes below that are not durable there.
    pub(super) unflushed: Unflushed,
}

impl Dirty {
    /// For a cache that writes through: nothing is ever dirty.
    pub fn none() -> Self {
        Self::new(0, 0, PARTS, PARTS)
    }

    /// For `buffers` buffers of blocks of `block_bytes`, of which `limit` may be dirty, above a
    /// provider with sectors of `sector_bytes`; both sizes are powers of two.
    pub fn new(buffers: u32, limit: usize, block_bytes: u64, sector_bytes: u64) -> Self {
        let part_bytes = sector_bytes.max(block_bytes / PARTS);
        Self {
            words: (0..buffers).map(|_| AtomicU64::new(0)).collect(),
            part_shift: part_bytes.trailing_zeros(),
            buffers: AtomicUsize::new(0),
            limit,
            moves: AtomicU64::new(0),
            unflushed: Unflushed::new(buffers),
        }
    }

    /// How many buffers hold something that is not below yet.
    pub fn buffers(&self) -> usize {
        self.buffers.load(Ordering::Acquire)
    }

    /// How many buffers may be dirty.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes that are not below yet, in whole parts.
    pub fn bytes(&self) -> u64 {
        let parts = |word: &AtomicU64| u64::from(word.load(Ordering::Relaxed) as u32);
        let parts = self.words.iter().map(parts);
        parts
            .map(|parts| u64::from(parts.count_ones()))
            .sum::<u64>()
            << self.part_shift
    }

    /// True when the buffer must not be used for another block.
    #[inline]
    pub(in crate::cache) fn holds(&self, slot: u32) -> bool {
        let word = self.words.get(slot as usize);
        word.is_some_and(|word| word.load(Ordering::Relaxed) != 0)
    }

    /// Asks for the memory that [`Dirty::holds`] looks at.
    pub(in crate::cache) fn expect(&self, slot: u32) {
        if let Some(word) = self.words.get(slot as usize) {
            prefetch(word);
        }
    }

    /// The parts that a range touches.
    pub(super) fn touched(&self, within: usize, length: usize) -> u64 {
        let first = within >> self.part_shift;
        let last = (within + length.max(1) - 1) >> self.part_shift;
        span(first, last + 1)
    }

    /// The parts that a range covers, in a block of which the media has `held` bytes.
    pub(super) fn covered(&self, within: usize, length: usize, held: usize) -> u64 {
        let part = 1 << self.part_shift;
        let end = within + length;
        let end = if end >= held { end + part - 1 } else { end };
        span(within.div_ceil(part), end >> self.part_shift)
    }

    /// The stretches of a set of parts: where each begins in the block, and its length, bytes;
    /// nothing reaches past `held`.
    pub(super) fn stretches(
        &self,
        parts: u64,
        held: usize,
    ) -> impl Iterator<Item = (usize, usize)> {
        let (shift, mut left) = (self.part_shift, parts & (CLEANING - 1));
        std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let from = left.trailing_zeros();
            let count = (left >> from).trailing_ones();
            left &= !span(from as usize, (from + count) as usize);
            let start = (from as usize) << shift;
            let end = ((from + count) as usize) << shift;
            (start < held).then(|| (start, end.min(held) - start))
        })
    }

    /// Bytes in a set of parts, of a block of which the media has `held` bytes.
    pub(super) fn bytes_in(&self, parts: u64, held: usize) -> u64 {
        let stretches = self.stretches(parts, held);
        stretches.map(|(_, length)| length as u64).sum()
    }

    pub(super) fn word(&self, slot: u32) -> Word<'_> {
        Word {
            all: self,
            word: &self.words[slot as usize],
        }
    }

    /// A block that may become dirty wants a buffer more; false at the limit.
    pub(super) fn reserve(&self) -> bool {
        let more = |now: usize| (now < self.limit).then_some(now + 1);
        let taken = self
            .buffers
            .try_update(Ordering::AcqRel, Ordering::Relaxed, more);
        taken.is_ok()
    }

    /// Gives the room back: the buffer did not become dirty.
    pub(super) fn unreserve(&self) {
        self.buffers.fetch_sub(1, Ordering::AcqRel);
    }

    /// The block of one buffer is in another one from now on.
    pub(super) fn moved(&self, from: u32, to: u32) {
        let word = self.words[from as usize].swap(0, Ordering::AcqRel);
        self.words[to as usize].store(word, Ordering::Release);
        self.unflushed.moved(from, to);
        self.moves.fetch_add(1, Ordering::AcqRel);
    }

    /// A buffer is about to lose a block, which begins at this offset.
    pub(in crate::cache) fn leaves(&self, slot: u32, offset: u64, block_bytes: usize) {
        let parts = self.unflushed.take(slot);
        for (at, length) in self.stretches(parts, block_bytes) {
            self.unflushed.leaves(offset + at as u64, length as u64);
        }
    }

    /// How many buffers there are.
    pub(super) fn slots(&self) -> u32 {
        self.words.len() as u32
    }

    /// Names every buffer that is dirty or being cleaned, and was when this began; others may be
    /// among them, and some twice.
    pub(super) fn each(&self, mut with: impl FnMut(u32)) {
        loop {
            let moves = self.moves.load(Ordering::Acquire);
            for (slot, word) in self.words.iter().enumerate() {
                if word.load(Ordering::Acquire) != 0 {
                    with(slot as u32);
                }
            }
            if self.moves.load(Ordering::Acquire) == moves {
                return;
            }
        }
    }
}

/// The parts from one to the one before another.
fn span(first: usize, end: usize) -> u64 {
    if first >= end {
        return 0;
    }
    let below = |count: usize| (1_u64 << count.min(PARTS as usize)) - 1;
    below(end) & !below(first)
}

/// The word of a buffer whose shard is locked.
#[derive(Clone, Copy)]
pub(super) struct Word<'a> {
    all: &'a Dirty,
    word: &'a AtomicU64,
}

impl Word<'_> {
    fn get(self) -> u64 {
        self.word.load(Ordering::Relaxed)
    }

    fn set(self, word: u64) {
        if word == 0 && self.get() != 0 {
            self.word.store(0, Ordering::Release);
            self.all.unreserve();
        } else {
            self.word.store(word, Ordering::Release);
        }
    }

    pub fn is_clean(self) -> bool {
        self.get() == 0
    }

    pub fn is_cleaning(self) -> bool {
        self.get() & CLEANING != 0
    }

    pub fn parts(self) -> u64 {
        self.get() & !CLEANING
    }

    /// Parts are dirty. There is a reservation when the buffer was clean.
    pub fn add(self, parts: u64) {
        self.set(self.get() | parts);
    }

    /// Parts are below, or not wanted any more.
    pub fn remove(self, parts: u64) {
        self.set(self.get() & !parts);
    }

    /// All of it is.
    pub fn clear(self) {
        self.set(0);
    }

    /// Marks the dirty parts as being written to the layer below, and returns them.
    pub fn begin_cleaning(self) -> u64 {
        let parts = self.parts();
        self.set(CLEANING);
        parts
    }

    /// It has arrived, but for the parts that failed.
    pub fn end_cleaning(self, failed: u64) {
        self.set((self.get() & !CLEANING) | failed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_sectors_or_a_32nd_of_a_block() {
        let dirty = Dirty::new(1, 1, 16 << 10, 512);
        assert_eq!(dirty.touched(0, 512), 1);
        assert_eq!(dirty.touched(512, 1024), 0b110);
        assert_eq!(dirty.touched(0, 16 << 10), 0xffff_ffff);
        let coarse = Dirty::new(1, 1, 64 << 10, 512);
        assert_eq!(coarse.touched(2048, 512), 0b10);
        assert_eq!(coarse.touched(1536, 1024), 0b11);
    }

    #[test]
    fn only_what_is_covered_as_a_whole_is_covered() {
        let dirty = Dirty::new(1, 1, 64 << 10, 512);
        assert_eq!(dirty.covered(0, 2048, 64 << 10), 1);
        assert_eq!(dirty.covered(512, 2048, 64 << 10), 0);
        assert_eq!(dirty.covered(1536, 4096, 64 << 10), 0b10);
        // The media ends in the part.
        assert_eq!(dirty.covered(2048, 512, 2560), 0b10);
    }

    #[test]
    fn stretches_are_runs_of_parts_and_end_with_the_media() {
        let dirty = Dirty::new(1, 1, 16 << 10, 512);
        let of = |parts, held| dirty.stretches(parts, held).collect::<Vec<_>>();
        assert_eq!(of(0b1011, 16 << 10), [(0, 1024), (1536, 512)]);
        assert_eq!(of(0xffff_ffff, 16 << 10), [(0, 16 << 10)]);
        assert_eq!(of(0b1011, 1536), [(0, 1024)]);
        assert_eq!(of(0, 16 << 10), []);
        assert_eq!(dirty.bytes_in(0b1011, 1000), 1000);
    }

    #[test]
    fn buffers_are_counted_while_they_are_dirty_or_being_cleaned() {
        let dirty = Dirty::new(4, 2, 4096, 512);
        assert!(dirty.reserve());
        dirty.word(0).add(1);
        assert!(dirty.reserve());
        dirty.word(1).add(2);
        assert!(!dirty.reserve(), "the limit");
        assert_eq!(dirty.word(0).begin_cleaning(), 1);
        dirty.word(0).add(4);
        dirty.word(0).end_cleaning(0);
        assert_eq!((dirty.buffers(), dirty.word(0).parts()), (2, 4));
        assert_eq!(dirty.word(1).begin_cleaning(), 2);
        assert_eq!(dirty.buffers(), 2);
        dirty.word(1).end_cleaning(2);
        assert_eq!(dirty.bytes(), 1024);
        dirty.moved(1, 3);
        let mut named = Vec::new();
        dirty.each(|slot| named.push(slot));
        assert_eq!(named, [0, 3]);
        dirty.word(3).remove(2);
        dirty.word(0).clear();
        assert_eq!(dirty.buffers(), 0);
    }
}
