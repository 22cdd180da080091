//! The mark of an image that is not closed: the bit "dirty" of its header.
//!
//! `imago` may write pointers before the counts of the clusters that they use are durable, and
//! `engine::ordered` keeps the order of pointers and data only. So a process that is killed, or a
//! machine that loses power, may leave counts that are too small. Reading is not affected, but the
//! next writer would allocate clusters that are in use. The format has this bit for it: a writer
//! has to recount the clusters first. qemu does so, and ugeom leaves such an image to qemu (`plan`
//! in the module above).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use ugeom_format::qcow2::incompatible::DIRTY;

/// Where the features are that a reader has to know, from byte 72 on: this is the last byte, with
/// the lowest bits.
const LOWEST_BITS_AT: u64 = 79;

/// The mark in one image. Nothing else changes the features while the image is open.
pub(super) struct Unclosed {
    file: File,
    is_set: AtomicBool,
    changing: Mutex<()>,
}

impl Unclosed {
    /// For a file of version 3 without features that a reader has to know.
    pub fn new(file: File) -> Self {
        Self {
            file,
            is_set: AtomicBool::new(false),
            changing: Mutex::new(()),
        }
    }

    /// Sets the mark, durably, before the map of clusters is changed for the first time.
    ///
    /// # Errors
    /// What writing failed with.
    pub fn set(&self) -> io::Result<()> {
        match self.is_set.load(Ordering::Acquire) {
            true => Ok(()),
            false => self.change(true),
        }
    }

    /// Takes the mark away, once everything else is durable.
    ///
    /// # Errors
    /// What writing failed with.
    pub fn clear(&self) -> io::Result<()> {
        match self.is_set.load(Ordering::Acquire) {
            true => self.change(false),
            false => Ok(()),
        }
    }

    fn change(&self, to: bool) -> io::Result<()> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_set.load(Ordering::Acquire) == to {
            return Ok(());
        }
        let bits = if to { DIRTY as u8 } else { 0 };
        self.file.write_all_at(&[bits], LOWEST_BITS_AT)?;
        self.file.sync_data()?;
        self.is_set.store(to, Ordering::Release);
        Ok(())
    }
}
