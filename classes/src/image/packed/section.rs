//! Sections of the data, and their decoders.

use super::input::Position;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};

/// The memory that decoders may take together, bytes; one decoder always may run.
const DECODER_BYTES: u64 = 256 << 20;
/// The largest dictionary or window that is taken, bytes.
pub(super) const WINDOW_BYTES_MAX: u64 = 256 << 20;
/// How many decoders may run at a time.
const DECODERS: u64 = 8;

/// Compressed data that cannot be read, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Damage {
    /// The byte of the file.
    pub file_at: u64,
    /// The byte of the disk, where it is known.
    pub disk_at: Option<u64>,
    pub reason: String,
    /// It has not been reported yet.
    pub is_first: bool,
}

impl Damage {
    pub fn new(file_at: u64, reason: impl fmt::Display) -> Self {
        Self {
            file_at,
            disk_at: None,
            reason: reason.to_string(),
            is_first: true,
        }
    }
}

/// Length of a file, bytes.
pub(super) fn file_bytes(file: &File) -> Result<u64, Damage> {
    let metadata = file.metadata();
    Ok(metadata.map_err(|error| Damage::new(0, error))?.len())
}

/// The offset of the disk behind a section of `length` bytes, which lies at `file_at` of the file.
pub(super) fn next_offset(offset: u64, length: u64, file_at: u64) -> Result<u64, Damage> {
    let end = offset.checked_add(length);
    end.filter(|&end| end <= i64::MAX as u64)
        .ok_or_else(|| Damage::new(file_at, "more data than a disk can have"))
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot be decompressed at byte {}", self.file_at)?;
        if let Some(disk_at) = self.disk_at {
            write!(f, " (byte {disk_at} of the disk)")?;
        }
        write!(f, ": {}", self.reason)
    }
}

/// Decodes one section from its start on.
pub(super) trait Decoder: Send {
    /// Fills `out`, but for the end of the section. Data after it, such as a checksum, is checked
    /// when the call returns fewer bytes than it could have.
    ///
    /// # Errors
    /// The data is damaged, or cannot be read.
    fn decode(&mut self, out: &mut [u8]) -> Result<usize, Damage>;
}

/// Where a decoder can begin.
pub(super) trait Start: Send + Sync {
    /// A decoder at the start of this section.
    ///
    /// # Errors
    /// What is there is no such data.
    fn decoder(&self) -> Result<Box<dyn Decoder>, Damage>;
}

/// Data that a decoder can begin with.
pub(super) struct Section {
    /// How many bytes; unknown until it has been decoded where the frame does not state it.
    pub length: Option<u64>,
    pub start: Box<dyn Start>,
}

/// All of the data, in the order of the disk.
pub(super) struct Sections {
    pub list: Vec<Section>,
    /// The maximum memory of a decoder.
    pub decoder_bytes: u64,
    /// Long sections are kept in a file, as far as they are decoded.
    pub spills: bool,
}

impl Sections {
    /// How many decoders may run at a time.
    pub fn decoders(&self) -> usize {
        (DECODER_BYTES / self.decoder_bytes.max(1)).clamp(1, DECODERS) as usize
    }
}

/// Fills `out` from a decoder of a library.
pub(super) fn filled(
    reader: &mut impl Read,
    out: &mut [u8],
    position: &Position,
) -> Result<usize, Damage> {
    let mut filled = 0;
    while filled < out.len() {
        match reader.read(&mut out[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                let damage = Damage::new(position.get(), error);
                let disk_at = Some(filled as u64);
                return Err(Damage { disk_at, ..damage });
            }
        }
    }
    Ok(filled)
}
