//! Why a database of the logical disk manager cannot be read.

use crate::media::Unreadable;
use crate::text::begins;

/// The defects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum Error {
    #[error("an LDM database needs sectors of 512 bytes, these have {found}")]
    SectorSize {
        /// Bytes of a sector.
        found: u32,
    },
    /// A sector could not be read.
    #[error(transparent)]
    Read(#[from] Unreadable),
    #[error("sector {sector}: {}", begins(found, expected.as_bytes()))]
    Magic {
        sector: u64,
        found: [u8; 8],
        expected: &'static str,
    },
    #[error("sector {sector}: version {found:#x} of the database is not known")]
    Version {
        sector: u64,
        /// Major and minor number.
        found: u32,
    },
    #[error("sector {sector}: {found:?} at byte {offset} is no GUID")]
    Guid {
        sector: u64,
        /// The byte in it.
        offset: usize,
        found: String,
    },
    #[error("sector {sector}: {what} is impossible on this disk")]
    Place { sector: u64, what: &'static str },
    #[error("the two headers at the end of the database differ")]
    HeadersDiffer,
    /// A change of the database was interrupted.
    #[error("the database is in state {found}, expected 1 (consistent)")]
    State {
        /// 2 while something is made, 3 while something is removed.
        found: u16,
    },
    #[error("the database has {count} records of {size} bytes, which do not fit in it")]
    Records { count: u32, size: u32 },
    #[error("record {number} of the database: {what}")]
    Record {
        /// Number of the record, from 0.
        number: usize,
        what: &'static str,
    },
    #[error("the database has no record of this disk")]
    NoDisk,
}
