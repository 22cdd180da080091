//! The steps alone: lookup beside a dependent load and beside the splay tree, getnewbuf.

use super::rounds::{Work, measure};
use std::hint::black_box;
use ugeom_classes::cache::index::hash::Hash;
use ugeom_classes::cache::index::splay::Splay;
use ugeom_classes::cache::index::{Found, Index};
use ugeom_classes::cache::store::{Buffer, Store};

const BUFFERS: u32 = 1 << 18;
const BLOCK_BYTES: usize = 4096;

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
    Box::new(move |times| {
        for _ in 0..times {
            let Found::At(_, entry) = store.lookup(block) else {
                panic!("block {block} is not there");
            };
            // The slot is mixed in and out, so that the next look-up waits for this one. The
            // compiler must not see that both cancel, or it leaves them out and look-ups overlap.
            let slot = u64::from(entry.slot);
            let next = black_box(block ^ slot) ^ slot;
            block = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1) % count;
        }
        black_box(block);
    })
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
    let bytes = hash_bytes();
    println!("{BUFFERS} blocks; the index takes {bytes} bytes");
    println!(
        "memory beyond the blocks: {:.1} bytes a block; goal: less than 64",
        hash.overhead_bytes() as f64 / f64::from(BUFFERS)
    );
    let mut next = u64::from(BUFFERS);
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
            ("lookup, splay, 64 blocks", lookups(&hot_splay, 64)),
            (
                "getnewbuf and index update",
                Box::new(|times| {
                    for _ in 0..times {
                        let Buffer::New(slot) = full.getnewbuf(next) else {
                            panic!("no room for {next}");
                        };
                        full.publish(next, slot);
                        next += 1;
                    }
                }),
            ),
        ],
        1 << 18,
    );
    measured.print();
    let (hash, load) = ("lookup, hash, 256 k blocks", "dependent load, same size");
    measured.ratio(hash, load, "at most 1.3");
    measured.ratio("lookup, splay, 256 k blocks", hash, "at least 5");
    println!("goals: lookup of 64 blocks under 10 ns, getnewbuf under 150 ns");
}

/// What the index of that many buffers takes.
fn hash_bytes() -> usize {
    let index = Hash::new(BUFFERS, 6).expect("memory");
    index.memory_bytes()
}
