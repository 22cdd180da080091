//! Samples of each format, faulty ones, and any text.

use super::*;
use proptest::prelude::*;
use ugeom_testkit::{begins, has};

fn values(series: &[Series], case: &str, metric: &str) -> Vec<f64> {
    let found = series
        .iter()
        .find(|one| one.case == case && one.metric == metric);
    found
        .unwrap_or_else(|| panic!("{case}, {metric}: {series:?}"))
        .values
        .clone()
}

const FIO: &str = r#"note: both iodepth >= 1 and synchronous I/O engine are selected
{"fio version": "fio-3.33", "jobs": [{"jobname": "reads",
 "read": {"total_ios": 100, "iops": 5000.5, "bw_bytes": 20482048,
          "lat_ns": {"mean": 200.5}, "clat_ns": {"mean": 190.0,
          "percentile": {"50.000000": 180, "99.000000": 400}}},
 "write": {"total_ios": 0, "iops": 0.0}}]}"#;

const HYPERFINE: &str = r#"{"results": [
 {"command": "sleep 0.1", "mean": 0.1, "user": 0.001, "system": 0.002, "times": [0.101, 0.1]},
 {"command": "sleep 0.2", "mean": 0.2}]}"#;

const GO: &str = "goos: linux\ngoarch: amd64\npkg: example.com/a\n\
    BenchmarkFib10-8   \t  500000\t      3090 ns/op\t  16 B/op\t 1 allocs/op\n\
    some log line\nBenchmarkBroken\n\
    BenchmarkFib10-8   \t  500000\t      3110 ns/op\t  16 B/op\t 1 allocs/op\n\
    BenchmarkCopy-8    \t  100\t 1000 ns/op\t 512.5 MB/s\nPASS\nok  \texample.com/a\t3.2s\n";

const IOSTAT: &str = r#"{"sysstat": {"hosts": [{"nodename": "h", "statistics": [
 {"disk": [{"disk_device": "sda", "r/s": 1.0, "r_await": 9.0}]},
 {"disk": [{"disk_device": "sda", "r/s": 100.0, "r_await": 0.5}]},
 {"disk": [{"disk_device": "sda", "r/s": 110.0, "r_await": 0.6}]}]}]}}"#;

#[test]
fn iostat_s_devices_without_requests_are_left_out_and_its_columns_have_units() {
    let report = r#"{"disk": [
        {"disk_device": "loop0", "aqu-sz": 0.0, "r/s": 0.0},
        {"disk_device": "sda", "aqu-sz": 2.5, "r/s": 9.0, "rareq-sz": 4.0, "rkB/s": 36.0,
         "util": 1.0}]}"#;
    let text = format!("{{\"sysstat\": {{\"hosts\": [{{\"statistics\": [{report}]}}]}}}}");
    let (_, series) = read("d.json", "d", &text).unwrap();
    assert!(series.iter().all(|one| one.case == "sda"), "{series:?}");
    let columns = series.iter().map(|one| (&one.metric[..], &one.unit[..]));
    let expected = [
        ("r/s", "1/s"),
        ("rkB/s", "kB/s"),
        ("aqu-sz", ""),
        ("util", "%"),
        ("rareq-sz", "kB"),
    ];
    assert_eq!(columns.collect::<Vec<_>>(), expected);
    let plain = r#"{"disk": [{"disk_device": "sda", "tps": 9.0, "kB_read/s": 36.0,
        "kB_wrtn/s": 0.0, "kB_dscd/s": 0.0, "kB_read": 36, "kB_wrtn": 0}]}"#;
    let plain = text.replace(report, plain);
    let (_, series) = read("d.json", "d", &plain).unwrap();
    let columns = series.iter().map(|one| (&one.metric[..], &one.unit[..]));
    let expected = [
        ("tps", "1/s"),
        ("kB_read/s", "kB/s"),
        ("kB_wrtn/s", "kB/s"),
        ("kB_dscd/s", "kB/s"),
        ("kB_read", "kB"),
        ("kB_wrtn", "kB"),
    ];
    assert_eq!(columns.collect::<Vec<_>>(), expected);
    let idle = text.replace("\"sda\"", "\"loop1\"");
    let idle = idle
        .replace("2.5", "0")
        .replace("9.0", "0")
        .replace("4.0", "0");
    let idle = idle.replace("36.0", "0").replace("1.0", "0");
    let (_, all) = read("d.json", "d", &idle).unwrap();
    assert!(all.iter().any(|one| one.case == "loop0"), "{all:?}");
}

#[test]
fn each_format_is_known_by_its_content() {
    let (format, fio) = read("a.json", "a", FIO).unwrap();
    assert_eq!(format, Format::Fio);
    assert_eq!(values(&fio, "reads read", "iops"), [5000.5]);
    assert_eq!(values(&fio, "reads read", "latency99"), [400.0]);
    assert!(
        fio.iter().all(|one| one.case == "reads read"),
        "nothing was written"
    );
    let (format, hyperfine) = read("b.json", "b", HYPERFINE).unwrap();
    assert_eq!(format, Format::Hyperfine);
    assert_eq!(values(&hyperfine, "sleep 0.1", "time"), [101e6, 100e6]);
    assert_eq!(values(&hyperfine, "sleep 0.1", "cpu"), [3e6]);
    assert_eq!(values(&hyperfine, "sleep 0.2", "time"), [200e6]);
    let (format, go) = read("c.txt", "c", GO).unwrap();
    assert_eq!(format, Format::Go);
    assert_eq!(
        values(&go, "example.com/a.Fib10-8", "time"),
        [3090.0, 3110.0]
    );
    assert_eq!(
        values(&go, "example.com/a.Copy-8", "bytes_per_second"),
        [512.5e6]
    );
    let (format, iostat) = read("d.json", "d", IOSTAT).unwrap();
    assert_eq!(format, Format::Iostat);
    assert_eq!(values(&iostat, "sda", "r/s"), [100.0, 110.0]);
    assert_eq!(values(&iostat, "sda", "r_await"), [0.5, 0.6]);
    let sample = r#"{"sampling_mode": "Linear", "iters": [10.0, 20.0], "times": [100.0, 220.0]}"#;
    let (format, criterion) = read("sample.json", "fib/20", sample).unwrap();
    assert_eq!(format, Format::Criterion);
    assert_eq!(values(&criterion, "fib/20", "time"), [10.0, 11.0]);
    let estimates = r#"{"mean": {"point_estimate": 12.0}, "median": {"point_estimate": 11.5}}"#;
    let (_, criterion) = read("estimates.json", "fib", estimates).unwrap();
    assert_eq!(values(&criterion, "fib", "time"), [11.5]);
}

#[test]
fn fio_s_other_forms_are_read_too() {
    // `unified_rw_reporting`, and text behind the result (`--output-format=json,normal`).
    let mixed = FIO.replace("\"read\"", "\"mixed\"") + "\n\nreads: (g=0): rw=randrw, bs=(R) 4k\n";
    let (_, series) = read("a.json", "a", &mixed).unwrap();
    assert_eq!(values(&series, "reads mixed", "iops"), [5000.5]);
    // `--status-interval`: the last one counts.
    let (_, json) = FIO.split_once('\n').unwrap();
    let twice = format!("{FIO}\n{}", json.replace("5000.5", "6000.5"));
    let (_, series) = read("a.json", "a", &twice).unwrap();
    assert_eq!(values(&series, "reads read", "iops"), [6000.5]);
    // `--client`: an entry for each, and their sum.
    let clients = json.replace("\"jobs\"", "\"client_stats\"");
    let sum = r#", {"jobname": "All clients", "read": {"total_ios": 9, "iops": 9.0}}]}"#;
    let clients = format!("{}{sum}", clients.trim_end_matches("]}"));
    let (_, series) = read("a.json", "a", &clients).unwrap();
    assert_eq!(values(&series, "reads read", "iops"), [5000.5]);
    assert!(
        series.iter().all(|one| one.case == "reads read"),
        "{series:?}"
    );
}

#[test]
fn events_of_go_s_tests_are_put_together() {
    let event = |output: &str| {
        let output = serde_json::to_string(output).unwrap();
        format!("{{\"Action\":\"output\",\"Package\":\"a\",\"Output\":{output}}}\n")
    };
    let text: String = GO.split_inclusive('\t').map(event).collect();
    let (format, series) = read("c.json", "c", &text).unwrap();
    assert_eq!(format, Format::Go);
    assert_eq!(series, read("c.txt", "c", GO).unwrap().1);
}

#[test]
fn a_negative_time_is_no_measured_value() {
    for wrong in [
        HYPERFINE.replace("0.101", "-0.101"),
        GO.replace("3090", "-3090"),
    ] {
        let error = read("b", "b", &wrong).unwrap_err().to_string();
        assert!(error.ends_with("is no measured value"), "{error}");
    }
}

#[test]
fn text_behind_a_result_of_others_is_told() {
    let wrong = read("b.json", "b", &format!("{HYPERFINE}\nx")).unwrap_err();
    assert_eq!(wrong.to_string(), "b.json: line 4: text after the JSON");
}

#[test]
fn what_is_wrong_is_told_with_file_place_and_what_was_expected() {
    for (text, words) in [
        ("", "a.txt: is empty; expected a result of ugeom, fio"),
        ("hello\n", "a.txt: line 1, `hello`: expected"),
        ("{\"a\": 1}", "an unknown kind with the keys a; expected"),
        ("[1]", "no object; expected"),
        ("{}", "a.txt: an empty JSON object; expected"),
        ("\0\u{1}\n", "a.txt: line 1 is no text; expected"),
        (
            "note\n[1,\n",
            "a.txt: line 3, column 0: no JSON: EOF while parsing a value",
        ),
        ("{\n \"jobs\": [\n", "line 3, column 0: no JSON"),
        ("note\n{\n \"jobs\": [\n", "line 4, column 0: no JSON"),
        ("{\"jobs\": 1}", "the result.jobs: expected a list"),
        ("{\"jobs\": [{}]}", "jobs[0]: there is no `jobname`"),
        ("{\"jobs\": []}", "a result of fio without any value"),
        (
            "{\"results\": [{\"command\": 1}]}",
            "results[0].command: expected a text",
        ),
        (
            "{\"results\": [{\"command\": \"x\", \"times\": [\"a\"]}]}",
            "results[0].times[0]: expected a number",
        ),
        (
            "{\"iters\": [1], \"times\": []}",
            "1 values in `iters`, but 0 in `times`",
        ),
        ("{\"sysstat\": {}}", "sysstat: there is no `hosts`"),
        ("BenchmarkX-8 10 5\n", "line 1: expected pairs"),
        (
            "BenchmarkX-8 10 five ns/op\n",
            "line 1: `five` is no number",
        ),
    ] {
        let error = read("a.txt", "a", text).unwrap_err().to_string();
        begins(&error, "a.txt: ");
        has(&error, words);
    }
}

proptest! {
    #[test]
    fn any_text_has_values_or_a_reason(text in any::<String>(), json in any::<bool>()) {
        let text = if json { format!("{{{text}") } else { text };
        if let Ok((_, series)) = read("a", "a", &text) {
            prop_assert!(series.iter().flat_map(|one| &one.values).all(|value| value.is_finite()));
        }
    }

    #[test]
    fn damaged_results_are_values_or_a_reason(
        which in 0_usize..4,
        from in 0_usize..400,
        bytes in "[ -~]{0,4}",
    ) {
        let mut text = [FIO, HYPERFINE, GO, IOSTAT][which].to_owned();
        let from = from.min(text.len());
        let to = (from + bytes.len()).min(text.len());
        text.replace_range(from..to, &bytes);
        if let Ok((_, series)) = read("a", "a", &text) {
            prop_assert!(series.iter().flat_map(|one| &one.values).all(|value| value.is_finite()));
        }
    }
}
