//! `ugeom report`: files that open anywhere, text that can be pasted, and clear words about what is
//! no result.

use crate::disks;
use crate::run::{other, ugeom, ugeom_with};
use serde_json::Value;
use std::path::Path;

/// A result that was measured in a second.
fn measured(folder: &Path) -> String {
    let file = disks::text(&folder.join("layers.json"));
    let ended = ugeom(&["lab", "layers", "--budget", "1s", "--json", &file]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    file
}

#[test]
fn results_become_one_file_that_another_program_calls_valid() {
    let folder = tempfile::tempdir().expect("a folder");
    let result = measured(folder.path());
    let report = disks::text(&folder.path().join("report.html"));
    let ended = ugeom(&["report", &result, &result, "-o", &report]);
    assert_eq!(ended.quiet(), "");
    let html = std::fs::read_to_string(&report).expect("the report");
    assert_eq!(html.matches("<article ").count(), 2);
    assert!(html.contains("The answers") && html.contains("<svg "));
    for elsewhere in ["src=", "href=\"http", "<script", "<link", "@import"] {
        assert!(!html.contains(elsewhere), "{elsewhere}");
    }
    let Some(tidy) = ugeom_testkit::program("report_is_valid_html", "tidy") else {
        return;
    };
    // Prints errors and warnings alone, and fails with them.
    other(tidy, &["-quiet", "-errors", "-utf8", &report]);
}

#[test]
fn every_plot_is_well_formed_xml() {
    let Some(xmllint) = ugeom_testkit::program("plots_are_well_formed_xml", "xmllint") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let result = measured(folder.path());
    let html = ugeom(&["report", &result, "-o", "-"]).quiet();
    let mut plots = 0;
    for (number, part) in html.split("<svg ").skip(1).enumerate() {
        let (drawing, _) = part.split_once("</svg>").expect("the end of the drawing");
        let path = folder.path().join(format!("{number}.svg"));
        std::fs::write(&path, format!("<svg {drawing}</svg>")).expect("the drawing");
        other(&xmllint, &["--noout", "--nonet", &disks::text(&path)]);
        plots += 1;
    }
    assert!(plots >= 3, "{plots} plots");
}

#[test]
fn markdown_and_csv_go_to_stdout_and_tell_the_same_figures() {
    let folder = tempfile::tempdir().expect("a folder");
    let result = measured(folder.path());
    let json = std::fs::read(&result).expect("the result");
    let document: Value = serde_json::from_slice(&json).expect("JSON");
    let estimate = document["figures"].as_array().expect("figures").iter();
    let figure = estimate.clone().find(|figure| figure["id"] == "geom.cost");
    let exact = &figure.expect("what GEOM costs")["interval"]["estimate"];

    let markdown = ugeom(&["report", "--markdown", &result]).quiet();
    assert!(markdown.starts_with("# ugeom lab layers\n"), "{markdown}");
    assert!(markdown.contains("\n## Every figure\n"), "{markdown}");
    let csv = ugeom_with(&["report", "--csv", "-"], &json).quiet();
    assert!(csv.starts_with("experiment,layers\n"), "{csv}");
    let line = csv
        .lines()
        .find(|line| line.starts_with("geom.cost,"))
        .expect("the figure");
    let field = line.split(',').nth(2).expect("its estimate");
    assert_eq!(field.parse::<f64>().ok(), exact.as_f64(), "{line}");
}

#[test]
fn what_is_no_result_is_named_with_its_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| disks::text(&folder.path().join(name));
    let kept = at("report.html");
    for (name, text, reason) in [
        ("empty.json", "", "EOF while parsing a value"),
        ("text.json", "Hello", "expected value at line 1 column 1"),
        (
            "new.json",
            r#"{"schema": 9, "experiment": "layers"}"#,
            "it has schema 9, this program reads 1",
        ),
        (
            "other.json",
            r#"{"schema": 1, "experiment": "tea"}"#,
            "it is of the experiment \"tea\"; reports are made of layers",
        ),
        (
            "part.json",
            r#"{"schema": 1, "experiment": "layers", "#,
            "EOF while parsing",
        ),
    ] {
        std::fs::write(folder.path().join(name), text).expect("a file");
        let said = ugeom(&["report", &at(name), "-o", &kept]).failed(1);
        let expected = format!("ugeom: {}: reading a saved result: ", at(name));
        assert!(
            said.starts_with(&expected) && said.contains(reason),
            "{said}"
        );
    }
    std::fs::write(folder.path().join("bytes.json"), b"\xff\xfe").expect("a file");
    let said = ugeom(&["report", &at("bytes.json")]).failed(1);
    assert!(
        said.contains("bytes.json: stream did not contain valid UTF-8"),
        "{said}"
    );
    let said = ugeom(&["report", &at("none.json")]).failed(1);
    assert!(said.contains("none.json: No such file"), "{said}");
    assert!(
        !Path::new(&kept).exists(),
        "nothing may be written for what is no result"
    );
    ugeom(&["report"]).failed(2);
    ugeom(&["report", "--csv", "--markdown", "a.json"]).failed(2);
}

#[test]
fn a_report_is_not_written_over_its_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let result = measured(folder.path());
    let before = std::fs::read(&result).expect("the result");
    let said = ugeom(&["report", &result, "-o", &result]).failed(2);
    assert!(said.contains("would be written over this result"), "{said}");
    assert!(std::fs::read(&result).expect("the result") == before);
}
