//! The content of a provider: partition tables, file systems, members of volumes, images. A new
//! table is not written over any of them unasked, and neither is anything else.
//!
//! The structures are recognised by [`ugeom_format::content`]; here they are looked for on an
//! opened provider.

use super::EditError;
use super::media::Disk;
use std::ops::Range;
use ugeom_format::SectorWrite;
use ugeom_format::content::{self, Content, ContentUse};
use ugeom_format::plan::Table;
use ugeom_stack::{Channel, Errno, IoError, Opened};

/// Looks for everything that is known. At most 4 MiB are read.
///
/// # Errors
/// The error of reading, so that an unreadable sector does not count as empty.
pub fn look(channel: &mut Channel, opened: &Opened) -> Result<Vec<Content>, EditError> {
    all(&mut Disk::new(channel, opened)?)
}

/// Looks for everything that is known, as far as the provider can be read: for listings.
///
/// # Errors
/// Sectors of a size that no structure is made for, or [`EditError::Io`]: the device is
/// unreachable.
pub fn glance(channel: &mut Channel, opened: &Opened) -> Result<Vec<Content>, EditError> {
    let mut disk = Disk::new(channel, opened)?;
    match identify(&mut disk) {
        (_, Some(error)) if error.errno == Errno::NXIO => Err(disk.not_seen(error)),
        (contents, _) => Ok(contents),
    }
}

impl Disk<'_> {
    fn not_seen(&self, error: IoError) -> EditError {
        EditError::Io {
            doing: format!("searching {} for known content", self.name),
            error,
        }
    }

    /// Refuses an empty table beside a structure to which the whole medium belongs: an ISO image
    /// may begin with an MBR. Beside partitions it may be left over from an earlier use.
    pub(super) fn refuse_owned(&mut self, table: &Table) -> Result<(), EditError> {
        if !table.parts().is_empty() {
            return Ok(());
        }
        let mut found = all(self)?;
        found.retain(|content| content.usage != ContentUse::Table);
        match found.is_empty() {
            true => Ok(()),
            false => Err(EditError::Owned {
                provider: self.name.clone(),
                scheme: table.scheme(),
                found,
            }),
        }
    }

    /// Writes the changes of a table, unless they change the magic number of other content: the
    /// last sector of the disk may be that of a mirror.
    pub(super) fn edit(&mut self, writes: &[SectorWrite]) -> Result<(), EditError> {
        self.refuse_changed(writes)?;
        self.write(writes)
    }

    /// Refuses writes that change the magic number of other content.
    pub(super) fn refuse_changed(&mut self, writes: &[SectorWrite]) -> Result<(), EditError> {
        let mut found = identify(self).0;
        found.retain(|content| content.usage != ContentUse::Table);
        let unit = u64::from(self.media.sector_size_bytes);
        let mut in_the_way = Vec::new();
        for write in writes {
            let offset = write.lba * unit;
            let near = offset..offset.saturating_add(write.data.len() as u64);
            let Some(old) = found
                .iter()
                .any(|content| content.stands_in(&near))
                .then(|| self.read(offset, write.data.len() as u64))
            else {
                continue;
            };
            let old = old.unwrap_or_default();
            let changed = |content: &mut Content| content.is_changed_by(offset, &old, &write.data);
            in_the_way.extend(found.extract_if(.., changed));
        }
        match in_the_way.is_empty() {
            true => Ok(()),
            false => Err(EditError::InTheWay {
                provider: self.name.clone(),
                what: "the table",
                found: in_the_way,
            }),
        }
    }
}

pub(super) fn all(disk: &mut Disk<'_>) -> Result<Vec<Content>, EditError> {
    match identify(disk) {
        (contents, None) => Ok(contents),
        (_, Some(error)) => Err(disk.not_seen(error)),
    }
}

fn identify(disk: &mut Disk<'_>) -> (Vec<Content>, Option<IoError>) {
    let whole = 0..disk.size_bytes;
    let (mut contents, unread) = identify_within(disk, &whole);
    if disk.is_extended() {
        contents.iter_mut().for_each(name_extended);
    }
    (contents, unread)
}

/// The content of a range of bytes, and the first error.
pub(super) fn identify_within(
    disk: &mut Disk<'_>,
    range: &Range<u64>,
) -> (Vec<Content>, Option<IoError>) {
    let mut failed = None;
    let size_bytes = range.end - range.start;
    let found = content::identify(size_bytes, &mut |offset, length| {
        disk.look_within(range, offset, length).map_err(|error| {
            let text = error.to_string();
            failed = Some(error);
            text
        })
    });
    let unread = found.read_error.and(failed);
    (found.contents, unread)
}

/// Names an apparent MBR in the first sector of an extended partition.
pub(super) fn name_extended(content: &mut Content) {
    if content.name == "dos" {
        content.title = content.title.replace("an MBR", "an extended boot record");
        content.short = content.short.replace("MBR", "EBR");
    }
}
