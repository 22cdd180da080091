//! Where a result may be written: a path that is one letter off may be that of a disk.

use crate::in_use::use_of;
use crate::lock::permission::{READ, RESIZE, WRITE};
use crate::lock::{self, Claim};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Refuses as the file of a result a block device, and an image that the kernel or another program
/// uses. A missing file is none.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] with its kind.
pub fn refuse_disk(path: &Path) -> io::Result<()> {
    let Ok(about) = std::fs::metadata(path) else { return Ok(()) };
    let refused = |what: &str| {
        let text = format!("{what}; name a file for the result");
        Err(io::Error::new(io::ErrorKind::InvalidInput, text))
    };
    if about.file_type().is_block_device() {
        return refused("a block device");
    }
    if let Some(found) = use_of(path) {
        return refused(&format!("it {found}"));
    }
    match about.is_file() && is_locked(path) {
        true => refused("another program has it open as an image"),
        false => Ok(()),
    }
}

/// Whether another program has locked the file as the image of a disk.
fn is_locked(path: &Path) -> bool {
    let changer = Claim {
        needs: READ | WRITE | RESIZE,
        denies: WRITE | RESIZE,
    };
    // A file that cannot be read or locked is reported when it is opened for writing.
    File::open(path).is_ok_and(|file| {
        let claimed = lock::claim(&file, changer);
        claimed.is_err_and(|refused| refused.is_held())
    })
}
