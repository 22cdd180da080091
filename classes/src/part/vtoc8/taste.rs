//! Reads the label in sector 0.
//!
//! Rules of `g_sunlabel_taste`: every partition with a length is listed, `c` included, whatever its
//! tag is; a wrong checksum is no label. As in GEOM_PART, a label is a leaf. The label counts in
//! sectors of 512 bytes, also on a CD-ROM with sectors of 2048, as in `g_sunlabel_taste` and Linux.

use super::NAME;
use crate::part::look;
use crate::part::slicer::{self, Part, Table};
use ugeom_format::bsd::letter;
use ugeom_format::vtoc8::{ENTRIES, Error, Label, RAW_PARTITION, SIZE_BYTES, Slice};
use ugeom_stack::{Plan, TasteError, Taster};

pub(super) fn taste(taster: &mut Taster<'_>) -> Result<Option<Plan>, TasteError> {
    let Some(media) = look::ground(NAME, taster)? else { return Ok(None) };
    let sector = match taster.sector(0) {
        Ok(sector) => sector,
        Err(error) => return look::nothing(NAME, taster, error),
    };
    let label = match Label::decode(&sector) {
        Ok(label) => label,
        Err(error @ (Error::Checksum { .. } | Error::Geometry { .. })) => {
            return Err(look::unusable(NAME, taster, error));
        }
        Err(error) => return look::nothing(NAME, taster, error),
    };
    let unit = u64::from(media.sector_size_bytes) / SIZE_BYTES as u64;
    let fits = |slice: &Slice| (slice.start | slice.sectors).is_multiple_of(unit);
    if let Some(slice) = label.slices().find(|slice| !fits(slice)) {
        let problem = format!(
            "partition {} of the Sun label is not made of whole sectors of {} bytes",
            letter(slice.index),
            media.sector_size_bytes
        );
        return Err(look::unusable(NAME, taster, problem));
    }
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
            .map(|slice| Part {
                first: slice.start / unit,
                sectors: slice.sectors / unit,
                covers_others: slice.index == RAW_PARTITION && label.raw_is_whole(),
                ..part(taster.name(), &slice)
            })
            .collect(),
    };
    slicer::plan(taster, table)
}

fn part(below: &str, slice: &Slice) -> Part {
    let fstype = slice.tag.description();
    Part {
        name: format!("{below}{}", letter(slice.index)),
        index: slice.index as u32 + 1,
        kind: slice.tag.to_string(),
        raw_kind: slice.tag.0.to_string(),
        config: Vec::from_iter(fstype.map(|name| ("fstype".to_owned(), name.to_owned()))),
        ..Part::default()
    }
}
