//! The content of a medium: file systems, volumes, encrypted containers, disk images, partition
//! tables, recognised by their signatures.
//!
//! [`identify`] reads a few blocks and answers with every structure that it recognises, because a
//! medium may carry several: an old file system below a new one, an ISO image that is also a disk.
//! Most structures are rows of a table ([`signature::Signature`]): magic numbers, a further check,
//! where the label and the UUID stand. The others have a function of their own.
//!
//! `docs/formats/content.md` lists every structure with the source of its layout and the tool that
//! made the image it is tested with.

mod bsd;
mod ext;
mod fat;
mod file_systems;
mod firmware;
mod geom;
mod hfs;
mod images;
mod iso;
mod minix;
mod ntfs;
mod raid;
mod signature;
mod tables;
mod text;
mod udf;
mod view;
mod volumes;
mod xfs_log;
mod zfs;

#[cfg(test)]
mod tests;

pub use view::ByteRead;
pub(crate) use volumes::lvm_crc;

use crate::text::visible;
use std::fmt;
use view::View;

/// The kind of structure, which gives its extent on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentUse {
    /// A file system: the whole medium is its own.
    FileSystem,
    /// A member of a volume group, a RAID array or a storage pool: the whole medium is its own.
    Volume,
    /// An encrypted container: the whole medium is its own.
    Encrypted,
    /// An image of a disk, or a compressed file: the whole medium is its own.
    Image,
    /// Swap space, a journal, a cache.
    Other,
    /// A partition table or a label: its own bytes only.
    Table,
}

/// A structure that was recognised by its magic number, and where it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// libblkid's name where it has one: `ext4`, `crypto_LUKS`, `zfs_member`.
    pub name: &'static str,
    /// With its article, for a sentence: `an ext4 file system`.
    pub title: String,
    /// For a listing: `ext4`, `LUKS2`, `qcow2`.
    pub short: String,
    /// The kind of structure.
    pub usage: ContentUse,
    /// Its label or name, where it has one. Texts that are made of it escape it.
    pub label: Option<String>,
    /// Its UUID or serial number, in the notation of its own tools.
    pub uuid: Option<String>,
    /// The size of the disk inside an image, in bytes.
    pub inner_bytes: Option<u64>,
    /// Where its magic numbers stand; never empty. The first place is the one to show.
    pub places: Vec<ContentPlace>,
    /// Other places that belong to it: the entries of a table.
    pub body: Vec<ContentPlace>,
}

/// Where a part of a structure stands: its magic number, or its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentPlace {
    /// First byte of it on the provider.
    pub offset_bytes: u64,
    /// Length of it, bytes.
    pub length_bytes: u64,
}

impl Content {
    fn new(name: &'static str, title: &str, short: &str, usage: ContentUse) -> Self {
        Self {
            name,
            title: title.to_owned(),
            short: short.to_owned(),
            usage,
            label: None,
            uuid: None,
            inner_bytes: None,
            places: Vec::new(),
            body: Vec::new(),
        }
    }

    fn at(mut self, offset_bytes: u64, length_bytes: u64) -> Self {
        self.places.push(ContentPlace {
            offset_bytes,
            length_bytes,
        });
        self
    }

    fn with_body(mut self, offset_bytes: u64, length_bytes: u64) -> Self {
        self.body.push(ContentPlace {
            offset_bytes,
            length_bytes,
        });
        self
    }

    /// One cell of a listing: `ext4 "root"`, `ZFS pool tank`, `qcow2, 40 GiB`.
    pub fn summary(&self) -> String {
        let mut text = self.short.clone();
        match &self.label {
            Some(label) if self.name == "zfs_member" => text = format!("{text} {}", visible(label)),
            Some(label) if !label.is_empty() => text = format!("{text} \"{}\"", visible(label)),
            _ => {}
        }
        if let Some(bytes) = self.inner_bytes {
            text = format!("{text}, {}", text::binary_size(bytes));
        }
        text
    }

    /// Whether a magic number or another mark of it stands in a range of bytes.
    pub fn stands_in(&self, range: &std::ops::Range<u64>) -> bool {
        let touches = |place: &ContentPlace| {
            let end = place.offset_bytes.saturating_add(place.length_bytes);
            place.offset_bytes < range.end && end > range.start
        };
        self.places.iter().chain(&self.body).any(touches)
    }

    /// Whether other bytes in place of those at `offset_bytes` change one of its magic numbers.
    pub fn is_changed_by(&self, offset_bytes: u64, old: &[u8], new: &[u8]) -> bool {
        self.places.iter().any(|place| {
            let end = place.offset_bytes.saturating_add(place.length_bytes);
            let first = place.offset_bytes.max(offset_bytes) - offset_bytes;
            let last = end.saturating_sub(offset_bytes);
            let of = |bytes: &[u8]| {
                let last = last.min(bytes.len() as u64) as usize;
                bytes
                    .get(first.min(last as u64) as usize..last)
                    .map(<[u8]>::to_vec)
            };
            of(old) != of(new)
        })
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.title)?;
        if let Some(label) = self.label.as_ref().filter(|label| !label.is_empty()) {
            write!(f, " \"{}\"", visible(label))?;
        }
        match self.places.first() {
            Some(place) => write!(f, " (at byte {})", place.offset_bytes),
            None => Ok(()),
        }
    }
}

/// The findings of [`identify`], and the sectors it could not read.
#[derive(Clone, Debug, Default)]
pub struct Identified {
    /// Every structure that was recognised.
    pub contents: Vec<Content>,
    /// The first read that failed: unreadable content is not recognised.
    pub read_error: Option<String>,
}

/// Recognises the content of a medium of `size_bytes`. Reads at most
/// [`MAX_READ_BYTES`](view::MAX_READ_BYTES), in blocks of 4 KiB.
pub fn identify(size_bytes: u64, read: &mut ByteRead<'_>) -> Identified {
    let mut view = View::new(size_bytes, read);
    let mut contents = Vec::new();
    for table in [
        volumes::SIGNATURES,
        file_systems::SIGNATURES,
        images::SIGNATURES,
        firmware::SIGNATURES,
    ] {
        contents.extend(table.iter().filter_map(|row| row.find(&mut view)));
    }
    for probe in PROBES {
        contents.extend(probe(&mut view));
    }
    settle(&mut contents);
    Identified {
        contents,
        read_error: view.into_error(),
    }
}

/// Looks for one structure, or for a family of which a medium carries one at most.
type Probe = fn(&mut View<'_>) -> Option<Content>;

const PROBES: &[Probe] = &[
    ext::probe,
    fat::probe,
    fat::probe_exfat,
    ntfs::probe,
    hfs::probe,
    minix::probe,
    iso::probe,
    udf::probe,
    bsd::probe_ufs,
    zfs::probe,
    raid::probe_md,
    raid::probe_silicon,
    raid::probe_via,
    volumes::probe_lvm2,
    volumes::probe_drbd,
    xfs_log::probe,
    images::probe_lzma,
    firmware::probe_uboot_environment,
    geom::probe,
    tables::probe_mbr,
    tables::probe_gpt,
    tables::probe_amiga,
    tables::probe_atari,
    tables::probe_sun,
    tables::probe_bsd,
    tables::probe_pc98,
    tables::probe_simple,
];

/// Drops false finds that another structure explains, so that each structure is listed once.
fn settle(contents: &mut Vec<Content>) {
    let has = |contents: &[Content], name: &str| contents.iter().any(|c| c.name == name);
    // A boot sector is no partition table, whatever its last two bytes are.
    if contents.iter().any(|c| c.usage != ContentUse::Table) {
        contents.retain(|c| c.short != "MBR?");
    }
    if contents.len() > 1 {
        contents.retain(|c| c.short != tables::EMPTY_MBR);
    }
    if has(contents, "BitLocker") {
        contents.retain(|c| c.name != "vfat" && c.name != "ntfs");
    }
    // The same magic number begins an image of a compressed loop device and of a uzip one.
    contents.dedup_by(|a, b| a.name == b.name && a.places == b.places);
}
