//! Where a buffer lies within its arena. Processors predict the way of the first-level cache from
//! an address; where the source and the destination of a copy collide in that predictor, the copy
//! takes 1.3 to 2 times as long, for as long as both stay where they are (1 pair in 256 on AMD's
//! processors: Lipp et al., *Take A Way*, 2020). So buffers move in each round: an accident of
//! place becomes a part of the variation of rounds, which intervals cover, and not an error of a
//! whole process, which they do not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes in which a buffer moves.
pub const ARENA_BYTES: usize = 1 << 20;

const PAGE_BYTES: usize = 4096;

/// The offset of a buffer in its arena, shared by the harness, which changes it, and by the case.
#[derive(Clone, Debug)]
pub struct Placement {
    offset_bytes: Arc<AtomicUsize>,
    step_bytes: usize,
}

impl Placement {
    /// Offsets are multiples of `step_bytes`, a power of two: 64 for memory, a sector for O_DIRECT.
    pub fn new(step_bytes: usize) -> Self {
        Self {
            offset_bytes: Arc::default(),
            step_bytes: step_bytes.clamp(1, PAGE_BYTES),
        }
    }

    /// Bytes that an arena needs for a buffer of `bytes`.
    pub fn arena_bytes(bytes: usize) -> usize {
        ARENA_BYTES + bytes
    }

    /// The part of an arena in which the buffer of `bytes` lies now.
    pub fn part(&self, bytes: usize) -> std::ops::Range<usize> {
        let offset = self.offset_bytes.load(Ordering::Relaxed);
        offset..offset + bytes
    }

    /// Moves the buffer: a page at random, and a place at random in it.
    pub fn shuffle(&self, random: &mut fastrand::Rng) {
        let page = random.usize(0..ARENA_BYTES / PAGE_BYTES);
        let step = random.usize(0..PAGE_BYTES / self.step_bytes);
        let offset = page * PAGE_BYTES + step * self.step_bytes;
        self.offset_bytes.store(offset, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_aligned_inside_the_arena_and_differ() {
        let mut random = fastrand::Rng::with_seed(1);
        for step in [64, 512, 4096] {
            let placement = Placement::new(step);
            let mut seen = std::collections::BTreeSet::new();
            for _ in 0..200 {
                placement.shuffle(&mut random);
                let part = placement.part(4096);
                assert!(
                    part.start.is_multiple_of(step) && part.end <= Placement::arena_bytes(4096)
                );
                seen.insert(part.start);
            }
            assert!(seen.len() > 100, "{step}: {}", seen.len());
        }
    }
}
