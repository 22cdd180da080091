//! BSD: the disklabel, partitions `a` to `v` of a slice or of a whole disk.
//!
//! ```text
//! slice or disk  [ sector 0 | label | boot ]   a |------|  b |---|  d |----------|
//!                c |--------------------------------------------------------------|
//! ```
//! A read of `md0s1a`: [`crate::part::slicer::Slicer`] adds the partition's place in the slice and
//! forwards to `md0s1`; a write likewise. The raw partition `c` is listed like any other. The
//! layout is described in `ugeom_format::bsd`.
//!
//! Rules of `g_bsd_taste` and `g_part_bsd_probe`: in sector 1, then at byte 512, then at byte 64,
//! on disks and in partitions of any type. A wrong checksum is damage, and no reason to refuse (see
//! `ugeom_format::bsd`). The partitions' sectors are those of the label, which may be larger than
//! the disk's. GEOM lets a label stand on a partition of another label if the two differ; as in
//! GEOM_PART, a label is a leaf here.
//!
//! In a slice of OpenBSD or NetBSD the places count from the beginning of the disk, also where `c`
//! does not begin with the slice; what lies outside the slice is named and not listed, as in Linux.

use crate::entry::Miss;
use crate::part::look;
use crate::part::slicer::{self, Part, Table};
use ugeom_format::Media;
use ugeom_format::bsd::{self, ByteOrder, Extent, Label, RAW_PARTITION, Slice, System};
use ugeom_format::mbr::PartType;
use ugeom_stack::{Plan, Taster};

/// GEOM's name of the class, and gpart's of the scheme.
pub use super::names::BSD as NAME;

/// NetBSD's raw partition on PCs, `d`: the whole disk.
const NETBSD_RAW_PARTITION: usize = 3;

pub(crate) fn taste(taster: &mut Taster<'_>) -> Result<Plan, Miss> {
    let media = look::ground(NAME, taster)?;
    let unit = u64::from(media.sector_size_bytes);
    let head = look::two_sectors(taster)?;
    let (location, label) =
        bsd::find(&head, media.sector_size_bytes).map_err(|error| miss(taster, media, error))?;
    let system = system(taster, &label);
    let base = base(taster, &label, system);
    let parts: Vec<Part> = label
        .slices_from(base)
        .map(|slice| part(taster.name(), unit, &label, system, &slice))
        .collect();
    let offset = location.offset_bytes(media.sector_size_bytes);
    let mut config = vec![
        ("entries", label.partitions.len().to_string()),
        ("labeloffset", offset.to_string()),
        ("rawoffset", base.to_string()),
    ];
    if label.order == ByteOrder::Big {
        config.push(("byteorder", "big-endian".to_owned()));
    }
    let outside = label.extents().filter(|extent| extent.start < base);
    config.extend(outside.map(|extent| ("outside", outside_text(extent))));
    let table = Table {
        scheme: NAME,
        config,
        damage: Vec::from_iter(label.verify(offset).err().map(|error| error.to_string())),
        parts,
    };
    slicer::plan(taster, table)
}

/// No label; or one that was made for a disk with other sectors, which is named.
fn miss(taster: &mut Taster<'_>, media: Media, error: bsd::Error) -> Miss {
    match error {
        bsd::Error::SectorSize { offset, found, .. } if found >= 512 && found.is_power_of_two() => {
            Miss::unusable(look::made_for("label", offset, found, media))
        }
        bsd::Error::NotFound if !look::is_nested(taster) => {
            match bsd::other_sector_size(media, &mut look::reader(taster)) {
                Some(size) => Miss::unusable(look::made_for("label", size.into(), size, media)),
                None => Miss::absent(error),
            }
        }
        error => Miss::absent_if(matches!(error, bsd::Error::NotFound), error),
    }
}

/// Whose label it is: the slice's type tells, and the version that only OpenBSD has.
fn system(taster: &mut Taster<'_>, label: &Label) -> System {
    match look::number(taster, "MBR::type").and_then(|kind| u8::try_from(kind).ok()) {
        Some(kind) if PartType(kind) == PartType::OPENBSD => return System::OpenBsd,
        Some(kind) if PartType(kind) == PartType::NETBSD => return System::NetBsd,
        _ => {}
    }
    match look::text(taster, "PART::type").as_deref() {
        Some("openbsd-data") => System::OpenBsd,
        Some(kind) if kind.starts_with("netbsd-") => System::NetBsd,
        _ if label.is_48_bit() => System::OpenBsd,
        _ => System::FreeBsd,
    }
}

/// The label's number of the first sector of the provider.
fn base(taster: &mut Taster<'_>, label: &Label, system: System) -> u64 {
    let usual = u64::from(label.base());
    if system == System::FreeBsd {
        return usual;
    }
    let unit = u64::from(label.sector_size_bytes.max(1));
    let first = look::disk_offset_bytes(taster) / unit;
    let end = first.saturating_add(taster.mediasize_bytes() / unit);
    let is_inside = |extent: &Extent| (first..end).contains(&extent.start);
    match label.extents().any(|extent| is_inside(&extent)) {
        true => first,
        false => usual,
    }
}

fn outside_text(extent: Extent) -> String {
    let letter = bsd::letter(extent.index);
    format!("{letter} {} {}", extent.start, extent.sectors)
}

fn part(below: &str, unit: u64, label: &Label, system: System, slice: &Slice) -> Part {
    let entry = label.partitions.get(slice.index);
    let mut config = Vec::new();
    if let Some(name) = slice.kind.description_on(system) {
        config.push(("fstype", name.to_owned()));
    }
    let fragments = entry.filter(|entry| entry.fragment_size_bytes != 0 && !label.is_48_bit());
    if let Some(entry) = fragments {
        config.push(("fsize", entry.fragment_size_bytes.to_string()));
        let block = u64::from(entry.fragment_size_bytes) * u64::from(entry.fragments);
        config.push(("bsize", block.to_string()));
    }
    let big = label.order == ByteOrder::Big;
    Part {
        name: format!("{below}{}", slice.letter()),
        index: slice.index as u32 + 1,
        // The label's sectors are a whole number of the provider's.
        first: slice.start_bytes / unit,
        sectors: slice.size_bytes / unit,
        sectorsize_bytes: Some(label.sector_size_bytes),
        kind: slice.kind.name_on(system),
        raw_kind: slice.kind.0.to_string(),
        mark: big.then(|| "from a big-endian label".to_owned()),
        config,
        covers_others: is_raw(label, slice),
        ..Part::default()
    }
}

/// `c`, and NetBSD's `d` where it begins no later and ends no earlier than all others.
fn is_raw(label: &Label, slice: &Slice) -> bool {
    let covers = |raw: Extent| {
        let end = raw.start.saturating_add(raw.sectors);
        let inside = |e: Extent| e.start >= raw.start && e.start.saturating_add(e.sectors) <= end;
        label.extents().all(inside)
    };
    let own = label.extents().find(|extent| extent.index == slice.index);
    slice.index == RAW_PARTITION || slice.index == NETBSD_RAW_PARTITION && own.is_some_and(covers)
}
