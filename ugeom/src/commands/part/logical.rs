//! The logical volumes of the physical volumes of LVM2 that `ugeom part search` finds.

use crate::output::{self, Paint, Table};
use serde::Serialize;
use ugeom_format::content;
use ugeom_format::plan::human_size;
use ugeom_format::search::{Holds, Lost, PhysicalVolume, SearchRead};

/// The group of a physical volume.
#[derive(Serialize)]
pub struct FoundGroup {
    /// Where the physical volume begins on the medium.
    physical_offset_bytes: u64,
    name: Option<String>,
    /// Why the group cannot be read.
    error: Option<String>,
    volumes: Vec<FoundVolume>,
}

#[derive(Serialize)]
struct FoundVolume {
    name: String,
    length_bytes: Option<u64>,
    /// Where it is on the medium.
    pieces: Vec<Piece>,
    /// Its recognised content.
    content: Option<String>,
    /// Why its place is not listed.
    not_listed: Option<String>,
}

#[derive(Serialize)]
struct Piece {
    offset_bytes: u64,
    length_bytes: u64,
}

impl FoundGroup {
    pub fn is_on(&self, lost: &Lost) -> bool {
        let start = lost.place.start_bytes;
        // An entry of a table stands for what begins with it.
        let may_be = matches!(lost.place.holds, Holds::Lvm2 | Holds::Listed);
        may_be && lost.over.is_none() && start == self.physical_offset_bytes
    }
}

/// The groups of these physical volumes, with the content of their logical volumes.
pub fn groups(physical: &[PhysicalVolume], read: &mut SearchRead<'_>) -> Vec<FoundGroup> {
    let mut groups = Vec::new();
    for volume in physical {
        let (name, error, volumes) = match &volume.group {
            Ok(Some(group)) => (Some(group.name.clone()), None, group.volumes.as_slice()),
            Ok(None) => continue,
            Err(error) => (None, Some(error.clone()), [].as_slice()),
        };
        let volumes = volumes.iter().map(|one| {
            let pieces = one.pieces.as_deref().unwrap_or_default();
            let piece = |&(offset_bytes, length_bytes): &(u64, u64)| Piece {
                offset_bytes,
                length_bytes,
            };
            FoundVolume {
                name: one.name.clone(),
                length_bytes: one.length_bytes,
                pieces: pieces.iter().map(piece).collect(),
                content: content_of(pieces, read),
                not_listed: one.pieces.as_ref().err().cloned(),
            }
        });
        groups.push(FoundGroup {
            physical_offset_bytes: volume.start_bytes,
            name,
            error,
            volumes: volumes.collect(),
        });
    }
    groups
}

/// The recognised content of a volume of these pieces.
fn content_of(pieces: &[(u64, u64)], read: &mut SearchRead<'_>) -> Option<String> {
    let length = pieces
        .iter()
        .try_fold(0_u64, |sum, piece| sum.checked_add(piece.1))?;
    if length == 0 {
        return None;
    }
    let identified = content::identify(length, &mut |mut offset, wanted| {
        let mut bytes = Vec::new();
        for &(at, length) in pieces {
            if offset >= length {
                offset -= length;
                continue;
            }
            let here = (wanted - bytes.len()).min((length - offset) as usize);
            bytes.extend(read(at + offset, here)?);
            offset = 0;
            if bytes.len() >= wanted {
                break;
            }
        }
        Ok(bytes)
    });
    crate::contents::cell(&identified.contents)
}

/// A table of the logical volumes of each group.
pub fn listing(groups: &[FoundGroup]) -> String {
    let mut text = String::new();
    for group in groups {
        let at = group.physical_offset_bytes;
        if let Some(error) = &group.error {
            let error = output::printable(error);
            text += &format!("\nLVM2 at byte {at}: its group cannot be read: {error}\n");
            continue;
        }
        let name = output::printable(group.name.as_deref().unwrap_or_default());
        text += &format!("\nLVM2 at byte {at}: group {name}\n");
        match group.volumes.is_empty() {
            true => text += "it has no logical volumes\n",
            false => text += &table(&group.volumes),
        }
    }
    text
}

fn table(volumes: &[FoundVolume]) -> String {
    const HEADINGS: [&str; 6] = ["VOLUME", "OFFSET", "BYTES", "SIZE", "CONTENT", "NOTE"];
    let mut table = Table::new(&HEADINGS, &[false, true, true, true, false, false]);
    for volume in volumes {
        let name = output::printable(&volume.name);
        if let Some(reason) = &volume.not_listed {
            let size = volume.length_bytes.map(human_size);
            let note = format!("not listed: {}", output::printable(reason));
            let dash = || "-".to_owned();
            let size = size.unwrap_or_else(dash);
            table.row(vec![name.clone(), dash(), dash(), size, dash(), note]);
        }
        for (number, piece) in (1..).zip(&volume.pieces) {
            let content = volume.content.as_deref().filter(|_| number == 1);
            table.row(vec![
                name.clone(),
                piece.offset_bytes.to_string(),
                piece.length_bytes.to_string(),
                human_size(piece.length_bytes),
                output::printable(content.unwrap_or("-")),
                match volume.pieces.len() {
                    1 => String::new(),
                    count => format!("piece {number} of {count}"),
                },
            ]);
        }
    }
    table.render(Paint::of_stdout())
}
