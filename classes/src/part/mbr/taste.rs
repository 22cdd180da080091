//! Looks for an MBR in sector 0.
//!
//! Rules of `g_mbr_taste`: only where no other table stands below; boot1's made-up table means
//! nothing; entries of type 0xEE are left out, so a protective MBR makes no provider at all and the
//! disk is left to `gpt`; everything else is listed, also when it overlaps or reaches past the end.
//! The entries of a hybrid MBR are listed beside those of the GPT.

use super::{EXTENDED_ORDINAL, NAME};
use crate::part::look;
use crate::part::slicer::{self, Part, Table};
use ugeom_format::mbr::{ENTRIES, Entry, Mbr};
use ugeom_stack::{AttributeValue, Plan, TasteError, Taster};

pub(super) fn taste(taster: &mut Taster<'_>) -> Result<Option<Plan>, TasteError> {
    if look::media(taster).is_none() || !look::may_stand(taster, NAME) {
        return Ok(None);
    }
    // The one class that says so: without sector 0 nothing can be found on the disk.
    let sector = taster.sector(0).map_err(|error| {
        let problem = format!("the table's sector cannot be read: {error}");
        look::unusable(NAME, taster, problem)
    })?;
    let Ok(mbr) = Mbr::decode(&sector) else {
        return Ok(None);
    };
    let unit = u64::from(taster.sectorsize_bytes());
    let mut extended = 0;
    let parts = mbr.slices().map(|(number, entry)| {
        let mut part = part(taster.name(), unit, number, entry);
        if entry.kind.is_extended() {
            extended += 1;
            let ordinal = (EXTENDED_ORDINAL, AttributeValue::Number(extended));
            part.attributes.push(ordinal);
        }
        part
    });
    let table = Table {
        scheme: NAME,
        config: vec![("entries".to_owned(), ENTRIES.to_string())],
        damage: Vec::new(),
        parts: parts.collect(),
    };
    Ok(slicer::plan(taster, table))
}

fn part(below: &str, unit: u64, number: usize, entry: &Entry) -> Part {
    let offset = u64::from(entry.start) * unit;
    let mut config = Vec::new();
    if entry.is_active() {
        config.push(("attrib".to_owned(), "active".to_owned()));
    }
    Part {
        name: format!("{below}s{number}"),
        index: number as u32,
        first: u64::from(entry.start),
        sectors: u64::from(entry.sectors),
        kind: entry.kind.to_string(),
        raw_kind: entry.kind.0.to_string(),
        config,
        attributes: vec![
            ("MBR::type", AttributeValue::Number(i64::from(entry.kind.0))),
            ("MBR::offset", AttributeValue::Number(offset as i64)),
        ],
        ..Part::default()
    }
}
