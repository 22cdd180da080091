//! Sectors that were read below, until their request looks at them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use ugeom_machine::buffer::Buffer;

#[derive(Default)]
struct Places {
    buffers: Vec<Option<Buffer>>,
    free: Vec<usize>,
}

/// Where buffers wait, by number.
#[derive(Clone, Default)]
pub(super) struct PendingBuffers(Arc<Mutex<Places>>);

impl PendingBuffers {
    /// A place, and the function that brings a buffer there.
    pub(super) fn expect(&self) -> (u64, impl FnOnce(Buffer) + Send + 'static) {
        let mut places = self.lock();
        let number = places.free.pop().unwrap_or_else(|| {
            places.buffers.push(None);
            places.buffers.len() - 1
        });
        drop(places);
        let this = self.clone();
        let keep = move |buffer| this.lock().buffers[number] = Some(buffer);
        (number as u64, keep)
    }

    /// Takes the buffer out; the place is free again. `None` when it has not come back.
    pub(super) fn take(&self, number: u64) -> Option<Buffer> {
        let mut places = self.lock();
        let number = usize::try_from(number).ok()?;
        let buffer = places.buffers.get_mut(number)?.take()?;
        places.free.push(number);
        Some(buffer)
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
