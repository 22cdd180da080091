//! Images of disks, and compressed files: their data is not at the offsets where it seems.
//!
//! Sources: QEMU `docs/interop/qcow2.txt` and `block/*.c`, VMware's Virtual Disk Format 1.1 and
//! 5.0, the VHD and VHDX specifications of Microsoft, VirtualBox `VDICore.h`, Apple's `koly` block
//! as described by its readers, RFC 1952 (gzip), the xz and zstd formats, libewf's documentation.

use super::Content;
use super::ContentUse::Image;
use super::signature::{
    At, Field, Magic, Signature, magic, magic_from_end, magic_from_end_of_file,
};
use super::text;
use super::view::View;

const fn image(
    name: &'static str,
    title: &'static str,
    short: &'static str,
    magics: &'static [Magic],
) -> Signature {
    Signature::new(Image, name, title, short, magics)
}

#[rustfmt::skip]
pub const SIGNATURES: &[Signature] = &[
    image("qcow2", "a qcow2 image", "qcow2", &[magic(0, 0, b"QFI\xfb")])
        .check(|view, _| view.u32_be(4) != 1)
        .inner(|view, _| view.u64_be(24)),
    image("qcow", "a qcow image of version 1", "qcow", &[magic(0, 0, b"QFI\xfb\0\0\0\x01")])
        .inner(|view, _| view.u64_be(24)),
    image("qed", "a QED image", "qed", &[magic(0, 0, b"QED\0")]).inner(|view, _| view.u64_le(48)),
    image("vmdk", "a VMDK image", "vmdk", &[magic(0, 0, b"KDMV")])
        .inner(|view, _| view.u64_le(12).saturating_mul(512)),
    image("vmdk", "a VMDK image of ESX", "vmdk", &[magic(0, 0, b"COWD")])
        .inner(|view, _| u64::from(view.u32_le(12)).saturating_mul(512)),
    image("vmdk", "a VMDK descriptor", "vmdk descriptor", &[magic(0, 0, b"# Disk DescriptorFile")]),
    image("vdi", "a VDI image", "vdi", &[magic(0, 64, b"\x7f\x10\xda\xbe")])
        .inner(|view, _| view.u64_le(368)).uuid(Field::Made(|view, _| {
            let mut bytes: [u8; 16] = view.array(392);
            bytes[..4].reverse();
            bytes[4..6].reverse();
            bytes[6..8].reverse();
            text::uuid(&bytes)
        })),
    image("vhd", "a VHD image", "vhd", &[magic(0, 0, b"conectix"),
        magic_from_end(1, 0, b"conectix")])
        .check(|view, base| view.u32_be(base + 12) == 0x0001_0000)
        .inner(|view, base| view.u64_be(base + 48)).uuid(Field::Uuid(68)),
    image("vhdx", "a VHDX image", "vhdx", &[magic(0, 0, b"vhdxfile")]),
    image("parallels", "a Parallels image", "parallels", &[magic(0, 0, b"WithoutFreeSpace"),
        magic(0, 0, b"WithouFreSpacExt")])
        .inner(|view, _| view.u64_le(36).saturating_mul(512)),
    image("bochs", "a Bochs image", "bochs", &[magic(0, 0, b"Bochs Virtual HD Image")]),
    image("dmg", "an Apple disk image", "dmg", &[magic_from_end_of_file(512, b"koly")])
        .inner(|view, base| view.u64_be(base + 492).saturating_mul(512)),
    image("sparseimage", "an Apple sparse image", "sparseimage", &[magic(0, 0, b"sprs")]),
    image("cloop", "a compressed loop image", "cloop", &[
        magic(0, 0, b"#!/bin/sh\n#V2.0 Format\nmodprobe cloop")])
        .inner(compressed_blocks),
    image("uzip", "a uzip image", "uzip", &[magic(0, 0, b"#!/bin/sh\n#V2.0 Format\n"),
        magic(0, 0, b"#!/bin/sh\n#L3.0\n"), magic(0, 0, b"#!/bin/sh\n#Z4.0\n")])
        .check(|view, _| !view.has(23, b"modprobe cloop"))
        .inner(compressed_blocks),
    image("ewf", "an EWF image", "ewf", &[magic(0, 0, b"EVF\x09\x0d\x0a\xff\0"),
        magic(0, 0, b"EVF2\x0d\x0a\x81\0"), magic(0, 0, b"LVF\x09\x0d\x0a\xff\0")]),
    image("wim", "a WIM image", "wim", &[magic(0, 0, b"MSWIM\0\0\0")]),
    image("gzip", "a gzip file", "gzip", &[magic(0, 0, b"\x1f\x8b\x08")])
        .check(|view, _| view.byte(3) & 0xe0 == 0).label(Field::Made(|view, _| {
            (view.byte(3) & 0x0c == 0x08).then(|| text::label(&view.bytes(10, 256)))?
        })),
    image("xz", "an xz file", "xz", &[magic(0, 0, b"\xfd7zXZ\0")]),
    image("zstd", "a zstd file", "zstd", &[magic(0, 0, b"\x28\xb5\x2f\xfd")]),
    image("bzip2", "a bzip2 file", "bzip2", &[magic(0, 0, b"BZh")]).check(|view, _| {
        view.byte(3).is_ascii_digit()
            && (view.has(4, b"\x31\x41\x59\x26\x53\x59")
                || view.has(4, b"\x17\x72\x45\x38\x50\x90"))
    }),
    image("lz4", "an lz4 file", "lz4", &[magic(0, 0, b"\x04\x22\x4d\x18")]),
    image("lzip", "an lzip file", "lzip", &[magic(0, 0, b"LZIP\x01")]),
    image("lzop", "an lzop file", "lzop", &[magic(0, 0, b"\x89LZO\0\x0d\x0a\x1a\x0a")]),
    image("cpio", "a cpio archive", "cpio", &[magic(0, 0, b"070701"), magic(0, 0, b"070702")]),
    image("7z", "a 7z archive", "7z", &[magic(0, 0, b"7z\xbc\xaf\x27\x1c")]),
    image("zip", "a ZIP archive", "zip", &[magic(0, 0, b"PK\x03\x04")]),
    image("sqlite", "an SQLite database", "SQLite", &[magic(0, 0, b"SQLite format 3\0")]),
    image("tar", "a tar archive", "tar", &[Magic {
        base: At::Start(0),
        offset: 257,
        bytes: b"ustar",
    }]),
];

/// Compressed images of a block device name the size of a block and the number of blocks.
fn compressed_blocks(view: &mut View<'_>, _base: u64) -> u64 {
    u64::from(view.u32_be(128)) * u64::from(view.u32_be(132).saturating_sub(1))
}

/// A file of the first LZMA format, which has no magic number. As liblzma reads it: properties, a
/// dictionary of 2^n or 2^n + 2^(n-1) bytes, a size of less than 256 GiB or none; then the first
/// byte of the data, which is 0.
pub fn probe_lzma(view: &mut View<'_>) -> Option<Content> {
    const HEADER_BYTES: u64 = 13;
    const PROPERTIES_END: u8 = 9 * 5 * 5;
    const SIZE_BYTES_END: u64 = 1 << 38;
    let dictionary = view.u32_le(1);
    let rest = dictionary & dictionary.wrapping_sub(1);
    let is_size = rest == 0 || rest.is_power_of_two() && dictionary == rest | rest >> 1;
    let size = view.u64_le(5);
    let is_lzma = view.has(HEADER_BYTES, b"\0")
        && view.byte(0) < PROPERTIES_END
        && dictionary >= 4096
        && (is_size || dictionary == u32::MAX)
        && (size < SIZE_BYTES_END || size == u64::MAX);
    let content = || Content::new("lzma", "an lzma file", "lzma", Image).at(0, HEADER_BYTES);
    is_lzma.then(content)
}
