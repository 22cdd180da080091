//! The transmission phase: requests, simple replies, and the chunks of structured replies.

use super::{Error, chunk, expect};
use crate::bytes::{put, put_u32_be, u16_be, u32_be, u64_be};

const REQUEST_MAGIC: u32 = 0x2560_9513;
const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
const CHUNK_MAGIC: u32 = 0x668e_33ef;

/// The size of a [`Request`] without the data of a WRITE, bytes.
pub const REQUEST_BYTES: usize = 28;
/// The size of a [`SimpleReply`] without the data of a READ, bytes.
pub const SIMPLE_REPLY_BYTES: usize = 16;
/// The size of a [`ChunkHeader`], bytes.
pub const CHUNK_HEADER_BYTES: usize = 20;
/// The size of a [`Hole`], bytes.
pub const HOLE_BYTES: usize = 12;
/// The size of an entry of a block status, bytes.
const STATUS_BYTES: usize = 8;

message! {
    /// A client's request.
    Request, "a request", REQUEST_BYTES, REQUEST_MAGIC:
    /// Modifiers: bits of [`super::command_flag`].
    4 flags: u16,
    /// The command: one of [`super::command`].
    6 command: u16,
    /// The client's word, which comes back with the reply.
    8 cookie: u64,
    /// Byte offset in the export.
    16 offset_bytes: u64,
    /// Length of the range, bytes.
    24 length_bytes: u32,
}

impl Request {
    /// The length of the data that follows, bytes.
    #[inline]
    pub fn payload_bytes(&self) -> u32 {
        if self.command == super::command::WRITE {
            self.length_bytes
        } else {
            0
        }
    }
}

message! {
    /// An answer in one piece.
    SimpleReply, "a reply", SIMPLE_REPLY_BYTES, SIMPLE_REPLY_MAGIC:
    /// 0, or one of [`super::error`]. Only without an error does the data of a READ follow.
    4 error: u32,
    /// The cookie of the request.
    8 cookie: u64,
}

impl SimpleReply {
    /// Whether these bytes begin a simple reply, and no chunk.
    #[inline]
    pub fn begins(bytes: &[u8]) -> bool {
        u32_be(bytes, 0) == SIMPLE_REPLY_MAGIC
    }
}

message! {
    /// The header of each chunk of a structured reply.
    ChunkHeader, "a chunk of a reply", CHUNK_HEADER_BYTES, CHUNK_MAGIC:
    /// [`chunk::DONE`] in the last chunk of a reply, else 0.
    4 flags: u16,
    /// The kind of payload: one of [`chunk`].
    6 kind: u16,
    /// The cookie of the request.
    8 cookie: u64,
    /// The length of the following bytes.
    16 length_bytes: u32,
}

impl ChunkHeader {
    /// Whether it is the last chunk of its reply.
    #[inline]
    pub fn is_last(self) -> bool {
        self.flags & chunk::DONE != 0
    }
}

/// The data of a chunk of kind OFFSET_HOLE: a stretch that reads as zeroes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// Byte offset in the export.
    pub offset_bytes: u64,
    /// Length of the hole in bytes.
    pub length_bytes: u32,
}

impl Hole {
    /// The bytes on the wire, big-endian.
    pub fn encode(self) -> [u8; HOLE_BYTES] {
        let mut bytes = [0; HOLE_BYTES];
        put(&mut bytes, 0, &self.offset_bytes.to_be_bytes());
        put_u32_be(&mut bytes, 8, self.length_bytes);
        bytes
    }

    /// Decodes the payload of the chunk.
    ///
    /// # Errors
    /// Its length is another.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        expect("a hole", bytes, HOLE_BYTES)?;
        Ok(Self {
            offset_bytes: u64_be(bytes, 0),
            length_bytes: u32_be(bytes, 8),
        })
    }
}

/// The data of a chunk of kind ERROR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorChunk {
    /// The error of the request: one of [`super::error`].
    pub error: u32,
    /// In plain words; may be empty.
    pub message: String,
}

impl ErrorChunk {
    /// The data. A message that is too long for its field is cut.
    pub fn encode(&self) -> Vec<u8> {
        let mut end = self.message.len().min(super::STRING_BYTES_MAX);
        while !self.message.is_char_boundary(end) {
            end -= 1;
        }
        let message = &self.message.as_bytes()[..end];
        let mut bytes = self.error.to_be_bytes().to_vec();
        bytes.extend((message.len() as u16).to_be_bytes());
        bytes.extend(message);
        bytes
    }

    /// Reads it, also from a chunk of kind ERROR_OFFSET, whose offset follows the message. A
    /// message that is no text is shown as well as it can be.
    ///
    /// # Errors
    /// The message is longer than the chunk.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let length = usize::from(u16_be(bytes, 4));
        let Some(message) = bytes.get(6..6 + length) else {
            return Err(Error::Length {
                what: "an error",
                found: bytes.len(),
                expected: 6 + length,
            });
        };
        Ok(Self {
            error: u32_be(bytes, 0),
            message: String::from_utf8_lossy(message).into_owned(),
        })
    }
}

/// A stretch of the range that a BLOCK_STATUS asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Length of the range in bytes.
    pub length_bytes: u32,
    /// Hole, zeroes or data: bits of [`super::state`].
    pub flags: u32,
}

/// The data of a chunk of kind BLOCK_STATUS: a context, and stretches without a gap.
pub fn encode_block_status(context: u32, stretches: &[Status]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(4 + stretches.len() * STATUS_BYTES);
    bytes.extend(context.to_be_bytes());
    for stretch in stretches {
        bytes.extend(stretch.length_bytes.to_be_bytes());
        bytes.extend(stretch.flags.to_be_bytes());
    }
    bytes
}

/// Reads it: the context, and the stretches.
///
/// # Errors
/// Its length is not that of a context and of at least one whole stretch.
pub fn decode_block_status(bytes: &[u8]) -> Result<(u32, Vec<Status>), Error> {
    let found = bytes.len();
    let whole = found >= 4 + STATUS_BYTES && (found - 4).is_multiple_of(STATUS_BYTES);
    if !whole {
        return Err(Error::Length {
            what: "a block status",
            found,
            expected: 4 + STATUS_BYTES,
        });
    }
    let stretches = bytes[4..].chunks_exact(STATUS_BYTES).map(|entry| Status {
        length_bytes: u32_be(entry, 0),
        flags: u32_be(entry, 4),
    });
    Ok((u32_be(bytes, 0), stretches.collect()))
}
