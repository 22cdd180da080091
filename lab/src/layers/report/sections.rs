//! The sections behind the first page.

use super::super::names;
use super::super::published;
use super::super::subject::Document;
use super::short_name;
use ugeom_harness::figure::{Figure, Goal, Unit, amount, value};
use ugeom_measure::units::size_human;
use ugeom_measure::{Blocks, Summary};
use ugeom_report::head::is_disturbed;
use ugeom_report::text::{Align, paragraph, table};

/// All sections, each followed by an empty line.
pub(super) fn sections(document: &Document) -> String {
    let blocks = document.blocks();
    let sections = [
        goals(document),
        piles(document, &blocks),
        sizes(document, &blocks),
        dispatch(document),
        cells(&blocks),
        mail(),
    ];
    sections
        .into_iter()
        .flatten()
        .map(|section| section + "\n")
        .collect()
}

fn unknown() -> String {
    "-".to_owned()
}

fn strings<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.into_iter().map(str::to_owned).collect()
}

/// What was to be reached, and what was seen.
pub(super) fn goals(document: &Document) -> Option<String> {
    let mut rows = vec![strings(["what", "goal", "seen", ""])];
    for figure in document
        .figures
        .iter()
        .filter(|figure| figure.goal.is_some())
    {
        let goal = match figure.goal {
            Some(Goal::Under(limit)) => format!("under {}", value(limit, figure.unit)),
            Some(Goal::AtLeast(limit)) => format!("at least {}", value(limit, figure.unit)),
            None => String::new(),
        };
        let reached = figure.reached().map_or("", |reached| reached.word());
        rows.push(vec![
            figure.what.clone(),
            goal,
            figure.amount(),
            reached.to_owned(),
        ]);
        let by_cpu = document.figure(&format!("by_cpu.{}", figure.id));
        if let Some(by_cpu) = by_cpu.filter(|_| is_disturbed(document)) {
            let verdict = figure.goal.map(|goal| goal.judge(&by_cpu.interval).word());
            rows.push(vec![
                "  by CPU time alone".to_owned(),
                String::new(),
                by_cpu.amount(),
                verdict.unwrap_or_default().to_owned(),
            ]);
        }
    }
    if rows.len() < 2 {
        return None;
    }
    let mut out = String::from("FIGURES TO REACH\n");
    out.push_str(&table(2, &[Align::Left; 4], &rows));
    for (id, words) in [
        (
            "floor.calls",
            "The limit of a layer that is asked, a bare indirect call in the same rounds",
        ),
        (
            "floor.ticks",
            "Reading the processor's ticks, of which a timed read needs two a layer",
        ),
    ] {
        if let Some(figure) = document.figure(id) {
            out.push_str(&paragraph(&format!("{words}: {}.", figure.amount()), 2, 2));
        }
    }
    out.push_str(&paragraph(
        "By tests and not here: the data path allocates nothing (cargo test -p ugeom-classes), and \
         the instructions of a read are counted (cargo xtask instructions).",
        2,
        2,
    ));
    Some(out)
}

/// Piles of layers: the mean of each depth, and the slope.
pub(super) fn piles(document: &Document, blocks: &Blocks) -> Option<String> {
    let depths = &document.subject.depths;
    let mut rows = vec![strings(["layers"])];
    rows[0].extend(depths.iter().map(|depth| depth.to_string()));
    rows[0].push("a layer".to_owned());
    let kinds = ["slicers", "passed", "nops", "hooks"];
    let levels = ["off", "counts", "time"];
    let piles = kinds
        .iter()
        .flat_map(|kind| levels.iter().map(move |level| (*kind, *level)));
    let calls = ("calls", "");
    for (kind, level) in piles.chain([calls]) {
        let name = |depth: usize| match kind {
            "calls" => names::calls(depth),
            _ => names::pile(kind, level, depth),
        };
        let id = match kind {
            "calls" => "floor.calls".to_owned(),
            _ => format!("slope.{kind}.{level}"),
        };
        let Some(slope) = document.figure(&id) else {
            continue;
        };
        let mut row = vec![format!("{kind} {level}").trim().to_owned()];
        row.extend(
            depths
                .iter()
                .map(|depth| mean_ns(blocks, &name(*depth as usize))),
        );
        row.push(slope.amount());
        rows.push(row);
    }
    if rows.len() < 2 {
        return None;
    }
    let mut out = paragraph(
        "PILES OF LAYERS: A read through so many layers, ns; the cost of one more is the slope of \
         a line through each round, with its interval over the rounds.",
        0,
        2,
    );
    let mut aligns = vec![Align::Left];
    aligns.extend(depths.iter().map(|_| Align::Right));
    aligns.push(Align::Left);
    out.push_str(&table(2, &aligns, &rows));
    Some(out)
}

fn mean_ns(blocks: &Blocks, name: &str) -> String {
    let summary = blocks
        .position(name)
        .and_then(|cell| blocks.summary(cell).ok());
    summary.map_or_else(unknown, |summary: Summary| format!("{:.1}", summary.mean))
}

/// Sizes of the read.
fn sizes(document: &Document, blocks: &Blocks) -> Option<String> {
    let subject = &document.subject;
    let (bottom, deepest) = (subject.bottom(), subject.deepest());
    let mut rows = vec![strings([
        "read of",
        &short_name(bottom),
        &short_name(deepest),
        "the layers' cost, against the first",
    ])];
    rows.push(vec![
        size_human(subject.read_bytes),
        mean_ns(blocks, &names::direct(bottom)),
        mean_ns(blocks, &names::direct(deepest)),
        String::new(),
    ]);
    for size in &subject.sizes_bytes {
        let Some(figure) = document.figure(&format!("size.{size}")) else {
            continue;
        };
        let verdict = if figure.is_unproven() {
            ", no difference proven"
        } else {
            ""
        };
        rows.push(vec![
            size_human(*size),
            mean_ns(blocks, &names::sized(bottom, *size)),
            mean_ns(blocks, &names::sized(deepest, *size)),
            format!("{}{verdict}", signed(figure)),
        ]);
    }
    if rows.len() < 3 {
        return None;
    }
    let aligns = [Align::Right, Align::Right, Align::Right, Align::Left];
    Some("SIZES: One read, ns.\n".to_owned() + &table(2, &aligns, &rows))
}

fn signed(figure: &Figure) -> String {
    let sign = if figure.interval.estimate > 0.0 {
        "+"
    } else {
        ""
    };
    format!("{sign}{}", figure.amount())
}

/// Direct and queued dispatch with all CPU time.
fn dispatch(document: &Document) -> Option<String> {
    document.figure("wall.queued")?;
    let mut rows = vec![strings([
        "",
        "wall",
        "caller",
        "helper threads",
        "whole machine",
    ])];
    for dispatch in ["direct", "queued"] {
        let mut row = vec![dispatch.to_owned()];
        let cpu = ["caller", "helpers", "machine"].map(|who| format!("cpu.{dispatch}.{who}"));
        let wall = document.figure(&format!("wall.{dispatch}"));
        row.push(wall.map_or_else(unknown, Figure::amount));
        let cpu = cpu.iter().map(|id| document.figure(id));
        row.extend(cpu.map(|figure| figure.map_or_else(unknown, Figure::estimate)));
        rows.push(row);
    }
    let mut out = paragraph(
        &format!(
            "DISPATCH: One read of {}: the time that passed, and the CPU time that it took. The \
             machine's is counted by the kernel in ticks and holds whatever else ran.",
            document.subject.bottom()
        ),
        0,
        2,
    );
    out.push_str(&table(2, &[Align::Left; 5], &rows));
    if let Some(scaling) = document.figure("queued.scaling") {
        let text = format!("Two threads against one, queued: {}.", scaling.amount());
        out.push_str(&paragraph(&text, 2, 2));
    }
    Some(out)
}

/// Every cell.
fn cells(blocks: &Blocks) -> Option<String> {
    let mut rows = vec![strings(["cell", "mean", "median", "sd", "least", "most"])];
    for (cell, name) in blocks.cells().iter().enumerate() {
        let Ok(summary) = blocks.summary(cell) else {
            continue;
        };
        let mut row = vec![name.clone()];
        let values = [
            summary.mean,
            summary.median,
            summary.sd,
            summary.min,
            summary.max,
        ];
        row.extend(values.iter().map(|value| format!("{value:.2}")));
        rows.push(row);
    }
    if rows.len() < 2 {
        return None;
    }
    let mut aligns = vec![Align::Left];
    aligns.extend([Align::Right; 5]);
    Some("EVERY CELL: One iteration, ns.\n".to_owned() + &table(2, &aligns, &rows))
}

/// The mail's rows under both judgements.
fn mail() -> Option<String> {
    let steps = published::steps().ok()?;
    let mut rows = vec![strings([
        "2002",
        "as ministat judges",
        "without equal spreads",
        "",
    ])];
    for step in &steps {
        let verdict = if step.is_proven() {
            "proven"
        } else {
            "not proven"
        };
        let welch = amount(&step.welch.interval, Unit::Ns);
        rows.push(vec![
            step.what.clone(),
            step.amount(),
            welch,
            verdict.to_owned(),
        ]);
    }
    let mut out = paragraph(
        "THE MAIL OF 2002 JUDGED: Its own eight rows, from number, average and deviation, 95 %. \
         Its \"about 800 nsec\" a layer is the mean of a step that is not proven and one that is; \
         and the control, which passes no layer, moved as well.",
        0,
        2,
    );
    out.push_str(&table(2, &[Align::Left; 4], &rows));
    Some(out)
}
