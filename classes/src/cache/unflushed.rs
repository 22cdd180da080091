//! Writes below that are not durable there yet: a word a buffer.
//!
//! ```text
//!   [ round in which it was written | 32 parts of the block ]
//! ```
//!
//! Each FLUSH below ends a round; when it succeeds, everything of that round and before is durable.
//! When the layer below has lost acknowledged writes, the parts that no FLUSH has covered are
//! dirty again, as long as they are still in memory. Evicted parts are counted.
//!
//! Words change under the lock of the block's shard.

use super::lost::Lost;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use ugeom_machine::mutex::Mutex;

/// Writes whose buffers have been reused.
#[derive(Default)]
struct Gone {
    lost: Lost,
    /// The round of the last of it.
    round: u32,
}

/// The words of all buffers.
pub struct Unflushed {
    words: Box<[AtomicU64]>,
    /// The round that is not ended.
    round: AtomicU32,
    /// The last one that is durable.
    flushed: AtomicU32,
    gone: Mutex<Gone>,
}

impl Unflushed {
    pub(super) fn new(buffers: u32) -> Self {
        Self {
            words: (0..buffers).map(|_| AtomicU64::new(0)).collect(),
            round: AtomicU32::new(1),
            flushed: AtomicU32::new(0),
            gone: Mutex::default(),
        }
    }

    fn is_durable(&self, round: u32) -> bool {
        // Rounds wrap around, and are never half of all numbers apart.
        let ahead = round.wrapping_sub(self.flushed.load(Ordering::SeqCst));
        ahead == 0 || ahead > u32::MAX / 2
    }

    fn set(&self, slot: u32, parts: u64) {
        let round = u64::from(self.round.load(Ordering::SeqCst));
        if let Some(word) = self.words.get(slot as usize) {
            word.store(round << 32 | parts, Ordering::Relaxed);
        }
    }

    /// The parts that a word names, durable or not; and those that are not.
    fn parts(&self, slot: u32) -> (u64, u64) {
        let word = self.words.get(slot as usize);
        let word = word.map_or(0, |word| word.load(Ordering::Relaxed));
        let parts = word & u64::from(u32::MAX);
        let durable = self.is_durable((word >> 32) as u32);
        (parts, if durable { 0 } else { parts })
    }

    /// Parts are on their way below, or have been written there.
    pub(super) fn add(&self, slot: u32, parts: u64) {
        let (_, open) = self.parts(slot);
        self.set(slot, open | parts);
    }

    /// The write has completed: only a FLUSH sent from now on covers it.
    pub(super) fn arrived(&self, slot: u32) {
        let (parts, _) = self.parts(slot);
        if parts != 0 {
            self.set(slot, parts);
        }
    }

    /// The parts that are not durable; the receiver is responsible for them from now on.
    pub(super) fn take(&self, slot: u32) -> u64 {
        let (_, open) = self.parts(slot);
        if let Some(word) = self.words.get(slot as usize) {
            word.store(0, Ordering::Relaxed);
        }
        open
    }

    /// The block of one buffer is in another one from now on.
    pub(super) fn moved(&self, from: u32, to: u32) {
        if let (Some(from), Some(to)) = (self.words.get(from as usize), self.words.get(to as usize))
        {
            to.store(from.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Something was written below that is not in memory, or has left it.
    pub(super) fn leaves(&self, offset: u64, bytes: u64) {
        let mut gone = self.gone.lock();
        gone.lost.add(offset, bytes);
        gone.round = self.round.load(Ordering::SeqCst);
    }

    /// A FLUSH is about to be sent below; its round.
    pub(super) fn begin_flush(&self) -> u32 {
        self.round.fetch_add(1, Ordering::SeqCst)
    }

    /// The FLUSH of this round has succeeded.
    pub(super) fn flushed(&self, round: u32) {
        let newer = |now: u32| {
            let ahead = round.wrapping_sub(now);
            (ahead != 0 && ahead <= u32::MAX / 2).then_some(round)
        };
        // None: another FLUSH that was sent later has ended before.
        let _ = self
            .flushed
            .try_update(Ordering::SeqCst, Ordering::SeqCst, newer);
        let mut gone = self.gone.lock();
        if self.is_durable(gone.round) {
            *gone = Gone::default();
        }
    }

    /// Takes the losses below whose buffers have been reused.
    pub(super) fn take_gone(&self) -> Lost {
        std::mem::take(&mut *self.gone.lock()).lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_covers_what_had_arrived_when_it_was_sent() {
        let unflushed = Unflushed::new(2);
        unflushed.add(0, 0b11);
        unflushed.arrived(0);
        unflushed.add(1, 0b100);
        let round = unflushed.begin_flush();
        unflushed.arrived(1);
        unflushed.flushed(round);
        assert_eq!((unflushed.take(0), unflushed.take(1)), (0, 0b100));
    }

    #[test]
    fn what_is_written_again_before_a_flush_is_joined_and_after_it_is_not() {
        let unflushed = Unflushed::new(1);
        unflushed.add(0, 1);
        unflushed.arrived(0);
        unflushed.add(0, 2);
        assert_eq!(unflushed.parts(0), (3, 3));
        unflushed.arrived(0);
        let round = unflushed.begin_flush();
        unflushed.flushed(round);
        unflushed.add(0, 4);
        assert_eq!(unflushed.take(0), 4);
    }

    #[test]
    fn what_has_left_is_counted_until_a_flush_covers_it() {
        let unflushed = Unflushed::new(0);
        unflushed.leaves(4096, 512);
        unflushed.leaves(1024, 512);
        let early = unflushed.begin_flush();
        unflushed.leaves(8192, 512);
        unflushed.flushed(early);
        let lost = unflushed.take_gone();
        assert_eq!((lost.first_offset, lost.bytes), (Some(1024), 1536));
        unflushed.leaves(0, 512);
        let round = unflushed.begin_flush();
        unflushed.flushed(round);
        assert_eq!(unflushed.take_gone().bytes, 0);
    }
}
