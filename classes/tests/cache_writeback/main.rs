//! The cache, writing back and through, against a plain map of sectors: random requests of every
//! kind, ranges that end inside blocks, few buffers, faults below, several threads, both indexes;
//! and losses of power.
//!
//! The long form: `cargo nextest run --release -p ugeom-classes --test cache_writeback
//! --run-ignored only --no-capture`, with `UGEOM_MODEL_REQUESTS` (millions, 10 unless given).

mod crash;
mod shared;
mod user;

use std::thread;
use std::time::Instant;
use ugeom_stack::Delta;
use user::{Act, SECTOR, User, open};

const THREADS: usize = 4;

/// Lets four users work side by side, each in a part of his own that ends inside a block, and
/// looks at what the cache and then the provider below hold in the end.
fn agrees(text: &str, requests: usize, seed: u64) {
    let target = open(text);
    let faults = text.contains("fail");
    let opened = target.open(Delta::READ_WRITE).expect("opens");
    let sectors = opened.view().expect("it").mediasize_bytes as usize / SECTOR / THREADS;
    let mut users: Vec<_> = (0..THREADS)
        .map(|number| {
            let part = (number * sectors, sectors);
            User::new(&target, &opened, part, number as u64 + 1, faults)
        })
        .collect();
    thread::scope(|scope| {
        for (number, user) in users.iter_mut().enumerate() {
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed * 4 + number as u64);
                for _ in 0..requests {
                    let longest = if random.u32(0..8) == 0 { 96 } else { 10 };
                    let (start, count) = (random.usize(0..sectors), random.usize(1..=longest));
                    user.act(Act::of(random.u8(..)), start, count);
                }
            });
        }
    });
    assert_eq!(target.stack.defects(), 0, "{text}");
    if faults {
        return;
    }
    users
        .iter_mut()
        .for_each(|user| user.act(Act::Read, 0, sectors));
    let mut bytes = vec![0; THREADS * sectors * SECTOR];
    let mut channel = target.stack.channel(1).expect("a channel");
    channel.flush(&opened).expect("flushes");
    let below = target
        .stack
        .open(target.bottom, Delta::READ)
        .expect("opens");
    channel.read(&below, 0, &mut bytes).expect("reads");
    for (user, bytes) in users.iter_mut().zip(bytes.chunks(sectors * SECTOR)) {
        user.compare(0, bytes);
    }
    drop(users);
    opened.close().expect("closes");
}

const BACK: [&str; 5] = [
    "md:1021s | cache:64k,block=4k,write=back",
    "md:1021s | cache:64k,block=16k,index=splay,write=back,dirty=100%",
    "md:8m | cache:1m,block=4k,write=back,dirty=64k,idle=1ms",
    "md:1021s | cache:1m,block=64k,write=back,age=0ms",
    "md:1021s | cache:16k,block=16k,write=back",
];

const THROUGH: [&str; 4] = [
    "md:1021s | cache:64k,block=4k",
    "md:1021s | cache:64k,block=16k,index=splay",
    "md:8m | cache:1m,block=4k",
    "md:1021s | cache:1m,block=64k",
];

const FAULTY: [&str; 5] = [
    "md:1021s | nop:rfail=5%,wfail=5%,seed=1 | cache:64k,block=4k,write=back",
    "md:1021s | nop:rfail=5%,wfail=20%,seed=2 | cache:128k,block=16k,index=splay,write=back",
    "md:1021s | nop:wfail=90%,seed=3 | cache:64k,block=4k,write=back,dirty=8k",
    "md:1021s | nop:rfail=5%,wfail=5%,seed=4 | cache:64k,block=4k",
    "md:1021s | nop:rfail=5%,wfail=5%,seed=5 | cache:128k,block=16k,index=splay",
];

const DELAYED: [&str; 3] = [
    "md:1021s | delayed:seed=1,depth=4,delay=20us | cache:64k,block=4k,write=back",
    "md:1021s | nop:rdelay=10%,wdelay=10%,delay=20us | cache:64k,block=16k,write=back",
    "md:1021s | delayed:seed=1,depth=4,delay=20us | cache:64k,block=4k",
];

#[test]
fn every_read_returns_the_latest_write() {
    BACK.iter().for_each(|text| agrees(text, 8_000, 1));
}

#[test]
fn every_read_returns_the_latest_write_that_went_through() {
    THROUGH.iter().for_each(|text| agrees(text, 15_000, 7));
}

#[test]
fn every_read_returns_the_latest_write_when_requests_below_fail() {
    FAULTY.iter().for_each(|text| agrees(text, 5_000, 2));
}

#[test]
fn every_read_returns_the_latest_write_when_requests_below_finish_late_and_out_of_order() {
    DELAYED.iter().for_each(|text| agrees(text, 500, 3));
}

#[test]
fn every_read_returns_the_latest_write_of_a_simulated_engine() {
    let image = tempfile::NamedTempFile::new().expect("an image");
    image.as_file().set_len(1021 * 512).expect("a length");
    let path = image.path().display();
    agrees(
        &format!("{path}?engine=simulated | cache:64k,block=4k,write=back"),
        1_000,
        4,
    );
}

#[test]
fn threads_on_the_same_sectors_see_what_they_may() {
    for text in [
        "md:61s | cache:16k,block=4k,write=back",
        "md:61s | cache:64k,block=16k,index=splay,write=back,idle=1ms",
        "md:61s | delayed:seed=1,depth=2,delay=20us | cache:16k,block=4k,write=back",
        "md:61s | cache:16k,block=4k",
        "md:61s",
    ] {
        assert!(shared::agrees(text, 1_500, 5) > 10_000);
    }
}

#[test]
fn nothing_that_was_acknowledged_is_lost_with_the_power() {
    assert!(crash::all(20, 6) > 0);
}

/// How many requests the long form makes, for each kind.
fn millions() -> usize {
    let given = std::env::var("UGEOM_MODEL_REQUESTS").ok();
    given.map_or(10, |given| given.parse().expect("a number of millions")) * 1_000_000
}

#[test]
#[ignore = "takes minutes; see the beginning of the file"]
fn long_disjoint() {
    let begun = Instant::now();
    let texts = || BACK.iter().chain(&THROUGH).chain(&FAULTY);
    let each = millions() / (THREADS * texts().count());
    for (seed, text) in texts().enumerate() {
        agrees(text, each, seed as u64 + 100);
        println!("{text}: {} requests, {:?}", each * THREADS, begun.elapsed());
    }
}

#[test]
#[ignore = "takes minutes; see the beginning of the file"]
fn long_shared() {
    let begun = Instant::now();
    let texts = [
        "md:61s | cache:16k,block=4k,write=back",
        "md:61s | cache:32k,block=16k,index=splay,write=back,dirty=100%,idle=1ms",
        "md:61s | cache:64k,block=64k,write=back,age=0ms",
        "md:61s | cache:16k,block=4k",
        "md:61s | cache:16k,block=4k,readahead=off",
        "md:61s",
    ];
    let rounds = (millions() / (THREADS * texts.len() * 2_000)).max(1);
    for text in texts {
        let sectors: u64 = (0..rounds)
            .map(|round| shared::agrees(text, 2_000, round as u64 + 200))
            .sum();
        println!(
            "{text}: {} requests, {sectors} words judged, {:?}",
            rounds * 2_000 * THREADS,
            begun.elapsed()
        );
    }
}

#[test]
#[ignore = "takes minutes; see the beginning of the file"]
fn long_crashes() {
    let begun = Instant::now();
    let crashes = millions() / 2_500;
    let checked = crash::all(crashes, 300);
    println!(
        "{} crashes, {checked} sectors held against them, {:?}",
        crashes * 5,
        begun.elapsed()
    );
}
