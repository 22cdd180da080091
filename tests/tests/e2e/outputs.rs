//! The files of results: the old one stays where the new one cannot be written, and nothing that
//! ugeom did not write is overwritten.

use crate::disks::text;
use crate::run::{Ended, UGEOM, command, has, json_of, run, ugeom, words_of};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A measurement of some milliseconds.
const QUICK: [&str; 8] = ["ab", "-r", "1", "--run", "1ms", "--processes", "1", "zero"];

fn quick(arguments: &[&str]) -> Ended {
    ugeom(&[&QUICK[..], arguments].concat())
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a list");
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        let name = entry.expect("an entry").file_name();
        name.into_string().expect("UTF-8")
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

#[test]
fn a_result_without_room_leaves_the_older_one_and_the_answer_is_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = text(&folder.path().join("kept.json"));
    assert_eq!(quick(&["--json", &kept]).code, 0);
    let old = std::fs::read(&kept).expect("a result");
    // Files of at most 2 KiB, in place of a full disk.
    let script = "trap '' XFSZ; ulimit -f 4; exec \"$@\"";
    let words = [&["-c", script, "sh", UGEOM][..], &QUICK, &["--json", &kept]].concat();
    let ended = run(command("dash", &words), b"");
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    has(&ended.stderr, &format!("{kept}: writing: "));
    has(&ended.text(), "wall time");
    assert!(std::fs::read(&kept).expect("a result") == old);
    assert_eq!(names(folder.path()), ["kept.json"]);
}

#[test]
fn every_result_is_tried() {
    let folder = tempfile::tempdir().expect("a folder");
    let [csv, report] = ["a.csv", "a.html"].map(|name| text(&folder.path().join(name)));
    let ended = quick(&["--json", "/dev/full", "--csv", &csv, "--report", &report]);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    has(&ended.stderr, "/dev/full: writing: No space left on device");
    has(&ended.text(), "wall time");
    assert_eq!(names(folder.path()), ["a.csv", "a.html"]);
}

#[test]
fn what_is_printed_goes_on_behind_a_result_in_the_file_of_stdout() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = text(&folder.path().join("out"));
    let script = "exec \"$@\" --json /dev/stdout > \"$0\"";
    let words = [&["-c", script, &out, UGEOM][..], &QUICK].concat();
    let ended = run(command("sh", &words), b"");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let printed = std::fs::read_to_string(&out).expect("what was printed");
    let (answer, json) = printed.split_once("\n{").expect("both");
    has(answer, "wall time");
    assert_eq!(json_of(format!("{{{json}"))["experiment"], "ab");
}

#[test]
fn results_that_would_mix_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = text(&folder.path().join("f"));
    let picture = ["trace", "none", "--flame", &path, "--heat", &path];
    for refused in [
        quick(&["--json", &path, "--csv", &path]),
        quick(&["--json", "-", "--csv", "-"]),
        ugeom(&["lab", "layers", "--json", "-", "--report", "-"]),
        ugeom(&picture),
    ] {
        has(&refused.failed(2), "name one file");
    }
    let json = text(&folder.path().join("a.json"));
    assert_eq!(quick(&["--json", &json]).code, 0);
    let refused = quick(&["--csv", &json]).failed(2);
    has(
        &refused,
        "a.json is a JSON result, not a CSV table; --force overwrites it",
    );
    let html = quick(&["--report", "-"]).text();
    assert!(html.starts_with("<!DOCTYPE html>"), "{html}");
    assert_eq!(names(folder.path()), ["a.json"]);
}

#[test]
fn a_trace_overwrites_no_file_of_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let image = text(&folder.path().join("disk.img"));
    std::fs::write(&image, [7; 8192]).expect("an image");
    for flag in ["--flame", "--heat", "--output"] {
        let refused = ugeom(&["trace", "none", flag, &image]).failed(2);
        has(
            &refused,
            "disk.img was not written by ugeom; --force overwrites it",
        );
    }
    let refused = ugeom(&["trace", "show", "none", "--iolog", &image]).failed(2);
    has(&refused, "was not written by ugeom");
    assert!(std::fs::read(&image).expect("an image") == [7; 8192]);
}

#[test]
fn an_error_of_a_job_is_told_in_words_without_its_number() {
    let job = words_of("run --name=j --filename=/dev/full --rw=write --size=4k");
    let ended = ugeom(&job);
    let text = ended.text();
    let line = text.lines().find(|line| line.contains("err="));
    let line = line.expect("the job's line");
    assert!(
        line.contains("No space left on device") && !line.contains("os error"),
        "{line}"
    );
}

#[test]
fn sigterm_ends_a_measurement_with_143() {
    let keeping = ["--preserve-status", "0.7", UGEOM, "lab", "layers", "--full"];
    let ended = run(command("timeout", &keeping), b"");
    assert_eq!(ended.code, 143, "{}", ended.stderr);
}

#[test]
fn a_wrong_layer_of_a_candidate_is_named() {
    let refused = ugeom(&["ab", "md:64m | nopp", "md:64m"]).failed(2);
    has(&refused, "nopp");
    has(&refused, "nop");
    assert!(!refused.contains("not a file"), "{refused}");
    for (words, expected) in [
        (["stat", "-n", "0"], "write a number from 1 on"),
        (
            ["crash", "--points", "0"],
            "write a number from 1 on, or all",
        ),
    ] {
        has(&ugeom(&words).failed(2), expected);
    }
}

#[test]
fn a_name_that_is_no_utf8_is_measured_and_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &[u8]| folder.path().join(OsStr::from_bytes(name));
    let image = path(b"d\xff\xfe.img");
    std::fs::write(&image, vec![7; 4 << 20]).expect("an image");
    let job = path(b"j\xff.fio");
    std::fs::write(&job, "[j]\nfilename=zero\nrw=read\nsize=64k\n").expect("a job");
    let run = |words: &[&str], path: &Path| {
        let all = words.iter().map(OsString::from).chain([path.into()]);
        let all: Vec<OsString> = all.collect();
        let ended = ugeom(&all);
        assert_eq!(ended.code, 0, "{words:?}: {}", ended.stderr);
    };
    let short = ["--budget", "1s", "--processes", "1"];
    run(
        &[
            &["lab", "sweep", "--bytes", "64k", "--buffered"],
            &short[..],
        ]
        .concat(),
        &image,
    );
    run(&[&["lab", "layers"], &short[..]].concat(), &image);
    run(
        &[&["lab", "cached", "--size", "4m"], &short[..]].concat(),
        &image,
    );
    let engines = words_of("lab engines --destroy --depth 4 --size 1m");
    run(&[&engines, &short[..]].concat(), &image);
    run(&["run"], &job);
    run(&["ab", "-r", "1", "--processes", "1"], &job);
    let missing = ugeom(&[OsStr::new("run"), path(b"m\xff.fio").as_os_str()]).failed(1);
    has(&missing, "m\\xff.fio");
}
