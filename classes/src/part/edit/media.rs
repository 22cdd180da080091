//! An opened provider as the planners of `ugeom_format` see it: sectors in, sectors out.

use super::EditError;
use crate::part::rules::Below;
use crate::part::{ebr, look, mbr, names};
use std::ops::Range;
use ugeom_format::content::Content;
use ugeom_format::gpt::{Gpt, Guid, other_sector_size};
use ugeom_format::mbr::{Mbr, MbrKind, SIZE_BYTES};
use ugeom_format::pc98::Geometry;
use ugeom_format::plan::{self, Part, Scheme, Table};
use ugeom_format::{Media, SectorWrite, amiga, atari, bsd, bsd64, sgi};
use ugeom_stack::{AttributeValue, Channel, Errno, IoError, Opened};

/// The largest single read.
const PIECE_BYTES: u64 = 512 << 10;

/// An opened provider with its media.
pub(super) struct Disk<'a> {
    pub name: String,
    pub media: Media,
    pub size_bytes: u64,
    /// Heads, and sectors a track, where the disk says so.
    pub geometry: Option<Geometry>,
    /// The prefix of `s5` on an extended partition.
    logical_prefix: Option<String>,
    channel: &'a mut Channel,
    opened: &'a Opened,
}

impl<'a> Disk<'a> {
    pub(super) fn new(channel: &'a mut Channel, opened: &'a Opened) -> Result<Self, EditError> {
        let view = opened.view().ok_or(EditError::Gone)?;
        let media = Media::new(view.mediasize_bytes, view.sectorsize_bytes);
        let media = media.ok_or_else(|| EditError::SectorSize {
            provider: view.name.clone(),
            sectorsize_bytes: view.sectorsize_bytes,
        })?;
        let size_bytes = view.mediasize_bytes;
        let mut ask = |name: &str| channel.attribute(opened, name).ok().flatten();
        let is_extended = Below::ask(&mut ask).refuses(names::EBR).is_none();
        let mut number = |name| match ask(name) {
            Some(AttributeValue::Number(number)) => u32::try_from(number).ok(),
            _ => None,
        };
        let is_first = number(mbr::EXTENDED_ORDINAL) == Some(1);
        let mut size = |name| number(name).filter(|number| *number != 0);
        let geometry = size("GEOM::fwheads").zip(size("GEOM::fwsectors"));
        let geometry = geometry.map(|(heads, track_sectors)| Geometry {
            heads,
            track_sectors,
        });
        Ok(Self {
            logical_prefix: is_extended.then(|| ebr::prefix_of(&view.name, is_first)),
            name: view.name,
            media,
            size_bytes,
            geometry,
            channel,
            opened,
        })
    }

    /// Reads sectors for a decoder.
    pub(super) fn reader(&mut self) -> impl FnMut(u64, u64) -> Result<Vec<u8>, String> + '_ {
        let unit = u64::from(self.media.sector_size_bytes);
        move |lba, count| {
            let place = lba.checked_mul(unit).zip(count.checked_mul(unit));
            let (offset, length) = place.ok_or("the sector number is too large")?;
            self.read(offset, length).map_err(|error| error.to_string())
        }
    }

    /// Reads a range of whole sectors; shorter at the end of the media.
    pub(super) fn read(&mut self, offset: u64, length: u64) -> Result<Vec<u8>, IoError> {
        let end = offset.saturating_add(length).min(self.size_bytes);
        let mut bytes = vec![0; end.saturating_sub(offset) as usize];
        let mut done = 0;
        for piece in bytes.chunks_mut(PIECE_BYTES as usize) {
            let read = self
                .channel
                .read(self.opened, offset + done as u64, piece)?;
            done += read;
            if read < piece.len() {
                break;
            }
        }
        bytes.truncate(done);
        Ok(bytes)
    }

    /// The same to find content; no layer logs a failure.
    pub(super) fn look(&mut self, offset: u64, length: u64) -> Result<Vec<u8>, IoError> {
        let end = offset.saturating_add(length).min(self.size_bytes);
        let mut bytes = Vec::new();
        loop {
            let at = offset + bytes.len() as u64;
            let wanted = end.saturating_sub(at).min(PIECE_BYTES) as usize;
            let piece = self.channel.read_to_taste(self.opened, at, wanted)?;
            let ends = piece.len() < wanted;
            bytes.extend(piece);
            if ends || offset + bytes.len() as u64 >= end {
                return Ok(bytes);
            }
        }
    }

    /// Bytes of a range that begins with a sector, to find content; fewer at its end.
    pub(super) fn look_within(
        &mut self,
        range: &Range<u64>,
        offset: u64,
        length: usize,
    ) -> Result<Vec<u8>, IoError> {
        // Sectors may be larger than the blocks that are asked for.
        let unit = u64::from(self.media.sector_size_bytes);
        let start = range.start.saturating_add(offset).min(range.end);
        let end = start.saturating_add(length as u64).min(range.end);
        let first = start / unit * unit;
        let mut bytes = self.look(first, end.next_multiple_of(unit) - first)?;
        let mut bytes = bytes.split_off(((start - first) as usize).min(bytes.len()));
        bytes.truncate((end - start) as usize);
        Ok(bytes)
    }

    /// All tables that can be edited. A protective MBR is none: it belongs to the GPT, also when
    /// that is damaged.
    pub(super) fn tables(&mut self) -> Vec<Table> {
        let (media, geometry) = (self.media, self.geometry);
        if self.is_extended() {
            let logical = Table::load(Scheme::Ebr, media, &mut self.reader());
            return logical.into_iter().collect();
        }
        let mut tables = Table::load_all(media, geometry, &mut self.reader());
        tables.retain(|table| !is_protective(table));
        tables
    }

    /// The one table to be changed, or the one of a scheme. A database of Windows is refused, and
    /// the MBR that is its shell.
    pub(super) fn table(&mut self, scheme: Option<Scheme>) -> Result<Table, EditError> {
        let table = self.named(scheme)?;
        let is_shell = |tables: Vec<Table>| {
            let has = |scheme| tables.iter().any(|table| table.scheme() == scheme);
            has(Scheme::Ldm) && !has(Scheme::Gpt) && !has(Scheme::Mbr)
        };
        match table.scheme() {
            Scheme::Ldm => Err(self.plan_error(Table::read_only())),
            Scheme::Mbr if is_shell(self.tables()) => Err(self.plan_error(Table::read_only())),
            _ => Ok(table),
        }
    }

    fn named(&mut self, scheme: Option<Scheme>) -> Result<Table, EditError> {
        if let Some(scheme) = scheme {
            if let Some(reason) = self.misplaced(scheme) {
                return Err(EditError::NoTable {
                    provider: self.name.clone(),
                    damaged: Some(reason.to_owned()),
                });
            }
            let (media, geometry) = (self.media, self.geometry);
            let table = Table::load_on(scheme, media, geometry, &mut self.reader());
            let damaged = match table {
                Ok(table) if !is_protective(&table) => return Ok(table),
                Ok(_) => "the MBR is a protective one, the disk belongs to its GPT".to_owned(),
                Err(error) => error.to_string(),
            };
            return Err(EditError::NoTable {
                provider: self.name.clone(),
                damaged: Some(damaged),
            });
        }
        let mut tables = self.tables();
        // On a disk with a GPT only the GPT is changed: a database in it is only read.
        if tables.iter().any(|table| table.scheme() == Scheme::Gpt) {
            tables.retain(|table| table.scheme() != Scheme::Ldm);
        }
        if tables.len() > 1 {
            return Err(EditError::Several {
                provider: self.name.clone(),
                schemes: tables.iter().map(Table::scheme).collect(),
            });
        }
        tables.pop().ok_or_else(|| self.no_table())
    }

    /// Why a table of that scheme cannot stand here: the first sector of an extended partition may
    /// be read as an MBR, and an MBR as an extended boot record.
    fn misplaced(&self, scheme: Scheme) -> Option<&'static str> {
        match (self.is_extended(), scheme) {
            (false, Scheme::Ebr) => Some("logical partitions need an extended partition of an MBR"),
            (true, Scheme::Ebr) | (false, _) => None,
            (true, _) => Some("it holds logical partitions"),
        }
    }

    /// An extended partition, which holds logical ones.
    pub(super) const fn is_extended(&self) -> bool {
        self.logical_prefix.is_some()
    }

    /// A partition and its provider's name, as the classes will name it.
    pub(super) fn partition(&mut self, table: &Table, index: u32) -> (String, Option<Part>) {
        let part = table.parts().into_iter().find(|part| part.index == index);
        let suffix = match (table, &part) {
            (Table::Gpt(gpt), Some(part)) => {
                let size = u64::from(self.media.sector_size_bytes);
                let sector0 = self.read(0, size).unwrap_or_default();
                let mbr = Mbr::decode(&sector0).map_or(MbrKind::Empty, |mbr| mbr.kind());
                let entry = gpt.table().entries.get(index as usize - 1);
                let kind = entry.map_or(Guid::UNUSED, |entry| entry.kind);
                format!("{}{}", crate::part::gpt::letter(kind, mbr), part.index)
            }
            (Table::Apm(_), Some(part)) => {
                // Beside an MBR with partitions the class names them m1 and up.
                let size = u64::from(self.media.sector_size_bytes);
                let sector0 = self.read(0, size).unwrap_or_default();
                let taken = Mbr::decode(&sector0).is_ok_and(|mbr| mbr.slices().next().is_some());
                match part.suffix.strip_prefix('s').filter(|_| taken) {
                    Some(number) => format!("m{number}"),
                    None => part.suffix.clone(),
                }
            }
            (_, Some(part)) => part.suffix.clone(),
            (_, None) => String::new(),
        };
        let prefix = match (table, &self.logical_prefix) {
            (Table::Ebr(_), Some(prefix)) => prefix,
            _ => &self.name,
        };
        (format!("{prefix}{suffix}"), part)
    }

    /// A table for which there are no verbs.
    fn read_only_table(&mut self) -> Option<&'static str> {
        let media = self.media;
        let sector = self.look(0, u64::from(media.sector_size_bytes)).ok()?;
        if sgi::Header::decode(&sector).is_ok() {
            return Some("its SGI volume header");
        }
        if amiga::Table::read(media, &mut self.reader()).is_ok() {
            return Some("its Amiga rigid disk block");
        }
        let atari = atari::Table::read(media, &mut self.reader());
        atari.is_ok().then_some("its Atari table")
    }

    /// Says that there is no table, and why not when there are traces of one.
    pub(super) fn no_table(&mut self) -> EditError {
        let provider = self.name.clone();
        let media = self.media;
        if let Some(name) = self.read_only_table() {
            let damaged = Some(format!("{name} is only read, by `ugeom show`"));
            return EditError::NoTable { provider, damaged };
        }
        let gpt = other_sector_size(media, &mut self.reader()).map(|size| ("header", size));
        let other = gpt.or_else(|| {
            let size = bsd::other_sector_size(media, &mut self.reader())?;
            Some(("label", size))
        });
        if let Some((part, size)) = other {
            let damaged = Some(look::made_for(part, size.into(), size, media));
            return EditError::NoTable { provider, damaged };
        }
        let traces = Gpt::read(media, &mut self.reader()).is_present();
        let gpt = match traces {
            true => Table::load(Scheme::Gpt, media, &mut self.reader()).err(),
            false => None,
        };
        let bsd64 = match Table::load(Scheme::Bsd64, media, &mut self.reader()) {
            Err(plan::Error::Bsd64(bsd64::Error::Magic { .. } | bsd64::Error::Short { .. }))
            | Err(plan::Error::Read { .. })
            | Ok(_) => None,
            Err(error) => Some(error),
        };
        let bsd = || match Table::load(Scheme::Bsd, media, &mut self.reader()) {
            Err(plan::Error::Bsd(bsd::Error::NotFound)) | Ok(_) => None,
            Err(error) => Some(error),
        };
        let damaged = gpt.or(bsd64).or_else(bsd).map(|error| error.to_string());
        EditError::NoTable { provider, damaged }
    }

    pub(super) fn plan_error(&self, error: plan::Error) -> EditError {
        EditError::Plan {
            provider: self.name.clone(),
            error,
        }
    }

    /// Writes, each write durable before the next begins.
    pub(super) fn write(&mut self, writes: &[SectorWrite]) -> Result<(), EditError> {
        let unit = u64::from(self.media.sector_size_bytes);
        for write in writes {
            self.write_at(write.lba * unit, &write.data)?;
        }
        Ok(())
    }

    /// Writes whole sectors, and makes them durable.
    pub(super) fn write_at(&mut self, offset_bytes: u64, data: &[u8]) -> Result<(), EditError> {
        let failed = |error| EditError::Io {
            doing: format!("{}: writing the table", self.name),
            error,
        };
        let done = self
            .channel
            .write(self.opened, offset_bytes, data)
            .map_err(failed)?;
        if done < data.len() {
            return Err(EditError::Short {
                provider: self.name.clone(),
                offset_bytes,
                done,
                wanted: data.len(),
            });
        }
        match self.channel.flush(self.opened) {
            // A device without a cache need not know FLUSH.
            Err(error) if error.errno != Errno::OPNOTSUPP => Err(failed(error)),
            _ => Ok(()),
        }
    }

    /// Overwrites the magic of everything found with zeros, as wipefs(8) does.
    pub(super) fn wipe(&mut self, found: &[Content]) -> Result<(), EditError> {
        let unit = u64::from(self.media.sector_size_bytes);
        for place in found.iter().flat_map(|found| &found.places) {
            let first = place.offset_bytes / unit * unit;
            let end = place.offset_bytes.saturating_add(place.length_bytes);
            let length = end.next_multiple_of(unit) - first;
            let read = self.read(first, length);
            let mut sectors = read.map_err(|error| EditError::Io {
                doing: format!("{}: reading its content", self.name),
                error,
            })?;
            let skip = (place.offset_bytes - first) as usize;
            if let Some(magic) = sectors.get_mut(skip..skip + place.length_bytes as usize) {
                magic.fill(0);
                self.write_at(first, &sectors)?;
            }
        }
        Ok(())
    }

    /// Sector 0, whose boot code a new table keeps; empty when it held something else.
    pub(super) fn boot_sector(&mut self, found: &[Content]) -> Result<Vec<u8>, EditError> {
        if found.iter().any(owns_sector0) {
            return Ok(Vec::new());
        }
        let size = u64::from(self.media.sector_size_bytes);
        self.read(0, size).map_err(|error| EditError::Io {
            doing: format!("{}: reading sector 0", self.name),
            error,
        })
    }
}

fn is_protective(table: &Table) -> bool {
    matches!(table, Table::Mbr(table) if table.kind() == MbrKind::Protective)
}

/// Sector 0 is part of it, so that no boot code can be kept from there. The tables of a PC leave
/// room for it.
fn owns_sector0(content: &Content) -> bool {
    let first = content.places.first();
    let pc = matches!(content.name, "dos" | "gpt" | "PMBR");
    !pc && first.is_some_and(|place| place.offset_bytes < SIZE_BYTES as u64)
}
