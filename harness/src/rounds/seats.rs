//! The cores on which a case runs. They are drawn anew before each run: with the same core in every
//! run, an interrupt handler or another program's thread that stays on that core would be an error
//! of the whole measurement, which no interval covers. The reference loop runs on the same cores,
//! on all of them together.

use std::sync::Arc;
use ugeom_machine::cpu::Affinity;
use ugeom_machine::mutex::Mutex;

/// Cores of a case, shared by the harness, which draws them, and by the case.
#[derive(Clone, Debug, Default)]
pub struct Seats {
    threads: usize,
    drawn: Arc<Mutex<Vec<usize>>>,
}

impl Seats {
    /// A core for each of so many threads.
    pub fn of(threads: usize) -> Self {
        let seats = Self {
            threads,
            drawn: Arc::default(),
        };
        // A first choice, for runs outside of rounds.
        seats.take(allowed());
        seats
    }

    /// Draws the cores of the next run.
    pub fn shuffle(&self, random: &mut fastrand::Rng) {
        let mut cores = allowed();
        random.shuffle(&mut cores);
        self.take(cores);
    }

    /// None where there are fewer cores than threads: then the system places them.
    fn take(&self, mut cores: Vec<usize>) {
        if cores.len() < self.threads {
            cores.clear();
        }
        cores.truncate(self.threads);
        *self.drawn.lock() = cores;
    }

    /// The cores of this run, one for each thread; empty where the system places them.
    pub fn cores(&self) -> Vec<usize> {
        let drawn = self.drawn.lock();
        drawn.clone()
    }
}

fn allowed() -> Vec<usize> {
    Affinity::current().map_or_else(|_| Vec::new(), |allowed| allowed.cores())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_core_is_drawn_and_none_twice_in_a_run() {
        let all: BTreeSet<usize> = allowed().into_iter().collect();
        let (one, each) = (Seats::of(1), Seats::of(all.len()));
        let mut random = fastrand::Rng::with_seed(3);
        let mut seen = BTreeSet::new();
        for _ in 0..50 * all.len() {
            one.shuffle(&mut random);
            each.shuffle(&mut random);
            seen.extend(one.cores());
            assert_eq!(one.cores().len(), 1);
            assert_eq!(each.cores().into_iter().collect::<BTreeSet<_>>(), all);
        }
        assert_eq!(seen, all);
        assert!(Seats::of(all.len() + 1).cores().is_empty());
    }
}
