//! The visited blocks of a file: a bit a block, and above each 64 words a word that marks the full
//! ones, up to one word. The next free block is found in as many steps as there are levels, however
//! full the map is.

use std::collections::TryReserveError;

/// A set of blocks.
pub struct BlockMap {
    blocks: u64,
    free: u64,
    /// Bit set: taken (level 0), or all 64 below are (higher levels).
    levels: Vec<Vec<u64>>,
}

impl BlockMap {
    /// All of `blocks` blocks are free.
    pub fn new(blocks: u64) -> Self {
        let mut levels = Vec::new();
        let mut bits = blocks.max(1);
        loop {
            let words = bits.div_ceil(64);
            let mut level = vec![0_u64; words as usize];
            // Bits past the end count as taken.
            let used = bits % 64;
            if used != 0
                && let Some(last) = level.last_mut()
            {
                *last = u64::MAX << used;
            }
            levels.push(level);
            if words == 1 {
                break;
            }
            bits = words;
        }
        Self {
            blocks,
            free: blocks,
            levels,
        }
    }

    /// The same, unless there is no memory for it: a bit for each block.
    ///
    /// # Errors
    /// There is none.
    pub fn try_new(blocks: u64) -> Result<Self, TryReserveError> {
        let words = usize::try_from(blocks.div_ceil(64)).unwrap_or(usize::MAX);
        // Nothing is written to it: the map itself takes memory as it is used.
        Vec::<u64>::new().try_reserve_exact(words)?;
        Ok(Self::new(blocks))
    }

    /// Makes all blocks free.
    pub fn clear(&mut self) {
        *self = Self::new(self.blocks);
    }

    /// Whether a block is taken, or lies past the end.
    pub fn is_taken(&self, block: u64) -> bool {
        block >= self.blocks || self.levels[0][(block / 64) as usize] >> (block % 64) & 1 == 1
    }

    /// How many blocks from one past the end on share the last word with the last block, as bits of
    /// fio's map that a request may reach into; 0 for a block before the end.
    pub fn rest_of_word(&self, block: u64) -> u64 {
        match block < self.blocks {
            true => 0,
            false => self.blocks.next_multiple_of(64).saturating_sub(block),
        }
    }

    /// Takes a block that is free.
    pub fn take(&mut self, block: u64) {
        if self.is_taken(block) {
            return;
        }
        self.free -= 1;
        let mut at = block;
        for level in &mut self.levels {
            let word = &mut level[(at / 64) as usize];
            *word |= 1 << (at % 64);
            if *word != u64::MAX {
                return;
            }
            at /= 64;
        }
    }

    /// The first free block from `from` on, and from the beginning when there is none behind it.
    pub fn next_free(&self, from: u64) -> Option<u64> {
        if self.free == 0 {
            return None;
        }
        if !self.is_taken(from) {
            return Some(from);
        }
        self.free_behind(from).or_else(|| self.free_behind(0))
    }

    /// The first free block at `from` or behind it.
    fn free_behind(&self, from: u64) -> Option<u64> {
        let mut at = from;
        for (height, level) in self.levels.iter().enumerate() {
            let (word, bit) = ((at / 64) as usize, at % 64);
            let masked = level.get(word)? | ((1_u64 << bit) - 1);
            if masked != u64::MAX {
                let found = (word as u64) * 64 + u64::from((!masked).trailing_zeros());
                return Some(self.descend(height, found));
            }
            at = at / 64 + 1;
        }
        None
    }

    /// The first free block below a bit of a level that is not full.
    fn descend(&self, height: usize, bit: u64) -> u64 {
        let below = self.levels[..height].iter().rev();
        below.fold(bit, |bit, level| {
            bit * 64 + u64::from((!level[bit as usize]).trailing_zeros())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_that_no_memory_holds_is_an_error() {
        assert!(BlockMap::try_new(u64::MAX).is_err());
        let map = BlockMap::try_new(100).expect("room");
        assert_eq!(map.next_free(99), Some(99));
    }

    #[test]
    fn every_block_is_found_once_whatever_the_order() {
        for blocks in [1, 2, 63, 64, 65, 4096, 4097, 70_000] {
            let mut map = BlockMap::new(blocks);
            let mut random = fastrand::Rng::with_seed(blocks);
            let mut seen = vec![false; blocks as usize];
            while let Some(block) = map.next_free(random.u64(0..blocks)) {
                assert!(
                    !std::mem::replace(&mut seen[block as usize], true),
                    "{block}"
                );
                map.take(block);
            }
            assert!(seen.iter().all(|seen| *seen) && map.next_free(0).is_none());
            map.clear();
            assert_eq!(
                (map.next_free(blocks - 1), map.free),
                (Some(blocks - 1), blocks)
            );
        }
    }

    #[test]
    fn the_next_free_block_is_the_nearest_one_behind() {
        let mut map = BlockMap::new(10_000);
        (100..9_000).for_each(|block| map.take(block));
        assert_eq!(map.next_free(100), Some(9_000));
        (9_000..10_000).for_each(|block| map.take(block));
        assert_eq!(map.next_free(5_000), Some(0));
    }
}
