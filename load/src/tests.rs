//! The requests, counts and refusals of a load. The speed is not tested here.

use super::*;
use ugeom_classes::{Target, TargetOptions, open_target};
use ugeom_format::raidtest::{RaidtestKind, Request};
use ugeom_stack::{Command, Totals};

fn target(text: &str) -> Target {
    let options = TargetOptions::untasted().for_writing();
    open_target(text, &options).unwrap()
}

fn totals(target: &Target) -> Totals {
    target.stack.statistics(target.top).unwrap()
}

fn operations(target: &Target) -> (u64, u64) {
    let totals = totals(target);
    let of = |command: Command| totals.operations[command as usize];
    (of(Command::Read), of(Command::Write))
}

fn range(blocks: u64, write_percent: u8) -> Range {
    Range {
        start_bytes: 4096,
        blocks,
        block_bytes: 512,
        write_percent,
    }
}

fn list(requests: &[(u64, u32, bool)]) -> Pattern {
    let request = |&(offset_bytes, length_bytes, write): &(u64, u32, bool)| Request {
        offset_bytes,
        length_bytes,
        kind: match write {
            true => RaidtestKind::Write,
            false => RaidtestKind::Read,
        },
    };
    Pattern::List(requests.iter().map(request).collect())
}

#[test]
fn every_request_is_sent_counted_and_timed_at_every_depth() {
    for (depth, latency) in [(1, false), (1, true), (7, false), (7, true)] {
        for pattern in [
            Pattern::Sequential(range(100, 0)),
            Pattern::Random(range(100, 0)),
            list(&[(0, 512, false), (512, 1024, false)]),
        ] {
            let md = target("md:1m");
            let job = LoadJob {
                depth,
                latency,
                ..LoadJob::new("job", pattern.clone())
            };
            let outcome = Load::new(&md.stack, md.top, &job)
                .unwrap()
                .run(1000)
                .unwrap();
            assert_eq!(operations(&md), (1000, 0));
            let bytes = totals(&md).bytes[Command::Read as usize];
            assert_eq!((outcome.requests, outcome.bytes), (1000, bytes));
            let timed = outcome.latency.as_ref().map(|latency| latency.count());
            assert_eq!(timed, latency.then_some(1000), "depth {depth}");
        }
    }
}

#[test]
fn the_share_of_writes_is_as_asked() {
    for (write_percent, depth) in [(0, 1), (30, 1), (30, 4), (100, 1), (100, 4)] {
        let md = target("md:1m");
        let job = LoadJob {
            depth,
            ..LoadJob::new("mix", Pattern::Random(range(100, write_percent)))
        };
        Load::new(&md.stack, md.top, &job)
            .unwrap()
            .run(10_000)
            .unwrap();
        let (reads, writes) = operations(&md);
        assert_eq!(reads + writes, 10_000);
        // Four standard deviations of the binomial distribution.
        let wanted = 100 * u64::from(write_percent);
        let room = if write_percent % 100 == 0 { 0 } else { 184 };
        assert!(
            writes.abs_diff(wanted) <= room,
            "{write_percent} %: {writes}"
        );
    }
}

#[test]
fn workers_share_a_list_and_do_all_of_it() {
    let requests: Vec<(u64, u32, bool)> = (0..101).map(|at| (at * 512, 512, at % 2 == 1)).collect();
    for (workers, depth) in [(1, 1), (3, 1), (4, 5), (150, 1)] {
        let md = target("md:1m");
        let job = LoadJob {
            workers,
            depth,
            latency: true,
            ..LoadJob::new("list", list(&requests))
        };
        let outcome = Load::new(&md.stack, md.top, &job)
            .unwrap()
            .run_lists()
            .unwrap();
        assert_eq!((outcome.requests, outcome.bytes), (101, 101 * 512));
        assert_eq!(operations(&md), (51, 50), "{workers} workers");
        assert_eq!(outcome.latency.unwrap().count(), 101);
    }
}

#[test]
fn what_is_written_stands_where_the_list_says() {
    // Written is whatever the buffer holds: the zeroes of a new one, or what was read last.
    let md = target("md:64k");
    let opened = md.open(Delta::READ_WRITE).unwrap();
    let mut channel = md.stack.channel(1).unwrap();
    channel.write(&opened, 0, &[7; 1024]).unwrap();
    drop(opened);
    let pattern = list(&[(512, 512, false), (4096, 512, true)]);
    let job = LoadJob::new("copy", pattern);
    Load::new(&md.stack, md.top, &job).unwrap().run(2).unwrap();
    let opened = md.open(Delta::READ).unwrap();
    let mut sectors = [1; 1536];
    channel.read(&opened, 3584, &mut sectors).unwrap();
    assert_eq!(sectors[..512], [0; 512]);
    assert_eq!(sectors[512..1024], [7; 512]);
    assert_eq!(sectors[1024..], [0; 512]);
}

#[test]
fn a_load_that_does_not_fit_is_refused_before_anything_is_sent() {
    let md = target("md:64k");
    let refused = |pattern: Pattern| {
        let refused = Load::new(&md.stack, md.top, &LoadJob::new("job", pattern));
        refused.err().unwrap().to_string()
    };
    let error = refused(Pattern::Random(range(121, 0)));
    assert_eq!(
        error,
        "job: 61952 bytes at 4096 reach past the end of md0, which has 65536 bytes"
    );
    assert!(refused(list(&[(0, 100, false)])).contains("not whole sectors of md0"));
    assert!(refused(list(&[(65_536, 512, false)])).contains("past the end"));
    assert!(refused(list(&[(u64::MAX - 511, 512, false)])).contains("past the end"));
    assert!(refused(list(&[])).contains("there are no requests"));
    assert_eq!(operations(&md), (0, 0));
}

#[test]
fn the_first_request_that_fails_ends_the_load_with_its_reason() {
    for (depth, workers) in [(1, 1), (4, 1), (1, 3)] {
        let broken = target("md:1m | nop:rfail=1,error=ENOSPC");
        let job = LoadJob {
            depth,
            workers,
            ..LoadJob::new("broken", Pattern::Sequential(range(10, 0)))
        };
        let error = Load::new(&broken.stack, broken.top, &job).unwrap().run(100);
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("case broken: "), "{error}");
        assert!(error.contains("md0.nop"), "{error}");
    }
}

#[test]
fn a_load_waits_for_layers_that_take_their_time() {
    for dispatch in ["direct", "queued"] {
        let options = TargetOptions {
            set: ugeom_classes::spec::Settings::parse(&format!("dispatch={dispatch}")).unwrap(),
            ..TargetOptions::untasted()
        };
        let slow = open_target("md:1m | nop:delay=1ms", &options).unwrap();
        let job = LoadJob {
            depth: 16,
            latency: true,
            ..LoadJob::new("slow", Pattern::Random(range(10, 0)))
        };
        let outcome = Load::new(&slow.stack, slow.top, &job)
            .unwrap()
            .run(40)
            .unwrap();
        let latency = outcome.latency.unwrap();
        assert_eq!(latency.count(), 40);
        assert!(latency.min() >= Some(1_000_000), "each waits: {latency:?}");
    }
}

#[test]
fn a_case_shares_its_iterations_between_the_workers() {
    let md = target("md:1m");
    let job = LoadJob {
        workers: 2,
        latency: true,
        ..LoadJob::new("two", Pattern::Random(range(10, 0)))
    };
    let mut case = case(&md.stack, md.top, &job).unwrap();
    assert_eq!((case.name.as_str(), case.step), ("two", 2));
    let result = (case.run)(30).unwrap();
    assert_eq!(
        (result.work.transactions, result.work.bytes),
        (30, 30 * 512)
    );
    assert_eq!(result.work.latency.unwrap().count(), 30);
    assert_eq!(operations(&md), (30, 0));
}
