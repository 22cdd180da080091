//! The section of the report about what the caches counted.

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
        let title = "Everything is in memory: blocks, over all reads of all sizes and orders";
        page.push(table(title, &hits));
    }
    if !recycled.is_empty() {
        let title = "Buffers are recycled: blocks, over all reads of all sizes";
        page.push(table(title, &recycled));
    }
    let dirty_bytes = rows.iter().map(|row| row.dirty_bytes).max();
    page.paragraph(format!(
        "Ahead are the blocks that were read before they were asked for; of these some were \
         used, some were dropped unused (wasted), and the rest was in the cache at \
         the end. What is left of one order when its run ends is used or dropped while another \
         order runs, and counted there. Nothing is written while this is measured: the most that \
         was dirty at the end of a run are {} bytes.",
        dirty_bytes.unwrap_or(0)
    ));
}

/// What is printed in a row each.
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

/// What reading ahead of a sequential reader has brought, in words.
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
        "Over this memory disk of {}, reading ahead of a sequential reader makes {} of the speed \
         without for reads of 4 KiB and {} for reads of 16 KiB. Of {} blocks that were read ahead \
         in all orders {:.1} % were used and {:.1} % wasted; at random {:.1} were read ahead for \
         100 that were missed. Memory answers at once, so that there is hardly a wait that \
         reading ahead could take away; it is for devices that answer late.",
        size_human(document.subject.recycled_media_bytes),
        factor("4k"),
        factor("16k"),
        grouped(all.readahead),
        share(all.readahead_used, all.readahead),
        share(all.readahead_wasted, all.readahead),
        share(random.readahead, random.misses),
    )
}
