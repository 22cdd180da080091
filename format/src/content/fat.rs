//! FAT12, FAT16, FAT32 and exFAT. Sources: Microsoft's FAT specification (fatgen103) and exFAT
//! specification; the label is that of the root directory, which Windows shows.

use super::view::View;
use super::{Content, ContentUse, text};

const FAT12_CLUSTERS_MAX: u64 = 0xff4;
const FAT16_CLUSTERS_MAX: u64 = 0xfff4;
const FAT32_CLUSTERS_MAX: u64 = 0x0fff_fff6;
/// Clusters of a root directory that are searched for the label.
const CHAIN_MAX: usize = 100;
const ENTRY_BYTES: usize = 32;

/// The fields of a boot sector that place everything else.
struct Geometry {
    sector: u64,
    cluster_sectors: u64,
    reserved: u64,
    fat_sectors: u64,
    root_entries: u64,
    /// Length of one FAT if the file system is FAT32.
    fat32: bool,
    clusters: u64,
}

pub fn probe(view: &mut View<'_>) -> Option<Content> {
    let (place, length) = magic(view)?;
    complete(view, place, length).or_else(|| {
        // The name of the file system is worth a warning where the rest of the sector is damaged.
        let (usage, title) = (ContentUse::FileSystem, "a damaged FAT file system");
        (length == 8).then(|| Content::new("vfat", title, "FAT", usage).at(place, length))
    })
}

fn complete(view: &mut View<'_>, place: u64, length: u64) -> Option<Content> {
    let geometry = geometry(view, length <= 2)?;
    let short = match (geometry.fat32, geometry.clusters) {
        (true, _) => "FAT32",
        (false, 0..FAT12_CLUSTERS_MAX) => "FAT12",
        _ => "FAT16",
    };
    if geometry.fat32 && !is_info_sector(view, geometry.sector) {
        return None;
    }
    let title = format!("a {short} file system");
    let mut content = Content::new("vfat", &title, short, ContentUse::FileSystem).at(place, length);
    let extended: u64 = if geometry.fat32 { 66 } else { 38 };
    let signature = view.byte(extended);
    let serial = match geometry.fat32 {
        true => true,
        false => matches!(signature, 0x28 | 0x29),
    };
    content.uuid = serial.then(|| text::dos_serial(view.array(extended + 1)));
    content.label = match geometry.fat32 {
        true => chained_label(view, &geometry),
        false => {
            let root = (geometry.reserved + geometry.fat_sectors) * geometry.sector;
            root_label(view, root, geometry.root_entries as usize)
        }
    };
    Some(content)
}

/// Where the first of the names stands that a boot sector may carry, and its length. A jump or the
/// boot signature alone says little, so the rest of the sector must fit it exactly.
fn magic(view: &mut View<'_>) -> Option<(u64, u64)> {
    const NAMES: [(u64, &[u8]); 8] = [
        (0x52, b"MSWIN"),
        (0x52, b"FAT32   "),
        (0x36, b"MSDOS"),
        (0x36, b"FAT16   "),
        (0x36, b"FAT12   "),
        (0x36, b"FAT     "),
        (0, b"\xeb"),
        (0, b"\xe9"),
    ];
    let named = NAMES.iter().find(|(at, name)| view.has(*at, name));
    named
        .map(|(at, name)| (*at, name.len() as u64))
        .or_else(|| view.has(510, b"\x55\xaa").then_some((510, 2)))
        .or_else(|| unsigned(view))
}

/// The fields of a boot sector without any name, as an Atari or an MSX writes it: both copies of
/// the FAT begin with the kind of medium that it states.
fn unsigned(view: &mut View<'_>) -> Option<(u64, u64)> {
    const FIELDS: (u64, u64) = (11, 25);
    let sector = u64::from(view.u16_le(11));
    let first = u64::from(view.u16_le(14)) * sector;
    let (fats, media) = (u64::from(view.byte(16)), view.byte(21));
    let fat_bytes = u64::from(view.u16_le(22)) * sector;
    let begins = first > 0 && fat_bytes > 0 && (1..=2).contains(&fats) && media >= 0xf0;
    let mut copies = (0..fats).map(|copy| first + copy * fat_bytes);
    let is_fat = begins && copies.all(|at| view.has(at, &[media, 0xff, 0xff]));
    is_fat.then_some(FIELDS)
}

fn geometry(view: &mut View<'_>, weak_magic: bool) -> Option<Geometry> {
    if weak_magic {
        let other = view.has(0x36, b"JFS     ") || view.has(0x36, b"HPFS    ");
        if !view.has(510, b"\x55\xaa") || other {
            return None;
        }
    }
    let sector = u64::from(view.u16_le(11));
    let cluster_sectors = u64::from(view.byte(13));
    let reserved = u64::from(view.u16_le(14));
    let fats = u64::from(view.byte(16));
    let root_entries = u64::from(view.u16_le(17));
    let media = view.byte(21);
    let sane = sector.is_power_of_two()
        && (512..=4096).contains(&sector)
        && cluster_sectors.is_power_of_two()
        && reserved != 0
        && fats != 0
        && (media == 0xf0 || media >= 0xf8);
    if !sane {
        return None;
    }
    let sectors = match u64::from(view.u16_le(19)) {
        0 => u64::from(view.u32_le(32)),
        sectors => sectors,
    };
    let short_fat = u64::from(view.u16_le(22));
    let long_fat = u64::from(view.u32_le(36));
    let fat32 = short_fat == 0 && long_fat != 0;
    let fat_sectors = fats * if short_fat == 0 { long_fat } else { short_fat };
    if fat_sectors == 0 {
        return None;
    }
    let root_sectors = (root_entries * ENTRY_BYTES as u64).div_ceil(sector);
    let before_data = reserved + fat_sectors + root_sectors;
    let clusters = sectors.checked_sub(before_data)? / cluster_sectors;
    let max = match (fat32, clusters > FAT12_CLUSTERS_MAX) {
        (true, _) => FAT32_CLUSTERS_MAX,
        (false, true) => FAT16_CLUSTERS_MAX,
        (false, false) => FAT12_CLUSTERS_MAX,
    };
    (clusters <= max).then_some(Geometry {
        sector,
        cluster_sectors,
        reserved,
        fat_sectors,
        root_entries,
        fat32,
        clusters,
    })
}

/// FAT32's information sector is valid, empty, or missing.
fn is_info_sector(view: &mut View<'_>, sector: u64) -> bool {
    let at = match u64::from(view.u16_le(48)) {
        0 => return true,
        number => number * sector,
    };
    let first: [u8; 4] = view.array(at);
    let second: [u8; 4] = view.array(at + 484);
    [*b"RRaA", *b"RRdA", [0; 4]].contains(&first) && [*b"rrAa", [0; 4]].contains(&second)
}

fn root_label(view: &mut View<'_>, offset: u64, entries: usize) -> Option<String> {
    let directory = view.bytes(offset, entries.saturating_mul(ENTRY_BYTES));
    for entry in directory.chunks_exact(ENTRY_BYTES) {
        let attributes = entry[11];
        let has_cluster = entry[20..22] != [0, 0] || entry[26..28] != [0, 0];
        match entry[0] {
            0 => return None,
            0xe5 => continue,
            _ if has_cluster || attributes & 0x3f == 0x0f => continue,
            _ if attributes & 0x18 == 0x08 => {
                let mut name = entry[..11].to_vec();
                if name[0] == 0x05 {
                    name[0] = 0xe5;
                }
                return text::label(&name);
            }
            _ => {}
        }
    }
    None
}

/// The label in FAT32's root directory, which is a chain of clusters.
fn chained_label(view: &mut View<'_>, geometry: &Geometry) -> Option<String> {
    let cluster_bytes = geometry.cluster_sectors * geometry.sector;
    let entries = u64::from(view.u32_le(36)) * geometry.sector / 4;
    let data = geometry.reserved + geometry.fat_sectors;
    let mut cluster = u64::from(view.u32_le(44));
    for _ in 0..CHAIN_MAX {
        if cluster < 2 || cluster >= entries {
            return None;
        }
        let sector = data + (cluster - 2) * geometry.cluster_sectors;
        let count = (cluster_bytes as usize) / ENTRY_BYTES;
        if let Some(label) = root_label(view, sector * geometry.sector, count) {
            return Some(label);
        }
        let next = geometry.reserved * geometry.sector + cluster * 4;
        cluster = u64::from(view.u32_le(next) & 0x0fff_ffff);
    }
    None
}

pub fn probe_exfat(view: &mut View<'_>) -> Option<Content> {
    if !view.has(3, b"EXFAT   ") {
        return None;
    }
    let title = "an exFAT file system";
    let mut content = Content::new("exfat", title, "exFAT", ContentUse::FileSystem).at(3, 8);
    content.uuid = Some(text::dos_serial(view.array(100)));
    content.label = exfat_label(view);
    Some(content)
}

/// The entry of type 0x83 in the root directory.
fn exfat_label(view: &mut View<'_>) -> Option<String> {
    let (sector_log, cluster_log) = (u32::from(view.byte(108)), u32::from(view.byte(109)));
    if !(9..=12).contains(&sector_log) || cluster_log > 25 - sector_log {
        return None;
    }
    let fat = u64::from(view.u32_le(80)) << sector_log;
    let heap = u64::from(view.u32_le(88)) << sector_log;
    let cluster_bytes = 1_u64 << (sector_log + cluster_log);
    let mut cluster = u64::from(view.u32_le(96));
    for _ in 0..CHAIN_MAX {
        if !(2..0x0fff_fff7).contains(&cluster) {
            return None;
        }
        let place = heap + (cluster - 2) * cluster_bytes;
        // The label is among the first entries, which formatting makes.
        let entries = view.bytes(place, cluster_bytes.min(32 << 10) as usize);
        for entry in entries.chunks_exact(ENTRY_BYTES) {
            match entry[0] {
                0 => return None,
                0x83 => {
                    let length = usize::from(entry[1]).min(11) * 2;
                    return text::utf16(&entry[2..2 + length], u16::from_le_bytes);
                }
                _ => {}
            }
        }
        cluster = u64::from(view.u32_le(fat + cluster * 4));
    }
    None
}
