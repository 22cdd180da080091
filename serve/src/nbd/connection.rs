//! One client's connection in the transmission phase: its input, its pending replies, and the
//! validation of its requests.

use super::Limits;
use super::budget::{Account, cost};
use super::complaints::Complaints;
use super::divided::Divided;
use super::exports::Chosen;
use super::handshake::{Contexts, ReplyStyle, Session};
use super::output::{Output, Sent};
use super::peers::Presence;
use super::reply::put_error;
use crate::buffers::Buffers;
use rustix::io::Errno;
use std::sync::Arc;
use ugeom_engine::reactor::{Interest, Source};
use ugeom_format::wire::nbd::{
    EXTENDED_REQUEST_BYTES, Error, ExtendedRequest, REQUEST_BYTES, Request, command, command_flag,
    error,
};
use ugeom_machine::buffer::Buffer;
use ugeom_stack::unaligned::Span;
use ugeom_tls::Stream;

/// Failed requests of a connection that are written to the log.
const FAILURES_LOGGED: u32 = 10;

/// A connection that has shaken hands.
pub(super) struct Admission {
    /// Its number among all connections of the server.
    pub id: u64,
    pub presence: Arc<Presence>,
    pub stream: Stream,
    pub who: String,
    pub session: Session,
    /// Bytes that it has sent already.
    pub early: Vec<u8>,
}

/// A WRITE whose data is on its way.
pub(super) struct Incoming {
    pub request: ExtendedRequest,
    /// The number of the divided request that this is a part of.
    pub part_of: Option<u32>,
    pub pieces: Vec<(Span, Option<Buffer>)>,
    at: usize,
    pub filled: usize,
}

/// Data of a refused WRITE that is still to come. libnbd takes a reply before the end of its
/// message for a fault of the server, so the error waits for it.
pub(super) struct Unwanted {
    pub bytes: u64,
    /// The number of the divided request that it belongs to.
    pub of: Option<u32>,
    /// The error, once nothing of the request is in flight.
    pub refusal: Option<Refusal>,
}

/// The error of a request, to be sent.
pub(super) struct Refusal {
    pub request: ExtendedRequest,
    pub errno: u32,
    pub why: String,
    /// Bytes that the request is charged for.
    pub charge: usize,
}

/// A connection in the transmission phase.
pub(super) struct Connection {
    /// Its number among all connections of the server.
    pub id: u64,
    /// Its state for the control thread.
    presence: Arc<Presence>,
    pub stream: Stream,
    pub source: Source,
    pub who: String,
    pub chosen: Arc<Chosen>,
    pub style: ReplyStyle,
    pub contexts: Contexts,
    /// The beginning of a message that is not whole, or messages that wait for room.
    pub leftover: Vec<u8>,
    pub incoming: Option<Incoming>,
    /// The request of which not all parts have begun.
    pub dividing: Option<Divided>,
    /// Those of which all have begun, and not all ended.
    pub divided: Vec<Divided>,
    /// How many there have been.
    pub divided_count: u32,
    pub unwanted: Option<Unwanted>,
    pub output: Output,
    pub account: Account,
    /// Operations in the stack.
    pub operations: usize,
    /// Something was written that no FLUSH has covered.
    pub dirty: bool,
    /// Nothing more is read.
    pub closing: bool,
    /// The client is gone: nothing is answered.
    pub dead: bool,
    pub held_back: bool,
    pub watched: Interest,
    pub progress_ns: u64,
    failures: u32,
}

impl Connection {
    pub fn new(admission: Admission, source: Source, now_ns: u64) -> Self {
        let session = admission.session;
        Self {
            id: admission.id,
            presence: admission.presence,
            stream: admission.stream,
            source,
            who: admission.who,
            chosen: Arc::new(session.chosen),
            style: session.style,
            contexts: session.contexts,
            leftover: Vec::new(),
            incoming: None,
            dividing: None,
            divided: Vec::new(),
            divided_count: 0,
            unwanted: None,
            output: Output::default(),
            account: Account::new(),
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

    /// Gives the buffers of an incomplete WRITE back; returns the bytes it was charged for.
    pub fn give_back_input(&mut self, buffers: &mut Buffers) -> usize {
        let Some(incoming) = self.incoming.take() else { return 0 };
        for (_, buffer) in incoming.pieces {
            if let Some(buffer) = buffer {
                buffers.put(buffer);
            }
        }
        cost(&incoming.request, self.chosen.export.sector_bytes)
    }

    /// Goes on to the next request when the one in `dividing` has begun in full.
    pub fn settle_dividing(&mut self) {
        if let Some(divided) = self.dividing.take_if(|it| it.lets_others_begin()) {
            self.divided.push(divided);
        }
    }

    /// Why a client is left that has not moved for too long.
    pub fn silent_too_long(&self, now_ns: u64, limits: &Limits) -> Option<&'static str> {
        let silent_ns = u128::from(now_ns.saturating_sub(self.progress_ns));
        let stalled = silent_ns > limits.stall.as_nanos();
        let half = self.incoming.is_some()
            || self.unwanted.is_some()
            || (!self.leftover.is_empty() && !self.held_back);
        if stalled && !self.output.is_empty() {
            return Some("it does not read its replies");
        }
        if stalled && half && !self.closing {
            return Some("timeout in the middle of a message");
        }
        let idle = silent_ns > limits.idle.as_nanos();
        let asks_nothing = self.account.requests == 0 && self.dividing.is_none();
        (idle && asks_nothing && !self.closing).then_some("it was idle for too long")
    }

    /// The error of a request, with the reason in plain words.
    pub fn problem(&self, request: &ExtendedRequest) -> Option<(u32, &'static str)> {
        use command_flag::{DF, FAST_ZERO, FUA, NO_HOLE, REQ_ONE};
        let export = &self.chosen.export;
        let (allowed, changes) = match request.command {
            command::READ => (FUA | DF, false),
            command::WRITE | command::TRIM => (FUA, true),
            command::FLUSH | command::CACHE => (FUA, false),
            command::WRITE_ZEROES => (FUA | NO_HOLE | FAST_ZERO, true),
            command::BLOCK_STATUS => (FUA | REQ_ONE, false),
            _ => return Some((error::EINVAL, "unknown command")),
        };
        if request.flags & !allowed != 0 {
            return Some((error::EINVAL, "the command has no such flags"));
        }
        if request.flags & DF != 0 && self.style == ReplyStyle::Simple {
            return Some((error::EINVAL, "DF needs structured replies"));
        }
        let chunk_bytes_max = u64::from(u32::MAX) - 8;
        if request.flags & DF != 0
            && self.style == ReplyStyle::Chunks
            && request.length_bytes > chunk_bytes_max
        {
            return Some((error::EOVERFLOW, "no chunk is as long as that"));
        }
        if changes && !export.writable {
            return Some((error::EPERM, "the export is read-only"));
        }
        if request.command == command::FLUSH {
            let plain = request.offset_bytes == 0 && request.length_bytes == 0;
            return (!plain).then_some((error::EINVAL, "a FLUSH has no range"));
        }
        if request.command == command::BLOCK_STATUS && !self.contexts.any() {
            return Some((error::EINVAL, "no context was chosen for BLOCK_STATUS"));
        }
        if request.length_bytes == 0 {
            return Some((error::EINVAL, "the length is 0"));
        }
        let end = request.offset_bytes.checked_add(request.length_bytes);
        if end.is_none_or(|end| end > export.size_bytes) {
            let errno = match request.command {
                command::WRITE | command::WRITE_ZEROES => error::ENOSPC,
                _ => error::EINVAL,
            };
            return Some((errno, "the range reaches past the end of the export"));
        }
        None
    }

    /// The request at the beginning of `bytes`, and how long its header is; `None` when it is not
    /// whole.
    ///
    /// # Errors
    /// It begins with another magic number.
    #[inline]
    pub fn decode(&self, bytes: &[u8]) -> Result<Option<(ExtendedRequest, usize)>, Error> {
        if self.style != ReplyStyle::Extended {
            let Some(header) = bytes.first_chunk::<REQUEST_BYTES>() else { return Ok(None) };
            return Ok(Some((Request::decode(header)?.into(), REQUEST_BYTES)));
        }
        let Some(header) = bytes.first_chunk::<EXTENDED_REQUEST_BYTES>() else { return Ok(None) };
        let mut request = ExtendedRequest::decode(header)?;
        if request.command == command::WRITE {
            // It has a payload in any case.
            request.flags &= !command_flag::PAYLOAD_LEN;
        }
        Ok(Some((request, EXTENDED_REQUEST_BYTES)))
    }

    /// The length of the payload of a request, bytes.
    pub fn payload_bytes(&self, request: &ExtendedRequest) -> u64 {
        if self.style == ReplyStyle::Extended || request.command == command::WRITE {
            request.payload_bytes()
        } else {
            0
        }
    }

    /// Reads past data of a refused WRITE, and answers the WRITE behind it; returns the bytes of
    /// `input` that belonged to it.
    pub fn skip_unwanted(&mut self, input: &[u8], complaints: &Complaints) -> usize {
        let Some(unwanted) = &mut self.unwanted else { return 0 };
        let now = unwanted.bytes.min(input.len() as u64);
        unwanted.bytes -= now;
        let come = self.unwanted.take_if(|it| it.bytes == 0);
        if let Some(refusal) = come.and_then(|it| it.refusal) {
            self.refuse(&refusal, complaints);
        }
        now as usize
    }

    /// Answers a request with an error, or lets the error wait for the rest of the request.
    pub fn refuse_when_read(
        &mut self,
        refusal: Refusal,
        part_of: Option<u32>,
        complaints: &Complaints,
    ) {
        match &mut self.unwanted {
            Some(unwanted) if unwanted.of == part_of => unwanted.refusal = Some(refusal),
            _ => self.refuse(&refusal, complaints),
        }
    }

    /// Answers a request with an error.
    pub fn refuse(&mut self, refusal: &Refusal, complaints: &Complaints) {
        let Refusal {
            request,
            errno,
            why,
            charge,
        } = refusal;
        self.failures += 1;
        if self.failures <= FAILURES_LOGGED {
            let ExtendedRequest {
                command,
                offset_bytes,
                length_bytes,
                ..
            } = request;
            let name = &self.chosen.export.name;
            let what = match command::name(*command) {
                Some(known) => known.to_owned(),
                None => format!("command {command}"),
            };
            let range = match *command {
                command::FLUSH => String::new(),
                _ => format!(" of {length_bytes} bytes at {offset_bytes}"),
            };
            let last = if self.failures == FAILURES_LOGGED {
                " (more of it is not logged)"
            } else {
                ""
            };
            let request = format!("{what}{range} of {name}: ");
            // The error of the export itself has the same beginning.
            let why = why.strip_prefix(&request).unwrap_or(why);
            complaints.say(format_args!("{}: {request}{why}{last}", self.who));
        }
        let error = (*errno, why.as_str());
        put_error(&mut self.output, request, self.style, error, *charge);
    }

    /// Sends as much of the replies as the socket takes.
    pub fn send(&mut self, buffers: &mut Buffers, now_ns: u64) -> Result<Sent, Errno> {
        let sent = self.output.send(&mut self.stream, buffers)?;
        if sent.progress {
            self.progress_ns = now_ns;
            self.presence.note_served();
        }
        Ok(sent)
    }

    /// Lets the control thread see when it has last moved.
    #[inline]
    pub fn show(&self) {
        self.presence.note(self.progress_ns, self.operations > 0);
    }

    /// The events that the reactor watches for: input unless there is no room for it, and room for
    /// output that waits.
    pub fn interest(&self) -> Interest {
        let reads = !self.closing && !self.held_back;
        Interest::of(reads, !self.output.is_empty())
    }

    /// Whether nothing is left to do of a connection that ends.
    pub fn has_ended(&self) -> bool {
        let begins = self.dividing.is_some();
        self.closing && self.operations == 0 && self.output.is_empty() && !begins
    }
}

impl Incoming {
    /// The data of a WRITE, none of which has come yet.
    pub fn new(request: ExtendedRequest, sector_bytes: u32, part_of: Option<u32>) -> Self {
        let start = request.offset_bytes;
        let range = start..start + request.length_bytes;
        let pieces = Span::pieces(range, sector_bytes.into());
        Self {
            request,
            part_of,
            pieces: pieces.map(|span| (span, None)).collect(),
            at: 0,
            filled: 0,
        }
    }

    /// Where the next bytes go; never empty while there are any to come.
    pub fn target(&mut self, buffers: &mut Buffers) -> &mut [u8] {
        let (span, buffer) = &mut self.pieces[self.at];
        let (start, end) = (span.skip + self.filled, span.skip + span.length);
        // Room for the whole sectors: what is not overwritten is read into it.
        let buffer = buffer.get_or_insert_with(|| buffers.take(span.sectors));
        &mut buffer[start..end]
    }

    /// Goes on to the next piece when this one is full. True when all are.
    pub fn step(&mut self) -> bool {
        if self.filled == self.pieces[self.at].0.length {
            self.filled = 0;
            self.at += 1;
        }
        self.at == self.pieces.len()
    }
}
