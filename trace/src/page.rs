//! A trace as a page: for the terminal, for Markdown, CSV and HTML.

use crate::figures::{PERCENTS, Traced, range};
use crate::session::Sample;
use crate::uring::UringFigures;
use crate::workers::WorkerFigures;
use ugeom_measure::Interval;
use ugeom_measure::units::grouped;
use ugeom_report::text::counted;
use ugeom_report::{Axis, Cell, Column, Page, Rows, Table};

/// The page of a trace.
pub fn page(traced: &Traced) -> Page {
    let targets = traced.targets.join(", ");
    let asked = traced.targets.join(" ");
    let mut page = Page::new("trace", &format!("ugeom trace {asked}"));
    page.question = format!("where does the time of requests to {targets} go?");
    page.answer = answer(traced);
    page.fact("source", traced.source.clone());
    page.fact(
        "measured",
        format!("{} requests in {:.2} s", traced.requests, traced.seconds),
    );
    if let Some(sample) = &traced.sample {
        page.fact("sample", sampled(sample));
    }
    let failed = traced.layers.iter().filter(|layer| layer.failed > 0);
    for layer in failed {
        let (count, name) = (grouped(layer.failed), &layer.name);
        page.fact("errors", format!("{count} requests of {name} failed"));
    }
    for warning in traced.warnings() {
        page.fact("warning", format!("{warning}."));
    }
    if traced.requests == 0 {
        return page;
    }
    page.heading("Layers");
    page.push(layers(traced));
    page.paragraph(sum(traced));
    page.heading("Phases of each layer");
    page.push(phases(traced));
    let mut bars = Rows::bars("Exclusive time", Axis::linear("time", "us"), ["mean"]);
    for layer in &traced.layers {
        let name = format!("{}{}", "  ".repeat(layer.depth), layer.name);
        bars.row(
            &name,
            [Some(Interval::exact(layer.exclusive_mean_ns / 1e3, 0.95))],
        );
    }
    page.push(bars);
    if !traced.workers.is_empty() {
        page.heading("Workers of loop devices");
        page.push(workers(&traced.workers));
    }
    if !traced.urings.is_empty() {
        page.heading("Requests of io_urings");
        page.push(urings(&traced.urings));
    }
    who(&mut page, traced);
    page.heading("Events compared with diskstats");
    page.push(checks(traced));
    page
}

/// Processes, and requests that did not come through the traced devices.
fn who(page: &mut Page, traced: &Traced) {
    if !traced.processes.is_empty() {
        page.heading("Processes");
        let columns = [
            Column::number("pid", ""),
            Column::text("name"),
            Column::number("requests", ""),
            Column::number("mean", "us"),
        ];
        let mut table = Table::new("", columns);
        for process in &traced.processes {
            table.row([
                Cell::count(u64::from(process.pid)).shown_as(process.pid.to_string()),
                Cell::text(&process.name),
                Cell::count(process.requests),
                Cell::number(process.mean_ns / 1e3, 1),
            ]);
        }
        page.push(table);
    }
    if !traced.files.is_empty() {
        page.heading("Files");
        let columns = [
            Column::number("requests", ""),
            Column::number("mean", "us"),
            Column::text("file"),
        ];
        let mut table = Table::new("", columns);
        for file in &traced.files {
            let name = match file.name.as_str() {
                "" => "(none)",
                name => name,
            };
            let mean = Cell::number(file.mean_ns / 1e3, 1);
            table.row([Cell::count(file.requests), mean, Cell::text(name)]);
        }
        page.push(table);
    }
    if !traced.others.is_empty() {
        page.heading("Other requests to the devices below");
        let mut table = Table::headed("", "device", "requests | mean (us)");
        for other in &traced.others {
            let mean = Cell::number(other.mean_ns / 1e3, 1);
            table.row([Cell::text(&other.name), Cell::count(other.requests), mean]);
        }
        page.push(table);
    }
}

fn answer(traced: &Traced) -> String {
    let most = traced
        .layers
        .iter()
        .max_by(|a, b| a.share_percent.total_cmp(&b.share_percent));
    match most {
        Some(layer)
            if traced.requests > 0 && traced.wake_up.share_percent > layer.share_percent =>
        {
            format!(
                "A request takes {:.1} us on average; for {:.0} % of that its thread waits for a \
                 processor, after the request has completed.",
                traced.mean_ns / 1e3,
                traced.wake_up.share_percent
            )
        }
        Some(layer) if traced.requests > 0 => format!(
            "A request takes {:.1} us on average; {:.0} % of that is spent in {}.",
            traced.mean_ns / 1e3,
            layer.share_percent,
            layer.name
        ),
        _ => format!(
            "No request to {} completed in {:.1} s.",
            traced.targets.join(", "),
            traced.seconds
        ),
    }
}

/// `of the 5,000 requests that diskstats counted, those of 31 windows ...`.
fn sampled(sample: &Sample) -> String {
    let Sample {
        windows, event_ns, ..
    } = sample;
    format!(
        "of the {} requests that diskstats counted, those of {}, {:.1} % of \
         the time; recording took about {:.2} % of the time of a processor at {event_ns:.0} ns per \
         event ({} % allowed)",
        grouped(sample.counted),
        counted(*windows, "window"),
        sample.recorded_percent,
        sample.cost_percent,
        sample.allowed_percent
    )
}

fn layers(traced: &Traced) -> Table {
    let mut table = Table::headed(
        "",
        "layer",
        "requests | inclusive (us) | exclusive (us) | share (%) | median (us) | \
         99 % (us) | 99.9 % (us)",
    );
    for layer in &traced.layers {
        let name = format!("{}{}", "  ".repeat(layer.depth), layer.name);
        let cells = [
            Cell::text(name),
            Cell::count(layer.requests),
            Cell::number(layer.inclusive_mean_ns / 1e3, 2),
            Cell::number(layer.exclusive_mean_ns / 1e3, 2),
            Cell::number(layer.share_percent, 1),
        ];
        let percentiles = percentiles(&layer.exclusive_percentiles_ns);
        table.row(cells.into_iter().chain(percentiles));
    }
    let wake_up = &traced.wake_up;
    if wake_up.requests > 0 {
        let cells = [
            Cell::text("wake-up of the thread"),
            Cell::count(wake_up.requests),
            Cell::empty(),
            Cell::number(wake_up.whole_ns as f64 / 1e3 / wake_up.requests as f64, 2),
            Cell::number(wake_up.share_percent, 1),
        ];
        table.row(
            cells
                .into_iter()
                .chain(percentiles(&wake_up.percentiles_ns)),
        );
    }
    table
}

fn percentiles(found: &[(f64, [u64; 3])]) -> impl Iterator<Item = Cell> {
    PERCENTS.into_iter().map(|percent| {
        let one = found.iter().find(|(of, _)| *of == percent);
        one.map_or_else(|| Cell::text("n too small"), |(_, values)| between(*values))
    })
}

/// Where workers ran, as the lab shows it, too.
pub fn workers(all: &[WorkerFigures]) -> Table {
    let mut table = Table::headed("", "device", "starts | on the submitter's processor (%)");
    for one in all {
        let share = 100.0 * one.same_processor as f64 / one.starts.max(1) as f64;
        table.row([
            Cell::text(&one.device),
            Cell::count(one.starts),
            Cell::number(share, 1),
        ]);
    }
    table
}

/// The waiting times of io_uring requests; the parts add up to the whole.
fn urings(all: &[UringFigures]) -> Table {
    let mut table = Table::headed(
        "",
        "executed by",
        "requests | whole (us) | before (us) | wait for worker (us) | devices (us) | \
         result (us)",
    );
    for one in all {
        let mean = |ns: u64| Cell::number(ns as f64 / 1e3 / one.requests.max(1) as f64, 2);
        table.row([
            Cell::text(match one.workers {
                true => "a worker (io-wq)",
                false => "the submitter",
            }),
            Cell::count(one.requests),
            mean(one.whole_ns()),
            mean(one.before_ns),
            mean(one.queued_ns),
            mean(one.devices_ns),
            mean(one.after_ns),
        ]);
    }
    table
}

/// `12.1 (11.9 to 12.4)`, `2,933 (473 to 9,896)`, us.
fn between([low, value, high]: [u64; 3]) -> Cell {
    let us = |ns: u64| ns as f64 / 1e3;
    let interval = Interval {
        estimate: us(value),
        low: us(low),
        high: us(high),
        confidence: 0.95,
    };
    // Long times in whole microseconds: the table is wide.
    let decimals = if interval.high < 100.0 { 1 } else { 0 };
    Cell::interval(&interval, decimals)
}

fn sum(traced: &Traced) -> String {
    let remainder = traced.whole_ns.abs_diff(traced.parts_ns) as f64;
    let each = 1e3 * traced.requests.max(1) as f64;
    format!(
        "Exclusive times add up to {:.2} us of the {:.2} us of a request (remainder {:.2} us); \
         {:.1} % of the time belongs to requests with several possible parents.",
        traced.parts_ns as f64 / each,
        traced.whole_ns as f64 / each,
        remainder / each,
        traced.ambiguous_percent,
    )
}

fn phases(traced: &Traced) -> Table {
    let mut table = Table::headed("", "layer | phase", "mean (us) | share (%)");
    for layer in &traced.layers {
        for (phase, ns) in &layer.phases_ns {
            table.row([
                Cell::text(&layer.name),
                Cell::text(phase.word()),
                Cell::number(*ns as f64 / 1e3 / layer.requests.max(1) as f64, 2),
                Cell::number(100.0 * *ns as f64 / traced.whole_ns.max(1) as f64, 1),
            ]);
        }
    }
    table
}

fn checks(traced: &Traced) -> Table {
    let columns = [
        Column::text("device"),
        Column::number("reads seen", ""),
        Column::text("reads counted"),
        Column::number("writes seen", ""),
        Column::text("writes counted"),
        Column::text("agrees"),
    ];
    let mut table = Table::new("", columns);
    for check in &traced.checks {
        table.row([
            Cell::text(&check.device),
            Cell::count(check.reads_seen),
            Cell::text(range(check.reads_counted)),
            Cell::count(check.writes_seen),
            Cell::text(range(check.writes_counted)),
            Cell::text(if check.agrees() { "yes" } else { "NO" }),
        ]);
    }
    table
}
