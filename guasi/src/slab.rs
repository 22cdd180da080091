//! The slots of requests: made once, handed out and taken back without a lock, told apart over time
//! by generations.
//!
//! A slot is three cache lines. The fields that a worker reads and writes for a call with few
//! parameters lie in the first one; the owner's tag lies in the last, which the worker never
//! touches.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicI32, AtomicIsize, AtomicPtr, AtomicUsize};

use crate::calls::IoCall;
use crate::pages::Pages;
use crate::state::State;
use crate::sync::{AtomicU32, AtomicU64, Ordering, Padded};
use crate::work::{PAYLOAD_WORDS, Table};

/// Slots handled in one step of a batch.
pub(crate) const BATCH: usize = 64;

#[repr(C, align(64))]
pub(crate) struct Slot {
    pub(crate) state: State,
    /// Before the end the file, for [`Slot::file`].
    pub(crate) result: AtomicIsize,
    pub(crate) error: AtomicI32,
    pub(crate) priority: AtomicU32,
    pub(crate) private: AtomicPtr<c_void>,
    pub(crate) payload: UnsafeCell<Payload>,
    pub(crate) tag: AtomicUsize,
}

#[repr(C)]
pub(crate) struct Payload {
    pub(crate) table: MaybeUninit<&'static Table>,
    pub(crate) words: [MaybeUninit<usize>; PAYLOAD_WORDS],
}

const _: () = assert!(size_of::<Slot>() == 192);

impl Slot {
    /// The call that lies in the payload.
    ///
    /// # Safety
    /// The request is active with the caller, and was made of an `Io`.
    pub(crate) unsafe fn call(&self) -> &IoCall {
        // SAFETY: by contract nothing writes to the payload, and it holds a call.
        unsafe { &*(&raw const (*self.payload.get()).words).cast::<IoCall>() }
    }

    /// The file at an offset of which a request is to read or write; negative for other requests.
    /// Of a request that was withdrawn meanwhile it is anything.
    pub(crate) fn file(&self) -> RawFd {
        self.result.load(Ordering::Relaxed) as RawFd
    }
}

// SAFETY: the payload is reached by the thread that the state names: the submitter before PENDING,
// the worker while ACTIVE, the canceller after CANCELED. Its content is Send (see `Work`).
unsafe impl Sync for Slot {}

pub(crate) struct Slab {
    slots: Pages<Slot>,
    /// A count in the upper half, against mistaking a chain for the one that was there before; the
    /// first free slot + 1 in the lower half.
    free: Padded<AtomicU64>,
    /// Slots from here on were never used.
    fresh: Padded<AtomicU32>,
}

impl Slab {
    /// `count` slots; those never used cost no memory. `None` where not even their addresses are to
    /// be had.
    pub(crate) fn new(count: usize) -> Option<Slab> {
        // SAFETY: every field of a slot may be zero: numbers, a free state, a pointer to nothing,
        // uninitialised memory.
        let slots = unsafe { Pages::new(count) }?;
        Some(Slab {
            slots,
            free: Padded(AtomicU64::new(0)),
            fresh: Padded(AtomicU32::new(0)),
        })
    }

    #[inline]
    pub(crate) fn slot(&self, index: u32) -> &Slot {
        &self.slots[index as usize]
    }

    /// The number of a slot of these.
    pub(crate) fn index(&self, slot: &Slot) -> u32 {
        let bytes = std::ptr::from_ref(slot).addr() - self.slots.as_ptr().addr();
        (bytes / size_of::<Slot>()) as u32
    }

    pub(crate) fn get(&self, index: u32) -> Option<&Slot> {
        self.slots.get(index as usize)
    }

    pub(crate) fn count(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Slots that were ever used.
    pub(crate) fn used(&self) -> u32 {
        self.fresh.load(Ordering::Acquire)
    }

    /// Brings the first lines of a slot into this processor's cache.
    #[inline]
    pub(crate) fn prefetch(&self, index: u32) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: a prefetch is a hint; it may name any address.
            unsafe { _mm_prefetch(std::ptr::from_ref(self.slot(index)).cast(), _MM_HINT_T0) };
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = index;
    }

    /// Takes up to `room.len()` free slots; returns how many there were.
    pub(crate) fn take(&self, links: &[AtomicU32], room: &mut [u32]) -> usize {
        let mut taken = 0;
        while taken < room.len() {
            let got = self.take_freed(links, &mut room[taken..]);
            taken += match got {
                0 => match self.take_fresh(&mut room[taken..]) {
                    0 => return taken,
                    got => got,
                },
                got => got,
            };
        }
        taken
    }

    fn take_freed(&self, links: &[AtomicU32], room: &mut [u32]) -> usize {
        // Acquire: what the last owners did to these slots, whose releases are one sequence.
        let mut head = self.free.load(Ordering::Acquire);
        loop {
            let (mut next, mut count) = (head as u32, 0);
            while next != 0 && count < room.len() {
                room[count] = next - 1;
                count += 1;
                // It may change under us when others take and free; then the exchange fails.
                next = links[next as usize - 1].load(Ordering::Relaxed);
            }
            if count == 0 {
                return 0;
            }
            let (success, failure) = (Ordering::Acquire, Ordering::Acquire);
            let rest = counted(head) | u64::from(next);
            match self
                .free
                .compare_exchange_weak(head, rest, success, failure)
            {
                Ok(_) => return count,
                Err(now) => head = now,
            }
        }
    }

    fn take_fresh(&self, room: &mut [u32]) -> usize {
        let count = self.slots.len() as u32;
        let more = |fresh: u32| {
            let take = (count - fresh).min(room.len() as u32);
            (take > 0).then_some(fresh + take)
        };
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        let Ok(first) = self.fresh.fetch_update(success, failure, more) else { return 0 };
        let take = (count - first).min(room.len() as u32);
        for (place, index) in room.iter_mut().zip(first..first + take) {
            *place = index;
        }
        take as usize
    }

    /// Gives slots back, in one step.
    pub(crate) fn put(&self, links: &[AtomicU32], slots: &[u32]) {
        let (Some(first), Some(last)) = (slots.first(), slots.last()) else { return };
        for pair in slots.windows(2) {
            links[pair[0] as usize].store(pair[1] + 1, Ordering::Relaxed);
        }
        let mut head = self.free.load(Ordering::Relaxed);
        loop {
            links[*last as usize].store(head as u32, Ordering::Relaxed);
            let (success, failure) = (Ordering::Release, Ordering::Relaxed);
            let new = counted(head) | u64::from(first + 1);
            match self.free.compare_exchange_weak(head, new, success, failure) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }
}

/// The upper half of the head after one more change.
fn counted(head: u64) -> u64 {
    ((head >> 32) + 1) << 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::zeroes_u32;

    #[test]
    fn slots_are_handed_out_once_and_again_after_they_came_back() {
        let (slab, links) = (Slab::new(8).unwrap(), zeroes_u32(8).unwrap());
        let mut first = [0; 5];
        assert_eq!(slab.take(&links, &mut first), 5);
        assert_eq!(first, [0, 1, 2, 3, 4]);
        slab.put(&links, &first[..2]);
        let mut more = [0; 6];
        assert_eq!(slab.take(&links, &mut more), 5);
        assert_eq!(more[..5], [0, 1, 5, 6, 7]);
        assert_eq!(slab.take(&links, &mut more), 0);
        assert_eq!(slab.used(), 8);
    }

    #[test]
    fn no_slot_is_in_two_hands() {
        const ROUNDS: usize = if cfg!(miri) { 30 } else { 20_000 };
        let (slab, links) = (Slab::new(16).unwrap(), zeroes_u32(16).unwrap());
        let held = zeroes_u32(16).unwrap();
        std::thread::scope(|scope| {
            let threads = [1, 2, 3].map(|width| {
                let (slab, links, held) = (&slab, &links, &held);
                scope.spawn(move || {
                    let mut room = [0; 4];
                    for _ in 0..ROUNDS {
                        let count = slab.take(links, &mut room[..width]);
                        for slot in &room[..count] {
                            assert_eq!(held[*slot as usize].swap(1, Ordering::Relaxed), 0);
                        }
                        for slot in &room[..count] {
                            held[*slot as usize].store(0, Ordering::Relaxed);
                        }
                        slab.put(links, &room[..count]);
                    }
                })
            });
            // A join is seen by ThreadSanitizer, the end of the scope is not.
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
        });
    }
}
