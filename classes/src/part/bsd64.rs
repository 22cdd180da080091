//! BSD64: DragonFly's disklabel64, partitions `a` to `p`.
//!
//! ```text
//! slice or disk [ sector 0 | label | boot ]   a |------|  b |---|  d |----------| [ backup ]
//! ```
//! A read of `md0a`: [`crate::part::slicer::Slicer`] adds the partition's first sector and forwards
//! to `md0`; a write likewise. The layout is described in `ugeom_format::bsd64`.
//!
//! Rules of `g_part_bsd64_probe` and `_read`: a slice of 2 MiB or more; `c` is not listed. A
//! partition past the end is listed and marked, where FreeBSD refuses the label.

use crate::entry::Miss;
use crate::part::look;
use crate::part::slicer::{self, Part, Table};
use ugeom_format::bsd::letter;
use ugeom_format::bsd64::{Error, LEAST_BYTES, Label, Partition, SIZE_BYTES};
use ugeom_stack::{Plan, Taster};

/// gpart's name of the scheme.
pub use super::names::BSD64 as NAME;

pub(crate) fn taste(taster: &mut Taster<'_>) -> Result<Plan, Miss> {
    let media = look::ground(NAME, taster)?;
    if taster.mediasize_bytes() < LEAST_BYTES {
        let problem = format!("a disklabel64 needs {LEAST_BYTES} bytes of media");
        return Err(Miss::absent(problem));
    }
    let unit = u64::from(media.sector_size_bytes);
    // The sector with the magic alone, until it is there: this is asked of every partition.
    let data = taster.sector(512 / unit).map_err(Miss::absent)?;
    let at = (512 % unit) as usize;
    if !data.get(at..).is_some_and(Label::begins) {
        return Err(Miss::absent("byte 512 does not begin a disklabel64"));
    }
    let data = taster
        .read(0, (SIZE_BYTES as u64).next_multiple_of(unit))
        .map_err(Miss::absent)?;
    let label = Label::decode(&data, media.sector_size_bytes)
        .map_err(|error| Miss::absent_if(matches!(error, Error::Magic { .. }), error))?;
    let mut config = vec![
        ("entries", label.partitions.len().to_string()),
        ("first", (label.first_bytes / unit).to_string()),
        (
            "last",
            (label.end_bytes / unit).saturating_sub(1).to_string(),
        ),
        ("bootbase", (label.boot_bytes / unit).to_string()),
        ("stor_uuid", label.guid.to_string()),
    ];
    if label.backup_bytes != 0 {
        config.push(("backupbase", (label.backup_bytes / unit).to_string()));
    }
    if !label.pack_name.is_empty() {
        config.push(("label", label.pack_name.clone()));
    }
    let parts = label.slices();
    let table = Table {
        scheme: NAME,
        config,
        damage: Vec::new(),
        parts: parts
            .map(|(index, slice)| part(taster.name(), unit, index, slice))
            .collect(),
    };
    slicer::plan(taster, table)
}

fn part(below: &str, unit: u64, index: usize, slice: &Partition) -> Part {
    let mut config = Vec::new();
    if !slice.kind.guid.is_unused() {
        config.push(("type_uuid", slice.kind.guid.to_string()));
    }
    config.push(("stor_uuid", slice.guid.to_string()));
    Part {
        name: format!("{below}{}", letter(index)),
        index: index as u32 + 1,
        // Decoding made sure that both are whole sectors.
        first: slice.offset_bytes / unit,
        sectors: slice.size_bytes / unit,
        kind: slice.kind.to_string(),
        raw_kind: slice.kind.number.to_string(),
        config,
        ..Part::default()
    }
}
