//! One client's connection: from bytes to requests, and replies to the socket.

use super::Limits;
use super::exports::Chosen;
use super::handshake::Session;
use super::operation::STATUS_EXTENTS;
use super::output::{Body, Output};
use super::worker::Worker;
use crate::buffers::Buffers;
use crate::span::{PIECE_BYTES, Span};
use rustix::io::Errno;
use std::io::IoSliceMut;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use ugeom_engine::reactor::{Interest, Source};
use ugeom_format::wire::nbd::{
    ChunkHeader, ErrorChunk, REQUEST_BYTES, Request, SimpleReply, chunk, command, command_flag,
    error,
};
use ugeom_machine::buffer::Buffer;

/// How often a socket is read in a row before the others get their turn.
const READS_IN_A_ROW: usize = 4;

/// After requests of so many bytes, and their heads, those of a batch that are done already are
/// answered: the client goes on meanwhile, and their data is still in the processor's caches.
const SEND_EARLY_BYTES: usize = 64 << 10;

/// What a request costs of the budget beside its data, bytes: about what is kept for it.
pub(super) const REQUEST_COST_BYTES: usize = 256;

/// What a BLOCK_STATUS costs, bytes: its stretches as they are found, and as they are sent.
const STATUS_COST_BYTES: usize = STATUS_EXTENTS * 24;

/// A request that costs no more than this, bytes, is served whatever others have in flight.
const SMALL_BYTES: usize = (64 << 10) + REQUEST_COST_BYTES;

/// Failed requests of a connection that are written to the log.
const FAILURES_LOGGED: u32 = 10;

/// A WRITE whose data is on its way.
struct Incoming {
    request: Request,
    pieces: Vec<(Span, Option<Buffer>)>,
    at: usize,
    filled: usize,
}

/// A connection in the transmission phase.
pub(super) struct Connection {
    pub fd: Arc<OwnedFd>,
    pub source: Source,
    pub who: String,
    pub chosen: Chosen,
    pub structured: bool,
    allocation: bool,
    /// The beginning of a message that is not whole, or messages that wait for room.
    leftover: Vec<u8>,
    incoming: Option<Incoming>,
    /// Bytes of data that belong to a refused WRITE.
    discard: u64,
    pub output: Output,
    /// Requests that were read and whose replies are not sent.
    pub requests: usize,
    /// Bytes in flight, as [`Limits`] count them.
    pub bytes: usize,
    /// Operations in the stack.
    pub operations: usize,
    /// Something was written that no FLUSH has covered.
    pub dirty: bool,
    /// Nothing more is read.
    pub closing: bool,
    /// Nobody is there to be answered.
    pub dead: bool,
    held_back: bool,
    watched: Interest,
    progress_ns: u64,
    failures: u32,
}

impl Connection {
    pub fn new(
        fd: Arc<OwnedFd>,
        source: Source,
        who: String,
        session: Session,
        now_ns: u64,
    ) -> Self {
        Self {
            fd,
            source,
            who,
            chosen: session.chosen,
            structured: session.structured,
            allocation: session.allocation,
            leftover: Vec::new(),
            incoming: None,
            discard: 0,
            output: Output::default(),
            requests: 0,
            bytes: 0,
            operations: 0,
            dirty: false,
            closing: false,
            dead: false,
            held_back: false,
            watched: Interest::READ,
            progress_ns: now_ns,
            failures: 0,
        }
    }

    /// Gives buffers of a WRITE back that never became whole; returns what it was charged for.
    pub fn give_back_input(&mut self, buffers: &mut Buffers) -> usize {
        let Some(incoming) = self.incoming.take() else {
            return 0;
        };
        for (_, buffer) in incoming.pieces {
            if let Some(buffer) = buffer {
                buffers.put(buffer);
            }
        }
        cost(&incoming.request, self.chosen.export.sector_bytes)
    }

    /// Why a client is left that has not moved for too long.
    pub fn silent_too_long(&self, now_ns: u64, limits: &Limits) -> Option<&'static str> {
        let silent_ns = u128::from(now_ns.saturating_sub(self.progress_ns));
        let stalled = silent_ns > limits.stall.as_nanos();
        let half = self.incoming.is_some()
            || self.discard > 0
            || (!self.leftover.is_empty() && !self.held_back);
        if stalled && !self.output.is_empty() {
            return Some("it does not read its replies");
        }
        if stalled && half && !self.closing {
            return Some("it fell silent in the middle of a message");
        }
        let idle = limits.idle.is_some_and(|idle| silent_ns > idle.as_nanos());
        (idle && self.requests == 0 && !self.closing).then_some("it was idle for too long")
    }
}

/// What a request costs of the budget, bytes: the memory that it may take at a time.
pub(super) fn cost(request: &Request, sector_bytes: u32) -> usize {
    let sector = u64::from(sector_bytes);
    let range = request.offset_bytes..request.offset_bytes + u64::from(request.length_bytes);
    let span = Span::new(&range, sector);
    let data = match request.command {
        command::READ => Buffers::size_of(span.sectors),
        // What changes in part is read into two buffers more.
        command::WRITE if !span.is_whole() => {
            Buffers::size_of(span.sectors) + 2 * Buffers::size_of(sector as usize)
        }
        command::WRITE => Buffers::size_of(span.sectors),
        // Piece after piece, where no layer can do better.
        command::CACHE | command::WRITE_ZEROES => {
            Buffers::size_of(span.sectors.min(PIECE_BYTES.max(sector) as usize))
        }
        command::BLOCK_STATUS => STATUS_COST_BYTES,
        _ => 0,
    };
    data + REQUEST_COST_BYTES
}

/// What is wrong with a request, if anything.
fn problem(connection: &Connection, request: &Request) -> Option<(u32, &'static str)> {
    use command_flag::{DF, FAST_ZERO, FUA, NO_HOLE, REQ_ONE};
    let export = &connection.chosen.export;
    let (allowed, changes) = match request.command {
        command::READ => (FUA | DF, false),
        command::WRITE | command::TRIM => (FUA, true),
        command::FLUSH | command::CACHE => (FUA, false),
        command::WRITE_ZEROES => (FUA | NO_HOLE | FAST_ZERO, true),
        command::BLOCK_STATUS => (FUA | REQ_ONE, false),
        _ => return Some((error::EINVAL, "the command is not known")),
    };
    if request.flags & !allowed != 0 {
        return Some((error::EINVAL, "the command has no such flags"));
    }
    if request.flags & DF != 0 && !connection.structured {
        return Some((error::EINVAL, "DF needs structured replies"));
    }
    if changes && !export.writable {
        return Some((error::EPERM, "the export is read-only"));
    }
    if request.command == command::FLUSH {
        let plain = request.offset_bytes == 0 && request.length_bytes == 0;
        return (!plain).then_some((error::EINVAL, "a FLUSH has no range"));
    }
    if request.command == command::BLOCK_STATUS && !connection.allocation {
        return Some((error::EINVAL, "no context was chosen for BLOCK_STATUS"));
    }
    if request.length_bytes == 0 {
        return Some((error::EINVAL, "the length is 0"));
    }
    let carries = matches!(request.command, command::READ | command::WRITE);
    if carries && request.length_bytes > export.maximum_bytes() {
        return Some((error::EINVAL, "the request is longer than was agreed on"));
    }
    let end = request
        .offset_bytes
        .checked_add(request.length_bytes.into());
    if end.is_none_or(|end| end > export.size_bytes) {
        let errno = if changes {
            error::ENOSPC
        } else {
            error::EINVAL
        };
        return Some((errno, "the range reaches past the end of the export"));
    }
    None
}

/// What reading a socket once has come to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Read {
    Nothing,
    Some,
    /// As much as there was room for: there may be more.
    Full,
}

impl Worker {
    /// Reads what the socket has and begins the requests. True when there was anything.
    pub fn read(&mut self, index: usize) -> bool {
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut any = false;
        for _ in 0..READS_IN_A_ROW {
            let read = self.read_once(index, &mut scratch);
            any |= read != Read::Nothing;
            if read != Read::Full {
                break;
            }
        }
        self.scratch = scratch;
        any
    }

    fn read_once(&mut self, index: usize, scratch: &mut [u8]) -> Read {
        let Some(connection) = self.connections.get_mut(index).and_then(Option::as_mut) else {
            return Read::Nothing;
        };
        if connection.closing || connection.held_back {
            return Read::Nothing;
        }
        let buffers = &mut self.buffers;
        let target = connection.incoming.as_mut().map(|it| it.target(buffers));
        let data_bytes = target.as_ref().map_or(0, |target| target.len());
        let room = data_bytes + scratch.len();
        let read = match target {
            Some(target) => {
                let mut slices = [IoSliceMut::new(target), IoSliceMut::new(scratch)];
                rustix::io::readv(&connection.fd, &mut slices)
            }
            None => rustix::io::read(&connection.fd, &mut *scratch),
        };
        let count = match read {
            Ok(0) => {
                let half = connection.incoming.is_some() || !connection.leftover.is_empty();
                let why = half.then(|| "it left in the middle of a message".to_owned());
                self.cut(index, why);
                return Read::Some;
            }
            Ok(count) => count,
            Err(Errno::AGAIN | Errno::INTR) => return Read::Nothing,
            Err(_) => {
                self.cut(index, None);
                return Read::Some;
            }
        };
        connection.progress_ns = self.now_ns;
        if let Some(incoming) = &mut connection.incoming {
            incoming.filled += count.min(data_bytes);
            self.finish_incoming(index);
        }
        let beyond = count.saturating_sub(data_bytes);
        self.take_input(index, &scratch[..beyond]);
        if count == room {
            Read::Full
        } else {
            Read::Some
        }
    }

    /// Takes bytes that a client has sent, behind those that are left over.
    pub fn take_input(&mut self, index: usize, input: &[u8]) {
        let Some(connection) = self.connections[index].as_mut() else {
            return;
        };
        if connection.leftover.is_empty() {
            let used = self.digest(index, input);
            if let Some(connection) = self.connections[index].as_mut() {
                connection.leftover.extend(&input[used..]);
            }
        } else {
            connection.leftover.extend(input);
            self.take_leftover(index);
        }
        self.touched.push(index);
    }

    /// Goes on with what is left over. True when any of it was used.
    fn take_leftover(&mut self, index: usize) -> bool {
        let Some(connection) = self.connections[index].as_mut() else {
            return false;
        };
        let mut leftover = std::mem::take(&mut connection.leftover);
        let used = self.digest(index, &leftover);
        leftover.drain(..used);
        if let Some(connection) = self.connections[index].as_mut() {
            connection.leftover = leftover;
        }
        used > 0
    }

    /// Begins as many requests as there are and as may be; returns how many bytes that took.
    fn digest(&mut self, index: usize, input: &[u8]) -> usize {
        let mut at = 0;
        loop {
            let Some(connection) = self.connections[index].as_mut() else {
                return input.len();
            };
            if connection.closing {
                return input.len();
            }
            let rest = &input[at..];
            if connection.discard > 0 {
                let now = connection.discard.min(rest.len() as u64);
                connection.discard -= now;
                at += now as usize;
                if connection.discard > 0 {
                    return at;
                }
                continue;
            }
            if let Some(incoming) = &mut connection.incoming {
                if rest.is_empty() {
                    return at;
                }
                let target = incoming.target(&mut self.buffers);
                let now = target.len().min(rest.len());
                target[..now].copy_from_slice(&rest[..now]);
                incoming.filled += now;
                at += now;
                self.finish_incoming(index);
                continue;
            }
            let Some(header) = rest.first_chunk::<REQUEST_BYTES>() else {
                return at;
            };
            if !self.has_room(index, header) {
                self.hold_back(index);
                return at;
            }
            match Request::decode(header) {
                Ok(request) => self.take_request(index, request),
                Err(error) => self.cut(index, Some(error.to_string())),
            }
            at += REQUEST_BYTES;
            if self.begun_bytes >= SEND_EARLY_BYTES {
                self.begun_bytes = 0;
                self.collect();
                self.send(index);
            }
        }
    }

    /// Whether the request that begins so may be read. A small one that is its client's only one
    /// always may: nobody can take all the room there is from others.
    fn has_room(&self, index: usize, header: &[u8; REQUEST_BYTES]) -> bool {
        let Some(connection) = &self.connections[index] else {
            return false;
        };
        let room = connection.requests < self.limits.requests
            && connection.bytes < self.limits.bytes_per_connection
            && self.bytes < self.bytes_max;
        let sector_bytes = connection.chosen.export.sector_bytes;
        let is_small = || match Request::decode(header) {
            Ok(request) if problem(connection, &request).is_none() => {
                cost(&request, sector_bytes) <= SMALL_BYTES
            }
            // It is only refused.
            _ => true,
        };
        room || (connection.requests == 0 && is_small())
    }

    fn hold_back(&mut self, index: usize) {
        if let Some(connection) = self.connections[index].as_mut()
            && !connection.held_back
        {
            connection.held_back = true;
            self.held_back.push(index);
        }
    }

    /// Lets connections go on that were held back. True when any of them did.
    pub fn resume(&mut self) -> bool {
        let mut moved = false;
        for index in std::mem::take(&mut self.held_back) {
            let Some(connection) = self.connections[index].as_ref() else {
                continue;
            };
            let next = connection.leftover.first_chunk();
            if connection.closing || next.is_none_or(|next| self.has_room(index, next)) {
                if let Some(connection) = self.connections[index].as_mut() {
                    connection.held_back = false;
                }
                moved |= self.take_leftover(index);
                self.touched.push(index);
            } else {
                self.held_back.push(index);
            }
        }
        moved
    }

    fn take_request(&mut self, index: usize, request: Request) {
        let Some(connection) = self.connections[index].as_mut() else {
            return;
        };
        if request.command == command::DISC {
            return self.close(index, None);
        }
        if let Some((errno, why)) = problem(connection, &request) {
            connection.discard = request.payload_bytes().into();
            connection.requests += 1;
            connection.bytes += REQUEST_COST_BYTES;
            self.bytes += REQUEST_COST_BYTES;
            return self.refuse(index, &request, errno, why, REQUEST_COST_BYTES);
        }
        let charge = cost(&request, connection.chosen.export.sector_bytes);
        connection.requests += 1;
        connection.bytes += charge;
        self.bytes += charge;
        self.begun_bytes += charge;
        if request.command == command::WRITE {
            let sector = u64::from(connection.chosen.export.sector_bytes);
            let range =
                request.offset_bytes..request.offset_bytes + u64::from(request.length_bytes);
            let pieces = Span::pieces(range, sector)
                .map(|span| (span, None))
                .collect();
            let (at, filled) = (0, 0);
            connection.incoming = Some(Incoming {
                request,
                pieces,
                at,
                filled,
            });
        } else if request.command != command::READ || !self.read_at_once(index, &request, charge) {
            self.begin(index, request, Vec::new());
        }
    }

    /// Begins a WRITE whose data has come in full.
    fn finish_incoming(&mut self, index: usize) {
        let Some(connection) = self.connections[index].as_mut() else {
            return;
        };
        let whole = connection.incoming.as_mut().is_some_and(Incoming::step);
        if whole && let Some(incoming) = connection.incoming.take() {
            self.begin(index, incoming.request, incoming.pieces);
        }
    }

    /// Answers a request with an error.
    pub fn refuse(
        &mut self,
        index: usize,
        request: &Request,
        errno: u32,
        why: &str,
        charge: usize,
    ) {
        let Some(connection) = self.connections[index].as_mut() else {
            return;
        };
        connection.failures += 1;
        if connection.failures <= FAILURES_LOGGED {
            let Request {
                command,
                offset_bytes,
                length_bytes,
                ..
            } = request;
            let name = &connection.chosen.export.name;
            let last = if connection.failures == FAILURES_LOGGED {
                " (more of it is not logged)"
            } else {
                ""
            };
            (self.log)(&format!(
                "nbd: {}: command {command} of {length_bytes} bytes at {offset_bytes} of {name}: \
                 {why}{last}",
                connection.who
            ));
        }
        let cookie = request.cookie;
        if connection.structured {
            let message = ErrorChunk {
                error: errno,
                message: why.to_owned(),
            };
            let message = message.encode();
            let head = ChunkHeader {
                flags: chunk::DONE,
                kind: chunk::ERROR,
                cookie,
                length_bytes: message.len() as u32,
            };
            let body = Body::Bytes(message);
            connection.output.push(&head.encode(), body, charge, true);
        } else {
            let head = SimpleReply {
                error: errno,
                cookie,
            };
            let body = Body::Nothing;
            connection.output.push(&head.encode(), body, charge, true);
        }
        self.touched.push(index);
    }

    /// Sends what waits, and ends a connection that has nothing left to do.
    pub fn send(&mut self, index: usize) {
        let Some(connection) = self.connections[index].as_mut() else {
            return;
        };
        if !connection.output.is_empty() {
            match connection
                .output
                .send(connection.fd.as_fd(), &mut self.buffers)
            {
                Ok(sent) => {
                    connection.requests -= sent.ended;
                    connection.bytes -= sent.released;
                    self.bytes -= sent.released;
                    if sent.progress {
                        connection.progress_ns = self.now_ns;
                    }
                }
                Err(_) => self.cut(index, None),
            }
        }
        let Some(connection) = self.connections[index].as_mut() else {
            return;
        };
        if connection.closing && connection.operations == 0 && connection.output.is_empty() {
            if std::mem::take(&mut connection.dirty) {
                return self.begin_last_flush(index);
            }
            return self.remove(index);
        }
        let reads = !connection.closing && !connection.held_back;
        let interest = Interest::of(reads, !connection.output.is_empty());
        if interest != connection.watched {
            connection.watched = interest;
            let source = connection.source;
            if let Err(error) = self.reactor.change(source, interest) {
                self.cut(index, Some(error.to_string()));
            }
        }
    }

    /// Reads no more, and ends the connection when what was read is answered.
    pub fn close(&mut self, index: usize, why: Option<&str>) {
        let Some(connection) = self.connections[index].as_mut() else {
            return;
        };
        if let Some(why) = why {
            (self.log)(&format!("nbd: {} is left: {why}", connection.who));
        }
        connection.closing = true;
        connection.leftover = Vec::new();
        connection.discard = 0;
        let given = connection.give_back_input(&mut self.buffers);
        connection.bytes -= given;
        connection.requests -= usize::from(given > 0);
        self.bytes -= given;
        self.touched.push(index);
    }

    /// Ends the connection without answering: nobody is there, or not to be trusted.
    pub fn cut(&mut self, index: usize, why: Option<String>) {
        self.close(index, why.as_deref());
        let Some(connection) = self.connections[index].as_mut() else {
            return;
        };
        connection.dead = true;
        let left = connection.output.clear(&mut self.buffers);
        connection.bytes -= left.released;
        connection.requests -= left.ended;
        self.bytes -= left.released;
    }
}

impl Incoming {
    /// Where the next bytes go; never empty while there are any to come.
    fn target(&mut self, buffers: &mut Buffers) -> &mut [u8] {
        let (span, buffer) = &mut self.pieces[self.at];
        let (start, end) = (span.skip + self.filled, span.skip + span.length);
        // Room for the whole sectors: what is not overwritten is read into it.
        let buffer = buffer.get_or_insert_with(|| buffers.take(span.sectors));
        &mut buffer[start..end]
    }

    /// Goes on to the next piece when this one is full. True when all are.
    fn step(&mut self) -> bool {
        if self.filled == self.pieces[self.at].0.length {
            self.filled = 0;
            self.at += 1;
        }
        self.at == self.pieces.len()
    }
}
