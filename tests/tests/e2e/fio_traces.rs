//! Traces: `ugeom run` and fio make the same requests of the same log, each reads the other's.

use crate::run::{UGEOM, has, json_in, run_lines, tool};
use std::path::Path;

/// Runs a job in a folder; requests and bytes of reads, writes and trims.
fn counts(program: &[&str], folder: &Path, line: &str) -> Vec<u64> {
    let output = "--output-format=json --output=result";
    let ended = run_lines(program, folder, &[output, line]);
    assert_eq!(ended.code, 0, "{program:?} {line}: {}", ended.stderr);
    let job = &result(folder)["jobs"][0];
    let kinds = ["read", "write", "trim"].iter();
    let of = |kind: &&str| ["total_ios", "io_bytes"].map(|key| job[kind][key].as_u64().unwrap());
    kinds.flat_map(of).collect()
}

fn result(folder: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(folder.join("result")).expect("a result");
    json_in(&text)
}

#[test]
fn each_program_makes_the_requests_of_the_log_of_the_other() {
    let Some(fio) = tool("fio") else { return };
    let (theirs, ours) = (&[fio, "--thread"][..], &[UGEOM, "run"][..]);
    for writer in [theirs, ours] {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let line =
            "--name=a --rw=randrw --bsrange=4k-16k --size=256k --nrfiles=3 --write_iolog=log";
        let made = counts(writer, folder, line);
        for options in [
            "",
            "--replay_no_stall=1",
            "--replay_time_scale=300 --replay_align=8k",
            "--replay_scale=2",
        ] {
            let line = format!("--name=r --read_iolog=log --filename=other {options}");
            std::fs::write(folder.join("other"), vec![1; 1 << 20]).expect("a file");
            let expected = counts(theirs, folder, &line);
            assert_eq!(counts(ours, folder, &line), expected, "{writer:?} {line}");
            if options.is_empty() {
                assert_eq!(expected, made, "{writer:?}");
            }
        }
        // Deeper queues of fio 3.33 lose a part of the bytes where a log closes a file.
        let deep = "--name=r --read_iolog=log --ioengine=libaio --iodepth=4";
        assert_eq!(counts(ours, folder, deep), made, "{writer:?}");
        // fio 3.33 skips kinds in traces of blktrace alone, and ends with an assertion when the
        // requests of several files go to one.
        let line = "--name=r --read_iolog=log --replay_skip=write --replay_redirect=other";
        let reads = counts(ours, folder, line);
        assert_eq!((&reads[..2], reads[2]), (&made[..2], 0), "{writer:?}");
    }
}

#[test]
fn requests_of_a_trace_begin_at_their_times_and_late_ones_are_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let line = |ms: u64| format!("{},usr,0,Read,{},512,0\n", ms * 10_000, ms * 512);
    let trace: String = (0..100).map(line).collect();
    std::fs::write(folder.join("trace.csv"), trace).expect("a trace");
    let ours = &[UGEOM, "run"][..];
    let job = "--name=r --read_iolog=trace.csv --replay_redirect";
    let made = counts(ours, folder, &format!("{job}=md:1m"));
    assert_eq!(made[..2], [100, 51_200]);
    let fast = &result(folder)["jobs"][0];
    assert_eq!(fast["lateness_ns"]["N"], 100);
    assert!(fast["job_runtime"].as_u64().unwrap() >= 99, "{fast}");
    // Without times none is late, and each is due when it is made.
    counts(
        ours,
        folder,
        &format!("{job}=md:1m|nop:delay=1ms --replay_no_stall=1"),
    );
    let unstalled = &result(folder)["jobs"][0];
    assert_eq!(unstalled["lateness_ns"]["N"].as_u64(), None);
    let mean_ns = unstalled["read"]["lat_ns"]["mean"]
        .as_f64()
        .expect("a mean");
    assert!(mean_ns < 30e6, "{mean_ns}");
    // A target of 5 ms cannot keep a request a millisecond, and response times say so.
    counts(ours, folder, &format!("{job}=md:1m|nop:delay=5ms"));
    let slow = &result(folder)["jobs"][0];
    assert!(slow["late_starts"].as_u64().unwrap() >= 90, "{slow}");
    assert!(
        slow["lateness_ns"]["max"].as_u64().unwrap() > 300_000_000,
        "{slow}"
    );
    assert!(
        slow["read"]["lat_ns"]["max"].as_u64().unwrap() > 300_000_000,
        "{slow}"
    );
}

#[test]
fn a_trace_that_cannot_be_made_names_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    for (trace, expected) in [
        (
            "1,usr,0,Read,0,512,0\n",
            "its devices are none of this machine: use replay_redirect",
        ),
        (
            "fio version 2 iolog\nf read 0\n",
            "line 2: the length is missing",
        ),
        ("fio version 2 iolog\nf add\n", "there is no request in it"),
    ] {
        let path = folder.path().join("trace");
        std::fs::write(&path, trace).expect("a trace");
        let argument = format!("--read_iolog={}", path.display());
        let ended = crate::run::ugeom(&["run", "--name=a", &argument]);
        assert_eq!(ended.code, 1, "{}", ended.stderr);
        has(&ended.stderr, &format!("ugeom: {argument}: {expected}"));
    }
}

/// The null engine has as many files as the trace; its offsets do not depend on `offset`.
#[test]
fn a_trace_of_several_files_is_replayed_without_a_target() {
    let Some(fio) = tool("fio") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let log = "fio version 3 iolog\n0 a add\n0 b add\n0 a open\n0 b open\n1 a read 0 4096\n\
               2 b write 4096 8192\n3 a read 61440 4096\n4 b sync 0 0\n5 a close\n5 b close\n";
    std::fs::write(folder.join("log"), log).expect("a log");
    for options in ["--ioengine=null --write_iolog=copy", "--offset=32k"] {
        for file in ["a", "b"] {
            std::fs::write(folder.join(file), vec![1; 1 << 16]).expect("a file");
        }
        let line = format!("--name=r --read_iolog=log {options}");
        let expected = counts(&[fio, "--thread"], folder, &line);
        assert_eq!(counts(&[UGEOM, "run"], folder, &line), expected, "{line}");
        assert_eq!(expected[..4], [2, 8192, 1, 8192]);
    }
    let copy = std::fs::read_to_string(folder.join("copy")).expect("a log");
    has(&copy, "b write 4096 8192");
}

#[test]
fn each_copy_of_a_job_replays_the_next_of_several_traces() {
    let Some(fio) = tool("fio") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let log = |requests: &str| format!("fio version 2 iolog\nf add\nf open\n{requests}f close\n");
    std::fs::write(folder.join("f"), vec![1; 1 << 16]).expect("a file");
    std::fs::write(folder.join("a"), log("f read 0 4096\n")).expect("a log");
    std::fs::write(folder.join("b:c"), log("f write 0 512\nf write 512 512\n")).expect("a log");
    for copies in 1..=3_u64 {
        let line = format!(
            "--name=r --read_iolog=a:b\\:c --numjobs={copies} --group_reporting --filename=f"
        );
        // Threads of fio 3.33 that read logs beside each other crash.
        let expected = counts(&[fio], folder, &line);
        assert_eq!(counts(&[UGEOM, "run"], folder, &line), expected, "{line}");
        let reads = copies.div_ceil(2);
        assert_eq!(expected[..3], [reads, reads * 4096, copies / 2 * 2]);
    }
}

/// Job files whose later jobs need what the earlier ones make, and whether all succeed.
const IN_TURN: [(&str, bool); 4] = [
    (
        "[global]\nsize=64k\nfilename=x\n[a]\nrw=randwrite\nwrite_iolog=log\n[b]\nstonewall\n\
         read_iolog=log\n",
        true,
    ),
    (
        "[global]\nsize=64k\n[a]\nrw=write\nfilename=x\n[b]\nstonewall\ncreate_serialize=0\n\
         size=0\nrw=read\nfilename=x\n",
        true,
    ),
    (
        "[a]\nrw=write\nsize=64k\nunlink=1\nfilename=x\n[b]\nstonewall\ncreate_serialize=0\n\
         rw=read\nfilename=x\n",
        false,
    ),
    (
        "[a]\nrw=write\nsize=64k\nfilename=x\nwrite_iolog=log\n[b]\nstonewall\nread_iolog=none\n\
         size=64k\nfilename=x\n",
        false,
    ),
];

#[test]
fn a_job_whose_turn_comes_later_finds_what_earlier_ones_have_made() {
    let Some(fio) = tool("fio") else { return };
    for (jobs, succeeds) in IN_TURN {
        let both = [&[fio, "--thread"][..], &[UGEOM, "run"][..]].map(|program| {
            let folder = tempfile::tempdir().expect("a folder");
            let line = "j.fio --output-format=json --output=result";
            std::fs::write(folder.path().join("j.fio"), jobs).expect("a job file");
            let ended = run_lines(program, &folder, &[line]);
            assert_eq!(
                ended.code == 0,
                succeeds,
                "{program:?} {jobs}: {}",
                ended.stderr
            );
            let result = result(folder.path());
            let jobs = result["jobs"].as_array().expect("jobs").clone();
            let of = |job: &serde_json::Value| {
                let bytes = ["read", "write"].map(|kind| job[kind]["io_bytes"].as_u64());
                (job["jobname"].clone(), job["error"].clone(), bytes)
            };
            jobs.iter().map(of).collect::<Vec<_>>()
        });
        assert_eq!(both[1], both[0], "{jobs}");
    }
}
