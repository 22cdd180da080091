//! `ugeom compare` on results that `ugeom lab` saved, and on files that are none.

use crate::disks;
use crate::run::{has, json_of, ugeom};
use std::path::Path;

/// Measures for a second and saves the result.
fn saved(folder: &Path, name: &str, seed: &str) -> String {
    let file = disks::at(folder, name);
    let lab = ugeom(&[
        "lab", "layers", "--budget", "1s", "--seed", seed, "--json", &file,
    ]);
    assert_eq!(lab.code, 0, "{}", lab.stderr);
    file
}

#[test]
fn saved_results_are_compared_and_said_to_be_of_different_times() {
    let folder = tempfile::tempdir().expect("a folder");
    let before = saved(folder.path(), "before.json", "1");
    let after = saved(folder.path(), "after.json", "2");
    let text = ugeom(&["compare", &before, &after]).quiet();
    // Where a line ends depends on the time between both.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "all other changes in between",
        "TIME OF ONE ITERATION",
        "Mann-Whitney",
        "direct/md0s1c",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Each interval stands once, in the table.
    assert!(!text.contains("change against the base"), "{text}");
    let one_cell = ["--case", "direct/md0", "--metric", "time", "--json"];
    let json = json_of(ugeom(&[&["compare", &before, &after], &one_cell[..]].concat()).quiet());
    assert_eq!(json["interleaved"], false);
    let rows = json["metrics"][0]["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 1);
    assert!(rows[0]["words"].is_string() && rows[0]["base"]["n"].is_number());
    // One result holds its cells in the same rounds.
    let within = json_of(ugeom(&["compare", &before, "--base", "direct/md0", "--json"]).quiet());
    assert_eq!(within["interleaved"], true);
    assert!(within["confounded"].as_array().is_some_and(Vec::is_empty));
    let nowhere = ugeom(&["compare", &before, &after, "--cell", "md9"]).failed(1);
    has(&nowhere, "it has no case `md9`");
}

#[test]
fn what_is_no_result_is_1_and_wrong_usage_is_2() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.json");
    let file = disks::text(&path);
    std::fs::write(&path, b"[1, 2]").expect("a file");
    let stderr = ugeom(&["compare", &file]).failed(1);
    has(&stderr, &file);
    has(&stderr, "no object");
    let history = ugeom(&["history", "show", "/no/such"]).failed(1);
    has(
        &history,
        "/no/such: no history; `ugeom history add /no/such RESULT",
    );
    let missing = ugeom(&["compare", "/no/such.json"]).failed(1);
    has(&missing, "/no/such.json: No such file");
    for wrong in [
        &["compare"][..],
        &["compare", "--confidence", "100", "x"],
        &["compare", "--same-within", "0", "x"],
    ] {
        ugeom(wrong).failed(2);
    }
}

#[test]
fn results_of_other_programs_are_compared_and_kept_as_a_history() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, base: u64| {
        let path = folder.path().join(name);
        let line = |at: u64| format!("BenchmarkA-2 100 {} ns/op\n", base + at);
        std::fs::write(&path, (0..10).map(line).collect::<String>()).expect("a result");
        disks::text(&path)
    };
    let (old, new) = (file("old.txt", 1000), file("new.txt", 2500));
    let text = ugeom(&["compare", &old, &new]).quiet();
    for part in ["2.5 x slower (2.5 to 2.5)", "10+10", "one process"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let more = [file("old2.txt", 1000), file("new2.txt", 2500)];
    let sides = [
        "compare",
        &old,
        &more[0],
        "--against",
        &new,
        &more[1],
        "--json",
    ];
    let sides = json_of(ugeom(&sides).quiet());
    assert_eq!(sides["metrics"][0]["rows"][0]["base"]["n"], 2);
    // Twice the same file would count its values twice.
    let twice = ugeom(&["compare", &old, &old, "--against", &new]).failed(1);
    has(&twice, "give each result once");
    let history = disks::at(&folder, "perf");
    for number in 0..16 {
        let base = if number < 14 { 1000 + number % 3 } else { 1200 };
        let commit = format!("c{number}");
        let result = file("result.txt", base);
        ugeom(&["history", "add", &history, &result, "--commit", &commit]).quiet();
        if [0, 7, 8].contains(&number) {
            let check = ugeom(&["history", "check", &history]);
            // Nothing is judged in a history that is too short.
            assert_eq!(check.code, if number < 8 { 4 } else { 0 }, "{check:?}");
            let check = check.text();
            let warned = check.contains("1 of 1 series have fewer than 9 values");
            assert_eq!(warned, number < 8, "{check}");
        }
    }
    // The first screen names this command for more.
    let actions = [
        ("show", "where did results change?\n\n"),
        ("check", "become slower?\n\n"),
    ];
    for (action, question) in actions {
        let ended = ugeom(&["history", action, &history, "--all"]);
        assert!(ended.text().contains(question), "{ended:?}");
    }
    let shown = ugeom(&["history", "show", &history, "--csv"]).quiet();
    assert_eq!(shown.lines().count(), 17, "{shown}");
    let check = ugeom(&["history", "check", &history]);
    assert_eq!(check.code, 4, "{}", check.stderr);
    let said = check.text().replace('\n', " ");
    has(&said, "UNDECIDED (probably slower): time of A-2 moved by +");
    has(&said, "Measure c5 and c15 again");
    let calm = ugeom(&["history", "check", &history, "--case", "none"]).failed(1);
    has(&calm, "has no such series");
}

#[test]
fn a_history_has_a_commit_once_and_cases_without_a_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let text_file = |name: &str, text: &str| disks::file(&folder, name, text);
    let old = text_file("old.txt", "BenchmarkA-2 100 1000 ns/op\n");
    let rate = text_file("rate.txt", "BenchmarkB-2 100 7 requests/s\n");
    let mixed = disks::at(&folder, "mixed");
    let add = ["history", "add", &mixed, &old, &rate, "--commit", "c0"];
    ugeom(&add).quiet();
    let again = ugeom(&add);
    has(&again.stderr, "c0 is in the history already");
    let shown = ugeom(&["history", "show", &mixed, "--csv"]).quiet();
    let lines: Vec<&str> = shown.lines().skip(1).collect();
    assert_eq!(
        lines.len(),
        2,
        "a case without a time, and a commit once: {shown}"
    );
    assert!(
        lines[0].contains(",A-2,time,") && lines[1].contains(",B-2,requests/s,"),
        "{shown}"
    );
}
