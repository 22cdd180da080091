//! `ugeom iostat` beside sysstat's.

use crate::run::{has, json_of, other, ugeom};

/// The columns of the only device's line.
fn columns(text: &str) -> Vec<f64> {
    let line = text.lines().skip_while(|line| !line.starts_with("Device"));
    let line = line.skip(1).find(|line| !line.is_empty()).unwrap_or("");
    let numbers = line.split_whitespace().skip(1);
    numbers
        .map(|word| word.parse().expect("a number"))
        .collect()
}

#[test]
fn since_the_start_it_says_what_sysstat_says() {
    let Some(iostat) = ugeom_testkit::program("iostat") else { return };
    let device = ugeom(&["iostat", "-x"]).text();
    let device = device
        .lines()
        .nth(1)
        .and_then(|line| line.split_whitespace().next());
    let Some(device) = device.map(str::to_owned) else {
        return ugeom_testkit::skip("no block device was used on this machine");
    };
    // The counters may move between: both sides of theirs bound it.
    let before = columns(&ugeom(&["iostat", "-x", &device]).text());
    let theirs = other(iostat, &["-x", "-d", &device]);
    let after = columns(&ugeom(&["iostat", "-x", &device]).text());
    let theirs = columns(&String::from_utf8_lossy(&theirs));
    assert_eq!((before.len(), after.len()), (theirs.len(), theirs.len()));
    for (column, theirs) in theirs.iter().enumerate() {
        let (a, b) = (before[column], after[column]);
        let slack = 0.02 + 0.02 * theirs.abs();
        let inside = a.min(b) - slack <= *theirs && *theirs <= a.max(b) + slack;
        assert!(inside, "column {column}: {theirs} beside {a} and {b}");
    }
}

#[test]
fn bsds_columns_and_json_come_as_often_as_asked() {
    let text = ugeom(&["iostat", "0.05", "3"]);
    if text.code != 0 {
        println!(
            "SKIP bsds_columns_and_json_come_as_often_as_asked: {}",
            text.stderr
        );
        return;
    }
    let text = text.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5, "{text}");
    assert!(lines[0].trim_start().starts_with("tty") && lines[1].starts_with(" tin tout  KB/t"));
    let json = ugeom(&["iostat", "--json", "0.05", "2"]).text();
    let reports: Vec<serde_json::Value> = json.lines().map(json_of).collect();
    assert_eq!(reports.len(), 2);
    assert!(
        reports[1]["seconds"]
            .as_f64()
            .is_some_and(|seconds| seconds >= 0.05)
    );
    assert!(reports[0]["devices"][0]["reads"]["per_second"].is_number());
}

#[test]
fn a_stack_and_a_wrong_interval_are_refused_in_words() {
    for (arguments, code, words) in [
        (
            &["md:1m | nop"][..],
            1,
            "is a stack, which exists only in its process",
        ),
        (&["/no/such/file", "1"], 1, "/no/such/file"),
        (&["0"], 2, "`0` is not an interval"),
        (&["1", "0"], 2, "`0` is no count"),
        (&["1", "2", "3"], 2, "`3` is one word too many"),
    ] {
        let ended = ugeom(&[&["iostat"][..], arguments].concat());
        assert_eq!(ended.code, code, "{words}");
        has(&ended.stderr, words);
    }
}
