//! Memory for the data of requests: page-aligned buffers of a few sizes, used again and again by
//! the thread that they belong to.

use ugeom_machine::buffer::Buffer;

/// The sizes, bytes. The largest has room for a piece and for a sector beside it on each side.
const SIZES: [usize; 6] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 3 << 20];

/// How much unused memory a thread keeps, bytes.
const KEPT_BYTES_MAX: usize = 8 << 20;

/// A thread's unused buffers.
pub(crate) struct Buffers {
    free: [Vec<Buffer>; SIZES.len()],
    kept_bytes: usize,
}

impl Buffers {
    pub fn new() -> Self {
        Self {
            free: Default::default(),
            kept_bytes: 0,
        }
    }

    /// How long the buffer is that is taken for so many bytes.
    pub fn size_of(length: usize) -> usize {
        let fits = SIZES.iter().find(|&&size| size >= length);
        fits.copied().unwrap_or(length)
    }

    /// A buffer of at least `length` bytes with old content.
    #[inline]
    pub fn take(&mut self, length: usize) -> Buffer {
        let Some(class) = SIZES.iter().position(|&size| size >= length) else {
            return Buffer::new(length);
        };
        match self.free[class].pop() {
            Some(buffer) => {
                self.kept_bytes -= SIZES[class];
                buffer
            }
            None => Buffer::new(SIZES[class]),
        }
    }

    /// Takes a buffer back.
    #[inline]
    pub fn put(&mut self, buffer: Buffer) {
        let class = SIZES.iter().position(|&size| size == buffer.len());
        if let Some(class) = class
            && self.kept_bytes + buffer.len() <= KEPT_BYTES_MAX
        {
            self.kept_bytes += buffer.len();
            self.free[class].push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again_and_not_hoarded() {
        let mut buffers = Buffers::new();
        let first = buffers.take(5000);
        let address = first.as_ptr();
        assert_eq!(first.len(), 16 << 10);
        buffers.put(first);
        assert_eq!(buffers.take(16 << 10).as_ptr(), address);
        for _ in 0..20 {
            buffers.put(Buffer::new(1 << 20));
        }
        assert_eq!(buffers.kept_bytes, KEPT_BYTES_MAX);
        assert_eq!(buffers.take(20 << 20).len(), 20 << 20);
    }
}
