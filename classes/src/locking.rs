//! Locks of images, so that two programs do not write to one, and none changes data that another
//! has read.

use crate::build::BuildError;
use crate::path::path_of;
use std::fs::File;
use std::time::{Duration, Instant};
use ugeom_machine::in_use::files_behind;
use ugeom_machine::lock::permission::{READ, RESIZE, WRITE};
use ugeom_machine::lock::{self, Claim, ClaimError};

/// How long a lock may be held by a process that was killed, and how often that is looked at: the
/// kernel closes files that a ring was using a moment after the process has ended.
const UNLOCKING: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(10);

/// The purpose of opening an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// To read a plain image. Others may write, as qemu has it for raw images, but not change what
    /// is where: the partitions that were listed would be others.
    Reader,
    /// To read an image with a map of its own, or one that others are based on: no process may
    /// write.
    MapReader,
    /// To write data. Others may read a plain image, but not write it.
    Writer,
    /// To change what is where: a partition table, the map of an image.
    Changer,
    /// To write data through a loop device. Another loop device may stand on another part of the
    /// image.
    ThroughLoop,
}

impl Holder {
    fn claim(self) -> Claim {
        let (needs, denies) = match self {
            Self::Reader => (READ, RESIZE),
            Self::MapReader => (READ, WRITE | RESIZE),
            Self::Writer => (READ | WRITE, WRITE | RESIZE),
            Self::Changer => (READ | WRITE | RESIZE, WRITE | RESIZE),
            Self::ThroughLoop => (READ | WRITE, 0),
        };
        Claim { needs, denies }
    }
}

/// Locks an image. A reader of a plain image that is refused reads it all the same, with a warning.
///
/// # Errors
/// Another program has it open in a way that does not go together with this.
pub(crate) fn lock(path: &str, file: &File, holder: Holder) -> Result<(), BuildError> {
    let began = Instant::now();
    let mut locked = lock::claim(file, holder.claim());
    while began.elapsed() < UNLOCKING && locked.as_ref().is_err_and(ClaimError::is_held) {
        std::thread::sleep(LOOK);
        locked = lock::claim(file, holder.claim());
    }
    let reads = matches!(holder, Holder::Reader | Holder::MapReader);
    match locked {
        Ok(()) => Ok(()),
        Err(held) if held.is_held() && holder == Holder::Reader => {
            let by = held_by(&held);
            log::warn!("{path}: {by}; its data may change while it is read");
            Ok(())
        }
        Err(held) if held.is_held() => Err(BuildError::refused(path, held_by(&held))),
        Err(ClaimError::System(error)) if !reads => Err(BuildError::os("locking", path)(error)),
        // A file system without locks; it can be read all the same.
        Err(_) => Ok(()),
    }
}

/// Locks the images behind a block device that is going to be written to; the locks end with the
/// files.
///
/// # Errors
/// Another program has one of them open and lets no other write.
pub(crate) fn lock_behind(device: &str) -> Result<Vec<File>, BuildError> {
    let mut locked = Vec::new();
    for image in files_behind(&path_of(device)) {
        // One that cannot be opened has another name here, or none.
        let Ok(file) = File::open(&image) else { continue };
        let name = format!("{device}: its file {}", image.display());
        lock(&name, &file, Holder::ThroughLoop)?;
        locked.push(file);
    }
    Ok(locked)
}

/// The use of the image by another program.
fn held_by(held: &ClaimError) -> String {
    let what = match held {
        ClaimError::Denied(bits) if bits & WRITE == 0 => {
            "another program has read its partition table and relies on it"
        }
        ClaimError::Denied(_) => "another program has it open and lets no other write",
        ClaimError::Used(bits) if bits & WRITE == 0 => "another program changes its layout",
        _ => "another program has it open for writing",
    };
    format!("{what} (it is locked)")
}
