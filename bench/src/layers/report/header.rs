//! The head of the report: on what machine, with what noise, how much was measured and what was
//! shortened.

use super::super::subject::Document;
use crate::figure::{Unit, value};
use crate::harness::Ended;
use crate::text::paragraph;
use ugeom_measure::units::duration_human;

/// The column at which the head's words begin.
const INDENT: usize = 10;

/// The thread must have had a core for this share of the time, or the figures are doubtful.
const UNDISTURBED_SHARE: f64 = 0.97;

pub(super) fn machine(document: &Document) -> String {
    let mut out = entry("machine", &document.host.to_string());
    out.push_str(&entry("noise", &noise(document)));
    out.push_str(&entry("measured", &measured(document)));
    let doubts = doubts(document);
    if !doubts.is_empty() {
        out.push_str(&entry("doubtful", &format!("{}.", doubts.join("; "))));
    }
    out
}

/// A word, and what it says, in a column of its own.
fn entry(word: &str, text: &str) -> String {
    let column = paragraph(text, INDENT, INDENT);
    format!("{word:INDENT$}{}", column.trim_start())
}

fn noise(document: &Document) -> String {
    let mut text = match &document.noise {
        Some(noise) => format!("A/A: {noise}"),
        None => "A/A: too few rounds to say".to_owned(),
    };
    let floor = |id: &str| document.figure(id).map(|figure| figure.estimate());
    if let Some(cost) = floor("floor.loop") {
        text.push_str(&format!("; an empty loop takes {cost} a turn"));
    }
    if let Some(cost) = floor("floor.clock") {
        text.push_str(&format!(", reading the clock {cost}"));
    }
    text
}

fn measured(document: &Document) -> String {
    let cells = document.processes.first().map_or(0, |one| one.cells.len());
    let elapsed_ns: u64 = document.processes.iter().map(|one| one.elapsed_ns).sum();
    let processes = match document.processes.len() {
        1 => "one process".to_owned(),
        many => format!("{many} processes"),
    };
    let mut text = format!(
        "{} rounds of {cells} cells in {processes} and {}; each round in a random order of its own \
         (seed {})",
        document.rounds(),
        duration_human(elapsed_ns as f64),
        document.settings.seed
    );
    let Some(first) = document.processes.first() else {
        return text;
    };
    match (first.ended, &first.precision) {
        (Ended::Cancelled, _) => text.push_str("; stopped by you"),
        (Ended::Precise, Some(worst)) => {
            let percent = value(worst.relative * 100.0, Unit::Percent);
            text.push_str(&format!("; every mean is known to {percent} or better"));
        }
        (_, Some(worst)) => {
            let percent = value(worst.relative * 100.0, Unit::Percent);
            text.push_str(&format!(
                "; the mean known least, of {}, is known to {percent}",
                worst.cell
            ));
        }
        _ => {}
    }
    if let Some(shortened) = shortened(document) {
        text.push_str(&shortened);
    }
    for left_out in &document.subject.left_out {
        text.push_str(&format!("; left out: {left_out}"));
    }
    text
}

/// What was shortened to fit the budget.
fn shortened(document: &Document) -> Option<String> {
    let cut = |one: &&crate::harness::Measured| one.shortened.any();
    let shortened = document.processes.iter().find(cut)?.shortened;
    let budget = document
        .settings
        .budget_ns
        .map(|ns| duration_human(ns as f64));
    let mut what = Vec::new();
    if shortened.rounds {
        let wanted = document.settings.precision * 100.0;
        what.push(format!(
            "rounds, which {wanted} % for every mean would have needed"
        ));
    }
    if shortened.run_ns < shortened.run_ns_wanted {
        what.push(format!(
            "runs, of {} instead of {}",
            duration_human(shortened.run_ns as f64),
            duration_human(shortened.run_ns_wanted as f64)
        ));
    }
    let budget = budget.unwrap_or_else(|| "the time".to_owned());
    Some(format!(". Shortened to fit {budget}: {}", what.join("; ")))
}

/// Whether the measuring thread had to share its core.
pub(super) fn is_disturbed(document: &Document) -> bool {
    thread_share(document).is_some_and(|share| share < UNDISTURBED_SHARE)
}

/// What makes the figures doubtful.
pub(super) fn doubts(document: &Document) -> Vec<String> {
    let mut doubts = document.host.doubts();
    if let Some(share) = thread_share(document).filter(|_| is_disturbed(document)) {
        doubts.push(format!(
            "the measuring thread had a core for {:.0} % of the time only, so that times are too \
             long and uncertain",
            share * 100.0
        ));
    }
    if document.noise.is_some_and(|noise| noise.order_matters()) {
        let words = "two cells that do the same differ, so that as much of any difference may be \
                     an accident";
        doubts.push(words.to_owned());
    }
    doubts
}

/// The share of the time in which the measuring thread had a core, of the cells that never wait
/// for anything themselves.
fn thread_share(document: &Document) -> Option<f64> {
    let (mut wall_ns, mut cpu_ns) = (0, 0);
    for process in &document.processes {
        for round in &process.rounds {
            let cells = process.cells.iter().zip(&round.samples);
            for (_, sample) in cells.filter(|(name, _)| name.starts_with("floor/")) {
                wall_ns += sample.wall_ns;
                cpu_ns += sample.cpu.thread_ns;
            }
        }
    }
    (wall_ns > 0 && cpu_ns > 0).then(|| cpu_ns as f64 / wall_ns as f64)
}
