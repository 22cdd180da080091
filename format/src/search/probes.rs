//! The structures that a search knows: a magic number in one sector, and the facts that they state.
//!
//! Sources: `Documentation/filesystems/ext4` and `xfs_format.h` of Linux, `btrfs_tree.h`,
//! `f2fs_fs.h`, Microsoft's FAT and exFAT specifications, the Linux-NTFS documentation, FreeBSD's
//! `sys/ufs/ffs/fs.h`, Apple's TN1150, LUKS on-disk formats 1 and 2, LVM2's `label.c`.

use super::budget::Spent;
use super::{Claim, Holds, Listed, SearchRead, UdfVolumes};
use crate::bytes::{u16_be, u16_le, u32_be, u32_le, u64_be, u64_le};
use crate::gpt::{Header, MAX_KEPT_ENTRIES, Table};

/// Most bytes of a table in a GPT's backup that are read.
const TABLE_BYTES: u64 = 1 << 20;

/// Sizes of a LUKS2 header, and where its text begins (LUKS2 On-Disk Format, sections 2.2 and 3).
const LUKS2_HEADER_BYTES_MIN: u64 = 16 << 10;
const LUKS2_HEADER_BYTES_MAX: u64 = 4 << 20;
const LUKS2_TEXT_AT: u64 = 4096;
/// How much of the text is read, bytes; a header of cryptsetup's standard size has 12 KiB.
const LUKS2_TEXT_BYTES_READ: u64 = 64 << 10;

/// The medium, for a second look.
pub(super) struct Reader<'v, 'r> {
    pub size_bytes: u64,
    pub sector_size_bytes: u64,
    /// Bytes that are known, and their offset.
    pub piece: (u64, &'v [u8]),
    pub read: &'v mut SearchRead<'r>,
    /// What the probe has cost.
    pub spent: Spent,
    pub udf: &'v mut UdfVolumes,
}

impl Reader<'_, '_> {
    /// `length` bytes; zeros where there are none or reading fails.
    pub fn bytes(&mut self, offset: u64, length: usize) -> Vec<u8> {
        let (known_at, known) = self.piece;
        let skip = offset.checked_sub(known_at).map(|skip| skip as usize);
        let inside = skip.and_then(|skip| known.get(skip..skip.checked_add(length)?));
        if let Some(bytes) = inside {
            self.spent.known(length);
            return bytes.to_vec();
        }
        self.spent.read(length);
        let mut bytes = match offset < self.size_bytes {
            true => (self.read)(offset, length).unwrap_or_default(),
            false => Vec::new(),
        };
        bytes.resize(length, 0);
        bytes
    }
}

pub(super) type Probe = fn(&mut Reader<'_, '_>, &[u8], u64) -> Vec<Claim>;

/// The probe whose magic number stands in a sector of 512 bytes.
#[inline]
pub(super) fn matching(sector: &[u8]) -> Option<(Holds, Probe)> {
    // Most sectors are told apart by these words; a sector of zeros by the first comparisons.
    if u16_le(sector, 56) == 0xef53 {
        return Some((Holds::Ext, ext));
    }
    match sector.first_chunk::<4>()? {
        b"XFSB" => return Some((Holds::Xfs, xfs)),
        b"LUKS" | b"SKUL" => return Some((Holds::Luks, luks)),
        b"LABE" => return Some((Holds::Lvm2, lvm2)),
        b"EFI " => return Some((Holds::Listed, gpt)),
        [0x10, 0x20, 0xf5, 0xf2] => return Some((Holds::F2fs, f2fs)),
        [b'H', b'+', 0, 4] | [b'H', b'X', 0, 5] => return Some((Holds::HfsPlus, hfs_plus)),
        _ => {}
    }
    if u16_le(sector, 510) == 0xaa55 {
        match sector.get(3..11)? {
            b"NTFS    " => return Some((Holds::Ntfs, ntfs)),
            b"EXFAT   " => return Some((Holds::ExFat, exfat)),
            _ if is_fat(sector) => return Some((Holds::Fat, fat)),
            _ => {}
        }
    }
    if sector.get(64..72)? == b"_BHRfS_M" {
        return Some((Holds::Btrfs, btrfs));
    }
    if matches!(u32_le(sector, 348), 0x1954_0119 | 0x0001_1954) {
        return Some((Holds::Ufs, ufs));
    }
    match sector.get(502..512)? {
        b"SWAPSPACE2" => Some((Holds::Swap, swap)),
        _ => None,
    }
}

pub(super) fn claim(
    holds: Holds,
    start: Option<u64>,
    length: u64,
    copy: bool,
    offset: u64,
) -> Vec<Claim> {
    let what = match copy {
        false => "superblock",
        true => "copy of the superblock",
    };
    let start = start.into_iter();
    start
        .map(|start| Claim {
            holds,
            start,
            length: Some(length),
            what,
            offset,
            entry: None,
            parts: Vec::new(),
        })
        .collect()
}

fn ext(_: &mut Reader<'_, '_>, sector: &[u8], at: u64) -> Vec<Claim> {
    let (log_block, log_cluster) = (u32_le(sector, 24), u32_le(sector, 28));
    let (inodes, per_group) = (u32_le(sector, 0), u64::from(u32_le(sector, 32)));
    let (first, group) = (u64::from(u32_le(sector, 20)), u64::from(u16_le(sector, 90)));
    if log_block > 6 || log_cluster > 20 || inodes == 0 || per_group == 0 {
        return Vec::new();
    }
    let block = 1024_u64 << log_block;
    let has_64_bits = u32_le(sector, 96) & 0x80 != 0;
    let high = if has_64_bits { u32_le(sector, 336) } else { 0 };
    let blocks = u64::from(high) << 32 | u64::from(u32_le(sector, 4));
    // With clusters the first block is block 0, whatever its size.
    let has_clusters = u32_le(sector, 100) & 0x200 != 0;
    let plausible = per_group <= (8 * block) << log_cluster
        && first == u64::from(log_block == 0 && !has_clusters)
        && blocks > first
        && u32_le(sector, 12) as u64 <= blocks;
    let Some(length) = blocks.checked_mul(block).filter(|_| plausible) else {
        return Vec::new();
    };
    let before = match group {
        0 => 1024,
        _ => (first + group * per_group).saturating_mul(block),
    };
    if before >= length {
        return Vec::new();
    }
    claim(Holds::Ext, at.checked_sub(before), length, group > 0, at)
}

fn xfs(view: &mut Reader<'_, '_>, sector: &[u8], at: u64) -> Vec<Claim> {
    let (block, sector_bytes) = (u64::from(u32_be(sector, 4)), u64::from(u16_be(sector, 102)));
    let (blocks, group_blocks) = (u64_be(sector, 8), u64::from(u32_be(sector, 84)));
    let groups = u64::from(u32_be(sector, 88));
    let powers = block.is_power_of_two() && sector_bytes.is_power_of_two();
    if !powers || !(512..=65_536).contains(&block) || !(512..=32_768).contains(&sector_bytes) {
        return Vec::new();
    }
    let all = group_blocks.saturating_mul(groups);
    if blocks == 0 || blocks > all || all - blocks >= group_blocks {
        return Vec::new();
    }
    // The copies are alike; the header of the free space beside each has the number.
    let free = view.bytes(at + sector_bytes, 512);
    let number = u64::from(u32_be(&free, 8));
    if !free.starts_with(b"XAGF") || number >= groups {
        return Vec::new();
    }
    let before = (number * group_blocks).checked_mul(block);
    let start = before.and_then(|before| at.checked_sub(before));
    match blocks.checked_mul(block) {
        Some(length) => claim(Holds::Xfs, start, length, number > 0, at),
        None => Vec::new(),
    }
}

fn btrfs(_: &mut Reader<'_, '_>, sector: &[u8], at: u64) -> Vec<Claim> {
    let place = u64_le(sector, 48);
    // The device item: its number, then its length.
    let length = u64_le(sector, 0xc9 + 8);
    if ![64 << 10, 64 << 20, 256 << 30].contains(&place) || length < 1 << 20 {
        return Vec::new();
    }
    let copy = place > 64 << 10;
    claim(Holds::Btrfs, at.checked_sub(place), length, copy, at)
}

fn f2fs(view: &mut Reader<'_, '_>, sector: &[u8], at: u64) -> Vec<Claim> {
    let block = 1_u64.checked_shl(u32_le(sector, 16)).unwrap_or(0);
    let length = u64_le(sector, 36).checked_mul(block);
    let Some(length) = length.filter(|_| (4096..=65_536).contains(&block)) else {
        return Vec::new();
    };
    // Two alike, in the first two blocks.
    let before = at.checked_sub(block).map(|at| view.bytes(at, 512));
    let beside = before.is_some_and(|bytes| bytes.starts_with(&sector[..4]));
    // Without the first one, the second is known by where the partition would begin.
    let aligned = |skip: u64| {
        at.checked_sub(skip)
            .is_some_and(|start| start % (1 << 20) == 0)
    };
    let second = beside || !aligned(1024) && aligned(1024 + block);
    let skip = 1024 + if second { block } else { 0 };
    claim(Holds::F2fs, at.checked_sub(skip), length, second, at)
}

fn hfs_plus(view: &mut Reader<'_, '_>, sector: &[u8], at: u64) -> Vec<Claim> {
    let (block, blocks) = (u64::from(u32_be(sector, 40)), u64::from(u32_be(sector, 44)));
    if !block.is_power_of_two() || !(512..=1 << 20).contains(&block) || blocks < 4 {
        return Vec::new();
    }
    let length = block * blocks;
    let same = |view: &mut Reader<'_, '_>, at: Option<u64>| {
        at.is_some_and(|at| view.bytes(at, 512)[..4] == sector[..4])
    };
    // The other one is 1024 bytes before the end, or after the beginning.
    let start = at.checked_sub(1024);
    let copy_at = start.and_then(|start| (start + length).checked_sub(1024));
    let as_copy = (at + 1024).checked_sub(length);
    if !same(view, copy_at) && same(view, as_copy.map(|start| start + 1024)) {
        return claim(Holds::HfsPlus, as_copy, length, true, at);
    }
    // Alone, it is the first one if the allocation file is where it states.
    let allocation = u64::from(u32_be(sector, 112 + 16));
    let bits = start.map_or(0, |start| view.bytes(start + allocation * block, 1)[0]);
    match bits & 0x80 != 0 {
        true => claim(Holds::HfsPlus, start, length, false, at),
        false => claim(Holds::HfsPlus, as_copy, length, true, at),
    }
}

fn ntfs(view: &mut Reader<'_, '_>, sector: &[u8], at: u64) -> Vec<Claim> {
    let sector_bytes = u64::from(u16_le(sector, 11));
    let per_cluster = match sector.get(13).copied().unwrap_or(0) {
        exponent @ 0xf4.. => 1_u64 << (256 - u64::from(exponent)),
        sectors => u64::from(sectors),
    };
    let (sectors, table) = (u64_le(sector, 40), u64_le(sector, 48));
    if !sector_bytes.is_power_of_two() || !(512..=4096).contains(&sector_bytes) || sectors == 0 {
        return Vec::new();
    }
    // The last sector of the partition holds the copy; the file system does not count it.
    let counted = sectors.checked_mul(sector_bytes);
    let (Some(counted), Some(table)) = (counted, table.checked_mul(per_cluster * sector_bytes))
    else {
        return Vec::new();
    };
    let Some(length) = counted.checked_add(sector_bytes) else { return Vec::new() };
    let has_table = |view: &mut Reader<'_, '_>, start: Option<u64>| {
        let place = start.and_then(|start| start.checked_add(table));
        place.is_some_and(|place| view.bytes(place, 4) == b"FILE")
    };
    if has_table(view, Some(at)) {
        return claim(Holds::Ntfs, Some(at), length, false, at);
    }
    let as_copy = at.checked_sub(counted);
    match has_table(view, as_copy) {
        true => claim(Holds::Ntfs, as_copy, length, true, at),
        false => Vec::new(),
    }
}

fn exfat(view: &mut Reader<'_, '_>, sector: &[u8], at: u64) -> Vec<Claim> {
    let shift = sector.get(108).copied().unwrap_or(0);
    let (sectors, table) = (u64_le(sector, 72), u64::from(u32_le(sector, 80)));
    let length = sectors.checked_shl(u32::from(shift)).unwrap_or(0);
    if !(9..=12).contains(&shift) || length >> shift != sectors || table < 24 {
        return Vec::new();
    }
    let has_table = |view: &mut Reader<'_, '_>, start: Option<u64>| {
        let place = start.and_then(|start| start.checked_add(table << shift));
        place.is_some_and(|place| view.bytes(place, 4) == [0xf8, 0xff, 0xff, 0xff])
    };
    if has_table(view, Some(at)) {
        return claim(Holds::ExFat, Some(at), length, false, at);
    }
    let as_copy = at.checked_sub(12 << shift);
    match has_table(view, as_copy) {
        true => claim(Holds::ExFat, as_copy, length, true, at),
        false => Vec::new(),
    }
}

fn is_fat(sector: &[u8]) -> bool {
    let name = |at: usize| sector.get(at..at + 5).unwrap_or_default();
    name(82) == b"FAT32" || name(54) == b"FAT16" || name(54) == b"FAT12"
}

fn fat(view: &mut Reader<'_, '_>, sector: &[u8], at: u64) -> Vec<Claim> {
    let sector_bytes = u64::from(u16_le(sector, 11));
    let reserved = u64::from(u16_le(sector, 14));
    let media = sector.get(21).copied().unwrap_or(0);
    let sectors = match u16_le(sector, 19) {
        0 => u64::from(u32_le(sector, 32)),
        small => u64::from(small),
    };
    let cluster = sector.get(13).copied().unwrap_or(0);
    let plausible = sector_bytes.is_power_of_two()
        && (512..=4096).contains(&sector_bytes)
        && cluster.is_power_of_two()
        && reserved > 0
        && media >= 0xf0
        && sectors > reserved;
    if !plausible {
        return Vec::new();
    }
    let length = sectors * sector_bytes;
    let has_table = |view: &mut Reader<'_, '_>, start: Option<u64>| {
        let place = start.map(|start| start + reserved * sector_bytes);
        place.is_some_and(|place| view.bytes(place, 3) == [media, 0xff, 0xff])
    };
    if has_table(view, Some(at)) {
        return claim(Holds::Fat, Some(at), length, false, at);
    }
    let copy = u64::from(u16_le(sector, 50));
    let is_32 = sector.get(82..87) == Some(b"FAT32");
    let as_copy = at
        .checked_sub(copy * sector_bytes)
        .filter(|_| is_32 && copy > 0);
    match has_table(view, as_copy) {
        true => claim(Holds::Fat, as_copy, length, true, at),
        false => Vec::new(),
    }
}

/// `sector` is the third one of the superblock, which is read anew.
fn ufs(view: &mut Reader<'_, '_>, sector: &[u8], at: u64) -> Vec<Claim> {
    let Some(base) = at.checked_sub(1024) else { return Vec::new() };
    let is_2 = u32_le(sector, 348) == 0x1954_0119;
    let block = view.bytes(base, 1536);
    let word = |at: usize| u64::from(u32_le(&block, at));
    let (super_frag, group_frag, fragment) = (word(8), word(12), word(52));
    let (per_group, groups) = (word(188), word(44));
    let fragments = if is_2 { u64_le(&block, 1080) } else { word(36) };
    let powers = fragment.is_power_of_two() && (512..=65_536).contains(&fragment);
    if !powers || per_group == 0 || groups == 0 || group_frag <= super_frag {
        return Vec::new();
    }
    let Some(length) = fragments.checked_mul(fragment).filter(|&length| length > 0) else {
        return Vec::new();
    };
    // Each group has a copy and, behind it, a header with the group's number.
    let header = view.bytes(base + (group_frag - super_frag) * fragment, 16);
    let number = u64::from(u32_le(&header, 12));
    if u32_le(&header, 4) == 0x0009_0255 && number < groups {
        let turned = match is_2 {
            true => 0,
            false => word(24).saturating_mul(number & !word(28) & 0xffff_ffff),
        };
        let group_start = (number * per_group).saturating_add(turned);
        let before = group_start.saturating_add(super_frag).checked_mul(fragment);
        let start = before.and_then(|before| base.checked_sub(before));
        return claim(Holds::Ufs, start, length, true, base);
    }
    let place = match is_2 {
        true => u64_le(&block, 1000),
        false => 8192,
    };
    match [0, 8192, 65_536, 262_144].contains(&place) {
        true => claim(Holds::Ufs, base.checked_sub(place), length, false, base),
        false => Vec::new(),
    }
}

/// The magic number ends the first page, of 4 KiB on most machines.
fn swap(view: &mut Reader<'_, '_>, _: &[u8], at: u64) -> Vec<Claim> {
    for page in (12..=16).map(|log| 1_u64 << log) {
        let Some(start) = (at + 512).checked_sub(page) else { break };
        let header = view.bytes(start + 1024, 12);
        let (version, last_page) = (u32_le(&header, 0), u64::from(u32_le(&header, 4)));
        if version == 1 && last_page > 0 {
            return claim(Holds::Swap, Some(start), (last_page + 1) * page, false, at);
        }
    }
    Vec::new()
}

fn luks(view: &mut Reader<'_, '_>, sector: &[u8], at: u64) -> Vec<Claim> {
    let version = u16_be(sector, 6);
    if sector.get(4..6) != Some(&[0xba, 0xbe]) || !(1..=2).contains(&version) {
        return Vec::new();
    }
    let copy = sector.starts_with(b"SKUL");
    let before = match copy {
        true => u64_be(sector, 256),
        false => 0,
    };
    let header_sizes = LUKS2_HEADER_BYTES_MIN..=LUKS2_HEADER_BYTES_MAX;
    if copy && !(before.is_power_of_two() && header_sizes.contains(&before)) {
        return Vec::new();
    }
    let header_bytes = u64_be(sector, 8);
    let length = match version == 2 && header_sizes.contains(&header_bytes) {
        true => {
            let text_bytes = (header_bytes - LUKS2_TEXT_AT).min(LUKS2_TEXT_BYTES_READ);
            luks2_length(&view.bytes(at + LUKS2_TEXT_AT, text_bytes as usize))
        }
        false => None,
    };
    let mut claims = claim(Holds::Luks, at.checked_sub(before), 1, copy, at);
    // As a rule the header does not state where the data ends.
    claims.iter_mut().for_each(|claim| claim.length = length);
    claims
}

/// The end of the last segment of data, by the JSON text of a LUKS2 header; `None` where one is
/// "dynamic", which reaches to the end of the partition.
fn luks2_length(text: &[u8]) -> Option<u64> {
    let text = text.split(|&byte| byte == 0).next()?;
    let text: String = std::str::from_utf8(text).ok()?.split_whitespace().collect();
    let (_, segments) = text.split_once("\"segments\":{")?;
    let mut end = None;
    for segment in segments.split('{').skip(1) {
        let (members, after) = segment.split_once('}')?;
        let number = |name: &str| {
            let (_, value) = members.split_once(&format!("\"{name}\":\""))?;
            value.split('"').next()?.parse::<u64>().ok()
        };
        let segment_end = number("offset")?.checked_add(number("size")?)?;
        end = end.max(Some(segment_end));
        if !after.starts_with(',') {
            break;
        }
    }
    end
}

fn lvm2(_: &mut Reader<'_, '_>, sector: &[u8], at: u64) -> Vec<Claim> {
    let is_label = sector.starts_with(b"LABELONE") && sector.get(24..32) == Some(b"LVM2 001");
    let (number, header) = (u64_le(sector, 8), u32_le(sector, 20) as usize);
    if !is_label || number > 3 || header > 400 {
        return Vec::new();
    }
    let length = u64_le(sector, header + 32);
    match length > 0 {
        true => claim(Holds::Lvm2, at.checked_sub(number * 512), length, false, at),
        false => Vec::new(),
    }
}

/// A header with a table: each of its entries is a place. A disk may come from an adapter that gave
/// its sectors another size, so the table says which one is meant.
fn gpt(view: &mut Reader<'_, '_>, _: &[u8], at: u64) -> Vec<Claim> {
    let own = view.sector_size_bytes;
    let others = [512, 4096].into_iter().filter(|&unit| unit != own);
    let mut sizes = std::iter::once(own).chain(others);
    sizes
        .find_map(|unit| gpt_of(view, unit, at))
        .unwrap_or_default()
}

/// The same for sectors of `unit` bytes; `None` where no table is that fits the header.
fn gpt_of(view: &mut Reader<'_, '_>, unit: u64, at: u64) -> Option<Vec<Claim>> {
    let sector = view.bytes(at, unit as usize);
    let stated = u64_le(&sector, 24);
    let header = Header::decode(&sector, stated).ok()?;
    // Where the disk of that table begins: a disk inside a partition has one, too.
    let disk = stated
        .checked_mul(unit)
        .and_then(|before| at.checked_sub(before));
    let table = header.table_lba.checked_mul(unit);
    let (disk, table) = (disk?, table?);
    let size = header.table_size_bytes();
    if size > TABLE_BYTES {
        return None;
    }
    let data = view.bytes(disk.saturating_add(table), size as usize);
    let table = Table::decode(header, &data).ok()?;
    let what = match stated {
        1 => "entry of a GPT",
        _ => "entry of a GPT's backup",
    };
    let disk_uuid = table.header.disk_guid;
    let parts = table.partitions().take(MAX_KEPT_ENTRIES);
    let claims = parts
        .filter_map(|(number, entry)| {
            let start = disk.checked_add(entry.first.checked_mul(unit)?)?;
            Some(Claim {
                holds: Holds::Listed,
                start,
                length: Some(entry.sectors().checked_mul(unit)?),
                what,
                offset: at,
                entry: Some(Listed {
                    index: number as u32,
                    kind: entry.kind,
                    uuid: entry.guid,
                    attributes: entry.attributes,
                    label: entry.label(),
                    disk_uuid: (disk == 0).then_some(disk_uuid),
                    primary: stated == 1,
                }),
                parts: Vec::new(),
            })
        })
        .collect();
    Some(claims)
}
