//! VMDK images: which other files one names, and what its header states.
//!
//! ```text
//! # Disk DescriptorFile                                    a descriptor of its own: any file
//! CID=9b20db1c                                             without a magic number is one
//! parentCID=ffffffff
//! RW 4192256 SPARSE "disk-s001.vmdk"                       access, sectors, type, file
//! RW 2048 FLAT "disk-flat.vmdk" 0                          and where its data begins
//!
//! byte 0  "KDMV"       4  version u32       8  flags u32   a sparse extent, little-endian;
//!     12  sectors u64 28  descriptor u64   77  compression u16   its descriptor is at byte 512
//! ```
//! `qemu-nbd` opens the files that a descriptor names, and reads it more loosely than it is
//! written: any white space separates the fields, also the end of a line. So a line that begins
//! like an extent has to be one to the letter; what qemu may take for another file, twice, or not
//! at all is an error.
//!
//! Sources: VMware, Virtual Disk Format 5.0; QEMU `block/vmdk.c`; `docs/formats/vmdk.md`.

pub mod grains;

use crate::bytes;

/// The longest descriptor, bytes: qemu reads no more of a file.
pub const DESCRIPTOR_BYTES_MAX: usize = (1 << 20) - 1;

/// Where the descriptor of a sparse extent lies, and its largest size (qemu), bytes.
const EMBEDDED_AT: usize = 512;
const EMBEDDED_BYTES: usize = 20 * 512;

const SPARSE_MAGIC: &[u8; 4] = b"KDMV";
/// The sparse extents of ESX, without a descriptor.
const ESX_SPARSE_MAGIC: &[u8; 4] = b"COWD";
const SPARSE_HEADER_BYTES: usize = 79;
/// A bit of the flags: grains are compressed.
const COMPRESSED: u32 = 1 << 16;
/// The only kind of compression.
const DEFLATE: u16 = 1;
/// The content identifier of a parent that does not exist.
const NO_PARENT: u32 = u32::MAX;
/// The longest name that qemu reads whole, bytes.
const NAME_BYTES_MAX: usize = 511;
/// The words that begin an extent.
const ACCESSES: [&[u8]; 3] = [b"RW", b"RDONLY", b"NOACCESS"];

/// Why a descriptor is not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum Error {
    #[error("a descriptor of more than {DESCRIPTOR_BYTES_MAX} bytes")]
    Long,
    /// Lines count from 1.
    #[error("line {line} of the descriptor: {problem}")]
    Line { line: usize, problem: &'static str },
    #[error("{key} is no hexadecimal number of 32 bits")]
    ContentId { key: &'static str },
    #[error("it is based on another image, and has no parentFileNameHint")]
    NoParentName,
}

/// The header of a sparse extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SparseHeader {
    /// Size of the extent. qemu takes the descriptor of one of 0 sectors for that of the image.
    pub sectors: u64,
    /// Its grains are compressed: it cannot be written to.
    pub is_compressed: bool,
}

impl SparseHeader {
    /// The header at the start of a file; `None` if it is of another kind, or ends too early.
    pub fn decode(start: &[u8]) -> Option<Self> {
        let header = start.get(..SPARSE_HEADER_BYTES)?;
        header.starts_with(SPARSE_MAGIC).then(|| Self {
            sectors: u64::from_le_bytes(bytes::take(header, 12)),
            is_compressed: bytes::u32_le(header, 8) & COMPRESSED != 0
                || u16::from_le_bytes(bytes::take(header, 77)) == DEFLATE,
        })
    }
}

/// The kind of data in a file that holds a part of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtentKind {
    /// Plain data.
    Flat,
    /// A sparse extent with a header of its own.
    Sparse,
}

/// A file that holds a part of the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extent {
    /// Its file name, in bytes as the descriptor has it.
    pub name: Vec<u8>,
    /// Size of the part.
    pub sectors: u64,
    /// What the file holds.
    pub kind: ExtentKind,
}

/// The image that lies below another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// Its file name, relative to the folder of the image that names it.
    pub name: String,
    /// The content identifier that it had when the image was made.
    pub content_id: u32,
}

/// A descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptor {
    /// Changes with the first write after the image is opened.
    pub content_id: Option<u32>,
    /// The image below.
    pub parent: Option<Parent>,
    /// The files with the data, in the order of the disk; empty where it is in the image itself.
    pub extents: Vec<Extent>,
}

impl Descriptor {
    /// The descriptor of an image, of which at least [`DESCRIPTOR_BYTES_MAX`] + 1 bytes are given,
    /// or all.
    ///
    /// # Errors
    /// An extent is not written to the letter; a content identifier is no number; a parent has no
    /// name.
    pub fn parse(image: &[u8]) -> Result<Self, Error> {
        let is_sparse = [SPARSE_MAGIC, ESX_SPARSE_MAGIC].map(|magic| image.starts_with(magic));
        let text = if is_sparse.contains(&true) {
            let end = image.len().min(EMBEDDED_AT + EMBEDDED_BYTES);
            image.get(EMBEDDED_AT..end).unwrap_or_default()
        } else if image.len() > DESCRIPTOR_BYTES_MAX {
            return Err(Error::Long);
        } else {
            image
        };
        // qemu keeps the text as a string of C.
        let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
        let extents = match is_sparse.contains(&true) {
            true => Vec::new(),
            false => extents(text)?,
        };
        let text = String::from_utf8_lossy(text);
        let content_id = id(&text, "CID")?;
        let parent = match id(&text, "parentCID")?.filter(|&id| id != NO_PARENT) {
            None => None,
            Some(content_id) => Some(Parent {
                name: value(&text, "parentFileNameHint")
                    .filter(|name| !name.is_empty())
                    .ok_or(Error::NoParentName)?
                    .to_owned(),
                content_id,
            }),
        };
        Ok(Self {
            content_id,
            parent,
            extents,
        })
    }
}

/// The value of a line `key=value` or `key="value"`.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let mut lines = text.lines().map(str::trim);
    lines.find_map(|line| {
        let rest = line.strip_prefix(key)?.trim_start().strip_prefix('=')?;
        Some(rest.trim().trim_matches('"'))
    })
}

fn id(text: &str, key: &'static str) -> Result<Option<u32>, Error> {
    let digits = value(text, key);
    let id = digits.map(|digits| u32::from_str_radix(digits, 16));
    id.transpose().map_err(|_| Error::ContentId { key })
}

fn extents(text: &[u8]) -> Result<Vec<Extent>, Error> {
    let mut found = Vec::new();
    let mut follows_empty_line = false;
    for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let (access, rest) = word(line);
        let is_extent = ACCESSES.contains(&access);
        let problem = match is_extent {
            // qemu begins at each line, and passes over white space to the next word.
            true if follows_empty_line => {
                Err("an empty line before an extent: qemu reads the extent twice; remove the line")
            }
            true if access != b"RW" => Err("qemu ignores an extent that is not `RW`"),
            true => extent(rest).map(|extent| found.push(extent)),
            false => Ok(()),
        };
        problem.map_err(|problem| Error::Line {
            line: index + 1,
            problem,
        })?;
        follows_empty_line = access.is_empty();
    }
    Ok(found)
}

/// What follows `RW`: ` 2048 FLAT "disk-flat.vmdk" 0`. qemu itself judges the offset.
fn extent(line: &[u8]) -> Result<Extent, &'static str> {
    const FORM: &str = "no extent of the form `RW SECTORS TYPE \"FILE\"`";
    let (sectors, rest) = word(line);
    let (kind, rest) = word(rest);
    let kind = match kind {
        b"FLAT" | b"VMFS" => ExtentKind::Flat,
        b"SPARSE" | b"VMFSSPARSE" | b"SESPARSE" => ExtentKind::Sparse,
        _ => return Err("qemu ignores an extent of this type"),
    };
    let quoted = trimmed(rest).strip_prefix(b"\"").ok_or(FORM)?;
    let end = quoted.iter().position(|&byte| byte == b'"').ok_or(FORM)?;
    let name = &quoted[..end];
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains(&b'\r') {
        return Err("the name of an extent is empty or too long");
    }
    let sectors = str::from_utf8(sectors).ok();
    let sectors = sectors.and_then(|digits| digits.parse().ok());
    let sectors = sectors.filter(|&sectors| sectors > 0 && i64::try_from(sectors).is_ok());
    Ok(Extent {
        name: name.to_owned(),
        sectors: sectors.ok_or("an extent needs a number of sectors from 1 on")?,
        kind,
    })
}

/// White space of C's `isspace`.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn trimmed(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|&byte| !is_space(byte));
    &text[start.unwrap_or(text.len())..]
}

/// The first word, and what follows it.
fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = trimmed(text);
    let end = text.iter().position(|&byte| is_space(byte));
    text.split_at(end.unwrap_or(text.len()))
}

#[cfg(test)]
mod tests;
