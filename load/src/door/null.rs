//! `ioengine=null`: every request ends at once and touches nothing.

use std::io;
use std::time::Duration;

use ugeom_engine::Errno;
use ugeom_machine::buffer::Buffer;

use super::{Direct, Door, Event, Explain, Request};

/// Ends requests without doing anything.
pub struct NullDoor {
    buffers: Vec<Buffer>,
    ended: Vec<Event>,
}

impl NullDoor {
    /// A door with so many slots.
    pub fn new(slots: u32, bytes: usize) -> Self {
        Self {
            buffers: (0..slots).map(|_| Buffer::new(bytes)).collect(),
            ended: Vec::with_capacity(slots as usize),
        }
    }
}

impl Explain for NullDoor {}

impl Door for NullDoor {
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        &mut self.buffers[slot as usize]
    }

    #[inline]
    fn submit(&mut self, slot: u32, request: &Request) {
        self.ended.push(Event {
            slot,
            result: Ok(u64::from(request.length)),
        });
    }

    fn flush(&mut self) {}

    #[inline]
    fn reap(&mut self, events: &mut Vec<Event>) {
        events.append(&mut self.ended);
    }

    fn wait(&mut self, _timeout: Option<Duration>) -> io::Result<()> {
        Ok(())
    }
}

impl Direct for NullDoor {
    #[inline(always)]
    fn call(&mut self, request: &Request) -> Result<u64, Errno> {
        // The whole request is in memory before it is dropped, as for any other engine: what the
        // compiler could leave out otherwise is what is to be measured.
        std::hint::black_box(request);
        Ok(u64::from(request.length))
    }
}
