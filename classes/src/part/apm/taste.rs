//! Reads the map behind a driver descriptor.
//!
//! Rules of `g_apple_taste`: every entry that counts as
//! many blocks as the first one is listed under the number of its block, free space and the map
//! itself included. A descriptor for other blocks than the provider's sectors is nothing of ours:
//! on a CD image that also carries an MBR it is silent, else a warning names the sector size that
//! fits. When sector 0 also holds an MBR with partitions, those
//! are `s1` and up, and the map's are named `m1` and up.

use super::NAME;
use crate::part::look;
use crate::part::slicer::{self, Part, Table};
use ugeom_format::apm::{Descriptor, Entry, Error, Map};
use ugeom_format::mbr::Mbr;
use ugeom_stack::{Plan, TasteError, Taster};

pub(super) fn taste(taster: &mut Taster<'_>) -> Result<Option<Plan>, TasteError> {
    let Some(media) = look::ground(NAME, taster)? else { return Ok(None) };
    let sector = match taster.sector(0) {
        Ok(sector) => sector,
        Err(error) => return look::nothing(NAME, taster, error),
    };
    if let Err(error) = Descriptor::decode(&sector) {
        return look::nothing(NAME, taster, error);
    }
    let map = Map::read(media, &mut look::reader(taster));
    let taken = Mbr::decode(&sector).is_ok_and(|mbr| mbr.slices().next().is_some());
    let map = match map {
        Ok(map) => map,
        Err(error @ Error::BlockSize { found, .. }) => {
            let is_quiet = taken || look::is_nested(taster) || !has_entry(taster, found);
            if is_quiet {
                return look::nothing(NAME, taster, error);
            }
            let problem = format!("{error}: ?sectorsize={found} opens it");
            return Err(look::unusable(NAME, taster, problem));
        }
        Err(error) if look::is_nested(taster) => return look::nothing(NAME, taster, error),
        Err(error) => return Err(look::unusable(NAME, taster, error)),
    };
    let letter = if taken { 'm' } else { 's' };
    let parts = map
        .slices()
        .map(|(number, entry)| part(taster.name(), letter, number, entry));
    let table = Table {
        scheme: NAME,
        config: vec![("entries".to_owned(), map.entries.len().to_string())],
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
