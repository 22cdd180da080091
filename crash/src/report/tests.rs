//! Pages of results: every fate is on the time line, and foreign texts do no harm.

use super::*;
use crate::promise::{Judgement, Verdict};
use proptest::prelude::*;
use ugeom_report::{Block, Plot};

fn record(record: u64, what: &str, fate: Option<Fate>) -> TimelineRecord {
    TimelineRecord {
        record,
        what: what.to_owned(),
        offset_bytes: fate.map(|_| 4096 * record),
        length_bytes: fate.map(|_| 4096),
        fate,
        note: String::new(),
    }
}

fn result() -> CrashResult {
    let judgement = Judgement {
        verdict: Verdict::Durability,
        detail: "`<b>` is not there".to_owned(),
    };
    let timeline = vec![
        record(1, "write", Some(Fate::Durable)),
        record(2, "barrier", None),
        record(3, "write", Some(Fate::Kept)),
        record(4, "write", Some(Fate::Lost)),
        record(5, "write", Some(Fate::Torn)),
    ];
    CrashResult {
        kind: KIND.to_owned(),
        command: "ugeom crash".to_owned(),
        seed: 7,
        log: None,
        outcome: Outcome {
            records: 6,
            writes: 4,
            barriers: 1,
            promises: 0,
            states: 9,
            failed: 2,
            verdicts: [("durability".to_owned(), 2)].into(),
            failures: Vec::new(),
            smallest: Some(Smallest {
                state: "cut=5,lost=4".to_owned(),
                judgement,
                damage: 2,
                checks: 3,
                timeline,
            }),
            ended_early: false,
        },
        replay: Some("ugeom crash --log x".to_owned()),
    }
}

#[test]
fn the_time_line_shows_each_fate_the_barriers_and_the_cut() {
    let json = serde_json::to_string(&result()).expect("JSON");
    assert!(is_result(&json));
    let page = page(&json).expect("a page");
    assert_eq!(
        page.answer,
        "2 of 9 crash states fail (durability 2). The smallest is cut=5,lost=4."
    );
    let plot = page.blocks.iter().find_map(|block| match block {
        Block::Plot(Plot::Curves(plot)) => Some(plot),
        _ => None,
    });
    let plot = plot.expect("a plot");
    let places = plot.curves.iter().map(|curve| {
        let point = &curve.points[0];
        (
            curve.name.as_str(),
            point.x,
            point.y.interval.low,
            point.y.interval.high,
        )
    });
    let places: Vec<_> = places.collect();
    let expected = [
        ("durable", -4.0, 4.0, 8.0),
        ("kept", -2.0, 12.0, 16.0),
        ("torn", -0.0, 20.0, 24.0),
        ("lost", -1.0, 16.0, 20.0),
    ];
    assert_eq!(places, expected);
    let marks = plot.marks.iter().map(|mark| (mark.name.as_str(), mark.at));
    let marks: Vec<_> = marks.collect();
    assert_eq!(marks, [("barrier 2", -3.0), ("power cut", 0.0)]);
    let saved = ugeom_report::Saved::new(json, page).expect("it is JSON");
    let html = ugeom_report::to_html(&[saved]);
    assert!(html.contains("<svg") && !html.contains("<b>` is not"));
}

#[test]
fn one_of_a_kind_is_in_the_singular() {
    let mut outcome = result().outcome;
    outcome.writes = 1;
    let text = "1 write, 1 barrier, 0 acknowledgements";
    assert_eq!(outcome.run_text(), text);
}

#[test]
fn what_is_no_result_is_refused() {
    for text in ["", "[]", "{}", r#"{"kind": "lab"}"#, r#"{"schema": 1}"#] {
        assert!(!is_result(text), "{text}");
    }
    let error = page(r#"{"kind": "crash"}"#).expect_err("it lacks everything");
    assert!(error.contains("missing field"), "{error}");
}

proptest! {
    #[test]
    fn no_numbers_of_a_result_panic(numbers in prop::collection::vec(any::<u64>(), 12)) {
        let mut result = result();
        let smallest = result.outcome.smallest.as_mut().expect("a smallest state");
        for (record, at) in smallest.timeline.iter_mut().zip(numbers.chunks(3).cycle()) {
            record.record = at[0];
            record.offset_bytes = record.offset_bytes.map(|_| at[1]);
            record.length_bytes = record.length_bytes.map(|_| at[2]);
        }
        let page = result.page();
        prop_assert!(!page.to_csv().is_empty());
        let saved = ugeom_report::Saved::new("{}".to_owned(), page).expect("it is JSON");
        prop_assert!(!ugeom_report::to_html(&[saved]).is_empty());
    }
}
