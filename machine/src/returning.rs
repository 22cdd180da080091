//! [`Returning`]: a buffer that comes back when the operation that owns it ends.
//!
//! A layer that sends a request of its own gives the memory away with it. To look at what was read
//! into it, or to use it again, it hands over a buffer with a function that gets it back.

use crate::buffer::{Buffer, IoMemory, Segment};

/// A buffer, and who gets it when this is dropped.
pub struct Returning<F: FnOnce(Buffer) + Send> {
    both: Option<(Buffer, F)>,
}

impl<F: FnOnce(Buffer) + Send> Returning<F> {
    /// `then` gets `buffer` when the value is dropped, in the thread that drops it.
    pub fn new(buffer: Buffer, then: F) -> Self {
        Self {
            both: Some((buffer, then)),
        }
    }
}

impl<F: FnOnce(Buffer) + Send> Drop for Returning<F> {
    fn drop(&mut self) {
        if let Some((buffer, then)) = self.both.take() {
            then(buffer);
        }
    }
}

// SAFETY: the segments are those of a buffer that the value owns until it is dropped.
unsafe impl<F: FnOnce(Buffer) + Send> IoMemory for Returning<F> {
    fn segments(&self) -> &[Segment] {
        self.both
            .as_ref()
            .map_or(&[], |(buffer, _)| buffer.segments())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn the_buffer_comes_back_once_and_with_its_bytes() {
        let (give, take) = mpsc::channel();
        let mut buffer = Buffer::new(100);
        buffer[7] = 9;
        let lent: Box<dyn IoMemory> = Box::new(Returning::new(buffer, move |buffer| {
            give.send(buffer).expect("the test waits");
        }));
        assert_eq!(lent.total_bytes(), 100);
        assert!(take.try_recv().is_err());
        std::thread::spawn(move || drop(lent))
            .join()
            .expect("drops");
        assert_eq!(take.recv().expect("returned")[7], 9);
        assert!(take.recv().is_err());
    }
}
