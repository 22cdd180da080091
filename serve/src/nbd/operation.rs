//! One request on its way through the stack: its tasks, and the steps of each. How they go through
//! the stack is in `operations`.
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
//! part of the same sector (see [`ugeom_stack::unaligned::ClaimedSpan`]).

use super::exports::Chosen;
use std::sync::Arc;
use ugeom_format::wire::nbd::{ExtendedRequest, ExtendedStatus, command, error, state};
use ugeom_machine::buffer::Buffer;
use ugeom_machine::lease::Lease;
use ugeom_stack::unaligned::{ClaimedSpan, Edge, Span};
use ugeom_stack::{Command, Errno, Extent, ExtentKind};

/// A READ of less is not worth the question where its holes are, bytes.
pub(super) const LOOK_BYTES_MIN: u64 = 64 << 10;

/// Stretches that are asked for before a READ, and for a BLOCK_STATUS.
pub(super) const LOOK_EXTENTS: usize = 64;
pub(super) const STATUS_EXTENTS: usize = 1024;

/// Stretches that are looked at to find out whether a ZERO has left a hole.
pub(super) const CHECK_EXTENTS: usize = 16;

/// The work of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskKind {
    /// Asks for holes, and then reads the data between them.
    Look,
    Read,
    /// A stretch that reads as zeroes; nothing is to be done.
    Hole,
    Write,
    /// WRITE_ZEROES of whole sectors.
    Zero,
    /// Looks whether zeroing has left a hole.
    Check,
    /// Writes zeroes, piece after piece.
    Fill,
    /// Gives whole sectors back.
    Delete,
    /// FLUSH: earlier writes become durable.
    Flush,
    /// Asks for a block status.
    Status,
    /// Reads piece after piece, and forgets.
    Cache,
}

/// The FLUSH that makes the writes of an ended connection durable.
pub(super) const LAST_FLUSH: ExtendedRequest = ExtendedRequest {
    flags: 0,
    command: command::FLUSH,
    cookie: 0,
    offset_bytes: 0,
    length_bytes: 0,
};

/// Parts of a task that are bios of their own: the task, and the edges of a write.
pub(super) const MAIN: u8 = 0;
pub(super) const FIRST_EDGE: u8 = 1;
pub(super) const LAST_EDGE: u8 = 2;

pub(super) fn part_of_edge(edge: Edge) -> u8 {
    match edge {
        Edge::First => FIRST_EDGE,
        Edge::Last => LAST_EDGE,
    }
}

pub(super) fn edge_of_part(part: u8) -> Option<Edge> {
    match part {
        FIRST_EDGE => Some(Edge::First),
        LAST_EDGE => Some(Edge::Last),
        _ => None,
    }
}

/// A bio: of which operation, task and part.
pub(super) type TaskPart = (u32, u32, u8);

/// A part of an operation.
pub(super) struct Task {
    pub kind: TaskKind,
    pub span: Span,
    pub buffer: Option<Buffer>,
    /// The memory that a layer has lent in place of filling the buffer.
    pub lease: Option<Lease>,
    pub claimed: Option<ClaimedSpan>,
    /// Bytes done of what goes piece after piece.
    pub done: u64,
}

/// A request in the stack.
pub(super) struct Operation {
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
