//! A thread's own supply of bios: slots in chunks that never move, handed out last in, first out,
//! so that a caller with one request in flight stays in the same cache lines.
//!
//! The free ones are linked through themselves. A list beside them would be one more allocation,
//! whose end (the part that is used all the time) may share a cache line with another thread's.

use super::owned::Bio;
use super::slot::Slot;
use crate::home::Home;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Slots are made in chunks of this many.
const CHUNK_SLOTS: usize = 32;

/// The slots of one thread.
pub(crate) struct Pool {
    home: Arc<Home>,
    chunks: Vec<NonNull<[Slot]>>,
    /// The slot that was put back last, null when none is free.
    free: *mut Slot,
    free_count: usize,
    capacity: usize,
}

// SAFETY: the pool owns its chunks; the raw pointers are only an address-stable way to hold them.
// A pool moves between threads only together with the channel that owns it.
unsafe impl Send for Pool {}

impl Pool {
    /// An empty pool whose bios come home to `home`.
    pub(crate) fn new(home: Arc<Home>) -> Self {
        Self {
            home,
            chunks: Vec::new(),
            free: ptr::null_mut(),
            free_count: 0,
            capacity: 0,
        }
    }

    /// Makes sure that at least `slots` exist. The only place that allocates.
    #[cold]
    pub(crate) fn reserve(&mut self, slots: usize) {
        while self.capacity < slots {
            let chunk: Box<[Slot]> = (0..CHUNK_SLOTS)
                .map(|_| Slot::new(Arc::clone(&self.home)))
                .collect();
            let chunk = NonNull::from(Box::leak(chunk));
            self.chunks.push(chunk);
            self.capacity += CHUNK_SLOTS;
            for index in (0..CHUNK_SLOTS).rev() {
                // SAFETY: `index` is inside the chunk that was just leaked, so the address is that
                // of a live slot; no reference to the chunk exists any more.
                let slot = unsafe { chunk.cast::<Slot>().add(index) };
                // SAFETY: the new slot belongs to nobody else.
                self.put(unsafe { Bio::from_slot(slot) });
            }
        }
    }

    /// Takes a slot, growing when none is left.
    #[inline]
    pub(crate) fn take(&mut self) -> Bio {
        loop {
            if let Some(slot) = NonNull::new(self.free) {
                // SAFETY: what is in the free list is a live slot.
                self.free = unsafe { slot.as_ref() }.link.load(Ordering::Relaxed);
                self.free_count -= 1;
                // SAFETY: a slot in the free list belongs to nobody else.
                return unsafe { Bio::from_slot(slot) };
            }
            self.reserve(self.capacity + 1);
        }
    }

    /// Puts a bio back. It must be one of this pool's.
    #[inline]
    pub(crate) fn put(&mut self, bio: Bio) {
        let slot = bio.into_slot();
        // SAFETY: the bio was the right to a live slot.
        unsafe { slot.as_ref() }
            .link
            .store(self.free, Ordering::Relaxed);
        self.free = slot.as_ptr();
        self.free_count += 1;
    }

    /// Marks a bio of this pool as cancelled, if it is still in the life that `id` names.
    pub(crate) fn mark_cancelled(&self, id: super::BioId) -> bool {
        let ours = self.chunks.iter().any(|chunk| {
            let first = chunk.cast::<Slot>().as_ptr();
            let at = id.slot.as_ptr() as usize;
            at >= first as usize && at < first.wrapping_add(chunk.len()) as usize
        });
        if !ours {
            return false;
        }
        // SAFETY: the address lies in a chunk of this pool, so it is that of a live slot (ids are
        // made from slots only); the fields are atomic.
        let slot = unsafe { id.slot.as_ref() };
        if slot.serial.load(Ordering::Relaxed) != id.serial {
            return false;
        }
        slot.cancelled.store(true, Ordering::Release);
        true
    }

    /// How many slots are not in the free list.
    pub(crate) fn taken(&self) -> usize {
        self.capacity - self.free_count
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if self.taken() > 0 {
            // Somebody still holds a draft or a finished bio; its slot must stay valid. Leaking it
            // is the price of that mistake, a dangling pointer would be a worse one.
            return;
        }
        for chunk in self.chunks.drain(..) {
            // SAFETY: the chunk came from `Box::leak` in `reserve`, and every one of its slots is
            // back in the free list, so nobody refers to it.
            drop(unsafe { Box::from_raw(chunk.as_ptr()) });
        }
    }
}
