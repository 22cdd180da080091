//! Reads and writes of a mixed job, in fio's order: `rwmixread`.

use ugeom_load::places::Below as _;

use super::pace::Pace;
use crate::draws::{Draws, Purpose, Seeds};
use ugeom_job::settings::{Job, READ, TRIM, WRITE};

/// Chooses between reads and writes.
pub struct Mix {
    draws: Draws,
    read_percent: u64,
    /// How many requests of each kind have been made.
    made: [u64; 2],
    now: usize,
    /// The kind is drawn again when so many of it have been made.
    until: u64,
}

impl Mix {
    /// The mix of a job with so many reads, percent.
    pub fn new(read_percent: u8, seeds: &Seeds) -> Self {
        Self {
            draws: seeds.short(Purpose::Mix),
            read_percent: u64::from(read_percent),
            made: [0; 2],
            now: READ,
            until: 0,
        }
    }

    /// The kind of the next request of a job.
    #[inline]
    pub fn kind(&mut self, job: &Job, pace: Option<&Pace>) -> usize {
        if job.rw.trim_then_write {
            return TRIM;
        }
        match job.rw.does {
            [true, false, false] => READ,
            [false, true, false] => WRITE,
            [false, false, true] => TRIM,
            _ => {
                let drawn = self.choose();
                self.now = pace.map_or(drawn, |pace| pace.earlier(drawn));
                self.now
            }
        }
    }

    /// After a change, it stays until requests have the ratio of the
    /// mix.
    #[inline]
    fn choose(&mut self) -> usize {
        if self.made[self.now] >= self.until {
            let drawn = match self.draws.below(100) < self.read_percent {
                true => READ,
                false => WRITE,
            };
            if drawn != self.now {
                let share = match drawn {
                    READ => self.read_percent,
                    _ => 100 - self.read_percent,
                };
                self.until = self.made[self.now] * share / 100;
            }
            self.now = drawn;
        }
        self.now
    }

    /// The kind of the last request of a mix.
    pub fn last(&self) -> usize {
        self.now
    }

    /// A request of this kind is made.
    #[inline]
    pub fn made(&mut self, kind: usize) {
        if let Some(made) = self.made.get_mut(kind) {
            *made += 1;
        }
    }

    /// A pass begins, with the numbers of `seeds` where they are repeated.
    pub fn restart(&mut self, seeds: &Seeds) {
        self.until = 0;
        if seeds.repeats() {
            self.draws = seeds.short(Purpose::Mix);
        }
    }
}
