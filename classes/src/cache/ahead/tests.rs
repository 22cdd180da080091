//! Tests of read-ahead through a stack: the reads below, and the counters.

use crate::cache::Cache;
use crate::cache::counts::Totals;
use crate::cache::index::hash::Hash;
use crate::{Target, TargetOptions, open_target};
use std::sync::Arc;
use ugeom_stack::{Channel, Delta, Geom, Opened, Plan, ProviderPlan};

const BLOCK: u64 = 4096;

/// A cache of so many buffers over a target, which reads up to 16 blocks ahead.
struct Ahead {
    below: Target,
    cache: Arc<Cache<Hash>>,
    channel: Channel,
    opened: Opened,
}

impl Ahead {
    fn over(text: &str, buffers: u32) -> Self {
        let options = TargetOptions::untasted().for_writing();
        let below = open_target(text, &options).expect("a device");
        let tree = below.stack.tree();
        let mut providers = tree.geoms.iter().flat_map(|geom| &geom.providers);
        let media = providers.find(|provider| provider.id == below.top);
        let mediasize_bytes = media.expect("the top").mediasize_bytes;
        let cache = Cache::<Hash>::new(buffers, BLOCK as u32, mediasize_bytes).expect("memory");
        let cache = Arc::new(cache.reading_ahead(16));
        cache.begin_reading_ahead().expect("a thread");
        let plan = Plan::of(
            ProviderPlan::new("cache", mediasize_bytes, 512),
            Arc::clone(&cache) as Arc<dyn Geom>,
        );
        let made = below.stack.create("CACHE", plan, &[below.top]);
        let top = made.expect("a cache")[0];
        let opened = below.stack.open(top, Delta::READ_WRITE).expect("opens");
        let channel = below.stack.channel(1).expect("a channel");
        Self {
            below,
            cache,
            channel,
            opened,
        }
    }

    /// Reads a block, and lets the thread finish the read-ahead after it.
    fn read(&mut self, block: u64) -> bool {
        let mut bytes = [0; BLOCK as usize];
        let read = self.channel.read(&self.opened, block * BLOCK, &mut bytes);
        let queue = self.cache.store.ahead.as_ref().expect("it reads ahead");
        queue.catch_up();
        read.is_ok()
    }

    fn totals(&self) -> Totals {
        self.cache.store.lanes.totals()
    }

    /// Bytes that the provider below was asked for.
    fn below_bytes(&self) -> u64 {
        let totals = self.below.stack.statistics(self.below.top);
        totals.expect("totals").bytes[0]
    }
}

#[test]
fn a_scan_misses_twice_and_reads_nothing_twice() {
    let mut ahead = Ahead::over("md:1m", 512);
    for block in 0..256 {
        assert!(ahead.read(block));
    }
    let totals = ahead.totals();
    assert_eq!((totals.misses, totals.hits), (2, 254));
    assert_eq!((totals.readahead, totals.readahead_used), (254, 254));
    assert_eq!(totals.readahead_wasted, 0);
    assert_eq!(ahead.below_bytes(), 1 << 20, "and never past the end");
}

#[test]
fn interleaved_scans_are_all_read_ahead() {
    let mut ahead = Ahead::over("md:4m", 1024);
    for block in 0..64 {
        for scan in 0..4 {
            assert!(ahead.read(scan * 256 + block));
        }
    }
    let totals = ahead.totals();
    assert_eq!((totals.misses, totals.readahead_used), (4 * 2, 4 * 62));
}

#[test]
fn random_reads_read_nothing_ahead() {
    let mut ahead = Ahead::over("md:64m", 512);
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..2_000 {
        // Even blocks only: by chance no two of them follow each other.
        assert!(ahead.read(random.u64(0..8192) * 2));
    }
    let totals = ahead.totals();
    assert_eq!((totals.readahead, totals.readahead_wasted), (0, 0));
}

#[test]
fn what_is_read_ahead_for_nobody_is_wasted_and_soon_not_read_any_more() {
    let mut ahead = Ahead::over("md:64m", 64);
    // Readers that stop after two blocks.
    for reader in 0..400 {
        assert!(ahead.read(reader * 40) && ahead.read(reader * 40 + 1));
    }
    let totals = ahead.totals();
    assert_eq!(totals.readahead_used, 0);
    assert!(totals.readahead_wasted > 0);
    // Each of them gets the first window while nothing is known; afterwards one block a reader, as
    // each second miss of a pair shows that it would have helped.
    assert!(totals.readahead < 400 * 2, "{}", totals.readahead);
}

#[test]
fn errors_of_read_ahead_reach_nobody_and_are_not_cached() {
    let mut ahead = Ahead::over("md:1m | nop:rfail=50%,seed=9", 512);
    let mut failed = 0;
    for block in 0..256 {
        // A direct reader gets its own errors, and may try again.
        while !ahead.read(block) {
            failed += 1;
        }
    }
    let totals = ahead.totals();
    assert!(failed > 0 && totals.readahead > 0);
    assert_eq!(totals.readahead, totals.readahead_used);
    assert_eq!(totals.misses + totals.readahead, 256 + failed);
}

#[test]
fn a_scan_that_is_read_ahead_does_not_flush_the_hot_set() {
    let mut ahead = Ahead::over("md:64m", 256);
    for _ in 0..4 {
        for hot in 0..128 {
            // Backwards: nothing about it is sequential.
            assert!(ahead.read(2 * (127 - hot)));
        }
    }
    for block in 1_000..3_000 {
        assert!(ahead.read(block));
    }
    let before = ahead.totals();
    for hot in 0..128 {
        assert!(ahead.read(2 * (127 - hot)));
    }
    let hits = ahead.totals().hits - before.hits;
    assert!(hits >= 120, "{hits} of 128 are still there");
}

#[test]
fn it_goes_away_with_its_stack() {
    let mut ahead = Ahead::over("md:1m", 512);
    for block in 0..32 {
        assert!(ahead.read(block));
    }
    let cache = Arc::downgrade(&ahead.cache);
    drop(ahead);
    // The thread drops its reference when it becomes idle.
    let started = std::time::Instant::now();
    while cache.upgrade().is_some() {
        assert!(
            started.elapsed().as_secs() < 60,
            "the cache is still referenced after 60 s"
        );
        std::thread::yield_now();
    }
}
