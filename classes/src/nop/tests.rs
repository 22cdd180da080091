//! Tests of `nop`: gnop's options, checks and order of decisions.

use super::state::{Decider, Decision};
use super::*;
use crate::physpath::PHYSPATH;
use crate::target::tests::{opened, refuses};
use crate::target::{Target, TargetOptions};
use std::time::{Duration, Instant};
use ugeom_machine::buffer::Buffer;
use ugeom_stack::{AttributeValue, Channel, Delta, Errno, Opened};

fn open(text: &str) -> (Target, Channel, Opened) {
    // Without tasting, whose reads would be decided about, too.
    opened(text, &TargetOptions::untasted(), 1000)
}

/// Reads (or writes) sector by sector; which of them failed, and how.
fn outcomes(text: &str, write: bool, count: u64) -> Vec<Option<Errno>> {
    let (_target, mut channel, opened) = open(text);
    let outcome = |number: u64| {
        let offset = number % 8 * 512;
        let done = if write {
            channel.write(&opened, offset, &[1; 512])
        } else {
            channel.read(&opened, offset, &mut [0; 512])
        };
        done.err().map(|error| error.errno)
    };
    (0..count).map(outcome).collect()
}

#[test]
fn it_shows_the_part_that_was_asked_for() {
    for (text, media, sector) in [
        ("md:1m | nop", 1 << 20, 512),
        ("md:1m | nop:offset=1k", (1 << 20) - 1024, 512),
        ("md:1m | nop:offset=2s", (1 << 20) - 1024, 512),
        ("md:1m | nop:offset=1k,size=4k", 4096, 512),
        ("md:1m | nop:sectorsize=4k", 1 << 20, 4096),
        // Not a power of two, and the media no multiple of it: whole sectors are left.
        ("md:1m | nop:sectorsize=1536", 682 * 1536, 1536),
    ] {
        let (target, _, opened) = open(text);
        let view = opened.view().expect("a view");
        assert_eq!(target.name, "md0.nop");
        assert_eq!(
            (view.mediasize_bytes, view.sectorsize_bytes),
            (media, sector),
            "{text}"
        );
    }
}

#[test]
fn it_claims_the_stripes_it_is_told_to() {
    let (_, _, opened) = open("md:1m | nop:stripesize=128k,stripeoffset=32k");
    let view = opened.view().expect("a view");
    assert_eq!(
        (view.stripesize_bytes, view.stripeoffset_bytes),
        (128 << 10, 32 << 10)
    );
}

#[test]
fn impossible_options_are_refused_where_they_stand() {
    for (options, words) in [
        (
            "offset=100",
            "100 bytes are no whole number of 512-byte sectors",
        ),
        (
            "offset=1m",
            "md0 ends at 1048576, nothing is left after 1048576",
        ),
        ("offset=8e", "nothing is left after"),
        ("size=2m", "md0 has 1048576 bytes after offset 0"),
        (
            "offset=512k,size=768k",
            "md0 has 524288 bytes after offset 524288",
        ),
        (
            "offset=512k,size=16383p",
            "md0 has 524288 bytes after offset 524288",
        ),
        ("size=0", "at least one sector"),
        ("size=1000", "no whole number of 512-byte sectors"),
        ("sectorsize=0", "a multiple of 512 bytes"),
        ("sectorsize=1000", "a multiple of 512 bytes"),
        ("sectorsize=2m", "at most 1m"),
        (
            "size=4k,sectorsize=8k",
            "smaller than one sector of 8192 bytes",
        ),
        ("stripesize=1000", "no whole number"),
        ("stripesize=1k,stripeoffset=1k", "beyond the first stripe"),
        ("stripeoffset=512", "beyond the first stripe"),
        ("rfail=101%", "rfail=101%"),
        ("wfail=-1", "wfail=-1"),
        ("delay=1x", "delay=1x: this is not a duration"),
        ("error=EWHAT", "one of: EACCES, EAGAIN"),
        ("error=0", "this is no error"),
        ("error=-5", "this is no error"),
        ("error=4096", "this is no error"),
        ("rfail=100%,error=ENOMEM", "would never end"),
        ("count_until_fail=5,error=ENOMEM", "would never end"),
        ("rfali=5%", "did you mean `rfail`"),
        ("512", "`512` has no name"),
    ] {
        let text = format!("md:1m | nop:{options}");
        refuses(&[(&text, words)]);
    }
}

#[test]
fn reads_and_writes_fail_with_the_error_they_are_told_to() {
    let all = |errno: Errno| vec![Some(errno); 5];
    assert_eq!(outcomes("md:1m | nop:rfail=100%", false, 5), all(Errno::IO));
    assert_eq!(outcomes("md:1m | nop:rfail=100%", true, 5), [None; 5]);
    assert_eq!(
        outcomes("md:1m | nop:wfail=1,error=enospc", true, 5),
        all(Errno::NOSPC)
    );
    assert_eq!(
        outcomes("md:1m | nop:wfail=1,error=30", true, 5),
        all(Errno::ROFS)
    );
    assert_eq!(outcomes("md:1m | nop:wfail=1", false, 5), [None; 5]);
}

#[test]
fn other_commands_never_fail() {
    let (_target, mut channel, opened) = open("md:1m | nop:rfail=1,wfail=1,delay=3600s");
    channel.flush(&opened).expect("flushes");
    channel
        .discard(&opened, Command::Delete, 0, 512)
        .expect("deletes");
    channel.extents(&opened, 0, 512, 1).expect("extents");
    let delete = channel.attribute(&opened, "GEOM::candelete").expect("asks");
    assert!(delete.is_some());
}

#[test]
fn the_countdown_lets_so_many_pass_and_fails_the_rest() {
    let fate = outcomes("md:1m | nop:count_until_fail=3,error=ENXIO", false, 6);
    let fails = Some(Errno::NXIO);
    assert_eq!(fate, [None, None, None, fails, fails, fails]);
    assert_eq!(
        outcomes("md:1m | nop:count_until_fail=0", true, 2),
        [Some(Errno::IO); 2]
    );
}

#[test]
fn a_failure_comes_before_a_delay() {
    // It would take an hour otherwise.
    let fate = outcomes("md:1m | nop:rfail=100%,delay=3600s", false, 1);
    assert_eq!(fate, [Some(Errno::IO)]);
}

#[test]
fn a_seed_makes_the_same_requests_fail_in_every_run() {
    let run = |seed: u64| outcomes(&format!("md:1m | nop:rfail=30%,seed={seed}"), false, 200);
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn probabilities_are_kept() {
    const COUNT: u64 = 100_000;
    let decider = Decider::new(Faults {
        read_fail: 0.05,
        write_fail: 0.5,
        read_delay: 0.2,
        ..Faults::default()
    });
    let decisions: Vec<_> = (0..COUNT).map(|_| decider.decide(Command::Read)).collect();
    let count =
        |wanted: fn(&Decision) -> bool| decisions.iter().filter(|d| wanted(d)).count() as f64;
    // Five standard deviations of a binomial distribution.
    let within = |found: f64, probability: f64| {
        let mean = COUNT as f64 * probability;
        (found - mean).abs() < 5.0 * (mean * (1.0 - probability)).sqrt()
    };
    let failed = count(|decision| matches!(decision, Decision::Fail(Errno::IO)));
    let delayed = count(|decision| matches!(decision, Decision::Delay(1_000_000)));
    assert!(within(failed, 0.05), "{failed}");
    // Only what did not fail is delayed.
    assert!(within(delayed, 0.95 * 0.2), "{delayed}");
}

#[test]
fn a_delay_alone_is_for_all_reads_and_writes_and_a_probability_for_its_own() {
    let (wait, pass) = (Decision::Delay(7), Decision::Pass);
    for (options, read, write) in [
        ("delay=7ns", wait, wait),
        ("delay=7ns,rdelay=100%", wait, pass),
        ("delay=7ns,wdelay=100%", pass, wait),
        ("delay=7ns,rdelay=0,wdelay=1", pass, wait),
        ("rdelay=1,rfail=0", Decision::Delay(1_000_000), pass),
    ] {
        let text = format!("md:1m | nop:{options}");
        let target = crate::spec::parse(&text, &["md", "nop"]).expect("reads");
        let arguments = target.layers[1].arguments(&[]).expect("arguments");
        let settings = Settings::read(&arguments, &below()).expect("settings");
        let decider = Decider::new(settings.faults.expect("faults"));
        assert_eq!(decider.decide(Command::Read), read, "{text}");
        assert_eq!(decider.decide(Command::Write), write, "{text}");
    }
}

fn below() -> ProviderView {
    let (target, ..) = open("md:1m");
    let tree = target.stack.tree();
    tree.provider("md0").cloned().expect("md0")
}

#[test]
fn nothing_is_paid_for_what_was_not_asked_for() {
    for (options, plain) in [
        ("", true),
        (":offset=512", true),
        (":hook=1", true),
        (":rfail=0,wfail=0,rdelay=0,error=EROFS,seed=7", true),
        (":rfail=1%", false),
        (":delay=0", false),
        (":count_until_fail=9", false),
    ] {
        let text = format!("md:1m | nop{options}");
        let target = crate::spec::parse(&text, &["md", "nop"]).expect("reads");
        let arguments = target.layers[1].arguments(&[]).expect("arguments");
        let settings = Settings::read(&arguments, &below()).expect("settings");
        assert_eq!(settings.faults.is_none(), plain, "{text}");
    }
}

#[test]
fn a_delayed_request_takes_that_long() {
    let (_target, mut channel, opened) = open("md:1m | nop:delay=2ms");
    let begin = Instant::now();
    channel.read(&opened, 0, &mut [0; 512]).expect("reads");
    channel.write(&opened, 0, &[0; 512]).expect("writes");
    assert!(begin.elapsed() >= Duration::from_millis(4));
}

#[test]
fn a_thousand_delays_pass_together() {
    const COUNT: usize = 1000;
    let (_target, mut channel, opened) = open("md:1m | nop:delay=1ms");
    let begin = Instant::now();
    for number in 0..COUNT as u64 {
        let draft = channel.bio().expect("a bio");
        channel.submit(&opened, draft.read(number * 512, Buffer::new(512)));
    }
    let mut done = 0;
    while done < COUNT {
        assert_ne!(
            channel.wait(Some(Duration::from_secs(60))),
            0,
            "{done} came home"
        );
        while let Some(finished) = channel.finished() {
            assert_eq!(finished.result(), Ok(512));
            channel.recycle(finished);
            done += 1;
        }
    }
    let took = begin.elapsed();
    assert!(took >= Duration::from_millis(1));
    // One after the other would take a second; a busy machine may be slow, but not that slow.
    assert!(took < Duration::from_millis(500), "{took:?}");
}

#[test]
fn what_fails_for_want_of_memory_is_tried_again() {
    // ENOMEM never reaches the caller: the stack waits and asks again.
    let fate = outcomes("md:1m | nop:rfail=50%,error=ENOMEM", false, 10);
    assert_eq!(fate, [None; 10]);
}

#[test]
fn it_follows_the_size_of_what_is_below() {
    for (text, shrunk, left) in [
        ("md:1m | nop:offset=64k", 512 << 10, Some(448 << 10)),
        ("md:1m | nop:offset=64k,size=64k", 512 << 10, Some(64 << 10)),
        ("md:1m | nop:offset=64k,size=512k", 512 << 10, None),
        ("md:1m | nop:offset=600k", 512 << 10, None),
    ] {
        let (target, channel, opened) = open(text);
        drop((channel, opened));
        target.stack.resize(target.bottom, shrunk).expect("resizes");
        let tree = target.stack.tree();
        let media = tree
            .provider("md0.nop")
            .map(|provider| provider.mediasize_bytes);
        assert_eq!(media, left, "{text}");
    }
}

#[test]
fn a_writer_below_does_not_spoil_it() {
    let (target, mut channel, opened) = open("md:1m | nop");
    let below = target
        .stack
        .open(target.bottom, Delta::READ_WRITE)
        .expect("opens");
    channel.write(&below, 0, &[9; 512]).expect("writes");
    let mut bytes = [0; 512];
    channel.read(&opened, 0, &mut bytes).expect("reads");
    assert_eq!(bytes, [9; 512]);
}

#[test]
fn its_counters_are_those_of_the_stack() {
    let (target, mut channel, opened) = open("md:1m | nop:count_until_fail=2");
    let _ = channel.read(&opened, 0, &mut [0; 1024]);
    let _ = channel.write(&opened, 0, &[0; 512]);
    let _ = channel.read(&opened, 0, &mut [0; 512]);
    channel.flush(&opened).expect("flushes");
    let _ = channel.discard(&opened, Command::Delete, 0, 512);
    let _ = channel.attribute(&opened, "GEOM::ident");
    let totals = target.stack.statistics(target.top).expect("totals");
    let counted = counters(&totals);
    let expected = [
        ("Reads", 2),
        ("Writes", 1),
        ("Deletes", 1),
        ("Getattrs", 1),
        ("Flushes", 1),
        // gnop counts the bytes that were asked for; the read that failed read none.
        ("ReadBytes", 1024),
        ("WroteBytes", 512),
    ];
    assert_eq!(counted, expected);
    assert_eq!(
        totals.errors, 1,
        "the failed read; an attribute without an answer is no error"
    );
}

/// FreeBSD's `gnop create -z`: another path, and none at all.
#[test]
fn it_reports_the_physical_path_that_it_is_told_to() {
    for (options, expected) in [
        (":physpath=some/physical/path", Some("some/physical/path")),
        (":physpath=a,rfail=1,delay=3600s", Some("a")),
        (":physpath=\"\"", Some("")),
        (":physpath=below | nop", Some("below")),
        (":physpath=below | nop:physpath=above", Some("above")),
        ("", None),
    ] {
        let (_target, mut channel, opened) = open(&format!("md:1m | nop{options}"));
        let path = channel.attribute(&opened, PHYSPATH).expect("asks");
        let expected = expected.map(|path| AttributeValue::Text(path.to_owned()));
        assert_eq!(path, expected, "{options}");
    }
}

#[test]
fn the_facts_are_called_as_gnop_calls_them() {
    let (target, ..) = open("md:1m | nop:offset=1k,rfail=5%,delay=1ms,count_until_fail=9");
    let tree = target.stack.tree();
    let geom = tree
        .geoms
        .iter()
        .find(|geom| geom.class == "NOP")
        .expect("a geom");
    let of = |key: &str| geom.fact(key);
    assert_eq!(of("Offset"), Some("1024"));
    assert_eq!(of("ReadFailProb"), Some("5"));
    assert_eq!(of("ReadDelayedProb"), Some("100"));
    assert_eq!(of("DelayNs"), Some("1000000"));
    assert_eq!(of("Error"), Some("5"));
    assert_eq!(of("CountUntilFail"), Some("9"));
}
