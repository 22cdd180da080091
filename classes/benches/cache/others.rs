//! Caches for values of any kind, with a value of 4 KiB a key: time of a hit, and hit ratios.
//! `foyer` is not among them: version 0.22 brings 83 crates, with tokio among them, for a cache in
//! memory, and this repository does without an async runtime.

use super::hits::{BYTES, Warm, order, reader};
use super::policies::Policy;
use super::ratios::{Ours, percent, traces};
use super::rounds::{Work, measure};
use std::sync::Arc;
use ugeom_classes::cache::index::hash::Hash;

const SIZE: usize = 4096;
const ROOM: u64 = 10_000;

struct Moka(moka::sync::Cache<u64, ()>);

impl Policy for Moka {
    fn access(&mut self, key: u64) -> bool {
        let hit = self.0.get(&key).is_some();
        if !hit {
            self.0.insert(key, ());
        }
        hit
    }
}

struct Quick(quick_cache::sync::Cache<u64, ()>);

impl Policy for Quick {
    fn access(&mut self, key: u64) -> bool {
        let hit = self.0.get(&key).is_some();
        if !hit {
            self.0.insert(key, ());
        }
        hit
    }
}

/// Work that gets one value after the other and copies it.
fn gets<'a>(order: &'a [u32], get: impl Fn(u64) -> Arc<[u8]> + 'a) -> Work<'a> {
    let (mut buffer, mut at) = (vec![1; SIZE], 0);
    Box::new(move |count| {
        for _ in 0..count {
            buffer.copy_from_slice(&get(u64::from(order[at])));
            std::hint::black_box(&buffer);
            at = (at + 1) % order.len();
        }
    })
}

pub fn run() {
    let count = BYTES / SIZE as u64;
    let order = order(count, 3);
    let value = || -> Arc<[u8]> { vec![3; SIZE].into() };
    let quick = quick_cache::sync::Cache::new(2 * count as usize);
    let moka = moka::sync::Cache::new(2 * count);
    for key in 0..count {
        quick.insert(key, value());
        moka.insert(key, value());
    }
    let warm = Warm::<Hash>::new(SIZE as u32);
    let measured = measure(
        vec![
            ("cache", reader(&warm, SIZE, &order)),
            (
                "quick_cache",
                gets(&order, |key| quick.get(&key).expect("resident")),
            ),
            (
                "moka",
                gets(&order, |key| moka.get(&key).expect("resident")),
            ),
        ],
        1 << 15,
    );
    measured.print();
    measured.ratio("quick_cache", "cache", "none");
    measured.ratio("moka", "cache", "none");
    println!(
        "\n{:<28} {:>8} {:>12} {:>8}",
        "hits in percent", "ours", "quick_cache", "moka"
    );
    for (name, trace) in traces() {
        let mut ours = Ours::new(ROOM as usize);
        let mut quick = Quick(quick_cache::sync::Cache::new(ROOM as usize));
        let mut moka = Moka(moka::sync::Cache::new(ROOM));
        println!(
            "{name:<28} {:>8.2} {:>12.2} {:>8.2}",
            percent(&mut ours, &trace),
            percent(&mut quick, &trace),
            percent(&mut moka, &trace)
        );
    }
}
