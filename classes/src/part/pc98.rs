//! PC98: NEC's partition table, slices `s1` to `s16`.
//!
//! ```text
//! sector 0 [ boot code | 55 AA ]  1 [ 16 entries ]   s1 |------|   s2 |------------|
//! ```
//! A read of `md0s1`: [`crate::part::slicer::Slicer`] adds the partition's first sector and
//! forwards to `md0`; a write likewise. The layout is described in `ugeom_format::pc98`.
//!
//! Rules of `g_pc98_taste`: a cylinder is what the disk says (`GEOM::fwheads`, `GEOM::fwsectors`),
//! and 8 heads of 17 sectors where it says nothing, which is named unless the entries confirm it;
//! an entry whose last cylinder is 0, or whose first and last place are the same, is none. The
//! check of a table is stricter (`ugeom_format::pc98`).

use crate::entry::Miss;
use crate::part::look;
use crate::part::slicer::{self, Part, Table};
use ugeom_format::pc98::{self, ENTRIES, Geometry, Slice};
use ugeom_stack::{AttributeValue, Plan, Taster};

/// GEOM's name of the class, and gpart's of the scheme.
pub use super::names::PC98 as NAME;

pub(crate) fn taste(taster: &mut Taster<'_>) -> Result<Plan, Miss> {
    look::ground_of_512(NAME, taster)?;
    let head = look::two_sectors(taster)?;
    let decoded = pc98::Table::decode(&head).map_err(Miss::absent)?;
    let (geometry, is_stated) = geometry(taster);
    let mut config = vec![
        ("entries", ENTRIES.to_string()),
        ("fwheads", geometry.heads.to_string()),
        ("fwsectors", geometry.track_sectors.to_string()),
    ];
    if !is_stated && let Some(hint) = hint(geometry, decoded.geometry_of_ends()) {
        config.push(("hint", hint));
    }
    let table = Table {
        scheme: NAME,
        config,
        damage: Vec::new(),
        parts: decoded
            .slices(geometry)
            .map(|slice| part(taster.name(), &slice))
            .collect(),
    };
    slicer::plan(taster, table)
}

/// The geometry to compute with, and whether the disk states all of it.
fn geometry(taster: &mut Taster<'_>) -> (Geometry, bool) {
    let mut ask = |name| {
        let answer = look::number(taster, name).and_then(|number| u32::try_from(number).ok());
        answer.filter(|number| *number != 0)
    };
    let (heads, sectors) = (ask("GEOM::fwheads"), ask("GEOM::fwsectors"));
    let usual = Geometry::DEFAULT;
    let geometry = Geometry {
        heads: heads.unwrap_or(usual.heads),
        track_sectors: sectors.unwrap_or(usual.track_sectors),
    };
    (geometry, heads.and(sectors).is_some())
}

/// The warning that places may be wrong because the disk states no geometry.
fn hint(assumed: Geometry, of_ends: Option<Geometry>) -> Option<String> {
    let Geometry {
        heads,
        track_sectors,
    } = assumed;
    let known =
        format!("the disk states no geometry: {heads} heads of {track_sectors} sectors assumed");
    match of_ends {
        Some(ends) if ends == assumed => None,
        Some(ends) => Some(format!(
            "{known}; the partitions end as with ?fwheads={}&fwsectors={}",
            ends.heads, ends.track_sectors
        )),
        None => Some(format!("{known}; ?fwheads= and ?fwsectors= set it")),
    }
}

fn part(below: &str, slice: &Slice<'_>) -> Part {
    let entry = slice.entry;
    let attributes = [
        (entry.is_bootable(), "bootable"),
        (entry.is_active(), "active"),
    ];
    let set: Vec<&str> = attributes.iter().filter(|it| it.0).map(|it| it.1).collect();
    let raw = u16::from(entry.mid) | u16::from(entry.sid) << 8;
    Part {
        name: format!("{below}s{}", slice.number),
        index: slice.number as u32,
        first: slice.start,
        sectors: slice.sectors,
        kind: entry.kind().to_string(),
        raw_kind: entry.kind().0.to_string(),
        label: Some(entry.label()).filter(|label| !label.is_empty()),
        config: Vec::from_iter((!set.is_empty()).then(|| ("attrib", set.join(",")))),
        attributes: vec![
            ("PC98::type", AttributeValue::Number(i64::from(raw))),
            (
                "PC98::offset",
                AttributeValue::Number((slice.start * 512) as i64),
            ),
        ],
        ..Part::default()
    }
}
