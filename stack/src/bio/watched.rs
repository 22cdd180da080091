//! Filling memory while other threads may copy from it: a buffer of a cache, whose readers check
//! afterwards whether their copy is valid ([`ugeom_machine::slab`]).
//!
//! A layer fills memory through `&mut [u8]`. No such reference may exist to memory that other
//! threads read, even if they discard the copy. So the layer fills a private copy, piece by piece,
//! which is then stored as shared bytes.

use ugeom_machine::shared_bytes;

/// The size of the copy, bytes: small enough for the first level of the processor's caches.
const PIECE_BYTES: usize = 4096;

/// Lets `with` fill `length` bytes from `base` on, which are those from `at` on of the data.
///
/// # Safety
/// The memory is initialised and valid for reads and writes. Others access it, if at all, by loads
/// of shared bytes.
#[cold]
#[inline(never)]
pub(super) unsafe fn fill(
    base: *mut u8,
    length: usize,
    at: u64,
    with: &mut impl FnMut(u64, &mut [u8]),
) {
    let mut copy = [0; PIECE_BYTES];
    let mut done = 0;
    while done < length {
        let copy = &mut copy[..(length - done).min(PIECE_BYTES)];
        // SAFETY: the piece lies inside the memory, by the caller's promise.
        let place = unsafe { base.add(done) };
        // SAFETY: as above, and the copy lies on this stack. A layer may change what is there (it
        // decrypts), or leave it.
        unsafe { shared_bytes::load(place, copy) };
        with(at + done as u64, copy);
        // SAFETY: as above.
        unsafe { shared_bytes::store(copy, place) };
        done += copy.len();
    }
}
