//! The PC's master boot record: sector 0 with boot code, four entries and the
//! signature 55 AA.
//!
//! ```text
//! byte   0  boot code, 440 bytes
//!      440  NT disk signature (u32), 444 two more bytes (0, or "copy protected")
//!      446  four entries of 16 bytes:
//!           0 flag 0 or 0x80 | 1 first CHS (3) | 4 type | 5 last CHS (3)
//!           8 first sector u32 | 12 sectors u32
//!      510  55 AA
//! ```
//! All integers are little-endian; sector numbers count the provider's own
//! sectors, whatever their size. Sources: FreeBSD `sys/sys/disk/mbr.h`, UEFI
//! specification 2.10 section 5.2 (protective MBR), `docs/formats/mbr.md`.

mod chs;
mod types;

pub use chs::{Chs, Geometry};
pub use types::PartType;

use crate::bytes;

/// Bytes of the record at the start of the sector.
pub const SIZE_BYTES: usize = 512;
/// Number of entries in the table.
pub const ENTRIES: usize = 4;
/// Byte offset of the first entry.
pub(crate) const TABLE_OFFSET_BYTES: usize = 446;

const ENTRY_SIZE_BYTES: usize = 16;
const SIGNATURE_OFFSET_BYTES: usize = 510;
const SIGNATURE: u16 = 0xaa55;
const DISK_ID_OFFSET_BYTES: usize = 440;

/// Why a sector is not an MBR, or a request cannot be put into one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum Error {
    #[error("the sector is {found} bytes long, a boot record needs {SIZE_BYTES}")]
    Short { found: usize },
    /// Bytes 510 and 511 are not 55 AA.
    #[error("no boot signature at byte 510: found {found:#06x}, expected 0xaa55")]
    Signature {
        /// The two bytes, read little-endian.
        found: u16,
    },
    /// A flag that no partitioning tool writes: the bytes are code or data.
    #[error(
        "entry {entry} at byte {offset} has the active flag {found:#04x}, \
         expected 0 or 0x80: this is a boot sector, not a partition table"
    )]
    ActiveFlag {
        /// Entry, counted from 1.
        entry: usize,
        /// Byte offset of the flag in the sector.
        offset: usize,
        found: u8,
    },
    #[error(
        "the table is empty and byte 11 begins a BIOS parameter block \
         ({sector_size_bytes} bytes a sector): a FAT boot sector, not a partition table"
    )]
    BootSector {
        /// Bytes a sector, from the parameter block.
        sector_size_bytes: u16,
    },
    #[error("the table is empty and byte 3 is \"EXFAT\": a boot sector, not a partition table")]
    ExFat,
}

/// One of the four entries, as it stands on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Entry {
    /// 0x80 for the partition that the boot code starts, else 0.
    pub flag: u8,
    /// First sector in CHS; not used to find the partition.
    pub first_chs: Chs,
    /// The type of the partition.
    pub kind: PartType,
    /// Last sector in CHS; not used to find the partition.
    pub last_chs: Chs,
    /// First sector (in an EBR relative, see [`crate::ebr`]).
    pub start: u32,
    /// Length in sectors; 0 where the entry is unused.
    pub sectors: u32,
}

impl Entry {
    /// An inactive entry with its CHS fields computed.
    pub fn new(kind: PartType, start: u32, sectors: u32, geometry: Geometry) -> Entry {
        let last = u64::from(start) + u64::from(sectors).saturating_sub(1);
        Entry {
            flag: 0,
            first_chs: Chs::from_lba(u64::from(start), geometry),
            kind,
            last_chs: Chs::from_lba(last, geometry),
            start,
            sectors,
        }
    }

    /// True when the entry describes a partition: a type and a length.
    pub fn is_used(&self) -> bool {
        self.kind != PartType::UNUSED && self.sectors != 0
    }

    /// The sector after the last one.
    pub fn end(&self) -> u64 {
        u64::from(self.start) + u64::from(self.sectors)
    }

    /// True when the flag says that the boot code starts this partition.
    pub fn is_active(&self) -> bool {
        self.flag == 0x80
    }

    pub(crate) fn decode(sector: &[u8], index: usize) -> Entry {
        let at = TABLE_OFFSET_BYTES + index * ENTRY_SIZE_BYTES;
        Entry {
            flag: bytes::byte(sector, at),
            first_chs: Chs::decode(bytes::take(sector, at + 1)),
            kind: PartType(bytes::byte(sector, at + 4)),
            last_chs: Chs::decode(bytes::take(sector, at + 5)),
            start: bytes::u32_le(sector, at + 8),
            sectors: bytes::u32_le(sector, at + 12),
        }
    }

    pub(crate) fn encode(&self, sector: &mut [u8], index: usize) {
        let at = TABLE_OFFSET_BYTES + index * ENTRY_SIZE_BYTES;
        bytes::put(sector, at, &[self.flag]);
        bytes::put(sector, at + 1, &self.first_chs.encode());
        bytes::put(sector, at + 4, &[self.kind.0]);
        bytes::put(sector, at + 5, &self.last_chs.encode());
        bytes::put_u32_le(sector, at + 8, self.start);
        bytes::put_u32_le(sector, at + 12, self.sectors);
    }
}

/// Checks length, signature and the active flags: what an MBR and an EBR have
/// in common.
pub(crate) fn decode_entries(sector: &[u8]) -> Result<[Entry; ENTRIES], Error> {
    if sector.len() < SIZE_BYTES {
        return Err(Error::Short {
            found: sector.len(),
        });
    }
    let found = bytes::u16_le(sector, SIGNATURE_OFFSET_BYTES);
    if found != SIGNATURE {
        return Err(Error::Signature { found });
    }
    let entries: [Entry; ENTRIES] = std::array::from_fn(|index| Entry::decode(sector, index));
    for (index, entry) in entries.iter().enumerate() {
        if entry.flag & 0x7f != 0 {
            return Err(Error::ActiveFlag {
                entry: index + 1,
                offset: TABLE_OFFSET_BYTES + index * ENTRY_SIZE_BYTES,
                found: entry.flag,
            });
        }
    }
    Ok(entries)
}

pub(crate) fn encode_signature(sector: &mut [u8]) {
    bytes::put_u16_le(sector, SIGNATURE_OFFSET_BYTES, SIGNATURE);
}

/// The purpose of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MbrKind {
    /// No entry is used.
    Empty,
    /// Entries other than 0xEE alone: slices.
    Partitioned,
    /// Only entries of type 0xEE: the disk belongs to its GPT.
    Protective,
    /// A 0xEE entry beside others, which repeat partitions of the GPT.
    Hybrid,
    /// FreeBSD's boot1 on a disk without slices carries a made-up table of one
    /// entry (type 0xA5, first sector 0, 50,000 sectors): it means nothing,
    /// the disk is divided by the disklabel in its sector 1.
    Dedicated,
}

/// A decoded master boot record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mbr {
    /// Bytes 0 to 439, kept as they are.
    pub boot_code: [u8; 440],
    /// NT disk signature, bytes 440 to 443; 0 when there is none.
    pub disk_id: u32,
    /// Bytes 444 and 445: 0, or 0x5A5A for "copy protected".
    pub reserved: u16,
    /// The four entries, used or not.
    pub entries: [Entry; ENTRIES],
}

impl Mbr {
    /// A table without boot code and without partitions.
    pub fn empty(disk_id: u32) -> Mbr {
        Mbr {
            boot_code: [0; 440],
            disk_id,
            reserved: 0,
            entries: Default::default(),
        }
    }

    /// The protective record of a GPT disk of `media_sectors` sectors: one
    /// entry of type 0xEE from sector 1 to the end, or to the largest length
    /// that fits (UEFI 2.10, table 5.4). Boot code is kept by the caller's
    /// copying `boot_code` over.
    pub fn protective(media_sectors: u64) -> Mbr {
        let sectors = u32::try_from(media_sectors.saturating_sub(1)).unwrap_or(u32::MAX);
        let mut entry = Entry::new(PartType::PROTECTIVE, 1, sectors, Geometry::LBA_ASSIST);
        entry.first_chs = Chs::decode([0x00, 0x02, 0x00]);
        if entry.last_chs == Chs::TOO_LARGE {
            entry.last_chs = Chs::decode([0xff, 0xff, 0xff]);
        }
        let mut mbr = Mbr::empty(0);
        mbr.entries[0] = entry;
        mbr
    }

    /// Decodes sector 0, given whole (any sector size of 512 bytes or more).
    ///
    /// # Errors
    /// The checks of FreeBSD's `g_part_mbr_probe`, in its order: the
    /// signature, the active flag of each entry, and an empty table over a FAT
    /// parameter block; then exFAT's name, which it does not know. Overlaps and
    /// lengths past the end are not errors here: such tables exist and have to be listed.
    pub fn decode(sector: &[u8]) -> Result<Mbr, Error> {
        let entries = decode_entries(sector)?;
        let table = &sector[TABLE_OFFSET_BYTES..SIGNATURE_OFFSET_BYTES];
        if table.iter().all(|&b| b == 0) {
            if let Some(sector_size_bytes) = bios_parameter_block(sector) {
                return Err(Error::BootSector { sector_size_bytes });
            }
            if sector[3..].starts_with(b"EXFAT   ") {
                return Err(Error::ExFat);
            }
        }
        Ok(Mbr {
            boot_code: bytes::take(sector, 0),
            disk_id: bytes::u32_le(sector, DISK_ID_OFFSET_BYTES),
            reserved: bytes::u16_le(sector, DISK_ID_OFFSET_BYTES + 4),
            entries,
        })
    }

    /// The 512 bytes of the record; on larger sectors what follows them is the
    /// caller's to keep.
    pub fn encode(&self) -> [u8; SIZE_BYTES] {
        let mut sector = [0; SIZE_BYTES];
        bytes::put(&mut sector, 0, &self.boot_code);
        bytes::put_u32_le(&mut sector, DISK_ID_OFFSET_BYTES, self.disk_id);
        bytes::put_u16_le(&mut sector, DISK_ID_OFFSET_BYTES + 4, self.reserved);
        for (index, entry) in self.entries.iter().enumerate() {
            entry.encode(&mut sector, index);
        }
        encode_signature(&mut sector);
        sector
    }

    /// The purpose of this table.
    pub fn kind(&self) -> MbrKind {
        let used = || self.entries.iter().filter(|entry| entry.is_used());
        let protective = used()
            .filter(|entry| entry.kind == PartType::PROTECTIVE)
            .count();
        match used().count() {
            0 => MbrKind::Empty,
            _ if self.is_made_up() => MbrKind::Dedicated,
            all if all == protective => MbrKind::Protective,
            _ if protective > 0 => MbrKind::Hybrid,
            _ => MbrKind::Partitioned,
        }
    }

    /// The entries that are partitions, with their number from 1.
    ///
    /// As in GEOM: unused entries, entries without length and those of type
    /// 0xEE are left out, and so is all of a made-up table; extended
    /// partitions are listed like any other. So is an entry that starts at
    /// sector 0 and contains the table itself: `g_mbr_taste` and Linux list it,
    /// images that boot from CD and disk have it (gpart leaves it out).
    pub fn slices(&self) -> impl Iterator<Item = (usize, &Entry)> {
        let listed = !self.is_made_up();
        self.entries
            .iter()
            .enumerate()
            .filter_map(move |(index, entry)| {
                let slice = entry.is_used() && entry.kind != PartType::PROTECTIVE;
                (listed && slice).then_some((index + 1, entry))
            })
    }

    /// boot1's table; its last head is 255 in old versions, 254 in later ones.
    fn is_made_up(&self) -> bool {
        let [first, second, third, last] = &self.entries;
        let unused = Entry::default();
        [first, second, third].iter().all(|entry| **entry == unused)
            && last.flag == 0x80
            && last.kind == PartType::FREEBSD
            && last.first_chs.encode() == [0, 1, 0]
            && matches!(last.last_chs.encode(), [254 | 255, 255, 255])
            && last.start == 0
            && last.sectors == 50_000
    }
}

/// Bytes a sector of a FAT parameter block, if bytes 11 to 13 look like one:
/// sector and cluster sizes are powers of two in their ranges.
pub fn bios_parameter_block(sector: &[u8]) -> Option<u16> {
    let sector_size_bytes = bytes::u16_le(sector, 11);
    let cluster_sectors = bytes::byte(sector, 13);
    let plausible = sector_size_bytes.is_power_of_two()
        && (512..=4096).contains(&sector_size_bytes)
        && cluster_sectors.is_power_of_two();
    plausible.then_some(sector_size_bytes)
}

#[cfg(test)]
pub(crate) mod tests;
