//! Opening an image or a block device safely: its kind, its size, and its users.

use super::options;
use crate::build::BuildError;
use crate::image::{self, FileKind};
use crate::locking::{self, Holder};
use crate::path::{path_of, text_of};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::path::Path;

/// How it is to be opened.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub writable: bool,
    pub direct: bool,
    pub shared: bool,
    pub unlocked: bool,
    /// The content of the image, such as its partition table, may be changed.
    pub relayout: bool,
    pub sectorsize: Option<u32>,
    /// The disk ends there, before the file does.
    pub disk_bytes: Option<u64>,
}

/// A file that is open.
pub(super) struct Opened {
    pub file: File,
    /// The images behind a block device that is open for writing, locked.
    pub behind: Vec<File>,
    pub name: String,
    pub size: u64,
    pub sectorsize: u32,
    pub stripesize: u64,
    pub writable: bool,
    pub block_device: bool,
    /// The footer of a fixed VHD image follows the disk.
    pub has_footer: bool,
    /// The alignment of requests' memory, bytes; 1 without direct I/O.
    pub align_bytes: usize,
}

impl Opened {
    /// Its kind, as listings show it.
    pub(super) const fn kind(&self) -> &'static str {
        match (self.block_device, self.has_footer) {
            (true, _) => "block device",
            (false, true) => "vhd, fixed",
            (false, false) => "image",
        }
    }
}

/// The sector size of an image by default, bytes.
pub(super) const SECTORSIZE: u32 = 512;

pub(super) fn open(path: &str, wanted: Wanted) -> Result<Opened, BuildError> {
    let kind = kind_of(path)?;
    let block_device = kind == FileType::BlockDevice;
    let exclusive = block_device && !wanted.shared && !wanted.unlocked;
    let file = open_file(path, wanted, exclusive)?;
    if !block_device && !wanted.unlocked {
        let holder = match (wanted.writable, wanted.relayout) {
            (false, _) => Holder::Reader,
            (true, false) => Holder::Writer,
            (true, true) => Holder::Changer,
        };
        locking::lock(path, &file, holder)?;
    }
    let behind = match block_device && wanted.writable && !wanted.unlocked {
        true => locking::lock_behind(path)?,
        false => Vec::new(),
    };
    let size = size_of(&file).map_err(BuildError::os("finding the size of", path))?;
    let size = wanted.disk_bytes.map_or(size, |bytes| bytes.min(size));
    let (sectorsize, stripesize) = if block_device {
        let sectors = device_sectors(&file, wanted.sectorsize);
        sectors.map_err(BuildError::os("asking the sector size of", path))?
    } else {
        (wanted.sectorsize.unwrap_or(SECTORSIZE), 0)
    };
    if size == 0 {
        return Err(BuildError::refused(path, "is empty: 0 bytes"));
    }
    let tail = size % u64::from(sectorsize);
    if tail > 0 && wanted.writable && wanted.direct {
        let problem = format!(
            "cannot be written to with direct I/O: it has {size} bytes, and the last {tail} make \
             no whole sector of {sectorsize} (direct=0 uses buffered I/O)"
        );
        return Err(BuildError::refused(path, problem));
    }
    let align_bytes = if wanted.direct {
        sectorsize.max(SECTORSIZE) as usize
    } else {
        1
    };
    Ok(Opened {
        file,
        behind,
        name: name_of(path),
        size,
        sectorsize,
        stripesize,
        writable: wanted.writable,
        block_device,
        has_footer: wanted.disk_bytes.is_some(),
        align_bytes,
    })
}

/// The kind of a file. A block device is an image only where the user says so.
pub(super) fn file_kind(path: &str, said: options::Wanted) -> Result<FileKind, BuildError> {
    let kind = kind_of(path)?;
    match said {
        options::Wanted::Image(format) => return Ok(FileKind::Image(format)),
        options::Wanted::Raw => return Ok(FileKind::Plain),
        options::Wanted::Auto if kind != FileType::RegularFile => return Ok(FileKind::Plain),
        options::Wanted::Auto => {}
    }
    let flags = OFlags::CLOEXEC | OFlags::RDONLY;
    let file = rustix::fs::open(path_of(path), flags, Mode::empty());
    let file = File::from(file.map_err(BuildError::open(path))?);
    let size = size_of(&file).map_err(BuildError::os("finding the size of", path))?;
    Ok(image::recognise(&file, size))
}

/// Refuses an image or a block device that another program has open, for a command that writes to
/// its bytes without a stack. Other files, and files that cannot be opened for reading, pass.
/// `name` is its name in messages.
///
/// # Errors
/// How the other program has it open.
pub fn refuse_open_elsewhere(path: &Path, name: &str) -> Result<(), BuildError> {
    let Ok(kind) = kind_of(&text_of(path.as_os_str())) else { return Ok(()) };
    let is_device = kind == FileType::BlockDevice;
    let mut flags = OFlags::CLOEXEC | OFlags::RDONLY;
    flags.set(OFlags::EXCL, is_device);
    match rustix::fs::open(path, flags, Mode::empty()) {
        Err(Errno::BUSY) if is_device => Err(BuildError::refused(
            name,
            "is in use: held by another process".to_owned(),
        )),
        Ok(_) if is_device => locking::lock_behind(&text_of(path.as_os_str())).map(drop),
        Ok(file) => locking::lock(name, &File::from(file), Holder::Writer),
        _ => Ok(()),
    }
}

/// Looks before anything is opened: opening a FIFO would wait, opening a tape would wind it.
fn kind_of(path: &str) -> Result<FileType, BuildError> {
    let stat = rustix::fs::stat(path_of(path)).map_err(BuildError::open(path))?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    if matches!(kind, FileType::BlockDevice | FileType::RegularFile) {
        return Ok(kind);
    }
    let problem = format!("is {}, not an image or a block device", describe(kind));
    Err(BuildError::refused(path, problem))
}

fn open_file(path: &str, wanted: Wanted, exclusive: bool) -> Result<File, BuildError> {
    let access = if wanted.writable {
        OFlags::RDWR
    } else {
        OFlags::RDONLY
    };
    let mut flags = OFlags::CLOEXEC | access;
    flags.set(OFlags::EXCL, exclusive);
    flags.set(OFlags::DIRECT, wanted.direct);
    match rustix::fs::open(path_of(path), flags, Mode::empty()) {
        Ok(file) => Ok(File::from(file)),
        Err(Errno::BUSY) if exclusive => {
            let help = if wanted.writable {
                ""
            } else {
                " (shared=1 reads it anyway)"
            };
            let problem = format!("is in use: mounted, or held by another process{help}");
            Err(BuildError::refused(path, problem))
        }
        Err(Errno::INVAL) if wanted.direct => {
            let problem = "its file system has no direct I/O (direct=0 uses buffered I/O)";
            Err(BuildError::refused(path, problem))
        }
        Err(errno) => Err(BuildError::open(path)(errno)),
    }
}

/// A provider is called by the last part of the path.
pub(super) fn name_of(path: &str) -> String {
    let path = path_of(path);
    text_of(path.file_name().unwrap_or(path.as_os_str()))
}

fn describe(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "a directory",
        FileType::CharacterDevice => "a character device",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        _ => "something else",
    }
}

/// The size in bytes; seeking to the end works for images and for block devices.
pub(super) fn size_of(file: &File) -> Result<u64, Errno> {
    rustix::fs::seek(file, rustix::fs::SeekFrom::End(0))
}

/// The sector size of a device, and the size of the physical block behind it where that is larger.
/// A larger sector size may be asked for, to read what was written on a disk with such sectors.
fn device_sectors(file: &File, wanted: Option<u32>) -> Result<(u32, u64), Errno> {
    let logical = rustix::fs::ioctl_blksszget(file)?;
    let physical = rustix::fs::ioctl_blkpbszget(file)?;
    let sectorsize = wanted.map_or(logical, |wanted| wanted.max(logical));
    let stripesize = if physical > sectorsize {
        u64::from(physical)
    } else {
        0
    };
    Ok((sectorsize, stripesize))
}
