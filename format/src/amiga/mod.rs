//! The Amiga's rigid disk block and its chain of partition blocks.
//!
//! ```text
//! RDSK, in one of the first 16 sectors       PART
//! byte  4  words in the checksum u32         byte  4  words in the checksum u32
//!       8  checksum: the words add up to 0         8  checksum
//!      16  bytes a block u32                      16  next partition block u32, FFFFFFFF ends
//!      28  first partition block u32              20  flags: 1 bootable, 2 not mounted by itself
//!                                                 36  name: length, then text
//!                                                128  environment, 32-bit words:
//!                                                     3 surfaces | 5 blocks a track
//!                                                     9 first cylinder | 10 last | 16 DosType
//! ```
//! Integers are big-endian. Sources: Linux `block/partitions/amiga.c`, `affs_hardblocks.h`,
//! Commodore's *ROM Kernel Reference Manual: Devices*; `docs/formats/amiga.md`.

use crate::bytes;
use crate::media::{Media, SectorRead, Unreadable};
use crate::text::begins;
use std::collections::BTreeSet;
use std::fmt;

/// Bytes of the sectors that are searched for a rigid disk block.
pub const SECTOR_BYTES: u32 = 512;
/// Sectors in which a rigid disk block may stand.
pub const SEARCHED_SECTORS: u64 = 16;
/// Most partition blocks that are followed.
pub const MAX_PARTITIONS: usize = 128;

const END_OF_CHAIN: u32 = u32::MAX;

/// Why there is no rigid disk block, or why the chain breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum Error {
    #[error("none of the first {SEARCHED_SECTORS} sectors begins with \"RDSK\"")]
    NotFound,
    /// A sector could not be read.
    #[error(transparent)]
    Read(#[from] Unreadable),
    /// A block of another kind.
    #[error("sector {sector}: {}", begins(found, expected.as_bytes()))]
    Magic {
        sector: u64,
        found: [u8; 4],
        expected: &'static str,
    },
    #[error("sector {sector}: {words} words add up to {found:#010x}, expected 0")]
    Checksum {
        sector: u64,
        /// Number of words, at byte 4.
        words: u32,
        found: u32,
    },
    #[error("sector {sector}: {found} bytes a block at byte 16, expected a multiple of 512")]
    BlockSize { sector: u64, found: u32 },
    #[error("the chain of partition blocks loops at block {block}")]
    Loop { block: u32 },
    #[error("no more than {MAX_PARTITIONS} partition blocks are followed")]
    TooMany,
}

/// The file system of a partition, as AmigaDOS names it: three letters and a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DosType(pub u32);

/// `DOS\3`; bytes that are no letters in hexadecimal.
impl fmt::Display for DosType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, number] = self.0.to_be_bytes();
        let text = [a, b, c].iter().all(u8::is_ascii_graphic);
        match (text, number) {
            (false, _) => f.pad(&format!("{:#010x}", self.0)),
            (true, 0..=31) => f.pad(&format!("{}\\{number}", letters(&[a, b, c]))),
            (true, _) if number.is_ascii_graphic() => f.pad(&letters(&[a, b, c, number])),
            (true, _) => f.pad(&format!("{:#010x}", self.0)),
        }
    }
}

fn letters(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// One PART block: a range of cylinders, in sectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Sector of its block.
    pub sector: u64,
    /// The drive's name, `DH0`.
    pub name: String,
    /// Whether the machine may boot from it.
    pub is_bootable: bool,
    /// First sector of the partition on the disk.
    pub start: u64,
    /// Length in sectors; 0 where the last cylinder lies before the first.
    pub sectors: u64,
    /// Its file system, `de_DosType` of the environment.
    pub dos_type: DosType,
}

/// A rigid disk block with its partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Sector of the rigid disk block.
    pub sector: u64,
    /// Bytes of a block, at byte 16 of the RDSK block.
    pub block_bytes: u32,
    /// The partitions in the order of their chain.
    pub partitions: Vec<Partition>,
    /// Why the chain ended before its end.
    pub broken: Option<Error>,
}

impl Table {
    /// Looks for a rigid disk block and follows its chain.
    ///
    /// # Errors
    /// There is none, or it is damaged. A chain that breaks is none: the partitions found so far
    /// count.
    pub fn read(media: Media, read: &mut SectorRead<'_>) -> Result<Table, Error> {
        let mut get = |sector: u64| {
            let inside = sector < media.sectors;
            let data = match inside {
                true => read(sector, 1),
                false => Err(format!("the media has {} sectors", media.sectors)),
            };
            Ok(data.map_err(|reason| Unreadable { sector, reason })?)
        };
        let searched = SEARCHED_SECTORS.min(media.sectors);
        let found = (0..searched).find_map(|sector| {
            let data = get(sector).ok()?;
            data.starts_with(b"RDSK").then_some((sector, data))
        });
        let (sector, root) = found.ok_or(Error::NotFound)?;
        check(&root, sector, "RDSK")?;
        let block_bytes = bytes::u32_be(&root, 16);
        if block_bytes == 0 || !block_bytes.is_multiple_of(SECTOR_BYTES) {
            let found = block_bytes;
            return Err(Error::BlockSize { sector, found });
        }
        let mut table = Table {
            sector,
            block_bytes,
            partitions: Vec::new(),
            broken: None,
        };
        table.broken = table.follow(bytes::u32_be(&root, 28), &mut get).err();
        Ok(table)
    }

    fn follow(
        &mut self,
        first: u32,
        get: &mut dyn FnMut(u64) -> Result<Vec<u8>, Error>,
    ) -> Result<(), Error> {
        let factor = u64::from(self.block_bytes / SECTOR_BYTES);
        let (mut block, mut seen) = (first, BTreeSet::new());
        while block != END_OF_CHAIN {
            if !seen.insert(block) {
                return Err(Error::Loop { block });
            }
            if self.partitions.len() == MAX_PARTITIONS {
                return Err(Error::TooMany);
            }
            let sector = u64::from(block) * factor;
            let data = get(sector)?;
            check(&data, sector, "PART")?;
            self.partitions.push(partition(&data, sector, factor));
            block = bytes::u32_be(&data, 16);
        }
        Ok(())
    }
}

fn partition(data: &[u8], sector: u64, factor: u64) -> Partition {
    let word = |number: usize| u64::from(bytes::u32_be(data, 128 + 4 * number));
    let cylinder = word(3).saturating_mul(word(5)).saturating_mul(factor);
    let (first, last) = (word(9), word(10));
    let count = (last + 1).saturating_sub(first);
    let length = usize::from(bytes::byte(data, 36)).min(31);
    let name = data.get(37..37 + length).unwrap_or_default();
    Partition {
        sector,
        name: bytes::c_string(name),
        is_bootable: bytes::u32_be(data, 20) & 1 != 0,
        start: first.saturating_mul(cylinder),
        sectors: count.saturating_mul(cylinder),
        dos_type: DosType(bytes::u32_be(data, 128 + 64)),
    }
}

/// The magic of a block and the sum over its words.
fn check(data: &[u8], sector: u64, expected: &'static str) -> Result<(), Error> {
    let found = bytes::take(data, 0);
    if found != expected.as_bytes() {
        return Err(Error::Magic {
            sector,
            found,
            expected,
        });
    }
    let words = bytes::u32_be(data, 4);
    let covered = (words as usize).saturating_mul(4);
    let sum = data.get(..covered).map(|covered| {
        let words = covered.chunks_exact(4).map(|word| bytes::u32_be(word, 0));
        words.fold(0, u32::wrapping_add)
    });
    match sum {
        Some(0) if words > 0 => Ok(()),
        sum => Err(Error::Checksum {
            sector,
            words,
            found: sum.unwrap_or(0),
        }),
    }
}

#[cfg(test)]
mod tests;
