//! The system calls that either backend can run, and how a worker runs them.

use std::ffi::c_char;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use crate::work::Outcome;

/// Discards a range of a block device: `_IO(0x12, 119)` of linux/fs.h.
const BLKDISCARD: libc::Ioctl = 0x1277;

/// A system call. Results and error numbers are those of section 2 of the manual.
///
/// `timeout_ms` is how long a call on a socket waits until it can go on; a negative one is no
/// limit. When it passes, the call fails with ETIMEDOUT.
#[derive(Clone, Copy, Debug)]
#[expect(
    missing_docs,
    reason = "the fields are the parameters of the calls, which the manual explains"
)]
pub enum IoCall {
    /// No call: it ends with 0.
    Nothing,
    /// `read(fd, memory, len)`
    Read {
        fd: RawFd,
        memory: *mut u8,
        len: usize,
    },
    /// `write(fd, memory, len)`
    Write {
        fd: RawFd,
        memory: *const u8,
        len: usize,
    },
    /// `pread(fd, memory, len, offset)`
    ReadAt {
        fd: RawFd,
        memory: *mut u8,
        len: usize,
        offset: i64,
    },
    /// `pwrite(fd, memory, len, offset)`
    WriteAt {
        fd: RawFd,
        memory: *const u8,
        len: usize,
        offset: i64,
    },
    /// `preadv2(fd, vectors, count, offset, flags)`
    ReadVectorsAt(VectorsAt),
    /// `pwritev2(fd, vectors, count, offset, flags)`
    WriteVectorsAt(VectorsAt),
    /// `fallocate(fd, mode, offset, len)`
    Allocate {
        fd: RawFd,
        mode: i32,
        offset: i64,
        len: i64,
    },
    /// `ioctl(fd, BLKDISCARD, { offset, len })`
    DiscardBlocks { fd: RawFd, offset: u64, len: u64 },
    /// `fsync(fd)`
    Sync { fd: RawFd },
    /// `fdatasync(fd)`
    DataSync { fd: RawFd },
    /// `open(path, flags, mode)`
    Open {
        path: *const c_char,
        flags: i32,
        mode: u32,
    },
    /// `statx(directory, path, flags, mask, memory)`
    Statx(Statx),
    /// `recv(fd, memory, len, flags)`
    Receive {
        fd: RawFd,
        memory: *mut u8,
        len: usize,
        flags: i32,
        timeout_ms: i64,
    },
    /// `send(fd, memory, len, flags)`
    Send {
        fd: RawFd,
        memory: *const u8,
        len: usize,
        flags: i32,
        timeout_ms: i64,
    },
    /// `accept(fd, address, address_len)`
    Accept {
        fd: RawFd,
        address: *mut libc::sockaddr,
        address_len: *mut libc::socklen_t,
        timeout_ms: i64,
    },
    /// `connect(fd, address, address_len)`. On a non-blocking socket it waits for the end of the
    /// attempt, and its result is that of the attempt.
    Connect {
        fd: RawFd,
        address: *const libc::sockaddr,
        address_len: libc::socklen_t,
        timeout_ms: i64,
    },
}

/// The parameters of preadv2(2) and pwritev2(2).
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the manual explains them")]
pub struct VectorsAt {
    pub fd: RawFd,
    pub vectors: *const libc::iovec,
    pub count: i32,
    pub offset: i64,
    pub flags: i32,
}

/// The parameters of statx(2).
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the manual explains them")]
pub struct Statx {
    pub directory: RawFd,
    pub path: *const c_char,
    pub flags: i32,
    pub mask: u32,
    pub memory: *mut libc::statx,
}

impl IoCall {
    /// The file and the offset of a read or write at an offset.
    pub(crate) fn file_and_offset(&self) -> Option<(RawFd, i64)> {
        match *self {
            IoCall::ReadAt { fd, offset, .. }
            | IoCall::WriteAt { fd, offset, .. }
            | IoCall::ReadVectorsAt(VectorsAt { fd, offset, .. })
            | IoCall::WriteVectorsAt(VectorsAt { fd, offset, .. }) => Some((fd, offset)),
            _ => None,
        }
    }
}

// SAFETY: the pointers are only used under the promise of `Io::new`, which covers all threads.
unsafe impl Send for IoCall {}

/// Runs the call in this thread.
///
/// # Safety
/// The promise of `Io::new`.
pub(crate) unsafe fn perform(call: &IoCall) -> Outcome {
    // SAFETY: memory, paths and addresses are valid by contract; a descriptor that is not open is
    // answered with EBADF.
    unsafe {
        match *call {
            IoCall::Read { fd, memory, len } => outcome(libc::read(fd, memory.cast(), len)),
            IoCall::Write { fd, memory, len } => outcome(libc::write(fd, memory.cast(), len)),
            IoCall::ReadAt {
                fd,
                memory,
                len,
                offset,
            } => outcome(libc::pread64(fd, memory.cast(), len, offset)),
            IoCall::WriteAt {
                fd,
                memory,
                len,
                offset,
            } => outcome(libc::pwrite64(fd, memory.cast(), len, offset)),
            IoCall::ReadVectorsAt(to) => outcome(libc::preadv2(
                to.fd, to.vectors, to.count, to.offset, to.flags,
            )),
            IoCall::WriteVectorsAt(from) => {
                let (count, offset) = (from.count, from.offset);
                outcome(libc::pwritev2(
                    from.fd,
                    from.vectors,
                    count,
                    offset,
                    from.flags,
                ))
            }
            IoCall::Allocate {
                fd,
                mode,
                offset,
                len,
            } => outcome(libc::fallocate64(fd, mode, offset, len) as isize),
            IoCall::DiscardBlocks { fd, offset, len } => {
                let range = [offset, len];
                outcome(libc::ioctl(fd, BLKDISCARD, range.as_ptr()) as isize)
            }
            IoCall::Sync { fd } => outcome(libc::fsync(fd) as isize),
            IoCall::DataSync { fd } => outcome(libc::fdatasync(fd) as isize),
            IoCall::Open { path, flags, mode } => outcome(libc::open(path, flags, mode) as isize),
            IoCall::Statx(of) => {
                outcome(libc::statx(of.directory, of.path, of.flags, of.mask, of.memory) as isize)
            }
            _ => perform_on_socket(call),
        }
    }
}

/// Runs a call on a socket, or none, in this thread.
///
/// # Safety
/// The promise of `Io::new`.
unsafe fn perform_on_socket(call: &IoCall) -> Outcome {
    // SAFETY: as in `perform`.
    unsafe {
        match *call {
            IoCall::Receive {
                fd,
                memory,
                len,
                flags,
                timeout_ms,
            } => match ready(fd, libc::POLLIN, timeout_ms) {
                Ok(()) => outcome(libc::recv(fd, memory.cast(), len, flags)),
                Err(failed) => failed,
            },
            IoCall::Send {
                fd,
                memory,
                len,
                flags,
                timeout_ms,
            } => match ready(fd, libc::POLLOUT, timeout_ms) {
                Ok(()) => outcome(libc::send(fd, memory.cast(), len, flags)),
                Err(failed) => failed,
            },
            IoCall::Accept {
                fd,
                address,
                address_len,
                timeout_ms,
            } => match ready(fd, libc::POLLIN, timeout_ms) {
                Ok(()) => outcome(libc::accept(fd, address, address_len) as isize),
                Err(failed) => failed,
            },
            IoCall::Connect {
                fd,
                address,
                address_len,
                timeout_ms,
            } => match libc::connect(fd, address, address_len) {
                0 => Outcome::done(0),
                _ => connected_later(fd, errno(), timeout_ms),
            },
            _ => Outcome::done(0),
        }
    }
}

/// The end of a `connect` that failed with `error`: when the attempt goes on in the background,
/// waits for it.
fn connected_later(fd: RawFd, error: i32, timeout_ms: i64) -> Outcome {
    if error != libc::EINPROGRESS && error != libc::EALREADY {
        return Outcome::failed(error);
    }
    if let Err(failed) = ready(fd, libc::POLLOUT, timeout_ms) {
        return failed;
    }
    let (mut error, mut len) = (0i32, size_of::<i32>() as libc::socklen_t);
    // SAFETY: the kernel writes one number and its length, both ours.
    let asked = unsafe {
        let room = (&raw mut error).cast();
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_ERROR, room, &raw mut len)
    };
    match (asked, error) {
        (0, 0) => Outcome::done(0),
        (0, error) => Outcome::failed(error),
        _ => Outcome::failed(errno()),
    }
}

/// Waits until the descriptor can go on. A signal ends the wait with EINTR: a cancellation, since
/// workers block all others.
pub fn ready(fd: RawFd, events: i16, timeout_ms: i64) -> Result<(), Outcome> {
    let deadline = u64::try_from(timeout_ms)
        .ok()
        .and_then(|ms| Instant::now().checked_add(Duration::from_millis(ms)));
    loop {
        // Longer than poll(2) can wait: in several waits.
        let left_ms = deadline.map_or(-1, |end| {
            let left = end.saturating_duration_since(Instant::now());
            i32::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
        });
        let mut polled = libc::pollfd {
            fd,
            events,
            revents: 0,
        };
        // SAFETY: one pollfd, ours.
        match unsafe { libc::poll(&raw mut polled, 1, left_ms) } {
            -1 => return Err(Outcome::failed(errno())),
            0 if left_ms < i32::MAX => return Err(Outcome::failed(libc::ETIMEDOUT)),
            0 => {}
            _ if polled.revents & libc::POLLNVAL != 0 => return Err(Outcome::failed(libc::EBADF)),
            _ => return Ok(()),
        }
    }
}

/// How a call of the C library ended.
pub(crate) fn outcome(result: isize) -> Outcome {
    match result {
        -1 => Outcome::failed(errno()),
        result => Outcome::done(result),
    }
}

/// The error number of this thread.
pub(crate) fn errno() -> i32 {
    // SAFETY: the location is this thread's own.
    unsafe { *libc::__errno_location() }
}

pub(crate) fn clear_errno() {
    // SAFETY: the location is this thread's own.
    unsafe { *libc::__errno_location() = 0 };
}
