//! The measurement, its results, and the report. The speed is not tested here.

use super::findings::Against;
use super::knobs::{FINAL, POOLS_AWAY, REGISTRY_AWAY};
use super::*;
use ugeom_experiment::run_here;
use ugeom_harness::Settings;
use ugeom_harness::host::Host;
use ugeom_harness::{Control, CpuTimes, Machine, Measured, Round, Sample};

/// A document with made-up rates: `rate(row, workers)` is that of a row, give or take 1 %.
fn made_up(rate: impl Fn(&str, u64) -> f64) -> Document {
    made_up_on(2, rate)
}

/// The same on so many cores.
fn made_up_on(cores: u64, rate: impl Fn(&str, u64) -> f64) -> Document {
    let (cases, subject) = matrix(&ScalingOptions::default(), cores, 7).unwrap();
    let names: Vec<String> = cases.iter().map(|case| case.name.clone()).collect();
    let mut random = fastrand::Rng::with_seed(1);
    let rounds = (0..12_u64).map(|round| {
        let sample = |name: &String| {
            let (row, workers) = name.rsplit_once('/').unwrap();
            let workers: u64 = workers.parse().unwrap();
            let rate = rate(row, workers);
            Sample {
                iterations: 1_000_000,
                wall_ns: (1e15 / rate * (0.99 + 0.02 * random.f64())) as u64,
                cpu: CpuTimes {
                    process_ns: (1e15 / doubling(row, 1)) as u64 + round * 1000 * workers,
                    ..CpuTimes::default()
                },
                ..Sample::default()
            }
        };
        Round {
            order: (0..names.len()).collect(),
            samples: names.iter().map(sample).collect(),
            null_floor: None,
        }
    });
    let rounds = rounds.collect();
    let measured = Measured::of(names, rounds);
    let settings = Settings::default();
    let mut document = Document::new(EXPERIMENT, Host::now(), settings, subject, measured);
    compute(&mut document);
    document
}

/// Each rung doubles the rate, two workers do twice as much as one; without the lock-free registry
/// a tenth is lost, without pools of its own nothing.
fn doubling(row: &str, workers: u64) -> f64 {
    let base = match row {
        "statistics on" | "statistics on, spinning" => 2e6,
        "statistics off" | "statistics off, spinning" => 4e6,
        "direct" => 8e6,
        "lock-free registry" => 16e6,
        REGISTRY_AWAY => 28.8e6,
        _ => 32e6,
    };
    base * workers.min(2) as f64
}

#[test]
fn every_row_is_measured_in_every_column_and_each_knob_is_taken_away() {
    let options = ScalingOptions {
        workers: vec![8, 3],
        ..ScalingOptions::default()
    };
    let (cases, subject) = matrix(&options, 2, 7).unwrap();
    assert_eq!(subject.workers, [1, 2, 3, 8]);
    let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), (5 + 2) * 4 + 6 * 2 + 3 + 2 + 3);
    for name in [
        "statistics on/8",
        "per-core pools/3",
        "locked registry/2",
        "again/2",
        "a stack each/2",
    ] {
        assert!(names.contains(&name), "{name}");
    }
    let unique: std::collections::BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(unique.len(), names.len());
}

#[test]
fn the_columns_are_those_of_the_publication_with_the_cores() {
    assert_eq!(columns(&[], 2), [1, 2, 4, 8, 16]);
    assert_eq!(columns(&[], 4), [1, 4, 8, 16]);
    assert_eq!(columns(&[64], 1), [1, 64]);
}

#[test]
fn steps_are_found_with_their_size_and_judged_together() {
    let document = made_up(doubling);
    let judgement = judge(&document);
    for row in ["statistics off", "direct", "lock-free registry", FINAL] {
        let step = judgement.step(Against::Before, row, 2).unwrap();
        assert!(
            step.significant && step.ratio.contains(2.0),
            "{row}: {step:?}"
        );
        let (few, all) = (step.few.unwrap(), step.all.unwrap());
        assert!(few.proven && all.proven);
        assert_eq!((few.degrees_of_freedom, all.degrees_of_freedom), (4, 22));
        assert!((all.percent - 100.0).abs() < 2.0, "{}", all.percent);
    }
    let sum = judgement.step(Against::First, FINAL, 16).unwrap();
    assert!(sum.significant && sum.ratio.contains(16.0));
    let lost = judgement.step(Against::Last, REGISTRY_AWAY, 2).unwrap();
    assert!(lost.significant && lost.ratio.contains(0.9), "{lost:?}");
    let same = judgement.step(Against::Last, POOLS_AWAY, 2).unwrap();
    assert!(!same.significant, "{same:?}");
}

#[test]
fn goals_are_judged_with_as_many_workers_as_cores() {
    let document = made_up(doubling);
    let reached = |id: &str| document.figure(id).unwrap().reached().unwrap().word();
    assert_eq!(reached("one"), "reached");
    assert_eq!(reached("scaling"), "reached");
    let contended = made_up(|row, workers| doubling(row, workers) / (1.0 + workers as f64 / 2.0));
    let figure = contended.figure("scaling").unwrap();
    assert!((figure.interval.estimate - 0.75).abs() < 0.01, "{figure:?}");
    assert_eq!(figure.reached().unwrap().word(), "not met");
    assert!(document.noise.is_some());
}

#[test]
fn what_the_machine_does_not_give_is_told_from_what_workers_lose() {
    let document = made_up(|row, workers| match (row, workers) {
        ("sharing nothing", 2) => 0.9 * doubling(row, workers),
        ("filling cores", 2) => 0.6 * doubling(row, workers),
        ("a stack each", 2) => 0.8 * doubling(FINAL, workers),
        _ => doubling(row, workers),
    });
    let machine = document.figure("scaling.machine").unwrap();
    assert!(
        (machine.interval.estimate - 0.9).abs() < 0.01,
        "{machine:?}"
    );
    let filled = document.figure("scaling.filled").unwrap();
    assert!((filled.interval.estimate - 0.6).abs() < 0.01, "{filled:?}");
    let apart = document.figure("scaling.apart").unwrap();
    assert!((apart.interval.estimate - 0.8).abs() < 0.01, "{apart:?}");
    let shared = document.figure("scaling.shared").unwrap();
    assert!((shared.interval.estimate - 1.25).abs() < 0.02, "{shared:?}");
    assert_eq!(shared.reached().unwrap().word(), "reached");
    let by_cpu = document.figure("scaling.cpu").unwrap();
    // Twice the rate in the same time is the same time on a processor, with two of them.
    assert!((by_cpu.interval.estimate - 1.0).abs() < 0.01, "{by_cpu:?}");
    let mut document = document;
    for (whole, words) in [
        (Some(2), "as on hyperthreads"),
        (None, "as on hyperthreads"),
        (Some(1), "The 2 processors are hyperthreads of 1 cores"),
    ] {
        document.host.cores_whole = whole;
        let flowing = report(&document).to_text(100);
        let flowing = flowing.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [
            "threads with dependent steps of computation reach 0.90 x",
            "threads that fill their core 0.60 x",
            "With a stack each, where they share nothing, they reach 0.80 x",
            words,
        ] {
            assert!(flowing.contains(words), "{words}:\n{flowing}");
        }
    }
}

#[test]
fn whole_cores_are_not_doubted() {
    let text = report(&made_up(doubling)).to_text(100);
    assert!(!text.contains("out of reach"), "{text}");
}

#[test]
fn the_report_says_what_each_knob_buys_and_what_is_not_here() {
    let text = report(&made_up(doubling)).to_text(100);
    for part in [
        "All knobs on: 1 worker 3",
        "All knobs off to on: ",
        "no such lock: ",
        "16 over",
        "Without the lock-free registry, 2 workers: slower, significant",
        "Without the per-core pools, 2 workers: within 5 %: the knob has no effect",
        "+187.0 % +/- 2.8",
        "436.055 % +/- 8.4109 %",
        "--set registry=locked",
    ] {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(part), "{part}:\n{text}");
    }
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
}

#[test]
fn one_core_has_one_column() {
    let page = report(&made_up_on(1, doubling));
    assert!(!page.answer.contains("workers"), "{}", page.answer);
    let columns = page.summary.expect("a table").columns;
    let columns: Vec<&str> = columns.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(columns[1..], ["1 worker", "step", "published"]);
}

#[test]
fn what_is_uncertain_is_not_called_nothing() {
    let random = std::cell::RefCell::new(fastrand::Rng::with_seed(5));
    let document = made_up(|row, workers| {
        let wild = if row == POOLS_AWAY {
            random.borrow_mut().f64()
        } else {
            0.5
        };
        doubling(row, workers) * (0.5 + wild)
    });
    let text = report(&document).to_text(100);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "Without the per-core pools, 2 workers: not significant.";
    assert!(words.contains(expected), "{text}");
}

#[test]
fn a_document_is_read_as_it_was_saved() {
    let document = made_up(doubling);
    let text = document.to_json().unwrap();
    let again = Document::from_json(&text, EXPERIMENT).unwrap();
    assert_eq!(report(&again).to_text(100), report(&document).to_text(100));
}

#[test]
fn the_least_that_can_be_measured_is_reported() {
    let options = ScalingOptions {
        workers: vec![1],
        common: Common {
            seed: Some(3),
            budget_ns: Some(1),
            ..Common::default()
        },
        ..ScalingOptions::default()
    };
    let mut control = Control::silent();
    let document = run_here::<Scaling>(&options, &Machine, &mut control).unwrap();
    assert!(document.rounds() >= 10);
    let text = report(&document).to_text(100);
    ugeom_testkit::has(&text, "The ladder");
    let timed = document.figure("rate.timed/1");
    assert!(timed.is_some_and(|figure| figure.interval.estimate > 0.0));
}
