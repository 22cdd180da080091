//! LDM: Windows' logical disk manager, volumes `s1` and up.
//!
//! ```text
//! [ MBR | .. | header ]   s1 |------|   s2 |--|  |-----| s2   [ database 1 MiB ]
//! ```
//! A read of `md0s1`: [`crate::part::slicer::Slicer`] adds the volume's first sector and forwards
//! to `md0`; of a volume of several pieces, [`span::Spanned`] divides it among them. On a disk with
//! a GPT the volumes are those of the partition that they lie in, `md0p3s1`. The layout is in
//! `ugeom_format::ldm`.
//!
//! Reads the database of a disk with an MBR or a GPT.
//!
//! Rules of `g_part_ldm_probe` and `_read`: an MBR with a partition of type 66 and a header in
//! sector 6, or a GPT with a partition of type `ms-ldm-metadata`. Simple volumes and spanned ones
//! whose pieces are all on this disk are providers; each copy of a mirror is one, too, and marked.
//! Pieces of striped volumes and of volumes on several disks are listed as `ms-ldm-data` with their
//! place, as in FreeBSD, so that their owner is seen.

mod span;

use crate::entry::Miss;
use crate::part::gpt;
use crate::part::look;
use crate::part::slicer::{self, Part, Table};
use std::sync::Arc;
use ugeom_format::Media;
use ugeom_format::ldm::{Database, Extent, Found, Layout, Listed, Place};
use ugeom_format::mbr::{Mbr, PartType};
use ugeom_stack::{Geom, Plan, Taster};

/// gpart's name of the scheme.
pub use super::names::LDM as NAME;

pub(crate) fn taste(taster: &mut Taster<'_>) -> Result<Plan, Miss> {
    let media = look::ground_of_512(NAME, taster)?;
    taster.sector(0).map_err(Miss::absent)?;
    let Some(Found { place, data }) = Found::look(media, &mut look::reader(taster)) else {
        let problem = "neither an MBR with a partition of type 66 and a header in sector 6, nor a \
                       GPT with a partition of type ms-ldm-metadata";
        return Err(Miss::absent(problem));
    };
    let database = Database::read(media, place, &mut look::reader(taster));
    let database = database.map_err(Miss::unusable)?;
    let suffix = data.map(|(number, data, mbr)| format!("{}{number}", gpt::letter(data.kind, mbr)));
    let prefix = format!("{}{}", taster.name(), suffix.unwrap_or_default());
    let (parts, pieces) = parts(&prefix, &database);
    let header = &database.header;
    let table = Table {
        scheme: NAME,
        config: vec![
            ("first", header.start.to_string()),
            (
                "last",
                (header.start + header.sectors)
                    .saturating_sub(1)
                    .to_string(),
            ),
            ("database", header.database.to_string()),
            ("group", header.group_name.clone()),
            ("rawuuid", header.disk_guid.to_string()),
        ],
        damage: Vec::new(),
        parts,
    };
    let spanned = pieces.iter().any(|pieces| !pieces.is_empty());
    slicer::plan_as(taster, table, |slicer| -> Arc<dyn Geom> {
        match spanned {
            true => Arc::new(span::Spanned::new(slicer, &pieces, 512)),
            false => Arc::new(slicer),
        }
    })
}

/// Whether the partitions of an MBR are only the shell of a database: then its volumes are listed,
/// and not the partitions, as in FreeBSD.
pub(in crate::part) fn stands(taster: &mut Taster<'_>, mbr: &Mbr) -> bool {
    let shell = |entry: &ugeom_format::mbr::Entry| entry.kind == PartType::LDM;
    let sector_bytes = taster.sectorsize_bytes();
    let media = Media::new(taster.mediasize_bytes(), sector_bytes);
    let Some(media) = media.filter(|_| mbr.entries.iter().any(shell)) else { return false };
    let database = Database::read(media, Place::Mbr, &mut look::reader(taster));
    database.is_ok_and(|database| !parts("", &database).0.is_empty())
}

/// The partitions, and for each the pieces that it consists of, none for one piece.
fn parts(prefix: &str, database: &Database) -> (Vec<Part>, Vec<Vec<Extent>>) {
    let listed = (1..).zip(database.listed());
    let parts = listed.map(|(index, listed)| {
        let common = Part {
            index,
            name: format!("{prefix}s{index}"),
            label: Some(listed.volume.name.clone()),
            kind: listed.kind().to_string(),
            raw_kind: listed.kind().0.to_string(),
            ..Part::default()
        };
        match listed.is_whole {
            true => whole(&listed, common),
            false => (piece(&listed, common), Vec::new()),
        }
    });
    parts.unzip()
}

/// A copy of a volume.
fn whole(listed: &Listed<'_>, common: Part) -> (Part, Vec<Extent>) {
    let (extents, copies) = (&listed.extents, listed.volume.components.len());
    let name = &listed.volume.name;
    let single = extents.len() == 1;
    let first = extents.first().filter(|_| single);
    let part = Part {
        // A volume of several pieces has no first sector.
        first: first.map_or(0, |extent| extent.start),
        sectors: listed.volume.sectors,
        mark: (copies > 1).then(|| format!("one of {copies} copies of volume {name}")),
        config: vec![("pieces", extents.len().to_string())],
        covers_others: !single,
        ..common
    };
    let pieces = if single { Vec::new() } else { extents.clone() };
    (part, pieces)
}

/// A piece of a volume that cannot be read as a whole.
fn piece(listed: &Listed<'_>, common: Part) -> Part {
    let what = match listed.component.layout {
        Layout::Striped => "a striped volume",
        Layout::Raid => "a RAID-5 volume",
        Layout::Spanned | Layout::Unknown(_) => "a volume that is not all on this disk",
    };
    let extent = listed.extents.first();
    Part {
        first: extent.map_or(0, |extent| extent.start),
        sectors: extent.map_or(0, |extent| extent.sectors),
        mark: Some(format!("part of {}, {what}", listed.volume.name)),
        ..common
    }
}
