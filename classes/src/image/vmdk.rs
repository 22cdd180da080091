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
//! Source: VMware, Virtual Disk Format 5.0.

use super::chain::{Allowed, folder, resolve};
use super::child::{file_node, real_path, start_of};
use super::cut::warn_of;
use super::{FileKind, ImageFormat, Settings, bytes_of, malformed, recognise};
use crate::build::{BuildError, refuse_in_use};
use crate::path::{path_of, text_of};
use serde_json::{Value, json};
use std::fs::File;
use std::path::{Path, PathBuf};

/// The longest descriptor that is read, bytes.
const DESCRIPTOR_BYTES_MAX: u64 = 64 << 10;
/// The content identifier of a parent that does not exist.
const NO_PARENT: u32 = u32::MAX;

/// The descriptor of one image.
struct Descriptor {
    /// Changes with the first write after the image is opened.
    content_id: Option<u32>,
    parent: Option<Parent>,
}

struct Parent {
    name: String,
    /// The identifier that it had when the image was made.
    content_id: u32,
}

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
/// An extent is no regular file in the folder of the image, or is in use and would be written to.
fn read(shown: &str, path: &Path, writable: bool) -> Result<Descriptor, BuildError> {
    let start = start_of(path, DESCRIPTOR_BYTES_MAX).map_err(BuildError::os("reading", shown))?;
    // A sparse extent of 0 sectors only holds a descriptor; qemu then follows its extents.
    if start.starts_with(b"KDMV") && start.get(12..20) == Some(&[0; 8]) {
        return Err(malformed(
            shown,
            "a VMDK image of 0 sectors is not read here",
        ));
    }
    let text = String::from_utf8_lossy(&start);
    if text.starts_with("# Disk DescriptorFile") {
        for name in text.lines().filter_map(|line| extent(line.trim())) {
            let file = check_extent(shown, path, name)?;
            if writable {
                refuse_in_use(&file, &text_of(&file))?;
            }
            warn_of(&text_of(&file), &file, ImageFormat::Vmdk);
        }
    }
    warn_of(shown, path, ImageFormat::Vmdk);
    let descriptor = describe(&text).map_err(|problem| malformed(shown, problem))?;
    Ok(descriptor)
}

/// Reads the descriptor of an image and its parent.
fn describe(text: &str) -> Result<Descriptor, &'static str> {
    let value = |key: &str| {
        let mut lines = text.lines().map(str::trim);
        lines.find_map(|line| {
            let rest = line.strip_prefix(key)?.trim_start().strip_prefix('=')?;
            Some(rest.trim().trim_matches('"'))
        })
    };
    let id = |key| {
        let digits = value(key);
        digits.map(|digits| u32::from_str_radix(digits, 16).map_err(|_| "a CID is no number"))
    };
    let content_id = id("CID").transpose()?;
    let parent_id = id("parentCID").transpose()?;
    let parent = match parent_id.filter(|id| *id != NO_PARENT) {
        None => None,
        Some(content_id) => Some(Parent {
            name: value("parentFileNameHint")
                .filter(|name| !name.is_empty())
                .ok_or("it is based on another image, and has no parentFileNameHint")?
                .to_owned(),
            content_id,
        }),
    };
    Ok(Descriptor { content_id, parent })
}

/// qemu-nbd opens a compressed VMDK image for writing, changes it, and then fails to write to it.
///
/// # Errors
/// The image is compressed.
fn check_writable(shown: &str) -> Result<(), BuildError> {
    // Flags at byte 8, bit 16: grains are compressed.
    const COMPRESSED: u8 = 1;
    let start = start_of(&path_of(shown), 12).map_err(BuildError::os("reading", shown))?;
    let flags = start.get(10).filter(|_| start.starts_with(b"KDMV"));
    if flags.is_some_and(|flags| flags & COMPRESSED != 0) {
        let problem = "a compressed vmdk image (streamOptimized) can only be read (`qemu-img \
                       convert` makes a copy that can be written)";
        return Err(BuildError::refused(shown, problem));
    }
    Ok(())
}

/// The file that a line of a descriptor names: `RW 4192256 SPARSE "disk-s001.vmdk"`.
fn extent(line: &str) -> Option<&str> {
    let is_extent = ["RW ", "RDONLY ", "NOACCESS "]
        .iter()
        .any(|access| line.starts_with(access));
    let name = line.split_once('"')?.1;
    is_extent.then(|| name.rsplit_once('"').map_or(name, |(name, _)| name))
}

fn check_extent(shown: &str, image: &Path, name: &str) -> Result<PathBuf, BuildError> {
    let wrong = |why: &str| BuildError::refused(shown, format!("its extent `{name}` {why}"));
    if name.contains('/') || name.contains(':') {
        return Err(wrong("is not in its directory"));
    }
    let path = folder(image).join(name);
    let kind = std::fs::symlink_metadata(&path);
    match kind {
        Ok(kind) if kind.is_file() => {}
        Ok(_) => return Err(wrong("is no regular file")),
        Err(error) => return Err(wrong(&format!("cannot be opened: {error}"))),
    }
    log::warn!("{shown}: has its data in {}", text_of(&path));
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_extents_are_found_in_descriptors() {
        assert_eq!(
            extent(r#"RW 8192 SPARSE "a b-s001.vmdk""#),
            Some("a b-s001.vmdk")
        );
        assert_eq!(
            extent(r#"RW 8192 FLAT "a-flat.vmdk" 0"#),
            Some("a-flat.vmdk")
        );
        assert_eq!(extent(r#"createType="monolithicSparse""#), None);
    }

    #[test]
    fn the_parent_is_the_one_that_the_descriptor_states() {
        let text = "CID=0000000a\nparentCID=9B20DB1C\nparentFileNameHint=\"a b.vmdk\"\n";
        let found = describe(text).unwrap();
        let parent = found.parent.unwrap();
        assert_eq!(found.content_id, Some(10));
        assert_eq!(
            (&*parent.name, parent.content_id),
            ("a b.vmdk", 0x9b20_db1c)
        );
        let alone = describe("CID = 1\nparentCID = ffffffff\n").unwrap();
        assert!(alone.parent.is_none());
        assert_eq!(alone.content_id, Some(1));
        for wrong in ["parentCID=1\n", "CID=x\n", "parentCID=100000000\n"] {
            assert!(describe(wrong).is_err(), "{wrong}");
        }
    }
}
