//! The page of a comparison.

use crate::digits::significant;
use crate::foreign::quantity;
use crate::text::{columns, counted};
use crate::{Axis, Cell, Column, Page, Rows, Table, Value};
use std::path::Path;
use ugeom_harness::compare::{Compared, Gated, Judged, Metric, Middle, Row, show};
use ugeom_harness::figure::{Unit, amount, value};
use ugeom_measure::{Claim, Interval};

/// So many comparisons are plotted: the significant ones first, then by the size of the change.
const PLOTTED_MAX: usize = 40;

/// The widest name above a column of figures: wider ones leave no room for the verdict.
const HEADING_COLUMNS: usize = 16;

/// The page of a comparison.
pub fn page(compared: &Compared) -> Page {
    let names: Vec<&str> = compared
        .sources
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    let mut page = Page::new("compare", &format!("ugeom compare {}", names.join(" ")));
    page.manual = "docs/compare.md".to_owned();
    page.question = "do the results differ?".to_owned();
    page.answer = answer(compared);
    for source in &compared.sources {
        page.fact(
            &source.name,
            format!("{} ({})", source.format.what(), source.side),
        );
    }
    page.fact("method", method(compared));
    if !compared.confounded.is_empty() {
        page.fact("warnings", format!("{}.", compared.confounded.join("; ")));
    }
    for judged in shown(compared) {
        page.heading(&what(judged));
        if judged.rows.is_empty() {
            let count = counted(judged.compared as u64, "comparison");
            page.paragraph(format!("No significant change in {count}."));
            continue;
        }
        page.push(table(compared, judged));
        page.push(plot(compared, judged).beside_table());
    }
    let left_out = compared
        .left_out
        .iter()
        .map(|what| format!("Left out: {what}."));
    page.list(left_out.chain(restated(compared)));
    page
}

/// The metrics that have tables.
fn shown(compared: &Compared) -> impl Iterator<Item = &Judged> {
    let metrics = compared.metrics.iter();
    metrics.filter(|judged| !judged.restates_time)
}

/// The rates without a table of their own, and how to print them.
fn restated(compared: &Compared) -> Option<String> {
    let rates = compared
        .metrics
        .iter()
        .filter(|judged| judged.restates_time);
    let rates: Vec<&Judged> = rates.collect();
    let first = rates.first()?;
    let names: Vec<String> = rates.iter().map(|judged| what(judged)).collect();
    Some(format!(
        "{}: the same verdicts as the time (--metric {}).",
        capital(&names.join(", ")),
        first.metric
    ))
}

/// The metric in words, where it is one of ours.
fn what(judged: &Judged) -> String {
    let known = Metric::ALL
        .into_iter()
        .find(|one| one.id() == judged.metric);
    known.map_or_else(
        || quantity(&judged.metric).to_owned(),
        |metric| metric.what().to_owned(),
    )
}

/// The test of the comparisons, and the confidence of all of a metric.
fn method(compared: &Compared) -> String {
    let percent = compared.confidence * 100.0;
    let how = if compared.interleaved {
        "cases of the same rounds: ratios within processes, sign test"
    } else {
        "independent samples: Mann-Whitney test"
    };
    format!("{how}; {percent} % for all comparisons of a metric together (Bonferroni)")
}

fn answer(compared: &Compared) -> String {
    let mut sentences = Vec::new();
    let mut unchanged = Vec::new();
    let mut without_verdict = Vec::new();
    for judged in shown(compared) {
        let count = |claim: Claim| judged.rows.iter().filter(|row| row.claim == claim).count();
        let (faster, slower) = (count(Claim::Faster), count(Claim::Slower));
        let comparisons = counted(judged.compared as u64, "comparison");
        if (faster, slower) == (0, 0) {
            let list = match judged.rows.iter().all(has_no_verdict) && !judged.rows.is_empty() {
                true => &mut without_verdict,
                false => &mut unchanged,
            };
            list.push(format!("{} ({comparisons})", what(judged)));
            continue;
        }
        let mean = judged.geometric_mean.map_or(String::new(), |mean| {
            format!("; geometric mean {}", change_of(mean, 1))
        });
        sentences.push(capital(&format!(
            "{}: of {comparisons}, {faster} better, {slower} worse{mean}.",
            what(judged),
        )));
    }
    if !unchanged.is_empty() {
        sentences.push(format!("No significant change: {}.", unchanged.join(", ")));
    }
    if !without_verdict.is_empty() {
        let metrics = without_verdict.join(", ");
        sentences.push(format!("No verdict, too few observations: {metrics}."));
    }
    sentences.join(" ")
}

/// Whether the observations of a row are too few for an interval of the wanted confidence.
fn has_no_verdict(row: &Row) -> bool {
    row.change.is_none_or(|change| !change.covers)
}

/// A sentence that begins with a capital letter.
fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// A ratio as a change in per cent, or as a factor from 2 on.
fn change_of(ratio: f64, decimals: usize) -> String {
    match ratio {
        0.5..2.0 => format!("{:+.decimals$} %", (ratio - 1.0) * 100.0),
        0.0..0.5 => format!("{} x", significant(ratio, 3)),
        _ => value(ratio, Unit::Times),
    }
}

/// The outcome of a gate in front of the answer, with the row that decides it.
pub fn gated(page: &mut Page, gated: &Gated<'_>, limit: f64) {
    let why = match gated.worst {
        Some((judged, row)) => {
            let words = words(row);
            let words = words.trim_start_matches("~ ");
            format!("{} of {}: {words}", what(judged), row.case)
        }
        None => "nothing was compared".to_owned(),
    };
    page.answer = format!(
        "{}: {why}; limit +{} %. {}",
        gated.outcome.word(),
        limit * 100.0,
        page.answer
    );
}

/// A row's name: the case, and the side where there are several.
fn label(compared: &Compared, row: &Row) -> String {
    if !compared.interleaved && compared.others.len() > 1 {
        return format!("{} ({})", row.case, row.side);
    }
    row.case.clone()
}

/// The name of a side above its column: that of the file, where it is short enough.
fn heading(name: &str, otherwise: &str) -> String {
    let file = Path::new(name).file_name().and_then(|file| file.to_str());
    let short = file.filter(|file| columns(file) <= HEADING_COLUMNS);
    short.unwrap_or(otherwise).to_owned()
}

fn table(compared: &Compared, judged: &Judged) -> Table {
    let changed = match (&compared.others[..], compared.interleaved) {
        ([one], false) => heading(one, "changed"),
        (_, true) => "this case".to_owned(),
        _ => "changed".to_owned(),
    };
    let columns = [
        Column::text("benchmark"),
        Column::number(&heading(&compared.base, "base"), ""),
        Column::number(&changed, ""),
        Column::number("p", ""),
        Column::number("n", ""),
        // The longest text is last: there it goes on below where the terminal is narrow.
        Column::text("change"),
    ];
    let mut table = Table::new("", columns);
    for row in &judged.rows {
        table.row([
            Cell::text(label(compared, row)),
            middle(judged, &row.base),
            middle(judged, &row.changed),
            row.p_value.map_or_else(Cell::empty, probability),
            Cell::text(format!("{}+{}", row.base.n, row.changed.n)),
            Cell::text(words(row)),
        ]);
    }
    if let Some(mean) = judged.geometric_mean.filter(|_| judged.compared > 1) {
        table.row([
            Cell::text("geometric mean"),
            Cell::empty(),
            Cell::empty(),
            Cell::empty(),
            Cell::empty(),
            Cell::text(change_of(mean, 2)),
        ]);
    }
    table
}

/// The verdict, with benchstat's mark for a change that is not significant. Its interval stands
/// here, too: it shows how large the change can be.
fn words(row: &Row) -> String {
    match (row.claim, row.change) {
        (Claim::Open, Some(change)) if change.covers && change.claim() == Claim::Open => {
            format!("~ not significant: {}", amount(&change.ratio, Unit::Times))
        }
        (Claim::Open, _) => format!("~ {}", row.words),
        _ => row.words.clone(),
    }
}

/// `12.3 ms [12.1 to 14.0]`.
fn middle(judged: &Judged, middle: &Middle) -> Cell {
    let value = show(&judged.unit, middle.median);
    let (text, value) = match middle.spread {
        Some(spread) => {
            let ends = [spread.low, spread.high].map(|end| show(&judged.unit, end));
            let unit = unit_of(&value);
            // A bare end beside one with another unit would be read in that unit.
            let [low, high] = match ends.iter().all(|end| unit_of(end) == unit) {
                true => ends.map(|end| end.trim_end_matches(unit).to_owned()),
                false => ends,
            };
            let text = format!("{value} {}", spread.ends(low, high));
            (text, Value::Interval(spread))
        }
        None => (value, Value::Number(middle.median)),
    };
    let mut cell = Cell::text(text).with_value(value);
    cell.unit = Some(judged.unit.clone());
    cell
}

/// The unit behind a number, with the blank before it.
fn unit_of(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_ascii_digit() || "+-.,".contains(c))
}

/// A value of a metric, with its own unit in words and that of the metric behind it.
pub fn with_unit(metric: Metric, value: f64) -> Cell {
    let mut cell = Cell::text(metric.show(value)).with_value(Value::Number(value));
    cell.unit = Some(metric.unit().to_owned());
    cell
}

/// A p-value with three digits.
pub fn probability(p: f64) -> Cell {
    if p < 0.001 {
        return Cell::text("<0.001").with_value(Value::Number(p));
    }
    Cell::number(p, 3)
}

/// The ratios with their intervals, in per cent.
fn plot(compared: &Compared, judged: &Judged) -> Rows {
    let largest = match judged.rows.len() {
        more if more > PLOTTED_MAX => format!(" (the first {PLOTTED_MAX} of {more})"),
        _ => String::new(),
    };
    let title = format!("{}: change against the base{largest}", what(judged));
    let mut rows = Rows::points(&title, Axis::linear("change", "%"), ["change"]);
    for row in judged.rows.iter().take(PLOTTED_MAX) {
        let ratio = row.changed.median / row.base.median;
        // Values too few for an interval have a point all the same.
        let alone = || {
            ratio
                .is_finite()
                .then(|| Interval::exact(ratio, compared.confidence))
        };
        let change = row.change.map(|change| change.ratio).or_else(alone);
        let change = change.map(|ratio| {
            let mut change = ratio.scaled(100.0);
            change.estimate -= 100.0;
            change.low -= 100.0;
            change.high -= 100.0;
            change
        });
        rows.row(&label(compared, row), [change]);
    }
    rows
}

#[cfg(test)]
mod tests;
