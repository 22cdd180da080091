//! A member of a ZFS pool: uberblocks in the labels at both ends; the pool's name and GUID are in
//! the list of names and values of a label. Source: "ZFS On-Disk Specification", OpenZFS
//! `include/sys/vdev_impl.h`, and RFC 4506 (XDR), in which the list is written.

use super::view::View;
use super::{Content, ContentPlace, ContentUse, text};

const LABEL_BYTES: u64 = 256 << 10;
const LIST_OFFSET: u64 = 16 << 10;
const LIST_BYTES: usize = 112 << 10;
const RING_STEP_BYTES: u64 = 1 << 10;
const MAGIC: u64 = 0x00ba_b10c;
/// Ends the list, behind its checksum, also where no uberblock is left.
const LIST_END_MAGIC: u64 = 0x0210_da7a_b10c_7a11;
const LIST_END_BYTES: u64 = 40;

const TYPE_UINT64: u32 = 8;
const TYPE_STRING: u32 = 9;

pub fn probe(view: &mut View<'_>) -> Option<Content> {
    let last = view.size_bytes() / LABEL_BYTES * LABEL_BYTES;
    let ends = [
        last.checked_sub(2 * LABEL_BYTES),
        last.checked_sub(LABEL_BYTES),
    ];
    let mut labels: Vec<u64> = [Some(0), Some(LABEL_BYTES)]
        .into_iter()
        .chain(ends)
        .flatten()
        .collect();
    labels.sort_unstable();
    labels.dedup();
    let mut places = Vec::new();
    let mut named = None;
    for label in labels {
        let ring = view.bytes(label + LABEL_BYTES / 2, (LABEL_BYTES / 2) as usize);
        let blocks = ring.chunks(RING_STEP_BYTES as usize).zip(0_u64..);
        let found = blocks.filter(|(block, _)| {
            block.starts_with(&MAGIC.to_le_bytes()) || block.starts_with(&MAGIC.to_be_bytes())
        });
        let before = places.len();
        places.extend(found.map(|(_, number)| ContentPlace {
            offset_bytes: label + LABEL_BYTES / 2 + number * RING_STEP_BYTES,
            length_bytes: 8,
        }));
        let end = label + LABEL_BYTES / 2 - LIST_END_BYTES;
        if [view.u64_le(end), view.u64_be(end)].contains(&LIST_END_MAGIC) {
            places.push(ContentPlace {
                offset_bytes: end,
                length_bytes: 8,
            });
        }
        if named.is_none() && places.len() > before {
            named = pool(&view.bytes(label + LIST_OFFSET, LIST_BYTES));
        }
    }
    if places.is_empty() {
        return None;
    }
    let usage = ContentUse::Volume;
    let mut content = Content::new("zfs_member", "a member of a ZFS pool", "ZFS pool", usage);
    content.places = places;
    if let Some((name, guid)) = named {
        content.label = text::label(name.as_bytes());
        content.uuid = guid.map(|guid| guid.to_string());
    }
    Some(content)
}

/// The pool's name and GUID: pairs of the outermost list. A nested list is a value like another, so
/// it is passed over by its size.
fn pool(list: &[u8]) -> Option<(String, Option<u64>)> {
    // Encoding and byte order, then version and flags of the list.
    let mut at = 12;
    let (mut name, mut guid) = (None, None);
    // Each pair has at least 20 bytes.
    for _ in 0..list.len() / 20 {
        let word = |at: usize| crate::bytes::u32_be(list, at);
        let size = word(at) as usize;
        if size < 20 || at + size > list.len() {
            break;
        }
        let key_length = word(at + 8) as usize;
        let value = at + 12 + key_length.div_ceil(4).saturating_mul(4);
        let key = list
            .get(at + 12..)
            .and_then(|rest| rest.get(..key_length))?;
        if value + 8 > at + size {
            break;
        }
        match (key, word(value)) {
            (b"name", TYPE_STRING) => {
                let length = word(value + 8) as usize;
                let text = list.get(value + 12..).and_then(|rest| rest.get(..length))?;
                name = Some(String::from_utf8_lossy(text).into_owned());
            }
            (b"pool_guid", TYPE_UINT64) => guid = Some(crate::bytes::u64_be(list, value + 8)),
            _ => {}
        }
        at += size;
    }
    name.map(|name| (name, guid))
}
