//! Where labels stand: looking for one, and putting one into its sector.

use super::{Error, HEADER_SIZE_BYTES, Label, MAX_PARTITIONS, PARTITION_SIZE_BYTES};
use crate::bytes;
use crate::media::{Media, SectorRead};

/// Where a label stands, in the order in which GEOM looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location {
    /// At the beginning of sector 1.
    SectorOne,
    /// At byte 512, inside sector 0 of a disk with larger sectors.
    Byte512,
    /// At byte 64 of sector 0: Alpha.
    Alpha,
}

/// Sizes of sectors that are tried where a label may be for a disk with larger ones.
const LARGER_SECTORS_BYTES: [u32; 3] = [1024, 2048, 4096];

impl Location {
    /// All places, in GEOM's order.
    pub const ALL: [Location; 3] = [Location::SectorOne, Location::Byte512, Location::Alpha];

    /// Byte offset from the beginning of the disk or slice.
    pub fn offset_bytes(self, sector_size_bytes: u32) -> u64 {
        match self {
            Location::SectorOne => u64::from(sector_size_bytes),
            Location::Byte512 => 512,
            Location::Alpha => 64,
        }
    }

    /// Number of partitions that fit between the label's header and the end of
    /// its sector.
    pub(crate) fn max_partitions(self, sector_size_bytes: u32) -> usize {
        let used = match self {
            Location::SectorOne => 0,
            other => other.offset_bytes(sector_size_bytes) as usize,
        };
        let room = (sector_size_bytes as usize).saturating_sub(used + HEADER_SIZE_BYTES);
        (room / PARTITION_SIZE_BYTES).min(MAX_PARTITIONS)
    }
}

/// Looks for a label in `head`, the first two sectors of a disk or slice, at
/// each place in GEOM's order. One with a wrong checksum is taken only when no
/// place has one with a right checksum.
///
/// # Errors
/// [`Error::NotFound`] when no place holds a magic number; otherwise what is
/// wrong with the first label that does.
pub fn find(head: &[u8], sector_size_bytes: u32) -> Result<(Location, Label), Error> {
    let mut second_best = Err(Error::NotFound);
    for location in Location::ALL {
        if location == Location::Byte512 && sector_size_bytes == 512 {
            continue;
        }
        let offset = location.offset_bytes(sector_size_bytes);
        let unit = u64::from(sector_size_bytes.max(1));
        let end = (offset / unit + 1) * unit;
        let span = offset as usize..(end as usize).min(head.len());
        match Label::decode(head.get(span).unwrap_or(&[]), offset, sector_size_bytes) {
            Ok(label) if label.wrong_checksum.is_none() => return Ok((location, label)),
            Ok(label) if second_best.is_err() => second_best = Ok((location, label)),
            Err(Error::Short { .. } | Error::Magic { field: 0, .. }) => {}
            Err(error) if second_best == Err(Error::NotFound) => second_best = Err(error),
            Ok(_) | Err(_) => {}
        }
    }
    second_best
}

/// Tries larger sectors: of which size the label is in sector 1, with a right checksum.
pub fn other_sector_size(media: Media, read: &mut SectorRead<'_>) -> Option<u32> {
    let own = media.sector_size_bytes.max(1);
    let fits = |size: &u32| {
        let Ok(bytes) = read(u64::from(size / own), u64::from(size.div_ceil(own))) else {
            return false;
        };
        let label = Label::decode(&bytes, u64::from(*size), *size);
        label.is_ok_and(|it| it.sector_size_bytes == *size && it.wrong_checksum.is_none())
    };
    let larger = LARGER_SECTORS_BYTES.into_iter().filter(|size| *size > own);
    larger.into_iter().find(fits)
}

/// The checksum of sector 0 that the Alpha's console wants at byte 504: the
/// sum of the 63 64-bit words before it.
pub fn alpha_checksum(sector: &[u8]) -> u64 {
    (0..63).fold(0, |sum: u64, word| {
        sum.wrapping_add(bytes::u64_le(sector, word * 8))
    })
}

/// Puts an encoded label into the sector that holds it (sector 1, or sector 0
/// for the other places) and, on the Alpha, brings that sector's checksum up
/// to date. All other bytes stay.
///
/// # Errors
/// [`Error::TooMany`] when the label does not fit at that place.
pub fn put(sector: &mut [u8], location: Location, label: &Label) -> Result<(), Error> {
    let size = u32::try_from(sector.len()).unwrap_or(u32::MAX);
    let (found, most) = (label.partitions.len(), location.max_partitions(size));
    if found > most {
        return Err(Error::TooMany { found, most });
    }
    let at = match location {
        Location::SectorOne => 0,
        other => other.offset_bytes(size) as usize,
    };
    bytes::put(sector, at, &label.encode()?);
    if location == Location::Alpha {
        let sum = alpha_checksum(sector);
        bytes::put_u64_le(sector, 504, sum);
    }
    Ok(())
}
