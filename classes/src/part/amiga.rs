//! AMIGA: the rigid disk block, partitions `s1` and up in the order of their chain.
//!
//! ```text
//! sector 0 .. 15 [ RDSK ] -> [ PART ] -> [ PART ]   s1 |------|   s2 |------------|
//! ```
//! A read of `md0s1`: [`crate::part::slicer::Slicer`] adds the partition's first sector and
//! forwards to `md0`; a write likewise. The layout is described in `ugeom_format::amiga`.
//!
//! Rules of Linux' `amiga_partition`, with all checksums verified: partitions are counted in the
//! order of their chain. A chain that breaks gives the partitions before the break.

use crate::entry::Miss;
use crate::part::look;
use crate::part::slicer::{self, Part, Table};
use ugeom_format::amiga::{self, Error, Partition, SEARCHED_SECTORS};
use ugeom_stack::{Plan, Taster};

/// FreeBSD has no such scheme; Linux' name.
pub use super::names::AMIGA as NAME;

pub(crate) fn taste(taster: &mut Taster<'_>) -> Result<Plan, Miss> {
    let media = look::ground_of_512(NAME, taster)?;
    // One read in place of sixteen; the sectors are then taken from it.
    let head = SEARCHED_SECTORS.min(media.sectors) * u64::from(amiga::SECTOR_BYTES);
    taster.read(0, head).map_err(Miss::absent)?;
    let found = amiga::Table::read(media, &mut look::reader(taster));
    let found = found.map_err(|error| Miss::absent_if(matches!(error, Error::NotFound), error))?;
    if let (true, Some(problem)) = (found.partitions.is_empty(), &found.broken) {
        return Err(Miss::unusable(problem));
    }
    let table = Table {
        scheme: NAME,
        config: vec![
            ("block", found.sector.to_string()),
            ("blocksize", found.block_bytes.to_string()),
        ],
        damage: Vec::from_iter(found.broken.as_ref().map(ToString::to_string)),
        parts: slicer::numbered(taster.name(), &found.partitions, part),
    };
    slicer::plan(taster, table)
}

fn part(below: &str, number: u32, slice: &Partition) -> Part {
    let mut config = vec![("record", slice.sector.to_string())];
    if slice.is_bootable {
        config.push(("attrib", "bootable".to_owned()));
    }
    Part {
        name: format!("{below}s{number}"),
        index: number,
        first: slice.start,
        sectors: slice.sectors,
        kind: slice.dos_type.to_string(),
        raw_kind: format!("{:#010x}", slice.dos_type.0),
        label: Some(slice.name.clone()).filter(|name| !name.is_empty()),
        config,
        ..Part::default()
    }
}
