//! Reads that the page cache answers, in the thread that submits them.
//!
//! A ring runs such a read in the submitter's thread as well, but after an entry, a completion and
//! a look at the file: in all about as long as the read itself. preadv2(2) with RWF_NOWAIT reads
//! from the page cache and never waits for a device. A read that it does not answer in full goes
//! the usual way, as if it had not been tried; after one that it does not answer, some are not
//! tried.
//!
//! Only with [`Backend::Auto`](crate::Backend::Auto), and only while no request waits in the
//! ring's queues, which it would overtake.

use crate::calls::{IoCall, outcome};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::work::Outcome;

/// The most reads that are not tried after one without an answer.
const SKIPPED_MAX: u32 = 64;

/// Reads of a descriptor for which one look at its flags serves. A look costs a sixth of a cached
/// read of 4 KiB; fewer reads than these can wait for a device after a descriptor becomes direct.
const READS_PER_LOOK: u32 = 16;

/// The reads that are tried inline. Its numbers are hints: threads may overwrite each other's.
#[derive(Default)]
pub(crate) struct Inline {
    /// Reads that are not tried from here on.
    skips: AtomicU32,
    /// How many those were at the last miss.
    stretch: AtomicU32,
    /// The descriptor whose flags were looked at last, in the upper half, and for how many more
    /// reads it counts as buffered, in the lower.
    buffered: AtomicU64,
}

impl Inline {
    /// Whether the call is a read that is to be tried.
    #[inline]
    pub(crate) fn wants(&self, call: &IoCall) -> bool {
        // A negative offset is the file's own position for preadv2(2), and EINVAL for pread(2).
        matches!(
            *call,
            IoCall::ReadAt {
                len: 1..,
                offset: 0..,
                ..
            }
        ) && self.is_due()
    }

    #[inline]
    fn is_due(&self) -> bool {
        let skips = self.skips.load(Ordering::Relaxed);
        if skips > 0 {
            self.skips.store(skips - 1, Ordering::Relaxed);
        }
        skips == 0
    }

    #[inline]
    fn note(&self, is_hit: bool) {
        let stretch = self.stretch.load(Ordering::Relaxed);
        let next = match is_hit {
            true => 0,
            false => (2 * stretch).clamp(1, SKIPPED_MAX),
        };
        if next != stretch || !is_hit {
            self.stretch.store(next, Ordering::Relaxed);
            self.skips.store(next, Ordering::Relaxed);
        }
    }

    /// Runs a read that is wanted and that the page cache answers in full; `None` for others, which
    /// have had no effect but on the memory that they are to write to.
    ///
    /// # Safety
    /// The promise of `Io::new`.
    #[inline]
    pub(crate) unsafe fn run(&self, call: &IoCall) -> Option<Outcome> {
        let IoCall::ReadAt {
            fd,
            memory,
            len,
            offset,
        } = *call
        else {
            return None;
        };
        // SAFETY: the memory is valid by contract.
        let result = self
            .is_buffered(fd)
            .then(|| unsafe { read_cached(fd, memory, len, offset) });
        let is_hit = result.is_some_and(|result| result == len as isize || is_consumed(fd, result));
        self.note(is_hit);
        result.filter(|_| is_hit).map(outcome)
    }

    /// Whether reads of the descriptor go through the page cache. In direct ones RWF_NOWAIT waits
    /// for the device.
    #[inline]
    fn is_buffered(&self, fd: i32) -> bool {
        let last = self.buffered.load(Ordering::Relaxed);
        if (last >> 32) as i32 == fd && last as u32 > 0 {
            self.buffered.store(last - 1, Ordering::Relaxed);
            return true;
        }
        // SAFETY: it only asks; a descriptor that is not open is an error.
        let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
        let is_buffered = flags >= 0 && flags & libc::O_DIRECT == 0;
        if is_buffered {
            let further = u64::from(READS_PER_LOOK - 1);
            self.buffered
                .store(u64::from(fd as u32) << 32 | further, Ordering::Relaxed);
        }
        is_buffered
    }
}

/// Reads from the page cache. The C library's preadv2(2) is a cancellation point: a thread that was
/// cancelled in it would leave through our frames, and the preparation costs 50 ns.
///
/// # Safety
/// The memory is valid and of that length.
unsafe fn read_cached(fd: i32, memory: *mut u8, len: usize, offset: i64) -> isize {
    let vector = libc::iovec {
        iov_base: memory.cast(),
        iov_len: len,
    };
    // SAFETY: by contract. A 64-bit kernel takes the whole offset from the first of its two words.
    let result = unsafe {
        let (vectors, offset_high) = (1_usize, 0_usize);
        libc::syscall(
            libc::SYS_preadv2,
            fd,
            &raw const vector,
            vectors,
            offset,
            offset_high,
            libc::RWF_NOWAIT,
        )
    };
    result as isize
}

/// Whether a read that was answered in part cannot be made once more: in files and on disks what
/// was read is still there, elsewhere (an eventfd) it may be gone.
#[cold]
fn is_consumed(fd: i32, result: isize) -> bool {
    let mut about = std::mem::MaybeUninit::<libc::stat64>::uninit();
    // SAFETY: the kernel fills the structure, ours, where it answers 0.
    let kind = unsafe {
        match libc::fstat64(fd, about.as_mut_ptr()) {
            0 => about.assume_init().st_mode & libc::S_IFMT,
            _ => libc::S_IFREG,
        }
    };
    result > 0 && !matches!(kind, libc::S_IFREG | libc::S_IFBLK)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

    use super::*;

    #[test]
    fn misses_are_followed_by_longer_and_longer_stretches_without_a_try() {
        let inline = Inline::default();
        let mut stretches = Vec::new();
        for _ in 0..9 {
            assert!(inline.is_due());
            inline.note(false);
            let skipped = (0..).take_while(|_| inline.skips.load(Ordering::Relaxed) > 0);
            stretches.push(skipped.filter(|_| !inline.is_due()).count());
        }
        assert_eq!(stretches, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
        inline.note(true);
        assert!(inline.is_due() && inline.is_due());
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no dup2(2) and no O_DIRECT")]
    fn a_descriptor_that_becomes_direct_is_noticed_within_sixteen_reads() {
        // A pipe in packet mode has the flag on every file system.
        let (file, other) = (File::open("/dev/null"), File::open("/dev/null"));
        let (file, other) = (file.unwrap(), other.unwrap());
        let mut pipe = [-1; 2];
        // SAFETY: the kernel fills the array with two descriptors, which are ours.
        let pipe = unsafe {
            assert_eq!(libc::pipe2(pipe.as_mut_ptr(), libc::O_DIRECT), 0);
            pipe.map(|fd| OwnedFd::from_raw_fd(fd))
        };
        let (fd, direct) = (file.as_raw_fd(), pipe[1].as_raw_fd());

        let inline = Inline::default();
        assert!(!inline.is_buffered(direct) && !inline.is_buffered(-1));
        assert!(inline.is_buffered(fd) && !inline.is_buffered(direct));
        assert!(inline.is_buffered(other.as_raw_fd()) && inline.is_buffered(fd));
        // SAFETY: both are open and ours; the first stays owned by `file`.
        unsafe { libc::dup2(direct, fd) };
        let stale = (0..100).take_while(|_| inline.is_buffered(fd)).count();
        assert_eq!(stale as u32, READS_PER_LOOK - 1);
    }
}
