//! VMDK images: which files they consist of, for `qemu-nbd` to open those and no others.
//!
//! ```text
//!   snap.vmdk   parentCID=9b20db1c parentFileNameHint="base.vmdk"     grains that were written
//!       |
//!   base.vmdk   CID=9b20db1c   RW 4192256 SPARSE "base-s001.vmdk"     all others
//! ```
//! An image names its extents and its parent in a text, the descriptor, which may come from a
//! stranger. Extents have to be regular files in the folder of the image. The parent of a snapshot
//! or linked clone follows the rule of backing files (`chain`), and its content identifier has to
//! be the one that the image states: a parent that was written to since then gives wrong data.
//! The text itself is read by `ugeom_format::vmdk`.

use super::chain::{Allowed, folder, resolve};
use super::child::{file_node, real_path, start_of};
use super::cut::warn_of;
use super::{FileKind, ImageFormat, Settings, bytes_of, malformed, read_at, recognise};
use crate::build::{BuildError, refuse_in_use};
use crate::path::{path_of, text_of};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use ugeom_format::vmdk::{
    DESCRIPTOR_BYTES_MAX, Descriptor, Extent, ExtentKind, Parent, SparseHeader,
    grains::{self, Fault},
};

/// The header of a sparse extent fits in these bytes.
const HEADER_BYTES: u64 = 512;

/// The node of qemu's block layer for an image, its extents and its parents.
///
/// # Errors
/// A file is missing, or may not be followed; a parent has changed; a compressed image is to be
/// written to.
pub(super) fn node(settings: &Settings<'_>, writable: bool) -> Result<Value, BuildError> {
    let shown = settings.path;
    if writable {
        check_writable(shown)?;
    }
    let top = real_path(shown)?;
    let allowed = Allowed::of(shown, &top, settings.backing);
    let mut wanted = read(shown, &top, writable)?.parent;
    let mut chain = vec![top];
    while let Some(parent) = wanted {
        allowed.check_depth(chain.len())?;
        let from = &chain[chain.len() - 1];
        let path = find(&allowed, from, &parent)?;
        if chain.contains(&path) {
            let problem = format!("its parents form a loop at {}", text_of(&path));
            return Err(BuildError::refused(shown, problem));
        }
        let found = read(&text_of(&path), &path, false)?;
        if found.content_id != Some(parent.content_id) {
            let stated = found.content_id.map(|id| format!("{id:08x}"));
            let problem = format!(
                "its parent {} has changed since: its CID is {}, the snapshot was made on {:08x}",
                text_of(&path),
                stated.as_deref().unwrap_or("missing"),
                parent.content_id
            );
            return Err(BuildError::refused(&text_of(from), problem));
        }
        log::warn!("{shown}: based on {} (vmdk)", text_of(&path));
        wanted = found.parent;
        chain.push(path);
    }
    let mut node = Value::Null;
    for path in chain.iter().rev() {
        let file = file_node(path, !settings.shared)?;
        node = json!({ "driver": ImageFormat::Vmdk.name(), "file": file, "backing": node });
    }
    Ok(node)
}

/// The file of a parent.
fn find(allowed: &Allowed<'_>, from: &Path, parent: &Parent) -> Result<PathBuf, BuildError> {
    let named = resolve(allowed.path, from, &parent.name, "parent")?;
    let wrong = |why: &str| {
        BuildError::refused(
            allowed.path,
            format!("its parent {} {why}", text_of(&named)),
        )
    };
    let path = std::fs::canonicalize(&named)
        .map_err(|error| wrong(&format!("cannot be opened: {error}")))?;
    allowed.check(&path, "parent")?;
    // A FIFO would wait for a writer.
    if !path.is_file() {
        return Err(wrong("is no regular file"));
    }
    let kind = File::open(&path).and_then(|file| Ok(recognise(&file, bytes_of(&file)?)));
    match kind {
        Ok(FileKind::Image(ImageFormat::Vmdk)) => Ok(path),
        Ok(_) => Err(wrong("is no vmdk image")),
        Err(error) => Err(wrong(&format!("cannot be read: {error}"))),
    }
}

/// Reads the descriptor of an image, and checks its extents.
///
/// # Errors
/// An extent is no regular file in the folder of the image, or is in use and would be written to;
/// a write would destroy a part of one; qemu might read the descriptor in another way.
fn read(shown: &str, path: &Path, writable: bool) -> Result<Descriptor, BuildError> {
    let start = start_of(path, DESCRIPTOR_BYTES_MAX as u64 + 1);
    let start = start.map_err(BuildError::os("reading", shown))?;
    check_size(shown, "a VMDK image", &start)?;
    let descriptor = Descriptor::parse(&start);
    let descriptor = descriptor.map_err(|error| malformed(shown, &error.to_string()))?;
    for extent in &descriptor.extents {
        let file = check_extent(shown, path, extent)?;
        if writable {
            refuse_in_use(&file, &text_of(&file))?;
            check_tables(&text_of(&file), &file)?;
        }
        warn_of(&text_of(&file), &file, ImageFormat::Vmdk);
    }
    if writable {
        check_tables(shown, path)?;
    }
    warn_of(shown, path, ImageFormat::Vmdk);
    Ok(descriptor)
}

/// # Errors
/// A write would destroy tables or data of the file.
fn check_tables(shown: &str, path: &Path) -> Result<(), BuildError> {
    let fault = File::open(path).and_then(|file| {
        let bytes = bytes_of(&file)?;
        grains::fault(bytes, &mut |at, length| read_at(&file, at, length))
    });
    match fault.map_err(BuildError::os("reading", shown))? {
        None => Ok(()),
        Some(fault) => {
            let help = match fault {
                // qemu refuses them, too.
                Fault::Sizes => "",
                _ => "; `qemu-img convert` copies what can be read",
            };
            let problem = format!("cannot be written to: {fault}{help}");
            Err(BuildError::refused(shown, problem))
        }
    }
}

/// A sparse extent of 0 sectors only holds a descriptor; qemu then follows its extents.
///
/// # Errors
/// This is one.
fn check_size(shown: &str, what: &str, start: &[u8]) -> Result<(), BuildError> {
    match SparseHeader::decode(start) {
        Some(SparseHeader { sectors: 0, .. }) => {
            let problem = format!("{what} of 0 sectors is not read here");
            Err(malformed(shown, &problem))
        }
        _ => Ok(()),
    }
}

/// qemu-nbd opens a compressed VMDK image for writing, changes it, and then fails to write to it.
///
/// # Errors
/// The image is compressed.
fn check_writable(shown: &str) -> Result<(), BuildError> {
    let start = start_of(&path_of(shown), HEADER_BYTES);
    let start = start.map_err(BuildError::os("reading", shown))?;
    if SparseHeader::decode(&start).is_some_and(|header| header.is_compressed) {
        let problem = "a compressed vmdk image (streamOptimized) can only be read (`qemu-img \
                       convert` makes a copy that can be written)";
        return Err(BuildError::refused(shown, problem));
    }
    Ok(())
}

fn check_extent(shown: &str, image: &Path, extent: &Extent) -> Result<PathBuf, BuildError> {
    let path = folder(image).join(OsStr::from_bytes(&extent.name));
    let name = text_of(Path::new(OsStr::from_bytes(&extent.name)));
    let wrong = |why: &str| BuildError::refused(shown, format!("its extent `{name}` {why}"));
    if extent.name.contains(&b'/') || extent.name.contains(&b':') {
        return Err(wrong("is not in its directory"));
    }
    let kind = std::fs::symlink_metadata(&path);
    match kind {
        Ok(kind) if kind.is_file() => {}
        Ok(_) => return Err(wrong("is no regular file")),
        Err(error) => return Err(wrong(&format!("cannot be opened: {error}"))),
    }
    if extent.kind == ExtentKind::Sparse {
        let start = start_of(&path, HEADER_BYTES);
        let start = start.map_err(BuildError::os("reading", &text_of(&path)))?;
        check_size(shown, &format!("an extent (`{name}`)"), &start)?;
    }
    log::warn!("{shown}: has its data in {}", text_of(&path));
    Ok(path)
}
