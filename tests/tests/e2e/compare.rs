//! `ugeom compare` on results that `ugeom lab` saved, and on files that are none.

use crate::disks;
use crate::run::ugeom;
use serde_json::Value;
use std::path::Path;

/// Measures for a second and saves the result.
fn saved(folder: &Path, name: &str, seed: &str) -> String {
    let file = disks::text(&folder.join(name));
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
    for part in [
        "confounded with time",
        "TIME OF ONE ITERATION",
        "p ranks",
        "direct/md0s1c",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let one_cell = ["--cell", "direct/md0", "--metric", "time", "--json"];
    let json = ugeom(&[&["compare", &before, &after], &one_cell[..]].concat()).quiet();
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["interleaved"], false);
    let rows = json["metrics"][0]["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 1);
    assert!(rows[0]["ranks"]["p_value"].is_number() && rows[0]["student"]["p_value"].is_number());
    // One result holds its cells in the same rounds.
    let within = ugeom(&["compare", &before, "--base", "direct/md0", "--json"]).quiet();
    let within: Value = serde_json::from_str(&within).expect("JSON");
    assert_eq!(within["interleaved"], true);
    assert!(within["confounded"].as_array().is_some_and(Vec::is_empty));
    let nowhere = ugeom(&["compare", &before, &after, "--cell", "md9"]).failed(1);
    assert!(nowhere.contains("it has no cell `md9`"), "{nowhere}");
}

#[test]
fn what_is_no_result_is_1_and_wrong_usage_is_2() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.json");
    let file = disks::text(&path);
    for (text, problem) in [
        (&b""[..], "EOF while parsing"),
        (b"[1, 2]", "invalid type"),
        (
            b"{\"schema\": 7, \"experiment\": \"layers\"}",
            "it has schema 7",
        ),
        (b"\xff\xfe", "valid UTF-8"),
    ] {
        std::fs::write(&path, text).expect("a file");
        let stderr = ugeom(&["compare", &file]).failed(1);
        assert!(
            stderr.contains(&file) && stderr.contains(problem),
            "{stderr}"
        );
    }
    let missing = ugeom(&["compare", "/no/such.json"]).failed(1);
    assert!(missing.contains("/no/such.json: No such file"), "{missing}");
    for wrong in [
        &["compare"][..],
        &["compare", "--metric", "speed", "x"],
        &["compare", "--confidence", "100", "x"],
        &["compare", "--same-within", "0", "x"],
    ] {
        ugeom(wrong).failed(2);
    }
}
