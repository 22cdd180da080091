//! ext2, ext3, ext4 and the external journal. Source: Linux `fs/ext4/ext4.h`, `struct
//! ext4_super_block`.

use super::view::View;
use super::{Content, ContentUse, text};

const SUPERBLOCK: u64 = 1024;
const MAGIC_OFFSET: u64 = 56;

const HAS_JOURNAL: u32 = 0x4;
const JOURNAL_DEVICE: u32 = 0x8;
/// The features of ext2 and ext3: incompatible ones, and those that forbid writing.
const EXT2_INCOMPATIBLE: u32 = 0x2 | 0x10;
const EXT3_INCOMPATIBLE: u32 = 0x2 | 0x4 | 0x10;
const EXT3_READ_ONLY: u32 = 0x1 | 0x2 | 0x4;
/// The flag of a file system that was made by a development version.
const TEST_FILE_SYSTEM: u32 = 0x4;

pub fn probe(view: &mut View<'_>) -> Option<Content> {
    if !view.has(SUPERBLOCK + MAGIC_OFFSET, b"\x53\xef") {
        return None;
    }
    let word = |view: &mut View<'_>, at: u64| view.u32_le(SUPERBLOCK + at);
    let (compatible, incompatible) = (word(view, 92), word(view, 96));
    let (read_only, flags) = (word(view, 100), word(view, 352));
    let journal = compatible & HAS_JOURNAL != 0;
    let known = |incompatible_known: u32| {
        incompatible & !incompatible_known == 0 && read_only & !EXT3_READ_ONLY == 0
    };
    let (name, title) = match () {
        () if incompatible & JOURNAL_DEVICE != 0 => ("jbd", "an external ext journal"),
        () if !journal && known(EXT2_INCOMPATIBLE) => ("ext2", "an ext2 file system"),
        () if journal && known(EXT3_INCOMPATIBLE) => ("ext3", "an ext3 file system"),
        () if flags & TEST_FILE_SYSTEM != 0 => ("ext4dev", "an ext4dev file system"),
        () => ("ext4", "an ext4 file system"),
    };
    let usage = match name {
        "jbd" => ContentUse::Other,
        _ => ContentUse::FileSystem,
    };
    let mut content = Content::new(name, title, name, usage).at(SUPERBLOCK + MAGIC_OFFSET, 2);
    content.label = text::label(&view.bytes(SUPERBLOCK + 120, 16));
    content.uuid = text::uuid(&view.bytes(SUPERBLOCK + 104, 16));
    Some(content)
}
