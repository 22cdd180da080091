//! The measurements, on memory disks and with a clock that moves only when it is read.

use super::*;
use ugeom_classes::{Target, TargetOptions, open_target};
use ugeom_stack::{Command, Delta};

/// The step of the clock at each reading, ns.
const TICK_NS: u64 = 1_000_000;

fn target(text: &str) -> Target {
    let options = TargetOptions::default().for_writing();
    open_target(text, &options).expect("a target")
}

struct Run {
    steps: Vec<Step>,
    ended: Result<Ended, DiskinfoError>,
    reads: u64,
    writes: u64,
    flushes: u64,
}

/// Measures until `stop_after` steps are told.
fn run(text: &str, settings: Settings, stop_after: usize) -> Run {
    let target = target(text);
    let tree = target.stack.tree();
    let top = tree.providers().find(|provider| provider.id == target.top);
    let top = top.expect("the top");
    let count = |command: Command| {
        let totals = target.stack.statistics(target.top).expect("statistics");
        totals.operations[command as usize]
    };
    let opened = target.open(Delta::READ_WRITE).expect("opened");
    let opened = std::sync::Arc::new(opened);
    let before = count(Command::Read);
    let (mut now_ns, mut steps) = (0, Vec::new());
    let cancelled = AtomicBool::new(false);
    let mut around = Around {
        now_ns: &mut || {
            now_ns += TICK_NS;
            now_ns
        },
        cancelled: &cancelled,
        tell: &mut |step| {
            steps.push(step);
            if steps.len() == stop_after {
                cancelled.store(true, Ordering::Relaxed);
            }
            ControlFlow::Continue(())
        },
    };
    let ended = measure(&settings, &target.stack, (top, &opened), &mut around);
    Run {
        steps,
        ended,
        reads: count(Command::Read) - before,
        writes: count(Command::Write),
        flushes: count(Command::Flush),
    }
}

fn only(change: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = Settings {
        seed: Some(1),
        each_ns: Some(500 * TICK_NS),
        ..Settings::default()
    };
    change(&mut settings);
    settings
}

#[test]
fn the_overhead_is_ten_blocks_against_one_sector_again_and_again() {
    let run = run("md:2m", only(|settings| settings.overhead = true), 99);
    assert_eq!(run.ended.expect("measured"), Ended::Complete);
    let moved: Vec<(u64, u64)> = run
        .steps
        .iter()
        .map(|s| (s.requests, s.bytes_each))
        .collect();
    assert_eq!(moved, [(10, 1 << 20), (20_480, 512)]);
    assert_eq!(run.reads, 20_490 + 2, "one before each step is not timed");
}

#[test]
fn seeks_and_transfers_are_those_of_freebsd() {
    let run = run(
        "md:8m,sectorsize=4k",
        only(|settings| settings.seeks = true),
        99,
    );
    assert_eq!(run.ended.expect("measured"), Ended::Complete);
    let counts: Vec<u64> = run.steps.iter().map(|step| step.requests).collect();
    assert_eq!(counts, [250, 250, 500, 400, 400, 2048, 2048, 8, 8, 8]);
    assert_eq!(run.reads, counts.iter().sum::<u64>() + 10);
    assert_eq!(run.steps[7].bytes(), 8 << 20);
    assert!(run.steps.iter().all(|step| step.taken_ns == TICK_NS));
}

#[test]
fn random_reads_go_on_until_their_time_is_over() {
    let run = run("md:1m", only(|settings| settings.reads = true), 99);
    assert_eq!(run.ended.expect("measured"), Ended::Complete);
    let sizes: Vec<u64> = run.steps.iter().map(|step| step.bytes_each).collect();
    assert_eq!(sizes, [512, 4096, 32 << 10, 128 << 10, 1 << 20]);
    // The clock is read at each return: 500 of them, and the 127 that are in flight then.
    assert!(run.steps.iter().all(|step| step.requests == 627));
    assert_eq!(run.reads, 5 * 627);
    assert!((run.steps[0].per_second() - 627.0 / 0.501).abs() < 1e-6);
}

#[test]
fn no_size_is_measured_twice_where_sectors_are_large() {
    let run = run(
        "md:1m,sectorsize=4k",
        only(|settings| settings.reads = true),
        99,
    );
    let names: Vec<&str> = run.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(
        names,
        ["sectorsize", "32 kbytes", "128 kbytes", "1024 kbytes"]
    );
}

#[test]
fn each_write_is_made_durable_and_large_ones_go_out_in_pieces() {
    let settings = only(|settings| {
        settings.writes = true;
        settings.each_ns = Some(1);
    });
    let run = run("md:1m", settings, 99);
    assert_eq!(run.ended.expect("measured"), Ended::Complete);
    let names: Vec<&str> = run.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names[..3], ["0.5 kbytes", "1 kbytes", "2 kbytes"]);
    assert_eq!(names.len(), 12, "512 bytes to a megabyte, all there is");
    assert!(run.steps.iter().all(|step| step.requests == 250));
    assert_eq!(run.flushes, 12 * 250);
    // 256 KiB in two pieces, 512 KiB in four, a megabyte in eight.
    assert_eq!(run.writes, 250 * (9 + 2 + 4 + 8));
}

#[test]
fn what_is_stopped_early_has_told_what_it_measured() {
    let all = only(|settings| {
        settings.overhead = true;
        settings.seeks = true;
        settings.writes = true;
    });
    let run = run("md:1m", all, 5);
    assert_eq!(run.ended.expect("measured"), Ended::Early);
    assert_eq!(run.steps.len(), 5);
    assert_eq!(run.writes, 0);
}

#[test]
fn what_a_layer_fails_is_told_with_the_step() {
    let broken = run(
        "md:1m | nop:rfail=1",
        only(|settings| settings.seeks = true),
        99,
    );
    let error = broken.ended.expect_err("a failure").to_string();
    assert!(error.starts_with("measuring Full stroke: "), "{error}");
}
