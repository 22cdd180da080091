//! Content that a device can compress, or that repeats (`buffer_compress_percentage`,
//! `dedupe_percentage`).

use super::repeat;
use ugeom_job::Job;
use ugeom_job::settings::{Fill, Redundancy};

/// Blocks in a working set at the most: each is a number that is derived, none is kept.
const SET_MAX: u64 = 1 << 32;

pub struct Redundant {
    wanted: Redundancy,
    /// Different blocks in the working set.
    set: u64,
    base: u64,
    last: u64,
    rng: fastrand::Rng,
}

impl Redundant {
    /// For a job; `None` when nothing repeats.
    pub fn of(job: &Job, seed: u64) -> Option<Self> {
        let wanted = job.redundancy;
        if wanted.dedupe_percent == 0 && wanted.compress_percent == 0 {
            return None;
        }
        let bytes = match job.size {
            Some(ugeom_measure::units::Size::Bytes(bytes)) => bytes,
            _ => 1 << 30,
        };
        let blocks = bytes / job.smallest_bytes().max(1);
        let share = u64::from(wanted.working_set_percent);
        let mut rng = fastrand::Rng::with_seed(seed);
        let base = rng.u64(..);
        Some(Self {
            wanted,
            set: (u128::from(blocks) * u128::from(share) / 100).clamp(1, u128::from(SET_MAX))
                as u64,
            base,
            last: base,
            rng,
        })
    }

    /// Fills a block, of which `dedupe_percent` repeat an earlier one.
    pub fn fill(&mut self, block: &mut [u8], fill: &Fill, offset: u64) {
        let repeats = self.rng.u8(0..100) < self.wanted.dedupe_percent;
        let seed = match (repeats, self.wanted.working_set) {
            (false, _) => self.rng.u64(..),
            (true, false) => self.last,
            (true, true) => self.base.wrapping_add(self.rng.u64(0..self.set)),
        };
        self.last = seed;
        let mut random = fastrand::Rng::with_seed(seed);
        let chunk = (self.wanted.chunk_bytes as usize).clamp(1, block.len().max(1));
        for chunk in block.chunks_mut(chunk) {
            let random_bytes = chunk.len() * usize::from(100 - self.wanted.compress_percent) / 100;
            let (head, tail) = chunk.split_at_mut(random_bytes);
            random.fill(head);
            match fill {
                Fill::Pattern(pieces) => repeat(tail, pieces, offset),
                _ => tail.fill(0),
            }
        }
    }
}
