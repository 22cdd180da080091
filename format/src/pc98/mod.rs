//! NEC's partition table of the PC-98: sixteen partitions, `s1` to `s16`, in sector 1.
//!
//! ```text
//! sector 0  boot code; byte 4 often "IPL1"; 510 55 AA
//! sector 1  sixteen entries of 32 bytes:
//!           0 mid (bit 7 bootable) | 1 sid (bit 7 active) | 4 boot code's sector, head, cylinder
//!           8 first sector u8, head u8, cylinder u16 | 12 last sector, head, cylinder
//!          16 name, 16 bytes
//! ```
//! Integers are little-endian. Places are whole cylinders, and what a cylinder is stands nowhere in
//! the table: it is asked of the disk, 17 sectors and 8 heads without an answer (`g_pc98_taste`).
//! Sources: FreeBSD `sys/sys/diskpc98.h`, `sys/geom/geom_pc98.c`, `sys/geom/part/g_part_pc98.c`;
//! libparted `labels/pc98.c`; `docs/formats/pc98.md`.

use crate::bytes;
use crate::mbr::Mbr;
use crate::numbered;
use crate::text;
use std::fmt;

/// Bytes of a sector, and of the table.
pub const SECTOR_BYTES: usize = 512;
/// Entries of the table, used or not.
pub const ENTRIES: usize = 16;

/// The first bytes of sector 1 if it belongs to another table: an Apple map, a GPT, a BSD label.
const OTHER_TABLES: [&[u8]; 3] = [b"PM", b"EFI PART", b"\x57\x45\x56\x82"];

const ENTRY_BYTES: usize = 32;
const SIGNATURE: u16 = 0xaa55;
/// Names that boot loaders of the PC-98 have at byte 4.
const LOADERS: [&[u8]; 3] = [b"IPL1", b"Linux 98", b"GRUB/98 "];
/// Where an MBR has its table.
const MBR_TABLE: std::ops::Range<usize> = 446..510;

/// Why two sectors are no table of a PC-98.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum Error {
    #[error("{found} bytes are there, boot sector and table need 1024")]
    Short { found: usize },
    /// Bytes 510 and 511 of the first sector are not 55 AA.
    #[error("no boot signature at byte 510: found {found:#06x}, expected 0xaa55")]
    Signature {
        /// The two bytes, read little-endian.
        found: u16,
    },
    /// Sector 0 may belong to any system, and has a table of its own where a PC has one.
    #[error(
        "sector 0 is not NEC's: it names no loader of the PC-98 at byte 4, and bytes 446 to 509 \
         are not empty"
    )]
    Foreign,
    #[error("sector 1 begins with the magic of an Apple map, a GPT or a BSD label")]
    OtherTable,
    #[error(
        "entry {number} at byte {offset} has cylinders {first} to {last}: no partition of a PC-98"
    )]
    Entry {
        /// Entry, counted from 1.
        number: usize,
        /// Its place in bytes.
        offset: usize,
        first: u16,
        last: u16,
    },
    #[error("the table in sector 1 is empty, and sector 0 names no loader of the PC-98")]
    Empty,
}

/// A partition's type: `mid` and `sid`, without the flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pc98Type(pub u16);

impl Pc98Type {
    /// FreeBSD's slice: `mid` 0x14, `sid` 0x44.
    pub const FREEBSD: Pc98Type = Pc98Type(0x4414);

    /// Understands `freebsd`, `!17428` and `!0x4414`, without flags, as gpart does.
    pub fn parse(text: &str) -> Option<Pc98Type> {
        if text.eq_ignore_ascii_case("freebsd") {
            return Some(Pc98Type::FREEBSD);
        }
        let value = numbered::parse(text.strip_prefix('!')?)?;
        (value != 0 && value & 0x8080 == 0).then_some(Pc98Type(value))
    }
}

/// gpart's form: `freebsd`, or `!` and the decimal number.
impl fmt::Display for Pc98Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Pc98Type::FREEBSD => f.pad("freebsd"),
            Pc98Type(number) => f.pad(&format!("!{number}")),
        }
    }
}

/// A place: sector and head count from 0 here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Chs {
    /// Sector of the track.
    pub sector: u8,
    /// Head of the track, from 0.
    pub head: u8,
    /// Cylinder on the disk, from 0.
    pub cylinder: u16,
}

impl Chs {
    fn decode(entry: &[u8], at: usize) -> Chs {
        Chs {
            sector: bytes::byte(entry, at),
            head: bytes::byte(entry, at + 1),
            cylinder: bytes::u16_le(entry, at + 2),
        }
    }

    fn encode(self, entry: &mut [u8], at: usize) {
        bytes::put(entry, at, &[self.sector, self.head]);
        bytes::put_u16_le(entry, at + 2, self.cylinder);
    }
}

/// One entry, used or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Entry {
    /// The low byte of the type, and in bit 7 whether it can be booted.
    pub mid: u8,
    /// The high byte of the type, and in bit 7 whether it is active.
    pub sid: u8,
    /// Two bytes without a meaning, kept.
    pub reserved: [u8; 2],
    /// Where its boot code stands.
    pub boot: Chs,
    /// Where the slice begins (`dp_ssect` and others).
    pub first: Chs,
    /// Where the slice ends (`dp_esect` and others).
    pub last: Chs,
    /// Its name, padded with NUL or spaces.
    pub name: [u8; 16],
}

impl Entry {
    fn decode(entry: &[u8]) -> Entry {
        Entry {
            mid: bytes::byte(entry, 0),
            sid: bytes::byte(entry, 1),
            reserved: bytes::take(entry, 2),
            boot: Chs::decode(entry, 4),
            first: Chs::decode(entry, 8),
            last: Chs::decode(entry, 12),
            name: bytes::take(entry, 16),
        }
    }

    fn encode(&self, entry: &mut [u8]) {
        bytes::put(entry, 0, &[self.mid, self.sid]);
        bytes::put(entry, 2, &self.reserved);
        self.boot.encode(entry, 4);
        self.first.encode(entry, 8);
        self.last.encode(entry, 12);
        bytes::put(entry, 16, &self.name);
    }

    /// The type: `mid` and `sid`, without the highest bit of each, which is a flag.
    pub fn kind(&self) -> Pc98Type {
        Pc98Type(u16::from(self.mid & 0x7f) | u16::from(self.sid & 0x7f) << 8)
    }

    /// Sets the type and keeps the flags.
    pub fn set_kind(&mut self, kind: Pc98Type) {
        self.mid = self.mid & 0x80 | kind.0 as u8 & 0x7f;
        self.sid = self.sid & 0x80 | (kind.0 >> 8) as u8 & 0x7f;
    }

    /// Bit 7 of `mid`: gpart's `bootable`.
    pub fn is_bootable(&self) -> bool {
        self.mid & 0x80 != 0
    }

    /// Bit 7 of `sid`: gpart's `active`.
    pub fn is_active(&self) -> bool {
        self.sid & 0x80 != 0
    }

    /// The name as text. It is in Shift-JIS: ASCII and half-width katakana are read, and bytes of
    /// kanji stay bytes ([`crate::text`]), each by itself, as two of them may look like UTF-8. A
    /// whole name in UTF-8, as parted writes it, is read as such.
    pub fn label(&self) -> String {
        let end = self.name.iter().position(|byte| *byte == 0);
        let name = self.name[..end.unwrap_or(self.name.len())].trim_ascii_end();
        // JIS X 0201, 0xA1 to 0xDF; in a name with kanji these may be halves of them.
        let has_kanji = name.iter().any(|byte| matches!(byte, 0x80..=0xa0 | 0xe0..));
        if let Ok(name) = str::from_utf8(name)
            && has_kanji
        {
            return name.to_owned();
        }
        let character = |byte: &u8| match byte {
            0xa1..=0xdf if !has_kanji => char::from_u32(0xff61 - 0xa1 + u32::from(*byte))
                .map_or_else(String::new, String::from),
            byte => text::from_bytes(&[*byte]),
        };
        name.iter().map(character).collect()
    }

    /// True when it is a partition, as `g_pc98_modify` decides it: the last cylinder is not 0, and
    /// first and last place differ.
    pub fn is_used(&self) -> bool {
        self.last.cylinder != 0 && self.first != self.last
    }
}

/// The disk's geometry as its BIOS has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Heads of the disk: tracks of a cylinder.
    pub heads: u32,
    /// Sectors of a track.
    pub track_sectors: u32,
}

impl Geometry {
    /// The geometry that GEOM assumes if the disk states none.
    pub const DEFAULT: Geometry = Geometry {
        heads: 8,
        track_sectors: 17,
    };

    /// Sectors of a cylinder.
    pub(crate) fn cylinder_sectors(self) -> u64 {
        u64::from(self.heads) * u64::from(self.track_sectors)
    }
}

/// A partition with its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice<'a> {
    /// Number of the entry, from 1.
    pub number: usize,
    /// First sector of the slice on the disk.
    pub start: u64,
    /// Length of the slice, sectors.
    pub sectors: u64,
    /// The entry that it is from.
    pub entry: &'a Entry,
}

/// Sectors 0 and 1, decoded: boot code and table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Sector 0, kept as it is.
    pub boot: Box<[u8; SECTOR_BYTES]>,
    /// The entries, used or not.
    pub entries: [Entry; ENTRIES],
}

impl Table {
    /// A table without partitions behind this boot code, whose signature is set.
    pub fn create(boot: &[u8; SECTOR_BYTES]) -> Table {
        let mut boot = *boot;
        bytes::put_u16_le(&mut boot, 510, SIGNATURE);
        Table {
            boot: Box::new(boot),
            entries: [Entry::default(); ENTRIES],
        }
    }

    /// Decodes sectors 0 and 1.
    ///
    /// The signature is that of all PCs, so more is asked for: a loader of the PC-98 in sector 0,
    /// or no table of a PC there and at least one partition in sector 1, or code in its place and
    /// nothing but whole entries with names in sector 1; and no entry that is impossible
    /// (`g_part_pc98_probe` has fewer checks, because it ran on the PC-98 only).
    ///
    /// # Errors
    /// In the order of these checks.
    pub fn decode(head: &[u8]) -> Result<Table, Error> {
        let found = head.len();
        if found < 2 * SECTOR_BYTES {
            return Err(Error::Short { found });
        }
        let found = bytes::u16_le(head, 510);
        if found != SIGNATURE {
            return Err(Error::Signature { found });
        }
        let named = names_a_loader(head);
        let second = Table::read(head);
        let is_code = || Mbr::decode(head).is_err() && second.is_written_by_tools();
        if !named && head[MBR_TABLE].iter().any(|byte| *byte != 0) && !is_code() {
            return Err(Error::Foreign);
        }
        let after = &head[SECTOR_BYTES..];
        if !named && OTHER_TABLES.iter().any(|magic| after.starts_with(magic)) {
            return Err(Error::OtherTable);
        }
        let table = second;
        // Tools fill the table from its first entry on.
        if !named && !table.entries[0].is_used() {
            return Err(Error::Empty);
        }
        for (index, entry) in table.entries.iter().enumerate() {
            let listed_backwards = entry.is_used() && entry.last.cylinder < entry.first.cylinder;
            let is_text = entry.name.iter().all(|byte| *byte == 0 || *byte >= 0x20);
            // A type of zero: what is left of an Apple map whose magic was wiped looks so.
            let has_type = entry.mid != 0 || entry.sid != 0;
            if listed_backwards || entry.is_used() && !named && !(is_text && has_type) {
                return Err(Error::Entry {
                    number: index + 1,
                    offset: SECTOR_BYTES + index * ENTRY_BYTES,
                    first: entry.first.cylinder,
                    last: entry.last.cylinder,
                });
            }
        }
        Ok(table)
    }

    /// No sector looks so by chance: entries from the first one on, each with a type, a printable
    /// name and places in one order; the others are empty.
    fn is_written_by_tools(&self) -> bool {
        let is_name = |entry: &Entry| {
            let length = entry.name.iter().position(|byte| *byte == 0);
            let (name, after) = entry.name.split_at(length.unwrap_or(entry.name.len()));
            // Names may be in Shift-JIS.
            let text = name.iter().all(|byte| *byte >= b' ' && *byte != 0x7f);
            text && !name.is_empty() && after.iter().all(|byte| *byte == 0)
        };
        let is_whole = |entry: &Entry| {
            let ends = (entry.first.cylinder, entry.last.cylinder);
            entry.is_used() && entry.mid & 0x7f != 0 && ends.0 <= ends.1 && is_name(entry)
        };
        let used = self
            .entries
            .iter()
            .take_while(|entry| is_whole(entry))
            .count();
        let is_empty = |entry: &Entry| *entry == Entry::default();
        used > 0 && self.entries[used..].iter().all(is_empty)
    }

    /// Both sectors as they are.
    fn read(head: &[u8]) -> Table {
        let entry = |index: usize| Entry::decode(&head[SECTOR_BYTES + index * ENTRY_BYTES..]);
        Table {
            boot: Box::new(bytes::take(head, 0)),
            entries: std::array::from_fn(entry),
        }
    }

    /// The geometry that the ends of the partitions agree on: most tools write the last sector of
    /// the last head there. `None` where they differ, or have zeroes, as parted writes.
    pub fn geometry_of_ends(&self) -> Option<Geometry> {
        let used = self.entries.iter().filter(|entry| entry.is_used());
        let mut ends = used.map(|entry| (entry.last.head, entry.last.sector));
        let (head, sector) = ends.next().filter(|&end| end.0 > 0 && end.1 > 0)?;
        ends.all(|end| end == (head, sector)).then(|| Geometry {
            heads: u32::from(head) + 1,
            track_sectors: u32::from(sector) + 1,
        })
    }

    /// The boot sector and the sector of the table.
    pub fn encode(&self) -> [u8; 2 * SECTOR_BYTES] {
        let mut head = [0; 2 * SECTOR_BYTES];
        bytes::put(&mut head, 0, &*self.boot);
        for (entry, place) in self
            .entries
            .iter()
            .zip(head[SECTOR_BYTES..].chunks_mut(ENTRY_BYTES))
        {
            entry.encode(place);
        }
        head
    }

    /// The partitions with their places: whole cylinders, as in GEOM.
    pub fn slices(&self, geometry: Geometry) -> impl Iterator<Item = Slice<'_>> {
        let used = self.entries.iter().enumerate();
        let used = used.filter(|(_, entry)| entry.is_used());
        used.map(move |(index, entry)| {
            let count = u64::from(entry.last.cylinder).saturating_sub(entry.first.cylinder.into());
            Slice {
                number: index + 1,
                start: u64::from(entry.first.cylinder) * geometry.cylinder_sectors(),
                sectors: (count + 1) * geometry.cylinder_sectors(),
                entry,
            }
        })
    }
}

/// Whether sector 0 names a loader of the PC-98.
pub fn names_a_loader(sector: &[u8]) -> bool {
    let name = sector.get(4..).unwrap_or_default();
    LOADERS.iter().any(|loader| name.starts_with(loader))
}

#[cfg(test)]
mod tests;
