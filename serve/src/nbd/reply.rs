//! Replies to requests.

use super::handshake::{ALLOCATION_ID, Contexts, DEPTH_ID, ReplyStyle};
use super::operation::{Ended, Task, TaskKind};
use super::output::{Body, HEAD_BYTES_MAX, Output};
use ugeom_format::wire::nbd::{
    CHUNK_HEADER_BYTES, ChunkHeader, EXTENDED_CHUNK_HEADER_BYTES, ErrorChunk, ExtendedChunkHeader,
    ExtendedRequest, ExtendedStatus, HOLE_BYTES, Hole, SIMPLE_REPLY_BYTES, SimpleReply, Status,
    chunk, command, command_flag, encode_block_status, encode_extended_status, state,
};

/// Bytes of offset before the data of a chunk.
const OFFSET_BYTES: u64 = 8;

/// The head of a message.
struct Head {
    bytes: [u8; HEAD_BYTES_MAX],
    length: usize,
}

impl Head {
    #[inline]
    fn simple(cookie: u64) -> Self {
        let mut bytes = [0; HEAD_BYTES_MAX];
        let reply = SimpleReply { error: 0, cookie };
        bytes[..SIMPLE_REPLY_BYTES].copy_from_slice(&reply.encode());
        Self {
            bytes,
            length: SIMPLE_REPLY_BYTES,
        }
    }

    /// Of a chunk in the reply to a request, with so much behind it.
    #[inline]
    fn chunk(
        style: ReplyStyle,
        request: &ExtendedRequest,
        (flags, kind): (u16, u16),
        length_bytes: u64,
    ) -> Self {
        let mut bytes = [0; HEAD_BYTES_MAX];
        let cookie = request.cookie;
        if style == ReplyStyle::Extended {
            let header = ExtendedChunkHeader {
                flags,
                kind,
                cookie,
                offset_bytes: request.offset_bytes,
                length_bytes,
            };
            bytes[..EXTENDED_CHUNK_HEADER_BYTES].copy_from_slice(&header.encode());
            let length = EXTENDED_CHUNK_HEADER_BYTES;
            return Self { bytes, length };
        }
        let header = ChunkHeader {
            flags,
            kind,
            cookie,
            // Longer requests are refused, see `Connection::problem`.
            length_bytes: length_bytes as u32,
        };
        bytes[..CHUNK_HEADER_BYTES].copy_from_slice(&header.encode());
        let length = CHUNK_HEADER_BYTES;
        Self { bytes, length }
    }

    /// With the offset of the data behind it.
    #[inline]
    fn with_offset(mut self, offset_bytes: u64) -> Self {
        let end = self.length + OFFSET_BYTES as usize;
        self.bytes[self.length..end].copy_from_slice(&offset_bytes.to_be_bytes());
        self.length = end;
        self
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Answers a request that went well.
pub(super) fn put_reply(
    output: &mut Output,
    ended: &mut Ended,
    (style, contexts): (ReplyStyle, Contexts),
    charge: usize,
) {
    let request = &ended.request;
    match (request.command, style) {
        (command::READ, ReplyStyle::Simple) => {
            put_data(output, request, &mut ended.tasks, charge);
        }
        (command::READ, _) => {
            put_chunks(output, request, &mut ended.tasks, (style, charge), true);
        }
        (command::BLOCK_STATUS, _) => put_status(output, ended, (style, contexts), charge),
        (_, ReplyStyle::Extended) => {
            let head = Head::chunk(style, request, (chunk::DONE, chunk::NONE), 0);
            output.push(head.bytes(), Body::Nothing, charge, true);
        }
        _ => {
            let head = Head::simple(request.cookie);
            output.push(head.bytes(), Body::Nothing, charge, true);
        }
    }
}

/// Answers a BLOCK_STATUS: a chunk for each context.
fn put_status(
    output: &mut Output,
    ended: &Ended,
    (style, contexts): (ReplyStyle, Contexts),
    charge: usize,
) {
    let mut chosen = Vec::new();
    if contexts.allocation {
        chosen.push((ALLOCATION_ID, ended.status.clone()));
    }
    if contexts.depth {
        chosen.push((DEPTH_ID, depths(&ended.status)));
    }
    let count = chosen.len();
    for (number, (id, stretches)) in chosen.into_iter().enumerate() {
        let last = number + 1 == count;
        let (kind, body) = if style == ReplyStyle::Extended {
            let body = encode_extended_status(id, &stretches);
            (chunk::BLOCK_STATUS_EXT, body)
        } else {
            (
                chunk::BLOCK_STATUS,
                encode_block_status(id, &narrow(&stretches)),
            )
        };
        let flags = if last { chunk::DONE } else { 0 };
        let head = Head::chunk(style, &ended.request, (flags, kind), body.len() as u64);
        let charge = if last { charge } else { 0 };
        output.push(head.bytes(), Body::Bytes(body), charge, last);
    }
}

/// The depth of each extent: this layer, or none for a hole.
fn depths(stretches: &[ExtendedStatus]) -> Vec<ExtendedStatus> {
    let mut depths: Vec<ExtendedStatus> = Vec::new();
    for stretch in stretches {
        let flags = u64::from(stretch.flags & u64::from(state::HOLE) == 0);
        match depths.last_mut() {
            Some(last) if last.flags == flags => last.length_bytes += stretch.length_bytes,
            _ => depths.push(ExtendedStatus { flags, ..*stretch }),
        }
    }
    depths
}

/// As they are told with 32-bit lengths: those of a request are no longer.
fn narrow(stretches: &[ExtendedStatus]) -> Vec<Status> {
    let narrow = |stretch: &ExtendedStatus| Status {
        length_bytes: stretch.length_bytes as u32,
        flags: stretch.flags as u32,
    };
    stretches.iter().map(narrow).collect()
}

/// Answers a request with an error.
pub(super) fn put_error(
    output: &mut Output,
    request: &ExtendedRequest,
    style: ReplyStyle,
    (error, why): (u32, &str),
    charge: usize,
) {
    if style == ReplyStyle::Simple {
        let cookie = request.cookie;
        let head = SimpleReply { error, cookie };
        return output.push(&head.encode(), Body::Nothing, charge, true);
    }
    let message = why.to_owned();
    let message = ErrorChunk { error, message }.encode();
    let kind = (chunk::DONE, chunk::ERROR);
    let head = Head::chunk(style, request, kind, message.len() as u64);
    output.push(head.bytes(), Body::Bytes(message), charge, true);
}

/// A READ as a simple reply: one head, and all data behind it.
fn put_data(output: &mut Output, request: &ExtendedRequest, tasks: &mut [Task], charge: usize) {
    let head = Head::simple(request.cookie);
    let count = tasks.len();
    for (number, task) in tasks.iter_mut().enumerate() {
        let head = if number == 0 { head.bytes() } else { &[] };
        let last = number + 1 == count;
        output.push(head, data_of(task), if last { charge } else { 0 }, last);
    }
}

/// A READ as chunks: one for each piece and each hole. They end the reply, unless the request is a
/// part of a divided one that goes on.
pub(super) fn put_chunks(
    output: &mut Output,
    request: &ExtendedRequest,
    tasks: &mut [Task],
    (style, charge): (ReplyStyle, usize),
    ends_reply: bool,
) {
    let whole = request.flags & command_flag::DF != 0;
    let is_sent = |task: &Task| matches!(task.kind, TaskKind::Read | TaskKind::Hole);
    let count = tasks.iter().filter(|task| is_sent(task)).count();
    let sent = tasks.iter_mut().filter(|task| is_sent(task));
    for (number, task) in sent.enumerate() {
        let last = number + 1 == count;
        let (charge, span) = (if last { charge } else { 0 }, task.span);
        let done = (last && ends_reply) || whole;
        let flags = if done { chunk::DONE } else { 0 };
        if task.kind == TaskKind::Hole {
            let kind = (flags, chunk::OFFSET_HOLE);
            let head = Head::chunk(style, request, kind, HOLE_BYTES as u64);
            let hole = Hole {
                offset_bytes: span.offset,
                // READs that are not divided are shorter than 4 GiB.
                length_bytes: span.length as u32,
            };
            let body = Body::Bytes(hole.encode().to_vec());
            output.push(head.bytes(), body, charge, last);
            continue;
        }
        let data_bytes = if whole {
            request.length_bytes
        } else {
            span.length as u64
        };
        let kind = (flags, chunk::OFFSET_DATA);
        let head = Head::chunk(style, request, kind, data_bytes + OFFSET_BYTES);
        let head = head.with_offset(span.offset);
        // With DF all pieces are one chunk.
        let head = if whole && number > 0 {
            &[]
        } else {
            head.bytes()
        };
        output.push(head, data_of(task), charge, last);
    }
}

/// The next part of a READ whose reply is one stretch of data, with its head before the first.
pub(super) fn put_stretch(
    output: &mut Output,
    whole: &ExtendedRequest,
    part: &mut Ended,
    style: ReplyStyle,
    charge: usize,
) {
    let first = part.request.offset_bytes == whole.offset_bytes;
    let head = if style == ReplyStyle::Simple {
        Head::simple(whole.cookie)
    } else {
        let kind = (chunk::DONE, chunk::OFFSET_DATA);
        let head = Head::chunk(style, whole, kind, whole.length_bytes + OFFSET_BYTES);
        head.with_offset(whole.offset_bytes)
    };
    let count = part.tasks.len();
    for (number, task) in part.tasks.iter_mut().enumerate() {
        let last = number + 1 == count;
        let head = if first && number == 0 {
            head.bytes()
        } else {
            &[]
        };
        output.push(head, data_of(task), if last { charge } else { 0 }, last);
    }
}

/// A READ of one piece, with its data.
#[inline]
pub(super) fn put_piece(
    output: &mut Output,
    request: &ExtendedRequest,
    style: ReplyStyle,
    body: Body,
    charge: usize,
) {
    let head = if style == ReplyStyle::Simple {
        Head::simple(request.cookie)
    } else {
        let kind = (chunk::DONE, chunk::OFFSET_DATA);
        let head = Head::chunk(style, request, kind, request.length_bytes + OFFSET_BYTES);
        head.with_offset(request.offset_bytes)
    };
    output.push(head.bytes(), body, charge, true);
}

fn data_of(task: &mut Task) -> Body {
    let (start, end) = (task.span.skip, task.span.skip + task.span.length);
    if let Some(lease) = task.lease.take() {
        return Body::Lent { lease, start, end };
    }
    match task.buffer.take() {
        Some(buffer) => Body::Data { buffer, start, end },
        None => Body::Bytes(vec![0; task.span.length]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_are_those_of_holes_and_of_all_else() {
        let status = |length_bytes, flags| ExtendedStatus {
            length_bytes,
            flags,
        };
        let stretches = [status(5, 0), status(6, 2), status(7, 3), status(8, 0)];
        let expected = [status(11, 1), status(7, 0), status(8, 1)];
        assert_eq!(depths(&stretches), expected);
    }
}
