//! Editing partition tables without knowing their scheme, in the manner of
//! gpart(8): create, add, delete, recover, show.
//!
//! A [`Table`] is read from a media or made new, changed in memory, and turned
//! into sector writes; nothing is written here. Sectors are numbered from the
//! beginning of the provider that holds the table.
//!
//! ```
//! use ugeom_format::{Media, plan::{Create, NewPart, Scheme, Table}};
//! let media = Media { sector_size_bytes: 512, sectors: 2048 };
//! let mut table = Table::create(Scheme::Mbr, media, &Create::default())?;
//! let index = table.add(&NewPart { kind: "freebsd".to_owned(), ..Default::default() })?;
//! assert_eq!((index, table.parts()[0].start), (1, 63));
//! for write in table.encode() {
//!     println!("{} bytes to sector {}", write.data.len(), write.lba);
//! }
//! # Ok::<(), ugeom_format::plan::Error>(())
//! ```

mod bsd;
mod error;
mod gpt;
mod mbr;
mod show;
mod space;

pub use bsd::BsdTable;
pub use error::Error;
pub use gpt::GptTable;
pub use mbr::MbrTable;
pub use show::{Column, Row, human_size};
pub use space::Span;

use crate::media::{Media, SectorRead, SectorWrite};
use std::fmt;
use std::str::FromStr;

/// The schemes that can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Master boot record, four partitions.
    Mbr,
    /// BSD disklabel, eight to twenty partitions.
    Bsd,
    /// GUID partition table.
    Gpt,
}

/// gpart's name of the scheme.
impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Scheme::Mbr => "MBR",
            Scheme::Bsd => "BSD",
            Scheme::Gpt => "GPT",
        })
    }
}

impl FromStr for Scheme {
    type Err = Error;

    fn from_str(text: &str) -> Result<Scheme, Error> {
        [Scheme::Mbr, Scheme::Bsd, Scheme::Gpt]
            .into_iter()
            .find(|scheme| scheme.to_string().eq_ignore_ascii_case(text))
            .ok_or_else(|| Error::UnknownScheme(text.to_owned()))
    }
}

/// One partition of any scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Place in the table, from 1.
    pub index: u32,
    /// What is added to the provider's name: `s1`, `a`, `p1`.
    pub suffix: String,
    /// First sector.
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

/// What a new table is made of.
#[derive(Debug, Clone, Default)]
pub struct Create {
    /// Number of entries, where the scheme lets one choose: 8 to 20 for BSD
    /// (default 8), 1 to 4096 for GPT (default 128).
    pub entries: Option<u32>,
    /// Random bytes for the disk's GUID or the NT disk signature.
    pub random: [u8; 16],
    /// Sector 0 as it is; its boot code is kept. Empty for none.
    pub sector0: Vec<u8>,
}

/// A partition to be added.
#[derive(Debug, Clone, Default)]
pub struct NewPart {
    /// First sector; free space is searched without it.
    pub start: Option<u64>,
    /// Length in sectors; all of the free space without it.
    pub sectors: Option<u64>,
    /// Alignment of start and length in sectors, 1 without it.
    pub align_sectors: Option<u64>,
    /// Multiple on which it begins where neither start nor alignment is said
    /// and there is room, in sectors. Its length is not rounded.
    pub preferred_align_sectors: Option<u64>,
    /// Place in the table, the first free one without it.
    pub index: Option<u32>,
    /// gpart's name of the type, or `!` and the number or GUID.
    pub kind: String,
    /// Name of the partition, GPT only.
    pub label: Option<String>,
    /// Random bytes for the partition's GUID, GPT only.
    pub random: [u8; 16],
}

/// A change of one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Its type: gpart's name, or `!` and the number or GUID.
    Kind(String),
    /// Its name, GPT only.
    Label(String),
    /// Its length in sectors; the first sector stays.
    Sectors(u64),
    /// One of its attributes.
    Attribute {
        /// gpart's name of it.
        name: String,
        /// Set or cleared.
        on: bool,
    },
}

/// What a scheme has to answer for the common part to work.
trait Edit {
    fn media(&self) -> Media;
    fn usable(&self) -> (u64, u64);
    fn entries(&self) -> u32;
    fn parts(&self) -> Vec<Part>;
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
}

/// A partition table in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Table {
    /// Master boot record.
    Mbr(MbrTable),
    /// BSD disklabel.
    Bsd(BsdTable),
    /// GUID partition table.
    Gpt(GptTable),
}

impl Table {
    fn edit(&self) -> &dyn Edit {
        match self {
            Table::Mbr(table) => table,
            Table::Bsd(table) => table,
            Table::Gpt(table) => table,
        }
    }

    fn edit_mut(&mut self) -> &mut dyn Edit {
        match self {
            Table::Mbr(table) => table,
            Table::Bsd(table) => table,
            Table::Gpt(table) => table,
        }
    }

    /// A new, empty table for a media. Whatever was there before is gone when
    /// its sectors are written; [`wipe`] removes what they do not cover.
    ///
    /// # Errors
    /// The media is too small, its sectors do not suit the scheme, or the
    /// number of entries is impossible.
    pub fn create(scheme: Scheme, media: Media, create: &Create) -> Result<Table, Error> {
        Ok(match scheme {
            Scheme::Mbr => Table::Mbr(MbrTable::create(media, create)?),
            Scheme::Bsd => Table::Bsd(BsdTable::create(media, create)?),
            Scheme::Gpt => Table::Gpt(GptTable::create(media, create)?),
        })
    }

    /// Reads the table of a scheme.
    ///
    /// # Errors
    /// There is none, or nothing of it can be used; a GPT with one good copy
    /// is read and says what is [`damaged`](Table::damage).
    pub fn load(scheme: Scheme, media: Media, read: &mut SectorRead<'_>) -> Result<Table, Error> {
        Ok(match scheme {
            Scheme::Mbr => Table::Mbr(MbrTable::load(media, read)?),
            Scheme::Bsd => Table::Bsd(BsdTable::load(media, read)?),
            Scheme::Gpt => Table::Gpt(GptTable::load(media, read)?),
        })
    }

    /// All tables on a media, outermost first: a GPT hides its protective MBR,
    /// and boot1's made-up MBR is left out where there is a disklabel.
    pub fn load_all(media: Media, read: &mut SectorRead<'_>) -> Vec<Table> {
        let mut found: Vec<Table> = [Scheme::Gpt, Scheme::Mbr, Scheme::Bsd]
            .into_iter()
            .filter_map(|scheme| Table::load(scheme, media, read).ok())
            .collect();
        let has = |scheme, found: &[Table]| found.iter().any(|table| table.scheme() == scheme);
        let (gpt, bsd) = (has(Scheme::Gpt, &found), has(Scheme::Bsd, &found));
        found.retain(|table| match table {
            Table::Mbr(table) => match table.kind() {
                crate::mbr::Kind::Partitioned => true,
                crate::mbr::Kind::Hybrid | crate::mbr::Kind::Protective => !gpt,
                crate::mbr::Kind::Empty | crate::mbr::Kind::Dedicated => !gpt && !bsd,
            },
            _ => true,
        });
        found
    }

    /// The table's scheme.
    pub fn scheme(&self) -> Scheme {
        match self {
            Table::Mbr(_) => Scheme::Mbr,
            Table::Bsd(_) => Scheme::Bsd,
            Table::Gpt(_) => Scheme::Gpt,
        }
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

    /// The free space in the order of its sectors.
    pub fn free(&self) -> Vec<Span> {
        let (first, last) = self.usable();
        space::free(&self.parts(), first, last)
    }

    /// What is wrong with the table as a whole; [`Table::recover`] is needed
    /// before it can be changed. Empty for a healthy table.
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
        let index = self.free_index(&parts, new.index)?;
        let span = space::choose(&parts, self.usable(), new)?;
        self.edit_mut().insert(index, span, new)?;
        Ok(index)
    }

    /// Deletes a partition.
    ///
    /// # Errors
    /// The table is damaged or has no such partition.
    pub fn delete(&mut self, index: u32) -> Result<(), Error> {
        self.part(index)?;
        self.edit_mut().remove(index)
    }

    /// Changes type, label or an attribute of a partition.
    ///
    /// # Errors
    /// The table is damaged or has no such partition, or the scheme does not
    /// know the new value; the table has not changed then.
    pub fn change(&mut self, index: u32, change: &Change) -> Result<(), Error> {
        self.part(index)?;
        self.edit_mut().change(index, change)
    }

    /// Sets or clears an attribute of the table itself (`active` of a GPT's
    /// protective MBR).
    ///
    /// # Errors
    /// The table is damaged, or has no such attribute.
    pub fn set_on_table(&mut self, attribute: &str, on: bool) -> Result<(), Error> {
        self.refuse_damaged()?;
        self.edit_mut().set_on_table(attribute, on)
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
        let others: Vec<Part> = self.parts();
        let others: Vec<Part> = others.into_iter().filter(|it| it.index != index).collect();
        let wanted = NewPart {
            start: Some(part.start),
            sectors,
            ..NewPart::default()
        };
        let span = space::choose(&others, self.usable(), &wanted)?;
        let align = align_sectors.unwrap_or(1);
        if align == 0 {
            return Err(Error::Align);
        }
        let sectors = match span.sectors > align {
            true => span.sectors - span.sectors % align,
            false => span.sectors,
        };
        self.edit_mut().change(index, &Change::Sectors(sectors))?;
        Ok(sectors)
    }

    /// The attributes that partitions or the table may have, gpart's names.
    pub fn attributes(&self) -> &'static [&'static str] {
        self.edit().attributes()
    }

    /// Number of entries, used or not.
    pub fn entries(&self) -> u32 {
        self.edit().entries()
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
            Table::Gpt(table) => table.recover(),
            _ => Err(Error::NothingToRecover(scheme)),
        }
    }

    /// The writes that remove the table, as `gpart destroy` does: the sectors
    /// that hold it, of a GPT the backup first and sector 0 last, so that what
    /// an interruption leaves can be destroyed again. Sector 0 stays where it
    /// holds an MBR with partitions of its own.
    pub fn destroy(&self) -> Vec<SectorWrite> {
        let media = self.media();
        let sectors = match self {
            Table::Mbr(_) => vec![0],
            Table::Bsd(table) => vec![table.sector_number()],
            Table::Gpt(table) => table.own_sectors(),
        };
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

    fn refuse_damaged(&self) -> Result<(), Error> {
        match self.damage().into_iter().next() {
            Some(damage) => Err(Error::Corrupt {
                scheme: self.scheme(),
                damage,
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

/// The writes that remove a scheme's table, as `gpart destroy` does: sector 0
/// for an MBR, the label's sector (1) for BSD, sectors 0 and 1 and the last
/// one for a GPT.
pub fn wipe(scheme: Scheme, media: Media) -> Vec<SectorWrite> {
    let sectors: &[u64] = match scheme {
        Scheme::Mbr => &[0],
        Scheme::Bsd => &[1],
        Scheme::Gpt => &[0, 1, media.last_lba()],
    };
    let exists = |lba: &&u64| **lba < media.sectors;
    let zeros = |&lba| SectorWrite {
        lba,
        data: vec![0; media.sector_len()],
    };
    sectors.iter().filter(exists).map(zeros).collect()
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
mod tests;
