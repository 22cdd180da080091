//! Reads the volume header in block 0.
//!
//! Rules of Linux' `sgi_partition`: magic and checksum; every partition with a length is listed
//! under its number, the header itself and the whole disk included.

use super::NAME;
use crate::part::look;
use crate::part::slicer::{self, Part, Table};
use ugeom_format::sgi::{ENTRIES, Error, Header, Partition, SgiType};
use ugeom_stack::{Plan, TasteError, Taster};

pub(super) fn taste(taster: &mut Taster<'_>) -> Result<Option<Plan>, TasteError> {
    let Some(sector) = look::sector0_of_512(NAME, taster)? else { return Ok(None) };
    let header = match Header::decode(&sector) {
        Ok(header) => header,
        Err(error @ Error::Checksum { .. }) => return Err(look::unusable(NAME, taster, error)),
        Err(error) => return look::nothing(NAME, taster, error),
    };
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let table = Table {
        scheme: NAME,
        config: vec![
            fact("entries", ENTRIES.to_string()),
            fact("root", (u32::from(header.root) + 1).to_string()),
            fact("swap", (u32::from(header.swap) + 1).to_string()),
            fact("bootfile", header.boot_file.clone()),
        ],
        damage: Vec::new(),
        parts: header
            .slices()
            .map(|(number, slice)| part(taster.name(), number, slice))
            .collect(),
    };
    slicer::plan(taster, table)
}

fn part(below: &str, number: usize, slice: &Partition) -> Part {
    let kind = slice.kind.description().map(str::to_owned);
    Part {
        name: format!("{below}s{number}"),
        index: number as u32,
        first: u64::from(slice.start),
        sectors: u64::from(slice.blocks),
        kind: kind.unwrap_or_else(|| format!("!{}", slice.kind.0)),
        raw_kind: slice.kind.0.to_string(),
        covers_others: slice.kind == SgiType::VOLUME,
        ..Part::default()
    }
}
