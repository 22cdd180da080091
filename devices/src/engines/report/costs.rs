//! The cost of an engine itself, and of making any call asynchronous.

use super::{a_request, samples};
use crate::engines::cost::{self, CACHED, CALLS};
use crate::engines::findings::{cost_id, described};
use crate::engines::subject::Document;
use ugeom_report::{Cell, Page, Table};

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
    let mut words = described(call).chars();
    let first = words.next().map_or('A', |first| first.to_ascii_uppercase());
    let title = format!("{first}{}", words.as_str());
    let columns =
        "queue depth | time (ns) | CPU (ns) | context switches | speed-up over inline (x)";
    let mut table = Table::headed(&title, "engine", columns);
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
