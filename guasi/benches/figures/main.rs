//! `cargo bench -p ugeom-guasi`: the cost of a request, beside a plain pool and beside doing the
//! call inline, in interleaved rounds; each figure with its 95 % interval.
//!
//! An argument keeps the cases whose names contain it. `UGEOM_BENCH_SECONDS` sets the time (15),
//! `UGEOM_FLOORS` names programs in C to measure beside (`floors.rs`). Started as a test it
//! measures as little as it can.

mod cases;
mod floors;
mod pool;

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write;
use std::time::{Duration, Instant};

use cases::{Case, Sample};
use ugeom_measure::blocks::Blocks;
use ugeom_measure::interval::student_of;
use ugeom_testkit::{bench_seconds, is_bench};

const CONFIDENCE: f64 = 0.95;

/// Rounds below which an interval says too little.
const ROUNDS_MIN: usize = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let as_bench = is_bench();
    let seconds = bench_seconds()?.unwrap_or(15);
    let seed: u64 = 0x6775_6173_6931;
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut cases = cases::all()?;
    if as_bench {
        let floors = floors::all(&cases)?;
        cases.extend(floors);
    }
    let mut wanted = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'));
    if let Some(part) = wanted.next() {
        cases.retain(|case| case.name.contains(&part));
    }
    let run = match as_bench {
        true => Duration::from_millis(40),
        false => Duration::ZERO,
    };
    for case in &mut cases {
        case.run(run / 2)?;
    }
    let mut rounds: Vec<Vec<Sample>> = Vec::new();
    let start = Instant::now();
    let rounds_min = if as_bench { ROUNDS_MIN } else { 3 };
    while rounds.len() < rounds_min || (as_bench && start.elapsed().as_secs() < seconds) {
        let mut order: Vec<usize> = (0..cases.len()).collect();
        rng.shuffle(&mut order);
        let mut round = vec![Sample::default(); cases.len()];
        for index in order {
            round[index] = cases[index].run(run)?;
        }
        rounds.push(round);
    }
    let text = report(&cases, &rounds, seed)?;
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn report(cases: &[Case], rounds: &[Vec<Sample>], seed: u64) -> Result<String, Box<dyn Error>> {
    let mut times = Blocks::new(cases.iter().map(|case| case.name));
    for round in rounds {
        times.push_round(round.iter().map(|sample| sample.ns).collect())?;
    }
    let mut text = String::new();
    writeln!(text, "{} rounds, order by seed {seed}", rounds.len())?;
    writeln!(
        text,
        "{:<34} {:>22} {:>20} {:>12} {:>12}",
        "a request", "ns", "times the base", "switches", "CPU ns"
    )?;
    for (index, case) in cases.iter().enumerate() {
        let of = |pick: fn(&Sample) -> f64| -> Vec<f64> {
            rounds.iter().map(|round| pick(&round[index])).collect()
        };
        let ns = student_of(&of(|sample| sample.ns), CONFIDENCE)?.interval;
        let (switches, cpu) = (of(|sample| sample.switches), of(|sample| sample.cpu_ns));
        // Other programs tell no more than their time.
        let rest = match cpu[0].is_nan() {
            true => String::new(),
            false => {
                let cpu = student_of(&cpu, CONFIDENCE)?.interval.estimate;
                // Rounds without any switch at all have no interval.
                let switches = student_of(&switches, CONFIDENCE);
                let switches = switches.map_or(0.0, |it| it.interval.high);
                format!(" {switches:>12.4} {cpu:>12.1}")
            }
        };
        let ratio = match case.base.and_then(|base| times.position(base)) {
            None => String::new(),
            // The rate of this case to that of its base.
            Some(base) => match times
                .typical_ratio(index, base, CONFIDENCE)
                .map(|it| it.interval)
            {
                Ok(ratio) => format!(
                    "{:.2} ({:.2} to {:.2})",
                    ratio.estimate, ratio.low, ratio.high
                ),
                // On a restless machine the time that is divided by may be anything down to 0.
                Err(_) => "not known".to_owned(),
            },
        };
        writeln!(
            text,
            "{:<34} {:>9.1} +- {:>9.1} {:>20}{rest}",
            case.name,
            ns.estimate,
            ns.half_width(),
            ratio,
        )?;
    }
    writeln!(
        text,
        "switches: upper end of the interval of context switches a request"
    )?;
    Ok(text)
}
