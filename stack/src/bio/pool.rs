//! A thread's own supply of bios: slots in chunks that never move, handed out last in, first out,
//! so that a caller with one request in flight stays in the same cache lines.
//!
//! The free ones are linked through themselves. A list beside them would be one more allocation,
//! whose end (the part that is used all the time) may share a cache line with another thread's.
//!
//! When all channels share one pool (`shared_pool.rs`), a thread's own supply is always empty: each
//! bio takes the way past it, to the lock.

use super::owned::Bio;
use super::shared_pool::SharedPool;
use super::slot::Slot;
use crate::home::Home;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Slots are made in chunks of this many.
const CHUNK_SLOTS: usize = 32;

/// Slots, and which of them are free.
pub(super) struct Slots {
    chunks: Vec<NonNull<[Slot]>>,
    /// The slot that was put back last, null when none is free.
    free: *mut Slot,
    free_count: usize,
    capacity: usize,
}

// SAFETY: this owns its chunks; the raw pointers are only an address-stable way to hold them.
// It moves between threads only together with the channel, or under the lock, that owns it.
unsafe impl Send for Slots {}

impl Slots {
    pub(super) const fn new() -> Self {
        Self {
            chunks: Vec::new(),
            free: ptr::null_mut(),
            free_count: 0,
            capacity: 0,
        }
    }

    /// Makes sure that at least `slots` exist; new ones return to `home` and are `keeper`'s.
    /// The only place that allocates.
    #[cold]
    pub(super) fn grow_to(&mut self, slots: usize, home: &Arc<Home>, keeper: usize) {
        while self.capacity < slots {
            let chunk: Box<[Slot]> = (0..CHUNK_SLOTS)
                .map(|_| Slot::new(Arc::clone(home), keeper))
                .collect();
            let chunk = NonNull::from(Box::leak(chunk));
            self.chunks.push(chunk);
            self.capacity += CHUNK_SLOTS;
            for index in (0..CHUNK_SLOTS).rev() {
                // SAFETY: `index` is inside the chunk that was just leaked, so the address is that
                // of a live slot; no reference to the chunk exists any more.
                let slot = unsafe { chunk.cast::<Slot>().add(index) };
                // SAFETY: the new slot has no other owner.
                self.push(unsafe { Bio::from_slot(slot) });
            }
        }
    }

    /// Takes a slot, if one is free.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<Bio> {
        let slot = NonNull::new(self.free)?;
        // SAFETY: what is in the free list is a live slot.
        self.free = unsafe { slot.as_ref() }.link.load(Ordering::Relaxed);
        self.free_count -= 1;
        // SAFETY: a slot in the free list has no other owner.
        Some(unsafe { Bio::from_slot(slot) })
    }

    /// Puts a slot of these back.
    #[inline(always)]
    pub(super) fn push(&mut self, bio: Bio) {
        let slot = bio.into_slot();
        // SAFETY: the bio was the right to a live slot.
        unsafe { slot.as_ref() }
            .link
            .store(self.free, Ordering::Relaxed);
        self.free = slot.as_ptr();
        self.free_count += 1;
    }

    /// Marks a bio of these as cancelled, if it is `keeper`'s and still in the life of `id`.
    pub(super) fn mark_cancelled(&self, id: super::BioId, keeper: usize) -> bool {
        let Some(slot) = self.at(id.address) else { return false };
        // SAFETY: a live slot of these; the fields are atomic.
        let slot = unsafe { slot.as_ref() };
        if slot.keeper.load(Ordering::Relaxed) != keeper
            || slot.life.load(Ordering::Relaxed) != id.life
        {
            return false;
        }
        slot.cancelled.store(true, Ordering::Release);
        true
    }

    /// The slot at an address, if it is one of these.
    fn at(&self, address: usize) -> Option<NonNull<Slot>> {
        self.chunks.iter().find_map(|chunk| {
            let first = chunk.cast::<Slot>();
            let index = address.checked_sub(first.addr().get())? / size_of::<Slot>();
            // SAFETY: inside the chunk, as the condition says.
            (index < chunk.len()).then(|| unsafe { first.add(index) })
        })
    }

    /// Free bios that would return to `from` return to `to` instead.
    pub(super) fn rehome(&mut self, from: &Arc<Home>, to: &Arc<Home>) {
        let mut next = self.free;
        while let Some(slot) = NonNull::new(next) {
            // SAFETY: what is in the free list is a live slot.
            let slot = unsafe { slot.as_ref() };
            // SAFETY: a slot in the free list has no other owner, and the list is borrowed
            // as mutable.
            let body = unsafe { &mut *slot.body.get() };
            if Arc::ptr_eq(&body.home, from) {
                body.home = Arc::clone(to);
            }
            next = slot.link.load(Ordering::Relaxed);
        }
    }

    /// How many there are.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        if self.free_count < self.capacity {
            // A draft or a finished bio is still held; its slot must stay valid. Leaking it
            // is the price of that mistake, a dangling pointer would be a worse one.
            return;
        }
        for chunk in self.chunks.drain(..) {
            // SAFETY: the chunk came from `Box::leak` in `grow_to`, and every one of its slots is
            // back in the free list, so nothing refers to it.
            drop(unsafe { Box::from_raw(chunk.as_ptr()) });
        }
    }
}

/// The bios of one thread.
pub(crate) struct Pool {
    home: Arc<Home>,
    /// The value of [`Slot::keeper`] in slots that are this pool's own: the address of `home`.
    own: usize,
    slots: Slots,
    /// The pool of all threads, and how many slots this one has asked of it.
    shared: Option<(Arc<SharedPool>, usize)>,
}

impl Pool {
    /// An empty pool whose bios return to `home`; with `shared`, a way to that one.
    pub(crate) fn new(home: Arc<Home>, shared: Option<&Arc<SharedPool>>) -> Self {
        Self {
            own: Arc::as_ptr(&home).addr(),
            home,
            slots: Slots::new(),
            shared: shared.map(|shared| (Arc::clone(shared), 0)),
        }
    }

    /// Where its bios return to.
    pub(crate) fn home(&self) -> &Arc<Home> {
        &self.home
    }

    /// Makes sure that at least `slots` exist for this thread.
    #[cold]
    pub(crate) fn reserve(&mut self, slots: usize) {
        match &mut self.shared {
            None => self.slots.grow_to(slots, &self.home, self.own),
            Some((shared, reserved)) => {
                shared.reserve(slots.saturating_sub(*reserved));
                *reserved = slots.max(*reserved);
            }
        }
    }

    /// Takes a slot, growing when none is left.
    #[inline]
    pub(crate) fn take(&mut self) -> Bio {
        match self.slots.pop() {
            Some(bio) => bio,
            None => self.take_elsewhere(),
        }
    }

    #[cold]
    #[inline(never)]
    fn take_elsewhere(&mut self) -> Bio {
        if let Some((shared, _)) = &self.shared {
            return shared.take(&self.home);
        }
        loop {
            let more = self.slots.capacity() + 1;
            self.slots.grow_to(more, &self.home, self.own);
            if let Some(bio) = self.slots.pop() {
                return bio;
            }
        }
    }

    /// True when the slot is this thread's own, and not in a pool that all threads share.
    #[inline(always)]
    pub(crate) fn is_own(&self, bio: &Bio) -> bool {
        bio.keeper() == self.own
    }

    /// Puts a bio back that is this pool's own.
    #[inline]
    pub(crate) fn put_own(&mut self, bio: Bio) {
        self.slots.push(bio);
    }

    /// Puts a bio back that came from [`Pool::take`].
    #[inline]
    pub(crate) fn put(&mut self, bio: Bio) {
        match &self.shared {
            Some((shared, _)) => shared.put(bio),
            None => self.slots.push(bio),
        }
    }

    /// Marks a bio of this thread as cancelled, if it is still in the life that `id` names.
    pub(crate) fn mark_cancelled(&self, id: super::BioId) -> bool {
        match &self.shared {
            Some((shared, _)) => shared.mark_cancelled(id, &self.home),
            None => self.slots.mark_cancelled(id, self.own),
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Some((shared, reserved)) = &self.shared {
            shared.leave(&self.home, *reserved);
        }
    }
}
