//! The page of the experiment.

use super::{Case, Costs, Faithful, KernelLayers, RowFigures, TracedReads};
use ugeom_measure::Interval;
use ugeom_report::head::{TOO_FEW_RUNS, took_longer};
use ugeom_report::text::in_a_shell;
use ugeom_report::{Axis, Cell, Column, Page, Rows, Table};

/// Makes the page of a result.
pub fn page(result: &KernelLayers) -> Page {
    let mut page = Page::new("kernel", &asked(result));
    page.question = "what does each of the kernel's layers add to a read?".to_owned();
    "docs/trace.md".clone_into(&mut page.manual);
    let cases = &result.cases;
    let main = cases
        .iter()
        .rev()
        .find(|case| case.awake && case.depth == 1);
    page.answer = answer(result, main);
    page.brief = main.map_or_else(String::new, |case| added(case).join(", "));
    page.certainty = certainty(main);
    if let Some(case) = main {
        let mut summary = table(case);
        summary.title = title(case);
        page.summary = Some(summary);
        page.pictured(picture(case));
    }
    page.warnings = result.host.warnings();
    let overrun = |budget| took_longer(result.took_ns as f64, budget as f64, TOO_FEW_RUNS);
    page.warnings.extend(result.budget_ns.and_then(overrun));
    page.host(&result.host);
    page.fact("seed", result.seed.to_string());
    for left_out in &result.left_out {
        page.fact("left out", left_out.clone());
    }
    page.list([
        "added: the difference to the layer below within rounds: the median of the passes' \
         medians, with its CI. A pass opens all files anew. It is negative where a layer \
         makes the wake-ups below it cheaper",
        "kept awake: threads of the idle class keep the processors from sleeping, so that a worker \
         is not woken on a processor that sleeps. Beside other load these times are invalid",
        "system-wide CPU time is counted in ticks of usually 4 or 10 ms; while processors are kept \
         awake it is invalid and not shown",
        "exclusive, traced: the time in this layer and in none below it, of some more reads of the \
         uppermost layer while they are traced. A difference also holds what a layer changes below \
         it",
        "in 2002 GEOM cost 5 us per read and each slicer 0.8 us, on a processor of 700 MHz",
    ]);
    if let Some(found) = &result.faithful {
        let loops = found.loops;
        page.heading(&format!(
            "the program of 2002, {loops} loops, through the page cache"
        ));
        page.push(faithful(found));
    }
    for case in cases {
        page.heading(&title(case));
        page.push(table(case));
        if let Some(traced) = &case.traced {
            page.paragraph(sum(traced, case));
            if !traced.workers.is_empty() {
                page.push(ugeom_trace::page::workers(&traced.workers));
            }
        }
    }
    page
}

/// The exclusive times added up, beside what the differences add up to.
fn sum(traced: &TracedReads, case: &Case) -> String {
    let exclusive: f64 = traced.layers.iter().map(|layer| layer.exclusive_ns).sum();
    let top = case.rows.first().and_then(|row| row.read.wall_ns);
    let untraced = top.map_or_else(String::new, |wall| {
        format!("; without a trace it takes {:.2} us", wall.estimate / 1e3)
    });
    format!(
        "Traced: the exclusive times of {} reads add up to {:.2} us, with the wake-up of the \
         thread ({:.2} us) to {:.2} us; the time of the block layer is {:.2} us, of the caller \
         {:.2} us{untraced}.",
        traced.reads,
        exclusive / 1e3,
        traced.wake_up_ns / 1e3,
        (exclusive + traced.wake_up_ns) / 1e3,
        traced.kernel_ns / 1e3,
        traced.caller_ns / 1e3
    )
}

fn faithful(found: &Faithful) -> Table {
    let columns = [
        Column::text("layer"),
        Column::text("class"),
        Column::number("a loop", "ns"),
        Column::number("added", "ns"),
        Column::text("runs, ns"),
    ];
    let mut table = Table::new("", columns);
    for row in &found.rows {
        let cell = |interval: &Option<Interval>| {
            interval.map_or_else(Cell::empty, |interval| Cell::interval(&interval, 1))
        };
        let runs: Vec<String> = row.runs_ns.iter().map(|ns| format!("{ns:.0}")).collect();
        table.row([
            Cell::text(&row.name),
            Cell::text(&row.class),
            cell(&row.loop_ns),
            cell(&row.added_ns),
            Cell::text(runs.join(" ")),
        ]);
    }
    table
}

fn asked(result: &KernelLayers) -> String {
    match &result.in_memory_of {
        Some(named) => format!(
            "ugeom lab layers --kernel {} --bottom memory",
            in_a_shell(named)
        ),
        None => format!("ugeom lab layers --kernel {}", in_a_shell(&result.target)),
    }
}

fn title(case: &Case) -> String {
    let Case {
        bytes,
        depth,
        rounds,
        ..
    } = case;
    let condition = if case.awake {
        "processors kept awake"
    } else {
        "processors as they are"
    };
    format!("Reads of {bytes} bytes, queue depth {depth}, {condition}, {rounds} rounds")
}

/// The cost of each layer, in short: `loop0 adds 4.10 us (3.90 to 4.30)`.
fn added(case: &Case) -> Vec<String> {
    let of_row = |row: &RowFigures| {
        let wall = row.added.as_ref()?.wall_ns?;
        let [estimate, low, high] = [wall.estimate, wall.low, wall.high].map(|ns| ns / 1e3);
        let verdict = match low > 0.0 || high < 0.0 {
            true => String::new(),
            false => ", not significant; --bottom memory has less noise".to_owned(),
        };
        let name = &row.name;
        Some(format!(
            "{name} adds {estimate:.2} us ({low:.2} to {high:.2}{verdict})"
        ))
    };
    case.rows.iter().filter_map(of_row).collect()
}

fn answer(result: &KernelLayers, main: Option<&Case>) -> String {
    let faithful = result.faithful.as_ref().filter(|_| result.cases.is_empty());
    if let Some(found) = faithful {
        return faithful_answer(found);
    }
    let Some(case) = main else {
        return "No answer: nothing was measured with the processors kept awake.".to_owned();
    };
    let added = added(case);
    match added.is_empty() {
        true => format!("{} has one layer that can be read.", result.target),
        false => format!(
            "Reads of {} bytes at queue depth 1, processors kept awake: {}.",
            case.bytes,
            added.join(", ")
        ),
    }
}

fn faithful_answer(found: &Faithful) -> String {
    let loops = found.rows.iter().filter_map(|row| {
        let loop_ns = row.loop_ns?.estimate;
        Some(format!("{} {loop_ns:.0} ns", row.name))
    });
    format!(
        "A loop of the program of 2002 (lseek and read of 512 bytes, through the page cache) \
         takes: {}.",
        loops.collect::<Vec<String>>().join(", ")
    )
}

fn certainty(main: Option<&Case>) -> String {
    let case = main.filter(|case| case.rows.iter().any(|row| row.read.wall_ns.is_some()));
    case.map_or_else(
        || "stopped early".to_owned(),
        |case| {
            let (passes, rounds) = (case.passes, case.rounds);
            format!("{passes} passes of {rounds} rounds in all")
        },
    )
}

fn picture(case: &Case) -> Rows {
    let axis = Axis::linear("wall time of a read", "us");
    let mut bars = Rows::bars(&title(case), axis, [""]);
    for row in &case.rows {
        let wall = row.read.wall_ns.map(|wall| wall.scaled(1e-3));
        bars.row(&row.name, [wall]);
    }
    bars
}

fn table(case: &Case) -> Table {
    let mut columns = vec![
        Column::text("layer"),
        Column::text("class"),
        Column::number("a read", "us"),
        Column::number("added", "us"),
        Column::number("share of lowest", "%"),
        Column::number("added, caller's CPU", "us"),
    ];
    if case.traced.is_some() {
        columns.push(Column::number("exclusive, traced", "us"));
    }
    if !case.awake {
        columns.push(Column::number("added, system-wide CPU", "us"));
    }
    let mut table = Table::new("", columns);
    for row in &case.rows {
        let added = |of: fn(&Costs) -> Option<Interval>| {
            let interval = row.added.as_ref().and_then(of);
            interval.map_or_else(Cell::empty, |interval| us(&interval))
        };
        let mut cells = vec![
            Cell::text(&row.name),
            Cell::text(&row.class),
            row.read
                .wall_ns
                .map_or_else(Cell::empty, |interval| us(&interval)),
            added(|costs| costs.wall_ns),
            row.share_percent
                .map_or_else(Cell::empty, |share| Cell::number(share, 1)),
            added(|costs| costs.caller_ns),
        ];
        if let Some(traced) = &case.traced {
            cells.push(exclusive(traced, &row.name));
        }
        if !case.awake {
            cells.push(added(|costs| costs.machine_ns));
        }
        table.row(cells);
    }
    table
}

/// The exclusive time of a layer; a file is no layer that events tell of.
fn exclusive(traced: &TracedReads, name: &str) -> Cell {
    let mut layers = traced
        .layers
        .iter()
        .filter(|layer| layer.name == name)
        .peekable();
    match layers.peek() {
        Some(_) => Cell::number(layers.map(|layer| layer.exclusive_ns).sum::<f64>() / 1e3, 2),
        None => Cell::empty(),
    }
}

fn us(interval: &Interval) -> Cell {
    Cell::interval(&interval.scaled(1e-3), 2)
}
