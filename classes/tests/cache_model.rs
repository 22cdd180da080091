//! The cache against a plain map: random requests, faults below, several threads, both indexes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use ugeom_classes::cache::index::Index;
use ugeom_classes::cache::index::hash::Hash;
use ugeom_classes::cache::index::splay::Splay;
use ugeom_classes::cache::store::{Buffer, Outcome, Store};
use ugeom_classes::{Target, TargetOptions, open_target};
use ugeom_stack::{Channel, Command, Delta, Opened};

const SECTOR: usize = 512;

fn open(text: &str) -> Target {
    let options = TargetOptions {
        writable: true,
        taste: false,
        ..TargetOptions::default()
    };
    open_target(text, &options).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// One user of a part of the device, and what he knows of it: for each sector the values that it
/// may have. More than one only after a write that failed.
struct User<'a> {
    channel: Channel,
    opened: &'a Opened,
    first: usize,
    known: Vec<Vec<u64>>,
    random: fastrand::Rng,
    next: u64,
}

impl<'a> User<'a> {
    fn new(target: &Target, opened: &'a Opened, first: usize, sectors: usize, seed: u64) -> Self {
        Self {
            channel: target.stack.channel(4).expect("a channel"),
            opened,
            first,
            known: vec![vec![0]; sectors],
            random: fastrand::Rng::with_seed(seed),
            next: seed << 40,
        }
    }

    fn offset(&self, sector: usize) -> u64 {
        ((self.first + sector) * SECTOR) as u64
    }

    fn range(&mut self) -> (usize, usize) {
        let longest = if self.random.u32(0..8) == 0 { 96 } else { 10 };
        let start = self.random.usize(0..self.known.len());
        let length = self.random.usize(1..=longest);
        (start, length.min(self.known.len() - start))
    }

    fn write(&mut self) {
        let (start, count) = self.range();
        self.next += 1;
        let bytes: Vec<u8> = self.next.to_le_bytes().repeat(count * SECTOR / 8);
        let written = self.channel.write(self.opened, self.offset(start), &bytes);
        for known in &mut self.known[start..start + count] {
            if written.is_ok() {
                known.clear();
            }
            known.push(self.next);
        }
    }

    fn discard(&mut self) {
        let (start, count) = self.range();
        let command = if self.random.bool() {
            Command::Delete
        } else {
            Command::Zero
        };
        let (offset, length) = (self.offset(start), (count * SECTOR) as u64);
        let done = self.channel.discard(self.opened, command, offset, length);
        done.expect("md takes it");
        self.known[start..start + count].fill(vec![0]);
    }

    fn read(&mut self) {
        let (start, count) = self.range();
        let mut bytes = vec![0xee; count * SECTOR];
        let offset = self.offset(start);
        if self.channel.read(self.opened, offset, &mut bytes).is_err() {
            return;
        }
        for (at, sector) in bytes.chunks(SECTOR).enumerate() {
            let (value, _) = sector.split_at(8);
            assert_eq!(value.repeat(SECTOR / 8), sector, "a torn sector");
            let value = u64::from_le_bytes(value.try_into().expect("eight bytes"));
            let known = &mut self.known[start + at];
            assert!(
                known.contains(&value),
                "sector {} is {value:#x}, not one of {known:x?}",
                self.first + start + at
            );
            // A write that failed either reached the media or not, and that stays so.
            *known = vec![value];
        }
    }

    fn work(&mut self, requests: usize) {
        for _ in 0..requests {
            match self.random.u32(0..20) {
                0..6 => self.write(),
                6 => self.discard(),
                _ => self.read(),
            }
        }
    }
}

fn agrees(text: &str, requests: usize) {
    const THREADS: usize = 4;
    let target = open(text);
    let opened = target.stack.open(target.top, Delta::READ_WRITE);
    let opened = opened.expect("opens");
    let view = opened.view().expect("the provider");
    let sectors = view.mediasize_bytes as usize / SECTOR / THREADS;
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (target, opened) = (&target, &opened);
            // Parts that end inside blocks, so that users share some.
            let first = number * sectors;
            scope.spawn(move || {
                let seed = number as u64 + 1;
                User::new(target, opened, first, sectors, seed).work(requests);
            });
        }
    });
    assert_eq!(target.stack.defects(), 0, "{text}");
}

#[test]
fn every_read_returns_the_latest_write() {
    for text in [
        "md:1021s | cache:64k,block=4k",
        "md:1021s | cache:64k,block=16k,index=splay",
        "md:8m | cache:1m,block=4k",
        "md:1021s | cache:1m,block=64k",
    ] {
        agrees(text, 20_000);
    }
}

#[test]
fn every_read_returns_the_latest_write_when_requests_below_fail_or_finish_out_of_order() {
    for text in [
        "md:1021s | nop:rfail=5%,wfail=5%,seed=1 | cache:64k,block=4k",
        "md:1021s | nop:rfail=5%,wfail=5%,seed=2 | cache:128k,block=16k,index=splay",
    ] {
        agrees(text, 10_000);
    }
    agrees(
        "md:1021s | delayed:seed=1,depth=4,delay=20us | cache:64k,block=4k",
        1_000,
    );
}

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
fn as_many_blocks_fit_as_there_are_buffers() {
    const BUFFERS: u32 = 1 << 18;
    let index = Hash::new(BUFFERS, 6).expect("memory");
    for block in 0..u64::from(BUFFERS) {
        assert!(
            index.insert(block, block as u32),
            "block {block} has no room"
        );
    }
    for block in (0..u64::from(BUFFERS)).rev() {
        let entry = index.remove(block).expect("it is there");
        assert_eq!(u64::from(entry.slot), block);
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
