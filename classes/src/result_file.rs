//! Files that results go to: a name that is one letter off may be that of a disk's image.

use std::fs::File;
use std::io::{self, Seek};
use std::os::unix::fs::FileExt;
use std::path::Path;
use ugeom_format::content::{self, Content};
use ugeom_machine::result_file::refuse_disk;

/// Refuses to overwrite a block device, and a file that carries what a disk does: a table, a file
/// system, an image. Files for which `is_replaceable` is true may be overwritten.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] with what it carries; it is a block device; it cannot be read.
pub fn refuse_carrying(path: &Path, is_replaceable: impl Fn(&Content) -> bool) -> io::Result<()> {
    let Ok(about) = std::fs::metadata(path) else { return Ok(()) };
    refuse_disk(path)?;
    if !about.is_file() {
        return Ok(());
    }
    let mut file = File::open(path)?;
    let size_bytes = file.seek(io::SeekFrom::End(0))?;
    let mut found = content::identify(size_bytes, &mut |offset, length| {
        let mut bytes = vec![0; length];
        let read = file.read_exact_at(&mut bytes, offset);
        read.map(|()| bytes).map_err(|error| error.to_string())
    })
    .contents;
    found.retain(|content| !is_replaceable(content));
    match found.first() {
        None => Ok(()),
        Some(first) => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            format!("it carries {first}; nothing was written, name another file"),
        )),
    }
}
