//! `ugeom report`: files that open anywhere, text that can be pasted, and clear messages about
//! wrong files.

use crate::disks;
use crate::run::{has, json_of, other, ugeom, ugeom_with, words_of};
use serde_json::Value;
use std::path::Path;
use ugeom_testkit::begins;

/// A result of one process.
fn measured(folder: &Path) -> String {
    let file = disks::at(folder, "layers.json");
    let short = format!("lab layers --budget 1s --processes 1 --json {file}");
    let short = words_of(&short);
    let ended = ugeom(&short);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    file
}

#[test]
fn results_become_one_file_that_another_program_calls_valid() {
    let folder = tempfile::tempdir().expect("a folder");
    let result = measured(folder.path());
    let report = disks::at(&folder, "report.html");
    let ended = ugeom(&["report", &result, &result, "-o", &report]);
    assert_eq!(ended.quiet(), "");
    let html = std::fs::read_to_string(&report).expect("the report");
    assert_eq!(html.matches("<article ").count(), 2);
    assert!(html.contains("The answers") && html.contains("<svg "));
    for elsewhere in ["src=", "href=\"http", "<script", "<link", "@import"] {
        assert!(!html.contains(elsewhere), "{elsewhere}");
    }
    let Some(tidy) = ugeom_testkit::program("tidy") else { return };
    // Prints errors and warnings alone, and fails with them.
    other(tidy, &["-quiet", "-errors", "-utf8", &report]);
}

#[test]
fn every_plot_is_well_formed_xml() {
    let Some(xmllint) = ugeom_testkit::program("xmllint") else { return };
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
fn markdown_and_csv_go_to_stdout() {
    let folder = tempfile::tempdir().expect("a folder");
    let result = measured(folder.path());
    let json = std::fs::read(&result).expect("the result");
    let document = json_of(&json);
    let estimate = document["figures"].as_array().expect("figures").iter();
    let figure = estimate.clone().find(|figure| figure["id"] == "geom.cost");

    let markdown = ugeom(&["report", "--markdown", &result]).quiet();
    assert!(markdown.starts_with("# ugeom lab layers\n"), "{markdown}");
    has(&markdown, "\n## Every figure\n");
    assert!(figure.is_some(), "what GEOM costs");
    let csv = ugeom_with(&["report", "--csv", "-"], &json).quiet();
    let processes = document["processes"].as_array().expect("processes").iter();
    let rounds = processes.map(|one| one["rounds"].as_array().expect("rounds").len());
    let of_case = csv
        .lines()
        .filter(|line| line.starts_with("layers,direct/md0,time,"));
    assert_eq!(
        of_case.count(),
        rounds.sum::<usize>(),
        "a line for each sample"
    );
}

/// Reads a table as a user of pandas does, without options; where pandas is missing, with the
/// module of the standard library.
const READER: &str = "\
import sys
columns = ['experiment', 'case', 'metric', 'round', 'value', 'unit', 'process']
try:
    import pandas
    table = pandas.read_csv(sys.argv[1])
    assert list(table.columns) == columns, table.columns
    assert table['value'].dtype.kind in 'fi' and table['round'].dtype.kind == 'i'
    assert not table.isna().any().any()
    print(len(table), sorted(set(table['experiment'])))
except ImportError:
    import csv
    with open(sys.argv[1], newline='') as file:
        rows = list(csv.DictReader(file, strict=True))
    assert list(rows[0]) == columns, rows[0]
    assert all(None not in row and '' not in row.values() for row in rows)
    [(float(row['value']), int(row['round']), int(row['process'])) for row in rows]
    print(len(rows), sorted({row['experiment'] for row in rows}))
";

#[test]
fn csv_is_one_table_that_python_reads_without_options() {
    let Some(python) = ugeom_testkit::program("python3") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let result = measured(folder.path());
    let strange = disks::at(&folder, "strange.json");
    let text = r#"{"results": [{"command": "a, \"b\"\n=c", "times": [0.1, 0.2]}]}"#;
    std::fs::write(&strange, text).expect("a result");
    let table = disks::at(&folder, "all.csv");
    ugeom(&["report", "--csv", &result, &strange, "-o", &table]).quiet();
    let lines = std::fs::read_to_string(&table).expect("the table");
    let printed = other(python, &["-c", READER, &table]);
    let expected = format!("{} ['hyperfine', 'layers']\n", lines.lines().count() - 1);
    assert_eq!(String::from_utf8_lossy(&printed), expected);
}

#[test]
fn an_array_of_results_is_a_report_of_each() {
    let folder = tempfile::tempdir().expect("a folder");
    let one = std::fs::read_to_string(measured(folder.path())).expect("the result");
    let all = disks::at(&folder, "all.json");
    // As `ugeom lab --json` writes it.
    std::fs::write(&all, format!("[{one},{one}]\n")).expect("an array");
    let html = ugeom(&["report", &all, "-o", "-"]).quiet();
    assert_eq!(html.matches("<article ").count(), 2);
    let same = ugeom(&["compare", &all, &all, "--case", "layers direct/md0"]);
    has(&same.text(), "layers direct/md0");
    std::fs::write(&all, format!("[{one},\n")).expect("half an array");
    let said = ugeom(&["report", &all, "-o", "-"]).failed(1);
    has(&said, "expected a result of the array");
}

/// Reads what a program has just written: as a report, as a table, and compared with itself.
fn read_everywhere(result: &str, format: &str, case: &str) {
    let html = ugeom(&["report", result, "-o", "-"]).quiet();
    assert!(html.contains("<svg ") && html.contains(case), "{case}");
    let csv = ugeom(&["report", "--csv", result]).quiet();
    let lines = csv.lines().skip(1).collect::<Vec<_>>();
    assert!(!lines.is_empty(), "{csv}");
    let of_format = |line: &&str| line.starts_with(&format!("{format},"));
    assert!(lines.iter().all(of_format), "{csv}");
    let same = ugeom(&["compare", result, result, "--json"]);
    assert_eq!(same.code, 0, "{}", same.stderr);
    let same = json_of(&same.stdout);
    for metric in same["metrics"].as_array().expect("metrics") {
        for row in metric["rows"].as_array().expect("rows") {
            let claim = row["claim"].as_str().expect("a claim");
            assert!(!["faster", "slower"].contains(&claim), "{row}");
        }
    }
}

#[test]
fn what_fio_writes_is_read() {
    let Some(fio) = ugeom_testkit::program("fio") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let result = disks::at(&folder, "fio.json");
    let job = words_of("--name=both --ioengine=null --size=1m --rw=randrw --numjobs=3");
    let printed = other(fio, &[&job[..], &["--output-format=json"]].concat());
    std::fs::write(&result, printed).expect("the result");
    read_everywhere(&result, "fio", "both read");
    let own = ugeom(&words_of(
        "run --name=own --ioengine=null --size=1m --output-format=json",
    ));
    assert_eq!(own.code, 0, "{}", own.stderr);
    std::fs::write(&result, own.stdout).expect("the result");
    read_everywhere(&result, "fio", "own read");
}

#[test]
fn what_hyperfine_writes_is_read() {
    let Some(hyperfine) = ugeom_testkit::program("hyperfine") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let result = disks::at(&folder, "hyperfine.json");
    let runs = format!("-N --runs 7 --export-json {result} true false -i");
    let runs = words_of(&runs);
    other(hyperfine, &runs);
    read_everywhere(&result, "hyperfine", "false");
}

#[test]
fn what_iostat_writes_is_read() {
    let Some(iostat) = ugeom_testkit::program("iostat") else { return };
    let printed = other(iostat, &["-x", "-d", "-o", "JSON", "1", "2"]);
    let folder = tempfile::tempdir().expect("a folder");
    let result = disks::at(&folder, "iostat.json");
    let report = json_of(&printed);
    let disks = &report["sysstat"]["hosts"][0]["statistics"][1]["disk"];
    let disks = disks.as_array().map_or(&[][..], |disks| &disks[..]);
    // Devices without any request are left out where others have some.
    let is_busy = |disk: &&Value| {
        let mut values = disk.as_object().into_iter().flat_map(|it| it.values());
        values.any(|value| value.as_f64().is_some_and(|number| number != 0.0))
    };
    let disk = disks.iter().find(is_busy).or(disks.first());
    let Some(disk) = disk.and_then(|disk| disk["disk_device"].as_str()) else {
        return ugeom_testkit::skip("there is no disk here");
    };
    std::fs::write(&result, &printed).expect("the result");
    read_everywhere(&result, "iostat", disk);
}

#[test]
fn a_file_of_others_is_overwritten_with_force_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let result = disks::at(&folder, "bench.txt");
    let line = |at: u64| format!("BenchmarkA-2 100 {} ns/op\n", 1000 + at);
    std::fs::write(&result, (0..10).map(line).collect::<String>()).expect("a result");
    let thesis = disks::at(&folder, "report.html");
    std::fs::write(&thesis, "<html>my thesis</html>").expect("a file");
    let compare = ["compare", &result, &result, "--report", &thesis];
    let report = ["report", &result, "-o", &thesis];
    for command in [
        &compare[..],
        &report[..],
        &["report", "--csv", &result, "-o", &thesis],
    ] {
        let said = ugeom(command).failed(2);
        has(&said, "was not written by ugeom; --force overwrites it");
    }
    let kept = std::fs::read_to_string(&thesis).expect("the file");
    assert_eq!(kept, "<html>my thesis</html>");
    ugeom(&[&report[..], &["--force"]].concat()).quiet();
    ugeom(&report).quiet();
    let compared = ugeom(&compare);
    assert_eq!(compared.code, 0, "{}", compared.stderr);
    let html = std::fs::read_to_string(&thesis).expect("the report");
    assert!(html.contains("change against the base") && html.contains("<svg "));
}

#[test]
fn what_is_no_result_is_named_with_its_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| disks::at(&folder, name);
    let kept = at("report.html");
    for (name, text, reason) in [
        (
            "empty.json",
            "",
            "is empty; expected a result of ugeom, fio",
        ),
        (
            "text.json",
            "Hello",
            "line 1, `Hello`: expected a result of ugeom",
        ),
        (
            "keys.json",
            "{\"a\": 1}",
            "an unknown kind with the keys a; expected",
        ),
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
        let expected = format!("ugeom: {}: ", at(name));
        begins(&said, &expected);
        has(&said, reason);
    }
    std::fs::write(folder.path().join("bytes.json"), b"\xff\xfe").expect("a file");
    let said = ugeom(&["report", &at("bytes.json")]).failed(1);
    has(
        &said,
        "bytes.json: byte 0: not UTF-8; a result is text or JSON",
    );
    let said = ugeom(&["report", &at("none.json")]).failed(1);
    has(&said, "none.json: No such file");
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
    has(&said, "would overwrite this result");
    assert!(std::fs::read(&result).expect("the result") == before);
}
