//! The cache of a simulated disk: the files hold the written data, and the cache the older
//! contents, sector by sector, until a flush makes the new content certain.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

/// The atomic unit of a disk's writes, bytes.
pub const SECTOR_BYTES: u64 = 512;

/// The effect of a power loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crash {
    /// Sectors with writes that were not flushed.
    pub uncertain: u64,
    /// Those of them that lost at least one write.
    pub lost: u64,
}

/// The content of a sector before a write.
struct Version {
    /// The call that wrote it over.
    call: u64,
    before: Vec<u8>,
}

/// The volatile part of one file: for each sector its older contents, oldest first.
struct Uncertain {
    file: Arc<File>,
    sectors: BTreeMap<u64, Vec<Version>>,
}

/// The volatile parts, by device and inode, so that a file opened twice is one.
#[derive(Default)]
pub(super) struct Cache {
    files: BTreeMap<(u64, u64), Uncertain>,
}

/// The sectors of a range: for each touched one, where the part of the range in it starts in the
/// file, and where in the range it lies.
pub(super) fn sectors(offset: u64, length: u64) -> impl Iterator<Item = (u64, Range<usize>)> {
    let mut at = offset;
    std::iter::from_fn(move || {
        if at >= offset + length {
            return None;
        }
        let start = at;
        at = ((at / SECTOR_BYTES + 1) * SECTOR_BYTES).min(offset + length);
        Some((start, (start - offset) as usize..(at - offset) as usize))
    })
}

fn key(file: &File) -> io::Result<(u64, u64)> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok((metadata.dev(), metadata.ino()))
}

impl Cache {
    /// Keeps the old content of the sectors of the range before a write. Other files, and
    /// unreadable ones, are not covered.
    pub fn keep(&mut self, file: &Arc<File>, call: u64, offset: u64, length: u64) {
        let Ok(key) = key(file) else { return };
        let uncertain = self.files.entry(key).or_insert_with(|| Uncertain {
            file: readable(file),
            sectors: BTreeMap::new(),
        });
        for (start, _) in sectors(offset, length) {
            let sector = start / SECTOR_BYTES;
            let mut before = vec![0; SECTOR_BYTES as usize];
            if let Ok(count) = uncertain.file.read_at(&mut before, sector * SECTOR_BYTES) {
                before.truncate(count);
                let versions = uncertain.sectors.entry(sector).or_default();
                versions.push(Version { call, before });
            }
        }
    }

    /// Writes a part of one sector, and keeps its old content.
    pub fn write(
        &mut self,
        file: &Arc<File>,
        call: u64,
        offset: u64,
        bytes: &[u8],
    ) -> io::Result<()> {
        let key = key(file)?;
        self.keep(file, call, offset, bytes.len() as u64);
        match self.files.get(&key) {
            Some(uncertain) => uncertain.file.write_all_at(bytes, offset),
            None => Ok(()),
        }
    }

    /// A flush that began with call `call` has succeeded: earlier writes are certain.
    pub fn flushed(&mut self, file: &File, call: u64) {
        let Some(uncertain) = key(file).ok().and_then(|key| self.files.get_mut(&key)) else {
            return;
        };
        for versions in uncertain.sectors.values_mut() {
            // The content before an uncertain write was written by the certain one below it.
            versions.retain(|version| version.call > call);
        }
        uncertain.sectors.retain(|_, versions| !versions.is_empty());
    }

    /// The whole sectors of the range are certain as they are.
    pub fn durable(&mut self, file: &File, offset: u64, length: u64) {
        let Some(uncertain) = key(file).ok().and_then(|key| self.files.get_mut(&key)) else {
            return;
        };
        for (start, _) in sectors(offset, length) {
            uncertain.sectors.remove(&(start / SECTOR_BYTES));
        }
    }

    /// Each sector goes back by a random number of its writes.
    pub fn lose(&mut self, random: &mut fastrand::Rng) -> io::Result<Crash> {
        let mut crash = Crash::default();
        for uncertain in std::mem::take(&mut self.files).into_values() {
            for (sector, versions) in uncertain.sectors {
                crash.uncertain += 1;
                let kept = random.usize(0..=versions.len());
                if let Some(version) = versions.get(kept) {
                    crash.lost += 1;
                    let end = uncertain.file.metadata()?.len();
                    let place = sector * SECTOR_BYTES;
                    let mut before = version.before.clone();
                    // Data past the old length is zero now: the length is durable.
                    before.resize(end.saturating_sub(place).min(SECTOR_BYTES) as usize, 0);
                    uncertain.file.write_all_at(&before, place)?;
                }
            }
        }
        Ok(crash)
    }
}

/// The file opened once more for reading and writing past O_DIRECT's rules; the file itself if
/// that is not allowed.
fn readable(file: &Arc<File>) -> Arc<File> {
    let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file));
    let again = File::options().read(true).write(true).open(link);
    again.map_or_else(|_| Arc::clone(file), Arc::new)
}
