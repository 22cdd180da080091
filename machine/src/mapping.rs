//! A file mapped for reading: the kernel's own cached pages, copied from without a system call; and
//! how much of a file is in memory at all.
//!
//! Sources: mmap(2), mincore(2).

pub mod guard;

use crate::call::done;
use std::fs::File;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicBool;

use crate::shared_bytes;
use rustix::mm::{MapFlags, ProtFlags};

/// A read-only shared mapping of the beginning of a file.
///
/// Once a copy has met a page that the file has lost (it was cut, or the disk failed), the mapping
/// is of no use any more, and every copy fails.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    len: usize,
    lost: AtomicBool,
}

// SAFETY: the mapping is owned and belongs to no thread.
unsafe impl Send for Mapping {}
// SAFETY: it is only read, and by copies that may race.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `len_bytes` of a file and reads them into memory, as far as it fits.
    ///
    /// # Errors
    /// EINVAL when the length is 0 or the file is shorter; else what mmap(2) says, as for files
    /// that cannot be mapped, or sigaction(2).
    pub fn of(file: &File, len_bytes: u64) -> io::Result<Self> {
        let size_bytes = file.metadata()?.len();
        let len = usize::try_from(len_bytes).unwrap_or(usize::MAX);
        if len == 0 || len_bytes > size_bytes {
            let message =
                format!("a mapping of {len_bytes} bytes of a file that has {size_bytes} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        guard::install()?;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping at an address that the kernel chooses replaces nothing.
        let base =
            unsafe { rustix::mm::mmap(ptr::null_mut(), len, ProtFlags::READ, flags, file, 0)? };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let lost = AtomicBool::new(false);
        Ok(Self { base, len, lost })
    }

    /// Length in bytes; never 0.
    #[expect(clippy::len_without_is_empty, reason = "a mapping is never empty")]
    pub fn len(&self) -> u64 {
        self.len as u64
    }

    /// Copies from `offset_bytes` on into `into`.
    ///
    /// # Errors
    /// EIO when the file is shorter now, or the disk does not deliver, or that happened before.
    ///
    /// # Panics
    /// When the range leaves the mapping.
    #[inline]
    pub fn copy_out(&self, offset_bytes: u64, into: &mut [u8]) -> io::Result<()> {
        let end = offset_bytes.checked_add(into.len() as u64);
        assert!(
            end.is_some_and(|end| end <= self.len as u64),
            "a copy of {} bytes at offset {offset_bytes} leaves a mapping of {} bytes",
            into.len(),
            self.len
        );
        // SAFETY: the mapping is ours, is only read by copies like this one, and gives nothing
        // after `lost` is set.
        let whole = unsafe {
            guard::run(self.base.as_ptr(), self.len, &self.lost, || {
                // SAFETY: the range lies inside the mapping, as was just checked, and `into` is
                // memory of its own. Writes to the file happen outside of this program's memory;
                // whichever bytes arrive are as good as what read(2) would give.
                let from = self.base.as_ptr().add(offset_bytes as usize);
                shared_bytes::load(from, into);
            })
        };
        if whole {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(libc::EIO))
        }
    }

    /// How many bytes of it are in memory now (mincore(2)), whole pages.
    ///
    /// # Errors
    /// The error of mincore(2).
    pub fn resident_bytes(&self) -> io::Result<u64> {
        let page = rustix::param::page_size();
        let mut pages = vec![0_u8; self.len.div_ceil(page)];
        // SAFETY: the range is our mapping, and the vector has a byte for each of its pages.
        done(unsafe { libc::mincore(self.base.as_ptr().cast(), self.len, pages.as_mut_ptr()) })?;
        let resident = pages.iter().filter(|page| **page & 1 != 0).count() * page;
        Ok(resident.min(self.len) as u64)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no pointer into it outlives a copy.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A file without a name. Tests run side by side in one process, so each has a number.
    fn file(bytes: &[u8]) -> File {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("ugeom-mapping-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut options = File::options();
        let mut file = options
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .unwrap();
        std::fs::remove_file(&path).unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    #[test]
    fn what_is_in_the_file_is_copied_out_and_in_memory() {
        let bytes: Vec<u8> = (0..10_000_u32).map(|at| at as u8).collect();
        let file = file(&bytes);
        let mapping = Mapping::of(&file, 10_000).unwrap();
        let mut into = [0; 700];
        mapping.copy_out(9_300, &mut into).unwrap();
        assert_eq!(into[..], bytes[9_300..]);
        assert_eq!(
            (mapping.len(), mapping.resident_bytes().unwrap()),
            (10_000, 10_000)
        );
    }

    #[test]
    fn more_than_the_file_has_is_refused() {
        let file = file(&[1; 4096]);
        let error = Mapping::of(&file, 4097).unwrap_err().to_string();
        assert_eq!(
            error,
            "a mapping of 4097 bytes of a file that has 4096 bytes"
        );
        assert!(Mapping::of(&file, 0).is_err());
    }

    #[test]
    #[should_panic(expected = "a copy of 2 bytes at offset 4095 leaves a mapping of 4096 bytes")]
    fn a_copy_past_the_end_is_the_callers_defect() {
        let mapping = Mapping::of(&file(&[1; 4096]), 4096).unwrap();
        let _ = mapping.copy_out(4095, &mut [0; 2]);
    }
}
