//! The program of 2002 on each layer of a chain: `lseek` and `read` of the first 512 bytes, 100
//! times unmeasured and 100,000 times measured, ten times each, the layers in turns.
//!
//! It reads through the page cache, as it did, so a layer's own code runs for the first read only.

use super::chain::Chain;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use ugeom_harness::{Control, HarnessError, Phase, Progress};
use ugeom_load::tst;
use ugeom_measure::{Center, Interval};

/// Runs of each layer.
const RUNS: usize = 10;
const CONFIDENCE: f64 = 0.95;

/// A layer of the chain, with the times of the loop on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaithfulRow {
    /// Name of the layer's device.
    pub name: String,
    /// The kind of layer.
    pub class: String,
    /// The lines that the program of 2002 printed, ns of a loop.
    pub runs_ns: Vec<f64>,
    /// The median with its 95 % interval; none of fewer than 6 runs.
    pub loop_ns: Option<Interval>,
    /// The cost added to the layer below, within rounds; none for the lowest.
    pub added_ns: Option<Interval>,
}

/// The result: the time of the loop on each layer of a chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Faithful {
    /// Loops of a run.
    pub loops: u64,
    /// The layers from the top.
    pub rows: Vec<FaithfulRow>,
}

/// Runs the program on each layer.
///
/// # Errors
/// The error of opening or reading a layer.
pub fn run(chain: &Chain, seed: u64, control: &mut Control<'_>) -> Result<Faithful, HarnessError> {
    let mut random = fastrand::Rng::with_seed(seed);
    let paths: Vec<PathBuf> = chain.rows.iter().map(|row| row.path.clone()).collect();
    let mut rounds: Vec<Vec<f64>> = Vec::new();
    for done in 0..RUNS {
        if control.is_cancelled() {
            break;
        }
        (control.progress)(&Progress {
            phase: Phase::Measuring,
            case: "the program of 2002",
            done: done as u64,
            total: RUNS as u64,
        });
        let mut round = vec![0.0; paths.len()];
        let mut turns: Vec<usize> = (0..paths.len()).collect();
        random.shuffle(&mut turns);
        for at in turns {
            round[at] = tst::tst(&paths[at])?;
        }
        rounds.push(round);
    }
    Ok(of_rounds(chain, &rounds))
}

fn of_rounds(chain: &Chain, rounds: &[Vec<f64>]) -> Faithful {
    let interval = |values: Vec<f64>| Center::of(&values).ok()?.at(CONFIDENCE).ok();
    let last = chain.rows.len() - 1;
    let figures = |(at, row): (usize, &super::chain::ChainLayer)| {
        let runs_ns: Vec<f64> = rounds.iter().map(|round| round[at]).collect();
        let added = rounds
            .iter()
            .map(|round| round[at] - round[(at + 1).min(last)]);
        FaithfulRow {
            name: row.name.clone(),
            class: row.class.to_owned(),
            loop_ns: interval(runs_ns.clone()),
            added_ns: (at < last).then(|| interval(added.collect())).flatten(),
            runs_ns,
        }
    };
    Faithful {
        loops: tst::LOOPS,
        rows: chain.rows.iter().enumerate().map(figures).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_layer_has_the_figures_of_its_runs_and_the_difference_to_the_one_below() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let row = |name: &str| super::super::chain::ChainLayer {
            name: name.to_owned(),
            class: "FILE",
            path: file.path().to_owned(),
            file: file.reopen().unwrap(),
            offset_bytes: 0,
            sector_bytes: 512,
        };
        let chain = Chain {
            rows: vec![row("upper"), row("lower")],
            region_bytes: 512,
            left_out: Vec::new(),
        };
        let rounds: Vec<Vec<f64>> = (0..RUNS).map(|at| vec![300.0, 200.0 + at as f64]).collect();
        let found = of_rounds(&chain, &rounds);
        assert_eq!(found.rows[0].runs_ns, [300.0; RUNS]);
        assert_eq!(found.rows[0].loop_ns.unwrap().estimate, 300.0);
        let added = found.rows[0].added_ns.unwrap();
        assert!((91.0..=100.0).contains(&added.estimate), "{added:?}");
        assert_eq!(found.rows[1].added_ns, None);
    }
}
