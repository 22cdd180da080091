//! Nothing allocates on the data path, whatever the classes and however the stack works, once
//! as many requests have been in flight as ever will be.
//!
//! A test binary of its own with one test, as its allocator counts for the whole process.

use std::time::Duration;
use ugeom_classes::{TargetOptions, open_target};
use ugeom_machine::allocations::{CountingAllocator, allocations};
use ugeom_machine::buffer::Buffer;
use ugeom_stack::{
    Channel, Command, Delta, Dispatch, Draft, Opened, Pools, Registry, StackKnobs, Statistics,
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const DEPTH: usize = 32;
/// Enough to read all places once.
const WARM_UP: u64 = 2100;
/// Requests of a path that finishes them at once.
const READS: u64 = 10_000;
/// Requests of a path that hands them to other threads or to timers.
const SLOW_READS: u64 = 2100;

/// The classes, and how many requests are made.
const TARGETS: &[(&str, u64)] = &[
    ("zero", READS),
    ("zero:clear=0", READS),
    ("md:1m", READS),
    ("md:1m | nop | nop", READS),
    ("md:1m | nop:hook=1 | nop:hook=1", READS),
    ("md:1m | nop:rfail=1%,error=ENOSPC", READS),
    ("md:1m | nop:delay=50us", SLOW_READS),
    ("md:1m | delayed:depth=32,delay=1us", SLOW_READS),
    ("md:1m | cache:2m,readahead=off", READS),
    (
        "md:1m | cache:2m,index=splay,readahead=off | nop:hook=1",
        READS,
    ),
    ("md:1m | cache:2m,readahead=off,write=back", READS),
    ("md:1m | eli:onetime=1,sectorsize=512", SLOW_READS),
    (
        "md:1m | eli:onetime=1,sectorsize=512,ealgo=aes-cbc,keylen=256",
        SLOW_READS,
    ),
    (
        "md:2500k | eli:onetime=1,sectorsize=512,aalgo=hmac/sha256",
        SLOW_READS,
    ),
    ("disk:1m,overhead=20us,rate=10g/s,queue=8", SLOW_READS),
];

/// Requests that wait, one at a time: reads of all places, and now and then another command.
fn one_by_one(channel: &mut Channel, opened: &Opened, count: u64) {
    let mut sector = [0; 512];
    for number in 0..count {
        let offset = number % 2048 * 512;
        channel.read(opened, offset, &mut sector).expect("reads");
        if number % 64 == 0 {
            channel.write(opened, offset, &sector).expect("writes");
            channel.flush(opened).expect("flushes");
        }
    }
}

/// Requests that keep the channel full, each bio used again and again.
fn many(channel: &mut Channel, opened: &Opened, idle: &mut Vec<Draft>, count: u64) {
    let mut sent = 0;
    let mut home = 0;
    while home < count {
        while sent < count
            && let Some(draft) = idle.pop()
        {
            channel.submit(opened, draft.at(sent % 2048 * 512));
            sent += 1;
        }
        assert_ne!(
            channel.wait(Some(Duration::from_secs(60))),
            0,
            "{home} came home"
        );
        while let Some(finished) = channel.finished() {
            assert_eq!(finished.command(), Command::Read);
            idle.push(finished.again());
            home += 1;
        }
    }
}

fn check(target: &str, count: u64, how: StackKnobs) {
    let options = TargetOptions {
        knobs: StackKnobs {
            taste: false,
            dispatch: how.dispatch,
            statistics: how.statistics,
            registry: how.registry,
            pools: how.pools,
            ..StackKnobs::default()
        },
        ..TargetOptions::default()
    };
    let opened = open_target(target, &options);
    let stack = opened.unwrap_or_else(|error| panic!("{target}: {error}"));
    // The error of a call that fails is made for people, and allocates.
    let fails = target.contains("rfail");
    let opened = stack.open(Delta::READ_WRITE).expect("opens");
    let mut channel = stack.stack.channel(DEPTH).expect("a channel");
    // Sectors with tags cannot be read before they are written.
    for place in 0..2048 {
        let written = channel.write(&opened, place * 512, &[7; 512]);
        assert!(written.is_ok() || fails, "{target}: {written:?}");
    }
    let mut idle: Vec<_> = (0..DEPTH)
        .map(|_| channel.bio().expect("a bio").read(0, Buffer::new(512)))
        .collect();
    let mut run = |count: u64| {
        if !fails {
            one_by_one(&mut channel, &opened, count);
        }
        many(&mut channel, &opened, &mut idle, count);
    };
    run(WARM_UP.min(count));
    let before = allocations();
    run(count);
    let made = allocations() - before;
    assert_eq!(made, 0, "{target}, {how:?}: {made} allocations");
}

/// Waits until the rest of the process, which began when the test did, has come to rest.
fn wait_for_silence() {
    loop {
        let before = allocations();
        std::thread::sleep(Duration::from_millis(50));
        if allocations() == before {
            return;
        }
    }
}

#[test]
fn the_data_path_allocates_nothing() {
    wait_for_silence();
    for (target, count) in TARGETS {
        for statistics in [
            Statistics::Off,
            Statistics::Counts,
            Statistics::Time { one_in: 2 },
        ] {
            let how = StackKnobs {
                statistics,
                ..StackKnobs::default()
            };
            check(target, *count, how);
        }
        let locked = StackKnobs {
            registry: Registry::Locked,
            pools: Pools::Shared,
            ..StackKnobs::default()
        };
        check(target, *count, locked);
        for how in [StackKnobs::default(), locked] {
            let queued = StackKnobs {
                dispatch: Dispatch::Queued { spin_ns: 0 },
                ..how
            };
            check(target, SLOW_READS, queued);
        }
    }
}
