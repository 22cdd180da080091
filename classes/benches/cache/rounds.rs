//! Cases that are measured in turn, and their ratios with intervals.

use std::time::Instant;
use ugeom_classes::{Target, TargetOptions, open_target};
use ugeom_measure::ratio::log_ratio_paired;

/// Rounds of a measurement by default.
pub const ROUNDS: usize = 31;
const CONFIDENCE: f64 = 0.95;

/// A stack that can be written, whose media nothing tastes.
pub fn writable(text: &str) -> Target {
    let options = TargetOptions::untasted().for_writing();
    open_target(text, &options).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A piece of work: does so many iterations.
pub type Work<'a> = Box<dyn FnMut(u64) + 'a>;

/// The times of cases, ns an iteration, by round.
pub struct Measured {
    names: Vec<&'static str>,
    ns: Vec<Vec<f64>>,
}

/// Runs each case once a round, in random order; a run is `iterations` long.
pub fn measure(cases: Vec<(&'static str, Work<'_>)>, iterations: u64) -> Measured {
    measure_often(cases, iterations, ROUNDS)
}

/// The same with so many rounds. A first one more warms up and is thrown away.
pub fn measure_often(
    cases: Vec<(&'static str, Work<'_>)>,
    iterations: u64,
    rounds: usize,
) -> Measured {
    let (names, mut works): (Vec<_>, Vec<_>) = cases.into_iter().unzip();
    let mut ns = vec![Vec::new(); works.len()];
    let mut order: Vec<usize> = (0..works.len()).collect();
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..=rounds {
        random.shuffle(&mut order);
        for case in &order {
            let begin = Instant::now();
            works[*case](iterations);
            if round > 0 {
                ns[*case].push(begin.elapsed().as_nanos() as f64 / iterations as f64);
            }
        }
    }
    Measured { names, ns }
}

impl Measured {
    /// Prints the median of each case.
    pub fn print(&self) {
        for (name, ns) in self.names.iter().zip(&self.ns) {
            print_times(name, ns);
        }
    }

    fn of(&self, wanted: &str) -> &[f64] {
        let at = self.names.iter().position(|name| *name == wanted);
        &self.ns[at.expect("a case of that name")]
    }

    /// Prints how many times as long as `below` the case `above` takes, and the goal.
    pub fn ratio(&self, above: &str, below: &str, goal: &str) {
        let name = format!("{above} / {below}");
        print_ratio(&name, self.of(above), self.of(below), goal);
    }

    /// Prints what the second of the cases `ours` gains over the first, as a part of what the
    /// second of `theirs` does.
    pub fn gain(&self, ours: [&str; 2], theirs: [&str; 2], goal: &str) {
        let gain = |[before, after]: [&str; 2]| -> Vec<f64> {
            let pairs = self.of(before).iter().zip(self.of(after));
            pairs.map(|(before, after)| before / after).collect()
        };
        let name = format!("gain of {} / gain of {}", ours[1], theirs[1]);
        print_ratio(&name, &gain(ours), &gain(theirs), goal);
    }
}

/// Prints the median of some times, ns, the shortest and the longest.
pub fn print_times(name: &str, ns: &[f64]) {
    let mut sorted = ns.to_vec();
    sorted.sort_by(f64::total_cmp);
    println!(
        "{name:<44} {:>10.1} ns  ({:.1} to {:.1})",
        sorted[sorted.len() / 2],
        sorted[0],
        sorted[sorted.len() - 1]
    );
}

fn print_ratio(name: &str, above: &[f64], below: &[f64], goal: &str) {
    let ratio = log_ratio_paired(above, below, CONFIDENCE).expect("positive times");
    let interval = ratio.interval;
    println!(
        "{name}: {:.3} ({:.3} to {:.3}); goal {goal}",
        interval.estimate, interval.low, interval.high
    );
}
