//! FUSE, the protocol between Linux and a file system in a process: headers, requests and replies,
//! as far as a flat directory of files needs them, and the layout of FUSE over io_uring.
//!
//! ```text
//!   kernel                                        server
//!     | InHeader, 40 bytes | argument | name or data |
//!     |--------------------------------------------->|   many at a time
//!     |              OutHeader, 16 bytes | reply      |
//!     |<---------------------------------------------|   in any order, by `unique`
//! ```
//!
//! Over `/dev/fuse` a request is read with one call and its reply written with one. Over io_uring
//! header, argument and the rest lie in three places (see [`ring`]). All integers have the byte
//! order of the machine, since both sides are on it. The argument has a fixed size for each
//! operation ([`argument_bytes`]); names end with a NUL.
//!
//! Source: `include/uapi/linux/fuse.h` of Linux, protocol 7.36 to 7.45; fuse(4);
//! `Documentation/filesystems/fuse/fuse-io-uring.rst` of Linux; `docs/formats/fuse.md`.

mod header;
mod reply;
mod request;
pub mod ring;
#[cfg(test)]
mod tests;

pub use header::{IN_HEADER_BYTES, InHeader, OUT_HEADER_BYTES, OutHeader};
pub use reply::{
    Attributes, Entry, FileKind, FileSystem, INIT_REPLY_BYTES, InitReply, Names, OpenReply,
    attributes_reply, lseek_reply, written_reply,
};
pub use request::{Fallocate, Init, Lseek, Request, SetAttributes, Transfer, argument_bytes};

/// The protocol's major version, which has been the same since 2006.
pub const MAJOR: u32 = 7;
/// The least minor version that is spoken: the first with 64 bits of flags (Linux 5.17).
pub const MINOR_MIN: u32 = 36;
/// The newest minor version that is known: that of Linux 6.18.
pub const MINOR: u32 = 45;
/// The node of the mount's root.
pub const ROOT: u64 = 1;
/// The least memory that the kernel wants to be offered to read a request into, bytes.
pub const READ_BYTES_MIN: usize = 8192;
/// The longest name of a file, bytes without the NUL.
pub const NAME_BYTES_MAX: usize = 255;

/// Operations of a request (`enum fuse_opcode` of linux/fuse.h).
pub mod opcode {
    #![expect(missing_docs, reason = "the names are the protocol's")]
    pub const LOOKUP: u32 = 1;
    pub const FORGET: u32 = 2;
    pub const GETATTR: u32 = 3;
    pub const SETATTR: u32 = 4;
    pub const SYMLINK: u32 = 6;
    pub const MKNOD: u32 = 8;
    pub const MKDIR: u32 = 9;
    pub const UNLINK: u32 = 10;
    pub const RMDIR: u32 = 11;
    pub const RENAME: u32 = 12;
    pub const LINK: u32 = 13;
    pub const OPEN: u32 = 14;
    pub const READ: u32 = 15;
    pub const WRITE: u32 = 16;
    pub const STATFS: u32 = 17;
    pub const RELEASE: u32 = 18;
    pub const FSYNC: u32 = 20;
    pub const FLUSH: u32 = 25;
    pub const INIT: u32 = 26;
    pub const OPENDIR: u32 = 27;
    pub const READDIR: u32 = 28;
    pub const RELEASEDIR: u32 = 29;
    pub const FSYNCDIR: u32 = 30;
    pub const CREATE: u32 = 35;
    pub const INTERRUPT: u32 = 36;
    pub const DESTROY: u32 = 38;
    pub const NOTIFY_REPLY: u32 = 41;
    pub const BATCH_FORGET: u32 = 42;
    pub const FALLOCATE: u32 = 43;
    pub const RENAME2: u32 = 45;
    pub const LSEEK: u32 = 46;
    pub const TMPFILE: u32 = 51;
}

/// The features that kernel and server agree on in INIT: 64 bits, sent as two words.
pub mod init_flag {
    /// Reads of one file may be in flight side by side.
    pub const ASYNC_READ: u64 = 1 << 0;
    /// Writes may be longer than a page.
    pub const BIG_WRITES: u64 = 1 << 5;
    /// Direct reads and writes of one call may be in flight side by side.
    pub const ASYNC_DIO: u64 = 1 << 15;
    /// Lookups and listings of one directory may be in flight side by side.
    pub const PARALLEL_DIROPS: u64 = 1 << 18;
    /// The reply has a number of pages.
    pub const MAX_PAGES: u64 = 1 << 22;
    /// There is a second word of flags.
    pub const INIT_EXT: u64 = 1 << 30;
    /// Files that are open for direct I/O may be mapped all the same.
    pub const DIRECT_IO_ALLOW_MMAP: u64 = 1 << 36;
    /// Requests may go over io_uring.
    pub const OVER_IO_URING: u64 = 1 << 41;
}

/// The server's flags of an opened file.
pub mod open_flag {
    /// Past the page cache.
    pub const DIRECT_IO: u32 = 1 << 0;
    /// No FLUSH when a descriptor is closed.
    pub const NOFLUSH: u32 = 1 << 5;
    /// Writes of one file may be in flight side by side.
    pub const PARALLEL_DIRECT_WRITES: u32 = 1 << 6;
}

/// The attributes that a SETATTR changes.
pub mod set_flag {
    /// The permissions are to be set (`FATTR_MODE`).
    pub const MODE: u32 = 1 << 0;
    /// The owner is to be set (`FATTR_UID`).
    pub const UID: u32 = 1 << 1;
    /// The group is to be set (`FATTR_GID`).
    pub const GID: u32 = 1 << 2;
    /// The size is to be set (`FATTR_SIZE`).
    pub const SIZE: u32 = 1 << 3;
}

/// A message that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum Error {
    #[error("{what} has {found} bytes and needs {needed}")]
    Short {
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many there must be at least.
        needed: usize,
    },
    #[error("a request states {said} bytes and has {found}")]
    Length {
        /// The length in the header.
        said: u32,
        /// How many there are.
        found: usize,
    },
    #[error("a name of operation {opcode} does not end with a NUL")]
    Name { opcode: u32 },
}

fn expect(what: &'static str, bytes: &[u8], needed: usize) -> Result<(), Error> {
    if bytes.len() < needed {
        let found = bytes.len();
        return Err(Error::Short {
            what,
            found,
            needed,
        });
    }
    Ok(())
}

/// An integer in the byte order of the machine; 0 behind the end.
#[inline]
fn word32(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(crate::bytes::take(bytes, at))
}

#[inline]
fn word64(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(crate::bytes::take(bytes, at))
}

#[inline]
fn put32(bytes: &mut [u8], at: usize, value: u32) {
    crate::bytes::put(bytes, at, &value.to_ne_bytes());
}

#[inline]
fn put64(bytes: &mut [u8], at: usize, value: u64) {
    crate::bytes::put(bytes, at, &value.to_ne_bytes());
}
