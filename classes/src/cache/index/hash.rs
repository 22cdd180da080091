//! The hash index: a block is found with one cache line, without a lock.
//!
//! ```text
//!   a line, 64 bytes:   [ head | entry | entry | entry | entry | entry | entry | entry ]
//!   head:   version ........................................ | changing | reach (4)
//!   entry:  rest of the block number | slot | used | displacement (4) | stale | busy
//! ```
//!
//! The spread block number chooses a line; what is left of it is kept in the entry, so that the
//! comparison is exact and no second line is needed. A line that is full passes entries on to its
//! fifteen neighbours (line ^ 1, ^ 2, ...); its `reach` says how far a search has to go. There are
//! two to four buffers a line, so a few entries in a hundred stand elsewhere.
//!
//! A reader notes the head, takes the entry, copies, and compares the head again (a sequence lock).
//! Who changes entries, or the bytes of a buffer, makes the version odd first.

use super::{BLOCK_BITS, Entry, Found, Index, spread};
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
const PATIENCE: usize = 64;

/// Words of a line: 64 bytes.
const LINE_WORDS: usize = 1 + ENTRIES;

/// A line of the index.
#[derive(Clone, Copy)]
struct Line<'a> {
    head: &'a AtomicU64,
    entries: &'a [AtomicU64],
}

/// Where an entry stands, and the version of its line.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    line: u32,
    entry: u32,
    head: u64,
    word: u64,
}

/// The index.
pub struct Hash {
    /// The lines, one behind the other, from the beginning of a page.
    words: Words,
    line_bits: u32,
    slot_bits: u32,
    shard_bits: u32,
}

/// Where the search for a block begins, and what its entry must look like there.
struct Target {
    home: u64,
    wanted: u64,
}

impl Hash {
    #[inline]
    fn line(&self, number: u64) -> Line<'_> {
        let from = number as usize * LINE_WORDS;
        let words = &self.words[from..from + LINE_WORDS];
        Line {
            head: &words[0],
            entries: &words[1..],
        }
    }

    #[inline]
    fn target(&self, block: u64) -> Target {
        let spread = spread(block);
        let inner_bits = self.line_bits - self.shard_bits;
        // The low bits are the shard's (see `buffers`); a shard's lines lie side by side.
        let shard = spread & ((1 << self.shard_bits) - 1);
        let inner = (spread >> self.shard_bits) & ((1 << inner_bits) - 1);
        let rest = spread >> self.line_bits;
        Target {
            home: (shard << inner_bits) | inner,
            wanted: (rest << (SLOT_SHIFT + self.slot_bits)) | USED,
        }
    }

    /// The bits of an entry that name its block.
    #[inline]
    fn identity(&self) -> u64 {
        let slot = ((1 << self.slot_bits) - 1) << SLOT_SHIFT;
        !(slot | BUSY | STALE)
    }

    #[inline]
    fn entry(&self, word: u64) -> Entry {
        Entry {
            slot: ((word >> SLOT_SHIFT) & ((1 << self.slot_bits) - 1)) as u32,
            busy: word & BUSY != 0,
            stale: word & STALE != 0,
        }
    }

    /// One line's place with the entry that is `wanted`.
    #[inline]
    fn search(&self, number: u64, wanted: u64) -> Option<Place> {
        let line = self.line(number);
        let head = line.head.load(Ordering::Acquire);
        let identity = self.identity();
        // All entries are compared, without a branch for each: which of them it is cannot be
        // predicted, and a wrong prediction costs more than all comparisons.
        let mut equal = 0_u32;
        for (at, entry) in line.entries.iter().enumerate() {
            let word = entry.load(Ordering::Acquire);
            equal |= u32::from(word & identity == wanted) << at;
        }
        if equal == 0 {
            return None;
        }
        let entry = equal.trailing_zeros();
        // It may have changed since it was compared; the version tells.
        let word = line.entries[entry as usize].load(Ordering::Acquire);
        Some(Place {
            line: number as u32,
            entry,
            head,
            word,
        })
    }

    /// Searches the home line, and its neighbours as far as its entries reach.
    #[inline]
    fn locate(&self, target: &Target) -> Option<Place> {
        if let Some(place) = self.search(target.home, target.wanted) {
            return Some(place);
        }
        let head = self.line(target.home).head;
        let reach = head.load(Ordering::Acquire) & REACH;
        (1..=reach).find_map(|away| {
            let wanted = target.wanted | (away << DISPLACEMENT_SHIFT);
            self.search(target.home ^ away, wanted)
        })
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
        let slot_bits = slots.next_power_of_two().trailing_zeros();
        let wanted = slots.div_ceil(BUFFERS_PER_LINE).next_power_of_two();
        let least = (GROUP as u32) << shard_bits;
        let lines = wanted.max(least);
        Ok(Self {
            words: Words::new(lines as usize * LINE_WORDS)?,
            line_bits: lines.trailing_zeros(),
            slot_bits,
            shard_bits,
        })
    }

    #[inline]
    fn find(&self, block: u64) -> Found<Place> {
        let target = self.target(block);
        for _ in 0..PATIENCE {
            match self.locate(&target) {
                None => return Found::Absent,
                Some(place) if place.head & CHANGING == 0 => {
                    return Found::At(place, self.entry(place.word));
                }
                Some(_) => std::hint::spin_loop(),
            }
        }
        Found::Changing
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
        let place = self.locate(&target)?;
        let entry = self.entry(place.word);
        self.change(u64::from(place.line), |line| {
            line.entries[place.entry as usize].store(0, Ordering::Release);
        });
        self.shorten_reach(target.home, target.home ^ u64::from(place.line));
        Some(entry)
    }

    fn update(&self, block: u64, entry: Entry) {
        let target = self.target(block);
        let Some(place) = self.locate(&target) else {
            return;
        };
        let busy = if entry.busy { BUSY } else { 0 };
        let flags = busy | if entry.stale { STALE } else { 0 };
        let word = (place.word & !(BUSY | STALE)) | flags;
        let of_line = &self.line(u64::from(place.line)).entries[place.entry as usize];
        // Flags change nothing that a reader copies; what was busy had no reader.
        of_line.store(word, Ordering::Release);
    }

    fn write(&self, block: u64, slab: &Slab, within: usize, from: &[u8]) -> bool {
        let Some(place) = self.locate(&self.target(block)) else {
            return false;
        };
        let slot = self.entry(place.word).slot;
        self.change(u64::from(place.line), |_| slab.copy_in(slot, within, from))
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
