//! File systems whose magic number is short or says little: other sectors confirm them.
//!
//! Sources: ECMA-167 part 3 (UDF: 10.2 anchor, 10.5 partition descriptor, 7.2 tags), `minix_fs.h`
//! and `bfs_fs.h` of Linux.

use super::probes::{Probe, Reader, claim};
use super::{Claim, Holds, MOST_FOUND};
use crate::bytes::{u16_be, u16_le, u32_be, u32_le};

/// The probe whose magic number stands in a sector of 512 bytes.
#[inline]
pub(super) fn matching(sector: &[u8]) -> Option<(Holds, Probe)> {
    match sector.first_chunk::<4>()? {
        [0xce, 0xfa, 0xad, 0x1b] => return Some((Holds::Bfs, bfs)),
        [2, 0, 2 | 3, 0] => return Some((Holds::Udf, udf)),
        [0, b'B', b'E', b'A'] => return Some((Holds::Udf, udf_sequence)),
        _ => {}
    }
    let is_minix = |magic: u16| matches!(magic, 0x137f | 0x138f | 0x2468 | 0x2478);
    let (old, new) = (u16_le(sector, 16), u16_le(sector, 24));
    let either = |magic: u16| is_minix(magic) || is_minix(magic.swap_bytes());
    (either(old) || matches!(new, 0x4d5a | 0x5a4d)).then_some((Holds::Minix, minix))
}

/// The sizes of a block that UDF is made with.
const UDF_BLOCKS: [u64; 4] = [512, 1024, 2048, 4096];
/// Descriptors of a sequence that are looked at.
const UDF_DESCRIPTORS_MAX: u64 = 64;
/// The last anchor is at most 256 blocks behind what the descriptors state, and a second one as far
/// behind that.
const UDF_TAIL_BLOCKS: u64 = 512;
const TAG_ANCHOR: u16 = 2;
const TAG_PARTITION: u16 = 5;
const TAG_END: u16 = 8;

/// An anchor: in block 256, in the last one, or 256 blocks before that. It names the block in which
/// it stands, and where the descriptors begin.
fn udf(view: &mut Reader<'_, '_>, sector: &[u8], at: u64) -> Vec<Claim> {
    let Some(own) = tag(sector, TAG_ANCHOR) else { return Vec::new() };
    for block in UDF_BLOCKS {
        let start = own
            .checked_mul(block)
            .and_then(|before| at.checked_sub(before));
        let Some(start) = start.filter(|_| own > 0) else { continue };
        if let Some(blocks) = blocks_of(view, (start, block), sector) {
            let mut claims = claim(Holds::Udf, Some(start), blocks * block, false, at);
            claims.iter_mut().for_each(|claim| claim.what = "anchor");
            return claims;
        }
    }
    Vec::new()
}

/// The number of blocks of a volume, by one of its anchors; each is measured once.
fn blocks_of(view: &mut Reader<'_, '_>, place: (u64, u64), anchor: &[u8]) -> Option<u64> {
    if let Some(blocks) = view.udf.get(&place) {
        return Some(*blocks);
    }
    if view.udf.len() >= MOST_FOUND {
        return None;
    }
    let (start, block) = place;
    let blocks = Udf { view, start, block }.blocks(anchor)?;
    view.udf.insert(place, blocks);
    Some(blocks)
}

/// The recognition sequence, which is nearer to the beginning than the anchors: a quick search sees
/// it.
fn udf_sequence(view: &mut Reader<'_, '_>, sector: &[u8], at: u64) -> Vec<Claim> {
    let is_one = sector.get(1..6) == Some(b"BEA01");
    let Some(start) = at.checked_sub(32 << 10).filter(|_| is_one) else { return Vec::new() };
    let mut found = UDF_BLOCKS.into_iter().map(|block| {
        let place = start.saturating_add(256 * block);
        let anchor = view.bytes(place, 512);
        udf(view, &anchor, place)
    });
    let begins = |claims: &Vec<Claim>| claims.iter().any(|claim| claim.start == start);
    found.find(begins).unwrap_or_default()
}

/// The number of the block that a descriptor states as its own, if it is of that kind and its tag
/// is whole.
fn tag(bytes: &[u8], kind: u16) -> Option<u64> {
    let tag = bytes.get(..16)?;
    let sum = tag.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    // The checksum leaves itself out.
    let is_whole = sum.wrapping_sub(tag[4]) == tag[4];
    (is_whole && u16_le(tag, 0) == kind).then(|| u64::from(u32_le(tag, 12)))
}

/// A volume that may begin at `start`, with blocks of that size.
struct Udf<'a, 'v, 'r> {
    view: &'a mut Reader<'v, 'r>,
    start: u64,
    block: u64,
}

impl Udf<'_, '_, '_> {
    /// Its number of blocks; `None` when there are no descriptors where the anchor has them.
    fn blocks(&mut self, anchor: &[u8]) -> Option<u64> {
        let mut end = None;
        for place in [16, 24] {
            let length = u64::from(u32_le(anchor, place)) / self.block;
            let first = u64::from(u32_le(anchor, place + 4));
            if let Some(stated) = self.sequence(first, length) {
                end = end.max(Some(stated.max(first + length)));
            }
        }
        let end = end?;
        let tail = self.start.checked_add(end.checked_mul(self.block)?)?;
        let bytes = self
            .view
            .bytes(tail, (UDF_TAIL_BLOCKS * self.block) as usize);
        let blocks = (end..).zip(bytes.chunks_exact(self.block as usize));
        let anchors = blocks.filter(|(number, bytes)| tag(bytes, TAG_ANCHOR) == Some(*number));
        Some(anchors.last().map_or(end, |(number, _)| number + 1))
    }

    /// The end of the last partition of a sequence of descriptors, 0 without one; `None` when there
    /// is no descriptor.
    fn sequence(&mut self, first: u64, length: u64) -> Option<u64> {
        let mut end = None;
        for number in first..first + length.min(UDF_DESCRIPTORS_MAX) {
            let at = number.checked_mul(self.block)?.checked_add(self.start)?;
            let bytes = self.view.bytes(at, 512);
            let kind = u16_le(&bytes, 0);
            if kind == 0 || tag(&bytes, kind) != Some(number) {
                break;
            }
            let stated = match kind {
                TAG_PARTITION => u64::from(u32_le(&bytes, 188)) + u64::from(u32_le(&bytes, 192)),
                _ => 0,
            };
            end = end.max(Some(stated));
            if kind == TAG_END {
                break;
            }
        }
        end
    }
}

/// The superblock of each version, in either byte order, at byte 1024. The first inode has to be
/// that of a folder.
fn minix(view: &mut Reader<'_, '_>, sector: &[u8], at: u64) -> Vec<Claim> {
    const FOLDER: u16 = 0o040_000;
    const KINDS: u16 = 0o170_000;
    let is_new = matches!(u16_le(sector, 24), 0x4d5a | 0x5a4d);
    let magic = u16_le(sector, if is_new { 24 } else { 16 });
    let is_little = matches!(magic, 0x137f | 0x138f | 0x2468 | 0x2478 | 0x4d5a);
    let short = |bytes: &[u8], at: usize| match is_little {
        true => u16_le(bytes, at),
        false => u16_be(bytes, at),
    };
    let long = |at: usize| match is_little {
        true => u32_le(sector, at),
        false => u32_be(sector, at),
    };
    let is_first_version = matches!(short(sector, 16), 0x137f | 0x138f);
    let (maps, block) = match is_new {
        true => (6, u64::from(short(sector, 28))),
        false => (4, 1024),
    };
    let zones = match !is_new && is_first_version {
        true => u32::from(short(sector, 2)),
        false => long(20),
    };
    let map_blocks = u64::from(short(sector, maps)) + u64::from(short(sector, maps + 2));
    let (first_zone, zone_log) = (short(sector, maps + 4), short(sector, maps + 6));
    let plausible = block.is_power_of_two()
        && (1024..=32_768).contains(&block)
        && zone_log == 0
        && map_blocks >= 2
        && u64::from(first_zone) > 1 + map_blocks
        && zones > u32::from(first_zone);
    let Some(start) = at.checked_sub(1024).filter(|_| plausible) else { return Vec::new() };
    // The boot block and the superblock, or one block with both; then the maps, then the inodes.
    let before = 2 * block.max(1024) + map_blocks * block;
    let inode = view.bytes(start.saturating_add(before), 2);
    match short(&inode, 0) & KINDS == FOLDER {
        true => claim(
            Holds::Minix,
            Some(start),
            u64::from(zones) * block,
            false,
            at,
        ),
        false => Vec::new(),
    }
}

/// SCO's boot file system: the superblock, then the inodes, whose first one has the number 2.
fn bfs(view: &mut Reader<'_, '_>, sector: &[u8], at: u64) -> Vec<Claim> {
    const ROOT_INODE: u16 = 2;
    let (data, last) = (u64::from(u32_le(sector, 4)), u64::from(u32_le(sector, 8)));
    let inode = view.bytes(at.saturating_add(512), 2);
    let plausible = (512..last).contains(&data) && u16_le(&inode, 0) == ROOT_INODE;
    match plausible {
        true => claim(Holds::Bfs, Some(at), last + 1, false, at),
        false => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{extent, put, search_in};
    use super::*;

    const START: usize = 3 << 20;

    fn found(disk: &[u8]) -> Vec<(Holds, u64, u64)> {
        search_in(disk).partitions().iter().map(extent).collect()
    }

    /// What a look at the first 128 KiB of the partition finds.
    fn near(disk: &[u8]) -> Vec<(Holds, u64, u64)> {
        let mut search = super::super::Search::new(disk.len() as u64, 512);
        let mut read = |offset: u64, length: usize| {
            let rest = disk.get(offset as usize..).unwrap_or_default();
            Ok(rest[..length.min(rest.len())].to_vec())
        };
        let begin = &disk[START..START + (128 << 10)];
        search.look(START as u64, begin, &mut read);
        search.partitions().iter().map(extent).collect()
    }

    /// A descriptor of UDF in its block.
    fn put_udf(disk: &mut [u8], block: usize, (kind, number): (u16, u32), words: &[(usize, u32)]) {
        let at = START + number as usize * block;
        put(disk, at, &kind.to_le_bytes());
        put(disk, at + 2, &[3]);
        put(disk, at + 12, &number.to_le_bytes());
        let sum = disk[at..at + 16]
            .iter()
            .fold(0_u8, |sum, it| sum.wrapping_add(*it));
        disk[at + 4] = sum;
        for (place, word) in words {
            put(disk, at + place, &word.to_le_bytes());
        }
    }

    /// Each of the three anchors is enough, and the volume ends with the last one.
    #[test]
    fn a_udf_volume_begins_and_ends_where_its_anchors_say() {
        for (block, blocks) in [(512, 8192_u32), (2048, 2560), (4096, 1024)] {
            let anchors = [256, blocks - 257, blocks - 1];
            for kept in [&anchors[..], &anchors[..1], &anchors[1..2], &anchors[2..]] {
                let mut disk = vec![0; 12 << 20];
                let sequence = [(16, 3 * block as u32), (20, 96)];
                for anchor in kept {
                    put_udf(&mut disk, block, (TAG_ANCHOR, *anchor), &sequence);
                }
                put_udf(&mut disk, block, (1, 96), &[]);
                let partition = [(188, 257), (192, blocks - 257 - 300)];
                put_udf(&mut disk, block, (TAG_PARTITION, 97), &partition);
                put_udf(&mut disk, block, (TAG_END, 98), &[]);
                let end = match kept.contains(&(blocks - 1)) {
                    true => blocks,
                    false if kept.contains(&(blocks - 257)) => blocks - 256,
                    false => blocks - 300,
                };
                let sectors = u64::from(end) * block as u64 / 512;
                assert_eq!(
                    found(&disk),
                    [(Holds::Udf, 6144, sectors)],
                    "{block} {kept:?}"
                );
                assert_eq!(near(&disk), [], "{block} {kept:?}");
                put(&mut disk, START + (32 << 10), b"\0BEA01\x01");
                let is_near = kept.contains(&256);
                assert_eq!(near(&disk).len(), usize::from(is_near), "{block} {kept:?}");
                // A descriptor of another disk.
                disk[START + 96 * block + 12] ^= 1;
                assert_eq!(found(&disk), [], "{block} {kept:?}");
            }
        }
    }

    /// Each anchor names the first block, in which the sequence begins.
    #[test]
    fn a_volume_of_many_anchors_is_measured_once() {
        let mut disk = vec![0; 8 << 20];
        for number in 256..8192 {
            put_udf(
                &mut disk,
                512,
                (TAG_ANCHOR, number),
                &[(16, 1024), (20, 96)],
            );
        }
        put_udf(&mut disk, 512, (1, 96), &[]);
        let mut read_bytes = 0;
        let mut search = super::super::Search::new(disk.len() as u64, 512);
        let mut read = |offset: u64, length: usize| {
            read_bytes += length;
            let rest = disk.get(offset as usize..).unwrap_or_default();
            Ok(rest[..length.min(rest.len())].to_vec())
        };
        search.look(0, &disk, &mut read);
        assert_eq!(search.partitions().len(), 1);
        assert!(read_bytes < 1 << 20, "{read_bytes}");
    }

    #[test]
    fn minix_is_found_in_each_version_and_byte_order_where_its_first_inode_is_a_folder() {
        for (magic, big) in [
            (0x137f_u16, false),
            (0x2478, false),
            (0x4d5a, false),
            (0x138f, true),
        ] {
            let mut disk = vec![0; 12 << 20];
            let order = |value: u16| {
                if big {
                    value.to_be_bytes()
                } else {
                    value.to_le_bytes()
                }
            };
            let is_new = magic == 0x4d5a;
            let (maps, place, block) = if is_new { (6, 24, 4096) } else { (4, 16, 1024) };
            let at = START + 1024;
            for (offset, value) in [(0, 64), (maps, 1), (maps + 2, 1), (maps + 4, 8)] {
                put(&mut disk, at + offset, &order(value));
            }
            put(&mut disk, at + place, &order(magic));
            if is_new {
                put(&mut disk, at + 28, &order(block));
            }
            match magic {
                0x137f | 0x138f => put(&mut disk, at + 2, &order(1000)),
                _ => put(&mut disk, at + 20, &1000_u32.to_le_bytes()),
            }
            let block = u64::from(block);
            let inode = START + 4 * block as usize;
            put(&mut disk, inode, &order(0o040_755));
            let expected = [(Holds::Minix, 6144, 1000 * block / 512)];
            assert_eq!(found(&disk), expected, "{magic:x}");
            put(&mut disk, inode, &order(0o100_644));
            assert_eq!(found(&disk), [], "{magic:x}");
        }
    }

    #[test]
    fn bfs_is_found_where_its_first_inode_is_the_root() {
        let mut disk = vec![0; 12 << 20];
        put(&mut disk, START, &[0xce, 0xfa, 0xad, 0x1b]);
        put(&mut disk, START + 4, &2048_u32.to_le_bytes());
        put(&mut disk, START + 8, &((4_u32 << 20) - 1).to_le_bytes());
        assert_eq!(found(&disk), []);
        put(&mut disk, START + 512, &[2]);
        assert_eq!(found(&disk), [(Holds::Bfs, 6144, 8192)]);
    }
}
