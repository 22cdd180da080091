//! Comparisons of made-up results whose truth is known.

use super::*;
use serde_json::Value;
use ugeom_harness::HarnessError;
use ugeom_harness::compare::{Loaded, Options, compare};
use ugeom_harness::document::Document;
use ugeom_harness::host::Host;
use ugeom_harness::{Ended, Measured, Round, Sample, Settings, Shortened, Work};
use ugeom_measure::Verdict;
use ugeom_measure::verdict::Direction;

/// A result of rounds; `ns` gives the time of a cell in a round.
fn result(name: &str, cells: &[&str], rounds: u64, ns: impl Fn(usize, u64) -> u64) -> Loaded {
    let sample = |cell: usize, round: u64| Sample {
        iterations: 1000,
        wall_ns: 1000 * ns(cell, round),
        work: Work::of(512_000, 1000),
        ..Sample::default()
    };
    let round = |round: u64| Round {
        order: (0..cells.len()).collect(),
        samples: (0..cells.len()).map(|cell| sample(cell, round)).collect(),
        null_floor: None,
    };
    let measured = Measured {
        cells: cells.iter().map(|cell| (*cell).to_owned()).collect(),
        lengths: Vec::new(),
        repeated: 0,
        rounds: (0..rounds).map(round).collect(),
        ended: Ended::RoundsMax,
        shortened: Shortened {
            run_ns_wanted: 1,
            run_ns: 1,
            rounds: false,
        },
        precision: None,
        elapsed_ns: 1,
        unfinished: None,
        failure: None,
    };
    let settings = Settings::default();
    let document = Document::new("layers", Host::now(), settings, Value::Null, measured);
    let text = document.to_json().unwrap();
    Loaded::read(name, &text).unwrap()
}

/// A wobble without memory or drift.
fn wobble(cell: usize, round: u64) -> u64 {
    (round * 7 + cell as u64 * 3 + round * round) % 11
}

fn told(compared: &Compared) -> String {
    page(compared).to_text(100)
}

#[test]
fn two_results_are_compared_cell_by_cell_and_metric_by_metric() {
    let cells = ["md0", "md0s1", "only before"];
    let before = result("before.json", &cells, 20, |cell, round| {
        1000 + wobble(cell, round)
    });
    let after = result("after.json", &cells[..2], 20, |cell, round| {
        if cell == 0 {
            1000 + wobble(cell, round + 3)
        } else {
            1100 + wobble(cell, round)
        }
    });
    let compared = compare(&[before, after], &Options::default()).unwrap();
    assert!(!compared.interleaved && compared.confounded[0].contains("confounded with time"));
    let ids: Vec<&str> = compared.metrics.iter().map(|one| one.metric.id()).collect();
    assert_eq!(ids, ["time", "bytes_per_second", "transactions_per_second"]);
    let time = compared.metric(Metric::Time).unwrap();
    assert_eq!(time.rows.len(), 2, "what is in both");
    assert!(matches!(
        time.rows[0].verdict,
        Verdict::SameWithin { proven: None, .. }
    ));
    let slower = &time.rows[1];
    assert!(matches!(
        slower.verdict,
        Verdict::Proven {
            direction: Direction::Slower,
            ..
        }
    ));
    assert!(
        slower
            .ratio
            .is_some_and(|ratio| (ratio.estimate - 1.0995).abs() < 1e-3)
    );
    assert!(slower.student.is_some() && slower.ranks.is_some_and(|ranks| ranks.exact));
    assert!((slower.ranks.unwrap().shift - 100.0).abs() <= 1.0);
    // Rates fall when times rise, and both are called slower.
    let rate = compared.metric(Metric::BytesPerSecond).unwrap();
    assert!(
        rate.rows[1].words.starts_with("slower, 9.1 % less"),
        "{}",
        rate.rows[1].words
    );
    let text = told(&compared);
    assert!(
        text.contains("Of 6 comparisons 0 are proven better, 3 worse, 3 the same within 1 %"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    let json = serde_json::to_string(&compared).unwrap();
    assert_eq!(serde_json::from_str::<Compared>(&json).unwrap(), compared);
}

#[test]
fn cells_of_one_result_are_compared_within_their_rounds() {
    // The machine slows down by half on the way, both cells alike: only rounds show the 2 %.
    let drift =
        |cell: usize, round: u64| 1000 + 25 * round + 20 * cell as u64 + wobble(cell, round) % 5;
    let one = result("one.json", &["A", "B"], 20, drift);
    let options = Options {
        metrics: vec![Metric::Time],
        ..Options::default()
    };
    let compared = compare(std::slice::from_ref(&one), &options).unwrap();
    assert!(compared.interleaved && compared.confounded.is_empty());
    let row = &compared.metric(Metric::Time).unwrap().rows[0];
    assert!(
        matches!(row.verdict, Verdict::Proven { .. }),
        "{}",
        row.words
    );
    assert!(row.student.is_none() && row.ranks.is_none() && row.rounds.is_some());
    let other_base = Options {
        base: Some("B".to_owned()),
        ..options
    };
    let compared = compare(&[one], &other_base).unwrap();
    assert!(
        told(&compared).contains("A faster, "),
        "{}",
        told(&compared)
    );
}

#[test]
fn correlated_samples_count_as_what_they_are_worth() {
    // Two results, each with a slow wave of its own: 30 samples, but few independent ones.
    let wave = |phase: u64| move |_: usize, round: u64| 1000 + ((round + phase) / 8 % 3) * 20;
    let (a, b) = (
        result("a.json", &["x"], 30, wave(0)),
        result("b.json", &["x"], 30, wave(8)),
    );
    let compared = compare(&[a, b], &Options::default()).unwrap();
    let row = &compared.metric(Metric::Time).unwrap().rows[0];
    assert!(row.base.worth.correlated && row.base.worth.n_effective < 10.0);
    assert!(matches!(row.verdict, Verdict::NoDifferenceProven { .. }));
    assert!(told(&compared).contains("neighbouring observations are correlated"));
}

#[test]
fn what_cannot_be_compared_is_refused_by_name() {
    let refused = |results: &[Loaded], options: &Options| match compare(results, options) {
        Err(HarnessError::Compare(problem)) => problem,
        other => panic!("{other:?}"),
    };
    let options = Options::default();
    let one = result("one.json", &["A", "B"], 12, wobbled);
    let other = result("other.json", &["C"], 12, wobbled);
    assert_eq!(
        refused(&[one.clone(), other.clone()], &options),
        "one.json (layers) and other.json (layers) have no cell in common"
    );
    assert!(refused(&[other], &options).contains("one cell only"));
    let unknown = Options {
        cells: vec!["Z".to_owned()],
        ..options.clone()
    };
    assert_eq!(
        refused(std::slice::from_ref(&one), &unknown),
        "one.json: it has no cell `Z`, but A, B"
    );
    let no_latency = Options {
        metrics: vec![Metric::Latency99],
        ..options.clone()
    };
    assert!(refused(std::slice::from_ref(&one), &no_latency).contains("no metric"));
    let flat = result("flat.json", &["A", "B"], 12, |_, _| 5);
    assert!(refused(&[flat], &options).contains("do not vary"));
    assert!(refused(&[], &options).contains("no result"));
    let few = result("few.json", &["A", "B"], 2, wobbled);
    assert!(refused(&[few], &options).contains("at least 3"));
}

fn wobbled(cell: usize, round: u64) -> u64 {
    1000 + wobble(cell, round)
}

#[test]
fn what_is_no_result_is_refused_by_name() {
    let refused = |text: &str| Loaded::read("x.json", text).unwrap_err().to_string();
    assert!(refused("").starts_with("x.json: reading a saved result: EOF"));
    assert!(refused("{}").contains("missing field `schema`"));
    assert!(
        refused(r#"{"schema": 99, "experiment": "layers"}"#)
            .contains("it has schema 99, this program reads 1")
    );
    let empty = result("one.json", &["A"], 1, wobbled);
    let mut document = empty.document;
    document.processes[0].rounds.clear();
    let text = document.to_json().unwrap();
    assert!(refused(&text).contains("it holds no whole round"));
}

#[test]
fn from_five_processes_on_their_means_are_the_observations() {
    let mut one = result("one.json", &["A", "B"], 10, wobbled);
    let process = one.document.processes[0].clone();
    for number in 1..6 {
        let mut process = process.clone();
        for round in &mut process.rounds {
            round.samples[1].wall_ns += 1000 * number;
        }
        one.document.processes.push(process);
    }
    let compared = compare(&[one], &Options::default()).unwrap();
    let row = &compared.metric(Metric::Time).unwrap().rows[0];
    assert_eq!(row.base.sample.n, 6);
    assert!(compared.sources[0].by_process);
}
