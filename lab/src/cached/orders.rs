//! In which order places are read.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// An order of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// One after the other, from the beginning.
    Sequential,
    /// At random, every place once before any comes again.
    Shuffled,
    /// At random, each time anew: some places come again soon, others late.
    Random,
}

/// All of them, in the order in which they are printed.
pub const ORDERS: [Order; 3] = [Order::Sequential, Order::Shuffled, Order::Random];

impl Order {
    /// The word in the names of cells and in tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Shuffled => "shuffled",
            Self::Random => "random",
        }
    }
}

/// The places to read, over and over. All cells of an order read the same ones, so that no
/// difference between them is one of places.
#[derive(Clone, Debug)]
pub struct Places {
    /// Numbers of places, of `unit_bytes` each.
    numbers: Arc<[u32]>,
    next: usize,
    unit_bytes: u64,
}

impl Places {
    /// An order of the places of `unit_bytes` that lie in the first `total_bytes`; one place at
    /// least. At most 2^32 of them are used.
    pub fn new(order: Order, total_bytes: u64, unit_bytes: u64, seed: u64) -> Self {
        let count = (total_bytes / unit_bytes.max(1)).clamp(1, u64::from(u32::MAX)) as u32;
        let mut random = fastrand::Rng::with_seed(seed);
        let numbers: Arc<[u32]> = match order {
            Order::Sequential => (0..count).collect(),
            Order::Shuffled => {
                let mut numbers: Vec<u32> = (0..count).collect();
                random.shuffle(&mut numbers);
                numbers.into()
            }
            Order::Random => (0..count).map(|_| random.u32(0..count)).collect(),
        };
        Self {
            numbers,
            next: 0,
            unit_bytes,
        }
    }

    /// The offset of the next place, bytes.
    #[inline]
    pub fn next_offset(&mut self) -> u64 {
        u64::from(self.next_number()) * self.unit_bytes
    }

    /// The number of the next place.
    #[inline]
    pub fn next_number(&mut self) -> u32 {
        let number = self.numbers[self.next];
        self.next += 1;
        if self.next == self.numbers.len() {
            self.next = 0;
        }
        number
    }

    /// How many there are before they come again.
    #[cfg(test)]
    pub fn count(&self) -> u64 {
        self.numbers.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn pass(order: Order) -> Vec<u64> {
        let mut places = Places::new(order, 1000 * 4096 + 100, 4096, 7);
        (0..places.count()).map(|_| places.next_offset()).collect()
    }

    #[test]
    fn every_place_comes_once_unless_it_is_drawn_anew() {
        let sequential: Vec<u64> = (0..1000).map(|number| number * 4096).collect();
        assert_eq!(pass(Order::Sequential), sequential);
        let shuffled = pass(Order::Shuffled);
        assert_ne!(shuffled, sequential);
        let distinct: BTreeSet<u64> = shuffled.iter().copied().collect();
        assert!(distinct.iter().copied().eq(sequential.iter().copied()));
        // Of n draws from n places, 1 - 1/e of the places are drawn.
        let random: BTreeSet<u64> = pass(Order::Random).into_iter().collect();
        assert!((580..=690).contains(&random.len()), "{}", random.len());
    }

    #[test]
    fn passes_repeat_and_a_short_medium_has_one_place() {
        let mut places = Places::new(Order::Shuffled, 1 << 20, 4096, 3);
        let first: Vec<u64> = (0..256).map(|_| places.next_offset()).collect();
        let second: Vec<u64> = (0..256).map(|_| places.next_offset()).collect();
        assert_eq!(first, second);
        let mut one = Places::new(Order::Random, 100, 4096, 3);
        assert_eq!(
            (one.count(), one.next_offset(), one.next_offset()),
            (1, 0, 0)
        );
    }
}
