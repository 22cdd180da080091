//! The answer: one sentence, by the rules of `docs/statistics.md`.

use super::{CELLS, Document};
use serde::{Deserialize, Serialize};
use ugeom_harness::compare::{Compared, Loaded, Metric, Options, Row, compare};
use ugeom_measure::planning::rounds_needed;
use ugeom_measure::units::{duration_human, grouped};
use ugeom_measure::verdict::Direction;
use ugeom_measure::{Interval, Verdict};
use ugeom_report::text::too_few;

/// A plan proves what it is made for with this probability.
pub const POWER: f64 = 0.8;

/// What may be said about B and A.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The verdict on the time of an iteration; none with too few rounds.
    pub verdict: Option<Verdict>,
    /// The answer in a sentence.
    pub sentence: String,
    /// The rounds that it would take to prove a difference of the tolerance, where none is proven.
    pub rounds_needed: Option<u64>,
}

/// A against B in every metric that the samples hold; none with too few rounds.
///
/// A difference counts as proven when it is one from A and from A's repeat as well: what only one
/// of two equal cells shows, such as where its memory happens to lie, is no property of B.
pub(super) fn compared(document: &Document) -> Option<Compared> {
    let mut compared = against(document, CELLS[0])?;
    let repeat = against(document, CELLS[2]);
    for judged in &mut compared.metrics {
        let again = repeat
            .as_ref()
            .and_then(|repeat| repeat.metric(judged.metric));
        for row in &mut judged.rows {
            if let Some(again) = again.and_then(|again| again.rows.first()) {
                withdraw(row, again);
            }
        }
    }
    Some(compared)
}

/// Takes back what the repeat does not confirm.
fn withdraw(row: &mut Row, again: &Row) {
    let direction = |verdict: &Verdict| match verdict {
        Verdict::Proven { direction, .. } => Some(*direction),
        Verdict::SameWithin { proven, .. } => *proven,
        Verdict::NoDifferenceProven { .. } => None,
    };
    row.adjusted_p = row.adjusted_p.max(again.adjusted_p);
    let Some(claimed) = direction(&row.verdict) else {
        return;
    };
    if direction(&again.verdict) == Some(claimed) {
        return;
    }
    if let Verdict::SameWithin { proven, .. } = &mut row.verdict {
        *proven = None;
    } else {
        let smallest = row
            .difference
            .estimate()
            .abs()
            .max(again.difference.estimate().abs());
        let base = row.base.sample.mean.abs();
        row.verdict = Verdict::NoDifferenceProven {
            smallest,
            smallest_percent: (base > 0.0).then(|| smallest * 100.0 / base),
        };
    }
    row.words = row.verdict.to_string();
}

/// B against one of the cells of A.
fn against(document: &Document, base: &str) -> Option<Compared> {
    let subject = &document.subject;
    let metrics = if subject.printed.is_some() {
        // What was printed is not what the processor did.
        vec![Metric::Time]
    } else {
        Vec::new()
    };
    let options = Options {
        confidence: subject.confidence,
        same_within: subject.same_within,
        base: Some(base.to_owned()),
        cells: vec![CELLS[1].to_owned()],
        metrics,
    };
    let loaded = Loaded {
        name: "ab".to_owned(),
        document: document.without_subject(),
    };
    compare(&[loaded], &options).ok()
}

/// The answer that a document gives.
pub fn answer(document: &Document) -> Answer {
    let row = compared(document)
        .and_then(|compared| Some(compared.metric(Metric::Time)?.rows.first()?.clone()));
    let Some(row) = row else {
        return Answer {
            verdict: None,
            sentence: nothing(document),
            rounds_needed: None,
        };
    };
    let (sentence, rounds_needed) = match &row.verdict {
        Verdict::Proven { direction, .. } => (proven(*direction, &row), None),
        Verdict::SameWithin {
            percent, proven, ..
        } => (same(*percent, *proven, &row), None),
        Verdict::NoDifferenceProven { .. } => open(document, &row),
    };
    Answer {
        verdict: Some(row.verdict),
        sentence,
        rounds_needed,
    }
}

fn nothing(document: &Document) -> String {
    let rounds = document.rounds();
    let blocks = document.blocks();
    let pair = blocks.values(0).ok().zip(blocks.values(1).ok());
    let exact = pair.filter(|(a, b)| {
        let constant = |values: &[f64]| values.iter().all(|value| *value == values[0]);
        rounds >= 3 && constant(a) && constant(b)
    });
    match exact {
        Some((a, b)) => format!(
            "B takes exactly {} and A exactly {} in each of {rounds} rounds: without any spread \
             there is nothing to judge.",
            duration_human(b[0]),
            duration_human(a[0])
        ),
        None => format!(
            "Nothing can be said: {}, it takes at least 3.",
            too_few(rounds)
        ),
    }
}

/// The change in per cent of A, with its interval.
fn change(row: &Row) -> Option<Interval> {
    let percent = row.ratio?.scaled(100.0);
    Some(Interval {
        estimate: percent.estimate - 100.0,
        low: percent.low - 100.0,
        high: percent.high - 100.0,
        ..percent
    })
}

/// `12.3 % ± 0.8`.
fn amount(change: &Interval) -> String {
    let half = change.half_width();
    let decimals = match half {
        half if half >= 10.0 => 0,
        half if half >= 0.1 => 1,
        half if half >= 0.01 => 2,
        _ => 3,
    };
    let size = change.estimate.abs();
    format!("{size:.decimals$} % ± {half:.decimals$}")
}

fn means(row: &Row) -> String {
    let mean = |mean: f64| duration_human(mean);
    format!(
        "{} against {}",
        mean(row.changed.sample.mean),
        mean(row.base.sample.mean)
    )
}

fn proven(direction: Direction, row: &Row) -> String {
    // Times vary, and so does what a ratio hides of them: near the border the difference may be
    // proven and the interval of the ratio still reach 1. What is proven is what is told then.
    let sure = |change: &Interval| change.half_width() < change.estimate.abs();
    let share = || {
        let base = row.base.sample.mean;
        (base > 0.0).then(|| row.difference.interval.scaled(100.0 / base))
    };
    let how_much = match change(row).filter(sure).or_else(share) {
        Some(change) => amount(&change),
        None => {
            let (size, half) = (
                row.difference.estimate(),
                row.difference.interval.half_width(),
            );
            format!("{} ± {}", duration_human(size.abs()), duration_human(half))
        }
    };
    format!("B is {how_much} {direction} than A: {} each.", means(row))
}

fn same(percent: f64, proven: Option<Direction>, row: &Row) -> String {
    let change = change(row).map(|change| {
        let more = if change.estimate < 0.0 {
            "less"
        } else {
            "more"
        };
        format!("B takes {} {more} time", amount(&change))
    });
    let change = change.unwrap_or_else(|| means(row));
    let small = match proven {
        Some(_) => ", which is proven but small",
        None => "",
    };
    format!("B and A are the same within {percent} %: {change}{small}.")
}

/// The sentence, and the rounds that a proof would take.
fn open(document: &Document, row: &Row) -> (String, Option<u64>) {
    let subject = &document.subject;
    let rounds = row.rounds.map_or(0.0, |rounds| rounds.n_effective);
    // Fewer effective rounds than there are: the plan counts in real ones.
    let per_effective = document.rounds() as f64 / rounds.max(1.0);
    let sd = row.difference.standard_error * rounds.sqrt();
    let wanted = subject.same_within * row.base.sample.mean.abs();
    let needed = rounds_needed(sd, wanted, subject.confidence, POWER)
        .ok()
        .map(|needed| (needed as f64 * per_effective).ceil() as u64);
    let seen = match change(row) {
        Some(change) => {
            let more = if change.estimate < 0.0 {
                "less"
            } else {
                "more"
            };
            format!("B takes {} {more} time than A", amount(&change))
        }
        None => means(row),
    };
    let percent = subject.same_within * 100.0;
    let plan = match needed {
        Some(needed) => format!(
            "A difference of {percent} % would be proven in {:.0} of 100 tries by {} rounds \
             (--rounds); these were {}",
            POWER * 100.0,
            grouped(needed),
            grouped(document.rounds())
        ),
        None => format!("No number of rounds would prove a difference of {percent} %"),
    };
    (format!("No difference is proven: {seen}. {plan}."), needed)
}
