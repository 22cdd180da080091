//! Members of arrays whose metadata need more than a magic number: md, Silicon Image, VIA.
//!
//! Sources: Linux `include/uapi/linux/raid/md_p.h`; libblkid's description of the two firmwares.

use super::view::View;
use super::{Content, ContentUse, text};

const MD_MAGIC: u32 = 0xa92b_4efc;
const MD_RESERVED_BYTES: u64 = 64 << 10;

/// md keeps its superblock 64 KiB before the end (0.90), 8 KiB before it (1.0), at the beginning
/// (1.1) or at 4 KiB (1.2).
pub fn probe_md(view: &mut View<'_>) -> Option<Content> {
    let size = view.size_bytes();
    let aligned = |unit: u64, before: u64| (size / unit * unit).checked_sub(before);
    let mut found = aligned(MD_RESERVED_BYTES, MD_RESERVED_BYTES).and_then(|at| md_0_90(view, at));
    let later = [aligned(4096, 8192), Some(0), Some(4096)];
    for base in later.into_iter().flatten() {
        if view.u32_le(base) != MD_MAGIC {
            continue;
        }
        let content = found.take().unwrap_or_else(|| {
            let mut content = member();
            content.uuid = text::uuid(&view.bytes(base + 16, 16));
            content.label = text::label(&view.bytes(base + 32, 32));
            content
        });
        found = Some(content.at(base, 4));
    }
    found
}

fn member() -> Content {
    let (title, usage) = ("a member of an md RAID", ContentUse::Volume);
    Content::new("linux_raid_member", title, "md RAID", usage)
}

fn md_0_90(view: &mut View<'_>, base: u64) -> Option<Content> {
    let little = view.u32_le(base) == MD_MAGIC;
    if !little && view.u32_be(base) != MD_MAGIC {
        return None;
    }
    let word = |view: &mut View<'_>, at: u64| match little {
        true => view.u32_le(base + at),
        false => view.u32_be(base + at),
    };
    let mut id = word(view, 20).to_be_bytes().to_vec();
    if word(view, 8) >= 90 {
        for at in [52, 56, 60] {
            id.extend(word(view, at).to_be_bytes());
        }
    }
    id.resize(16, 0);
    let mut content = member().at(base, 4);
    content.uuid = text::uuid(&id);
    Some(content)
}

pub fn probe_silicon(view: &mut View<'_>) -> Option<Content> {
    let base = view.sector_before_end(1, 64 << 10)?;
    if view.u32_le(base + 0x60) != 0x2f00_0000 || view.byte(base + 0x116) >= 8 {
        return None;
    }
    let words = view.bytes(base, 0x13e);
    let sum = words.chunks_exact(2).fold(0_u16, |sum, pair| {
        sum.wrapping_add(u16::from_le_bytes([pair[0], pair[1]]))
    });
    let right = sum.wrapping_neg() == view.u16_le(base + 0x13e);
    let (name, title) = (
        "silicon_medley_raid_member",
        "a member of a Silicon Image RAID",
    );
    right.then(|| {
        Content::new(name, title, "Silicon Image RAID", ContentUse::Volume).at(base + 0x60, 4)
    })
}

pub fn probe_via(view: &mut View<'_>) -> Option<Content> {
    let base = view.sector_before_end(1, 64 << 10)?;
    let bytes = view.bytes(base, 51);
    if bytes.len() < 51 || !bytes.starts_with(b"\x55\xaa") || bytes[2] > 2 {
        return None;
    }
    let sum = bytes[..50]
        .iter()
        .fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    let (name, title) = ("via_raid_member", "a member of a VIA RAID");
    (sum == bytes[50])
        .then(|| Content::new(name, title, "VIA RAID", ContentUse::Volume).at(base, 2))
}
