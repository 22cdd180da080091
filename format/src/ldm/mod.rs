//! The database of Windows' logical disk manager: the volumes of dynamic disks.
//!
//! ```text
//! sector 6, and twice at the end       database, 1 MiB: the last one of the disk, or the GPT
//! PRIVHEAD                             partition of type ms-ldm-metadata
//!   12 version 2.11 or 2.12 (u32)        sectors 1 and 2 and near its end: TOCBLOCK
//!   48 disk's GUID as text                 36 "config" 46 first sector u64, 54 sectors u64
//!  176 group's GUID as text                70 "log"    80 first sector u64, 88 sectors u64
//!  240 group's name                      config: VMDB, then VBLKs of 128 bytes each
//!  283 first sector u64, 291 sectors       4 number of VBLKs u32 | 8 bytes a VBLK u32
//!  299 database u64, 307 its sectors      16 state u16 | 18 version u32 | 22 group's name
//! ```
//! Integers are big-endian; sectors have 512 bytes. Volumes consist of components, components of
//! partitions, which lie on disks ([`vblk`]). Sources: FreeBSD `sys/geom/part/g_part_ldm.c`; Linux
//! `block/partitions/ldm.[ch]`; the Linux-NTFS project's *LDM documentation*;
//! `docs/formats/ldm.md`.

mod error;
mod listed;
mod vblk;

pub use error::Error;
pub use listed::{Found, Listed};

use crate::bytes;
use crate::gpt::Guid;
use crate::media::{Media, SectorRead, Unreadable};
use vblk::Records;

/// Bytes of a sector; other disks have no such database.
pub const SECTOR_BYTES: u32 = 512;
/// Sectors of the database.
pub const DATABASE_SECTORS: u64 = 2048;
/// The sector of the first header of a disk with an MBR.
pub const HEADER_SECTOR: u64 = 6;

/// Where in the database the other two headers are.
const HEADERS: [u64; 2] = [1856, 2047];
const HEADER_MAGIC: [u8; 8] = *b"PRIVHEAD";
const CONTENTS_MAGIC: [u8; 8] = *b"TOCBLOCK";
const DATABASE_MAGIC: [u8; 4] = *b"VMDB";
const VERSIONS: [u32; 2] = [0x2_000b, 0x2_000c];
const DATABASE_VERSION: u32 = 0x4_000a;
/// The database is in a consistent state.
const CONSISTENT: u16 = 1;

/// Where the database is to be looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At the end of a disk with an MBR.
    Mbr,
    /// In the GPT partition that begins with this sector.
    Gpt {
        /// First sector of that partition, which holds the database.
        database: u64,
    },
}

/// The header: which disk of which group it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// GUID of the disk, by which the database finds it.
    pub disk_guid: Guid,
    /// The GUID of the group that it belongs to.
    pub group_guid: Guid,
    /// Name of the disk group.
    pub group_name: String,
    /// First sector for volumes.
    pub start: u64,
    /// Length of the range for volumes in sectors.
    pub sectors: u64,
    /// First sector of the database.
    pub database: u64,
    contents: [u64; 2],
    config_sectors: u64,
    log_sectors: u64,
}

/// How a component's partitions make up its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Stripes over all partitions, as RAID 0.
    Striped,
    /// One after the other.
    Spanned,
    /// Stripes with rotating parity.
    Raid,
    /// A number without a meaning here.
    Unknown(u8),
}

/// A piece of a disk that belongs to a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// First sector on the disk; the disk's own numbers where it is another disk.
    pub start: u64,
    /// Length of the extent in sectors.
    pub sectors: u64,
    /// Where in the volume it begins, in sectors.
    pub volume_offset: u64,
    /// It lies on the disk that the database was read from.
    pub is_here: bool,
}

/// One copy of a volume's data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Component {
    /// How its extents belong together.
    pub layout: Layout,
    /// Its extents, in the order of the volume.
    pub extents: Vec<Extent>,
}

/// A volume of the group, on this disk or others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// Its name in the group, `Volume1`.
    pub name: String,
    /// By which volumes are ordered.
    pub number: u8,
    /// The type that its partition would have in an MBR.
    pub kind: u8,
    /// Its size in sectors.
    pub sectors: u64,
    /// Its copies: more than one of a mirror.
    pub components: Vec<Component>,
}

/// A database of the Logical Disk Manager, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    /// The header that was used.
    pub header: Header,
    /// The volumes of the whole group, by number.
    pub volumes: Vec<Volume>,
}

impl Header {
    /// Decodes a private header; `sector` is where it was read, for messages.
    ///
    /// # Errors
    /// Magic, version, GUIDs, or places that no disk of `sectors` sectors has.
    pub fn decode(data: &[u8], sector: u64, place: Place, sectors: u64) -> Result<Header, Error> {
        signed(data, sector, &HEADER_MAGIC)?;
        let version = bytes::u32_be(data, 12);
        if !VERSIONS.contains(&version) {
            let found = version;
            return Err(Error::Version { sector, found });
        }
        let guid = |at: usize| {
            let text = bytes::c_string(data.get(at..at + 64).unwrap_or_default());
            let unknown = |_| Error::Guid {
                sector,
                offset: at,
                found: text.clone(),
            };
            text.parse::<Guid>().map_err(unknown)
        };
        let number = |at| bytes::u64_be(data, at);
        let header = Header {
            disk_guid: guid(48)?,
            group_guid: guid(176)?,
            group_name: bytes::c_string(data.get(240..271).unwrap_or_default()),
            start: number(283),
            sectors: number(291),
            database: number(299),
            contents: [number(315), number(323)],
            config_sectors: number(339),
            log_sectors: number(347),
        };
        let data_end = header.start.checked_add(header.sectors);
        let database_end = header.database.checked_add(DATABASE_SECTORS);
        let wrong = match (data_end, database_end) {
            _ if number(307) != DATABASE_SECTORS => Some("the size of the database"),
            (Some(end), _) if end > sectors => Some("the end of the volumes"),
            (Some(end), _) if place == Place::Mbr && end > header.database.saturating_add(1) => {
                Some("the end of the volumes")
            }
            (Some(_), Some(end)) if end <= sectors => None,
            (None, _) => Some("the end of the volumes"),
            (_, _) => Some("the end of the database"),
        };
        let inside = |sectors: Option<u64>| sectors.is_some_and(|end| end < DATABASE_SECTORS);
        let wrong = wrong.or_else(|| {
            let contents = header.contents.iter().all(|at| *at < DATABASE_SECTORS);
            let sizes = inside(header.config_sectors.checked_add(header.log_sectors));
            (!contents || !sizes).then_some("the parts of the database")
        });
        match wrong {
            Some(what) => Err(Error::Place { sector, what }),
            None => Ok(header),
        }
    }
}

impl Database {
    /// Reads the headers, the table of contents and all records: at most 1 MiB.
    ///
    /// # Errors
    /// The defect of the first header, or of the database.
    pub fn read(media: Media, place: Place, read: &mut SectorRead<'_>) -> Result<Database, Error> {
        if media.sector_size_bytes != SECTOR_BYTES {
            let found = media.sector_size_bytes;
            return Err(Error::SectorSize { found });
        }
        let header = find_header(media, place, read)?;
        // On a GPT the partition is where the database is, whatever the header says.
        let base = match place {
            Place::Mbr => header.database,
            Place::Gpt { database } => database,
        };
        let config = read_contents(media, &header, base, read)?;
        let volumes = read_records(media, &header, base.saturating_add(config), read)?;
        Ok(Database { header, volumes })
    }
}

/// The header in sector 6 if both others agree or are missing; else the others, as in FreeBSD.
fn find_header(media: Media, place: Place, read: &mut SectorRead<'_>) -> Result<Header, Error> {
    let mut at = |sector| {
        let data = sectors(media, sector, 1, read)?;
        Header::decode(&data, sector, place, media.sectors)
    };
    let first = match place {
        Place::Mbr => at(HEADER_SECTOR),
        Place::Gpt { database } => at(database.saturating_add(HEADERS[1])),
    };
    let base = match (&first, place) {
        (_, Place::Gpt { database }) => database,
        (Ok(header), Place::Mbr) => header.database,
        (Err(_), Place::Mbr) => media.sectors.saturating_sub(DATABASE_SECTORS),
    };
    let others: Vec<Header> = HEADERS
        .iter()
        .filter_map(|offset| at(base.checked_add(*offset)?).ok())
        .collect();
    match others.as_slice() {
        [] => first,
        [one] => Ok(one.clone()),
        [one, other, ..] if one == other => Ok(one.clone()),
        _ => Err(Error::HeadersDiffer),
    }
}

/// Where the configuration is, counted from the database.
fn read_contents(
    media: Media,
    header: &Header,
    base: u64,
    read: &mut SectorRead<'_>,
) -> Result<u64, Error> {
    let mut last = None;
    for offset in header.contents {
        let sector = base.saturating_add(offset);
        let found = sectors(media, sector, 1, read).and_then(|data| {
            signed(&data, sector, &CONTENTS_MAGIC)?;
            let named = data[36..].starts_with(b"config") && data[70..].starts_with(b"log");
            let (config, count) = (bytes::u64_be(&data, 46), bytes::u64_be(&data, 54));
            let end = config.checked_add(count);
            let fits = end.is_some_and(|end| end < DATABASE_SECTORS);
            match named && fits && count == header.config_sectors {
                true => Ok(config),
                false => Err(Error::Place {
                    sector,
                    what: "the table of contents",
                }),
            }
        });
        match found {
            Ok(config) => return Ok(config),
            Err(error) => last = last.or(Some(error)),
        }
    }
    Err(last.unwrap_or(Error::HeadersDiffer))
}

fn read_records(
    media: Media,
    header: &Header,
    config: u64,
    read: &mut SectorRead<'_>,
) -> Result<Vec<Volume>, Error> {
    let data = sectors(media, config, header.config_sectors.max(1), read)?;
    signed(&data, config, &DATABASE_MAGIC)?;
    let (version, state) = (bytes::u32_be(&data, 18), bytes::u16_be(&data, 16));
    if version != DATABASE_VERSION {
        let (sector, found) = (config, version);
        return Err(Error::Version { sector, found });
    }
    if state != CONSISTENT {
        return Err(Error::State { found: state });
    }
    let (count, size) = (bytes::u32_be(&data, 4), bytes::u32_be(&data, 8));
    let covered = u64::from(count) * u64::from(size);
    if !(64..=SECTOR_BYTES).contains(&size)
        || !SECTOR_BYTES.is_multiple_of(size)
        || covered > data.len() as u64
    {
        return Err(Error::Records { count, size });
    }
    let records = data.get(SECTOR_BYTES as usize..covered as usize);
    let records = Records::parse(records.unwrap_or_default(), size as usize)?;
    records.volumes(header)
}

fn signed(data: &[u8], sector: u64, magic: &'static [u8]) -> Result<(), Error> {
    match data.starts_with(magic) && data.len() >= SECTOR_BYTES as usize {
        true => Ok(()),
        false => Err(Error::Magic {
            sector,
            found: bytes::take(data, 0),
            expected: std::str::from_utf8(magic).unwrap_or_default(),
        }),
    }
}

fn sectors(
    media: Media,
    sector: u64,
    count: u64,
    read: &mut SectorRead<'_>,
) -> Result<Vec<u8>, Error> {
    let inside = sector
        .checked_add(count)
        .is_some_and(|end| end <= media.sectors);
    let data = match inside {
        true => read(sector, count),
        false => Err(format!("the media has {} sectors", media.sectors)),
    };
    Ok(data.map_err(|reason| Unreadable { sector, reason })?)
}

#[cfg(test)]
mod tests;
