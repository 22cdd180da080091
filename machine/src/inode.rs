//! The path of a file of which only its inode number is known.
//!
//! File systems whose handles are an inode number and a generation (ext2, ext3, ext4, f2fs) take
//! the generation 0 for any. The kernel knows the path while the file's name is in its cache.
//!
//! Sources: open_by_handle_at(2), fs/libfs.c (`generic_fh_to_dentry`), fs/ext4/super.c
//! (`ext4_nfs_get_inode`), include/linux/exportfs.h (`FILEID_INO32_GEN`).

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// `FILEID_INO32_GEN`: a handle of an inode and its generation, 32 bits each.
const INODE_AND_GENERATION: i32 = 1;

/// `struct file_handle` with the eight bytes of such a handle.
#[repr(C)]
struct Handle {
    bytes: u32,
    kind: i32,
    inode: u32,
    generation: u32,
}

/// The path of the file with that number on the file system mounted at `mount`.
///
/// # Errors
/// EPERM without CAP_DAC_READ_SEARCH, EOPNOTSUPP and ESTALE where the file system or the number
/// allow no such handle, ENOENT when the kernel knows no path.
pub fn path(mount: &Path, inode: u32) -> io::Result<PathBuf> {
    let mount = File::open(mount)?;
    let mut handle = Handle {
        bytes: 8,
        kind: INODE_AND_GENERATION,
        inode,
        generation: 0,
    };
    // SAFETY: the handle is as long as its first word says and lives until the call returns.
    let result = unsafe {
        libc::syscall(
            libc::SYS_open_by_handle_at,
            mount.as_raw_fd(),
            &raw mut handle,
            libc::O_PATH | libc::O_CLOEXEC,
        )
    };
    let descriptor = match i32::try_from(result) {
        Ok(descriptor) if descriptor >= 0 => descriptor,
        _ => return Err(io::Error::last_os_error()),
    };
    // SAFETY: a descriptor that the kernel made for this call, and that nothing else owns.
    let file = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let path = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    // A name that is not in the cache reads as the root, and an unrelated path may have the text.
    let is_it = |path: &Path| {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(path).is_ok_and(|found| found.ino() == u64::from(inode))
    };
    let deleted = path.to_string_lossy().ends_with(" (deleted)");
    match deleted || is_it(&path) {
        true => Ok(path),
        false => Err(io::ErrorKind::NotFound.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no open_by_handle_at(2)")]
    fn a_file_is_found_by_its_number_where_that_is_allowed() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().canonicalize().expect("a path").join("a name");
        std::fs::write(&file, b"x").expect("a file");
        let inode = std::fs::metadata(&file).expect("its inode").ino();
        let Ok(inode) = u32::try_from(inode) else { return };
        match path(folder.path(), inode) {
            Ok(found) => assert_eq!(found, file),
            Err(why) => eprintln!("SKIP a_file_is_found_by_its_number: {why}"),
        }
        assert!(path(folder.path(), u32::MAX).is_err());
        assert!(path(&folder.path().join("none"), inode).is_err());
    }
}
