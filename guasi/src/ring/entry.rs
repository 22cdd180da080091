//! Turning a call into an entry of the submission ring.

use std::os::fd::RawFd;

use io_uring::{Probe, opcode, squeue, types};

use crate::calls::{IoCall, VectorsAt};

/// The offset that means the file's own position, as read(2) and write(2) use it.
const AT_POSITION: u64 = u64::MAX;

/// The number of the operation that a call needs; `None` for one that has none.
pub(super) fn operation(call: &IoCall) -> Option<u8> {
    Some(match call {
        IoCall::Nothing => opcode::Nop::CODE,
        IoCall::Read { .. } | IoCall::ReadAt { .. } => opcode::Read::CODE,
        IoCall::Write { .. } | IoCall::WriteAt { .. } => opcode::Write::CODE,
        IoCall::ReadVectorsAt(_) => opcode::Readv::CODE,
        IoCall::WriteVectorsAt(_) => opcode::Writev::CODE,
        IoCall::Allocate { .. } => opcode::Fallocate::CODE,
        IoCall::Sync { .. } | IoCall::DataSync { .. } => opcode::Fsync::CODE,
        IoCall::Open { .. } => opcode::OpenAt::CODE,
        IoCall::Statx(_) => opcode::Statx::CODE,
        IoCall::Receive { .. } => opcode::Recv::CODE,
        IoCall::Send { .. } => opcode::Send::CODE,
        IoCall::Accept { .. } => opcode::Accept::CODE,
        IoCall::Connect { .. } => opcode::Connect::CODE,
        IoCall::DiscardBlocks { .. } => return None,
    })
}

/// Whether a ring that knows these operations takes the call, as far as can be said before it is
/// handed over ([`Files`] looks then). The ring waits for data where read(2) of a non-blocking file
/// fails with EAGAIN: such calls are for workers.
#[inline]
pub(super) fn takes(known: &Probe, call: &IoCall) -> bool {
    let is_known = |code| known.is_supported(code);
    operation(call).is_some_and(is_known)
        && fits(call)
        && match *call {
            IoCall::Read { fd, .. } | IoCall::Write { fd, .. } => is_blocking(fd),
            _ => true,
        }
}

fn is_blocking(fd: RawFd) -> bool {
    // SAFETY: the call only asks; a descriptor that is not open is an error.
    unsafe { libc::fcntl(fd, libc::F_GETFL) & libc::O_NONBLOCK == 0 }
}

/// The known files of the calls that are submitted together.
///
/// The ring ignores the offset of what has no position, where pread(2) fails with ESPIPE. A system
/// call tells, once for the same file in a batch: later the descriptor may be another file's.
#[derive(Default)]
pub(super) struct Files {
    /// The file of the last read at an offset, and whether it has offsets.
    read: Option<(RawFd, bool)>,
    /// The same of the last write.
    written: Option<(RawFd, bool)>,
}

impl Files {
    /// Whether the ring runs the call as a worker would.
    #[inline]
    pub(super) fn suit(&mut self, call: &IoCall) -> bool {
        let nothing = std::ptr::null();
        match *call {
            IoCall::ReadAt { fd, .. } | IoCall::ReadVectorsAt(VectorsAt { fd, .. }) => {
                // SAFETY: it transfers nothing; a descriptor that is not open is an error.
                let ask = || unsafe { libc::preadv64(fd, nothing, 0, 0) == 0 };
                remembered(&mut self.read, fd, ask)
            }
            IoCall::WriteAt { fd, .. } | IoCall::WriteVectorsAt(VectorsAt { fd, .. }) => {
                // SAFETY: as above.
                let ask = || unsafe { libc::pwritev64(fd, nothing, 0, 0) == 0 };
                remembered(&mut self.written, fd, ask)
            }
            _ => true,
        }
    }
}

/// The answer for this file, asked anew if the last one was about another.
fn remembered(last: &mut Option<(RawFd, bool)>, fd: RawFd, ask: impl FnOnce() -> bool) -> bool {
    match *last {
        Some((file, answer)) if file == fd => answer,
        _ => last.insert((fd, ask())).1,
    }
}

/// Whether an entry can say it: lengths in 32 bits, no limit of time, which would be a second
/// entry, and no negative offset, which would mean the file's own position.
fn fits(call: &IoCall) -> bool {
    let length = match *call {
        IoCall::Read { len, .. }
        | IoCall::ReadAt { len, .. }
        | IoCall::Write { len, .. }
        | IoCall::WriteAt { len, .. }
        | IoCall::Receive { len, .. }
        | IoCall::Send { len, .. } => len,
        _ => 0,
    };
    let offset = match *call {
        IoCall::Allocate { offset, .. } => offset,
        _ => call.file_and_offset().map_or(0, |(_, offset)| offset),
    };
    let is_timed = timeout_ms(call).is_some_and(|ms| ms >= 0);
    !is_timed && offset >= 0 && u32::try_from(length).is_ok()
}

/// How long a call on a socket may wait.
fn timeout_ms(call: &IoCall) -> Option<i64> {
    match *call {
        IoCall::Receive { timeout_ms, .. }
        | IoCall::Send { timeout_ms, .. }
        | IoCall::Accept { timeout_ms, .. }
        | IoCall::Connect { timeout_ms, .. } => Some(timeout_ms),
        _ => None,
    }
}

/// Whether the call waits until a socket is ready, whatever the socket's own mode.
pub(super) fn waits_for_socket(call: &IoCall) -> bool {
    timeout_ms(call).is_some()
}

/// The entry for a call.
pub(super) fn entry(call: &IoCall) -> squeue::Entry {
    let fd = types::Fd;
    match *call {
        IoCall::Read {
            fd: file,
            memory,
            len,
        } => opcode::Read::new(fd(file), memory, len as u32)
            .offset(AT_POSITION)
            .build(),
        // From a thread of the kernel: a pipe without readers sends SIGPIPE to the writer,
        // and that must not be the submitter.
        IoCall::Write {
            fd: file,
            memory,
            len,
        } => {
            let write = opcode::Write::new(fd(file), memory, len as u32).offset(AT_POSITION);
            write.build().flags(squeue::Flags::ASYNC)
        }
        IoCall::ReadAt {
            fd: file,
            memory,
            len,
            offset,
        } => opcode::Read::new(fd(file), memory, len as u32)
            .offset(offset as u64)
            .build(),
        IoCall::WriteAt {
            fd: file,
            memory,
            len,
            offset,
        } => opcode::Write::new(fd(file), memory, len as u32)
            .offset(offset as u64)
            .build(),
        IoCall::ReadVectorsAt(to) => {
            let read = opcode::Readv::new(fd(to.fd), to.vectors, to.count as u32);
            read.offset(to.offset as u64).rw_flags(to.flags).build()
        }
        IoCall::WriteVectorsAt(from) => {
            let write = opcode::Writev::new(fd(from.fd), from.vectors, from.count as u32);
            write
                .offset(from.offset as u64)
                .rw_flags(from.flags)
                .build()
        }
        IoCall::Allocate {
            fd: file,
            mode,
            offset,
            len,
        } => {
            let allocate = opcode::Fallocate::new(fd(file), len as u64);
            allocate.offset(offset as u64).mode(mode).build()
        }
        _ => file_entry(call),
    }
}

/// The entry for a call that transfers nothing.
fn file_entry(call: &IoCall) -> squeue::Entry {
    let fd = types::Fd;
    match *call {
        IoCall::Sync { fd: file } => opcode::Fsync::new(fd(file)).build(),
        IoCall::DataSync { fd: file } => opcode::Fsync::new(fd(file))
            .flags(types::FsyncFlags::DATASYNC)
            .build(),
        IoCall::Open { path, flags, mode } => opcode::OpenAt::new(fd(libc::AT_FDCWD), path)
            .flags(flags)
            .mode(mode)
            .build(),
        IoCall::Statx(of) => {
            let statx = opcode::Statx::new(fd(of.directory), of.path, of.memory.cast());
            statx.flags(of.flags).mask(of.mask).build()
        }
        _ => socket_entry(call),
    }
}

/// The entry for a call on a socket, or for one that does nothing.
fn socket_entry(call: &IoCall) -> squeue::Entry {
    let fd = types::Fd;
    // A worker waits until the socket is ready before it asks, so that this flag says nothing.
    let waiting = |flags: i32| flags & !libc::MSG_DONTWAIT;
    match *call {
        IoCall::Receive {
            fd: file,
            memory,
            len,
            flags,
            ..
        } => opcode::Recv::new(fd(file), memory, len as u32)
            .flags(waiting(flags))
            .build(),
        IoCall::Send {
            fd: file,
            memory,
            len,
            flags,
            ..
        } => opcode::Send::new(fd(file), memory, len as u32)
            .flags(waiting(flags))
            .build(),
        IoCall::Accept {
            fd: file,
            address,
            address_len,
            ..
        } => opcode::Accept::new(fd(file), address, address_len).build(),
        IoCall::Connect {
            fd: file,
            address,
            address_len,
            ..
        } => opcode::Connect::new(fd(file), address, address_len).build(),
        _ => opcode::Nop::new().build(),
    }
}
