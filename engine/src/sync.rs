//! The engines `sync` and `seek`: each operation is a blocking system call, made when it is
//! reaped.
//!
//! For comparison, for measuring without a queue, and for systems that have nothing better. `seek`
//! makes two calls of each transfer, lseek(2) and read(2) or write(2), as programs did before
//! pread(2), and as the measurements of that time did.

use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, SeekFrom};
use ugeom_machine::buffer::Segment;

use crate::calls;
use crate::inline::{InlineCalls, InlineEngine};
use crate::op::Errno;
use crate::progress::{Call, Step};

/// Blocking calls that carry their offset: pread(2), pwrite(2) and their kin.
#[derive(Default)]
pub struct Positioned;

/// Blocking calls that use the file's own position.
#[derive(Default)]
pub struct Seeking;

/// pread(2) and pwrite(2), in the calling thread.
pub type SyncEngine<M> = InlineEngine<M, Positioned>;

/// lseek(2), then read(2) or write(2), in the calling thread.
pub type SeekEngine<M> = InlineEngine<M, Seeking>;

impl InlineCalls for Positioned {
    type State = ();

    const NAME: &'static str = "sync";

    fn prepare(&self, _file: &Arc<File>) -> Result<(), Errno> {
        Ok(())
    }

    unsafe fn perform(
        (): &mut (),
        file: BorrowedFd<'_>,
        step: &Step,
        pieces: &[Segment],
    ) -> Result<u64, Errno> {
        // SAFETY: the caller's promise.
        unsafe { calls::perform(file.as_raw_fd(), step, pieces) }
    }
}

impl InlineCalls for Seeking {
    /// The file opened once more: its position is then not shared, while that of a descriptor
    /// that two engines share would be moved by both.
    type State = Option<File>;

    const NAME: &'static str = "seek";

    fn prepare(&self, file: &Arc<File>) -> Result<Option<File>, Errno> {
        let metadata = file
            .metadata()
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        if !metadata.is_file() && !metadata.file_type().is_block_device() {
            return Ok(None);
        }
        let kept = OFlags::RDONLY | OFlags::WRONLY | OFlags::RDWR | OFlags::DIRECT;
        let flags = (rustix::fs::fcntl_getfl(file)? & kept) | OFlags::CLOEXEC;
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        let again = rustix::fs::open(link, flags, Mode::empty())?;
        Ok(Some(File::from(again)))
    }

    unsafe fn perform(
        own: &mut Option<File>,
        file: BorrowedFd<'_>,
        step: &Step,
        pieces: &[Segment],
    ) -> Result<u64, Errno> {
        match (own, step.call) {
            (Some(own), Call::Read | Call::Write { .. }) => {
                rustix::fs::seek(&*own, SeekFrom::Start(step.offset))?;
                // SAFETY: the caller's promise; the file is open for as long as its state.
                unsafe { calls::transfer_at_position(own.as_raw_fd(), step.call, pieces) }
            }
            // SAFETY: the caller's promise.
            _ => unsafe { calls::perform(file.as_raw_fd(), step, pieces) },
        }
    }
}
