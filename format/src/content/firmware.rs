//! What phones, Chromebooks and small boards boot from: images and metadata in partitions without a
//! file system.
//!
//! Sources: Android `bootimg.h`, `liblp/include/liblp/metadata_format.h`, `libsparse` and
//! `libavb/avb_vbmeta_image.h`, ChromiumOS `vboot_reference` `vb2_struct.h`, U-Boot `image.h` and
//! `env_internal.h`, the devicetree specification 0.4.

use super::Content;
use super::ContentUse::{Image, Other, Volume};
use super::signature::{Field, Signature, magic, magic_from_end_of_file};
use super::view::View;

#[rustfmt::skip]
pub const SIGNATURES: &[Signature] = &[
    Signature::new(Other, "android_boot", "an Android boot image", "Android boot image",
        &[magic(0, 0, b"ANDROID!"), magic(0, 0, b"VNDRBOOT")]),
    Signature::new(Other, "android_vbmeta", "metadata of Android Verified Boot", "AVB",
        &[magic(0, 0, b"AVB0"), magic_from_end_of_file(64, b"AVBf")])
        .check(|view, base| view.u32_be(base + 4) == 1),
    Signature::new(Volume, "android_super", "an Android super partition", "Android super",
        &[magic(4096, 0, b"gDla"), magic(8192, 0, b"gDla")])
        .check(|view, base| view.u32_le(base + 4) == SUPER_GEOMETRY_BYTES),
    Signature::new(Image, "android_sparse", "an Android sparse image", "Android sparse image",
        &[magic(0, 0, b"\x3a\xff\x26\xed\x01\0")])
        .inner(|view, _| u64::from(view.u32_le(12)) * u64::from(view.u32_le(16))),
    Signature::new(Other, "chromeos_kernel", "a ChromeOS kernel", "ChromeOS kernel",
        &[magic(0, 0, b"CHROMEOS")]),
    Signature::new(Other, "uimage", "a U-Boot image", "U-Boot image",
        &[magic(0, 0, b"\x27\x05\x19\x56")])
        .check(is_uimage).label(Field::Text(32, 32)),
    Signature::new(Other, "fdt", "a device tree or FIT image", "device tree",
        &[magic(0, 0, b"\xd0\x0d\xfe\xed")]).check(is_device_tree),
];

/// `LpMetadataGeometry::struct_size`.
const SUPER_GEOMETRY_BYTES: u32 = 52;

/// The header has a checksum of its own, over itself with zeroes in that place.
fn is_uimage(view: &mut View<'_>, _base: u64) -> bool {
    let mut header: [u8; 64] = view.array(0);
    header[4..8].fill(0);
    crc32fast::hash(&header) == view.u32_be(4)
}

fn is_device_tree(view: &mut View<'_>, _base: u64) -> bool {
    const HEADER_BYTES: u32 = 40;
    let (whole, tree, version) = (view.u32_be(4), view.u32_be(8), view.u32_be(20));
    (HEADER_BYTES..whole).contains(&tree) && (1..=17).contains(&version)
}

/// The variables of U-Boot: a CRC-32, on some boards a byte of flags, then texts `name=value` up to
/// the end of the environment, which is one of a few usual sizes.
pub fn probe_uboot_environment(view: &mut View<'_>) -> Option<Content> {
    const SIZES: [usize; 7] = [
        4 << 10,
        8 << 10,
        16 << 10,
        32 << 10,
        64 << 10,
        128 << 10,
        256 << 10,
    ];
    let crc = view.u32_le(0);
    let start = [4, 5].into_iter().find(|start| {
        let bytes = view.bytes(*start, 64);
        let name = bytes.split(|byte| *byte == b'=').next().unwrap_or(&[]);
        (1..bytes.len()).contains(&name.len()) && name.iter().all(u8::is_ascii_graphic)
    })?;
    let size = SIZES.into_iter().find(|size| {
        let length = size - start as usize;
        let bytes = view.bytes(start, length);
        bytes.len() == length && crc32fast::hash(&bytes) == crc
    })?;
    let (title, short) = ("a U-Boot environment", "U-Boot environment");
    let content = Content::new("uboot_env", title, short, Other);
    Some(content.at(0, 4).with_body(start, size as u64 - start))
}
