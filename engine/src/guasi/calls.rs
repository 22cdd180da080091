//! Turning a step into a call that the crate `guasi` runs.

use std::os::fd::RawFd;

use ugeom_guasi::{IoCall, VectorsAt};
use ugeom_machine::buffer::Segment;

use crate::calls::PUNCH_HOLE;
use crate::progress::{Call, Step};

/// The call for a step on the file `fd`.
pub(super) fn call(fd: RawFd, step: &Step, pieces: &[Segment]) -> IoCall {
    let Step {
        call,
        offset,
        length,
    } = *step;
    // Ranges are below 2^63 (`progress::settled`).
    let at = offset as i64;
    let vectors = |flags| VectorsAt {
        fd,
        vectors: pieces.as_ptr().cast(),
        count: pieces.len() as i32,
        offset: at,
        flags,
    };
    match (call, pieces) {
        (Call::Read, [piece]) => IoCall::ReadAt {
            fd,
            memory: piece.base,
            len: piece.len,
            offset: at,
        },
        (Call::Read, _) => IoCall::ReadVectorsAt(vectors(0)),
        (Call::Write { durable: false }, [piece]) => IoCall::WriteAt {
            fd,
            memory: piece.base,
            len: piece.len,
            offset: at,
        },
        (Call::Write { durable }, _) => {
            IoCall::WriteVectorsAt(vectors(if durable { libc::RWF_DSYNC } else { 0 }))
        }
        (Call::DataSync, _) => IoCall::DataSync { fd },
        (Call::Sync, _) => IoCall::Sync { fd },
        (Call::PunchHole, _) => allocate(fd, PUNCH_HOLE.bits() as i32, at, length),
        (Call::ZeroRange, _) => allocate(fd, libc::FALLOC_FL_ZERO_RANGE, at, length),
        (Call::DiscardBlocks, _) => IoCall::DiscardBlocks {
            fd,
            offset,
            len: length,
        },
    }
}

fn allocate(fd: RawFd, mode: i32, offset: i64, length: u64) -> IoCall {
    IoCall::Allocate {
        fd,
        mode,
        offset,
        len: length as i64,
    }
}
