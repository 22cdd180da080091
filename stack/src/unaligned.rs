//! Requests that are not sector-aligned, by way of a bounce buffer.
//!
//! ```text
//!   asked:       |   .######|########|###.    |
//!   claimed:     |==========|========|========|     exclusively, see RangeLock
//!   read first:  |ssssssssss|        |ssssssss|     the sectors that are changed in part
//!   written:     |ssss######|########|###sssss|
//! ```
//!
//! Providers refuse what is not aligned (`EINVAL`), as GEOM's do. A server that must take any
//! request, a command or a server, sends it through here. All users of a provider share one
//! [`RangeLock`]: without it two writers of different halves of a sector would undo each other. For
//! the same reason whole sectors are written under the lock as well, but shared: they need not wait
//! for each other. Reads take no claim: a sector is read before or after a change of it.

mod range_lock;

pub use range_lock::{Claim, RangeLock, Share};

use crate::bio::Command;
use crate::channel::Channel;
use crate::error::{Errno, IoError, StackError};
use crate::opened::Opened;
use std::ops::Range;
use std::sync::Arc;

/// How much is moved through the bounce buffer at a time, bytes (or one sector if that is more).
const BOUNCE_BYTES: u64 = 256 << 10;

/// One user's way to send requests of any alignment to a provider.
pub struct Unaligned {
    ranges: Arc<RangeLock>,
    provider: String,
    sector_bytes: u64,
    bounce: Vec<u8>,
}

impl Unaligned {
    /// For requests to `opened`; `ranges` is the one lock that all users of this provider share.
    ///
    /// # Errors
    /// `Invalid` when the provider is gone or has no sectors.
    pub fn new(opened: &Opened, ranges: &Arc<RangeLock>) -> Result<Self, StackError> {
        let gone = || StackError::Invalid("the provider is gone".to_owned());
        let view = opened.view().ok_or_else(gone)?;
        if view.sectorsize_bytes == 0 {
            let problem = format!("{} has sectors of 0 bytes", view.name);
            return Err(StackError::Invalid(problem));
        }
        Ok(Self {
            ranges: Arc::clone(ranges),
            provider: view.name,
            sector_bytes: u64::from(view.sectorsize_bytes),
            bounce: Vec::new(),
        })
    }

    /// Reads into `into` at `offset`; fewer bytes at the end of the media only.
    ///
    /// # Errors
    /// As [`Channel::read`]; EIO when `offset` lies past the end of the media.
    pub fn read(
        &mut self,
        channel: &mut Channel,
        opened: &Opened,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, IoError> {
        if self.is_aligned(offset, into.len()) {
            return channel.read(opened, offset, into);
        }
        let mut done = 0;
        while done < into.len() {
            let piece = self.piece(Command::Read, offset, done, into.len())?;
            let sectors = self.sectors(&piece);
            let skip = (piece.start - sectors.start) as usize;
            let bounce = self.bounce(&sectors);
            let read = channel.read(opened, sectors.start, bounce)?;
            let end = read.min(skip + (piece.end - piece.start) as usize);
            if end < skip {
                return Err(self.past_the_end(Command::Read, &piece));
            }
            into[done..done + end - skip].copy_from_slice(&self.bounce[skip..end]);
            done += end - skip;
            if end < skip + (piece.end - piece.start) as usize {
                break;
            }
        }
        Ok(done)
    }

    /// Writes `from` at `offset`; fewer bytes at the end of the media only. The provider must be
    /// open for reading, too.
    ///
    /// # Errors
    /// As [`Channel::write`]; EIO when `offset` lies past the end of the media.
    pub fn write(
        &mut self,
        channel: &mut Channel,
        opened: &Opened,
        offset: u64,
        from: &[u8],
    ) -> Result<usize, IoError> {
        if self.is_aligned(offset, from.len()) {
            let end = offset.saturating_add(from.len() as u64);
            let claim = self.ranges.claim(offset..end, Share::Shared);
            claim.wait();
            return channel.write(opened, offset, from);
        }
        self.write_in_pieces(channel, opened, offset, from.len(), |done, piece| {
            piece.copy_from_slice(&from[done..done + piece.len()]);
        })
    }

    /// Makes `length` bytes at `offset` read as zeroes: whole sectors by ZERO where the provider
    /// has that, everything else by writing. Returns the bytes done, fewer at the end of the
    /// media only.
    ///
    /// # Errors
    /// As [`Unaligned::write`].
    pub fn zero(
        &mut self,
        channel: &mut Channel,
        opened: &Opened,
        offset: u64,
        length: usize,
    ) -> Result<usize, IoError> {
        let end = offset.saturating_add(length as u64);
        let inner = self.whole_sectors(offset..end);
        if inner.is_empty() {
            return self.write_in_pieces(channel, opened, offset, length, |_, piece| piece.fill(0));
        }
        let head = (inner.start - offset) as usize;
        let tail = (end - inner.end) as usize;
        let before = self.write_in_pieces(channel, opened, offset, head, |_, p| p.fill(0))?;
        if before < head {
            return Ok(before);
        }
        let middle = self.zero_sectors(channel, opened, &inner)?;
        if (middle as u64) < inner.end - inner.start {
            return Ok(head + middle);
        }
        let after = self.write_in_pieces(channel, opened, inner.end, tail, |_, p| p.fill(0))?;
        Ok(head + middle + after)
    }

    /// Tells the provider that `length` bytes at `offset` are not needed any more. DELETE is
    /// advice, so the sectors that lie inside only in part are left alone. Returns the bytes of
    /// the whole sectors that the provider took.
    ///
    /// # Errors
    /// As [`Channel::discard`].
    pub fn delete(
        &mut self,
        channel: &mut Channel,
        opened: &Opened,
        offset: u64,
        length: usize,
    ) -> Result<usize, IoError> {
        let inner = self.whole_sectors(offset..offset.saturating_add(length as u64));
        if inner.is_empty() {
            return Ok(0);
        }
        let claim = self.ranges.claim(inner.clone(), Share::Shared);
        claim.wait();
        channel.discard(
            opened,
            Command::Delete,
            inner.start,
            inner.end - inner.start,
        )
    }

    fn zero_sectors(
        &mut self,
        channel: &mut Channel,
        opened: &Opened,
        sectors: &Range<u64>,
    ) -> Result<usize, IoError> {
        let length = sectors.end - sectors.start;
        let claim = self.ranges.claim(sectors.clone(), Share::Shared);
        claim.wait();
        let zeroed = channel.discard(opened, Command::Zero, sectors.start, length);
        drop(claim);
        match zeroed {
            Err(error) if error.errno == Errno::OPNOTSUPP => {
                let length = length as usize;
                let start = sectors.start;
                self.write_in_pieces(channel, opened, start, length, |_, piece| piece.fill(0))
            }
            zeroed => zeroed,
        }
    }

    /// Writes `length` bytes piece by piece; `fill` gives the bytes of each piece, and how many
    /// were before it.
    fn write_in_pieces(
        &mut self,
        channel: &mut Channel,
        opened: &Opened,
        offset: u64,
        length: usize,
        fill: impl Fn(usize, &mut [u8]),
    ) -> Result<usize, IoError> {
        let mut done = 0;
        while done < length {
            let piece = self.piece(Command::Write, offset, done, length)?;
            let wanted = (piece.end - piece.start) as usize;
            let written = self.write_piece(channel, opened, &piece, |into| fill(done, into))?;
            done += written;
            if written < wanted {
                break;
            }
        }
        Ok(done)
    }

    fn write_piece(
        &mut self,
        channel: &mut Channel,
        opened: &Opened,
        piece: &Range<u64>,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<usize, IoError> {
        let sectors = self.sectors(piece);
        let sector = self.sector_bytes;
        let claim = self.ranges.claim(sectors.clone(), Share::Exclusive);
        claim.wait();
        let skip = (piece.start - sectors.start) as usize;
        let wanted = (piece.end - piece.start) as usize;
        let bounce = self.bounce(&sectors);
        if skip > 0 {
            let read = channel.read(opened, sectors.start, &mut bounce[..sector as usize])?;
            if read < skip {
                return Err(self.past_the_end(Command::Write, piece));
            }
        }
        let last = sectors.end - sector;
        if piece.end < sectors.end && (skip == 0 || last > sectors.start) {
            let at = (last - sectors.start) as usize;
            let read = channel.read(opened, last, &mut bounce[at..]);
            // A request that crosses the end is cut there, and so has no last sector to keep.
            if read.is_err() && opened.view().is_none_or(|view| last < view.mediasize_bytes) {
                read?;
            }
        }
        fill(&mut bounce[skip..skip + wanted]);
        let written = channel.write(opened, sectors.start, bounce)?;
        Ok(written.saturating_sub(skip).min(wanted))
    }

    fn is_aligned(&self, offset: u64, length: usize) -> bool {
        offset.is_multiple_of(self.sector_bytes)
            && (length as u64).is_multiple_of(self.sector_bytes)
    }

    /// The next piece of a request of `length` bytes of which `done` are done; it ends where the
    /// bounce buffer does, at the end of a sector, or where the request does.
    fn piece(
        &self,
        command: Command,
        offset: u64,
        done: usize,
        length: usize,
    ) -> Result<Range<u64>, IoError> {
        let sector = self.sector_bytes;
        let start = offset.checked_add(done as u64);
        let end = offset.checked_add(length as u64);
        // The last sector has to have an end, too.
        let (Some(start), Some(end)) = (start, end.filter(|end| *end < u64::MAX - sector)) else {
            let range = offset..offset.saturating_add(length as u64);
            return Err(self.past_the_end(command, &range));
        };
        let room = (BOUNCE_BYTES / sector).max(1) * sector;
        let full = (start - start % sector) + room;
        Ok(start..end.min(full))
    }

    /// The sectors that a piece touches.
    fn sectors(&self, piece: &Range<u64>) -> Range<u64> {
        let start = piece.start - piece.start % self.sector_bytes;
        start..piece.end.next_multiple_of(self.sector_bytes)
    }

    /// The sectors that lie inside a range as a whole; empty when there are none.
    fn whole_sectors(&self, range: Range<u64>) -> Range<u64> {
        let start = range.start.checked_next_multiple_of(self.sector_bytes);
        let end = range.end - range.end % self.sector_bytes;
        match start {
            Some(start) if start < end => start..end,
            _ => range.start..range.start,
        }
    }

    fn bounce(&mut self, sectors: &Range<u64>) -> &mut [u8] {
        let length = (sectors.end - sectors.start) as usize;
        if self.bounce.len() < length {
            self.bounce.resize(length, 0);
        }
        &mut self.bounce[..length]
    }

    fn past_the_end(&self, command: Command, range: &Range<u64>) -> IoError {
        IoError {
            errno: Errno::IO,
            command,
            provider: self.provider.clone(),
            offset_bytes: range.start,
            length_bytes: range.end - range.start,
            reason: "the offset lies past the end of the media".to_owned(),
        }
    }
}
