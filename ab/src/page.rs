//! The result as a page.

use super::answer::{answer, warnings};
use super::judge::{Contest, Judged, Judgement, contest};
use super::{Candidate, Document, Load, Shell, Side, Subject};
use ugeom_harness::compare::Metric;
use ugeom_harness::figure::{Unit, value};
use ugeom_measure::units::duration_measured;
use ugeom_measure::{Change, Claim};
use ugeom_report::compare::{probability, with_unit};
use ugeom_report::text::in_a_shell;
use ugeom_report::{Axis, Cell, Column, Page, Rows, Seen, Table, Value};

/// The page of a result.
pub fn page(document: &Document) -> Page {
    let subject = &document.subject;
    let mut page = Page::new(super::EXPERIMENT, &asked(document));
    page.manual = "docs/ab.md".to_owned();
    page.question = question(document);
    let answer = answer(document);
    page.brief = answer.sentence.clone();
    page.answer = answer.sentence;
    let contest = contest(document);
    page.summary = summary(document, &contest);
    page.warnings = warnings(document);
    page.head(document, &[]);
    facts(document, &contest, &mut page);
    page.heading("Candidates");
    let mut table = Table::headed("", "name | what", "");
    for one in &subject.candidates {
        table.row([Cell::text(&one.name), Cell::text(one.side.to_string())]);
    }
    page.push(table);
    if let Some(judged) = contest.metric(Metric::Time) {
        let (times, changes) = (times(judged), changes(judged));
        match changes.rows.is_empty() {
            true => page.pictured(times),
            false => {
                page.pictured(changes);
                page.push(times);
            }
        }
    }
    verdicts(&contest, &mut page);
    page.rounds(document);
    page
}

/// The times of all candidates, with the values that they are the middle of.
fn times(judged: &Judged) -> Rows {
    let axis = Axis::linear("time", "ns");
    let mut times = Rows::points("Wall time of one iteration", axis, ["median"]);
    for row in &judged.rows {
        let seen = row.typical.as_ref();
        if let Some(seen) = seen.map(Seen::from) {
            times.row(&row.name, [Some(seen)]);
        }
    }
    times
}

/// The plot of the answer: the ratios to the base as changes in per cent.
fn changes(judged: &Judged) -> Rows {
    let axis = Axis::linear("change of wall time", "%");
    let mut changes = Rows::points("Change of wall time against the base", axis, ["change"]);
    for row in judged.rows.iter().skip(1) {
        if let Some(change) = row.change {
            let (interval, raw) = (change.ratio, row.ratios.clone());
            let seen = Seen { interval, raw };
            let percent = seen.map(|ratio| (ratio - 1.0) * 100.0);
            changes.row(&row.name, [Some(percent)]);
        }
    }
    changes
}

/// The command line, as a shell reads it. Parameters stand in the candidates already.
fn asked(document: &Document) -> String {
    let subject = &document.subject;
    let mut words = vec!["ugeom ab".to_owned()];
    words.extend(asked_of_targets(subject));
    let mut add = |flag: &str, value: &str| words.push(format!("{flag} {}", in_a_shell(value)));
    for one in &subject.set {
        add("--set", one);
    }
    if let Some(last) = subject.candidates.last() {
        last.set.iter().for_each(|one| add("--set-b", one));
    }
    let hooks: [(&str, Hook); 4] = [
        ("--setup", |one| one.setup.as_deref()),
        ("--prepare", |one| one.prepare.as_deref()),
        ("--conclude", |one| one.conclude.as_deref()),
        ("--cleanup", |one| one.cleanup.as_deref()),
    ];
    for (flag, of) in hooks {
        let mut texts: Vec<&str> = subject.candidates.iter().filter_map(of).collect();
        // One for all, or one for each.
        if texts.windows(2).all(|pair| pair[0] == pair[1]) {
            texts.truncate(1);
        }
        texts.into_iter().for_each(|text| add(flag, text));
    }
    if subject.warmup != 1 {
        add("--warmup", &subject.warmup.to_string());
    }
    match &subject.shell {
        Shell::None => add("--shell", "none"),
        shell if *shell == Shell::default() => {}
        Shell::Named(shell) => add("--shell", shell),
    }
    if let Some(limit) = subject.fail_if_slower {
        add("--fail-if-slower", &format!("{}%", limit * 100.0));
    }
    if subject.ignore_failure {
        words.push("--ignore-failure".to_owned());
    }
    let texts = subject.candidates.iter().map(|one| one.side.text());
    words.extend(texts.map(in_a_shell));
    words.join(" ")
}

/// A command around runs of a candidate.
type Hook = fn(&Candidate) -> Option<&str>;

/// How targets are read, where that is not the usual way.
fn asked_of_targets(subject: &Subject) -> Vec<String> {
    let is_target = |one: &Candidate| matches!(one.side, Side::Target(_));
    if !subject.candidates.iter().any(is_target) {
        return Vec::new();
    }
    let (load, usual) = (subject.load, Load::default());
    let flags = [
        (load.size_bytes != usual.size_bytes).then(|| format!("--size {}", load.size_bytes)),
        load.random.then(|| "--random".to_owned()),
        (load.depth != usual.depth).then(|| format!("--depth {}", load.depth)),
    ];
    flags.into_iter().flatten().collect()
}

fn question(document: &Document) -> String {
    let subject = &document.subject;
    match &subject.candidates[..] {
        [one] => format!("how long does {} take?", one.name),
        [a, b] => format!("is {} faster than {}?", b.name, a.name),
        [first, ..] => format!("which is faster than {}?", first.name),
        [] => String::new(),
    }
}

/// The table of the first screen: a line a candidate. A narrow screen leaves out the last columns.
fn summary(document: &Document, contest: &Contest) -> Option<Table> {
    let judged = contest.metric(Metric::Time)?;
    let against = format!("against {}", document.subject.base());
    // One candidate is compared with nothing.
    let is_compared = judged.rows.len() > 1;
    let columns = [Column::text(""), Column::number("wall time", "")].into_iter();
    let columns = columns.chain(is_compared.then(|| Column::text(&against)));
    // A command is one piece of work.
    let has_iops = contest.metric(Metric::TransactionsPerSecond).is_some();
    let columns = columns.chain(has_iops.then(|| Column::number("IOPS", "")));
    let columns = columns.chain([
        Column::number("CPU time", ""),
        Column::number("min", ""),
        Column::number("max", ""),
        Column::number("outliers", ""),
    ]);
    let mut table = Table::new("", columns);
    let cpu = contest.metric(Metric::Cpu);
    for (at, row) in judged.rows.iter().enumerate() {
        let of_cpu = cpu.and_then(|cpu| cpu.rows.get(at));
        let outliers = row.typical.as_ref().map(|it| it.apart().len() as u64);
        let words = match (at, row.change) {
            (0, _) => "(base)".to_owned(),
            (_, Some(change)) => short(change),
            (_, None) => "no verdict".to_owned(),
        };
        let cells = [Cell::text(&row.name), typical(Metric::Time, row)].into_iter();
        let cells = cells.chain(is_compared.then(|| Cell::text(words)));
        // From the median time, so that both columns agree: an iteration is a request.
        let rate = || {
            let time = row.typical.as_ref();
            time.map_or_else(Cell::empty, |time| iops(1e9 / time.estimate()))
        };
        let cells = cells.chain(has_iops.then(rate));
        table.row(cells.chain([
            of_cpu.map_or_else(Cell::empty, |row| typical(Metric::Cpu, row)),
            with_unit(Metric::Time, row.ends.0),
            with_unit(Metric::Time, row.ends.1),
            outliers.map_or_else(Cell::empty, Cell::count),
        ]));
    }
    Some(table)
}

/// A rate with three digits, without its unit, which stands above the column.
fn iops(rate: f64) -> Cell {
    let text = value(rate, Unit::PerSecond);
    let text = text.trim_end_matches("IOPS").trim_end().to_owned();
    Cell::text(text).with_value(Value::Number(rate))
}

/// A verdict in a column: how large a difference would have been found is told by the answer.
fn short(change: Change) -> String {
    match change.claim() {
        Claim::Open if !change.covers => "no verdict".to_owned(),
        Claim::Open => "not significant".to_owned(),
        _ => change.to_string(),
    }
}

/// A median; the CSV has its spread.
fn typical(metric: Metric, row: &Judgement) -> Cell {
    match &row.typical {
        Some(spread) => {
            let cell = with_unit(metric, spread.estimate());
            cell.with_value(Value::Interval(spread.interval()))
        }
        // The only run, or the middle of a few.
        None => with_unit(metric, row.ends.0 / 2.0 + row.ends.1 / 2.0),
    }
}

fn facts(document: &Document, contest: &Contest, page: &mut Page) {
    let subject = &document.subject;
    let has = |is: fn(&Side) -> bool| subject.candidates.iter().any(|one| is(&one.side));
    if has(|side| matches!(side, Side::Target(_))) {
        page.fact("load", subject.load.to_string());
    }
    if !subject.set.is_empty() {
        page.fact("set", subject.set.join(", "));
    }
    for one in subject.candidates.iter().filter(|one| !one.set.is_empty()) {
        page.fact(&format!("set for {}", one.name), one.set.join(", "));
    }
    if has(|side| matches!(side, Side::Job(_))) {
        page.fact("jobs", "an iteration is one request of the jobs");
    }
    if let Some(shell) = contest.shell {
        let [estimate, low, high] = [
            shell.interval.estimate,
            shell.interval.low,
            shell.interval.high,
        ]
        .map(duration_measured);
        let what = if shell.subtracted {
            "subtracted from all times"
        } else {
            "not subtracted"
        };
        let ends = shell.interval.ends(low, high);
        page.fact("shell", format!("{estimate} {ends}, {what}"));
    }
}

/// Every candidate against the base in every metric.
fn verdicts(contest: &Contest, page: &mut Page) {
    let columns = [
        Column::text("candidate"),
        Column::text("metric"),
        Column::number("base median", ""),
        Column::number("median", ""),
        Column::number("p (sign)", ""),
        Column::text("verdict"),
    ];
    let mut table = Table::new("", columns);
    for Judged { metric, rows } in &contest.metrics {
        let Some((base, others)) = rows.split_first() else { continue };
        for row in others {
            let Some(change) = row.change else { continue };
            table.row([
                Cell::text(&row.name),
                Cell::text(metric.what()),
                typical(*metric, base),
                typical(*metric, row),
                row.p_value.map_or_else(Cell::empty, probability),
                Cell::text(change.to_string()),
            ]);
        }
    }
    if !table.rows.is_empty() {
        page.heading("Verdicts");
        page.push(table);
    }
}
