//! The database of a dynamic disk, which is listed and never changed, as in gpart.

use super::{Change, Edit, Error, NewPart, Part, Scheme};
use crate::ldm::{Database, Found, SECTOR_BYTES};
use crate::media::{Media, SectorRead, SectorWrite};
use crate::plan::space::Span;

/// Why nothing is done with a database of Windows.
pub(super) const IS_READ: Error = Error::ReadOnly {
    scheme: Scheme::Ldm,
    reason: "Windows keeps it in a database of its own",
};

/// The volumes of a dynamic disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LdmTable {
    media: Media,
    database: Database,
    /// The partition of a GPT that holds the volumes, with the letter of its provider.
    data: Option<String>,
}

impl LdmTable {
    pub(super) fn load(media: Media, read: &mut SectorRead<'_>) -> Result<Self, Error> {
        let none = |reason: &str| Error::Ldm(reason.to_owned());
        if media.sector_size_bytes != SECTOR_BYTES {
            return Err(none("its sectors have to have 512 bytes"));
        }
        let found = Found::look(media, read).ok_or(none("there is no database"))?;
        let database = Database::read(media, found.place, read);
        let database = database.map_err(|error| none(&error.to_string()))?;
        Ok(Self {
            media,
            database,
            data: found.data.map(|(number, ..)| format!("p{number}")),
        })
    }

    /// The disk has an MBR, whose partitions are only the shell of the database.
    pub(super) fn hides_mbr(&self) -> bool {
        self.data.is_none() && !self.database.listed().is_empty()
    }
}

impl Edit for LdmTable {
    media_and_scheme!(Ldm);

    fn usable(&self) -> (u64, u64) {
        let header = &self.database.header;
        let end = header.start.saturating_add(header.sectors);
        (header.start, end.saturating_sub(1))
    }

    fn entries(&self) -> u32 {
        self.database.listed().len() as u32
    }

    /// A volume of several pieces has a line for each, with the same index.
    fn parts(&self) -> Vec<Part> {
        let prefix = self.data.as_deref().unwrap_or("");
        let mut parts = Vec::new();
        for (index, listed) in (1..).zip(self.database.listed()) {
            parts.extend(listed.extents.iter().map(|extent| Part {
                index,
                suffix: format!("{prefix}s{index}"),
                start: extent.start,
                sectors: extent.sectors,
                kind: listed.kind().to_string(),
                raw_kind: listed.kind().0.to_string(),
                label: Some(listed.volume.name.clone()),
                attributes: Vec::new(),
            }));
        }
        parts
    }

    fn insert(&mut self, _index: u32, _span: Span, _new: &NewPart) -> Result<(), Error> {
        Err(IS_READ)
    }

    fn change(&mut self, _index: u32, _change: &Change) -> Result<(), Error> {
        Err(IS_READ)
    }

    fn set_on_table(&mut self, _attribute: &str, _on: bool) -> Result<(), Error> {
        Err(IS_READ)
    }

    fn remove(&mut self, _index: u32) -> Result<(), Error> {
        Err(IS_READ)
    }

    fn encode(&self) -> Vec<SectorWrite> {
        Vec::new()
    }

    fn own_sectors(&self) -> Vec<u64> {
        Vec::new()
    }
}
