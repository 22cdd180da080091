//! The bytes of a READ that its chunks have filled: chunks come in any order, and no byte twice.

use std::ops::Range;

/// Ranges that do not touch, at most. Servers send chunks in order, in which there is one.
const RANGES_MAX: usize = 4096;

/// Bytes that have come, or are coming.
#[derive(Default)]
pub(in crate::nbd) struct Filled(Vec<Range<u64>>);

impl Filled {
    /// Adds a range. False if a byte of it is there already, or if there are too many gaps.
    pub fn add(&mut self, range: Range<u64>) -> bool {
        if range.is_empty() {
            return true;
        }
        let ranges = &mut self.0;
        let at = ranges.partition_point(|it| it.end <= range.start);
        if ranges.get(at).is_some_and(|it| it.start < range.end) {
            return false;
        }
        let joins_next = ranges.get(at).is_some_and(|it| it.start == range.end);
        let joins_last = at > 0 && ranges[at - 1].end == range.start;
        match (joins_last, joins_next) {
            (true, true) => {
                ranges[at - 1].end = ranges[at].end;
                ranges.remove(at);
            }
            (true, false) => ranges[at - 1].end = range.end,
            (false, true) => ranges[at].start = range.start,
            (false, false) if ranges.len() == RANGES_MAX => return false,
            (false, false) => ranges.insert(at, range),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_in_any_order_are_added_once() {
        for seed in 0..500 {
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut filled, mut bytes) = (Filled::default(), [false; 64]);
            for _ in 0..40 {
                let start = random.usize(..64);
                let end = random.usize(start..=64).min(start + 9);
                let is_new = !bytes[start..end].contains(&true);
                let added = filled.add(start as u64..end as u64);
                assert_eq!(added, is_new, "seed {seed}: {start}..{end}");
                if is_new {
                    bytes[start..end].fill(true);
                }
            }
        }
    }

    #[test]
    fn gaps_without_end_are_refused() {
        let mut filled = Filled::default();
        let every_second = (0..).map(|at| filled.add(2 * at..2 * at + 1));
        assert_eq!(every_second.take_while(|added| *added).count(), RANGES_MAX);
    }
}
