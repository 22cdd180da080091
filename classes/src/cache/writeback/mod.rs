//! Writing back: a WRITE is done when it is in memory, and is written below later.
//!
//! ```text
//!   WRITE ----> put: into the block, dirty                    READ: as ever, of the block
//!     |  not there, and only a part of it: read it first (fill)
//!     |  too much is dirty: wait in `BlockedWrites`
//!     |
//!   WRITE with FUA, DELETE, ZERO --> alone on their blocks --> below --> the blocks agree
//!   ORDERED, FLUSH, EXTENTS -------> wait until all that is dirty is below --> go on
//!
//!   flusher (a thread): dirty blocks, sorted, in runs, through the cache's own consumer
//! ```
//!
//! The rules that keep it right:
//! - A block here holds the latest data; where it is not dirty, so does the media.
//! - A block that is dirty, or on its way below, stays.
//! - What is in flight below has its blocks for itself ([`super::writers`]): the flusher's writes,
//!   writes past it, and deletions never overlap, so none can land after a later one.
//! - What is below and not covered by a FLUSH there is remembered ([`unflushed`]), and is dirty
//!   again when the layer below has lost it.
//! - While a request other than the flusher's changes a block below, it is not written here.

mod blocked;
pub mod blocks;
mod flusher;
#[cfg(test)]
mod loss_tests;
#[cfg(test)]
mod other_contents;
mod report;
mod start;
mod state;
#[cfg(test)]
mod tests;
pub(super) use start::{proceed, start};

use super::dirty::Dirty;
use super::index::Index;
use super::{BackOptions, Cache};
use crate::cache::lost::Lost;
use blocked::BlockedWrites;
use flusher::Flusher;
use report::Report;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use ugeom_machine::mutex::Mutex;
use ugeom_machine::own_thread::OwnThread;
use ugeom_stack::{BioId, Fact, IoError, Losses, Lower, Unsaved};

/// The state of a cache with write-back.
pub(super) struct WriteBack {
    blocked: Arc<BlockedWrites>,
    report: Arc<Report>,
    lower: Arc<OnceLock<Lower>>,
    thread: Mutex<Option<OwnThread>>,
    /// The last loss below that was attended to.
    seen: Mutex<u64>,
}

impl WriteBack {
    /// For a cache with this account of dirty blocks.
    pub fn new(dirty: &Arc<Dirty>, options: &BackOptions, losses: &Arc<Losses>) -> Self {
        Self {
            blocked: Arc::new(BlockedWrites::new(dirty, options)),
            report: Arc::new(Report::new(&options.name, losses)),
            lower: Arc::default(),
            thread: Mutex::new(None),
            seen: Mutex::new(0),
        }
    }

    /// Starts the flusher. It holds no more than a weak reference to the cache while it waits.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn begin<I: Index>(&self, cache: &Arc<Cache<I>>) -> io::Result<()> {
        let flusher = Flusher::new(
            Arc::clone(&self.blocked),
            Arc::clone(&self.report),
            Arc::clone(&self.lower),
            Arc::downgrade(cache),
        );
        let thread = OwnThread::start("cache", move || flusher.run())?;
        *self.thread.lock() = Some(thread);
        Ok(())
    }

    /// The way to the provider below.
    pub fn attached(&self, lower: Lower) {
        // A geom is attached once.
        let _ = self.lower.set(lower);
    }

    /// Brings everything below, and flushes.
    pub fn settle(&self) -> Result<(), IoError> {
        match self.blocked.is_used() {
            true => self.blocked.settle(),
            false => Ok(()),
        }
    }

    /// A FLUSH of this round is back from below. When the layer there has lost what it had
    /// acknowledged, all that no FLUSH has covered is dirty again.
    pub fn flushed<I: Index>(&self, cache: &Cache<I>, round: u32, well: bool) {
        let mut seen = self.seen.lock();
        let last = cache.losses.last();
        // The core notes a loss with the cache before any FLUSH that came after it is let pass.
        if last <= *seen {
            if well {
                cache.store.dirty.unflushed.flushed(round);
            }
            return;
        }
        let lost = cache.store.dirty_again();
        let why = "the layer below has lost them, and they are not cached any more";
        self.report.lost_all(lost, why);
        // That is its own doing.
        *seen = cache.losses.last();
        self.blocked.written(0);
    }

    /// Lost or unwritten data.
    pub fn unsaved(&self, left_over: Lost) -> Option<Unsaved> {
        self.report.unsaved(left_over)
    }

    pub fn cancel(&self, id: BioId) {
        self.blocked.cancel(id);
    }

    /// The media below has become shorter or longer, and has `now` bytes. Returns how many the
    /// cache then shows.
    pub fn resized<I: Index>(&self, cache: &Cache<I>, before: u64, now: u64) -> u64 {
        let (end_block, within) = cache.place(before.min(now));
        if now > before && within > 0 && cache.store.is_dirty(end_block) {
            // Its buffer lacks what the media has gained, and cannot be read again before what is
            // dirty of it is below.
            return before;
        }
        cache.media_bytes.store(now, Ordering::Relaxed);
        let lost = cache.store.cut(end_block, |block| match now < before {
            true => cache.held_bytes(block),
            false => 0,
        });
        self.report.cut_off(lost, "the media has become shorter");
        now
    }

    /// The cache goes: ends the thread, and reports the data that was never written below.
    pub fn end(&mut self, left_over: Lost) {
        self.blocked.stop();
        drop(self.thread.get_mut().take());
        self.report.lost_all(left_over, "the cache is destroyed");
    }

    pub fn facts(&self) -> Vec<Fact> {
        self.report.facts()
    }
}
