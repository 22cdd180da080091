//! A provider of a stack.

use std::io;
use std::time::Duration;

use ugeom_machine::buffer::Buffer;
use ugeom_stack::{Channel, Command, Errno, IoError, Opened};

use super::{Direct, Door, Event, Kind, Request};

/// Requests on a provider.
pub struct StackDoor {
    channel: Channel,
    opened: Opened,
    buffers: Vec<Buffer>,
    /// Requests that the channel had no bio for, which can only be a defect of the caller.
    refused: Vec<Event>,
    story: Option<String>,
}

impl StackDoor {
    /// A door with so many slots of so many bytes. The channel's depth is at least `slots`.
    #[must_use]
    pub fn new(channel: Channel, opened: Opened, slots: u32, bytes: usize) -> Self {
        Self {
            channel,
            opened,
            buffers: (0..slots).map(|_| Buffer::new(bytes)).collect(),
            refused: Vec::new(),
            story: None,
        }
    }
}

impl Door for StackDoor {
    #[inline]
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        &mut self.buffers[slot as usize]
    }

    #[inline]
    fn submit(&mut self, slot: u32, request: &Request) {
        let Some(draft) = self.channel.bio() else {
            let result = Err(Errno::AGAIN);
            self.refused.push(Event { slot, result });
            return;
        };
        let length = u64::from(request.length);
        let place = slot as usize;
        let draft = match request.kind {
            Kind::Read => {
                let buffer = std::mem::replace(&mut self.buffers[place], Buffer::new(0));
                draft.read(request.offset, buffer).length(length)
            }
            Kind::Write => {
                let buffer = std::mem::replace(&mut self.buffers[place], Buffer::new(0));
                draft.write(request.offset, buffer).length(length)
            }
            Kind::Trim => draft.discard(Command::Delete, request.offset, length),
            Kind::Sync => draft.flush(),
        };
        self.channel
            .submit(&self.opened, draft.cookie(u64::from(slot)));
    }

    fn flush(&mut self) {}

    fn reap(&mut self, events: &mut Vec<Event>) {
        events.append(&mut self.refused);
        self.channel.poll();
        while let Some(mut finished) = self.channel.finished() {
            let slot = finished.cookie() as u32;
            let result = finished.result();
            if result.is_err() {
                self.story = self
                    .channel
                    .explain(&finished)
                    .map(|error| error.to_string());
            }
            if let Some(buffer) = finished.take_buffer() {
                self.buffers[slot as usize] = buffer;
            }
            events.push(Event { slot, result });
            self.channel.recycle(finished);
        }
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.channel.wait(timeout);
        Ok(())
    }

    fn explain(&mut self) -> Option<String> {
        self.story.take()
    }
}

impl Direct for StackDoor {
    #[inline(always)]
    fn call(&mut self, request: &Request) -> Result<u64, Errno> {
        let Self {
            channel,
            opened,
            buffers,
            ..
        } = self;
        let (offset, length) = (request.offset, u64::from(request.length));
        let done = match request.kind {
            Kind::Read | Kind::Write => {
                let write = request.kind == Kind::Write;
                let memory = &mut buffers[0][..request.length as usize];
                channel.transfer(opened, write, offset, memory)
            }
            Kind::Trim => channel.discard(opened, Command::Delete, offset, length),
            Kind::Sync => channel.flush(opened).map(|()| 0),
        };
        done.map(|bytes| bytes as u64)
            .map_err(|error| self.failed(&error))
    }
}

impl StackDoor {
    #[cold]
    fn failed(&mut self, error: &IoError) -> Errno {
        self.story = Some(error.to_string());
        error.errno
    }
}
