//! Looking for metadata that is not where it should be: a provider that grew or shrank hides it.

use super::{AdminError, EliDisk};
use std::collections::BTreeSet;
use std::ops::Range;
use ugeom_format::eli::{MAGIC, Metadata};

/// How much is read at a time while all of a provider is looked through, bytes.
const SCAN_STEP_BYTES: u64 = 1 << 20;

/// Metadata that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Where the sector lies, bytes.
    pub offset: u64,
    /// The metadata that was found there.
    pub metadata: Metadata,
}

impl Candidate {
    /// True when the sector is the last one of a provider of the size that the metadata names: it
    /// was written here, and not copied or left over.
    pub fn is_in_place(&self, sector_bytes: u32) -> bool {
        self.offset + u64::from(sector_bytes) == self.metadata.provider_bytes
    }
}

/// Looks at the last sectors of providers of these sizes, if they lie on the disk.
///
/// # Errors
/// `Read`.
pub fn candidates_at(
    disk: &mut EliDisk<'_>,
    sizes: impl IntoIterator<Item = u64>,
) -> Result<Vec<Candidate>, AdminError> {
    let sector = u64::from(disk.sector_bytes);
    let known = sizes
        .into_iter()
        .filter(|size| *size >= sector && *size <= disk.media_bytes);
    let places: BTreeSet<u64> = known.map(|size| disk.place(size)).collect();
    let mut found = Vec::new();
    for offset in places {
        if let Ok(metadata) = Metadata::decode(&disk.sector(offset)?) {
            found.push(Candidate { offset, metadata });
        }
    }
    Ok(found)
}

/// Looks at every sector of a range, in bytes, from its end to its beginning, so that the likely
/// ones come first. `proceed` is asked before each step, with the bytes that are still to be read.
///
/// # Errors
/// `Read`.
pub fn scan(
    disk: &mut EliDisk<'_>,
    range: Range<u64>,
    mut proceed: impl FnMut(u64) -> bool,
) -> Result<Vec<Candidate>, AdminError> {
    let sector = u64::from(disk.sector_bytes);
    let step = SCAN_STEP_BYTES.next_multiple_of(sector);
    let mut found = Vec::new();
    let first = range.start.next_multiple_of(sector);
    let mut end = range.end.min(disk.media_bytes) / sector * sector;
    while end > first && proceed(end - first) {
        let start = end.saturating_sub(step).max(first);
        let bytes = disk.bytes(start, end - start)?;
        for (number, bytes) in bytes.chunks(sector as usize).enumerate().rev() {
            if !bytes.starts_with(&MAGIC) {
                continue;
            }
            if let Ok(metadata) = Metadata::decode(bytes) {
                let offset = start + number as u64 * sector;
                found.push(Candidate { offset, metadata });
            }
        }
        end = start;
    }
    Ok(found)
}
