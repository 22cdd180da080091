//! The buffers of the cache and their index without requests: several threads, hit ratios. Requests
//! stand in `cache_writeback`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use ugeom_classes::cache::Buffer;
use ugeom_classes::cache::index::Index;
use ugeom_classes::cache::index::hash::Hash;
use ugeom_classes::cache::index::splay::Splay;
use ugeom_classes::cache::store::{Outcome, Store};

/// A store whose buffers hold their block's number, and threads that read and replace.
fn replaces_safely<I: Index>() {
    const BLOCKS: u64 = 4_000;
    let store: Store<I> = Store::new(1_500, 4096).expect("memory");
    let misses = AtomicU64::new(0);
    thread::scope(|scope| {
        for seed in 0..4 {
            let (store, misses) = (&store, &misses);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                let mut bytes = [0; 4096];
                for _ in 0..30_000 {
                    let block = random.u64(0..BLOCKS);
                    match store.read(block, 0, bytes.len(), |slot| {
                        store.copyout(slot, 0, &mut bytes)
                    }) {
                        Outcome::Hit => {
                            assert_eq!(bytes[..], block.to_le_bytes().repeat(512)[..]);
                        }
                        Outcome::Busy => {}
                        Outcome::Absent => {
                            if let Buffer::New(slot) = store.getnewbuf(block) {
                                let content = block.to_le_bytes().repeat(512);
                                assert!(store.slab().copy_in(slot, 0, &content));
                                store.publish(block, slot);
                                misses.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    }
                }
            });
        }
    });
    let evictions = store.lanes.totals().evictions;
    assert!(evictions > 10_000, "{evictions}");
    assert_eq!(misses.load(Ordering::Relaxed), evictions + 1_500);
}

#[test]
fn a_hit_is_never_another_block_while_threads_replace_them() {
    replaces_safely::<Hash>();
    replaces_safely::<Splay>();
}

#[test]
fn as_many_blocks_fit_as_there_are_buffers_wherever_they_begin() {
    const BUFFERS: u32 = 1 << 18;
    for first in [0, u64::from(BUFFERS), 1 << 36, 12_345_678_901] {
        let index = Hash::new(BUFFERS, 6).expect("memory");
        for slot in 0..BUFFERS {
            let block = first + u64::from(slot);
            assert!(index.insert(block, slot), "block {block} has no room");
        }
        for slot in (0..BUFFERS).rev() {
            let entry = index.remove(first + u64::from(slot)).expect("it is there");
            assert_eq!(entry.slot, slot);
        }
    }
}

/// Least recently used, as what a cache of the store's size must at least reach.
fn lru_hits(room: usize, trace: &[u64]) -> usize {
    let mut recent: Vec<u64> = Vec::new();
    let mut hits = 0;
    for key in trace {
        match recent.iter().position(|known| known == key) {
            Some(at) => {
                recent.remove(at);
                hits += 1;
            }
            None if recent.len() == room => drop(recent.remove(0)),
            None => {}
        }
        recent.push(*key);
    }
    hits
}

#[test]
fn it_hits_at_least_as_often_as_lru() {
    const ROOM: u64 = 500;
    let mut random = fastrand::Rng::with_seed(4);
    let mut skewed = |exponent: f64| -> Vec<u64> {
        let key = |random: &mut fastrand::Rng| (5000.0 * random.f64().powf(exponent)) as u64;
        (0..40_000).map(|_| key(&mut random)).collect()
    };
    let (mild, strong) = (skewed(3.0), skewed(6.0));
    let looped: Vec<u64> = (0..40_000).map(|at| at % (ROOM * 11 / 10)).collect();
    let scanned: Vec<u64> = (0..40_000)
        .map(|at| {
            if at % 5 == 0 {
                10_000 + at
            } else {
                at * 7919 % (ROOM * 8 / 10)
            }
        })
        .collect();
    for trace in [mild, strong, looped, scanned] {
        let store: Store<Hash> = Store::new(ROOM as u32, 4096).expect("memory");
        let mut hits = 0;
        for block in &trace {
            if store.read(*block, 0, 0, |_| ()) == Outcome::Hit {
                hits += 1;
            } else if let Buffer::New(slot) = store.getnewbuf(*block) {
                store.publish(*block, slot);
            }
        }
        let lru = lru_hits(ROOM as usize, &trace);
        assert!(hits >= lru, "{hits} hits, LRU has {lru}");
    }
}
