//! The buffers: memory, index, policy and locks, without requests. Its steps have the names that
//! the measurement of 2006 gives them, and can be called and counted one by one: [`Store::lookup`],
//! [`Store::getnewbuf`], [`Store::copyout`].
//!
//! ```text
//!   lookup ----- busy ----> wait for its reader
//!     | absent                                       hit: no lock
//!     v                                               lookup, copyout, is it unchanged? mark
//!   getnewbuf (shard locked): free, or fresh, or the policy's victim
//!     | entry, busy
//!     v
//!   read below ----> publish (shard locked): the policy learns of it
//!        | failed, or written meanwhile
//!        +---------> abandon (shard locked)
//! ```
//!
//! A shard has the blocks whose spread number begins with its own, a part of the index, and queues
//! of its own. Buffers are shared out as they are first needed and stay with their shard.

use super::Buffer;
use super::ahead::WindowQueue;
use super::counts::{Count, Lanes};
use super::dirty::Dirty;
use super::index::{Index, Lookup, shard_of, spread};
use super::policy::{Buffers, S3Fifo, Tenure};
use super::writers::Writers;
use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, MutexGuard};
use ugeom_machine::mutex::Mutex;
use ugeom_machine::prefetch::prefetch;
use ugeom_machine::slab::{Lease, Slab, Words};

/// A shard has at least so many buffers, so that its queues mean something.
const SHARD_BUFFERS: u32 = 1024;
const SHARDS_MAX: u32 = 64;
/// The key of a buffer that holds no block.
pub(super) const VACANT: u64 = u64::MAX;
/// The most marks that a buffer can have.
const MARKS_MAX: u8 = 3;
/// Stands for no mark: the block was read ahead, and not used since.
const AHEAD: u8 = 0x80;
/// The key of a buffer that was never used.
const NEVER: u64 = VACANT - 1;
/// While at most one buffer in so many holds another block than that of its own number, reads
/// guess that each does.
const STRAYS_SHARE: u32 = 16;
/// One buffer in so many may be lent to readers at the same time.
const LEASED_SHARE: u32 = 8;
const NO_GUESS: u32 = u32::MAX;
/// How often a hit is tried again when the block changes meanwhile.
const TRIES: usize = 8;

/// The result of a read of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The block was cached, and was copied to the reader.
    Hit,
    /// It is being read from below, or changed.
    Busy,
    /// It is not there.
    Absent,
}

/// The state under a shard's lock.
pub(super) struct Queues {
    policy: S3Fifo,
    pub free: Vec<u32>,
}

#[repr(align(128))]
struct Shard {
    queues: Mutex<Queues>,
}

/// The buffers of one cache.
pub struct Store<I: Index> {
    slab: Arc<Slab>,
    pub(super) index: I,
    shards: Box<[Shard]>,
    shard_bits: u32,
    /// The block in each buffer.
    pub(super) keys: Words,
    /// How often each buffer was used since the policy looked. Readers load and store: a mark that
    /// gets lost between two of them is no loss, and a hit needs no locked instruction, which
    /// would wait until the bytes that it has just copied are stored.
    marks: Box<[AtomicU8]>,
    /// Buffers below this number may never have been used.
    fresh: AtomicU32,
    /// How often a block came into another buffer than that of its own number.
    strays: AtomicU32,
    /// The read-ahead queue, if the option is on.
    pub(super) ahead: Option<Arc<WindowQueue>>,
    /// Hits, misses and the other counts.
    pub lanes: Lanes,
    /// Blocks that are being written below: no read fills them meanwhile.
    pub writers: Writers,
    /// The dirty blocks.
    pub dirty: Arc<Dirty>,
}

impl<I: Index> Store<I> {
    /// Room for `buffers` blocks of `block_bytes`.
    ///
    /// # Errors
    /// The system's error about the memory.
    pub fn new(buffers: u32, block_bytes: usize) -> io::Result<Self> {
        let shards = (buffers / SHARD_BUFFERS).clamp(1, SHARDS_MAX);
        let shard_bits = shards.ilog2();
        let shards = 1 << shard_bits;
        let each = (buffers as usize).div_ceil(shards);
        let shard = |_| Shard {
            queues: Mutex::new(Queues {
                policy: S3Fifo::new(each),
                free: Vec::with_capacity(16),
            }),
        };
        // Misses look at them all over the place, as look-ups do at the index.
        let keys = Words::new(buffers as usize)?;
        keys.iter()
            .for_each(|key| key.store(NEVER, Ordering::Relaxed));
        Ok(Self {
            slab: Slab::new(buffers, block_bytes)?,
            index: I::new(buffers, shard_bits)?,
            shards: (0..shards).map(shard).collect(),
            shard_bits,
            keys,
            marks: (0..buffers).map(|_| AtomicU8::new(0)).collect(),
            fresh: AtomicU32::new(buffers),
            strays: AtomicU32::new(0),
            ahead: None,
            lanes: Lanes::new(),
            writers: Writers::default(),
            dirty: Arc::new(Dirty::none()),
        })
    }

    /// From now on it keeps writes until they are written below.
    pub(super) fn write_back(&mut self, dirty: Dirty) {
        self.dirty = Arc::new(dirty);
    }

    /// The memory of the blocks.
    pub fn slab(&self) -> &Arc<Slab> {
        &self.slab
    }

    pub(super) fn lock(&self, block: u64) -> MutexGuard<'_, Queues> {
        let shard = shard_of(spread(block), self.shard_bits);
        self.shards[shard].queues.lock()
    }

    /// Looks a block up.
    #[inline]
    pub fn lookup(&self, block: u64) -> Lookup<I::Place> {
        self.index.find(block)
    }

    /// Copies from a place in a block out of its buffer.
    #[inline]
    pub fn copyout(&self, slot: u32, within: usize, into: &mut [u8]) {
        self.slab.copy_out(slot, within, into);
    }

    /// The buffer that probably holds a block, if it is there: that of its own number, as long as
    /// the cache has room for all that is read.
    #[inline]
    fn guess(&self, block: u64) -> u32 {
        let buffers = self.slab.blocks();
        let orderly = self.strays.load(Ordering::Relaxed) <= buffers / STRAYS_SHARE;
        if orderly && block < u64::from(buffers) {
            block as u32
        } else {
            NO_GUESS
        }
    }

    /// Reads `length` bytes at `within` of a block: lookup, then `copy` from the buffer that it
    /// names, again if the block changed meanwhile. Hits are counted.
    ///
    /// A lookup waits for memory, and so does the copy. Where the buffer can be guessed, its memory
    /// is asked for before the lookup, and the processor, which takes the guess for right until it
    /// knows, begins to copy meanwhile.
    #[inline]
    pub fn read(
        &self,
        block: u64,
        within: usize,
        length: usize,
        mut copy: impl FnMut(u32),
    ) -> Outcome {
        let guess = self.guess(block);
        if guess != NO_GUESS {
            self.index.prefetch(block);
            self.slab.expect(guess, within, length);
        }
        for _ in 0..TRIES {
            match self.lookup(block) {
                Lookup::Absent => return Outcome::Absent,
                Lookup::Changing => return Outcome::Busy,
                Lookup::At(_, entry) if entry.busy => return Outcome::Busy,
                Lookup::At(place, entry) => {
                    let slot = if entry.slot == guess {
                        // Not what the index says, for which the processor would wait: the
                        // compiler is not to know that both are the same.
                        black_box(guess)
                    } else {
                        self.slab.expect(entry.slot, within, length);
                        entry.slot
                    };
                    prefetch(&self.marks[slot as usize]);
                    copy(slot);
                    if self.index.unchanged(place) {
                        if self.lanes.hit(block) {
                            self.add_mark(block, slot);
                        }
                        return Outcome::Hit;
                    }
                }
            }
        }
        Outcome::Busy
    }

    /// Lends a piece of a block that is there, and cannot be replaced or overwritten until it is
    /// given back: a write then drops the block, and the next reader gets another buffer. `None`
    /// when it is not there, is being changed, or as much is lent as may be.
    pub fn lease(&self, block: u64, within: usize, length: usize) -> Option<Lease> {
        if self.slab.leases() >= (self.slab.blocks() / LEASED_SHARE).max(1) {
            return None;
        }
        let Lookup::At(place, entry) = self.lookup(block) else { return None };
        if entry.busy {
            return None;
        }
        let lease = self.slab.lease(entry.slot, within, length)?;
        // From here on the buffer is not filled. That it was not filled before with another block
        // is what the version says.
        if !self.index.unchanged(place) {
            return None;
        }
        self.lanes.add(Count::Leases, 1);
        if self.lanes.hit(block) {
            self.add_mark(block, entry.slot);
        }
        Some(lease)
    }

    /// A block is used.
    pub(super) fn mark(&self, block: u64, slot: u32) {
        if self.lanes.is_new_use(block) {
            self.add_mark(block, slot);
        }
    }

    #[inline]
    fn add_mark(&self, block: u64, slot: u32) {
        let marks = &self.marks[slot as usize];
        let now = marks.load(Ordering::Relaxed);
        if now == AHEAD {
            self.first_use(block, slot);
        } else if now < MARKS_MAX {
            marks.store(now + 1, Ordering::Relaxed);
        }
    }

    /// A block that was read ahead is used: that is what it was there for, and no more than a
    /// block has been used that was read after a miss.
    #[cold]
    fn first_use(&self, block: u64, slot: u32) {
        if self.marks[slot as usize].swap(0, Ordering::Relaxed) == AHEAD {
            self.lanes.add(Count::ReadAheadUsed, 1);
            if let Some(ahead) = &self.ahead {
                ahead.used(block);
            }
        }
    }

    /// A buffer loses its block.
    fn forget_marks(&self, slot: u32) {
        let marks = &self.marks[slot as usize];
        if marks.load(Ordering::Relaxed) != AHEAD {
            marks.store(0, Ordering::Relaxed);
        } else if marks.swap(0, Ordering::Relaxed) == AHEAD {
            self.lanes.add(Count::ReadAheadWasted, 1);
            if let Some(ahead) = &self.ahead {
                ahead.wasted();
            }
        }
    }

    /// Finds a buffer for a block that is not there, and enters it into the index as busy.
    pub fn getnewbuf(&self, block: u64) -> Buffer {
        self.index.prefetch(block);
        let mut queues = self.lock(block);
        queues.policy.expect(spread(block));
        if self.index.holds(block) {
            return Buffer::Present;
        }
        let Some(slot) = self.take(&mut queues, block) else {
            return Buffer::Full;
        };
        if !self.index.insert(block, slot) {
            queues.free.push(slot);
            return Buffer::Full;
        }
        self.keys[slot as usize].store(block, Ordering::Relaxed);
        if self.writers.touch(block) {
            // A read below in flight now may return old data.
            self.flag_stale(block);
        }
        Buffer::New(slot)
    }

    /// A buffer for a block: one that was never used, or is not needed, out of the queues.
    pub(super) fn take(&self, queues: &mut Queues, block: u64) -> Option<u32> {
        let unused = self.unused(block).or_else(|| self.free(queues));
        let slot = unused.or_else(|| self.evict(queues))?;
        if u64::from(slot) != block {
            // It only ever grows to where it is looked at.
            let strays = self.strays.load(Ordering::Relaxed);
            if strays <= self.slab.blocks() / STRAYS_SHARE {
                self.strays.store(strays + 1, Ordering::Relaxed);
            }
        }
        Some(slot)
    }

    /// A buffer that holds nothing and is not leased.
    fn free(&self, queues: &mut Queues) -> Option<u32> {
        let free = |slot: &u32| !self.slab.is_held(*slot);
        let at = queues.free.iter().rposition(free)?;
        Some(queues.free.swap_remove(at))
    }

    /// A buffer that was never used: that of the block's own number, or the last one that is left,
    /// so that the low numbers stay free for the blocks that have them.
    fn unused(&self, block: u64) -> Option<u32> {
        let take = |slot: u32| {
            let key = &self.keys[slot as usize];
            let taken = key.compare_exchange(NEVER, VACANT, Ordering::Relaxed, Ordering::Relaxed);
            taken.is_ok().then_some(slot)
        };
        if self.fresh.load(Ordering::Relaxed) == 0 {
            return None;
        }
        if block < u64::from(self.slab.blocks())
            && let Some(slot) = take(block as u32)
        {
            return Some(slot);
        }
        let less = |fresh: u32| fresh.checked_sub(1);
        while let Ok(before) = self
            .fresh
            .try_update(Ordering::Relaxed, Ordering::Relaxed, less)
        {
            if let Some(slot) = take(before - 1) {
                return Some(slot);
            }
        }
        None
    }

    /// The buffer that the policy gives up, without its block.
    fn evict(&self, queues: &mut Queues) -> Option<u32> {
        let slot = queues.policy.victim(&mut View(self))?;
        let key = &self.keys[slot as usize];
        // Keys of buffers that were used change under their shard's lock.
        let block = key.load(Ordering::Relaxed);
        key.store(VACANT, Ordering::Relaxed);
        if block != VACANT {
            self.leaves(block, slot);
            self.index.remove(block);
            self.forget_marks(slot);
            self.lanes.add(Count::Evictions, 1);
        }
        queues.policy.expect_victims(&View(self));
        Some(slot)
    }

    /// A block leaves its buffer.
    fn leaves(&self, block: u64, slot: u32) {
        let block_bytes = self.slab.block_bytes();
        let offset = block * block_bytes as u64;
        self.dirty.leaves(slot, offset, block_bytes);
    }

    pub(super) fn flag_stale(&self, block: u64) {
        self.index.flag_stale(block);
    }

    /// A busy block has arrived in its buffer: from now on it is found.
    pub fn publish(&self, block: u64, slot: u32) {
        self.publish_with(block, slot, 0);
    }

    /// The same for a block that was not asked for yet.
    pub(crate) fn publish_ahead(&self, block: u64, slot: u32) {
        self.publish_with(block, slot, AHEAD);
    }

    fn publish_with(&self, block: u64, slot: u32, marks: u8) {
        let mut queues = self.lock(block);
        // The marks of a block that is not found yet are not read.
        self.marks[slot as usize].store(marks, Ordering::Relaxed);
        if self.index.publish(block) {
            queues.policy.insert(slot, spread(block), &mut View(self));
        } else {
            self.marks[slot as usize].store(0, Ordering::Relaxed);
            self.give_up(&mut queues, block, slot);
        }
    }

    /// A busy block did not arrive.
    pub fn abandon(&self, block: u64, slot: u32) {
        let mut queues = self.lock(block);
        self.give_up(&mut queues, block, slot);
    }

    fn give_up(&self, queues: &mut Queues, block: u64, slot: u32) {
        self.index.remove(block);
        self.keys[slot as usize].store(VACANT, Ordering::Relaxed);
        queues.free.push(slot);
    }

    /// The cached block is out of date; a read of it that is in flight is not kept.
    pub(crate) fn drop_block(&self, block: u64) {
        let _queues = self.lock(block);
        self.drop_locked(block);
    }

    pub(super) fn drop_locked(&self, block: u64) {
        match self.index.find(block) {
            Lookup::At(_, entry) if entry.busy => self.flag_stale(block),
            Lookup::At(_, entry) => {
                self.leaves(block, entry.slot);
                self.index.remove(block);
                // The buffer stays in its queue, and is taken when its turn comes.
                self.keys[entry.slot as usize].store(VACANT, Ordering::Relaxed);
                self.forget_marks(entry.slot);
                self.lanes.add(Count::Drops, 1);
            }
            Lookup::Absent | Lookup::Changing => {}
        }
    }

    /// Does something to each block of a range that may be cached.
    pub(super) fn each_cached(&self, first: u64, last: u64, mut with: impl FnMut(u64)) {
        if last.saturating_sub(first) < u64::from(self.slab.blocks()) {
            (first..=last).for_each(with);
            return;
        }
        for key in self.keys.iter() {
            let block = key.load(Ordering::Relaxed);
            if (first..=last).contains(&block) && block < NEVER {
                with(block);
            }
        }
    }

    /// Drops all blocks of a range.
    pub(crate) fn drop_range(&self, first: u64, last: u64) {
        self.each_cached(first, last, |block| self.drop_block(block));
    }

    /// Reads of these blocks that are in flight are not to be kept: they are being written.
    pub(crate) fn reads_are_stale(&self, first: u64, last: u64) {
        self.each_cached(first, last, |block| {
            if !matches!(self.index.find(block), Lookup::Absent) {
                let _queues = self.lock(block);
                self.flag_stale(block);
            }
        });
    }

    /// A piece of a block has been written below. With `whole` it is all of the block, which is
    /// then kept even if it was not there.
    pub fn written(&self, block: u64, within: usize, piece: &[u8], whole: bool) {
        let mut queues = self.lock(block);
        match self.index.find(block) {
            Lookup::At(_, entry) if !entry.busy => {
                if !self.index.write(block, &self.slab, within, piece) {
                    // It is leased, and must not change; the next reader gets the new one.
                    self.drop_locked(block);
                }
            }
            Lookup::Absent if whole => {
                self.bring(&mut queues, block, piece);
            }
            Lookup::At(..) => self.flag_stale(block),
            Lookup::Absent | Lookup::Changing => {}
        }
    }

    /// Brings a whole block that is not there into a buffer: which; `None` when none can be had.
    pub(super) fn bring(&self, queues: &mut Queues, block: u64, bytes: &[u8]) -> Option<u32> {
        let slot = self.take(queues, block)?;
        if self.slab.copy_in(slot, 0, bytes) && self.index.insert(block, slot) {
            self.enter(queues, block, slot);
            return Some(slot);
        }
        queues.free.push(slot);
        None
    }

    /// A block that was just entered into the index, and whose buffer is filled, can be found.
    pub(super) fn enter(&self, queues: &mut Queues, block: u64, slot: u32) {
        self.keys[slot as usize].store(block, Ordering::Relaxed);
        self.marks[slot as usize].store(0, Ordering::Relaxed);
        self.index.publish(block);
        queues.policy.insert(slot, spread(block), &mut View(self));
    }

    /// Memory beyond the blocks, bytes.
    pub fn overhead_bytes(&self) -> usize {
        let queues = |shard: &Shard| {
            let queues = shard.queues.lock();
            queues.policy.memory_bytes() + queues.free.capacity() * size_of::<u32>()
        };
        let states = self.slab.blocks() as usize * (size_of::<u32>() + size_of::<u8>());
        let of_shards: usize = self.shards.iter().map(queues).sum();
        self.index.memory_bytes() + size_of_val(&*self.keys) + states + of_shards
    }
}

/// The buffers as the policy sees them.
struct View<'a, I: Index>(&'a Store<I>);

impl<I: Index> Buffers for View<'_, I> {
    fn tenure(&self, slot: u32) -> Tenure {
        if self.0.slab.is_held(slot) || self.0.dirty.holds(slot) {
            return Tenure::Held;
        }
        let block = self.0.keys[slot as usize].load(Ordering::Relaxed);
        if block == VACANT {
            return Tenure::Vacant;
        }
        Tenure::Marked(self.0.marks[slot as usize].load(Ordering::Relaxed) & !AHEAD)
    }

    fn set_marks(&mut self, slot: u32, marks: u8) {
        self.0.marks[slot as usize].store(marks, Ordering::Relaxed);
    }

    fn expect_state(&self, slot: u32) {
        prefetch(&self.0.keys[slot as usize]);
        prefetch(&self.0.marks[slot as usize]);
        self.0.slab.expect_state(slot);
        self.0.dirty.expect(slot);
    }

    fn expect(&self, slot: u32) {
        let block = self.0.keys[slot as usize].load(Ordering::Relaxed);
        if block != VACANT {
            self.0.index.prefetch(block);
        }
    }

    fn fingerprint(&self, slot: u32) -> u64 {
        spread(self.0.keys[slot as usize].load(Ordering::Relaxed))
    }
}
