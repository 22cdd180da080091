//! fio's `local-NAME-N-verify.state`: the last writes of a job when it ended, so that a later job
//! verifies no more than that.
//!
//! ```text
//! byte 0   version: 3                        u64 little-endian, as are all numbers
//! byte 8   bytes behind the header           u64
//! byte 16  CRC-32C of these, not inverted    u64
//! byte 24  completions                       u64
//! byte 32  queue depth of the job            u32
//! byte 36  files of the job                  u32
//! byte 40  writes that were issued           u64
//! byte 48  number of the job, from 0         u64
//! byte 56  generator of offsets: 0 or 1      u64: its state has 32 or 64 bits
//! byte 64  state of the generator            4 u32 or 6 u64
//! byte 112 name of the job                   64 bytes, with a zero at the end
//! byte 176 completions: file, offset         2 u64 each; depth * files of them, zeros at the end
//! ```
//! Source: `verify-state.h` and `verify.c` of fio 3.33; `docs/formats/verify_state.md`.

#[cfg(test)]
mod tests;

use crate::bytes::{put, put_u32_le, put_u64_le, u32_le, u64_le};

/// The version of fio 2.17 to 3.33.
const VERSION: u64 = 3;
/// The bytes of version, length and checksum.
const HEADER_BYTES: usize = 24;
/// The bytes before the completions.
const FIXED_BYTES: usize = 176;
/// The bytes of a name, the zero at its end included.
const NAME_BYTES: usize = 64;
/// The bytes of a completion.
const COMPLETION_BYTES: usize = 16;
/// The longest file that is read or written: 4 million completions.
pub const FILE_BYTES_MAX: usize = 64 << 20;

/// The state of the generator that offsets are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generator {
    /// `random_generator=tausworthe`, and jobs without random offsets.
    Short([u32; 4]),
    /// `random_generator=tausworthe64`.
    Long([u64; 6]),
}

/// A write that had ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Completion {
    /// The number of the file among those of the job, from 0.
    pub file: u64,
    /// From the beginning of the file, bytes.
    pub offset: u64,
}

/// The writes of a job when it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyState {
    /// Queue depth of the job.
    pub depth: u32,
    /// Number of files of the job.
    pub files: u32,
    /// Writes that were issued.
    pub writes: u64,
    /// The number of the job among all, from 0.
    pub index: u64,
    /// State of the generator of offsets when the job ended; not used when a state is loaded.
    pub generator: Generator,
    /// The name of the job, at most 63 bytes.
    pub name: Vec<u8>,
    /// The writes that ended last, up to `depth` of each file, the newest of each first.
    pub completions: Vec<Completion>,
}

/// The defects of a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum Error {
    #[error("the file ends at byte {found}: a verify state has {expected} bytes")]
    Truncated { found: usize, expected: u64 },
    #[error("version {0} at byte 0: this program reads version {VERSION}, that of fio 3.33")]
    Version(u64),
    #[error("CRC-32C {found:#x} at byte 16, the content has {expected:#x}: the file is damaged")]
    Checksum { found: u64, expected: u64 },
    #[error("{completions} completions at byte 24: the file has room for {room}")]
    Completions { completions: u64, room: usize },
    #[error("the file has {0} bytes: at most {FILE_BYTES_MAX} are read")]
    TooLong(u64),
}

/// The checksum of fio: CRC-32C without the inversion at its end.
fn checksum(bytes: &[u8]) -> u64 {
    u64::from(!crc32c::crc32c(bytes))
}

impl VerifyState {
    /// Decodes a file. Bytes beyond the length in its header are ignored, as in fio.
    ///
    /// # Errors
    /// The defect, with its place.
    pub fn decode(file: &[u8]) -> Result<Self, Error> {
        let (found, smallest) = (file.len(), FIXED_BYTES as u64);
        if found > FILE_BYTES_MAX {
            return Err(Error::TooLong(found as u64));
        }
        let truncated = |expected| Error::Truncated { found, expected };
        if found < HEADER_BYTES {
            return Err(truncated(smallest));
        }
        let (version, length) = (u64_le(file, 0), u64_le(file, 8));
        if version != VERSION {
            return Err(Error::Version(version));
        }
        let expected = length.saturating_add(HEADER_BYTES as u64).max(smallest);
        if (found as u64) < expected {
            return Err(truncated(expected));
        }
        let content = &file[HEADER_BYTES..expected as usize];
        let (found, expected) = (u64_le(file, 16), checksum(content));
        if found != expected {
            return Err(Error::Checksum { found, expected });
        }
        let listed = &file[FIXED_BYTES..HEADER_BYTES + content.len()];
        let (completions, room) = (u64_le(file, 24), listed.len() / COMPLETION_BYTES);
        if completions > room as u64 {
            return Err(Error::Completions { completions, room });
        }
        let name = &file[FIXED_BYTES - NAME_BYTES..FIXED_BYTES - 1];
        let listed = listed.chunks_exact(COMPLETION_BYTES);
        Ok(Self {
            depth: u32_le(file, 32),
            files: u32_le(file, 36),
            writes: u64_le(file, 40),
            index: u64_le(file, 48),
            generator: match u64_le(file, 56) {
                0 => Generator::Short([0, 4, 8, 12].map(|at| u32_le(file, 64 + at))),
                _ => Generator::Long([0, 8, 16, 24, 32, 40].map(|at| u64_le(file, 64 + at))),
            },
            name: name
                .split(|byte| *byte == 0)
                .next()
                .unwrap_or(name)
                .to_vec(),
            completions: listed
                .take(completions as usize)
                .map(|bytes| Completion {
                    file: u64_le(bytes, 0),
                    offset: u64_le(bytes, 8),
                })
                .collect(),
        })
    }

    /// The bytes of a file, as fio writes them.
    ///
    /// # Errors
    /// The file would be longer than [`FILE_BYTES_MAX`].
    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        let room =
            (u64::from(self.depth) * u64::from(self.files)).max(self.completions.len() as u64);
        let bytes = room.saturating_mul(COMPLETION_BYTES as u64);
        let bytes = bytes.saturating_add(FIXED_BYTES as u64);
        if bytes > FILE_BYTES_MAX as u64 {
            return Err(Error::TooLong(bytes));
        }
        let mut file = vec![0; bytes as usize];
        put_u64_le(&mut file, 0, VERSION);
        put_u64_le(&mut file, 8, bytes - HEADER_BYTES as u64);
        put_u64_le(&mut file, 24, self.completions.len() as u64);
        put_u32_le(&mut file, 32, self.depth);
        put_u32_le(&mut file, 36, self.files);
        put_u64_le(&mut file, 40, self.writes);
        put_u64_le(&mut file, 48, self.index);
        match self.generator {
            Generator::Short(state) => {
                let numbers = (64..).step_by(4).zip(state);
                numbers.for_each(|(at, number)| put_u32_le(&mut file, at, number));
            }
            Generator::Long(state) => {
                put_u64_le(&mut file, 56, 1);
                let numbers = (64..).step_by(8).zip(state);
                numbers.for_each(|(at, number)| put_u64_le(&mut file, at, number));
            }
        }
        let name = &self.name[..self.name.len().min(NAME_BYTES - 1)];
        put(&mut file, FIXED_BYTES - NAME_BYTES, name);
        let places = (FIXED_BYTES..).step_by(COMPLETION_BYTES);
        for (at, completion) in places.zip(&self.completions) {
            put_u64_le(&mut file, at, completion.file);
            put_u64_le(&mut file, at + 8, completion.offset);
        }
        let sum = checksum(&file[HEADER_BYTES..]);
        put_u64_le(&mut file, 16, sum);
        Ok(file)
    }

    /// The name of the file for the job with this name and number, without its folder: that of the
    /// part of the name which the file has room for, so that a long one is found again.
    pub fn file_name(job: &str, index: u64) -> String {
        let end = (0..NAME_BYTES).rev().find(|end| job.is_char_boundary(*end));
        let name = &job[..end.unwrap_or(0)];
        format!("local-{}-{index}-verify.state", name.replace('/', "."))
    }
}
