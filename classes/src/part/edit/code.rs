//! Boot code: around a table, or in a partition.

use super::found::name_extended;
use super::media::Disk;
use super::{EditError, Editor};
use std::ops::Range;
use ugeom_format::content;
use ugeom_format::mbr::PartType;
use ugeom_format::plan::{Part, Scheme, Table};

/// Bytes of boot code in a partition of a Sun label: all of it but the first sector, which may hold
/// the label.
const SUN_CODE_BYTES: usize = 8192;
const SUN_LABEL_BYTES: usize = 512;

impl Editor<'_> {
    /// Writes boot code around a table, see [`Table::boot_code`].
    ///
    /// # Errors
    /// As [`Editor::add_part`].
    pub fn boot_code(mut self, code: &[u8], keep_serial: bool) -> Result<(), EditError> {
        let writes = self.table.boot_code(code, keep_serial);
        let writes = writes.map_err(|error| self.disk.plan_error(error))?;
        self.disk.edit(&writes)
    }

    /// Writes boot code into a partition, or into all of a Sun label that have room without
    /// `index`. Answers with the names of the providers.
    ///
    /// # Errors
    /// As [`Editor::add_part`]; [`EditError::PartCode`] when the code does not fit, or would
    /// overwrite the table; [`EditError::InTheWay`] without `force` when it would overwrite
    /// something else.
    pub fn partition_code(
        self,
        index: Option<u32>,
        code: &[u8],
        force: bool,
    ) -> Result<Vec<String>, EditError> {
        let Self { mut disk, table } = self;
        let is_sun = table.scheme() == Scheme::Vtoc8;
        let (parts, skip) = match (index, is_sun) {
            (None, false) => return Err(refused(&disk.name, "it needs the index of a partition")),
            (None, true) => (table.parts(), SUN_LABEL_BYTES),
            (Some(index), is_sun) => {
                let part = table.parts().into_iter().find(|part| part.index == index);
                let missing = || disk.plan_error(ugeom_format::plan::Error::NoSuchPartition(index));
                let skip = if is_sun { SUN_LABEL_BYTES } else { 0 };
                (vec![part.ok_or_else(missing)?], skip)
            }
        };
        if is_sun && code.len() != SUN_CODE_BYTES {
            let reason = format!("it has {} bytes, a Sun takes {SUN_CODE_BYTES}", code.len());
            return Err(refused(&disk.name, &reason));
        }
        let unit = u64::from(disk.media.sector_size_bytes);
        let needed = (code.len() as u64).div_ceil(unit);
        let fits = |part: &Part| part.sectors >= needed;
        if let (Some(part), Some(index)) = (parts.first(), index)
            && !fits(part)
        {
            let name = disk.partition(&table, index).0;
            let reason = format!("it has {} sectors, the code needs {needed}", part.sectors);
            return Err(refused(&name, &reason));
        }
        if !force {
            for part in parts.iter().filter(|part| fits(part)) {
                refuse_carried(&mut disk, &table, part, skip as u64..needed * unit)?;
            }
        }
        let mut written = Vec::new();
        for part in parts.iter().filter(|part| fits(part)) {
            let name = disk.partition(&table, part.index).0;
            write(&mut disk, &table, part, code, skip)?;
            written.push(name);
        }
        match written.is_empty() {
            true => Err(refused(&disk.name, "no partition has room for it")),
            false => Ok(written),
        }
    }
}

/// Refuses bytes of a partition in which something stands.
fn refuse_carried(
    disk: &mut Disk<'_>,
    table: &Table,
    part: &Part,
    range: Range<u64>,
) -> Result<(), EditError> {
    let unit = u64::from(disk.media.sector_size_bytes);
    let (first, size_bytes) = (part.start * unit, part.sectors.saturating_mul(unit));
    if part.kind.starts_with("ms-ldm-") {
        let name = disk.partition(table, part.index).0;
        let reason = "it belongs to a dynamic disk of Windows; --destroy overwrites it";
        return Err(refused(&name, reason));
    }
    let mut found = content::identify(size_bytes, &mut |offset, length| {
        let start = offset / unit * unit;
        let end = (offset + length as u64).next_multiple_of(unit);
        let read = disk.look(first + start, end - start);
        let mut bytes = read.map_err(|error| error.to_string())?;
        bytes.drain(..((offset - start) as usize).min(bytes.len()));
        bytes.truncate(length);
        Ok(bytes)
    })
    .contents;
    if table.scheme() == Scheme::Mbr && is_extended(part) {
        found.iter_mut().for_each(name_extended);
    }
    found.retain(|content| content.stands_in(&range));
    match found.is_empty() {
        true => Ok(()),
        false => Err(EditError::InTheWay {
            provider: disk.partition(table, part.index).0,
            what: "the code",
            found,
        }),
    }
}

fn is_extended(part: &Part) -> bool {
    let kind = part.raw_kind.parse().map(PartType);
    kind.is_ok_and(PartType::is_extended)
}

fn write(
    disk: &mut Disk<'_>,
    table: &Table,
    part: &Part,
    code: &[u8],
    skip: usize,
) -> Result<(), EditError> {
    let unit = u64::from(disk.media.sector_size_bytes);
    let first = part.start + (skip as u64) / unit;
    let mut data = code.get(skip..).unwrap_or_default().to_vec();
    data.resize(data.len().next_multiple_of(unit as usize), 0);
    let end = first + data.len() as u64 / unit;
    let own = table.destroy();
    if own.iter().any(|own| (first..end).contains(&own.lba)) {
        let name = disk.partition(table, part.index).0;
        return Err(refused(&name, "it would overwrite the table"));
    }
    disk.write_at(first * unit, &data)
}

fn refused(provider: &str, reason: &str) -> EditError {
    EditError::PartCode {
        provider: provider.to_owned(),
        reason: reason.to_owned(),
    }
}
