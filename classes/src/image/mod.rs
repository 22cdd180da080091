//! Images of disks: a file that is not a plain copy of a disk is opened as the disk inside it.
//!
//! ```text
//!          caller                               caller
//!            | READ 4096 at 512                   |
//!        disk.qcow2                           disk.vmdk
//!   map of clusters (imago)                       |  NBD over a socket of its own
//!     |               |                       qemu-nbd, a child of this process
//!   engine        a worker thread                 |
//!   (plain data)  (allocation, compressed, zero)  |
//!     |               |                           |
//!   disk.qcow2   base.qcow2 ...               disk.vmdk
//! ```
//!
//! The class `file` asks here for the kind of a file, and hands over all but plain copies. qcow2 is
//! done in this process as far as `imago` knows the image's features, and what is only compressed
//! (`packed`); qemu's own code does the rest, in a process that is started, watched and ended with
//! the stack. `docs/classes/file.md` has the table.

mod chain;
mod child;
mod cut;
mod older;
mod packed;
mod pool;
mod qcow2;
mod vmdk;

use crate::build::{BuildContext, BuildError};
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use ugeom_engine::{Choice, GuasiOptions};
use ugeom_format::content::{self, ContentUse};
use ugeom_stack::{Fact, Plan};

/// A kind of image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImageFormat {
    Qcow2,
    Qcow,
    Qed,
    Vmdk,
    Vdi,
    Vhd,
    Vhdx,
    Parallels,
    Bochs,
    Cloop,
    Dmg,
    Gzip,
    Xz,
    Zstd,
}

impl ImageFormat {
    pub(crate) const ALL: [Self; 14] = [
        Self::Qcow2,
        Self::Qcow,
        Self::Qed,
        Self::Vmdk,
        Self::Vdi,
        Self::Vhd,
        Self::Vhdx,
        Self::Parallels,
        Self::Bochs,
        Self::Cloop,
        Self::Dmg,
        Self::Gzip,
        Self::Xz,
        Self::Zstd,
    ];

    /// Its name, as `ugeom show` and the option `format` have it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Qcow2 => "qcow2",
            Self::Qcow => "qcow",
            Self::Qed => "qed",
            Self::Vmdk => "vmdk",
            Self::Vdi => "vdi",
            Self::Vhd => "vhd",
            Self::Vhdx => "vhdx",
            Self::Parallels => "parallels",
            Self::Bochs => "bochs",
            Self::Cloop => "cloop",
            Self::Dmg => "dmg",
            Self::Gzip => "gzip",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
        }
    }

    /// It is the disk itself, compressed.
    const fn is_compressed(self) -> bool {
        matches!(self, Self::Gzip | Self::Xz | Self::Zstd)
    }

    /// qemu can write to it, and its author calls that safe.
    const fn is_writable(self) -> bool {
        matches!(
            self,
            Self::Qcow2 | Self::Vmdk | Self::Vdi | Self::Vhd | Self::Vhdx
        )
    }
}

/// The backing files that are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Backing {
    /// Those in the folder of the image, or below.
    #[default]
    Near,
    /// Any regular file, wherever it lies.
    Any,
}

/// How an image is opened.
pub(crate) struct Settings<'a> {
    pub path: &'a str,
    pub name: String,
    pub format: ImageFormat,
    pub backing: Backing,
    /// Without locks that others respect: for reading beside a writer.
    pub shared: bool,
    pub sector_bytes: u32,
    pub engine: (Choice, GuasiOptions),
}

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// A plain copy of a disk, or something else that is read as it is.
    Plain,
    /// A plain copy with a footer behind the disk.
    FixedVhd {
        /// Size of the disk.
        disk_bytes: u64,
    },
    Image(ImageFormat),
}

/// Where the footer of a VHD has its kind, bytes from its start, and that of a plain disk.
const VHD_KIND_AT: u64 = 60;
const VHD_FIXED: [u8; 4] = [0, 0, 0, 2];

/// The kind of a file, by its signature.
pub(crate) fn recognise(file: &File, size_bytes: u64) -> FileKind {
    let mut read = |offset: u64, length: usize| {
        let mut bytes = vec![0; length];
        let read = file.read_exact_at(&mut bytes, offset);
        read.map(|()| bytes).map_err(|error| error.to_string())
    };
    let found = content::identify(size_bytes, &mut read).contents;
    let Some(image) = found.iter().find(|it| it.usage == ContentUse::Image) else {
        return FileKind::Plain;
    };
    // The other kinds of VHD begin with a copy of the footer. One that is damaged leaves no disk.
    let footer = image.places.iter().map(|place| place.offset_bytes).min();
    let is_fixed = |footer: u64| read(footer + VHD_KIND_AT, 4).is_ok_and(|kind| kind == VHD_FIXED);
    if let Some(footer) = footer.filter(|&at| at > 0 && image.name == "vhd" && is_fixed(at)) {
        let stated = image.inner_bytes.filter(|&bytes| bytes > 0);
        return FileKind::FixedVhd {
            disk_bytes: stated.map_or(footer, |bytes| bytes.min(footer)),
        };
    }
    let mut formats = ImageFormat::ALL.into_iter();
    let format = formats.find(|format| format.name() == image.name);
    format.map_or(FileKind::Plain, FileKind::Image)
}

/// Opens an image or a compressed file, through qemu-nbd where the format is not read here.
///
/// # Errors
/// It is damaged, in use, of a kind that cannot be written to, or qemu-nbd is missing.
pub(crate) fn plan(context: &BuildContext<'_>, settings: Settings<'_>) -> Result<Plan, BuildError> {
    let format = settings.format;
    let name = format.name();
    if context.writable() && !format.is_writable() {
        let problem = if format.is_compressed() {
            format!(
                "a file of {name} can only be read (`{name} -dk` makes a copy that can be \
                 written)"
            )
        } else {
            format!(
                "a {name} image can only be read (`qemu-img convert` makes a copy that can be \
                 written)"
            )
        };
        return Err(BuildError::refused(settings.path, problem));
    }
    if format.is_compressed() {
        return packed::plan(context, &settings);
    }
    let of_qemu = match format {
        ImageFormat::Qcow2 => None,
        ImageFormat::Vmdk => Some(vmdk::node(&settings, context.writable())?),
        ImageFormat::Qed | ImageFormat::Qcow => Some(older::node(&settings)?),
        _ => Some(child::node(&settings)?),
    };
    if let Some(node) = of_qemu {
        return child::plan(context, &settings, &node);
    }
    let chain = chain::open(settings.path, context.writable(), settings.backing)?;
    let is_plain = |link: &chain::Link| {
        !link.is_device && link.header.as_ref().is_none_or(|it| it.incompatible == 0)
    };
    // Version 2 has no mark for images that were not closed. Features to be cleared, such as the
    // bitmaps of backups, would be lost to a writer that does not know them.
    let can_be_written = chain[0]
        .header
        .as_ref()
        .is_some_and(|header| header.version > 2 && header.autoclear == 0);
    if chain.iter().all(is_plain) && (can_be_written || !context.writable()) {
        return qcow2::plan(context, settings, chain);
    }
    let node = chain::as_json(&chain, !settings.shared)?;
    child::plan(context, &settings, &node)
}

/// The facts of an image that every listing shows.
fn facts(settings: &Settings<'_>) -> Vec<Fact> {
    let name = settings.format.name();
    let what = match settings.format {
        ImageFormat::Xz => "an xz file".to_owned(),
        format if format.is_compressed() => format!("a {name} file"),
        _ => format!("a {name} image"),
    };
    let hint = format!("{what}, opened as such; ?format=raw opens the bytes of the file");
    vec![
        ("file", settings.path.to_owned()),
        ("type", name.to_owned()),
        ("hint", hint),
    ]
}

/// Bytes of the file; zeroes past its end.
fn read_at(file: &File, at: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < length {
        match file.read_at(&mut bytes[filled..], at.saturating_add(filled as u64))? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(bytes)
}

/// How many bytes a file or a block device has.
fn bytes_of(file: &File) -> io::Result<u64> {
    let mut file = file;
    file.seek(SeekFrom::End(0))
}

/// As [`BuildError::refused`], where a plain disk may have been taken for an image by its
/// signature.
fn malformed(path: &str, problem: &str) -> BuildError {
    let problem = format!("{problem} (?format=raw opens the bytes of the file)");
    BuildError::refused(path, problem)
}
