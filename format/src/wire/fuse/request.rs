//! Requests to a file system (`struct fuse_*_in`).

use super::{Error, expect, opcode, put32, put64, set_flag, word32, word64};

/// The size of the fixed argument of an operation, bytes. Over io_uring it stands apart from
/// what follows it.
#[inline]
pub const fn argument_bytes(opcode: u32) -> usize {
    match opcode {
        opcode::READ | opcode::WRITE | opcode::READDIR => 40,
        opcode::OPEN | opcode::OPENDIR => 8,
        opcode::GETATTR | opcode::FSYNC | opcode::FSYNCDIR => 16,
        opcode::SETATTR => 88,
        opcode::RELEASE | opcode::RELEASEDIR | opcode::FLUSH => 24,
        opcode::INIT => 64,
        opcode::FALLOCATE => 32,
        opcode::LSEEK => 24,
        opcode::INTERRUPT => 8,
        _ => 0,
    }
}

/// The first message: the features of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Init {
    /// The kernel's version of the protocol.
    pub major: u32,
    /// The minor version that belongs to `major`.
    pub minor: u32,
    /// How far the kernel reads ahead at most, bytes.
    pub max_readahead_bytes: u32,
    /// Features that the kernel has: bits of [`super::init_flag`].
    pub flags: u64,
}

/// READ, WRITE and READDIR: of which handle, where and how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The handle of OPEN.
    pub handle: u64,
    /// Where, bytes; for READDIR the word of the last entry that was read.
    pub offset: u64,
    /// How much, bytes; for READDIR how much at most.
    pub length_bytes: u32,
    /// Flags of open(2) that hold for this transfer: those of the file, and of a WRITE also those
    /// of pwritev2(2). `O_DSYNC` wants the data durable before the reply, as the kernel sends no
    /// FSYNC for files past its cache.
    pub open_flags: u32,
}

/// SETATTR, as far as it can be about a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetAttributes {
    /// The fields that change: bits of [`super::set_flag`].
    pub which: u32,
    /// The size that is wanted, bytes.
    pub size_bytes: u64,
}

impl SetAttributes {
    /// Whether the file is to be truncated to nothing.
    pub fn empties(&self) -> bool {
        self.which & set_flag::SIZE != 0 && self.size_bytes == 0
    }
}

/// A request FALLOCATE: allocates, zeroes or discards a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fallocate {
    /// The handle of OPEN.
    pub handle: u64,
    /// Byte offset in the file.
    pub offset: u64,
    /// Length of the range, bytes.
    pub length_bytes: u64,
    /// Flags of fallocate(2), as `FALLOC_FL_PUNCH_HOLE`.
    pub mode: u32,
}

/// LSEEK, which is only asked for data and holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lseek {
    /// The handle of OPEN.
    pub handle: u64,
    /// Byte offset from which data or a hole is looked for.
    pub offset: u64,
    /// SEEK_DATA or SEEK_HOLE of lseek(2).
    pub whence: u32,
}

/// A request of the kernel, without its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "some opcodes say it by their names")]
pub enum Request<'a> {
    /// FUSE_INIT, the first message.
    Init(Init),
    /// Is there a file of that name?
    Lookup(&'a [u8]),
    /// The attributes of a node.
    GetAttributes,
    /// A change of attributes.
    SetAttributes(SetAttributes),
    /// Opens a file; the flags of open(2).
    Open(u32),
    Read(Transfer),
    /// Writes the data that follows the argument.
    Write(Transfer),
    /// The last descriptor of a handle is gone.
    Release(u64),
    /// Makes the writes through a handle durable.
    Sync(u64),
    /// A descriptor of a handle is closed.
    Flush(u64),
    OpenDirectory,
    ReadDirectory(Transfer),
    ReleaseDirectory,
    /// Size and room of the file system.
    FileSystem,
    /// Room, holes and zeroes.
    Fallocate(Fallocate),
    /// The next data or hole.
    Lseek(Lseek),
    /// The asker of another request, by its `unique`, would rather not wait. No reply.
    Interrupt(u64),
    /// The kernel forgets nodes, or answers a RETRIEVE. No reply.
    Silent,
    /// FUSE_DESTROY, the last message.
    Destroy,
    /// A change of the directory: a file is to be made, renamed or removed.
    Change,
    /// Something else, which has an error as reply.
    Other(u32),
}

impl<'a> Request<'a> {
    /// Reads the fixed argument of the operation, and the bytes after it.
    ///
    /// # Errors
    /// The argument is too short, or a name has no end.
    #[inline]
    pub fn decode(code: u32, argument: &[u8], rest: &'a [u8]) -> Result<Self, Error> {
        expect("the argument of a request", argument, argument_bytes(code))?;
        Ok(match code {
            opcode::READ => Self::Read(Transfer::decode(argument)),
            opcode::WRITE => Self::Write(Transfer::decode(argument)),
            opcode::READDIR => Self::ReadDirectory(Transfer::decode(argument)),
            _ => return Self::decode_other(code, argument, rest),
        })
    }

    fn decode_other(code: u32, argument: &[u8], rest: &'a [u8]) -> Result<Self, Error> {
        Ok(match code {
            opcode::INIT => Self::Init(Init {
                major: word32(argument, 0),
                minor: word32(argument, 4),
                max_readahead_bytes: word32(argument, 8),
                flags: u64::from(word32(argument, 12)) | u64::from(word32(argument, 16)) << 32,
            }),
            opcode::LOOKUP => {
                let end = rest.iter().position(|&byte| byte == 0);
                Self::Lookup(&rest[..end.ok_or(Error::Name { opcode: code })?])
            }
            opcode::GETATTR => Self::GetAttributes,
            opcode::SETATTR => Self::SetAttributes(SetAttributes {
                which: word32(argument, 0),
                size_bytes: word64(argument, 16),
            }),
            opcode::OPEN => Self::Open(word32(argument, 0)),
            opcode::RELEASE => Self::Release(word64(argument, 0)),
            opcode::FSYNC => Self::Sync(word64(argument, 0)),
            opcode::FLUSH => Self::Flush(word64(argument, 0)),
            opcode::OPENDIR => Self::OpenDirectory,
            opcode::RELEASEDIR => Self::ReleaseDirectory,
            opcode::STATFS => Self::FileSystem,
            opcode::FALLOCATE => Self::Fallocate(Fallocate {
                handle: word64(argument, 0),
                offset: word64(argument, 8),
                length_bytes: word64(argument, 16),
                mode: word32(argument, 24),
            }),
            opcode::LSEEK => Self::Lseek(Lseek {
                handle: word64(argument, 0),
                offset: word64(argument, 8),
                whence: word32(argument, 16),
            }),
            opcode::INTERRUPT => Self::Interrupt(word64(argument, 0)),
            opcode::FORGET | opcode::BATCH_FORGET | opcode::NOTIFY_REPLY => Self::Silent,
            opcode::DESTROY => Self::Destroy,
            opcode::SYMLINK
            | opcode::MKNOD
            | opcode::MKDIR
            | opcode::UNLINK
            | opcode::RMDIR
            | opcode::RENAME
            | opcode::RENAME2
            | opcode::LINK
            | opcode::CREATE
            | opcode::TMPFILE => Self::Change,
            other => Self::Other(other),
        })
    }

    /// The request as the kernel sends it: operation, argument, and what follows but for the data
    /// of a WRITE. `None` for the kinds that stand for many operations.
    pub fn encode(&self) -> Option<(u32, Vec<u8>, Vec<u8>)> {
        let (mut argument, mut rest) = (vec![0; self.room()?], Vec::new());
        let bytes = &mut argument[..];
        match self {
            Self::Init(init) => {
                put32(bytes, 0, init.major);
                put32(bytes, 4, init.minor);
                put32(bytes, 8, init.max_readahead_bytes);
                put32(bytes, 12, init.flags as u32);
                put32(bytes, 16, (init.flags >> 32) as u32);
            }
            Self::Lookup(name) => rest = [name, &[0][..]].concat(),
            Self::SetAttributes(set) => {
                put32(bytes, 0, set.which);
                put64(bytes, 16, set.size_bytes);
            }
            Self::Open(flags) => put32(bytes, 0, *flags),
            Self::Read(transfer) | Self::Write(transfer) | Self::ReadDirectory(transfer) => {
                transfer.encode(bytes);
            }
            Self::Release(word) | Self::Sync(word) | Self::Flush(word) | Self::Interrupt(word) => {
                put64(bytes, 0, *word);
            }
            Self::Fallocate(it) => {
                put64(bytes, 0, it.handle);
                put64(bytes, 8, it.offset);
                put64(bytes, 16, it.length_bytes);
                put32(bytes, 24, it.mode);
            }
            Self::Lseek(it) => {
                put64(bytes, 0, it.handle);
                put64(bytes, 8, it.offset);
                put32(bytes, 16, it.whence);
            }
            _ => {}
        }
        Some((self.opcode()?, argument, rest))
    }

    fn room(&self) -> Option<usize> {
        self.opcode().map(argument_bytes)
    }

    /// The number of the operation; `None` for the kinds that stand for many.
    pub fn opcode(&self) -> Option<u32> {
        Some(match self {
            Self::Init(_) => opcode::INIT,
            Self::Lookup(_) => opcode::LOOKUP,
            Self::GetAttributes => opcode::GETATTR,
            Self::SetAttributes(_) => opcode::SETATTR,
            Self::Open(_) => opcode::OPEN,
            Self::Read(_) => opcode::READ,
            Self::Write(_) => opcode::WRITE,
            Self::Release(_) => opcode::RELEASE,
            Self::Sync(_) => opcode::FSYNC,
            Self::Flush(_) => opcode::FLUSH,
            Self::OpenDirectory => opcode::OPENDIR,
            Self::ReadDirectory(_) => opcode::READDIR,
            Self::ReleaseDirectory => opcode::RELEASEDIR,
            Self::FileSystem => opcode::STATFS,
            Self::Fallocate(_) => opcode::FALLOCATE,
            Self::Lseek(_) => opcode::LSEEK,
            Self::Interrupt(_) => opcode::INTERRUPT,
            Self::Destroy => opcode::DESTROY,
            Self::Other(other) => *other,
            Self::Silent | Self::Change => return None,
        })
    }
}

impl Transfer {
    #[inline]
    fn decode(argument: &[u8]) -> Self {
        Self {
            handle: word64(argument, 0),
            offset: word64(argument, 8),
            length_bytes: word32(argument, 16),
            open_flags: word32(argument, 32),
        }
    }

    fn encode(&self, argument: &mut [u8]) {
        put64(argument, 0, self.handle);
        put64(argument, 8, self.offset);
        put32(argument, 16, self.length_bytes);
        put32(argument, 32, self.open_flags);
    }
}
