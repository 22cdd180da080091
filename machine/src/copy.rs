//! Copying from memory that is in no cache of the processor: asked for ahead of the copy.
//!
//! A processor fetches a few tens of lines ahead for a copy that has just begun, and its prefetcher
//! knows no more before some lines have been read; the first page of a copy from a random place is
//! waited for line by line. Asking for all lines of a page at once, into the second level, where
//! more requests can be in flight than in the first, lets them arrive together.

use crate::prefetch::prefetch_far;
use crate::shared_bytes;

/// The distance of prefetches ahead of the copy, bytes: a page, as the processor's own prefetcher
/// knows no larger unit, and more requests than that have no room anywhere.
const AHEAD_BYTES: usize = 4096;
/// A line of the processor's cache, bytes.
const LINE_BYTES: usize = 64;

/// Asks for the memory of a copy that will begin soon: its first page.
#[inline(always)]
pub fn ask(from: *const u8, len: usize) {
    let len = len.min(AHEAD_BYTES);
    let mut at = 0;
    while at + 8 * LINE_BYTES <= len {
        // Without counting between them: only what is few instructions away from the first can be
        // in flight at the same time.
        let here = from.wrapping_add(at);
        prefetch_far(here);
        prefetch_far(here.wrapping_add(LINE_BYTES));
        prefetch_far(here.wrapping_add(2 * LINE_BYTES));
        prefetch_far(here.wrapping_add(3 * LINE_BYTES));
        prefetch_far(here.wrapping_add(4 * LINE_BYTES));
        prefetch_far(here.wrapping_add(5 * LINE_BYTES));
        prefetch_far(here.wrapping_add(6 * LINE_BYTES));
        prefetch_far(here.wrapping_add(7 * LINE_BYTES));
        at += 8 * LINE_BYTES;
    }
    while at < len {
        prefetch_far(from.wrapping_add(at));
        at += LINE_BYTES;
    }
}

/// Copies as [`shared_bytes::load`] does; faster when the source is in no cache and longer than a
/// page, the first of which [`ask`] has asked for.
///
/// # Safety
/// As for [`shared_bytes::load`].
#[inline]
pub(crate) unsafe fn copy_asked(from: *const u8, into: &mut [u8]) {
    let len = into.len();
    let mut done = 0;
    loop {
        let piece = (len - done).min(AHEAD_BYTES);
        let next = done + piece;
        ask(from.wrapping_add(next), len - next);
        // SAFETY: the piece, from `done` to `next`, lies inside both ranges, for which the caller
        // promises.
        unsafe { shared_bytes::load(from.add(done), into.get_unchecked_mut(done..next)) };
        if next == len {
            return;
        }
        done = next;
    }
}

#[cfg(test)]
mod tests {
    use super::{ask, copy_asked};

    #[test]
    fn all_bytes_of_any_length_arrive_and_no_others() {
        let from = Vec::from_iter(0..=250_u8).repeat(80);
        // Atomic loads need a pointer that may write.
        let mut source = from.clone();
        let source = source.as_mut_ptr().cast_const();
        for len in [0, 1, 63, 64, 1023, 4095, 4096, 4097, 8192, 12_345] {
            if cfg!(miri) && len > 1023 && len != 4097 {
                continue;
            }
            for start in [0, 1, 77] {
                let mut to = vec![255; len + 2];
                ask(source.wrapping_add(start), len);
                // SAFETY: both ranges are inside their vectors, which are not the same.
                unsafe { copy_asked(source.add(start), &mut to[1..=len]) };
                assert_eq!(to[1..=len], from[start..start + len], "{len} from {start}");
                assert_eq!((to[0], to[len + 1]), (255, 255), "{len} from {start}");
            }
        }
    }
}
