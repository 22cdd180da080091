//! Where requests go: offsets without an end, one after the other, at random, or each once before
//! any comes again. With one seed the order is the same on every machine.

use super::block_map::BlockMap;
use std::sync::Arc;

/// Random numbers below a limit, each as likely as any other.
pub trait Below {
    /// The next number; it is below `limit`, which is not 0.
    fn below(&mut self, limit: u64) -> u64;
}

impl Below for fastrand::Rng {
    #[inline(always)]
    fn below(&mut self, limit: u64) -> u64 {
        self.u64(0..limit)
    }
}

/// Steps of a stretch, one after the other, and again from its start.
#[derive(Clone, Debug)]
pub struct Sequence {
    start: u64,
    step: u64,
    end: u64,
    next: u64,
}

impl Sequence {
    /// `steps` steps of `step` bytes each, of which there is at least one, from `start` on.
    pub fn new(start: u64, step: u64, steps: u64) -> Self {
        Self {
            start,
            step,
            end: start + step * steps.max(1),
            next: start,
        }
    }

    /// The same, beginning with the step of that number.
    #[must_use]
    pub fn from_step(mut self, number: u64) -> Self {
        self.next = self.start + number * self.step;
        self
    }

    /// Every second step only, so that no two requests can be merged.
    #[must_use]
    pub fn with_gaps(mut self) -> Self {
        self.step *= 2;
        self
    }
}

impl Iterator for Sequence {
    type Item = u64;

    #[inline(always)]
    fn next(&mut self) -> Option<u64> {
        if self.next >= self.end {
            self.next = self.start;
        }
        let offset = self.next;
        self.next += self.step;
        Some(offset)
    }
}

/// Steps of a stretch at random, each as likely as any other.
#[derive(Clone, Debug)]
pub struct Random<R = fastrand::Rng> {
    start: u64,
    step: u64,
    steps: u64,
    rng: R,
}

impl<R: Below> Random<R> {
    /// `steps` steps of `step` bytes each, of which there is at least one, from `start` on.
    pub fn new(start: u64, step: u64, steps: u64, rng: R) -> Self {
        Self {
            start,
            step,
            steps: steps.max(1),
            rng,
        }
    }
}

impl<R: Below> Iterator for Random<R> {
    type Item = u64;

    #[inline(always)]
    fn next(&mut self) -> Option<u64> {
        Some(self.start + self.rng.below(self.steps) * self.step)
    }
}

/// Steps at random, each once before any comes twice, by a map of those that came.
pub struct Mapped<R> {
    random: Random<R>,
    map: BlockMap,
}

impl<R: Below> Mapped<R> {
    /// Those of `random` that are free in `map`, and all again when none is.
    pub fn new(random: Random<R>, map: BlockMap) -> Self {
        Self { random, map }
    }
}

impl<R: Below> Iterator for Mapped<R> {
    type Item = u64;

    #[inline(always)]
    fn next(&mut self) -> Option<u64> {
        let Random { start, step, .. } = self.random;
        loop {
            let drawn = self.random.rng.below(self.random.steps);
            if let Some(block) = self.map.next_free(drawn) {
                self.map.take(block);
                return Some(start + block * step);
            }
            self.map.clear();
        }
    }
}

/// Steps whose order was drawn before, over and over. Clones share it.
#[derive(Clone, Debug)]
pub struct Drawn {
    numbers: Arc<[u32]>,
    next: usize,
    step: u64,
}

impl Drawn {
    /// Steps of `step` bytes with these numbers, of which there is at least one.
    pub fn new(numbers: Arc<[u32]>, step: u64) -> Self {
        Self {
            numbers,
            next: 0,
            step,
        }
    }

    /// The offset of the next one, bytes.
    #[inline(always)]
    pub fn next_offset(&mut self) -> u64 {
        let number = self.numbers[self.next];
        self.next += 1;
        if self.next == self.numbers.len() {
            self.next = 0;
        }
        u64::from(number) * self.step
    }
}

impl Iterator for Drawn {
    type Item = u64;

    #[inline(always)]
    fn next(&mut self) -> Option<u64> {
        Some(self.next_offset())
    }
}

/// One after the other or at random: the choice of most loads.
#[derive(Clone, Debug)]
pub enum Either {
    /// One block after the other.
    Sequence(Sequence),
    /// Blocks drawn from a seed.
    Random(Random),
}

impl Iterator for Either {
    type Item = u64;

    #[inline(always)]
    fn next(&mut self) -> Option<u64> {
        match self {
            Self::Sequence(places) => places.next(),
            Self::Random(places) => places.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn steps_follow_each_other_and_begin_again() {
        let places = Sequence::new(512, 512, 3);
        let first = |places: Sequence, count| places.take(count).collect::<Vec<_>>();
        assert_eq!(first(places.clone(), 4), [512, 1024, 1536, 512]);
        assert_eq!(first(places.clone().from_step(2), 2), [1536, 512]);
        assert_eq!(first(places.with_gaps(), 4), [512, 1536, 512, 1536]);
        let less_than_one = Sequence::new(0, 512, 0);
        assert_eq!(first(less_than_one, 2), [0, 0]);
    }

    #[test]
    fn random_steps_stay_inside_and_are_repeatable() {
        let places = Random::new(4096, 4096, 15, fastrand::Rng::with_seed(7));
        let some: Vec<u64> = places.clone().take(200).collect();
        assert!(
            some.iter()
                .all(|at| at % 4096 == 0 && (4096..1 << 16).contains(at))
        );
        assert_eq!(some, places.take(200).collect::<Vec<_>>());
        assert!(some.contains(&4096) && some.contains(&(60 << 10)));
    }

    #[test]
    fn mapped_steps_come_once_before_any_comes_again() {
        let random = Random::new(0, 1, 100, fastrand::Rng::with_seed(3));
        let mut places = Mapped::new(random, BlockMap::new(100));
        for _ in 0..2 {
            let pass: BTreeSet<u64> = places.by_ref().take(100).collect();
            assert_eq!(pass.len(), 100);
        }
    }

    #[test]
    fn drawn_steps_come_over_and_over() {
        let places = Drawn::new([2, 0].into(), 512);
        assert_eq!(places.take(3).collect::<Vec<_>>(), [1024, 0, 1024]);
    }
}
