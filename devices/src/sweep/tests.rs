//! The sweep on simulated time, where every limit is known.

use super::cases::Matrix;
use super::*;
use std::cell::{Cell as Shared, RefCell};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use ugeom_classes::disk::{Drive, Parameters, Work as DriveWork};
use ugeom_experiment::{run_here, saved};
use ugeom_harness::processes::Share;
use ugeom_harness::{Case, CpuTimes, DeviceCounts, Length, Reading, RunResult, Work};
use ugeom_load::places::Sequence;
use ugeom_report::to_html;
use ugeom_testkit::has;

static GO_ON: AtomicBool = AtomicBool::new(false);

/// A clock that only the drive moves.
#[derive(Clone, Default)]
struct Simulated(Rc<Shared<u64>>);

impl Meter for Simulated {
    fn now_ns(&self) -> u64 {
        self.0.get()
    }

    fn read(&self) -> Reading {
        let cpu = CpuTimes {
            system_ns: self.0.get() / 3,
            ..CpuTimes::default()
        };
        Reading {
            cpu,
            cores_busy_ns: vec![self.0.get() / 3, 0],
        }
    }
}

/// The drive of 2004, as the class `disk` has it.
fn parameters(overhead_ns: u64, rate_bytes_per_second: u64) -> Parameters {
    Parameters {
        size_bytes: 4 << 30,
        overhead_ns,
        rate_bytes_per_second,
        seek_ns: 0,
        seek_track_ns: 0,
        revolutions_per_minute: 0,
        buffer_bytes: 2 << 20,
        queue: 1,
    }
}

fn sweep_here(options: &SweepOptions) -> Result<Document, HarnessError> {
    run_here::<Sweep>(options, &harness::Machine, &mut Control::silent())
}

/// Sweeps a drive in simulated time.
fn swept(parameters: Parameters, options: &SweepOptions) -> Document {
    let clock = Simulated::default();
    let drive = Rc::new(RefCell::new(Drive::new(parameters)));
    let mut matrix = Matrix::new(options, 1, &GO_ON);
    let part = matrix.part(SweepTarget {
        name: "disk".to_owned(),
        target: "simulated".to_owned(),
        region_bytes: options.bytes,
        device: Some("disk0".to_owned()),
        transfer_bytes_max: None,
        set: Some(SetLimits {
            transaction_ns: parameters.overhead_ns,
            bytes_per_second: parameters.rate_bytes_per_second,
        }),
    });
    let depths = [1, 4, 32].map(|depth| (options.min_bytes, Role::Depth(depth)));
    let steps = options
        .blocks_bytes()
        .into_iter()
        .map(|block| (block, Role::Step));
    for (block_bytes, role) in steps.chain(depths) {
        let facts = CaseFacts {
            part,
            way: CacheMode::Stack,
            role,
            block_bytes,
        };
        let clock = clock.clone();
        let mut places = Sequence::new(0, block_bytes, options.bytes / block_bytes);
        let drive = Rc::clone(&drive);
        let run = move |iterations: u64| {
            let start_ns = clock.0.get();
            for offset_bytes in places.by_ref().take(iterations as usize) {
                let work = DriveWork::Read {
                    offset_bytes,
                    length_bytes: block_bytes,
                };
                clock.0.set(drive.borrow_mut().run(work, clock.0.get()));
            }
            let work = Work::of(iterations * block_bytes, iterations);
            Ok(RunResult::taking(clock.0.get() - start_ns).doing(work))
        };
        let most = (options.bytes / block_bytes).max(1);
        let case = Case::new(facts.name("disk"), run).with_length(Length::AtMost(most));
        matrix.push(case, facts);
    }
    let share = Share {
        run_ns: RUN_NS,
        ..Share::alone(1, options.common.limit_ns())
    };
    let settings = share.settings(0);
    let host = Host::now();
    let measured = measure(matrix, host, &settings, &clock, &mut Control::silent());
    let mut document = measured.unwrap();
    compute(&mut document);
    document
}

#[test]
fn the_limits_that_a_simulated_disk_was_given_are_found() {
    for (overhead_ns, rate) in [
        (68_601, 57_123_364),
        (1_000_000, 200_000_000),
        (9_000, 90_000_000),
    ] {
        let document = swept(parameters(overhead_ns, rate), &SweepOptions::default());
        let figure = |id: &str| document.figure(id).unwrap().interval.estimate;
        let transactions = figure("disk.stack.transactions") * overhead_ns as f64 / 1e9;
        let bandwidth = figure("disk.stack.bandwidth") / rate as f64;
        // The first block of a run begins with a pause that the others do not have.
        assert!(
            (transactions - 1.0).abs() < 0.02,
            "{transactions} of {overhead_ns} ns"
        );
        assert!((bandwidth - 1.0).abs() < 0.02, "{bandwidth} of {rate} B/s");
        let depth = figure("disk.stack.depth32");
        assert!((depth - 1.0).abs() < 0.1, "one at a time: {depth}");
    }
}

/// The disk's known limits, times that vary by process and by run: the interval over processes
/// holds the truth in at least 93 of 100 measurements.
#[test]
fn the_known_limits_of_a_disk_are_in_their_intervals() {
    let exact = swept(parameters(68_601, 57_123_364), &SweepOptions::default());
    let truth = |id: &str| exact.figure(id).unwrap().interval.estimate;
    let ids = ["disk.stack.bandwidth", "disk.stack.transactions"];
    let truths = ids.map(truth);
    let mut random = fastrand::Rng::with_seed(5);
    let mut factor = |share: f64| {
        let sum: f64 = (0..12).map(|_| random.f64()).sum();
        ((sum - 6.0) * share).exp()
    };
    let mut held = [0; 2];
    for _ in 0..100 {
        let mut document = exact.clone();
        let one = &exact.processes[0];
        document.processes = (0..12)
            .map(|_| {
                let mut process = one.clone();
                process.rounds.truncate(1);
                let of_process = factor(0.02);
                for sample in &mut process.rounds[0].samples {
                    sample.wall_ns = (sample.wall_ns as f64 * of_process * factor(0.03)) as u64;
                }
                process
            })
            .collect();
        compute(&mut document);
        for (at, id) in ids.into_iter().enumerate() {
            held[at] += usize::from(document.figure(id).unwrap().interval.contains(truths[at]));
        }
    }
    assert!(held.iter().all(|held| *held >= 93), "{held:?} of 100");
}

#[test]
fn the_report_names_both_limits_and_the_kind_of_the_first() {
    let document = swept(parameters(68_601, 57_123_364), &SweepOptions::default());
    let text = page(&document).to_text(100);
    for words in [
        "small blocks: at most 14,5",
        "large blocks: at most 57.",
        "Small blocks are limited by IOPS",
        "This disk simulates 14,577 IOPS and 57.1 MB/s",
        "The ATA disk of 2004: at most 14,5",
    ] {
        let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            plain.to_lowercase().contains(&words.to_lowercase()),
            "{words}\n{text}"
        );
    }
    assert!(
        text.lines().all(|line| line.chars().count() <= 110),
        "{text}"
    );
    let again = Document::from_json(&document.to_json().unwrap(), EXPERIMENT).unwrap();
    assert_eq!(page(&again), page(&document));
    assert!(dd(&document).starts_with("# time dd if=simulated of=/dev/null bs=512 count="));
}

#[test]
fn no_limit_is_drawn_where_none_is_claimed() {
    let good = swept(parameters(68_601, 57_123_364), &SweepOptions::default());
    let mut poor = good.clone();
    // Every second size takes three times as long: no model of two limits describes that.
    for round in &mut poor.processes[0].rounds {
        for (index, sample) in round.samples.iter_mut().enumerate() {
            if good.subject.cases[index]
                .block_bytes
                .trailing_zeros()
                .is_multiple_of(2)
            {
                sample.wall_ns *= 3;
            }
        }
    }
    let drawn = |document: &Document| to_html(&[saved::<Sweep>(document).unwrap()]);
    for line in ["bandwidth", "knee"] {
        assert!(drawn(&good).contains(&format!(">{line}")), "{line}");
        assert!(!drawn(&poor).contains(&format!(">{line}")), "{line}");
    }
    assert!(page(&poor).to_text(100).contains("No verdict about limits"));
    assert!(drawn(&poor).contains("model (does not fit)"));
}

#[test]
fn a_budget_cuts_bytes_after_repetitions_and_says_so() {
    let common = |full| Common {
        budget_ns: Some(5_000_000_000),
        full,
        ..Common::default()
    };
    let options = SweepOptions {
        common: common(false),
        ..SweepOptions::default()
    };
    let short = swept(parameters(68_601, 57_123_364), &options);
    assert_eq!(short.rounds(), 10);
    let text = page(&short).to_text(100);
    let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(plain.contains("bytes: runs of less than 64 MiB"), "{text}");
    let full = swept(
        parameters(68_601, 57_123_364),
        &SweepOptions {
            common: common(true),
            ..options
        },
    );
    let moved = |document: &Document| document.processes[0].rounds[0].samples[0].work.bytes;
    assert_eq!(moved(&full), 64 << 20, "all of them");
    assert!(moved(&short) < 8 << 20);
}

fn target(text: &str) -> SweepOptions {
    SweepOptions {
        target: Some(text.to_owned()),
        bytes: 256 << 10,
        common: Common {
            budget_ns: Some(200_000_000),
            ..Common::default()
        },
        ..SweepOptions::default()
    }
}

fn run_target(text: &str) -> Document {
    sweep_here(&target(text)).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn blocks_larger_than_the_target_are_left_out_with_the_reason() {
    let document = run_target("md:64k | nop");
    let steps = document
        .subject
        .cases
        .iter()
        .filter(|case| case.role == Role::Step);
    assert_eq!(steps.map(|case| case.block_bytes).max(), Some(64 << 10));
    let left_out = &document.subject.left_out;
    assert!(
        left_out
            .iter()
            .any(|one| one.contains("the target has 65536 bytes")),
        "{left_out:?}"
    );
    assert_eq!(document.subject.parts[0].device.as_deref(), Some("md0"));
    let warnings = page(&document).warnings.join("; ");
    has(&warnings, "(the target has 65536 bytes), and ");
    let sectors = run_target("md:64k,sectorsize=4k");
    let text = sectors.subject.left_out.join("; ");
    has(
        &text,
        "blocks of 2048 bytes (md0 has sectors of 4096 bytes)",
    );
}

#[test]
fn processes_that_disagree_give_no_limit() {
    let options = SweepOptions::default();
    let sweep = |overhead_ns| swept(parameters(overhead_ns, 57_123_364), &options);
    let mut agreeing = sweep(68_601);
    let mut disagreeing = sweep(68_601);
    for overhead_ns in [68_601, 68_601, 68_601, 30_000, 5_000, 500, 20] {
        agreeing.processes.append(&mut sweep(68_601).processes);
        disagreeing
            .processes
            .append(&mut sweep(overhead_ns).processes);
    }
    let answer = |document: &mut Document| {
        compute(document);
        page(document).answer
    };
    let said = answer(&mut agreeing);
    has(&said, "IOPS [");
    let said = answer(&mut disagreeing);
    assert!(
        said.contains("(no limits fit)") && !said.contains("at most"),
        "{said}"
    );
}

#[test]
fn reads_that_copy_nothing_are_told() {
    let warnings = |rate| {
        let drive = Parameters {
            buffer_bytes: 0,
            ..parameters(100, rate)
        };
        page(&swept(drive, &SweepOptions::default()))
            .warnings
            .join("; ")
    };
    let lent = warnings(400_000_000_000);
    has(&lent, "GB/s is more than memory can be copied at");
    let copied = warnings(20_000_000_000);
    assert!(!copied.contains("copied at"), "{copied}");
}

#[test]
fn a_stack_counts_what_it_was_asked_for() {
    let document = run_target("md:256k | nop");
    let samples = &document.processes[0].rounds[0].samples;
    for (facts, sample) in document.subject.cases.iter().zip(samples) {
        let device: DeviceCounts = sample.device.unwrap();
        assert_eq!(device.reads, sample.work.transactions, "{facts:?}");
        assert_eq!(device.read_bytes, sample.work.bytes, "{facts:?}");
    }
}

#[test]
fn a_target_that_fails_in_the_middle_leaves_what_was_measured() {
    // The failure ends the sweep, not the budget, which a busy machine may use up before.
    let options = SweepOptions {
        common: Common {
            budget_ns: Some(10_000_000_000),
            ..Common::default()
        },
        ..target("md:256k | nop:count_until_fail=4000")
    };
    let document = sweep_here(&options).unwrap();
    let measured = &document.processes[0];
    let failure = measured.failure.as_ref().unwrap();
    assert!(
        failure.error.contains("EIO") || failure.error.contains("nput/output"),
        "{failure:?}"
    );
    assert!(measured.unfinished.is_some() || !measured.rounds.is_empty());
    let text = page(&document).to_text(100);
    has(&text, "FAILED");
    let limits = text.contains("with p = ");
    let doubted = text.contains("too few rounds for intervals");
    assert!(!limits || doubted || document.rounds() > 1, "{text}");
    let refused = sweep_here(&target("md:256k | nop:count_until_fail=0"));
    assert!(refused.is_err(), "nothing was measured");
}

#[test]
fn a_file_is_read_both_ways_and_random_blocks_too() {
    let scratch = Scratch::new(None, 1 << 20, 3, &GO_ON).unwrap();
    let text = scratch.path().display().to_string();
    assert!(is_path(&text).is_some() && is_path("md:1m").is_none());
    assert!(is_path(&format!("{text} | nop")).is_none());
    let random = SweepOptions {
        random: true,
        ..target(&text)
    };
    let document = sweep_here(&random).unwrap();
    let ways = |way| {
        document
            .subject
            .cases
            .iter()
            .filter(move |case| case.way == way)
            .count()
    };
    assert!(ways(CacheMode::Buffered) >= 10);
    // A file system in memory may have no direct I/O, and says so.
    assert!(ways(CacheMode::Direct) >= 10 || !document.subject.left_out.is_empty());
    assert!(document.target.is_some());
}

#[test]
fn one_sweep_does_not_keep_itself_out() {
    let scratch = Scratch::new(None, 1 << 20, 3, &GO_ON).unwrap();
    let path = scratch.path().display().to_string();
    for text in [path.clone(), format!("{path} | nop")] {
        let options = SweepOptions {
            write: true,
            ..target(&text)
        };
        let document = sweep_here(&options).unwrap();
        let left_out = document.subject.left_out.join("; ");
        assert!(!left_out.contains("open for writing"), "{left_out}");
        let ways = document.subject.cases.iter().map(|case| case.way);
        let buffered = ways
            .clone()
            .filter(|way| *way == CacheMode::Buffered)
            .count();
        assert!(buffered > 0, "{text}: {left_out}");
        let deep =
            |case: &&CaseFacts| case.role == Role::Depth(32) && case.way == CacheMode::Direct;
        let is_deep = document.subject.cases.iter().any(|case| deep(&case));
        let is_direct = ways.clone().any(|way| way == CacheMode::Direct);
        assert!(is_deep || !is_direct, "{text}: {left_out}");
    }
}

#[test]
fn what_holds_no_blocks_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.img");
    std::fs::write(&empty, []).unwrap();
    let refused = |text: &str| {
        let options = target(text);
        match sweep_here(&options) {
            Ok(_) => format!("{text} was measured"),
            Err(error) => error.to_string(),
        }
    };
    let folder = folder.path().display().to_string();
    assert!(refused(&folder).contains("is no file and no block device"));
    assert!(refused("/dev/null").contains("/dev/null: is no file"));
    assert!(refused(&empty.display().to_string()).contains("is empty"));
    assert!(refused("md:2m,sectorsize=1m").contains("nothing of it can be measured"));
}

#[test]
fn writing_moves_what_it_says() {
    let options = SweepOptions {
        write: true,
        ..target("md:256k")
    };
    let document = sweep_here(&options).unwrap();
    let sample = &document.processes[0].rounds[0].samples[0];
    assert_eq!(sample.device.unwrap().write_bytes, sample.work.bytes);
}
