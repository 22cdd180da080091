//! Turning a step into an entry of the submission ring.

use std::os::fd::RawFd;

use io_uring::{opcode, squeue, types};
use ugeom_machine::buffer::Segment;

use crate::calls::PUNCH_HOLE;
use crate::op::Ticket;
use crate::progress::{Call, Step};

/// Marks the completion of a request to cancel. No ticket has this index.
const CANCELLATION: u64 = u64::MAX;

/// How an entry names its file.
#[derive(Clone, Copy)]
pub(super) enum Target {
    /// By its descriptor, looked up for each request.
    Descriptor(RawFd),
    /// By its index in the table of registered files.
    Registered(u32),
}

/// Evaluates the expression with the target as the type that the entry's constructor takes.
macro_rules! on {
    ($target:expr, $fd:ident => $entry:expr) => {
        match $target {
            Target::Descriptor(fd) => {
                let $fd = types::Fd(fd);
                $entry
            }
            Target::Registered(index) => {
                let $fd = types::Fixed(index);
                $entry
            }
        }
    };
}

/// The entry for a step; `None` for the one that has no entry: discarding blocks. `registered` is
/// the number of the registered memory that holds the only piece, `priority` that of transfers.
pub(super) fn entry(
    target: Target,
    step: &Step,
    pieces: &[Segment],
    registered: Option<u16>,
    priority: u16,
) -> Option<squeue::Entry> {
    let Step { call, offset, .. } = *step;
    let vectors = pieces.as_ptr().cast();
    let number = pieces.len() as u32;
    let flags = if call == (Call::Write { durable: true }) {
        libc::RWF_DSYNC
    } else {
        0
    };
    if let (Some(number), [piece]) = (registered, pieces) {
        return Some(on!(target, fd => {
            let len = piece.len as u32;
            if call == Call::Read {
                let read = opcode::ReadFixed::new(fd, piece.base, len, number);
                read.offset(offset).ioprio(priority).build()
            } else {
                let write = opcode::WriteFixed::new(fd, piece.base, len, number);
                write.offset(offset).rw_flags(flags).ioprio(priority).build()
            }
        }));
    }
    let entry = match (call, pieces) {
        (Call::Read, [piece]) => {
            let len = piece.len as u32;
            on!(target, fd => {
                let read = opcode::Read::new(fd, piece.base, len);
                read.offset(offset).ioprio(priority).build()
            })
        }
        (Call::Read, _) => {
            on!(target, fd => {
                let read = opcode::Readv::new(fd, vectors, number);
                read.offset(offset).ioprio(priority).build()
            })
        }
        (Call::Write { .. }, [piece]) => on!(target, fd => {
            let write = opcode::Write::new(fd, piece.base, piece.len as u32);
            write.offset(offset).rw_flags(flags).ioprio(priority).build()
        }),
        (Call::Write { .. }, _) => on!(target, fd => {
            let write = opcode::Writev::new(fd, vectors, number);
            write.offset(offset).rw_flags(flags).ioprio(priority).build()
        }),
        (Call::DataSync, _) => {
            let flags = types::FsyncFlags::DATASYNC;
            on!(target, fd => opcode::Fsync::new(fd).flags(flags).build())
        }
        (Call::Sync, _) => on!(target, fd => opcode::Fsync::new(fd).build()),
        (Call::PunchHole, _) => fallocate(target, step, PUNCH_HOLE.bits()),
        (Call::ZeroRange, _) => fallocate(target, step, libc::FALLOC_FL_ZERO_RANGE as u32),
        (Call::DiscardBlocks, _) => return None,
    };
    Some(entry)
}

fn fallocate(target: Target, step: &Step, mode: u32) -> squeue::Entry {
    on!(target, fd => {
        opcode::Fallocate::new(fd, step.length).offset(step.offset).mode(mode as i32).build()
    })
}

/// The entry that asks for the end of another.
pub(super) fn cancellation(ticket: Ticket) -> squeue::Entry {
    opcode::AsyncCancel::new(user_data(ticket))
        .build()
        .user_data(CANCELLATION)
}

/// The value that the kernel returns with a completion.
pub(super) fn user_data(ticket: Ticket) -> u64 {
    u64::from(ticket.serial) << 32 | u64::from(ticket.index)
}

/// The index of the operation; `None` for a request to cancel.
pub(super) fn index(user_data: u64) -> Option<u32> {
    (user_data != CANCELLATION).then_some(user_data as u32)
}
