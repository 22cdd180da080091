//! Buffers that a thread uses again, for layers that need memory of their own for a request.
//!
//! Each thread keeps returned memory, up to [`KEPT_BYTES_MAX`]: no lock, and no allocation
//! while requests of the same size follow each other. Nothing that is to be wiped belongs here.

use crate::buffer::Buffer;
use std::cell::RefCell;

/// The maximum that a thread keeps, bytes.
pub const KEPT_BYTES_MAX: usize = 4 << 20;
/// How many buffers a thread keeps at most.
const KEPT_MAX: usize = 64;

#[derive(Default)]
struct Shelf {
    kept: Vec<Buffer>,
    bytes: usize,
}

thread_local! {
    static SHELF: RefCell<Shelf> = RefCell::default();
}

/// A buffer of `len` bytes with any content.
#[must_use]
pub fn take(len: usize) -> Buffer {
    take_kept(len).unwrap_or_else(|| Buffer::new(len))
}

/// The same, of those that this thread has put back.
#[must_use]
pub fn take_kept(len: usize) -> Option<Buffer> {
    let kept = SHELF.try_with(|shelf| {
        let mut shelf = shelf.borrow_mut();
        let at = shelf.kept.iter().rposition(|buffer| buffer.len() == len)?;
        shelf.bytes -= len;
        Some(shelf.kept.swap_remove(at))
    });
    kept.ok().flatten()
}

/// A number that differs between the shelves of threads that live at the same time.
pub fn number() -> usize {
    SHELF
        .try_with(|shelf| std::ptr::from_ref(shelf).addr())
        .unwrap_or(0)
}

/// Puts a buffer back for the calling thread's next use.
pub fn put(buffer: Buffer) {
    let len = buffer.len();
    let mut buffer = Some(buffer);
    // A thread that ends keeps nothing; the buffer is then freed here.
    let _ = SHELF.try_with(|shelf| {
        let mut shelf = shelf.borrow_mut();
        if len > KEPT_BYTES_MAX {
            return;
        }
        while shelf.bytes + len > KEPT_BYTES_MAX || shelf.kept.len() >= KEPT_MAX {
            // The oldest, of a size that may have gone out of use.
            let oldest = shelf.kept.remove(0);
            shelf.bytes -= oldest.len();
        }
        shelf.bytes += len;
        shelf.kept.extend(buffer.take());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_of_the_same_size_is_used_again() {
        let mut buffer = take(5000);
        buffer[0] = 7;
        put(buffer);
        assert_eq!(take(4999).len(), 4999);
        assert_eq!(take(5000)[0], 7);
        assert_eq!(take(5000)[0], 0);
    }

    #[test]
    fn threads_have_shelves_of_their_own() {
        put(Buffer::new(6001));
        let here = number();
        let there = std::thread::spawn(|| (number(), take_kept(6001).is_some()));
        let (there, found) = there.join().expect("no panic");
        assert!(here != there && !found);
        assert!(take_kept(6001).is_some());
    }

    #[test]
    fn a_thread_keeps_no_more_than_its_limit() {
        for number in 0..200 {
            put(Buffer::new(100_000 + number));
        }
        put(Buffer::new(KEPT_BYTES_MAX + 1));
        SHELF.with_borrow(|shelf| {
            let bytes: usize = shelf.kept.iter().map(Buffer::len).sum();
            assert_eq!(bytes, shelf.bytes);
            assert!(bytes <= KEPT_BYTES_MAX && shelf.kept.len() <= KEPT_MAX);
            assert!(!shelf.kept.is_empty());
        });
    }
}
