//! [`Lease`]: memory that a layer lends to a reader, in place of copying it into the reader's.

use crate::{region, slab};

/// The step in which bytes are shown that may change meanwhile.
const STEP_BYTES: usize = 4096;

/// Memory that a layer has lent. Dropping it gives it back.
pub enum Lease {
    /// It keeps its bytes.
    Still(slab::Lease),
    /// Writes to the same range may show.
    Moving(region::Lease),
}

impl Lease {
    /// Length of the lent memory, bytes.
    #[expect(clippy::len_without_is_empty, reason = "a lease is never empty")]
    pub fn len(&self) -> usize {
        match self {
            Self::Still(lease) => lease.bytes().len(),
            Self::Moving(lease) => lease.len(),
        }
    }

    /// Copies from `within` on into `into`.
    ///
    /// # Panics
    /// When the range leaves the lease.
    pub fn copy_out(&self, within: usize, into: &mut [u8]) {
        match self {
            Self::Still(lease) => {
                into.copy_from_slice(&lease.bytes()[within..within + into.len()]);
            }
            Self::Moving(lease) => lease.copy_out(within, into),
        }
    }

    /// Shows the bytes, piece by piece: `with(at, piece)`. Those that may change are copied first.
    pub fn each(&self, mut with: impl FnMut(u64, &[u8])) {
        match self {
            Self::Still(lease) => with(0, lease.bytes()),
            Self::Moving(lease) => {
                let mut copy = [0; STEP_BYTES];
                for at in (0..lease.len()).step_by(STEP_BYTES) {
                    let piece = &mut copy[..STEP_BYTES.min(lease.len() - at)];
                    lease.copy_out(at, piece);
                    with(at as u64, piece);
                }
            }
        }
    }
}

impl From<slab::Lease> for Lease {
    fn from(lease: slab::Lease) -> Self {
        Self::Still(lease)
    }
}

impl From<region::Lease> for Lease {
    fn from(lease: region::Lease) -> Self {
        Self::Moving(lease)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::Region;
    use crate::slab::Slab;

    #[test]
    fn both_kinds_show_the_same() {
        let bytes = Vec::from_iter(0..=250_u8).repeat(20);
        let region = Region::new(16 << 10).expect("memory");
        region.write(700, &bytes);
        let slab = Slab::new(1, 16 << 10).expect("memory");
        assert!(slab.copy_in(0, 700, &bytes));
        let moving = region.lease(700, bytes.len() as u64).expect("written");
        let still = slab.lease(0, 700, bytes.len()).expect("free");
        for lease in [Lease::from(moving), Lease::from(still)] {
            assert_eq!(lease.len(), bytes.len());
            let mut shown = Vec::new();
            lease.each(|at, piece| {
                assert_eq!(at, shown.len() as u64);
                shown.extend_from_slice(piece);
            });
            assert!(shown == bytes);
        }
    }
}
