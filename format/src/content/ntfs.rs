//! NTFS: the boot sector's parameters must fit; the label is an attribute of file 3, `$Volume`.
//! Source: Linux `fs/ntfs3/ntfs.h`.

use super::view::View;
use super::{Content, ContentUse, text};

pub fn probe(view: &mut View<'_>) -> Option<Content> {
    if !view.has(3, b"NTFS    ") {
        return None;
    }
    let title = "an NTFS file system";
    let mut content = Content::new("ntfs", title, "NTFS", ContentUse::FileSystem).at(3, 8);
    content.uuid = Some(format!("{:016X}", view.u64_le(72)));
    content.label = label(view);
    Some(content)
}

/// The value of the attribute `$VOLUME_NAME` (0x60).
fn label(view: &mut View<'_>) -> Option<String> {
    let sector = u64::from(view.u16_le(11));
    let cluster = match view.byte(13) {
        sectors @ 0..=128 => u64::from(sectors),
        shift => 1 << (256 - u32::from(shift)).min(20),
    } * sector;
    let record = match view.byte(64) as i8 {
        clusters if clusters > 0 => u64::from(clusters.unsigned_abs()) * cluster,
        shift => 1 << u32::from(shift.unsigned_abs()).min(16),
    };
    if !(256..=4096).contains(&sector) || !(256..=65_536).contains(&record) {
        return None;
    }
    let table = view.u64_le(48).checked_mul(cluster)?;
    let volume = view.bytes(table.checked_add(3 * record)?, record as usize);
    if !volume.starts_with(b"FILE") {
        return None;
    }
    let short = |at: usize| usize::from(crate::bytes::u16_le(&volume, at));
    let long = |at: usize| crate::bytes::u32_le(&volume, at) as usize;
    let mut at = short(20);
    // Each attribute has at least 24 bytes.
    for _ in 0..volume.len() / 24 {
        let (kind, length) = (long(at), long(at + 4));
        if kind == 0xffff_ffff || length < 24 || at.checked_add(length)? > volume.len() {
            return None;
        }
        if kind == 0x60 {
            let start = at + short(at + 20);
            let value = volume.get(start..)?.get(..long(at + 16))?;
            return text::utf16(value, u16::from_le_bytes);
        }
        at += length;
    }
    None
}
