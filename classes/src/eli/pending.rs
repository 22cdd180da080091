//! Buffers of the layer's own while requests use them: sectors that were read below, until their
//! request looks at them, and sectors that are being written.
//!
//! A thread that both sends a buffer and gets it back uses its own shelf. With queued dispatch one
//! thread sends and another gets; such buffers go back by way of the geom, so that none is
//! allocated for each request.

use std::sync::Arc;
use ugeom_machine::buffer::Buffer;
use ugeom_machine::mutex::Mutex;
use ugeom_machine::returning::{Keeper, Returning};
use ugeom_machine::shelf;

/// Buffers of other threads that are kept at most, bytes.
const SPARE_BYTES_MAX: usize = 4 << 20;

/// Buffers for threads whose shelf has none.
#[derive(Default)]
struct Spare(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    buffers: Vec<Buffer>,
    bytes: usize,
    /// How many buffers were made for want of one.
    made: usize,
}

impl Kept {
    fn take(&mut self, length: usize) -> Option<Buffer> {
        let at = self.buffers.iter().rposition(|one| one.len() == length)?;
        self.bytes -= length;
        Some(self.buffers.swap_remove(at))
    }

    fn put(&mut self, buffer: Buffer) {
        let length = buffer.len();
        if length > SPARE_BYTES_MAX {
            return;
        }
        // Sizes that have gone out of use make room.
        while self.bytes + length > SPARE_BYTES_MAX && !self.buffers.is_empty() {
            let oldest = self.buffers.remove(0);
            self.bytes -= oldest.len();
        }
        self.bytes += length;
        self.buffers.push(buffer);
    }
}

impl Spare {
    /// A buffer with any content.
    fn take(&self, length: usize) -> Buffer {
        if let Some(buffer) = shelf::take_kept(length) {
            return buffer;
        }
        let mut kept = self.0.lock();
        if let Some(buffer) = kept.take(length) {
            return buffer;
        }
        // Twice as many each time, so that a few requests bring about all that many will need.
        let more = kept
            .made
            .min((SPARE_BYTES_MAX - kept.bytes) / length.max(1));
        kept.made += 1;
        for _ in 0..more {
            kept.made += 1;
            kept.put(Buffer::new(length));
        }
        Buffer::new(length)
    }

    /// Puts a buffer back that the thread with that shelf has taken.
    fn put(&self, buffer: Buffer, shelf: usize) {
        match shelf == shelf::number() {
            true => shelf::put(buffer),
            false => self.0.lock().put(buffer),
        }
    }
}

impl Keeper for Spare {
    fn keep(&self, shelf: u64, buffer: Buffer) {
        self.put(buffer, shelf as usize);
    }
}

#[derive(Default)]
struct KeptBuffer {
    buffer: Option<Buffer>,
    /// The shelf of the thread that sent it.
    shelf: usize,
}

#[derive(Default)]
struct Places {
    all: Vec<KeptBuffer>,
    free: Vec<usize>,
}

#[derive(Default)]
struct Waiting(Mutex<Places>);

impl Keeper for Waiting {
    fn keep(&self, number: u64, buffer: Buffer) {
        let mut places = self.0.lock();
        if let Some(place) = usize::try_from(number)
            .ok()
            .and_then(|n| places.all.get_mut(n))
        {
            place.buffer = Some(buffer);
        }
    }
}

/// Where buffers wait, by number, and where they come from.
#[derive(Clone, Default)]
pub(super) struct PendingBuffers {
    waiting: Arc<Waiting>,
    spare: Arc<Spare>,
}

impl PendingBuffers {
    /// Sends a buffer of that length away: the number of its place, and its carrier.
    pub(super) fn send(&self, length: usize) -> (u64, Returning) {
        let buffer = self.spare.take(length);
        let mut places = self.waiting.0.lock();
        let number = places.free.pop().unwrap_or_else(|| {
            places.all.push(KeptBuffer::default());
            // Freeing a place allocates nothing.
            let room = places.all.capacity();
            places.free.reserve(room);
            places.all.len() - 1
        });
        places.all[number].shelf = shelf::number();
        drop(places);
        let keeper: Arc<dyn Keeper> = self.waiting.clone();
        let number = number as u64;
        (number, Returning::to_keeper(buffer, keeper, number))
    }

    /// Takes the buffer out; the place is free again. `None` when it has not come back.
    pub(super) fn take(&self, number: u64) -> Option<Arrived> {
        let mut places = self.waiting.0.lock();
        let number = usize::try_from(number).ok()?;
        let place = places.all.get_mut(number)?;
        let arrived = Arrived {
            buffer: place.buffer.take()?,
            shelf: place.shelf,
        };
        places.free.push(number);
        Some(arrived)
    }

    /// Puts a buffer that [`PendingBuffers::take`] gave back for later requests.
    pub(super) fn put(&self, arrived: Arrived) {
        self.spare.put(arrived.buffer, arrived.shelf);
    }

    /// A buffer with any content, to be filled and sent away.
    pub(super) fn fresh(&self, length: usize) -> Buffer {
        self.spare.take(length)
    }

    /// Puts a buffer back that was not sent away.
    pub(super) fn put_fresh(&self, buffer: Buffer) {
        self.spare.put(buffer, shelf::number());
    }

    /// Sends a buffer away that nothing waits for.
    pub(super) fn lend(&self, buffer: Buffer) -> Returning {
        let keeper: Arc<dyn Keeper> = self.spare.clone();
        Returning::to_keeper(buffer, keeper, shelf::number() as u64)
    }
}

/// A buffer that has come back.
pub(super) struct Arrived {
    pub(super) buffer: Buffer,
    shelf: usize,
}
