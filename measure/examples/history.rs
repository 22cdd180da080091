//! Counts how often a step in a history is found and how often one is claimed that is none, by the
//! rules of `ugeom history`: `cargo run --release -p ugeom-measure --example history`, and behind
//! `--` the number of series and the seed, if not 1500 and 1.
#![forbid(unsafe_code)]

mod simulated;

use simulated::{Counts, Noise, two_stages, whole_series};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let series = arguments.next().and_then(Result::ok).unwrap_or(1500) as usize;
    let seed = arguments.next().and_then(Result::ok).unwrap_or(1);
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
