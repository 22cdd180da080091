//! Where a result may be written: a path that is one letter off may be that of a disk.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Refuses a block device as the file of a result. What does not exist yet is none.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] for a block device.
pub fn refuse_block_device(path: &Path) -> io::Result<()> {
    let is_disk = std::fs::metadata(path).is_ok_and(|about| about.file_type().is_block_device());
    match is_disk {
        false => Ok(()),
        true => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a block device; name a file for the result",
        )),
    }
}
