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
use ugeom_format::gpt::{Gpt, types};
use ugeom_format::ldm::{Component, DATABASE_SECTORS, Database, Extent, Layout, Place, Volume};
use ugeom_format::mbr::{Kind, Mbr, PartType};
use ugeom_format::{Media, ldm};
use ugeom_stack::{Geom, Plan, TasteError, Taster};

/// Most pieces of a volume that is read as one.
const MOST_PIECES: usize = 32;

pub(super) fn taste(taster: &mut Taster<'_>) -> Result<Option<Plan>, TasteError> {
    let Some(media) = look::ground_of_512(NAME, taster)? else {
        return Ok(None);
    };
    let sector = match taster.sector(0) {
        Ok(sector) => sector,
        Err(error) => return look::nothing(NAME, taster, error),
    };
    let Some((place, suffix)) = place(taster, media, &sector) else {
        let problem = "neither an MBR with a partition of type 66 and a header in sector 6, nor a \
                       GPT with a partition of type ms-ldm-metadata";
        return look::nothing(NAME, taster, problem);
    };
    let database = Database::read(media, place, &mut look::reader(taster));
    let database = match database {
        Ok(database) => database,
        Err(error) => return Err(look::unusable(NAME, taster, error)),
    };
    let prefix = format!("{}{suffix}", taster.name());
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
    let Some(media) = media.filter(|_| mbr.entries.iter().any(shell)) else {
        return false;
    };
    let database = Database::read(media, Place::Mbr, &mut look::reader(taster));
    database.is_ok_and(|database| !parts("", &database).0.is_empty())
}

/// Where the database is, and what stands between the disk's name and the volume's.
fn place(taster: &mut Taster<'_>, media: Media, sector: &[u8]) -> Option<(Place, String)> {
    let mbr = Mbr::decode(sector).ok()?;
    if mbr.entries.iter().any(|entry| entry.kind == PartType::LDM) {
        let header = taster.sector(ldm::HEADER_SECTOR).ok()?;
        return header
            .starts_with(b"PRIVHEAD")
            .then(|| (Place::Mbr, String::new()));
    }
    if !matches!(mbr.kind(), Kind::Protective | Kind::Hybrid) {
        return None;
    }
    let gpt = Gpt::read(media, &mut look::reader(taster));
    let (_, table) = gpt.best()?;
    let of_type = |kind: &str| {
        let kind = types::parse(kind);
        table
            .partitions()
            .find(|(_, entry)| Some(entry.kind) == kind)
    };
    let (_, metadata) =
        of_type("ms-ldm-metadata").filter(|it| it.1.sectors() >= DATABASE_SECTORS)?;
    let (number, data) = of_type("ms-ldm-data")?;
    let letter = gpt::letter(data.kind, mbr.kind());
    let database = metadata.first;
    Some((Place::Gpt { database }, format!("{letter}{number}")))
}

/// The partitions, and for each the pieces that it consists of, none for one piece.
fn parts(prefix: &str, database: &Database) -> (Vec<Part>, Vec<Vec<Extent>>) {
    let mut found: Vec<(Part, Vec<Extent>)> = Vec::new();
    for volume in &database.volumes {
        for component in &volume.components {
            found.extend(copy(volume, component));
        }
    }
    for (number, (part, _)) in (1..).zip(&mut found) {
        part.index = number;
        part.name = format!("{prefix}s{number}");
    }
    found.into_iter().unzip()
}

/// What is listed of one copy of a volume.
fn copy(volume: &Volume, component: &Component) -> Vec<(Part, Vec<Extent>)> {
    let extents = &component.extents;
    let name = &volume.name;
    let kind = |number| PartType(number).to_string();
    let common = Part {
        label: Some(name.clone()),
        ..Part::default()
    };
    if is_whole(volume, component) {
        let copies = volume.components.len();
        let mark = (copies > 1).then(|| format!("one of {copies} copies of volume {name}"));
        let single = extents.len() == 1;
        let part = Part {
            // A volume of several pieces has no first sector.
            first: extents
                .first()
                .filter(|_| single)
                .map_or(0, |extent| extent.start),
            sectors: volume.sectors,
            kind: kind(volume.kind),
            raw_kind: volume.kind.to_string(),
            mark,
            config: vec![("pieces".to_owned(), extents.len().to_string())],
            covers_others: !single,
            ..common
        };
        let pieces = if single { Vec::new() } else { extents.clone() };
        return vec![(part, pieces)];
    }
    let what = match component.layout {
        Layout::Striped => "a striped volume",
        Layout::Raid => "a RAID-5 volume",
        Layout::Spanned | Layout::Unknown(_) => "a volume that is not all on this disk",
    };
    let piece = |extent: &Extent| Part {
        first: extent.start,
        sectors: extent.sectors,
        kind: kind(PartType::LDM.0),
        raw_kind: PartType::LDM.0.to_string(),
        mark: Some(format!("part of {name}, {what}")),
        ..common.clone()
    };
    let here = extents.iter().filter(|extent| extent.is_here);
    here.map(|extent| (piece(extent), Vec::new())).collect()
}

/// All pieces are on this disk, and follow one another in the volume without a gap.
fn is_whole(volume: &Volume, component: &Component) -> bool {
    let mut end = Some(0);
    for extent in &component.extents {
        let follows = extent.is_here && end == Some(extent.volume_offset);
        end = extent
            .volume_offset
            .checked_add(extent.sectors)
            .filter(|_| follows);
    }
    let single = component.extents.len() == 1;
    let spanned = single || component.layout == Layout::Spanned;
    let few = component.extents.len() <= MOST_PIECES;
    spanned && few && end.is_some_and(|end| end == volume.sectors && end > 0)
}
