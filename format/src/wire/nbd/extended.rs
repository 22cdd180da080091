//! Extended headers: requests and chunks of replies with 64-bit lengths.
//!
//! Agreed on with the option EXTENDED_HEADERS; all requests then have this header, and all replies
//! are chunks with this header, those without data of kind NONE.

use super::transmission::Request;
use super::{Error, command, command_flag, expect, magic};
use crate::bytes::{put, put_u16_be, put_u32_be, u16_be, u32_be, u64_be};

const REQUEST_MAGIC: u32 = 0x21e4_1c71;
const CHUNK_MAGIC: u32 = 0x6e8a_278c;

/// The size of an [`ExtendedRequest`] without its payload, bytes.
pub const EXTENDED_REQUEST_BYTES: usize = 32;
/// The size of an [`ExtendedChunkHeader`], bytes.
pub const EXTENDED_CHUNK_HEADER_BYTES: usize = 32;
/// The size of an entry of a block status, bytes.
const STATUS_BYTES: usize = 16;
/// Context and count before the entries, bytes.
const STATUS_HEAD_BYTES: usize = 8;

/// What a client asks, with a 64-bit length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtendedRequest {
    /// See [`super::command_flag`].
    pub flags: u16,
    /// See [`super::command`].
    pub command: u16,
    /// The client's word, which comes back with the reply.
    pub cookie: u64,
    /// Byte offset in the export.
    pub offset_bytes: u64,
    /// How much, bytes: of the payload when there is one, of the effect otherwise.
    pub length_bytes: u64,
}

impl ExtendedRequest {
    /// The header; a payload follows it.
    #[must_use]
    pub fn encode(self) -> [u8; EXTENDED_REQUEST_BYTES] {
        let mut bytes = [0; EXTENDED_REQUEST_BYTES];
        put_u32_be(&mut bytes, 0, REQUEST_MAGIC);
        put_u16_be(&mut bytes, 4, self.flags);
        put_u16_be(&mut bytes, 6, self.command);
        put(&mut bytes, 8, &self.cookie.to_be_bytes());
        put(&mut bytes, 16, &self.offset_bytes.to_be_bytes());
        put(&mut bytes, 24, &self.length_bytes.to_be_bytes());
        bytes
    }

    /// Reads it.
    ///
    /// # Errors
    /// The magic number is another: where the next request begins cannot be known any more.
    pub fn decode(bytes: &[u8; EXTENDED_REQUEST_BYTES]) -> Result<Self, Error> {
        magic("an extended request", u32_be(bytes, 0), REQUEST_MAGIC, "")?;
        Ok(Self {
            flags: u16_be(bytes, 4),
            command: u16_be(bytes, 6),
            cookie: u64_be(bytes, 8),
            offset_bytes: u64_be(bytes, 16),
            length_bytes: u64_be(bytes, 24),
        })
    }

    /// The length of the payload that follows, bytes: that of a WRITE, and of what says that it
    /// has one.
    #[inline]
    pub fn payload_bytes(&self) -> u64 {
        let says_so = self.flags & command_flag::PAYLOAD_LEN != 0;
        if self.command == command::WRITE || says_so {
            self.length_bytes
        } else {
            0
        }
    }
}

impl From<Request> for ExtendedRequest {
    #[inline]
    fn from(request: Request) -> Self {
        Self {
            flags: request.flags,
            command: request.command,
            cookie: request.cookie,
            offset_bytes: request.offset_bytes,
            length_bytes: request.length_bytes.into(),
        }
    }
}

/// What stands before each chunk of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtendedChunkHeader {
    /// [`super::chunk::DONE`] or nothing.
    pub flags: u16,
    /// See [`super::chunk`].
    pub kind: u16,
    /// The cookie of the request.
    pub cookie: u64,
    /// The offset of the request, bytes.
    pub offset_bytes: u64,
    /// The length of what follows, bytes.
    pub length_bytes: u64,
}

impl ExtendedChunkHeader {
    /// The 32 bytes of the header, big-endian.
    #[must_use]
    pub fn encode(self) -> [u8; EXTENDED_CHUNK_HEADER_BYTES] {
        let mut bytes = [0; EXTENDED_CHUNK_HEADER_BYTES];
        put_u32_be(&mut bytes, 0, CHUNK_MAGIC);
        put_u16_be(&mut bytes, 4, self.flags);
        put_u16_be(&mut bytes, 6, self.kind);
        put(&mut bytes, 8, &self.cookie.to_be_bytes());
        put(&mut bytes, 16, &self.offset_bytes.to_be_bytes());
        put(&mut bytes, 24, &self.length_bytes.to_be_bytes());
        bytes
    }

    /// Reads it.
    ///
    /// # Errors
    /// The magic number is another.
    pub fn decode(bytes: &[u8; EXTENDED_CHUNK_HEADER_BYTES]) -> Result<Self, Error> {
        magic(
            "an extended chunk of a reply",
            u32_be(bytes, 0),
            CHUNK_MAGIC,
            "",
        )?;
        Ok(Self {
            flags: u16_be(bytes, 4),
            kind: u16_be(bytes, 6),
            cookie: u64_be(bytes, 8),
            offset_bytes: u64_be(bytes, 16),
            length_bytes: u64_be(bytes, 24),
        })
    }
}

/// A stretch of the range that a BLOCK_STATUS asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtendedStatus {
    /// Length of the range in bytes.
    pub length_bytes: u64,
    /// What the context says of it; in `base:allocation` see [`super::state`].
    pub flags: u64,
}

/// The data of a chunk of kind BLOCK_STATUS_EXT: a context, and stretches without a gap.
pub fn encode_extended_status(context: u32, stretches: &[ExtendedStatus]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(STATUS_HEAD_BYTES + stretches.len() * STATUS_BYTES);
    bytes.extend(context.to_be_bytes());
    bytes.extend((stretches.len() as u32).to_be_bytes());
    for stretch in stretches {
        bytes.extend(stretch.length_bytes.to_be_bytes());
        bytes.extend(stretch.flags.to_be_bytes());
    }
    bytes
}

/// Reads it: the context, and the stretches.
///
/// # Errors
/// Its length is not that of as many stretches as it says, or there is none.
pub fn decode_extended_status(bytes: &[u8]) -> Result<(u32, Vec<ExtendedStatus>), Error> {
    let count = u32_be(bytes, 4).max(1) as usize;
    let expected = STATUS_HEAD_BYTES.saturating_add(count.saturating_mul(STATUS_BYTES));
    expect("an extended block status", bytes, expected)?;
    let entries = bytes[STATUS_HEAD_BYTES..].chunks_exact(STATUS_BYTES);
    let stretches = entries.map(|entry| ExtendedStatus {
        length_bytes: u64_be(entry, 0),
        flags: u64_be(entry, 8),
    });
    Ok((u32_be(bytes, 0), stretches.collect()))
}
