//! In which order places are read.

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use ugeom_load::places::Drawn;

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
    /// The places of `unit_bytes` that lie in the first `total_bytes`, in this order; one place at
    /// least. At most 2^32 of them are used. All cases of an order read the same ones, so that no
    /// difference between them is one of places.
    pub fn places(self, total_bytes: u64, unit_bytes: u64, seed: u64) -> Drawn {
        let count = (total_bytes / unit_bytes.max(1)).clamp(1, u64::from(u32::MAX)) as u32;
        let mut random = fastrand::Rng::with_seed(seed);
        let numbers: Arc<[u32]> = match self {
            Self::Sequential => (0..count).collect(),
            Self::Shuffled => {
                let mut numbers: Vec<u32> = (0..count).collect();
                random.shuffle(&mut numbers);
                numbers.into()
            }
            Self::Random => (0..count).map(|_| random.u32(0..count)).collect(),
        };
        Drawn::new(numbers, unit_bytes)
    }

    /// The word in the names of cases and in tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Shuffled => "shuffled",
            Self::Random => "random",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn pass(order: Order) -> Vec<u64> {
        let places = order.places(1000 * 4096 + 100, 4096, 7);
        places.take(1000).collect()
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
        let mut places = Order::Shuffled.places(1 << 20, 4096, 3);
        let first: Vec<u64> = places.by_ref().take(256).collect();
        let second: Vec<u64> = places.take(256).collect();
        assert_eq!(first, second);
        let one = Order::Random.places(100, 4096, 3);
        assert_eq!(one.take(3).collect::<Vec<_>>(), [0, 0, 0]);
    }
}
