//! Random reads of 4 KiB, nearly all misses, of memory below: the cost of a miss beside its read.
//! `md` fills the block through a copy, as buffers may be looked at meanwhile.

use super::rounds::{Work, measure, writable};
use ugeom_classes::Target;
use ugeom_stack::Delta;

const SIZE: usize = 4096;
const BYTES: u64 = 256 << 20;
const COUNT: u64 = BYTES / SIZE as u64;

/// A stack over a disk of random data.
fn open(text: &str) -> Target {
    let target = writable(text);
    let opened = target.open(Delta::READ_WRITE);
    let opened = opened.expect("opens");
    let mut channel = target.stack.channel(1).expect("a channel");
    let mut data = vec![0; 1 << 20];
    let mut random = fastrand::Rng::with_seed(1);
    for at in (0..BYTES).step_by(data.len()) {
        random.fill(&mut data);
        channel.write(&opened, at, &data).expect("writes");
    }
    channel.flush(&opened).expect("flushes");
    drop((channel, opened));
    target
}

/// Work that reads places in an order, again and again.
fn reader<'a>(target: &Target, order: &'a [u64]) -> Work<'a> {
    let opened = target.open(Delta::READ).expect("opens");
    let mut channel = target.stack.channel(1).expect("a channel");
    let (mut bytes, mut at) = (vec![0; SIZE], 0);
    Box::new(move |count| {
        for _ in 0..count {
            let offset = order[at] * SIZE as u64;
            channel.read(&opened, offset, &mut bytes).expect("reads");
            at = (at + 1) % order.len();
        }
    })
}

/// Hits of all reads of the cache so far, per cent.
fn hits_percent(target: &Target) -> f64 {
    let tree = target.stack.tree();
    let of = |key: &str| -> f64 {
        let fact = tree.geoms.iter().find_map(|geom| geom.fact(key));
        fact.map_or(0.0, |value| value.parse().expect("a number"))
    };
    100.0 * of("hits") / (of("hits") + of("misses"))
}

pub fn run() {
    let mut order: Vec<u64> = (0..COUNT).collect();
    fastrand::Rng::with_seed(9).shuffle(&mut order);
    let bare = open("md:256m");
    let direct = open("md:256m | cache:16m,block=4k,readahead=off");
    let large = open("md:256m | cache:16m,block=16k,readahead=off");
    println!("\nrandom reads of {SIZE} of 256 MiB, a cache of 16 MiB");
    let measured = measure(
        vec![
            ("md alone", reader(&bare, &order)),
            ("miss, blocks of 4 KiB", reader(&direct, &order)),
            ("miss, blocks of 16 KiB", reader(&large, &order)),
        ],
        COUNT,
    );
    measured.print();
    measured.ratio("miss, blocks of 4 KiB", "md alone", "none");
    measured.ratio("miss, blocks of 16 KiB", "md alone", "none");
    println!(
        "hits: {:.1} % with blocks of 4 KiB, {:.1} % with 16 KiB",
        hits_percent(&direct),
        hits_percent(&large)
    );
}
