//! A folder of our own for sockets and mounts.

use anyhow::{Context, Result};

/// A folder that goes when it is dropped.
pub struct Folder(pub std::path::PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is left, in the folder for such things.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A folder that only this user can enter, for sockets and mounts of the server.
pub fn own_folder() -> Result<Folder> {
    use std::os::unix::fs::DirBuilderExt;
    let name = format!("ugeom-{}-{:08x}", std::process::id(), fastrand::u32(..));
    let path = std::env::temp_dir().join(name);
    let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
    made.with_context(|| format!("making {}", path.display()))?;
    Ok(Folder(path))
}
