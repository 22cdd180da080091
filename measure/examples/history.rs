//! Counts how often a step in a history is found and how often one is claimed that is none, by the
//! rules of `ugeom history`: `cargo run --release -p ugeom-measure --example history`, and behind
//! `--` the number of series and the seed, if not 1500 and 1. `-- series 300 1 50` prints the
//! series of 50 commits themselves, one a line, for other programs: the noise, whether there is a
//! step before the last five commits, and the values.
#![forbid(unsafe_code)]

mod simulated;

use simulated::{Counts, Noise, pairs, two_stages, whole_series};

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let only_series = arguments.first().is_some_and(|word| word == "series");
    if only_series {
        arguments.remove(0);
    }
    let number = |at: usize, otherwise: u64| {
        let given = arguments.get(at).and_then(|text| text.parse().ok());
        given.unwrap_or(otherwise)
    };
    let (series, seed) = (number(0, 1500) as usize, number(1, 1));
    if only_series {
        return print_series(series, seed, number(2, 50) as usize);
    }
    println!("noise 2 %, step 5 %, {series} series each, seed {seed}");
    println!("two stages, 20 commits of baseline, 50 checks one after the other:");
    for noise in Noise::ALL {
        let counts = two_stages(noise, series, seed);
        let repeated = counts.repeated as f64 / counts.series.max(1) as f64;
        println!(
            "  {noise:?}: {}; {repeated:.1} measured again per 50",
            told(&counts)
        );
    }
    println!("one look at a whole series, the step before the last 5 commits:");
    for commits in [20, 35, 50] {
        for noise in Noise::ALL {
            let counts = whole_series(noise, commits, series, seed);
            println!("  {commits} commits, {noise:?}: {}", told(&counts));
        }
    }
}

fn print_series(series: usize, seed: u64, commits: usize) {
    for noise in Noise::ALL {
        for pair in pairs(noise, commits, series, seed) {
            for (what, values) in ["calm", "step"].into_iter().zip(pair) {
                let values: Vec<String> = values.iter().map(f64::to_string).collect();
                println!("{noise:?},{what},{}", values.join(","));
            }
        }
    }
}

fn told(counts: &Counts) -> String {
    let share = |count: usize| count as f64 * 100.0 / counts.series.max(1) as f64;
    format!(
        "false alarms {} of {} ({:.1} %), found {} of {} ({:.1} %)",
        counts.false_alarms,
        counts.series,
        share(counts.false_alarms),
        counts.found,
        counts.series,
        share(counts.found)
    )
}
