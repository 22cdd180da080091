//! A provider of a stack.

use std::io;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use ugeom_machine::buffer::Buffer;
use ugeom_stack::{Channel, Command, Errno, Finished, IoError, Opened};

use super::{Direct, Door, Event, Explain, Kind, Request};

/// The memory of a slot: by itself, or still in the last request that was made with it, which is
/// then sent again.
enum Slot {
    Buffer(Buffer),
    Finished(Finished),
    InFlight,
}

/// Requests on a provider.
pub struct StackDoor {
    /// Dropped before the channel, to which the requests in them return.
    slots: Vec<Slot>,
    channel: Channel,
    opened: Arc<Opened>,
    /// Requests that the channel had no bio for, which can only be a defect of the caller.
    refused: Vec<Event>,
    story: Option<IoError>,
}

impl StackDoor {
    /// A door with so many slots of so many bytes. The channel's depth is at least `slots`.
    pub fn new(channel: Channel, opened: Arc<Opened>, slots: u32, bytes: usize) -> Self {
        Self {
            channel,
            opened,
            slots: (0..slots)
                .map(|_| Slot::Buffer(Buffer::new(bytes)))
                .collect(),
            refused: Vec::new(),
            story: None,
        }
    }

    /// The memory of an idle slot, taken out of the request that it may be in.
    #[cold]
    fn take_out(&mut self, slot: u32) {
        let slot = &mut self.slots[slot as usize];
        match mem::replace(slot, Slot::InFlight) {
            Slot::Finished(mut finished) => {
                if let Some(buffer) = finished.take_buffer() {
                    *slot = Slot::Buffer(buffer);
                    self.channel.recycle(finished);
                }
            }
            other => *slot = other,
        }
    }

    /// Sends a request that moves the memory of its slot.
    #[inline]
    fn transfer(&mut self, slot: u32, write: bool, request: &Request) -> Result<(), Errno> {
        let memory = mem::replace(&mut self.slots[slot as usize], Slot::InFlight);
        let draft = match memory {
            Slot::Finished(finished) => finished.again().at(request.offset).writing(write),
            Slot::Buffer(buffer) => {
                let Some(draft) = self.channel.bio() else {
                    self.slots[slot as usize] = Slot::Buffer(buffer);
                    return Err(Errno::AGAIN);
                };
                let draft = match write {
                    true => draft.write(request.offset, buffer),
                    false => draft.read(request.offset, buffer),
                };
                draft.cookie(u64::from(slot))
            }
            Slot::InFlight => return Err(Errno::INVAL),
        };
        let draft = draft.length(u64::from(request.length));
        self.channel.submit(&self.opened, draft);
        Ok(())
    }

    /// Sends a request without memory.
    fn command(&mut self, slot: u32, request: &Request) -> Result<(), Errno> {
        self.take_out(slot);
        let draft = self.channel.bio().ok_or(Errno::AGAIN)?;
        let draft = match request.kind {
            Kind::DataSync | Kind::Sync => draft.flush(),
            _ => draft.discard(Command::Delete, request.offset, u64::from(request.length)),
        };
        self.channel
            .submit(&self.opened, draft.cookie(u64::from(slot)));
        Ok(())
    }
}

impl Explain for StackDoor {
    fn explain(&mut self) -> Option<IoError> {
        self.story.take()
    }
}

impl Door for StackDoor {
    #[inline]
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        if matches!(self.slots[slot as usize], Slot::Finished(_)) {
            self.take_out(slot);
        }
        match &mut self.slots[slot as usize] {
            Slot::Buffer(buffer) => buffer,
            _ => &mut [],
        }
    }

    #[inline]
    fn submit(&mut self, slot: u32, request: &Request) {
        let sent = match request.kind {
            Kind::Read => self.transfer(slot, false, request),
            Kind::Write => self.transfer(slot, true, request),
            Kind::Trim | Kind::DataSync | Kind::Sync => self.command(slot, request),
        };
        if let Err(errno) = sent {
            let result = Err(errno);
            self.refused.push(Event { slot, result });
        }
    }

    fn flush(&mut self) {}

    fn reap(&mut self, events: &mut Vec<Event>) {
        events.append(&mut self.refused);
        self.channel.poll();
        while let Some(finished) = self.channel.finished() {
            let slot = finished.cookie() as u32;
            let result = finished.result();
            if result.is_err() {
                self.story = self.channel.explain(&finished);
            }
            events.push(Event { slot, result });
            match finished.command() {
                Command::Read | Command::Write => {
                    self.slots[slot as usize] = Slot::Finished(finished);
                }
                _ => self.channel.recycle(finished),
            }
        }
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.channel.wait(timeout);
        Ok(())
    }
}

impl Direct for StackDoor {
    #[inline(always)]
    fn call(&mut self, request: &Request) -> Result<u64, Errno> {
        let slot = &mut self.slots[0];
        if let Slot::Finished(_) = slot {
            self.take_out(0);
        }
        let Slot::Buffer(memory) = &mut self.slots[0] else {
            return Err(Errno::INVAL);
        };
        let (channel, opened) = (&mut self.channel, &*self.opened);
        let done = call(channel, opened, memory, request);
        done.map_err(|error| told(&mut self.story, error))
    }
}

/// Requests on a provider, one at a time, with memory of the caller's: a view of its channel, for
/// loops in which nothing else is to be looked up for each request.
pub struct StackCalls<'a> {
    channel: &'a mut Channel,
    opened: &'a Opened,
    memory: &'a mut [u8],
    story: Option<IoError>,
}

impl<'a> StackCalls<'a> {
    /// Requests by a channel on a provider that is open for them.
    #[inline(always)]
    pub fn new(channel: &'a mut Channel, opened: &'a Opened, memory: &'a mut [u8]) -> Self {
        Self {
            channel,
            opened,
            memory,
            story: None,
        }
    }
}

impl Explain for StackCalls<'_> {
    fn explain(&mut self) -> Option<IoError> {
        self.story.take()
    }
}

impl Direct for StackCalls<'_> {
    #[inline(always)]
    fn call(&mut self, request: &Request) -> Result<u64, Errno> {
        let done = call(self.channel, self.opened, self.memory, request);
        done.map_err(|error| told(&mut self.story, error))
    }
}

#[inline(always)]
fn call(
    channel: &mut Channel,
    opened: &Opened,
    memory: &mut [u8],
    request: &Request,
) -> Result<u64, IoError> {
    let (offset, length) = (request.offset, u64::from(request.length));
    let done = match request.kind {
        // Not by `transfer`: where all requests are reads, the compiler leaves nothing of writes.
        Kind::Read => channel.read(opened, offset, &mut memory[..request.length as usize]),
        Kind::Write => channel.write(opened, offset, &memory[..request.length as usize]),
        Kind::Trim => channel.discard(opened, Command::Delete, offset, length),
        Kind::DataSync | Kind::Sync => channel.flush(opened).map(|()| 0),
    };
    done.map(|bytes| bytes as u64)
}

#[cold]
fn told(story: &mut Option<IoError>, error: IoError) -> Errno {
    let errno = error.errno;
    *story = Some(error);
    errno
}
