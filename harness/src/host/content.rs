//! The content of a file, and the kernel's treatment of it: holes, encryption, compression.
//!
//! Sources: lseek(2) (`SEEK_DATA`), statx(2) (attributes), mount options of btrfs(5) and f2fs,
//! Documentation/ABI/testing/sysfs-block-dm (`dm/uuid`).

use rustix::fs::{AtFlags, CWD, SeekFrom, StatxFlags, seek, statx};
use std::fs::File;
use std::path::Path;

/// Extents that are looked at in a file: more say nothing new.
const EXTENTS_MAX: usize = 10_000;

/// `STATX_ATTR_COMPRESSED` and `STATX_ATTR_ENCRYPTED` of linux/stat.h.
const COMPRESSED: u64 = 0x4;
const ENCRYPTED: u64 = 0x800;

/// The bytes of a regular file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    pub bytes: u64,
    /// How much of it is not in holes; none where the file system does not say.
    pub data_bytes: Option<u64>,
    /// Whether its first byte is in a hole.
    pub begins_with_hole: bool,
}

impl Content {
    /// Looks at a file; none if it is no regular file.
    pub fn of(path: &Path) -> Option<Self> {
        if !std::fs::metadata(path).ok()?.is_file() {
            return None;
        }
        let file = File::open(path).ok()?;
        let bytes = file.metadata().ok()?.len();
        let data_bytes = data_bytes(&file, bytes);
        let first_is_later = matches!(seek(&file, SeekFrom::Data(0)), Ok(1..));
        Some(Self {
            bytes,
            data_bytes,
            begins_with_hole: first_is_later || (bytes > 0 && data_bytes == Some(0)),
        })
    }
}

/// Bytes of a file that are not in holes.
fn data_bytes(file: &File, bytes: u64) -> Option<u64> {
    let (mut at, mut data) = (0, 0);
    for _ in 0..EXTENTS_MAX {
        let begin = match seek(file, SeekFrom::Data(at)) {
            Ok(begin) => begin,
            Err(rustix::io::Errno::NXIO) => return Some(data),
            Err(_) => return None,
        };
        let end = seek(file, SeekFrom::Hole(begin)).ok()?;
        data += end.saturating_sub(begin);
        at = end;
        if at >= bytes {
            return Some(data);
        }
    }
    None
}

/// Whether the kernel encrypts a file, and whether its file system compresses it.
pub(super) fn encrypted_and_compressed(path: &Path, mount_options: &str) -> (bool, bool) {
    let about = statx(CWD, path, AtFlags::empty(), StatxFlags::BASIC_STATS);
    let attributes = about.map_or(0, |about| about.stx_attributes.bits());
    let has = |bit| attributes & bit != 0;
    let by_option = mount_options.split(',').any(|option| {
        option.starts_with("compress") && !option.ends_with("=no") && !option.ends_with("=none")
    });
    (has(ENCRYPTED), has(COMPRESSED) || by_option)
}

/// Whether a device is encrypted by dm-crypt, from its `dm/uuid`.
pub(super) fn is_dm_crypt(uuid: Option<&str>) -> bool {
    uuid.is_some_and(|uuid| uuid.starts_with("CRYPT-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compression_is_read_from_the_options_of_a_mount() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let compressed = |options: &str| encrypted_and_compressed(file.path(), options).1;
        assert!(compressed("rw,compress=zstd:3") && compressed("compress-force=lzo"));
        assert!(!compressed("rw,compress=no") && !compressed("rw,relatime"));
        assert!(is_dm_crypt(Some("CRYPT-LUKS2-1234")) && !is_dm_crypt(Some("LVM-12")));
        assert_eq!(Content::of(Path::new("/dev/zero")), None);
    }
}
