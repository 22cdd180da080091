//! Names of files of which events tell the inode and the file system.
//!
//! | tried | gives |
//! |---|---|
//! | the inode by its handle | the path, on ext2 to ext4 and f2fs, with CAP_DAC_READ_SEARCH |
//! | the open files of the process | the path, while it has the file open |
//! | nothing of these | the inode's number |
//!
//! The page cache of a device has an inode of its own, whose number is that of the device: file
//! systems keep the inodes of their files there.

use crate::event::Dev;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use ugeom_machine::block_device::System;
use ugeom_machine::inode;
use ugeom_machine::mounts::Mount;

/// Open files of a process that are looked at.
const OPEN_MAX: usize = 1024;

/// A file as events tell it: the number of its file system, and its inode.
pub type FileId = (Dev, u64);

/// The name of a file; none where only its number is known.
pub fn name((system, inode): FileId, pid: u32) -> Option<String> {
    let mounts = System::default().mounts();
    let number = (system >> 20, system & 0xf_ffff);
    let mount = mounts.iter().find(|mount| mount.number == number)?;
    let by_handle = || {
        let number = u32::try_from(inode).ok()?;
        inode::path(&mount.point, number).ok()
    };
    let path = by_handle().or_else(|| opened(mount, inode, pid))?;
    Some(path.display().to_string())
}

/// The path of a file that the process has open.
fn opened(mount: &Mount, inode: u64, pid: u32) -> Option<PathBuf> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let links = entries.flatten().take(OPEN_MAX).map(|entry| entry.path());
    let (major, minor) = mount.number;
    let mut found = links.filter(|link| {
        fs::metadata(link).is_ok_and(|it| {
            let device = (rustix::fs::major(it.dev()), rustix::fs::minor(it.dev()));
            it.ino() == inode && device == (major, minor)
        })
    });
    fs::read_link(found.next()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_file_has_a_name_and_one_of_no_file_system_has_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().canonicalize().expect("a path").join("x");
        let file = fs::File::create(&path).expect("a file");
        let it = file.metadata().expect("its inode");
        let mut mount = Mount {
            number: (rustix::fs::major(it.dev()), rustix::fs::minor(it.dev())),
            ..Mount::default()
        };
        let found = |mount: &Mount| opened(mount, it.ino(), std::process::id());
        assert_eq!(found(&mount), Some(path));
        mount.number.1 += 1;
        assert_eq!(found(&mount), None);
        assert_eq!(name((0xfff << 20, 5), std::process::id()), None);
    }
}
