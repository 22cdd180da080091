//! The counters of the caches while cases read through them: from their geoms' own figures, before
//! and after each run, outside the time that is measured.

use super::names;
use super::orders::Order;
use super::subject::Counted;
use std::sync::Arc;
use ugeom_harness::Case;
use ugeom_machine::mutex::Mutex;
use ugeom_stack::Stack;

/// The counts of all caches, by part, way and order.
#[derive(Clone, Default)]
pub struct Ledger {
    rows: Arc<Mutex<Vec<Counted>>>,
}

impl Ledger {
    /// The counts so far, in the order in which the cases were made.
    pub fn rows(&self) -> Vec<Counted> {
        self.rows.lock().clone()
    }

    /// The same case, with the counts of the cache in `stack` under this part, way and order.
    pub fn count(
        &self,
        part: &str,
        way: &str,
        order: Order,
        stack: &Stack,
        mut case: Case<'static>,
    ) -> Case<'static> {
        let empty = Counted {
            part: part.to_owned(),
            way: way.to_owned(),
            order: Some(order),
            ..Counted::default()
        };
        let mut rows = self.rows.lock();
        let same = rows.iter().position(|row| row.is_of(&empty));
        let at = same.unwrap_or_else(|| {
            rows.push(empty);
            rows.len() - 1
        });
        drop(rows);
        let (ledger, stack) = (self.clone(), stack.clone());
        let mut run = case.run;
        case.run = Box::new(move |iterations| {
            let before = Counted::now(&stack);
            let result = run(iterations);
            ledger.rows.lock()[at].add(&before, &Counted::now(&stack));
            result
        });
        case
    }
}

impl Counted {
    /// Both have the same part, way and order.
    pub fn is_of(&self, other: &Self) -> bool {
        (&self.part, &self.way, self.order) == (&other.part, &other.way, other.order)
    }

    /// The counts of a stack's cache since it began.
    fn now(stack: &Stack) -> Self {
        let tree = stack.tree();
        let cache = tree.geoms.iter().find(|geom| geom.class == names::CACHE);
        let fact = |name: &str| cache?.fact(name)?.parse().ok();
        let count = |name: &str| fact(name).unwrap_or(0);
        Self {
            hits: count("hits"),
            misses: count("misses"),
            evictions: count("evictions"),
            readahead: count("readahead"),
            readahead_used: count("readahead_used"),
            readahead_wasted: count("readahead_wasted"),
            // A cache that writes through has no such figure: nothing of it is ever dirty.
            dirty_bytes: count("dirty"),
            ..Self::default()
        }
    }

    /// Adds the counts between two moments, and keeps the largest number of dirty blocks.
    pub fn add(&mut self, before: &Self, after: &Self) {
        self.hits += after.hits.saturating_sub(before.hits);
        self.misses += after.misses.saturating_sub(before.misses);
        self.evictions += after.evictions.saturating_sub(before.evictions);
        self.readahead += after.readahead.saturating_sub(before.readahead);
        self.readahead_used += after.readahead_used.saturating_sub(before.readahead_used);
        self.readahead_wasted += after
            .readahead_wasted
            .saturating_sub(before.readahead_wasted);
        self.dirty_bytes = self.dirty_bytes.max(after.dirty_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::super::reading;
    use super::*;
    use std::time::{Duration, Instant};
    use ugeom_classes::{Target, TargetOptions, open_target};

    fn opened(text: &str) -> Target {
        let options = TargetOptions::untasted().for_writing();
        open_target(text, &options).unwrap()
    }

    #[test]
    fn each_order_has_its_own_row_and_sizes_share_it() {
        // Half of the media fits.
        let target = opened("md:4m | cache:2m,block=16k,readahead=off");
        let ledger = Ledger::default();
        let mut cases = Vec::new();
        for read_bytes in [4096, 16384] {
            for order in [Order::Sequential, Order::Shuffled] {
                let places = order.places(4 << 20, read_bytes, 3);
                let (stack, top) = (&target.stack, target.top);
                let name = format!("{read_bytes} {order:?}");
                let case = reading::by_stack(&name, stack, top, places, read_bytes).unwrap();
                cases.push(ledger.count("recycled", "hash 16k", order, stack, case));
            }
        }
        // One pass over all of the media, in sequence, 4 KiB at a time.
        (cases[0].run)(1024).unwrap();
        let rows = ledger.rows();
        assert_eq!(rows.len(), 2);
        let first = &rows[0];
        assert_eq!(first.order, Some(Order::Sequential));
        assert_eq!((first.misses, first.hits), (256, 1024 - 256));
        assert_eq!(first.evictions, 256 - 128);
        assert_eq!((rows[1].hits, rows[1].misses), (0, 0));
        (cases[2].run)(256).unwrap();
        let rows = ledger.rows();
        assert_eq!(rows[0].hits + rows[0].misses, 1024 + 256);
        assert_eq!((rows[0].readahead, rows[0].dirty_bytes), (0, 0));
    }

    #[test]
    fn what_is_read_ahead_and_what_is_dirty_is_counted() {
        let target = opened("md:4m | cache:2m,block=16k,write=back,idle=999s,age=999s");
        let stack = &target.stack;
        let opened = stack.open(target.top, ugeom_stack::Delta::READ_WRITE);
        let opened = opened.unwrap();
        let mut channel = stack.channel(1).unwrap();
        channel.write(&opened, 0, &[1; 16384]).unwrap();
        let places = Order::Sequential.places(4 << 20, 16384, 3);
        let case = reading::by_stack("all", stack, target.top, places, 16384).unwrap();
        let ledger = Ledger::default();
        let mut case = ledger.count("recycled", "back", Order::Sequential, stack, case);
        // How far the thread that reads ahead gets in one pass is for the system to decide.
        let give_up = Instant::now() + Duration::from_secs(60);
        let row = loop {
            (case.run)(256).unwrap();
            let row = ledger.rows().remove(0);
            if row.readahead_used > 0 || Instant::now() > give_up {
                break row;
            }
        };
        assert_eq!(row.dirty_bytes, 16384);
        assert!(row.misses >= 2 && row.readahead_used > 0, "{row:?}");
        assert!(row.readahead_used <= row.hits, "{row:?}");
        assert!(row.readahead_used <= row.readahead, "{row:?}");
    }
}
