//! Anonymous memory that threads share without locks: the memory of a memory disk or a cache.
//! Sparse: a page that was never written takes no memory and reads as zero.
//!
//! Beside the memory stands a bitmap with one bit for each granule of 4 KiB, set once the granule
//! has been written, and a summary with one bit for each page of the bitmap. Both are mapped
//! lazily, so that a region of 2^46 bytes costs nothing until it is used.

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

mod dense;
mod discards;
mod lease;
mod pages;

use crate::shared_bytes;
use discards::Discards;
pub use lease::Lease;
use pages::Memory;

/// Greatest length of a region, in bytes (2^46: half the address space of a process on x86_64).
pub const MAX_LEN_BYTES: u64 = 1 << 46;

/// Size of the pieces that are allocated, reported and given back, in bytes.
pub(crate) const GRANULE_BYTES: u64 = 4096;

/// Granules that one bit of the summary covers: those of one page of the bitmap, 128 MiB.
const CHUNK_GRANULES: u64 = 4096 * 8;

/// Granules that are given back at a time, 2 MiB, a huge page: what a request may have to wait for.
const PIECE_GRANULES: u64 = pages::HUGE_BYTES / GRANULE_BYTES;

/// Sparse memory shared by threads.
pub struct Region {
    /// Address of the first byte of `memory`.
    base: NonNull<u8>,
    len: u64,
    /// Leases keep it, too.
    memory: Arc<Memory>,
    written: Bitmap,
    discards: Discards,
}

// SAFETY: the region owns its mappings, which do not belong to a thread.
unsafe impl Send for Region {}
// SAFETY: the memory is reached only through copies that may race (`shared_bytes`), never by
// reference.
unsafe impl Sync for Region {}

impl Region {
    /// Maps `len` bytes of zeroes. Nothing is reserved: memory is taken as it is written.
    ///
    /// # Errors
    /// EINVAL when `len` exceeds 2^46; else what mmap(2) says, as when the system forbids
    /// overcommitment.
    pub fn new(len: u64) -> io::Result<Region> {
        if len > MAX_LEN_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("a memory region of {len} bytes exceeds the limit of {MAX_LEN_BYTES}"),
            ));
        }
        let written = Bitmap::new(len.div_ceil(GRANULE_BYTES))?;
        let memory = Arc::new(Memory::map(len)?);
        Ok(Region {
            base: memory.base(),
            len,
            memory,
            written,
            discards: Discards::new(),
        })
    }

    /// Length of the region, bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies from `offset` on into `into`. Granules that were never written are not touched, so
    /// that reading takes no memory.
    ///
    /// # Panics
    /// When the range leaves the region.
    #[inline]
    pub fn read(&self, offset: u64, into: &mut [u8]) {
        let len = into.len() as u64;
        self.check("read", offset, len);
        if len == 0 {
            return;
        }
        let granule = offset / GRANULE_BYTES;
        if granule == (offset + len - 1) / GRANULE_BYTES {
            if self.written.get(granule) {
                self.copy_out(offset, into);
            } else {
                into.fill(0);
            }
        } else {
            self.read_long(offset, into);
        }
    }

    fn read_long(&self, mut offset: u64, mut into: &mut [u8]) {
        while !into.is_empty() {
            let (extent, written) = self.extent_within(offset, into.len() as u64);
            let (piece, rest) = into.split_at_mut(extent as usize);
            if written {
                self.copy_out(offset, piece);
            } else {
                piece.fill(0);
            }
            offset += extent;
            into = rest;
        }
    }

    /// Copies `from` to `offset`.
    ///
    /// # Panics
    /// When the range leaves the region.
    #[inline]
    pub fn write(&self, offset: u64, from: &[u8]) {
        let len = from.len() as u64;
        self.check("write", offset, len);
        if len == 0 {
            return;
        }
        self.discards.wait_for(offset, len);
        self.prepare(offset, len);
        // SAFETY: the range lies inside the mapping (`check`), which the region owns, and `from`
        // cannot overlap it: no code holds a reference into it, or accesses it in any way but by
        // these copies.
        unsafe { shared_bytes::store(from, self.at(offset)) };
        // After the copy, so that a write that races with a discard of the same range never ends
        // as data in a granule that is not marked, which a later write nearby would uncover.
        self.mark(offset, len);
    }

    /// Sets `len` bytes from `offset` on to `byte`. Zeroes are not written to granules that were
    /// never written.
    ///
    /// # Panics
    /// When the range leaves the region.
    pub fn fill(&self, offset: u64, len: u64, byte: u8) {
        self.check("fill", offset, len);
        if len == 0 {
            return;
        }
        if byte != 0 {
            self.prepare(offset, len);
            self.set(offset, len, byte);
            self.mark(offset, len);
            return;
        }
        let mut done = 0;
        while done < len {
            let (extent, written) = self.extent_within(offset + done, len - done);
            if written {
                self.set(offset + done, extent, 0);
            }
            done += extent;
        }
    }

    /// Makes `len` bytes from `offset` on read as zero, and gives whole granules back to the
    /// system.
    ///
    /// # Errors
    /// When the system does not take the memory back (madvise(2), as for locked memory). The
    /// range reads as zero all the same.
    ///
    /// # Panics
    /// When the range leaves the region.
    pub fn discard(&self, offset: u64, len: u64) -> io::Result<()> {
        self.check("discard", offset, len);
        let end = offset + len;
        let first = offset.div_ceil(GRANULE_BYTES);
        // The last granule may be cut by the end of the region: it is whole all the same.
        let last = if end == self.len {
            self.granules()
        } else {
            end / GRANULE_BYTES
        };
        if first >= last {
            self.fill(offset, len, 0);
            return Ok(());
        }
        let (inner_start, inner_end) = (first * GRANULE_BYTES, last * GRANULE_BYTES);
        self.fill(offset, inner_start - offset, 0);
        self.fill(inner_end.min(end), end.saturating_sub(inner_end), 0);
        let mut outcome = Ok(());
        let mut from = first;
        while from < last {
            let written = self.written.next(from, last, true);
            let to = last.min((written / PIECE_GRANULES + 1) * PIECE_GRANULES);
            if written < to {
                // In a huge page there is memory before the first granule that was written, too.
                let from = from.max(written / PIECE_GRANULES * PIECE_GRANULES);
                outcome = outcome.and(self.give_back(from, to));
            }
            from = to;
        }
        outcome
    }

    /// The extent that starts at `offset`: how many bytes from there on are alike, and whether
    /// they were written (`true`) or are a hole that reads as zero. At the end of the region the
    /// length is 0.
    ///
    /// # Panics
    /// When `offset` lies beyond the end.
    pub fn next_extent(&self, offset: u64) -> (u64, bool) {
        self.check("look for an extent", offset, 0);
        if offset == self.len {
            return (0, false);
        }
        self.extent_within(offset, self.len - offset)
    }

    fn granules(&self) -> u64 {
        self.len.div_ceil(GRANULE_BYTES)
    }

    #[inline]
    fn check(&self, what: &str, offset: u64, len: u64) {
        if offset > self.len || len > self.len - offset {
            self.refuse(what, offset, len);
        }
    }

    #[cold]
    #[inline(never)]
    fn refuse(&self, what: &str, offset: u64, len: u64) -> ! {
        panic!(
            "cannot {what} {len} bytes at {offset} in a region of {} bytes",
            self.len
        );
    }

    #[inline]
    fn at(&self, offset: u64) -> *mut u8 {
        // SAFETY: every caller has checked that `offset` does not exceed the mapping.
        unsafe { self.base.as_ptr().add(offset as usize) }
    }

    #[inline]
    fn copy_out(&self, offset: u64, into: &mut [u8]) {
        self.discards.wait_for(offset, into.len() as u64);
        // SAFETY: the range lies inside the mapping (`check`), and `into`, an exclusive borrow,
        // cannot overlap it. Two copies of the same range may race, as two requests for the same
        // sectors do on a disk: GEOM orders requests only through their completion. All of them
        // are made by `shared_bytes`.
        unsafe { shared_bytes::load(self.at(offset), into) };
    }

    fn set(&self, offset: u64, len: u64, byte: u8) {
        self.discards.wait_for(offset, len);
        // SAFETY: the range lies inside the mapping (`check`); for races see `copy_out`.
        unsafe { shared_bytes::fill(self.at(offset), byte, len as usize) };
    }

    #[inline]
    fn mark(&self, offset: u64, len: u64) {
        for granule in offset / GRANULE_BYTES..=(offset + len - 1) / GRANULE_BYTES {
            if !self.written.get(granule) {
                self.written.set(granule);
            }
        }
    }

    fn extent_within(&self, offset: u64, len: u64) -> (u64, bool) {
        let granule = offset / GRANULE_BYTES;
        let written = self.written.get(granule);
        let end = (offset + len).div_ceil(GRANULE_BYTES);
        let change = self.written.next(granule + 1, end, !written);
        (
            (change * GRANULE_BYTES).saturating_sub(offset).min(len),
            written,
        )
    }

    /// Clears the marks first: what is not marked is not read, and what is marked from then on
    /// waits for the end.
    fn give_back(&self, from: u64, to: u64) -> io::Result<()> {
        let start = from * GRANULE_BYTES;
        let end = (to * GRANULE_BYTES).min(self.len);
        let bytes = (end - start) as usize;
        self.discards.run(start..end, || {
            self.written.clear(from, to);
            // SAFETY: whole pages of the mapping, which ends with the page of the region's last
            // byte; no reference points into them.
            unsafe { pages::discard(self.at(start), bytes) }.inspect_err(|_| {
                // SAFETY: the range lies inside the mapping; for races see `copy_out`.
                unsafe { shared_bytes::fill(self.at(start), 0, bytes) };
            })
        })
    }
}

/// One bit a granule, in lazily mapped memory, and one bit a page of that.
struct Bitmap {
    words: NonNull<AtomicU64>,
    bits: u64,
    chunks: Box<[AtomicU64]>,
}

impl Bitmap {
    fn new(bits: u64) -> io::Result<Bitmap> {
        let words = pages::map(Self::bytes(bits))?;
        let chunks = bits.div_ceil(CHUNK_GRANULES).div_ceil(64);
        let chunks = (0..chunks).map(|_| AtomicU64::new(0)).collect();
        Ok(Bitmap {
            words: words.cast(),
            bits,
            chunks,
        })
    }

    fn bytes(bits: u64) -> u64 {
        bits.div_ceil(64) * 8
    }

    #[inline]
    fn word(&self, bit: u64) -> &AtomicU64 {
        debug_assert!(bit < self.bits);
        // SAFETY: the mapping holds a word for each of `bits` bits; pages start as zero, which is
        // a valid value, and are only reached as atomics.
        unsafe { self.words.add((bit / 64) as usize).as_ref() }
    }

    #[inline]
    fn get(&self, bit: u64) -> bool {
        self.word(bit).load(Ordering::Acquire) & (1 << (bit % 64)) != 0
    }

    #[cold]
    fn set(&self, bit: u64) {
        // The chunk first: a thread that sees the bit, and leaves both alone for that, may rely on
        // both.
        if !self.chunk(bit) {
            let chunk = bit / CHUNK_GRANULES;
            self.chunks[(chunk / 64) as usize].fetch_or(1 << (chunk % 64), Ordering::Relaxed);
        }
        self.word(bit).fetch_or(1 << (bit % 64), Ordering::Release);
    }

    /// How many bits of the word to which `bit` belongs are set.
    fn ones(&self, bit: u64) -> u64 {
        self.word(bit).load(Ordering::Relaxed).count_ones().into()
    }

    /// Whether any bit of the chunk to which `bit` belongs was ever set.
    fn chunk(&self, bit: u64) -> bool {
        let chunk = bit / CHUNK_GRANULES;
        self.chunks[(chunk / 64) as usize].load(Ordering::Relaxed) & (1 << (chunk % 64)) != 0
    }

    fn clear(&self, mut from: u64, to: u64) {
        while from < to {
            let stop = to.min((from / 64 + 1) * 64);
            let mask = (u64::MAX >> (64 - (stop - from))) << (from % 64);
            let word = self.word(from);
            if word.load(Ordering::Relaxed) & mask != 0 {
                word.fetch_and(!mask, Ordering::SeqCst);
            }
            from = stop;
        }
    }

    /// The first bit in `from..to` that is `value`, or `to`.
    fn next(&self, mut from: u64, to: u64, value: bool) -> u64 {
        while from < to {
            if value && !self.chunk(from) {
                from = (from / CHUNK_GRANULES + 1) * CHUNK_GRANULES;
                continue;
            }
            let word = self.word(from).load(Ordering::Acquire);
            let found = (if value { word } else { !word }) >> (from % 64);
            if found != 0 {
                return to.min(from + u64::from(found.trailing_zeros()));
            }
            from = (from / 64 + 1) * 64;
        }
        to
    }
}

impl Drop for Bitmap {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`; no word is borrowed any more.
        unsafe { pages::unmap(self.words.cast(), Self::bytes(self.bits)) };
    }
}

#[cfg(test)]
mod tests;
