//! Slices of BSD systems, by their disklabel: in the second sector, with a checksum and the places
//! of its partitions.
//!
//! An old label may lie under newer partitions, so it counts when something was found where one of
//! its partitions begins. Source: `docs/formats/bsd.md`.

use super::probes::Reader;
use super::{Claim, Holds, Place};
use crate::bsd::{Extent, FsType, Label, RAW_PARTITION};
use std::collections::BTreeSet;

/// A label at the beginning of a sector. The medium's own label is no lost one.
pub(super) fn bsd(view: &mut Reader<'_, '_>, sector: &[u8], at: u64) -> Vec<Claim> {
    let before = match at % view.sector_size_bytes {
        0 => view.sector_size_bytes,
        _ => 512,
    };
    let start = at.checked_sub(before).filter(|&start| start > 0);
    let label = Label::decode(sector, 0, 512).ok();
    let label = label.filter(|label| label.wrong_checksum.is_none());
    let (Some(start), Some(label)) = (start, label) else { return Vec::new() };
    let unit = u64::from(label.sector_size_bytes);
    let own = start / unit;
    let raw = label.extents().find(|extent| extent.index == RAW_PARTITION);
    let is_part = |extent: &Extent| extent.index != RAW_PARTITION && extent.kind != FsType::UNUSED;
    let parts: Vec<Extent> = label.extents().filter(is_part).collect();
    // OpenBSD's and NetBSD's labels count from the beginning of the disk.
    let is_absolute = !parts.is_empty() && parts.iter().all(|part| part.start >= own);
    let base = match u64::from(label.base()) {
        0 if is_absolute => own,
        base => base,
    };
    let starts = parts.iter().filter_map(|part| {
        part.start
            .checked_sub(base)?
            .checked_mul(unit)?
            .checked_add(start)
    });
    let end = |extent: &Extent| {
        Some(
            extent
                .start
                .checked_add(extent.sectors)?
                .saturating_sub(base),
        )
    };
    let ends = parts.iter().filter_map(end);
    // There `c` is the disk.
    let raw = raw.filter(|raw| raw.start == base).map(|raw| raw.sectors);
    let length = raw
        .or_else(|| ends.max())
        .and_then(|sectors| sectors.checked_mul(unit));
    let Some(length) = length else { return Vec::new() };
    vec![Claim {
        holds: Holds::Bsd,
        start,
        length: Some(length),
        what: "disklabel",
        offset: at,
        entry: None,
        parts: starts.collect(),
    }]
}

/// True for a label that has a partition where something else was found.
pub(super) fn is_confirmed(label: &Place, starts: &BTreeSet<u64>) -> bool {
    label.parts.iter().any(|part| starts.contains(part))
}
