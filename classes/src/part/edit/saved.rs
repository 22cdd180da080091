//! A table that was saved as text by `gpart backup`, put back.

use super::media::Disk;
use super::{EditError, random};
use ugeom_format::plan::{self, Backup, Keep, Table};
use ugeom_stack::{Channel, Opened};

/// The saved entry, and how it is restored.
#[derive(Clone, Copy, Debug)]
pub struct Restore<'a> {
    /// The table as `part backup` wrote it.
    pub backup: &'a Backup,
    /// With labels, GUIDs and the like.
    pub keep: Keep,
    /// Destroy existing content.
    pub force: bool,
    /// Look whether it could be done, and write nothing.
    pub check_only: bool,
}

/// Writes a saved table: all of it, or nothing where it does not fit.
///
/// # Errors
/// As [`super::create`], and [`EditError::Plan`] when a partition does not fit on the provider.
pub fn restore(
    channel: &mut Channel,
    opened: &Opened,
    wanted: &Restore<'_>,
) -> Result<Table, EditError> {
    let mut disk = Disk::ready_for(channel, opened, wanted.backup.scheme)?;
    let request = plan::Create {
        random: random()?,
        geometry: disk.geometry,
        ..plan::Create::default()
    };
    // One number for each partition, and the same ones when the table is made a second time.
    let numbers = wanted.backup.parts.iter().map(|_| random());
    let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
    let media = disk.media;
    let make = |request: &plan::Create| {
        let mut numbers = numbers.iter().copied();
        let mut next = || numbers.next().unwrap_or_default();
        wanted.backup.table(media, request, wanted.keep, &mut next)
    };
    disk.replace(request, wanted.force, wanted.check_only, &make)
}
