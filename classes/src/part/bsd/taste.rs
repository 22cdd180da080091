//! Looks for a disklabel at each place where one may stand.
//!
//! Rules of `g_bsd_taste`: in sector 1, then at byte 512, then at byte 64; inside an MBR or EBR
//! only in slices of type 165, inside a GPT only in partitions of type `freebsd`; anywhere else
//! always. A wrong checksum is damage, and no reason to refuse (see `ugeom_format::bsd`). The
//! partitions' sectors are those of the label, which may be larger than the disk's. GEOM lets a
//! label stand on a partition of another label if the two differ; as in GEOM_PART, a label is a
//! leaf here.

use super::NAME;
use crate::part::look;
use crate::part::slicer::{self, Part, Table};
use ugeom_format::bsd::{self, Label, RAW_PARTITION, Slice};
use ugeom_stack::{Plan, TasteError, Taster};

pub(super) fn taste(taster: &mut Taster<'_>) -> Result<Option<Plan>, TasteError> {
    let Some(media) = look::media(taster) else {
        return Ok(None);
    };
    if !look::may_stand(taster, NAME) || look::is_one_of_too_many(taster) {
        return Ok(None);
    }
    let unit = u64::from(media.sector_size_bytes);
    let Ok(head) = taster.read(0, unit * media.sectors.min(2)) else {
        return Ok(None);
    };
    let (location, label) = match bsd::find(&head, media.sector_size_bytes) {
        Ok(found) => found,
        Err(bsd::Error::NotFound) => return Ok(None),
        Err(error) => return Err(look::unusable(NAME, taster, error)),
    };
    let parts = label
        .slices()
        .map(|slice| part(taster.name(), unit, &label, &slice));
    let offset = location.offset_bytes(media.sector_size_bytes);
    let table = Table {
        scheme: NAME,
        config: vec![
            ("entries".to_owned(), label.partitions.len().to_string()),
            ("labeloffset".to_owned(), offset.to_string()),
            ("rawoffset".to_owned(), label.base().to_string()),
        ],
        damage: Vec::from_iter(label.verify(offset).err().map(|error| error.to_string())),
        parts: parts.collect(),
    };
    Ok(slicer::plan(taster, table))
}

fn part(below: &str, unit: u64, label: &Label, slice: &Slice) -> Part {
    let entry = label.partitions.get(slice.index);
    let mut config = Vec::new();
    if let Some(name) = slice.kind.description() {
        config.push(("fstype".to_owned(), name.to_owned()));
    }
    if let Some(entry) = entry.filter(|entry| entry.fragment_size_bytes != 0) {
        config.push(("fsize".to_owned(), entry.fragment_size_bytes.to_string()));
        let block = u64::from(entry.fragment_size_bytes) * u64::from(entry.fragments);
        config.push(("bsize".to_owned(), block.to_string()));
    }
    Part {
        name: format!("{below}{}", slice.letter()),
        index: slice.index as u32 + 1,
        // The label's sectors are a whole number of the provider's.
        first: slice.start_bytes / unit,
        sectors: slice.size_bytes / unit,
        sectorsize_bytes: Some(label.sector_size_bytes),
        kind: slice.kind.to_string(),
        raw_kind: slice.kind.0.to_string(),
        config,
        covers_others: slice.index == RAW_PARTITION,
        ..Part::default()
    }
}
