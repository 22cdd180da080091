//! ATARI: the root sector of AHDI and ICD, partitions `s1` and up.
//!
//! ```text
//! sector 0 [ root ]   s1 |------|   XGM [ root | s2 ---- ][ root | s3 -- ]   s4 |------|
//! ```
//! A read of `md0s1`: [`crate::part::slicer::Slicer`] adds the partition's first sector and
//! forwards to `md0`; a write likewise. The layout is described in `ugeom_format::atari`.
//!
//! Reads the root sector and follows its extended partitions.
//!
//! Rules of Linux' `atari_partition`; there is no magic number, so all entries in use must be of a
//! known type and lie on the disk. A chain that breaks gives the partitions before the break.

use crate::entry::Miss;
use crate::part::look;
use crate::part::slicer::{self, Part, Table};
use ugeom_format::atari::{self, Partition};
use ugeom_stack::{Plan, Taster};

/// FreeBSD has no such scheme; Linux' name.
pub use super::names::ATARI as NAME;

pub(crate) fn taste(taster: &mut Taster<'_>) -> Result<Plan, Miss> {
    let media = look::ground_of_512(NAME, taster)?;
    let found = atari::Table::read(media, &mut look::reader(taster));
    let found = found.map_err(Miss::absent)?;
    let table = Table {
        scheme: NAME,
        config: vec![("sectors", found.disk_sectors.to_string())],
        damage: Vec::from_iter(found.broken.as_ref().map(ToString::to_string)),
        parts: slicer::numbered(taster.name(), &found.partitions, part),
    };
    slicer::plan(taster, table)
}

fn part(below: &str, number: u32, slice: &Partition) -> Part {
    let kind: String = slice.kind.iter().copied().map(char::from).collect();
    let attrib = ("attrib", "bootable".to_owned());
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
