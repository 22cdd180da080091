//! The rows of the first page: as published, and then and now.

use super::super::names;
use super::super::published::{self, Step, samples_line};
use super::super::subject::Document;
use super::short_name;
use ugeom_harness::figure::{Figure, value};
use ugeom_measure::{Blocks, Moments};
use ugeom_report::text::{Align, WIDTH, paragraph, table};

/// The most rows of a page.
const ROWS_MAX: usize = 8;

/// The rows of the mail, today: one read of each provider with GEOM, and without it.
pub(super) fn published(document: &Document) -> String {
    let blocks = document.blocks();
    let subject = &document.subject;
    let heading = format!(
        "AS PUBLISHED: The time of one read of {} bytes in nanoseconds: the mean of so many runs, \
         and by how much single runs differ (standard deviation). All direct: the thread that \
         wants the data carries the request through all layers itself.",
        subject.read_bytes
    );
    let mut out = paragraph(&heading, 0, 2);
    let mut rows = vec![(
        "zero".to_owned(),
        names::ZERO.to_owned(),
        CONTROL.to_owned(),
    )];
    for link in &subject.chain {
        let cell = names::direct(&link.provider);
        rows.push((short_name(&link.provider), cell, link.layers.clone()));
    }
    let mut without = vec![(
        "zero".to_owned(),
        names::ZERO_AGAIN.to_owned(),
        "the same again".to_owned(),
    )];
    for link in subject.chain.iter().filter(|link| link.plain) {
        let cell = names::plain(&link.provider);
        without.push((short_name(&link.provider), cell, plain_words(document)));
    }
    let deepest = subject.deepest();
    let row = |way: &String| {
        let cell = names::through(way, deepest);
        (short_name(deepest), cell, format!("through {way}"))
    };
    let served: Vec<(String, String, String)> = subject.through.iter().map(row).collect();
    let left_out = shorten(&mut rows, without.len());
    let all = || rows.iter().chain(&without).chain(&served);
    let width = all()
        .map(|(name, ..)| name.chars().count())
        .max()
        .unwrap_or(0);
    let line = |(name, cell, about): &(String, String, String)| -> Option<String> {
        let moments = moments(&blocks, cell)?;
        let line = format!("  {}   {about}", samples_line(name, width, &moments));
        Some(cut(line) + "\n")
    };
    out.push_str("  GEOM:\n");
    out.extend(rows.iter().filter_map(line));
    if left_out > 0 {
        out.push_str(&format!(
            "  ({left_out} providers between these: see --all)\n"
        ));
    }
    out.push_str("  NO_GEOM:\n");
    out.extend(without.iter().filter_map(line));
    if !served.is_empty() {
        out.push_str("  SERVED:\n");
        out.extend(served.iter().filter_map(line));
    }
    out
}

/// A line that is cut where the page ends.
fn cut(line: String) -> String {
    if line.chars().count() <= WIDTH {
        return line;
    }
    let kept: String = line.chars().take(WIDTH - 3).collect();
    kept + "..."
}

const CONTROL: &str = "control: no layer";

fn plain_words(document: &Document) -> String {
    let words = if document.subject.target.is_none() {
        "a plain call"
    } else {
        "plain lseek, read"
    };
    words.to_owned()
}

/// Takes rows out of the middle until the page holds all; answers how many.
fn shorten<T>(rows: &mut Vec<T>, others: usize) -> usize {
    let room = ROWS_MAX.saturating_sub(others).max(3);
    let excess = rows.len().saturating_sub(room);
    // The control and the bottom stay, and the deepest ones.
    rows.drain(2..2 + excess);
    excess
}

fn moments(blocks: &Blocks, cell: &str) -> Option<Moments> {
    let values = blocks.values(blocks.position(cell)?).ok()?;
    Moments::of(&values).ok()
}

/// What to make of figures of 2002 beside today's.
pub(super) const THEN: &str = "The mail of 6 October 2002 measured a kernel on a 700 MHz Athlon. \
                               Shapes can be compared, times cannot, and there is no verdict \
                               across machines.";

/// Shapes of 2002 beside today's.
pub(super) fn then_and_now(document: &Document) -> String {
    let mut out = paragraph(&format!("THEN AND NOW: {THEN}"), 0, 2);
    let mut rows = vec![["", "2002", "now"].map(str::to_owned).to_vec()];
    rows.extend(shapes(document).into_iter().map(Vec::from));
    if rows.len() > 1 {
        out.push_str(&table(2, &[Align::Left; 3], &rows));
    }
    out
}

/// What is compared, in 2002 and now.
pub(super) fn shapes(document: &Document) -> Vec<[String; 3]> {
    let Ok([geom, mbr, bsd, control]) = published::steps() else {
        return Vec::new();
    };
    let row = |what: &str, then: String, now: String| [what.to_owned(), then, now];
    let mut rows = Vec::new();
    rows.push(row("GEOM itself, of the time without it", share(&geom), {
        let share = document.figure("geom.share");
        share.map_or_else(unknown, Figure::amount)
    }));
    let layers = document.subject.chain.iter().skip(1);
    for (then, link) in [&mbr, &bsd].into_iter().zip(layers) {
        let figure = document.figure(&format!("layer.{}", link.provider));
        let base = wall_ns(document);
        let what = format!(
            "one more layer ({}), of the disk's",
            link.class.to_lowercase()
        );
        rows.push(row(&what, share(then), today(figure, base)));
    }
    let control_base = document.blocks();
    let base = moments(&control_base, names::ZERO).map(|moments| moments.mean);
    let figure = document.figure("control");
    rows.push(row(
        "the control (/dev/zero)",
        share(&control),
        today(figure, base),
    ));
    rows
}

/// `23 % (5,021 +- 257 ns)`.
fn share(step: &Step) -> String {
    let proven = if step.is_proven() { "" } else { ", not proven" };
    format!("{:.1} % ({}{proven})", step.percent(), step.amount())
}

/// A difference of today as a share of `base_ns`, with its interval in nanoseconds.
fn today(figure: Option<&Figure>, base_ns: Option<f64>) -> String {
    let (Some(figure), Some(base_ns)) = (figure, base_ns) else {
        return unknown();
    };
    let percent = figure.interval.estimate / base_ns * 100.0;
    let half = value(figure.interval.half_width(), figure.unit);
    let estimate = figure.estimate();
    // The unit is said once when both have the same.
    let estimate = match (estimate.split_once(' '), half.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => number.to_owned(),
        _ => estimate,
    };
    let proven = if figure.is_unproven() {
        ", not proven"
    } else {
        ""
    };
    format!("{percent:.1} % ({estimate} +- {half}{proven})")
}

fn wall_ns(document: &Document) -> Option<f64> {
    document
        .figure("wall.direct")
        .map(|figure| figure.interval.estimate)
}

fn unknown() -> String {
    "too few rounds".to_owned()
}
