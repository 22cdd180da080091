//! HFS and HFS+. Source: Apple Technical Note 1150, "HFS Plus Volume Format".

use super::view::View;
use super::{Content, ContentUse, text};
use md5::{Digest, Md5};

const HEADER: u64 = 1024;

pub fn probe(view: &mut View<'_>) -> Option<Content> {
    let signature: [u8; 2] = view.array(HEADER);
    match &signature {
        b"BD" => match &view.array::<2>(HEADER + 124) {
            b"H+" | b"HX" => {
                // HFS+ inside HFS: 512-byte sectors before the first block, then whole blocks.
                let block = u64::from(view.u32_be(HEADER + 20));
                let first = u64::from(view.u16_be(HEADER + 28)) * 512;
                let start = first + u64::from(view.u16_be(HEADER + 126)) * block;
                plus(view, start).map(|content| content.at(HEADER, 2))
            }
            _ => Some(classic(view)),
        },
        b"H+" | b"HX" => plus(view, 0),
        _ => None,
    }
}

fn classic(view: &mut View<'_>) -> Content {
    let usage = ContentUse::FileSystem;
    let mut content = Content::new("hfs", "an HFS file system", "HFS", usage).at(HEADER, 2);
    let length = usize::from(view.byte(HEADER + 36)).min(27);
    content.label = text::label(&view.bytes(HEADER + 37, length));
    content.uuid = uuid(&view.array(HEADER + 116));
    content
}

fn plus(view: &mut View<'_>, start: u64) -> Option<Content> {
    let header = start + HEADER;
    let (short, title) = match &view.array::<2>(header) {
        b"H+" => ("HFS+", "an HFS+ file system"),
        b"HX" => ("HFSX", "an HFSX file system"),
        _ => return None,
    };
    let usage = ContentUse::FileSystem;
    let mut content = Content::new("hfsplus", title, short, usage).at(header, 2);
    content.uuid = uuid(&view.array(header + 104));
    content.label = plus_label(view, start);
    Some(content)
}

/// The name of the root folder: the first record of the first leaf of the catalogue.
fn plus_label(view: &mut View<'_>, start: u64) -> Option<String> {
    let header = start + HEADER;
    let block = u64::from(view.u32_be(header + 40));
    if block < 512 {
        return None;
    }
    // The catalogue's fork data begin at 272; its eight extents 16 bytes later.
    let extents: Vec<(u64, u64)> = (0..8_u64)
        .map(|number| header + 272 + 16 + number * 8)
        .map(|at| (u64::from(view.u32_be(at)), u64::from(view.u32_be(at + 4))))
        .collect();
    let tree = start + extents[0].0 * block;
    let (leaf, size) = (
        u64::from(view.u32_be(tree + 24)),
        u64::from(view.u16_be(tree + 32)),
    );
    if size < 512 {
        return None;
    }
    let mut wanted = leaf * size / block;
    let (first, _) = *extents.iter().find(|(_, count)| {
        let here = wanted < *count;
        if !here {
            wanted -= *count;
        }
        here
    })?;
    let node = start + (first + wanted) * block + leaf * size % block;
    let (kind, parent) = (view.byte(node + 8), view.u32_be(node + 16));
    let length = usize::from(view.u16_be(node + 20));
    // A leaf (-1) whose first key belongs to the parent of the root (1).
    if kind != 0xff || parent != 1 || length > 255 {
        return None;
    }
    text::utf16(&view.bytes(node + 22, 2 * length), u16::from_be_bytes)
}

/// Mac OS X makes a UUID of version 3 from the eight bytes of the volume's identifier.
fn uuid(identifier: &[u8; 8]) -> Option<String> {
    const NAME_SPACE: [u8; 16] = [
        0xb3, 0xe2, 0x0f, 0x39, 0xf2, 0x92, 0x11, 0xd6, 0x97, 0xa4, 0x00, 0x30, 0x65, 0x43, 0xec,
        0xac,
    ];
    if *identifier == [0; 8] {
        return None;
    }
    let digest = Md5::new().chain_update(NAME_SPACE).chain_update(identifier);
    let mut bytes: [u8; 16] = digest.finalize().into();
    bytes[6] = 0x30 | (bytes[6] & 0x0f);
    bytes[8] = 0x80 | (bytes[8] & 0x3f);
    text::uuid(&bytes)
}
