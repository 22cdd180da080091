//! The result as a page.

use super::answer::{answer, compared};
use super::{CELLS, Document, Side};
use ugeom_harness::compare::Metric;
use ugeom_measure::interval::student;
use ugeom_report::compare::{probability, with_unit};
use ugeom_report::text::in_a_shell;
use ugeom_report::{Axis, Cell, Column, Page, Rows, Table, Value};

/// The page of a result.
pub fn page(document: &Document) -> Page {
    let subject = &document.subject;
    let (a, b) = (subject.a.text(), subject.b.text());
    let flags = |flag: &str, set: &[String]| -> String {
        set.iter().map(|one| format!(" {flag} {one}")).collect()
    };
    let set = flags("--set", &subject.set) + &flags("--set-b", &subject.set_b);
    let mut page = Page::new(
        super::EXPERIMENT,
        &format!("ugeom ab{set} {} {}", in_a_shell(a), in_a_shell(b)),
    );
    page.question = format!(
        "Is B faster than A? A is the {}, B the {}. A round runs A, B and A once more in random \
         order; what counts is how they differ within rounds.",
        subject.a, subject.b
    );
    page.answer = answer(document).sentence;
    page.head(document, &[]);
    if matches!(subject.a, Side::Target(_)) || matches!(subject.b, Side::Target(_)) {
        page.fact("load", subject.load.to_string());
    }
    for (word, set) in [("set", &subject.set), ("set for B", &subject.set_b)] {
        if !set.is_empty() {
            page.fact(word, set.join(", "));
        }
    }
    if matches!(subject.a, Side::Job(_)) || matches!(subject.b, Side::Job(_)) {
        page.fact("jobs", "an iteration is one request of the jobs");
    }
    page.heading("What was measured");
    sides(document, &mut page);
    verdicts(document, &mut page);
    page
}

/// A line and a point with its interval for each cell.
fn sides(document: &Document, page: &mut Page) {
    let subject = &document.subject;
    let blocks = document.blocks();
    let columns = [
        Column::text("side"),
        Column::text("what"),
        Column::number("one iteration takes", ""),
        Column::number("median", ""),
        Column::number("sd", ""),
    ];
    let mut table = Table::new("", columns);
    let mut plot = Rows::points(
        "Time of one iteration",
        Axis::linear("time", "ns"),
        ["mean"],
    );
    let texts = [
        subject.a.text(),
        subject.b.text(),
        "the same, for the noise",
    ];
    for (cell, (name, what)) in CELLS.into_iter().zip(texts).enumerate() {
        let Ok(summary) = blocks.summary(cell) else {
            if let Some(ns) = single(document, cell) {
                let once = with_unit(Metric::Time, ns);
                let columns = [Cell::text(name), Cell::text(what), once];
                table.row(columns.into_iter().chain([Cell::empty(), Cell::empty()]));
            }
            continue;
        };
        let mean = student(summary.moments(), subject.confidence).map(|effect| effect.interval);
        let shown = |value: f64| with_unit(Metric::Time, value);
        let mut time = shown(summary.mean);
        if let Ok(mean) = &mean {
            let ends = [mean.low, mean.high].map(|end| Metric::Time.show(end));
            let text = format!("{} ({} to {})", time.text, ends[0], ends[1]);
            time = time.shown_as(text).with_value(Value::Interval(*mean));
        }
        table.row([
            Cell::text(name),
            Cell::text(what),
            time,
            shown(summary.median),
            shown(summary.sd),
        ]);
        if let Ok(mean) = mean {
            plot.row(name, [Some(mean)]);
        }
    }
    if !table.rows.is_empty() {
        page.push(table);
    }
    // Without any spread there is no interval to draw.
    if !plot.rows.is_empty() {
        page.push(plot);
    }
}

/// The time of an iteration where a cell ran once: in the only round, or in one that was not
/// finished.
fn single(document: &Document, cell: usize) -> Option<f64> {
    let processes = || document.processes.iter();
    let rounds = processes().flat_map(|one| &one.rounds);
    let whole = rounds.filter_map(|round| round.samples.get(cell));
    let unfinished = processes().filter_map(|one| one.unfinished.as_ref());
    let measured = unfinished.filter(|one| !one.calibrating);
    let samples = measured.flat_map(|one| &one.samples);
    let broken = samples.filter(|one| one.0 == cell).map(|one| &one.1);
    Some(whole.chain(broken).next()?.ns_per_iteration())
}

/// B against A in every metric.
fn verdicts(document: &Document, page: &mut Page) {
    let Some(compared) = compared(document) else {
        return;
    };
    let columns = [
        Column::text("B against A"),
        Column::number("A", ""),
        Column::number("B", ""),
        Column::number("p", ""),
        Column::text("verdict"),
    ];
    let mut table = Table::new("", columns);
    let mut notes = Vec::new();
    for judged in &compared.metrics {
        let metric = judged.metric;
        for row in &judged.rows {
            table.row([
                Cell::text(metric.what()),
                with_unit(metric, row.base.sample.mean),
                with_unit(metric, row.changed.sample.mean),
                probability(row.difference.p_value),
                Cell::text(&row.words),
            ]);
            if let Some(rounds) = row.rounds.filter(|rounds| rounds.correlated) {
                notes.push(format!(
                    "{}: the differences of neighbouring rounds are correlated; {} rounds are \
                     worth {:.1}, and were judged so.",
                    metric.what(),
                    rounds.n,
                    rounds.n_effective
                ));
            }
        }
    }
    page.heading("Verdicts");
    page.push(table);
    page.list(notes);
}
