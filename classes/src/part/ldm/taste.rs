//! Reads the database of a disk with an MBR or a GPT.
//!
//! Rules of `g_part_ldm_probe` and `_read`: an MBR with a partition of type 66 and a header in
//! sector 6, or a GPT with a partition of type `ms-ldm-metadata`. Simple volumes and spanned ones
//! whose pieces are all on this disk are providers; each copy of a mirror is one, too, and marked.
//! Pieces of striped volumes and of volumes on several disks are listed as `ms-ldm-data` with their
//! place, as in FreeBSD, so that it is seen what they belong to.

use super::{NAME, span};
use crate::part::gpt;
use crate::part::look;
use crate::part::slicer::{self, Part, Table};
use std::sync::Arc;
use ugeom_format::Media;
use ugeom_format::ldm::{Database, Extent, Found, Layout, Listed, Place};
use ugeom_format::mbr::{Mbr, PartType};
use ugeom_stack::{Geom, Plan, TasteError, Taster};

pub(super) fn taste(taster: &mut Taster<'_>) -> Result<Option<Plan>, TasteError> {
    let Some(media) = look::ground_of_512(NAME, taster)? else { return Ok(None) };
    if let Err(error) = taster.sector(0) {
        return look::nothing(NAME, taster, error);
    }
    let Some(Found { place, data }) = Found::look(media, &mut look::reader(taster)) else {
        let problem = "neither an MBR with a partition of type 66 and a header in sector 6, nor a \
                       GPT with a partition of type ms-ldm-metadata";
        return look::nothing(NAME, taster, problem);
    };
    let database = Database::read(media, place, &mut look::reader(taster));
    let database = match database {
        Ok(database) => database,
        Err(error) => return Err(look::unusable(NAME, taster, error)),
    };
    let suffix = data.map(|(number, data, mbr)| format!("{}{number}", gpt::letter(data.kind, mbr)));
    let prefix = format!("{}{}", taster.name(), suffix.unwrap_or_default());
    let (parts, pieces) = parts(&prefix, &database);
    let header = &database.header;
    let table = Table {
        scheme: NAME,
        config: vec![
            ("first".to_owned(), header.start.to_string()),
            (
                "last".to_owned(),
                (header.start + header.sectors)
                    .saturating_sub(1)
                    .to_string(),
            ),
            ("database".to_owned(), header.database.to_string()),
            ("group".to_owned(), header.group_name.clone()),
            ("rawuuid".to_owned(), header.disk_guid.to_string()),
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
        config: vec![("pieces".to_owned(), extents.len().to_string())],
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
