//! The losses of a damaged image: clusters past the end of its file, and clusters whose entry in
//! the map is wrong.
//!
//! `imago` reads zeroes past the end of a file, and refuses a whole L2 table (512 MiB of the disk
//! with clusters of 64 KiB) for one entry that no image can have. Here a read past the end fails,
//! and a wrong entry is replaced by one whose cluster lies past the end of every file.

use super::layout::Map;
use super::work;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use ugeom_engine::Checks;
use ugeom_format::qcow2::Header;

/// Why a read past the end of the file fails.
pub(super) const PAST_THE_END: &str =
    "its cluster lies past the end of the image's file, or its entry in the map is wrong";

/// An offset that is past the end of every file, and a multiple of every cluster size.
const NOWHERE: u64 = 0x00ff_ffff_ffe0_0000;
/// QEMU docs/interop/qcow2.rst: the offset in an entry, and the bits that have to be 0.
const OFFSET_BITS: u64 = 0x00ff_ffff_ffff_fe00;
const L1_RESERVED_BITS: u64 = 0x7f00_0000_0000_01fe;
const L2_RESERVED_BITS: u64 = 0x3f00_0000_0000_01fe;
const COMPRESSED: u64 = 1 << 62;
const COPIED: u64 = 1 << 63;

/// Where the file of an image ends.
#[derive(Debug)]
pub(super) struct Bounds {
    file: Arc<File>,
    cluster_bytes: u64,
    /// The end of the last cluster that is known to begin in the file: the last one may be there
    /// in part.
    known: AtomicU64,
}

impl Bounds {
    pub fn new(file: Arc<File>, cluster_bytes: u64) -> Self {
        Self {
            file,
            cluster_bytes,
            known: AtomicU64::new(0),
        }
    }

    /// Whether the clusters before this offset begin in the file, which may have grown.
    pub fn reach(&self, end: u64) -> bool {
        if end <= self.known.load(Ordering::Relaxed) {
            return true;
        }
        let Ok(facts) = self.file.metadata() else { return true };
        let known = facts.len().next_multiple_of(self.cluster_bytes);
        self.known.store(known, Ordering::Relaxed);
        end <= known
    }
}

/// The checks of one image.
#[derive(Debug)]
pub(super) struct Damage {
    bounds: Arc<Bounds>,
    /// `None` where the image is written: its tables are written back.
    map: Option<Map>,
}

impl Damage {
    /// # Errors
    /// The L1 table cannot be read.
    pub fn new(bounds: &Arc<Bounds>, header: &Header, writes: bool) -> io::Result<Self> {
        let map = match writes {
            true => None,
            false => Some(Map::open(bounds.file.try_clone()?, header)?),
        };
        Ok(Self {
            bounds: Arc::clone(bounds),
            map,
        })
    }
}

impl Checks for Damage {
    fn within(&self, offset: u64, length: u64) -> io::Result<()> {
        work::go_on()?;
        let is_within = offset
            .checked_add(length)
            .is_some_and(|end| self.bounds.reach(end));
        is_within
            .then_some(())
            .ok_or_else(|| io::Error::other(PAST_THE_END))
    }

    fn is_table(&self, offset: u64, length: u64) -> bool {
        let is_table = |map: &Map| map.is_l1(offset, length) || map.is_l2(offset, length);
        self.map.as_ref().is_some_and(is_table)
    }

    fn mend(&self, offset: u64, table: &mut [u8]) {
        let length = table.len() as u64;
        let is_l1 = self
            .map
            .as_ref()
            .is_some_and(|map| map.is_l1(offset, length));
        let (entries, _) = table.as_chunks_mut::<8>();
        for bytes in entries {
            let entry = u64::from_be_bytes(*bytes);
            if is_wrong(entry, is_l1, self.bounds.cluster_bytes) {
                *bytes = NOWHERE.to_be_bytes();
            }
        }
    }
}

/// Whether no image can have this entry.
fn is_wrong(entry: u64, is_l1: bool, cluster_bytes: u64) -> bool {
    if !is_l1 && entry & COMPRESSED != 0 {
        return entry & COPIED != 0;
    }
    let reserved = if is_l1 {
        L1_RESERVED_BITS
    } else {
        L2_RESERVED_BITS
    };
    entry & reserved != 0 || !(entry & OFFSET_BITS).is_multiple_of(cluster_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_entries_are_those_that_the_format_forbids() {
        const CLUSTER: u64 = 1 << 16;
        for (entry, is_l1, wrong) in [
            (0, false, false),
            (COPIED | 5 << 16, false, false),
            (1, false, false),
            (COMPRESSED | 0x0123_4567, false, false),
            (COMPRESSED | COPIED, false, true),
            (COPIED | 5 << 16 | 512, false, true),
            (2, false, true),
            (COPIED | 5 << 16, true, false),
            (COMPRESSED, true, true),
            (NOWHERE, true, false),
        ] {
            assert_eq!(is_wrong(entry, is_l1, CLUSTER), wrong, "{entry:x} {is_l1}");
        }
        assert!(NOWHERE.is_multiple_of(2 << 20));
    }
}
