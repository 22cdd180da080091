//! The MBR in front of a GPT: the rules of a protective or a hybrid one, and its updates with the
//! partitions.

use super::Table;
use crate::mbr::{Entry, Geometry, Mbr, MbrKind, PartType};
use crate::media::Media;

/// The defects of sector 0 of a disk with a GPT.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum MbrDamage {
    #[error(
        "sector 0 holds no protective MBR ({reason}): other programs may see no table, \
         and overwrite the disk"
    )]
    Missing { reason: String },
    /// An MBR with partitions and without an entry of type 0xEE.
    #[error(
        "sector 0 holds an ordinary MBR, not a protective one: \
         the GPT may be left over from an earlier use of the disk"
    )]
    Ordinary,
    #[error("the protective MBR covers the disk from sector {found} on, expected 1")]
    First { found: u32 },
    /// The protective entry does not end where the media does.
    #[error("the protective MBR covers the disk up to sector {found}, the last one is {last}")]
    Last {
        found: u64,
        /// Last sector of the media.
        last: u64,
    },
    #[error(
        "entry {entry} of the hybrid MBR (sectors {first} to {last}) is no partition of the GPT"
    )]
    Stray {
        /// Number of the entry, from 1.
        entry: usize,
        first: u64,
        last: u64,
    },
}

/// Looks for defects of sector 0, given whole, in front of `table`. `fits` is whether the
/// table ends where the media does: of a media that grew or was cut, the MBR says nothing new.
pub fn check(sector0: &[u8], media: Media, table: &Table, fits: bool) -> Option<MbrDamage> {
    let mbr = match Mbr::decode(sector0) {
        Ok(mbr) => mbr,
        Err(error) => {
            let reason = error.to_string();
            return Some(MbrDamage::Missing { reason });
        }
    };
    match mbr.kind() {
        MbrKind::Empty => {
            let reason = "the MBR has no entries".to_owned();
            Some(MbrDamage::Missing { reason })
        }
        MbrKind::Partitioned | MbrKind::Dedicated => Some(MbrDamage::Ordinary),
        MbrKind::Hybrid => stray(&mbr, table),
        MbrKind::Protective => {
            let entry = mbr.entries.iter().find(|entry| entry.is_used())?;
            let last = media.last_lba();
            let covered = entry.end() - 1;
            let whole = entry.sectors == u32::MAX || covered == last;
            if entry.start != 1 {
                Some(MbrDamage::First { found: entry.start })
            } else if fits && !whole {
                let found = covered;
                Some(MbrDamage::Last { found, last })
            } else {
                None
            }
        }
    }
}

fn stray(mbr: &Mbr, table: &Table) -> Option<MbrDamage> {
    let copied = |entry: &Entry| partition_at(table, entry).is_some();
    let (index, entry) = copies(mbr).find(|(_, entry)| !copied(entry))?;
    Some(MbrDamage::Stray {
        entry: index + 1,
        first: u64::from(entry.start),
        last: entry.end() - 1,
    })
}

/// The entries of a hybrid MBR that repeat partitions.
fn copies(mbr: &Mbr) -> impl Iterator<Item = (usize, &Entry)> {
    let entries = mbr.entries.iter().enumerate();
    entries.filter(|(_, entry)| entry.is_used() && entry.kind != PartType::PROTECTIVE)
}

/// Number of the partition that an entry of a hybrid MBR repeats.
fn partition_at(table: &Table, wanted: &Entry) -> Option<usize> {
    let same = |first: u64, sectors: u64| {
        first == u64::from(wanted.start) && sectors == u64::from(wanted.sectors)
    };
    let mut parts = table.partitions();
    let found = parts.find(|(_, entry)| same(entry.first, entry.sectors()));
    found.map(|(number, _)| number)
}

/// A hybrid MBR after a change from one table to another: an entry follows the partition that it
/// repeats, and goes with it. One that repeats none is left out, and so is one of a partition that
/// grew beyond the range of an MBR. `None` when no copy of a partition is left: the MBR is a
/// protective one then.
pub fn follow(mbr: &Mbr, before: &Table, after: &Table) -> Option<Mbr> {
    let mut new = mbr.clone();
    for (index, old) in copies(mbr) {
        let number = partition_at(before, old);
        let place = number.and_then(|number| after.entries.get(number - 1));
        let place = place.filter(|entry| entry.is_used()).and_then(|entry| {
            let start = u32::try_from(entry.first).ok()?;
            Some((start, u32::try_from(entry.sectors()).ok()?))
        });
        new.entries[index] = match place {
            Some((start, sectors)) if (start, sectors) == (old.start, old.sectors) => *old,
            Some((start, sectors)) => Entry {
                flag: old.flag,
                ..Entry::new(old.kind, start, sectors, Geometry::LBA_ASSIST)
            },
            None => Entry::default(),
        };
    }
    (copies(&new).count() > 0).then_some(new)
}
