//! The place of a disk's database, and the listed part of its volumes.

use super::{Component, DATABASE_SECTORS, Database, Extent, HEADER_SECTOR, Layout, Place, Volume};
use crate::gpt::{Entry, Gpt, types};
use crate::mbr::{self, Mbr, PartType};
use crate::media::{Media, SectorRead};

/// Most pieces of a volume that is listed as one.
const MOST_PIECES: usize = 32;

/// A disk that has a database.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Where the database lies.
    pub place: Place,
    /// On a GPT: the number and the entry of the partition that holds the volumes, and what the MBR
    /// before it is.
    pub data: Option<(usize, Entry, mbr::MbrKind)>,
}

impl Found {
    /// Looks for it: an MBR with a partition of type 66 and a header in sector 6, or a GPT with a
    /// partition of type `ms-ldm-metadata` and one of type `ms-ldm-data`.
    pub fn look(media: Media, read: &mut SectorRead<'_>) -> Option<Self> {
        let mbr = Mbr::decode(&read(0, 1).ok()?).ok()?;
        if mbr.entries.iter().any(|entry| entry.kind == PartType::LDM) {
            let place = Place::Mbr;
            let header = read(HEADER_SECTOR, 1).ok()?;
            let is_there = header.starts_with(b"PRIVHEAD");
            return is_there.then_some(Self { place, data: None });
        }
        if !matches!(mbr.kind(), mbr::MbrKind::Protective | mbr::MbrKind::Hybrid) {
            return None;
        }
        let gpt = Gpt::read(media, read);
        let (_, table) = gpt.best()?;
        let of_type = |kind: &str| {
            let kind = types::parse(kind);
            let mut parts = table.partitions();
            parts.find(|(_, entry)| Some(entry.kind) == kind)
        };
        let (_, metadata) =
            of_type("ms-ldm-metadata").filter(|it| it.1.sectors() >= DATABASE_SECTORS)?;
        let (number, data) = of_type("ms-ldm-data")?;
        let place = Place::Gpt {
            database: metadata.first,
        };
        let data = Some((number, data.clone(), mbr.kind()));
        Some(Self { place, data })
    }
}

/// One line of a listing: a copy of a volume, or a piece of one that cannot be read as a whole.
#[derive(Debug, Clone)]
pub struct Listed<'a> {
    /// The volume, of which this is a copy or a piece.
    pub volume: &'a Volume,
    /// The copy of it.
    pub component: &'a Component,
    /// Its pieces on this disk.
    pub extents: Vec<Extent>,
    /// The pieces are all of the volume.
    pub is_whole: bool,
}

impl Listed<'_> {
    /// The type that a partition of an MBR would have: that of the volume, or of a piece.
    pub fn kind(&self) -> PartType {
        match self.is_whole {
            true => PartType(self.volume.kind),
            false => PartType::LDM,
        }
    }
}

impl Database {
    /// Simple volumes, and spanned ones whose pieces are all on this disk, each copy of a mirror by
    /// itself; of the others the pieces.
    pub fn listed(&self) -> Vec<Listed<'_>> {
        let mut found = Vec::new();
        for volume in &self.volumes {
            for component in &volume.components {
                let is_whole = is_whole(volume, component);
                let one = |extents: Vec<Extent>| Listed {
                    volume,
                    component,
                    extents,
                    is_whole,
                };
                if is_whole {
                    found.push(one(component.extents.clone()));
                } else {
                    let here = component.extents.iter().filter(|extent| extent.is_here);
                    found.extend(here.map(|extent| one(vec![*extent])));
                }
            }
        }
        found
    }
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
