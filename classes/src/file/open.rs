//! Opening an image or a block device safely: what it is, how large, whether it is free.

use crate::build::BuildError;
use rustix::fs::{FileType, OFlags};
use std::fs::File;
use std::io;
use std::path::Path;
use ugeom_machine::lock;

/// How it is to be opened.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub writable: bool,
    pub direct: bool,
    pub shared: bool,
    pub sectorsize: Option<u32>,
}

/// A file that is open.
pub(super) struct Opened {
    pub file: File,
    pub name: String,
    pub size: u64,
    pub sectorsize: u32,
    pub stripesize: u64,
    pub writable: bool,
    pub block_device: bool,
    /// What the memory of requests must be aligned to, bytes; 1 without direct I/O.
    pub align_bytes: usize,
}

/// The sector size of an image when nobody says otherwise, bytes.
const SECTORSIZE: u32 = 512;

pub(super) fn open(path: &str, wanted: Wanted) -> Result<Opened, BuildError> {
    let os = |operation| {
        move |error: rustix::io::Errno| BuildError::Os {
            operation,
            path: path.to_owned(),
            error: io::Error::from(error),
        }
    };
    let refused = |problem: String| BuildError::Refused {
        path: path.to_owned(),
        problem,
    };
    // Looking before opening: opening a FIFO or a tape would wait or wind.
    let before = rustix::fs::stat(path).map_err(os("opening"))?;
    let kind = FileType::from_raw_mode(before.st_mode);
    let block_device = kind == FileType::BlockDevice;
    if !block_device && kind != FileType::RegularFile {
        return Err(refused(format!(
            "is {}, not an image or a block device",
            describe(kind)
        )));
    }
    let exclusive = block_device && !wanted.shared;
    let flags = OFlags::CLOEXEC
        | if wanted.writable {
            OFlags::RDWR
        } else {
            OFlags::RDONLY
        }
        | if exclusive {
            OFlags::EXCL
        } else {
            OFlags::empty()
        }
        | if wanted.direct {
            OFlags::DIRECT
        } else {
            OFlags::empty()
        };
    let file = match rustix::fs::open(path, flags, rustix::fs::Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::BUSY) if exclusive => {
            let help = if wanted.writable {
                ""
            } else {
                " (shared=1 reads it all the same)"
            };
            return Err(refused(format!(
                "is in use: mounted, or held by somebody else{help}"
            )));
        }
        Err(rustix::io::Errno::INVAL) if wanted.direct => {
            return Err(refused(
                "its file system has no direct I/O (direct=0 does without)".into(),
            ));
        }
        Err(errno) => return Err(os("opening")(errno)),
    };
    if wanted.writable && !block_device {
        lock_image(path, &file)?;
    }
    let size = size_of(&file).map_err(os("finding the size of"))?;
    let (sectorsize, stripesize) = if block_device {
        device_sectors(&file, wanted.sectorsize).map_err(os("asking the sector size of"))?
    } else {
        (wanted.sectorsize.unwrap_or(SECTORSIZE), 0)
    };
    if size == 0 {
        return Err(refused("is empty: 0 bytes".into()));
    }
    if size < u64::from(sectorsize) {
        return Err(refused(format!(
            "has {size} bytes, less than one sector of {sectorsize}"
        )));
    }
    let align_bytes = if wanted.direct {
        sectorsize.max(SECTORSIZE) as usize
    } else {
        1
    };
    let writable = wanted.writable;
    let name = name_of(path);
    Ok(Opened {
        file,
        name,
        size,
        sectorsize,
        stripesize,
        writable,
        block_device,
        align_bytes,
    })
}

/// A provider is called by the last part of the path.
fn name_of(path: &str) -> String {
    let last = Path::new(path).file_name();
    last.map_or_else(
        || path.to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
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

/// Two writers would destroy an image: the first keeps the second out.
fn lock_image(path: &str, file: &File) -> Result<(), BuildError> {
    lock::lock_exclusively(file).map_err(|error| {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::PermissionDenied => BuildError::Refused {
                path,
                problem: "somebody else has it open for writing (it is locked)".into(),
            },
            _ => BuildError::Os {
                operation: "locking",
                path,
                error,
            },
        }
    })
}

/// The size in bytes; seeking to the end works for images and for block devices.
fn size_of(file: &File) -> Result<u64, rustix::io::Errno> {
    rustix::fs::seek(file, rustix::fs::SeekFrom::End(0))
}

/// The sector size of a device, and the size of the physical block behind it where that is larger.
/// A larger sector size may be asked for, to read what was written on a disk with such sectors.
fn device_sectors(file: &File, wanted: Option<u32>) -> Result<(u32, u64), rustix::io::Errno> {
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
