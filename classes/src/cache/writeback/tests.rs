//! Tests of write-back: the writes below and their times, refusals, reports.

use super::super::tests::open;
use crate::target::tests::refuses;
use crate::{Target, TargetOptions, open_target};
use std::time::{Duration, Instant};
use ugeom_machine::buffer::Buffer;
use ugeom_stack::{Channel, Command, Delta, Errno, ExtentKind, Flags, Opened, Stack};
use ugeom_testkit::has;

/// A number that the cache of a stack reports of itself.
pub(super) fn number_of(stack: &Stack, key: &str) -> u64 {
    let tree = stack.tree();
    let geom = tree.geoms.iter().find(|geom| geom.class == "CACHE");
    let fact = geom.expect("a cache").fact(key);
    fact.map_or(0, |value| value.parse().expect("a number"))
}

fn target(text: &str) -> Target {
    let options = TargetOptions::untasted().for_writing();
    open_target(text, &options).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn text_fact(target: &Target, key: &str) -> Option<String> {
    let tree = target.stack.tree();
    let geom = tree.geoms.iter().find(|geom| geom.class == "CACHE");
    geom.expect("a cache").fact(key).map(str::to_owned)
}

/// A figure of the cache's geom.
fn fact(target: &Target, key: &str) -> u64 {
    let value = text_fact(target, key).unwrap_or_else(|| panic!("no {key}"));
    value.parse().expect("a number")
}

/// Reads the media below the cache from its beginning.
fn read_media(target: &Target, bytes: &mut [u8]) {
    let opened = target.stack.open(target.bottom, Delta::READ);
    let mut channel = target.stack.channel(1).expect("a channel");
    let read = channel.read(&opened.expect("opens"), 0, bytes);
    read.expect("reads");
}

/// How many requests of a command the provider at the bottom has seen.
fn below(target: &Target, command: Command) -> u64 {
    let totals = target.stack.statistics(target.bottom).expect("totals");
    totals.operations[command as usize]
}

/// Waits for the flusher, which has a clock of its own.
fn until(what: &str, mut is: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn flagged(channel: &mut Channel, opened: &Opened, offset: u64, byte: u8, flags: Flags) {
    let draft = channel.bio().expect("a bio");
    let draft = draft.write(offset, Buffer::from_slice(&[byte; 512]));
    channel.submit(opened, draft.flags(flags));
    while channel.wait(None) == 0 {}
    let finished = channel.finished().expect("it");
    assert_eq!(finished.result(), Ok(512));
}

#[test]
fn options_are_checked() {
    refuses(&[
        (
            "md:1m | cache:write=behind",
            "write=behind: expected one of through, back",
        ),
        ("md:1m | cache:dirty=1m", "dirty goes with write=back"),
        (
            "md:1m | cache:write=through,dirty=50%",
            "dirty goes with write=back",
        ),
        (
            "md:1m | cache:write=back,dirty=0",
            "room for one dirty block of 16384",
        ),
        (
            "md:1m | cache:write=back,dirty=0%",
            "room for one dirty block",
        ),
        (
            "md:1m | cache:1m,write=back,dirty=1%",
            "room for one dirty block",
        ),
        (
            "md:1m | cache:1m,write=back,dirty=15k",
            "room for one dirty block",
        ),
        (
            "md:1m | cache:1m,write=back,dirty=2m",
            "the whole cache has 1048576 bytes",
        ),
        (
            "md:1m | cache:1m,write=back,dirty=101%",
            "dirty=101%: this is not",
        ),
        (
            "md:1m | cache:1m,write=back,dirty=many",
            "dirty=many: this is not",
        ),
        (
            "md:1m | cache:1m,write=back,dirty=%",
            "dirty=%: this is not",
        ),
    ]);
    for (text, limit) in [
        ("md:1m | cache:1m,write=back", 512 << 10),
        ("md:1m | cache:16k,write=back", 16 << 10),
        ("md:1m | cache:1m,write=back,dirty=100%", 1 << 20),
        ("md:1m | cache:1m,write=back,dirty=100k", 96 << 10),
    ] {
        assert_eq!(fact(&target(text), "dirty_limit"), limit, "{text}");
    }
    assert_eq!(
        text_fact(&target("md:1m | cache"), "write").as_deref(),
        Some("through")
    );
}

#[test]
fn a_write_is_in_memory_and_gets_below_by_itself() {
    let (target, mut channel, opened) = open("md:1m | cache:1m,block=4k,write=back");
    for offset in (0..64 << 10).step_by(4096) {
        channel.write(&opened, offset, &[3; 4096]).expect("writes");
    }
    assert_eq!(fact(&target, "writes"), 16);
    until("an idle cache is clean", || fact(&target, "dirty") == 0);
    let written = below(&target, Command::Write);
    assert_eq!(written, fact(&target, "writes_below"));
    assert!(written < 16, "neighbours in one: {written}");
    let bytes = target
        .stack
        .statistics(target.bottom)
        .expect("totals")
        .bytes;
    assert_eq!(bytes[Command::Write as usize], 64 << 10);
}

#[test]
fn nothing_gets_old_while_others_are_written() {
    let text = "md:1m | cache:1m,block=4k,write=back,dirty=100%,idle=3600s,age=20ms";
    let (target, mut channel, opened) = open(text);
    until("what is old gets below", || {
        channel.write(&opened, 0, &[3; 512]).expect("writes");
        below(&target, Command::Write) > 0
    });
}

#[test]
fn a_part_of_a_block_is_written_as_a_part() {
    let (target, mut channel, opened) = open("md:1m | cache:1m,write=back,idle=3600s,age=3600s");
    channel
        .write(&opened, 16384 + 1024, &[3; 512])
        .expect("writes");
    channel
        .write(&opened, 16384 + 4096, &[3; 1024])
        .expect("writes");
    assert_eq!((fact(&target, "fills"), fact(&target, "dirty")), (1, 1536));
    channel.flush(&opened).expect("flushes");
    let totals = target.stack.statistics(target.bottom).expect("totals");
    assert_eq!(totals.operations[Command::Write as usize], 2);
    assert_eq!(totals.bytes[Command::Write as usize], 1536);
    assert_eq!(below(&target, Command::Flush), 1);
}

#[test]
fn closing_and_taking_away_write_everything_and_flush() {
    let (target, mut channel, opened) = open("md:1m | cache:1m,write=back,idle=3600s,age=3600s");
    let reader = target.open(Delta::READ).expect("opens");
    channel.write(&opened, 0, &[7; 512]).expect("writes");
    opened.close().expect("closes");
    assert_eq!(
        (
            below(&target, Command::Write),
            below(&target, Command::Flush)
        ),
        (1, 1)
    );
    drop(reader);
    let opened = target.open(Delta::READ_WRITE).expect("opens");
    drop(opened);
    assert_eq!(below(&target, Command::Flush), 1, "nothing was written");
    let opened = target.open(Delta::READ_WRITE).expect("opens");
    channel.write(&opened, 512, &[8; 512]).expect("writes");
    let tree = target.stack.tree();
    let geom = tree
        .geoms
        .iter()
        .find(|geom| geom.class == "CACHE")
        .expect("it");
    target.stack.destroy_forced(geom.id).expect("goes");
    drop((opened, channel));
    let opened = target
        .stack
        .open(target.bottom, Delta::READ)
        .expect("opens");
    let mut bytes = [0; 1024];
    let mut channel = target.stack.channel(1).expect("a channel");
    channel.read(&opened, 0, &mut bytes).expect("reads");
    assert_eq!((bytes[0], bytes[512]), (7, 8));
}

#[test]
fn fua_goes_through_and_supersedes_and_ordered_comes_after_everything_before() {
    let (target, mut channel, opened) = open("md:1m | cache:1m,write=back,idle=3600s,age=3600s");
    channel.write(&opened, 0, &[1; 1024]).expect("writes");
    flagged(&mut channel, &opened, 0, 2, Flags::FUA);
    assert_eq!(below(&target, Command::Write), 1);
    assert_eq!(fact(&target, "dirty"), 512, "the other sector");
    flagged(&mut channel, &opened, 65536, 3, Flags::ORDERED);
    assert_eq!(below(&target, Command::Write), 3, "the dirty one before it");
    assert_eq!(fact(&target, "dirty"), 0);
    let mut bytes = [0; 1024];
    channel.read(&opened, 0, &mut bytes).expect("reads");
    assert_eq!((bytes[0], bytes[512]), (2, 1));
    drop((opened, channel));
    read_media(&target, &mut bytes);
    assert_eq!((bytes[0], bytes[512]), (2, 1), "on the media");
}

#[test]
fn deleting_drops_what_is_dirty_and_writes_what_lies_beside_it() {
    for command in [Command::Delete, Command::Zero] {
        let (target, mut channel, opened) =
            open("md:1m | cache:1m,write=back,idle=3600s,age=3600s");
        channel
            .write(&opened, 0, &vec![5; 64 << 10])
            .expect("writes");
        let done = channel.discard(&opened, command, 8192, 32 << 10);
        assert_eq!(done.expect("deletes"), 32 << 10);
        let mut bytes = vec![9; 64 << 10];
        channel.read(&opened, 0, &mut bytes).expect("reads");
        let expected = |at: usize| if (8192..40960).contains(&at) { 0 } else { 5 };
        assert!(
            bytes
                .iter()
                .enumerate()
                .all(|(at, byte)| *byte == expected(at))
        );
        opened.close().expect("closes");
        drop(channel);
        read_media(&target, &mut bytes);
        assert!(
            bytes
                .iter()
                .enumerate()
                .all(|(at, byte)| *byte == expected(at))
        );
    }
}

#[test]
fn extents_know_what_is_not_below_yet() {
    let (_target, mut channel, opened) = open("md:1m | cache:1m,write=back,idle=3600s,age=3600s");
    channel.write(&opened, 32768, &[5; 16384]).expect("writes");
    let extents = channel.extents(&opened, 0, 65536, 10).expect("extents");
    let mut at = 0;
    let data = extents.iter().find(|extent| {
        at += extent.length_bytes;
        extent.kind == ExtentKind::Data
    });
    assert_eq!(
        (data.map(|data| data.length_bytes), at),
        (Some(16384), 49152)
    );
}

#[test]
fn writers_wait_for_room_and_do_not_grow_it() {
    let (target, mut channel, opened) = open("md:4m | cache:256k,block=4k,write=back,dirty=16k");
    for offset in (0..4 << 20).step_by(4096) {
        channel
            .write(&opened, offset, &[(offset >> 12) as u8; 4096])
            .expect("writes");
        assert!(fact(&target, "dirty") <= 16 << 10);
    }
    channel
        .write(&opened, 0, &vec![1; 1 << 20])
        .expect("one larger than the limit");
    let mut bytes = [0; 4096];
    channel
        .read(&opened, (3 << 20) + 4096, &mut bytes)
        .expect("reads");
    assert_eq!(bytes, [1; 4096]);
}

#[test]
fn what_cannot_be_written_is_kept_and_reported_until_it_can() {
    let text = "md:1m | nop:wfail=100% | cache:1m,write=back,dirty=32k,idle=3600s,age=3600s";
    let (target, mut channel, opened) = open(text);
    channel
        .write(&opened, 16384, &[7; 16384])
        .expect("it is in memory");
    for _ in 0..2 {
        let error = channel.flush(&opened).expect_err("it cannot be written");
        assert_eq!(error.errno, Errno::IO);
        has(&error.reason, "could not be written below");
    }
    assert_eq!(
        (fact(&target, "unwritten"), fact(&target, "unwritten_at")),
        (16384, 16384)
    );
    assert!(fact(&target, "write_errors") >= 2);
    let mut bytes = [0; 512];
    channel.read(&opened, 16384, &mut bytes).expect("reads");
    assert_eq!(bytes, [7; 512]);
    channel
        .write(&opened, 65536, &[7; 16384])
        .expect("room is left");
    let error = channel
        .write(&opened, 131_072, &[7; 16384])
        .expect_err("no more");
    assert_eq!(error.provider, "md0.nop", "it went below itself");
    let error = opened.close().expect_err("it cannot be written");
    assert_eq!((&*error.provider, error.offset_bytes), ("md0.nop", 16384));
    assert_eq!(
        fact(&target, "dirty"),
        32768,
        "it is kept for the next writer"
    );
    let opened = target.open(Delta::READ).expect("opens");
    channel.read(&opened, 16384, &mut bytes).expect("reads");
    assert_eq!(bytes, [7; 512]);
}

#[test]
fn what_could_not_be_written_is_written_when_it_can_and_flush_succeeds_then() {
    let text = "md:1m | nop:wfail=60%,seed=3 | cache:1m,block=4k,write=back,idle=3600s,age=3600s";
    let (target, mut channel, opened) = open(text);
    for offset in (0..1 << 20).step_by(64 << 10) {
        channel
            .write(&opened, offset, &[7; 4096])
            .expect("it is in memory");
    }
    let mut failures = 0;
    while channel.flush(&opened).is_err() {
        failures += 1;
    }
    assert!(failures > 0);
    assert_eq!((fact(&target, "dirty"), fact(&target, "unwritten")), (0, 0));
    let totals = target.stack.statistics(target.bottom).expect("totals");
    assert_eq!(totals.bytes[Command::Write as usize], 64 << 10, "each once");
}

#[test]
fn a_provider_that_goes_away_takes_nothing_in_silence() {
    let (target, mut channel, opened) =
        open("md:1m | nop | cache:1m,write=back,idle=3600s,age=3600s");
    channel
        .write(&opened, 0, &[7; 16384])
        .expect("it is in memory");
    let nop = target.stack.find("md0.nop").expect("it");
    target.stack.orphan(nop, Errno::NXIO).expect("goes");
    let error = opened.close().expect_err("it cannot be written");
    assert_eq!(error.errno, Errno::NXIO);
}

#[test]
fn a_media_that_shrinks_keeps_what_fits_and_reports_the_rest() {
    let (target, mut channel, opened) =
        open("md:1m | nop:size=64k | cache:1m,write=back,idle=3600s,age=3600s");
    channel
        .write(&opened, 0, &vec![5; 64 << 10])
        .expect("writes");
    let nop = target.stack.find("md0.nop").expect("a nop");
    target.stack.resize(nop, 40 << 10).expect("shrinks");
    assert_eq!(
        (fact(&target, "lost"), fact(&target, "lost_at")),
        (24 << 10, 40 << 10)
    );
    let mut bytes = vec![0; 64 << 10];
    assert_eq!(
        channel.read(&opened, 0, &mut bytes).expect("reads"),
        40 << 10
    );
    assert!(bytes[..40 << 10].iter().all(|byte| *byte == 5));
    channel.flush(&opened).expect_err("something is lost");
    channel.flush(&opened).expect("flushes");
    target.stack.resize(nop, 64 << 10).expect("grows");
    assert_eq!(
        channel.read(&opened, 0, &mut bytes).expect("reads"),
        64 << 10
    );
    assert!(
        bytes[40 << 10..].iter().all(|byte| *byte == 0),
        "it never got there"
    );
    assert!(bytes[..40 << 10].iter().all(|byte| *byte == 5));
}

#[test]
fn a_read_only_user_makes_nothing_dirty_and_a_forgotten_stack_ends() {
    let target = target("md:1m | cache:1m,write=back");
    let opened = target.open(Delta::READ).expect("opens");
    let mut channel = target.stack.channel(1).expect("a channel");
    let refused = channel
        .write(&opened, 0, &[1; 512])
        .expect_err("not for writing");
    assert_eq!(refused.errno, Errno::PERM);
    drop((target, opened, channel));
}
