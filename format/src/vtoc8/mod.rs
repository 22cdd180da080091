//! Sun's disk label: eight partitions, `a` to `h`, in sector 0. gpart calls it VTOC8.
//!
//! ```text
//! byte   0  text for people, 128 bytes      420  speed u16, 422 physical cylinders u16
//!      128  version u32                     432  cylinders u16, 434 alternate cylinders u16
//!      132  volume name, 8 bytes            436  heads u16, 438 sectors a track u16
//!      140  number of partitions u16        444  eight places: first cylinder u32, sectors u32
//!      142  eight of tag u16, flag u16      508  DA BE
//!      188  sanity 600D DEEE                510  checksum: XOR of all 16-bit words is 0
//! ```
//! Integers are big-endian, sectors have 512 bytes. Bytes 128 to 191 (the VTOC) have a meaning only
//! where the sanity number is right: SunOS 4 has none. Sources: FreeBSD `sys/sys/vtoc.h`,
//! `sys/geom/geom_sunlabel.c`, `sys/geom/part/g_part_vtoc8.c`; Linux `block/partitions/sun.c`;
//! `docs/formats/vtoc8.md`.

mod types;

pub use types::Tag;

use crate::bytes;

/// Bytes of the label, and of the sectors that it counts in.
pub const SIZE_BYTES: usize = 512;
/// Entries of the label, used or not.
pub const ENTRIES: usize = 8;
/// Index of `c`, the raw partition, which by convention is the whole disk.
pub const RAW_PARTITION: usize = 2;

const VERSION: u32 = 1;
const SANITY: u32 = 0x600d_deee;
const MAGIC: u16 = 0xdabe;
const TAGS_OFFSET_BYTES: usize = 142;
const PLACES_OFFSET_BYTES: usize = 444;

/// Why a sector is no Sun label.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum Error {
    #[error("the sector is {found} bytes long, a Sun label needs {SIZE_BYTES}")]
    Short { found: usize },
    /// Bytes 508 and 509 are not DA BE.
    #[error("no Sun label: found {found:#06x} at byte 508, expected {MAGIC:#06x}")]
    Magic { found: u16 },
    /// The XOR over all words is not 0.
    #[error("the Sun label has checksum {found:#06x} at byte 510, its bytes give {expected:#06x}")]
    Checksum {
        found: u16,
        /// The value computed from the other words.
        expected: u16,
    },
    /// A cylinder without sectors: no place can be computed.
    #[error(
        "the Sun label has {heads} heads at byte 436 and {sectors} sectors a track at byte 438"
    )]
    Geometry { heads: u16, sectors: u16 },
}

/// One partition, as it stands in the label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Partition {
    /// The type; where the label has no VTOC, that of the whole disk for `c`, 0 for others.
    pub tag: Tag,
    /// 1 for not mountable, 0x10 for read-only.
    pub flag: u16,
    /// First cylinder; all partitions begin at one.
    pub cylinder: u32,
    /// Length in sectors; 0 when unused.
    pub sectors: u32,
}

/// A partition with its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// Place in the table: 0 is `a`.
    pub index: usize,
    /// First sector of the partition on the disk.
    pub start: u64,
    /// Length of the partition, sectors.
    pub sectors: u64,
    /// Its tag: the use of the partition.
    pub tag: Tag,
}

/// Sun's label of sector 0, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The label's bytes as they were read, for data without a field here.
    pub bytes: Box<[u8; SIZE_BYTES]>,
    /// Cylinders for data, without the alternate ones.
    pub cylinders: u16,
    /// Alternate cylinders after them.
    pub alternate_cylinders: u16,
    /// Heads of the disk: tracks of a cylinder.
    pub heads: u16,
    /// Sectors of a track.
    pub track_sectors: u16,
    /// The partitions, used or not.
    pub partitions: [Partition; ENTRIES],
}

impl Label {
    /// Decodes the label in sector 0.
    ///
    /// # Errors
    /// In the order of `g_part_vtoc8_probe` and `_read`: length, magic, checksum, geometry. Places
    /// past the end are not errors here.
    pub fn decode(sector: &[u8]) -> Result<Label, Error> {
        let found = sector.len();
        if found < SIZE_BYTES {
            return Err(Error::Short { found });
        }
        let raw: [u8; SIZE_BYTES] = bytes::take(sector, 0);
        let found = bytes::u16_be(&raw, 508);
        if found != MAGIC {
            return Err(Error::Magic { found });
        }
        let (found, expected) = (bytes::u16_be(&raw, 510), checksum(&raw));
        if found != expected {
            return Err(Error::Checksum { found, expected });
        }
        let (heads, sectors) = (bytes::u16_be(&raw, 436), bytes::u16_be(&raw, 438));
        if heads == 0 || sectors == 0 {
            return Err(Error::Geometry { heads, sectors });
        }
        let tagged = has_tags(&raw);
        let partition = |index: usize| {
            let tag = TAGS_OFFSET_BYTES + 4 * index;
            let place = PLACES_OFFSET_BYTES + 8 * index;
            // As `g_part_vtoc8_read` adds them where there are none.
            let added = match index {
                RAW_PARTITION => (Tag::BACKUP, 0),
                _ => (Tag(0), 0),
            };
            let read = || (Tag(bytes::u16_be(&raw, tag)), bytes::u16_be(&raw, tag + 2));
            let (tag, flag) = if tagged { read() } else { added };
            Partition {
                tag,
                flag,
                cylinder: bytes::u32_be(&raw, place),
                sectors: bytes::u32_be(&raw, place + 4),
            }
        };
        Ok(Label {
            cylinders: bytes::u16_be(&raw, 432),
            alternate_cylinders: bytes::u16_be(&raw, 434),
            heads,
            track_sectors: sectors,
            partitions: std::array::from_fn(partition),
            bytes: Box::new(raw),
        })
    }

    /// An empty label for a disk of so many sectors, as `gpart create` makes it: two alternate
    /// cylinders, `c` over all others. `None` when no whole cylinder is left, or more than 16 bits
    /// count.
    pub fn create(sectors: u64, heads: u16, track_sectors: u16) -> Option<Label> {
        const ALTERNATE: u16 = 2;
        let cylinder = u32::from(heads) * u32::from(track_sectors);
        let physical = sectors
            .min(u64::from(u32::MAX))
            .checked_div(u64::from(cylinder))?;
        let physical = u16::try_from(physical).ok()?;
        let cylinders = physical.checked_sub(ALTERNATE).filter(|&count| count > 0)?;
        let raw_sectors = u32::from(cylinders) * cylinder;
        let mut raw = [0; SIZE_BYTES];
        let text = format!(
            "FreeBSD{}M cyl {cylinders} alt {ALTERNATE} hd {heads} sec {track_sectors}",
            raw_sectors / 2048
        );
        bytes::put(&mut raw, 0, text.as_bytes());
        bytes::put_u16_be(&mut raw, 420, 3600);
        bytes::put_u16_be(&mut raw, 422, physical);
        let mut label = Label {
            bytes: Box::new(raw),
            cylinders,
            alternate_cylinders: ALTERNATE,
            heads,
            track_sectors,
            partitions: [Partition::default(); ENTRIES],
        };
        label.partitions[RAW_PARTITION] = Partition {
            tag: Tag::BACKUP,
            sectors: raw_sectors,
            ..Partition::default()
        };
        Some(label)
    }

    /// The label's sector. One without a VTOC gets one, as gpart adds it.
    pub fn encode(&self) -> [u8; SIZE_BYTES] {
        let mut raw = *self.bytes;
        if !has_tags(&raw) {
            bytes::put_u32_be(&mut raw, 128, VERSION);
            bytes::put(&mut raw, 132, &[0; 8]);
            bytes::put_u16_be(&mut raw, 140, ENTRIES as u16);
            bytes::put_u32_be(&mut raw, 188, SANITY);
        }
        bytes::put_u16_be(&mut raw, 432, self.cylinders);
        bytes::put_u16_be(&mut raw, 434, self.alternate_cylinders);
        bytes::put_u16_be(&mut raw, 436, self.heads);
        bytes::put_u16_be(&mut raw, 438, self.track_sectors);
        for (index, partition) in self.partitions.iter().enumerate() {
            let tag = TAGS_OFFSET_BYTES + 4 * index;
            let place = PLACES_OFFSET_BYTES + 8 * index;
            bytes::put_u16_be(&mut raw, tag, partition.tag.0);
            bytes::put_u16_be(&mut raw, tag + 2, partition.flag);
            bytes::put_u32_be(&mut raw, place, partition.cylinder);
            bytes::put_u32_be(&mut raw, place + 4, partition.sectors);
        }
        bytes::put_u16_be(&mut raw, 508, MAGIC);
        let sum = checksum(&raw);
        bytes::put_u16_be(&mut raw, 510, sum);
        raw
    }

    /// Sectors of a cylinder, which all partitions begin with a multiple of.
    pub(crate) fn cylinder_sectors(&self) -> u64 {
        u64::from(self.heads) * u64::from(self.track_sectors)
    }

    /// Whether `c` stands for the whole disk, as usual. Solaris lets it be a partition like others.
    pub fn raw_is_whole(&self) -> bool {
        let raw = self.partitions[RAW_PARTITION];
        let all_sectors = u64::from(self.cylinders) * self.cylinder_sectors();
        let is_all = raw.cylinder == 0 && u64::from(raw.sectors) >= all_sectors;
        raw.sectors == 0 || raw.tag == Tag::BACKUP || is_all
    }

    /// The used partitions with their places, `c` included, as `g_sunlabel_modify` lists them.
    pub fn slices(&self) -> impl Iterator<Item = Slice> {
        let used = self.partitions.iter().enumerate();
        let used = used.filter(|(_, partition)| partition.sectors != 0);
        used.map(|(index, partition)| Slice {
            index,
            start: u64::from(partition.cylinder) * self.cylinder_sectors(),
            sectors: u64::from(partition.sectors),
            tag: partition.tag,
        })
    }
}

fn has_tags(raw: &[u8]) -> bool {
    bytes::u32_be(raw, 188) == SANITY
}

/// XOR of the words before the checksum.
fn checksum(raw: &[u8; SIZE_BYTES]) -> u16 {
    let words = raw[..510].chunks_exact(2);
    words.fold(0, |sum, word| sum ^ bytes::u16_be(word, 0))
}

#[cfg(test)]
mod tests;
