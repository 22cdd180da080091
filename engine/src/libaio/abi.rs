//! The kernel's asynchronous I/O as it is called: the structures of linux/aio_abi.h and the five
//! system calls io_setup(2), io_submit(2), io_getevents(2), io_cancel(2), io_destroy(2), for which
//! the C library has no functions.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::time::Duration;

use ugeom_machine::buffer::Segment;

use crate::progress::{Call, Step};

const PREAD: u16 = 0;
const PWRITE: u16 = 1;
const FSYNC: u16 = 2;
const FDSYNC: u16 = 3;
const PREADV: u16 = 7;
const PWRITEV: u16 = 8;

/// The completion is to be told to `resfd`, an eventfd.
pub(super) const FLAG_RESFD: u32 = 1;

/// The request has a priority of its own.
const FLAG_IOPRIO: u32 = 2;

/// A request: `struct iocb`.
#[repr(C)]
#[derive(Default)]
pub(super) struct Iocb {
    pub data: u64,
    #[cfg(target_endian = "little")]
    key: u32,
    rw_flags: u32,
    #[cfg(target_endian = "big")]
    key: u32,
    opcode: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    pub flags: u32,
    resfd: u32,
}

/// A completion: `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Event {
    pub data: u64,
    object: u64,
    /// The number of bytes, or an errno below 0.
    pub result: i64,
    second_result: i64,
}

impl Iocb {
    /// The request for a step; `None` for the calls that AIO does not know.
    pub fn new(fd: RawFd, step: &Step, pieces: &[Segment]) -> Option<Iocb> {
        let vectors = (pieces.as_ptr().expose_provenance(), pieces.len());
        let single = |piece: &Segment| (piece.base.expose_provenance(), piece.len);
        let (opcode, (buffer, bytes)) = match (step.call, pieces) {
            (Call::Read, [piece]) => (PREAD, single(piece)),
            (Call::Read, _) => (PREADV, vectors),
            (Call::Write { .. }, [piece]) => (PWRITE, single(piece)),
            (Call::Write { .. }, _) => (PWRITEV, vectors),
            (Call::DataSync, _) => (FDSYNC, (0, 0)),
            (Call::Sync, _) => (FSYNC, (0, 0)),
            (Call::PunchHole | Call::ZeroRange | Call::DiscardBlocks, _) => return None,
        };
        let durable = step.call == (Call::Write { durable: true });
        Some(Iocb {
            opcode,
            fd: fd as u32,
            buffer: buffer as u64,
            bytes: bytes as u64,
            // A sync takes no offset, and is refused with one.
            offset: if matches!(opcode, FSYNC | FDSYNC) {
                0
            } else {
                step.offset as i64
            },
            rw_flags: if durable { libc::RWF_DSYNC as u32 } else { 0 },
            ..Iocb::default()
        })
    }

    /// Gives the request an I/O priority; 0 is that of the thread.
    pub fn prioritize(&mut self, priority: u16) {
        if priority != 0 {
            self.flags |= FLAG_IOPRIO;
            self.priority = priority as i16;
        }
    }

    /// Asks for a count on the eventfd when the request has ended.
    pub fn tell(&mut self, eventfd: RawFd) {
        self.flags |= FLAG_RESFD;
        self.resfd = eventfd as u32;
    }
}

/// A context: the address at which the kernel has mapped its ring.
#[derive(Clone, Copy)]
pub(super) struct Context(pub libc::c_ulong);

/// The result of a system call as the C library tells it.
fn count(result: libc::c_long) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

impl Context {
    /// A context for `events` requests at a time.
    pub fn set_up(events: u32) -> io::Result<Context> {
        let mut context: libc::c_ulong = 0;
        // SAFETY: the kernel writes one word, which `context` is.
        count(unsafe { libc::syscall(libc::SYS_io_setup, events, &raw mut context) })?;
        Ok(Context(context))
    }

    /// Hands requests over, and returns how many were taken; an error is that of the first.
    ///
    /// # Safety
    /// All pointers lead to valid requests, whose memory stays valid and untouched until they end.
    pub unsafe fn submit(self, requests: &[*mut Iocb]) -> io::Result<usize> {
        let number = requests.len() as libc::c_long;
        // SAFETY: the caller's promise; the kernel copies the requests.
        count(unsafe { libc::syscall(libc::SYS_io_submit, self.0, number, requests.as_ptr()) })
    }

    /// Sleeps until a request has ended, and takes up to `events.len()` of the ends.
    pub fn wait(self, events: &mut [Event], timeout: Option<Duration>) -> io::Result<usize> {
        let timeout = timeout.map(|timeout| libc::timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        });
        let limit = timeout.as_ref().map_or(std::ptr::null(), |t| &raw const *t);
        let most = events.len() as libc::c_long;
        // SAFETY: room for `most` events, and a timeout that lives until the call returns.
        count(unsafe {
            let events = events.as_mut_ptr();
            libc::syscall(libc::SYS_io_getevents, self.0, 1_i64, most, events, limit)
        })
    }

    /// Asks for the early end of a request. It ends like all others, whether that helps or not.
    pub fn cancel(self, request: *mut Iocb) {
        let mut event = MaybeUninit::<Event>::uninit();
        // SAFETY: the kernel compares the pointer with those of requests that it has, and reads
        // the key behind it, which is alive as long as the engine.
        unsafe { libc::syscall(libc::SYS_io_cancel, self.0, request, event.as_mut_ptr()) };
    }

    /// Ends the context; returns once no request uses memory any more.
    pub fn destroy(self) {
        // SAFETY: the context is not used after this (the engine's drop).
        unsafe { libc::syscall(libc::SYS_io_destroy, self.0) };
    }
}
