//! File systems and volumes of fewer fields: each states where it begins by one number, or by its
//! copy.
//!
//! Sources: `jfs_superblock.h`, `reiserfs.h`, `nilfs2_ondisk.h`, `ocfs2_fs.h`, `gfs2_ondisk.h`,
//! `hfs.h`, `cramfs_fs.h`, `md_p.h` and bcache's `on-disk format` of Linux, ECMA-119, Apple's APFS
//! reference.

use super::probes::{Probe, Reader, claim};
use super::{Claim, Holds, labels};
use crate::bytes::{u16_be, u16_le, u32_be, u32_le, u64_le};

const MIB: u64 = 1 << 20;
const BCACHE: [u8; 4] = [0xc6, 0x85, 0x73, 0xf6];

/// The probe whose magic number stands in a sector of 512 bytes.
#[inline]
pub(super) fn matching(sector: &[u8]) -> Option<(Holds, Probe)> {
    match sector.first_chunk::<4>()? {
        b"JFS1" => return Some((Holds::Jfs, jfs)),
        b"OCFS" => return Some((Holds::Ocfs2, ocfs2)),
        [0x45, 0x3d, 0xcd, 0x28] => return Some((Holds::Cramfs, cramfs)),
        [1, b'C', b'D', b'0'] => return Some((Holds::Iso9660, iso)),
        [1, 0x16, 0x19, 0x70] => return Some((Holds::Gfs2, gfs2)),
        [0xfc, 0x4e, 0x2b, 0xa9] => return Some((Holds::Md, md)),
        [b'B', b'D', ..] => return Some((Holds::Hfs, hfs)),
        // In both byte orders.
        [0x57, 0x45, 0x56, 0x82] | [0x82, 0x56, 0x45, 0x57] => {
            return Some((Holds::Bsd, labels::bsd));
        }
        _ => {}
    }
    if u16_le(sector, 6) == 0x3434 {
        return Some((Holds::Nilfs2, nilfs2));
    }
    // The sanity word of a VTOC.
    if sector.get(12..16)? == [0xee, 0xde, 0x0d, 0x60] {
        return Some((Holds::Solaris, labels::solaris));
    }
    match sector.get(52..56)? {
        b"ReIs" => Some((Holds::ReiserFs, reiserfs)),
        _ if sector.get(32..36)? == b"NXSB" => Some((Holds::Apfs, apfs)),
        _ if sector.get(24..28)? == BCACHE => Some((Holds::Bcache, bcache)),
        _ => None,
    }
}

/// Of two places where it may begin, the one with the other superblock; without that, the one at
/// which partitions usually begin.
fn start(
    view: &mut Reader<'_, '_>,
    at: u64,
    (first, second): (u64, u64),
    magic: (usize, &[u8]),
) -> Option<(u64, bool)> {
    let mut has = |place: Option<u64>| {
        place.is_some_and(|place| {
            let sector = view.bytes(place, 512);
            sector[magic.0..].starts_with(magic.1)
        })
    };
    let (as_first, as_second) = (at.checked_sub(first), at.checked_sub(second));
    if has(as_first.and_then(|start| start.checked_add(second))) {
        return as_first.map(|start| (start, false));
    }
    if has(as_second.and_then(|start| start.checked_add(first))) {
        return as_second.map(|start| (start, true));
    }
    let usual = |start: &u64| start.is_multiple_of(MIB);
    match (as_first.filter(usual), as_second.filter(usual)) {
        (None, Some(start)) => Some((start, true)),
        _ => as_first.map(|start| (start, false)),
    }
}

/// Two superblocks, at 32 KiB and at 60 KiB. Behind the file system are the space of fsck and the
/// journal.
fn jfs(view: &mut Reader<'_, '_>, sector: &[u8], at: u64) -> Vec<Claim> {
    let (version, block) = (u32_le(sector, 4), u64::from(u32_le(sector, 16)));
    let physical = u64::from(u32_le(sector, 24));
    let plausible = (1..=2).contains(&version)
        && (512..=4096).contains(&block)
        && block.is_power_of_two()
        && physical.is_power_of_two();
    let end_of = |place: usize| {
        let (length, high) = (u32_le(sector, place) & 0xff_ffff, sector[place + 3]);
        (u64::from(high) << 32) + u64::from(u32_le(sector, place + 4)) + u64::from(length)
    };
    let Some(own) = u64_le(sector, 8)
        .checked_mul(physical)
        .filter(|_| plausible)
    else {
        return Vec::new();
    };
    let length = own.max(end_of(72) * block).max(end_of(80) * block);
    match start(view, at, (32 << 10, 60 << 10), (0, b"JFS1")) {
        Some((start, copy)) => claim(Holds::Jfs, Some(start), length, copy, at),
        None => Vec::new(),
    }
}

/// At 64 KiB; in the oldest ones at 8 KiB.
fn reiserfs(_: &mut Reader<'_, '_>, sector: &[u8], at: u64) -> Vec<Claim> {
    let before = match sector.get(52..62) {
        Some(b"ReIsErFs\0\0" | b"ReIsEr2Fs\0" | b"ReIsEr3Fs\0") => 64 << 10,
        _ => return Vec::new(),
    };
    let (blocks, block) = (u64::from(u32_le(sector, 0)), u64::from(u16_le(sector, 44)));
    match block.is_power_of_two() && block >= 512 {
        true => claim(
            Holds::ReiserFs,
            at.checked_sub(before),
            blocks * block,
            false,
            at,
        ),
        false => Vec::new(),
    }
}

/// At 1 KiB, and in the last whole block of 4 KiB.
fn nilfs2(view: &mut Reader<'_, '_>, sector: &[u8], at: u64) -> Vec<Claim> {
    let (revision, bytes) = (u32_le(sector, 0), u16_le(sector, 8));
    let (block_log, length) = (u32_le(sector, 20), u64_le(sector, 32));
    let plausible = revision == 2 && (200..=1024).contains(&bytes) && block_log <= 6;
    let Some(last) = (length / 4096).checked_sub(1).filter(|_| plausible) else {
        return Vec::new();
    };
    match start(view, at, (1024, last * 4096), (6, &[0x34, 0x34])) {
        Some((start, copy)) => claim(Holds::Nilfs2, Some(start), length, copy, at),
        None => Vec::new(),
    }
}

/// The superblock and its copies state the number of the block in which they are.
fn ocfs2(_: &mut Reader<'_, '_>, sector: &[u8], at: u64) -> Vec<Claim> {
    let (block_log, cluster_log) = (u32_le(sector, 0xf8), u32_le(sector, 0xfc));
    let plausible = sector.starts_with(b"OCFSV2\0\0")
        && (9..=12).contains(&block_log)
        && (12..=20).contains(&cluster_log);
    if !plausible {
        return Vec::new();
    }
    let number = u64_le(sector, 0x50);
    let before = number.checked_mul(1 << block_log);
    let length = u64::from(u32_le(sector, 20)) << cluster_log;
    let start = before.and_then(|before| at.checked_sub(before));
    claim(Holds::Ocfs2, start, length, number > 2, at)
}

/// At the beginning, or behind a boot sector (`cramfs_fs.h`).
fn cramfs(_: &mut Reader<'_, '_>, sector: &[u8], at: u64) -> Vec<Claim> {
    const BLOCK_BYTES: u64 = 4096;
    let start = match at % BLOCK_BYTES {
        512 => at.checked_sub(512),
        _ => Some(at),
    };
    let length = u64::from(u32_le(sector, 4));
    match sector.get(16..32) == Some(b"Compressed ROMFS") && length > 0 {
        true => claim(Holds::Cramfs, start, length, false, at),
        false => Vec::new(),
    }
}

/// At 64 KiB; it does not state its length.
fn gfs2(_: &mut Reader<'_, '_>, sector: &[u8], at: u64) -> Vec<Claim> {
    let (kind, block) = (u32_be(sector, 4), u32_be(sector, 36));
    match kind == 1 && block.is_power_of_two() && (512..=65_536).contains(&block) {
        true => open_end(Holds::Gfs2, at.checked_sub(64 << 10), at),
        false => Vec::new(),
    }
}

/// A claim without an end.
fn open_end(holds: Holds, start: Option<u64>, at: u64) -> Vec<Claim> {
    let mut claims = claim(holds, start, 1, false, at);
    claims.iter_mut().for_each(|claim| claim.length = None);
    claims
}

/// The block at 1 KiB, and its copy 1 KiB before the end.
fn hfs(view: &mut Reader<'_, '_>, sector: &[u8], at: u64) -> Vec<Claim> {
    let (blocks, block) = (u64::from(u16_be(sector, 18)), u64::from(u32_be(sector, 20)));
    let (bitmap, first) = (u16_be(sector, 14), u64::from(u16_be(sector, 28)));
    let plausible = blocks > 0
        && block > 0
        && block.is_multiple_of(512)
        && bitmap == 3
        && first > 3
        && (1..=27).contains(&sector[36])
        // A wrapper of HFS+ is claimed by what it holds.
        && sector.get(124..126) != Some(b"H+");
    if !plausible {
        return Vec::new();
    }
    let length = first * 512 + blocks * block + 1024;
    match start(view, at, (1024, length - 1024), (0, b"BD")) {
        Some((start, copy)) => claim(Holds::Hfs, Some(start), length, copy, at),
        None => Vec::new(),
    }
}

/// The primary volume descriptor, in sector 16 of 2 KiB.
fn iso(_: &mut Reader<'_, '_>, sector: &[u8], at: u64) -> Vec<Claim> {
    let (blocks, block) = (
        u64::from(u32_le(sector, 80)),
        u64::from(u16_le(sector, 128)),
    );
    let agrees = u64::from(u32_be(sector, 84)) == blocks && u64::from(u16_be(sector, 130)) == block;
    match sector.starts_with(b"\x01CD001\x01") && agrees {
        true => claim(
            Holds::Iso9660,
            at.checked_sub(32 << 10),
            blocks * block,
            false,
            at,
        ),
        false => Vec::new(),
    }
}

/// Version 0.90 near the end of a member, versions 1 where they say.
fn md(_: &mut Reader<'_, '_>, sector: &[u8], at: u64) -> Vec<Claim> {
    const SUPERBLOCK_SECTORS: u64 = 8;
    const OLD_BYTES: u64 = 64 << 10;
    match (u32_le(sector, 4), u32_le(sector, 8)) {
        (1, _) => {
            let own = u64_le(sector, 144);
            let data = u64_le(sector, 128).saturating_add(u64_le(sector, 136));
            let length = data
                .max(own.saturating_add(SUPERBLOCK_SECTORS))
                .checked_mul(512);
            let start = own.checked_mul(512).and_then(|own| at.checked_sub(own));
            length.map_or_else(Vec::new, |length| {
                claim(Holds::Md, start, length, false, at)
            })
        }
        (0, 90) => {
            let data = u64::from(u32_le(sector, 32)) << 10;
            claim(Holds::Md, at.checked_sub(data), data + OLD_BYTES, false, at)
        }
        _ => Vec::new(),
    }
}

/// Block 0 of a container. Its checkpoints hold copies, which lie over it.
fn apfs(_: &mut Reader<'_, '_>, sector: &[u8], at: u64) -> Vec<Claim> {
    let (block, blocks) = (u64::from(u32_le(sector, 36)), u64_le(sector, 40));
    let plausible = block.is_power_of_two() && (4096..=65_536).contains(&block);
    match blocks.checked_mul(block).filter(|_| plausible) {
        Some(length) => claim(Holds::Apfs, Some(at), length, false, at),
        None => Vec::new(),
    }
}

/// In sector 8. A cache device states its length in buckets, a backing device does not.
fn bcache(_: &mut Reader<'_, '_>, sector: &[u8], at: u64) -> Vec<Claim> {
    let start = at.checked_sub(4096);
    let (own, version) = (u64_le(sector, 8), u64_le(sector, 16));
    if own != 8 || version > 8 {
        return Vec::new();
    }
    let (buckets, bucket) = (u64_le(sector, 184), u64::from(u16_le(sector, 194)));
    let length = buckets
        .checked_mul(bucket * 512)
        .filter(|&length| length > 0);
    match (version, length) {
        (0 | 3 | 5, Some(length)) => claim(Holds::Bcache, start, length, false, at),
        _ => open_end(Holds::Bcache, start, at),
    }
}
