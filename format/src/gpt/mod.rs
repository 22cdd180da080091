//! The GUID partition table: a protective MBR, a header and a table at the
//! beginning of the disk, and copies of both at its end.
//!
//! ```text
//! sector 0      protective MBR (crate::mbr)
//!        1      primary header           92 bytes, CRC at 16
//!        2 ..   primary table            128 entries of 128 bytes, usually
//!        first_usable .. last_usable     partitions
//!        .. n-2 backup table
//!        n-1    backup header
//! ```
//! Integers are little-endian, sectors are the provider's own. Source: UEFI
//! specification 2.10, section 5.3; `docs/formats/gpt.md`. How two copies are
//! weighed against each other follows FreeBSD `sys/geom/part/g_part_gpt.c`.

mod copies;
mod entries;
mod entry;
mod error;
mod guid;
mod header;
mod layout;
pub mod protective;
pub mod types;

pub use copies::{Damage, Finding, Gpt, Side, other_sector_size};
pub use entries::Entries;
pub(crate) use entry::attribute_names;
pub use entry::{
    ATTR_BOOTFAILED, ATTR_BOOTME, ATTR_BOOTONCE, ATTR_REQUIRED, ENTRY_SIZE_BYTES, Entry, NAME_UNITS,
};
pub use error::Error;
pub use guid::{Guid, GuidError};
use header::Crc;
pub(crate) use header::SIGNATURE;
pub use header::{HEADER_SIZE_BYTES, Header, REVISION};
pub use layout::LayoutError;
pub use protective::MbrDamage;

/// Most entries of a table that is made here. A header may count any number.
pub const MAX_ENTRIES: u32 = 4096;
/// Most entries that may hold something: it bounds memory and the number of providers.
pub const MAX_KEPT_ENTRIES: usize = 16_384;
/// Largest table that is read, 524,288 usual entries: it bounds memory and time against a lying
/// header.
pub const MAX_TABLE_SIZE_BYTES: u64 = 64 << 20;
/// Entries in a table made here and by other programs.
pub(crate) const DEFAULT_ENTRIES: u32 = 128;
/// Smallest space that UEFI wants reserved for a table.
pub(crate) const MIN_RESERVED_BYTES: u64 = 16_384;

/// One copy: a header with its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The header that the table was read by.
    pub header: Header,
    /// All entries, used or not; as many as the header counts.
    pub entries: Entries,
}

impl Table {
    /// Decodes the table of `header` from `data`, the bytes of its sectors.
    ///
    /// # Errors
    /// [`Error::Short`] when there are fewer bytes than the header counts,
    /// [`Error::TableCrc`] when their checksum is not the header's, [`Error::TooManyUsed`].
    pub fn decode(header: Header, data: &[u8]) -> Result<Table, Error> {
        Table::decode_with(header, data, Crc::Checked)
    }

    /// The same, also for a table whose CRC is not that of its bytes.
    fn decode_with(header: Header, data: &[u8], crc: Crc) -> Result<Table, Error> {
        let size = header.table_size_bytes() as usize;
        let Some(data) = data.get(..size) else {
            let lba = header.table_lba;
            return Err(Error::Short {
                lba,
                found: data.len(),
                expected: size,
            });
        };
        let (found, expected) = (header.table_crc, crc32fast::hash(data));
        if found != expected && crc == Crc::Checked {
            let (lba, table_lba) = (header.my_lba, header.table_lba);
            return Err(Error::TableCrc {
                lba,
                table_lba,
                found,
                expected,
            });
        }
        let stride = header.entry_size_bytes.max(1) as usize;
        let held = |entry: &&[u8]| entry.iter().any(|&byte| byte != 0);
        if data
            .chunks_exact(stride)
            .filter(held)
            .nth(MAX_KEPT_ENTRIES)
            .is_some()
        {
            return Err(Error::TooManyUsed { lba: header.my_lba });
        }
        let entries = data.chunks_exact(stride).map(Entry::decode).collect();
        Ok(Table { header, entries })
    }

    /// The table's bytes, padded to whole sectors, with the header's CRC and
    /// count brought up to date.
    pub fn encode_entries(&mut self, sector_size_bytes: u32) -> Vec<u8> {
        let stride = self.header.entry_size_bytes.max(ENTRY_SIZE_BYTES as u32) as usize;
        let size = stride * self.entries.len();
        let sector = sector_size_bytes.max(1) as usize;
        let mut data = vec![0; size.next_multiple_of(sector)];
        for (index, entry) in self.entries.kept() {
            entry.encode(&mut data[index * stride..][..stride]);
        }
        self.header.entry_size_bytes = stride as u32;
        self.header.entry_count = self.entries.len() as u32;
        self.header.table_crc = crc32fast::hash(&data[..size]);
        data
    }

    /// The used entries with their number from 1.
    pub fn partitions(&self) -> impl Iterator<Item = (usize, &Entry)> {
        let used = self.entries.kept().filter(|(_, entry)| entry.is_used());
        used.map(|(index, entry)| (index + 1, entry))
    }
}

#[cfg(test)]
mod tests;
