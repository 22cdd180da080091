//! What an engine costs by itself, and what it costs to make any call asynchronous.

use super::{a_request, samples};
use crate::engines::cost::{self, CACHED, CALLS};
use crate::engines::findings::{cost_id, described};
use crate::engines::subject::Document;
use ugeom_report::{Cell, Column, Page, Table};

pub(super) fn engine(page: &mut Page, document: &Document) {
    page.heading("What an engine costs by itself");
    page.paragraph(
        "One call at each queue depth. GUASI has two threads that poll before they sleep, or \
         (-parked) sleep immediately. `inline` is the call without an engine.",
    );
    for call in [CALLS[0].name, CACHED] {
        table(page, document, call);
    }
}

pub(super) fn any_call(page: &mut Page, document: &Document) {
    page.heading("Any call");
    page.paragraph(
        "GUASI makes any call asynchronous, which the kernel's interfaces do not. Its cost is the \
         difference to the same calls made inline; in return the caller continues and calls run on \
         other cores.",
    );
    for call in &CALLS[1..] {
        table(page, document, call.name);
    }
}

fn table(page: &mut Page, document: &Document, call: &'static str) {
    let columns = [
        Column::text("engine"),
        Column::number("queue depth", ""),
        Column::number("time", "ns"),
        Column::number("CPU", "ns"),
        Column::number("context switches", ""),
        Column::number("speed-up over inline", "x"),
    ];
    let mut words = described(call).chars();
    let first = words.next().map_or('A', |first| first.to_ascii_uppercase());
    let mut table = Table::new(&format!("{first}{}", words.as_str()), columns);
    for one in cost::all().iter().filter(|one| one.call == call) {
        let Some(figure) = document.figure(&cost_id(call, &one.method, one.depth)) else {
            continue;
        };
        let samples = samples(document, &one.case());
        let id = format!("any.{call}.{}.{}", one.method, one.depth);
        table.row([
            Cell::text(&one.method),
            Cell::count(u64::from(one.depth)),
            Cell::interval(&figure.interval, 0),
            Cell::number(a_request(&samples, |sample| sample.cpu.process_ns), 0),
            Cell::number(a_request(&samples, |sample| sample.cpu.switches()), 3),
            document
                .figure(&id)
                .map_or_else(Cell::empty, |ratio| Cell::interval(&ratio.interval, 2)),
        ]);
    }
    page.push(table);
}
