//! The frame of an xz file: the headers and footers of its streams, and their indexes. The blocks
//! are left to a decoder.
//!
//! ```text
//! stream:  header | block ... block | index | footer        then padding, and further streams
//!
//! header   fd "7zXZ" 00 | flags 2 | CRC-32 of the flags
//! index    00 | records | unpadded size, uncompressed size, each a variable integer ...
//!          filled up to 4 bytes | CRC-32
//! footer   CRC-32 of the next 6 | index size / 4 - 1, u32 | flags 2 | "YZ"
//! ```
//! All integers are little-endian. Source: The .xz File Format, version 1.2.1;
//! `docs/formats/xz.md`.

use crate::{bytes, text};

/// The header of a stream, and its footer, bytes.
pub const EDGE_BYTES: usize = 12;
/// The most blocks of one stream that are read.
pub const BLOCKS_MAX: u64 = 1 << 20;
/// The longest index that is read: each record has at most 18 bytes.
pub const INDEX_BYTES_MAX: u64 = BLOCKS_MAX * 18;

const MAGIC: [u8; 6] = *b"\xfd7zXZ\0";
const FOOTER_MAGIC: [u8; 2] = *b"YZ";
/// Sizes in an index are below 2^63.
const VLI_BYTES: usize = 9;

/// Why bytes are no part of the frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum Error {
    /// The bytes are not those of an xz stream's header or footer.
    #[error(
        "the {what} has the magic bytes \"{}\", not \"{}\"",
        .found.escape_ascii(),
        .expected.escape_ascii()
    )]
    Magic {
        /// `stream header` or `stream footer`.
        what: &'static str,
        found: Vec<u8>,
        expected: &'static [u8],
    },
    #[error("the {what} has the CRC-32 {found:#010x}, its bytes give {expected:#010x}")]
    Checksum {
        /// `stream header`, `stream footer` or `index`.
        what: &'static str,
        found: u32,
        /// That of the bytes.
        expected: u32,
    },
    #[error("the {what} has the flags {}", text::hex(.found))]
    Flags {
        /// `stream header` or `stream footer`.
        what: &'static str,
        found: [u8; 2],
    },
    /// An index that its own numbers contradict.
    #[error("the index is wrong at its byte {at}: {problem}")]
    Index {
        /// The byte of the index.
        at: usize,
        problem: &'static str,
    },
    #[error("the index has {found} blocks, at most {BLOCKS_MAX} are read")]
    Blocks { found: u64 },
}

/// The flags of a stream: which checksum its blocks have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    fn decode(what: &'static str, found: [u8; 2]) -> Result<Self, Error> {
        if found[0] != 0 || found[1] > 0x0f {
            return Err(Error::Flags { what, found });
        }
        Ok(Self(found[1]))
    }

    /// The number of the checksum: 0 none, 1 CRC-32, 4 CRC-64, 10 SHA-256.
    pub fn check(self) -> u8 {
        self.0
    }

    /// The header of a stream with these flags.
    pub fn header(self) -> [u8; EDGE_BYTES] {
        let mut out = [0; EDGE_BYTES];
        bytes::put(&mut out, 0, &MAGIC);
        out[7] = self.0;
        let crc = crc32fast::hash(&out[6..8]);
        bytes::put_u32_le(&mut out, 8, crc);
        out
    }

    /// The index and the footer of a stream with these flags that has one block.
    pub fn closing(self, record: Record) -> Vec<u8> {
        let mut out = vec![0, 1];
        put_vli(&mut out, record.unpadded_bytes);
        put_vli(&mut out, record.data_bytes);
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend(crc32fast::hash(&out).to_le_bytes());
        let mut tail = [0; 6];
        bytes::put_u32_le(&mut tail, 0, (out.len() / 4 - 1) as u32);
        tail[5] = self.0;
        out.extend(crc32fast::hash(&tail).to_le_bytes());
        out.extend(tail);
        out.extend(FOOTER_MAGIC);
        out
    }
}

/// Reads the header of a stream.
///
/// # Errors
/// See [`Error`].
pub fn header(bytes: &[u8; EDGE_BYTES]) -> Result<Flags, Error> {
    let what = "stream header";
    if bytes[..6] != MAGIC {
        return Err(Error::Magic {
            what,
            found: bytes[..6].to_vec(),
            expected: &MAGIC,
        });
    }
    checked(what, &bytes[6..8], bytes::u32_le(bytes, 8))?;
    Flags::decode(what, [bytes[6], bytes[7]])
}

/// Reads the footer of a stream: the length of its index in bytes, and its flags.
///
/// # Errors
/// See [`Error`].
pub fn footer(bytes: &[u8; EDGE_BYTES]) -> Result<(u64, Flags), Error> {
    let what = "stream footer";
    if bytes[10..] != FOOTER_MAGIC {
        return Err(Error::Magic {
            what,
            found: bytes[10..].to_vec(),
            expected: &FOOTER_MAGIC,
        });
    }
    checked(what, &bytes[4..10], bytes::u32_le(bytes, 0))?;
    let index_bytes = (u64::from(bytes::u32_le(bytes, 4)) + 1) * 4;
    Ok((index_bytes, Flags::decode(what, [bytes[8], bytes[9]])?))
}

fn checked(what: &'static str, covered: &[u8], found: u32) -> Result<(), Error> {
    let expected = crc32fast::hash(covered);
    if found != expected {
        return Err(Error::Checksum {
            what,
            found,
            expected,
        });
    }
    Ok(())
}

/// One block, as the index has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The block with header and checksum, without padding to 4 bytes.
    pub unpadded_bytes: u64,
    /// The decompressed size.
    pub data_bytes: u64,
}

impl Record {
    /// The block in the file, bytes.
    pub fn padded_bytes(self) -> u64 {
        // Sizes in an index are below 2^63.
        self.unpadded_bytes.next_multiple_of(4)
    }
}

/// Reads a whole index.
///
/// # Errors
/// See [`Error`].
pub fn index(bytes: &[u8]) -> Result<Vec<Record>, Error> {
    let what = "index";
    let wrong = |at, problem| Error::Index { at, problem };
    let Some((covered, found)) = bytes.split_last_chunk::<4>() else {
        return Err(wrong(bytes.len(), "it ends within its checksum"));
    };
    checked(what, covered, u32::from_le_bytes(*found))?;
    if covered.first() != Some(&0) {
        return Err(wrong(0, "an index begins with 0"));
    }
    let mut at = 1;
    let count = vli(covered, &mut at).ok_or(wrong(1, "the number of blocks is no number"))?;
    if count > BLOCKS_MAX {
        return Err(Error::Blocks { found: count });
    }
    // Each record has at least two bytes, so a wrong count makes no large allocation.
    let mut records = Vec::with_capacity((count as usize).min(covered.len() / 2));
    for _ in 0..count {
        let start = at;
        let unpadded = vli(covered, &mut at);
        let data = vli(covered, &mut at);
        let (Some(unpadded_bytes), Some(data_bytes)) = (unpadded, data) else {
            return Err(wrong(start, "a size is no number"));
        };
        // 5: the smallest header with the smallest stream behind it.
        if !(5..=u64::MAX / 4).contains(&unpadded_bytes) {
            return Err(wrong(start, "a block of that size cannot be"));
        }
        records.push(Record {
            unpadded_bytes,
            data_bytes,
        });
    }
    let filling = &covered[at..];
    if filling.len() > 3 || filling.iter().any(|&byte| byte != 0) {
        return Err(wrong(at, "it goes on behind its records"));
    }
    Ok(records)
}

/// A variable integer: 7 bits a byte, the lowest first, bit 7 set on all but the last.
fn vli(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0;
    for place in 0..VLI_BYTES {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            // The shortest form only.
            return (byte != 0 || place == 0).then_some(value);
        }
    }
    None
}

fn put_vli(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests;
