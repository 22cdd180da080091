//! Comparisons of made-up results whose truth is known.

use super::*;
use serde_json::Value;
use ugeom_harness::HarnessError;
use ugeom_harness::compare::{CompareOptions, Loaded, Side, Source, between, compare, gate};
use ugeom_harness::document::Document;
use ugeom_harness::host::Host;
use ugeom_harness::{Measured, Round, Sample, Settings, Work};
use ugeom_measure::gate::Outcome;
use ugeom_testkit::has;

/// A result of processes of one round; `ns` gives the time of a case in a round.
fn result(name: &str, cases: &[&str], rounds: u64, ns: impl Fn(usize, u64) -> u64) -> Loaded {
    let sample = |case: usize, round: u64| Sample {
        iterations: 1000,
        wall_ns: 1000 * ns(case, round),
        work: Work::of(512_000, 1000),
        ..Sample::default()
    };
    let round = |round: u64| Round {
        order: (0..cases.len()).collect(),
        samples: (0..cases.len()).map(|case| sample(case, round)).collect(),
        null_floor: None,
    };
    let measured = Measured::of(
        cases.iter().map(|case| (*case).to_owned()).collect(),
        (0..rounds).map(round).collect(),
    );
    let settings = Settings::default();
    let mut document = Document::new("layers", Host::now(), settings, Value::Null, measured);
    // Each round as a process: an observation.
    let whole = document.processes.remove(0);
    for round in &whole.rounds {
        let mut one = whole.clone();
        one.rounds = vec![round.clone()];
        document.processes.push(one);
    }
    let text = document.to_json().unwrap();
    Loaded::read(name, &text).unwrap()
}

/// A wobble without memory or drift.
fn wobble(case: usize, round: u64) -> u64 {
    (round * 7 + case as u64 * 3 + round * round) % 11
}

fn told(compared: &Compared) -> String {
    page(compared).to_text(100)
}

#[test]
fn two_results_are_compared_case_by_case_and_metric_by_metric() {
    let cases = ["md0", "md0s1", "only before"];
    let before = result("before.json", &cases, 20, |case, round| {
        10_000 + wobble(case, round)
    });
    let after = result("after.json", &cases[..2], 20, |case, round| {
        if case == 0 {
            10_000 + wobble(case, round + 3)
        } else {
            11_000 + wobble(case, round)
        }
    });
    let results = [before, after];
    let compared = compare(&results, &CompareOptions::default()).unwrap();
    assert!(
        !compared.interleaved && compared.confounded[0].contains("all other changes in between")
    );
    let ids: Vec<&str> = compared
        .metrics
        .iter()
        .map(|one| one.metric.as_str())
        .collect();
    assert_eq!(ids, ["time", "bytes_per_second", "transactions_per_second"]);
    let time = compared.metric("time").unwrap();
    assert_eq!(time.rows.len(), 2, "what is in both");
    let left_out = "Left out: in before.json, not in after.json: only before.";
    assert!(told(&compared).contains(left_out), "{}", told(&compared));
    // The largest effect first.
    let slower = &time.rows[0];
    assert_eq!(
        (slower.case.as_str(), slower.claim),
        ("md0s1", Claim::Slower)
    );
    assert!((slower.change.unwrap().ratio.estimate - 1.1).abs() < 1e-3);
    assert!(slower.p_value.unwrap() < 1e-6);
    assert_eq!(time.rows[1].claim, Claim::Equivalent);
    assert!((time.geometric_mean.unwrap() - 1.1_f64.sqrt()).abs() < 1e-3);
    // Rates fall when times rise, and both are called slower.
    let rate = compared.metric("bytes_per_second").unwrap();
    has(&rate.rows[0].words, " % slower (");
    let text = told(&compared);
    for part in [
        "of 2 comparisons, 0 better, 1 worse; geometric mean +4.9 %",
        "20+20",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json = serde_json::to_string(&compared).unwrap();
    assert_eq!(serde_json::from_str::<Compared>(&json).unwrap(), compared);
    let options = CompareOptions {
        changed: true,
        ..CompareOptions::default()
    };
    let changed = compare(&results, &options).unwrap();
    let rates = CompareOptions {
        metrics: vec!["iops".to_owned()],
        ..CompareOptions::default()
    };
    let rates = compare(&results, &rates).unwrap();
    assert_eq!(rates.metrics[0].metric, "transactions_per_second");
    let time = changed.metric("time").unwrap();
    assert_eq!((time.rows.len(), time.compared), (1, 2));
}

#[test]
fn the_gate_fails_above_the_limit_and_passes_below_it() {
    let cases = ["md0", "md0s1"];
    let before = result("before.json", &cases, 20, |case, round| {
        10_000 + wobble(case, round)
    });
    let after = result("after.json", &cases, 20, |case, round| {
        10_000 + 1000 * case as u64 + wobble(case, round + 3)
    });
    let compared = compare(&[before, after], &CompareOptions::default()).unwrap();
    // Within the interval of the change, and with no row, there is no decision.
    let within = compared.metric("time").unwrap().rows[0].change.unwrap();
    let within = within.ratio.estimate - 1.0;
    let nothing = Compared {
        metrics: Vec::new(),
        ..compared.clone()
    };
    for (compared, limit, outcome) in [
        (&compared, 0.05, Outcome::Fail),
        (&compared, 0.2, Outcome::Pass),
        (&compared, within, Outcome::Undecided),
        (&nothing, 0.05, Outcome::Undecided),
    ] {
        let answer = gate(compared, limit);
        assert_eq!(answer.outcome, outcome, "{limit}");
        let mut page = page(compared);
        gated(&mut page, &answer, limit);
        assert!(page.answer.starts_with(outcome.word()), "{}", page.answer);
    }
    let answer = gate(&compared, 0.05);
    assert_eq!(answer.worst.unwrap().1.case, "md0s1");
}

#[test]
fn an_interval_stands_once() {
    let side = |name: &str, step: u64| {
        result(name, &["md0"], 20, move |_, round| {
            10_000 + 40 * wobble(step as usize, round)
        })
    };
    let compared = compare(
        &[side("a.json", 0), side("b.json", 1)],
        &CompareOptions::default(),
    )
    .unwrap();
    let row = &compared.metric("time").unwrap().rows[0];
    assert_eq!(row.claim, Claim::Open, "{}", row.words);
    let text = told(&compared);
    assert!(text.contains("~ not significant: 1.0"), "{text}");
    assert!(!text.contains("change against the base"), "{text}");
}

#[test]
fn a_machine_that_changes_within_a_result_gives_no_verdict_between_two() {
    // The load comes and goes: halves of one result differ by more than the results.
    let side = |name: &str, late: u64| {
        result(name, &["sleep"], 24, move |_, round| {
            let load = if round < 12 { 0 } else { late };
            10_000 + load + wobble(0, round)
        })
    };
    let before = side("before.json", 0);
    let options = CompareOptions::default();
    let compared = |after: Loaded| compare(&[before.clone(), after], &options).unwrap();
    let calm = result("after.json", &["sleep"], 24, |_, round| {
        12_000 + wobble(0, round)
    });
    let clear = compared(calm);
    assert_eq!(clear.metric("time").unwrap().rows[0].claim, Claim::Slower);
    let shifted = result("after.json", &["sleep"], 24, |_, round| {
        let load = if round < 12 { 500 } else { 4_000 };
        10_000 + load + wobble(0, round)
    });
    let compared = compared(shifted);
    let row = &compared.metric("time").unwrap().rows[0];
    assert!(
        row.p_value.unwrap() < 1e-6 && row.claim == Claim::Open,
        "{}",
        row.words
    );
    has(&row.words, "but halves of one side differ by 33 %");
    let text = told(&compared);
    has(&text, "No significant change: ");
    has(&text, " (1 comparison)");
    assert!(
        !text.contains("geometric mean -") && !text.contains("; geometric"),
        "{text}"
    );
}

#[test]
fn cases_of_one_result_are_compared_within_their_rounds() {
    // The machine slows down by half on the way, both cases alike: only rounds show the 2 %.
    let drift = |case: usize, round: u64| {
        let base = 10_000 + 250 * round;
        base + case as u64 * (base / 50) + wobble(case, round) % 5
    };
    let one = result("one.json", &["A", "B"], 20, drift);
    let compared = compare(std::slice::from_ref(&one), &CompareOptions::default()).unwrap();
    assert!(compared.interleaved && compared.confounded.is_empty());
    let row = &compared.metric("time").unwrap().rows[0];
    assert_eq!(row.claim, Claim::Slower, "{}", row.words);
    let other_base = CompareOptions {
        base: Some("B".to_owned()),
        ..CompareOptions::default()
    };
    let compared = compare(&[one], &other_base).unwrap();
    has(&told(&compared), " % faster (");
}

#[test]
fn a_measurement_is_not_compared_with_itself_in_silence() {
    let one = result("one.json", &["A", "B"], 20, |case, round| {
        1000 + wobble(case, round)
    });
    let copy = Loaded {
        name: "copy.json".to_owned(),
        ..one.clone()
    };
    let options = CompareOptions::default();
    let compared = compare(&[one.clone(), copy.clone()], &options).unwrap();
    let itself =
        "one.json and copy.json hold the same values: this compares a measurement with itself";
    assert_eq!(compared.confounded, [itself]);
    // Twice on one side, its values would be twice as many independent ones.
    let side = |files: &[&Loaded]| Side {
        name: files[0].name.clone(),
        files: files.iter().map(|file| Source::from(*file)).collect(),
    };
    let twice = between(&side(&[&one, &copy]), &[side(&[&one])], &options).unwrap_err();
    has(
        &twice.to_string(),
        "one.json and copy.json hold the same values: give each result once",
    );
    let text = "BenchmarkA-2 10 5 ns/op\n";
    let go = |name: &str| Source::read(name, "x", text).unwrap();
    let of = |names: &[&str]| Side {
        name: names[0].to_owned(),
        files: names.iter().map(|name| go(name)).collect(),
    };
    // Short values of different files may be the same.
    assert!(between(&of(&["a", "b"]), &[of(&["c"])], &options).is_ok());
    assert!(between(&of(&["a", "a"]), &[of(&["c"])], &options).is_err());
}

#[test]
fn files_of_a_side_count_together() {
    let text = |ns: u64| {
        format!(
            "BenchmarkA-2 10 {ns} ns/op\nBenchmarkA-2 10 {} ns/op\n",
            ns + 1
        )
    };
    let side = |name: &str, base: u64| Side {
        name: name.to_owned(),
        files: (0..6)
            .map(|at| Source::read(&format!("{name}{at}"), "x", &text(base + at)).unwrap())
            .collect(),
    };
    let sides = (side("old", 1000), side("new", 500));
    let compared = between(&sides.0, &[sides.1], &CompareOptions::default()).unwrap();
    let row = &compared.metrics[0].rows[0];
    // Two values of one process are one observation.
    assert_eq!(
        (row.base.n, row.changed.n, row.claim),
        (6, 6, Claim::Faster)
    );
    let alone = |name: &str| Side {
        name: name.to_owned(),
        files: vec![Source::read(name, "x", &text(5)).unwrap()],
    };
    let compared = between(&alone("a"), &[alone("b")], &CompareOptions::default()).unwrap();
    let row = &compared.metrics[0].rows[0];
    assert!(row.change.is_none() && row.words.starts_with("no verdict: n=2 and 2"));
    assert!(compared.confounded[0].contains("one process"));
    has(&told(&compared), "~ no verdict");
}

#[test]
fn what_cannot_be_compared_is_refused_by_name() {
    let refused = |results: &[Loaded], options: &CompareOptions| match compare(results, options) {
        Err(HarnessError::Compare(problem)) => problem,
        other => panic!("{other:?}"),
    };
    let options = CompareOptions::default();
    let one = result("one.json", &["A", "B"], 12, wobbled);
    let other = result("other.json", &["C"], 12, wobbled);
    assert_eq!(
        refused(&[one.clone(), other.clone()], &options),
        "one.json and other.json have no case in common: A, B against C"
    );
    assert!(refused(&[other], &options).contains("one case only"));
    let unknown = CompareOptions {
        cases: vec!["Z".to_owned()],
        ..options.clone()
    };
    assert_eq!(
        refused(std::slice::from_ref(&one), &unknown),
        "one.json: it has no case `Z`, but A, B"
    );
    let no_latency = CompareOptions {
        metrics: vec!["latency99".to_owned()],
        ..options.clone()
    };
    assert!(
        refused(std::slice::from_ref(&one), &no_latency)
            .contains("do not hold latency99, but time, bytes_per_second")
    );
    assert!(refused(&[], &options).contains("no result"));
    let flat = result("flat.json", &["A", "B"], 12, |_, _| 5);
    let compared = compare(&[flat.clone(), flat], &options).unwrap();
    assert_eq!(compared.metrics[0].rows[0].words, "all values are equal");
}

fn wobbled(case: usize, round: u64) -> u64 {
    1000 + wobble(case, round)
}

#[test]
fn a_rate_has_a_table_where_it_differs_from_the_time_or_is_asked_for() {
    let times = |case: usize, round: u64| 10_000 + 5_000 * case as u64 + wobble(case, round);
    let one = result("one.json", &["A", "B"], 20, times);
    let mut options = CompareOptions::default();
    let text = told(&compare(std::slice::from_ref(&one), &options).unwrap());
    assert!(
        !text.contains("THROUGHPUT") && !text.contains("\nIOPS\n"),
        "{text}"
    );
    let hint =
        "Throughput, bytes/s, IOPS: the same verdicts as the time (--metric bytes_per_second).";
    assert!(text.contains(hint), "{text}");
    // B moves twice the bytes.
    let mut larger = one.clone();
    for process in &mut larger.document.processes {
        process.rounds[0].samples[1].work = Work::of(1_024_000, 1000);
    }
    let text = told(&compare(&[larger], &options).unwrap());
    assert!(
        text.contains("THROUGHPUT") && !text.contains("\nIOPS\n"),
        "{text}"
    );
    options.metrics = vec!["iops".to_owned()];
    let text = told(&compare(&[one], &options).unwrap());
    assert!(
        text.contains("IOPS\n") && !text.contains("same verdicts"),
        "{text}"
    );
}

#[test]
fn too_few_observations_are_no_verdict() {
    let few = result("few.json", &["A", "B"], 6, |case, round| {
        10_000 + wobble(case, round)
    });
    let options = CompareOptions {
        confidence: 0.99,
        ..CompareOptions::default()
    };
    let text = told(&compare(&[few], &options).unwrap());
    assert!(
        text.contains("No verdict, too few observations: time of one iteration"),
        "{text}"
    );
    assert!(!text.contains("No significant change"), "{text}");
}

#[test]
fn a_result_of_ab_is_compared_by_its_candidates() {
    let times = |case: usize, round: u64| 10_000 + 5_000 * case as u64 + wobble(case, round);
    let mut one = result("one.json", &["A", "A again", "B"], 20, times);
    one.document.subject = serde_json::json!({"candidates": [{"name": "A"}, {"name": "B"}]});
    let mut options = CompareOptions::default();
    let cases = |options: &CompareOptions| {
        let compared = compare(std::slice::from_ref(&one), options).unwrap();
        let rows = &compared.metrics[0].rows;
        rows.iter().map(|row| row.case.clone()).collect::<Vec<_>>()
    };
    assert_eq!(cases(&options), ["B"]);
    options.cases = vec!["A again".to_owned()];
    assert_eq!(cases(&options), ["A again"]);
}

/// A side of Go's benchmarks with these results, six times each.
fn of_go(name: &str, lines: &str) -> Side {
    let text = format!("goos: linux\n{}PASS\n", lines.repeat(6));
    Side {
        name: name.to_owned(),
        files: vec![Source::read(name, "", &text).unwrap()],
    }
}

#[test]
fn an_amount_is_more_or_less_and_no_speed() {
    let old = of_go("old.txt", "BenchmarkRead-2 1000 100 ns/op 32 B/op\n");
    let new = of_go("new.txt", "BenchmarkRead-2 1000 300 ns/op 24 B/op\n");
    let compared = between(&old, &[new], &CompareOptions::default()).unwrap();
    let page = told(&compared);
    has(&page, "3.0 x slower");
    has(&page, "25.000 % less");
    assert!(!page.contains("faster"), "{page}");
}

#[test]
fn cases_of_either_result_alone_are_named() {
    let old = of_go(
        "old.txt",
        "BenchmarkA 9 100 ns/op\nBenchmarkGone 9 100 ns/op\n",
    );
    let new = of_go(
        "new.txt",
        "BenchmarkA 9 100 ns/op\nBenchmarkNew 9 100 ns/op\n",
    );
    let page = |cases: &[&str]| {
        let options = CompareOptions {
            cases: cases.iter().map(|case| (*case).to_owned()).collect(),
            ..CompareOptions::default()
        };
        told(&between(&old, std::slice::from_ref(&new), &options).unwrap())
    };
    let all = page(&[]);
    has(&all, "Left out: in old.txt, not in new.txt: Gone.");
    has(&all, "Left out: in new.txt, not in old.txt: New.");
    let chosen = page(&["A"]);
    assert!(!chosen.contains("Left out"), "{chosen}");
}

#[test]
fn ends_of_an_interval_have_units_unless_all_are_in_that_of_the_value() {
    let judged = Judged {
        metric: "time".to_owned(),
        unit: "ns".to_owned(),
        rows: Vec::new(),
        geometric_mean: None,
        compared: 0,
        restates_time: false,
    };
    let text = |median: f64, low: f64, high: f64| {
        let spread = Some(Interval {
            estimate: median,
            low,
            high,
            confidence: 0.0,
        });
        middle(
            &judged,
            &Middle {
                n: 6,
                median,
                spread,
            },
        )
        .text
    };
    assert_eq!(text(85.4e3, 48e3, 23.9e6), "85.4 us [48.0 us to 23.9 ms]");
    assert_eq!(text(1.6e6, 113e3, 19.9e6), "1.60 ms [113 us to 19.9 ms]");
    assert_eq!(text(85.4e3, 48e3, 95e3), "85.4 us [48.0 to 95.0]");
}
