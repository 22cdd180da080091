//! What a request is answered with.

use super::connection::cost;
use super::handshake::ALLOCATION_ID;
use super::operation::{Kind, Task};
use super::output::{Body, HEAD_BYTES_MAX, Output};
use super::worker::Worker;
use crate::span::Span;
use ugeom_format::wire::nbd::{
    CHUNK_HEADER_BYTES, ChunkHeader, HOLE_BYTES, Hole, Request, SimpleReply, Status, chunk,
    command, command_flag, encode_block_status, state,
};
use ugeom_stack::{Extent, ExtentKind};

impl Worker {
    /// Answers an operation whose tasks have all ended, and lets go of it.
    pub fn answer(&mut self, number: u32) {
        let operation = &mut self.operations[number as usize];
        let (index, request, silent) = (operation.connection, operation.request, operation.silent);
        let failure = operation.failure.take();
        let status = std::mem::take(&mut operation.status);
        let mut tasks = std::mem::take(&mut operation.tasks);
        if self.touched.last() != Some(&index) {
            self.touched.push(index);
        }
        if let Some(connection) = self.connections[index].as_mut() {
            let sector_bytes = connection.chosen.export.sector_bytes;
            let charge = if silent {
                0
            } else {
                cost(&request, sector_bytes)
            };
            connection.operations -= 1;
            let writes = matches!(
                request.command,
                command::WRITE | command::TRIM | command::WRITE_ZEROES
            );
            let not_flushed = failure.is_some() && request.command == command::FLUSH && !silent;
            connection.dirty |= writes || not_flushed;
            if silent {
                if let Some((_, why)) = &failure {
                    (self.log)(&format!(
                        "nbd: {}: the last FLUSH failed: {why}",
                        connection.who
                    ));
                }
            } else if connection.dead {
                connection.requests -= 1;
                connection.bytes -= charge;
                self.bytes -= charge;
            } else if let Some((errno, why)) = failure {
                self.refuse(index, &request, errno, &why, charge);
            } else {
                let structured = connection.structured;
                let output = &mut connection.output;
                match request.command {
                    command::READ if structured => put_chunks(output, &request, &mut tasks, charge),
                    command::READ => put_data(output, &request, &mut tasks, charge),
                    command::BLOCK_STATUS => {
                        let body = encode_block_status(ALLOCATION_ID, &status);
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
        }
        for task in tasks.drain(..) {
            if let Some(buffer) = task.buffer {
                self.buffers.put(buffer);
            }
        }
        self.operations[number as usize].tasks = tasks;
        self.unused.push(number);
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

/// A READ as chunks: one for each piece and each hole.
fn put_chunks(output: &mut Output, request: &Request, tasks: &mut [Task], charge: usize) {
    let whole = request.flags & command_flag::DF != 0;
    let is_sent = |task: &Task| matches!(task.kind, Kind::Read | Kind::Hole);
    let count = tasks.iter().filter(|task| is_sent(task)).count();
    let sent = tasks.iter_mut().filter(|task| is_sent(task));
    for (number, task) in sent.enumerate() {
        let last = number + 1 == count;
        let (charge, span) = (if last { charge } else { 0 }, task.span);
        let mut header = ChunkHeader {
            flags: if last || whole { chunk::DONE } else { 0 },
            kind: chunk::OFFSET_DATA,
            cookie: request.cookie,
            length_bytes: span.length as u32 + 8,
        };
        if task.kind == Kind::Hole {
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

/// The stretches of a block status: those of whole sectors, cut to the range.
pub(super) fn statuses(span: &Span, extents: &[Extent]) -> Vec<Status> {
    let mut statuses: Vec<Status> = Vec::new();
    let (mut at, end) = (0_u64, (span.skip + span.length) as u64);
    for extent in extents {
        let next = at.saturating_add(extent.length_bytes).min(end);
        let length = next.saturating_sub(at.max(span.skip as u64));
        let flags = match extent.kind {
            ExtentKind::Data => 0,
            ExtentKind::Zero => state::ZERO,
            ExtentKind::Hole => state::HOLE | state::ZERO,
        };
        if length > 0 {
            statuses.push(Status {
                length_bytes: length as u32,
                flags,
            });
        }
        at = next;
    }
    if statuses.is_empty() {
        statuses.push(Status {
            length_bytes: span.length as u32,
            flags: 0,
        });
    }
    statuses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_cut_to_the_range() {
        let span = Span::new(&(100..2000), 512);
        let extent = |length_bytes, kind| Extent { length_bytes, kind };
        let found = [
            extent(512, ExtentKind::Hole),
            extent(1536, ExtentKind::Data),
        ];
        let expected = [(412, 3), (1488, 0)];
        let expected = expected.map(|(length_bytes, flags)| Status {
            length_bytes,
            flags,
        });
        assert_eq!(statuses(&span, &found), expected);
        assert_eq!(statuses(&span, &[])[0].length_bytes, 1900);
    }
}
