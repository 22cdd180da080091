//! The verdicts: each method against libaio, each scheduler against the one that was set.

use super::ratios;
use crate::engines::findings::AGREE;
use crate::engines::methods::Method;
use crate::engines::subject::Document;
use ugeom_harness::figure::Figure;
use ugeom_report::{Axis, Cell, Column, Page, Rows, Seen, Table};

/// The verdict of a ratio to `base`.
fn verdict(figure: &Figure, base: &str) -> String {
    let interval = &figure.interval;
    if interval.lies_within(1.0 - AGREE, 1.0 + AGREE) {
        "the same within 10 %".to_owned()
    } else if figure.is_not_significant() {
        "not significant".to_owned()
    } else if figure.significant.is_none() {
        "too few processes to judge".to_owned()
    } else if interval.estimate > 1.0 {
        format!("faster than {base}")
    } else {
        format!("slower than {base}")
    }
}

pub(super) fn pairs(page: &mut Page, document: &Document) {
    page.heading("Engines against libaio");
    let columns = ["pair", "ratio", "verdict"].map(Column::text);
    let mut table = Table::new("IOPS of each engine relative to libaio", columns);
    let pairs = document.figures.iter();
    for figure in pairs.filter(|figure| figure.id.starts_with("iops.")) {
        table.row([
            Cell::text(figure.id.trim_start_matches("iops.").replace('.', ", ")),
            Cell::figure(figure),
            Cell::text(verdict(figure, "libaio")),
        ]);
    }
    page.push(table);
    let others = Method::ALL
        .into_iter()
        .filter(|method| *method != Method::Libaio);
    let title = "IOPS as a multiple of libaio's, with intervals";
    page.push(ratios_plot(document, title, others));
}

/// The ratio that the answer is about.
pub(super) fn picture(document: &Document) -> Rows {
    let title = "IOPS of GUASI's threads as a multiple of libaio's";
    ratios_plot(document, title, [Method::Workers])
}

/// The ratios, a row a depth and a series a method.
fn ratios_plot(
    document: &Document,
    title: &str,
    methods: impl IntoIterator<Item = Method>,
) -> Rows {
    let methods: Vec<Method> = methods.into_iter().collect();
    let others = || methods.iter().copied();
    let axis = Axis::linear("IOPS relative to libaio", "x");
    let mut rows = Rows::points(title, axis, others().map(Method::name));
    for &depth in &document.subject.depths {
        let of = |method: Method| {
            let ending = format!(".{depth}");
            let mut figures = ratios(document, method).into_iter();
            let found = figures.find(|figure| figure.id.ends_with(&ending));
            found.map(Seen::from)
        };
        rows.row(&format!("queue depth {depth}"), others().map(of));
    }
    rows.mark("10 % less", 1.0 - AGREE);
    rows.mark("10 % more", 1.0 + AGREE);
    rows
}

/// The effect of the schedulers; nothing where only one was tried.
pub(super) fn schedulers(page: &mut Page, document: &Document) {
    let Some((before, others)) = document.subject.schedulers.split_first() else { return };
    page.heading("Schedulers");
    page.paragraph(format!(
        "The device's scheduler was {before}, and is again; the job was repeated with {}. In 2007 \
         schedulers made no difference.",
        others.join(", ")
    ));
    let columns = ["scheduler", "engine, depth", "ratio", "verdict"].map(Column::text);
    let title = format!("IOPS relative to those with {before}");
    let mut table = Table::new(&title, columns);
    for scheduler in others {
        let prefix = format!("scheduler.{scheduler}.");
        let figures = document.figures.iter();
        for figure in figures.filter(|figure| figure.id.starts_with(&prefix)) {
            table.row([
                Cell::text(scheduler),
                Cell::text(figure.id[prefix.len()..].replace('.', ", ")),
                Cell::figure(figure),
                Cell::text(verdict(figure, before)),
            ]);
        }
    }
    page.push(table);
}
