//! The Apple partition map: a driver descriptor in block 0 and one block for
//! each partition from block 1 on, big-endian.
//!
//! ```text
//! block 0   "ER" | 2 block size u16 | 4 blocks u32 | ... | 16 drivers u16
//!       n   "PM" | 4 blocks in the map u32 | 8 first block u32 | 12 blocks u32
//!           16 name, 32 bytes | 48 type, 32 bytes
//!           80 first data block | 84 data blocks | 88 status | 92 boot ...
//! ```
//! The map describes itself in one of its own entries, which need not be the
//! first. Sources: Apple, *Inside Macintosh: Devices*, chapter 3 (structures
//! Block0 and Partition); FreeBSD `sys/geom/geom_apple.c`;
//! `docs/formats/apm.md`.

use crate::bytes;
use crate::media::{Media, SectorRead};
use crate::text::begins;

/// Most entries that are read; it bounds memory against a lying map. Apple's
/// own tools make maps of 63 blocks.
pub const MAX_ENTRIES: u32 = 1024;
/// Type of the entry that describes the map itself.
pub const TYPE_MAP: &str = "Apple_partition_map";
/// Type of space that belongs to no partition.
pub const TYPE_FREE: &str = "Apple_Free";
/// Type of an entry that is not used.
pub(crate) const TYPE_VOID: &str = "Apple_Void";

const ENTRY_SIZE_BYTES: usize = 512;
const DESCRIPTOR_SIGNATURE: [u8; 2] = *b"ER";
const ENTRY_SIGNATURE: [u8; 2] = *b"PM";

/// Why there is no usable partition map.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum Error {
    #[error("block {block} cannot be read: {reason}")]
    Read {
        /// Number of the block.
        block: u64,
        /// The reader's own words.
        reason: String,
    },
    #[error("block {block}: {found} bytes are there, {expected} are needed")]
    Short {
        /// Number of the block.
        block: u64,
        found: usize,
        expected: usize,
    },
    #[error("block {block}: {}", begins(found, expected))]
    Signature {
        /// Number of the block.
        block: u64,
        /// Its first two bytes.
        found: [u8; 2],
        expected: [u8; 2],
    },
    #[error("block 0: block size {found} at byte 2, the provider's sectors are {expected} bytes")]
    BlockSize {
        /// The size that the descriptor claims in bytes.
        found: u16,
        /// The provider's sector size in bytes.
        expected: u32,
    },
    #[error("block 1: a map of {found} blocks at byte 4, expected 1 to {MAX_ENTRIES}")]
    MapSize {
        /// The number it claims.
        found: u32,
    },
}

/// The driver descriptor of block 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptor {
    /// Bytes of a block (`sbBlkSize`), by which all numbers count.
    pub block_size_bytes: u16,
    /// Blocks on the device when it was formatted.
    pub blocks: u32,
    /// Number of drivers in the list that follows.
    pub drivers: u16,
}

impl Descriptor {
    /// Decodes block 0, the driver descriptor.
    ///
    /// # Errors
    /// [`Error::Short`] below 512 bytes, [`Error::Signature`] without "ER".
    pub fn decode(block: &[u8]) -> Result<Descriptor, Error> {
        signed(block, 0, DESCRIPTOR_SIGNATURE)?;
        Ok(Descriptor {
            block_size_bytes: bytes::u16_be(block, 2),
            blocks: bytes::u32_be(block, 4),
            drivers: bytes::u16_be(block, 16),
        })
    }

    /// The first 18 bytes of block 0, zeros behind them; a list of drivers is
    /// not kept.
    pub fn encode(&self) -> [u8; ENTRY_SIZE_BYTES] {
        let mut block = [0; ENTRY_SIZE_BYTES];
        bytes::put(&mut block, 0, &DESCRIPTOR_SIGNATURE);
        bytes::put_u16_be(&mut block, 2, self.block_size_bytes);
        bytes::put_u32_be(&mut block, 4, self.blocks);
        bytes::put_u16_be(&mut block, 16, self.drivers);
        block
    }
}

/// One entry of the map, as it stands on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Blocks in the whole map, the same in every entry.
    pub map_blocks: u32,
    /// First block of the partition.
    pub start: u32,
    /// Length in blocks (`pmPartBlkCnt`).
    pub blocks: u32,
    /// Name, padded with NUL.
    pub name: [u8; 32],
    /// Type, padded with NUL.
    pub kind: [u8; 32],
    /// First block of the data, counted from `start`.
    pub data_start: u32,
    /// Length of the data in blocks.
    pub data_blocks: u32,
    /// Flags: 1 valid, 2 allocated, 4 in use, 8 bootable, 16 readable,
    /// 32 writable.
    pub status: u32,
    /// Bytes 92 to 511: where boot code is and for what processor.
    pub boot: [u8; 420],
}

impl Default for Entry {
    fn default() -> Entry {
        Entry {
            map_blocks: 0,
            start: 0,
            blocks: 0,
            name: [0; 32],
            kind: [0; 32],
            data_start: 0,
            data_blocks: 0,
            status: 0,
            boot: [0; 420],
        }
    }
}

impl Entry {
    /// Decodes the entry in `block`, which is block `number` of the disk.
    ///
    /// # Errors
    /// [`Error::Short`] below 512 bytes, [`Error::Signature`] without "PM".
    pub fn decode(block: &[u8], number: u64) -> Result<Entry, Error> {
        signed(block, number, ENTRY_SIGNATURE)?;
        Ok(Entry {
            map_blocks: bytes::u32_be(block, 4),
            start: bytes::u32_be(block, 8),
            blocks: bytes::u32_be(block, 12),
            name: bytes::take(block, 16),
            kind: bytes::take(block, 48),
            data_start: bytes::u32_be(block, 80),
            data_blocks: bytes::u32_be(block, 84),
            status: bytes::u32_be(block, 88),
            boot: bytes::take(block, 92),
        })
    }

    /// The entry's 512 bytes.
    pub fn encode(&self) -> [u8; ENTRY_SIZE_BYTES] {
        let mut block = [0; ENTRY_SIZE_BYTES];
        bytes::put(&mut block, 0, &ENTRY_SIGNATURE);
        bytes::put_u32_be(&mut block, 4, self.map_blocks);
        bytes::put_u32_be(&mut block, 8, self.start);
        bytes::put_u32_be(&mut block, 12, self.blocks);
        bytes::put(&mut block, 16, &self.name);
        bytes::put(&mut block, 48, &self.kind);
        bytes::put_u32_be(&mut block, 80, self.data_start);
        bytes::put_u32_be(&mut block, 84, self.data_blocks);
        bytes::put_u32_be(&mut block, 88, self.status);
        bytes::put(&mut block, 92, &self.boot);
        block
    }

    /// The name as text.
    pub fn label(&self) -> String {
        bytes::c_string(&self.name)
    }

    /// The type as text, in Apple's spelling (`Apple_HFS`).
    pub fn kind_name(&self) -> String {
        bytes::c_string(&self.kind)
    }

    /// gpart's name for the type, if it has one.
    pub fn alias(&self) -> Option<&'static str> {
        let name = self.kind_name();
        TYPES
            .iter()
            .find(|known| known.0 == name)
            .map(|known| known.1)
    }

    /// True when the entry describes blocks; free space has an entry, too.
    pub fn is_used(&self) -> bool {
        self.blocks != 0 && self.kind_name() != TYPE_VOID
    }
}

/// Apple's type and gpart's name for it (FreeBSD `sys/sys/disk/apm.h`).
const TYPES: &[(&str, &str)] = &[
    ("Apple_Bootstrap", "apple-boot"),
    ("Apple_HFS", "apple-hfs"),
    ("Apple_UNIX_SVR2", "apple-ufs"),
    ("FreeBSD", "freebsd"),
    ("FreeBSD-nandfs", "freebsd-nandfs"),
    ("FreeBSD-swap", "freebsd-swap"),
    ("FreeBSD-UFS", "freebsd-ufs"),
    ("FreeBSD-Vinum", "freebsd-vinum"),
    ("FreeBSD-ZFS", "freebsd-zfs"),
];

/// Apple's type for gpart's name, `!Apple_HFS`, or a type that begins with
/// `Apple_`, which gpart prints without the mark.
pub(crate) fn parse_type(text: &str) -> Option<&str> {
    let known = TYPES
        .iter()
        .find(|known| known.1.eq_ignore_ascii_case(text));
    let plain = || text.starts_with("Apple_").then_some(text);
    known
        .map(|known| known.0)
        .or_else(|| text.strip_prefix('!'))
        .or_else(plain)
}

/// Apple's types and gpart's names for them, in the order of the types.
pub fn types() -> impl Iterator<Item = (&'static str, &'static str)> {
    TYPES.iter().copied()
}

/// The partition map of an Apple disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map {
    /// Block 0, which states the size of a block.
    pub descriptor: Descriptor,
    /// The entries with the number of their block, which is also the
    /// partition's number. A block in the middle of the map that is not an
    /// entry, or that counts another number of blocks, is left out, as in GEOM.
    pub entries: Vec<(u32, Entry)>,
}

impl Map {
    /// Reads block 0 and the map after it, at most [`MAX_ENTRIES`] blocks.
    ///
    /// The map ends early, without an error, where the media does or where a
    /// block cannot be read: the entries found so far count.
    ///
    /// # Errors
    /// Block 0 or 1 is not what it has to be, the block size is not the
    /// provider's sector size, or the map claims an impossible number of
    /// blocks.
    pub fn read(media: Media, read: &mut SectorRead<'_>) -> Result<Map, Error> {
        let mut block = |number: u64| match number < media.sectors {
            true => read(number, 1).map_err(|reason| Error::Read {
                block: number,
                reason,
            }),
            false => Err(Error::Short {
                block: number,
                found: 0,
                expected: ENTRY_SIZE_BYTES,
            }),
        };
        let descriptor = Descriptor::decode(&block(0)?)?;
        if u32::from(descriptor.block_size_bytes) != media.sector_size_bytes {
            let (found, expected) = (descriptor.block_size_bytes, media.sector_size_bytes);
            return Err(Error::BlockSize { found, expected });
        }
        let first = Entry::decode(&block(1)?, 1)?;
        let map_blocks = first.map_blocks;
        if !(1..=MAX_ENTRIES).contains(&map_blocks) {
            return Err(Error::MapSize { found: map_blocks });
        }
        let mut entries = vec![(1, first)];
        for number in 2..=map_blocks {
            let Ok(data) = block(u64::from(number)) else { break };
            if let Ok(entry) = Entry::decode(&data, u64::from(number))
                && entry.map_blocks == map_blocks
            {
                entries.push((number, entry));
            }
        }
        Ok(Map {
            descriptor,
            entries,
        })
    }

    /// The partitions with their number: every used entry, the map itself and
    /// free space included, as `g_apple_taste` and `g_part_apm_read` list them.
    pub fn slices(&self) -> impl Iterator<Item = (u32, &Entry)> {
        let used = self.entries.iter().filter(|(_, entry)| entry.is_used());
        used.map(|(number, entry)| (*number, entry))
    }
}

fn signed(block: &[u8], number: u64, expected: [u8; 2]) -> Result<(), Error> {
    if block.len() < ENTRY_SIZE_BYTES {
        let found = block.len();
        return Err(Error::Short {
            block: number,
            found,
            expected: ENTRY_SIZE_BYTES,
        });
    }
    match bytes::take(block, 0) {
        found if found == expected => Ok(()),
        found => Err(Error::Signature {
            block: number,
            found,
            expected,
        }),
    }
}

#[cfg(test)]
mod tests;
