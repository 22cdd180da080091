//! Requests that make writes durable, in flight at the same time on one open file or connection.
//!
//! A kernel or a server reports writes that it lost to one of them only, whichever looks first
//! (`file_check_and_advance_wb_err` of Linux, `lib/errseq.c`), and their answers come in any order.
//! So a success counts when all that were in flight with it have succeeded, too:
//!
//! ```text
//!   A  |--------------------| failed
//!   B       |-----| good    : held back until A ends, and fails with it
//!   C               |-------:--| good: begun after B's answer, and in flight when A failed: fails
//!   D                          |------| good
//! ```

use std::collections::VecDeque;

/// Requests in flight, by generation: a new one begins with each answer that is held back or bad.
pub(crate) struct Overlap<T> {
    /// The generation of the first count.
    first: u64,
    /// Requests in flight of each generation; the last one is the current.
    counts: VecDeque<u32>,
    /// No success of a generation before this counts.
    failed_before: u64,
    held: Vec<Held<T>>,
}

struct Held<T> {
    item: T,
    /// The last generation that was begun before the answer.
    until: u64,
    good: bool,
}

impl<T> Overlap<T> {
    pub fn new(depth: usize) -> Self {
        Self {
            first: 0,
            counts: VecDeque::with_capacity(depth),
            failed_before: 0,
            held: Vec::with_capacity(depth),
        }
    }

    /// How many answers are held back.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// A request is sent; its generation.
    pub fn begin(&mut self) -> u64 {
        if self.counts.is_empty() {
            self.counts.push_back(0);
        }
        let last = self.counts.len() - 1;
        self.counts[last] += 1;
        self.first + last as u64
    }

    /// A request has ended, without an effect on others.
    pub fn end(&mut self, generation: u64) {
        let at = generation.checked_sub(self.first);
        let count = at.and_then(|at| self.counts.get_mut(at as usize));
        if let Some(count) = count {
            *count = count.saturating_sub(1);
        }
        while self.counts.front() == Some(&0) {
            self.counts.pop_front();
            self.first += 1;
        }
    }

    /// A request has failed, and with it all that are in flight.
    pub fn failed(&mut self, generation: u64) {
        for held in &mut self.held {
            held.good &= generation > held.until;
        }
        self.failed_before = self.next_generation();
        self.end(generation);
    }

    /// A request has succeeded. It is [released](Overlap::release) when it counts.
    pub fn succeeded(&mut self, generation: u64, item: T) {
        let good = generation >= self.failed_before;
        self.end(generation);
        let next = match self.counts.is_empty() {
            true => self.first,
            false => self.next_generation(),
        };
        self.held.push(Held {
            item,
            until: next.saturating_sub(1),
            good,
        });
    }

    /// Begins a generation, unless the current one is empty.
    fn next_generation(&mut self) -> u64 {
        if self.counts.back().is_some_and(|&count| count > 0) {
            self.counts.push_back(0);
        }
        let current = (self.counts.len() as u64).saturating_sub(1);
        self.first + current
    }

    /// One that waits for nothing any more, and whether it has succeeded.
    pub fn release(&mut self) -> Option<(T, bool)> {
        let idle = self.counts.is_empty();
        let free = |held: &Held<T>| idle || held.until < self.first;
        let at = self.held.iter().position(free)?;
        let held = self.held.remove(at);
        Some((held.item, held.good))
    }

    /// Forgets answers that are held back, unless `keep` says otherwise.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.held.retain(|held| keep(&held.item));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn released(overlap: &mut Overlap<char>) -> Vec<(char, bool)> {
        std::iter::from_fn(|| overlap.release()).collect()
    }

    #[test]
    fn one_alone_is_released_at_once() {
        let mut overlap = Overlap::new(4);
        for _ in 0..3 {
            let generation = overlap.begin();
            overlap.succeeded(generation, 'a');
            assert_eq!(released(&mut overlap), [('a', true)]);
        }
        let generation = overlap.begin();
        overlap.failed(generation);
        let generation = overlap.begin();
        overlap.succeeded(generation, 'b');
        assert_eq!(released(&mut overlap), [('b', true)]);
    }

    #[test]
    fn a_success_fails_with_what_was_in_flight_before_it_or_after_it() {
        let mut overlap = Overlap::new(4);
        let (a, b) = (overlap.begin(), overlap.begin());
        overlap.succeeded(b, 'b');
        assert_eq!(released(&mut overlap), []);
        let c = overlap.begin();
        overlap.failed(a);
        assert_eq!(released(&mut overlap), [('b', false)]);
        let d = overlap.begin();
        overlap.succeeded(c, 'c');
        overlap.succeeded(d, 'd');
        assert_eq!(released(&mut overlap), [('c', false), ('d', true)]);
    }

    #[test]
    fn nothing_waits_for_what_began_after_its_answer() {
        let mut overlap = Overlap::new(4);
        let (a, b) = (overlap.begin(), overlap.begin());
        overlap.succeeded(a, 'a');
        let c = overlap.begin();
        overlap.succeeded(b, 'b');
        assert_eq!(released(&mut overlap), [('a', true)]);
        overlap.failed(c);
        assert_eq!(released(&mut overlap), [('b', false)]);
    }

    /// Against the definition: a success counts if no request that was in flight with it failed.
    #[test]
    fn random_histories_follow_the_definition() {
        for seed in 0..2000 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut overlap = Overlap::new(8);
            let mut flying: Vec<(usize, u64)> = Vec::new();
            // Of each: when it began, when it ended, whether its answer was bad.
            let mut all: Vec<(usize, usize, bool)> = Vec::new();
            let mut out = Vec::new();
            for now in 0..60 {
                if now < 50 && (flying.is_empty() || random.bool()) {
                    flying.push((all.len(), overlap.begin()));
                    all.push((now, usize::MAX, false));
                } else if !flying.is_empty() {
                    let (name, generation) = flying.swap_remove(random.usize(..flying.len()));
                    all[name].1 = now;
                    all[name].2 = random.u8(..5) == 0;
                    match all[name].2 {
                        true => overlap.failed(generation),
                        false => overlap.succeeded(generation, name),
                    }
                }
                while let Some((name, good)) = overlap.release() {
                    let (began, ended, _) = all[name];
                    let beside = |other: &&(usize, usize, bool)| other.0 < ended && other.1 > began;
                    let mut waited = all.iter().filter(beside);
                    assert!(waited.clone().all(|other| other.1 <= now), "seed {seed}");
                    assert_eq!(good, !waited.any(|other| other.2), "seed {seed}: {name}");
                    out.push(name);
                }
            }
            let good = all.iter().filter(|one| one.1 < usize::MAX && !one.2);
            assert!(
                !flying.is_empty() || out.len() == good.count(),
                "seed {seed}"
            );
        }
    }
}
