//! DragonFly's disklabel64: sixteen partitions, `a` to `p`, with places in bytes.
//!
//! ```text
//! byte 512  magic C4464C59 u32              552  first byte of the boot area u64
//!      516  CRC u32 (see note)              560  first byte of data u64, 568 the byte after it
//!      520  alignment u32                   576  place of the backup u64, 0 for none
//!      524  number of partitions u32        584  name of the pack, 64 bytes
//!      528  UUID of the label               712  partitions of 64 bytes:
//!      544  size of the slice u64                 0 offset u64 | 8 size u64 | 16 type u8
//!                                                32 type's UUID | 48 own UUID
//! ```
//! Note: the CRC covers everything from the magic on to the last partition, with its own field
//! taken as 0. Integers are little-endian; offsets count from the beginning of the slice. Sources:
//! FreeBSD `sys/geom/part/g_part_bsd64.c`, DragonFly `sys/sys/disklabel64.h`;
//! `docs/formats/bsd64.md`.

mod types;

pub use types::{Bsd64Type, FS_OTHER};

use crate::bytes;
use crate::gpt::Guid;

/// Bytes of the label from byte 0 on that have to be read.
pub const SIZE_BYTES: usize = PARTITIONS_OFFSET_BYTES + MAX_PARTITIONS * PARTITION_BYTES;
/// Most partitions of a label (`MAXPARTITIONS64`).
pub const MAX_PARTITIONS: usize = 16;
/// Index of `c`, the raw partition, which stands in no label.
pub const RAW_PARTITION: usize = 2;
/// Smallest slice that can have a label.
pub const LEAST_BYTES: u64 = 2 << 20;

const MAGIC: u32 = 0xc446_4c59;
const MAGIC_OFFSET_BYTES: usize = 512;
const PARTITIONS_OFFSET_BYTES: usize = 512 + 200;
const PARTITION_BYTES: usize = 64;

/// Why there is no disklabel64.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum Error {
    #[error("{found} bytes are there, a disklabel64 needs {SIZE_BYTES}")]
    Short { found: usize },
    /// The magic number is another one: there is no label.
    #[error("no disklabel64: found {found:#010x} at byte 512, expected {MAGIC:#010x}")]
    Magic { found: u32 },
    #[error("the disklabel64 has {found} partitions at byte 524, expected 1 to {MAX_PARTITIONS}")]
    Count { found: u32 },
    #[error("the disklabel64 has CRC {found:#010x} at byte 516, its bytes give {expected:#010x}")]
    Crc {
        found: u32,
        /// The value computed from the bytes.
        expected: u32,
    },
    #[error(
        "{what} of the disklabel64, {bytes}, is no multiple of the {sector_bytes}-byte sectors"
    )]
    Unaligned {
        what: String,
        /// Its value in bytes.
        bytes: u64,
        sector_bytes: u32,
    },
}

/// An entry of the label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Partition {
    /// First byte of the slice.
    pub offset_bytes: u64,
    /// Length in bytes; 0 when unused.
    pub size_bytes: u64,
    /// The type: number and UUID.
    pub kind: Bsd64Type,
    /// The partition's own UUID.
    pub guid: Guid,
}

impl Partition {
    fn decode(data: &[u8], at: usize) -> Partition {
        Partition {
            offset_bytes: bytes::u64_le(data, at),
            size_bytes: bytes::u64_le(data, at + 8),
            kind: Bsd64Type {
                number: bytes::byte(data, at + 16),
                guid: Guid(bytes::take(data, at + 32)),
            },
            guid: Guid(bytes::take(data, at + 48)),
        }
    }

    fn encode(&self, data: &mut [u8], at: usize) {
        bytes::put(data, at, &[0; PARTITION_BYTES]);
        bytes::put_u64_le(data, at, self.offset_bytes);
        bytes::put_u64_le(data, at + 8, self.size_bytes);
        bytes::put(data, at + 16, &[self.kind.number]);
        bytes::put(data, at + 32, &self.kind.guid.0);
        bytes::put(data, at + 48, &self.guid.0);
    }
}

/// A disklabel64 (`struct disklabel64`), decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Bytes 0 to 511, which are not the label's, and its reserved bytes.
    pub bytes: Vec<u8>,
    /// Alignment of partitions in bytes.
    pub align_bytes: u32,
    /// Unique UUID of the label (`d_stor_uuid`).
    pub guid: Guid,
    /// Size of slice or disk.
    pub total_bytes: u64,
    /// First byte of the boot area.
    pub boot_bytes: u64,
    /// First byte that a partition may have.
    pub first_bytes: u64,
    /// The byte after the last one that a partition may have.
    pub end_bytes: u64,
    /// Where the backup of the label is, 0 for nowhere.
    pub backup_bytes: u64,
    /// The name of the pack.
    pub pack_name: String,
    /// The partitions, used or not.
    pub partitions: Vec<Partition>,
}

impl Label {
    /// Decodes the label in the first [`SIZE_BYTES`] bytes of a provider with sectors of
    /// `sector_bytes`.
    ///
    /// # Errors
    /// In the order of `g_part_bsd64_read`: length, magic, number of partitions, CRC, places that
    /// are no whole sectors. Places past the end are not errors here.
    pub fn decode(data: &[u8], sector_bytes: u32) -> Result<Label, Error> {
        let found = data.len();
        let Some(data) = data.get(..SIZE_BYTES) else {
            return Err(Error::Short { found });
        };
        let found = bytes::u32_le(data, MAGIC_OFFSET_BYTES);
        if found != MAGIC {
            return Err(Error::Magic { found });
        }
        let found = bytes::u32_le(data, 524);
        if !(1..=MAX_PARTITIONS as u32).contains(&found) {
            return Err(Error::Count { found });
        }
        let count = found as usize;
        let (found, expected) = (bytes::u32_le(data, 516), crc(data, count));
        if found != expected {
            return Err(Error::Crc { found, expected });
        }
        let partition =
            |index| Partition::decode(data, PARTITIONS_OFFSET_BYTES + PARTITION_BYTES * index);
        let label = Label {
            align_bytes: bytes::u32_le(data, 520),
            guid: Guid(bytes::take(data, 528)),
            total_bytes: bytes::u64_le(data, 544),
            boot_bytes: bytes::u64_le(data, 552),
            first_bytes: bytes::u64_le(data, 560),
            end_bytes: bytes::u64_le(data, 568),
            backup_bytes: bytes::u64_le(data, 576),
            pack_name: bytes::c_string(&data[584..648]),
            partitions: (0..count).map(partition).collect(),
            bytes: data.to_vec(),
        };
        label.check(sector_bytes)?;
        Ok(label)
    }

    /// Whether bytes begin with the magic number.
    pub fn begins(data: &[u8]) -> bool {
        bytes::u32_le(data, 0) == MAGIC
    }

    fn check(&self, sector_bytes: u32) -> Result<(), Error> {
        let whole = |what: String, bytes: u64| match bytes.checked_rem(u64::from(sector_bytes)) {
            Some(0) => Ok(()),
            _ => Err(Error::Unaligned {
                what,
                bytes,
                sector_bytes,
            }),
        };
        whole("the first byte of data".to_owned(), self.first_bytes)?;
        whole("the end of data".to_owned(), self.end_bytes)?;
        for (index, partition) in self.slices() {
            let letter = crate::bsd::letter(index);
            whole(format!("the offset of {letter}"), partition.offset_bytes)?;
            whole(format!("the size of {letter}"), partition.size_bytes)?;
        }
        Ok(())
    }

    /// An empty label for a slice, as `gpart create` makes it: 32 KiB for boot code after the
    /// label, data from 1 MiB on, the backup at the end. `None` when the slice is too small.
    pub fn create(size_bytes: u64, sector_bytes: u32, guid: Guid) -> Option<Label> {
        const BLOCK_BYTES: u64 = 4096;
        const DATA_ALIGN_BYTES: u64 = 1 << 20;
        const PHYSICAL_ALIGN_BYTES: u64 = 32 << 10;
        const RESERVED_PARTITIONS: usize = 32;
        if size_bytes < LEAST_BYTES {
            return None;
        }
        let block = BLOCK_BYTES.max(u64::from(sector_bytes));
        let reserved = PARTITIONS_OFFSET_BYTES + RESERVED_PARTITIONS * PARTITION_BYTES;
        let reserved = (reserved as u64).next_multiple_of(block);
        let backup_bytes = (size_bytes - reserved) / block * block;
        Some(Label {
            bytes: vec![0; SIZE_BYTES],
            align_bytes: block as u32,
            guid,
            total_bytes: size_bytes,
            boot_bytes: reserved,
            first_bytes: DATA_ALIGN_BYTES + PHYSICAL_ALIGN_BYTES,
            end_bytes: backup_bytes,
            backup_bytes,
            pack_name: String::new(),
            partitions: vec![Partition::default(); MAX_PARTITIONS],
        })
    }

    /// The label's bytes with a right CRC, from byte 0 on.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = self.bytes.clone();
        data.resize(SIZE_BYTES, 0);
        let count = self.partitions.len().min(MAX_PARTITIONS);
        bytes::put_u32_le(&mut data, MAGIC_OFFSET_BYTES, MAGIC);
        bytes::put_u32_le(&mut data, 520, self.align_bytes);
        bytes::put_u32_le(&mut data, 524, count as u32);
        bytes::put(&mut data, 528, &self.guid.0);
        bytes::put_u64_le(&mut data, 544, self.total_bytes);
        bytes::put_u64_le(&mut data, 552, self.boot_bytes);
        bytes::put_u64_le(&mut data, 560, self.first_bytes);
        bytes::put_u64_le(&mut data, 568, self.end_bytes);
        bytes::put_u64_le(&mut data, 576, self.backup_bytes);
        for (index, partition) in self.partitions.iter().enumerate().take(count) {
            partition.encode(&mut data, PARTITIONS_OFFSET_BYTES + PARTITION_BYTES * index);
        }
        let sum = crc(&data, count);
        bytes::put_u32_le(&mut data, 516, sum);
        data
    }

    /// The used partitions with their place in the table, 0 for `a`. `c` is passed over, as in
    /// FreeBSD: by convention it is the whole slice and has no entry.
    pub fn slices(&self) -> impl Iterator<Item = (usize, &Partition)> {
        let used = self.partitions.iter().enumerate();
        used.filter(|(index, partition)| *index != RAW_PARTITION && partition.size_bytes != 0)
    }
}

/// CRC from the magic to the last partition, its own field taken as 0.
fn crc(data: &[u8], count: usize) -> u32 {
    let end = PARTITIONS_OFFSET_BYTES + PARTITION_BYTES * count;
    let mut crc = crc32fast::Hasher::new();
    crc.update(data.get(512..516).unwrap_or_default());
    crc.update(&[0; 4]);
    crc.update(data.get(520..end).unwrap_or_default());
    crc.finalize()
}

#[cfg(test)]
mod tests;
