//! `ugeom lab`: that it measures, stops, and puts its results where they belong. The quality of the
//! figures is tested where they are computed.

use crate::disks;
use crate::run::{
    UGEOM, command, end, has, json_of, other, run_in, ugeom, wait_until_it_listens, words_of,
};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

/// The message of a debug build before it measures.
fn expected_stderr() -> &'static str {
    if cfg!(debug_assertions) {
        "ugeom: warning: this is a debug build, its figures are meaningless: \
         use `cargo run --release`\n"
    } else {
        ""
    }
}

/// The stderr of a command, without the lines of progress that a busy machine makes.
fn said(stderr: &str) -> String {
    let lines = stderr.split_inclusive('\n');
    lines
        .filter(|line| !line.contains("fresh processes)"))
        .collect()
}

/// Runs `ugeom lab`, which succeeds without a warning, and gives its stdout.
fn lab(arguments: &[&str]) -> String {
    let ended = ugeom(&[&["lab"], arguments].concat());
    assert_eq!(
        (ended.code, said(&ended.stderr).as_str()),
        (0, expected_stderr())
    );
    ended.text()
}

/// A result that was saved.
fn saved(path: &str) -> Value {
    let text = std::fs::read_to_string(path).expect("the samples");
    json_of(&text)
}

fn has_all(report: &str, parts: &[&str]) {
    for part in parts {
        assert!(report.contains(part), "{part}: {report}");
    }
}

#[test]
fn layers_prints_a_report_and_saves_its_samples() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = disks::at(&folder, "layers.json");
    let report = lab(&["layers", "--budget", "1s", "--seed", "7", "--json", &file]);
    let parts = [
        "ugeom lab layers: what do GEOM and each layer add",
        "\nGEOM adds ",
        "  md0: function call",
        &format!("More: ugeom report {file}; docs/lab-layers.md\n"),
    ];
    has_all(&report, &parts);
    let json = saved(&file);
    assert_eq!(
        (&json["experiment"], &json["settings"]["seed"]),
        (&"layers".into(), &7.into())
    );
    let processes = json["processes"].as_array().expect("processes");
    assert!((6..=8).contains(&processes.len()), "{}", processes.len());
    assert!(report.lines().count() < 24, "{report}");
    let answer = report
        .lines()
        .position(|line| line.starts_with("GEOM adds"));
    assert!(answer.is_some_and(|line| line < 6), "{report}");
    is_served(&json, "through NBD/md0s1c", "through FUSE/md0s1c");
    // A repetition may contradict a time, so it has percentiles; a difference has an interval.
    let figures = json["figures"].as_array().expect("figures");
    for (id, is_spread) in [
        ("wall.direct", true),
        ("null.scaling", true),
        ("geom.cost", false),
    ] {
        let figure = figures.iter().find(|figure| figure["id"] == id);
        let confidence = figure.map(|it| &it["interval"]["confidence"]);
        let confidence = confidence.and_then(Value::as_f64).expect(id);
        assert_eq!(confidence == 0.0, is_spread, "{id}: {confidence}");
    }
    has_all(
        &report,
        &["Intervals: ( ) 9", " % CI, [ ] 10th to 90th percentile, "],
    );
}

#[test]
fn verbose_prints_a_line_for_each_process() {
    let ended = ugeom(&["lab", "scaling", "--for", "1s", "--workers", "1", "-v"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    for number in 1..=6 {
        let line = format!("\nugeom: process {number}: ");
        assert!(format!("\n{}", ended.stderr).contains(&line), "{ended:?}");
    }
    has(&ended.stderr, " runs repeated because the core was slow");
}

/// There are cells of reads through NBD, and through FUSE, or the reason why there are none.
fn is_served(document: &Value, by_nbd: &str, by_fuse: &str) {
    let cells = document["processes"][0]["cells"].as_array().expect("cells");
    let has = |name: &str| cells.iter().any(|cell| cell == name);
    let left_out = document["subject"]["left_out"].to_string();
    assert!(has(by_nbd), "{cells:?} {left_out}");
    let closed = left_out.contains("reads through FUSE (");
    assert!(has(by_fuse) != closed, "{cells:?} {left_out}");
    if closed {
        ugeom_testkit::skip(&left_out);
    }
}

#[test]
fn scaling_prints_the_ladder_and_saves_its_samples() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = disks::at(&folder, "scaling.json");
    let report = lab(&words_of(&format!(
        "scaling --budget 1s --workers 1,3 --json {file}"
    )));
    has_all(
        &report,
        &[
            "All knobs on: 1 worker ",
            "per-core pools",
            "+187.0 % +/- 2.8",
        ],
    );
    let json = saved(&file);
    assert_eq!(json["experiment"], "scaling");
    assert_eq!(json["subject"]["ladder"].as_array().map(Vec::len), Some(5));
}

#[test]
fn a_disk_of_ones_own_is_measured_and_only_read() {
    let (_folder, path) = disks::partitioned_image(4096, 63, 100);
    let before = std::fs::read(&path).expect("the image");
    let disk = disks::text(&path);
    let json = json_of(lab(&["layers", "--budget", "1s", "--json", "-", &disk]));
    let cells = json["processes"][0]["cells"].to_string();
    has(&cells, "disk.imgs1");
    assert!(std::fs::read(&path).expect("the image") == before);
}

#[test]
fn ctrl_c_ends_it_early_and_keeps_what_was_measured() {
    let mut lab = command(UGEOM, &["lab", "layers", "--full"]);
    let mut child = lab.spawn().expect("it starts");
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    if cfg!(debug_assertions) {
        // It listens to Ctrl-C before it says this.
        let mut line = String::new();
        stderr.read_line(&mut line).expect("a line");
        assert_eq!(line, expected_stderr());
    } else {
        std::thread::sleep(Duration::from_secs(1));
    }
    other("kill", &["-INT", &child.id().to_string()]);
    let ended = end(child);
    let mut reason = String::new();
    stderr.read_to_string(&mut reason).expect("the rest");
    // With something measured there is an answer, without there is a reason.
    assert_eq!(ended.code, 130, "{ended:?}");
    let measured = ended.text().starts_with("ugeom lab layers --full: ");
    assert!(
        measured || reason.contains("before anything was measured"),
        "{ended:?} {reason}"
    );
}

#[test]
fn ctrl_c_ends_every_measurement_in_order() {
    let slow_disk = "disk:64m,preset=ata2004,data=0";
    for (arguments, shown) in [
        (
            &["lab", "sweep", "--full", slow_disk][..],
            "ugeom lab sweep",
        ),
        (&["ab", "--rounds", "1000000", "zero", "zero"], "ugeom ab "),
        (&["diskinfo", "-c", "-t", "-i", slow_disk], "sectorsize"),
        (&["iostat", "1"], "cpu"),
        (&["lab", "scaling", "--full"], "ugeom lab scaling"),
    ] {
        let child = command(UGEOM, arguments).spawn().expect("it starts");
        wait_until_it_listens(&child);
        // Long enough for something to be measured by most of them, on most machines.
        std::thread::sleep(Duration::from_millis(300));
        other("kill", &["-INT", &child.id().to_string()]);
        let ended = end(child);
        // With something measured there is a report, without there is a reason.
        match ended.code {
            0 => assert!(ended.text().contains(shown), "{arguments:?}: {ended:?}"),
            130 | 1 => assert!(!ended.stderr.is_empty(), "{arguments:?}: {ended:?}"),
            _ => panic!("{arguments:?}: {ended:?}"),
        }
    }
}

#[test]
fn a_measurement_that_is_killed_leaves_no_file_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    for arguments in [&["lab", "engines"][..], &["lab", "sweep", "--full"]] {
        let mut lab = command(UGEOM, arguments);
        let child = lab.current_dir(folder.path()).spawn().expect("it starts");
        wait_until_it_listens(&child);
        let files = || {
            std::fs::read_dir(folder.path())
                .expect("the folder")
                .count()
        };
        for _ in 0..50 {
            assert_eq!(files(), 0, "{arguments:?}: its file has no name");
            std::thread::sleep(Duration::from_millis(10));
        }
        other("kill", &["-KILL", &child.id().to_string()]);
        end(child);
        assert_eq!(files(), 0, "{arguments:?}");
    }
}

#[test]
fn the_program_of_2002_prints_one_figure() {
    let (_folder, path) = disks::empty_image(512);
    let line = ugeom(&["lab", "tst", &disks::text(&path)]).quiet();
    let (whole, fraction) = line.trim_end().split_once('.').expect("a fraction");
    assert!(
        fraction.len() == 3 && whole.parse::<u64>().is_ok_and(|ns| ns > 0),
        "{line}"
    );
}

#[test]
fn engines_are_compared_on_a_file_that_may_be_destroyed_only() {
    let (_folder, path) = disks::empty_image(4 << 20);
    let path = disks::text(&path);
    let refused = ugeom(&["lab", "engines", &path]).failed(1);
    has(&refused, "nothing was written, --destroy allows it");
    let size = words_of("--destroy --size 2m --depth 4,16 --budget 1s");
    let ended = ugeom(&[&["lab", "engines", path.as_str()][..], &size].concat());
    if ended.stderr.contains("O_DIRECT") {
        return ugeom_testkit::skip(&ended.stderr);
    }
    let report = ended.text();
    let parts = [
        "In 2007 they were equal.",
        "IOPS, queue depth 4",
        "guasi-workers",
        "libaio",
    ];
    has_all(&report, &parts);
    // A machine with much else to do has no time for the second depth, and says so.
    let words: Vec<&str> = report.split_whitespace().collect();
    let words = words.join(" ");
    let depth = "queue depth 16";
    let shown = report.contains(&format!("IOPS, {depth}"));
    let shown = shown || words.contains(&format!("Left out: {depth}"));
    assert!(shown, "{report}");
    ugeom(&["lab", "engines", "--depth", "0"]).failed(2);
    ugeom(&["lab", "engines", "--size", "4k"]).failed(2);
    ugeom(&["lab", "cached", "--size", "0"]).failed(2);
}

#[test]
fn schedulers_that_there_are_none_of_are_refused_with_the_reason() {
    // Files in memory have no device.
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        return ugeom_testkit::skip("there is no /dev/shm");
    };
    let path = disks::file(&folder, "f", vec![0; 4 << 20]);
    let refused = ugeom(&["lab", "engines", "--schedulers", "--destroy", &path]).failed(1);
    has(&refused, "not on a block device known to the kernel");
}

#[test]
fn what_cannot_be_measured_is_named() {
    let (_folder, path) = disks::empty_image(511);
    let short = ugeom(&["lab", "tst", &disks::text(&path)]).failed(1);
    has(&short, "a read of 512 bytes at offset 0 ended after 511");
    let missing = ugeom(&["lab", "layers", "/no/such/disk"]);
    assert_eq!((missing.code, missing.text().as_str()), (1, ""));
    has(&missing.stderr, "/no/such/disk: No such file");
    let wrong = ugeom(&["lab", "layers", "md:1x"]);
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
    let nowhere = ugeom(&["lab", "layers", "--json", "/no/such/folder/x"]).failed(1);
    assert_eq!(
        nowhere,
        "ugeom: /no/such/folder/x: No such file or directory\n"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let unwritten = folder.path().join("result.json");
    let name = unwritten.to_str().expect("UTF-8");
    let broken = ["lab", "sweep", "md:64k | nop:rfail=1", "--json", name];
    let said = ugeom(&broken).failed(1);
    has(&said, "md0.nop");
    assert!(!unwritten.exists(), "nothing was measured");
    ugeom(&["lab", "layers", "--budget", "1s", "--full"]).failed(2);
    ugeom(&["lab", "--full", "layers"]).failed(2);
}

#[test]
fn cached_reads_a_file_of_ones_own_and_refuses_what_it_cannot_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("data.img");
    std::fs::write(&path, vec![7; 4 << 20]).expect("a file");
    let file = disks::text(&path);
    let json = disks::at(&folder, "cached.json");
    // On a busy machine, warnings take the place of rows on the first screen.
    let report = lab(&["cached", "--budget", "1s", "--all", "--json", &json, &file]);
    let random = "Random 4 KiB from memory, wall time: ";
    has_all(&report, &[random, "of a hit: the lookup", "pread"]);
    let json = saved(&json);
    assert_eq!(json["subject"]["size_bytes"], 4 << 20);
    is_served(&json, "hits/NBD 4k shuffled", "hits/FUSE 16k sequential");
    assert!(std::fs::read(&path).expect("the file") == vec![7; 4 << 20]);
    let missing = ugeom(&["lab", "cached", "--budget", "1s", "/nonexistent.img"]);
    assert_eq!(missing.code, 1);
    has(&missing.stderr, "/nonexistent.img: ");
    let size = ugeom(&["lab", "cached", "--size", "many", &file]);
    assert_eq!(size.code, 2);
}

#[test]
fn a_sweep_finds_the_limits_of_a_simulated_disk_and_saves_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = disks::at(&folder, "sweep.json");
    let disk = "disk:4m,overhead=200us,rate=50m/s,data=0";
    let sizes = [
        "--bytes", "1m", "--min", "4k", "--max", "64k", "--budget", "1s",
    ];
    let report = lab(&[&["sweep"], &sizes[..], &["--json", &file, disk]].concat());
    let asked = format!("ugeom lab sweep --min 4k --max 64k --bytes 1m {disk}");
    has_all(&report, &[&asked, "\nstack: ", "64 KiB"]);
    let json = saved(&file);
    assert_eq!(json["experiment"], "sweep");
    assert_eq!(
        json["subject"]["parts"][0]["set"]["transaction_ns"],
        200_000
    );
    let ids = json["figures"].to_string();
    has(&ids, "target.stack.transactions");
}

#[test]
fn a_sweep_prints_the_lines_of_dd_and_leaves_no_file_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let sweep = |arguments: &[&str]| run_in(folder.path(), UGEOM, arguments);
    let ended = sweep(&[
        "lab", "sweep", "--format", "dd", "--bytes", "64k", "--budget", "1s",
    ]);
    assert_eq!(
        (ended.code, said(&ended.stderr).as_str()),
        (0, expected_stderr())
    );
    let text = ended.text();
    let count = |part: &str| text.matches(part).count();
    assert!(count(" bytes transferred in ") >= 16, "{text}");
    assert_eq!(count(" bytes transferred in "), count("# time dd if="));
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .expect("the folder")
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_target_that_fails_in_the_middle_keeps_what_a_sweep_measured() {
    // All trials together take 255 requests, five times as many where each one is repeated, and ten
    // rounds take 2,550.
    let failing = "md:1m | nop:count_until_fail=1500";
    let sweep = ["lab", "sweep", "--bytes", "64k", "--processes", "1"];
    let ended = ugeom(&[&sweep[..], &["--budget", "1s", failing]].concat());
    assert_eq!(ended.code, 1);
    let report = ended.text();
    has(&report, "B/s");
    has(&ended.stderr, " failed: ");
}

#[test]
fn a_sweep_does_not_write_over_what_carries_something() {
    let (_folder, path) = disks::partitioned_image(4096, 63, 100);
    let before = std::fs::read(&path).expect("the image");
    let disk = disks::text(&path);
    let sweep = [
        "lab", "sweep", "--write", "--bytes", "64k", "--budget", "1s", &disk,
    ];
    let refused = ugeom(&sweep);
    assert_eq!(refused.code, 1);
    has(&refused.stderr, "--destroy overwrites it");
    assert!(std::fs::read(&path).expect("the image") == before);
    let done = ugeom(&[&sweep[..], &["--destroy"]].concat());
    assert_eq!(
        (done.code, said(&done.stderr).as_str()),
        (0, expected_stderr())
    );
    assert!(std::fs::read(&path).expect("the image") != before);
}

#[test]
fn a_sweep_names_what_it_cannot_do() {
    for (arguments, code, words) in [
        (&["--min", "0"][..], 2, "--min must be above 0"),
        (
            &["--min", "8k", "--max", "4k"],
            2,
            "--min 8192 is more than --max 4096",
        ),
        (&["--max", "2g"], 2, "the largest block"),
        (&["/no/such/disk"], 1, "/no/such/disk"),
        (&["md:1x"], 2, "column"),
    ] {
        let ended = ugeom(&[&["lab", "sweep"][..], arguments].concat());
        assert!(
            ended.code == code && ended.stderr.contains(words),
            "{words}: {} {}",
            ended.code,
            ended.stderr
        );
    }
}

#[test]
fn a_report_that_cannot_be_written_is_told_before_anything_is_measured() {
    let ended = ugeom(&["lab", "--report", "/nonexistent/report.html"]);
    assert_eq!((ended.code, ended.text().as_str()), (1, ""));
    has(&ended.stderr, "/nonexistent/report.html: ");
    let both = ugeom(&["lab", "--report", "x.html", "--no-report"]);
    assert_eq!(both.code, 2);
}
