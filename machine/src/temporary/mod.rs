//! Temporary names: files that are put in the place of others when they are whole, and folders that
//! only this user can enter.

mod folder;
mod new_file;

pub use folder::PrivateFolder;
pub use new_file::{NewFile, is_added_to};

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A name in the folder of `path` that no other file has, as far as chance goes: make the file so
/// that one of that name is not overwritten.
pub fn name_beside(path: &Path) -> PathBuf {
    path.with_file_name(format!(".{}.tmp", unused()))
}

/// This process and a random number; [`folder`] reads it.
fn unused() -> String {
    format!("ugeom-{}-{:08x}", std::process::id(), fastrand::u32(..))
}

/// Makes the name of a file durable: it belongs to its folder, which fsync(2) of the file leaves
/// out.
///
/// # Errors
/// The error of fsync(2) of the folder. A file system that has none for folders is no error.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    match File::open(folder.unwrap_or(Path::new(".")))?.sync_all() {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}
