//! Do intervals hold? On a simulated machine whose truth is known, and in repeated runs of the real
//! experiments, whose truth is the middle of all runs.
//!
//! ```text
//! cargo run --release -p ugeom-lab --example coverage
//! cargo run --release -p ugeom-lab --example coverage -- target/release/ugeom layers 20 4s
//! ```
//!
//! The second form runs `ugeom lab layers --budget 4s` 20 times. Run it on an idle machine, and
//! once more beside a load (`stress-ng --cpu 2`).

#[path = "../../harness/tests/simulated/mod.rs"]
mod simulated;

use serde_json::Value;
use std::collections::BTreeMap;
use std::error::Error;
use std::process::Command;

/// Experiments on the simulated machine.
const EXPERIMENTS: u64 = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [] => on_a_simulated_machine(),
        [program, lab, runs, budget] => return in_real_runs(program, lab, runs.parse()?, budget),
        _ => return Err("usage: coverage [PROGRAM LAB RUNS BUDGET]".into()),
    }
    Ok(())
}

fn on_a_simulated_machine() {
    println!("{EXPERIMENTS} experiments on a simulated machine; share of intervals with the truth");
    for (what, ours, old) in simulated::coverage(EXPERIMENTS) {
        println!("{what:24} {ours:5.1} %, before {old:5.1} %");
    }
    let [mended, shared] = [simulated::Lengths::Mended, simulated::Lengths::Shared]
        .map(|lengths| simulated::coverage_of_lengths(lengths, EXPERIMENTS));
    println!(
        "{:24} {mended:5.1} %, before {shared:5.1} %",
        "interrupted calibration"
    );
    let claims = simulated::false_claims(EXPERIMENTS);
    println!("{:24} {claims:5.1} %", "false \"size matters\"");
}

/// A figure of one run: its estimate and the ends of its interval.
type Seen = (f64, f64, f64);

fn in_real_runs(program: &str, lab: &str, runs: u32, budget: &str) -> Result<(), Box<dyn Error>> {
    let mut seen: BTreeMap<String, Vec<Seen>> = BTreeMap::new();
    let mut claims = 0;
    for run in 0..runs {
        let seed = run.to_string();
        let arguments = [
            "lab", lab, "--budget", budget, "--seed", &seed, "--json", "-",
        ];
        let output = Command::new(program).args(arguments).output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        let document: Value = serde_json::from_slice(&output.stdout)?;
        let figures = document["figures"].as_array().ok_or("no figures")?;
        let proven = |figure: &&Value| {
            figure["id"]
                .as_str()
                .is_some_and(|id| id.starts_with("size."))
                && figure["proven"] == true
        };
        claims += u32::from(figures.iter().any(|figure| proven(&figure)));
        for figure in figures {
            let interval = &figure["interval"];
            let value = |name: &str| interval[name].as_f64().unwrap_or(f64::NAN);
            let id = figure["id"].as_str().unwrap_or_default().to_owned();
            // A confidence of 0: the ends are percentiles, which claim nothing.
            if value("confidence") == 0.0 {
                continue;
            }
            let values = (value("estimate"), value("low"), value("high"));
            seen.entry(id).or_default().push(values);
        }
    }
    let (mut all_held, mut all) = (0, 0);
    for (id, runs) in seen
        .iter()
        .filter(|(_, runs)| runs.iter().any(|run| run.1 < run.2))
    {
        let held = held(runs);
        println!("{id:40} {held:3} of {:3}", runs.len());
        all_held += held;
        all += runs.len();
    }
    let percent = all_held as f64 * 100.0 / all.max(1) as f64;
    println!("all figures: {all_held} of {all} intervals hold ({percent:.1} %)");
    println!("\"size matters\" in {claims} of {runs} runs");
    Ok(())
}

/// How many intervals hold the median of the other runs.
fn held(runs: &[Seen]) -> usize {
    let middle_without = |without: usize| {
        let others = runs.iter().enumerate().filter(|(at, _)| *at != without);
        let mut others: Vec<f64> = others.map(|(_, run)| run.0).collect();
        others.sort_by(f64::total_cmp);
        let middle = others.len() / 2;
        match others.len() {
            0 => f64::NAN,
            odd if odd % 2 == 1 => others[middle],
            _ => (others[middle - 1] + others[middle]) / 2.0,
        }
    };
    let holds = |(at, run): &(usize, &Seen)| {
        let truth = middle_without(*at);
        run.1 <= truth && truth <= run.2
    };
    runs.iter().enumerate().filter(holds).count()
}
