//! Why a disklabel cannot be read or written.

use super::{MAGIC, MAX_PARTITIONS};

/// Why there is no usable disklabel at a place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum Error {
    /// No magic number at any of the places where labels stand.
    #[error("no disklabel: the magic {MAGIC:#010x} is at none of the usual offsets")]
    NotFound,
    #[error("the label at byte {offset} needs {expected} bytes, {found} are there")]
    Short {
        /// Byte of the provider at which the label begins.
        offset: u64,
        found: usize,
        expected: usize,
    },
    /// One of the two magic numbers is wrong.
    #[error(
        "the label at byte {offset} has magic {found:#010x} at its byte {field}, \
         expected {MAGIC:#010x}"
    )]
    Magic {
        /// Byte of the provider at which the label begins.
        offset: u64,
        field: usize,
        found: u32,
    },
    #[error("the label at byte {offset} claims {found} partitions, 1 to {most} fit there")]
    PartitionCount {
        /// Byte of the provider at which the label begins.
        offset: u64,
        found: u16,
        /// The largest number possible, at most [`MAX_PARTITIONS`].
        most: usize,
    },
    /// The XOR over the label is not 0; [`super::Label::verify`] says so.
    #[error("the label at byte {offset} has checksum {found:#06x}, expected {expected:#06x}")]
    Checksum {
        /// Byte of the provider at which the label begins.
        offset: u64,
        found: u16,
        /// The value computed from the label's bytes.
        expected: u16,
    },
    #[error(
        "the label at byte {offset} counts in sectors of {found} bytes, \
         the provider's are {provider} bytes: not a multiple"
    )]
    SectorSize {
        /// Byte of the provider at which the label begins.
        offset: u64,
        found: u32,
        /// The provider's sector size in bytes.
        provider: u32,
    },
    #[error("a label of {found} partitions does not fit, the most is {most} (of {MAX_PARTITIONS})")]
    TooMany { found: usize, most: usize },
}
