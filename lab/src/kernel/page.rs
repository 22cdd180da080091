//! The page of the experiment.

use super::{Case, Costs, KernelLayers};
use ugeom_measure::Interval;
use ugeom_report::{Cell, Column, Page, Table};

/// Makes the page of a result.
#[must_use]
pub fn page(result: &KernelLayers) -> Page {
    let target = &result.target;
    let mut page = Page::new("kernel", &format!("ugeom lab layers --kernel {target}"));
    page.question = format!("What does each of the kernel's layers below {target} cost?");
    page.answer = answer(result);
    page.host(&result.host);
    page.fact("seed", result.seed.to_string());
    for left_out in &result.left_out {
        page.fact("left out", left_out.clone());
    }
    page.list([
        "added: the difference to the layer below within rounds, with its 95 % interval. It is \
         negative where a layer makes the wake-ups below it cheaper",
        "kept awake: threads of the idle class keep the processors from sleeping, so that a worker \
         is not woken on a processor that sleeps",
        "system-wide CPU time is counted in ticks of usually 4 or 10 ms; while processors are kept \
         awake it says nothing and is not shown",
        "in 2002 GEOM cost 5 us a read and each slicer 0.8 us, on a processor of 700 MHz",
    ]);
    for case in &result.cases {
        page.heading(&title(case));
        page.push(table(case));
    }
    page
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

fn answer(result: &KernelLayers) -> String {
    let case = result
        .cases
        .iter()
        .rev()
        .find(|case| case.awake && case.depth == 1);
    let Some(case) = case else {
        return "Nothing was measured with the processors kept awake.".to_owned();
    };
    let added = case.rows.iter().filter_map(|row| {
        let wall = row.added.as_ref()?.wall_ns?;
        let [estimate, low, high] = [wall.estimate, wall.low, wall.high].map(|ns| ns / 1e3);
        let verdict = match low > 0.0 || high < 0.0 {
            true => String::new(),
            false => format!(", not significant{}", needed(&wall, case.rounds)),
        };
        let name = &row.name;
        Some(format!(
            "{name} adds {estimate:.2} us ({low:.2} to {high:.2}{verdict})"
        ))
    });
    let added: Vec<String> = added.collect();
    match added.is_empty() {
        true => format!(
            "The chain of {} has one layer that can be read.",
            result.target
        ),
        false => format!(
            "A read of {} bytes at queue depth 1, processors kept awake: {}.",
            case.bytes,
            added.join(", ")
        ),
    }
}

/// What would tell a difference from nothing: an interval shrinks with the root of the rounds.
pub(super) fn needed(wall: &Interval, rounds: usize) -> String {
    let times = (wall.half_width() / wall.estimate.abs()).powi(2);
    let needed = times * rounds as f64;
    match needed < 1e6 {
        true => format!("; about {needed:.0} rounds of these would tell"),
        false => "; on this device no number of rounds would tell, one in memory may".to_owned(),
    }
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
    if !case.awake {
        columns.push(Column::number("added, system-wide CPU", "us"));
    }
    let mut table = Table::new("", columns);
    for row in &case.rows {
        let added = |of: fn(&Costs) -> Option<Interval>| {
            let interval = row.added.as_ref().and_then(of);
            interval.map_or_else(Cell::empty, |interval| us(&interval))
        };
        table.row([
            Cell::text(&row.name),
            Cell::text(&row.class),
            row.read
                .wall_ns
                .map_or_else(Cell::empty, |interval| us(&interval)),
            added(|costs| costs.wall_ns),
            row.share_percent
                .map_or_else(Cell::empty, |share| Cell::number(share, 1)),
            added(|costs| costs.caller_ns),
            added(|costs| costs.machine_ns),
        ]);
    }
    table
}

fn us(interval: &Interval) -> Cell {
    Cell::interval(&interval.scaled(1e-3), 2)
}
