//! Slices of BSD systems and of Solaris on x86, by their label: in the second sector, with a
//! checksum and the places of its partitions.
//!
//! An old label may lie under newer partitions, so it counts when something was found where one of
//! its partitions begins. Sources: `docs/formats/bsd.md`; illumos `sys/dklabel.h` and
//! `sys/vtoc.h` for 16 slices, Linux `block/partitions/msdos.c` (starts count from the label's
//! own slice).

use super::probes::Reader;
use super::{Claim, Holds, Place};
use crate::bsd::{Extent, FsType, Label, RAW_PARTITION};
use crate::bytes::{u16_le, u32_le};
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

/// Magic number of a label, in byte 508 of its sector.
const SOLARIS_MAGIC: u16 = 0xdabe;
const SOLARIS_SLICES: usize = 16;
/// The sector size, the slices: tag, flags, start, size; the checksum is the last word.
const SOLARIS_SECTOR_SIZE_AT: usize = 28;
const SOLARIS_SLICES_AT: usize = 72;
/// Tags of slices that cover others: the whole, the boot block, alternate sectors.
const SOLARIS_COVERS: [u16; 4] = [0, 1, 5, 9];

/// A VTOC in the second sector of a slice of Solaris on x86.
pub(super) fn solaris(view: &mut Reader<'_, '_>, sector: &[u8], at: u64) -> Vec<Claim> {
    let words = || (0..512).step_by(2).map(|at| u16_le(sector, at));
    let unit = u64::from(u16_le(sector, SOLARIS_SECTOR_SIZE_AT));
    let is_label = u16_le(sector, 508) == SOLARIS_MAGIC
        && words().fold(0, |sum, word| sum ^ word) == 0
        && unit.is_power_of_two()
        && (512..=4096).contains(&unit);
    // The medium's own label is no lost one.
    let start = at.checked_sub(view.sector_size_bytes.max(512));
    let Some(start) = start.filter(|&start| is_label && start > 0) else { return Vec::new() };
    let slices = (0..SOLARIS_SLICES).map(|index| {
        let at = SOLARIS_SLICES_AT + 12 * index;
        let (first, sectors) = (u32_le(sector, at + 4), u32_le(sector, at + 8));
        (u16_le(sector, at), u64::from(first), u64::from(sectors))
    });
    let slices: Vec<(u16, u64, u64)> = slices.filter(|slice| slice.2 > 0).collect();
    let Some(sectors) = slices.iter().map(|(_, first, size)| first + size).max() else {
        return Vec::new();
    };
    let parts = slices
        .iter()
        .filter(|(tag, ..)| !SOLARIS_COVERS.contains(tag));
    vec![Claim {
        holds: Holds::Solaris,
        start,
        length: Some(sectors * unit),
        what: "VTOC",
        offset: at,
        entry: None,
        parts: parts
            .filter_map(|(_, first, _)| start.checked_add(first * unit))
            .collect(),
    }]
}

/// True for a label that has a partition where something else was found.
pub(super) fn is_confirmed(label: &Place, starts: &BTreeSet<u64>) -> bool {
    label.parts.iter().any(|part| starts.contains(part))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ext_superblock, extent, put, search_in};
    use super::*;

    /// A label with these slices: tag, first sector, sectors.
    fn vtoc(slices: &[(u16, u32, u32)]) -> [u8; 512] {
        let mut sector = [0; 512];
        put(&mut sector, 12, &[0xee, 0xde, 0x0d, 0x60, 1, 0, 0, 0]);
        put(&mut sector, SOLARIS_SECTOR_SIZE_AT, &[0, 2, 16, 0]);
        for (at, (tag, first, sectors)) in (SOLARIS_SLICES_AT..).step_by(12).zip(slices) {
            put(&mut sector, at, &tag.to_le_bytes());
            put(&mut sector, at + 4, &first.to_le_bytes());
            put(&mut sector, at + 8, &sectors.to_le_bytes());
        }
        put(&mut sector, 508, &SOLARIS_MAGIC.to_le_bytes());
        let words = (0..510).step_by(2).map(|at| u16_le(&sector, at));
        let sum = words.fold(0, |sum, word| sum ^ word);
        put(&mut sector, 510, &sum.to_le_bytes());
        sector
    }

    #[test]
    fn a_vtoc_of_x86_gives_its_slice_and_holds_what_is_in_its_partitions() {
        let mut disk = vec![0; 24 << 20];
        let start = 3 << 20;
        let label = vtoc(&[(2, 4096, 16_384), (3, 20_480, 8192), (5, 0, 30_000)]);
        put(&mut disk, start + 512, &label);
        let superblock = start + 4096 * 512 + 1024;
        put(&mut disk, superblock, &ext_superblock(8192, 0));
        let found = |disk: &[u8]| -> Vec<_> {
            let lost = search_in(disk).partitions();
            lost.iter().map(|one| (extent(one), one.over)).collect()
        };
        let expected = [
            ((Holds::Solaris, 6144, 30_000), None),
            ((Holds::Ext, 10_240, 16_384), Some(6144)),
        ];
        assert_eq!(found(&disk), expected);
        // Without its content it is an old one, below what begins in it.
        disk[superblock..superblock + 512].fill(0);
        put(
            &mut disk,
            start + (64 << 10) + 1024,
            &ext_superblock(8192, 0),
        );
        assert_eq!(found(&disk)[0].1, Some(6144 + 128));
        // A wrong checksum.
        disk[start + 512 + 100] ^= 1;
        assert_eq!(found(&disk).len(), 1);
    }
}
