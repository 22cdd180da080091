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
use std::sync::atomic::{AtomicU8, Ordering};
use ugeom_format::qcow2::incompatible::DIRTY;
use ugeom_machine::mutex::Mutex;

/// Where the features are that a reader has to know, from byte 72 on: this is the last byte, with
/// the lowest bits.
const LOWEST_BITS_AT: u64 = 79;

/// Whether the mark is on the medium.
mod state {
    pub const CLEAR: u8 = 0;
    pub const SET: u8 = 1;
    /// A change of it failed half-way: the next one writes it anew.
    pub const UNKNOWN: u8 = 2;
}

/// The mark in one image. Nothing else changes the features while the image is open.
pub(super) struct Unclosed {
    file: File,
    state: AtomicU8,
    changing: Mutex<()>,
}

impl Unclosed {
    /// For a file of version 3 without features that a reader has to know.
    pub fn new(file: File) -> Self {
        Self {
            file,
            state: AtomicU8::new(state::CLEAR),
            changing: Mutex::new(()),
        }
    }

    /// Sets the mark, durably, before the map of clusters is changed for the first time.
    ///
    /// # Errors
    /// The error of writing.
    pub fn set(&self) -> io::Result<()> {
        self.change(state::SET)
    }

    /// Takes the mark away, once everything else is durable.
    ///
    /// # Errors
    /// The error of writing.
    pub fn clear(&self) -> io::Result<()> {
        self.change(state::CLEAR)
    }

    fn change(&self, to: u8) -> io::Result<()> {
        if self.state.load(Ordering::Acquire) == to {
            return Ok(());
        }
        let _changing = self.changing.lock();
        if self.state.load(Ordering::Acquire) == to {
            return Ok(());
        }
        self.state.store(state::UNKNOWN, Ordering::Release);
        let bits = if to == state::SET { DIRTY as u8 } else { 0 };
        self.file.write_all_at(&[bits], LOWEST_BITS_AT)?;
        self.file.sync_data()?;
        self.state.store(to, Ordering::Release);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_failed_change_the_next_one_writes_the_mark_again() {
        // It takes every write, and no fdatasync.
        let null = File::options().write(true).open("/dev/null").unwrap();
        let mark = Unclosed::new(null);
        mark.state.store(state::SET, Ordering::Release);
        mark.set().unwrap();
        mark.clear().unwrap_err();
        mark.set().unwrap_err();
        mark.clear().unwrap_err();
    }
}
