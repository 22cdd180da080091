//! Partition tables, recognised before anything is read from them: those that ugeom lists and those
//! that it does not, so that neither is overwritten by mistake.
//!
//! Sources: `docs/formats/` for MBR, GPT and BSD labels; Linux `block/partitions/*.c` for the
//! others; DragonFly `sys/sys/disklabel64.h`; Microsoft's LDM as described by the Linux-NTFS
//! project.

use super::view::View;
use super::{Content, ContentUse, text};
use crate::bytes;
use crate::gpt::Gpt;
use crate::mbr::{Mbr, MbrKind, SIZE_BYTES, TABLE_OFFSET_BYTES};
use crate::media::Media;
use crate::pc98;

/// Sector sizes that a table may be made for.
const SECTOR_SIZES: [u32; 4] = [512, 1024, 2048, 4096];

/// Where an MBR keeps the number of its disk.
const DISK_SIGNATURE_OFFSET_BYTES: usize = 440;

/// The short name of a table without partitions.
pub(super) const EMPTY_MBR: &str = "MBR, empty";

fn table(name: &'static str, title: &str, short: &str) -> Content {
    Content::new(name, title, short, ContentUse::Table)
}

/// A table in sector 0. Two kinds may be the first sector of something else, and give way to it:
/// `MBR?`, whose entries fit no table, and [`EMPTY_MBR`], which has none.
pub fn probe_mbr(view: &mut View<'_>) -> Option<Content> {
    let sector = view.bytes(0, SIZE_BYTES);
    if sector.len() < SIZE_BYTES || sector[510..] != [0x55, 0xaa] {
        return None;
    }
    let length = (SIZE_BYTES - TABLE_OFFSET_BYTES) as u64;
    let signature = bytes::u32_le(&sector, DISK_SIGNATURE_OFFSET_BYTES);
    let place = |mut content: Content| {
        content.uuid = (signature != 0).then(|| format!("{signature:08x}"));
        content.at(TABLE_OFFSET_BYTES as u64, length)
    };
    match Mbr::decode(&sector) {
        Ok(mbr) => match mbr.kind() {
            MbrKind::Empty => Some(place(table("dos", "an MBR without partitions", EMPTY_MBR))),
            MbrKind::Protective => (!has_gpt(view)).then(|| {
                place(table(
                    "PMBR",
                    "a protective MBR without a GPT",
                    "protective MBR",
                ))
            }),
            MbrKind::Partitioned | MbrKind::Hybrid | MbrKind::Dedicated => {
                Some(place(table("dos", "an MBR", "MBR")))
            }
        },
        Err(_) => {
            let entries = sector[TABLE_OFFSET_BYTES..510].chunks(16);
            let used = |entry: &[u8]| entry[4] != 0 && bytes::u32_le(entry, 12) != 0;
            let empty = |entry: &[u8]| entry[4..].iter().all(|byte| *byte == 0);
            let whole = entries.clone().all(|entry| used(entry) || empty(entry));
            let title = "an MBR with unusual flags";
            (whole && entries.into_iter().any(used)).then(|| place(table("dos", title, "MBR?")))
        }
    }
}

fn has_gpt(view: &mut View<'_>) -> bool {
    !gpt_headers(view).is_empty()
}

/// Sector size and offset of each GPT header.
fn gpt_headers(view: &mut View<'_>) -> Vec<(u32, u64)> {
    let mut found = Vec::new();
    for sector in SECTOR_SIZES {
        let unit = u64::from(sector);
        let last = (view.size_bytes() / unit * unit).checked_sub(unit);
        for offset in [Some(unit), last].into_iter().flatten() {
            // The header says its own sector, which tells sector sizes apart.
            let own = view.u64_le(offset + 24).checked_mul(unit) == Some(offset);
            let header = view.has(offset, b"EFI PART");
            if header && (own || offset == unit) && !found.contains(&(sector, offset)) {
                found.push((sector, offset));
            }
        }
    }
    // One header at a place: that of the size which it says, else of the smallest.
    found.dedup_by_key(|(_, offset)| *offset);
    found
}

/// Header and 22 entries of a disklabel, the most that any system has.
const BSD_LABEL_BYTES: u64 = 148 + 22 * 16;
/// Header and 16 entries of a disklabel64.
const BSD64_LABEL_BYTES: u64 = 200 + 16 * 64;
/// The database of an LDM, at the end of the disk.
const LDM_DATABASE_BYTES: u64 = 1 << 20;
/// Entries of an Apple map that are read.
const APPLE_ENTRIES_MAX: u64 = 1024;

pub fn probe_gpt(view: &mut View<'_>) -> Option<Content> {
    let headers = gpt_headers(view);
    let (sector, _) = *headers.first()?;
    let media = Media::new(view.size_bytes(), sector)?;
    let unit = u64::from(sector);
    let read = Gpt::read(media, &mut |lba, count| {
        Ok(view.bytes(lba.saturating_mul(unit), (count * unit) as usize))
    });
    let title = match (read.best().is_some(), sector) {
        (true, 512) => "a GPT".to_owned(),
        (true, _) => format!("a GPT for sectors of {sector} bytes"),
        (false, _) => "a damaged GPT".to_owned(),
    };
    let mut content = table(
        "gpt",
        &title,
        if read.best().is_some() {
            "GPT"
        } else {
            "GPT, damaged"
        },
    );
    for (sector, offset) in headers {
        content = content.at(offset, 8).with_body(offset, sector.into());
    }
    let alternate = read.primary.as_ref().ok().map(|p| p.header.alternate_lba);
    let alternate = alternate.and_then(|lba| lba.checked_mul(unit));
    if let Some(offset) = alternate.filter(|offset| view.has(*offset, b"EFI PART"))
        && !content
            .places
            .iter()
            .any(|place| place.offset_bytes == offset)
    {
        content = content.at(offset, 8).with_body(offset, unit);
    }
    for copy in [&read.primary, &read.backup].into_iter().flatten() {
        let first = copy.header.table_lba.saturating_mul(unit);
        content = content.with_body(first, copy.header.table_size_bytes());
    }
    let sector0 = view.bytes(0, SIZE_BYTES);
    if Mbr::decode(&sector0).is_ok_and(|mbr| mbr.kind() == MbrKind::Protective) {
        let length = (SIZE_BYTES - TABLE_OFFSET_BYTES) as u64;
        content = content.at(TABLE_OFFSET_BYTES as u64, length);
    }
    content.uuid = read
        .best()
        .map(|(_, best)| best.header.disk_guid.to_string().to_lowercase());
    Some(content)
}

/// A BSD disklabel of either byte order: both magic numbers, 132 bytes apart, anywhere in the first
/// 4.5 KiB. Systems put it at 0, 64, 128 or 512 bytes, or into the second sector.
pub fn probe_bsd(view: &mut View<'_>) -> Option<Content> {
    const LITTLE: [u8; 4] = [0x57, 0x45, 0x56, 0x82];
    const BIG: [u8; 4] = [0x82, 0x56, 0x45, 0x57];
    let head = view.bytes(0, 4096 + 512 + 136);
    let at = |offset: usize, magic: &[u8]| {
        head.get(offset..)
            .is_some_and(|rest| rest.starts_with(magic))
            && head
                .get(offset + 132..)
                .is_some_and(|rest| rest.starts_with(magic))
    };
    let places = |magic: [u8; 4]| (0..=4096 + 512).step_by(4).filter(move |o| at(*o, &magic));
    let (mut content, found): (Content, Vec<usize>) = match places(LITTLE).next() {
        Some(_) => (
            table("bsd", "a BSD disklabel", "BSD"),
            places(LITTLE).collect(),
        ),
        None => (
            table("bsd", "a big-endian BSD disklabel", "BSD (big-endian)"),
            places(BIG).collect(),
        ),
    };
    for offset in found {
        content = content.at(offset as u64, 4).at(offset as u64 + 132, 4);
        content = content.with_body(offset as u64, BSD_LABEL_BYTES);
    }
    (!content.places.is_empty()).then_some(content)
}

/// A Sun label: the magic number and a sum over the sector of zero.
pub fn probe_sun(view: &mut View<'_>) -> Option<Content> {
    let sector = view.bytes(0, 512);
    if sector.len() < 512 || sector[508..510] != [0xda, 0xbe] {
        return None;
    }
    let sum = sector
        .chunks_exact(2)
        .fold(0, |sum, pair| sum ^ u16::from_be_bytes([pair[0], pair[1]]));
    let title = match sum {
        0 => "a Sun disk label",
        _ => "a damaged Sun disk label",
    };
    Some(table("sun", title, "VTOC8").at(508, 2).with_body(0, 512))
}

/// An Amiga rigid disk block in one of the first sixteen sectors.
pub fn probe_amiga(view: &mut View<'_>) -> Option<Content> {
    (0..16_u64).map(|sector| sector * 512).find_map(|base| {
        let words = u64::from(view.u32_be(base + 4));
        let block = view.has(base, b"RDSK") && (16..=128).contains(&words);
        // Its blocks, and those of the partitions, lie in a range that it states.
        let unit = u64::from(view.u32_be(base + 16));
        let (low, high) = (view.u32_be(base + 128), view.u32_be(base + 132));
        let (low, after) = (u64::from(low) * unit, (u64::from(high) + 1) * unit);
        block.then(|| {
            let found = table("amiga", "an Amiga rigid disk block", "RDB").at(base, 4);
            found.with_body(low, after.saturating_sub(low))
        })
    })
}

/// An Atari root sector: no magic number, but an entry of a known type that lies on the disk, or
/// the mark that parted leaves in the entries of a new table.
pub fn probe_atari(view: &mut View<'_>) -> Option<Content> {
    const TYPES: [&[u8; 3]; 12] = [
        b"GEM", b"BGM", b"XGM", b"LNX", b"SWP", b"RAW", b"MIX", b"UNX", b"MIN", b"F32", b"QWA",
        b"MAC",
    ];
    let sectors = view.size_bytes() / 512;
    let sector = view.bytes(0, 512);
    let entries = sector.get(0x1c6..0x1f6)?.chunks_exact(12);
    let said = u64::from(bytes::u32_be(&sector, 0x1c2));
    let fits = |entry: &&[u8]| {
        if entry[..] == *b"\0PARTEDATARI" {
            return true;
        }
        let start = u64::from(bytes::u32_be(entry, 4));
        let length = u64::from(bytes::u32_be(entry, 8));
        entry[0] & 1 == 1
            && TYPES.iter().any(|kind| entry[1..4] == kind[..])
            && start != 0
            && length != 0
            && start + length <= sectors.max(said)
    };
    let place = |number: usize| 0x1c6 + 12 * number as u64;
    let first = entries.clone().position(|entry| fits(&entry))?;
    let found = table("atari", "an Atari partition table", "AHDI").at(place(first), 12);
    Some(found.with_body(0, 512))
}

/// Recognises the partition table of a PC-98 (sectors 0 and 1).
pub fn probe_pc98(view: &mut View<'_>) -> Option<Content> {
    pc98::Table::decode(&view.bytes(0, 2 * pc98::SECTOR_BYTES)).ok()?;
    let content = table("pc98", "a PC-98 partition table", "PC98");
    Some(content.at(510, 2).at(512, 512))
}

/// Tables that a magic number at one place tells: name, title, short name, place, magic.
pub(super) type Simple = (&'static str, &'static str, &'static str, u64, &'static [u8]);

#[rustfmt::skip]
pub(super) const SIMPLE: &[Simple] = &[
    ("mac", "an Apple partition map", "APM", 512, b"PM\0\0"),
    ("mac", "an Apple partition map", "APM", 1024, b"PM\0\0"),
    ("mac", "an Apple partition map", "APM", 2048, b"PM\0\0"),
    ("sgi", "an SGI volume header", "SGI", 0, b"\x0b\xe5\xa9\x41"),
    ("bsd64", "a DragonFly disklabel64", "BSD64", 512, b"\x59\x4c\x46\xc4"),
    ("ldm", "an LDM database (Windows dynamic disk)", "LDM", 6 * 512, b"PRIVHEAD"),
    ("aix", "an AIX volume", "AIX", 0, b"\xc9\xc2\xd4\xc1"),
    ("ultrix", "an Ultrix disk label", "Ultrix", 16_384 - 72, b"\x57\x29\x03\0\x01\0\0\0"),
    ("unixware", "a UnixWare disk label", "UnixWare", 29 * 512 + 4, b"\x0d\x60\xe5\xca"),
    ("solaris", "a Solaris VTOC", "VTOC", 512 + 12, b"\xee\xde\x0d\x60"),
    ("loop", "a loop label of parted", "loop", 0, b"GNU Parted Loopback 0"),
    ("plan9", "a Plan 9 partition table", "Plan 9", 512, b"part 9fat "),
];

pub fn probe_simple(view: &mut View<'_>) -> Option<Content> {
    for (name, title, short, offset, magic) in SIMPLE {
        // Entries of a map for small blocks also stand where one for large blocks begins.
        let other_blocks = *name == "mac"
            && *offset != 512
            && !(view.has(0, b"ER") && u64::from(view.u16_be(2)) == *offset);
        if !view.has(*offset, magic) || other_blocks {
            continue;
        }
        let mut content = table(name, title, short);
        if *name == "mac" && view.has(0, b"ER") {
            content = content.at(0, 2);
        }
        content = content.at(*offset, magic.len() as u64);
        if *name == "bsd64" {
            content.label = text::label(&view.bytes(512 + 96, 64));
        }
        let (first, length) = match *name {
            "bsd64" => (512, BSD64_LABEL_BYTES),
            "sgi" => (0, 512),
            "mac" => {
                let entries = u64::from(view.u32_be(*offset + 4)).min(APPLE_ENTRIES_MAX);
                (*offset, entries * *offset)
            }
            "ldm" => {
                let size_bytes = view.size_bytes();
                (
                    size_bytes.saturating_sub(LDM_DATABASE_BYTES),
                    LDM_DATABASE_BYTES,
                )
            }
            _ => (*offset, magic.len() as u64),
        };
        return Some(content.with_body(first, length));
    }
    None
}
