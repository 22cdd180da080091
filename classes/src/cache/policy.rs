//! The choice of the buffer to reuse: S3-FIFO.
//!
//! ```text
//!   new block --> [ small: a tenth ] -- used again meanwhile --> [ main: the rest ] --+
//!                        |                                        ^   |  marks > 0: once more
//!                        | not used: evicted, and remembered      |   v
//!                        +--> ghost (numbers only) -- read again -+  evicted
//! ```
//!
//! J. Yang, Y. Zhang, Z. Qiu, Y. Yue, R. Vinayak: "FIFO queues are all you need for cache
//! eviction", SOSP 2023. Most blocks that a scan brings are used once; they leave through the
//! small queue and never touch the main one. A hit moves nothing: it adds to the buffer's
//! marks, so that hits need no lock.

use std::collections::VecDeque;
use ugeom_machine::prefetch::prefetch;

/// The buffer's state, as far as the policy has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tenure {
    /// It holds nothing any more: take it.
    Vacant,
    /// It cannot be taken now: it is leased, or has to be written first.
    Held,
    /// It can be taken; so many marks.
    Marked(u8),
}

/// Queries of the policy about buffers.
pub trait Buffers {
    /// Whether the buffer can be taken, and how many marks it has.
    fn tenure(&self, slot: u32) -> Tenure;
    /// Leaves it with so many marks.
    fn set_marks(&mut self, slot: u32, marks: u8);
    /// Its state will be asked for soon: fetches it.
    fn expect_state(&self, slot: u32);
    /// It may leave soon: prefetches the data of that decision. Its state was expected before.
    fn expect(&self, slot: u32);
    /// The block that it holds, spread ([`super::index::spread`]).
    fn fingerprint(&self, slot: u32) -> u64;
}

/// The fate of the first buffer of a queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tried {
    /// It is the one to use.
    Taken(u32),
    /// It cannot be taken now.
    Held,
    /// It has another chance.
    Later,
}

/// The queues of one shard.
pub struct S3Fifo {
    small: VecDeque<u32>,
    main: VecDeque<u32>,
    ghost: Ghost,
    /// The part of all buffers that the small queue may keep, in 1/65536.
    small_share: usize,
}

/// The whole, of which the small queue has a share.
const WHOLE: usize = 1 << 16;
/// A tenth, as the paper has it: where it begins, and the most.
const SMALL_SHARE: usize = WHOLE / 10;
/// A hundredth, as W-TinyLFU has it: the least.
const SMALL_SHARE_MIN: usize = WHOLE / 100;
/// How much a block that comes back too late, and is not taken, takes from the share; and a block
/// that is used again in the small queue adds to it. A hundred of them go all the way: a loop shows
/// itself in its second round.
const SHARE_STEP: usize = 64;
/// As many times as there are buffers, blocks that left are remembered. A loop that begins while
/// others have the main queue comes back after its whole length, which is more than the buffers.
const REMEMBERED: usize = 2;
/// Marks with which a block moves from the small queue to the main one.
const PROMOTED_FROM: u8 = 1;

impl S3Fifo {
    /// Queues for about `slots` buffers.
    pub fn new(slots: usize) -> Self {
        Self {
            small: VecDeque::with_capacity(slots / 4 + 8),
            main: VecDeque::with_capacity(slots + slots / 16 + 8),
            ghost: Ghost::new(REMEMBERED * slots),
            small_share: SMALL_SHARE,
        }
    }

    /// A block has come into a buffer.
    ///
    /// One that was here lately may enter the main queue, if that has a block to give up: one that
    /// was not used since the queue looked at it. Otherwise all that is there is used as often as
    /// the newcomer, as in a loop over more than fits, and to exchange one for the other helps
    /// none.
    pub fn insert(&mut self, slot: u32, fingerprint: u64, buffers: &mut impl Buffers) {
        if self.ghost.take(fingerprint) && self.admits(buffers) {
            self.main.push_back(slot);
        } else {
            self.small.push_back(slot);
        }
    }

    /// The block of the main queue that would leave next is asked for a mark. It gives one up when
    /// it has some, so that a set which was used once does not stay for ever; and the main queue
    /// grows at the cost of the small one, which has kept nothing for long enough.
    fn admits(&mut self, buffers: &mut impl Buffers) -> bool {
        let Some(first) = self.main.front().copied() else { return true };
        match buffers.tenure(first) {
            Tenure::Marked(marks) if marks > 0 => {
                buffers.set_marks(first, marks - 1);
                self.main.rotate_left(1);
                self.small_share = (self.small_share - SHARE_STEP).max(SMALL_SHARE_MIN);
                self.small_is_full()
            }
            _ => true,
        }
    }

    /// A block will come into a buffer soon: asks for the memory that will be looked at then.
    pub fn expect(&self, fingerprint: u64) {
        self.ghost.expect(fingerprint);
    }

    /// The same for the buffers that will be looked at next for a victim. They lie far apart, and
    /// until one is needed they may have arrived: the state of those that are second to the
    /// next one, and what the state of the next one, which has arrived, leads to.
    pub(crate) fn expect_victims(&self, buffers: &impl Buffers) {
        for queue in [&self.small, &self.main] {
            if let Some(slot) = queue.get(1) {
                buffers.expect_state(*slot);
            }
            if let Some(slot) = queue.front() {
                buffers.expect(*slot);
                self.ghost.expect(buffers.fingerprint(*slot));
            }
        }
    }

    /// A buffer to use again, taken out of its queue; `None` when all are held.
    pub fn victim(&mut self, buffers: &mut impl Buffers) -> Option<u32> {
        // Each buffer of the main queue gives up its marks, at most three, before one is taken.
        let mut tries = 5 * (self.small.len() + self.main.len());
        // When all of one queue is held, the other has to do.
        let (mut held_small, mut held_main) = (0, 0);
        while tries > 0 {
            tries -= 1;
            let none_small = held_small >= self.small.len();
            let none_main = held_main >= self.main.len();
            let tried = if (self.small_is_full() && !none_small) || none_main {
                let tried = self.try_small(buffers);
                held_small += usize::from(tried == Tried::Held);
                tried
            } else {
                let tried = self.try_main(buffers);
                held_main += usize::from(tried == Tried::Held);
                tried
            };
            if let Tried::Taken(slot) = tried {
                return Some(slot);
            }
        }
        None
    }

    fn small_is_full(&self) -> bool {
        let resident = self.small.len() + self.main.len();
        self.small.len() > resident * self.small_share / WHOLE
    }

    fn try_small(&mut self, buffers: &mut impl Buffers) -> Tried {
        let Some(slot) = self.small.pop_front() else {
            return Tried::Held;
        };
        match buffers.tenure(slot) {
            Tenure::Vacant => Tried::Taken(slot),
            Tenure::Held => {
                self.small.push_back(slot);
                Tried::Held
            }
            Tenure::Marked(marks) if marks >= PROMOTED_FROM => {
                buffers.set_marks(slot, 0);
                self.main.push_back(slot);
                self.small_share = (self.small_share + SHARE_STEP).min(SMALL_SHARE);
                Tried::Later
            }
            Tenure::Marked(_) => {
                self.ghost.put(buffers.fingerprint(slot));
                Tried::Taken(slot)
            }
        }
    }

    fn try_main(&mut self, buffers: &mut impl Buffers) -> Tried {
        let Some(slot) = self.main.pop_front() else {
            return Tried::Held;
        };
        match buffers.tenure(slot) {
            Tenure::Vacant | Tenure::Marked(0) => Tried::Taken(slot),
            Tenure::Held => {
                self.main.push_back(slot);
                Tried::Held
            }
            Tenure::Marked(marks) => {
                buffers.set_marks(slot, marks - 1);
                self.main.push_back(slot);
                Tried::Later
            }
        }
    }

    /// Memory that it takes, bytes.
    pub fn memory_bytes(&self) -> usize {
        let queues = self.small.capacity() + self.main.capacity();
        queues * size_of::<u32>() + size_of_val(&*self.ghost.sets)
    }
}

/// Numbers of blocks that were evicted lately: a table of places of 32 bits, four to a set. Each
/// holds 20 bits of a fingerprint and when it was put there; a wrong match is one in 2^18, and all
/// it does is to take a block for one that was here before.
struct Ghost {
    sets: Box<[Set]>,
    set_bits: u32,
    /// The time, in 1/64 of the memory; 0 stands for a free place.
    now: u32,
    /// How many are put in a unit of time, and how many more in this one.
    unit: u32,
    left: u32,
}

const WAYS: usize = 4;
type Set = [u32; WAYS];
const TAG_BITS: u32 = 20;
/// Time is counted in parts of the memory.
const EPOCHS: u32 = 64;
const EPOCH_MASK: u32 = (1 << (32 - TAG_BITS)) - 1;

impl Ghost {
    fn new(memory: usize) -> Self {
        let unit = (memory as u32).div_ceil(EPOCHS).max(1);
        let sets = memory.div_ceil(WAYS).next_power_of_two().max(4);
        Self {
            sets: vec![[0; WAYS]; sets].into_boxed_slice(),
            set_bits: sets.trailing_zeros(),
            now: 1,
            unit,
            left: unit,
        }
    }

    fn expect(&self, fingerprint: u64) {
        prefetch(&self.sets[self.place(fingerprint).0]);
    }

    /// The set of a block, and its tag.
    fn place(&self, fingerprint: u64) -> (usize, u32) {
        // The highest bits of the fingerprint chose the shard, and the lowest are worth little.
        let mixed = (fingerprint ^ (fingerprint >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let set = mixed >> (u64::BITS - self.set_bits);
        let tag = (mixed >> 12) as u32 >> (u32::BITS - TAG_BITS);
        (set as usize, tag)
    }

    /// How long ago a place was filled, in units; more than any time for one that is free. Times
    /// go round, and 0 is none of them, which makes one of those that went round a unit older.
    #[inline]
    fn age(now: u32, place: u32) -> u32 {
        match place & EPOCH_MASK {
            0 => u32::MAX,
            then => now.wrapping_sub(then) & EPOCH_MASK,
        }
    }

    fn put(&mut self, fingerprint: u64) {
        let (set, tag) = self.place(fingerprint);
        let (set, now) = (&mut self.sets[set], self.now);
        // Without branches: which of them is the oldest cannot be predicted.
        let older = |a: usize, b: usize| {
            let is_older = Self::age(now, set[b]) > Self::age(now, set[a]);
            if is_older { b } else { a }
        };
        let oldest = older(older(0, 1), older(2, 3));
        set[oldest] = (tag << (32 - TAG_BITS)) | now;
        self.left -= 1;
        if self.left == 0 {
            self.left = self.unit;
            self.now = self.now % EPOCH_MASK + 1;
        }
    }

    /// True when the block is remembered; it is forgotten then.
    fn take(&mut self, fingerprint: u64) -> bool {
        let (set, tag) = self.place(fingerprint);
        let set = &mut self.sets[set];
        let is_it = |place: &&mut u32| {
            let place = **place;
            place >> (32 - TAG_BITS) == tag && place & EPOCH_MASK != 0
        };
        let Some(place) = set.iter_mut().find(is_it) else { return false };
        let age = Self::age(self.now, *place);
        *place = 0;
        age <= EPOCHS
    }
}
