//! Requests that are not sector-aligned, by way of a bounce buffer.
//!
//! ```text
//!   asked:       |   .######|########|###.    |
//!   claimed:     |==========|========|========|     exclusively, see RangeLock
//!   read first:  |ssssssssss|        |ssssssss|     the sectors that are changed in part
//!   written:     |ssss######|########|###sssss|
//! ```
//!
//! Providers refuse unaligned requests (`EINVAL`), as GEOM's do. A server that must take any
//! request, a command or a server, sends it through here. All users of a provider share one
//! [`RangeLock`]: without it two writers of different halves of a sector would undo each other. For
//! the same reason whole sectors are written under the lock as well, but shared: they need not wait
//! for each other. Reads take no claim: a sector is read before or after a change of it.

mod range_lock;
mod span;

pub use range_lock::{Claim, RangeLock, Share};
pub use span::{ClaimedSpan, Edge, PIECE_BYTES, Span, whole_sectors};

use crate::bio::{Command, Flags};
use crate::channel::Channel;
use crate::error::{Errno, IoError, StackError};
use crate::opened::Opened;
use std::ops::Range;
use std::sync::Arc;

/// One user's way to send requests of any alignment to a provider.
pub struct Unaligned {
    ranges: Arc<RangeLock>,
    provider: String,
    sector_bytes: u64,
    /// The sectors of a piece.
    bounce: Vec<u8>,
    /// A sector that changes in part, as it was.
    edge: Vec<u8>,
}

impl Unaligned {
    /// For requests to `opened`; `ranges` is the one lock that all users of this provider share.
    ///
    /// # Errors
    /// `Invalid` when the provider is destroyed or has no sectors.
    pub fn new(opened: &Opened, ranges: &Arc<RangeLock>) -> Result<Self, StackError> {
        let gone = || StackError::Invalid("the provider is destroyed".to_owned());
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
            edge: Vec::new(),
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
        let range = self.range(Command::Read, offset, into.len())?;
        let mut done = 0;
        for span in Span::pieces(range, self.sector_bytes) {
            let bounce = bounce(&mut self.bounce, span.sectors);
            let read = channel.read(opened, span.start(), bounce)?;
            let end = read.min(span.skip + span.length);
            if end < span.skip {
                return Err(self.beyond(Command::Read, span.offset, span.length));
            }
            let bytes = &bounce[span.skip..end];
            into[done..done + bytes.len()].copy_from_slice(bytes);
            done += bytes.len();
            if bytes.len() < span.length {
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
    /// has that, with these flags, everything else by writing. Returns the bytes done, fewer at
    /// the end of the media only.
    ///
    /// # Errors
    /// As [`Unaligned::write`].
    pub fn zero(
        &mut self,
        channel: &mut Channel,
        opened: &Opened,
        (offset, length): (u64, usize),
        flags: Flags,
    ) -> Result<usize, IoError> {
        let end = offset.saturating_add(length as u64);
        let Some(inner) = whole_sectors(&(offset..end), self.sector_bytes) else {
            return self.write_in_pieces(channel, opened, offset, length, |_, piece| piece.fill(0));
        };
        let head = (inner.start - offset) as usize;
        let tail = (end - inner.end) as usize;
        let before = self.write_in_pieces(channel, opened, offset, head, |_, p| p.fill(0))?;
        if before < head {
            return Ok(before);
        }
        let middle = self.zero_sectors(channel, opened, &inner, flags)?;
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
        let range = offset..offset.saturating_add(length as u64);
        let Some(inner) = whole_sectors(&range, self.sector_bytes) else {
            return Ok(0);
        };
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
        flags: Flags,
    ) -> Result<usize, IoError> {
        let length = sectors.end - sectors.start;
        let claim = self.ranges.claim(sectors.clone(), Share::Shared);
        claim.wait();
        let zeroed = channel.zero(opened, (sectors.start, length), flags);
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
        let range = self.range(Command::Write, offset, length)?;
        let mut done = 0;
        for span in Span::pieces(range, self.sector_bytes) {
            let written = self.write_piece(channel, opened, span, |into| fill(done, into))?;
            done += written;
            if written < span.length {
                break;
            }
        }
        Ok(done)
    }

    fn write_piece(
        &mut self,
        channel: &mut Channel,
        opened: &Opened,
        span: Span,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<usize, IoError> {
        let bounce = bounce(&mut self.bounce, span.sectors);
        fill(&mut bounce[span.skip..span.skip + span.length]);
        let mut claimed = ClaimedSpan::new(&self.ranges, span);
        claimed.wait();
        for (edge, offset) in claimed.edges(self.sector_bytes) {
            self.edge.clear();
            self.edge.resize(self.sector_bytes as usize, 0);
            match channel.read(opened, offset, &mut self.edge) {
                Ok(read) if edge == Edge::First && read < span.skip => {
                    return Err(self.beyond(Command::Write, span.offset, span.length));
                }
                // A request that crosses the end is cut there, and so has no last sector to keep.
                Err(_)
                    if edge == Edge::Last
                        && opened
                            .view()
                            .is_some_and(|view| offset >= view.mediasize_bytes) => {}
                read => _ = read?,
            }
            claimed.keep(edge, &self.edge, bounce);
        }
        let written = channel.write(opened, span.start(), bounce)?;
        Ok(written.saturating_sub(span.skip).min(span.length))
    }

    fn is_aligned(&self, offset: u64, length: usize) -> bool {
        offset.is_multiple_of(self.sector_bytes)
            && (length as u64).is_multiple_of(self.sector_bytes)
    }

    /// The bytes of a request, whose last sector has to have an end, too.
    fn range(&self, command: Command, offset: u64, length: usize) -> Result<Range<u64>, IoError> {
        let end = offset.checked_add(length as u64);
        match end.filter(|end| *end < u64::MAX - self.sector_bytes) {
            Some(end) => Ok(offset..end),
            None => Err(self.beyond(command, offset, length)),
        }
    }

    fn beyond(&self, command: Command, offset: u64, length: usize) -> IoError {
        IoError {
            errno: Errno::IO,
            command,
            provider: self.provider.clone(),
            offset_bytes: offset,
            length_bytes: length as u64,
            reason: "the offset lies past the end of the media".to_owned(),
        }
    }
}

fn bounce(memory: &mut Vec<u8>, length: usize) -> &mut [u8] {
    if memory.len() < length {
        memory.resize(length, 0);
    }
    &mut memory[..length]
}
