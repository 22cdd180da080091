//! Follows the chain behind a rigid disk block.
//!
//! Rules of Linux' `amiga_partition`, with all checksums verified: partitions are counted in the
//! order of their chain. A chain that breaks gives the partitions before the break.

use super::NAME;
use crate::part::look;
use crate::part::slicer::{self, Part, Table};
use ugeom_format::amiga::{self, Error, Partition, SEARCHED_SECTORS};
use ugeom_stack::{Plan, TasteError, Taster};

pub(super) fn taste(taster: &mut Taster<'_>) -> Result<Option<Plan>, TasteError> {
    let Some(media) = look::ground_of_512(NAME, taster)? else { return Ok(None) };
    // One read in place of sixteen; the sectors are then taken from it.
    let head = SEARCHED_SECTORS.min(media.sectors) * u64::from(amiga::SECTOR_BYTES);
    if let Err(error) = taster.read(0, head) {
        return look::nothing(NAME, taster, error);
    }
    let found = amiga::Table::read(media, &mut look::reader(taster));
    let found = match found {
        Ok(found) => found,
        Err(error @ Error::NotFound) => return look::nothing(NAME, taster, error),
        Err(error) => return Err(look::unusable(NAME, taster, error)),
    };
    if let (true, Some(problem)) = (found.partitions.is_empty(), &found.broken) {
        return Err(look::unusable(NAME, taster, problem));
    }
    let table = Table {
        scheme: NAME,
        config: vec![
            ("block".to_owned(), found.sector.to_string()),
            ("blocksize".to_owned(), found.block_bytes.to_string()),
        ],
        damage: Vec::from_iter(found.broken.as_ref().map(ToString::to_string)),
        parts: slicer::numbered(taster.name(), &found.partitions, part),
    };
    slicer::plan(taster, table)
}

fn part(below: &str, number: u32, slice: &Partition) -> Part {
    let mut config = vec![("record".to_owned(), slice.sector.to_string())];
    if slice.is_bootable {
        config.push(("attrib".to_owned(), "bootable".to_owned()));
    }
    Part {
        name: format!("{below}s{number}"),
        index: number,
        first: slice.start,
        sectors: slice.sectors,
        kind: slice.dos_type.to_string(),
        raw_kind: format!("{:#010x}", slice.dos_type.0),
        label: Some(slice.name.clone()).filter(|name| !name.is_empty()),
        config,
        ..Part::default()
    }
}
