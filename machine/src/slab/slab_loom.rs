//! Leases against eviction under every interleaving that matters, as the model checker loom
//! enumerates them: `RUSTFLAGS="--cfg loom" cargo test -p ugeom-machine --release slab_loom`.
//!
//! The states are those of the slab. Around them stands what a cache does: a line of its index with
//! a version (odd while it changes) and the entry of the block in the buffer. A reader finds the
//! entry, leases the buffer, and keeps the lease only when the version is what it was. An evicting
//! thread takes the entry out, enters another block as busy, fills the buffer, and makes it known.

use super::state::State;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use loom::thread;

const BUSY: u64 = 1 << 32;
/// The blocks, and the content of the buffer of each.
const OLD: u64 = 1;
const NEW: u64 = 2;

/// A buffer that holds a block, and where it is found.
struct Shared {
    version: AtomicU32,
    entry: AtomicU64,
    state: State,
    /// loom reports an access during a write, or one that is not ordered after it.
    bytes: UnsafeCell<u64>,
}

// SAFETY: `bytes` is what the model is about: loom checks each access to it.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    fn holding(block: u64) -> Arc<Self> {
        Arc::new(Self {
            version: AtomicU32::new(0),
            entry: AtomicU64::new(block),
            state: State::new(),
            bytes: UnsafeCell::new(block),
        })
    }

    fn change(&self, with: impl FnOnce()) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version | 1, Ordering::Relaxed);
        fence(Ordering::Release);
        with();
        self.version.store(version + 2, Ordering::Release);
    }

    /// Leases the buffer of a block if it is there: true when the lease was had. While it lives,
    /// the bytes are that block's.
    fn lease(&self, block: u64) -> bool {
        let version = self.version.load(Ordering::Acquire);
        let entry = self.entry.load(Ordering::Acquire);
        if version & 1 != 0 || entry != block || !self.state.lease() {
            return false;
        }
        fence(Ordering::Acquire);
        let unchanged = self.version.load(Ordering::Relaxed) == version;
        if unchanged {
            // SAFETY: loom's own check is what this is for.
            let seen = self.bytes.with(|bytes| unsafe { *bytes });
            assert_eq!(seen, block, "the bytes of another block");
        }
        self.state.end_lease();
        unchanged
    }

    fn write(&self, block: u64) {
        // SAFETY: loom's own check is what this is for.
        self.bytes.with_mut(|bytes| unsafe { *bytes = block });
    }

    /// Puts the new block in the place of the old one; false when the buffer is held.
    fn replace(&self) -> bool {
        if self.state.is_held() {
            return false;
        }
        self.change(|| self.entry.store(0, Ordering::Release));
        self.change(|| self.entry.store(NEW | BUSY, Ordering::Release));
        // A reader may have leased it since, and will see that the version has changed.
        if !self.state.take() {
            self.change(|| self.entry.store(0, Ordering::Release));
            return false;
        }
        self.write(NEW);
        self.state.give_back();
        self.entry.store(NEW, Ordering::Release);
        true
    }

    /// Writes the same block again, unless the buffer is held.
    fn overwrite(&self) {
        self.change(|| {
            if self.state.take() {
                self.write(OLD);
                self.state.give_back();
            }
        });
    }
}

#[test]
fn loom_a_leased_buffer_is_not_filled_with_another_block() {
    loom::model(|| {
        let shared = Shared::holding(OLD);
        let reader = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                shared.lease(OLD);
                shared.lease(NEW);
            }
        });
        let replaced = shared.replace();
        reader.join().expect("the reader");
        assert!(!shared.state.is_held(), "all of it was given back");
        assert_eq!(shared.lease(NEW), replaced);
    });
}

#[test]
fn loom_several_readers_lease_one_buffer_and_the_last_one_frees_it() {
    let mut model = loom::model::Builder::new();
    // With three it takes most of a minute.
    model.preemption_bound = Some(2);
    model.check(|| {
        let shared = Shared::holding(OLD);
        let readers = [OLD, OLD].map(|block| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.lease(block))
        });
        let replaced = shared.replace();
        for reader in readers {
            reader.join().expect("a reader");
        }
        assert!(!shared.state.is_held());
        assert_eq!(shared.lease(NEW), replaced);
    });
}

#[test]
fn loom_a_leased_buffer_is_not_overwritten() {
    loom::model(|| {
        let shared = Shared::holding(OLD);
        let reader = thread::spawn({
            let shared = Arc::clone(&shared);
            move || shared.lease(OLD)
        });
        shared.overwrite();
        reader.join().expect("the reader");
        assert!(!shared.state.is_held());
        assert!(shared.lease(OLD));
    });
}
