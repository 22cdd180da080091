//! Lost partitions: where file systems begin and end on a medium without a table, by their
//! superblocks, the copies of these, and copies of partition tables.
//!
//! [`Search::look`] takes the medium piece by piece, in any order. In each sector of 512 bytes it
//! compares a few words with the magic numbers of structures that state where their file system
//! begins ([`probes`]); only where one matches, more is read, within bounds ([`budget`]). So one
//! pass over the medium is as fast as its reads. [`Search::partitions`] makes partitions of the
//! finds.
//!
//! The layouts are those of the pages that `docs/formats/content.md` names; `docs/rescue.md`
//! describes the use.

mod budget;
mod confirmed;
mod ends;
mod labels;
mod layout;
mod listed;
mod lvm2;
mod more;
mod probes;
mod script;

#[cfg(test)]
mod tests;

use budget::{Budget, Spent};
pub use listed::Listed;
pub use lvm2::{Group, LogicalVolume};
pub use script::{ScriptScheme, gpart_script, sfdisk_script};

use std::collections::BTreeMap;

/// Reads up to `length` bytes from `offset`; fewer at the end of the medium.
pub type SearchRead<'a> = dyn FnMut(u64, usize) -> Result<Vec<u8>, String> + 'a;

/// The unit in which superblocks are placed.
const SECTOR_BYTES: usize = 512;
/// Most places that are kept; a medium that has more is hostile.
const MOST_FOUND: usize = 4096;
/// Most signs that are kept of one file system.
const MOST_SIGNS: usize = 16;
/// Most physical volumes of LVM2 whose text is read: each may cost 4 MiB.
const MOST_PHYSICAL: usize = 64;

/// The content of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the others are names of file systems")]
pub enum Holds {
    /// An entry of a GPT that is no longer in use.
    Listed,
    /// A container of APFS.
    Apfs,
    /// A device of bcache.
    Bcache,
    /// SCO's boot file system.
    Bfs,
    /// A disklabel of a BSD system, with partitions of its own.
    Bsd,
    /// ISO 9660 and UDF over the same files, as on DVDs (a bridge disc).
    Bridge,
    Btrfs,
    /// A compressed ROM file system.
    Cramfs,
    /// ext2, ext3 or ext4.
    Ext,
    ExFat,
    F2fs,
    /// FAT12, FAT16 or FAT32.
    Fat,
    Gfs2,
    Hfs,
    /// HFS+ or HFSX (volume header at byte 1024).
    HfsPlus,
    Iso9660,
    Jfs,
    /// LUKS1 or LUKS2 (header at byte 0).
    Luks,
    /// A physical volume of LVM2.
    Lvm2,
    /// A member of Linux' MD RAID.
    Md,
    /// Minix, versions 1 to 3.
    Minix,
    Nilfs2,
    Ntfs,
    Ocfs2,
    ReiserFs,
    /// A VTOC of Solaris on x86, with slices of its own.
    Solaris,
    /// Linux swap space (magic at the end of the first page).
    Swap,
    Udf,
    /// UFS1 or UFS2 (superblock at byte 8192 or 65536).
    Ufs,
    Xfs,
}

impl Holds {
    /// A table whose partitions hold the rest.
    fn is_label(self) -> bool {
        matches!(self, Holds::Bsd | Holds::Solaris)
    }

    /// The name in listings and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Holds::Listed => "GPT entry",
            Holds::Apfs => "APFS",
            Holds::Bcache => "bcache",
            Holds::Bfs => "BFS",
            Holds::Bridge => "ISO 9660 and UDF",
            Holds::Bsd => "BSD",
            Holds::Btrfs => "btrfs",
            Holds::Cramfs => "cramfs",
            Holds::Ext => "ext",
            Holds::ExFat => "exFAT",
            Holds::F2fs => "F2FS",
            Holds::Fat => "FAT",
            Holds::Gfs2 => "GFS2",
            Holds::Hfs => "HFS",
            Holds::HfsPlus => "HFS+",
            Holds::Iso9660 => "ISO 9660",
            Holds::Jfs => "JFS",
            Holds::Luks => "LUKS",
            Holds::Lvm2 => "LVM2",
            Holds::Md => "MD RAID",
            Holds::Minix => "Minix",
            Holds::Nilfs2 => "NILFS2",
            Holds::Ntfs => "NTFS",
            Holds::Ocfs2 => "OCFS2",
            Holds::ReiserFs => "ReiserFS",
            Holds::Solaris => "Solaris VTOC",
            Holds::Swap => "Linux swap",
            Holds::Udf => "UDF",
            Holds::Ufs => "UFS",
            Holds::Xfs => "XFS",
        }
    }
}

/// One structure that speaks for a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sign {
    /// The kind of evidence: `superblock`, `copy of the superblock`.
    pub what: &'static str,
    /// Its first byte on the medium.
    pub offset_bytes: u64,
}

/// A place where something begins, by one structure or by several that agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file system or table that begins here.
    pub holds: Holds,
    /// Byte offset at which it begins.
    pub start_bytes: u64,
    /// Its length as it states it; `None` where it does not.
    pub length_bytes: Option<u64>,
    /// The entry of a GPT.
    pub entry: Option<Listed>,
    /// Where the partitions of a disklabel begin.
    pub parts: Vec<u64>,
    /// The structures, at most 16 of them.
    pub signs: Vec<Sign>,
    /// Structures that agree, also those beyond the 16 that are kept.
    pub sign_count: usize,
}

/// A partition that is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// The place, and the structures that it was found by.
    pub place: Place,
    /// First sector of the provider.
    pub first: u64,
    /// Sectors of the provider.
    pub sectors: u64,
    /// The content does not state its end: it is that of the free space.
    pub guessed_end: bool,
    /// It reaches past the end of the medium.
    pub cut: bool,
    /// It lies over an offered partition that more speaks for; it is no part of the table.
    pub over: Option<u64>,
}

/// Where UDF volumes begin, the size of their blocks, and how many they have.
type UdfVolumes = BTreeMap<(u64, u64), u64>;

/// A search of one medium.
#[derive(Debug)]
pub struct Search {
    size_bytes: u64,
    sector_size_bytes: u64,
    found: BTreeMap<(u64, Holds, Option<u64>), Place>,
    overflowed: bool,
    physical: Vec<PhysicalVolume>,
    budget: Budget,
    /// A hostile medium repeats the anchors of a volume, and measuring it reads up to 2 MiB.
    udf: UdfVolumes,
}

/// A physical volume of LVM2 whose text was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhysicalVolume {
    /// Where it begins on the medium.
    pub start_bytes: u64,
    /// Its group, or why that cannot be read; `None` when it is in none.
    pub group: Result<Option<Group>, String>,
}

/// The claim of a probe about a sector.
struct Claim {
    holds: Holds,
    start: u64,
    length: Option<u64>,
    what: &'static str,
    offset: u64,
    entry: Option<Listed>,
    parts: Vec<u64>,
}

impl Search {
    /// A search of a medium of `size_bytes`, with sectors of `sector_size_bytes` (at least 512).
    pub fn new(size_bytes: u64, sector_size_bytes: u32) -> Search {
        Search {
            size_bytes,
            sector_size_bytes: u64::from(sector_size_bytes.max(512)),
            found: BTreeMap::new(),
            overflowed: false,
            physical: Vec::new(),
            budget: Budget::default(),
            udf: UdfVolumes::new(),
        }
    }

    /// Looks at the bytes from `offset` on (a multiple of 512) and reads more where it has to.
    pub fn look(&mut self, offset: u64, bytes: &[u8], read: &mut SearchRead<'_>) {
        self.budget.looked(bytes.len());
        for (number, sector) in (0_u64..).zip(bytes.chunks_exact(SECTOR_BYTES)) {
            let known = probes::matching(sector).or_else(|| more::matching(sector));
            let known = known.or_else(|| confirmed::matching(sector));
            let Some((kind, probe)) = known else { continue };
            if !self.budget.admits(kind) {
                continue;
            }
            let at = offset + number * SECTOR_BYTES as u64;
            let mut view = probes::Reader {
                size_bytes: self.size_bytes,
                sector_size_bytes: self.sector_size_bytes,
                piece: (offset, bytes),
                read: &mut *read,
                spent: Spent::default(),
                udf: &mut self.udf,
            };
            let claims = probe(&mut view, sector, at);
            let spent = view.spent;
            self.budget.spend(kind, spent);
            for claim in claims {
                self.claim(claim);
            }
        }
    }

    fn claim(&mut self, claim: Claim) {
        if claim.start >= self.size_bytes || claim.length == Some(0) {
            return;
        }
        let key = (claim.start, claim.holds, claim.length);
        if !self.found.contains_key(&key) && self.found.len() >= MOST_FOUND {
            self.overflowed = true;
            return;
        }
        let place = self.found.entry(key).or_insert_with(|| Place {
            holds: claim.holds,
            start_bytes: claim.start,
            length_bytes: claim.length,
            entry: claim.entry.clone(),
            parts: claim.parts,
            signs: Vec::new(),
            sign_count: 0,
        });
        // Where the copies differ, the primary one counts, as everywhere.
        if claim.entry.as_ref().is_some_and(|entry| entry.primary) {
            place.entry = claim.entry;
        }
        let sign = Sign {
            what: claim.what,
            offset_bytes: claim.offset,
        };
        // A sector may be looked at twice: as a sample, and in its turn.
        if place.signs.contains(&sign) {
            return;
        }
        place.sign_count += 1;
        if place.signs.len() < MOST_SIGNS {
            place.signs.push(sign);
        }
    }

    /// True when the medium has more of them than are kept.
    pub fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// Structures that were passed over because the medium repeats their magic number, with the
    /// number of their sectors.
    pub fn unexamined(&self) -> impl Iterator<Item = (Holds, u64)> {
        self.budget.unexamined()
    }

    /// Offsets where partitions usually begin: the first sector after a track, multiples of 1 MiB
    /// and of a cylinder (255 heads, 63 sectors), at most `most` of them, spread over the medium.
    pub fn samples(&self, most: usize) -> Vec<u64> {
        const MIB: u64 = 1 << 20;
        const CYLINDER: u64 = 255 * 63 * 512;
        let spread = |unit: u64| {
            let all = self.size_bytes / unit;
            let step = all.div_ceil((most / 2).max(1) as u64).max(1);
            (0..all).step_by(step as usize).map(move |n| n * unit)
        };
        let mut offsets: Vec<u64> = spread(MIB).chain(spread(CYLINDER)).collect();
        offsets.extend([63 * 512, 2 * CYLINDER + 63 * 512]);
        let unit = self.sector_size_bytes;
        offsets.retain(|&offset| offset < self.size_bytes && offset.is_multiple_of(unit));
        offsets.sort_unstable();
        offsets.dedup();
        offsets
    }

    /// Where the next partition would begin after those that were found: their ends.
    pub fn ends(&self) -> Vec<u64> {
        let ends = self.found.values().filter_map(|place| {
            let end = place.start_bytes.checked_add(place.length_bytes?)?;
            Some([end, end.checked_next_multiple_of(1 << 20)?])
        });
        let mut ends: Vec<u64> = ends.flatten().collect();
        ends.retain(|&end| end < self.size_bytes && end.is_multiple_of(self.sector_size_bytes));
        ends.sort_unstable();
        ends.dedup();
        ends
    }

    /// Reads the texts of the physical volumes of LVM2 that were found: what lies in their logical
    /// volumes is no partition.
    pub fn read_groups(&mut self, read: &mut SearchRead<'_>) {
        let physical = self.found.values().filter(|one| one.holds == Holds::Lvm2);
        let mut starts: Vec<u64> = physical.map(|one| one.start_bytes).collect();
        starts.dedup();
        let volumes = (0..)
            .zip(starts)
            .map(|(number, start_bytes)| PhysicalVolume {
                start_bytes,
                group: match number < MOST_PHYSICAL {
                    true => lvm2::group(start_bytes, read),
                    false => Err(format!("only {MOST_PHYSICAL} physical volumes are read")),
                },
            });
        self.physical = volumes.collect();
    }

    /// The physical volumes that [`Search::read_groups`] found, in the order of the medium.
    pub fn physical_volumes(&self) -> &[PhysicalVolume] {
        &self.physical
    }

    /// The structures at the start of the medium.
    pub fn at_start(&self) -> impl Iterator<Item = &Place> {
        let places = self.found.values();
        places.filter(|place| place.start_bytes == 0)
    }

    /// The partitions, in the order of their sectors. Where two lie over each other, the one that
    /// more speaks for is offered and the other one refers to it.
    pub fn partitions(&self) -> Vec<Lost> {
        let inside = ends::inside(&self.physical, self.found.values());
        let places = self.found.values();
        ends::partitions(self.size_bytes, self.sector_size_bytes, places, &inside)
    }
}
