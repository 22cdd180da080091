//! Reads the label after byte 512.
//!
//! Rules of `g_part_bsd64_probe` and `_read`: a slice of 2 MiB or more; `c` is not listed. A
//! partition past the end is listed and marked, where FreeBSD refuses the label.

use super::NAME;
use crate::part::look;
use crate::part::slicer::{self, Part, Table};
use ugeom_format::bsd::letter;
use ugeom_format::bsd64::{Error, LEAST_BYTES, Label, Partition, SIZE_BYTES};
use ugeom_stack::{Plan, TasteError, Taster};

pub(super) fn taste(taster: &mut Taster<'_>) -> Result<Option<Plan>, TasteError> {
    let Some(media) = look::ground(NAME, taster)? else { return Ok(None) };
    if taster.mediasize_bytes() < LEAST_BYTES {
        let problem = format!("a disklabel64 needs {LEAST_BYTES} bytes of media");
        return look::nothing(NAME, taster, problem);
    }
    let unit = u64::from(media.sector_size_bytes);
    // The sector with the magic alone, until it is there: this is asked of every partition.
    let data = match taster.sector(512 / unit) {
        Ok(sector) => sector,
        Err(error) => return look::nothing(NAME, taster, error),
    };
    let at = (512 % unit) as usize;
    if !data.get(at..).is_some_and(Label::begins) {
        return look::nothing(NAME, taster, "byte 512 does not begin a disklabel64");
    }
    let data = match taster.read(0, (SIZE_BYTES as u64).next_multiple_of(unit)) {
        Ok(data) => data,
        Err(error) => return look::nothing(NAME, taster, error),
    };
    let label = match Label::decode(&data, media.sector_size_bytes) {
        Ok(label) => label,
        Err(error @ Error::Magic { .. }) => return look::nothing(NAME, taster, error),
        Err(error) => return Err(look::unusable(NAME, taster, error)),
    };
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let mut config = vec![
        fact("entries", label.partitions.len().to_string()),
        fact("first", (label.first_bytes / unit).to_string()),
        fact(
            "last",
            (label.end_bytes / unit).saturating_sub(1).to_string(),
        ),
        fact("bootbase", (label.boot_bytes / unit).to_string()),
        fact("stor_uuid", label.guid.to_string()),
    ];
    if label.backup_bytes != 0 {
        config.push(fact("backupbase", (label.backup_bytes / unit).to_string()));
    }
    if !label.pack_name.is_empty() {
        config.push(fact("label", label.pack_name.clone()));
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
        config.push(("type_uuid".to_owned(), slice.kind.guid.to_string()));
    }
    config.push(("stor_uuid".to_owned(), slice.guid.to_string()));
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
