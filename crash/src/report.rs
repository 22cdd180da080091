//! A result as it is saved, and its page: the states tried, the smallest failing state with its
//! time line, the other failures.

use crate::campaign::{Fate, Outcome, Smallest, TimelineRecord};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use ugeom_measure::Interval;
use ugeom_report::text::counted;
use ugeom_report::{Axis, Cell, Column, Curve, Curves, Page, Table};

/// The value of [`CrashResult::kind`], by which other commands know the file.
pub const KIND: &str = "crash";

/// How many records, the last ones, the plot shows; the table below it has all.
const PLOTTED_MAX: usize = 100;
/// How many barriers, the last ones, the plot names.
const BARRIERS_MAX: usize = 7;

/// A result of `ugeom crash`, as `--json` prints it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrashResult {
    /// [`KIND`], by which readers know the result.
    pub kind: String,
    /// The command line that made the result.
    #[serde(default)]
    pub command: String,
    /// The seed of the sample.
    pub seed: u64,
    /// The log, if it is kept.
    pub log: Option<PathBuf>,
    /// The result of the campaign.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The command that checks the smallest failing state again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<String>,
}

/// Whether a saved result is one of `ugeom crash`.
pub fn is_result(json: &str) -> bool {
    #[derive(Deserialize)]
    struct Kind {
        kind: String,
    }
    serde_json::from_str::<Kind>(json).is_ok_and(|result| result.kind == KIND)
}

/// Reads a result, and makes its page.
///
/// # Errors
/// It is no result of `ugeom crash`, in words.
pub fn page(json: &str) -> Result<Page, String> {
    let result: CrashResult = serde_json::from_str(json).map_err(|error| error.to_string())?;
    Ok(result.page())
}

impl Outcome {
    /// The counts of the run: `1 write, 5 barriers, 0 acknowledgements`.
    pub fn run_text(&self) -> String {
        let parts = [
            (self.writes, "write"),
            (self.barriers, "barrier"),
            (self.promises, "acknowledgement"),
        ];
        parts.map(|(number, what)| counted(number, what)).join(", ")
    }
}

impl CrashResult {
    /// The result as a page, for every form of output.
    pub fn page(&self) -> Page {
        let outcome = &self.outcome;
        let mut page = Page::new(KIND, &self.command);
        page.question = "Does the program keep what it acknowledged, and does its check pass, in \
             each state that a power cut could have left?"
            .to_owned();
        page.answer = answer(outcome);
        page.fact("run", outcome.run_text());
        page.fact(
            "states",
            format!("{} of seed {}", outcome.states, self.seed),
        );
        if let Some(log) = &self.log {
            page.fact("log", log.display().to_string());
        }
        if let Some(smallest) = &outcome.smallest {
            push_smallest(&mut page, smallest);
            if let Some(replay) = &self.replay {
                page.paragraph("This command builds and checks the state again:");
                page.preformatted(replay);
            }
            push_failures(&mut page, outcome);
        }
        page
    }
}

fn answer(outcome: &Outcome) -> String {
    let (failed, states) = (outcome.failed, outcome.states);
    let Some(smallest) = &outcome.smallest else {
        return format!("{failed} of {states} crash states fail.");
    };
    let by = outcome.verdicts.iter();
    let by: Vec<String> = by.map(|(name, count)| format!("{name} {count}")).collect();
    format!(
        "{failed} of {states} crash states fail ({}). The smallest is {}.",
        by.join(", "),
        smallest.state
    )
}

fn push_smallest(page: &mut Page, smallest: &Smallest) {
    page.heading("The smallest failing state");
    let Smallest {
        judgement, damage, ..
    } = smallest;
    page.paragraph(format!(
        "{}: {}. {} lost or torn; found by {}.",
        judgement.verdict.name(),
        judgement.detail.trim_end_matches('.'),
        counted(*damage as u64, "write"),
        counted(smallest.checks, "check")
    ));
    page.push(plot(&smallest.timeline));
    let columns = [
        Column::number("record", ""),
        Column::text("event"),
        Column::number("offset", "bytes"),
        Column::number("length", "bytes"),
        Column::text("after the cut"),
    ];
    let mut table = Table::new("Records up to the power cut", columns);
    for record in &smallest.timeline {
        let fate = record.fate.map_or("", Fate::name);
        let number = |number: Option<u64>| number.map_or_else(Cell::empty, Cell::count);
        table.row([
            Cell::count(record.record),
            Cell::text(&record.what),
            number(record.offset_bytes),
            number(record.length_bytes),
            Cell::text([fate, &record.note].join(" ").trim()),
        ]);
    }
    page.push(table);
}

/// The time line: where on the disk each write went, and when, with the barriers between them.
fn plot(timeline: &[TimelineRecord]) -> Curves {
    let shown = &timeline[timeline.len().saturating_sub(PLOTTED_MAX)..];
    let last = shown.last().map_or(0, |record| record.record);
    // Zero is on every linear axis, so the cut stands there.
    let before = |record: u64| -(last.saturating_sub(record) as f64);
    let x = Axis::linear("records before the power cut", "").of_counts();
    let y = Axis::linear("place on the disk", "KiB");
    let mut plot = Curves::new("Time line of writes and barriers", x, y);
    for fate in Fate::ALL {
        let mut curve = Curve::ranges(fate.name());
        for record in shown.iter().filter(|record| record.fate == Some(fate)) {
            if let Some((at, length)) = record.offset_bytes.zip(record.length_bytes) {
                let end = at.saturating_add(length);
                curve = curve.point(before(record.record), range_kib(at, end));
            }
        }
        if !curve.points.is_empty() {
            plot.push(curve);
        }
    }
    let barriers = shown.iter().filter(|record| record.what == "barrier");
    let barriers: Vec<&TimelineRecord> = barriers.collect();
    for barrier in &barriers[barriers.len().saturating_sub(BARRIERS_MAX)..] {
        let name = format!("barrier {}", barrier.record);
        plot.upright(&name, before(barrier.record));
    }
    plot.upright("power cut", 0.0);
    plot
}

/// A range, its middle as the value.
fn range_kib(from_bytes: u64, to_bytes: u64) -> Interval {
    let (low, high) = (from_bytes as f64 / 1024.0, to_bytes as f64 / 1024.0);
    Interval {
        estimate: f64::midpoint(low, high),
        low,
        high,
        confidence: 1.0,
    }
}

fn push_failures(page: &mut Page, outcome: &Outcome) {
    page.heading("Failing states");
    let listed = outcome.failures.len() as u64;
    if listed < outcome.failed {
        page.paragraph(format!("The first {listed} of {}.", outcome.failed));
    }
    let columns = [
        Column::number("state", ""),
        Column::text("name"),
        Column::text("verdict"),
        Column::text("reason"),
    ];
    let mut table = Table::new("", columns);
    for failure in &outcome.failures {
        table.row([
            Cell::count(failure.number),
            Cell::text(&failure.state),
            Cell::text(failure.judgement.verdict.name()),
            Cell::text(&failure.judgement.detail),
        ]);
    }
    page.push(table);
}

#[cfg(test)]
mod tests;
