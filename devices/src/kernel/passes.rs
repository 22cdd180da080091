//! The passes over a case, and the figures of its layers from them.

use super::{Costs, RowFigures};
use ugeom_harness::figure::CONFIDENCE;
use ugeom_measure::summary::median;
use ugeom_measure::{Blocks, Center, Interval};

/// Wall time, CPU time of the thread that reads, and CPU time of the machine, ns.
type Times = [f64; 3];

/// One pass over a case: medians of its rounds.
pub(super) struct Pass {
    rounds: usize,
    /// The times of reads of each layer, from the top.
    reads: Vec<Times>,
    /// The costs that each layer but the lowest adds to the one below, within rounds.
    added: Vec<Times>,
}

impl Pass {
    /// Of the rounds of each of the three times.
    pub(super) fn of(tables: &[Blocks; 3]) -> Self {
        let layers = tables[0].rounds().first().map_or(0, Vec::len);
        let middle = |value: &dyn Fn(&[f64]) -> f64| {
            [0, 1, 2].map(|at: usize| {
                let rounds = tables[at].rounds().iter();
                let values: Vec<f64> = rounds.map(|round| value(round)).collect();
                // A disturbed round moves a mean.
                median(&values).unwrap_or(f64::NAN)
            })
        };
        let below = |at: usize| move |round: &[f64]| round[at] - round[at + 1];
        Self {
            rounds: tables[0].rounds().len(),
            reads: (0..layers).map(|at| middle(&|round| round[at])).collect(),
            added: (1..layers).map(|at| middle(&below(at - 1))).collect(),
        }
    }
}

/// All passes over a case.
#[derive(Default)]
pub(super) struct CaseSamples(Vec<Pass>);

impl CaseSamples {
    pub(super) fn push(&mut self, pass: Pass) {
        self.0.push(pass);
    }

    pub(super) fn passes(&self) -> usize {
        self.0.len()
    }

    pub(super) fn rounds(&self) -> usize {
        self.0.iter().map(|pass| pass.rounds).sum()
    }

    /// The figures of the layers, whose names and classes these are.
    pub(super) fn rows(&self, names: &[(String, &'static str)]) -> Vec<RowFigures> {
        let last = names.len().saturating_sub(1);
        let lowest = self.costs(|pass| &pass.reads, last).wall_ns;
        let row = |(at, (name, class)): (usize, &(String, &'static str))| {
            let added = (at < last).then(|| self.costs(|pass| &pass.added, at));
            let wall = added.as_ref().and_then(|added| added.wall_ns);
            RowFigures {
                name: name.clone(),
                class: (*class).to_owned(),
                read: self.costs(|pass| &pass.reads, at),
                share_percent: wall
                    .zip(lowest)
                    .map(|(wall, of)| 100.0 * wall.estimate / of.estimate),
                added,
            }
        };
        names.iter().enumerate().map(row).collect()
    }

    fn costs(&self, of: impl Fn(&Pass) -> &Vec<Times>, layer: usize) -> Costs {
        let interval = |time: usize| -> Option<Interval> {
            let values: Vec<f64> = self.0.iter().map(|pass| of(pass)[layer][time]).collect();
            Center::of(&values).ok()?.at(CONFIDENCE).ok()
        };
        Costs {
            wall_ns: interval(0),
            caller_ns: interval(1),
            machine_ns: interval(2),
        }
    }
}
