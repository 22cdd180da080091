//! VTOC8: Sun's disk label, partitions `a` to `h`.
//!
//! ```text
//! sector 0 [ label ]   a |------|  b |---|  d |----------|     all begin with a cylinder
//!          c |-------------------------------------------|
//! ```
//! A read of `md0a`: [`crate::part::slicer::Slicer`] adds the partition's first sector and forwards
//! to `md0`; a write likewise. The layout is described in `ugeom_format::vtoc8`.
//!
//! Rules of `g_sunlabel_taste`: every partition with a length is listed, `c` included, whatever its
//! tag is; a wrong checksum is no label. As in GEOM_PART, a label is a leaf. The label counts in
//! sectors of 512 bytes, also on a CD-ROM with sectors of 2048, as in `g_sunlabel_taste` and Linux.

use crate::entry::Miss;
use crate::part::look;
use crate::part::slicer::{self, Part, Table};
use ugeom_format::bsd::letter;
use ugeom_format::vtoc8::{ENTRIES, Error, Label, RAW_PARTITION, SIZE_BYTES, Slice};
use ugeom_stack::{Plan, Taster};

/// gpart's name of the scheme. The GEOM of 2002 called the class SUN.
pub use super::names::VTOC8 as NAME;

pub(crate) fn taste(taster: &mut Taster<'_>) -> Result<Plan, Miss> {
    let media = look::ground(NAME, taster)?;
    let sector = taster.sector(0).map_err(Miss::absent)?;
    let label = Label::decode(&sector).map_err(|error| {
        let is_damaged = matches!(error, Error::Checksum { .. } | Error::Geometry { .. });
        Miss::absent_if(!is_damaged, error)
    })?;
    let unit = u64::from(media.sector_size_bytes) / SIZE_BYTES as u64;
    let fits = |slice: &Slice| (slice.start | slice.sectors).is_multiple_of(unit);
    if let Some(slice) = label.slices().find(|slice| !fits(slice)) {
        let problem = format!(
            "partition {} of the Sun label is not made of whole sectors of {} bytes",
            letter(slice.index),
            media.sector_size_bytes
        );
        return Err(Miss::unusable(problem));
    }
    let table = Table {
        scheme: NAME,
        config: vec![
            ("entries", ENTRIES.to_string()),
            ("cylinders", label.cylinders.to_string()),
            ("alternate", label.alternate_cylinders.to_string()),
            ("heads", label.heads.to_string()),
            ("sectors", label.track_sectors.to_string()),
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
        config: Vec::from_iter(fstype.map(|name| ("fstype", name.to_owned()))),
        ..Part::default()
    }
}
