//! Replies of the server: bytes to replies and chunks, data to the requests' own memory.

use super::sync;
use super::{Flight, Flushed, Link, NO_CONNECTION, NONSENSE};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use ugeom_format::wire::nbd::{
    CHUNK_HEADER_BYTES, ChunkHeader, ErrorChunk, Hole, SIMPLE_REPLY_BYTES, SimpleReply, chunk,
    decode_block_status, error, export_flag, state,
};
use ugeom_stack::{Bio, Command, Extent, ExtentKind, Flags};

/// Bytes received at a time. No message but the data of a READ is longer.
const BUFFER_BYTES: usize = 64 << 10;

/// Data of which more than this is to come is received where it belongs, bytes.
const DIRECT_BYTES_MIN: u64 = 32 << 10;

/// Chunks of a reply that bring no data, at most. Servers send none or few: an error for each block
/// of a READ that they cannot read, the status in another context.
const IDLE_CHUNKS_MAX: u32 = 4096;

/// The part of a reply that the next bytes belong to.
#[derive(Clone, Copy)]
enum Expect {
    Head,
    /// Data of a READ: for which flight, where in its memory, how much of it, and whether that is
    /// the end of the reply.
    Data {
        index: u32,
        at: u64,
        left: u64,
        last: bool,
    },
}

/// Bytes that were received and not used.
pub(in crate::nbd) struct Replies {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    expect: Expect,
}

impl Replies {
    pub fn new() -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            end: 0,
            expect: Expect::Head,
        }
    }

    /// Nothing has come that was not used.
    pub fn is_at_rest(&self) -> bool {
        self.waiting().is_empty() && matches!(self.expect, Expect::Head)
    }

    fn waiting(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Makes room behind an incomplete message for `more` bytes.
    fn room(&mut self, more: usize) -> &mut [u8] {
        if self.buffer.len() < BUFFER_BYTES + more {
            self.buffer.resize(BUFFER_BYTES + more, 0);
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        &mut self.buffer[self.end..]
    }
}

impl Link {
    /// Receives once and parses the bytes. True when there may be more.
    ///
    /// # Errors
    /// Why the connection is of no use any more.
    pub fn receive(&mut self) -> Result<bool, &'static str> {
        let stream = self.stream.as_mut().ok_or(NO_CONNECTION)?;
        let secure = stream.is_secure();
        let direct = match self.replies.expect {
            Expect::Data {
                index, at, left, ..
            } if !secure && left >= DIRECT_BYTES_MIN && self.replies.waiting().is_empty() => {
                let flight = self.flights[index as usize].as_mut();
                flight.and_then(|flight| receive_into(&mut flight.bio, at, left, stream.fd()))
            }
            _ => None,
        };
        let (read, wanted) = match direct {
            Some(read) => read,
            None => {
                let room = self.replies.room(stream.room_bytes());
                let wanted = room.len();
                (stream.read(&mut [], room), wanted)
            }
        };
        let count = match read {
            Ok(0) => return Err("the server has closed the connection"),
            Ok(count) => count,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
            Err(_) => return Err("the connection broke"),
        };
        self.received = true;
        if direct.is_some() {
            self.advance_data(count as u64);
        } else {
            self.replies.end += count;
        }
        while self.use_one()? {}
        // The result of a TLS read says nothing about the bytes left in the socket.
        Ok(secure || count == wanted)
    }

    /// Notes that so many bytes of data are where they belong.
    fn advance_data(&mut self, count: u64) {
        let Expect::Data {
            index,
            at,
            left,
            last,
        } = self.replies.expect
        else {
            return;
        };
        if let Some(flight) = self.flights[index as usize].as_mut() {
            flight.got += count;
        }
        if count > 0 {
            self.heard_ns = self.now_ns;
        }
        if left > count {
            self.replies.expect = Expect::Data {
                index,
                at: at + count,
                left: left - count,
                last,
            };
            return;
        }
        self.replies.expect = Expect::Head;
        if last {
            self.part_done(index);
        }
    }

    /// Uses one message, or the data that there is. False when more bytes are needed.
    fn use_one(&mut self) -> Result<bool, &'static str> {
        if let Expect::Data {
            index, at, left, ..
        } = self.replies.expect
        {
            let waiting = self.replies.waiting();
            let count = left.min(waiting.len() as u64);
            if count == 0 {
                return Ok(false);
            }
            if let Some(flight) = self.flights[index as usize].as_mut() {
                let (start, end) = (self.replies.start, self.replies.start + count as usize);
                copy_into(&mut flight.bio, at, &self.replies.buffer[start..end]);
            }
            self.replies.start += count as usize;
            self.advance_data(count);
            return Ok(true);
        }
        let waiting = self.replies.waiting();
        let Some(head) = waiting.first_chunk::<SIMPLE_REPLY_BYTES>() else {
            return Ok(false);
        };
        if SimpleReply::begins(head) {
            let reply = SimpleReply::decode(head).map_err(|_| NONSENSE)?;
            self.replies.start += SIMPLE_REPLY_BYTES;
            return self.simple(reply).map(|()| true);
        }
        let Some(head) = waiting.first_chunk::<CHUNK_HEADER_BYTES>() else {
            return Ok(false);
        };
        let header = ChunkHeader::decode(head).map_err(|_| NONSENSE)?;
        self.chunk(header)
    }

    /// The flight that a cookie names.
    fn find(&mut self, cookie: u64) -> Result<(u32, &mut Flight), &'static str> {
        let (index, serial) = (cookie as u32, (cookie >> 32) as u32);
        let flight = self
            .flights
            .get_mut(index as usize)
            .and_then(Option::as_mut);
        match flight.filter(|flight| flight.serial == serial && flight.asked) {
            Some(flight) => Ok((index, flight)),
            None => Err("the server sent a reply to no request"),
        }
    }

    fn simple(&mut self, reply: SimpleReply) -> Result<(), &'static str> {
        if reply.error == error::ESHUTDOWN {
            return Err("the server is shutting down");
        }
        if reply.cookie == sync::COOKIE {
            return self.flush_replied(reply);
        }
        let (index, flight) = self.find(reply.cookie)?;
        if reply.error != 0 {
            flight.failure = Some((errno_of(reply.error), "the server failed it"));
        } else if is_read(flight) {
            let (at, left) = (flight.done, flight.part);
            self.replies.expect = Expect::Data {
                index,
                at,
                left,
                last: true,
            };
            return Ok(());
        }
        self.part_done(index);
        Ok(())
    }

    /// A chunk whose header is there. False when the rest of it is not.
    fn chunk(&mut self, header: ChunkHeader) -> Result<bool, &'static str> {
        let length = header.length_bytes as usize;
        if header.kind == chunk::OFFSET_DATA {
            return self.data_chunk(header);
        }
        if CHUNK_HEADER_BYTES + length > BUFFER_BYTES {
            return Err(NONSENSE);
        }
        let whole = CHUNK_HEADER_BYTES..CHUNK_HEADER_BYTES + length;
        let Some(data) = self.replies.waiting().get(whole) else {
            return Ok(false);
        };
        let data = data.to_vec();
        self.replies.start += CHUNK_HEADER_BYTES + length;
        if header.cookie == sync::COOKIE {
            return self.flush_chunk(header, &data).map(|()| true);
        }
        let (sector, allocation) = (u64::from(self.remote.sector_bytes), self.allocation);
        let (index, flight) = self.find(header.cookie)?;
        let before = flight.got;
        match header.kind {
            chunk::NONE => {}
            chunk::OFFSET_HOLE => {
                let hole = Hole::decode(&data).map_err(|_| NONSENSE)?;
                let length = u64::from(hole.length_bytes);
                let at = fill_at(flight, hole.offset_bytes, length).ok_or(NONSENSE)?;
                zero(&mut flight.bio, at, length);
                flight.got += length;
            }
            chunk::BLOCK_STATUS => take_status(flight, &data, sector, allocation)?,
            chunk::ERROR | chunk::ERROR_OFFSET => {
                let failed = ErrorChunk::decode(&data).map_err(|_| NONSENSE)?;
                if failed.error == error::ESHUTDOWN {
                    return Err("the server is shutting down");
                }
                flight.failure = Some((errno_of(failed.error), "the server failed it"));
            }
            // Chunks of kinds that were not asked for are errors if their highest bit says so.
            kind if kind & 1 << 15 != 0 => {
                flight.failure = Some((Errno::IO, "the server failed it"));
            }
            _ => return Err(NONSENSE),
        }
        if flight.got == before {
            self.idle_chunk(index, header.is_last())?;
        } else {
            self.heard_ns = self.now_ns;
        }
        if header.is_last() {
            self.part_done(index);
        }
        Ok(true)
    }

    /// A chunk of data, whose header is there. False when its offset is not.
    fn data_chunk(&mut self, header: ChunkHeader) -> Result<bool, &'static str> {
        let needed = CHUNK_HEADER_BYTES + 8;
        let Some(head) = self.replies.waiting().get(..needed) else {
            return Ok(false);
        };
        let mut offset = [0; 8];
        offset.copy_from_slice(&head[CHUNK_HEADER_BYTES..]);
        let offset = u64::from_be_bytes(offset);
        let left = u64::from(header.length_bytes)
            .checked_sub(8)
            .ok_or(NONSENSE)?;
        let (index, flight) = self.find(header.cookie)?;
        let at = fill_at(flight, offset, left).ok_or(NONSENSE)?;
        let last = header.is_last();
        self.replies.start += needed;
        self.replies.expect = Expect::Data {
            index,
            at,
            left,
            last,
        };
        if left == 0 {
            self.idle_chunk(index, last)?;
            self.advance_data(0);
        }
        Ok(true)
    }

    /// Counts a chunk that brought no data, unless it ends its reply.
    fn idle_chunk(&mut self, index: u32, last: bool) -> Result<(), &'static str> {
        let flight = self.flights[index as usize].as_mut();
        let Some(flight) = flight.filter(|_| !last) else { return Ok(()) };
        flight.idle_chunks += 1;
        match flight.idle_chunks > IDLE_CHUNKS_MAX {
            true => Err("the server sends chunks without data, and no end"),
            false => Ok(()),
        }
    }

    /// The server has answered the part that it was asked for.
    fn part_done(&mut self, index: u32) {
        let can_flush = self.remote.has(export_flag::SEND_FLUSH);
        let Some(flight) = self.flights[index as usize].as_mut() else { return };
        flight.asked = false;
        flight.lost = false;
        self.heard_ns = self.now_ns;
        self.together.set_gone(false);
        let is_flush = flight.flushing || flight.bio.command() == Command::Flush;
        if let Some(failure) = flight.failure {
            if is_flush {
                self.together.failed(flight.generation);
            }
            self.finish(index, Err(failure));
            return self.release_flushes();
        }
        if is_read(flight) && flight.got != flight.part {
            let why = "the server has left out a part of the data";
            return self.finish(index, Err((Errno::IO, why)));
        }
        let (length, command) = (flight.bio.length(), flight.bio.command());
        if command == Command::Extents {
            let covered = flight.got;
            // A reply without any is no answer, and nothing could follow it.
            let told = (covered > 0).then_some(covered);
            let outcome = told.ok_or((
                Errno::IO,
                "the server returned nothing about the requested range",
            ));
            return self.finish(index, outcome);
        }
        flight.done += flight.part;
        let writes = matches!(command, Command::Write | Command::Zero);
        if is_flush {
            let generation = flight.generation;
            return self.flush_succeeded(generation, Flushed::Flight(index));
        }
        // A durable write is durable now, or is written again when it does not get that far.
        let cared_for = writes && flight.bio.flags().contains(Flags::FUA);
        if can_flush && (writes || command == Command::Delete) && !cared_for {
            let end = flight.bio.offset() + flight.done;
            let range = end - flight.part..end;
            self.durability.wrote(range, flight.failures);
        }
        if flight.bio.offset() + flight.done == self.remote.facts.size_bytes {
            // The rest of the last sector is no part of the export.
            if command == Command::Read {
                let padding = length - flight.done;
                zero(&mut flight.bio, flight.done, padding);
            }
            flight.done = length;
        }
        if flight.done < length {
            self.queue.push_back(index);
            return;
        }
        if flight.waits_for_flush(&self.remote) {
            flight.flushing = true;
            self.queue.push_back(index);
            return;
        }
        self.finish(index, Ok(length));
    }
}

fn is_read(flight: &Flight) -> bool {
    flight.bio.command() == Command::Read
}

/// Where in a READ's memory an offset of the export lies, if the range is one that was asked for.
/// A part that comes twice fails the READ: another would be missing, and what its memory held
/// before would take its place.
fn fill_at(flight: &mut Flight, offset: u64, length: u64) -> Option<u64> {
    let at = offset.checked_sub(flight.bio.offset())?;
    let end = at.checked_add(length)?;
    let asked = flight.done..=flight.done + flight.part;
    if !is_read(flight) || !asked.contains(&at) || !asked.contains(&end) {
        return None;
    }
    if !flight.filled.add(at..end) {
        flight.failure = Some((Errno::IO, "the server has sent a part of the data twice"));
    }
    Some(at)
}

/// The part of `piece`, which lies at `piece_at`, that `length` bytes at `at` touch.
fn overlap(piece_at: u64, piece: &[u8], at: u64, length: u64) -> std::ops::Range<usize> {
    let size = piece.len() as u64;
    let start = at.saturating_sub(piece_at).min(size);
    let end = (at + length).saturating_sub(piece_at).min(size);
    start as usize..end as usize
}

fn copy_into(bio: &mut Bio, at: u64, bytes: &[u8]) {
    bio.fill(|piece_at, piece| {
        let range = overlap(piece_at, piece, at, bytes.len() as u64);
        if !range.is_empty() {
            let from = (piece_at + range.start as u64 - at) as usize;
            let count = range.len();
            piece[range].copy_from_slice(&bytes[from..from + count]);
        }
    });
}

fn zero(bio: &mut Bio, at: u64, length: u64) {
    bio.fill(|piece_at, piece| {
        let range = overlap(piece_at, piece, at, length);
        piece[range].fill(0);
    });
}

/// Receives into the first piece of a READ's memory that is not full; the result, and how much was
/// wanted.
fn receive_into(
    bio: &mut Bio,
    at: u64,
    left: u64,
    fd: &OwnedFd,
) -> Option<(Result<usize, Errno>, usize)> {
    let mut read = None;
    bio.fill(|piece_at, piece| {
        let range = overlap(piece_at, piece, at, left);
        if read.is_none() && !range.is_empty() {
            let wanted = range.len();
            read = Some((rustix::io::read(fd, &mut piece[range]), wanted));
        }
    });
    read
}

/// Takes the result of a BLOCK_STATUS. Servers may know stretches more finely than in sectors: a
/// sector that holds any data is data, and so is one of which not all is told, and everything if
/// nothing is told: nbdkit rounds the last bytes of an export down to nothing.
fn take_status(
    flight: &mut Flight,
    data: &[u8],
    sector: u64,
    allocation: Option<u32>,
) -> Result<(), &'static str> {
    let (context, stretches) = decode_block_status(data).map_err(|_| NONSENSE)?;
    if flight.bio.command() != Command::Extents {
        return Err(NONSENSE);
    }
    if Some(context) != allocation || flight.got > 0 {
        // Of another context, or the second one: what it says is not used.
        return Ok(());
    }
    let (mut at, mut told) = (0_u64, 0_u64);
    for stretch in stretches {
        at = (at + u64::from(stretch.length_bytes)).min(flight.part);
        let kind = if stretch.flags & state::ZERO == 0 {
            ExtentKind::Data
        } else if stretch.flags & state::HOLE == 0 {
            ExtentKind::Zero
        } else {
            ExtentKind::Hole
        };
        let until = match kind {
            ExtentKind::Data => at.next_multiple_of(sector),
            _ => at - at % sector,
        };
        let length_bytes = until.saturating_sub(told);
        if length_bytes > 0 {
            told = until;
            if !flight.bio.add_extent(Extent { length_bytes, kind }) {
                break;
            }
        }
    }
    if told == 0 {
        // The caller continues behind what was reported, and would stand still otherwise.
        told = match at {
            0 => flight.bio.length(),
            _ => sector.min(flight.bio.length()),
        };
        flight.bio.add_extent(Extent {
            length_bytes: told,
            kind: ExtentKind::Data,
        });
    }
    flight.got = told;
    Ok(())
}

fn errno_of(error: u32) -> Errno {
    match error {
        error::EPERM => Errno::PERM,
        error::EINVAL => Errno::INVAL,
        error::ENOSPC => Errno::NOSPC,
        error::ENOTSUP => Errno::OPNOTSUPP,
        // ENOMEM among them: it is the server's memory, and asking again at once does not help.
        _ => Errno::IO,
    }
}
