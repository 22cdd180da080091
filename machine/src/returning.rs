//! [`Returning`]: a buffer that comes back when the request that owns it ends.
//!
//! A layer that sends a request of its own gives the memory away with it. To look at what was read
//! into it, or to use it again, it names the receiver. Nothing is allocated for that.

use crate::buffer::Buffer;
use std::sync::Arc;

/// The receiver of returned buffers.
pub trait Keeper: Send + Sync {
    /// Gets a buffer back, in the thread that ended its request, with the number that was given.
    fn keep(&self, number: u64, buffer: Buffer);
}

/// A buffer, and its receiver when this is dropped.
pub struct Returning {
    buffer: Option<Buffer>,
    keeper: Arc<dyn Keeper>,
    number: u64,
}

impl Returning {
    /// The buffer goes back to `keeper`, under `number`, when this is dropped.
    pub fn to_keeper(buffer: Buffer, keeper: Arc<dyn Keeper>, number: u64) -> Self {
        Self {
            buffer: Some(buffer),
            keeper,
            number,
        }
    }

    /// The memory that goes back when this is dropped.
    pub fn buffer(&self) -> Option<&Buffer> {
        self.buffer.as_ref()
    }
}

impl Drop for Returning {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.keeper.keep(self.number, buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Kept(Mutex<Vec<(u64, Buffer)>>);

    impl Keeper for Kept {
        fn keep(&self, number: u64, buffer: Buffer) {
            self.0.lock().expect("no panic").push((number, buffer));
        }
    }

    #[test]
    fn the_buffer_comes_back_once_and_with_its_bytes() {
        let kept = Arc::new(Kept::default());
        let mut buffer = Buffer::new(100);
        buffer[7] = 9;
        let lent = Returning::to_keeper(buffer, kept.clone(), 5);
        assert_eq!(lent.buffer().map(|buffer| buffer.len()), Some(100));
        assert!(kept.0.lock().expect("no panic").is_empty());
        std::thread::spawn(move || drop(lent))
            .join()
            .expect("drops");
        let kept = kept.0.lock().expect("no panic");
        assert_eq!(kept.len(), 1);
        assert_eq!((kept[0].0, kept[0].1[7]), (5, 9));
    }
}
