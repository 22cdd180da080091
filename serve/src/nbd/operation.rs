//! One request on its way through the stack: the tasks that it is divided into, and what each of
//! them has to do one after another. How they go through the stack is in `operations`.
//!
//! ```text
//!   READ          [look for holes]  read a piece of at most 1 MiB each, whole sectors
//!   WRITE         a piece each: claim the sectors; read those that change in part; write
//!   WRITE_ZEROES  the sectors at both ends as WRITE, all between with one ZERO
//!   TRIM          DELETE of the whole sectors inside
//!   CACHE         read, piece after piece, and forget
//!   BLOCK_STATUS  EXTENTS
//! ```
//!
//! Writers of whole sectors share their claims, so they wait only for those that change a
//! part of the same sector (see [`ugeom_stack::RangeLock`]).

use super::exports::Chosen;
use crate::span::Span;
use std::sync::Arc;
use ugeom_format::wire::nbd::{ExtendedRequest, ExtendedStatus, command, error, state};
use ugeom_machine::buffer::Buffer;
use ugeom_machine::lease::Lease;
use ugeom_stack::{Claim, Command, Errno, Extent, ExtentKind};

/// A READ of less is not worth the question where its holes are, bytes.
pub(super) const LOOK_BYTES_MIN: u64 = 64 << 10;

/// Stretches that are asked for before a READ, and for a BLOCK_STATUS.
pub(super) const LOOK_EXTENTS: usize = 64;
pub(super) const STATUS_EXTENTS: usize = 1024;

/// Stretches that are looked at to find out whether a ZERO has left a hole.
pub(super) const CHECK_EXTENTS: usize = 16;

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskKind {
    /// Asks for holes, and then reads what is none.
    Look,
    /// Reads a piece.
    Read,
    /// A stretch that reads as zeroes; nothing is to be done.
    Hole,
    /// Writes a piece.
    Write,
    /// Zeroes whole sectors.
    Zero,
    /// Looks whether zeroing has left a hole.
    Check,
    /// Writes zeroes, piece after piece.
    Fill,
    /// Gives whole sectors back.
    Delete,
    /// Makes durable.
    Flush,
    /// Asks for a block status.
    Status,
    /// Reads piece after piece, and forgets.
    Cache,
}

/// What makes durable what a connection has written, when it has ended.
pub(super) const LAST_FLUSH: ExtendedRequest = ExtendedRequest {
    flags: 0,
    command: command::FLUSH,
    cookie: 0,
    offset_bytes: 0,
    length_bytes: 0,
};

/// Parts of a task that are bios of their own.
pub(super) const MAIN: u8 = 0;
pub(super) const HEAD: u8 = 1;
pub(super) const TAIL: u8 = 2;

/// A bio: of which operation, task and part.
pub(super) type TaskPart = (u32, u32, u8);

/// A part of an operation.
pub(super) struct Task {
    pub kind: TaskKind,
    pub span: Span,
    pub buffer: Option<Buffer>,
    /// What a layer has lent in place of filling the buffer.
    pub lease: Option<Lease>,
    pub claim: Option<Claim>,
    /// Bios under way.
    pub left: u8,
    /// Bytes done of what goes piece after piece.
    pub done: u64,
}

/// A request in the stack.
pub(super) struct Operation {
    /// Whose it is.
    pub connection: usize,
    /// The provider; `None` while the operation is not used.
    pub chosen: Option<Arc<Chosen>>,
    pub request: ExtendedRequest,
    pub tasks: Vec<Task>,
    /// Tasks that have not ended.
    pub open: usize,
    pub failure: Option<(u32, String)>,
    /// The answer to a BLOCK_STATUS.
    pub status: Vec<ExtendedStatus>,
    /// A FLUSH follows before it is answered.
    pub then_flush: bool,
    /// No client has asked for it, so there is no reply.
    pub silent: bool,
    /// The number of the divided request that this is a part of.
    pub part_of: Option<u32>,
}

impl Operation {
    /// One that is there to be used.
    pub fn unused() -> Self {
        Self {
            connection: 0,
            chosen: None,
            request: LAST_FLUSH,
            tasks: Vec::new(),
            open: 0,
            failure: None,
            status: Vec::new(),
            then_flush: false,
            silent: false,
            part_of: None,
        }
    }
}

/// A request that has been through the stack.
pub(super) struct Ended {
    pub number: u32,
    pub connection: usize,
    pub request: ExtendedRequest,
    pub silent: bool,
    pub part_of: Option<u32>,
    pub failure: Option<(u32, String)>,
    pub status: Vec<ExtendedStatus>,
    pub tasks: Vec<Task>,
}

/// The word that a bio carries: of which operation, task and part it is.
pub(super) fn cookie_of(number: u32, at: u32, part: u8) -> u64 {
    u64::from(number) << 32 | u64::from(at) << 8 | u64::from(part)
}

/// Puts what stays of a sector beside the data that changes.
pub(super) fn copy_edge(task: &mut Task, part: u8, sector: &[u8]) {
    let span = task.span;
    let Some(buffer) = &mut task.buffer else {
        return;
    };
    let end = span.skip + span.length;
    if part == HEAD {
        buffer[..span.skip].copy_from_slice(&sector[..span.skip]);
        if end < sector.len() {
            buffer[end..sector.len()].copy_from_slice(&sector[end..]);
        }
    } else {
        let last = span.sectors - sector.len();
        buffer[end..span.sectors].copy_from_slice(&sector[end - last..]);
    }
}

pub(super) fn carries(command: Command) -> bool {
    matches!(command, Command::Read | Command::Write | Command::Zero)
}

/// The protocol's number of an error.
pub(super) fn number_of(errno: Errno) -> u32 {
    match errno {
        Errno::PERM | Errno::ROFS | Errno::ACCESS => error::EPERM,
        Errno::NOMEM => error::ENOMEM,
        Errno::INVAL => error::EINVAL,
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => error::ENOSPC,
        Errno::OPNOTSUPP => error::ENOTSUP,
        _ => error::EIO,
    }
}

/// The stretches of a block status: those of whole sectors, cut to the range.
pub(super) fn statuses(span: &Span, extents: &[Extent]) -> Vec<ExtendedStatus> {
    let mut statuses: Vec<ExtendedStatus> = Vec::new();
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
            statuses.push(ExtendedStatus {
                length_bytes: length,
                flags: flags.into(),
            });
        }
        at = next;
    }
    if statuses.is_empty() {
        statuses.push(ExtendedStatus {
            length_bytes: span.length as u64,
            flags: 0,
        });
    }
    statuses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_a_range_inside_one_sector_keep_their_neighbours() {
        let mut task = Task {
            kind: TaskKind::Write,
            span: Span::new(&(520..530), 512),
            buffer: Some(Buffer::from_slice(&[9; 512])),
            lease: None,
            claim: None,
            left: 1,
            done: 0,
        };
        copy_edge(&mut task, HEAD, &[1; 512]);
        let buffer = task.buffer.expect("a buffer");
        assert_eq!((buffer[7], buffer[8], buffer[17], buffer[18]), (1, 9, 9, 1));
    }

    #[test]
    fn a_status_is_cut_to_the_range() {
        let span = Span::new(&(100..2000), 512);
        let extent = |length_bytes, kind| Extent { length_bytes, kind };
        let found = [
            extent(512, ExtentKind::Hole),
            extent(1536, ExtentKind::Data),
        ];
        let expected = [(412, 3), (1488, 0)];
        let expected = expected.map(|(length_bytes, flags)| ExtendedStatus {
            length_bytes,
            flags,
        });
        assert_eq!(statuses(&span, &found), expected);
        assert_eq!(statuses(&span, &[])[0].length_bytes, 1900);
    }
}
