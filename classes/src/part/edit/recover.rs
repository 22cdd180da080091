//! Repair of a damaged GPT: the new sectors, the present ones, and the writing.

use super::{Disk, EditError};
use ugeom_format::SectorWrite;
use ugeom_format::gpt::Side;
use ugeom_format::plan::Scheme;
use ugeom_stack::{Channel, Opened};

/// The parts of a GPT in the order in which they are written.
const PARTS: [&str; 5] = [
    "backup table",
    "backup header",
    "primary table",
    "primary header",
    "MBR",
];

/// A recovery that has not been written yet.
#[derive(Clone, Debug)]
pub struct Recovery {
    /// Name of the provider whose table was recovered.
    pub provider: String,
    /// Bytes in one of its sectors.
    pub sectorsize_bytes: u32,
    /// The damage; empty for a healthy table.
    pub repaired: Vec<String>,
    /// The writes, in their order; only those that change something.
    pub writes: Vec<RecoveryWrite>,
}

/// One write of a recovery.
#[derive(Clone, Debug)]
pub struct RecoveryWrite {
    /// The name of the part: `primary header`.
    pub part: &'static str,
    /// The new sectors, and their place.
    pub new: SectorWrite,
    /// The present sectors; empty in place of unreadable ones.
    pub old: Vec<u8>,
}

/// Plans how a damaged GPT becomes whole, from its good copy or from the one that is named.
/// Reading access is enough.
///
/// # Errors
/// [`EditError::NoTable`] when there is no GPT and no sound table of another scheme,
/// [`EditError::Plan`] when neither copy is good and none is named, when the named one cannot be
/// used, when an ordinary MBR is in the way and no copy is named, or when a partition lies where
/// the backup has to go.
pub fn plan_recovery(
    channel: &mut Channel,
    opened: &Opened,
    from: Option<Side>,
) -> Result<Recovery, EditError> {
    let mut disk = Disk::new(channel, opened)?;
    // A disklabel64 has a copy, too.
    let bsd64 = disk.tables().into_iter();
    let mut bsd64 =
        bsd64.filter(|table| table.scheme() == Scheme::Bsd64 && !super::is_sound(table));
    let table = match bsd64.next() {
        Some(table) => Ok(table),
        None => disk.table(Some(Scheme::Gpt)),
    };
    let others_sound = from.is_none() && table.is_err() && is_of_others(&mut disk);
    if others_sound {
        return Ok(Recovery {
            provider: disk.name.clone(),
            sectorsize_bytes: disk.media.sector_size_bytes,
            repaired: Vec::new(),
            writes: Vec::new(),
        });
    }
    let mut table = table?;
    let parts: &[&'static str] = match table.scheme() {
        Scheme::Gpt => &PARTS,
        _ => &["label"; 8],
    };
    let mut recovery = Recovery {
        provider: disk.name.clone(),
        sectorsize_bytes: disk.media.sector_size_bytes,
        repaired: Vec::new(),
        writes: Vec::new(),
    };
    if table.damage().is_empty() {
        return Ok(recovery);
    }
    let repaired = match from {
        Some(side) => table.recover_from(side),
        None => table.recover(),
    };
    recovery.repaired = repaired.map_err(|error| disk.plan_error(error))?;
    let unit = u64::from(disk.media.sector_size_bytes);
    for (new, part) in table.encode().into_iter().zip(parts) {
        let length = new.data.len();
        let mut old = disk.read(new.lba * unit, length as u64).unwrap_or_default();
        old.resize(length, 0);
        if old != new.data {
            recovery.writes.push(RecoveryWrite { part, new, old });
        }
    }
    Ok(recovery)
}

/// A disk whose tables are sound and of other schemes, without remains of a GPT.
fn is_of_others(disk: &mut Disk<'_>) -> bool {
    let (unit, last) = (
        disk.media.sector_size_bytes,
        disk.media.sectors.saturating_sub(1),
    );
    let unit = u64::from(unit);
    let mut has_header = |lba: u64| {
        let sector = disk.read(lba.saturating_mul(unit), unit);
        sector.is_ok_and(|sector| sector.starts_with(b"EFI PART"))
    };
    if has_header(1) || has_header(last) {
        return false;
    }
    let tables = disk.tables();
    !tables.is_empty() && tables.iter().all(super::is_sound)
}

/// Refuses a recovery that would change sectors outside of the table.
///
/// # Errors
/// [`EditError::InTheWay`] with its name.
pub fn check_recovery(
    channel: &mut Channel,
    opened: &Opened,
    recovery: &Recovery,
) -> Result<(), EditError> {
    let writes = recovery.writes.iter().map(|write| write.new.clone());
    Disk::new(channel, opened)?.refuse_changed(&Vec::from_iter(writes))
}

/// Writes a recovery, each write durable before the next one begins.
///
/// # Errors
/// [`EditError::Io`] while writing.
pub fn write_recovery(
    channel: &mut Channel,
    opened: &Opened,
    recovery: &Recovery,
) -> Result<(), EditError> {
    let mut disk = Disk::new(channel, opened)?;
    for write in &recovery.writes {
        disk.write(std::slice::from_ref(&write.new))?;
    }
    Ok(())
}
