//! Owned memory for I/O: segments that an engine may hand to the kernel, and a page-aligned buffer.

use std::alloc::{self, Layout};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::Arc;

/// Alignment of every [`Buffer`], in bytes: a page, which suits O_DIRECT on every disk there is.
pub(crate) const ALIGNMENT_BYTES: usize = 4096;

/// From this length on, a buffer is zero memory that the kernel provides at the first access. The
/// allocator has such memory only without alignment; aligned, it writes the zeros itself, which
/// faults in each page before it is needed.
const UNTOUCHED_BYTES: usize = 128 << 10;
/// The address of the allocation of such a buffer stands before its first byte.
const ADDRESS_BYTES: usize = size_of::<*mut u8>();

/// One contiguous piece of memory, laid out as `struct iovec` (readv(2)), so that a slice of
/// segments can be passed to the kernel as it is.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Address of the first byte.
    pub base: *mut u8,
    /// Length in bytes; may be 0.
    pub len: usize,
}

// SAFETY: a segment is an address and a length. It grants no access by itself: code that follows
// the address needs his own right to do so (see `IoMemory`).
unsafe impl Send for Segment {}
// SAFETY: as above; a shared segment cannot be changed.
unsafe impl Sync for Segment {}

/// Memory that an engine can own while an operation on it is in flight.
///
/// # Safety
/// For as long as the value lives, also while it moves between threads:
/// - every segment points to memory that is allocated, initialised and writable for its length;
/// - only the owner of the value reads or writes that memory, unless [`IoMemory::is_watched`];
/// - `segments` returns the same segments at every call.
///
/// The memory must therefore not lie inside the value itself, which may move.
pub unsafe trait IoMemory: Send {
    /// The pieces of the memory, in the order in which they are to be filled or written.
    fn segments(&self) -> &[Segment];

    /// True when other threads of this program may copy out of the memory meanwhile, by the copies
    /// of [`crate::shared_bytes`], and find out afterwards that what they got is worthless. The
    /// filling thread must then use such copies, too, and make no reference to it.
    fn is_watched(&self) -> bool {
        false
    }

    /// Sum of the segments' lengths, in bytes.
    fn total_bytes(&self) -> u64 {
        self.segments()
            .iter()
            .map(|segment| segment.len as u64)
            .sum()
    }
}

// SAFETY: the content of the box moves with neither the box nor its owner.
unsafe impl<M: IoMemory + ?Sized> IoMemory for Box<M> {
    fn segments(&self) -> &[Segment] {
        (**self).segments()
    }

    fn is_watched(&self) -> bool {
        (**self).is_watched()
    }
}

// SAFETY: the pair owns the memory, whose segments lie outside it; the companion adds none.
unsafe impl<M: IoMemory, T: Send> IoMemory for (M, T) {
    fn segments(&self) -> &[Segment] {
        self.0.segments()
    }

    fn is_watched(&self) -> bool {
        self.0.is_watched()
    }
}

/// Page-aligned, zeroed memory of a fixed length.
pub struct Buffer {
    segment: Segment,
    /// Where the memory belongs to; `None` when it is the buffer's own allocation.
    pool: Option<Arc<Pool>>,
}

/// The memory of several buffers in one piece, so that a kernel can be told of it once
/// (io_uring_register(2), IORING_REGISTER_BUFFERS). It lives as long as any of them.
pub struct Pool {
    whole: Buffer,
}

impl Pool {
    /// Memory for `count` zeroed buffers of `len` bytes, each on pages of its own, and the buffers.
    ///
    /// # Panics
    /// When all together exceed `isize::MAX` bytes.
    pub fn new(count: usize, len: usize) -> (Arc<Pool>, Vec<Buffer>) {
        let stride = len.checked_next_multiple_of(ALIGNMENT_BYTES);
        let bytes = stride.and_then(|stride| stride.checked_mul(count));
        // A length without a number is larger than memory, which `Buffer::new` refuses.
        let (stride, bytes) = (stride.unwrap_or(usize::MAX), bytes.unwrap_or(usize::MAX));
        let whole = Buffer::new(bytes);
        let pool = Arc::new(Pool { whole });
        let buffer = |number: usize| {
            // Inside the allocation, and no other buffer's: each has its own stride.
            let base = pool.segment().base.wrapping_add(number * stride);
            Buffer {
                segment: Segment { base, len },
                pool: Some(Arc::clone(&pool)),
            }
        };
        let buffers = (0..count).map(buffer).collect();
        (pool, buffers)
    }

    /// Where all of it lies. It grants no access: that is the buffers'.
    pub fn segment(&self) -> Segment {
        self.whole.segment
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({} bytes)", self.whole.len())
    }
}

// SAFETY: the buffer is the only owner of its allocation.
unsafe impl Send for Buffer {}
// SAFETY: a shared buffer only lends `&[u8]`.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Allocates `len` zero bytes. `len` may be 0. Aborts when memory is exhausted, as `Vec` does.
    ///
    /// # Panics
    /// When `len`, rounded up to a page, exceeds `isize::MAX`.
    pub fn new(len: usize) -> Buffer {
        if len == 0 {
            let base = ptr::without_provenance_mut(ALIGNMENT_BYTES);
            return Buffer {
                segment: Segment { base, len },
                pool: None,
            };
        }
        let base = match len < UNTOUCHED_BYTES {
            true => Self::zeroed(Self::layout(len)),
            false => Self::untouched(len),
        };
        Buffer {
            segment: Segment { base, len },
            pool: None,
        }
    }

    /// Allocates a buffer that holds a copy of `bytes`.
    pub fn from_slice(bytes: &[u8]) -> Buffer {
        let mut buffer = Buffer::new(bytes.len());
        buffer.copy_from_slice(bytes);
        buffer
    }

    /// Length of the buffer, bytes.
    pub fn len(&self) -> usize {
        self.segment.len
    }

    /// Whether the length is 0.
    pub fn is_empty(&self) -> bool {
        self.segment.len == 0
    }

    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len, ALIGNMENT_BYTES)
            .unwrap_or_else(|_| panic!("a buffer of {len} bytes is longer than memory can be"))
    }

    /// The allocation that a long buffer of `len` bytes lies in.
    fn layout_around(len: usize) -> Layout {
        let bytes = len.saturating_add(ALIGNMENT_BYTES + ADDRESS_BYTES);
        Layout::from_size_align(bytes, align_of::<*mut u8>())
            .unwrap_or_else(|_| panic!("a buffer of {len} bytes is longer than memory can be"))
    }

    fn zeroed(layout: Layout) -> *mut u8 {
        // SAFETY: the size of every layout here is above 0.
        let base = unsafe { alloc::alloc_zeroed(layout) };
        if base.is_null() {
            alloc::handle_alloc_error(layout);
        }
        base
    }

    fn untouched(len: usize) -> *mut u8 {
        let whole = Self::zeroed(Self::layout_around(len));
        let first = whole.wrapping_add(ADDRESS_BYTES);
        let base = first.wrapping_add(first.align_offset(ALIGNMENT_BYTES));
        // SAFETY: at most `ALIGNMENT_BYTES - 1` bytes are skipped, so `base` and `len` bytes behind
        // it, and an address before it, lie inside the allocation; a page is aligned for both.
        unsafe { base.cast::<*mut u8>().sub(1).write(whole) };
        base
    }

    fn free(&mut self) {
        let Segment { base, len } = self.segment;
        let (whole, layout) = match len < UNTOUCHED_BYTES {
            true => (base, Self::layout(len)),
            // SAFETY: `untouched` wrote it there, outside the bytes that are lent.
            false => (
                unsafe { base.cast::<*mut u8>().sub(1).read() },
                Self::layout_around(len),
            ),
        };
        // SAFETY: allocated in `new` with this layout, and freed only when the buffer is dropped.
        unsafe { alloc::dealloc(whole, layout) };
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.segment.len > 0 && self.pool.is_none() {
            self.free();
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `len` initialised bytes (or none, at an aligned address) that the buffer owns;
        // the shared borrow of the buffer keeps writers away.
        unsafe { std::slice::from_raw_parts(self.segment.base, self.segment.len) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; the exclusive borrow of the buffer keeps all others away.
        unsafe { std::slice::from_raw_parts_mut(self.segment.base, self.segment.len) }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.segment.len)
    }
}

// SAFETY: the allocation is initialised, owned by the buffer alone, outside the value, and lives
// until the buffer is dropped; the segment never changes.
unsafe impl IoMemory for Buffer {
    fn segments(&self) -> &[Segment] {
        std::slice::from_ref(&self.segment)
    }
}

/// Several buffers that are filled or written one after another.
pub struct Scatter {
    buffers: Vec<Buffer>,
    segments: Vec<Segment>,
}

impl Scatter {
    /// Joins `buffers` in this order. There may be none.
    pub fn new(buffers: Vec<Buffer>) -> Scatter {
        let segments = buffers.iter().map(|buffer| buffer.segment).collect();
        Scatter { buffers, segments }
    }

    /// The buffers, in order.
    pub fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// Gives the buffers back.
    pub fn into_buffers(self) -> Vec<Buffer> {
        self.buffers
    }
}

// SAFETY: each segment is that of a buffer which the value owns and never replaces, and which
// only a borrow of the value lends.
unsafe impl IoMemory for Scatter {
    fn segments(&self) -> &[Segment] {
        &self.segments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_buffer_is_zeroed_and_page_aligned() {
        let long = UNTOUCHED_BYTES;
        for len in [1, 511, 512, 4096, 4097, long - 1, long, 3 * long + 1] {
            let buffer = Buffer::new(len);
            assert_eq!(buffer.len(), len);
            assert_eq!(buffer.as_ptr() as usize % ALIGNMENT_BYTES, 0);
            assert_eq!(buffer[..], vec![0; len]);
        }
    }

    /// The pages of memory that the kernel has provided (mincore(2) knows them of no mapping of
    /// memory; proc_pid_statm(5) counts those of the process).
    #[test]
    #[cfg(not(any(miri, tsan)))]
    fn a_long_buffer_takes_memory_when_it_is_used() {
        let resident = || -> usize {
            let text = std::fs::read_to_string("/proc/self/statm").unwrap();
            text.split(' ').nth(1).unwrap().parse().unwrap()
        };
        let before = resident();
        let mut buffer = Buffer::new(256 << 20);
        let pages = (256 << 20) / ALIGNMENT_BYTES;
        assert!(resident() < before + pages / 8, "{before} {}", resident());
        buffer.fill(1);
        assert!(resident() > before + pages / 2, "{before} {}", resident());
    }

    #[test]
    fn buffers_of_a_pool_lie_apart_and_outlive_each_other() {
        let (pool, mut buffers) = Pool::new(3, 5000);
        assert_eq!(pool.segment().len, 3 * 8192);
        for (number, buffer) in (1_u8..).zip(&mut buffers) {
            assert_eq!(
                (buffer.len(), buffer.as_ptr() as usize % ALIGNMENT_BYTES),
                (5000, 0)
            );
            assert_eq!(buffer[..], [0; 5000]);
            buffer.fill(number);
        }
        drop(pool);
        let last = buffers.pop().unwrap();
        drop(buffers);
        assert_eq!(last[..], [3; 5000]);
        for (count, len) in [(0, 8), (3, 0)] {
            let (pool, buffers) = Pool::new(count, len);
            assert_eq!((pool.segment().len, buffers.len()), (0, count));
        }
    }

    #[test]
    fn an_empty_buffer_is_allowed() {
        let mut buffer = Buffer::from_slice(b"");
        assert!(buffer.is_empty());
        assert_eq!(&buffer[..], b"");
        assert_eq!(&mut buffer[..], b"");
        assert_eq!(buffer.total_bytes(), 0);
    }

    #[test]
    fn what_is_written_through_the_segment_is_read_through_the_slice() {
        let mut buffer = Buffer::from_slice(b"abcdef");
        let segment = buffer.segments()[0];
        let mut moved = std::thread::spawn(move || {
            // SAFETY: this thread owns the buffer and holds no reference into it here.
            unsafe { buffer.segments()[0].base.add(2).write(b'X') };
            buffer[0] = b'Y';
            buffer
        })
        .join()
        .unwrap();
        assert_eq!(&moved[..], b"YbXdef");
        moved[5] = b'Z';
        // SAFETY: the buffer is alive, and no reference into it is.
        assert_eq!(unsafe { segment.base.add(5).read() }, b'Z');
    }

    #[test]
    fn scattered_buffers_keep_their_order_and_their_content() {
        let buffers = [&b"ab"[..], b"", b"cde"].map(Buffer::from_slice);
        let scatter = (Scatter::new(buffers.into()), "companion");
        assert_eq!(scatter.total_bytes(), 5);
        let segments = scatter.segments().to_vec();
        let moved = Box::new(scatter);
        assert_eq!(moved.segments(), segments);
        // SAFETY: the buffers are alive, and no reference into them is.
        unsafe { segments[2].base.write(b'X') };
        assert_eq!(&moved.0.buffers()[2][..], b"Xde");
        assert_eq!(moved.0.into_buffers().len(), 3);
    }

    #[test]
    fn a_segment_is_laid_out_as_an_iovec() {
        assert_eq!(size_of::<Segment>(), size_of::<libc::iovec>());
        assert_eq!(align_of::<Segment>(), align_of::<libc::iovec>());
        assert_eq!(
            std::mem::offset_of!(Segment, base),
            std::mem::offset_of!(libc::iovec, iov_base)
        );
        assert_eq!(
            std::mem::offset_of!(Segment, len),
            std::mem::offset_of!(libc::iovec, iov_len)
        );
    }
}
