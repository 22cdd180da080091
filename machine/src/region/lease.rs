//! [`Lease`]: a range of a region that is handed to the kernel as it is.
//!
//! Nothing keeps others from writing to the range meanwhile, so there is no reference to the bytes:
//! they are copied as shared bytes ([`shared_bytes`]), or gathered for a system call.

use super::{Memory, Region};
use crate::buffer::Segment;
use crate::copy;
use crate::prefetch::touch;
use crate::shared_bytes;
use std::sync::Arc;

/// A range of a region, all of which was written once. It shows what is there when it is looked
/// at: a write or a discard after the lease was taken may show, wholly or in part. The memory stays
/// mapped while the lease lives, also when the region is gone.
pub struct Lease {
    segment: Segment,
    /// Keeps the memory mapped after the disk is gone.
    _memory: Arc<Memory>,
}

impl Region {
    /// Leases a range; `None` when any granule of it was never written, or was given back, so that
    /// it takes no memory to look at it.
    ///
    /// # Panics
    /// When the range leaves the region.
    #[must_use]
    pub fn lease(&self, offset: u64, len: u64) -> Option<Lease> {
        self.check("lease", offset, len);
        if len == 0 || self.extent_within(offset, len) != (len, true) {
            return None;
        }
        // One that begins later overlaps the request that the lease answers, as with a copy.
        self.discards.wait_for(offset, len);
        let segment = Segment {
            base: self.at(offset),
            len: len as usize,
        };
        // The kernel will copy it soon, and after other leases: all of them are on their way then.
        // SAFETY: the byte lies inside the memory; it is thrown away, whichever thread writes it.
        unsafe { touch(segment.base) };
        copy::ask(segment.base, segment.len);
        Some(Lease {
            segment,
            _memory: Arc::clone(&self.memory),
        })
    }
}

impl Lease {
    /// Length of the lent memory, bytes.
    #[expect(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> usize {
        self.segment.len
    }

    /// Copies from `within` on into `into`.
    ///
    /// # Panics
    /// When the range leaves the lease.
    pub fn copy_out(&self, within: usize, into: &mut [u8]) {
        let part = self.part(within, within.saturating_add(into.len()));
        // SAFETY: the range lies inside memory that the lease keeps, and `into`, an exclusive
        // borrow, cannot overlap it. For races see `Region::copy_out`.
        unsafe { shared_bytes::load(part.base, into) };
    }

    /// The part from `start` to `end`, for the kernel.
    ///
    /// # Panics
    /// When that leaves the lease.
    #[inline]
    pub(crate) fn part(&self, start: usize, end: usize) -> Segment {
        let len = self.segment.len;
        assert!(start <= end && end <= len, "{start}..{end} of {len}");
        Segment {
            // SAFETY: the assertion keeps it inside the memory, or at its end.
            base: unsafe { self.segment.base.add(start) },
            len: end - start,
        }
    }
}
