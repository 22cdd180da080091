//! `ugeom ab`: targets, job files and commands against each other, the sentence, and failures.

use crate::disks;
use crate::run::{
    Ended, UGEOM, command, end, has, json_of, other, ugeom, wait_for, wait_until_it_listens,
    words_of,
};

/// Stderr without what a debug build says before it measures, and the progress of a busy machine.
fn words(ended: &Ended) -> String {
    let lines = ended.stderr.lines();
    lines
        .filter(|line| !line.contains("this is a debug build"))
        .filter(|line| !line.contains("fresh processes)"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn a_slow_layer_is_slower_and_the_result_can_be_compared_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = disks::at(&folder, "ab.json");
    let (a, b) = ("zero", "zero | nop:delay=20ms");
    let measured = [
        "--rounds", "2", "--run", "2ms", "--seed", "3", "--json", &file,
    ];
    let ended = ugeom(&[&["ab", a, b], &measured[..]].concat());
    assert_eq!((ended.code, words(&ended).as_str()), (0, ""));
    let text = ended.text();
    for part in [
        "B is ",
        " x slower than A (",
        "Wall time ",
        "CPU time ",
        "against A",
        "docs/ab.md",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json = json_of(std::fs::read_to_string(&file).expect("the samples"));
    assert_eq!(json["experiment"], "ab");
    assert_eq!(json["subject"]["candidates"][1]["side"]["target"], b);
    assert_eq!(json["processes"].as_array().map(Vec::len), Some(12));
    let rounds = json["processes"][0]["rounds"].as_array().expect("rounds");
    assert_eq!(rounds.len(), 2);
    // The saved result holds both sides in the same rounds.
    let again = json_of(ugeom(&["compare", &file, "--metric", "time", "--json"]).quiet());
    assert_eq!(again["interleaved"], true);
    let words = again["metrics"][0]["rows"][0]["words"]
        .as_str()
        .expect("words");
    has(&words, "slower");
}

#[test]
fn commands_are_told_from_targets_and_that_is_said() {
    let quick = ["--rounds", "6"];
    let ended = ugeom(&[&["ab", "sleep 0.001", "sleep 0.05"], &quick[..]].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(
        words(&ended).starts_with("ugeom: A is classified as a command: sleep 0.001 (--command)"),
        "{}",
        ended.stderr
    );
    has(&ended.text(), " slower than A");
    let said = ["--command", "--printed", "ms", "--json", "-"];
    let sides = ["ab", "echo took 2 ms; :", "echo took 3 ms; :"];
    let ended = ugeom(&[&sides, &said[..], &quick[..]].concat());
    assert_eq!((ended.code, words(&ended).as_str()), (0, ""));
    let json = json_of(ended.text());
    assert_eq!(json["subject"]["printed"], "ms");
    let sample = &json["processes"][0]["rounds"][0]["samples"][1];
    let ns = sample["wall_ns"]
        .as_f64()
        .zip(sample["iterations"].as_f64());
    assert_eq!(ns.map(|(ns, iterations)| ns / iterations), Some(3e6));
}

#[test]
fn job_files_are_compared_by_the_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| disks::file(&folder, name, text);
    let a = file(
        "a.fio",
        "[reads]\nfilename=md:1m\nrw=randread\nbs=4k\nnumber_ios=40\n",
    );
    // Fewer requests, each of which takes longer.
    let b = file(
        "b.job",
        "[reads]\nfilename=md:1m | nop:delay=5ms\nrw=randread\nbs=4k\nnumber_ios=10\n",
    );
    let few = ["--rounds", "1", "--processes", "6", "--json", "-"];
    let ended = ugeom(&[&["ab", &a, &b], &few[..]].concat());
    let said = words(&ended);
    assert_eq!(ended.code, 0, "{said}");
    for part in [
        format!("ugeom: A is classified as a job file: {a} (--job)"),
        format!("ugeom: B is classified as a job file: {b} (--job)"),
    ] {
        assert!(said.contains(&part), "{part}: {said}");
    }
    let json = json_of(ended.text());
    assert_eq!(json["subject"]["candidates"][0]["side"]["job"], *a);
    assert_eq!(json["subject"]["candidates"][1]["side"]["job"], *b);
    let samples = &json["processes"][0]["rounds"][0]["samples"];
    for (cell, requests) in [(0, 40), (1, 10)] {
        let sample = &samples[cell];
        assert_eq!(sample["iterations"], requests, "{sample}");
        assert_eq!(sample["work"]["transactions"], requests);
        assert_eq!(sample["work"]["bytes"], 4096 * requests);
    }
    let wall_ns = samples[1]["wall_ns"].as_u64().expect("a time");
    assert!(wall_ns >= 50_000_000, "ten delays of 5 ms: {wall_ns}");
    let page = ugeom(&["ab", "--job", &a, &b, "--rounds", "1", "--processes", "6"]);
    assert_eq!((page.code, words(&page).as_str()), (0, ""));
    has(&page.text(), " slower than A");
    let wrong = file("wrong.fio", "[reads]\nfilename=md:1m\nrw=randraed\n");
    let told = ugeom(&["ab", &a, &wrong]).failed(2);
    has(&told, &format!("{wrong}:3: "));
    let missing = ugeom(&["ab", "--job", &a, "no-such.fio"]).failed(2);
    has(&missing, "no-such.fio");
    let mixed = ugeom(&["ab", &a, "true"]).failed(2);
    has(&mixed, "by the request");
    ugeom(&["ab", &a, &b, "--printed", "ms"]).failed(2);
}

#[test]
fn a_job_that_writes_spares_what_carries_something() {
    let folder = tempfile::tempdir().expect("a folder");
    let image = folder.path().join("disk.img");
    let mut bytes = vec![0; 1 << 20];
    bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
    bytes[446..462].copy_from_slice(&[0, 0, 2, 0, 0x83, 0, 9, 0, 1, 0, 0, 0, 9, 0, 0, 0]);
    std::fs::write(&image, &bytes).expect("an image");
    let job = folder.path().join("write.fio");
    let text = format!(
        "[writes]\nfilename={}\nrw=write\nbs=4k\nnumber_ios=4\n",
        disks::text(&image)
    );
    std::fs::write(&job, text).expect("a job file");
    let job = disks::text(&job);
    let ab = format!("ab --job {job} {job} --rounds 1 --processes 6");
    let ab = words_of(&ab);
    let refused = ugeom(&ab).failed(1);
    has(&refused, "--destroy");
    assert!(
        std::fs::read(&image).expect("the image") == bytes,
        "it was written"
    );
    let ended = ugeom(&[&ab[..], &["--destroy"]].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(
        std::fs::read(&image).expect("the image") != bytes,
        "it was not written"
    );
}

#[test]
fn ctrl_c_ends_it_early_and_keeps_whole_rounds() {
    let folder = tempfile::tempdir().expect("a folder");
    let runs = folder.path().join("runs");
    let side = format!("echo run >> {}", disks::text(&runs));
    let sides = ["ab", "--command", &side, &side, "--rounds", "100000"];
    let child = command(UGEOM, &sides).spawn().expect("it starts");
    wait_until_it_listens(&child);
    // Warm-ups and some rounds.
    let count = || std::fs::read_to_string(&runs).map_or(0, |lines| lines.lines().count());
    wait_for("some rounds", || count() > 40);
    other("kill", &["-INT", &child.id().to_string()]);
    let ended = end(child);
    assert_eq!(ended.code, 130, "{ended:?}");
    assert!(ended.text().contains("ugeom ab "), "{ended:?}");
}

#[test]
fn what_cannot_be_compared_is_named() {
    let neither = ugeom(&["ab", "zero", "no-such-thing"]).failed(2);
    has(
        &neither,
        "B is `no-such-thing`: not a file, a device class or a program",
    );
    for wrong in [
        &["ab"][..],
        &["ab", "zero", "zero", "--rounds", "0"],
        &["ab", "zero", "--fail-if-slower", "5%"],
        &["ab", "zero", "--scan", "depth=1,2"],
        &["ab", "true", "true", "true", "-p", "a", "-p", "b"],
        &["ab", "zero", "zero", "--size", "0"],
        &["ab", "zero", "zero", "--size", "4x"],
        &["ab", "zero", "zero", "--size", "1g", "--depth", "4096"],
        &["ab", "zero", "zero", "--depth", "0"],
        &["ab", "zero", "zero", "--printed", "ms"],
        &["ab", "zero", "zero", "--command", "--target"],
        &["ab", "zero", "md:1x", "--target"],
        &["ab", "true", "--size", "4k"],
        &["ab", "true", "--random"],
        &["ab", "true", "--depth", "1"],
        &["ab", "true", "--processes", "6"],
        &["ab", "true", "--run", "1ms"],
        &["ab", "true", "--destroy"],
        &["ab", "zero", "-w", "1"],
        &["ab", "zero", "-S", "sh"],
        &["ab", "zero", "-N"],
        &["ab", "zero", "-i"],
        &["lab", "layers", "--faithful", "--budget", "3s"],
        &["lab", "sweep", "--direct", "md:1m"],
        &["lab", "sweep", "--bytes", "1", "md:1m"],
        &["lab", "sweep", "--min", "1000", "/proc/version"],
    ] {
        let ended = ugeom(wrong);
        assert_eq!(
            (ended.code, ended.text().as_str()),
            (2, ""),
            "{wrong:?}: {}",
            ended.stderr
        );
    }
    for (side, size, problem) in [
        (
            "md:64k",
            "128k",
            "it holds 65536 bytes, too few for a read of 131072",
        ),
        (
            "md:1m,sectorsize=4k",
            "512",
            "reads of 512 bytes are no multiple of its sectors of 4096 bytes",
        ),
    ] {
        let ended = ugeom(&["ab", "zero", side, "--size", size]);
        assert_eq!((ended.code, ended.text().as_str()), (1, ""));
        has(&ended.stderr, problem);
    }
    let fails = ugeom(&["ab", "--command", "true", "echo broken >&2; exit 3"]);
    assert_eq!(fails.code, 1);
    has(&fails.stderr, "exit code 3: broken");
    let depth = ugeom(&["ab", "true", "--depth", "4"]).failed(2);
    has(
        &depth,
        "--depth applies to targets only; the candidates are commands",
    );
}

#[test]
fn commands_run_as_often_as_they_are_told_to() {
    let folder = tempfile::tempdir().expect("a folder");
    for (warm_ups, runs) in [("0", 6), ("2", 8)] {
        let log = disks::at(&folder, warm_ups);
        let text = format!("echo run >> {log}");
        let ended = ugeom(&["ab", "--command", "-r", "6", "-w", warm_ups, &text]);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let lines = std::fs::read_to_string(&log).expect("the runs");
        assert_eq!(lines.lines().count(), runs);
    }
    let ignored = ugeom(&["ab", "-r", "6", "-i", "true", "false"]);
    assert_eq!(ignored.code, 0, "{}", ignored.stderr);
    has(
        &ignored.text(),
        "7 runs of B ended with an exit code other than 0",
    );
}

#[test]
fn commands_are_scanned_gated_and_saved_as_a_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let csv = disks::at(&folder, "ab.csv");
    let scan = ["ab", "--command", "--scan", "n=0.002,0.4", "sleep {n}"];
    let quick = ["--rounds", "8", "--csv", &csv, "--fail-if-slower", "50%"];
    let ended = ugeom(&[&scan[..], &quick].concat());
    assert_eq!(
        ended.code, 3,
        "FAIL has a code of its own: {}",
        ended.stderr
    );
    let text = ended.text();
    for part in ["FAIL: time of n=0.4", "n=0.4 is ", " x slower than n=0.002"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let table = std::fs::read_to_string(&csv).expect("a table");
    let mut lines = table.lines();
    assert_eq!(
        lines.next(),
        Some("experiment,case,metric,round,value,unit,process")
    );
    let times = lines.filter(|line| line.starts_with("ab,n=0.4,time,"));
    assert_eq!(times.count(), 8);
    let fast = ["ab", "-N", "-r", "8", "--fail-if-slower", "20%"];
    let pass = ugeom(&[&fast[..], &["sleep 0.4", "sleep 0.002"]].concat());
    assert_eq!(pass.code, 0, "{}", pass.stderr);
    has(&pass.text(), "PASS: ");
    let few = words_of("ab -N -r 2 --fail-if-slower 20% true true");
    let undecided = ugeom(&few);
    assert_eq!(undecided.code, 4, "{}", undecided.stderr);
    has(&undecided.text(), "UNDECIDED: ");
}

#[test]
fn options_of_hyperfine_are_taken_or_their_error_names_what_to_write() {
    for (option, value, instead) in [
        ("--min-runs", "5", "--rounds N"),
        ("-M", "5", "--budget TIME"),
        ("--parameter-scan", "n", "--scan NAME=FROM..TO:STEP"),
        ("--input", "a.txt", "'sort < a.txt'"),
        ("--time-unit", "ms", "--json FILE"),
        ("--export-asciidoc", "a.adoc", "--markdown FILE"),
    ] {
        let ended = ugeom(&["ab", option, value, "true", "true"]);
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        let message = format!("unexpected argument '{option}' found\n\n  tip: ");
        has(&ended.stderr, &message);
        has(&ended.stderr, instead);
    }
    // Another command has no such tips.
    has(
        &ugeom(&["show", "--style", "full", "zero"]).stderr,
        "'--style' found",
    );
    let folder = tempfile::tempdir().expect("a folder");
    let page = disks::at(&folder, "page.md");
    let quick = ["ab", "-N", "--runs", "6", "--command", "true", "true"];
    let ended = ugeom(&[&quick[..], &["--export-markdown", &page]].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let page = std::fs::read_to_string(&page).expect("the page");
    assert!(page.starts_with("# ugeom ab "), "{page}");
    has(&page, "| wall time");
}

#[test]
fn one_round_is_too_few() {
    let ended = ugeom(&["ab", "-N", "--command", "--rounds", "1", "true", "true"]);
    has(
        &ended.text(),
        "No verdict: 1 round is too few, a comparison needs 6 (--rounds 6).",
    );
}

#[test]
fn a_printed_number_with_a_comma_is_refused() {
    let quick = ["ab", "--command", "--runs", "6", "--printed", "per-second"];
    let ended = ugeom(&[&quick[..], &["echo 1,234", "echo 5,234"]].concat());
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    has(
        &ended.stderr,
        "`echo 1,234`: it printed 1,234: a comma between digits",
    );
}
