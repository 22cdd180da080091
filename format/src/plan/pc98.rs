//! Editing a table of the PC-98. Partitions are whole cylinders of the disk's
//! geometry, which stands nowhere in the table.

use super::{
    Change, Create, Edit, Error, NewPart, Part, Scheme, Span, has_sectors_of, large_enough,
    place_in, read_exactly,
};
use crate::media::{Media, SectorRead, SectorWrite};
use crate::pc98::{self, Chs, ENTRIES, Entry, Geometry, Pc98Type, SECTOR_BYTES, Table};

/// The name of NEC's loader, by which an empty table is known.
const LOADER: &[u8] = b"IPL1";
const LOADER_OFFSET_BYTES: usize = 4;
const ACTIVE: &str = "active";
const BOOTABLE: &str = "bootable";
const NO_LABELS: &str = "gpart sets none in a table of the PC-98";

/// A table of the PC-98.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pc98Table {
    media: Media,
    geometry: Geometry,
    table: Table,
}

impl Pc98Table {
    pub(super) fn create(media: Media, create: &Create) -> Result<Pc98Table, Error> {
        let scheme = Scheme::Pc98;
        create.fixed_entries(scheme, ENTRIES as u32)?;
        check_sectors(media)?;
        let geometry = create.geometry.unwrap_or(Geometry::DEFAULT);
        let needed = 2 * geometry.cylinder_sectors();
        large_enough(scheme, media, needed)?;
        let mut boot = [0; SECTOR_BYTES];
        match pc98::names_a_loader(&create.sector0) {
            true => crate::bytes::put(&mut boot, 0, &create.sector0[..SECTOR_BYTES]),
            false => crate::bytes::put(&mut boot, LOADER_OFFSET_BYTES, LOADER),
        }
        Ok(Pc98Table {
            media,
            geometry,
            table: Table::create(&boot),
        })
    }

    pub(super) fn load(
        media: Media,
        geometry: Option<Geometry>,
        read: &mut SectorRead<'_>,
    ) -> Result<Pc98Table, Error> {
        check_sectors(media)?;
        let table = Table::decode(&read_exactly(media, 0, 2, read)?)?;
        Ok(Pc98Table {
            media,
            geometry: geometry.unwrap_or(Geometry::DEFAULT),
            table,
        })
    }

    fn place(&mut self, index: u32) -> Result<&mut Entry, Error> {
        place_in(&mut self.table.entries, index)
    }

    /// A sector as cylinder, head and sector; both counted from 0, as parted
    /// and NEC's own tools count them.
    fn chs(&self, lba: u64) -> Chs {
        let track = u64::from(self.geometry.track_sectors).max(1);
        let heads = u64::from(self.geometry.heads).max(1);
        Chs {
            sector: (lba % track) as u8,
            head: (lba / track % heads) as u8,
            cylinder: u16::try_from(lba / track / heads).unwrap_or(u16::MAX),
        }
    }
}

fn check_sectors(media: Media) -> Result<(), Error> {
    let reason = "the table is in the second sector of 512 bytes";
    has_sectors_of(SECTOR_BYTES, media, Scheme::Pc98, reason)
}

fn parse_kind(kind: &str) -> Result<Pc98Type, Error> {
    Pc98Type::parse(kind).ok_or_else(|| {
        Error::unknown_type(
            Scheme::Pc98,
            kind,
            "number from 1 to 32639 without the flags 0x8080",
        )
    })
}

impl Edit for Pc98Table {
    media_and_scheme!(Pc98);

    fn usable(&self) -> (u64, u64) {
        let cylinder = self.geometry.cylinder_sectors();
        let most = (u64::from(u16::MAX) + 1) * cylinder;
        let sectors = self.media.sectors.min(most);
        (cylinder, sectors.saturating_sub(1))
    }

    fn entries(&self) -> u32 {
        ENTRIES as u32
    }

    fn parts(&self) -> Vec<Part> {
        let listed = self.table.slices(self.geometry);
        listed
            .map(|slice| {
                let entry = slice.entry;
                let attributes = [(entry.is_bootable(), BOOTABLE), (entry.is_active(), ACTIVE)];
                let label = entry.label();
                Part {
                    index: slice.number as u32,
                    suffix: format!("s{}", slice.number),
                    start: slice.start,
                    sectors: slice.sectors,
                    kind: entry.kind().to_string(),
                    raw_kind: entry.kind().0.to_string(),
                    label: (!label.is_empty()).then_some(label),
                    attributes: attributes
                        .into_iter()
                        .filter_map(|(set, name)| set.then_some(name))
                        .collect(),
                }
            })
            .collect()
    }

    fn grain(&self) -> u64 {
        self.geometry.cylinder_sectors()
    }

    fn insert(&mut self, index: u32, span: Span, new: &NewPart) -> Result<(), Error> {
        new.refuse_label(NO_LABELS)?;
        let mut entry = Entry {
            first: self.chs(span.start),
            last: self.chs(span.start + span.sectors - 1),
            ..Entry::default()
        };
        entry.boot = entry.first;
        entry.set_kind(parse_kind(&new.kind)?);
        *self.place(index)? = entry;
        Ok(())
    }

    fn change(&mut self, index: u32, change: &Change) -> Result<(), Error> {
        let place = index.wrapping_sub(1) as usize;
        let Some(mut entry) = self.table.entries.get(place).copied() else {
            return Err(Error::NoSuchPartition(index));
        };
        match change {
            Change::Kind(kind) => entry.set_kind(parse_kind(kind)?),
            Change::Label(label) => return Err(Error::label(label, NO_LABELS)),
            Change::Sectors(sectors) => {
                let start = u64::from(entry.first.cylinder) * self.grain();
                entry.last = self.chs(start + sectors.saturating_sub(1));
            }
            Change::Attribute { name, on } => {
                let flag = if *on { 0x80 } else { 0 };
                match name.to_ascii_lowercase().as_str() {
                    ACTIVE => entry.sid = entry.sid & 0x7f | flag,
                    BOOTABLE => entry.mid = entry.mid & 0x7f | flag,
                    _ => return Err(self.no_attribute(name)),
                }
            }
        }
        self.table.entries[place] = entry;
        Ok(())
    }

    fn attributes(&self) -> &'static [&'static str] {
        &[ACTIVE, BOOTABLE]
    }

    fn remove(&mut self, index: u32) -> Result<(), Error> {
        *self.place(index)? = Entry::default();
        Ok(())
    }

    /// The table before the boot sector that makes it one.
    fn encode(&self) -> Vec<SectorWrite> {
        let head = self.table.encode();
        let sector = |lba: u64| SectorWrite {
            lba,
            data: head[lba as usize * SECTOR_BYTES..][..SECTOR_BYTES].to_vec(),
        };
        vec![sector(1), sector(0)]
    }

    fn own_sectors(&self) -> Vec<u64> {
        vec![0, 1]
    }
}
