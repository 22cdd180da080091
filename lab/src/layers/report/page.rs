//! The page of a report about layers: bars with intervals, the published rows, what they mean, the
//! goals, the piles.

use super::super::names;
use super::super::published;
use super::super::subject::Document;
use super::{command, meaning, question, rows};
use ugeom_harness::figure::{Figure, Unit, amount};
use ugeom_measure::units::size_human;
use ugeom_measure::{Blocks, Interval, Moments, interval};
use ugeom_report::head;
use ugeom_report::{Axis, Cell, Column, Curve, Curves, Page, Rows, Table, Value};

/// The kinds of piles, the levels of statistics, and what to call them together.
const PILES: [(&str, &str, &str); 11] = [
    ("slicers", "off", "slicers, statistics off"),
    ("slicers", "counts", "slicers, counts"),
    ("slicers", "time", "slicers, counts and times"),
    ("passed", "off", "slicers passed, statistics off"),
    ("passed", "counts", "slicers passed, counts"),
    ("nops", "off", "nops, statistics off"),
    ("nops", "counts", "nops, counts"),
    ("nops", "time", "nops, counts and times"),
    ("hooks", "off", "hooks, statistics off"),
    ("hooks", "counts", "hooks, counts"),
    ("hooks", "time", "hooks, counts and times"),
];

/// The report of a result as a page.
pub fn page(document: &Document) -> Page {
    let blocks = document.blocks();
    let mut page = Page::new(&document.experiment, &asked(document));
    page.head(document, &document.subject.left_out);
    page.question = question(document);
    page.answer = meaning::answer(document);
    reads(&mut page, document, &blocks);
    page.heading("What it means");
    page.list(meaning::findings(document));
    steps(&mut page, document);
    page.goals(&judged_figures(document));
    piles(&mut page, document, &blocks);
    sizes(&mut page, document, &blocks);
    dispatch(&mut page, document);
    then_and_now(&mut page, document);
    page.heading("What cannot be concluded");
    page.list(meaning::limits(document));
    page.every_cell(&blocks, "ns", 2);
    figures(&mut page, document);
    page
}

fn asked(document: &Document) -> String {
    let mut asked = command(document);
    let subject = &document.subject;
    for (flag, given) in [("--all", subject.all), ("--faithful", subject.faithful)] {
        if given {
            asked.push_str(&format!(" {flag}"));
        }
    }
    asked
}

/// The mean of a cell with its interval.
fn mean(blocks: &Blocks, name: &str) -> Option<Interval> {
    let values = blocks.values(blocks.position(name)?).ok()?;
    match interval::student_of(&values, 0.95) {
        Ok(effect) => Some(effect.interval),
        Err(ugeom_measure::Error::ZeroVariance { value, .. }) => Some(Interval::exact(value, 0.95)),
        Err(_) => None,
    }
}

/// One read of each provider, as the mail of 2002 has its rows.
fn reads(page: &mut Page, document: &Document, blocks: &Blocks) {
    let subject = &document.subject;
    page.heading("One read, layer by layer");
    page.paragraph(format!(
        "The time of one read of {} bytes. All direct: the thread that wants the data carries the \
         request through all layers itself. The control, /dev/zero, passes no layer and stands in \
         both blocks.",
        subject.read_bytes
    ));
    let title = "The time of one read";
    let mut bars = Rows::bars(title, Axis::linear("time of one read", "ns"), [""]);
    let columns = [
        Column::text("provider"),
        Column::text("layers"),
        Column::number("samples", ""),
        Column::number("average", "ns"),
        Column::number("standard deviation", "ns"),
    ];
    let mut table = Table::new("As published in 2002: the mean of so many runs", columns);
    let mut add = |name: &str, layers: &str, cell: &str, drawn: bool| {
        let Some(position) = blocks.position(cell) else {
            return;
        };
        let moments = blocks
            .values(position)
            .and_then(|values| Moments::of(&values));
        let Ok(moments) = moments else { return };
        let average = mean(blocks, cell).map_or(Value::Number(moments.mean), Value::Interval);
        table.row([
            Cell::text(name),
            Cell::text(layers),
            Cell::count(moments.n),
            Cell::number(moments.mean, 6).with_value(average),
            Cell::number(moments.sd, 6),
        ]);
        if drawn {
            bars.row(&format!("{name}: {layers}"), [mean(blocks, cell)]);
        }
    };
    add("zero", "control: no layer", names::ZERO, false);
    for link in &subject.chain {
        add(
            &link.provider,
            &link.layers,
            &names::direct(&link.provider),
            true,
        );
    }
    add("zero", "control, the same again", names::ZERO_AGAIN, false);
    for link in subject.chain.iter().filter(|link| link.plain) {
        add(
            &link.provider,
            "without GEOM",
            &names::plain(&link.provider),
            true,
        );
    }
    // Not drawn: beside them the others would be none.
    for way in &subject.through {
        let (deepest, layers) = (subject.deepest(), format!("through {way}"));
        add(deepest, &layers, &names::through(way, deepest), false);
    }
    page.push(bars);
    page.push(table);
}

/// The figures that goals are held against: those by CPU time only where other work ran.
fn judged_figures(document: &Document) -> Vec<Figure> {
    let disturbed = head::is_disturbed(document);
    let wanted = |figure: &&Figure| disturbed || !figure.id.starts_with("by_cpu.");
    document.figures.iter().filter(wanted).cloned().collect()
}

/// What GEOM and each layer cost; by CPU time, too, where other work ran.
fn steps(page: &mut Page, document: &Document) {
    let title = "What GEOM itself, one more layer and statistics add to a read";
    let by_cpu = head::is_disturbed(document);
    let series = ["by the time that passed", "by CPU time"];
    let series = series.into_iter().take(if by_cpu { 2 } else { 1 });
    let mut bars = Rows::bars(title, Axis::linear("added to a read", "ns"), series);
    let wanted = |figure: &&Figure| {
        let id = figure.id.as_str();
        let unit = matches!(figure.unit, Unit::Ns | Unit::NsPerLayer);
        let cost = id == "geom.cost" || id == "floor.calls";
        unit && (cost
            || ["layer.", "slope.", "statistics."]
                .iter()
                .any(|one| id.starts_with(one)))
    };
    for figure in document.figures.iter().filter(wanted) {
        let by_cpu = document.figure(&format!("by_cpu.{}", figure.id));
        let values = [Some(figure.interval), by_cpu.map(|figure| figure.interval)];
        bars.row(&figure.what, values);
    }
    if !bars.rows.is_empty() {
        page.heading("What is added to a read");
        page.push(bars);
    }
}

/// Piles of layers.
fn piles(page: &mut Page, document: &Document, blocks: &Blocks) {
    let depths = &document.subject.depths;
    let layers = Axis::linear("layers", "");
    let mut plot = Curves::new(
        "A read through so many layers",
        layers,
        Axis::linear("time", "ns"),
    );
    let columns = depths
        .iter()
        .map(|depth| Column::number(&depth.to_string(), "ns"));
    let columns = [Column::text("layers")].into_iter().chain(columns);
    let columns = columns.chain([Column::number("one more layer", "ns")]);
    let mut table = Table::new("", columns);
    let calls = ("calls", "", "bare indirect calls");
    for (kind, level, what) in PILES.into_iter().chain([calls]) {
        let (id, name): (String, Box<dyn Fn(usize) -> String>) = match kind {
            "calls" => ("floor.calls".to_owned(), Box::new(names::calls)),
            _ => {
                let name = move |depth| names::pile(kind, level, depth);
                (format!("slope.{kind}.{level}"), Box::new(name))
            }
        };
        let Some(slope) = document.figure(&id) else {
            continue;
        };
        let means = depths
            .iter()
            .map(|depth| mean(blocks, &name(*depth as usize)));
        let means: Vec<Option<Interval>> = means.collect();
        let cell = |mean: &Option<Interval>| match mean {
            Some(mean) => Cell::interval(mean, 1).shown_as(format!("{:.1}", mean.estimate)),
            None => Cell::text("-"),
        };
        let cells = [Cell::text(what)].into_iter().chain(means.iter().map(cell));
        table.row(cells.chain([Cell::interval(&slope.interval, 2)]));
        let points = depths.iter().zip(means);
        let points = points.filter_map(|(depth, mean)| Some((*depth as f64, mean?)));
        let curve = points.fold(Curve::measured(what), |curve, (x, y)| curve.point(x, y));
        plot.push(curve);
    }
    if table.rows.is_empty() {
        return;
    }
    page.heading("Piles of layers");
    page.paragraph(
        "A read through so many layers. Slicers move the place that is read, nops do nothing, \
         hooks are nops that also see requests come back; passed are slicers without being asked, \
         as is the default. The cost of one more is the slope of \
         a line through each round, with its interval over the rounds.",
    );
    page.push(plot);
    page.push(table);
}

/// Sizes of the read.
fn sizes(page: &mut Page, document: &Document, blocks: &Blocks) {
    let subject = &document.subject;
    let (bottom, deepest) = (subject.bottom(), subject.deepest());
    let of = |provider: &str, size: u64| match size == subject.read_bytes {
        true => mean(blocks, &names::direct(provider)),
        false => mean(blocks, &names::sized(provider, size)),
    };
    let sizes = || {
        [subject.read_bytes]
            .into_iter()
            .chain(subject.sizes_bytes.iter().copied())
    };
    let mut plot = Curves::new(
        "Reads of other sizes",
        Axis::bytes("size of the read"),
        Axis::log10("time of one read", "ns"),
    );
    for provider in [bottom, deepest] {
        let points = sizes().filter_map(|size| Some((size as f64, of(provider, size)?)));
        let curve = points.fold(Curve::measured(provider), |curve, (x, y)| curve.point(x, y));
        plot.push(curve);
    }
    if bottom == deepest || plot.curves.iter().any(|curve| curve.points.len() < 2) {
        return;
    }
    let mut table = Table::new(
        "",
        [
            Column::number("read of", ""),
            Column::number(bottom, "ns"),
            Column::number(deepest, "ns"),
            Column::text("the layers' cost, against the first"),
        ],
    );
    let cell =
        |mean: Option<Interval>| mean.map_or(Cell::text("-"), |mean| Cell::interval(&mean, 1));
    for size in sizes() {
        let change = match document.figure(&format!("size.{size}")) {
            Some(figure) => judged(figure),
            None => Cell::empty(),
        };
        let read = Cell::text(size_human(size)).with_value(Value::Number(size as f64));
        table.row([
            read,
            cell(of(bottom, size)),
            cell(of(deepest, size)),
            change,
        ]);
    }
    page.heading("Sizes");
    page.push(plot);
    page.push(table);
}

/// A difference with its verdict.
fn judged(figure: &Figure) -> Cell {
    let verdict = match figure.is_unproven() {
        true => ", no difference proven",
        false => "",
    };
    Cell::figure(figure).shown_as(format!("{}{verdict}", figure.amount()))
}

/// Direct and queued dispatch with all CPU time.
fn dispatch(page: &mut Page, document: &Document) {
    if document.figure("wall.queued").is_none() {
        return;
    }
    page.heading("Dispatch");
    page.paragraph(format!(
        "One read of {}: the time that passed, and the CPU time that it took. The machine's is \
         counted by the kernel in ticks and holds whatever else ran.",
        document.subject.bottom()
    ));
    let names = ["wall", "caller", "helper threads", "whole machine"];
    let columns = [Column::text("dispatch")]
        .into_iter()
        .chain(names.map(|name| Column::number(name, "ns")));
    let mut table = Table::new("", columns);
    for dispatch in ["direct", "queued"] {
        let cpu = ["caller", "helpers", "machine"].map(|who| format!("cpu.{dispatch}.{who}"));
        let ids = [format!("wall.{dispatch}")].into_iter().chain(cpu);
        let figures = ids.map(|id| match document.figure(&id) {
            Some(figure) => Cell::interval(&figure.interval, 1),
            None => Cell::text("-"),
        });
        table.row([Cell::text(dispatch)].into_iter().chain(figures));
    }
    page.push(table);
    if let Some(scaling) = document.figure("queued.scaling") {
        page.paragraph(format!(
            "Two threads against one, queued: {}.",
            scaling.amount()
        ));
    }
}

/// The shapes of 2002, and the mail's rows under both judgements.
fn then_and_now(page: &mut Page, document: &Document) {
    page.heading("Then and now");
    page.paragraph(rows::THEN);
    let mut table = Table::new("", ["what", "2002", "now"].map(Column::text));
    for row in rows::shapes(document) {
        table.row(row.map(Cell::text));
    }
    page.push(table);
    let Ok(steps) = published::steps() else {
        return;
    };
    let columns = [
        "2002",
        "as ministat judges",
        "without equal spreads",
        "verdict",
    ];
    let title = "The mail of 2002 judged: its own rows, from number, average and deviation, 95 %";
    let mut table = Table::new(title, columns.map(Column::text));
    for step in &steps {
        let verdict = if step.is_proven() {
            "proven"
        } else {
            "not proven"
        };
        let welch = step.welch.interval;
        table.row([
            Cell::text(&step.what),
            Cell::amount(&step.pooled.interval, Unit::Ns).shown_as(step.amount()),
            Cell::amount(&welch, Unit::Ns).shown_as(amount(&welch, Unit::Ns)),
            Cell::text(verdict),
        ]);
    }
    page.push(table);
}

/// Every figure with its interval.
fn figures(page: &mut Page, document: &Document) {
    let columns = ["figure", "what", "seen", "difference"].map(Column::text);
    let mut table = Table::new("", columns);
    for figure in &document.figures {
        let proven = match figure.proven {
            Some(true) => "proven",
            Some(false) => "not proven",
            None => "",
        };
        let (id, what) = (Cell::text(&figure.id), Cell::text(&figure.what));
        table.row([id, what, Cell::figure(figure), Cell::text(proven)]);
    }
    if !table.rows.is_empty() {
        page.heading("Every figure");
        page.push(table);
    }
}
