//! Editing a BSD disklabel. A wrong checksum is no reason to refuse: the next
//! write puts it right. The sector that holds it is kept whole: only the
//! label's bytes change, and on the Alpha the sector's checksum.

use super::{
    Change, Create, Edit, Error, NewPart, Part, Scheme, Span, large_enough, place_in, read_exactly,
};
use crate::bsd::RAW_PARTITION;
use crate::bsd::{self, BOOT_AREA_SIZE_BYTES, ByteOrder, FsType, Label, Location, Partition};
use crate::mbr::Geometry;
use crate::media::{Media, SectorRead, SectorWrite};

const LEAST_ENTRIES: u32 = 8;
const MOST_ENTRIES: u32 = 20;

/// A disklabel with the sector that holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BsdTable {
    media: Media,
    location: Location,
    sector: Vec<u8>,
    label: Label,
}

impl BsdTable {
    /// A label of `entries` partitions of which only `c` is used.
    pub(super) fn create(media: Media, create: &Create) -> Result<BsdTable, Error> {
        let scheme = Scheme::Bsd;
        let entries = create.entries_within(scheme, LEAST_ENTRIES..=MOST_ENTRIES)?;
        let size = media.sector_size_bytes;
        if !BOOT_AREA_SIZE_BYTES.is_multiple_of(size) {
            let reason = "the boot area of 8192 bytes is not a whole number of them";
            return Err(Error::SectorSize {
                scheme,
                found: size,
                reason,
            });
        }
        let needed = u64::from(BOOT_AREA_SIZE_BYTES / size);
        large_enough(scheme, media, needed)?;
        let label = new_label(media, entries);
        let sector = vec![0; media.sector_len()];
        Ok(BsdTable {
            media,
            location: Location::SectorOne,
            sector,
            label,
        })
    }

    pub(super) fn load(media: Media, read: &mut SectorRead<'_>) -> Result<BsdTable, Error> {
        let head = read_exactly(media, 0, media.sectors.min(2), read)?;
        let (location, label) = bsd::find(&head, media.sector_size_bytes)?;
        let reason = match label.order {
            ByteOrder::Big => Some("it is big-endian"),
            ByteOrder::Little if label.is_48_bit() => Some("it is OpenBSD's, of 48 bits"),
            ByteOrder::Little => None,
        };
        if let Some(reason) = reason {
            let scheme = Scheme::Bsd;
            return Err(Error::ReadOnly { scheme, reason });
        }
        if label.sector_size_bytes != media.sector_size_bytes {
            let reason = "the label counts in larger sectors, such a table is only read";
            let found = label.sector_size_bytes;
            return Err(Error::SectorSize {
                scheme: Scheme::Bsd,
                found,
                reason,
            });
        }
        let at = sector_of(location) as usize * media.sector_len();
        let sector = head[at..at + media.sector_len()].to_vec();
        Ok(BsdTable {
            media,
            location,
            sector,
            label,
        })
    }

    /// The boot area with other code around the label.
    pub(super) fn boot_area(&self, code: &[u8]) -> Result<Vec<SectorWrite>, Error> {
        let mut writes = super::bootcode::sectors(self.media, code);
        let own = sector_of(self.location);
        for write in writes.iter_mut().filter(|write| write.lba == own) {
            bsd::put(&mut write.data, self.location, &self.label)?;
        }
        Ok(writes)
    }

    /// The label as it would be written.
    pub fn label(&self) -> &Label {
        &self.label
    }

    /// Where the label stands.
    pub fn location(&self) -> Location {
        self.location
    }
}

fn sector_of(location: Location) -> u64 {
    match location {
        Location::SectorOne => 1,
        Location::Byte512 | Location::Alpha => 0,
    }
}

/// The fields that gpart fills, with the geometry that a BIOS would report.
fn new_label(media: Media, entries: u32) -> Label {
    let sectors = u32::try_from(media.sectors).unwrap_or(u32::MAX);
    let geometry = Geometry::LBA_ASSIST;
    let (track, tracks) = (u32::from(geometry.sectors), u32::from(geometry.heads));
    let mut hardware = [0; 68];
    crate::bytes::put_u16_le(&mut hardware, 72 - 64, 3600);
    let mut partitions = vec![Partition::default(); entries as usize];
    partitions[RAW_PARTITION].sectors = sectors;
    Label {
        drive_type: 0,
        drive_subtype: 0,
        type_name: [0; 16],
        pack_name: [0; 16],
        sector_size_bytes: media.sector_size_bytes,
        track_sectors: track,
        cylinder_tracks: tracks,
        cylinders: sectors / (track * tracks),
        cylinder_sectors: track * tracks,
        unit_sectors: sectors,
        hardware,
        boot_area_size_bytes: BOOT_AREA_SIZE_BYTES,
        superblock_size_bytes: 0,
        partitions,
        order: ByteOrder::Little,
        wrong_checksum: None,
    }
}

const NO_LABELS: &str = "partitions of a disklabel have none";

fn parse_kind(kind: &str) -> Result<FsType, Error> {
    let parsed = FsType::parse(kind).filter(|&kind| kind != FsType::UNUSED);
    parsed.ok_or_else(|| Error::unknown_type(Scheme::Bsd, kind, "number from 1 to 255"))
}

impl Edit for BsdTable {
    media_and_scheme!(Bsd);

    fn usable(&self) -> (u64, u64) {
        (
            0,
            self.media
                .sectors
                .min(u64::from(u32::MAX))
                .saturating_sub(1),
        )
    }

    fn entries(&self) -> u32 {
        self.label.partitions.len() as u32
    }

    fn parts(&self) -> Vec<Part> {
        let unit = u64::from(self.label.sector_size_bytes.max(1));
        let listed = self
            .label
            .slices()
            .filter(|slice| slice.index != RAW_PARTITION);
        listed
            .map(|slice| Part {
                index: slice.index as u32 + 1,
                suffix: slice.letter().to_string(),
                start: slice.start_bytes / unit,
                sectors: slice.size_bytes / unit,
                kind: slice.kind.to_string(),
                raw_kind: slice.kind.0.to_string(),
                ..Part::default()
            })
            .collect()
    }

    fn is_internal(&self, index: u32) -> bool {
        index as usize == RAW_PARTITION + 1
    }

    fn insert(&mut self, index: u32, span: Span, new: &NewPart) -> Result<(), Error> {
        new.refuse_label(NO_LABELS)?;
        let kind = parse_kind(&new.kind)?;
        let base = u64::from(self.label.base());
        let (Ok(on_disk), Ok(sectors)) = (
            u32::try_from(span.start + base),
            u32::try_from(span.sectors),
        ) else {
            return Err(Error::out_of_range(span.start, span.sectors, self.usable()));
        };
        *place_in(&mut self.label.partitions, index)? = Partition {
            sectors,
            start: on_disk,
            kind,
            ..Default::default()
        };
        Ok(())
    }

    fn change(&mut self, index: u32, change: &Change) -> Result<(), Error> {
        let changed = match change {
            Change::Kind(kind) => (Some(parse_kind(kind)?), None),
            Change::Label(label) => return Err(Error::label(label, NO_LABELS)),
            Change::Sectors(sectors) => (None, Some(u32::try_from(*sectors).unwrap_or(u32::MAX))),
            Change::Attribute { name, .. } => return Err(self.no_attribute(name)),
        };
        let partition = place_in(&mut self.label.partitions, index)?;
        partition.kind = changed.0.unwrap_or(partition.kind);
        partition.sectors = changed.1.unwrap_or(partition.sectors);
        Ok(())
    }

    fn remove(&mut self, index: u32) -> Result<(), Error> {
        let base = self.label.base();
        let place = place_in(&mut self.label.partitions, index)?;
        let removed = std::mem::take(place);
        if self.label.base() != base {
            self.label.partitions[index as usize - 1] = removed;
            return Err(Error::MovesOthers(index));
        }
        Ok(())
    }

    fn encode(&self) -> Vec<SectorWrite> {
        let mut data = self.sector.clone();
        match bsd::put(&mut data, self.location, &self.label) {
            Ok(()) => vec![SectorWrite {
                lba: sector_of(self.location),
                data,
            }],
            // The label was read from this very place or made for sector 1, so
            // it fits; writing nothing is the safe answer if it ever did not.
            Err(_) => Vec::new(),
        }
    }

    fn own_sectors(&self) -> Vec<u64> {
        vec![sector_of(self.location)]
    }
}
