//! The blocks of a cache that writes back: written here, taken by the flusher, written past it,
//! deleted. Each step is made under the lock of the block's shard, and leaves block and word
//! agreeing: what is dirty is the latest, and the media has the latest of what is not.

use crate::cache::index::{Entry, Index, Lookup};
use crate::cache::lost::Lost;
use crate::cache::store::{Queues, Store, VACANT};
use std::sync::atomic::Ordering;

/// The result of writing a piece into a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It is there, and dirty.
    Done,
    /// The block is not there, and the piece is only a part of it.
    Absent,
    /// It is being read from below.
    Busy,
    /// A change of it is in flight below.
    Changing,
    /// As many buffers are dirty as may be.
    Full,
    /// No buffer can be had.
    NoBuffer,
    /// The media has become shorter, and ends before it.
    PastEnd,
}

impl<I: Index> Store<I> {
    /// Writes a piece into a block, and not below. `held` says how much of the block the media
    /// has, bytes.
    pub fn put(&self, block: u64, within: usize, piece: &[u8], held: impl Fn() -> u64) -> Put {
        let mut queues = self.lock(block);
        let held = held() as usize;
        if within + piece.len() > held {
            return Put::PastEnd;
        }
        if self.writers.is_changing(block) {
            return Put::Changing;
        }
        let parts = self.dirty.touched(within, piece.len());
        match self.index.find(block) {
            Lookup::Changing => Put::Busy,
            Lookup::At(_, entry) if entry.busy => Put::Busy,
            Lookup::At(_, entry) => {
                let clean = self.dirty.word(entry.slot).is_clean();
                if clean && !self.dirty.reserve() {
                    return Put::Full;
                }
                let Some(slot) = self.change(&mut queues, block, entry.slot, within, piece) else {
                    if clean {
                        self.dirty.unreserve();
                    }
                    return Put::NoBuffer;
                };
                self.dirty.word(slot).add(parts);
                self.mark(block, slot);
                Put::Done
            }
            Lookup::Absent if piece.len() < held => Put::Absent,
            Lookup::Absent if !self.dirty.reserve() => Put::Full,
            Lookup::Absent => match self.bring(&mut queues, block, piece) {
                Some(slot) => {
                    self.dirty.word(slot).add(parts);
                    Put::Done
                }
                None => {
                    self.dirty.unreserve();
                    Put::NoBuffer
                }
            },
        }
    }

    /// Changes the bytes of a block that is there. When its buffer is leased, the readers keep it
    /// as it is, and the block moves to another: which. `None` when no buffer can be had.
    fn change(
        &self,
        queues: &mut Queues,
        block: u64,
        slot: u32,
        within: usize,
        piece: &[u8],
    ) -> Option<u32> {
        if self.index.write(block, self.slab(), within, piece) {
            return Some(slot);
        }
        let other = self.take(queues, block)?;
        let mut bytes = vec![0; self.slab().block_bytes()];
        self.copyout(slot, 0, &mut bytes);
        bytes[within..within + piece.len()].copy_from_slice(piece);
        let copied = self.slab().copy_in(other, 0, &bytes);
        if !copied {
            queues.free.push(other);
            return None;
        }
        self.index.remove(block);
        self.keys[slot as usize].store(VACANT, Ordering::Relaxed);
        // Where the entry was, there is room for it now.
        let entered = self.index.insert(block, other);
        debug_assert!(entered, "an entry was just taken out");
        self.enter(queues, block, other);
        self.dirty.moved(slot, other);
        Some(other)
    }

    /// The entry of a block, when it is not being read.
    fn ready(&self, block: u64) -> Option<Entry> {
        match self.index.find(block) {
            Lookup::At(_, entry) if !entry.busy => Some(entry),
            _ => None,
        }
    }

    /// The buffer that a block is being read into.
    pub(super) fn buffer_of_read(&self, block: u64) -> Option<u32> {
        let _queues = self.lock(block);
        match self.index.find(block) {
            Lookup::At(_, entry) if entry.busy => Some(entry.slot),
            _ => None,
        }
    }

    /// Reads a block under its lock, so that no writer can be in the way for ever; false when it
    /// is not there, or being read.
    pub(in crate::cache) fn read_locked(&self, block: u64, copy: impl FnOnce(u32)) -> bool {
        let _queues = self.lock(block);
        let entry = self.ready(block);
        if let Some(entry) = entry {
            copy(entry.slot);
        }
        entry.is_some()
    }

    /// The numbers of all blocks that are dirty or being cleaned, in order.
    pub(super) fn dirty_blocks(&self, into: &mut Vec<u64>) {
        into.clear();
        self.dirty.each(|slot| {
            let block = self.keys[slot as usize].load(Ordering::Relaxed);
            if block != VACANT {
                into.push(block);
            }
        });
        into.sort_unstable();
        into.dedup();
    }

    /// Takes the dirty parts of a block to be written below: `with` gets the buffer and the parts
    /// and copies them. The block's range is entered among the writers.
    pub(super) fn begin_cleaning(&self, block: u64, with: impl FnOnce(u32, u64)) {
        let _queues = self.lock(block);
        let Some(entry) = self.ready(block) else { return };
        let word = self.dirty.word(entry.slot);
        if word.parts() != 0 {
            let parts = word.begin_cleaning();
            self.dirty.unflushed.add(entry.slot, parts);
            with(entry.slot, parts);
        }
    }

    /// It is below, but for the parts that failed; false when the block is gone.
    pub(super) fn end_cleaning(&self, block: u64, failed: u64) -> bool {
        let _queues = self.lock(block);
        let Some(entry) = self.ready(block) else { return false };
        let word = self.dirty.word(entry.slot);
        if word.is_cleaning() {
            word.end_cleaning(failed);
            self.dirty.unflushed.arrived(entry.slot);
        }
        true
    }

    /// A piece has been written below, past the flusher, and perhaps durably; false when the block
    /// could not be made to agree now, and has to be asked again. `held` says how much of the block
    /// the media has, bytes.
    pub(super) fn wrote_below(
        &self,
        block: u64,
        (within, piece): (usize, &[u8]),
        held: usize,
        durable: bool,
    ) -> bool {
        let mut queues = self.lock(block);
        let parts = self.dirty.touched(within, piece.len());
        let mut kept = None;
        match self.index.find(block) {
            Lookup::At(_, entry) if entry.busy => self.flag_stale(block),
            Lookup::At(_, entry) if self.dirty.word(entry.slot).is_clean() => {
                if self.index.write(block, self.slab(), within, piece) {
                    kept = Some(entry.slot);
                } else {
                    self.drop_locked(block);
                }
            }
            Lookup::At(_, entry) => {
                let Some(slot) = self.change(&mut queues, block, entry.slot, within, piece) else {
                    return false;
                };
                let covered = self.dirty.covered(within, piece.len(), held);
                self.dirty.word(slot).remove(covered);
                kept = Some(slot);
            }
            Lookup::Absent if piece.len() >= held => {
                kept = self.bring(&mut queues, block, piece);
            }
            Lookup::Absent | Lookup::Changing => {}
        }
        match kept {
            _ if durable => {}
            Some(slot) => self.dirty.unflushed.add(slot, parts),
            None => {
                let start = block * self.slab().block_bytes() as u64;
                let (offset, bytes) = (start + within as u64, piece.len() as u64);
                self.dirty.unflushed.leaves(offset, bytes);
            }
        }
        true
    }

    /// The contents of a range of the media are unknown after a failed change. Clean blocks are
    /// read again. A block with something dirty in it stays, and the range is written with it, so
    /// that the media holds the data that is read here.
    pub(super) fn is_uncertain(&self, block: u64, within: usize, length: usize) {
        let _queues = self.lock(block);
        match self.ready(block) {
            Some(entry) if !self.dirty.word(entry.slot).is_clean() => {
                let parts = self.dirty.touched(within, length);
                self.dirty.word(entry.slot).add(parts);
            }
            _ => self.drop_locked(block),
        }
    }

    /// A range is deleted below: its blocks are dropped, dirty parts included.
    pub(super) fn forget_range(&self, first: u64, last: u64) {
        self.each_cached(first, last, |block| {
            let _queues = self.lock(block);
            self.forget(block);
        });
    }

    /// Drops a block with its dirty parts and the read in flight. It is locked.
    fn forget(&self, block: u64) {
        if let Some(entry) = self.ready(block) {
            self.dirty.word(entry.slot).clear();
            // Its result is no longer wanted.
            let _ = self.dirty.unflushed.take(entry.slot);
        }
        self.drop_locked(block);
    }

    /// The layer below has lost acknowledged writes: blocks that no FLUSH has covered are dirty
    /// again. Returns those that are not here any more.
    pub(super) fn dirty_again(&self) -> Lost {
        for slot in 0..self.dirty.slots() {
            let block = self.keys[slot as usize].load(Ordering::Relaxed);
            if block < VACANT - 1 {
                self.dirty_again_in(block, slot);
            }
        }
        self.dirty.unflushed.take_gone()
    }

    fn dirty_again_in(&self, block: u64, slot: u32) {
        let _queues = self.lock(block);
        if self.ready(block).is_none_or(|entry| entry.slot != slot) {
            return;
        }
        let word = self.dirty.word(slot);
        if word.is_clean() && !self.dirty.reserve() {
            // As much is dirty as may be. A read from here on returns the data of the media.
            return self.drop_locked(block);
        }
        let clean = word.is_clean();
        match self.dirty.unflushed.take(slot) {
            0 if clean => self.dirty.unreserve(),
            parts => word.add(parts),
        }
    }

    /// The media has become shorter: blocks past its end are dropped. `held` says how much of
    /// a block is left, bytes.
    pub(super) fn cut(&self, first: u64, held: impl Fn(u64) -> u64) -> Lost {
        let block_bytes = self.slab().block_bytes();
        let mut lost = Lost::default();
        self.each_cached(first, VACANT - 1, |block| {
            let _queues = self.lock(block);
            let held = held(block) as usize;
            let Some(entry) = self.ready(block) else {
                self.drop_locked(block);
                return;
            };
            let word = self.dirty.word(entry.slot);
            let kept: u64 = match held {
                0 => 0,
                held => self.dirty.touched(0, held),
            };
            let gone = word.parts() & !kept;
            let offset = block * block_bytes as u64;
            let stretches = self.dirty.stretches(gone, block_bytes);
            for (at, length) in stretches {
                lost.add(offset + at as u64, length as u64);
            }
            if held == 0 {
                self.forget(block);
            } else {
                word.remove(gone);
                if word.is_clean() {
                    self.drop_locked(block);
                }
            }
        });
        lost
    }

    /// True when something of a block is not below yet.
    pub(super) fn is_dirty(&self, block: u64) -> bool {
        let _queues = self.lock(block);
        let entry = self.ready(block);
        entry.is_some_and(|entry| !self.dirty.word(entry.slot).is_clean())
    }

    /// Dirty data that will never be written.
    pub(in crate::cache) fn left_over(&self) -> Lost {
        let mut lost = Lost::default();
        let block_bytes = self.slab().block_bytes();
        self.dirty.each(|slot| {
            let block = self.keys[slot as usize].load(Ordering::Relaxed);
            let parts = self.dirty.word(slot).parts();
            if block != VACANT {
                for (at, length) in self.dirty.stretches(parts, block_bytes) {
                    let offset = block * block_bytes as u64 + at as u64;
                    lost.add(offset, length as u64);
                }
            }
        });
        lost
    }
}
