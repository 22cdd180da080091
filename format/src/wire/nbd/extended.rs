//! Extended headers: requests and chunks of replies with 64-bit lengths.
//!
//! Agreed on with the option EXTENDED_HEADERS; all requests then have this header, and all replies
//! are chunks with this header, those without data of kind NONE.

use super::transmission::Request;
use super::{Error, command, command_flag, expect};
use crate::bytes::{u32_be, u64_be};

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

message! {
    /// A client's request, with a 64-bit length.
    ExtendedRequest, "an extended request", EXTENDED_REQUEST_BYTES, REQUEST_MAGIC:
    /// Modifiers: bits of [`super::command_flag`].
    4 flags: u16,
    /// The command: one of [`super::command`].
    6 command: u16,
    /// The client's word, which comes back with the reply.
    8 cookie: u64,
    /// Byte offset in the export.
    16 offset_bytes: u64,
    /// How much, bytes: of the payload when there is one, of the effect otherwise.
    24 length_bytes: u64,
}

impl ExtendedRequest {
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

message! {
    /// The header of each chunk of a reply.
    ExtendedChunkHeader, "an extended chunk of a reply", EXTENDED_CHUNK_HEADER_BYTES, CHUNK_MAGIC:
    /// [`super::chunk::DONE`] in the last chunk of a reply, else 0.
    4 flags: u16,
    /// The kind of payload: one of [`super::chunk`].
    6 kind: u16,
    /// The cookie of the request.
    8 cookie: u64,
    /// The offset of the request, bytes.
    16 offset_bytes: u64,
    /// The length of the following bytes.
    24 length_bytes: u64,
}

/// A stretch of the range that a BLOCK_STATUS asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtendedStatus {
    /// Length of the range in bytes.
    pub length_bytes: u64,
    /// The status in the context; in `base:allocation` see [`super::state`].
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
