//! The sections behind the first screen: every read, every step, stacks of N layers, sizes,
//! dispatch, the mail of 2002, every figure.

use super::layered::LAYERED;
use super::names;
use super::published::{self, Step};
use super::subject::Document;
use ugeom_harness::figure::{Figure, Unit, amount};
use ugeom_harness::observed::Observed;
use ugeom_measure::units::size_human;
use ugeom_measure::{Interval, Moments};
use ugeom_report::{Axis, Cell, Column, Curve, Curves, Page, Rows, Seen, Table, Value};

/// Adds all of them.
pub(super) fn add(page: &mut Page, document: &Document) {
    let times = Observed::times(document);
    reads(page, document, &times);
    steps(page, document);
    layered(page, document, &times);
    sizes(page, document, &times);
    dispatch(page, document);
    then_and_now(page, document);
    every_case(page, &times);
    figures(page, document);
}

/// The typical time of a case with its spread.
fn typical(times: &Observed, name: &str) -> Option<Interval> {
    Some(times.typical(name)?.interval())
}

/// The same with its observations.
fn seen(times: &Observed, name: &str) -> Option<Seen> {
    Some(Seen::from(&times.typical(name)?))
}

/// The plot of the answer: GEOM itself, and each layer.
pub(super) fn picture(document: &Document) -> Rows {
    let bytes = document.subject.read_bytes;
    let title = format!("Added to a read of {bytes} bytes");
    let mut bars = Rows::bars(&title, Axis::linear("wall time", "ns"), [""]);
    let figures = document.figures.iter();
    let wanted = figures.filter(|figure| {
        let id = figure.id.as_str();
        let of_layer = id.starts_with("layer.") && id != "layer.mean";
        figure.unit == Unit::Ns && (id == "geom.cost" || of_layer)
    });
    for figure in wanted {
        bars.row(&figure.what, [Some(figure)]);
    }
    bars
}

/// One read of each provider, as the mail of 2002 has its rows.
fn reads(page: &mut Page, document: &Document, times: &Observed) {
    let subject = &document.subject;
    page.heading("One read, layer by layer");
    reads_words(page, document);
    let title = "The time of one read";
    let mut bars = Rows::bars(title, Axis::linear("time of one read", "ns"), [""]);
    let title = "As published in 2002: number, average and standard deviation, here of processes";
    let columns = "samples | average (ns) | standard deviation (ns)";
    let mut table = Table::headed(title, "provider | layers", columns);
    let mut add = |name: &str, layers: &str, case: &str, drawn: bool| {
        let values = times
            .position(case)
            .map(|it| times.values(&[it], |one| Some(one[0])));
        let Some(Ok(moments)) = values.map(|values| Moments::of(&values)) else { return };
        let average = typical(times, case).map_or(Value::Number(moments.mean), Value::Interval);
        table.row([
            Cell::text(name),
            Cell::text(layers),
            Cell::count(moments.n),
            Cell::number(moments.mean, 6).with_value(average),
            Cell::number(moments.sd, 6),
        ]);
        if drawn {
            bars.row(&format!("{name}: {layers}"), [seen(times, case)]);
        }
    };
    add(
        "zero",
        "control: a system call, no layer",
        names::ZERO,
        false,
    );
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

fn reads_words(page: &mut Page, document: &Document) {
    page.paragraph(format!(
        "The time of one read of {} bytes, direct dispatch: the calling thread carries the request \
         through all layers. The control, /dev/zero, is a system call and passes no layer; the \
         disk is a function call.",
        document.subject.read_bytes
    ));
}

/// The cost of GEOM and of each layer, by wall time and by CPU time.
fn steps(page: &mut Page, document: &Document) {
    let title = "What GEOM itself, one more layer and statistics add to a read";
    let series = ["wall time", "CPU time"];
    let mut bars = Rows::bars(title, Axis::linear("added to a read", "ns"), series);
    let wanted = |figure: &&Figure| {
        let id = figure.id.as_str();
        let unit = matches!(figure.unit, Unit::Ns | Unit::NsPerLayer);
        let cost = id == "geom.cost" || id == "floor.calls";
        let kinds = ["layer.", "slope.", "statistics."];
        unit && (cost || kinds.iter().any(|one| id.starts_with(one)))
    };
    for figure in document.figures.iter().filter(wanted) {
        let by_cpu = document.figure(&format!("by_cpu.{}", figure.id));
        bars.row(&figure.what, [Some(figure), by_cpu]);
    }
    if !bars.rows.is_empty() {
        page.heading("What is added to a read");
        page.push(bars);
    }
}

/// Stacks of N layers.
fn layered(page: &mut Page, document: &Document, times: &Observed) {
    let depths = &document.subject.depths;
    let layers = Axis::linear("layers", "");
    let mut plot = Curves::new(
        "A read through N layers",
        layers,
        Axis::linear("time", "ns"),
    );
    let columns = depths
        .iter()
        .map(|depth| Column::number(&depth.to_string(), "ns"));
    let columns = [Column::text("layers")].into_iter().chain(columns);
    let columns = columns.chain([Column::number("one more layer", "ns")]);
    let mut table = Table::new("", columns);
    let mut row = |what: &str, id: &str, case: &dyn Fn(usize) -> String| {
        let Some(slope) = document.figure(id) else { return };
        let means = depths
            .iter()
            .map(|depth| typical(times, &case(*depth as usize)));
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
    };
    for layers in &LAYERED {
        row(layers.row, &layers.figure(), &|depth| layers.case(depth));
    }
    row("bare indirect calls", "floor.calls", &names::calls);
    if table.rows.is_empty() {
        return;
    }
    page.heading("Stacks of N layers");
    page.paragraph(
        "A read through N layers. Slicers shift the offset, nops do nothing, hooks are nops with a \
         completion hook; fused slicers are the default. One more layer costs the slope of a line \
         through each round.",
    );
    page.push(plot);
    page.push(table);
}

/// Sizes of the read.
fn sizes(page: &mut Page, document: &Document, times: &Observed) {
    let subject = &document.subject;
    let (bottom, deepest) = (subject.bottom(), subject.deepest());
    let of = |provider: &str, size: u64| match size == subject.read_bytes {
        true => typical(times, &names::direct(provider)),
        false => typical(times, &names::sized(provider, size)),
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

/// Direct and queued dispatch with all CPU time.
fn dispatch(page: &mut Page, document: &Document) {
    if document.figure("wall.queued").is_none() {
        return;
    }
    page.heading("Dispatch");
    page.paragraph(format!(
        "One read of {}: wall time and CPU time. The system-wide time is counted by the kernel in \
         ticks and includes other work; it has no interval.",
        document.subject.bottom()
    ));
    let columns = "wall (ns) | caller's CPU (ns) | helpers' CPU (ns) | system-wide CPU (ns)";
    let mut table = Table::headed("", "dispatch", columns);
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

/// Every figure with its interval.
fn figures(page: &mut Page, document: &Document) {
    let columns = ["figure", "quantity", "measured", "difference"].map(Column::text);
    let mut table = Table::new("", columns);
    for figure in &document.figures {
        let significant = match figure.significant {
            Some(true) => "significant",
            Some(false) => "not significant",
            None => "",
        };
        let (id, what) = (Cell::text(&figure.id), Cell::text(&figure.what));
        table.row([id, what, Cell::figure(figure), Cell::text(significant)]);
    }
    if !table.rows.is_empty() {
        page.heading("Every figure");
        page.push(table);
    }
}

/// A difference with its verdict.
fn judged(figure: &Figure) -> Cell {
    let verdict = match figure.is_not_significant() {
        true => ", not significant",
        false => "",
    };
    Cell::figure(figure).shown_as(format!("{}{verdict}", figure.amount()))
}

/// The comparisons, in 2002 and now.
fn shapes(document: &Document) -> Vec<[String; 3]> {
    let Ok([geom, mbr, bsd, control]) = published::steps() else { return Vec::new() };
    let now = |id: &str| {
        let figure = document.figure(id);
        figure.map_or_else(|| "not measured".to_owned(), Figure::amount)
    };
    let mut rows = vec![[
        "GEOM itself, of the time without it".to_owned(),
        share(&geom),
        now("geom.share"),
    ]];
    let layers = document.subject.chain.iter().skip(1);
    for (then, link) in [&mbr, &bsd].into_iter().zip(layers) {
        let what = format!("one more layer ({})", link.class.to_lowercase());
        rows.push([what, share(then), now(&format!("layer.{}", link.provider))]);
    }
    rows.push([
        "the control (/dev/zero)".to_owned(),
        share(&control),
        now("control"),
    ]);
    rows
}

/// `23 % (5,021 +- 257 ns)`.
fn share(step: &Step) -> String {
    let verdict = if step.is_significant() {
        ""
    } else {
        ", not significant"
    };
    format!("{:.1} % ({}{verdict})", step.percent(), step.amount())
}

/// The shapes of 2002, and the mail's rows under both judgements.
fn then_and_now(page: &mut Page, document: &Document) {
    page.heading("Then and now");
    page.paragraph(
        "The mail of 6 October 2002 measured a kernel on a 700 MHz Athlon. Shapes can be compared, \
         times cannot; there is no verdict across machines.",
    );
    let mut table = Table::new("", ["what", "2002", "now"].map(Column::text));
    for row in shapes(document) {
        table.row(row.map(Cell::text));
    }
    page.push(table);
    let Ok(steps) = published::steps() else { return };
    let columns = [
        "2002",
        "as ministat judges",
        "without equal spreads",
        "verdict",
    ];
    let title = "The mail of 2002 judged: its own rows, from number, average and deviation, 95 %";
    let mut table = Table::new(title, columns.map(Column::text));
    for step in &steps {
        let verdict = if step.is_significant() {
            "significant"
        } else {
            "not significant"
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

/// Every case: its typical time, and the smallest and the largest process.
fn every_case(page: &mut Page, times: &Observed) {
    let columns = [Column::text("case"), Column::number("time", "ns")];
    let columns = columns.into_iter();
    let columns = columns.chain(["min", "max"].map(|name| Column::number(name, "ns")));
    let mut table = Table::new("", columns);
    for name in times.cases() {
        let Some(spread) = times.typical(name) else { continue };
        let interval = spread.interval();
        let ends = [spread.sorted().first(), spread.sorted().last()];
        let ends = ends.map(|end| end.map_or(Cell::empty(), |end| Cell::number(*end, 2)));
        let [least, most] = ends;
        table.row([Cell::text(name), Cell::interval(&interval, 2), least, most]);
    }
    if !table.rows.is_empty() {
        page.heading("Every case");
        page.push(table);
    }
}
