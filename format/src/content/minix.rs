//! The Minix file system, versions 1 to 3, in either byte order. Its magic number has two bytes, so
//! the numbers of inodes and zones must fit their maps. Source: Linux
//! `include/uapi/linux/minix_fs.h`.

use super::view::View;
use super::{Content, ContentUse};

const SUPERBLOCK: u64 = 1024;
/// Bits in a block of a map.
const BLOCK_BITS: u64 = 1024 * 8;

pub fn probe(view: &mut View<'_>) -> Option<Content> {
    let (little, version) = version(view)?;
    let short = |view: &mut View<'_>, at: u64| {
        let at = SUPERBLOCK + at;
        u64::from(if little {
            view.u16_le(at)
        } else {
            view.u16_be(at)
        })
    };
    let long = |view: &mut View<'_>, at: u64| {
        let at = SUPERBLOCK + at;
        u64::from(if little {
            view.u32_le(at)
        } else {
            view.u32_be(at)
        })
    };
    let (inodes, zones, maps) = match version {
        1 => (short(view, 0), short(view, 2), 4),
        2 => (short(view, 0), long(view, 20), 4),
        _ => (long(view, 0), long(view, 20), 6),
    };
    let (inode_map, zone_map) = (short(view, maps), short(view, maps + 2));
    let (first_zone, zone_log) = (short(view, maps + 4), short(view, maps + 6));
    let state = short(view, 18);
    let fits = zone_log == 0
        && inodes != 0
        && inodes != u64::from(u32::MAX)
        && (version == 3 || state & !3 == 0)
        && inode_map * BLOCK_BITS > inodes
        && first_zone <= zones
        && zone_map * BLOCK_BITS > zones - first_zone
        && !view.has(SUPERBLOCK + 56, b"\x53\xef");
    let (usage, title) = (ContentUse::FileSystem, "a Minix file system");
    let place = SUPERBLOCK + if version == 3 { 24 } else { 16 };
    fits.then(|| Content::new("minix", title, "minix", usage).at(place, 2))
}

/// Whether the byte order is little, and the version.
fn version(view: &mut View<'_>) -> Option<(bool, u8)> {
    let old: [u8; 2] = view.array(SUPERBLOCK + 16);
    let new: [u8; 2] = view.array(SUPERBLOCK + 24);
    let of = |old: u16, new: u16| match (old, new) {
        (0x137f | 0x138f, _) => Some(1),
        (0x2468 | 0x2478, _) => Some(2),
        (_, 0x4d5a) => Some(3),
        _ => None,
    };
    let little = of(u16::from_le_bytes(old), u16::from_le_bytes(new));
    let big = || of(u16::from_be_bytes(old), u16::from_be_bytes(new));
    little
        .map(|version| (true, version))
        .or_else(|| big().map(|version| (false, version)))
}
