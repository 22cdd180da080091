//! The tables of a sparse extent, before it is written to: none may lie over another, and no grain
//! over a table or another grain.
//!
//! ```text
//!   header     grain directory     grain tables        grains
//!   [KDMV..]   [ t0 | t1 | .. ]    [ g0 | g1 | .. ]    [ 64 KiB of the disk ] [ .. ]
//! ```
//! All entries are sectors of the file, 32 bits, little-endian; 0 is nothing, 1 may be zeroes.
//! `qemu-nbd` writes new entries into whatever a wrong directory leads to, and `qemu-img check`
//! finds nothing wrong with it. The extents of ESX (`COWD`) are not checked.
//!
//! Sources: VMware, Virtual Disk Format 5.0, "Hosted Sparse Extents"; QEMU `block/vmdk.c`.

use super::SPARSE_MAGIC;
use crate::{ReadAt, bytes};
use std::fmt::{self, Display};
use std::io;
use std::ops::Range;

const SECTOR: u64 = 512;
const ENTRY_BYTES: u64 = 4;
/// The whole header.
const HEADER_BYTES: usize = 512;
/// Bits of the flags: there is a second directory with tables of its own; an entry of 1 is a grain
/// of zeroes.
const SECOND_DIRECTORY: u32 = 1 << 1;
const ZERO_GRAINS: u32 = 1 << 2;
/// Entries of a table that qemu takes at most.
const TABLE_ENTRIES_MAX: u64 = 512;
/// Entries of a directory that are looked at: 128 TiB in grains of 64 KiB.
const DIRECTORY_MAX: u64 = 4 << 20;
/// So many grains are compared with each other: 1 TiB in grains of 64 KiB.
const GRAINS_MAX: usize = 16 << 20;
/// So much of the tables is read at a time, bytes.
const PIECE_BYTES: u64 = 1 << 20;

/// Why an extent cannot be written to. Offsets are bytes of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// An entry leads to the bytes of something else.
    Over {
        /// What the entry is of.
        entry: &'static str,
        /// Where it leads to.
        offset: u64,
        /// What is there.
        there: &'static str,
    },
    /// An entry leads past the end of the file.
    Outside {
        /// What the entry is of.
        entry: &'static str,
        /// Where it leads to.
        offset: u64,
    },
    /// qemu refuses the sizes in the header, or the tables are larger than is checked here.
    Sizes,
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Over {
                entry,
                offset,
                there,
            } => write!(
                f,
                "an entry of {entry} leads to byte {offset}, where {there} is"
            ),
            Self::Outside { entry, offset } => write!(
                f,
                "an entry of {entry} leads to byte {offset}, past the end of the file"
            ),
            Self::Sizes => write!(f, "its header states sizes that are out of range"),
        }
    }
}

const TABLE: &str = "a grain table";
const GRAIN: &str = "a grain";

/// The parts of the header that tell where tables are, in sectors.
struct Layout {
    grain: u64,
    table_entries: u64,
    table: u64,
    directory_entries: u64,
    directories: Vec<u64>,
    /// Header, descriptor and directories.
    fixed: Vec<(Range<u64>, &'static str)>,
    has_zero_grains: bool,
}

impl Layout {
    /// `None` for sizes that no image has.
    fn decode(header: &[u8]) -> Option<Self> {
        let long = |at: usize| u64::from_le_bytes(bytes::take(header, at));
        let flags = bytes::u32_le(header, 8);
        let (capacity, grain) = (long(12), long(20));
        let table_entries = u64::from(bytes::u32_le(header, 44));
        if !(1..=TABLE_ENTRIES_MAX).contains(&table_entries) || grain == 0 || grain > 1 << 20 {
            return None;
        }
        let directory_entries = capacity.div_ceil(table_entries * grain);
        if directory_entries > DIRECTORY_MAX {
            return None;
        }
        let mut directories = vec![long(56)];
        if flags & SECOND_DIRECTORY != 0 {
            directories.push(long(48));
        }
        let of = |start: u64, sectors: u64| start..start.saturating_add(sectors);
        let mut fixed = vec![
            (of(0, 1), "its header"),
            (of(long(28), long(36)), "its descriptor"),
        ];
        let length = (directory_entries * ENTRY_BYTES).div_ceil(SECTOR);
        let directory = |&start: &u64| (of(start, length), "its grain directory");
        fixed.extend(directories.iter().map(directory));
        Some(Self {
            grain,
            table_entries,
            table: (table_entries * ENTRY_BYTES).div_ceil(SECTOR),
            directory_entries,
            directories,
            fixed,
            has_zero_grains: flags & ZERO_GRAINS != 0,
        })
    }

    fn fixed_in(&self, place: &Range<u64>) -> Option<&'static str> {
        let meets =
            |(other, _): &&(Range<u64>, _)| other.start < place.end && place.start < other.end;
        self.fixed.iter().find(meets).map(|(_, name)| *name)
    }
}

/// What is wrong with the tables of a sparse extent, in a file of so many bytes. `None` also for
/// a file that is none.
///
/// # Errors
/// A table cannot be read.
pub fn fault(file_bytes: u64, read: &mut ReadAt<'_>) -> io::Result<Option<Fault>> {
    let header = read(0, HEADER_BYTES)?;
    if !header.starts_with(SPARSE_MAGIC) {
        return Ok(None);
    }
    let Some(layout) = Layout::decode(&header) else { return Ok(Some(Fault::Sizes)) };
    let end = file_bytes.div_ceil(SECTOR);
    let (mut first, mut tables) = (Vec::new(), Vec::new());
    for (number, &start) in layout.directories.iter().enumerate() {
        let length = layout.directory_entries * ENTRY_BYTES;
        each_entry(start.saturating_mul(SECTOR), length, read, &mut |entry| {
            if entry > 0 {
                tables.push(entry);
                if number == 0 {
                    first.push(entry);
                }
            }
        })?;
    }
    tables.sort_unstable();
    let entry = "its grain directory";
    if let Some(fault) = overlap(&layout, &tables, (layout.table, end), (entry, TABLE)) {
        return Ok(Some(fault));
    }
    let mut grains = Vec::new();
    let mut found = None;
    for table in first {
        let length = layout.table_entries * ENTRY_BYTES;
        each_entry(u64::from(table) * SECTOR, length, read, &mut |grain| {
            if grain > 1 || grain == 1 && !layout.has_zero_grains {
                found = found.take().or_else(|| over_table(&layout, &tables, grain));
                if grains.len() < GRAINS_MAX {
                    grains.push(grain);
                }
            }
        })?;
        if found.is_some() {
            return Ok(found);
        }
    }
    grains.sort_unstable();
    Ok(overlap(
        &layout,
        &grains,
        (layout.grain, end),
        (TABLE, GRAIN),
    ))
}

/// Whether a grain lies over a table, of which all are sorted.
fn over_table(layout: &Layout, tables: &[u32], grain: u32) -> Option<Fault> {
    let place = u64::from(grain)..u64::from(grain) + layout.grain;
    let before = tables.partition_point(|&table| u64::from(table) < place.end);
    let last = before.checked_sub(1).map(|last| u64::from(tables[last]));
    last.is_some_and(|last| last + layout.table > place.start)
        .then_some(Fault::Over {
            entry: TABLE,
            offset: place.start * SECTOR,
            there: TABLE,
        })
}

/// The first of these places, sorted and of so many sectors each, over another, over something
/// fixed, or past the end.
fn overlap(
    layout: &Layout,
    sorted: &[u32],
    (sectors, end): (u64, u64),
    (entry, what): (&'static str, &'static str),
) -> Option<Fault> {
    let mut free_from = 0;
    for &start in sorted {
        let place = u64::from(start)..u64::from(start) + sectors;
        let there = match layout.fixed_in(&place) {
            None if place.start < free_from => Some(what),
            fixed => fixed,
        };
        let offset = place.start * SECTOR;
        if let Some(there) = there {
            return Some(Fault::Over {
                entry,
                offset,
                there,
            });
        }
        if place.start >= end {
            return Some(Fault::Outside { entry, offset });
        }
        free_from = place.end;
    }
    None
}

/// The entries in so many bytes of a table.
fn each_entry(
    offset: u64,
    bytes: u64,
    read: &mut ReadAt<'_>,
    each: &mut dyn FnMut(u32),
) -> io::Result<()> {
    let mut done = 0;
    while done < bytes {
        let length = PIECE_BYTES.min(bytes - done);
        let piece = read(offset.saturating_add(done), length as usize)?;
        let (entries, _) = piece.as_chunks::<4>();
        for entry in entries {
            each(u32::from_le_bytes(*entry));
        }
        done += length;
    }
    Ok(())
}
