//! Editing partition tables without knowing their scheme, in the manner of
//! gpart(8): create, add, delete, recover, show.
//!
//! A [`Table`] is read from a media or made new, changed in memory, and turned
//! into sector writes; nothing is written here. Sectors are numbered from the
//! beginning of the provider that holds the table.
//!
//! ```
//! use ugeom_format::{Media, plan::{Create, NewPart, Scheme, Table}};
//! let media = Media::of_512(2048);
//! let mut table = Table::create(Scheme::Mbr, media, &Create::default())?;
//! let index = table.add(&NewPart { kind: "freebsd".to_owned(), ..Default::default() })?;
//! assert_eq!((index, table.parts()[0].start), (1, 63));
//! for write in table.encode() {
//!     println!("{} bytes to sector {}", write.data.len(), write.lba);
//! }
//! # Ok::<(), ugeom_format::plan::Error>(())
//! ```

/// Methods of every table that its field `media` and its scheme answer.
macro_rules! media_and_scheme {
    ($scheme:ident) => {
        fn media(&self) -> Media {
            self.media
        }

        fn scheme(&self) -> Scheme {
            Scheme::$scheme
        }
    };
}

mod apm;
mod backup;
mod bootcode;
mod bsd;
mod bsd64;
mod ebr;
mod error;
mod gpt;
mod ids;
mod ldm;
mod mbr;
mod pc98;
mod scheme;
mod show;
mod space;
mod types;
mod vtoc8;
mod wanted;

pub use apm::ApmTable;
pub use backup::{Backup, BackupError, BackupPart, Keep, MAX_TEXT_BYTES};
pub use bsd::BsdTable;
pub use bsd64::Bsd64Table;
pub use ebr::EbrTable;
pub use error::Error;
pub use gpt::GptTable;
pub use ids::{DiskId, Ids, PartId};
pub use ldm::LdmTable;
pub use mbr::MbrTable;
pub use pc98::Pc98Table;
pub use scheme::Scheme;
pub use show::{Column, Row, human_size};
pub use space::Span;
pub use types::TypeName;
pub use vtoc8::Vtoc8Table;
pub use wanted::{Change, Create, NewPart};

use crate::media::{Media, SectorRead, SectorWrite};
use crate::pc98::Geometry;
use std::str::FromStr;

impl FromStr for Scheme {
    type Err = Error;

    fn from_str(text: &str) -> Result<Scheme, Error> {
        Scheme::ALL
            .into_iter()
            .find(|scheme| scheme.name().eq_ignore_ascii_case(text))
            .ok_or_else(|| Error::UnknownScheme(text.to_owned()))
    }
}

/// One partition of any scheme.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part {
    /// Place in the table, from 1.
    pub index: u32,
    /// The suffix of the provider's name: `s1`, `a`, `p1`.
    pub suffix: String,
    /// First sector of the partition on the provider.
    pub start: u64,
    /// Length in sectors; 0 where a GPT entry ends before it begins.
    pub sectors: u64,
    /// gpart's name of the type, or `!` and the number or GUID.
    pub kind: String,
    /// The number or GUID itself.
    pub raw_kind: String,
    /// The partition's name; only a GPT has them.
    pub label: Option<String>,
    /// gpart's names of the attributes that are set.
    pub attributes: Vec<&'static str>,
}

/// The scheme's part of an edit.
trait Edit {
    fn media(&self) -> Media;
    fn usable(&self) -> (u64, u64);
    fn entries(&self) -> u32;
    fn parts(&self) -> Vec<Part>;
    /// The partitions with everything that belongs to them on the media.
    fn occupied(&self) -> Vec<Part> {
        self.parts()
    }
    /// Sectors in front of a partition that belong to it.
    fn lead(&self) -> u64 {
        0
    }
    /// The unit of starts and lengths, in sectors.
    fn grain(&self) -> u64 {
        1
    }
    /// The index of a partition that will start at this sector, where indexes
    /// follow from places.
    fn index_at(&self, _start: u64) -> Option<u32> {
        None
    }
    /// An entry that is in use though `parts` does not list it.
    fn is_internal(&self, _index: u32) -> bool {
        false
    }
    fn damage(&self) -> Vec<String> {
        Vec::new()
    }
    fn insert(&mut self, index: u32, span: Span, new: &NewPart) -> Result<(), Error>;
    /// Changes a partition that there is.
    fn change(&mut self, index: u32, change: &Change) -> Result<(), Error>;
    /// The identities of the table and its partitions.
    fn ids(&self) -> Ids {
        Ids::default()
    }
    /// Takes those that the scheme has; others change nothing.
    fn set_ids(&mut self, _ids: &Ids) {}
    /// Sets or clears an attribute of the table itself.
    fn set_on_table(&mut self, attribute: &str, _on: bool) -> Result<(), Error> {
        Err(self.no_attribute(attribute))
    }
    /// The attributes that there are, for partitions and for the table.
    fn attributes(&self) -> &'static [&'static str] {
        &[]
    }
    fn scheme(&self) -> Scheme;
    fn no_attribute(&self, attribute: &str) -> Error {
        Error::UnknownAttribute {
            scheme: self.scheme(),
            attribute: attribute.to_owned(),
            known: self.attributes().join(", "),
        }
    }
    fn remove(&mut self, index: u32) -> Result<(), Error>;
    fn encode(&self) -> Vec<SectorWrite>;
    /// The sectors without which there is no table, in the order in which they
    /// are wiped.
    fn own_sectors(&self) -> Vec<u64> {
        vec![0]
    }
}

/// A partition table in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "`Scheme` describes them")]
pub enum Table {
    Apm(ApmTable),
    Bsd(BsdTable),
    Bsd64(Bsd64Table),
    Ebr(EbrTable),
    Gpt(GptTable),
    Ldm(LdmTable),
    Mbr(MbrTable),
    Pc98(Pc98Table),
    Vtoc8(Vtoc8Table),
}

/// The content of any variant, behind a reference of either kind.
macro_rules! table_of {
    ($table:expr) => {
        match $table {
            Table::Apm(table) => table,
            Table::Bsd(table) => table,
            Table::Bsd64(table) => table,
            Table::Ebr(table) => table,
            Table::Gpt(table) => table,
            Table::Ldm(table) => table,
            Table::Mbr(table) => table,
            Table::Pc98(table) => table,
            Table::Vtoc8(table) => table,
        }
    };
}

impl Table {
    fn edit(&self) -> &dyn Edit {
        table_of!(self)
    }

    fn edit_mut(&mut self) -> &mut dyn Edit {
        table_of!(self)
    }

    /// A new, empty table for a media. The old table is gone when its sectors are written; other
    /// bytes stay as they are.
    ///
    /// # Errors
    /// The media is too small, its sectors do not suit the scheme, or the
    /// number of entries is impossible.
    pub fn create(scheme: Scheme, media: Media, create: &Create) -> Result<Table, Error> {
        Ok(match scheme {
            Scheme::Apm => Table::Apm(ApmTable::create(media, create)?),
            Scheme::Bsd => Table::Bsd(BsdTable::create(media, create)?),
            Scheme::Bsd64 => Table::Bsd64(Bsd64Table::create(media, create)?),
            Scheme::Ebr => Table::Ebr(EbrTable::create(media, create)?),
            Scheme::Gpt => Table::Gpt(GptTable::create(media, create)?),
            Scheme::Ldm => return Err(ldm::IS_READ),
            Scheme::Mbr => Table::Mbr(MbrTable::create(media, create)?),
            Scheme::Pc98 => Table::Pc98(Pc98Table::create(media, create)?),
            Scheme::Vtoc8 => Table::Vtoc8(Vtoc8Table::create(media, create)?),
        })
    }

    /// Reads the table of a scheme.
    ///
    /// # Errors
    /// There is none, or nothing of it can be used; a GPT with one good copy
    /// is read and says what is [`damaged`](Table::damage).
    pub fn load(scheme: Scheme, media: Media, read: &mut SectorRead<'_>) -> Result<Table, Error> {
        Table::load_on(scheme, media, None, read)
    }

    /// Reads the table of a scheme from a disk whose geometry is known; only a
    /// table of the PC-98 needs that.
    ///
    /// # Errors
    /// As [`Table::load`].
    pub fn load_on(
        scheme: Scheme,
        media: Media,
        geometry: Option<Geometry>,
        read: &mut SectorRead<'_>,
    ) -> Result<Table, Error> {
        Ok(match scheme {
            Scheme::Apm => Table::Apm(ApmTable::load(media, read)?),
            Scheme::Bsd => Table::Bsd(BsdTable::load(media, read)?),
            Scheme::Bsd64 => Table::Bsd64(Bsd64Table::load(media, read)?),
            Scheme::Ebr => Table::Ebr(EbrTable::load(media, read)?),
            Scheme::Gpt => Table::Gpt(GptTable::load(media, read)?),
            Scheme::Ldm => Table::Ldm(LdmTable::load(media, read)?),
            Scheme::Mbr => Table::Mbr(MbrTable::load(media, read)?),
            Scheme::Pc98 => Table::Pc98(Pc98Table::load(media, geometry, read)?),
            Scheme::Vtoc8 => Table::Vtoc8(Vtoc8Table::load(media, read)?),
        })
    }

    /// All tables on a media, outermost first: a GPT hides its protective MBR,
    /// the database of a dynamic disk the MBR that is its shell, and an MBR
    /// without partitions is left out where there is another table that may
    /// have one (boot1's made-up one of a disklabel, the boot sector of a PC-98).
    /// Logical partitions are not looked for: only the partition below tells
    /// whether there are any.
    pub fn load_all(
        media: Media,
        geometry: Option<Geometry>,
        read: &mut SectorRead<'_>,
    ) -> Vec<Table> {
        const ORDER: [Scheme; 8] = [
            Scheme::Gpt,
            Scheme::Ldm,
            Scheme::Mbr,
            Scheme::Bsd,
            Scheme::Bsd64,
            Scheme::Apm,
            Scheme::Vtoc8,
            Scheme::Pc98,
        ];
        let mut found: Vec<Table> = ORDER
            .into_iter()
            .filter_map(|scheme| Table::load_on(scheme, media, geometry, read).ok())
            .collect();
        let gpt = found.iter().any(|table| table.scheme() == Scheme::Gpt);
        let shell = found
            .iter()
            .any(|table| matches!(table, Table::Ldm(table) if table.hides_mbr()));
        let other =
            |table: &Table| !matches!(table.scheme(), Scheme::Gpt | Scheme::Ldm | Scheme::Mbr);
        let others = found.iter().any(other);
        found.retain(|table| match table {
            Table::Mbr(table) => match table.kind() {
                crate::mbr::MbrKind::Partitioned => !shell,
                crate::mbr::MbrKind::Hybrid | crate::mbr::MbrKind::Protective => !gpt,
                crate::mbr::MbrKind::Empty | crate::mbr::MbrKind::Dedicated => !gpt && !others,
            },
            _ => true,
        });
        found
    }

    /// Why no verb changes the database of a dynamic disk.
    pub fn read_only() -> Error {
        ldm::IS_READ
    }

    /// The scheme as gpart names it.
    pub fn scheme(&self) -> Scheme {
        self.edit().scheme()
    }

    /// The media that the table is for.
    pub fn media(&self) -> Media {
        self.edit().media()
    }

    /// First and last sector that a partition may have.
    pub fn usable(&self) -> (u64, u64) {
        self.edit().usable()
    }

    /// The partitions in the order of their index. The raw partition of a
    /// disklabel is not among them, as in gpart.
    pub fn parts(&self) -> Vec<Part> {
        self.edit().parts()
    }

    /// GUIDs of the table and its partitions, or the number of an MBR; empty where the scheme has
    /// none.
    pub fn ids(&self) -> Ids {
        self.edit().ids()
    }

    /// The free space in the order of its sectors.
    pub fn free(&self) -> Vec<Span> {
        let (first, last) = self.usable();
        space::free(&self.edit().occupied(), first, last)
    }

    /// The defects of the table as a whole; [`Table::recover`] is needed before it can be changed.
    /// Empty for a healthy table.
    pub fn damage(&self) -> Vec<String> {
        self.edit().damage()
    }

    /// Adds a partition and answers with its index.
    ///
    /// # Errors
    /// The table is damaged, the type or label is unknown to the scheme, the
    /// index is taken, or there is no room; the table has not changed then.
    pub fn add(&mut self, new: &NewPart) -> Result<u32, Error> {
        self.refuse_damaged()?;
        let parts = self.parts();
        let by_place = self.edit().index_at(0).is_some();
        let free = match by_place {
            true => None,
            false => Some(self.free_index(&parts, new.index)?),
        };
        let span = self.choose(None, new)?;
        let index = free.or_else(|| self.edit().index_at(span.start));
        let index = index.ok_or(Error::Align)?;
        if let Some(found) = new.index.filter(|&wanted| wanted != index) {
            return Err(Error::IndexOfPlace { found, index });
        }
        self.edit_mut().insert(index, span, new)?;
        Ok(index)
    }

    /// Deletes the partition with this index.
    ///
    /// # Errors
    /// The table is damaged or has no such partition; partitions overlap, but not this one.
    pub fn delete(&mut self, index: u32) -> Result<(), Error> {
        match self.refuse_damaged() {
            // Without one of the two the table may be sound.
            Err(Error::Overlapping { .. }) if self.overlaps(index) => {}
            Err(error) => return Err(error),
            Ok(()) => {
                self.part(index)?;
            }
        }
        self.edit_mut().remove(index)
    }

    /// Changes type, label or an attribute of a partition.
    ///
    /// # Errors
    /// The table is damaged or has no such partition, or the scheme does not
    /// know the new value; the table has not changed then.
    pub fn change(&mut self, index: u32, change: &Change) -> Result<(), Error> {
        self.part(index)?;
        let changed = self.edit_mut().change(index, change);
        changed.map_err(|error| match self.known(error) {
            Ok((scheme, attribute)) => Error::OfTable { scheme, attribute },
            Err(error) => error,
        })
    }

    /// Sets or clears an attribute of the table itself (`active` of a GPT's
    /// protective MBR).
    ///
    /// # Errors
    /// The table is damaged, or has no such attribute.
    pub fn set_on_table(&mut self, attribute: &str, on: bool) -> Result<(), Error> {
        self.refuse_damaged()?;
        let changed = self.edit_mut().set_on_table(attribute, on);
        changed.map_err(|error| match self.known(error) {
            Ok((scheme, attribute)) => Error::OfPartition { scheme, attribute },
            Err(error) => error,
        })
    }

    /// The attribute of an error which says that there is none, where the scheme has it elsewhere.
    fn known(&self, error: Error) -> Result<(Scheme, String), Error> {
        let names = self.attributes();
        match error {
            Error::UnknownAttribute {
                scheme, attribute, ..
            } if names
                .iter()
                .any(|name| name.eq_ignore_ascii_case(&attribute)) =>
            {
                Ok((scheme, attribute))
            }
            error => Err(error),
        }
    }

    /// Gives a partition another length: up to the next one or to the end
    /// without `sectors`; rounded down to a multiple of `align_sectors`.
    /// Answers with the new length.
    ///
    /// # Errors
    /// As [`Table::change`]; [`Error::Overlap`] and [`Error::OutOfRange`] when
    /// it does not fit.
    pub fn resize(
        &mut self,
        index: u32,
        sectors: Option<u64>,
        align_sectors: Option<u64>,
    ) -> Result<u64, Error> {
        let part = self.part(index)?;
        let wanted = NewPart {
            start: Some(part.start),
            sectors,
            ..NewPart::default()
        };
        let span = self.choose(Some(index), &wanted)?;
        let grain = self.edit().grain();
        let align = align_sectors.unwrap_or(grain);
        if align == 0 {
            return Err(Error::Align);
        }
        let sectors = match span.sectors > align {
            true => span.sectors - span.sectors % align,
            false => span.sectors,
        };
        let sectors = sectors - sectors % grain;
        if sectors == 0 {
            return Err(Error::Cylinder { sectors: grain });
        }
        self.edit_mut().change(index, &Change::Sectors(sectors))?;
        Ok(sectors)
    }

    /// Where a new partition goes, or partition `own` with its start.
    fn choose(&self, own: Option<u32>, new: &NewPart) -> Result<Span, Error> {
        let (grain, lead) = (self.edit().grain(), self.edit().lead());
        let mut occupied = self.edit().occupied();
        occupied.retain(|part| Some(part.index) != own);
        if own.is_some() || grain <= 1 {
            if own.is_none() {
                // The record of a partition behind: its place is taken, too.
                for part in &mut occupied {
                    part.sectors = part.sectors.saturating_add(lead);
                }
            }
            return space::choose(&occupied, self.usable(), new);
        }
        let align = new
            .align_sectors
            .filter(|align| align.is_multiple_of(grain));
        let wanted = NewPart {
            align_sectors: match new.align_sectors {
                Some(0) => Some(0),
                _ => Some(align.unwrap_or(grain)),
            },
            ..new.clone()
        };
        let span = space::choose(&occupied, self.usable(), &wanted)?;
        match span.sectors.is_multiple_of(grain) {
            true => Ok(span),
            false => Err(Error::Cylinder { sectors: grain }),
        }
    }

    /// The attributes that partitions or the table may have, gpart's names.
    pub fn attributes(&self) -> &'static [&'static str] {
        self.edit().attributes()
    }

    /// Number of entries, used or not.
    pub fn entries(&self) -> u32 {
        self.edit().entries()
    }

    /// Whether a partition overlaps another one.
    fn overlaps(&self, index: u32) -> bool {
        let parts = self.parts();
        let end = |part: &Part| part.start.saturating_add(part.sectors);
        let Some(one) = parts.iter().find(|part| part.index == index) else { return false };
        parts
            .iter()
            .any(|part| part.index != index && part.start < end(one) && one.start < end(part))
    }

    /// A partition of a table that can be changed.
    fn part(&self, index: u32) -> Result<Part, Error> {
        self.refuse_damaged()?;
        let part = self.parts().into_iter().find(|part| part.index == index);
        part.ok_or(Error::NoSuchPartition(index))
    }

    /// Makes a damaged GPT whole: both copies from the good one, the backup at
    /// the end of the media, the usable range up to there. Answers with what
    /// was wrong.
    ///
    /// # Errors
    /// Other schemes have no second copy; a partition lies where the backup
    /// has to go.
    pub fn recover(&mut self) -> Result<Vec<String>, Error> {
        let scheme = self.scheme();
        match self {
            Table::Gpt(table) => table.recover(None),
            Table::Bsd64(table) => Ok(table.recover()),
            _ => Err(Error::NothingToRecover(scheme)),
        }
    }

    /// The same from one copy of a GPT, also where a checksum of it is wrong, and in place of an
    /// ordinary MBR in sector 0.
    ///
    /// # Errors
    /// As [`Table::recover`], and the other defects of that copy.
    pub fn recover_from(&mut self, side: crate::gpt::Side) -> Result<Vec<String>, Error> {
        let scheme = self.scheme();
        match self {
            Table::Gpt(table) => table.recover(Some(side)),
            _ => Err(Error::NothingToRecover(scheme)),
        }
    }

    /// The writes that remove the table, as `gpart destroy` does: the sectors
    /// that hold it, of a GPT sector 0 first and the primary header last, so
    /// that what an interruption leaves can be destroyed again, and other
    /// programs, which want a protective MBR, see no table from the first write
    /// on. Sector 0 stays where it holds an MBR with partitions of its own.
    pub fn destroy(&self) -> Vec<SectorWrite> {
        let media = self.media();
        let sectors = self.edit().own_sectors();
        let exists = |lba: &u64| *lba < media.sectors;
        let zeros = |lba| SectorWrite {
            lba,
            data: vec![0; media.sector_len()],
        };
        sectors.into_iter().filter(exists).map(zeros).collect()
    }

    /// The table as sector writes, in the order in which they are safe.
    pub fn encode(&self) -> Vec<SectorWrite> {
        self.edit().encode()
    }

    /// As gpart, which refuses a table whose partitions overlap like any other damage.
    fn refuse_damaged(&self) -> Result<(), Error> {
        let scheme = self.scheme();
        if scheme == Scheme::Ldm {
            return Err(ldm::IS_READ);
        }
        if let Some(damage) = self.damage().into_iter().next() {
            return Err(Error::Corrupt { scheme, damage });
        }
        match space::overlapping(&self.parts()) {
            Some((first, second)) => Err(Error::Overlapping {
                scheme,
                first,
                second,
            }),
            None => Ok(()),
        }
    }

    fn free_index(&self, parts: &[Part], wanted: Option<u32>) -> Result<u32, Error> {
        let most = self.edit().entries();
        let taken =
            |index| self.edit().is_internal(index) || parts.iter().any(|part| part.index == index);
        match wanted {
            Some(found) if !(1..=most).contains(&found) => Err(Error::Index { found, most }),
            Some(index) if taken(index) => Err(Error::IndexInUse(index)),
            Some(index) => Ok(index),
            None => (1..=most)
                .find(|&index| !taken(index))
                .ok_or(Error::TableFull(most)),
        }
    }
}

/// The entry of a partition, which are numbered from 1.
fn place_in<T>(entries: &mut [T], index: u32) -> Result<&mut T, Error> {
    let entry = entries.get_mut(index.wrapping_sub(1) as usize);
    entry.ok_or(Error::NoSuchPartition(index))
}

/// Refuses a media whose sectors have another size than the table's.
fn has_sectors_of(
    bytes: usize,
    media: Media,
    scheme: Scheme,
    reason: &'static str,
) -> Result<(), Error> {
    let found = media.sector_size_bytes;
    match found as usize == bytes {
        true => Ok(()),
        false => Err(Error::SectorSize {
            scheme,
            found,
            reason,
        }),
    }
}

/// Refuses a media with fewer sectors than a new table needs.
fn large_enough(scheme: Scheme, media: Media, needed: u64) -> Result<(), Error> {
    match media.sectors {
        found if found < needed => Err(Error::TooSmall {
            scheme,
            needed,
            found,
        }),
        _ => Ok(()),
    }
}

/// Reads whole sectors; fewer bytes than asked for are an error here.
fn read_exactly(
    media: Media,
    lba: u64,
    count: u64,
    read: &mut SectorRead<'_>,
) -> Result<Vec<u8>, Error> {
    if lba.checked_add(count).is_none_or(|end| end > media.sectors) {
        let reason = format!("the media has {} sectors", media.sectors);
        return Err(Error::Read { lba, reason });
    }
    let data = read(lba, count).map_err(|reason| Error::Read { lba, reason })?;
    let needed = count as usize * media.sector_len();
    if data.len() < needed {
        let reason = format!("{} of {needed} bytes came back", data.len());
        return Err(Error::Read { lba, reason });
    }
    Ok(data)
}

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod tests;
