//! File systems that a row of the table describes.
//!
//! Sources: the superblock definitions of the systems themselves (Linux
//! `include/uapi/linux/magic.h` and the headers under `fs/`, FreeBSD `sys/fs` and DragonFly
//! `sys/vfs`), libblkid's list of places for those that may stand in several, and util-linux's
//! images for the rest.

use super::ContentUse::FileSystem;
use super::signature::{Field, Signature, magic};
use super::text;
use super::view::View;
use crate::text::hex;

const KIB: u64 = 1024;

const fn fs(
    name: &'static str,
    title: &'static str,
    short: &'static str,
    magics: &'static [super::signature::Magic],
) -> Signature {
    Signature::new(FileSystem, name, title, short, magics)
}

#[rustfmt::skip]
pub const SIGNATURES: &[Signature] = &[
    fs("xfs", "an XFS file system", "xfs", &[magic(0, 0, b"XFSB")])
        .label(Field::Text(108, 12)).uuid(Field::Uuid(32)),
    fs("exfs", "an EXFS file system", "exfs", &[magic(0, 0, b"EXFS")])
        .label(Field::Text(108, 12)).uuid(Field::Uuid(32)),
    fs("btrfs", "a Btrfs file system", "btrfs", &[magic(64 * KIB, 64, b"_BHRfS_M")])
        .label(Field::Text(299, 256)).uuid(Field::Uuid(32)),
    fs("bcachefs", "a bcachefs file system", "bcachefs", &[magic(4 * KIB, 24,
        b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef")])
        .label(Field::Text(72, 32)).uuid(Field::Uuid(56)),
    fs("f2fs", "an F2FS file system", "f2fs", &[magic(KIB, 0, b"\x10\x20\xf5\xf2"),
        magic(5 * KIB, 0, b"\x10\x20\xf5\xf2")])
        .label(Field::Utf16(124, 1024)).uuid(Field::Uuid(108)),
    fs("jfs", "a JFS file system", "jfs", &[magic(32 * KIB, 0, b"JFS1")])
        .label(Field::Text(152, 16)).uuid(Field::Uuid(136)),
    fs("reiserfs", "a ReiserFS file system", "reiserfs", &[magic(64 * KIB, 52, b"ReIsEr2Fs"),
        magic(64 * KIB, 52, b"ReIsEr3Fs")])
        .label(Field::Text(100, 16)).uuid(Field::Uuid(84)),
    fs("reiserfs", "a ReiserFS file system", "reiserfs", &[magic(8 * KIB, 52, b"ReIsErFs"),
        magic(64 * KIB, 52, b"ReIsErFs"), magic(8 * KIB, 20, b"ReIsErFs")]),
    fs("reiser4", "a Reiser4 file system", "reiser4", &[magic(64 * KIB, 0, b"ReIsEr4")])
        .label(Field::Text(36, 16)).uuid(Field::Uuid(20)),
    fs("nilfs2", "a NILFS2 file system", "nilfs2", &[magic(KIB, 6, b"\x34\x34"),
        super::signature::magic_from_end(8, 6, b"\x34\x34")]).least(1 << 20)
        .check(is_nilfs2).label(Field::Text(168, 80)).uuid(Field::Uuid(152)),
    fs("apfs", "an APFS container", "apfs", &[magic(0, 32, b"NXSB")]).uuid(Field::Uuid(72)),
    fs("ReFS", "a ReFS file system", "ReFS", &[magic(0, 0, b"\0\0\0ReFS\0")]),
    fs("hpfs", "an HPFS file system", "hpfs", &[magic(8 * KIB, 0, b"\x49\xe8\x95\xf9")])
        .label(Field::Made(|view, _| hpfs(view).then(|| text::label(&view.bytes(43, 11)))?))
        .uuid(Field::Made(|view, _| hpfs(view).then(|| text::dos_serial(view.array(39))))),
    fs("squashfs", "a SquashFS file system", "squashfs", &[magic(0, 0, b"hsqs")])
        .check(|view, base| !(1..=3).contains(&view.u16_le(base + 28))),
    fs("squashfs3", "a SquashFS 3 file system", "squashfs3", &[magic(0, 0, b"hsqs")])
        .check(|view, base| (1..=3).contains(&view.u16_le(base + 28))),
    fs("squashfs3", "a SquashFS 3 file system", "squashfs3", &[magic(0, 0, b"sqsh")])
        .check(|view, base| view.u16_be(base + 28) <= 3),
    fs("cramfs", "a cramfs file system", "cramfs", &[magic(0, 0, b"\x45\x3d\xcd\x28"),
        magic(0, 0, b"\x28\xcd\x3d\x45")]).label(Field::Text(48, 16)),
    fs("romfs", "a romfs file system", "romfs", &[magic(0, 0, b"-rom1fs-")])
        .label(Field::Text(16, 16)),
    fs("erofs", "an EROFS file system", "erofs", &[magic(KIB, 0, b"\xe2\xe1\xf5\xe0")])
        .label(Field::Text(64, 16)).uuid(Field::Uuid(48)),
    fs("gfs", "a GFS file system", "gfs", &[magic(64 * KIB, 0, b"\x01\x16\x19\x70")])
        .least(32 << 20)
        .check(|view, base| view.u32_be(base + 24) == 1309 && view.u32_be(base + 28) == 1401)
        .label(Field::Text(160, 64)).uuid(Field::Uuid(256)),
    fs("gfs2", "a GFS2 file system", "gfs2", &[magic(64 * KIB, 0, b"\x01\x16\x19\x70")])
        .least(32 << 20)
        .check(|view, base| (1800..1900).contains(&view.u32_be(base + 24))
            && (1900..2000).contains(&view.u32_be(base + 28)))
        .label(Field::Text(160, 64)).uuid(Field::Uuid(256)),
    fs("ocfs", "an OCFS file system", "ocfs", &[magic(0, 8, b"OracleCFS")])
        .label(Field::Made(|view, base| {
            let length = usize::from(view.u16_le(base + 512 + 112)).min(64);
            text::label(&view.bytes(base + 512 + 48, length))
        }))
        .uuid(Field::Uuid(512 + 114)),
    fs("ocfs2", "an OCFS2 file system", "ocfs2", &[magic(KIB, 0, b"OCFSV2"),
        magic(2 * KIB, 0, b"OCFSV2"), magic(4 * KIB, 0, b"OCFSV2"), magic(8 * KIB, 0, b"OCFSV2")])
        .label(Field::Text(272, 64)).uuid(Field::Uuid(336)),
    fs("vxfs", "a VxFS file system", "vxfs", &[magic(KIB, 0, b"\xf5\xfc\x01\xa5"),
        magic(8 * KIB, 0, b"\xa5\x01\xfc\xf5")]),
    fs("bfs", "a BFS file system", "bfs", &[magic(0, 0, b"\xce\xfa\xad\x1b")]),
    fs("befs", "a BeFS file system", "befs", &[magic(0, 32, b"BFS1"), magic(0, 32, b"1SFB"),
        magic(512, 32, b"BFS1"), magic(512, 32, b"1SFB")])
        .label(Field::Text(0, 32)).uuid(Field::Made(befs_uuid)),
    fs("sysv", "a System V file system", "sysv", &[
        magic(512, 504, b"\xfd\x18\x7e\x20"), magic(512, 504, b"\x20\x7e\x18\xfd"),
        magic(9 * KIB + 512, 504, b"\xfd\x18\x7e\x20"),
        magic(9 * KIB + 512, 504, b"\x20\x7e\x18\xfd"),
        magic(15 * KIB + 512, 504, b"\xfd\x18\x7e\x20"),
        magic(15 * KIB + 512, 504, b"\x20\x7e\x18\xfd"),
        magic(18 * KIB + 512, 504, b"\xfd\x18\x7e\x20"),
        magic(18 * KIB + 512, 504, b"\x20\x7e\x18\xfd")])
        .label(Field::Text(440, 6)),
    fs("xenix", "a Xenix file system", "xenix", &[magic(KIB, KIB - 8, b"\x2b\x55\x44\0"),
        magic(KIB, KIB - 8, b"\0\x44\x55\x2b"), magic(KIB, KIB, b"\x2b\x55\x44"),
        magic(KIB, KIB, b"\x44\x55\x2b")]).label(Field::Text(632, 6)),
    fs("nss", "a NetWare storage pool", "nss", &[magic(4 * KIB, 0, b"SPB5")])
        .uuid(Field::Uuid(348)),
    fs("ubifs", "a UBIFS file system", "ubifs", &[magic(0, 0, b"\x31\x18\x10\x06")])
        .uuid(Field::Uuid(108)),
    fs("zonefs", "a zonefs file system", "zonefs", &[magic(0, 0, b"SFOZ")])
        .label(Field::Text(8, 32)).uuid(Field::Uuid(40)),
    fs("mpool", "an mpool", "mpool", &[magic(0, 0, b"mpoolDev")])
        .label(Field::Text(8, 32)).uuid(Field::Uuid(40)),
    fs("VMFS", "a VMFS file system", "VMFS", &[magic(2 << 20, 0, b"\x5e\xf1\xab\x2f")])
        .label(Field::Text(29, 128)).uuid(Field::Made(|view, base| vmfs_uuid(view, base + 9))),
    fs("jffs2", "a JFFS2 file system", "jffs2", &[magic(0, 0, b"\x85\x19\x01\xe0"),
        magic(0, 0, b"\x85\x19\x03\x20"), magic(0, 0, b"\x19\x85\xe0\x01"),
        magic(0, 0, b"\x19\x85\x20\x03")]),
    fs("hammer", "a HAMMER file system", "hammer", &[magic(0, 0,
        b"\x31\x30\x52\xc5\x4d\x41\x48\xc8")])
        .label(Field::Text(80, 64)).uuid(Field::Uuid(48)),
    fs("hammer2", "a HAMMER2 file system", "hammer2", &[
        magic(0, 0, b"\x11\x20\x17\x05\x32\x4d\x41\x48")]).uuid(Field::Made(|view, base| {
            dragonfly_uuid(view, base + 64)
        })),
    fs("omfs", "an OMFS file system", "omfs", &[magic(0, 8, b"\0\0\0\0\xc2\x99\x37\x99")]),
    fs("adfs", "an ADFS file system", "adfs", &[magic(0xc00, 0, b"Hugo"), magic(0x801, 0, b"Hugo"),
        magic(0x801, 0, b"Nick")]),
    fs("affs", "an Amiga file system", "affs", &[magic(0, 0, b"DOS\0"), magic(0, 0, b"DOS\x01"),
        magic(0, 0, b"DOS\x02"), magic(0, 0, b"DOS\x03"), magic(0, 0, b"DOS\x04"),
        magic(0, 0, b"DOS\x05"), magic(0, 0, b"PFS\x01"), magic(0, 0, b"PFS\x03"),
        magic(0, 0, b"SFS\0")]),
    fs("ods", "a Files-11 file system", "ods", &[magic(512, 496, b"DECFILE11A  "),
        magic(512, 496, b"DECFILE11B  ")]).label(Field::Text(472, 12)),
];

/// The superblock's CRC fits: two bytes are too short for a magic number (Linux
/// `include/uapi/linux/nilfs2_ondisk.h`).
fn is_nilfs2(view: &mut View<'_>, base: u64) -> bool {
    let length = usize::from(view.u16_le(base + 8));
    if !(20..=1024).contains(&length) {
        return false;
    }
    let mut bytes = view.bytes(base, length);
    if bytes.len() < length {
        return false;
    }
    let (seed, sum) = (view.u32_le(base + 12), view.u32_le(base + 16));
    bytes[16..20].fill(0);
    // The kernel's crc32_le neither begins nor ends with an inversion; crc32fast does both.
    let mut hasher = crc32fast::Hasher::new_with_initial(!seed);
    hasher.update(&bytes);
    !hasher.finalize() == sum
}

/// A word of BeFS, in the byte order that the magic number of the superblock at `base` tells.
fn befs_word(view: &mut View<'_>, base: u64, at: u64) -> u32 {
    match view.has(base + 32, b"1SFB") {
        true => view.u32_le(at),
        false => view.u32_be(at),
    }
}

/// The volume's identifier: the attribute `be:volume_id` in the inode of the root directory (Haiku
/// `bfs.h`, `small_data`).
fn befs_uuid(view: &mut View<'_>, base: u64) -> Option<String> {
    const NAME: &[u8] = b"be:volume_id";
    let little = view.has(base + 32, b"1SFB");
    let (block_log, group_log) = (
        befs_word(view, base, base + 44),
        befs_word(view, base, base + 76),
    );
    let group = u64::from(befs_word(view, base, base + 116));
    let start = u64::from(match little {
        true => view.u16_le(base + 120),
        false => view.u16_be(base + 120),
    });
    if block_log > 16 || group_log > 32 {
        return None;
    }
    let block = group.checked_shl(group_log)?.checked_add(start)?;
    let inode = view.bytes(block.checked_mul(1 << block_log)?, 1 << block_log);
    let short = |at: usize| {
        let pair = [*inode.get(at)?, *inode.get(at + 1)?];
        let value = if little {
            u16::from_le_bytes(pair)
        } else {
            u16::from_be_bytes(pair)
        };
        Some(usize::from(value))
    };
    // Small attributes begin behind the 232 bytes of the inode; each has 8 bytes of header, its
    // name, 3 zeroes, its data and one zero.
    let mut at = 232;
    for _ in 0..inode.len() / 12 {
        let (name, data) = (short(at + 4)?, short(at + 6)?);
        let value = at + 8 + name + 3;
        if inode.get(at + 8..)?.starts_with(NAME) && data == 8 {
            let bytes: [u8; 8] = inode.get(value..)?.first_chunk().copied()?;
            let id = if little {
                u64::from_le_bytes(bytes)
            } else {
                u64::from_be_bytes(bytes)
            };
            return Some(format!("{id:016x}"));
        }
        if name == 0 {
            return None;
        }
        at = value + data + 1;
    }
    None
}

/// The boot block of HPFS has a label and a serial number.
fn hpfs(view: &mut View<'_>) -> bool {
    view.has(510, b"\x55\xaa") && view.has(54, b"HPFS") && view.byte(38) == 0x28
}

/// VMFS groups the bytes of a UUID as 4-4-2-6, the first three in little-endian order.
pub(super) fn vmfs_uuid(view: &mut View<'_>, at: u64) -> Option<String> {
    let (a, b) = (view.u32_le(at), view.u32_le(at + 4));
    let c = view.u16_le(at + 8);
    let rest = hex(&view.array::<6>(at + 10));
    (a != 0 || b != 0).then(|| format!("{a:08x}-{b:08x}-{c:04x}-{rest}"))
}

/// A UUID whose first three fields are little-endian.
fn dragonfly_uuid(view: &mut View<'_>, at: u64) -> Option<String> {
    let mut bytes: [u8; 16] = view.array(at);
    bytes[..4].reverse();
    bytes[4..6].reverse();
    bytes[6..8].reverse();
    text::uuid(&bytes)
}
