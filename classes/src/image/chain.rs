//! The files that an image is made of: itself, and the images that it is based on.
//!
//! A backing file is named by the image, which may come from a stranger: it is opened when it is a
//! regular file in the folder of the image, or below; `backing=any` takes any regular file. Each
//! one is named on stderr. Names with a protocol (`nbd:`, `json:`) are never followed. The same
//! holds for the file that has the data of an image, if it is not in the image.

use super::{Backing, bytes_of, malformed};
use crate::build::{BuildError, refuse_in_use};
use crate::path::{path_of, text_of};
use rustix::fs::{FileType, Mode, OFlags};
use serde_json::{Value, json};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use ugeom_format::qcow2::{self, HEAD_BYTES, Header, incompatible};

/// How many images may lie on each other.
const DEPTH_MAX: usize = 64;

/// One file of a chain.
pub(super) struct Link {
    pub file: File,
    /// Where it really is, without symbolic links.
    pub path: PathBuf,
    /// Its header; none for a raw image.
    pub header: Option<Header>,
    /// The file with its data, where the image has only the map.
    pub data: Option<PathBuf>,
    /// It is a block device. Only the top image may be one.
    pub is_device: bool,
}

/// Opens a qcow2 image and the images that it is based on, the top one first. Only that one is
/// opened for writing.
///
/// # Errors
/// A header is wrong; a backing file is missing, or may not be followed.
pub(super) fn open(path: &str, writable: bool, backing: Backing) -> Result<Vec<Link>, BuildError> {
    let mut top = link(&path_of(path), writable, Some("qcow2"), true)?;
    let allowed = Allowed::of(path, &top.path, backing);
    top.data = allowed.data_of(&top, writable)?;
    follow(&allowed, top)
}

/// Opens a qcow2 image that another image is based on, and those below it, for reading.
///
/// # Errors
/// As [`open`].
pub(super) fn open_below(allowed: &Allowed<'_>, path: &Path) -> Result<Vec<Link>, BuildError> {
    let mut top = link(path, false, Some("qcow2"), false)?;
    top.data = allowed.data_of(&top, false)?;
    follow(allowed, top)
}

fn follow(allowed: &Allowed<'_>, top: Link) -> Result<Vec<Link>, BuildError> {
    let path = allowed.path;
    let mut chain = vec![top];
    while let Some((link, below)) = chain.last().and_then(|link| {
        let below = link.header.as_ref()?.backing.clone()?;
        Some((link, below))
    }) {
        let wanted = resolve(path, &link.path, &below.name, "backing file")?;
        allowed.check_depth(chain.len())?;
        let mut next = self::link(&wanted, false, below.format.as_deref(), false)?;
        allowed.check(&next.path, "backing file")?;
        next.data = allowed.data_of(&next, false)?;
        if chain.iter().any(|link| link.path == next.path) {
            let problem = format!("its backing files form a loop at {}", text_of(&next.path));
            return Err(BuildError::refused(path, problem));
        }
        let format = next.header.as_ref().map_or("raw", |_| "qcow2");
        log::warn!("{path}: based on {} ({format})", text_of(&next.path));
        chain.push(next);
    }
    Ok(chain)
}

/// The files that an image may name.
pub(super) struct Allowed<'a> {
    /// The image, as messages call it.
    pub path: &'a str,
    /// The folder of the image, to which names in its header are relative.
    near: PathBuf,
    backing: Backing,
}

impl<'a> Allowed<'a> {
    /// Those of an image, which lies at `top`.
    pub(super) fn of(path: &'a str, top: &Path, backing: Backing) -> Self {
        let near = folder(top);
        Self {
            path,
            near,
            backing,
        }
    }

    /// # Errors
    /// A chain of so many images gets no longer.
    pub(super) fn check_depth(&self, images: usize) -> Result<(), BuildError> {
        if images < DEPTH_MAX {
            return Ok(());
        }
        let problem = format!("the chain has more than {DEPTH_MAX} images");
        Err(BuildError::refused(self.path, problem))
    }

    /// # Errors
    /// The file is not in the folder of the image, and has to be.
    pub(super) fn check(&self, file: &Path, role: &str) -> Result<(), BuildError> {
        if self.backing == Backing::Any || file.starts_with(&self.near) {
            return Ok(());
        }
        let problem = format!(
            "its {role} {} is not in its directory; backing=any allows it",
            text_of(file)
        );
        Err(BuildError::refused(self.path, problem))
    }

    /// The file with the data of an image that has only the map.
    fn data_of(&self, link: &Link, writable: bool) -> Result<Option<PathBuf>, BuildError> {
        let Some(name) = link.header.as_ref().and_then(|it| it.data_file.as_ref()) else {
            return Ok(None);
        };
        let wanted = resolve(self.path, &link.path, name, "data file")?;
        let data = self::link(&wanted, writable, Some("raw"), false)?.path;
        self.check(&data, "data file")?;
        if data == link.path {
            let problem = "it names itself as the file with its data";
            return Err(malformed(self.path, problem));
        }
        if writable {
            refuse_in_use(&data, &text_of(&data))?;
        }
        log::warn!("{}: has its data in {}", self.path, text_of(&data));
        Ok(Some(data))
    }
}

/// The folder that a file is in.
pub(super) fn folder(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("/")).to_owned()
}

/// The path that a name in an image means.
pub(super) fn resolve(
    top: &str,
    from: &Path,
    name: &str,
    role: &str,
) -> Result<PathBuf, BuildError> {
    let protocol = name.split('/').next().is_some_and(|it| it.contains(':'));
    if protocol {
        let problem = format!("its {role} `{name}` is no name of a file");
        return Err(BuildError::refused(top, problem));
    }
    Ok(folder(from).join(name))
}

/// Opens one file; `is_top` is the one that the user named, which may be a block device.
fn link(
    path: &Path,
    writable: bool,
    format: Option<&str>,
    is_top: bool,
) -> Result<Link, BuildError> {
    let shown = text_of(path);
    let system = BuildError::open(&shown);
    let access = if writable {
        OFlags::RDWR
    } else {
        OFlags::RDONLY
    };
    // A FIFO would wait for a writer.
    let flags = OFlags::CLOEXEC | OFlags::NONBLOCK | access;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(system)?;
    let kind = rustix::fs::fstat(&file).map_err(system)?.st_mode;
    let kind = FileType::from_raw_mode(kind);
    let is_device = is_top && kind == FileType::BlockDevice;
    if kind != FileType::RegularFile && !is_device {
        return Err(BuildError::refused(&shown, "is no regular file"));
    }
    let file = File::from(file);
    let real = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let path = real.map_err(BuildError::os("finding the place of", &shown))?;
    let head = head(&file).map_err(BuildError::os("reading", &shown))?;
    let header = match format {
        Some("raw") => None,
        Some("qcow2") => Some(checked(&shown, &file, &head, writable)?),
        None if head.starts_with(b"QFI\xfb") => Some(checked(&shown, &file, &head, writable)?),
        None => None,
        Some(other) => {
            let problem = format!("a backing file of the format `{other}` cannot be read here");
            return Err(BuildError::refused(&shown, problem));
        }
    };
    Ok(Link {
        file,
        path,
        header,
        data: None,
        is_device,
    })
}

fn head(file: &File) -> std::io::Result<Vec<u8>> {
    let mut head = vec![0; HEAD_BYTES];
    let mut filled = 0;
    while filled < head.len() {
        match file.read_at(&mut head[filled..], filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    head.truncate(filled);
    Ok(head)
}

/// The header, if the image can be opened with it. Wrong tables of counts and snapshots do not
/// hinder reading.
fn checked(path: &str, file: &File, head: &[u8], writable: bool) -> Result<Header, BuildError> {
    let header = decoded(path, head)?;
    let bytes = bytes_of(file).map_err(BuildError::os("finding the size of", path))?;
    let is_wrong = |error: qcow2::Error| malformed(path, &error.to_string());
    header.check_map(bytes).map_err(is_wrong)?;
    match header.check_accounts(bytes) {
        Ok(()) => super::cut::warn_of_qcow2(path, file, &header),
        Err(error) if writable => return Err(is_wrong(error)),
        Err(error) => log::warn!("{path}: damaged, for reading only: {error}"),
    }
    Ok(header)
}

fn decoded(path: &str, head: &[u8]) -> Result<Header, BuildError> {
    let header = Header::decode(head).map_err(|error| malformed(path, &error.to_string()))?;
    let unfit = if header.encryption != 0 {
        Some("is encrypted")
    } else if header.data_file.is_some() != (header.incompatible & incompatible::DATA_FILE != 0) {
        Some("both states and denies that its data is in another file")
    } else if header.size_bytes == 0 {
        Some("contains a disk of 0 bytes")
    } else {
        None
    };
    match unfit {
        Some(problem) => Err(BuildError::refused(path, problem)),
        None => Ok(header),
    }
}

/// A chain as qemu's block layer takes it, so that it follows no name by itself.
pub(super) fn as_json(chain: &[Link], locked: bool) -> Result<Value, BuildError> {
    let mut node = Value::Null;
    for link in chain.iter().rev() {
        let file = super::child::file_node(&link.path, locked)?;
        node = match link.header {
            Some(_) => json!({ "driver": "qcow2", "file": file, "backing": node }),
            None => json!({ "driver": "raw", "file": file }),
        };
        if let Some(data) = &link.data {
            node["data-file"] = super::child::file_node(data, locked)?;
        }
    }
    Ok(node)
}
