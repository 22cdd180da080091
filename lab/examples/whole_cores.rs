//! Why two workers do less than twice the work of one, where they share nothing: are the
//! processors whole cores? In a virtual machine they may be the two threads of one core for some
//! milliseconds and two cores later, and the system inside cannot see it.
//!
//! Each slice sends requests as the last row of `ugeom lab scaling` does, with as many workers as
//! there are processors, or with one. Right before and right after it as many threads compute what
//! fills a core (`work::Sums::Filling`). Where both take as long as the fastest, the processors
//! were whole cores; where both take twice as long, two of them shared one. The rates of the slices
//! are told apart by that.
//!
//! Run it with `cargo run --release -p ugeom-lab --example whole_cores`, and behind `--` the
//! seconds to go on for, if not 20.
#![forbid(unsafe_code)]

use std::error::Error;
use std::time::{Duration, Instant};
use ugeom_classes::{TargetOptions, open_target};
use ugeom_harness::Case;
use ugeom_load::cases::{Sums, computing};
use ugeom_load::{Load, LoadJob, Pattern, Range};
use ugeom_machine::cpu::Affinity;
use ugeom_measure::interval::student_of;
use ugeom_stack::Statistics;

/// A thread sends so many requests in a slice: a fraction of a millisecond.
const REQUESTS_EACH: u64 = 10_000;
/// And computes so many turns before and after it: as long again.
const TURNS_EACH: u64 = 6_000;
/// Up to this multiple of the shortest time the core was a whole one.
const WHOLE: f64 = 1.1;
/// From this multiple on it was shared by two that fill it.
const SHARED: f64 = 1.8;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Threads that compute and workers that send, side by side.
struct Crew {
    threads: u64,
    computing: Case<'static>,
    load: Load,
    slices: Vec<Slice>,
}

/// The counts of a slice.
struct Slice {
    /// The computing before and after it, ns.
    beside_ns: [f64; 2],
    /// Requests per second of all threads.
    rate: f64,
}

impl Crew {
    fn new(threads: u64) -> Result<Self> {
        let mut options = TargetOptions::untasted();
        options.knobs.statistics = Statistics::Off;
        let target = open_target("zero:clear=0", &options)?;
        let range = Range {
            start_bytes: 0,
            blocks: 1 << 20,
            block_bytes: 4096,
            write_percent: 0,
        };
        let job = LoadJob {
            workers: threads as usize,
            ..LoadJob::new("workers", Pattern::Sequential(range))
        };
        Ok(Self {
            threads,
            computing: computing("computing", threads, Sums::Filling),
            load: Load::new(&target.stack, target.top, &job)?,
            slices: Vec::new(),
        })
    }

    fn compute(&mut self) -> Result<f64> {
        let done = (self.computing.run)(TURNS_EACH * self.threads)?;
        Ok(done.ns_total as f64)
    }

    fn slice(&mut self) -> Result<()> {
        let before_ns = self.compute()?;
        let rate = self.load.run(REQUESTS_EACH)?.requests_per_second();
        let after_ns = self.compute()?;
        self.slices.push(Slice {
            beside_ns: [before_ns, after_ns],
            rate,
        });
        Ok(())
    }

    /// The rates of the slices whose neighbours both took that multiple of the shortest time.
    fn rates(&self, shortest_ns: f64, is: impl Fn(f64) -> bool) -> Vec<f64> {
        let slices = self.slices.iter();
        let chosen = slices.filter(|slice| slice.beside_ns.iter().all(|ns| is(ns / shortest_ns)));
        chosen.map(|slice| slice.rate).collect()
    }
}

fn main() -> Result<()> {
    let seconds = std::env::args().nth(1).map(|text| text.parse()).transpose();
    let enough = Duration::from_secs(seconds?.unwrap_or(20));
    let cores = Affinity::current()?.cores().len() as u64;
    if cores < 2 {
        return Err("there is one processor only".into());
    }
    let (mut one, mut all) = (Crew::new(1)?, Crew::new(cores)?);
    let mut random = fastrand::Rng::with_seed(1);
    let started = Instant::now();
    while started.elapsed() < enough {
        match random.bool() {
            true => one.slice()?,
            false => all.slice()?,
        }
    }
    let times = one.slices.iter().chain(&all.slices);
    let times = times.flat_map(|slice| slice.beside_ns);
    let shortest_ns = times.fold(f64::INFINITY, f64::min);
    let alone = one.rates(shortest_ns, |times| times <= WHOLE);
    let alone = student_of(&alone, 0.95)?.interval;
    println!(
        "one worker on a whole core: {alone:.0} requests/s, in {} slices",
        one.slices.len()
    );
    let everything = |_| true;
    let whole = |times| times <= WHOLE;
    let shared = |times| times >= SHARED;
    for (name, rates) in [
        ("in all slices", all.rates(shortest_ns, everything)),
        ("on whole cores", all.rates(shortest_ns, whole)),
        ("on shared cores", all.rates(shortest_ns, shared)),
    ] {
        match student_of(&rates, 0.95) {
            Ok(rate) => {
                let linear = alone.estimate * cores as f64;
                let share = rate.interval.scaled(1.0 / linear);
                println!(
                    "{cores} workers {name}: {share:.3} of linear, {} slices",
                    rates.len()
                );
            }
            Err(error) => println!("{cores} workers {name}: {} slices ({error})", rates.len()),
        }
    }
    Ok(())
}
