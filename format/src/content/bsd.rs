//! UFS, versions 1 and 2, in either byte order. Source: FreeBSD `sys/ufs/ffs/fs.h`.

use super::view::View;
use super::{Content, ContentUse, text};

const MAGIC_OFFSET: u64 = 1372;
const UFS2: u32 = 0x1954_0119;
/// UFS1, and what other systems made of it: long names, 4 GB files, security.
const UFS1: [u32; 5] = [
    0x0001_1954,
    0x0019_5612,
    0x0009_5014,
    0x0061_2195,
    0x0523_1994,
];
/// Where a superblock may stand (`SBLOCKSEARCH`).
const PLACES: [u64; 4] = [64 << 10, 8 << 10, 0, 256 << 10];

pub fn probe_ufs(view: &mut View<'_>) -> Option<Content> {
    let mut found: Option<Content> = None;
    for base in PLACES {
        let bytes: [u8; 4] = view.array(base + MAGIC_OFFSET);
        let (little, big) = (u32::from_le_bytes(bytes), u32::from_be_bytes(bytes));
        let is_magic = |magic: u32| magic == UFS2 || UFS1.contains(&magic);
        if !is_magic(little) && !is_magic(big) {
            continue;
        }
        let content = match found.take() {
            Some(content) => content,
            None => describe(view, base, is_magic(little), little == UFS2 || big == UFS2),
        };
        found = Some(content.at(base + MAGIC_OFFSET, 4));
    }
    found
}

fn describe(view: &mut View<'_>, base: u64, little: bool, second: bool) -> Content {
    let short = match (second, little) {
        (true, true) => "UFS2",
        (false, true) => "UFS1",
        (true, false) => "UFS2 (big-endian)",
        (false, false) => "UFS1 (big-endian)",
    };
    let title = format!("a {short} file system");
    let mut content = Content::new("ufs", &title, short, ContentUse::FileSystem);
    if second {
        content.label = text::label(&view.bytes(base + 680, 32));
    }
    let word = |view: &mut View<'_>, at: u64| match little {
        true => view.u32_le(base + at),
        false => view.u32_be(base + at),
    };
    let (first, last) = (word(view, 144), word(view, 148));
    content.uuid = (first != 0 || last != 0).then(|| format!("{first:08x}{last:08x}"));
    content
}
