//! Places that take few instructions: those of jobs with one file, where all requests have one
//! length and a place depends on nothing but the one before. They are those of [`Places::next`],
//! which restarts at the end.

use super::{Places, State};
use crate::block_map::BlockMap;

/// Offsets from the beginning of the file, without an end.
pub trait Steps {
    /// The next one.
    fn next(&mut self) -> u64;
}

/// The places of a simple job.
pub enum Simple {
    /// One after the other.
    Sequence(Sequence),
    /// Drawn, and perhaps twice.
    Random(Random),
    /// Drawn, each once before any comes twice.
    Mapped(Mapped),
}

/// See [`Simple`].
pub struct Sequence {
    start: u64,
    step: u64,
    end: u64,
    next: u64,
}

/// See [`Simple`].
pub struct Random {
    start: u64,
    step: u64,
    blocks: u64,
    rng: fastrand::Rng,
}

/// See [`Simple`].
pub struct Mapped {
    random: Random,
    map: BlockMap,
}

impl Places {
    /// The places of requests of a kind, where they are simple. They are taken from these, which
    /// are of no use then.
    pub fn simple(&mut self, kind: usize) -> Option<Simple> {
        let rules = &self.rules;
        let sizes = &rules.sizes[kind];
        let [file] = &mut self.files[..] else {
            return None;
        };
        let one_length = sizes.min == sizes.max && sizes.min == rules.unit;
        let nothing_else = file.zone.is_none() && rules.align[kind] == 0 && !rules.unaligned;
        if !one_length || !nothing_else || file.length < rules.unit {
            return None;
        }
        if !rules.random {
            return (rules.modifier == 0).then(|| Simple::Sequence(file.sequence(rules.unit)));
        }
        let even = file.spreads[kind].is_even();
        if !even || rules.random_percent[kind] < 100 || rules.modifier > 1 || rules.identical {
            return None;
        }
        let random = Random {
            start: file.start,
            step: rules.unit,
            blocks: file.blocks,
            rng: self.rng.clone(),
        };
        Some(match file.map.take() {
            None => Simple::Random(random),
            Some(map) => Simple::Mapped(Mapped { random, map }),
        })
    }
}

impl State {
    fn sequence(&self, step: u64) -> Sequence {
        Sequence {
            start: self.start,
            step,
            end: self.start + self.length / step * step,
            next: self.start,
        }
    }
}

impl Steps for Sequence {
    #[inline(always)]
    fn next(&mut self) -> u64 {
        if self.next >= self.end {
            self.next = self.start;
        }
        let offset = self.next;
        self.next += self.step;
        offset
    }
}

impl Steps for Random {
    #[inline(always)]
    fn next(&mut self) -> u64 {
        self.start + self.rng.u64(0..self.blocks) * self.step
    }
}

impl Steps for Mapped {
    #[inline(always)]
    fn next(&mut self) -> u64 {
        loop {
            let drawn = self.random.rng.u64(0..self.random.blocks);
            if let Some(block) = self.map.next_free(drawn) {
                self.map.take(block);
                return self.random.start + block * self.random.step;
            }
            self.map.clear();
        }
    }
}
