//! The header and the trailer of a member of a gzip file. The deflate stream between them is left
//! to a decoder.
//!
//! ```text
//! byte 0  1f 8b    2  method (8)   3  flags   4  time u32   8  extra flags   9  system
//!     10  flag 4: length u16, that many bytes       flag 8: name, NUL
//!         flag 16: comment, NUL                     flag 2: CRC-16 of the header
//! ```
//! Behind the deflate stream: CRC-32 of the data, and its length modulo 2^32. Members follow each
//! other; zeroes behind the last one are padding. Source: RFC 1952; `docs/formats/gzip.md`.

use crate::bytes;
use crate::text::begins;

/// The longest header that is read, bytes.
pub const HEADER_BYTES_MAX: usize = 256 << 10;
/// Length of the trailer (CRC-32 and ISIZE) in bytes.
pub const TRAILER_BYTES: usize = 8;

const FIXED_BYTES: usize = 10;
const DEFLATE: u8 = 8;
const HEADER_CRC: u8 = 2;
const EXTRA: u8 = 4;
const NAME: u8 = 8;
const COMMENT: u8 = 16;
const RESERVED: u8 = 0xe0;

/// Why bytes are no header of a member.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum Error {
    #[error("the header of a member is longer than its {found} bytes")]
    Short { found: usize },
    #[error("no member: {}", begins(found, b"\x1f\x8b"))]
    Magic { found: [u8; 2] },
    #[error("method {found} at byte 2, expected 8 (deflate)")]
    Method { found: u8 },
    #[error("flags {found:#04x} at byte 3 have bits that are reserved")]
    Flags { found: u8 },
    #[error("the header's CRC-16 is {found:#06x}, its bytes give {expected:#06x}")]
    Checksum {
        found: u16,
        /// That of the bytes.
        expected: u16,
    },
}

/// The length of a member's header, in bytes.
///
/// # Errors
/// See [`Error`]; [`Error::Short`] with fewer than [`HEADER_BYTES_MAX`] bytes asks for more.
pub fn header_bytes(bytes: &[u8]) -> Result<usize, Error> {
    let short = Error::Short { found: bytes.len() };
    let start: [u8; 2] = bytes::take(bytes, 0);
    if bytes.len() >= 2 && start != [0x1f, 0x8b] {
        return Err(Error::Magic { found: start });
    }
    if bytes.len() < FIXED_BYTES {
        return Err(short);
    }
    let (method, flags) = (bytes[2], bytes[3]);
    if method != DEFLATE {
        return Err(Error::Method { found: method });
    }
    if flags & RESERVED != 0 {
        return Err(Error::Flags { found: flags });
    }
    let mut at = FIXED_BYTES;
    if flags & EXTRA != 0 {
        at += 2 + usize::from(bytes::u16_le(bytes, at));
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            let rest = bytes.get(at..).ok_or(short.clone())?;
            let end = rest.iter().position(|&byte| byte == 0);
            at += end.ok_or(short.clone())? + 1;
        }
    }
    if flags & HEADER_CRC != 0 {
        let covered = bytes.get(..at).ok_or(short.clone())?;
        let expected = crc32fast::hash(covered) as u16;
        if bytes.len() < at + 2 {
            return Err(short);
        }
        let found = bytes::u16_le(bytes, at);
        if found != expected {
            return Err(Error::Checksum { found, expected });
        }
        at += 2;
    }
    if at > bytes.len() {
        return Err(short);
    }
    Ok(at)
}

/// The trailer of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trailer {
    /// CRC-32 of the data.
    pub crc: u32,
    /// Length of the data modulo 2^32, bytes.
    pub length: u32,
}

impl Trailer {
    /// Reads CRC-32 and ISIZE, both little-endian.
    pub fn decode(bytes: &[u8; TRAILER_BYTES]) -> Self {
        Self {
            crc: bytes::u32_le(bytes, 0),
            length: bytes::u32_le(bytes, 4),
        }
    }
}

#[cfg(test)]
mod tests;
