//! The harness against cases whose cost is known, on a clock that they move themselves.

use super::*;
use std::cell::{Cell as Shared, RefCell};

/// A clock that only the cases move.
#[derive(Default)]
struct Fake {
    now_ns: Shared<u64>,
    /// Every run: case and iterations.
    runs: RefCell<Vec<(usize, u64)>>,
}

impl Meter for Fake {
    fn now_ns(&self) -> u64 {
        self.now_ns.get()
    }

    fn read(&self) -> Reading {
        let now = self.now_ns.get();
        Reading {
            cpu: CpuTimes {
                thread_ns: now / 2,
                process_ns: now,
                machine_ns: 2 * now,
                switches_voluntary: now / 1_000_000,
                ..CpuTimes::default()
            },
            cores_busy_ns: vec![now / 2, now, now / 4],
        }
    }
}

impl Fake {
    /// A case whose iteration takes `cost_ns`, wobbling by `wobble` per cent from run to run.
    fn case(&self, index: usize, cost_ns: u64, wobble: u64) -> Case<'_> {
        let mut seen = 0_u64;
        Case::new(format!("case {index}"), move |iterations| {
            self.runs.borrow_mut().push((index, iterations));
            seen += 1;
            let ns_total = iterations * cost_ns * (100 + (seen * 7 % 5) * wobble) / 100;
            self.now_ns.set(self.now_ns.get() + ns_total);
            Ok(RunResult::taking(ns_total))
        })
    }

    fn run(&self, cases: &mut [Case<'_>], settings: &Settings) -> Measured {
        run(cases, settings, self, &mut Control::silent()).unwrap()
    }
}

fn settings() -> Settings {
    Settings {
        seed: 7,
        ..Settings::default()
    }
}

#[test]
fn runs_are_as_long_as_asked_whatever_an_iteration_costs() {
    let fake = Fake::default();
    let mut cases = [
        fake.case(0, 3, 0),
        fake.case(1, 100, 0),
        fake.case(2, 9_000_000, 0),
    ];
    let measured = fake.run(&mut cases, &settings());
    for sample in &measured.rounds[0].samples {
        assert!(
            (44_000_000..=50_000_000).contains(&sample.wall_ns),
            "{sample:?}"
        );
    }
    assert!(!measured.shortened.any());
    assert_eq!(measured.rounds[3].samples[1].ns_per_iteration(), 100.0);
    let cpu = measured.rounds[0].samples[1].cpu;
    assert_eq!(
        cpu.helpers_ns(),
        cpu.thread_ns,
        "half of the fake's time is a helper's"
    );
    assert_eq!(cpu.machine_ns, 2 * cpu.process_ns);
}

#[test]
fn trials_that_were_interrupted_do_not_shorten_the_runs() {
    // Of the trials that are long enough to count, the first two wait 15 ms for a core.
    let fake = Fake::default();
    let mut waits = 2;
    let case = Case::new("interrupted", |iterations| {
        let mut ns_total = 100 * iterations;
        if iterations > 100 && waits > 0 {
            waits -= 1;
            ns_total += 15_000_000;
        }
        fake.now_ns.set(fake.now_ns.get() + ns_total);
        Ok(RunResult::taking(ns_total))
    });
    let measured = fake.run(&mut [case], &settings());
    let wall_ns = measured.rounds[0].samples[0].wall_ns;
    assert!((44_000_000..=50_000_000).contains(&wall_ns), "{wall_ns}");
}

#[test]
fn every_round_runs_every_case_once_in_an_order_of_its_own() {
    let measure = || {
        let fake = Fake::default();
        let mut cases: Vec<Case<'_>> = (0..6).map(|index| fake.case(index, 50, 2)).collect();
        let settings = Settings {
            precision: 0.0,
            ..settings()
        };
        fake.run(&mut cases, &settings)
    };
    let measured = measure();
    assert_eq!(measured.rounds.len(), 50);
    let mut orders = Vec::new();
    for round in &measured.rounds {
        let mut sorted = round.order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3, 4, 5]);
        orders.push(round.order.clone());
    }
    orders.sort();
    orders.dedup();
    assert!(orders.len() > 40, "orders repeat: {}", orders.len());
    assert_eq!(measure(), measured, "the same seed gives the same rounds");
}

#[test]
fn the_warm_up_is_run_and_not_counted() {
    let fake = Fake::default();
    let mut cases = [fake.case(0, 1000, 0)];
    let measured = fake.run(&mut cases, &settings());
    drop(cases);
    let runs = fake.runs.into_inner();
    let counted = measured.rounds[0].samples[0].iterations;
    let measured_runs = runs
        .iter()
        .filter(|(_, iterations)| *iterations == counted)
        .count();
    let warm_ups = runs
        .iter()
        .filter(|(_, iterations)| *iterations == counted / 20)
        .count();
    assert_eq!(
        (measured_runs, warm_ups),
        (measured.rounds.len(), measured.rounds.len())
    );
}

#[test]
fn a_fixed_length_is_kept_to_the_letter() {
    let fake = Fake::default();
    let length = Length::Exactly {
        warm_up: 100,
        iterations: 100_000,
    };
    let mut cases = [fake.case(0, 40, 0).with_length(length), fake.case(1, 40, 0)];
    let measured = fake.run(
        &mut cases,
        &Settings {
            budget_ns: Some(1),
            ..settings()
        },
    );
    drop(cases);
    assert!(
        measured
            .rounds
            .iter()
            .all(|round| round.samples[0].iterations == 100_000)
    );
    let runs = fake.runs.into_inner();
    let first = runs.iter().position(|run| *run == (0, 100_000)).unwrap();
    assert_eq!(runs[first - 1], (0, 100));
}

#[test]
fn iterations_come_in_steps_that_threads_can_share() {
    let fake = Fake::default();
    let mut cases = [
        fake.case(0, 30_000_000, 0).in_steps_of(2),
        fake.case(1, 77, 0).in_steps_of(2),
    ];
    let measured = fake.run(&mut cases, &settings());
    drop(cases);
    assert!(
        fake.runs
            .into_inner()
            .iter()
            .all(|(_, iterations)| iterations % 2 == 0)
    );
    assert_eq!(
        measured.rounds[0].samples[0].iterations, 2,
        "one step is the least"
    );
}

#[test]
fn what_a_run_needs_around_its_own_clock_is_no_iteration() {
    let fake = Fake::default();
    // Ten milliseconds to start, three nanoseconds an iteration.
    let slow_to_start = Case::new("threads", |iterations| {
        let ns_total = 3 * iterations;
        fake.now_ns.set(fake.now_ns.get() + 10_000_000 + ns_total);
        Ok(RunResult::taking(ns_total))
    });
    let budget_ns = Some(1_000_000_000);
    let measured = fake.run(
        &mut [slow_to_start],
        &Settings {
            budget_ns,
            ..settings()
        },
    );
    let sample = &measured.rounds[0].samples[0];
    assert_eq!(sample.ns_per_iteration(), 3.0);
    assert!(sample.wall_ns >= 40_000_000, "{sample:?}");
    assert!(
        measured.elapsed_ns <= 1_000_000_000,
        "the start counts against the budget"
    );
}

#[test]
fn it_stops_by_precision_in_whole_rounds_and_not_before_ten() {
    let fake = Fake::default();
    let steady = fake.run(
        &mut [fake.case(0, 100, 0), fake.case(1, 100, 0)],
        &settings(),
    );
    assert_eq!((steady.rounds.len(), steady.ended), (10, Ended::Precise));
    let fake = Fake::default();
    // One wobbling case keeps all of them going.
    let wobbling = fake.run(
        &mut [fake.case(0, 100, 0), fake.case(1, 100, 2)],
        &settings(),
    );
    assert!(wobbling.rounds.len() > 10 && wobbling.ended == Ended::Precise);
    let worst = wobbling.precision.unwrap();
    assert!(worst.case == "case 1" && worst.relative <= 0.01 && worst.relative > 0.005);
    let fake = Fake::default();
    let wild = fake.run(&mut [fake.case(0, 100, 90)], &settings());
    assert_eq!((wild.rounds.len(), wild.ended), (50, Ended::RoundsMax));
}

#[test]
fn a_budget_takes_repetitions_first_and_length_then() {
    // Two cases, 50 ms and 5 % each: a round takes 105 ms. 2 s are 19 rounds.
    let budget = |budget_ms: u64| Settings {
        budget_ns: Some(budget_ms * 1_000_000),
        precision: 0.0,
        ..settings()
    };
    let measure = |budget_ms: u64| {
        let fake = Fake::default();
        let measured = fake.run(
            &mut [fake.case(0, 100, 1), fake.case(1, 70, 1)],
            &budget(budget_ms),
        );
        let elapsed_ms = fake.now_ns.get() / 1_000_000;
        assert_eq!(measured.elapsed_ns / 1_000_000, elapsed_ms);
        (measured, elapsed_ms)
    };
    let (wide, elapsed_ms) = measure(2000);
    assert!(
        (15..=19).contains(&wide.rounds.len()),
        "{}",
        wide.rounds.len()
    );
    assert!(wide.shortened.rounds && wide.shortened.run_ns == 50_000_000);
    assert!(wide.ended == Ended::Budget && elapsed_ms <= 2000);
    let (narrow, elapsed_ms) = measure(200);
    assert_eq!(narrow.rounds.len(), 10, "never fewer than ten");
    assert!(narrow.shortened.any() && narrow.shortened.run_ns < 10_000_000);
    assert!((150..=200).contains(&elapsed_ms), "{elapsed_ms}");
    let (none, _) = measure(0);
    assert_eq!((none.rounds.len(), none.shortened.run_ns), (10, 2_000_000));
}

#[test]
fn a_stop_keeps_the_whole_rounds() {
    let fake = Fake::default();
    let cancelled = AtomicBool::new(false);
    let mut measuring = 0;
    let mut progress = |progress: &Progress<'_>| {
        measuring += u64::from(progress.phase == Phase::Measuring);
        // In the middle of the fifth round.
        if measuring == 14 {
            cancelled.store(true, Ordering::Relaxed);
        }
    };
    let mut control = Control {
        progress: &mut progress,
        cancelled: &cancelled,
    };
    let mut cases = [
        fake.case(0, 100, 1),
        fake.case(1, 70, 1),
        fake.case(2, 70, 1),
    ];
    let measured = run(&mut cases, &settings(), &fake, &mut control).unwrap();
    assert_eq!(
        (measured.rounds.len(), measured.ended),
        (4, Ended::Cancelled)
    );
}

#[test]
fn progress_counts_up_to_its_total() {
    let fake = Fake::default();
    let cancelled = AtomicBool::new(false);
    let mut seen = Vec::new();
    let mut progress = |progress: &Progress<'_>| {
        seen.push((progress.phase, progress.done, progress.total));
    };
    let mut control = Control {
        progress: &mut progress,
        cancelled: &cancelled,
    };
    let settings = Settings {
        budget_ns: Some(1_000_000_000),
        precision: 0.0,
        ..settings()
    };
    run(
        &mut [fake.case(0, 100, 1), fake.case(1, 70, 1)],
        &settings,
        &fake,
        &mut control,
    )
    .unwrap();
    assert_eq!(
        seen[..2],
        [(Phase::Calibrating, 0, 2), (Phase::Calibrating, 1, 2)]
    );
    assert!(
        seen[2..]
            .iter()
            .all(|(phase, done, total)| *phase == Phase::Measuring && done < total)
    );
    let last = seen.last().unwrap();
    assert!(
        last.1 + 1 == last.2,
        "the last run is the last of all: {last:?}"
    );
}

#[test]
fn a_case_that_fails_ends_the_measurement_with_its_reason() {
    let fake = Fake::default();
    let broken = Case::new("broken", |_| {
        Err(HarnessError::Thread {
            case: "broken".into(),
            problem: "it did not start".into(),
        })
    });
    let mut cases = [broken];
    let ended = run(&mut cases, &settings(), &fake, &mut Control::silent());
    let error = ended.unwrap_err();
    assert_eq!(error.to_string(), "case broken: it did not start");
}

/// Cases of which the second fails in its run number `last`, and what was kept of them.
fn failing_in_run(last: u64) -> (Measured, Option<HarnessError>) {
    let fake = Fake::default();
    let mut runs = 0;
    let breaks = Case::new("breaks", |iterations| {
        runs += 1;
        fake.now_ns.set(fake.now_ns.get() + 100 * iterations);
        if runs == last {
            let (case, problem) = ("breaks".to_owned(), "the disk went away".to_owned());
            return Err(HarnessError::Thread { case, problem });
        }
        Ok(RunResult::taking(100 * iterations))
    });
    let mut cases = [fake.case(0, 100, 1), breaks];
    run_keeping(&mut cases, &settings(), &fake, &mut Control::silent())
}

#[test]
fn what_was_measured_before_a_case_failed_is_kept() {
    // Trials come first; each round then has a warm-up and a run.
    let (_, none) = failing_in_run(u64::MAX);
    assert!(none.is_none());
    let (late, error) = failing_in_run(12);
    assert_eq!(
        error.unwrap().to_string(),
        "case breaks: the disk went away"
    );
    let failure = late.failure.clone().unwrap();
    assert_eq!(
        (late.ended, failure.case.as_str()),
        (Ended::Failed, "breaks")
    );
    assert_eq!(failure.error, "case breaks: the disk went away");
    assert!(!late.rounds.is_empty() && late.rounds.iter().all(|round| round.samples.len() == 2));
    if let Some(unfinished) = &late.unfinished {
        assert!(!unfinished.calibrating && unfinished.samples.iter().all(|(case, _)| *case == 0));
    }
}

#[test]
fn a_failure_while_calibrating_keeps_the_trials() {
    let (early, error) = failing_in_run(1);
    assert!(error.is_some() && early.rounds.is_empty());
    let unfinished = early.unfinished.unwrap();
    assert!(unfinished.calibrating);
    let (case, trial) = &unfinished.samples[0];
    assert!(*case == 0 && trial.wall_ns > 0, "{trial:?}");
}

#[test]
fn the_counters_of_the_device_belong_to_the_run() {
    struct Disk(std::sync::atomic::AtomicU64);
    impl Counters for Disk {
        fn name(&self) -> &str {
            "disk"
        }
        fn read(&self) -> Option<DeviceCounts> {
            let reads = self.0.load(Ordering::Relaxed);
            Some(DeviceCounts {
                reads,
                read_bytes: reads * 512,
                ..DeviceCounts::default()
            })
        }
    }
    let fake = Fake::default();
    let disk = Arc::new(Disk(std::sync::atomic::AtomicU64::new(99)));
    let below = Arc::clone(&disk);
    let reading = Case::new("reading", |iterations| {
        below.0.fetch_add(iterations, Ordering::Relaxed);
        fake.now_ns.set(fake.now_ns.get() + 100 * iterations);
        let work = Work::of(512 * iterations, iterations);
        Ok(RunResult::taking(100 * iterations).doing(work))
    });
    let idle = fake.case(0, 100, 0);
    let measured = fake.run(&mut [reading.observing(disk), idle], &settings());
    for round in &measured.rounds {
        let sample = &round.samples[0];
        let counts = sample.device.unwrap();
        assert_eq!(counts.reads, sample.iterations, "warm-ups are not counted");
        assert_eq!(counts.bytes(), sample.work.bytes);
        assert_eq!(sample.cpu.busiest_core_ns, sample.wall_ns);
        assert!(sample.cpu.switches() <= sample.wall_ns / 1_000_000 + 1);
        assert_eq!(round.samples[1].device, None);
    }
}

/// Two threads that a busy machine starts so many ns apart.
fn two_threads<'a>(fake: &'a Fake, mut apart_ns: impl FnMut() -> u64 + 'a) -> Case<'a> {
    let case = Case::new("two threads", move |iterations| {
        let ns = apart_ns() + iterations * 10;
        fake.now_ns.set(fake.now_ns.get() + ns);
        Ok(RunResult::taking(ns))
    });
    case.in_steps_of(2)
}

/// Threads that start 8 ms apart in every run.
#[test]
fn threads_that_start_apart_do_not_shorten_the_runs() {
    let fake = Fake::default();
    let case = two_threads(&fake, || 8_000_000);
    let settings = Settings {
        run_ns: 3_000_000,
        rounds_min: 1,
        rounds_max: 1,
        ..settings()
    };
    let measured = fake.run(&mut [case], &settings);
    let iterations = measured.lengths[0].iterations;
    assert!(iterations > 20_000, "{iterations} of 300,000");
}

/// Threads that start 8 or 20 ms apart: a longer trial that falls on the 20 ms is no proof that its
/// work takes longer.
#[test]
fn threads_that_start_apart_by_different_times_do_not_shorten_the_runs() {
    let (short, long) = (8_000_000, 20_000_000);
    let patterns = [
        vec![short, long],
        vec![short, short, long],
        vec![short, short, short, long],
        vec![long, short, short, short, short],
    ];
    let all = patterns
        .iter()
        .flat_map(|pattern| [(pattern, false), (pattern, true)]);
    for (pattern, late) in all {
        let fake = Fake::default();
        let mut starts_ns = pattern.iter().cycle();
        let two_threads = two_threads(&fake, || *starts_ns.next().unwrap());
        let settings = Settings {
            run_ns: 3_000_000,
            run_ns_min: 1_000_000,
            rounds_min: 1,
            rounds_max: 1,
            // Late: half of it is gone before the trials of the threads.
            budget_ns: late.then_some(60_000_000),
            ..settings()
        };
        let slow = fake.case(0, 40_000_000, 0);
        let mut cases = [slow, two_threads];
        let measured = fake.run(&mut cases, &settings);
        let iterations = measured.lengths[1].iterations;
        let of = measured.shortened.run_ns / 10;
        assert!(
            iterations > of / 15,
            "{pattern:?}, late: {late}: {iterations} of {of}"
        );
    }
}

#[test]
fn work_that_has_an_end_leaves_its_time_to_the_others() {
    let fake = Fake::default();
    let mut cases = [
        fake.case(0, 1000, 0).with_length(Length::AtMost(500)),
        fake.case(1, 1000, 0).with_length(Length::AtMost(1 << 40)),
        fake.case(2, 1000, 0),
    ];
    let budget_ns = 1_000_000_000;
    let settings = Settings {
        budget_ns: Some(budget_ns),
        run_ns: 10_000_000_000,
        precision: 0.0,
        ..settings()
    };
    let measured = fake.run(&mut cases, &settings);
    let samples = &measured.rounds[0].samples;
    assert_eq!(samples[0].iterations, 500, "all of its work");
    assert_eq!(samples[1].iterations, samples[2].iterations);
    let wall_ns = samples[1].wall_ns;
    assert!(
        wall_ns > budget_ns / 10 * 4 / 10,
        "two share a tenth of it: {wall_ns}"
    );
    assert!(fake.now_ns() <= budget_ns * 11 / 10, "{}", fake.now_ns());
    assert!(measured.shortened.any());
}

#[test]
fn work_whose_end_is_no_whole_number_of_steps_is_measured_in_whole_steps() {
    let fake = Fake::default();
    let mut cases = [
        // So quick that no trial is long enough before the work ends.
        fake.case(0, 1, 0)
            .with_length(Length::AtMost(500))
            .in_steps_of(32),
        fake.case(1, 1, 0)
            .with_length(Length::AtMost(5))
            .in_steps_of(32),
    ];
    let measured = fake.run(&mut cases, &settings());
    for round in &measured.rounds {
        let iterations: Vec<u64> = round.samples.iter().map(|it| it.iterations).collect();
        assert_eq!(iterations, [480, 32]);
    }
}

#[test]
fn what_prepares_a_run_is_not_counted() {
    let fake = Fake::default();
    let prepared = Shared::new(0_u64);
    let case = fake.case(0, 1000, 0).preparing(|| {
        prepared.set(prepared.get() + 1);
        fake.now_ns.set(fake.now_ns.get() + 1_000_000_000);
        Ok(())
    });
    let mut cases = [case];
    let measured = fake.run(&mut cases, &settings());
    let sample = &measured.rounds[0].samples[0];
    assert!(sample.wall_ns < 100_000_000, "{sample:?}");
    assert_eq!(sample.cpu.process_ns, sample.wall_ns);
    let runs = fake.runs.borrow().len() as u64;
    assert!(
        prepared.get() > 10 && prepared.get() < runs,
        "not before warm-ups"
    );
}
