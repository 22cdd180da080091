//! What a comparison has to say, as a page.

use crate::text::{columns, counted};
use crate::{Axis, Cell, Column, Page, Rows, Table, Value};
use std::path::Path;
use ugeom_harness::compare::{Compared, Judged, Metric, Row};
use ugeom_measure::Verdict;
use ugeom_measure::verdict::Direction;

/// More comparisons than this are not plotted.
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
    page.question = question(compared);
    page.answer = answer(compared);
    for source in &compared.sources {
        let observations = if source.by_process {
            "; the mean of each process is one observation"
        } else {
            ""
        };
        let text = format!(
            "{}, {}, {}{observations}",
            source.experiment,
            counted(source.rounds, "round"),
            source.program
        );
        page.fact(&source.name, text);
    }
    if !compared.confounded.is_empty() {
        page.fact("doubtful", format!("{}.", compared.confounded.join("; ")));
    }
    for judged in &compared.metrics {
        page.heading(judged.metric.what());
        page.push(table(compared, judged));
        if judged.rows.len() <= PLOTTED_MAX {
            page.push(plot(compared, judged));
        }
    }
    page.list(notes(compared));
    page
}

fn question(compared: &Compared) -> String {
    let percent = compared.confidence * 100.0;
    let how = if compared.interleaved {
        "The cells ran in the same rounds and are compared within them (Student, paired)"
    } else {
        "The results are compared as independent samples (Welch), with Student's pooled test and \
         the Mann-Whitney test beside"
    };
    format!(
        "Do the results differ? {how}. Proven means: at {percent} % for all comparisons of a \
         metric together (Holm)."
    )
}

fn answer(compared: &Compared) -> String {
    let rows: Vec<&Row> = compared.metrics.iter().flat_map(|one| &one.rows).collect();
    let count = |is: &dyn Fn(&Verdict) -> bool| rows.iter().filter(|row| is(&row.verdict)).count();
    let direction = |verdict: &Verdict| match verdict {
        Verdict::Proven { direction, .. } => Some(*direction),
        _ => None,
    };
    let (faster, slower) = (
        count(&|verdict| direction(verdict) == Some(Direction::Faster)),
        count(&|verdict| direction(verdict) == Some(Direction::Slower)),
    );
    let same = count(&|verdict| matches!(verdict, Verdict::SameWithin { .. }));
    let open = rows.len() - faster - slower - same;
    if let [row] = rows[..] {
        return format!("{} {}.", row.changed.cell, row.words);
    }
    format!(
        "Of {} comparisons {faster} are proven better, {slower} worse, {same} the same within \
         {} %; of {open} nothing is proven.",
        rows.len(),
        compared.same_within * 100.0
    )
}

/// The cell, and the result when there are several beside the base.
fn label(compared: &Compared, row: &Row) -> String {
    if compared.sources.len() > 2 {
        return format!("{} ({})", row.changed.cell, row.changed.source);
    }
    row.changed.cell.clone()
}

/// The name of the base above its column: that of the file, where it is short enough.
fn heading(name: &str) -> String {
    let file = Path::new(name).file_name().and_then(|file| file.to_str());
    let short = file.filter(|file| columns(file) <= HEADING_COLUMNS);
    short.unwrap_or("base").to_owned()
}

fn table(compared: &Compared, judged: &Judged) -> Table {
    let metric = judged.metric;
    let (base, changed) = if compared.interleaved {
        let base = judged.rows.first().map_or("base", |row| &row.base.cell);
        (base.to_owned(), "it")
    } else {
        (heading(&compared.sources[0].name), "changed")
    };
    let mut columns = vec![
        Column::text("cell"),
        Column::number(&base, ""),
        Column::number(changed, ""),
        Column::number("p (Holm)", ""),
    ];
    if !compared.interleaved {
        columns.push(Column::number("p Student", ""));
        columns.push(Column::number("p ranks", ""));
    }
    columns.push(Column::text("verdict"));
    let mut table = Table::new("", columns);
    for row in &judged.rows {
        let mut cells = vec![
            Cell::text(label(compared, row)),
            with_unit(metric, row.base.sample.mean),
            with_unit(metric, row.changed.sample.mean),
            probability(row.adjusted_p),
        ];
        if !compared.interleaved {
            let student = row.student.map(|effect| effect.p_value);
            let ranks = row.ranks.map(|ranks| ranks.p_value);
            cells.extend([student, ranks].map(|p| p.map_or_else(Cell::empty, probability)));
        }
        cells.push(Cell::text(&row.words));
        table.row(cells);
    }
    table
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
    let title = format!("{}: change against the base", judged.metric.what());
    let mut rows = Rows::points(&title, Axis::linear("change", "%"), ["change"]);
    for row in &judged.rows {
        let change = row.ratio.map(|ratio| {
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

/// What a reader should know beside the tables.
fn notes(compared: &Compared) -> Vec<String> {
    let mut notes = Vec::new();
    for judged in &compared.metrics {
        for row in &judged.rows {
            let sides = [Some(row.base.worth), Some(row.changed.worth)];
            let series = if compared.interleaved {
                [row.rounds, None]
            } else {
                sides
            };
            for worth in series.into_iter().flatten().filter(|one| one.correlated) {
                notes.push(format!(
                    "{}, {}: neighbouring observations are correlated ({:.2}); {} of them are \
                     worth {:.1}, and were judged so.",
                    label(compared, row),
                    judged.metric.what(),
                    worth.neighbours.unwrap_or(0.0),
                    worth.n,
                    worth.n_effective
                ));
            }
            if let Some(note) = disagreement(compared, judged, row) {
                notes.push(note);
            }
        }
    }
    let left_out = compared.left_out.iter();
    notes.extend(left_out.map(|what| format!("Left out: {what}.")));
    notes
}

/// Where means and ranks do not agree, the spread is not what Student's test takes it for.
fn disagreement(compared: &Compared, judged: &Judged, row: &Row) -> Option<String> {
    let ranks = row.ranks?;
    let alpha = 1.0 - compared.confidence;
    let (means, order) = (row.difference.p_value <= alpha, ranks.p_value <= alpha);
    if means == order {
        return None;
    }
    let shift = judged.metric.show(ranks.shift.abs());
    let sign = if ranks.shift < 0.0 { "-" } else { "" };
    let (yes, no) = if means {
        ("means", "ranks")
    } else {
        ("ranks", "means")
    };
    Some(format!(
        "{}, {}: the {yes} differ, the {no} do not (by ranks it is shifted by {sign}{shift}): look \
         at the samples, a few stray values decide.",
        label(compared, row),
        judged.metric.what()
    ))
}

#[cfg(test)]
mod tests;
