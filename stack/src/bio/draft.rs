//! The caller's side of a bio: a [`Draft`] to fill in, and a [`Finished`] one that has completed.

use super::owned::Bio;
use super::payload::{AttributeValue, Extent, Payload};
use super::slot::Stage;
use super::{BioId, Command, Flags};
use crate::error::Errno;
use std::mem;
use ugeom_machine::buffer::{Buffer, IoMemory, Segment};
use ugeom_machine::lease::Lease;

/// A bio that has not been submitted.
pub struct Draft {
    pub(crate) bio: Bio,
}

const NOTHING: Segment = Segment {
    base: std::ptr::null_mut(),
    len: 0,
};

impl Draft {
    /// Of a bio from the pool, where none has a parent or carries anything.
    #[inline]
    pub(crate) fn new(mut bio: Bio) -> Self {
        let body = bio.body_mut();
        debug_assert!(body.parent.is_none() && matches!(body.payload, Payload::None));
        debug_assert!(body.asked == 0);
        body.stage = Stage::Idle;
        body.flags = Flags::NONE;
        // The slot may still name memory that was lent to it for a call that is over.
        body.segment = NOTHING;
        body.length = 0;
        Self { bio }
    }

    #[inline]
    pub(crate) fn set(&mut self, command: Command, offset: u64, length: u64) {
        let body = self.bio.body_mut();
        body.command = command;
        body.offset = offset;
        body.length = length;
    }

    fn carry(&mut self, segment: Segment, payload: Payload) {
        let body = self.bio.body_mut();
        body.segment = segment;
        body.payload = payload;
    }

    /// Reads as many bytes as the buffer has, at `offset`.
    pub fn read(mut self, offset: u64, buffer: Buffer) -> Self {
        self.set(Command::Read, offset, buffer.len() as u64);
        self.carry_buffer(buffer);
        self
    }

    /// The same, where a layer may lend memory of its own in place of filling the buffer. It is
    /// then taken with [`Finished::take_lease`]; [`Finished::each`] shows the data.
    pub fn read_or_lease(mut self, offset: u64, buffer: Buffer) -> Self {
        self.set(Command::Read, offset, buffer.len() as u64);
        let segment = buffer.segments().first().copied().unwrap_or(NOTHING);
        self.carry(segment, Payload::Lendable { buffer, lent: None });
        self
    }

    /// Writes the buffer at `offset`.
    pub fn write(mut self, offset: u64, buffer: Buffer) -> Self {
        self.set(Command::Write, offset, buffer.len() as u64);
        self.carry_buffer(buffer);
        self
    }

    fn carry_buffer(&mut self, buffer: Buffer) {
        let segment = buffer.segments().first().copied().unwrap_or(NOTHING);
        self.carry(segment, Payload::Buffer(buffer));
    }

    /// Reads into, or writes from, memory of any kind that the bio then owns.
    pub fn transfer(mut self, write: bool, offset: u64, memory: Box<dyn IoMemory>) -> Self {
        let length = memory
            .segments()
            .iter()
            .map(|segment| segment.len as u64)
            .sum();
        self.set(
            if write { Command::Write } else { Command::Read },
            offset,
            length,
        );
        let flags = self.bio.body().flags.with_watched(memory.is_watched());
        self.bio.body_mut().flags = flags;
        self.carry(NOTHING, Payload::Memory(memory));
        self
    }

    /// DELETE or ZERO of a range.
    pub fn discard(mut self, command: Command, offset: u64, length: u64) -> Self {
        let command = if command == Command::Zero {
            command
        } else {
            Command::Delete
        };
        self.set(command, offset, length);
        self.carry(NOTHING, Payload::None);
        self
    }

    /// A FLUSH: all that was acknowledged before becomes durable.
    pub fn flush(mut self) -> Self {
        self.set(Command::Flush, 0, 0);
        self.carry(NOTHING, Payload::None);
        self
    }

    /// GETATTR of the attribute `name`.
    pub fn attribute(mut self, name: &str) -> Self {
        self.set(Command::GetAttr, 0, 0);
        self.carry(
            NOTHING,
            Payload::Attribute {
                name: name.into(),
                value: None,
            },
        );
        self
    }

    /// EXTENTS of a range, at most `limit` of them.
    pub fn extents(mut self, offset: u64, length: u64, limit: usize) -> Self {
        self.set(Command::Extents, offset, length);
        self.carry(
            NOTHING,
            Payload::Extents {
                limit,
                found: Vec::new(),
            },
        );
        self
    }

    /// Moves the request elsewhere and keeps everything else: the way to use one bio and one
    /// buffer again and again.
    #[inline]
    pub fn at(mut self, offset: u64) -> Self {
        self.bio.body_mut().offset = offset;
        self
    }

    /// Turns a read into a write of the same memory to the same place, or the other way round.
    /// Any other command stays as it is.
    #[inline]
    pub fn writing(mut self, write: bool) -> Self {
        let body = self.bio.body_mut();
        if matches!(body.command, Command::Read | Command::Write) {
            body.command = if write { Command::Write } else { Command::Read };
        }
        self
    }

    /// Uses less of the memory than there is: the first `length` bytes.
    #[inline]
    pub fn length(mut self, length: u64) -> Self {
        let body = self.bio.body_mut();
        let room: u64 = body
            .segments()
            .iter()
            .map(|segment| segment.len as u64)
            .sum();
        body.length = length.min(room);
        self
    }

    /// Sets FUA and the other modifiers of the request.
    pub fn flags(mut self, flags: Flags) -> Self {
        let body = self.bio.body_mut();
        let watched = body.flags.contains(Flags::WATCHED);
        body.flags = flags.with_watched(watched);
        self
    }

    /// A word that comes back with the finished bio.
    #[inline]
    pub fn cookie(mut self, cookie: u64) -> Self {
        self.bio.body_mut().cookie = cookie;
        self
    }

    /// The word that was given with [`Draft::cookie`].
    #[inline]
    pub fn number(&self) -> u64 {
        self.bio.body().cookie
    }

    /// Borrows memory of the caller's.
    ///
    /// # Safety
    /// The memory must stay valid, and for a READ untouched by others, until the bio has completed.
    #[inline(always)]
    pub(crate) unsafe fn borrow(mut self, command: Command, offset: u64, memory: Segment) -> Self {
        self.set(command, offset, memory.len as u64);
        self.bio.body_mut().segment = memory;
        self
    }
}

/// A bio that has completed.
pub struct Finished {
    pub(crate) bio: Bio,
}

impl Finished {
    #[inline]
    pub(crate) fn new(mut bio: Bio) -> Self {
        bio.body_mut().stage = Stage::Idle;
        Self { bio }
    }

    /// The bytes done, or the errno. [`crate::Channel::explain`] has the whole story.
    ///
    /// # Errors
    /// The error of the layers.
    #[inline]
    pub fn result(&self) -> Result<u64, Errno> {
        let body = self.bio.body();
        match body.error {
            0 => Ok(body.completed),
            error => Err(Errno::from_raw_os_error(i32::from(error))),
        }
    }

    /// The command of the request.
    pub fn command(&self) -> Command {
        self.bio.command()
    }

    /// Byte offset of the request, as it was made.
    pub fn offset(&self) -> u64 {
        self.bio.offset()
    }

    /// How much was asked for, bytes, before the end of the media cut it.
    #[inline]
    pub fn length(&self) -> u64 {
        let body = self.bio.body();
        match body.asked {
            0 => body.length,
            asked => asked,
        }
    }

    /// The word that the caller gave to the request, to find it again.
    #[inline]
    pub fn cookie(&self) -> u64 {
        self.bio.body().cookie
    }

    /// The id of this bio.
    pub fn id(&self) -> BioId {
        self.bio.id()
    }

    /// Takes the buffer back out, if it had one.
    pub fn take_buffer(&mut self) -> Option<Buffer> {
        let body = self.bio.body_mut();
        match mem::take(&mut body.payload) {
            Payload::Buffer(buffer) | Payload::Lendable { buffer, .. } => {
                body.segment = NOTHING;
                Some(buffer)
            }
            other => {
                body.payload = other;
                None
            }
        }
    }

    /// The buffer, if it has one.
    pub fn buffer(&self) -> Option<&Buffer> {
        match &self.bio.body().payload {
            Payload::Buffer(buffer) | Payload::Lendable { buffer, lent: None } => Some(buffer),
            _ => None,
        }
    }

    /// Takes the memory that a layer has lent for a READ that went well, which
    /// [`Draft::read_or_lease`] allows; `None` when the data is in the buffer. It may be kept
    /// until after the stack has gone, but layers keep something back for others while it lives. A
    /// WRITE of the same range that comes before it is dropped may show ([`Lease::Moving`]).
    pub fn take_lease(&mut self) -> Option<Lease> {
        let failed = self.result().is_err();
        match &mut self.bio.body_mut().payload {
            Payload::Lendable { lent, .. } => lent.take().filter(|_| !failed),
            _ => None,
        }
    }

    /// Shows the data, piece by piece: `with(at, piece)`.
    pub fn each(&mut self, with: impl FnMut(u64, &[u8])) {
        self.bio.request().each(with);
    }

    /// The answer to a GETATTR.
    pub fn attribute(&self) -> Option<&AttributeValue> {
        match &self.bio.body().payload {
            Payload::Attribute { value, .. } => value.as_ref(),
            _ => None,
        }
    }

    /// The answer to an EXTENTS.
    pub fn extents(&self) -> &[Extent] {
        match &self.bio.body().payload {
            Payload::Extents { found, .. } => found,
            _ => &[],
        }
    }

    /// Makes a draft of it again, with the same command, range, memory and cookie.
    #[inline]
    #[must_use]
    pub fn again(mut self) -> Draft {
        let body = self.bio.body_mut();
        if body.asked != 0 {
            body.length = std::mem::take(&mut body.asked);
        }
        if let Payload::Lendable { lent, .. } = &mut body.payload {
            *lent = None;
        }
        Draft { bio: self.bio }
    }
}
