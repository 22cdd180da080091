//! Reads the root sector and follows its extended partitions.
//!
//! Rules of Linux' `atari_partition`; there is no magic number, so all entries in use must be of a
//! known type and lie on the disk. A chain that breaks gives the partitions before the break.

use super::NAME;
use crate::part::look;
use crate::part::slicer::{self, Part, Table};
use ugeom_format::atari::{self, Partition};
use ugeom_stack::{Plan, TasteError, Taster};

pub(super) fn taste(taster: &mut Taster<'_>) -> Result<Option<Plan>, TasteError> {
    let Some(media) = look::ground_of_512(NAME, taster)? else { return Ok(None) };
    let found = atari::Table::read(media, &mut look::reader(taster));
    let found = match found {
        Ok(found) => found,
        Err(error) => return look::nothing(NAME, taster, error),
    };
    let table = Table {
        scheme: NAME,
        config: vec![("sectors".to_owned(), found.disk_sectors.to_string())],
        damage: Vec::from_iter(found.broken.as_ref().map(ToString::to_string)),
        parts: slicer::numbered(taster.name(), &found.partitions, part),
    };
    slicer::plan(taster, table)
}

fn part(below: &str, number: u32, slice: &Partition) -> Part {
    let kind: String = slice.kind.iter().copied().map(char::from).collect();
    let attrib = ("attrib".to_owned(), "bootable".to_owned());
    Part {
        name: format!("{below}s{number}"),
        index: number,
        first: slice.start,
        sectors: slice.sectors,
        raw_kind: kind.clone(),
        kind,
        config: Vec::from_iter(slice.is_bootable.then_some(attrib)),
        ..Part::default()
    }
}
