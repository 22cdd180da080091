//! What a provider carries: partition tables, file systems, parts of volumes. A new table is not
//! written over any of them unasked.
//!
//! A signature is a magic number at a known place; nothing behind it is checked, because a damaged
//! file system is worth keeping, too. Sources: the superblock definitions of the systems themselves
//! (Linux `include/uapi/linux/magic.h` and the headers under `fs/`, FreeBSD `sys/ufs/ffs/fs.h` and
//! `sys/geom/*/g_*.h`, ECMA-119 and ECMA-167, the LUKS and LVM on-disk formats, md(4)), and
//! libblkid's `superblocks` for the places of those that may stand in several.

use super::EditError;
use super::media::Disk;
use std::fmt;
use ugeom_format::mbr::{Kind, Mbr, SIZE_BYTES, TABLE_OFFSET_BYTES};
use ugeom_format::{apm, bsd, gpt};
use ugeom_stack::{Channel, Opened};

/// Something that a provider carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What it is, with its article: `an ext4 file system`.
    pub what: String,
    /// Where its magic stands; never empty. The first place is the one that is shown.
    pub places: Vec<Place>,
    /// Sector 0 is part of it, so that no boot code can be kept from there.
    pub(super) owns_sector0: bool,
}

/// Where a magic number stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// First byte.
    pub offset_bytes: u64,
    /// Number of bytes.
    pub length_bytes: u64,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.places.first() {
            Some(place) => write!(f, "{} (at byte {})", self.what, place.offset_bytes),
            None => f.write_str(&self.what),
        }
    }
}

/// Looks for everything that is known. At most 2 MiB are read.
///
/// # Errors
/// What reading failed with.
pub fn look(channel: &mut Channel, opened: &Opened) -> Result<Vec<Found>, EditError> {
    all(&mut Disk::new(channel, opened)?)
}

pub(super) fn all(disk: &mut Disk<'_>) -> Result<Vec<Found>, EditError> {
    let mut found = Vec::new();
    found.extend(gpt_and_mbr(disk));
    found.extend(label(disk));
    found.extend(apple_map(disk));
    found.extend(signatures(disk)?);
    Ok(found)
}

fn gpt_and_mbr(disk: &mut Disk<'_>) -> Vec<Found> {
    let (media, unit) = (disk.media, u64::from(disk.media.sector_size_bytes));
    let table = Place {
        offset_bytes: TABLE_OFFSET_BYTES as u64,
        length_bytes: (SIZE_BYTES - TABLE_OFFSET_BYTES) as u64,
    };
    let found = |what: &str, places| Found {
        what: what.to_owned(),
        places,
        owns_sector0: false,
    };
    let sector0 = disk.read(0, unit).unwrap_or_default();
    let kind = Mbr::decode(&sector0).map_or(Kind::Empty, |mbr| mbr.kind());
    let read = gpt::Gpt::read(media, &mut disk.reader());
    let mut all = Vec::new();
    if read.is_present() {
        let backup = read
            .primary
            .as_ref()
            .map_or(media.last_lba(), |p| p.header.alternate_lba);
        let mut places = Vec::new();
        for lba in [1, backup, media.last_lba()] {
            let place = Place {
                offset_bytes: lba.saturating_mul(unit),
                length_bytes: 8,
            };
            let header = disk.read(place.offset_bytes, unit).unwrap_or_default();
            if header.starts_with(b"EFI PART") && !places.contains(&place) {
                places.push(place);
            }
        }
        if kind == Kind::Protective {
            places.push(table);
        }
        let what = if read.best().is_some() {
            "a GPT"
        } else {
            "a damaged GPT"
        };
        all.push(found(what, places));
    }
    match kind {
        Kind::Partitioned | Kind::Hybrid => all.push(found("an MBR", vec![table])),
        Kind::Protective if !read.is_present() => {
            all.push(found("a protective MBR without a GPT", vec![table]));
        }
        _ => {}
    }
    all
}

fn label(disk: &mut Disk<'_>) -> Option<Found> {
    let unit = disk.media.sector_size_bytes;
    let head = disk.read(0, 2 * u64::from(unit)).ok()?;
    let places = bsd::Location::ALL.map(|location| location.offset_bytes(unit));
    let magic = bsd::MAGIC.to_le_bytes();
    let at = |offset: &u64| {
        head.get(*offset as usize..)
            .is_some_and(|b| b.starts_with(&magic))
    };
    let mut places: Vec<u64> = places.into_iter().filter(at).collect();
    places.dedup();
    let offset = *places.first()?;
    Some(Found {
        what: "a BSD disklabel".to_owned(),
        places: places
            .into_iter()
            .map(|offset_bytes| Place {
                offset_bytes,
                length_bytes: 4,
            })
            .collect(),
        owns_sector0: offset < u64::from(unit),
    })
}

fn apple_map(disk: &mut Disk<'_>) -> Option<Found> {
    let media = disk.media;
    apm::Map::read(media, &mut disk.reader()).ok()?;
    let unit = u64::from(media.sector_size_bytes);
    let place = |offset_bytes| Place {
        offset_bytes,
        length_bytes: 2,
    };
    Some(Found {
        what: "an Apple partition map".to_owned(),
        places: vec![place(0), place(unit)],
        owns_sector0: true,
    })
}

/// From which end a place is counted.
#[derive(Clone, Copy)]
enum At {
    /// So many bytes from the beginning.
    Start(u64),
    /// So many bytes before the end, rounded down to a multiple of the second number.
    End(u64, u64),
}

/// What it is, where its magic stands, the magic.
type Signature = (&'static str, &'static [At], &'static [u8]);

const KIB: u64 = 1024;

#[rustfmt::skip]
const SIGNATURES: &[Signature] = &[
    ("an XFS file system", &[At::Start(0)], b"XFSB"),
    ("a Btrfs file system", &[At::Start(64 * KIB + 64)], b"_BHRfS_M"),
    ("a UFS1 file system", &[At::Start(8 * KIB + 1372), At::Start(256 * KIB + 1372)],
        &0x0001_1954_u32.to_le_bytes()),
    ("a UFS2 file system",
        &[At::Start(64 * KIB + 1372), At::Start(8 * KIB + 1372), At::Start(256 * KIB + 1372)],
        &0x1954_0119_u32.to_le_bytes()),
    ("an NTFS file system", &[At::Start(3)], b"NTFS    "),
    ("an exFAT file system", &[At::Start(3)], b"EXFAT   "),
    ("a FAT file system", &[At::Start(54)], b"FAT12   "),
    ("a FAT file system", &[At::Start(54)], b"FAT16   "),
    ("a FAT file system", &[At::Start(82)], b"FAT32   "),
    ("an ISO 9660 file system", &[At::Start(32 * KIB + 1)], b"CD001"),
    ("a UDF file system", &[At::Start(32 * KIB + 1)], b"BEA01"),
    ("an HFS+ file system", &[At::Start(KIB)], b"H+\x00\x04"),
    ("an HFS+ file system", &[At::Start(KIB)], b"HX\x00\x05"),
    ("an APFS container", &[At::Start(32)], b"NXSB"),
    ("an F2FS file system", &[At::Start(KIB)], &0xf2f5_2010_u32.to_le_bytes()),
    ("a SquashFS file system", &[At::Start(0)], b"hsqs"),
    ("a swap area",
        &[At::Start(4 * KIB - 10), At::Start(8 * KIB - 10), At::Start(16 * KIB - 10),
          At::Start(64 * KIB - 10)],
        b"SWAPSPACE2"),
    ("an LVM physical volume", &[At::Start(0), At::Start(512), At::Start(1024), At::Start(1536)],
        b"LABELONE"),
    ("a LUKS container", &[At::Start(0)], b"LUKS\xba\xbe"),
    ("a LUKS container", &[At::Start(16 * KIB), At::Start(32 * KIB)], b"SKUL\xba\xbe"),
    ("a part of an md RAID", &[At::Start(0), At::Start(4 * KIB), At::End(8 * KIB, 4 * KIB),
        At::End(64 * KIB, 64 * KIB)],
        &0xa92b_4efc_u32.to_le_bytes()),
];

/// ZFS keeps a ring of uberblocks in the second half of each of four labels of 256 KiB, two at
/// either end.
const ZFS_LABEL_BYTES: u64 = 256 * KIB;
const ZFS_RING_STEP_BYTES: u64 = KIB;
const ZFS_MAGIC: u64 = 0x00ba_b10c;
/// How much of the beginning is looked at: two labels of ZFS, which is more than any other needs.
const HEAD_BYTES: u64 = 2 * ZFS_LABEL_BYTES;

/// The two ends of a media.
struct Ends {
    head: Vec<u8>,
    tail: Vec<u8>,
    tail_offset: u64,
    size_bytes: u64,
}

impl Ends {
    fn read(disk: &mut Disk<'_>) -> Result<Self, EditError> {
        let unit = u64::from(disk.media.sector_size_bytes);
        let size_bytes = disk.media.sectors * unit;
        let tail_offset = size_bytes.saturating_sub(HEAD_BYTES) / ZFS_LABEL_BYTES * ZFS_LABEL_BYTES;
        let doing = format!("looking for what {} carries", disk.name);
        let failed = |error| EditError::Io { doing, error };
        let head = disk.read(0, HEAD_BYTES);
        let tail =
            head.and_then(|head| Ok((head, disk.read(tail_offset, size_bytes - tail_offset)?)));
        let (head, tail) = tail.map_err(failed)?;
        Ok(Self {
            head,
            tail,
            tail_offset,
            size_bytes,
        })
    }

    /// The bytes from a place on, as far as they were read.
    fn from(&self, offset: u64) -> &[u8] {
        let inside = |bytes: &'_ [u8], start: u64| {
            let skip = usize::try_from(offset.checked_sub(start)?).ok()?;
            (skip < bytes.len()).then_some(skip)
        };
        match (inside(&self.head, 0), inside(&self.tail, self.tail_offset)) {
            (Some(skip), _) => &self.head[skip..],
            (None, Some(skip)) => &self.tail[skip..],
            (None, None) => &[],
        }
    }

    fn offset(&self, at: At) -> Option<u64> {
        match at {
            At::Start(offset) => Some(offset),
            At::End(distance, unit) => (self.size_bytes / unit * unit).checked_sub(distance),
        }
    }

    fn find(&self, places: &[At], magic: &[u8]) -> Vec<Place> {
        let offsets = places.iter().filter_map(|at| self.offset(*at));
        let found = offsets.filter(|offset| self.from(*offset).starts_with(magic));
        let place = |offset_bytes| Place {
            offset_bytes,
            length_bytes: magic.len() as u64,
        };
        found.map(place).collect()
    }
}

fn signatures(disk: &mut Disk<'_>) -> Result<Vec<Found>, EditError> {
    let unit = u64::from(disk.media.sector_size_bytes);
    let ends = Ends::read(disk)?;
    let mut all: Vec<Found> = Vec::new();
    let mut add = |what: &str, places: Vec<Place>| {
        if let Some(first) = places.first() {
            let owns_sector0 = first.offset_bytes < SIZE_BYTES as u64;
            all.push(Found {
                what: what.to_owned(),
                places,
                owns_sector0,
            });
        }
    };
    for (what, places, magic) in SIGNATURES {
        add(what, ends.find(places, magic));
    }
    add(
        extended(&ends),
        ends.find(&[At::Start(KIB + 56)], &[0x53, 0xef]),
    );
    add("a part of a ZFS pool", uberblocks(&ends));
    let metadata = ends.size_bytes.saturating_sub(unit);
    if let Some(class) = geom_class(ends.from(metadata)) {
        let place = Place {
            offset_bytes: metadata,
            length_bytes: 16,
        };
        add(&format!("metadata of {class}"), vec![place]);
    }
    Ok(all)
}

/// Which of the three an ext file system is: a journal makes it ext3 (feature bit 2 of the
/// compatible ones), extents, 64 bits or flexible groups make it ext4 (Linux `fs/ext4/ext4.h`).
fn extended(ends: &Ends) -> &'static str {
    let word = |at: u64| {
        let bytes = ends.from(KIB + at).first_chunk::<4>();
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    };
    let (compatible, incompatible) = (word(92), word(96));
    match (compatible & 0x4 != 0, incompatible & 0x2c0 != 0) {
        (_, true) => "an ext4 file system",
        (true, false) => "an ext3 file system",
        (false, false) => "an ext2 file system",
    }
}

/// The places of all uberblocks, in either byte order.
fn uberblocks(ends: &Ends) -> Vec<Place> {
    let last = ends.size_bytes / ZFS_LABEL_BYTES * ZFS_LABEL_BYTES;
    let labels = [
        Some(0),
        Some(ZFS_LABEL_BYTES),
        last.checked_sub(2 * ZFS_LABEL_BYTES),
        last.checked_sub(ZFS_LABEL_BYTES),
    ];
    let mut labels: Vec<u64> = labels.into_iter().flatten().collect();
    labels.sort_unstable();
    labels.dedup();
    let ring = |label: &u64| {
        let first = label + ZFS_LABEL_BYTES / 2;
        (first..label + ZFS_LABEL_BYTES).step_by(ZFS_RING_STEP_BYTES as usize)
    };
    let signed = |offset: &u64| {
        let bytes = ends.from(*offset);
        bytes.starts_with(&ZFS_MAGIC.to_le_bytes()) || bytes.starts_with(&ZFS_MAGIC.to_be_bytes())
    };
    let places = labels.iter().flat_map(ring).filter(signed);
    places
        .map(|offset_bytes| Place {
            offset_bytes,
            length_bytes: 8,
        })
        .collect()
}

/// The class whose metadata fills a provider's last sector: `GEOM::MIRROR` and its relatives.
fn geom_class(sector: &[u8]) -> Option<String> {
    let magic = sector
        .get(..16)
        .filter(|magic| magic.starts_with(b"GEOM::"))?;
    let name = magic.iter().take_while(|byte| byte.is_ascii_graphic());
    Some(name.map(|byte| char::from(*byte)).collect())
}
