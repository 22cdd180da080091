//! Places that take few instructions: those of jobs with one file, where all requests have one
//! length and a place depends on nothing but the one before. They are those of [`Places::next`],
//! which restarts at the end.

use ugeom_load::places::{Mapped, Random, Sequence};

use super::{Places, Source};
use crate::draws::Draws;

/// The places of a simple job.
pub enum Simple {
    /// One after the other.
    Sequence(Sequence),
    /// Drawn, and perhaps twice.
    Random(Random<Draws>),
    /// Drawn, each once before any comes twice.
    Mapped(Mapped<Draws>),
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
        let length = sizes.min.max(1);
        let nothing_else = !rules.seq_rand_sizes
            && file.zone.is_none()
            && rules.align[kind] == length
            && !rules.unaligned;
        if sizes.min != sizes.max || !nothing_else || file.length < length {
            return None;
        }
        if !rules.random {
            let steps = file.length / length;
            let places = || Simple::Sequence(Sequence::new(file.start, length, steps));
            return (rules.modifier == 0).then(places);
        }
        let alone = rules.random_percent[kind] == 100 && rules.modifier <= 1 && !rules.identical;
        if !alone || rules.zones[kind].is_some() || rules.unit != length {
            return None;
        }
        let numbers = self.chance.offsets.clone();
        let random = Random::new(file.start, length, file.length / length, numbers);
        match std::mem::replace(&mut file.source, Source::Any) {
            Source::Any => Some(Simple::Random(random)),
            Source::Mapped(map) if !rules.repeats_passes => {
                Some(Simple::Mapped(Mapped::new(random, map)))
            }
            other => {
                file.source = other;
                None
            }
        }
    }
}
