//! APM: the Apple partition map, partitions `s1` and up.
//!
//! ```text
//! block 0 [ ER ]  1 [ PM ]  2 [ PM ] ...   s1 |------|   s2 |------------|
//! ```
//! A read of `md0s1`: [`crate::part::slicer::Slicer`] adds the partition's first block and forwards
//! to `md0`; a write likewise. The map itself is one of its partitions. The layout is described in
//! `ugeom_format::apm`.
//!
//! Rules of `g_apple_taste`: every entry that counts as many blocks as the first one is listed
//! under the number of its block, free space and the map itself included. A descriptor for other
//! blocks than the provider's sectors is none of this class: on a CD image that also carries an MBR
//! it is silent, else a warning names the sector size that fits. When sector 0 also holds an MBR
//! with partitions, those are `s1` and up, and the map's are named `m1` and up.

use crate::entry::Miss;
use crate::part::look;
use crate::part::slicer::{self, Part, Table};
use ugeom_format::apm::{Descriptor, Entry, Error, Map};
use ugeom_format::mbr::Mbr;
use ugeom_stack::{Plan, Taster};

/// gpart's name of the scheme. The GEOM of 2002 called the class APPLE.
pub use super::names::APM as NAME;

pub(crate) fn taste(taster: &mut Taster<'_>) -> Result<Plan, Miss> {
    let media = look::ground(NAME, taster)?;
    let sector = taster.sector(0).map_err(Miss::absent)?;
    Descriptor::decode(&sector).map_err(Miss::absent)?;
    let map = Map::read(media, &mut look::reader(taster));
    let taken = Mbr::decode(&sector).is_ok_and(|mbr| mbr.slices().next().is_some());
    let map = map.map_err(|error| match error {
        _ if look::is_nested(taster) => Miss::absent(error),
        Error::BlockSize { found, .. } if !taken && has_entry(taster, found) => {
            Miss::unusable(format!("{error}: ?sectorsize={found} opens it"))
        }
        Error::BlockSize { .. } => Miss::absent(error),
        error => Miss::unusable(error),
    })?;
    let letter = if taken { 'm' } else { 's' };
    let parts = map
        .slices()
        .map(|(number, entry)| part(taster.name(), letter, number, entry));
    let table = Table {
        scheme: NAME,
        config: vec![("entries", map.entries.len().to_string())],
        damage: Vec::new(),
        parts: parts.collect(),
    };
    slicer::plan(taster, table)
}

/// Whether the first entry of a map stands behind a block of that size.
fn has_entry(taster: &mut Taster<'_>, block_bytes: u16) -> bool {
    let (at, unit) = (u64::from(block_bytes), u64::from(taster.sectorsize_bytes()));
    let sector = taster.sector(at / unit).unwrap_or_default();
    let entry = sector.get((at % unit) as usize..).unwrap_or_default();
    at.is_power_of_two() && entry.starts_with(b"PM")
}

fn part(below: &str, letter: char, number: u32, entry: &Entry) -> Part {
    let name = entry.kind_name();
    Part {
        name: format!("{below}{letter}{number}"),
        index: number,
        first: u64::from(entry.start),
        sectors: u64::from(entry.blocks),
        kind: entry.alias().map_or_else(|| name.clone(), str::to_owned),
        raw_kind: name,
        label: Some(entry.label()).filter(|label| !label.is_empty()),
        ..Part::default()
    }
}
