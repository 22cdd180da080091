//! Calls that wait until their bio has completed.

use super::{Channel, is_ordered};
use crate::bio::{self, AttributeValue, Command, Draft, Extent, Finished, Flags, Loan, Trip};
use crate::error::{Errno, IoError};
use crate::opened::Opened;
use ugeom_machine::buffer::Buffer;

/// The way of a bio that memory has been lent to, which is no barrier.
struct RoundTrip<'a> {
    channel: &'a mut Channel,
    opened: &'a Opened,
}

impl Trip for RoundTrip<'_> {
    #[inline(always)]
    fn make(self, draft: Draft) -> Finished {
        self.channel.run(self.opened, draft, false)
    }
}

impl Channel {
    /// Reads into `into` at `offset`; fewer bytes at the end of the media only.
    ///
    /// # Errors
    /// The error of the layers, and which of them, where, and why.
    #[inline]
    pub fn read(
        &mut self,
        opened: &Opened,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, IoError> {
        self.lent(opened, offset, Loan::In(into))
    }

    /// Reads `length` bytes to find content: no layer logs a failure
    /// ([`Flags::UNHEARD`]).
    ///
    /// # Errors
    /// As [`Channel::read`].
    pub fn read_to_taste(
        &mut self,
        opened: &Opened,
        offset: u64,
        length: usize,
    ) -> Result<Vec<u8>, IoError> {
        let draft = self.draft().read(offset, Buffer::new(length));
        let mut finished = self.run_draft(opened, draft.flags(Flags::UNHEARD));
        let buffer = finished.take_buffer();
        let read = self.conclude(finished)?;
        let bytes = buffer.as_deref().and_then(|bytes| bytes.get(..read));
        Ok(bytes.unwrap_or_default().to_vec())
    }

    /// Writes `from` at `offset`; fewer bytes at the end of the media only.
    ///
    /// # Errors
    /// As [`Channel::read`].
    #[inline]
    pub fn write(&mut self, opened: &Opened, offset: u64, from: &[u8]) -> Result<usize, IoError> {
        self.lent(opened, offset, Loan::Out(from))
    }

    /// Makes all writes that completed before durable.
    ///
    /// # Errors
    /// As [`Channel::read`].
    pub fn flush(&mut self, opened: &Opened) -> Result<(), IoError> {
        let draft = self.draft().flush();
        let finished = self.run_draft(opened, draft);
        self.conclude(finished).map(drop)
    }

    /// The same for a client that has gone: what is found to be lost, the next one is told
    /// ([`Flags::UNHEARD`]).
    ///
    /// # Errors
    /// As [`Channel::read`].
    pub fn last_flush(&mut self, opened: &Opened) -> Result<(), IoError> {
        let draft = self.draft().flush().flags(Flags::UNHEARD);
        let finished = self.run_draft(opened, draft);
        self.conclude(finished).map(drop)
    }

    /// The same to make one request of this consumer durable: what is found to be lost, its next
    /// FLUSH reports ([`Flags::FOR_REQUEST`]).
    ///
    /// # Errors
    /// As [`Channel::read`].
    pub fn flush_for_request(&mut self, opened: &Opened) -> Result<(), IoError> {
        let draft = self.draft().flush().flags(Flags::FOR_REQUEST);
        let finished = self.run_draft(opened, draft);
        self.conclude(finished).map(drop)
    }

    /// DELETE of a range (or ZERO, see [`Command`]). Returns the bytes done.
    ///
    /// # Errors
    /// As [`Channel::read`].
    pub fn discard(
        &mut self,
        opened: &Opened,
        command: Command,
        offset: u64,
        length: u64,
    ) -> Result<usize, IoError> {
        let draft = self.draft().discard(command, offset, length);
        let finished = self.run_draft(opened, draft);
        self.conclude(finished)
    }

    /// ZERO of a range, as `flags` say ([`Flags::FUA`], [`Flags::NO_HOLE`]). Returns bytes done.
    ///
    /// # Errors
    /// As [`Channel::read`].
    pub fn zero(
        &mut self,
        opened: &Opened,
        (offset, length): (u64, u64),
        flags: Flags,
    ) -> Result<usize, IoError> {
        let draft = self.draft().discard(Command::Zero, offset, length);
        let finished = self.run_draft(opened, draft.flags(flags));
        self.conclude(finished)
    }

    /// Asks for an attribute; `None` when no layer has one of that name.
    ///
    /// # Errors
    /// As [`Channel::read`], but for the errors that mean "no such attribute".
    pub fn attribute(
        &mut self,
        opened: &Opened,
        name: &str,
    ) -> Result<Option<AttributeValue>, IoError> {
        let draft = self.draft().attribute(name);
        let finished = self.run_draft(opened, draft);
        let value = finished.attribute().cloned();
        match self.conclude(finished) {
            Ok(_) => Ok(value),
            Err(error) if matches!(error.errno, Errno::OPNOTSUPP | Errno::NOTTY) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Asks for the extents of a range; at most `limit`, from its start on without a gap.
    ///
    /// # Errors
    /// As [`Channel::read`].
    pub fn extents(
        &mut self,
        opened: &Opened,
        offset: u64,
        length: u64,
        limit: usize,
    ) -> Result<Vec<Extent>, IoError> {
        let draft = self.draft().extents(offset, length, limit);
        let finished = self.run_draft(opened, draft);
        let extents = finished.extents().to_vec();
        self.conclude(finished).map(|_| extents)
    }

    /// Lends the caller's memory to a bio, sends that there, and waits until it is back.
    #[inline(always)]
    fn lent(&mut self, opened: &Opened, offset: u64, loan: Loan<'_>) -> Result<usize, IoError> {
        self.keep_up();
        let bio = self.cx.pool.take();
        let trip = RoundTrip {
            channel: self,
            opened,
        };
        let finished = bio::lend(bio, offset, loan, trip);
        self.conclude(finished)
    }

    /// A draft beside the channel's depth: a call that waits is one at a time.
    fn draft(&mut self) -> Draft {
        Draft::new(self.cx.pool.take())
    }

    /// Sends a draft there and waits until it is back.
    fn run_draft(&mut self, opened: &Opened, draft: Draft) -> Finished {
        self.keep_up();
        let ordered = is_ordered(draft.bio.body());
        self.run(opened, draft, ordered)
    }

    /// The same, for a channel that has just looked for a newer topology, and a draft of which it
    /// is known whether it is a barrier.
    #[inline(always)]
    fn run(&mut self, opened: &Opened, draft: Draft, ordered: bool) -> Finished {
        let (id, bio) = self.prepare(opened, draft.bio, ordered);
        match bio.and_then(|bio| self.launch(bio)) {
            Some(bio) => Finished::new(bio),
            None => self.wait_for(id),
        }
    }

    #[cold]
    fn wait_for(&mut self, id: crate::bio::BioId) -> Finished {
        loop {
            let mut others = ugeom_machine::mailbox::Fifo::new();
            let mut found = None;
            while let Some(bio) = self.finished.pop() {
                if bio.id() == id {
                    found = Some(bio);
                } else {
                    others.push(bio);
                }
            }
            self.finished = others;
            if let Some(bio) = found {
                self.finished_count -= 1;
                return Finished::new(bio);
            }
            let before = self.finished_count;
            self.poll();
            if self.finished_count == before && !self.look_out(None) {
                crate::park::park(&self.cx, None);
            }
        }
    }

    #[inline(always)]
    fn conclude(&mut self, finished: Finished) -> Result<usize, IoError> {
        match finished.result() {
            Ok(bytes) => {
                self.recycle(finished);
                Ok(bytes as usize)
            }
            Err(errno) => Err(self.conclude_failed(finished, errno)),
        }
    }

    /// Apart from [`Channel::conclude`], so that success needs no room for an error.
    #[cold]
    #[inline(never)]
    fn conclude_failed(&mut self, finished: Finished, errno: Errno) -> IoError {
        let explained = self.explain(&finished);
        self.recycle(finished);
        explained.unwrap_or_else(|| unexplained(errno))
    }
}

#[cold]
fn unexplained(errno: Errno) -> IoError {
    IoError {
        errno,
        command: Command::Read,
        provider: "a provider".into(),
        offset_bytes: 0,
        length_bytes: 0,
        reason: "it failed".into(),
    }
}
