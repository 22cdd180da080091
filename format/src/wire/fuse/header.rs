//! The headers of requests and replies (`struct fuse_in_header`, `struct fuse_out_header`).

use super::request::{Request, argument_bytes};
use super::{Error, expect, put32, put64, word32, word64};

/// The size of an [`InHeader`], bytes.
pub const IN_HEADER_BYTES: usize = 40;
/// The size of an [`OutHeader`], bytes.
pub const OUT_HEADER_BYTES: usize = 16;

/// The header of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InHeader {
    /// The length of header, argument and the rest, bytes.
    pub length_bytes: u32,
    /// One of [`super::opcode`], or one that this program does not know.
    pub opcode: u32,
    /// The kernel's word, which comes back with the reply.
    pub unique: u64,
    /// Number of the file (`nodeid`), 1 for the root.
    pub node: u64,
    /// User id of the process that asks.
    pub uid: u32,
    /// Group id of the process that asks.
    pub gid: u32,
    /// The process that asks; 0 for one of another namespace.
    pub pid: u32,
}

impl InHeader {
    /// Decodes `struct fuse_in_header`, in the byte order of the machine.
    ///
    /// # Errors
    /// There are fewer than [`IN_HEADER_BYTES`].
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        expect("the header of a request", bytes, IN_HEADER_BYTES)?;
        Ok(Self {
            length_bytes: word32(bytes, 0),
            opcode: word32(bytes, 4),
            unique: word64(bytes, 8),
            node: word64(bytes, 16),
            uid: word32(bytes, 24),
            gid: word32(bytes, 28),
            pid: word32(bytes, 32),
        })
    }

    /// Its bytes, in the byte order of the machine.
    pub fn encode(self) -> [u8; IN_HEADER_BYTES] {
        let mut bytes = [0; IN_HEADER_BYTES];
        put32(&mut bytes, 0, self.length_bytes);
        put32(&mut bytes, 4, self.opcode);
        put64(&mut bytes, 8, self.unique);
        put64(&mut bytes, 16, self.node);
        put32(&mut bytes, 24, self.uid);
        put32(&mut bytes, 28, self.gid);
        put32(&mut bytes, 32, self.pid);
        bytes
    }

    /// A whole message, as `/dev/fuse` gives it: header, and operation.
    ///
    /// # Errors
    /// It is shorter or longer than it says, or its operation needs more.
    #[inline]
    pub fn message(bytes: &[u8]) -> Result<(Self, Request<'_>), Error> {
        let header = Self::decode(bytes)?;
        if header.length_bytes as usize != bytes.len() {
            return Err(Error::Length {
                said: header.length_bytes,
                found: bytes.len(),
            });
        }
        let body = &bytes[IN_HEADER_BYTES..];
        let length = argument_bytes(header.opcode).min(body.len());
        let (argument, rest) = body.split_at(length);
        Ok((header, Request::decode(header.opcode, argument, rest)?))
    }
}

/// The header of a reply, or of an unsolicited message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutHeader {
    /// The length of header and reply, bytes.
    pub length_bytes: u32,
    /// 0, or an errno, negative; the code of an unsolicited message, positive.
    pub error: i32,
    /// That of the request; 0 for an unsolicited message.
    pub unique: u64,
}

impl OutHeader {
    /// Its bytes, in the byte order of the machine.
    #[inline]
    pub fn encode(self) -> [u8; OUT_HEADER_BYTES] {
        let mut bytes = [0; OUT_HEADER_BYTES];
        put32(&mut bytes, 0, self.length_bytes);
        put32(&mut bytes, 4, self.error as u32);
        put64(&mut bytes, 8, self.unique);
        bytes
    }

    /// Decodes `struct fuse_out_header`, in the byte order of the machine.
    ///
    /// # Errors
    /// There are fewer than [`OUT_HEADER_BYTES`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        expect("the header of a reply", bytes, OUT_HEADER_BYTES)?;
        Ok(Self {
            length_bytes: word32(bytes, 0),
            error: word32(bytes, 4) as i32,
            unique: word64(bytes, 8),
        })
    }
}
