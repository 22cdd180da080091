//! The entries of a completion ring.

use io_uring::{IoUring, cqueue, squeue};
use std::mem::MaybeUninit;

/// Entries taken from a ring at a time.
const BATCH: usize = 64;

/// Takes every entry that is there, and those that arrive meanwhile.
#[inline]
pub(crate) fn each_completion<S: squeue::EntryMarker>(
    ring: &mut IoUring<S, cqueue::Entry>,
    mut each: impl FnMut(&cqueue::Entry),
) {
    loop {
        let mut room = [const { MaybeUninit::<cqueue::Entry>::uninit() }; BATCH];
        let entries = ring.completion().fill(&mut room);
        if entries.is_empty() {
            return;
        }
        entries.iter().for_each(&mut each);
    }
}
