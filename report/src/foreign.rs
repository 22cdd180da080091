//! The result of another program as a page: a table and a plot for each quantity.

use crate::text::counted;
use crate::{Axis, Cell, Column, Page, Rows, Seen, Table};
use ugeom_harness::compare::show;
use ugeom_harness::figure::CONFIDENCE;
use ugeom_harness::foreign::{Format, Series};
use ugeom_measure::summary::median;
use ugeom_measure::{Interval, Spread};

/// So many benchmarks are drawn at most.
const DRAWN_MAX: usize = 40;

/// Benchmarks in the answer.
const ANSWERED_MAX: usize = 3;

/// The page of the result in a file of that name.
pub fn page(name: &str, format: Format, series: &[Series]) -> Page {
    let mut page = Page::new(format.id(), &format!("ugeom report {name}"));
    page.manual = "docs/compare.md".to_owned();
    page.question = format!("what did {} measure?", format.what());
    page.answer = answer(series);
    page.fact("result", format!("{name} ({})", format.what()));
    let mut warnings = Vec::new();
    if format.is_of_one_process() {
        warnings.push("all values are of one process: variation between processes is not shown");
    }
    if series.iter().any(|one| one.values.len() < VALUES_MIN) {
        warnings.push("fewer than 6 values have no percentiles: repeat the measurement");
    }
    page.warnings = warnings.into_iter().map(str::to_owned).collect();
    for (number, (metric, unit)) in quantities(series).into_iter().enumerate() {
        let of = |one: &&Series| one.metric == metric && one.unit == unit;
        let of: Vec<&Series> = series.iter().filter(of).collect();
        if number == 0 {
            let answered = &of[..of.len().min(ANSWERED_MAX)];
            page.pictured(plot(metric, unit, answered));
        }
        page.heading(quantity(metric));
        page.push(table(&of));
        page.push(plot(metric, unit, &of));
    }
    page
}

/// A quantity in the field's words, where it is a known one.
pub(crate) fn quantity(metric: &str) -> &str {
    match metric {
        "cpu" => "CPU time",
        "iops" | "transactions_per_second" => "IOPS",
        "bytes_per_second" => "throughput",
        "completion_latency" => "completion latency",
        "latency50" | "latency_median" => "median latency",
        "latency99" => "99th percentile of latency",
        "latency99.9" => "99.9th percentile of latency",
        other => other,
    }
}

/// Fewer values have no percentiles.
const VALUES_MIN: usize = ugeom_measure::center::OBSERVATIONS_MIN;

/// The quantities with their units, in the order of the result.
fn quantities(series: &[Series]) -> Vec<(&str, &str)> {
    let mut found: Vec<(&str, &str)> = Vec::new();
    for one in series {
        let quantity = (one.metric.as_str(), one.unit.as_str());
        if !found.contains(&quantity) {
            found.push(quantity);
        }
    }
    found
}

/// The first quantity of the first benchmarks.
fn answer(series: &[Series]) -> String {
    let Some((metric, unit)) = quantities(series).first().copied() else {
        return "The result has no values.".to_owned();
    };
    let of = || {
        let of = |one: &&Series| one.metric == metric && one.unit == unit;
        series.iter().filter(of)
    };
    let words = of().take(ANSWERED_MAX).map(|one| {
        let value = show(unit, middle(one));
        match interval(one) {
            Some(interval) => {
                let [low, high] = [interval.low, interval.high].map(|end| show(unit, end));
                format!("{}: {value} {}", one.case, interval.ends(low, high))
            }
            None => format!("{}: {value}", one.case),
        }
    });
    let words: Vec<String> = words.collect();
    let rest = match of().count().saturating_sub(ANSWERED_MAX) {
        0 => String::new(),
        rest => format!("; and {}", counted(rest as u64, "more benchmark")),
    };
    format!("Median {}: {}{rest}.", quantity(metric), words.join("; "))
}

fn middle(one: &Series) -> f64 {
    median(&one.values).unwrap_or(f64::NAN)
}

/// The spread of the values; none where they are too few.
fn interval(one: &Series) -> Option<Interval> {
    Some(Spread::of(&one.values).ok()?.interval())
}

fn table(series: &[&Series]) -> Table {
    let columns = [
        Column::text("benchmark"),
        Column::number("median", ""),
        Column::text("10th to 90th percentile"),
        Column::number("smallest", ""),
        Column::number("largest", ""),
        Column::number("n", ""),
    ];
    let mut table = Table::new("", columns);
    for one in series {
        let cell = |value: f64| {
            let value_cell = Cell::text(show(&one.unit, value));
            let mut cell = value_cell.with_value(crate::Value::Number(value));
            cell.unit = Some(one.unit.clone());
            cell
        };
        let ends =
            |first: f64, than: fn(f64, f64) -> f64| one.values.iter().copied().fold(first, than);
        let interval = interval(one);
        let interval = interval.map_or_else(
            || Cell::text("none"),
            |it| {
                let [low, high] = [it.low, it.high].map(|end| show(&one.unit, end));
                Cell::text(format!("{low} to {high}"))
            },
        );
        table.row([
            Cell::text(&one.case),
            cell(middle(one)),
            interval,
            cell(ends(f64::INFINITY, f64::min)),
            cell(ends(f64::NEG_INFINITY, f64::max)),
            Cell::count(one.values.len() as u64),
        ]);
    }
    table
}

fn plot(metric: &str, unit: &str, series: &[&Series]) -> Rows {
    let some = match series.len() {
        more if more > DRAWN_MAX => format!(" (the first {DRAWN_MAX} of {more} benchmarks)"),
        _ => String::new(),
    };
    let name = quantity(metric);
    let title = format!("{name}: medians, 10th to 90th percentile, and all values{some}");
    let mut rows = Rows::points(&title, Axis::linear(name, unit), ["median"]);
    for one in series.iter().take(DRAWN_MAX) {
        let interval = interval(one).unwrap_or(Interval::exact(middle(one), CONFIDENCE));
        let raw = one.values.clone();
        rows.row(&one.case, [Some(Seen { interval, raw })]);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Plot, Saved, page::Block, to_html};
    use ugeom_harness::foreign::read;
    use ugeom_testkit::{begins, has};

    const HYPERFINE: &str = r#"{"results": [
        {"command": "sleep 0.1", "times": [0.101, 0.1, 0.102, 0.1, 0.103, 0.1],
         "user": 0.001, "system": 0.0},
        {"command": "sleep <0.2>", "times": [0.2]}]}"#;

    #[test]
    fn quantities_have_the_field_s_names() {
        let fio = r#"{"fio version": "3", "jobs": [{"jobname": "a",
            "read": {"total_ios": 9, "iops": 5000.0, "clat_ns": {"mean": 190.0}}}]}"#;
        let (format, series) = read("a.json", "a", fio).unwrap();
        let page = page("a.json", format, &series);
        begins(&page.answer, "Median IOPS: a read: 5");
        let text = page.to_text(100);
        assert!(text.contains("COMPLETION LATENCY"), "{text}");
    }

    #[test]
    fn the_answer_has_medians_and_the_plot_every_value() {
        let (format, series) = read("a.json", "a", HYPERFINE).unwrap();
        let page = page("a.json", format, &series);
        begins(&page.answer, "Median time: sleep 0.1: 10");
        assert!(
            page.warnings
                .iter()
                .any(|one| one.contains("fewer than 6 values"))
        );
        let plots = page.blocks.iter().filter_map(|block| match block {
            Block::Plot(Plot::Rows(rows)) => Some(rows),
            _ => None,
        });
        let values: Vec<usize> = plots
            .flat_map(|rows| &rows.rows)
            .flat_map(|row| row.values.iter().flatten())
            .map(|seen| seen.raw.len())
            .collect();
        assert_eq!(values, [6, 1, 1], "two times, and the CPU time of one");
        let saved = Saved::foreign(HYPERFINE.to_owned(), page);
        let html = to_html(&[saved.clone(), saved.clone()]);
        has(
            &html,
            "<p class=\"certainty\">[ ] 10th to 90th percentile; 1 warning. <a",
        );
        assert_eq!(html.matches("<section class=\"card\">").count(), 2);
        let (overview, _) = html.split_once("</header>").unwrap();
        assert!(
            overview.matches("<svg ").count() >= 2,
            "each answer is drawn"
        );
        let html = to_html(&[saved]);
        assert!(html.contains("<svg ") && html.contains("sleep &lt;0.2&gt;"));
        assert!(html.contains("the result as it was read"), "{html}");
    }
}
