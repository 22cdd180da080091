//! The steps alone: lookup beside a dependent load and beside the splay tree, getnewbuf.

use super::rounds::{ROUNDS, Work, measure, measure_often, print_times};
use std::hint::black_box;
use std::time::Instant;
use ugeom_classes::cache::Buffer;
use ugeom_classes::cache::index::hash::Hash;
use ugeom_classes::cache::index::splay::Splay;
use ugeom_classes::cache::index::{Index, Lookup};
use ugeom_classes::cache::store::Store;

const BUFFERS: u32 = 1 << 18;
const BLOCK_BYTES: usize = 4096;
/// The regime of 2006 in `ugeom lab cached`: 60 MiB of blocks of 16 KiB.
const REGIME_BUFFERS: u32 = 3840;
/// Lookups, and loads, of a round in which nothing else is measured, and such rounds.
const PAIRED: u64 = 1 << 16;
const PAIRED_ROUNDS: usize = 511;
/// Misses between two readings of the clock, and in a round.
const FEW: u64 = 16;
const MISSES: u64 = 1 << 18;

/// A store in which the blocks `0..count` are resident.
fn filled<I: Index>(buffers: u32, count: u64) -> Store<I> {
    let store = Store::new(buffers, BLOCK_BYTES).expect("memory");
    for block in 0..count {
        let Buffer::New(slot) = store.getnewbuf(block) else {
            panic!("no room for {block}");
        };
        store.publish(block, slot);
    }
    store
}

/// Look-ups, each of which depends on the one before: a full cycle through `count` blocks, a power
/// of two.
fn lookups<'a, I: Index>(store: &'a Store<I>, count: u64) -> Work<'a> {
    let mut block = 0;
    // The compiler does not know that this is 0, so that each look-up waits for the one before.
    let (nothing, mask) = (black_box(0), count - 1);
    Box::new(move |times| {
        for _ in 0..times {
            let Lookup::At(_, entry) = store.lookup(block) else {
                panic!("block {block} is not there");
            };
            block = following(block + (u64::from(entry.slot) & nothing)) & mask;
        }
        black_box(block);
    })
}

/// The next number of a cycle through all numbers of any power of two (Knuth, volume 2, 3.2.1.2).
fn following(number: u64) -> u64 {
    number
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1)
}

/// The loop of [`lookups`] without them: what is not theirs.
fn no_lookups(count: u64) -> Work<'static> {
    let mut block = 0;
    let (nothing, mask) = (black_box(0), count - 1);
    Box::new(move |times| {
        for _ in 0..times {
            block = following(block + (block & nothing)) & mask;
        }
        black_box(block);
    })
}

/// Look-ups of blocks that are not there, one after the other.
fn lookups_in_vain<I: Index>(store: &Store<I>) -> Work<'_> {
    // Far from what the misses bring.
    let mut next = 1 << 40;
    Box::new(move |times| {
        for _ in 0..times {
            assert!(matches!(store.lookup(next), Lookup::Absent));
            next += 1;
        }
    })
}

/// Misses without the read: each block takes the place of another. A read has looked the block up
/// before, and has waited for its line of the index; without that, getnewbuf waits for it.
fn misses<I: Index>(store: &Store<I>, looked_up: bool) -> Work<'_> {
    let buffers = store.slab().blocks();
    let mut next = u64::from(buffers) + (u64::from(looked_up) << 36);
    Box::new(move |times| {
        for _ in 0..times {
            if looked_up {
                assert!(matches!(store.lookup(next), Lookup::Absent));
            }
            let Buffer::New(slot) = store.getnewbuf(next) else {
                panic!("no room for {next}");
            };
            store.publish(next, slot);
            next += 1;
        }
    })
}

/// The time of getnewbuf and of the index update for the same misses, ns by round: the clock is
/// read before and after a few of them, whose blocks were all looked up before, as readers do.
fn misses_alone<I: Index>(store: &Store<I>) -> Vec<f64> {
    let mut next = 1 << 38;
    let mut few = || {
        let blocks = next..next + FEW;
        next += FEW;
        for block in blocks.clone() {
            assert!(matches!(store.lookup(block), Lookup::Absent));
        }
        let begin = Instant::now();
        for block in blocks {
            let Buffer::New(slot) = store.getnewbuf(block) else {
                panic!("no room for {block}");
            };
            store.publish(block, slot);
        }
        begin.elapsed().as_nanos() as f64
    };
    let mut round = || {
        let times = MISSES / FEW;
        let sum: f64 = (0..times).map(|_| few()).sum();
        sum / MISSES as f64
    };
    // The first one warms up.
    round();
    (0..ROUNDS).map(|_| round()).collect()
}

/// Dependent loads from all over an array of `bytes`.
fn loads(bytes: usize) -> Work<'static> {
    let count = bytes / size_of::<u64>();
    let mut order: Vec<usize> = (1..count).collect();
    fastrand::Rng::with_seed(5).shuffle(&mut order);
    let mut chain = vec![0_u64; count];
    let mut at = 0;
    for next in order {
        chain[at] = next as u64;
        at = next;
    }
    let mut at = 0;
    Box::new(move |times| {
        for _ in 0..times {
            at = chain[black_box(at) as usize];
        }
        black_box(at);
    })
}

pub fn run() {
    let hash = filled::<Hash>(BUFFERS, u64::from(BUFFERS));
    let splay = filled::<Splay>(BUFFERS, u64::from(BUFFERS));
    let (hot, hot_splay) = (filled::<Hash>(64, 64), filled::<Splay>(64, 64));
    let full = filled::<Hash>(BUFFERS, u64::from(BUFFERS));
    let regime = filled::<Hash>(REGIME_BUFFERS, u64::from(REGIME_BUFFERS));
    let bytes = hash_bytes();
    println!("{BUFFERS} blocks; the index takes {bytes} bytes");
    println!(
        "memory beyond the blocks: {:.1} bytes a block; goal: less than 64",
        hash.overhead_bytes() as f64 / f64::from(BUFFERS)
    );
    let measured = measure(
        vec![
            (
                "lookup, hash, 256 k blocks",
                lookups(&hash, u64::from(BUFFERS)),
            ),
            (
                "lookup, splay, 256 k blocks",
                lookups(&splay, u64::from(BUFFERS)),
            ),
            ("dependent load, same size", loads(bytes)),
            ("lookup, hash, 64 blocks", lookups(&hot, 64)),
            ("the loop of these, without lookup", no_lookups(64)),
            ("lookup, splay, 64 blocks", lookups(&hot_splay, 64)),
            ("lookup of what is not there", lookups_in_vain(&full)),
            ("getnewbuf and index update", misses(&full, false)),
            ("lookup, getnewbuf, index update", misses(&full, true)),
            (
                "these three, as many buffers as in 2006",
                misses(&regime, true),
            ),
        ],
        1 << 18,
    );
    measured.print();
    for (name, store) in [
        ("getnewbuf and index update after a lookup", &full),
        ("the same, as many buffers as in 2006", &regime),
    ] {
        print_times(name, &misses_alone(store));
    }
    let (hash_name, load_name) = ("lookup, hash, 256 k blocks", "dependent load, same size");
    measured.ratio("lookup, splay, 256 k blocks", hash_name, "at least 5");
    // Memory latency changes from moment to moment here: the two alone, in many short rounds.
    let pair = measure_often(
        vec![
            (hash_name, lookups(&hash, u64::from(BUFFERS))),
            (load_name, loads(bytes)),
        ],
        PAIRED,
        PAIRED_ROUNDS,
    );
    println!("\nthese two alone, {PAIRED_ROUNDS} rounds");
    pair.print();
    pair.ratio(hash_name, load_name, "at most 1.3");
    println!("goals: lookup of 64 blocks under 10 ns, getnewbuf under 150 ns");
}

/// The memory of an index of that many buffers.
fn hash_bytes() -> usize {
    let index = Hash::new(BUFFERS, 6).expect("memory");
    index.memory_bytes()
}
