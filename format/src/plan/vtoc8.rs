//! Editing a Sun label. Partitions are whole cylinders of the label's own
//! geometry; `c` covers the disk and is not edited, as in gpart. Where it is a partition like the
//! others, which Solaris allows, gpart hides it and gives its sectors away; here it is listed.

use super::{
    Change, Create, Edit, Error, NewPart, Part, Scheme, Span, has_sectors_of, place_in,
    read_exactly,
};
use crate::media::{Media, SectorRead, SectorWrite};
use crate::vtoc8::{ENTRIES, Label, Partition, RAW_PARTITION, SIZE_BYTES, Tag};

const NO_LABELS: &str = "partitions of a Sun label have none";

/// A Sun label that is being edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vtoc8Table {
    media: Media,
    label: Label,
}

impl Vtoc8Table {
    pub(super) fn create(media: Media, create: &Create) -> Result<Vtoc8Table, Error> {
        let scheme = Scheme::Vtoc8;
        create.fixed_entries(scheme, ENTRIES as u32)?;
        check_sectors(media)?;
        let geometry = create.geometry_for(media);
        let number = |value: u32| u16::try_from(value).unwrap_or(u16::MAX);
        let (heads, sectors) = (number(geometry.heads), number(geometry.track_sectors));
        let label = Label::create(media.sectors, heads, sectors);
        // Two alternate cylinders, and one for data.
        let label = label.ok_or(Error::Cylinders {
            scheme,
            least: 3,
            most: u64::from(u16::MAX),
            found: media.sectors / geometry.cylinder_sectors().max(1),
        })?;
        Ok(Vtoc8Table { media, label })
    }

    pub(super) fn load(media: Media, read: &mut SectorRead<'_>) -> Result<Vtoc8Table, Error> {
        check_sectors(media)?;
        let sector = read_exactly(media, 0, 1, read)?;
        let label = Label::decode(&sector)?;
        Ok(Vtoc8Table { media, label })
    }

    /// The label as it would be written.
    pub fn label(&self) -> &Label {
        &self.label
    }

    fn place(&mut self, index: u32) -> Result<&mut Partition, Error> {
        place_in(&mut self.label.partitions, index)
    }
}

fn check_sectors(media: Media) -> Result<(), Error> {
    let reason = "the label counts in sectors of 512 bytes";
    has_sectors_of(SIZE_BYTES, media, Scheme::Vtoc8, reason)
}

fn parse_kind(kind: &str) -> Result<Tag, Error> {
    Tag::parse(kind)
        .ok_or_else(|| Error::unknown_type(Scheme::Vtoc8, kind, "number from 1 to 65535"))
}

impl Edit for Vtoc8Table {
    media_and_scheme!(Vtoc8);

    fn usable(&self) -> (u64, u64) {
        let sectors = u64::from(self.label.cylinders) * self.label.cylinder_sectors();
        (0, sectors.min(self.media.sectors).saturating_sub(1))
    }

    fn entries(&self) -> u32 {
        ENTRIES as u32
    }

    fn parts(&self) -> Vec<Part> {
        let listed = self.label.slices();
        let is_whole = self.label.raw_is_whole();
        let listed = listed.filter(|slice| slice.index != RAW_PARTITION || !is_whole);
        listed
            .map(|slice| Part {
                index: slice.index as u32 + 1,
                suffix: crate::bsd::letter(slice.index).to_string(),
                start: slice.start,
                sectors: slice.sectors,
                kind: slice.tag.to_string(),
                raw_kind: slice.tag.0.to_string(),
                ..Part::default()
            })
            .collect()
    }

    fn is_internal(&self, index: u32) -> bool {
        index as usize == RAW_PARTITION + 1 && self.label.raw_is_whole()
    }

    fn grain(&self) -> u64 {
        self.label.cylinder_sectors()
    }

    fn insert(&mut self, index: u32, span: Span, new: &NewPart) -> Result<(), Error> {
        new.refuse_label(NO_LABELS)?;
        let tag = parse_kind(&new.kind)?;
        let cylinder = u32::try_from(span.start / self.grain());
        let (Ok(cylinder), Ok(sectors)) = (cylinder, u32::try_from(span.sectors)) else {
            return Err(Error::out_of_range(span.start, span.sectors, self.usable()));
        };
        *self.place(index)? = Partition {
            tag,
            flag: 0,
            cylinder,
            sectors,
        };
        Ok(())
    }

    fn change(&mut self, index: u32, change: &Change) -> Result<(), Error> {
        let (tag, sectors) = match change {
            Change::Kind(kind) => (Some(parse_kind(kind)?), None),
            Change::Sectors(sectors) => (None, Some(u32::try_from(*sectors).unwrap_or(u32::MAX))),
            Change::Label(label) => return Err(Error::label(label, NO_LABELS)),
            Change::Attribute { name, .. } => return Err(self.no_attribute(name)),
        };
        let place = self.place(index)?;
        place.tag = tag.unwrap_or(place.tag);
        place.sectors = sectors.unwrap_or(place.sectors);
        Ok(())
    }

    fn remove(&mut self, index: u32) -> Result<(), Error> {
        *self.place(index)? = Partition::default();
        Ok(())
    }

    fn encode(&self) -> Vec<SectorWrite> {
        let data = self.label.encode().to_vec();
        vec![SectorWrite { lba: 0, data }]
    }
}
