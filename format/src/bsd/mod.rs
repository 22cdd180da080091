//! The BSD disklabel: up to 22 partitions, a to v, in one sector.
//!
//! ```text
//! byte   0  magic 0x82564557            136  checksum: XOR of all 16-bit words
//!        4  type, subtype (u16)         138  number of partitions (u16)
//!        8  type name, 24 pack name     140  boot area, 144 superblock (u32, bytes)
//!       40  bytes a sector (u32)        148  partitions, 16 bytes each:
//!       44  sectors a track                  0 sectors u32 | 4 first sector u32
//!       48  tracks a cylinder                8 fragment size u32 | 12 type u8
//!       52  cylinders                       13 fragments a block u8
//!       56  sectors a cylinder              14 cylinders a group u16
//!       60  sectors in all
//!       64  spares, speed, skews ... 132 magic again
//! ```
//! Labels are in the byte order of the machine that wrote them and stand in
//! sector 1 of the disk or slice, on the Alpha at byte 64 of sector 0, and at
//! byte 512 where a tool ignored a larger sector size. OpenBSD's labels of
//! version 1 have 16 more bits for places and sizes: bytes 8 and 10 of a
//! partition. Sources: FreeBSD `sys/sys/disk/bsd.h`, `sys/geom/geom_bsd.c`,
//! OpenBSD and NetBSD `sys/sys/disklabel.h`, `docs/formats/bsd.md`.

mod error;
mod order;
mod place;
mod types;

pub use error::Error;
pub use order::ByteOrder;
pub use place::{Location, alpha_checksum, find, other_sector_size, put};
pub use types::{FsType, System};

use crate::bytes;

/// The number that begins a label and stands again at its byte 132.
pub const MAGIC: u32 = 0x8256_4557;
/// Bytes before the first partition.
pub const HEADER_SIZE_BYTES: usize = 148;
/// Most partitions that fit in a sector of 512 bytes. FreeBSD uses up to 20.
pub const MAX_PARTITIONS: usize = 22;
/// Index of `c`, the raw partition, which by convention is the whole disk or
/// slice.
pub const RAW_PARTITION: usize = 2;
/// Size of the boot area that the label is part of.
pub(crate) const BOOT_AREA_SIZE_BYTES: u32 = 8192;

const PARTITION_SIZE_BYTES: usize = 16;
const CHECKSUM_OFFSET_BYTES: usize = 136;
/// Where OpenBSD has `d_version`, which tells its labels from others.
const VERSION_OFFSET_BYTES: usize = 114;

/// One partition of a label, as it stands on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Partition {
    /// Length in the label's sectors; 0 when unused.
    pub sectors: u32,
    /// First sector; see [`Label::base`] for its origin.
    pub start: u32,
    /// File system fragment size in bytes; in labels of OpenBSD's version 1 the
    /// high 16 bits of the first sector (bytes 8 and 9) and the length.
    pub fragment_size_bytes: u32,
    /// The type of the partition.
    pub kind: FsType,
    /// Fragments of a block of UFS (`p_frag`).
    pub fragments: u8,
    /// Cylinders a group (UFS) or segment shift (LFS).
    pub group: u16,
}

/// A partition with its place in the disk or slice that holds the label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// Place in the table: 0 is `a`.
    pub index: usize,
    /// First byte, counted from the beginning of the disk or slice.
    pub start_bytes: u64,
    /// Length in bytes, from `p_size` sectors.
    pub size_bytes: u64,
    /// The type of the partition.
    pub kind: FsType,
}

impl Slice {
    /// Its index in the table as a letter, `a` for 0.
    pub fn letter(&self) -> char {
        letter(self.index)
    }
}

/// A used partition as it stands in a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Place in the table: 0 is `a`.
    pub index: usize,
    /// First sector, in the label's sectors.
    pub start: u64,
    /// Length in the same sectors, never 0.
    pub sectors: u64,
    /// The type of the partition.
    pub kind: FsType,
}

/// The letter of a partition: `a` for 0.
pub fn letter(index: usize) -> char {
    char::from(b'a' + (index % 26) as u8)
}

/// A decoded disklabel; fields are named for their meaning, with the C name
/// in their description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Kind of drive, `d_type` (4 SCSI, 5 ESDI, 10 floppy).
    pub drive_type: u16,
    /// Subtype of the drive (`d_subtype`), kept as it is.
    pub drive_subtype: u16,
    /// `d_typename`, padded with NUL.
    pub type_name: [u8; 16],
    /// `d_packname`, padded with NUL.
    pub pack_name: [u8; 16],
    /// `d_secsize`: the unit of all sector numbers in the label.
    pub sector_size_bytes: u32,
    /// `d_nsectors`: sectors a track.
    pub track_sectors: u32,
    /// `d_ntracks`: tracks a cylinder.
    pub cylinder_tracks: u32,
    /// Cylinders of the disk (`d_ncylinders`).
    pub cylinders: u32,
    /// Sectors of a cylinder (`d_secpercyl`).
    pub cylinder_sectors: u32,
    /// `d_secperunit`: sectors of the whole drive.
    pub unit_sectors: u32,
    /// Bytes 64 to 131 (spares, speed, skews, flags, drive data), which
    /// describe hardware of the eighties and are kept as they are.
    pub hardware: [u8; 68],
    /// `d_bbsize`: bytes of the boot area.
    pub boot_area_size_bytes: u32,
    /// `d_sbsize`: largest superblock in bytes.
    pub superblock_size_bytes: u32,
    /// The partitions, used or not; 1 to [`MAX_PARTITIONS`].
    pub partitions: Vec<Partition>,
    /// The byte order of the machine that wrote it.
    pub order: ByteOrder,
    /// The checksum that the label was read with, where it is a wrong one;
    /// see [`Label::verify`]. A label is always written with the right one.
    pub wrong_checksum: Option<u16>,
}

impl Label {
    /// Decodes the label that begins with `data` and stands at byte `offset`
    /// of a provider with sectors of `sector_size_bytes` bytes. `data` ends
    /// where the label's sector ends.
    ///
    /// A wrong checksum is not an error: parted writes one, and FreeBSD's gpart
    /// and Linux do not look at it. It is kept in `wrong_checksum` to be shown.
    ///
    /// # Errors
    /// In the order of the checks: length, both magic numbers, the
    /// number of partitions, the sector size (it must be a multiple of the
    /// provider's, as in GEOM). Partitions that overlap or reach past the end
    /// are not errors here.
    pub fn decode(data: &[u8], offset: u64, sector_size_bytes: u32) -> Result<Label, Error> {
        let need = |expected| match data.len() {
            found if found < expected => Err(Error::Short {
                offset,
                found,
                expected,
            }),
            _ => Ok(()),
        };
        need(HEADER_SIZE_BYTES)?;
        let order = match ByteOrder::Big.u32(data, 0) {
            MAGIC => ByteOrder::Big,
            _ => ByteOrder::Little,
        };
        for field in [0, 132] {
            let found = order.u32(data, field);
            if found != MAGIC {
                return Err(Error::Magic {
                    offset,
                    field,
                    found,
                });
            }
        }
        let count = order.u16(data, 138);
        let most = max_in(data.len());
        if count == 0 || usize::from(count) > most {
            return Err(Error::PartitionCount {
                offset,
                found: count,
                most,
            });
        }
        let end = HEADER_SIZE_BYTES + usize::from(count) * PARTITION_SIZE_BYTES;
        let mut label = Label::fields(data, usize::from(count), order);
        let found = order.u16(data, CHECKSUM_OFFSET_BYTES);
        label.wrong_checksum = Some(found).filter(|&found| found != checksum(&data[..end], order));
        let (found, provider) = (label.sector_size_bytes, sector_size_bytes);
        if found == 0 || provider == 0 || found % provider != 0 {
            return Err(Error::SectorSize {
                offset,
                found,
                provider,
            });
        }
        Ok(label)
    }

    fn fields(data: &[u8], count: usize, order: ByteOrder) -> Label {
        let (u16, u32) = (|at| order.u16(data, at), |at| order.u32(data, at));
        Label {
            drive_type: u16(4),
            drive_subtype: u16(6),
            type_name: bytes::take(data, 8),
            pack_name: bytes::take(data, 24),
            sector_size_bytes: u32(40),
            track_sectors: u32(44),
            cylinder_tracks: u32(48),
            cylinders: u32(52),
            cylinder_sectors: u32(56),
            unit_sectors: u32(60),
            hardware: bytes::take(data, 64),
            boot_area_size_bytes: u32(140),
            superblock_size_bytes: u32(144),
            order,
            wrong_checksum: None,
            partitions: (0..count)
                .map(|index| partition(data, index, order))
                .collect(),
        }
    }

    /// Says whether the label, which stands at byte `offset`, was read with the
    /// right checksum.
    ///
    /// # Errors
    /// [`Error::Checksum`] when it was not.
    pub fn verify(&self, offset: u64) -> Result<(), Error> {
        let Some(found) = self.wrong_checksum else { return Ok(()) };
        let expected = self.order.u16(&self.encode()?, CHECKSUM_OFFSET_BYTES);
        Err(Error::Checksum {
            offset,
            found,
            expected,
        })
    }

    /// The label's bytes: 148 and 16 for each partition, checksum included.
    ///
    /// # Errors
    /// [`Error::TooMany`] for none or more than [`MAX_PARTITIONS`].
    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        let count = self.partitions.len();
        if count == 0 || count > MAX_PARTITIONS {
            return Err(Error::TooMany {
                found: count,
                most: MAX_PARTITIONS,
            });
        }
        let mut data = vec![0; HEADER_SIZE_BYTES + count * PARTITION_SIZE_BYTES];
        let order = self.order;
        order.put_u32(&mut data, 0, MAGIC);
        order.put_u16(&mut data, 4, self.drive_type);
        order.put_u16(&mut data, 6, self.drive_subtype);
        bytes::put(&mut data, 8, &self.type_name);
        bytes::put(&mut data, 24, &self.pack_name);
        order.put_u32(&mut data, 40, self.sector_size_bytes);
        order.put_u32(&mut data, 44, self.track_sectors);
        order.put_u32(&mut data, 48, self.cylinder_tracks);
        order.put_u32(&mut data, 52, self.cylinders);
        order.put_u32(&mut data, 56, self.cylinder_sectors);
        order.put_u32(&mut data, 60, self.unit_sectors);
        bytes::put(&mut data, 64, &self.hardware);
        order.put_u32(&mut data, 132, MAGIC);
        order.put_u16(&mut data, 138, count as u16);
        order.put_u32(&mut data, 140, self.boot_area_size_bytes);
        order.put_u32(&mut data, 144, self.superblock_size_bytes);
        for (index, partition) in self.partitions.iter().enumerate() {
            put_partition(&mut data, index, partition, order);
        }
        let sum = checksum(&data, order);
        order.put_u16(&mut data, CHECKSUM_OFFSET_BYTES, sum);
        Ok(data)
    }

    /// True for OpenBSD's label of version 1, whose places and sizes have 48
    /// bits (`d_version`). Other systems have 0 there.
    pub fn is_48_bit(&self) -> bool {
        self.order.u16(&self.hardware, VERSION_OFFSET_BYTES - 64) == 1
    }

    /// The used partitions as they stand in the label: first sectors that
    /// count from wherever the label's system counts from.
    pub fn extents(&self) -> impl Iterator<Item = Extent> {
        let wide = self.is_48_bit();
        let partitions = self.partitions.iter().enumerate();
        let extents = partitions.map(move |(index, partition)| {
            let mut high = [0; 4];
            if wide {
                self.order
                    .put_u32(&mut high, 0, partition.fragment_size_bytes);
            }
            let high = |at| u64::from(self.order.u16(&high, at)) << 32;
            Extent {
                index,
                start: high(0) | u64::from(partition.start),
                sectors: high(2) | u64::from(partition.sectors),
                kind: partition.kind,
            }
        });
        extents.filter(|extent| extent.sectors != 0)
    }

    /// The origin of the partitions' first sectors, in the label's sectors.
    ///
    /// Labels in slices hold absolute sector numbers, labels on whole disks
    /// relative ones, and nothing in the label says which. GEOM's rule: the
    /// first sector of the raw partition `c` is subtracted, unless a used
    /// partition begins before it; then nothing is.
    pub fn base(&self) -> u32 {
        let raw = self
            .partitions
            .get(RAW_PARTITION)
            .map_or(0, |raw| raw.start);
        match self.extents().any(|extent| extent.start < u64::from(raw)) {
            true => 0,
            false => raw,
        }
    }

    /// The used partitions with their places, `c` included, in bytes from the
    /// beginning of the disk or slice that holds the label, as
    /// [`Label::base`] has it.
    ///
    /// The sizes are the table's, also where the disk ends earlier.
    pub fn slices(&self) -> impl Iterator<Item = Slice> {
        self.slices_from(u64::from(self.base()))
    }

    /// The same for a label whose sector `base` is the first one of the disk or
    /// slice. Partitions that begin before it are left out.
    pub fn slices_from(&self, base: u64) -> impl Iterator<Item = Slice> {
        let unit = u64::from(self.sector_size_bytes);
        self.extents().filter_map(move |extent| {
            Some(Slice {
                index: extent.index,
                start_bytes: extent.start.checked_sub(base)?.saturating_mul(unit),
                size_bytes: extent.sectors.saturating_mul(unit),
                kind: extent.kind,
            })
        })
    }
}

/// XOR of the 16-bit words with the checksum field taken as 0.
fn checksum(data: &[u8], order: ByteOrder) -> u16 {
    let words = data.chunks_exact(2).map(|word| order.u16(word, 0));
    words.fold(order.u16(data, CHECKSUM_OFFSET_BYTES), |sum, word| {
        sum ^ word
    })
}

fn max_in(len: usize) -> usize {
    (len.saturating_sub(HEADER_SIZE_BYTES) / PARTITION_SIZE_BYTES).min(MAX_PARTITIONS)
}

fn partition(data: &[u8], index: usize, order: ByteOrder) -> Partition {
    let at = HEADER_SIZE_BYTES + index * PARTITION_SIZE_BYTES;
    Partition {
        sectors: order.u32(data, at),
        start: order.u32(data, at + 4),
        fragment_size_bytes: order.u32(data, at + 8),
        kind: FsType(bytes::byte(data, at + 12)),
        fragments: bytes::byte(data, at + 13),
        group: order.u16(data, at + 14),
    }
}

fn put_partition(data: &mut [u8], index: usize, partition: &Partition, order: ByteOrder) {
    let at = HEADER_SIZE_BYTES + index * PARTITION_SIZE_BYTES;
    order.put_u32(data, at, partition.sectors);
    order.put_u32(data, at + 4, partition.start);
    order.put_u32(data, at + 8, partition.fragment_size_bytes);
    bytes::put(data, at + 12, &[partition.kind.0, partition.fragments]);
    order.put_u16(data, at + 14, partition.group);
}

#[cfg(test)]
mod tests;
