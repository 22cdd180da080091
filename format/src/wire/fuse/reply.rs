//! Replies of a file system (`struct fuse_*_out`).

use super::{Error, MAJOR, expect, put32, put64, word32};
use crate::bytes::{put, take};

/// The size of an [`InitReply`], bytes.
pub const INIT_REPLY_BYTES: usize = 64;
/// The size of attributes, bytes (`struct fuse_attr`).
const ATTRIBUTES_BYTES: usize = 88;
/// The size of an entry of a directory without its name, bytes.
const ENTRY_HEAD_BYTES: usize = 24;

/// The types of a mode, see inode(7).
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;

/// The features that the server accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitReply {
    /// The minor version that both speak.
    pub minor: u32,
    /// How far the kernel may read ahead, bytes.
    pub max_readahead_bytes: u32,
    /// Features that both sides use: bits of [`super::init_flag`].
    pub flags: u64,
    /// The most background requests (asynchronous I/O, read-ahead) in flight.
    pub max_background: u16,
    /// From how many on the kernel calls the server congested.
    pub congestion_threshold: u16,
    /// The longest WRITE, bytes.
    pub max_write_bytes: u32,
    /// The longest READ and WRITE, pages.
    pub max_pages: u16,
}

impl InitReply {
    /// The message, without its header.
    pub fn encode(&self) -> [u8; INIT_REPLY_BYTES] {
        let mut bytes = [0; INIT_REPLY_BYTES];
        put32(&mut bytes, 0, MAJOR);
        put32(&mut bytes, 4, self.minor);
        put32(&mut bytes, 8, self.max_readahead_bytes);
        put32(&mut bytes, 12, self.flags as u32);
        put(&mut bytes, 16, &self.max_background.to_ne_bytes());
        put(&mut bytes, 18, &self.congestion_threshold.to_ne_bytes());
        put32(&mut bytes, 20, self.max_write_bytes);
        // Times are exact to the nanosecond.
        put32(&mut bytes, 24, 1);
        put(&mut bytes, 28, &self.max_pages.to_ne_bytes());
        put32(&mut bytes, 32, (self.flags >> 32) as u32);
        bytes
    }

    /// Decodes `struct fuse_init_out`, in the byte order of the machine.
    ///
    /// # Errors
    /// There are fewer than [`INIT_REPLY_BYTES`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        expect("the reply to INIT", bytes, INIT_REPLY_BYTES)?;
        Ok(Self {
            minor: word32(bytes, 4),
            max_readahead_bytes: word32(bytes, 8),
            flags: u64::from(word32(bytes, 12)) | u64::from(word32(bytes, 32)) << 32,
            max_background: u16::from_ne_bytes(take(bytes, 16)),
            congestion_threshold: u16::from_ne_bytes(take(bytes, 18)),
            max_write_bytes: word32(bytes, 20),
            max_pages: u16::from_ne_bytes(take(bytes, 28)),
        })
    }
}

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A directory: `S_IFDIR` in the mode.
    Directory,
    /// A regular file (`S_IFREG`).
    File,
}

impl FileKind {
    fn mode(self) -> u32 {
        match self {
            Self::Directory => DIRECTORY,
            Self::File => REGULAR,
        }
    }
}

/// The attributes of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Number of the file (`ino`).
    pub node: u64,
    /// Whether it is a file or a directory.
    pub kind: FileKind,
    /// Permissions: the low 12 bits of a mode.
    pub permissions: u32,
    /// Size of the file, bytes.
    pub size_bytes: u64,
    /// How much of it is no hole, bytes.
    pub allocated_bytes: u64,
    /// All of its times, seconds and nanoseconds since 1970.
    pub time: (u64, u32),
    /// User id of the owner.
    pub uid: u32,
    /// Group id of the owner.
    pub gid: u32,
    /// The preferred I/O size, bytes.
    pub block_bytes: u32,
}

impl Attributes {
    fn encode(&self, bytes: &mut [u8]) {
        put64(bytes, 0, self.node);
        put64(bytes, 8, self.size_bytes);
        put64(bytes, 16, self.allocated_bytes.div_ceil(512));
        for at in [24, 32, 40] {
            put64(bytes, at, self.time.0);
        }
        for at in [48, 52, 56] {
            put32(bytes, at, self.time.1);
        }
        put32(bytes, 60, self.kind.mode() | (self.permissions & 0o7777));
        let links = if self.kind == FileKind::Directory {
            2
        } else {
            1
        };
        put32(bytes, 64, links);
        put32(bytes, 68, self.uid);
        put32(bytes, 72, self.gid);
        put32(bytes, 80, self.block_bytes);
    }
}

/// The reply to GETATTR and SETATTR. The kernel may not keep the attributes.
pub fn attributes_reply(attributes: &Attributes) -> Vec<u8> {
    let mut bytes = vec![0; 16 + ATTRIBUTES_BYTES];
    attributes.encode(&mut bytes[16..]);
    bytes
}

/// The reply to LOOKUP: a node that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry(pub Attributes);

impl Entry {
    /// The message, without its header. The kernel may keep neither name nor attributes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; 40 + ATTRIBUTES_BYTES];
        put64(&mut bytes, 0, self.0.node);
        self.0.encode(&mut bytes[40..]);
        bytes
    }
}

/// The reply to OPEN and OPENDIR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenReply {
    /// The server's handle of an opened file.
    pub handle: u64,
    /// How the kernel treats the open file: bits of [`super::open_flag`].
    pub flags: u32,
}

impl OpenReply {
    /// The message, without its header.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; 16];
        put64(&mut bytes, 0, self.handle);
        put32(&mut bytes, 8, self.flags);
        bytes
    }
}

/// The reply to WRITE: how many bytes were written.
#[inline]
pub fn written_reply(length_bytes: u32) -> [u8; 8] {
    let mut bytes = [0; 8];
    put32(&mut bytes, 0, length_bytes);
    bytes
}

/// The reply to LSEEK: where the data or the hole begins, bytes.
pub fn lseek_reply(offset: u64) -> [u8; 8] {
    offset.to_ne_bytes()
}

/// The reply to STATFS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Its size in blocks of `block_bytes`.
    pub blocks: u64,
    /// The size of a block, bytes.
    pub block_bytes: u32,
    /// How many files it has.
    pub files: u64,
}

impl FileSystem {
    /// The message, without its header. Nothing is free.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; 80];
        put64(&mut bytes, 0, self.blocks);
        put64(&mut bytes, 24, self.files);
        put32(&mut bytes, 40, self.block_bytes);
        put32(&mut bytes, 44, super::NAME_BYTES_MAX as u32);
        put32(&mut bytes, 48, self.block_bytes);
        bytes
    }
}

/// The reply to READDIR, which grows entry by entry (`struct fuse_dirent`).
#[derive(Clone, Debug, Default)]
pub struct Names {
    bytes: Vec<u8>,
    limit_bytes: usize,
}

impl Names {
    /// An empty reply that may have so many bytes.
    pub fn new(limit_bytes: u32) -> Self {
        let limit_bytes = limit_bytes as usize;
        Self {
            bytes: Vec::new(),
            limit_bytes,
        }
    }

    /// Adds an entry; `next` is the word by which the kernel asks for what follows it. False when
    /// there was no room.
    pub fn push(&mut self, node: u64, next: u64, kind: FileKind, name: &[u8]) -> bool {
        let length = (ENTRY_HEAD_BYTES + name.len()).next_multiple_of(8);
        let start = self.bytes.len();
        if start + length > self.limit_bytes {
            return false;
        }
        self.bytes.resize(start + length, 0);
        let entry = &mut self.bytes[start..];
        put64(entry, 0, node);
        put64(entry, 8, next);
        put32(entry, 16, name.len() as u32);
        // The type of a mode, as in readdir(3).
        put32(entry, 20, kind.mode() >> 12);
        put(entry, ENTRY_HEAD_BYTES, name);
        true
    }

    /// The message, without its header.
    pub fn encode(self) -> Vec<u8> {
        self.bytes
    }
}
