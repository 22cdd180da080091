//! Why one of the two copies of a GPT cannot be used.

use crate::text::begins;

use super::{MAX_KEPT_ENTRIES, MAX_TABLE_SIZE_BYTES};

/// The defects of a header or its table. `lba` is the sector that holds the header, `offset` the
/// byte in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum Error {
    #[error("sectors {lba} to {last} cannot be read: {reason}")]
    Read {
        /// First sector of the request.
        lba: u64,
        /// Last sector of the request.
        last: u64,
        /// The reader's own words.
        reason: String,
    },
    /// Fewer bytes than a header or table has: the media ends early.
    #[error("{}", short(*.lba, *.found, *.expected))]
    Short {
        /// First sector of the header or table.
        lba: u64,
        found: usize,
        expected: usize,
    },
    #[error("sector {lba}: no GPT header: {}", begins(found, b"EFI PART"))]
    Signature {
        /// Sector that was read.
        lba: u64,
        /// Its first eight bytes.
        found: [u8; 8],
    },
    #[error("sector {lba}: header size {found} at byte 12, expected 92 to {most}")]
    HeaderSize {
        /// Sector of the header.
        lba: u64,
        /// The size it claims in bytes.
        found: u32,
        most: usize,
    },
    /// The header's own checksum is wrong.
    #[error("sector {lba}: header CRC {found:#010x} at byte 16, its bytes give {expected:#010x}")]
    HeaderCrc {
        /// Sector of the header.
        lba: u64,
        /// The CRC it holds.
        found: u32,
        /// The CRC of its bytes.
        expected: u32,
    },
    #[error("sector {lba}: header revision {found:#010x} at byte 8, expected 0x00010000 or later")]
    Revision {
        /// Sector of the header.
        lba: u64,
        /// The revision it claims.
        found: u32,
    },
    /// The header says that it stands elsewhere: a copy of another disk.
    #[error("sector {lba}: the header is for sector {found} (byte 24)")]
    MyLba {
        /// Sector of the header.
        lba: u64,
        /// Where it says that it is.
        found: u64,
    },
    #[error("sector {lba}: entry size {found} at byte 84, expected a multiple of 8 from 128 on")]
    EntrySize {
        /// Sector of the header.
        lba: u64,
        /// The size it claims in bytes.
        found: u32,
    },
    /// The header states a table without entries.
    #[error("sector {lba}: 0 entries at byte 80, expected 1 or more")]
    EntryCount {
        /// Sector of the header.
        lba: u64,
    },
    #[error("sector {lba}: more than {MAX_KEPT_ENTRIES} entries of the table are not empty")]
    TooManyUsed {
        /// Sector of the header.
        lba: u64,
    },
    #[error("sector {lba}: a table of {found} bytes, at most {MAX_TABLE_SIZE_BYTES} are read")]
    TableSize {
        /// Sector of the header.
        lba: u64,
        /// Number of entries times their size.
        found: u64,
    },
    #[error("sector {lba}: the usable range at byte 40 is {first} to {last}")]
    UsableRange {
        /// Sector of the header.
        lba: u64,
        first: u64,
        last: u64,
    },
    #[error("sector {lba}: the table at sectors {first} to {last} lies over {over}")]
    TablePlace {
        /// Sector of the header.
        lba: u64,
        /// First sector of the table.
        first: u64,
        /// Last sector of the table.
        last: u64,
        /// The structure that it overlaps.
        over: &'static str,
    },
    #[error("sector {lba}: the alternate header at byte 32 is sector {found}, the header itself")]
    Alternate {
        /// Sector of the header.
        lba: u64,
        /// The sector it names.
        found: u64,
    },
    #[error(
        "sector {lba}: table CRC {found:#010x} at byte 88, \
         the table at sector {table_lba} gives {expected:#010x}"
    )]
    TableCrc {
        /// Sector of the header.
        lba: u64,
        /// First sector of the table.
        table_lba: u64,
        /// The CRC in the header.
        found: u32,
        /// The CRC of the table's bytes.
        expected: u32,
    },
}

fn short(lba: u64, found: usize, expected: usize) -> String {
    match found {
        0 => format!("sector {lba} lies past the end of the disk"),
        _ => format!("sector {lba}: {found} bytes are there, {expected} are needed"),
    }
}
