//! [`Secret`]: memory for keys, which is locked, left out of core dumps, and wiped.
//!
//! ```text
//! chunk (16 KiB, mlock(2), MADV_DONTDUMP)   [ key ][ key ][ free ][ free ] ...   slots of one size
//! ```
//! A key that is made on the stack and moved leaves its bytes there; [`scrub_stack`] overwrites
//! what calls before it left behind.

use crate::mutex::Mutex;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::alloc::Layout;
use std::fmt;
use std::hint::black_box;
use std::io;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicI32, Ordering, compiler_fence};

/// The unit of mappings, bytes; a multiple of every page size below it.
const CHUNK_BYTES: usize = 16 << 10;
/// The smallest slot, bytes: a line of the processor's cache.
const SLOT_BYTES_MIN: usize = 64;
/// How much of the stack is overwritten, bytes.
const SCRUB_BYTES: usize = 32 << 10;

static CHUNKS: Mutex<Vec<Chunk>> = Mutex::new(Vec::new());
/// Why memory could not be locked; 0 when it always could.
static LOCK_ERRNO: AtomicI32 = AtomicI32::new(0);

/// Memory for slots of one size.
struct Chunk {
    base: NonNull<u8>,
    bytes: usize,
    slot_bytes: usize,
    free: Vec<u32>,
}

// SAFETY: a chunk is memory of the process; the pointer is used under the lock only.
unsafe impl Send for Chunk {}

impl Chunk {
    fn map(slot_bytes: usize) -> io::Result<Self> {
        let bytes = slot_bytes.max(CHUNK_BYTES);
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let base =
            unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), bytes, protection, flags)? };
        // SAFETY: the mapping is this chunk's own.
        let locked = unsafe { rustix::mm::mlock(base, bytes) };
        if let Err(errno) = locked {
            LOCK_ERRNO.store(errno.raw_os_error(), Ordering::Relaxed);
        }
        // SAFETY: the mapping is this chunk's own, and the advice changes no byte of it. A kernel
        // that refuses it dumps the memory; `forbid_dumps` is the other line of defence.
        let _ = unsafe { rustix::mm::madvise(base, bytes, Advice::LinuxDontDump) };
        let base = NonNull::new(base.cast()).ok_or(Errno::NOMEM)?;
        let slots = bytes / slot_bytes;
        Ok(Self {
            base,
            bytes,
            slot_bytes,
            free: (0..slots as u32).rev().collect(),
        })
    }

    fn is_unused(&self) -> bool {
        self.free.len() == self.bytes / self.slot_bytes
    }

    fn holds(&self, place: NonNull<u8>) -> bool {
        let start = self.base.addr().get();
        (start..start + self.bytes).contains(&place.addr().get())
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: the mapping is this chunk's own, and no slot of it is in use: chunks are only
        // dropped when they are unused.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

fn slot_bytes(layout: Layout) -> usize {
    let least = layout.size().max(layout.align()).max(SLOT_BYTES_MIN);
    least.next_power_of_two()
}

fn take(slot_bytes: usize) -> io::Result<NonNull<u8>> {
    let mut chunks = CHUNKS.lock();
    let has_room = |chunk: &Chunk| chunk.slot_bytes == slot_bytes && !chunk.free.is_empty();
    let at = match chunks.iter().position(has_room) {
        Some(at) => at,
        None => {
            chunks.push(Chunk::map(slot_bytes)?);
            chunks.len() - 1
        }
    };
    let chunk = &mut chunks[at];
    let slot = chunk.free.pop().ok_or(Errno::NOMEM)?;
    // SAFETY: a slot of the chunk lies inside its mapping.
    Ok(unsafe { chunk.base.add(slot as usize * slot_bytes) })
}

fn give(place: NonNull<u8>) {
    let mut chunks = CHUNKS.lock();
    let Some(at) = chunks.iter().position(|chunk| chunk.holds(place)) else { return };
    let chunk = &mut chunks[at];
    let offset = place.addr().get() - chunk.base.addr().get();
    chunk.free.push((offset / chunk.slot_bytes) as u32);
    if chunk.is_unused() {
        chunks.swap_remove(at);
    }
}

/// A value in locked memory. Memory that it owns elsewhere (a `Vec`'s elements) is not protected,
/// so `T` should own nothing.
pub struct Secret<T> {
    place: NonNull<T>,
}

// SAFETY: the value is owned, as by a box.
unsafe impl<T: Send> Send for Secret<T> {}
// SAFETY: a shared secret lends `&T` only.
unsafe impl<T: Sync> Sync for Secret<T> {}

impl<T> Secret<T> {
    /// Slots begin at multiples of their size, within chunks that begin at a page.
    const ALIGNED: () = assert!(
        mem::align_of::<T>() <= 4096,
        "a secret is aligned to a page at most"
    );

    /// Makes a value and moves it into locked memory. Call [`scrub_stack`] when the last secret of
    /// a series is made. A type with a larger alignment than a page is not compiled:
    ///
    /// ```compile_fail,E0080
    /// #[repr(align(8192))]
    /// struct Wide(u8);
    /// let secret = ugeom_machine::secret::Secret::new(|| Wide(1));
    /// ```
    ///
    /// # Errors
    /// There is no memory. Memory that cannot be locked is no error; see [`lock_error`].
    pub fn new(make: impl FnOnce() -> T) -> io::Result<Self> {
        const { Self::ALIGNED };
        let place = take(slot_bytes(Layout::new::<T>()))?.cast::<T>();
        // SAFETY: the slot is free, and as large and as aligned as `T` needs: its size is a power
        // of two that is no smaller than the alignment, and chunks begin on pages (`ALIGNED`).
        unsafe { place.write(make()) };
        Ok(Self { place })
    }
}

impl<T> Deref for Secret<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: written in `new`, and owned by this value.
        unsafe { self.place.as_ref() }
    }
}

impl<T> DerefMut for Secret<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above; the exclusive borrow keeps all others away.
        unsafe { self.place.as_mut() }
    }
}

impl<T> Drop for Secret<T> {
    fn drop(&mut self) {
        // SAFETY: the value is owned and dropped here only; afterwards its slot is bytes, which are
        // written until the slot is given back.
        unsafe {
            self.place.drop_in_place();
            let bytes = self.place.cast::<u8>();
            for at in 0..mem::size_of::<T>() {
                bytes.add(at).write_volatile(0);
            }
        }
        compiler_fence(Ordering::SeqCst);
        give(self.place.cast());
    }
}

impl<T> fmt::Debug for Secret<T> {
    /// Prints the name of the type, never the value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Overwrites values with their default, also where the compiler knows that nothing reads them
/// again.
pub fn wipe<T: Copy + Default>(values: &mut [T]) {
    for value in values {
        // SAFETY: a reference to a plain value.
        unsafe { ptr::write_volatile(value, T::default()) };
    }
    compiler_fence(Ordering::SeqCst);
}

/// Overwrites the part of the stack that functions called before this one have used.
#[inline(never)]
pub fn scrub_stack() {
    let mut area = [0_u64; SCRUB_BYTES / 8];
    wipe(&mut area);
    black_box(&area);
}

/// Overwrites `BYTES` of what the functions have left on the stack that the caller has just called:
/// cheap enough for each request, where [`scrub_stack`] is for the end of a layer.
#[inline(never)]
pub fn scrub_frames<const BYTES: usize>() {
    let mut area = [0_u8; BYTES];
    black_box(&mut area);
}

/// Compares without telling by the time it takes where the first difference is. Slices of
/// different lengths are different.
pub fn equal(left: &[u8], right: &[u8]) -> bool {
    let (left_words, left_rest) = left.as_chunks::<8>();
    let (right_words, right_rest) = right.as_chunks::<8>();
    let words = left_words.iter().zip(right_words);
    let words = words.map(|(a, b)| u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b));
    let rest = left_rest.iter().zip(right_rest);
    let differences = words.chain(rest.map(|(a, b)| u64::from(a ^ b)));
    let all = black_box(differences.fold(0, |all, one| all | one));
    left.len() == right.len() && all == 0
}

/// Why secrets are in memory that may be swapped out: the limit of locked memory
/// (`RLIMIT_MEMLOCK`), as a rule. `None` when all of it is locked.
pub fn lock_error() -> Option<io::Error> {
    match LOCK_ERRNO.load(Ordering::Relaxed) {
        0 => None,
        errno => Some(io::Error::from_raw_os_error(errno)),
    }
}

/// Forbids core dumps of this process, and debuggers of the same user (PR_SET_DUMPABLE, prctl(2)).
///
/// # Errors
/// The system's answer.
pub fn forbid_dumps() -> io::Result<()> {
    let never = rustix::process::DumpableBehavior::NotDumpable;
    Ok(rustix::process::set_dumpable_behavior(never)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no mlock")]
    fn a_dropped_secret_leaves_zeroes() {
        // Another secret of this size keeps the chunk mapped.
        let neighbour = Secret::new(|| [1_u8; 3000]).expect("memory");
        let secret = Secret::new(|| [0xa5_u8; 3000]).expect("memory");
        let place = secret.place.cast::<u8>();
        assert!(secret.iter().all(|&byte| byte == 0xa5));
        drop(secret);
        // SAFETY: the chunk is mapped as long as the neighbour lives, and no other test uses slots
        // of this size.
        let all_zero = (0..3000).all(|at| unsafe { place.add(at).read_volatile() } == 0);
        assert!(all_zero);
        assert!(neighbour.iter().all(|&byte| byte == 1));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no mlock")]
    fn secrets_of_all_sizes_are_aligned_and_apart() {
        #[derive(Clone, Copy)]
        #[repr(align(64))]
        struct Wide([u8; 700]);
        let mut all: Vec<Secret<Wide>> = (0..100_u8)
            .map(|number| Secret::new(|| Wide([number; 700])).expect("memory"))
            .collect();
        let small: Vec<_> = (0..100_u64)
            .map(|n| Secret::new(|| n).expect("memory"))
            .collect();
        let large = Secret::new(|| [7_u8; 40_000]).expect("memory");
        for (number, secret) in (0..100_u8).zip(&all) {
            assert!(secret.0.iter().all(|&byte| byte == number));
            assert_eq!(secret.place.addr().get() % 64, 0);
        }
        all.truncate(10);
        assert!((0..100).zip(&small).all(|(n, secret)| **secret == n));
        assert!(large.iter().all(|&byte| byte == 7));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no mlock")]
    fn chunks_are_locked_and_not_dumped() {
        let secret = Secret::new(|| [3_u8; 500]).expect("memory");
        let maps = std::fs::read_to_string("/proc/self/smaps").expect("maps");
        let place = secret.place.addr().get();
        let mut inside = false;
        let mut flags = String::new();
        for line in maps.lines() {
            let range = line
                .split_once(' ')
                .and_then(|(range, _)| range.split_once('-'));
            let hex = |text: &str| usize::from_str_radix(text, 16).ok();
            if let Some((start, end)) = range.and_then(|(a, b)| hex(a).zip(hex(b))) {
                inside = (start..end).contains(&place);
            } else if inside && line.starts_with("VmFlags:") {
                flags = line.to_owned();
            }
        }
        assert!(flags.contains(" dd"), "{flags}");
        assert_eq!(flags.contains(" lo"), lock_error().is_none(), "{flags}");
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no mlock")]
    fn only_equal_bytes_are_equal() {
        assert!(equal(b"", b""));
        assert!(equal(b"abc", b"abc"));
        assert!(!equal(b"abc", b"abd"));
        assert!(!equal(b"abc", b"xbc"));
        assert!(!equal(b"abc", b"ab"));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no mlock")]
    fn a_secret_does_not_print_itself() {
        let secret = Secret::new(|| 0x1234_5678_u32).expect("memory");
        assert_eq!(format!("{secret:?}"), "Secret");
    }
}
