//! A gate for CI on a comparison of results: is a case slower than the base by more than a limit?

use super::{Compared, Judged, Metric, Row};
use ugeom_measure::change::Better;
use ugeom_measure::gate::Outcome;
use ugeom_measure::{Change, Claim};

/// The answer of the gate.
#[derive(Clone, Debug, PartialEq)]
pub struct Gated<'a> {
    /// The outcome for CI. A comparison without rows is undecided.
    pub outcome: Outcome,
    /// The row with the worst outcome, and its metric.
    pub worst: Option<(&'a Judged, &'a Row)>,
}

/// Judges all cases of the metric time, or of every metric where that one is not compared. `limit`
/// is a share: 0.05 for 5 % slower. The intervals hold for all cases of a metric together, so that
/// a wrong FAIL has half of the share that they leave, 2.5 of 100 at 95 %.
pub fn gate(compared: &Compared, limit: f64) -> Gated<'_> {
    let time = compared.metric(Metric::Time.id());
    let metrics = match time {
        Some(time) => std::slice::from_ref(time),
        None => &compared.metrics[..],
    };
    let rows = metrics
        .iter()
        .flat_map(|judged| judged.rows.iter().map(move |row| (judged, row)));
    let judged: Vec<_> = rows.map(|at| (outcome(at.1, limit), at)).collect();
    let outcome = match judged.is_empty() {
        true => Outcome::Undecided,
        false => Outcome::of_all(judged.iter().map(|one| one.0)),
    };
    let worst = judged.into_iter().find(|one| one.0 == outcome);
    Gated {
        outcome,
        worst: worst.map(|one| one.1),
    }
}

/// A row whose sides drift within their results has no verdict, and so no FAIL.
fn outcome(row: &Row, limit: f64) -> Outcome {
    let Some(change) = row.change.filter(|change| change.covers) else {
        return Outcome::Undecided;
    };
    let (low, high) = slowdown(&change);
    let border = 1.0 + limit;
    if high < border {
        Outcome::Pass
    } else if low > border && row.claim != Claim::Open {
        Outcome::Fail
    } else {
        Outcome::Undecided
    }
}

/// The ends of the interval as times: above 1 is slower.
fn slowdown(change: &Change) -> (f64, f64) {
    match change.better {
        Better::Lower => (change.ratio.low, change.ratio.high),
        Better::Higher => (1.0 / change.ratio.high, 1.0 / change.ratio.low),
    }
}
