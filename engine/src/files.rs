//! The files that an engine knows, each kept open until its last operation has ended.

use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::op::{Errno, FileId};

/// Tells ids apart across engines and across time.
static SERIAL: AtomicU32 = AtomicU32::new(0);

/// A file and its properties that engines need.
pub(crate) struct Registered {
    file: Arc<File>,
    serial: u32,
    in_flight: u32,
    leaving: bool,
    /// A regular file, whose size fstat(2) tells.
    pub regular: bool,
    /// Whether it is a block device.
    pub block_device: bool,
    /// FALLOC_FL_PUNCH_HOLE has not been refused yet.
    pub punch_hole: bool,
    /// FALLOC_FL_ZERO_RANGE has not been refused yet.
    pub zero_range: bool,
    /// The kernel knows the file by its index as well (io_uring's registered files).
    pub in_kernel_table: bool,
}

impl Registered {
    /// The descriptor, valid for as long as the file is registered.
    pub fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    pub fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// Whether it is a directory, which can be opened but not read.
    pub fn is_directory(&self) -> bool {
        self.file.metadata().is_ok_and(|metadata| metadata.is_dir())
    }

    /// Whether a regular file ends at or before `position`. Unknown (`false`) for others.
    pub fn ends_by(&self, position: u64) -> bool {
        self.regular
            && self
                .file
                .metadata()
                .is_ok_and(|metadata| metadata.len() <= position)
    }

    /// Writes the dirty pages of a range back, and waits. Linux reports a failure once to each
    /// open file description, and the next flush of this one has to report it, so another one is
    /// used: for reading, as closing one for writing makes udev probe the device.
    pub fn write_back(&self, offset: u64, length: u64) {
        let link = format!("/proc/self/fd/{}", self.fd());
        let Ok(other) = File::open(link) else { return };
        let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
            | libc::SYNC_FILE_RANGE_WRITE
            | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        let (fd, offset, length) = (other.as_raw_fd(), offset as i64, length as i64);
        // SAFETY: the call takes no memory, and the descriptor is open. The next attempt shows
        // whether pages are left.
        unsafe { libc::sync_file_range(fd, offset, length, flags) };
    }
}

/// The registered files of one engine.
#[derive(Default)]
pub(crate) struct Files {
    slots: Vec<Option<Registered>>,
}

impl Files {
    /// Adds a file; the id's index is the lowest that is free.
    pub fn register(&mut self, file: Arc<File>) -> Result<FileId, Errno> {
        let file_type = file
            .metadata()
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?
            .file_type();
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let registered = Registered {
            file,
            serial,
            in_flight: 0,
            leaving: false,
            regular: file_type.is_file(),
            block_device: file_type.is_block_device(),
            punch_hole: true,
            zero_range: true,
            in_kernel_table: false,
        };
        let free = self.slots.iter().position(Option::is_none);
        let index = free.unwrap_or(self.slots.len());
        let id = FileId {
            index: u32::try_from(index).map_err(|_| Errno::MFILE)?,
            serial,
        };
        match free {
            Some(index) => self.slots[index] = Some(registered),
            None => self.slots.push(Some(registered)),
        }
        Ok(id)
    }

    /// Makes the id void. Returns the file if nothing uses it any more.
    pub fn unregister(&mut self, id: FileId) -> Option<Registered> {
        let file = self.slots.get_mut(id.index as usize)?.as_mut()?;
        if file.serial == id.serial {
            file.leaving = true;
        }
        self.removed_if_unused(id.index)
    }

    /// Counts an operation in. `false`: the id is void.
    pub fn acquire(&mut self, id: FileId) -> bool {
        match self.slots.get_mut(id.index as usize) {
            Some(Some(file)) if file.serial == id.serial && !file.leaving => {
                file.in_flight += 1;
                true
            }
            _ => false,
        }
    }

    /// Counts an operation out. Returns the file if it is leaving and this was the last one.
    pub fn release(&mut self, id: FileId) -> Option<Registered> {
        let file = self.slots.get_mut(id.index as usize)?.as_mut()?;
        file.in_flight -= 1;
        if file.leaving {
            self.removed_if_unused(id.index)
        } else {
            None
        }
    }

    /// The file of an operation that was counted in.
    ///
    /// # Panics
    /// When it was not: a defect of the engine.
    pub fn held(&mut self, id: FileId) -> &mut Registered {
        match &mut self.slots[id.index as usize] {
            Some(file) => file,
            None => panic!("file {} of an operation in flight is gone", id.index),
        }
    }

    fn removed_if_unused(&mut self, index: u32) -> Option<Registered> {
        self.slots[index as usize].take_if(|file| file.leaving && file.in_flight == 0)
    }
}
