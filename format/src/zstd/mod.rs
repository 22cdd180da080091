//! The frame of a zstd file: headers of frames and of blocks, skippable frames, and the seek table.
//! The blocks are left to a decoder.
//!
//! ```text
//! frame:   28 b5 2f fd | descriptor 1 | window 0..1 | dictionary 0..4 | content size 0..8
//!          block ... block | checksum 0..4
//! block:   header 3 (bit 0: the last one, bits 1 to 2: raw, RLE, compressed; size) | bytes
//! skipped: 50..5f 2a 4d 18 | size u32 | bytes
//!
//! seek table, a skipped frame at the end (5e 2a 4d 18):
//!          compressed u32, data u32, checksum 0..4 ... | frames u32 | descriptor 1 | b1 ea 92 8f
//! ```
//! All integers are little-endian. Source: RFC 8878, and `zstd_seekable_compression_format.md` of
//! zstd; `docs/formats/zstd.md`.

use crate::bytes;

/// The longest header of a frame, bytes.
pub const HEADER_BYTES_MAX: usize = 18;
/// The header of a block, bytes.
pub const BLOCK_HEADER_BYTES: usize = 3;
/// The size of the footer of a seek table, bytes.
pub const SEEK_FOOTER_BYTES: usize = 9;
/// The most frames of a seek table that are read.
pub const FRAMES_MAX: u32 = 1 << 20;

const MAGIC: u32 = 0xfd2f_b528;
const SKIPPED_MAGIC: u32 = 0x184d_2a50;
const SEEK_TABLE_MAGIC: u32 = 0x184d_2a5e;
const SEEKABLE_MAGIC: u32 = 0x8f92_eab1;
/// A block decompresses to 128 KiB at most, and is never longer.
const BLOCK_BYTES_MAX: u32 = 128 << 10;
const SKIPPED_HEADER_BYTES: u64 = 8;

/// Why bytes are no part of a zstd file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum Error {
    #[error("a header is longer than its {found} bytes")]
    Short { found: usize },
    /// No frame of zstd begins here.
    #[error("no frame: the magic number is {found:#010x}, expected 0xfd2fb528")]
    Magic { found: u32 },
    #[error("the descriptor {found:#04x} of a frame has a bit that is reserved")]
    Descriptor { found: u8 },
    #[error("a block of kind {kind} and {length} bytes")]
    Block {
        /// Bits 1 and 2 of the header.
        kind: u32,
        length: u32,
    },
    #[error("the seek table is wrong: {0}")]
    SeekTable(&'static str),
}

/// The kind of structure at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// A frame of compressed data.
    Data(Header),
    /// Bytes of no meaning here: the length of all of it.
    Skipped {
        /// Length of header and content in the file, bytes.
        frame_bytes: u64,
    },
}

/// The header of a frame with data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Length of the header in bytes.
    pub header_bytes: u64,
    /// The decompressed size of the frame, if stated.
    pub content_bytes: Option<u64>,
    /// How much of the decompressed data is needed again.
    pub window_bytes: u64,
    /// A dictionary that is needed; 0 is none.
    pub dictionary: u32,
    /// A checksum of 4 bytes follows the blocks.
    pub has_checksum: bool,
}

impl Frame {
    /// Reads the frame that begins here.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::Short`] with fewer than [`HEADER_BYTES_MAX`] bytes asks for more.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let short = Error::Short { found: bytes.len() };
        if bytes.len() < 5 {
            return Err(short);
        }
        let magic = bytes::u32_le(bytes, 0);
        if magic & !0xf == SKIPPED_MAGIC {
            if bytes.len() < 8 {
                return Err(short);
            }
            let frame_bytes = SKIPPED_HEADER_BYTES + u64::from(bytes::u32_le(bytes, 4));
            return Ok(Self::Skipped { frame_bytes });
        }
        if magic != MAGIC {
            return Err(Error::Magic { found: magic });
        }
        let descriptor = bytes[4];
        if descriptor & 8 != 0 {
            return Err(Error::Descriptor { found: descriptor });
        }
        let single = descriptor & 0x20 != 0;
        let mut at = 5;
        let window_at = at;
        at += usize::from(!single);
        let dictionary_at = at;
        let dictionary_bytes = [0, 1, 2, 4][usize::from(descriptor & 3)];
        at += dictionary_bytes;
        let content_at = at;
        let content_bytes = match descriptor >> 6 {
            0 => usize::from(single),
            power => 1 << power,
        };
        at += content_bytes;
        if bytes.len() < at {
            return Err(short);
        }
        let content = match content_bytes {
            0 => None,
            1 => Some(u64::from(bytes[content_at])),
            2 => Some(u64::from(bytes::u16_le(bytes, content_at)) + 256),
            4 => Some(u64::from(bytes::u32_le(bytes, content_at))),
            _ => Some(bytes::u64_le(bytes, content_at)),
        };
        let dictionary = match dictionary_bytes {
            0 => 0,
            1 => u32::from(bytes[dictionary_at]),
            2 => u32::from(bytes::u16_le(bytes, dictionary_at)),
            _ => bytes::u32_le(bytes, dictionary_at),
        };
        Ok(Self::Data(Header {
            header_bytes: at as u64,
            content_bytes: content,
            window_bytes: match single {
                true => content.unwrap_or(0),
                false => window(bytes[window_at]),
            },
            dictionary,
            has_checksum: descriptor & 4 != 0,
        }))
    }
}

/// A window descriptor: 5 bits of exponent, 3 of mantissa.
fn window(descriptor: u8) -> u64 {
    let base = 1_u64 << (10 + (descriptor >> 3));
    base + base / 8 * u64::from(descriptor & 7)
}

/// The header of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// No block follows it.
    pub is_last: bool,
    /// The size of the data after the header in the file, bytes.
    pub stored_bytes: u64,
}

impl Block {
    /// Decodes the header of a block (RFC 8878, 3.1.1.2).
    ///
    /// # Errors
    /// [`Error::Block`].
    pub fn decode(bytes: [u8; BLOCK_HEADER_BYTES]) -> Result<Self, Error> {
        let word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]);
        let (kind, length) = (word >> 1 & 3, word >> 3);
        if kind == 3 || length > BLOCK_BYTES_MAX {
            return Err(Error::Block { kind, length });
        }
        Ok(Self {
            is_last: word & 1 != 0,
            // RLE: one byte, whatever its length.
            stored_bytes: if kind == 1 { 1 } else { u64::from(length) },
        })
    }
}

/// The result of looking for a seek table at the end of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeekFooter {
    frames: u32,
    entry_bytes: u64,
}

impl SeekFooter {
    /// Reads the last bytes of a file; none without a seek table.
    ///
    /// # Errors
    /// [`Error::SeekTable`].
    pub fn decode(bytes: [u8; SEEK_FOOTER_BYTES]) -> Result<Option<Self>, Error> {
        if bytes::u32_le(&bytes, 5) != SEEKABLE_MAGIC {
            return Ok(None);
        }
        let (frames, descriptor) = (bytes::u32_le(&bytes, 0), bytes[4]);
        if descriptor & 0x7c != 0 {
            return Err(Error::SeekTable(
                "its descriptor has bits that are reserved",
            ));
        }
        if frames > FRAMES_MAX {
            return Err(Error::SeekTable("it has more than 1048576 frames"));
        }
        Ok(Some(Self {
            frames,
            entry_bytes: if descriptor & 0x80 != 0 { 12 } else { 8 },
        }))
    }

    /// The skipped frame that the table is, bytes.
    pub fn table_bytes(self) -> u64 {
        let entries = u64::from(self.frames) * self.entry_bytes;
        SKIPPED_HEADER_BYTES + entries + SEEK_FOOTER_BYTES as u64
    }

    /// Decodes the entries of the seek table, in the order of the frames.
    ///
    /// # Errors
    /// [`Error::SeekTable`].
    pub fn entries(self, table: &[u8]) -> Result<Vec<SeekEntry>, Error> {
        if table.len() as u64 != self.table_bytes() {
            return Err(Error::SeekTable("it ends early"));
        }
        if bytes::u32_le(table, 0) != SEEK_TABLE_MAGIC
            || u64::from(bytes::u32_le(table, 4)) != self.table_bytes() - SKIPPED_HEADER_BYTES
        {
            return Err(Error::SeekTable(
                "it does not begin where its footer states",
            ));
        }
        let entries =
            table[SKIPPED_HEADER_BYTES as usize..].chunks_exact(self.entry_bytes as usize);
        let entries = entries.take(self.frames as usize).map(|entry| SeekEntry {
            frame_bytes: u64::from(bytes::u32_le(entry, 0)),
            data_bytes: u64::from(bytes::u32_le(entry, 4)),
        });
        Ok(entries.collect())
    }
}

/// One frame, as the seek table has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeekEntry {
    /// The frame in the file.
    pub frame_bytes: u64,
    /// The decompressed size.
    pub data_bytes: u64,
}

#[cfg(test)]
mod tests;
