//! Where a bio belongs: the mailbox of its home thread, and the threads it goes through when
//! dispatch is queued.

use crate::bio::{Bio, BioId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use ugeom_machine::mailbox::Mailbox;
use ugeom_machine::mutex::Mutex;

/// The shared side of one thread that moves bios.
pub(crate) struct Home {
    pub mailbox: Mailbox<Bio>,
    /// Queued dispatch: the threads that take bios down and up. `None` for direct dispatch.
    queues: Option<(Arc<Home>, Arc<Home>)>,
    /// Bios that a layer dropped instead of completing.
    defects: AtomicU64,
    /// Bios that were cancelled and that may wait in this thread's lists.
    cancelled: Mutex<Vec<BioId>>,
    cancel_wanted: AtomicBool,
    /// The thread should end when it has nothing left to do.
    pub stop: AtomicBool,
}

impl Home {
    /// A home that direct dispatch needs, or with `queues` (`g_down`, `g_up`) a queued one.
    /// `spin_ns` is how long the owner spins before it parks.
    pub(crate) fn new(
        spin_ns: u64,
        queues: Option<(Arc<Self>, Arc<Self>)>,
    ) -> std::io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            mailbox: Mailbox::with_spin(spin_ns)?,
            queues,
            defects: AtomicU64::new(0),
            cancelled: Mutex::new(Vec::new()),
            cancel_wanted: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        }))
    }

    /// The thread that takes bios further down.
    pub(crate) fn downward(self: &Arc<Self>) -> &Arc<Self> {
        self.queues.as_ref().map_or(self, |(down, _)| down)
    }

    /// The thread that walks the path of a finished bio backwards.
    pub(crate) fn upward(self: &Arc<Self>) -> &Arc<Self> {
        self.queues.as_ref().map_or(self, |(_, up)| up)
    }

    pub(crate) fn count_defect(&self) {
        self.defects.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn defects(&self) -> u64 {
        self.defects.load(Ordering::Relaxed)
    }

    /// Asks the owner to look for a cancelled bio in its lists.
    pub(crate) fn cancel(&self, id: BioId) {
        self.cancelled.lock().push(id);
        self.cancel_wanted.store(true, Ordering::Release);
        self.mailbox.wake();
    }

    /// The cancellations since the owner looked last.
    pub(crate) fn cancelled(&self) -> Vec<BioId> {
        if !self.cancel_wanted.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        std::mem::take(&mut *self.cancelled.lock())
    }
}
