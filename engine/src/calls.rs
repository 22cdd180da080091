//! The system calls, one for each kind of step.

use std::os::fd::{BorrowedFd, RawFd};

use rustix::fs::{FallocateFlags, fallocate};
use ugeom_machine::buffer::Segment;

use crate::op::Errno;
use crate::progress::{Call, Step};

/// Discards a range of a block device: `_IO(0x12, 119)` of linux/fs.h.
const BLKDISCARD: libc::Ioctl = 0x1277;

/// The flags of fallocate(2) for a hole.
pub(crate) const PUNCH_HOLE: FallocateFlags =
    FallocateFlags::PUNCH_HOLE.union(FallocateFlags::KEEP_SIZE);

/// Makes one step, and sleeps until it is done. Returns the number of bytes.
///
/// # Safety
/// `fd` is open. For reads and writes, `pieces` are those of the step, alive, and accessed by
/// no other code.
pub(crate) unsafe fn perform(fd: RawFd, step: &Step, pieces: &[Segment]) -> Result<u64, Errno> {
    // SAFETY: the caller's promise: the descriptor outlives this call.
    let file = unsafe { BorrowedFd::borrow_raw(fd) };
    let done = |result: Result<(), Errno>| result.map(|()| step.length);
    let zero_range = FallocateFlags::ZERO_RANGE;
    match step.call {
        // SAFETY: the caller's promise.
        Call::Read => unsafe { read(fd, step.offset, pieces) },
        // SAFETY: the caller's promise.
        Call::Write { durable } => unsafe { write(fd, step.offset, pieces, durable) },
        Call::DataSync => rustix::fs::fdatasync(file).map(|()| 0),
        Call::Sync => rustix::fs::fsync(file).map(|()| 0),
        Call::PunchHole => done(fallocate(file, PUNCH_HOLE, step.offset, step.length)),
        Call::ZeroRange => done(fallocate(file, zero_range, step.offset, step.length)),
        Call::DiscardBlocks => {
            let range = [step.offset, step.length];
            // SAFETY: the request reads two 64-bit numbers, which `range` is.
            count(unsafe { libc::ioctl(fd, BLKDISCARD, range.as_ptr()) as isize })
                .map(|_| step.length)
        }
    }
}

/// # Safety
/// As `perform`.
unsafe fn read(fd: RawFd, offset: u64, pieces: &[Segment]) -> Result<u64, Errno> {
    let offset = offset as libc::off64_t;
    // SAFETY: the pieces are writable memory of ours (the caller's promise).
    count(unsafe {
        match pieces {
            [piece] => libc::pread64(fd, piece.base.cast(), piece.len, offset),
            _ => libc::preadv64(
                fd,
                pieces.as_ptr().cast(),
                pieces.len() as libc::c_int,
                offset,
            ),
        }
    })
}

/// # Safety
/// As `perform`.
unsafe fn write(fd: RawFd, offset: u64, pieces: &[Segment], durable: bool) -> Result<u64, Errno> {
    let offset = offset as libc::off64_t;
    let vectors = pieces.as_ptr().cast();
    let number = pieces.len() as libc::c_int;
    // SAFETY: the pieces are readable memory of ours (the caller's promise).
    count(unsafe {
        match pieces {
            [piece] if !durable => libc::pwrite64(fd, piece.base.cast(), piece.len, offset),
            _ if !durable => libc::pwritev64(fd, vectors, number, offset),
            _ => libc::pwritev2(fd, vectors, number, offset, libc::RWF_DSYNC),
        }
    })
}

/// Reads or writes at the file's own position. Durable writes are pwritev2(2) with the offset -1,
/// which means the same.
///
/// # Safety
/// As `perform`.
pub(crate) unsafe fn transfer_at_position(
    fd: RawFd,
    call: Call,
    pieces: &[Segment],
) -> Result<u64, Errno> {
    let vectors = pieces.as_ptr().cast();
    let number = pieces.len() as libc::c_int;
    // SAFETY: the pieces are memory of ours (the caller's promise).
    count(unsafe {
        match (call, pieces) {
            (Call::Read, [piece]) => libc::read(fd, piece.base.cast(), piece.len),
            (Call::Read, _) => libc::readv(fd, vectors, number),
            (Call::Write { durable: false }, [piece]) => {
                libc::write(fd, piece.base.cast(), piece.len)
            }
            (Call::Write { durable: true }, _) => {
                libc::pwritev2(fd, vectors, number, -1, libc::RWF_DSYNC)
            }
            _ => libc::writev(fd, vectors, number),
        }
    })
}

/// The result of a system call as the C library tells it.
pub(crate) fn count(result: isize) -> Result<u64, Errno> {
    u64::try_from(result).map_err(|_| {
        let error = std::io::Error::last_os_error();
        Errno::from_io_error(&error).unwrap_or(Errno::IO)
    })
}
