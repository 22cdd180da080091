//! Editing a disklabel64. The label has several sectors and one CRC, so a copy
//! is written first where the label keeps room for it; `recover` uses that.

use super::{
    Change, Create, DiskId, Edit, Error, Ids, NewPart, Part, PartId, Scheme, Span, place_in,
    read_exactly,
};
use crate::bsd64::{
    self, Bsd64Type, LEAST_BYTES, Label, MAX_PARTITIONS, Partition, RAW_PARTITION, SIZE_BYTES,
};
use crate::gpt::Guid;
use crate::media::{Media, SectorRead, SectorWrite};

const LABEL_OFFSET_BYTES: u64 = 512;
const NO_LABELS: &str = "partitions of a disklabel64 have none";

/// A disklabel64 with the sectors that hold it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bsd64Table {
    media: Media,
    sectors: Vec<u8>,
    label: Label,
    damage: Option<String>,
}

impl Bsd64Table {
    pub(super) fn create(media: Media, create: &Create) -> Result<Bsd64Table, Error> {
        let scheme = Scheme::Bsd64;
        create.fixed_entries(scheme, MAX_PARTITIONS as u32)?;
        let unit = u64::from(media.sector_size_bytes);
        let bytes = media.sectors.saturating_mul(unit);
        let guid = Guid::from_random(create.random);
        let label = Label::create(bytes, media.sector_size_bytes, guid);
        let label = label.ok_or(Error::TooSmall {
            scheme,
            needed: LEAST_BYTES / unit,
            found: media.sectors,
        })?;
        Ok(Bsd64Table {
            media,
            sectors: vec![0; label_sectors(media) as usize * media.sector_len()],
            label,
            damage: None,
        })
    }

    /// Reads the label; the copy at the end where the label is damaged.
    pub(super) fn load(media: Media, read: &mut SectorRead<'_>) -> Result<Bsd64Table, Error> {
        let size = media.sector_size_bytes;
        let sectors = read_exactly(media, 0, label_sectors(media), read)?;
        let (label, damage) = match Label::decode(&sectors, size) {
            Ok(label) => (label, None),
            // Without the magic number the copy may be what a destroyed table left.
            Err(error @ (bsd64::Error::Magic { .. } | bsd64::Error::Short { .. })) => {
                return Err(error.into());
            }
            Err(error) => match backup(media, read) {
                Some(label) => (label, Some(error.to_string())),
                None => return Err(error.into()),
            },
        };
        Ok(Bsd64Table {
            media,
            sectors,
            label,
            damage,
        })
    }

    /// The label as it would be written.
    pub fn label(&self) -> &Label {
        &self.label
    }

    pub(super) fn recover(&mut self) -> Vec<String> {
        Vec::from_iter(self.damage.take())
    }

    /// Where the copy goes: behind the partitions, if the label has room there.
    fn backup_lba(&self) -> Option<u64> {
        let unit = u64::from(self.media.sector_size_bytes);
        let at = self.label.backup_bytes;
        let lba = at / unit;
        let end = lba.checked_add(label_sectors(self.media))?;
        let free = at != 0 && at.is_multiple_of(unit) && at >= self.label.end_bytes;
        (free && end <= self.media.sectors).then_some(lba)
    }

    fn place(&mut self, index: u32) -> Result<&mut Partition, Error> {
        place_in(&mut self.label.partitions, index)
    }
}

fn label_sectors(media: Media) -> u64 {
    (SIZE_BYTES as u64).div_ceil(u64::from(media.sector_size_bytes.max(1)))
}

/// The copy that this module writes, where a label made for this media has it.
fn backup(media: Media, read: &mut SectorRead<'_>) -> Option<Label> {
    let unit = u64::from(media.sector_size_bytes);
    let bytes = media.sectors.saturating_mul(unit);
    let expected = Label::create(bytes, media.sector_size_bytes, Guid::UNUSED)?;
    let lba = expected.backup_bytes / unit;
    let data = read_exactly(media, lba, label_sectors(media), read).ok()?;
    let label = Label::decode(&data, media.sector_size_bytes).ok()?;
    (label.backup_bytes == expected.backup_bytes).then_some(label)
}

fn parse_kind(kind: &str) -> Result<Bsd64Type, Error> {
    Bsd64Type::parse(kind)
        .ok_or_else(|| Error::unknown_type(Scheme::Bsd64, kind, "number from 1 to 255, or GUID"))
}

impl Edit for Bsd64Table {
    media_and_scheme!(Bsd64);

    fn usable(&self) -> (u64, u64) {
        let unit = u64::from(self.media.sector_size_bytes);
        let end = (self.label.end_bytes / unit).min(self.media.sectors);
        (self.label.first_bytes / unit, end.saturating_sub(1))
    }

    fn entries(&self) -> u32 {
        self.label.partitions.len() as u32
    }

    fn parts(&self) -> Vec<Part> {
        let unit = u64::from(self.media.sector_size_bytes);
        let part = |(index, partition): (usize, &Partition)| Part {
            index: index as u32 + 1,
            suffix: crate::bsd::letter(index).to_string(),
            start: partition.offset_bytes / unit,
            sectors: partition.size_bytes / unit,
            kind: partition.kind.to_string(),
            raw_kind: partition.kind.number.to_string(),
            ..Part::default()
        };
        self.label.slices().map(part).collect()
    }

    fn ids(&self) -> Ids {
        let id = |(index, partition): (usize, &Partition)| {
            let (uuid, attributes) = (partition.guid, 0);
            (index as u32 + 1, PartId { uuid, attributes })
        };
        Ids {
            disk: Some(DiskId::Uuid(self.label.guid)),
            parts: self.label.slices().map(id).collect(),
        }
    }

    fn set_ids(&mut self, ids: &Ids) {
        if let Some(DiskId::Uuid(uuid)) = ids.disk {
            self.label.guid = uuid;
        }
        for (&index, id) in &ids.parts {
            if let Ok(partition) = self.place(index) {
                partition.guid = id.uuid;
            }
        }
    }

    fn is_internal(&self, index: u32) -> bool {
        index as usize == RAW_PARTITION + 1
    }

    fn damage(&self) -> Vec<String> {
        Vec::from_iter(self.damage.clone())
    }

    fn insert(&mut self, index: u32, span: Span, new: &NewPart) -> Result<(), Error> {
        new.refuse_label(NO_LABELS)?;
        let unit = u64::from(self.media.sector_size_bytes);
        let partition = Partition {
            offset_bytes: span.start * unit,
            size_bytes: span.sectors * unit,
            kind: parse_kind(&new.kind)?,
            guid: Guid::from_random(new.random),
        };
        *self.place(index)? = partition;
        Ok(())
    }

    fn change(&mut self, index: u32, change: &Change) -> Result<(), Error> {
        let unit = u64::from(self.media.sector_size_bytes);
        let (kind, size_bytes) = match change {
            Change::Kind(kind) => (Some(parse_kind(kind)?), None),
            Change::Sectors(sectors) => (None, Some(sectors.saturating_mul(unit))),
            Change::Label(label) => return Err(Error::label(label, NO_LABELS)),
            Change::Attribute { name, .. } => return Err(self.no_attribute(name)),
        };
        let place = self.place(index)?;
        place.kind = kind.unwrap_or(place.kind);
        place.size_bytes = size_bytes.unwrap_or(place.size_bytes);
        Ok(())
    }

    fn remove(&mut self, index: u32) -> Result<(), Error> {
        *self.place(index)? = Partition::default();
        Ok(())
    }

    /// The copy, then the label. The bytes before it in sector 0 are kept.
    fn encode(&self) -> Vec<SectorWrite> {
        let mut data = self.sectors.clone();
        let label = self.label.encode();
        let own = LABEL_OFFSET_BYTES as usize;
        crate::bytes::put(&mut data, own, &label[own..]);
        let copy = self.backup_lba().map(|lba| SectorWrite {
            lba,
            data: data.clone(),
        });
        let lba = LABEL_OFFSET_BYTES / u64::from(self.media.sector_size_bytes);
        let label = SectorWrite {
            lba,
            data: data.split_off(lba as usize * self.media.sector_len()),
        };
        Vec::from_iter(copy.into_iter().chain([label]))
    }

    /// The copy before the label: the other order would leave a damaged table.
    fn own_sectors(&self) -> Vec<u64> {
        let unit = u64::from(self.media.sector_size_bytes);
        let own = LABEL_OFFSET_BYTES / unit;
        Vec::from_iter(
            self.backup_lba()
                .map(|lba| lba + own)
                .into_iter()
                .chain([own]),
        )
    }
}
