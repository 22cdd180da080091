//! The log of a disk that is going to crash: every write with its data, every barrier, and the
//! promises of the workload, in the order in which they were submitted.
//!
//! ```text
//! header   32 bytes   magic, size of the media, size of a sector, CRC-32
//! record   32 bytes   command, flags, stored bytes, two words, CRC-32 of the data, CRC-32 of this
//!   data              as many bytes as are stored
//! record   ...
//! ```
//! A file is read from its beginning; the number of a record is its position, from 0. Source:
//! `docs/formats/crash_log.md`.

#[cfg(test)]
mod tests;

use crate::bytes::{byte, put, put_u32_le, put_u64_le, take, u16_le, u32_le, u64_le};
use crate::text;

/// The size of the header, bytes.
pub const HEADER_BYTES: usize = 32;
/// The size of a record without its data, bytes.
pub const RECORD_BYTES: usize = 32;
/// The most data that a record may carry, bytes.
pub(crate) const STORED_BYTES_MAX: u32 = 64 << 20;
/// The longest promise, bytes.
pub const PROMISE_BYTES_MAX: usize = 4096;

const MAGIC: [u8; 8] = *b"UGCRASH1";
/// The flag of a write that must be durable before it completes.
const FUA: u8 = 1;

const WRITE: u8 = 1;
const ZERO: u8 = 2;
const DELETE: u8 = 3;
const BARRIER: u8 = 4;
const DURABLE: u8 = 5;
const PROMISE: u8 = 6;
const BEGIN: u8 = 7;

/// The defects of a log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum CrashLogError {
    #[error("this is no crash log: {}", text::begins(.found, &MAGIC))]
    Magic {
        /// The first eight bytes.
        found: [u8; 8],
    },
    #[error("the log ends inside {what}: {found} of {expected} bytes are there")]
    Truncated {
        what: &'static str,
        /// The bytes that are there.
        found: usize,
        /// The bytes that belong there.
        expected: usize,
    },
    #[error("the CRC of {what} is {found:08x}, and its bytes give {expected:08x}")]
    Checksum {
        what: &'static str,
        /// The checksum in the log.
        found: u32,
        /// That of the bytes.
        expected: u32,
    },
    /// A field has a value that it cannot have.
    #[error("{field} is {value}: {problem}")]
    Field {
        field: &'static str,
        value: u64,
        /// Why that cannot be.
        problem: &'static str,
    },
}

/// The header of a log: size and sector of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The size of the media, bytes.
    pub media_bytes: u64,
    /// The size of a sector, bytes.
    pub sector_bytes: u32,
}

impl Header {
    /// Its bytes, as they stand at the beginning of the log.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        put(&mut bytes, 0, &MAGIC);
        put_u64_le(&mut bytes, 8, self.media_bytes);
        put_u32_le(&mut bytes, 16, self.sector_bytes);
        let crc = crc32fast::hash(&bytes[..28]);
        put_u32_le(&mut bytes, 28, crc);
        bytes
    }

    /// Decodes the header of a log.
    ///
    /// # Errors
    /// It is too short, no header, damaged, or of a media without a sector.
    pub fn decode(bytes: &[u8]) -> Result<Self, CrashLogError> {
        let bytes = whole(bytes, HEADER_BYTES, "the header")?;
        let magic: [u8; 8] = take(bytes, 0);
        if magic != MAGIC {
            return Err(CrashLogError::Magic { found: magic });
        }
        checksum(bytes, 28, "the header")?;
        let header = Self {
            media_bytes: u64_le(bytes, 8),
            sector_bytes: u32_le(bytes, 16),
        };
        let sector = u64::from(header.sector_bytes);
        if !header.sector_bytes.is_power_of_two() {
            return Err(field("the size of a sector", sector, "no power of two"));
        }
        if header.media_bytes == 0 || !header.media_bytes.is_multiple_of(sector) {
            let problem = "no whole number of sectors";
            return Err(field("the size of the media", header.media_bytes, problem));
        }
        Ok(header)
    }
}

/// The content of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "a range is named with its unit")]
pub enum Entry {
    /// A write was submitted. Its data is stored without the zeroes at the end.
    Write {
        offset_bytes: u64,
        length_bytes: u64,
        /// It must be durable before it completes; [`Entry::Durable`] says when that was.
        fua: bool,
    },
    /// A range was made zeroes.
    Zero {
        offset_bytes: u64,
        length_bytes: u64,
    },
    /// A range was given back; it reads as zeroes from then on.
    Delete {
        offset_bytes: u64,
        length_bytes: u64,
    },
    /// A FLUSH succeeded: all records with a smaller number are durable, except for those whose
    /// numbers are its data (they were in flight when it was submitted), 8 bytes each.
    Barrier {
        /// The first record that it does not cover.
        covers: u64,
    },
    /// A write with FUA succeeded.
    Durable {
        /// The number of its record.
        write: u64,
    },
    /// The workload was promised something: the data identifies the promise.
    Promise,
    /// The set-up is over, and everything before is durable.
    Begin,
}

/// A record without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// An event of the disk, or a message between the workload and its user.
    pub entry: Entry,
    /// How many bytes of data follow it.
    pub stored_bytes: u32,
    /// CRC-32 of the data (IEEE 802.3).
    pub data_crc: u32,
}

impl Record {
    /// A record with that data.
    pub fn new(entry: Entry, data: &[u8]) -> Self {
        Self {
            entry,
            stored_bytes: data.len() as u32,
            data_crc: crc32fast::hash(data),
        }
    }

    /// Its bytes, as they stand in the log.
    pub fn encode(&self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        let (kind, flags, first, second) = self.words();
        bytes[0] = kind;
        bytes[1] = flags;
        put_u32_le(&mut bytes, 4, self.stored_bytes);
        put_u64_le(&mut bytes, 8, first);
        put_u64_le(&mut bytes, 16, second);
        put_u32_le(&mut bytes, 24, self.data_crc);
        let crc = crc32fast::hash(&bytes[..28]);
        put_u32_le(&mut bytes, 28, crc);
        bytes
    }

    fn words(&self) -> (u8, u8, u64, u64) {
        match self.entry {
            Entry::Write {
                offset_bytes,
                length_bytes,
                fua,
            } => (WRITE, u8::from(fua) * FUA, offset_bytes, length_bytes),
            Entry::Zero {
                offset_bytes,
                length_bytes,
            } => (ZERO, 0, offset_bytes, length_bytes),
            Entry::Delete {
                offset_bytes,
                length_bytes,
            } => (DELETE, 0, offset_bytes, length_bytes),
            Entry::Barrier { covers } => (BARRIER, 0, covers, 0),
            Entry::Durable { write } => (DURABLE, 0, write, 0),
            Entry::Promise => (PROMISE, 0, 0, 0),
            Entry::Begin => (BEGIN, 0, 0, 0),
        }
    }

    /// Reads the record with that number of a log with that header.
    ///
    /// # Errors
    /// It is too short or damaged, of no kind that there is, or names what is not on the media or
    /// comes later in the log.
    pub fn decode(bytes: &[u8], number: u64, header: &Header) -> Result<Self, CrashLogError> {
        let bytes = whole(bytes, RECORD_BYTES, "a record")?;
        checksum(bytes, 28, "a record")?;
        let (kind, flags, stored_bytes) = (byte(bytes, 0), byte(bytes, 1), u32_le(bytes, 4));
        let (first, second) = (u64_le(bytes, 8), u64_le(bytes, 16));
        if flags & !FUA != 0 || (flags != 0 && kind != WRITE) {
            let problem = "no such flag of this kind of record";
            return Err(field("the flags of a record", u64::from(flags), problem));
        }
        let reserved = u16_le(bytes, 2);
        if reserved != 0 {
            let problem = "0 is expected there";
            return Err(field("byte 2 of a record", u64::from(reserved), problem));
        }
        let entry = match kind {
            WRITE => Entry::Write {
                offset_bytes: first,
                length_bytes: second,
                fua: flags == FUA,
            },
            ZERO => Entry::Zero {
                offset_bytes: first,
                length_bytes: second,
            },
            DELETE => Entry::Delete {
                offset_bytes: first,
                length_bytes: second,
            },
            BARRIER => Entry::Barrier { covers: first },
            DURABLE => Entry::Durable { write: first },
            PROMISE => Entry::Promise,
            BEGIN => Entry::Begin,
            _ => {
                let problem = "1 to 7 are expected";
                return Err(field("the kind of a record", u64::from(kind), problem));
            }
        };
        let record = Self {
            entry,
            stored_bytes,
            data_crc: u32_le(bytes, 24),
        };
        if record.words().3 != second || record.words().2 != first {
            return Err(field(
                "an unused word of a record",
                second.max(first),
                "not 0",
            ));
        }
        record.admits(number, header)?;
        Ok(record)
    }

    /// Checks its fields against the media, its data, and its place in the log.
    fn admits(&self, number: u64, header: &Header) -> Result<(), CrashLogError> {
        let stored = u64::from(self.stored_bytes);
        let most = match self.entry {
            Entry::Write { length_bytes, .. } => length_bytes.min(u64::from(STORED_BYTES_MAX)),
            Entry::Barrier { .. } => u64::from(STORED_BYTES_MAX),
            Entry::Promise => PROMISE_BYTES_MAX as u64,
            _ => 0,
        };
        if stored > most {
            return Err(field(
                "the data of a record",
                stored,
                "more than it can have",
            ));
        }
        match self.entry {
            Entry::Barrier { .. } if !stored.is_multiple_of(8) => Err(field(
                "the data of a barrier",
                stored,
                "no whole number of words",
            )),
            Entry::Barrier { covers: before } if before > number => {
                Err(field("what a barrier covers", before, "later than itself"))
            }
            Entry::Durable { write } if write >= number => Err(field(
                "the write that is durable",
                write,
                "later than its record",
            )),
            _ => match self.range() {
                Some((offset, length)) => in_media(offset, length, header),
                None => Ok(()),
            },
        }
    }

    /// The range that it changes, offset and length in bytes, if it changes any.
    pub fn range(&self) -> Option<(u64, u64)> {
        match self.entry {
            Entry::Write {
                offset_bytes,
                length_bytes,
                ..
            }
            | Entry::Zero {
                offset_bytes,
                length_bytes,
            }
            | Entry::Delete {
                offset_bytes,
                length_bytes,
            } => Some((offset_bytes, length_bytes)),
            _ => None,
        }
    }

    /// Checks the data that follows it.
    ///
    /// # Errors
    /// It is not as long as the record says, or damaged.
    pub fn check(&self, data: &[u8]) -> Result<(), CrashLogError> {
        let expected = self.stored_bytes as usize;
        if data.len() != expected {
            return Err(CrashLogError::Truncated {
                what: "the data of a record",
                found: data.len(),
                expected,
            });
        }
        let crc = crc32fast::hash(data);
        if crc == self.data_crc {
            return Ok(());
        }
        Err(CrashLogError::Checksum {
            what: "the data of a record",
            found: self.data_crc,
            expected: crc,
        })
    }
}

/// The numbers that the data of a barrier has.
pub fn numbers(data: &[u8]) -> impl Iterator<Item = u64> {
    data.chunks_exact(8).map(|word| u64_le(word, 0))
}

/// The data without the zeroes at its end.
pub fn without_zeroes(data: &[u8]) -> &[u8] {
    // Whole words first: most data that ends in zeroes ends in many.
    let (words, rest) = data.as_chunks::<64>();
    if rest.iter().any(|byte| *byte != 0) {
        let last = data.iter().rposition(|byte| *byte != 0);
        return &data[..last.map_or(0, |last| last + 1)];
    }
    let kept = words.iter().rposition(|word| *word != [0; 64]);
    let kept = kept.map_or(0, |last| (last + 1) * 64);
    let last = data[..kept].iter().rposition(|byte| *byte != 0);
    &data[..last.map_or(0, |last| last + 1)]
}

fn whole<'a>(
    bytes: &'a [u8],
    expected: usize,
    what: &'static str,
) -> Result<&'a [u8], CrashLogError> {
    bytes.get(..expected).ok_or(CrashLogError::Truncated {
        what,
        found: bytes.len(),
        expected,
    })
}

/// The CRC-32 that stands at `at` is that of the bytes before it.
fn checksum(bytes: &[u8], at: usize, what: &'static str) -> Result<(), CrashLogError> {
    let (found, expected) = (u32_le(bytes, at), crc32fast::hash(&bytes[..at]));
    if found == expected {
        return Ok(());
    }
    Err(CrashLogError::Checksum {
        what,
        found,
        expected,
    })
}

fn in_media(offset: u64, length: u64, header: &Header) -> Result<(), CrashLogError> {
    let end = offset.checked_add(length);
    if length == 0 || end.is_none_or(|end| end > header.media_bytes) {
        return Err(field(
            "the range of a record",
            offset,
            "it is not on the media",
        ));
    }
    let sector = u64::from(header.sector_bytes);
    if !offset.is_multiple_of(sector) || !length.is_multiple_of(sector) {
        return Err(field("the range of a record", offset, "no whole sectors"));
    }
    Ok(())
}

const fn field(field: &'static str, value: u64, problem: &'static str) -> CrashLogError {
    CrashLogError::Field {
        field,
        value,
        problem,
    }
}
