//! The GPT header: one sector, twice on the disk (UEFI 2.10, table 5.5).

use super::error::Error;
use super::guid::Guid;
use super::{ENTRY_SIZE_BYTES, MAX_TABLE_SIZE_BYTES};
use crate::bytes;

/// Revision 1.0, the only one.
pub const REVISION: u32 = 0x0001_0000;
/// Bytes of a header of revision 1.0.
pub const HEADER_SIZE_BYTES: usize = 92;

pub(crate) const SIGNATURE: [u8; 8] = *b"EFI PART";
const CRC_OFFSET_BYTES: usize = 16;

/// A decoded header; signature, size and its own CRC are checked on the way in
/// and computed on the way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Revision of the header, 0x00010000 for 1.0.
    pub revision: u32,
    /// Sector that holds this header.
    pub my_lba: u64,
    /// Sector that holds the other one.
    pub alternate_lba: u64,
    /// First sector that a partition may use.
    pub first_usable: u64,
    /// Last sector that a partition may use.
    pub last_usable: u64,
    /// GUID of the disk (`DiskGUID`).
    pub disk_guid: Guid,
    /// First sector of this header's table.
    pub table_lba: u64,
    /// Number of entries in the table, used or not.
    pub entry_count: u32,
    /// Bytes of an entry; UEFI wants 128 times a power of two.
    pub entry_size_bytes: u32,
    /// CRC of the table's bytes.
    pub table_crc: u32,
    /// The bytes after 92 of a longer header; its CRC covers them.
    pub extra: Vec<u8>,
}

/// The treatment of a wrong CRC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Crc {
    Checked,
    /// It does not count: the fields are taken as they are, if they are possible.
    Ignored,
}

impl Header {
    /// Decodes the header in `sector`, which was read whole from `lba`.
    ///
    /// Nothing is compared with the size of the media: the header of a
    /// truncated image is a good header (see [`super::Gpt::findings`]).
    ///
    /// # Errors
    /// In the order of UEFI 2.10 section 5.3.2 (signature, CRC, own sector),
    /// with the size before the CRC that depends on it, and then what a CRC
    /// cannot promise: revision, entry size and count, the usable range and
    /// the place of the table.
    pub fn decode(sector: &[u8], lba: u64) -> Result<Header, Error> {
        Header::decode_with(sector, lba, Crc::Checked)
    }

    /// The same, also for a header whose CRC is not that of its bytes.
    pub(super) fn decode_with(sector: &[u8], lba: u64, crc: Crc) -> Result<Header, Error> {
        if sector.len() < 512 {
            return Err(Error::Short {
                lba,
                found: sector.len(),
                expected: 512,
            });
        }
        let found = bytes::take(sector, 0);
        if found != SIGNATURE {
            return Err(Error::Signature { lba, found });
        }
        let size = bytes::u32_le(sector, 12);
        let covered = usize::try_from(size)
            .ok()
            .filter(|&size| size >= HEADER_SIZE_BYTES);
        let Some(covered) = covered.and_then(|size| sector.get(..size)) else {
            return Err(Error::HeaderSize {
                lba,
                found: size,
                most: sector.len(),
            });
        };
        let (found, expected) = (bytes::u32_le(sector, CRC_OFFSET_BYTES), header_crc(covered));
        if found != expected && crc == Crc::Checked {
            return Err(Error::HeaderCrc {
                lba,
                found,
                expected,
            });
        }
        let header = Header {
            revision: bytes::u32_le(sector, 8),
            my_lba: bytes::u64_le(sector, 24),
            alternate_lba: bytes::u64_le(sector, 32),
            first_usable: bytes::u64_le(sector, 40),
            last_usable: bytes::u64_le(sector, 48),
            disk_guid: Guid(bytes::take(sector, 56)),
            table_lba: bytes::u64_le(sector, 72),
            entry_count: bytes::u32_le(sector, 80),
            entry_size_bytes: bytes::u32_le(sector, 84),
            table_crc: bytes::u32_le(sector, 88),
            extra: covered[HEADER_SIZE_BYTES..].to_vec(),
        };
        header.check(lba, sector.len() as u64)?;
        Ok(header)
    }

    fn check(&self, lba: u64, sector_size_bytes: u64) -> Result<(), Error> {
        if self.revision < REVISION {
            return Err(Error::Revision {
                lba,
                found: self.revision,
            });
        }
        if self.my_lba != lba {
            return Err(Error::MyLba {
                lba,
                found: self.my_lba,
            });
        }
        if self.alternate_lba == lba {
            return Err(Error::Alternate {
                lba,
                found: self.alternate_lba,
            });
        }
        let entry_size = self.entry_size_bytes;
        if !entry_size.is_multiple_of(8) || entry_size < ENTRY_SIZE_BYTES as u32 {
            return Err(Error::EntrySize {
                lba,
                found: entry_size,
            });
        }
        if self.entry_count == 0 {
            return Err(Error::EntryCount { lba });
        }
        let table_size = self.table_size_bytes();
        if table_size > MAX_TABLE_SIZE_BYTES {
            return Err(Error::TableSize {
                lba,
                found: table_size,
            });
        }
        let (first, last) = (self.first_usable, self.last_usable);
        if first < 2 || first > last {
            return Err(Error::UsableRange { lba, first, last });
        }
        self.check_place(lba, table_size.div_ceil(sector_size_bytes))
    }

    fn check_place(&self, lba: u64, sectors: u64) -> Result<(), Error> {
        let first = self.table_lba;
        let last = first.saturating_add(sectors - 1);
        let holds = |sector: u64| (first..=last).contains(&sector);
        let over = if first < 2 {
            "the MBR or the primary header"
        } else if holds(lba) || holds(self.alternate_lba) {
            "a header"
        } else if first <= self.last_usable && last >= self.first_usable {
            "the usable range"
        } else {
            return Ok(());
        };
        Err(Error::TablePlace {
            lba,
            first,
            last,
            over,
        })
    }

    /// Bytes of the table.
    pub fn table_size_bytes(&self) -> u64 {
        u64::from(self.entry_count) * u64::from(self.entry_size_bytes)
    }

    /// Sectors that the table takes.
    pub fn table_sectors(&self, sector_size_bytes: u32) -> u64 {
        self.table_size_bytes()
            .div_ceil(u64::from(sector_size_bytes.max(1)))
    }

    /// The header's sector, CRC included, zeros behind it.
    ///
    /// `table_crc` is written as it stands in the struct. The part of `extra` that does not fit in
    /// the sector is left out.
    pub fn encode(&self, sector_size_bytes: u32) -> Vec<u8> {
        let mut sector = vec![0; sector_size_bytes.max(512) as usize];
        let size = (HEADER_SIZE_BYTES + self.extra.len()).min(sector.len());
        bytes::put(&mut sector, 0, &SIGNATURE);
        bytes::put_u32_le(&mut sector, 8, self.revision);
        bytes::put_u32_le(&mut sector, 12, size as u32);
        bytes::put_u64_le(&mut sector, 24, self.my_lba);
        bytes::put_u64_le(&mut sector, 32, self.alternate_lba);
        bytes::put_u64_le(&mut sector, 40, self.first_usable);
        bytes::put_u64_le(&mut sector, 48, self.last_usable);
        bytes::put(&mut sector, 56, &self.disk_guid.0);
        bytes::put_u64_le(&mut sector, 72, self.table_lba);
        bytes::put_u32_le(&mut sector, 80, self.entry_count);
        bytes::put_u32_le(&mut sector, 84, self.entry_size_bytes);
        bytes::put_u32_le(&mut sector, 88, self.table_crc);
        bytes::put(
            &mut sector,
            HEADER_SIZE_BYTES,
            &self.extra[..size - HEADER_SIZE_BYTES],
        );
        let crc = header_crc(&sector[..size]);
        bytes::put_u32_le(&mut sector, CRC_OFFSET_BYTES, crc);
        sector
    }
}

/// CRC of a header's bytes with its own CRC field taken as 0.
fn header_crc(covered: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(covered.get(..CRC_OFFSET_BYTES).unwrap_or(&[]));
    crc.update(&[0; 4]);
    crc.update(covered.get(CRC_OFFSET_BYTES + 4..).unwrap_or(&[]));
    crc.finalize()
}
