//! The engine `mmap`: a file is mapped into memory, and reading and writing it are copies.
//!
//! A read costs one call, fstat(2), to know where the file ends now, and a page fault for each page
//! that was not touched before. Of files that become no shorter ([`crate::EngineOptions::settled`])
//! nothing is asked inside the mapping. A flush is msync(2). Other operations go through the calls
//! of `sync`: writing past the end (a mapping makes no file longer), discarding, zeroing, and files
//! that cannot be mapped (opened for writing only, pipes) or that were opened with O_DIRECT, which
//! a mapping would silently ignore. `direct=1` and `engine=mmap` together are therefore refused by
//! the class `file`.
//!
//! **What can go wrong.** A page of a mapping that lies past the end of its file, or that the disk
//! cannot deliver, raises SIGBUS where a read(2) would have failed. The end is asked before each
//! copy, but another process may cut the file between the question and the copy, and a disk may
//! fail at any time. So copies run under a guard ([`guard`]), which turns the signal into EIO. What
//! remains:
//!
//! - A program that installs its own handler for SIGBUS after the first mapping, and does not
//!   pass signals on, takes the guard away: the process then ends where it would have got EIO.
//! - A write that a full file system cannot keep (a hole is filled in) raises SIGBUS, too, and
//!   comes back as EIO and not as ENOSPC. A disk that fails when the kernel writes a page back is
//!   told by the next flush.
//! - What other processes write at the same time is seen torn at any byte, not at sectors.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::fs::{OFlags, SeekFrom};
use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags, madvise, mmap, msync, munmap};
use ugeom_machine::buffer::Segment;
use ugeom_machine::mapping::guard;
use ugeom_machine::shared_bytes;

use crate::calls;
use crate::inline::{InlineCalls, InlineEngine};
use crate::op::Errno;
use crate::progress::{Call, Step};

/// The order of the requests to come, for the kernel: posix_madvise(3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessOrder {
    /// The kernel reads nothing ahead, and only the page of a fault.
    Random,
    /// The kernel reads further ahead.
    Sequential,
}

/// Copies from and to mapped files.
#[derive(Default)]
pub struct Mapped {
    /// Advice for each mapping.
    pub(crate) order: Option<AccessOrder>,
    /// Files become no shorter: inside the mapping, nothing asks where they end.
    pub(crate) settled: bool,
}

/// Copies from and to a mapping of the file, in the calling thread.
pub type MmapEngine<M> = InlineEngine<M, Mapped>;

/// The state of a file that can be mapped.
pub struct MappedFile {
    file: Arc<File>,
    order: Option<AccessOrder>,
    settled: bool,
    writable: bool,
    regular: bool,
    mapping: Option<Mapping>,
    /// Something went past the mapping, by write(2), since the last flush.
    beyond: bool,
}

/// A range of memory that is a file.
struct Mapping {
    base: *mut u8,
    len: usize,
    /// A page of it is not the file any more.
    lost: AtomicBool,
}

// SAFETY: the mapping belongs to the value, not to a thread.
unsafe impl Send for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `Mapping::new` with this length; no reference into it exists.
        let _ = unsafe { munmap(self.base.cast(), self.len) };
    }
}

impl Mapping {
    fn new(file: &File, len: usize, writable: bool) -> Result<Mapping, Errno> {
        let mut rights = ProtFlags::READ;
        rights.set(ProtFlags::WRITE, writable);
        // SAFETY: a new mapping at an address of the kernel's choice replaces no other.
        let base = unsafe { mmap(ptr::null_mut(), len, rights, MapFlags::SHARED, file, 0)? };
        Ok(Mapping {
            base: base.cast(),
            len,
            lost: AtomicBool::new(false),
        })
    }

    /// Tells the kernel the order of the requests to come; posix_fadvise(2) does not concern
    /// mappings. The kernel may disregard it.
    fn advise(&self, order: Option<AccessOrder>) {
        let advice = match order {
            None => return,
            Some(AccessOrder::Random) => Advice::Random,
            Some(AccessOrder::Sequential) => Advice::Sequential,
        };
        // SAFETY: the range is the mapping; these advices change nothing in it.
        let _ = unsafe { madvise(self.base.cast(), self.len, advice) };
    }

    /// Makes `len` bytes from `offset` on durable. Both are inside.
    fn sync(&self, offset: usize, len: usize) -> Result<(), Errno> {
        let start = offset / guard::page_bytes() * guard::page_bytes();
        // SAFETY: the range is inside the mapping; msync(2) changes nothing in it.
        unsafe {
            msync(
                self.base.add(start).cast(),
                offset + len - start,
                MsyncFlags::SYNC,
            )
        }
    }
}

impl MappedFile {
    /// The length of the file now, bytes.
    fn len_bytes(&self) -> Result<u64, Errno> {
        if self.regular {
            let stat = rustix::fs::fstat(&*self.file)?;
            return Ok(u64::try_from(stat.st_size).unwrap_or(0));
        }
        rustix::fs::seek(&*self.file, SeekFrom::End(0))
    }

    /// How many bytes of the range from `offset` on can be copied: those before the end of the
    /// file. Maps the file (anew, if it has grown).
    fn inside(&mut self, offset: u64, length: u64) -> Result<usize, Errno> {
        let mapped = self.mapping.as_ref().map_or(0, |mapping| mapping.len);
        if self.settled && offset + length <= mapped as u64 {
            return Ok(length as usize);
        }
        let size = self.len_bytes()?;
        let end = size.min(offset + length);
        if end <= offset {
            return Ok(0);
        }
        if end > mapped as u64 {
            let len = usize::try_from(size).map_err(|_| Errno::NOMEM)?;
            self.mapping = None;
            let mapping = Mapping::new(&self.file, len, self.writable)?;
            mapping.advise(self.order);
            self.mapping = Some(mapping);
        }
        Ok((end - offset) as usize)
    }

    /// Copies between the mapping and the pieces, `len` bytes that lie inside both.
    ///
    /// # Safety
    /// The pieces are alive, at least `len` bytes together, and accessed by no other code.
    unsafe fn copy(&mut self, step: &Step, pieces: &[Segment], len: usize) -> Result<(), Errno> {
        let Some(mapping) = &self.mapping else { return Ok(()) };
        let reading = step.call == Call::Read;
        let base = mapping.base.wrapping_add(step.offset as usize);
        let copy = || {
            let mut done = 0;
            for piece in pieces {
                let here = piece.len.min(len - done);
                let place = base.wrapping_add(done);
                // SAFETY: `place` and `here` bytes behind it are inside the mapping (`inside`),
                // the piece is memory of ours (the caller's promise), which does not overlap it.
                // Other processes may change the mapping meanwhile.
                unsafe {
                    if reading {
                        // Others may copy out of the piece (`IoMemory::is_watched`).
                        shared_bytes::copy(place, piece.base, here);
                    } else {
                        let from = std::slice::from_raw_parts(piece.base, here);
                        shared_bytes::store(from, place);
                    }
                }
                done += here;
            }
        };
        // SAFETY: the mapping is ours, has no references, and is dropped when it is lost.
        if unsafe { guard::run(mapping.base, mapping.len, &mapping.lost, copy) } {
            return Ok(());
        }
        self.mapping = None;
        Err(Errno::IO)
    }

    /// # Safety
    /// As `copy`.
    unsafe fn write(&mut self, step: &Step, pieces: &[Segment]) -> Result<u64, Errno> {
        let inside = if self.writable {
            self.inside(step.offset, step.length)?
        } else {
            0
        };
        if inside == 0 {
            self.beyond = true;
            // SAFETY: the file is open as long as its state, the pieces are the caller's promise.
            return unsafe { calls::perform(self.file.as_raw_fd(), step, pieces) };
        }
        // SAFETY: the caller's promise; `inside` is at most the length of the step.
        unsafe { self.copy(step, pieces, inside)? };
        if let (Call::Write { durable: true }, Some(mapping)) = (step.call, &self.mapping) {
            mapping.sync(step.offset as usize, inside)?;
        }
        Ok(inside as u64)
    }

    fn flush(&mut self) -> Result<u64, Errno> {
        // The mapping may be longer than the file is now; msync(2) passes over what is not there.
        if let (Some(mapping), true) = (&self.mapping, self.writable) {
            mapping.sync(0, mapping.len)?;
        }
        if self.beyond || self.mapping.is_none() {
            rustix::fs::fdatasync(&*self.file)?;
            self.beyond = false;
        }
        Ok(0)
    }
}

impl InlineCalls for Mapped {
    type State = Option<MappedFile>;

    const NAME: &'static str = "mmap";

    fn prepare(&self, file: &Arc<File>) -> Result<Option<MappedFile>, Errno> {
        let error = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
        let kind = file.metadata().map_err(error)?.file_type();
        let flags = rustix::fs::fcntl_getfl(file)?;
        let block_device = std::os::unix::fs::FileTypeExt::is_block_device(&kind);
        let access = flags & (OFlags::WRONLY | OFlags::RDWR);
        if !(kind.is_file() || block_device)
            || access == OFlags::WRONLY
            || flags.contains(OFlags::DIRECT)
        {
            return Ok(None);
        }
        guard::install().map_err(error)?;
        Ok(Some(MappedFile {
            file: Arc::clone(file),
            order: self.order,
            settled: self.settled,
            writable: access == OFlags::RDWR,
            regular: kind.is_file(),
            mapping: None,
            beyond: false,
        }))
    }

    unsafe fn perform(
        state: &mut Option<MappedFile>,
        file: BorrowedFd<'_>,
        step: &Step,
        pieces: &[Segment],
    ) -> Result<u64, Errno> {
        match (state, step.call) {
            (Some(mapped), Call::Read) => {
                let inside = mapped.inside(step.offset, step.length)?;
                // SAFETY: the caller's promise; `inside` is at most the length of the step.
                unsafe { mapped.copy(step, pieces, inside)? };
                Ok(inside as u64)
            }
            // SAFETY: the caller's promise.
            (Some(mapped), Call::Write { .. }) => unsafe { mapped.write(step, pieces) },
            (Some(mapped), Call::DataSync | Call::Sync) => mapped.flush(),
            // SAFETY: the caller's promise.
            _ => unsafe { calls::perform(file.as_raw_fd(), step, pieces) },
        }
    }
}

#[cfg(test)]
mod tests;
