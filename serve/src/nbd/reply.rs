//! What a request is answered with.

use super::handshake::ALLOCATION_ID;
use super::operation::{Ended, Task, TaskKind};
use super::output::{Body, HEAD_BYTES_MAX, Output};
use ugeom_format::wire::nbd::{
    CHUNK_HEADER_BYTES, ChunkHeader, ErrorChunk, HOLE_BYTES, Hole, Request, SimpleReply, chunk,
    command, command_flag, encode_block_status,
};

/// Answers a request that went well.
pub(super) fn put_reply(output: &mut Output, ended: &mut Ended, structured: bool, charge: usize) {
    let request = &ended.request;
    match request.command {
        command::READ if structured => put_chunks(output, request, &mut ended.tasks, charge, true),
        command::READ => put_data(output, request, &mut ended.tasks, charge),
        command::BLOCK_STATUS => {
            let body = encode_block_status(ALLOCATION_ID, &ended.status);
            let head = ChunkHeader {
                flags: chunk::DONE,
                kind: chunk::BLOCK_STATUS,
                cookie: request.cookie,
                length_bytes: body.len() as u32,
            };
            output.push(&head.encode(), Body::Bytes(body), charge, true);
        }
        _ => {
            let head = SimpleReply {
                error: 0,
                cookie: request.cookie,
            };
            output.push(&head.encode(), Body::Nothing, charge, true);
        }
    }
}

/// Answers a request with an error.
pub(super) fn put_error(
    output: &mut Output,
    request: &Request,
    structured: bool,
    errno: u32,
    why: &str,
    charge: usize,
) {
    let cookie = request.cookie;
    if structured {
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
        output.push(&head.encode(), Body::Bytes(message), charge, true);
    } else {
        let head = SimpleReply {
            error: errno,
            cookie,
        };
        output.push(&head.encode(), Body::Nothing, charge, true);
    }
}

/// A READ as a simple reply: one head, and all data behind it.
fn put_data(output: &mut Output, request: &Request, tasks: &mut [Task], charge: usize) {
    let head = SimpleReply {
        error: 0,
        cookie: request.cookie,
    };
    let head = head.encode();
    let count = tasks.len();
    for (number, task) in tasks.iter_mut().enumerate() {
        let (head, last): (&[u8], bool) =
            (if number == 0 { &head } else { &[] }, number + 1 == count);
        output.push(head, data_of(task), if last { charge } else { 0 }, last);
    }
}

/// A READ as chunks: one for each piece and each hole. They end the reply, unless the request is a
/// part of a divided one that goes on.
pub(super) fn put_chunks(
    output: &mut Output,
    request: &Request,
    tasks: &mut [Task],
    charge: usize,
    ends_reply: bool,
) {
    let whole = request.flags & command_flag::DF != 0;
    let is_sent = |task: &Task| matches!(task.kind, TaskKind::Read | TaskKind::Hole);
    let count = tasks.iter().filter(|task| is_sent(task)).count();
    let sent = tasks.iter_mut().filter(|task| is_sent(task));
    for (number, task) in sent.enumerate() {
        let last = number + 1 == count;
        let (charge, span) = (if last { charge } else { 0 }, task.span);
        let mut header = ChunkHeader {
            flags: if (last && ends_reply) || whole {
                chunk::DONE
            } else {
                0
            },
            kind: chunk::OFFSET_DATA,
            cookie: request.cookie,
            length_bytes: span.length as u32 + 8,
        };
        if task.kind == TaskKind::Hole {
            header.kind = chunk::OFFSET_HOLE;
            header.length_bytes = HOLE_BYTES as u32;
            let hole = Hole {
                offset_bytes: span.offset,
                length_bytes: span.length as u32,
            };
            let body = Body::Bytes(hole.encode().to_vec());
            output.push(&header.encode(), body, charge, last);
            continue;
        }
        if whole {
            header.length_bytes = request.length_bytes + 8;
        }
        let head = data_head(&header, span.offset);
        // With DF all pieces are one chunk.
        let head: &[u8] = if whole && number > 0 { &[] } else { &head };
        output.push(head, data_of(task), charge, last);
    }
}

/// The next part of a READ whose reply is one stretch of data, with its head before the first.
pub(super) fn put_stretch(
    output: &mut Output,
    whole: &Request,
    part: &mut Ended,
    structured: bool,
    charge: usize,
) {
    let first = part.request.offset_bytes == whole.offset_bytes;
    let (cookie, simple) = (
        whole.cookie,
        SimpleReply {
            error: 0,
            cookie: whole.cookie,
        },
    );
    let header = ChunkHeader {
        flags: chunk::DONE,
        kind: chunk::OFFSET_DATA,
        cookie,
        length_bytes: whole.length_bytes.saturating_add(8),
    };
    let (chunk_head, simple_head) = (data_head(&header, whole.offset_bytes), simple.encode());
    let head: &[u8] = match (first, structured) {
        (false, _) => &[],
        (true, true) => &chunk_head,
        (true, false) => &simple_head,
    };
    let count = part.tasks.len();
    for (number, task) in part.tasks.iter_mut().enumerate() {
        let last = number + 1 == count;
        let head = if number == 0 { head } else { &[] };
        output.push(head, data_of(task), if last { charge } else { 0 }, last);
    }
}

/// The head of a chunk of data.
#[inline]
fn data_head(header: &ChunkHeader, offset_bytes: u64) -> [u8; HEAD_BYTES_MAX] {
    let mut head = [0; HEAD_BYTES_MAX];
    head[..CHUNK_HEADER_BYTES].copy_from_slice(&header.encode());
    head[CHUNK_HEADER_BYTES..].copy_from_slice(&offset_bytes.to_be_bytes());
    head
}

/// A READ of one piece, with its data.
#[inline]
pub(super) fn put_piece(
    output: &mut Output,
    request: &Request,
    structured: bool,
    body: Body,
    charge: usize,
) {
    let cookie = request.cookie;
    if structured {
        let header = ChunkHeader {
            flags: chunk::DONE,
            kind: chunk::OFFSET_DATA,
            cookie,
            length_bytes: request.length_bytes + 8,
        };
        let head = data_head(&header, request.offset_bytes);
        output.push(&head, body, charge, true);
    } else {
        let head = SimpleReply { error: 0, cookie };
        output.push(&head.encode(), body, charge, true);
    }
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
