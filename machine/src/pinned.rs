//! Locked memory, which leaves less for the page cache (`lockmem` of fio).

use std::io;
use std::ptr;

use rustix::mm::{MapFlags, ProtFlags};

/// Memory that is never locked, bytes, as in fio (memory.c).
const LEFT_BYTES: u64 = 128 << 20;

/// Memory that is locked until this is dropped.
#[derive(Debug)]
pub struct PinnedMemory {
    base: *mut core::ffi::c_void,
    bytes: usize,
}

impl PinnedMemory {
    /// Locks `bytes`, at most all memory of the machine but 128 MiB.
    ///
    /// # Errors
    /// ENOMEM: RLIMIT_MEMLOCK or the free memory is smaller.
    pub fn new(bytes: u64) -> io::Result<Self> {
        let info = rustix::system::sysinfo();
        let all_bytes = (info.totalram as u64).saturating_mul(u64::from(info.mem_unit.max(1)));
        let most_bytes = all_bytes.saturating_sub(LEFT_BYTES).max(1);
        let bytes = usize::try_from(bytes.min(most_bytes)).unwrap_or(usize::MAX);
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let base = unsafe {
            rustix::mm::mmap_anonymous(ptr::null_mut(), bytes, protection, MapFlags::PRIVATE)?
        };
        let pinned = Self { base, bytes };
        // SAFETY: the mapping is this value's own.
        unsafe { rustix::mm::mlock(base, bytes)? };
        Ok(pinned)
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nothing borrows from it. It can only fail
        // for an address that is no mapping.
        let _ = unsafe { rustix::mm::munmap(self.base, self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locked_kib() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").expect("the status");
        let line = status.lines().find(|line| line.starts_with("VmLck:"));
        let words = line.and_then(|line| line.split_whitespace().nth(1));
        words.and_then(|kib| kib.parse().ok()).expect("a number")
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no mlock")]
    fn memory_is_locked() {
        let pinned = PinnedMemory::new(1 << 20).expect("1 MiB may be locked");
        assert!(locked_kib() >= 1024);
        drop(pinned);
    }
}
