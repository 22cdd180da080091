//! Members of volume groups, arrays and pools, encrypted containers, swap, caches: rows of the
//! table, and LVM2 and DRBD, whose places are searched.
//!
//! Sources: the LUKS, LVM2, bcache, dm-verity, dm-integrity and Stratis on-disk formats, Linux
//! `include/linux/swap.h`, DRBD `drbd_int.h`, libblkid's list of places of firmware RAIDs,
//! libfvde's documentation (Core Storage), and gus33000's StorageSpace.

use super::ContentUse::{Encrypted, Other, Volume};
use super::file_systems::vmfs_uuid;
use super::signature::{Field, Magic, Signature, magic, magic_from_end};
use super::view::View;
use super::{Content, text};
use crate::bytes::{u32_le, u64_le};

const KIB: u64 = 1024;
/// No firmware RAID is kept on a medium smaller than this.
const RAID_LEAST: u64 = 64 * KIB;

const fn volume(
    name: &'static str,
    title: &'static str,
    short: &'static str,
    magics: &'static [Magic],
) -> Signature {
    Signature::new(Volume, name, title, short, magics)
}

#[rustfmt::skip]
pub const SIGNATURES: &[Signature] = &[
    Signature::new(Encrypted, "crypto_LUKS", "a LUKS1 container", "LUKS1",
        &[magic(0, 0, b"LUKS\xba\xbe\0\x01")]).uuid(Field::Text(168, 40)),
    Signature::new(Encrypted, "crypto_LUKS", "a LUKS container of an unknown version", "LUKS", &[
        magic(0, 0, b"LUKS\xba\xbe"), magic(0x4000, 0, b"SKUL\xba\xbe"),
        magic(0x8000, 0, b"SKUL\xba\xbe")])
        .check(|view, base| !matches!(view.u16_be(base + 6), 1 | 2)),
    Signature::new(Encrypted, "crypto_LUKS", "a LUKS2 container", "LUKS2", &[
        magic(0, 0, b"LUKS\xba\xbe\0\x02"),
        magic(0x4000, 0, b"SKUL\xba\xbe\0\x02"), magic(0x8000, 0, b"SKUL\xba\xbe\0\x02"),
        magic(0x1_0000, 0, b"SKUL\xba\xbe\0\x02"), magic(0x2_0000, 0, b"SKUL\xba\xbe\0\x02"),
        magic(0x4_0000, 0, b"SKUL\xba\xbe\0\x02"), magic(0x8_0000, 0, b"SKUL\xba\xbe\0\x02"),
        magic(0x10_0000, 0, b"SKUL\xba\xbe\0\x02"), magic(0x20_0000, 0, b"SKUL\xba\xbe\0\x02"),
        magic(0x40_0000, 0, b"SKUL\xba\xbe\0\x02")])
        .label(Field::Text(24, 48)).uuid(Field::Text(168, 40)),
    Signature::new(Encrypted, "BitLocker", "a BitLocker volume", "BitLocker", &[
        magic(0, 0, b"\xeb\x52\x90-FVE-FS-"), magic(0, 0, b"\xeb\x58\x90-FVE-FS-"),
        magic(0, 0, b"\xeb\x58\x90MSWIN4.1")]).check(is_bitlocker).uuid(Field::Made(|view, _| {
            let win7 = view.has(0, b"\xeb\x58\x90-FVE-FS-");
            win7.then(|| format!("{:016}", view.u32_le(67) as i32))
        })),
    Signature::new(Encrypted, "DM_verity_hash", "a dm-verity hash device", "dm-verity",
        &[magic(0, 0, b"verity\0\0")]).uuid(Field::Uuid(16)),
    Signature::new(Encrypted, "DM_integrity", "a dm-integrity device", "dm-integrity",
        &[magic(0, 0, b"integrt\0")]),
    Signature::new(Other, "DM_snapshot_cow", "a dm-snapshot store", "dm-snapshot",
        &[magic(0, 0, b"SnAp")]),
    volume("LVM1_member", "an LVM1 physical volume", "LVM1 PV", &[magic(0, 0, b"HM")])
        .check(|view, base| matches!(view.u16_le(base + 2), 1 | 2))
        .uuid(Field::Made(|view, base| lvm_uuid(&view.bytes(base + 44, 32)))),
    volume("bcache", "a bcache device", "bcache", &[magic(4 * KIB, 24,
        b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81")])
        .uuid(Field::Uuid(40)),
    volume("ceph_bluestore", "a Ceph BlueStore device", "Ceph BlueStore",
        &[magic(0, 0, b"bluestore block device")]),
    volume("stratis", "a Stratis device", "Stratis", &[
        magic(512, 4, b"!Stra0tis\x86\xff\x02^\x41rh"),
        magic(512 * 9, 4, b"!Stra0tis\x86\xff\x02^\x41rh")])
        .uuid(Field::Made(|view, base| {
            let id = text::label(&view.bytes(base + 64, 32))?;
            Some(text::dashed(&id, &[8, 12, 16, 20]))
        })),
    volume("vinum", "a Vinum drive", "Vinum", &[magic(4 * KIB, 0, b"VINUM-1\0"),
        magic(4 * KIB, 0, b"IN VINO\0")]).label(Field::Text(48, 32)),
    volume("core_storage", "a Core Storage volume", "Core Storage",
        &[magic(0, 88, b"CS"), magic_from_end(1, 88, b"CS")]).check(is_core_storage),
    volume("storage_spaces", "a member of a Windows storage pool", "Storage Spaces",
        &[magic(0, 0, b"SPACEDB")]),
    volume("vdo", "a VDO device", "VDO", &[magic(0, 0, b"dmvdo001")]).uuid(Field::Uuid(40)),
    volume("ubi", "a UBI device", "UBI", &[magic(0, 0, b"UBI#")])
        .uuid(Field::Made(|view, base| Some(view.u32_be(base + 24).to_string()))),
    volume("VMFS_volume_member", "a member of a VMFS volume", "VMFS member",
        &[magic(1 << 20, 0, b"\x0d\xd0\x01\xc0")]).uuid(Field::Made(|view, base| {
            text::label(&view.bytes(base + 512 + 20, 35)).or_else(|| vmfs_uuid(view, base + 130))
        })),
    volume("oracleasm", "an Oracle ASM disk", "Oracle ASM", &[magic(0, 32, b"ORCLDISK")])
        .label(Field::Text(40, 24)),
    volume("drbdmanage_control_volume", "a DRBD control volume", "DRBD control",
        &[magic(0, 0, b"$DRBDmgr=q")]).least(64 * KIB).uuid(Field::Made(|view, base| {
            text::label(&view.bytes(base + 11, 32))
        })),
    Signature::new(Other, "drbdproxy_datalog", "a DRBD proxy log", "DRBD proxy log",
        &[magic(0, 0, b"DRBDdlh*")]).least(16 * KIB).uuid(Field::Uuid(16)),
    volume("isw_raid_member", "a member of an Intel RAID", "Intel RAID",
        &[magic_from_end(2, 0, b"Intel Raid ISM Cfg Sig. ")]).least(RAID_LEAST),
    volume("lsi_mega_raid_member", "a member of an LSI RAID", "LSI RAID",
        &[magic_from_end(1, 0, b"$XIDE$")]).least(RAID_LEAST),
    volume("nvidia_raid_member", "a member of an NVIDIA RAID", "NVIDIA RAID",
        &[magic_from_end(2, 0, b"NVIDIA")]).least(RAID_LEAST),
    volume("jmicron_raid_member", "a member of a JMicron RAID", "JMicron RAID",
        &[magic_from_end(1, 0, b"JM")]).least(RAID_LEAST),
    volume("adaptec_raid_member", "a member of an Adaptec RAID", "Adaptec RAID",
        &[magic_from_end(1, 0, b"\x37\xfc\x4d\x1e")]).least(RAID_LEAST)
        .check(|view, base| view.has(base + 256, b"DPTM")),
    volume("hpt45x_raid_member", "a member of a HighPoint RAID", "HighPoint RAID",
        &[magic_from_end(11, 0, b"\xf3\x16\x78\x5a"), magic_from_end(11, 0, b"\xfd\x16\x78\x5a")])
        .least(RAID_LEAST),
    volume("hpt37x_raid_member", "a member of a HighPoint RAID", "HighPoint RAID",
        &[magic(4 * KIB, 544, b"\xf0\x16\x78\x5a"), magic(4 * KIB, 544, b"\xfd\x16\x78\x5a")]),
    volume("promise_fasttrack_raid_member", "a member of a Promise RAID", "Promise RAID", PROMISE)
        .least(256 * KIB),
    volume("ddf_raid_member", "a member of a DDF RAID", "DDF RAID", &[
        magic_from_end(1, 0, b"\xde\x11\xde\x11"), magic_from_end(1, 0, b"\x11\xde\x11\xde"),
        magic_from_end(257, 0, b"\xde\x11\xde\x11"), magic_from_end(257, 0, b"\x11\xde\x11\xde")])
        .least(192 * KIB).uuid(Field::Text(8, 24)),
    Signature::new(Other, "swap", "a swap area", "swap", &[
        magic(0, 0xff6, b"SWAPSPACE2"), magic(0, 0x1ff6, b"SWAPSPACE2"),
        magic(0, 0x3ff6, b"SWAPSPACE2"), magic(0, 0x7ff6, b"SWAPSPACE2"),
        magic(0, 0xfff6, b"SWAPSPACE2")])
        .label(Field::Text(1024 + 28, 16)).uuid(Field::Uuid(1024 + 12)),
    Signature::new(Other, "swap", "a swap area of version 0", "swap", &[
        magic(0, 0xff6, b"SWAP-SPACE"), magic(0, 0x1ff6, b"SWAP-SPACE"),
        magic(0, 0x3ff6, b"SWAP-SPACE"), magic(0, 0x7ff6, b"SWAP-SPACE"),
        magic(0, 0xfff6, b"SWAP-SPACE")]),
    Signature::new(Other, "swsuspend", "a suspended system", "suspend image", SUSPEND)
        .label(Field::Text(1024 + 28, 16)).uuid(Field::Uuid(1024 + 12)),
];

#[rustfmt::skip]
const PROMISE: &[Magic] = &[
    promise(63), promise(255), promise(256), promise(16), promise(399), promise(591), promise(675),
    promise(735), promise(911), promise(974), promise(991), promise(951), promise(3087),
];

const fn promise(sectors: u64) -> Magic {
    magic_from_end(sectors, 0, b"Promise Technology, Inc.")
}

#[rustfmt::skip]
const SUSPEND: &[Magic] = &[
    magic(0, 0, b"\xed\xc3\x02\xe9\x98\x56\xe5\x0c"),
    magic(0, 0xff6, b"S1SUSPEND"), magic(0, 0x1ff6, b"S1SUSPEND"), magic(0, 0x3ff6, b"S1SUSPEND"),
    magic(0, 0x7ff6, b"S1SUSPEND"), magic(0, 0xfff6, b"S1SUSPEND"),
    magic(0, 0xff6, b"S2SUSPEND"), magic(0, 0x1ff6, b"S2SUSPEND"), magic(0, 0x3ff6, b"S2SUSPEND"),
    magic(0, 0x7ff6, b"S2SUSPEND"), magic(0, 0xfff6, b"S2SUSPEND"),
    magic(0, 0xff6, b"ULSUSPEND"), magic(0, 0x1ff6, b"ULSUSPEND"), magic(0, 0x3ff6, b"ULSUSPEND"),
    magic(0, 0x7ff6, b"ULSUSPEND"), magic(0, 0xfff6, b"ULSUSPEND"),
    magic(0, 0xff6, b"LINHIB0001"), magic(0, 0x1ff6, b"LINHIB0001"),
    magic(0, 0x3ff6, b"LINHIB0001"), magic(0, 0x7ff6, b"LINHIB0001"),
    magic(0, 0xfff6, b"LINHIB0001"),
];

/// The name is enough: the volume may be the last one that still has a key. What looks like a FAT
/// is BitLocker To Go if one of the three copies of the metadata is there.
fn is_bitlocker(view: &mut View<'_>, _base: u64) -> bool {
    view.has(3, b"-FVE-FS-")
        || [440, 448, 456].into_iter().any(|field| {
            let at = view.u64_le(field);
            at != 0 && view.has(at, b"-FVE-FS-")
        })
}

/// A physical volume of Core Storage: version 1, and a block of the type of its header.
fn is_core_storage(view: &mut View<'_>, base: u64) -> bool {
    view.u16_le(base + 8) == 1 && view.u16_le(base + 10) == 0x10
}

/// A label in one of the first four sectors. One whose CRC is wrong is still the only way to a
/// volume group's data.
pub fn probe_lvm2(view: &mut View<'_>) -> Option<Content> {
    let mut found: Option<Content> = None;
    for base in (0..4).map(|sector| sector * 512) {
        let label = view.bytes(base, 512);
        if label.len() < 512 || !label.starts_with(b"LABELONE") {
            continue;
        }
        let title = match label[24..32] == *b"LVM2 001"
            && lvm_crc(&label[20..]) == view.u32_le(base + 16)
        {
            true => "an LVM2 physical volume",
            false => "a damaged LVM2 physical volume",
        };
        let content = found.take().unwrap_or_else(|| {
            let (mut title, mut short) = (title.to_owned(), "LVM2 PV".to_owned());
            if let Some(group) = lvm_group(view, &label) {
                title = format!("{title} of the group {group}");
                short = format!("{short} of {group}");
            }
            let mut content = Content::new("LVM2_member", &title, &short, Volume);
            content.uuid = lvm_uuid(&label[32..64]);
            content
        });
        found = Some(content.at(base, 8));
    }
    found
}

/// The name of a volume group: the first word of the text in the metadata area. A volume that is in
/// none has no text.
fn lvm_group(view: &mut View<'_>, label: &[u8]) -> Option<String> {
    const NAME_BYTES_MAX: usize = 127;
    // Behind the identifier and the size: areas of data up to an empty one, areas of metadata.
    let areas = label
        .get(u32_le(label, 20) as usize + 40..)?
        .chunks_exact(16);
    let mut areas = areas.map(|area| (u64_le(area, 0), u64_le(area, 8)));
    areas.by_ref().find(|area| area.0 == 0)?;
    let (start, size) = areas.next().filter(|area| area.0 > 0)?;
    let header = view.bytes(start, 512);
    if header.get(4..20)? != b" LVM2 x[5A%r0N*>" {
        return None;
    }
    let text = u64_le(&header, 40);
    // The area is a ring behind its header.
    let mut name = match (512..size).contains(&text) {
        true => view.bytes(start.checked_add(text)?, (size - text).min(128) as usize),
        false => return None,
    };
    name.extend(view.bytes(start.checked_add(512)?, 128 - name.len().min(128)));
    let length = name.iter().position(|byte| *byte == b' ')?;
    let valid = |byte: &u8| byte.is_ascii_alphanumeric() || b"+_.-".contains(byte);
    let name = &name[..length];
    let is_name = (1..=NAME_BYTES_MAX).contains(&length) && name.iter().all(valid);
    is_name.then(|| String::from_utf8_lossy(name).into_owned())
}

/// The CRC-32 of LVM2: the usual polynomial with a start of its own and no inversion.
pub(crate) fn lvm_crc(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(!0xf597_a6cf);
    hasher.update(bytes);
    !hasher.finalize()
}

/// LVM's identifiers are 32 letters and digits, printed as 6-4-4-4-4-4-6.
fn lvm_uuid(bytes: &[u8]) -> Option<String> {
    let id = text::label(bytes)?;
    Some(text::dashed(&id, &[6, 10, 14, 18, 22, 26]))
}

/// DRBD's internal metadata begin 4 KiB before the end.
pub fn probe_drbd(view: &mut View<'_>) -> Option<Content> {
    const MAGIC_08: u32 = 0x8374_026b;
    const MAGIC_84_UNCLEAN: u32 = 0x8374_026c;
    const MAGIC_09: u32 = 0x8374_026d;
    let base = view.size_bytes().checked_sub(4096)?;
    if view.size_bytes() < RAID_LEAST {
        return None;
    }
    let uuid = match view.u32_be(base + 60) {
        MAGIC_08 | MAGIC_84_UNCLEAN => 40,
        MAGIC_09 => 48,
        _ => return None,
    };
    let mut content = Content::new("drbd", "a DRBD device", "DRBD", Volume).at(base + 60, 4);
    content.uuid = Some(format!("{:x}", view.u64_be(base + uuid)));
    Some(content)
}
