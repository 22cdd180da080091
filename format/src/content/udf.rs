//! UDF: the recognition sequence, the anchor, and the descriptors that it names. Sources: ECMA-167,
//! parts 2 and 3; OSTA UDF 2.60.

use super::view::View;
use super::{Content, ContentUse, text};
use crate::text::hex;

const SEQUENCE: u64 = 32 << 10;
/// Descriptors of either sequence that are looked at.
const DESCRIPTORS_MAX: u64 = 64;

const TAG_PRIMARY: u16 = 1;
const TAG_ANCHOR: u16 = 2;
const TAG_LOGICAL: u16 = 6;
const TAG_END: u16 = 8;

pub fn probe(view: &mut View<'_>) -> Option<Content> {
    complete(view).or_else(|| {
        // A volume whose anchor cannot be found still begins with its recognition sequence.
        let (usage, title) = (ContentUse::FileSystem, "a damaged UDF file system");
        let begun = view.has(SEQUENCE + 1, b"BEA01");
        begun.then(|| Content::new("udf", title, "UDF", usage).at(SEQUENCE + 1, 5))
    })
}

fn complete(view: &mut View<'_>) -> Option<Content> {
    let small = recognised(view, 2048).and_then(|at| Some((at, anchor(view, &[512, 1024, 2048])?)));
    let large = |view: &mut View<'_>| Some((recognised(view, 4096)?, anchor(view, &[4096])?));
    let (place, (block, anchor)) = small.or_else(|| large(view))?;
    let (usage, title) = (ContentUse::FileSystem, "a UDF file system");
    let mut content = Content::new("udf", title, "UDF", usage).at(place + 1, 5);
    let count = u64::from(view.u32_le(anchor + 16)) / block;
    let first = u64::from(view.u32_le(anchor + 20));
    for number in 0..count.min(DESCRIPTORS_MAX) {
        let at = (first + number) * block;
        let tag = view.u16_le(at);
        if tag == TAG_END || u64::from(view.u32_le(at + 12)) != first + number {
            break;
        }
        match tag {
            TAG_PRIMARY if content.uuid.is_none() && is_unicode(view, at + 200) => {
                content.uuid = string(view, at + 72).and_then(|set| uuid(&set));
            }
            TAG_LOGICAL if content.label.is_none() && is_unicode(view, at + 20) => {
                content.label = string(view, at + 84).and_then(|name| text::label(name.as_bytes()));
            }
            _ => {}
        }
    }
    Some(content)
}

/// Where NSR02 or NSR03 stands in a sequence of known descriptors of `step` bytes.
fn recognised(view: &mut View<'_>, step: u64) -> Option<u64> {
    for number in 0..DESCRIPTORS_MAX {
        let at = SEQUENCE + number * step;
        match &view.array::<5>(at + 1) {
            b"NSR02" | b"NSR03" => return Some(at),
            b"BEA01" | b"BOOT2" | b"CD001" | b"CDW02" | b"TEA01" => {}
            _ => return None,
        }
    }
    None
}

/// Block size, and where the anchor descriptor begins.
fn anchor(view: &mut View<'_>, blocks: &[u64]) -> Option<(u64, u64)> {
    let places = blocks
        .iter()
        .flat_map(|block| [(*block, 256), (*block, 512)]);
    let mut found = places.filter(|(block, number)| {
        let at = block * number;
        view.u16_le(at) == TAG_ANCHOR && u64::from(view.u32_le(at + 12)) == *number
    });
    found.next().map(|(block, number)| (block, block * number))
}

fn is_unicode(view: &mut View<'_>, charset: u64) -> bool {
    view.byte(charset) == 0 && view.has(charset + 1, b"OSTA Compressed Unicode")
}

/// A `dstring` of 128 bytes: compression, characters, and in the last byte how many are used.
fn string(view: &mut View<'_>, at: u64) -> Option<String> {
    let bytes: [u8; 128] = view.array(at);
    let length = usize::from(bytes[127]).saturating_sub(1).min(126);
    let characters = &bytes[1..1 + length];
    match bytes[0] {
        8 | 254 => Some(characters.iter().map(|byte| char::from(*byte)).collect()),
        16 | 255 => {
            let pairs = characters.chunks_exact(2);
            let units: Vec<u16> = pairs.map(|p| u16::from_be_bytes([p[0], p[1]])).collect();
            Some(String::from_utf16_lossy(&units))
        }
        _ => None,
    }
}

/// The first sixteen characters of the volume set's name, which UDF wants to be unique: as they are
/// where they are hexadecimal, else the hexadecimal form of the first bytes.
fn uuid(set: &str) -> Option<String> {
    let bytes = set.as_bytes();
    if bytes.len() < 8 {
        return None;
    }
    let mut first = [0; 16];
    let length = bytes.len().min(16);
    first[..length].copy_from_slice(&bytes[..length]);
    let digits = first
        .iter()
        .take_while(|byte| byte.is_ascii_hexdigit())
        .count();
    let plain = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_lowercase();
    Some(match digits {
        0..8 => hex(&first[..8]),
        8..16 => plain(&first[..8]) + &hex(&first[8..12]),
        _ => plain(&first),
    })
}
