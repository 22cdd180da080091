//! `cargo run --release --manifest-path classes/benches/foyer/Cargo.toml`: the buffer cache beside
//! foyer, and beside the libraries that `cargo bench -p ugeom-classes --bench cache -- others`
//! compares it with.

#![forbid(unsafe_code)]

use foyer::{Cache, CacheBuilder, EvictionConfig, LfuConfig, LruConfig, S3FifoConfig, SieveConfig};
use ugeom_bench_foyer::libraries::{Kind, Library, Value, compare, copied};
use ugeom_bench_foyer::others;

/// foyer's policies. LRU is the one that it has when nothing is said; its LFU is W-TinyLFU.
const KINDS: [Kind; 4] = [
    ("foyer LRU", |room| made(room, LruConfig::default().into())),
    ("foyer LFU", |room| made(room, LfuConfig::default().into())),
    ("foyer S3-FIFO", |room| {
        made(room, S3FifoConfig::default().into())
    }),
    ("foyer SIEVE", |room| made(room, SieveConfig.into())),
];

struct Foyer(Cache<u64, Value>);

fn made(room: usize, policy: EvictionConfig) -> Box<dyn Library> {
    let cache = CacheBuilder::new(room).with_eviction_config(policy).build();
    Box::new(Foyer(cache))
}

impl Library for Foyer {
    fn insert(&self, key: u64, value: Value) {
        self.0.insert(key, value);
    }

    fn copy(&self, key: u64, into: &mut [u8]) -> bool {
        let entry = self.0.get(&key);
        copied(entry.as_ref().map(|entry| entry.value()), into)
    }
}

fn main() {
    let kinds: Vec<Kind> = others::KINDS.into_iter().chain(KINDS).collect();
    compare(&kinds);
}
