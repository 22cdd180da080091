//! Reads the label in sector 0.
//!
//! Rules of `g_sunlabel_taste`: every partition with a length is listed, `c` included, whatever its
//! tag is; a wrong checksum is no label. As in GEOM_PART, a label is a leaf.

use super::NAME;
use crate::part::look;
use crate::part::slicer::{self, Part, Table};
use ugeom_format::bsd::letter;
use ugeom_format::vtoc8::{ENTRIES, Error, Label, RAW_PARTITION, Slice};
use ugeom_stack::{Plan, TasteError, Taster};

pub(super) fn taste(taster: &mut Taster<'_>) -> Result<Option<Plan>, TasteError> {
    let Some(sector) = look::sector0_of_512(NAME, taster)? else { return Ok(None) };
    let label = match Label::decode(&sector) {
        Ok(label) => label,
        Err(error @ (Error::Checksum { .. } | Error::Geometry { .. })) => {
            return Err(look::unusable(NAME, taster, error));
        }
        Err(error) => return look::nothing(NAME, taster, error),
    };
    let number = |name: &str, value: u16| (name.to_owned(), value.to_string());
    let table = Table {
        scheme: NAME,
        config: vec![
            ("entries".to_owned(), ENTRIES.to_string()),
            number("cylinders", label.cylinders),
            number("alternate", label.alternate_cylinders),
            number("heads", label.heads),
            number("sectors", label.track_sectors),
        ],
        damage: Vec::new(),
        parts: label
            .slices()
            .map(|slice| part(taster.name(), &slice))
            .collect(),
    };
    slicer::plan(taster, table)
}

fn part(below: &str, slice: &Slice) -> Part {
    let fstype = slice.tag.description();
    Part {
        name: format!("{below}{}", letter(slice.index)),
        index: slice.index as u32 + 1,
        first: slice.start,
        sectors: slice.sectors,
        kind: slice.tag.to_string(),
        raw_kind: slice.tag.0.to_string(),
        config: Vec::from_iter(fstype.map(|name| ("fstype".to_owned(), name.to_owned()))),
        covers_others: slice.index == RAW_PARTITION,
        ..Part::default()
    }
}
