//! The content of a partition that a shorter length would cut off.
//!
//! Signatures identify the content ([`ugeom_format::content`]), superblocks give its length
//! ([`ugeom_format::search`]). Content that states no length (LUKS, ZFS) reaches to the end of its
//! partition: the whole of it may be in use.

use super::error::{Cut, EditError};
use super::found::identify_within;
use super::media::Disk;
use std::ops::Range;
use ugeom_format::Media;
use ugeom_format::content::{Content, ContentUse};
use ugeom_format::mbr::PartType;
use ugeom_format::plan::{Part, Scheme, Table};
use ugeom_format::search::{Place, Search};

/// Superblocks that state a length begin before this, bytes: the last one is UFS' at 256 KiB.
const SUPERBLOCKS_BYTES: u64 = 512 << 10;
/// A superblock: the magic number of UFS stands 1372 bytes behind its first byte.
const SUPERBLOCK_BYTES: u64 = 1536;

impl Disk<'_> {
    /// Refuses a new length of a partition that cuts off its content.
    pub(super) fn refuse_cut(
        &mut self,
        provider: &str,
        part: &Part,
        sectors: u64,
    ) -> Result<(), EditError> {
        let unit = u64::from(self.media.sector_size_bytes);
        // Partitions of damaged disks may reach past the end.
        let start = part.start.saturating_mul(unit).min(self.size_bytes);
        let place = start
            ..start
                .saturating_add(part.sectors.saturating_mul(unit))
                .min(self.size_bytes);
        let new_bytes = sectors.saturating_mul(unit);
        if place.end - place.start <= new_bytes {
            return Ok(());
        }
        let mut cut = self.contents_cut(&place, new_bytes)?;
        cut.extend(self.tables_cut(part, &place, new_bytes));
        match cut.is_empty() {
            true => Ok(()),
            false => Err(EditError::Cut {
                provider: provider.to_owned(),
                new_bytes,
                cut,
            }),
        }
    }

    fn contents_cut(&mut self, place: &Range<u64>, new_bytes: u64) -> Result<Vec<Cut>, EditError> {
        let length = place.end - place.start;
        let found = match identify_within(self, place) {
            (contents, None) => contents,
            (_, Some(error)) => {
                let doing = format!("searching a partition of {} for known content", self.name);
                return Err(EditError::Io { doing, error });
            }
        };
        let places = self.superblocks(place);
        let behind = new_bytes..length;
        let cut = found.iter().filter_map(|content| {
            let reach_bytes = match content.stands_in(&behind) {
                // As metadata in the last sector does.
                true => Some(length),
                false if content.usage == ContentUse::Table => return None,
                false => reach(content, &places),
            };
            let is_cut = reach_bytes.is_none_or(|bytes| bytes > new_bytes);
            is_cut.then(|| Cut {
                what: content.to_string(),
                reach_bytes,
            })
        });
        Ok(cut.collect())
    }

    /// The superblocks at the start of a partition, with the length they state.
    fn superblocks(&mut self, place: &Range<u64>) -> Vec<Place> {
        let length = place.end - place.start;
        let mut search = Search::new(length, self.media.sector_size_bytes);
        let mut read = |offset: u64, wanted: usize| {
            let read = self.look_within(place, offset, wanted);
            read.map_err(|error| error.to_string())
        };
        // An unreadable structure states no length, and is refused for that.
        let bytes = read(0, SUPERBLOCKS_BYTES.min(length) as usize).unwrap_or_default();
        search.look(0, &bytes, &mut read);
        search.at_start().cloned().collect()
    }

    /// The tables in a partition with partitions of their own behind its new end.
    fn tables_cut(&mut self, part: &Part, place: &Range<u64>, new_bytes: u64) -> Vec<Cut> {
        let unit = u64::from(self.media.sector_size_bytes);
        let Some(media) = Media::new(place.end - place.start, self.media.sector_size_bytes) else {
            return Vec::new();
        };
        let geometry = self.geometry;
        let mut read = |lba: u64, count: u64| {
            let bytes = lba.checked_mul(unit).zip(count.checked_mul(unit));
            let (offset, length) = bytes.ok_or("the sector number is too large")?;
            let read = self.look_within(place, offset, length as usize);
            read.map_err(|error| error.to_string())
        };
        let kind = part.raw_kind.parse().map(PartType);
        let tables = match kind.is_ok_and(PartType::is_extended) {
            true => Vec::from_iter(Table::load(Scheme::Ebr, media, &mut read)),
            false => Table::load_all(media, geometry, &mut read),
        };
        let cut = tables.iter().filter_map(|table| {
            let ends = table.parts().into_iter().map(|inner| {
                let end = inner.start.saturating_add(inner.sectors);
                end.saturating_mul(unit)
            });
            let reach_bytes = ends.max().filter(|&end| end > new_bytes)?;
            Some(Cut {
                what: format!("the {} of its partitions", table.scheme()),
                reach_bytes: Some(reach_bytes),
            })
        });
        cut.collect()
    }
}

/// How far a structure states to reach.
fn reach(content: &Content, places: &[Place]) -> Option<u64> {
    let is_its = |place: &&Place| {
        place.signs.iter().any(|sign| {
            let block = sign.offset_bytes..sign.offset_bytes + SUPERBLOCK_BYTES;
            content.stands_in(&block)
        })
    };
    let lengths = places.iter().filter(is_its).map(|place| place.length_bytes);
    lengths.max().flatten()
}
