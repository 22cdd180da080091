//! QED, and qcow of version 1: the formats before qcow2, which `qemu-nbd` reads.
//!
//! ```text
//!   top.qed     the name of its backing file in the header
//!       |
//!   base.qcow   the same
//!       |
//!   base.qcow2, with its own chain (`chain`), or a plain disk
//! ```
//! An image names the one that it is based on, and may come from a stranger: the name follows the
//! rule of backing files (`chain`), and qemu gets the whole chain, so that it follows no name by
//! itself. Sources: QEMU `docs/interop/qed_spec.txt`, `block/qcow.c`.

use super::chain::{self, Allowed, resolve};
use super::child::{file_node, real_path, start_of};
use super::{FileKind, ImageFormat, Settings, bytes_of, malformed, recognise};
use crate::build::BuildError;
use crate::path::text_of;
use serde_json::{Value, json};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The longest name of a backing file (qcow, version 1; the specification of QED has no limit).
const NAME_BYTES_MAX: u64 = 1023;
/// Both headers are shorter, without the name.
const HEADER_BYTES: u64 = 64;
/// The features of QED, at byte 16.
const QED_HAS_BACKING: u64 = 1;
const QED_BACKING_IS_RAW: u64 = 4;

/// What an image states of the one that it is based on.
struct Base {
    name: String,
    /// It is a plain disk with any first bytes.
    is_raw: bool,
}

/// The node of qemu's block layer for an image and those that it is based on.
///
/// # Errors
/// A header is wrong; a backing file is missing, or may not be followed.
pub(super) fn node(settings: &Settings<'_>) -> Result<Value, BuildError> {
    let shown = settings.path;
    let top = real_path(shown)?;
    let allowed = Allowed::of(shown, &top, settings.backing);
    let mut chain = vec![(top, settings.format)];
    let mut node = Value::Null;
    while let Some((path, format)) = chain.last() {
        let Some(base) = based_on(&text_of(path), path, *format)? else { break };
        allowed.check_depth(chain.len())?;
        let (below, kind) = find(&allowed, path, &base)?;
        if chain.iter().any(|(path, _)| *path == below) {
            let problem = format!("its backing files form a loop at {}", text_of(&below));
            return Err(BuildError::refused(shown, problem));
        }
        let what = match kind {
            FileKind::Image(format) => format.name(),
            _ => "raw",
        };
        log::warn!("{shown}: based on {} ({what})", text_of(&below));
        match kind {
            FileKind::Image(format @ (ImageFormat::Qed | ImageFormat::Qcow)) => {
                chain.push((below, format));
                continue;
            }
            FileKind::Image(ImageFormat::Qcow2) => {
                let links = chain::open_below(&allowed, &below)?;
                node = chain::as_json(&links, !settings.shared)?;
            }
            FileKind::Image(other) => {
                let problem = format!(
                    "its backing file {} is of the format {}, which is not read here below {}",
                    text_of(&below),
                    other.name(),
                    format.name()
                );
                return Err(BuildError::refused(shown, problem));
            }
            FileKind::Plain | FileKind::FixedVhd { .. } => {
                let file = file_node(&below, !settings.shared)?;
                node = json!({ "driver": "raw", "file": file });
            }
        }
        break;
    }
    for (path, format) in chain.iter().rev() {
        let file = file_node(path, !settings.shared)?;
        node = json!({ "driver": format.name(), "file": file, "backing": node });
    }
    Ok(node)
}

/// The file that an image is based on, and its format.
fn find(
    allowed: &Allowed<'_>,
    from: &Path,
    base: &Base,
) -> Result<(PathBuf, FileKind), BuildError> {
    let named = resolve(allowed.path, from, &base.name, "backing file")?;
    let wrong = |why: &str| {
        let problem = format!("its backing file {} {why}", text_of(&named));
        BuildError::refused(allowed.path, problem)
    };
    let path = std::fs::canonicalize(&named)
        .map_err(|error| wrong(&format!("cannot be opened: {error}")))?;
    allowed.check(&path, "backing file")?;
    // A FIFO would wait for a writer.
    if !path.is_file() {
        return Err(wrong("is no regular file"));
    }
    let kind = match base.is_raw {
        true => Ok(FileKind::Plain),
        false => File::open(&path).and_then(|file| Ok(recognise(&file, bytes_of(&file)?))),
    };
    let kind = kind.map_err(|error| wrong(&format!("cannot be read: {error}")))?;
    Ok((path, kind))
}

/// What the header of an image states of its backing file.
///
/// # Errors
/// It cannot be read, or is wrong.
fn based_on(shown: &str, path: &Path, format: ImageFormat) -> Result<Option<Base>, BuildError> {
    let system = BuildError::os("reading", shown);
    let header = start_of(path, HEADER_BYTES).map_err(system)?;
    if format == ImageFormat::Qcow && !holds_its_table(&header, path)? {
        let problem = "its header gives a table of clusters that ends behind the end of the file";
        return Err(malformed(shown, problem));
    }
    let Some((at, length, is_raw)) = name_place(&header, format) else { return Ok(None) };
    let mut name = vec![0; length.min(NAME_BYTES_MAX) as usize];
    let file = File::open(path).map_err(system)?;
    let is_there = length == name.len() as u64 && file.read_exact_at(&mut name, at).is_ok();
    if name.is_empty() || !is_there {
        let problem = "the name of its backing file is not in its header";
        return Err(malformed(shown, problem));
    }
    let name = String::from_utf8(name)
        .map_err(|_| BuildError::refused(shown, "the name of its backing file is not UTF-8"))?;
    Ok(Some(Base { name, is_raw }))
}

/// Offset and length of the name, and whether it is that of a plain disk.
fn name_place(header: &[u8], format: ImageFormat) -> Option<(u64, u64, bool)> {
    let bytes = |at: usize| header.get(at..)?.first_chunk::<4>().copied();
    let little = |at| bytes(at).map(|bytes| u64::from(u32::from_le_bytes(bytes)));
    let big = |at| bytes(at).map(|bytes| u64::from(u32::from_be_bytes(bytes)));
    match format {
        ImageFormat::Qed => {
            let features = little(16)?;
            let place = (little(56)?, little(60)?, features & QED_BACKING_IS_RAW != 0);
            (features & QED_HAS_BACKING != 0).then_some(place)
        }
        _ => {
            let at = big(8)? << 32 | big(12)?;
            (at != 0).then_some((at, big(16)?, false))
        }
    }
}

/// Whether the first table of a qcow image of version 1 is in its file, as in every complete image.
/// qemu allocates and reads the whole table, up to 2 GiB, even beyond the end of the file.
fn holds_its_table(header: &[u8], path: &Path) -> Result<bool, BuildError> {
    // qemu, block/qcow.c: the size of the disk at byte 24, the bits of a place in a cluster and in
    // a second table at 32 and 33, the offset of the first table at 40; its entries have 8 bytes.
    let word = |at: usize| {
        let bytes = header.get(at..).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u64::from_be_bytes(*bytes))
    };
    let bits = |at: usize| u32::from(header.get(at).copied().unwrap_or_default());
    let covered = 1_u64.checked_shl(bits(32) + bits(33));
    let table = word(24)
        .div_ceil(covered.unwrap_or(u64::MAX))
        .saturating_mul(8);
    let file_bytes = File::open(path).and_then(|file| bytes_of(&file));
    let file_bytes = file_bytes.map_err(BuildError::os("finding the size of", &text_of(path)))?;
    Ok(word(40).saturating_add(table) <= file_bytes)
}
