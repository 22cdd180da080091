//! Sectors that were read below, until their request looks at them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use ugeom_machine::buffer::Buffer;
use ugeom_machine::returning::{Keeper, Returning};

#[derive(Default)]
struct Places {
    buffers: Vec<Option<Buffer>>,
    free: Vec<usize>,
}

/// Where buffers wait, by number.
#[derive(Clone, Default)]
pub(super) struct PendingBuffers(Arc<Waiting>);

#[derive(Default)]
struct Waiting(Mutex<Places>);

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keeper for Waiting {
    fn keep(&self, number: u64, buffer: Buffer) {
        let mut places = self.lock();
        if let Some(place) = usize::try_from(number)
            .ok()
            .and_then(|n| places.buffers.get_mut(n))
        {
            *place = Some(buffer);
        }
    }
}

impl PendingBuffers {
    /// Sends a buffer away: the number of its place, and what brings it there.
    pub(super) fn send(&self, buffer: Buffer) -> (u64, Returning) {
        let mut places = self.lock();
        let number = places.free.pop().unwrap_or_else(|| {
            places.buffers.push(None);
            places.buffers.len() - 1
        });
        drop(places);
        let keeper: Arc<dyn Keeper> = self.0.clone();
        let number = number as u64;
        (number, Returning::to_keeper(buffer, keeper, number))
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
        self.0.lock()
    }
}
