//! The hash index: a block is found with one cache line, without a lock.
//!
//! ```text
//!   a line, 64 bytes:   [ head | entry | entry | entry | entry | entry | entry | entry ]
//!   head:   version ........................................ | changing | reach (4)
//!   entry:  rest of the block number | slot | used | displacement (4) | stale | busy
//! ```
//!
//! The highest bits of the spread block number choose a line (and the highest of these the shard,
//! so that a shard's lines lie side by side); what is left of it is kept in the entry, so that the
//! comparison is exact and no second line is needed. A line that is full passes entries on to its
//! fifteen neighbours (line ^ 1, ^ 2, ...); its `reach` says how far a search has to go. There are
//! two to four buffers a line, so a few entries in a hundred stand elsewhere.
//!
//! A reader notes the head, takes the entry, copies, and compares the head again (a sequence lock).
//! A writer of entries, or of the bytes of a buffer, makes the version odd first.

use super::{BLOCK_BITS, Entry, Index, Lookup, spread};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use ugeom_machine::prefetch::prefetch;
use ugeom_machine::slab::{Slab, Words};

const ENTRIES: usize = 7;
/// Lines that help each other out. With four buffers a line a group holds 64 on average, with a
/// standard deviation of 8, and has room for 112: six deviations more.
const GROUP: u64 = 16;
/// Buffers a line, at most.
const BUFFERS_PER_LINE: u32 = 4;

const REACH: u64 = GROUP - 1;
const CHANGING: u64 = 1 << 4;
const VERSION: u64 = 1 << 5;

const BUSY: u64 = 1;
const STALE: u64 = 1 << 1;
const DISPLACEMENT_SHIFT: u32 = 2;
const USED: u64 = 1 << 7;
const SLOT_SHIFT: u32 = 8;

/// How often a search looks again at a line that is being changed before it says so.
const RETRIES_MAX: usize = 64;

/// Words of a line: 64 bytes.
const LINE_WORDS: usize = 1 + ENTRIES;

/// A line of the index.
#[derive(Clone, Copy)]
struct Line<'a> {
    head: &'a AtomicU64,
    entries: &'a [AtomicU64; ENTRIES],
}

/// A line, and its version.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    line: u32,
    head: u64,
}

/// The hash index: lines of entries with a version each, which readers look up without a lock.
pub struct Hash {
    /// The lines, one behind the other, from the beginning of a page.
    words: Words,
    line_bits: u32,
    slot_mask: u64,
    /// The bits of an entry that name its block.
    identity: u64,
}

/// Where the search for a block begins, and what its entry must look like there.
struct Target {
    home: u64,
    wanted: u64,
}

impl Hash {
    #[inline]
    fn line(&self, number: u64) -> Line<'_> {
        let (lines, _) = self.words.as_chunks::<LINE_WORDS>();
        let [head, entries @ ..] = &lines[number as usize];
        Line { head, entries }
    }

    #[inline]
    fn target(&self, block: u64) -> Target {
        let spread = spread(block);
        Target {
            home: spread >> (u64::BITS - self.line_bits),
            wanted: (spread << self.line_bits) | USED,
        }
    }

    #[inline]
    fn entry(&self, word: u64) -> Entry {
        Entry {
            slot: ((word >> SLOT_SHIFT) & self.slot_mask) as u32,
            busy: word & BUSY != 0,
            stale: word & STALE != 0,
        }
    }

    /// The entry of a line that is `wanted`; 0 when there is none.
    #[inline]
    fn search(&self, line: Line<'_>, wanted: u64) -> u64 {
        // All entries are compared, without a branch for each: which of them it is cannot be
        // predicted, and a wrong prediction costs more than all comparisons.
        let mut found = 0;
        for entry in line.entries {
            let word = entry.load(Ordering::Acquire);
            if word & self.identity == wanted {
                found = word;
            }
        }
        found
    }

    /// Searches the home line, and its neighbours as far as its entries reach: the line, its head
    /// before the search, and the entry.
    #[inline]
    fn locate(&self, target: &Target) -> Option<(u64, u64, u64)> {
        let line = self.line(target.home);
        let head = line.head.load(Ordering::Acquire);
        let word = self.search(line, target.wanted);
        if word != 0 {
            return Some((target.home, head, word));
        }
        self.locate_displaced(target)
    }

    #[cold]
    fn locate_displaced(&self, target: &Target) -> Option<(u64, u64, u64)> {
        let head = self.line(target.home).head;
        let reach = head.load(Ordering::Acquire) & REACH;
        (1..=reach).find_map(|away| {
            let wanted = target.wanted | (away << DISPLACEMENT_SHIFT);
            let number = target.home ^ away;
            let line = self.line(number);
            let head = line.head.load(Ordering::Acquire);
            let word = self.search(line, wanted);
            (word != 0).then_some((number, head, word))
        })
    }

    /// The same for a writer of entries, whose shard is locked: the line, the entry's place, and
    /// what stands there.
    #[inline]
    fn own(&self, target: &Target) -> Option<(u64, &AtomicU64, u64)> {
        if let Some((entry, word)) = self.position(target.home, target.wanted) {
            return Some((target.home, entry, word));
        }
        self.own_displaced(target)
    }

    #[cold]
    fn own_displaced(&self, target: &Target) -> Option<(u64, &AtomicU64, u64)> {
        let head = self.line(target.home).head;
        let reach = head.load(Ordering::Relaxed) & REACH;
        (1..=reach).find_map(|away| {
            let number = target.home ^ away;
            let wanted = target.wanted | (away << DISPLACEMENT_SHIFT);
            let (entry, word) = self.position(number, wanted)?;
            Some((number, entry, word))
        })
    }

    #[inline]
    fn position(&self, line: u64, wanted: u64) -> Option<(&AtomicU64, u64)> {
        let line = self.line(line);
        // As in `search`, without a branch for each.
        let (mut place, mut found) = (0, 0);
        for (at, entry) in line.entries.iter().enumerate() {
            let word = entry.load(Ordering::Relaxed);
            if word & self.identity == wanted {
                (place, found) = (at, word);
            }
        }
        (found != 0).then(|| (&line.entries[place], found))
    }

    /// Makes a line's version odd while `with` changes it.
    fn change<R>(&self, line: u64, with: impl FnOnce(Line<'_>) -> R) -> R {
        let line = self.line(line);
        let head = line.head.load(Ordering::Relaxed);
        line.head.store(head | CHANGING, Ordering::Relaxed);
        // Orders the odd version before every store that follows, also those to the buffer later
        // on.
        fence(Ordering::Release);
        let result = with(line);
        let reach = line.head.load(Ordering::Relaxed) & REACH;
        let next = (head & !(CHANGING | REACH)).wrapping_add(VERSION) | reach;
        line.head.store(next, Ordering::Release);
        result
    }

    /// After an entry `away` from its home has gone: how far the others still reach.
    fn shorten_reach(&self, home: u64, away: u64) {
        let line = self.line(home);
        let reach = line.head.load(Ordering::Relaxed) & REACH;
        if away == 0 || away < reach {
            return;
        }
        let stands = |away: &u64| {
            let other = self.line(home ^ away);
            let displaced = USED | (away << DISPLACEMENT_SHIFT);
            let mask = USED | (REACH << DISPLACEMENT_SHIFT);
            let mut words = other
                .entries
                .iter()
                .map(|entry| entry.load(Ordering::Relaxed));
            words.any(|word| word & mask == displaced)
        };
        let reach = (1..=reach).rev().find(stands).unwrap_or(0);
        self.change(home, |line| {
            let head = line.head.load(Ordering::Relaxed);
            line.head.store((head & !REACH) | reach, Ordering::Relaxed);
        });
    }
}

impl Index for Hash {
    type Place = Place;
    const NAME: &'static str = "hash";

    fn new(slots: u32, shard_bits: u32) -> io::Result<Self> {
        let slots_mapped = u64::from(slots).next_power_of_two();
        let wanted = slots.div_ceil(BUFFERS_PER_LINE).next_power_of_two();
        let least = (GROUP as u32) << shard_bits;
        let lines = wanted.max(least);
        Ok(Self {
            words: Words::new(lines as usize * LINE_WORDS)?,
            line_bits: lines.trailing_zeros(),
            slot_mask: slots_mapped - 1,
            identity: !(((slots_mapped - 1) << SLOT_SHIFT) | BUSY | STALE),
        })
    }

    #[inline]
    fn find(&self, block: u64) -> Lookup<Place> {
        let target = self.target(block);
        for _ in 0..RETRIES_MAX {
            match self.locate(&target) {
                None => return Lookup::Absent,
                Some((line, head, word)) if head & CHANGING == 0 => {
                    let line = line as u32;
                    return Lookup::At(Place { line, head }, self.entry(word));
                }
                Some(_) => std::hint::spin_loop(),
            }
        }
        Lookup::Changing
    }

    #[inline]
    fn unchanged(&self, place: Place) -> bool {
        // The copy before this is done before the version is read again.
        fence(Ordering::Acquire);
        let head = self
            .line(u64::from(place.line))
            .head
            .load(Ordering::Relaxed);
        (head ^ place.head) & !REACH == 0
    }

    fn holds(&self, block: u64) -> bool {
        self.own(&self.target(block)).is_some()
    }

    fn insert(&self, block: u64, slot: u32) -> bool {
        let target = self.target(block);
        for away in 0..GROUP {
            let number = target.home ^ away;
            let words = self.line(number).entries;
            let free = words
                .iter()
                .position(|word| word.load(Ordering::Relaxed) & USED == 0);
            let Some(free) = free else { continue };
            if away > 0 {
                // A search that does not see this yet finds nothing, as before.
                let head = self.line(target.home).head;
                if head.load(Ordering::Relaxed) & REACH < away {
                    self.change(target.home, |line| {
                        let head = line.head.load(Ordering::Relaxed);
                        line.head.store((head & !REACH) | away, Ordering::Relaxed);
                    });
                }
            }
            let word = target.wanted | (away << DISPLACEMENT_SHIFT) | BUSY;
            let word = word | (u64::from(slot) << SLOT_SHIFT);
            self.change(number, |line| {
                line.entries[free].store(word, Ordering::Release)
            });
            return true;
        }
        false
    }

    fn remove(&self, block: u64) -> Option<Entry> {
        let target = self.target(block);
        let (number, entry, word) = self.own(&target)?;
        self.change(number, |_| entry.store(0, Ordering::Release));
        self.shorten_reach(target.home, target.home ^ number);
        Some(self.entry(word))
    }

    fn flag_stale(&self, block: u64) {
        // Flags change nothing that a reader copies, and what is busy has no reader, so that the
        // version stays.
        if let Some((_, entry, word)) = self.own(&self.target(block))
            && word & BUSY != 0
        {
            entry.store(word | STALE, Ordering::Release);
        }
    }

    fn publish(&self, block: u64) -> bool {
        match self.own(&self.target(block)) {
            Some((_, entry, word)) if word & STALE == 0 => {
                entry.store(word & !BUSY, Ordering::Release);
                true
            }
            _ => false,
        }
    }

    fn write(&self, block: u64, slab: &Slab, within: usize, from: &[u8]) -> bool {
        let Some((line, _, word)) = self.own(&self.target(block)) else { return false };
        let slot = self.entry(word).slot;
        self.change(line, |_| slab.copy_in(slot, within, from))
    }

    #[inline]
    fn prefetch(&self, block: u64) {
        prefetch(self.line(self.target(block).home).head);
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(&*self.words)
    }
}

const _: () = assert!(
    // The rest of a number, its slot and the flags have to fit: lines are at least a quarter of
    // the slots.
    BLOCK_BITS + 2 + SLOT_SHIFT <= u64::BITS
);

#[cfg(test)]
mod tests {
    use super::*;

    /// A full index of these blocks finds each of them, and none that has gone.
    fn holds(name: &str, blocks: &[u64], shard_bits: u32) {
        let index = Hash::new(blocks.len() as u32, shard_bits).unwrap();
        for (slot, block) in blocks.iter().enumerate() {
            assert!(index.insert(*block, slot as u32), "{name}: no room");
            assert!(index.publish(*block), "{name}");
        }
        let displaced = blocks.iter().filter(|block| {
            let target = index.target(**block);
            let (line, ..) = index.locate(&target).unwrap();
            line != target.home
        });
        let displaced = displaced.count();
        assert!(
            displaced * 10 < blocks.len(),
            "{name}: {displaced} displaced"
        );
        for (slot, block) in blocks.iter().enumerate() {
            let Lookup::At(place, entry) = index.find(*block) else {
                panic!("{name}: {block} is not there");
            };
            assert_eq!((entry.slot, entry.busy), (slot as u32, false), "{name}");
            assert!(index.unchanged(place));
            if slot % 2 == 0 {
                assert_eq!(index.remove(*block), Some(entry));
                assert!(!index.unchanged(place));
            }
        }
        for (slot, block) in blocks.iter().enumerate() {
            let there = matches!(index.find(*block), Lookup::At(..));
            assert_eq!(there, slot % 2 == 1, "{name}: {block}");
        }
    }

    #[test]
    fn every_kind_of_use_spreads_over_the_lines() {
        const COUNT: u64 = if cfg!(miri) { 1 << 8 } else { 1 << 14 };
        let mut random = fastrand::Rng::with_seed(2);
        for shard_bits in [0, 3] {
            for step in [1, 2, 7, 16, 4096, 1 << 20, (1 << 20) + 1, 1 << 35] {
                let blocks: Vec<u64> = (0..COUNT).map(|block| block * step).collect();
                holds(&format!("steps of {step}"), &blocks, shard_bits);
            }
            let mut ranges = std::collections::BTreeSet::new();
            while (ranges.len() as u64) < COUNT {
                let first = random.u64(0..1 << 40);
                ranges.extend(first..first + 100);
            }
            let ranges: Vec<u64> = ranges.into_iter().take(COUNT as usize).collect();
            holds("ranges", &ranges, shard_bits);
            let mut blocks = std::collections::BTreeSet::new();
            while (blocks.len() as u64) < COUNT {
                blocks.insert(random.u64(0..1 << BLOCK_BITS));
            }
            let mut blocks: Vec<u64> = blocks.into_iter().collect();
            random.shuffle(&mut blocks);
            holds("blocks at random", &blocks, shard_bits);
        }
    }

    #[test]
    fn what_is_stale_is_not_published_and_what_is_ready_never_gets_stale() {
        let index = Hash::new(64, 0).unwrap();
        assert!(index.insert(5, 1) && index.insert(6, 2));
        index.flag_stale(5);
        assert!(!index.publish(5));
        assert!(index.publish(6));
        index.flag_stale(6);
        assert!(matches!(index.find(6), Lookup::At(_, entry) if !entry.stale && !entry.busy));
        assert!(matches!(index.find(5), Lookup::At(_, entry) if entry.stale && entry.busy));
        assert!(!index.publish(7), "it is not there");
    }
}
