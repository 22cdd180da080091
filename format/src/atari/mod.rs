//! The root sector of Atari's disks (AHDI): four partitions, chains of extended ones, and ICD's
//! eight more.
//!
//! ```text
//! byte 342 (0x156)  ICD: eight more entries
//!      450 (0x1c2)  sectors of the disk u32
//!      454 (0x1c6)  four entries of 12 bytes:
//!                   0 flags: 1 used, 0x80 bootable | 1 three letters
//!                   4 first sector u32 | 8 sectors u32
//!      502 (0x1f6)  bad sectors: first u32, number u32
//! ```
//! Integers are big-endian, sectors have 512 bytes. An entry `XGM` is an extended partition: its
//! first sector is a root sector again, with a partition in it and perhaps a link to the next, both
//! counted from where AHDI has them. There is no magic number. Sources: Linux
//! `block/partitions/atari.c`, Atari's *Hard Disk Application Notes*; `docs/formats/atari.md`.

use crate::bytes;
use crate::media::{Media, SectorRead, Unreadable};
use std::collections::BTreeSet;

/// Bytes of the sectors that the tables count.
pub const SECTOR_BYTES: usize = 512;
/// Most partitions that are followed.
pub const MAX_PARTITIONS: usize = 256;

const SIZE_OFFSET_BYTES: usize = 0x1c2;
const ENTRIES_OFFSET_BYTES: usize = 0x1c6;
const ENTRIES: usize = 4;
const ICD_OFFSET_BYTES: usize = 0x156;
const ICD_ENTRIES: usize = 8;
const ENTRY_BYTES: usize = 12;
const USED: u8 = 1;

/// Types that programs of the Atari write (AHDI, ICD, Linux, MiNT, Hatari).
const KINDS: [&[u8; 3]; 13] = [
    b"GEM", b"BGM", b"XGM", b"LNX", b"SWP", b"RAW", b"MIX", b"UNX", b"MIN", b"F32", b"QWA", b"MAC",
    b"UNI",
];

/// Why there is no root sector, or why a chain breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum Error {
    #[error(
        "no Atari root sector: none of the entries at byte {ENTRIES_OFFSET_BYTES} is a partition \
         of a known type on this disk"
    )]
    NotFound,
    #[error("no Atari root sector: entry {number} is used and no partition ({start}, {sectors})")]
    Entry {
        /// Entry, counted from 1.
        number: usize,
        start: u32,
        sectors: u32,
    },
    /// A sector could not be read.
    #[error(transparent)]
    Read(#[from] Unreadable),
    #[error("sector {sector}: its first entry is no partition")]
    Extended { sector: u64 },
    #[error("the chain of extended partitions loops at sector {sector}")]
    Loop { sector: u64 },
    #[error("no more than {MAX_PARTITIONS} partitions are followed")]
    TooMany,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    flags: u8,
    kind: [u8; 3],
    start: u32,
    sectors: u32,
}

impl Entry {
    fn decode(sector: &[u8], at: usize) -> Entry {
        Entry {
            flags: bytes::byte(sector, at),
            kind: bytes::take(sector, at + 1),
            start: bytes::u32_be(sector, at + 4),
            sectors: bytes::u32_be(sector, at + 8),
        }
    }

    fn is_used(&self) -> bool {
        self.flags & USED != 0
    }

    fn is_extended(&self) -> bool {
        self.kind == *b"XGM"
    }

    /// Linux' `VALID_PARTITION`, and a known type.
    fn is_partition(&self, sectors: u64) -> bool {
        let end = u64::from(self.start) + u64::from(self.sectors);
        let known = KINDS.iter().any(|kind| **kind == self.kind);
        self.is_used() && known && self.start != 0 && self.sectors != 0 && end <= sectors
    }
}

/// A partition, of the root sector or of a chain of extended ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partition {
    /// Three letters: `GEM`, `BGM`.
    pub kind: [u8; 3],
    /// Whether the machine may boot from it.
    pub is_bootable: bool,
    /// First sector of the partition on the disk.
    pub start: u64,
    /// Length of the partition, sectors.
    pub sectors: u64,
}

/// The partitions of a root sector and its chains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Sectors of the disk, as the table has them.
    pub disk_sectors: u32,
    /// The partitions: those of the root sector, each extended one replaced by its chain, then
    /// ICD's.
    pub partitions: Vec<Partition>,
    /// Why a chain ended before its end.
    pub broken: Option<Error>,
}

impl Table {
    /// Reads the root sector and follows its chains.
    ///
    /// # Errors
    /// It is none. A chain that breaks is no error: the partitions found so far count.
    pub fn read(media: Media, read: &mut SectorRead<'_>) -> Result<Table, Error> {
        let root = get(media, 0, read)?;
        if root.len() < SECTOR_BYTES {
            return Err(Error::NotFound);
        }
        let disk_sectors = bytes::u32_be(&root, SIZE_OFFSET_BYTES);
        let sectors = media.sectors.max(u64::from(disk_sectors));
        let entries: Vec<Entry> = entries(&root, ENTRIES_OFFSET_BYTES, ENTRIES).collect();
        if !entries.iter().any(|entry| entry.is_partition(sectors)) {
            return Err(Error::NotFound);
        }
        let wrong = |entry: &&Entry| entry.is_used() && !entry.is_partition(sectors);
        if let Some(at) = entries.iter().position(|entry| wrong(&entry)) {
            let Entry { start, sectors, .. } = entries[at];
            let number = at + 1;
            return Err(Error::Entry {
                number,
                start,
                sectors,
            });
        }
        let mut table = Table {
            disk_sectors,
            partitions: Vec::new(),
            broken: None,
        };
        for entry in entries.iter().filter(|entry| entry.is_used()) {
            match entry.is_extended() {
                true => table.follow(media, entry, read),
                false => table.push(0, entry),
            }
        }
        // ICD's table is taken if its first entry is a partition, as in Linux.
        let more: Vec<Entry> = self::entries(&root, ICD_OFFSET_BYTES, ICD_ENTRIES).collect();
        if more
            .first()
            .is_some_and(|entry| entry.is_partition(sectors))
        {
            let more = more.iter().filter(|entry| entry.is_partition(sectors));
            more.for_each(|entry| table.push(0, entry));
        }
        Ok(table)
    }

    fn push(&mut self, base: u64, entry: &Entry) {
        self.partitions.push(Partition {
            kind: entry.kind,
            is_bootable: entry.flags & 0x80 != 0,
            start: base + u64::from(entry.start),
            sectors: u64::from(entry.sectors),
        });
    }

    fn follow(&mut self, media: Media, extended: &Entry, read: &mut SectorRead<'_>) {
        let base = u64::from(extended.start);
        let (mut at, mut seen) = (base, BTreeSet::new());
        let ended = loop {
            if !seen.insert(at) {
                break Some(Error::Loop { sector: at });
            }
            if self.partitions.len() == MAX_PARTITIONS {
                break Some(Error::TooMany);
            }
            let sector = match get(media, at, read) {
                Ok(sector) => sector,
                Err(error) => break Some(error),
            };
            let mut found = entries(&sector, ENTRIES_OFFSET_BYTES, ENTRIES);
            // One partition, and behind it perhaps a link; its place counts from the first link.
            let data = found.find(|entry| entry.is_used());
            match data.filter(|entry| !entry.is_extended() && entry.sectors != 0) {
                Some(entry) => self.push(at, &entry),
                None => break Some(Error::Extended { sector: at }),
            }
            match found.find(|entry| entry.is_used() && entry.is_extended()) {
                Some(link) => at = base + u64::from(link.start),
                None => break None,
            }
        };
        self.broken = self.broken.take().or(ended);
    }
}

fn entries(sector: &[u8], at: usize, count: usize) -> impl Iterator<Item = Entry> {
    (0..count).map(move |index| Entry::decode(sector, at + ENTRY_BYTES * index))
}

fn get(media: Media, sector: u64, read: &mut SectorRead<'_>) -> Result<Vec<u8>, Error> {
    let data = match sector < media.sectors {
        true => read(sector, 1),
        false => Err(format!("the media has {} sectors", media.sectors)),
    };
    Ok(data.map_err(|reason| Unreadable { sector, reason })?)
}

#[cfg(test)]
mod tests;
