//! The section of the report about the caches' counters.

use super::names;
use super::orders::Order;
use super::subject::{Counted, Document, MAIN_BLOCK_BYTES, words};
use ugeom_measure::units::{grouped, size_human};
use ugeom_report::{Cell, Column, Page, Table as Printed};

/// The tables: of the hits all orders together, of the recycled buffers each order.
pub fn section(page: &mut Page, document: &Document) {
    let rows = rows(document);
    let (hits, recycled): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.is_of_hits());
    if !hits.is_empty() {
        let title = "Hits: blocks, over all sizes and orders";
        page.push(table(title, &hits));
    }
    if !recycled.is_empty() {
        let title = "Recycled buffers: blocks, over all sizes";
        page.push(table(title, &recycled));
    }
    let dirty_bytes = rows.iter().map(|row| row.dirty_bytes).max();
    page.paragraph(format!(
        "Blocks that were read ahead were used, dropped unused (wasted), or still in the cache at \
         the end. Those left by one order are counted in the order that follows. Nothing is \
         written: at most {} bytes were dirty at the end of a run.",
        dirty_bytes.unwrap_or(0)
    ));
}

/// The rows of the table.
fn rows(document: &Document) -> Vec<Counted> {
    let mut rows: Vec<Counted> = Vec::new();
    for counted in &document.subject.caches {
        let mut row = counted.clone();
        if counted.is_of_hits() {
            row.order = None;
        }
        let same = |other: &&mut Counted| row.is_of(other);
        match rows.iter_mut().find(same) {
            Some(sum) => sum.add(&Counted::default(), counted),
            None => rows.push(row),
        }
    }
    rows
}

fn table(title: &str, rows: &[&Counted]) -> Printed {
    let mut columns = vec![Column::text("cache"), Column::text("order")];
    let counts = ["hits", "misses", "evictions", "ahead", "used", "wasted"];
    columns.extend(counts.map(|name| Column::number(name, "")));
    let mut printed = Printed::new(title, columns);
    for row in rows {
        printed.row([
            Cell::text(&row.way),
            Cell::text(row.order.map_or("all", Order::word)),
            Cell::count(row.hits),
            Cell::count(row.misses),
            Cell::count(row.evictions),
            Cell::count(row.readahead),
            Cell::count(row.readahead_used),
            Cell::count(row.readahead_wasted),
        ]);
    }
    printed
}

/// The effect of read-ahead for a sequential reader, in words.
pub fn reading_ahead(document: &Document) -> String {
    let ahead = names::ahead(&names::class("hash", MAIN_BLOCK_BYTES));
    let caches = document.subject.caches.iter();
    let mut all = Counted::default();
    let mut random = Counted::default();
    for row in caches.filter(|row| !row.is_of_hits() && row.way == ahead) {
        all.add(&Counted::default(), row);
        if row.order == Some(Order::Shuffled) {
            random.add(&Counted::default(), row);
        }
    }
    if all.readahead == 0 {
        return String::new();
    }
    let share = |part: u64, of: u64| 100.0 * part as f64 / of.max(1) as f64;
    let factor = |size: &str| words(document, &format!("ahead.hash.16k.{size}"));
    format!(
        "Read-ahead over this memory disk of {}: sequential reads reach {} of their speed without \
         it at 4 KiB, and {} at 16 KiB. Of {} blocks read ahead in all orders, {:.1} % were used \
         and {:.1} % wasted; random reads: {:.1} blocks read ahead per 100 misses. Memory has no \
         latency that read-ahead could hide; slower devices have.",
        size_human(document.subject.recycled_media_bytes),
        factor("4k"),
        factor("16k"),
        grouped(all.readahead),
        share(all.readahead_used, all.readahead),
        share(all.readahead_wasted, all.readahead),
        share(random.readahead, random.misses),
    )
}
