//! One supply of bios for all threads of a stack, under one lock: the other way, to be chosen and
//! measured. FreeBSD's physical buffers were such a pool, under `pbuf_mtx`.

use super::BioId;
use super::owned::Bio;
use super::pool::Slots;
use crate::home::Home;
use std::io;
use std::sync::Arc;
use ugeom_machine::mutex::Mutex;

struct Guarded {
    slots: Slots,
    /// The sum of the threads' reservations.
    reserved: usize,
}

/// The bios of all threads.
pub(crate) struct SharedPool {
    guarded: Mutex<Guarded>,
    /// Where free bios belong whose thread has gone: their own home can go, too, then.
    nowhere: Arc<Home>,
}

/// The value of a slot's `keeper` while `home` has it: no slot of this pool is ever a thread's own,
/// whose mark is the (even) address.
fn keeper(home: &Arc<Home>) -> usize {
    Arc::as_ptr(home).addr() | 1
}

impl SharedPool {
    /// A pool without slots; channels add theirs.
    pub(crate) fn new() -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            guarded: Mutex::new(Guarded {
                slots: Slots::new(),
                reserved: 0,
            }),
            nowhere: Home::new(0, None)?,
        }))
    }

    /// Makes room for so many more.
    pub(super) fn reserve(&self, more: usize) {
        let mut guarded = self.guarded.lock();
        guarded.reserved += more;
        let wanted = guarded.reserved;
        guarded
            .slots
            .grow_to(wanted, &self.nowhere, keeper(&self.nowhere));
    }

    /// A thread takes a bio, which will return to `home`.
    pub(super) fn take(&self, home: &Arc<Home>) -> Bio {
        let mut guarded = self.guarded.lock();
        let mut bio = loop {
            if let Some(bio) = guarded.slots.pop() {
                break bio;
            }
            let more = guarded.slots.capacity() + 1;
            guarded
                .slots
                .grow_to(more, &self.nowhere, keeper(&self.nowhere));
        };
        bio.set_keeper(keeper(home));
        drop(guarded);
        let body = bio.body_mut();
        // The thread that had it last is often this one; then there is nothing to count.
        if !Arc::ptr_eq(&body.home, home) {
            body.home = Arc::clone(home);
        }
        bio
    }

    /// A thread gives a bio back.
    pub(super) fn put(&self, bio: Bio) {
        self.guarded.lock().slots.push(bio);
    }

    /// Marks a bio of the thread of `home` as cancelled, if it is still in the life of `id`. Under
    /// the lock the bio cannot pass to another thread meanwhile.
    pub(super) fn mark_cancelled(&self, id: BioId, home: &Arc<Home>) -> bool {
        self.guarded.lock().slots.mark_cancelled(id, keeper(home))
    }

    /// A thread ends, and needs its reservation no longer.
    pub(super) fn leave(&self, home: &Arc<Home>, reserved: usize) {
        let mut guarded = self.guarded.lock();
        guarded.reserved -= reserved;
        guarded.slots.rehome(home, &self.nowhere);
    }
}
