//! Hit ratios on the traces, of the class's own store and of other policies.

use super::policies::{Arc, Clock, Lru, Policy, Sieve};
use ugeom_classes::cache::Buffer;
use ugeom_classes::cache::index::hash::Hash;
use ugeom_classes::cache::store::{Outcome, Store};

/// Blocks that the caches hold.
pub const ROOM: usize = 10_000;
const LENGTH: usize = 2_000_000;
/// Blocks of the device, for traces that use all of it.
const BLOCKS: u64 = 100_000;

/// The class's own buffers, with memory that is never touched.
pub struct Ours(Store<Hash>);

impl Policy for Ours {
    fn access(&mut self, key: u64) -> bool {
        if self.0.read(key, 0, 0, |_| ()) == Outcome::Hit {
            return true;
        }
        if let Buffer::New(slot) = self.0.getnewbuf(key) {
            self.0.publish(key, slot);
        }
        false
    }
}

impl Ours {
    pub fn new(room: usize) -> Self {
        Self(Store::new(room as u32, 4096).expect("memory"))
    }
}

/// Keys whose frequency falls with their rank to the power `skew`, spread over the device.
fn zipf(skew: f64) -> Vec<u64> {
    let mut sum = 0.0;
    let sums: Vec<f64> = (1..=BLOCKS)
        .map(|rank| {
            sum += (rank as f64).powf(-skew);
            sum
        })
        .collect();
    let mut random = fastrand::Rng::with_seed(11);
    let mut names: Vec<u64> = (0..BLOCKS).collect();
    random.shuffle(&mut names);
    (0..LENGTH)
        .map(|_| {
            let wanted = random.f64() * sum;
            let rank = sums.partition_point(|sum| *sum < wanted);
            names[rank.min(names.len() - 1)]
        })
        .collect()
}

/// A hot set of 80 % of the cache, of which a tenth of the requests are a scan of all the rest.
fn scan_over_a_hot_set() -> Vec<u64> {
    let mut random = fastrand::Rng::with_seed(12);
    let hot = ROOM as u64 * 8 / 10;
    let mut scan = hot;
    (0..LENGTH)
        .map(|_| {
            if random.u32(0..10) > 0 {
                return random.u64(0..hot);
            }
            scan += 1;
            scan
        })
        .collect()
}

/// The same hot set, and every now and then a scan that is longer than the cache.
fn bursts_over_a_hot_set() -> Vec<u64> {
    let mut random = fastrand::Rng::with_seed(13);
    let (hot, burst) = (ROOM as u64 * 8 / 10, 2 * ROOM);
    let mut scan = hot;
    (0..LENGTH)
        .map(|at| {
            if at % (10 * burst) >= burst {
                return random.u64(0..hot);
            }
            scan += 1;
            scan
        })
        .collect()
}

/// A hot set of 90 % of the cache, and from time to time another one.
fn hot_set_that_moves() -> Vec<u64> {
    let mut random = fastrand::Rng::with_seed(14);
    let hot = ROOM as u64 * 9 / 10;
    (0..LENGTH)
        .map(|at| (at * 10 / LENGTH) as u64 * BLOCKS + random.u64(0..hot))
        .collect()
}

/// Four turns, in which two that know nothing of each other have the cache.
fn zipf_and_loop(longer: u64) -> Vec<u64> {
    let mut zipf = zipf(0.9);
    for (at, key) in zipf.iter_mut().enumerate() {
        if at * 4 / LENGTH % 2 == 1 {
            *key = BLOCKS + at as u64 % longer;
        }
    }
    zipf
}

/// The traces by name.
pub fn traces() -> Vec<(String, Vec<u64>)> {
    let mut random = fastrand::Rng::with_seed(10);
    let mut traces = vec![(
        "uniform".to_owned(),
        (0..LENGTH).map(|_| random.u64(0..BLOCKS)).collect(),
    )];
    for skew in [0.8, 0.9, 1.0, 1.1, 1.2] {
        traces.push((format!("zipf {skew}"), zipf(skew)));
    }
    traces.push(("scan over a hot set".into(), scan_over_a_hot_set()));
    traces.push(("bursts over a hot set".into(), bursts_over_a_hot_set()));
    let longer = ROOM as u64 * 11 / 10;
    let looped = (0..LENGTH as u64).map(|at| at % longer).collect();
    traces.push(("loop, 1.1 of the cache".into(), looped));
    traces.push(("hot set that moves".into(), hot_set_that_moves()));
    traces.push(("zipf 0.9 and loop in turns".into(), zipf_and_loop(longer)));
    traces
}

/// The part of a trace that hits, in percent.
pub fn percent(policy: &mut dyn Policy, trace: &[u64]) -> f64 {
    let hits = trace.iter().filter(|key| policy.access(**key)).count();
    100.0 * hits as f64 / trace.len() as f64
}

pub fn run() {
    println!("{ROOM} blocks, {LENGTH} requests; hits in percent");
    println!(
        "{:<28} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "trace", "ours", "LRU", "CLOCK", "SIEVE", "ARC"
    );
    for (name, trace) in traces() {
        let mut policies: [Box<dyn Policy>; 5] = [
            Box::new(Ours::new(ROOM)),
            Box::new(Lru::new(ROOM)),
            Box::new(Clock::new(ROOM)),
            Box::new(Sieve::new(ROOM)),
            Box::new(Arc::new(ROOM)),
        ];
        print!("{name:<28}");
        for policy in &mut policies {
            print!(" {:>8.2}", percent(policy.as_mut(), &trace));
        }
        println!();
    }
}
