//! In which order blocks are moved.

/// The offsets of blocks, one after the other or at random, over and over.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    block_bytes: u64,
    /// Whole blocks in the region; at least one.
    blocks: u64,
    /// The next block.
    at: u64,
    stride: u64,
    random: Option<fastrand::Rng>,
}

impl Walk {
    /// Blocks of a region, from its beginning; `random` is the seed of the order.
    pub fn new(region_bytes: u64, block_bytes: u64, random: Option<u64>) -> Self {
        Self {
            block_bytes,
            blocks: (region_bytes / block_bytes).max(1),
            at: 0,
            stride: 1,
            random: random.map(fastrand::Rng::with_seed),
        }
    }

    /// The same with a gap of one block between two, so that they cannot be merged.
    pub fn with_gaps(mut self) -> Self {
        self.stride = 2;
        self
    }

    /// Where the next block is.
    pub fn next_offset(&mut self) -> u64 {
        if let Some(random) = &mut self.random {
            return random.u64(..self.blocks) * self.block_bytes;
        }
        let here = self.at;
        self.at += self.stride;
        if self.at >= self.blocks {
            self.at = 0;
        }
        here * self.block_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(mut walk: Walk, count: usize) -> Vec<u64> {
        (0..count).map(|_| walk.next_offset()).collect()
    }

    #[test]
    fn blocks_follow_each_other_and_begin_again() {
        let walk = Walk::new(1600, 512, None);
        assert_eq!(offsets(walk.clone(), 4), [0, 512, 1024, 0]);
        assert_eq!(offsets(walk.with_gaps(), 4), [0, 1024, 0, 1024]);
        assert_eq!(
            offsets(Walk::new(100, 512, None), 2),
            [0, 0],
            "less than one block"
        );
    }

    #[test]
    fn random_blocks_stay_inside_and_are_repeatable() {
        let walk = Walk::new(64 << 10, 4096, Some(7));
        let some = offsets(walk.clone(), 200);
        assert!(some.iter().all(|at| at % 4096 == 0 && *at < 64 << 10));
        assert_eq!(some, offsets(walk, 200));
        assert!(some.contains(&0) && some.contains(&(60 << 10)));
    }
}
