//! An external log of XFS: a log record's header at the beginning of a sector in the first 256 KiB.
//! Source: Linux `fs/xfs/libxfs/xfs_log_format.h`, `struct xlog_rec_header`.

use super::view::View;
use super::{Content, ContentUse, text};

const SECTORS: u64 = 512;
const LEAST_BYTES: u64 = 2 << 20;

pub fn probe(view: &mut View<'_>) -> Option<Content> {
    if view.size_bytes() < LEAST_BYTES {
        return None;
    }
    for sector in 0..SECTORS {
        let base = sector * 512;
        if view.has(base, b"XFSB") {
            return None;
        }
        if !view.has(base, b"\xfe\xed\xba\xbe") {
            continue;
        }
        let (version, length) = (view.u32_be(base + 8), view.u32_be(base + 12));
        let right = version != 0
            && version & !3 == 0
            && (1..=i32::MAX as u32).contains(&length)
            && (1..=3).contains(&view.u32_be(base + 300));
        if right {
            let (usage, title) = (ContentUse::Other, "an external XFS log");
            let content = Content::new("xfs_external_log", title, "XFS log", usage);
            let mut content = content.at(base, 4);
            content.uuid = text::uuid(&view.bytes(base + 304, 16));
            return Some(content);
        }
    }
    None
}
