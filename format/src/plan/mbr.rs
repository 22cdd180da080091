//! Editing an MBR. Sector 0 is kept whole: only table and signature change.

use super::{
    Change, Create, DiskId, Edit, Error, Ids, NewPart, Part, Scheme, Span, large_enough, place_in,
    read_exactly,
};
use crate::mbr::{self, Entry, Geometry, Mbr, MbrKind, PartType};
use crate::media::{Media, SectorRead, SectorWrite};

/// Sectors in front of the first partition: the first track, where boot code
/// that does not fit into sector 0 lives.
const FIRST_TRACK_SECTORS: u64 = 63;
/// A media with fewer sectors has no room to give away.
const SMALL_MEDIA_SECTORS: u64 = 1024;

/// The one attribute of a partition.
const ACTIVE: &str = "active";
const NO_LABELS: &str = "an MBR has no labels";

/// An MBR with the sector that holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MbrTable {
    media: Media,
    sector0: Vec<u8>,
    mbr: Box<Mbr>,
}

impl MbrTable {
    pub(super) fn create(media: Media, create: &Create) -> Result<MbrTable, Error> {
        let (scheme, needed) = (Scheme::Mbr, 2);
        create.fixed_entries(scheme, 4)?;
        large_enough(scheme, media, needed)?;
        let [a, b, c, d, ..] = create.random;
        let mut mbr = Mbr::empty(u32::from_le_bytes([a, b, c, d]));
        let mut sector0 = create.sector0.clone();
        sector0.resize(media.sector_len(), 0);
        // A FAT boot sector with an empty table in it would still be one.
        if mbr::bios_parameter_block(&sector0).is_none() {
            mbr.boot_code = crate::bytes::take(&sector0, 0);
        }
        let mbr = Box::new(mbr);
        Ok(MbrTable {
            media,
            sector0,
            mbr,
        })
    }

    pub(super) fn load(media: Media, read: &mut SectorRead<'_>) -> Result<MbrTable, Error> {
        let sector0 = read_exactly(media, 0, 1, read)?;
        let mbr = Box::new(Mbr::decode(&sector0)?);
        Ok(MbrTable {
            media,
            sector0,
            mbr,
        })
    }

    /// Sector 0 as it was read.
    pub(super) fn sector0(&self) -> &[u8] {
        &self.sector0
    }

    /// The purpose of the table.
    pub fn kind(&self) -> MbrKind {
        self.mbr.kind()
    }

    /// The record as it would be written.
    pub fn record(&self) -> &Mbr {
        &self.mbr
    }
}

fn parse_kind(kind: &str) -> Result<PartType, Error> {
    // The entry that covers a GPT is none of a partition.
    let parsed = PartType::parse(kind).filter(|&kind| kind != PartType::PROTECTIVE);
    parsed
        .ok_or_else(|| Error::unknown_type(Scheme::Mbr, kind, "number from 1 to 255, but not 238"))
}

impl Edit for MbrTable {
    media_and_scheme!(Mbr);

    fn usable(&self) -> (u64, u64) {
        let sectors = self.media.sectors.min(u64::from(u32::MAX));
        let usual = if sectors < SMALL_MEDIA_SECTORS {
            1
        } else {
            FIRST_TRACK_SECTORS
        };
        let earliest = self
            .mbr
            .slices()
            .map(|(_, entry)| u64::from(entry.start))
            .min();
        (
            earliest.unwrap_or(usual).min(usual),
            sectors.saturating_sub(1),
        )
    }

    fn ids(&self) -> Ids {
        Ids {
            disk: Some(DiskId::Number(self.mbr.disk_id)),
            ..Ids::default()
        }
    }

    fn set_ids(&mut self, ids: &Ids) {
        if let Some(DiskId::Number(number)) = ids.disk {
            self.mbr.disk_id = number;
        }
    }

    fn entries(&self) -> u32 {
        mbr::ENTRIES as u32
    }

    fn parts(&self) -> Vec<Part> {
        let part = |(number, entry): (usize, &Entry)| Part {
            index: number as u32,
            suffix: format!("s{number}"),
            start: u64::from(entry.start),
            sectors: u64::from(entry.sectors),
            kind: entry.kind.to_string(),
            raw_kind: entry.kind.0.to_string(),
            label: None,
            attributes: if entry.is_active() {
                vec!["active"]
            } else {
                Vec::new()
            },
        };
        self.mbr.slices().map(part).collect()
    }

    /// The entry that covers a GPT is not a partition, and not free either.
    fn is_internal(&self, index: u32) -> bool {
        let entry = self.mbr.entries.get(index.wrapping_sub(1) as usize);
        entry.is_some_and(|entry| entry.kind == PartType::PROTECTIVE)
    }

    fn insert(&mut self, index: u32, span: Span, new: &NewPart) -> Result<(), Error> {
        new.refuse_label(NO_LABELS)?;
        let kind = parse_kind(&new.kind)?;
        let number = |value: u64| {
            u32::try_from(value)
                .map_err(|_| Error::out_of_range(span.start, span.sectors, self.usable()))
        };
        let (start, sectors) = (number(span.start)?, number(span.sectors)?);
        let entry = Entry::new(kind, start, sectors, Geometry::LBA_ASSIST);
        if self.mbr.kind() == MbrKind::Dedicated {
            self.mbr.entries = Default::default();
        }
        *place_in(&mut self.mbr.entries, index)? = entry;
        Ok(())
    }

    fn change(&mut self, index: u32, change: &Change) -> Result<(), Error> {
        let entries = &mut self.mbr.entries;
        let entry = *place_in(entries, index)?;
        let changed = match change {
            Change::Kind(kind) => Entry {
                kind: parse_kind(kind)?,
                ..entry
            },
            Change::Label(label) => return Err(Error::label(label, NO_LABELS)),
            Change::Sectors(sectors) => {
                let sectors = u32::try_from(*sectors).unwrap_or(u32::MAX);
                let sized = Entry::new(entry.kind, entry.start, sectors, Geometry::LBA_ASSIST);
                Entry {
                    flag: entry.flag,
                    ..sized
                }
            }
            Change::Attribute { name, on } if name.eq_ignore_ascii_case(ACTIVE) => {
                // The boot code starts the only active one.
                if *on {
                    entries.iter_mut().for_each(|entry| entry.flag = 0);
                }
                Entry {
                    flag: if *on { 0x80 } else { 0 },
                    ..entry
                }
            }
            Change::Attribute { name, .. } => return Err(self.no_attribute(name)),
        };
        self.mbr.entries[index as usize - 1] = changed;
        Ok(())
    }

    fn attributes(&self) -> &'static [&'static str] {
        &[ACTIVE]
    }

    fn remove(&mut self, index: u32) -> Result<(), Error> {
        *place_in(&mut self.mbr.entries, index)? = Entry::default();
        Ok(())
    }

    fn encode(&self) -> Vec<SectorWrite> {
        let mut data = self.sector0.clone();
        crate::bytes::put(&mut data, 0, &self.mbr.encode());
        vec![SectorWrite { lba: 0, data }]
    }
}
