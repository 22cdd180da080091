//! The beginning of a mount: the features that kernel and server agree on.

use super::classic::send;
use super::dispatch::TRANSFER_BYTES_MAX;
use super::error::FuseError;
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use ugeom_format::wire::fuse::{
    InHeader, Init, InitReply, MAJOR, MINOR, MINOR_MIN, READ_BYTES_MIN, Request, init_flag,
};

/// The kernel's pages, bytes: what [`TRANSFER_BYTES_MAX`] is divided by.
const PAGE_BYTES: u32 = 4096;

/// The most background requests in flight; libaio's and io_uring's are among them.
const BACKGROUND: u16 = 512;

/// The features that are always requested.
const WANTED: u64 = init_flag::ASYNC_READ
    | init_flag::BIG_WRITES
    | init_flag::ASYNC_DIO
    | init_flag::PARALLEL_DIROPS
    | init_flag::MAX_PAGES
    | init_flag::INIT_EXT
    | init_flag::DIRECT_IO_ALLOW_MMAP;

/// The first request of a mount.
pub(super) struct Hello {
    unique: u64,
    init: Init,
}

impl Hello {
    /// Waits for the first request (FUSE_INIT), and checks its version.
    pub fn receive(device: &OwnedFd) -> Result<Self, FuseError> {
        let odd = |problem: String| {
            FuseError::system("agreeing with the kernel", io::Error::other(problem))
        };
        let mut bytes = vec![0; READ_BYTES_MIN + TRANSFER_BYTES_MAX as usize];
        let length = loop {
            match rustix::io::read(device, &mut bytes[..]) {
                Ok(length) => break length,
                Err(Errno::INTR) => {}
                Err(error) => return Err(FuseError::system("agreeing with the kernel", error)),
            }
        };
        let message = InHeader::message(&bytes[..length]);
        let (header, request) = message
            .map_err(|error| odd(format!("{error} (is the kernel older than Linux 5.17?)")))?;
        let Request::Init(init) = request else {
            return Err(odd(format!("it began with operation {}", header.opcode)));
        };
        if init.major != MAJOR || init.minor < MINOR_MIN {
            let (major, minor) = (init.major, init.minor);
            return Err(odd(format!(
                "it speaks version {major}.{minor}; {MAJOR}.{MINOR_MIN} (Linux 5.17) is needed"
            )));
        }
        let unique = header.unique;
        Ok(Self { unique, init })
    }

    /// True when the kernel offers FUSE over io_uring.
    pub fn offers_ring(&self) -> bool {
        self.init.flags & init_flag::OVER_IO_URING != 0
    }

    /// Answers with the version and the features of both sides.
    pub fn reply(&self, device: &OwnedFd, ring: bool) -> Result<(), FuseError> {
        let wanted = WANTED | if ring { init_flag::OVER_IO_URING } else { 0 };
        let reply = InitReply {
            minor: self.init.minor.min(MINOR),
            max_readahead_bytes: self.init.max_readahead_bytes,
            flags: wanted & (self.init.flags | init_flag::INIT_EXT),
            max_background: BACKGROUND,
            congestion_threshold: BACKGROUND / 4 * 3,
            max_write_bytes: TRANSFER_BYTES_MAX,
            max_pages: (TRANSFER_BYTES_MAX / PAGE_BYTES) as u16,
        };
        let sent = send(device, self.unique, Ok(&reply.encode()));
        sent.map_err(|error| FuseError::system("agreeing with the kernel", error))
    }
}
