//! SGI: the volume header of IRIX, partitions `s1` to `s16`.
//!
//! ```text
//! block 0 [ header ]   s1 |------|   s2 |------------|   s9 |--|   s11: the whole disk
//! ```
//! A read of `md0s1`: [`crate::part::slicer::Slicer`] adds the partition's first sector and
//! forwards to `md0`; a write likewise. The layout is described in `ugeom_format::sgi`.
//!
//! Rules of Linux' `sgi_partition`: magic and checksum; every partition with a length is listed
//! under its number, the header itself and the whole disk included.

use crate::entry::Miss;
use crate::part::look;
use crate::part::slicer::{self, Part, Table};
use ugeom_format::sgi::{ENTRIES, Error, Header, Partition, SgiType};
use ugeom_stack::{Plan, Taster};

/// FreeBSD has no such scheme; Linux' name.
pub use super::names::SGI as NAME;

pub(crate) fn taste(taster: &mut Taster<'_>) -> Result<Plan, Miss> {
    let sector = look::sector0_of_512(NAME, taster)?;
    let header = Header::decode(&sector)
        .map_err(|error| Miss::absent_if(!matches!(error, Error::Checksum { .. }), error))?;
    let table = Table {
        scheme: NAME,
        config: vec![
            ("entries", ENTRIES.to_string()),
            ("root", (u32::from(header.root) + 1).to_string()),
            ("swap", (u32::from(header.swap) + 1).to_string()),
            ("bootfile", header.boot_file.clone()),
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
