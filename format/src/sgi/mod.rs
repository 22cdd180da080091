//! The volume header of SGI's disks: sixteen partitions in sector 0. parted calls it `dvh`.
//!
//! ```text
//! byte   0  0B E5 A9 41              72  fifteen files: name 8 bytes, first block u32, bytes u32
//!        4  root partition u16      312  sixteen partitions: blocks u32, first block u32, type u32
//!        6  swap partition u16      504  checksum: the sum of all 32-bit words is 0
//!        8  boot file, 16 bytes
//! ```
//! Integers are big-endian, blocks have 512 bytes. By convention partition 9 is the volume header
//! and 11 the whole disk. Sources: Linux `block/partitions/sgi.c`, IRIX `sys/dvh.h`, libparted
//! `labels/dvh.h`; `docs/formats/sgi.md`.

use crate::bytes;

/// Bytes of the header, and of the blocks that it counts in.
pub const SIZE_BYTES: usize = 512;
/// Entries of the partition table, used or not.
pub const ENTRIES: usize = 16;

const MAGIC: u32 = 0x0be5_a941;
const PARTITIONS_OFFSET_BYTES: usize = 312;

/// Why a sector is no volume header.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum Error {
    #[error("the sector is {found} bytes long, a volume header needs {SIZE_BYTES}")]
    Short { found: usize },
    /// Bytes 0 to 3 are not 0BE5A941.
    #[error("no volume header: found {found:#010x} at byte 0, expected {MAGIC:#010x}")]
    Magic { found: u32 },
    /// The sum over all words is not 0.
    #[error("the volume header's 32-bit words add up to {found:#010x}, expected 0")]
    Checksum { found: u32 },
}

/// The type of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SgiType(pub u32);

impl SgiType {
    /// Type of the entry for the whole disk.
    pub const VOLUME: SgiType = SgiType(6);

    /// The name that fdisk prints, if it has one.
    pub fn description(self) -> Option<&'static str> {
        let known = KINDS.iter().find(|known| known.0 == self.0)?;
        Some(known.1)
    }
}

const KINDS: &[(u32, &str)] = &[
    (0, "SGI volhdr"),
    (1, "SGI trkrepl"),
    (2, "SGI secrepl"),
    (3, "SGI raw"),
    (4, "SGI bsd"),
    (5, "SGI sysv"),
    (6, "SGI volume"),
    (7, "SGI efs"),
    (8, "SGI lvol"),
    (9, "SGI rlvol"),
    (10, "SGI xfs"),
    (11, "SGI xfslog"),
    (12, "SGI xlv"),
    (13, "SGI xvm"),
    (0x82, "Linux swap"),
    (0x83, "Linux native"),
    (0x8e, "Linux LVM"),
    (0xfd, "Linux RAID"),
];

/// An entry of the volume header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Partition {
    /// Length in blocks; 0 when unused.
    pub blocks: u32,
    /// First block of the partition, 512 bytes each.
    pub start: u32,
    /// Type of the partition, as 10 for XFS.
    pub kind: SgiType,
}

/// The volume header of sector 0, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Number of the partition that the machine boots from, from 0.
    pub root: u16,
    /// Number of the partition that it swaps to, from 0.
    pub swap: u16,
    /// The file that it boots.
    pub boot_file: String,
    /// The partitions, used or not.
    pub partitions: [Partition; ENTRIES],
}

impl Header {
    /// Decodes the volume header in sector 0.
    ///
    /// # Errors
    /// In the order of the checks of Linux: length, magic, checksum.
    pub fn decode(sector: &[u8]) -> Result<Header, Error> {
        let found = sector.len();
        let Some(sector) = sector.get(..SIZE_BYTES) else {
            return Err(Error::Short { found });
        };
        let found = bytes::u32_be(sector, 0);
        if found != MAGIC {
            return Err(Error::Magic { found });
        }
        let words = sector.chunks_exact(4).map(|word| bytes::u32_be(word, 0));
        let found = words.fold(0, u32::wrapping_add);
        if found != 0 {
            return Err(Error::Checksum { found });
        }
        let partition = |index: usize| {
            let at = PARTITIONS_OFFSET_BYTES + 12 * index;
            Partition {
                blocks: bytes::u32_be(sector, at),
                start: bytes::u32_be(sector, at + 4),
                kind: SgiType(bytes::u32_be(sector, at + 8)),
            }
        };
        Ok(Header {
            root: bytes::u16_be(sector, 4),
            swap: bytes::u16_be(sector, 6),
            boot_file: bytes::c_string(&sector[8..24]),
            partitions: std::array::from_fn(partition),
        })
    }

    /// The used partitions with their number from 1, as in Linux.
    pub fn slices(&self) -> impl Iterator<Item = (usize, &Partition)> {
        let used = self.partitions.iter().enumerate();
        let used = used.filter(|(_, partition)| partition.blocks != 0);
        used.map(|(index, partition)| (index + 1, partition))
    }
}

#[cfg(test)]
mod tests;
