//! Tests of `cache`: the data, the sources of reads, and refusals.

use super::Cache;
use super::index::Index;
use super::index::hash::Hash;
use super::index::splay::Splay;
use crate::target::tests::{opened, refuses};
use crate::{Target, TargetOptions};
use std::sync::{Arc, Barrier};
use ugeom_stack::{Channel, Command, Delta, Errno, Geom, Opened, Plan, ProviderPlan};

pub(super) fn open(text: &str) -> (Target, Channel, Opened) {
    opened(text, &TargetOptions::untasted().for_writing(), 64)
}

/// A figure of the cache's geom.
pub(super) fn fact(target: &Target, key: &str) -> u64 {
    let tree = target.stack.tree();
    let geom = tree.geoms.iter().find(|geom| geom.class == "CACHE");
    let fact = geom.expect("a cache").fact(key);
    let value = fact.unwrap_or_else(|| panic!("no {key}"));
    value.parse().expect("a number")
}

/// How many requests the provider at the bottom has seen.
fn below(target: &Target) -> u64 {
    let totals = target.stack.statistics(target.bottom).expect("totals");
    totals.operations.iter().sum()
}

#[test]
fn options_are_checked() {
    refuses(&[
        ("md:1m | cache:1k", "do not hold one block of 16384"),
        ("md:1m | cache:0", "do not hold one block"),
        ("md:1m | cache:15k,block=16k", "do not hold one block"),
        ("md:1m | cache:1e", "less than"),
        (
            "md:1m | cache:1m,block=12k",
            "a power of two from 4k to 64k",
        ),
        ("md:1m | cache:1m,block=2k", "a power of two from 4k to 64k"),
        (
            "md:1m | cache:1m,block=128k",
            "a power of two from 4k to 64k",
        ),
        (
            "md:1m,sectorsize=32k | cache",
            "smaller than a sector of md0, 32768",
        ),
        (
            "md:3m | nop:sectorsize=1536 | cache",
            "no whole number of md0.nop's sectors",
        ),
        (
            "md:1m | cache:index=tree",
            "index=tree: expected one of hash, splay",
        ),
        ("md:1m | cache:readahead=much", "readahead"),
        ("md:1m | cache:sise=1m", "did you mean `size`"),
    ]);
}

#[test]
fn what_was_read_once_is_not_read_again() {
    for index in ["hash", "splay"] {
        let (target, mut channel, opened) =
            open(&format!("md:1m | cache:1m,index={index},readahead=off"));
        let mut bytes = vec![0; 4096];
        for _ in 0..3 {
            for offset in (0..1 << 20).step_by(4096) {
                channel.read(&opened, offset, &mut bytes).expect("reads");
            }
        }
        assert_eq!(below(&target), 64, "{index}: each block of 16k once");
        assert_eq!(fact(&target, "misses"), 64);
        assert_eq!(fact(&target, "hits"), 3 * 256 - 64);
    }
}

#[test]
fn readers_of_one_missing_block_cause_one_read_below() {
    const READERS: u64 = 8;
    for index in ["hash", "splay"] {
        let text = format!("md:1m | nop:delay=20ms | cache:1m,index={index},readahead=off");
        let (target, _channel, opened) = open(&text);
        let together = Barrier::new(READERS as usize);
        let (stack, opened, together) = (&target.stack, &opened, &together);
        std::thread::scope(|scope| {
            for reader in 0..READERS {
                scope.spawn(move || {
                    let mut channel = stack.channel(1).expect("a channel");
                    together.wait();
                    let read = channel.read(opened, reader * 512, &mut [0; 512]);
                    assert_eq!(read.expect("reads"), 512);
                });
            }
        });
        let count = |key| fact(&target, key);
        assert_eq!((count("misses"), count("evictions")), (1, 0), "{index}");
        // A late reader finds it. After a wait of 50 ms, as on a machine that does not come to
        // run the first one, a reader reads past the cache.
        assert_eq!(count("hits") + count("bypasses"), READERS - 1, "{index}");
        assert_eq!(below(&target), 1 + count("bypasses"), "{index}");
    }
}

#[test]
fn deleting_and_zeroing_drop_the_blocks_they_touch_and_no_others() {
    for command in [Command::Delete, Command::Zero] {
        let (target, mut channel, opened) = open("md:1m | cache:1m,block=4k,readahead=off");
        let mut bytes = [0; 4 * 4096];
        channel.write(&opened, 0, &[7; 4 * 4096]).expect("writes");
        let draft = channel.bio().expect("a bio");
        channel.submit(&opened, draft.discard(command, 4096 + 512, 4096));
        while channel.wait(None) == 0 {}
        let finished = channel.finished().expect("it");
        assert_eq!(finished.result(), Ok(4096));
        channel.recycle(finished);
        assert_eq!(fact(&target, "drops"), 2);
        channel.read(&opened, 0, &mut bytes).expect("reads");
        assert_eq!((fact(&target, "hits"), fact(&target, "misses")), (2, 2));
        let truth = [[7; 4096 + 512].as_slice(), &[0; 4096], &[7; 8192 - 512]].concat();
        assert_eq!(bytes[..], truth[..], "{command:?}");
    }
}

#[test]
fn the_end_of_a_media_that_is_no_whole_number_of_blocks_is_read_right() {
    let (target, mut channel, opened) = open("md:77s | cache:1m,block=16k");
    let pattern: Vec<u8> = (0..77 * 512).map(|at| (at / 7 % 251) as u8).collect();
    let below = target.stack.tree();
    assert_eq!(
        below.provider("md0.cache").expect("it").mediasize_bytes,
        77 * 512
    );
    channel.write(&opened, 0, &pattern).expect("writes");
    for offset in [0, 512, 15 * 512, 63 * 512, 64 * 512, 76 * 512] {
        for length in [512, 1024, 17 * 1024, 77 * 512] {
            let mut bytes = vec![0; length];
            let read = channel
                .read(&opened, offset as u64, &mut bytes)
                .expect("reads");
            assert_eq!(read, length.min(77 * 512 - offset), "{length} at {offset}");
            assert_eq!(bytes[..read], pattern[offset..offset + read]);
        }
    }
}

#[test]
fn errors_below_are_not_cached() {
    let (target, mut channel, opened) = open("md:1m | nop:rfail=80%,seed=1 | cache:1m,block=4k");
    let (mut failed, mut read) = (0, 0);
    for _ in 0..100 {
        match channel.read(&opened, 0, &mut [0; 4096]) {
            Ok(_) => read += 1,
            Err(_) if read == 0 => failed += 1,
            Err(error) => panic!("what is cached does not fail: {error}"),
        }
    }
    assert!(failed > 0 && read > 0, "{failed} failed, {read} read");
    assert_eq!(fact(&target, "misses"), failed + 1);
}

/// A bad sector costs its readers only, not those of the other sectors of its block.
#[test]
fn what_lies_beside_a_sector_that_cannot_be_read_is_read() {
    for write in ["through", "back"] {
        // One sector of the first read below, which is that of a block.
        let text = format!("md:1m | crash:latent=op1 | cache:1m,block=16k,write={write}");
        let (_target, mut channel, opened) = open(&text);
        let mut read = |offset: u64, length: usize| {
            let read = channel.read(&opened, offset, &mut vec![0xEE; length]);
            read.map_err(|error| error.errno)
        };
        let sectors: Vec<u64> = (0..32).map(|sector| sector * 512).collect();
        let fails = |offset: &&u64| read(**offset, 512) == Err(Errno::IO);
        let bad: Vec<&u64> = sectors.iter().filter(fails).collect();
        let [bad] = bad[..] else {
            panic!("{write}: {bad:?} cannot be read");
        };
        assert_eq!(read(0, 32 << 10), Err(Errno::IO), "{write}");
        assert_eq!(read(bad + 512, 32 << 10), Ok(32 << 10), "{write}");
    }
}

#[test]
fn a_write_that_fails_leaves_nothing_of_itself() {
    let (_target, mut channel, opened) = open("md:1m | nop:wfail=100% | cache:1m");
    let mut bytes = [9; 512];
    channel.read(&opened, 0, &mut bytes).expect("reads");
    channel.write(&opened, 0, &[7; 512]).expect_err("fails");
    channel.read(&opened, 0, &mut bytes).expect("reads");
    assert_eq!(bytes, [0; 512]);
}

#[test]
fn a_writer_below_takes_the_cache_away() {
    let (target, channel, opened) = open("md:1m | cache:1m");
    let refused = target.stack.open(target.bottom, Delta::READ_WRITE).err();
    let refused = refused.map(|error| error.to_string()).unwrap_or_default();
    assert!(refused.contains("md0"), "while it is open: {refused}");
    drop((channel, opened));
    let below = target.stack.open(target.bottom, Delta::READ_WRITE);
    let _below = below.expect("the cache is not in use");
    let gone = target.stack.tree();
    assert!(
        gone.provider("md0.cache").is_none(),
        "it would be out of date"
    );
}

#[test]
fn a_shorter_media_reads_as_what_is_left_and_a_longer_one_as_what_was_added() {
    let (target, mut channel, opened) = open("md:1m | nop:size=64k | cache:1m");
    channel
        .write(&opened, 0, &vec![5; 64 << 10])
        .expect("writes");
    let nop = target.stack.find("md0.nop").expect("a nop");
    target.stack.resize(nop, 40 << 10).expect("shrinks");
    let mut bytes = vec![0; 64 << 10];
    assert_eq!(
        channel.read(&opened, 0, &mut bytes).expect("reads"),
        40 << 10
    );
    assert!(bytes[..40 << 10].iter().all(|byte| *byte == 5));
    target.stack.resize(nop, 64 << 10).expect("grows");
    assert_eq!(
        channel.read(&opened, 0, &mut bytes).expect("reads"),
        64 << 10
    );
    assert!(
        bytes.iter().all(|byte| *byte == 5),
        "the media below had kept it"
    );
}

/// A request that set out before the media became shorter gets the data that is left, or an error,
/// and nothing that lies in the buffers from before.
fn tells_the_end_from_what_was_there<I: Index>() {
    let (target, mut channel, opened) = open("md:64k");
    channel.write(&opened, 0, &[7; 64 << 10]).expect("writes");
    drop((channel, opened));
    let cache = Arc::new(Cache::<I>::new(1, 16 << 10, 64 << 10).expect("memory"));
    let plan = Plan::of(
        ProviderPlan::new("cache", 64 << 10, 512),
        Arc::clone(&cache) as Arc<dyn Geom>,
    );
    let made = target.stack.create("CACHE", plan, &[target.top]);
    let top = made.expect("a cache")[0];
    let opened = target.stack.open(top, Delta::READ).expect("opens");
    let mut channel = target.stack.channel(1).expect("a channel");
    let mut bytes = [0; 512];
    channel.read(&opened, 0, &mut bytes).expect("reads");
    // As it is called when the provider below has changed and the request has not learned of it.
    cache.resize(40 << 10);
    for offset in [44 << 10, 48 << 10, (40 << 10) - 256] {
        let offset = offset / 512 * 512;
        let mut bytes = [0; 1024];
        let failed = channel.read(&opened, offset, &mut bytes).err();
        assert_eq!(failed.map(|error| error.errno), Some(Errno::IO), "{offset}");
    }
    channel.read(&opened, 39 << 10, &mut bytes).expect("reads");
    assert_eq!(bytes, [7; 512]);
}

#[test]
fn what_a_request_asks_for_past_a_new_end_is_an_error_and_not_another_block() {
    tells_the_end_from_what_was_there::<Hash>();
    tells_the_end_from_what_was_there::<Splay>();
}

#[test]
fn a_cache_can_be_as_small_as_a_block_and_blocks_as_large_as_they_may() {
    for text in [
        "md:1m | cache:4k,block=4k",
        "md:1m | cache:65k,block=64k",
        "md:1m,sectorsize=4k | cache:4k,block=4k",
        "md:513s | cache:64k,block=64k,index=splay",
        "md:1s | cache:4k,block=4k,readahead=1e",
    ] {
        let (target, mut channel, opened) = open(text);
        let sector = opened.view().expect("it").sectorsize_bytes as usize;
        let media = opened.view().expect("it").mediasize_bytes as usize;
        let pattern: Vec<u8> = (0..media).map(|at| (at / 97 % 249) as u8).collect();
        channel.write(&opened, 0, &pattern).expect("writes");
        for length in [sector, 3 * sector, 96 << 10, media] {
            for offset in (0..media).step_by((media / 7 / sector).max(1) * sector) {
                let mut bytes = vec![0; length];
                let read = channel.read(&opened, offset as u64, &mut bytes);
                let read = read.unwrap_or_else(|error| panic!("{text}: {error}"));
                assert_eq!(read, length.min(media - offset), "{text}");
                assert_eq!(bytes[..read], pattern[offset..offset + read], "{text}");
            }
        }
        assert_eq!(target.stack.defects(), 0);
    }
}

#[test]
fn as_much_as_there_is_room_for_stays_wherever_it_lies() {
    for first in [0, 64 << 20] {
        let (target, mut channel, opened) =
            open("zero | nop:size=128m | cache:64m,block=4k,readahead=off");
        let mut bytes = vec![0; 1 << 20];
        for _ in 0..2 {
            for offset in (first..first + (64 << 20)).step_by(1 << 20) {
                channel.read(&opened, offset, &mut bytes).expect("reads");
            }
        }
        assert_eq!(fact(&target, "misses"), 16384, "from {first}");
        assert_eq!(fact(&target, "evictions"), 0, "from {first}");
    }
}
