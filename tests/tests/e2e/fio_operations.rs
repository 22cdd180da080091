//! The engines `filecreate`, `filestat` and `filedelete`: `ugeom run` and fio make the same
//! requests and system calls, measure as many latencies, and leave the same files.

use crate::run::{UGEOM, as_fio, json_of, run_in, run_lines, tool};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// A folder with some files that are there before a job.
fn folder(names: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for name in names {
        std::fs::write(folder.path().join(name), vec![7; 16384]).expect("a file");
    }
    std::fs::create_dir(folder.path().join("dir")).expect("a folder");
    std::os::unix::fs::symlink("dir", folder.path().join("link")).expect("a link");
    folder
}

/// The result of a program: its exit code; requests, bytes and completion latencies of reads,
/// writes and trims; sizes and modes of the files that it left.
fn did(program: &[&str], line: &str, names: &[&str]) -> (i32, Vec<u64>, Vec<String>) {
    let folder = folder(names);
    std::fs::write(folder.path().join("job"), JOB_FILE).expect("a job file");
    let output = "--output-format=json --output=result";
    let ended = run_lines(program, &folder, &[output, line]);
    let result = std::fs::read_to_string(folder.path().join("result")).unwrap_or_default();
    let json = result.find('{').map_or("null", |at| &result[at..]);
    let json: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    let jobs = json["jobs"].as_array().cloned().unwrap_or_default();
    let counts = jobs.iter().flat_map(|job| {
        ["read", "write", "trim"].map(|kind| {
            let side = &job[kind];
            // fio has at least 1 ms for what it counts.
            let took = u64::from(side["runtime"].as_u64() > Some(0));
            let [slat, clat, lat] = ["slat_ns", "clat_ns", "lat_ns"].map(|name| &side[name]["N"]);
            [
                &side["total_ios"],
                &side["io_bytes"],
                slat,
                clat,
                lat,
                &took.into(),
            ]
            .map(|number| number.as_u64().unwrap_or(u64::MAX))
        })
    });
    let counts = counts.flatten().collect();
    let files = std::fs::read_dir(folder.path()).expect("the folder");
    let mut files: Vec<String> = files
        .map(|entry| {
            let entry = entry.expect("an entry");
            let about = entry.metadata().expect("its size");
            let (bytes, mode) = (about.len(), about.permissions().mode());
            format!("{} {bytes} {mode:o}", entry.file_name().to_string_lossy())
        })
        .filter(|file| !file.starts_with("result ") && !file.contains(".log "))
        .collect();
    files.sort();
    (ended.code, counts, files)
}

/// The examples of fio's source, with fewer files.
const JOB_FILE: &str = "[global]
nrfiles=31
filesize=4k
openfiles=1
fallocate=none
[create]
ioengine=filecreate
create_on_open=1
[stat]
ioengine=filestat
numjobs=2
thread
[delete]
ioengine=filedelete
unlink=0
";

/// Files that are there before.
const ALL: &[&str] = &["j.0.0", "j.0.1", "j.0.2"];

/// Jobs, and the files that are there before. A name that begins with that of an engine is a job of
/// three files.
const JOBS: &[(&str, &[&str])] = &[
    ("job", &[]),
    ("job --section=delete --openfiles=4", &[]),
    // Operations without a size: one request a file.
    ("filecreate", &[]),
    ("filecreate --size=24k --bs=2k", ALL),
    ("filecreate --size=10k", &[]),
    ("filecreate --size=6k --unlink=1", &[]),
    ("filecreate --filesize=4k --bs=64k", &[]),
    ("filecreate --filesize=12k --loops=3", &[]),
    ("filecreate --filesize=4k --io_size=40k", &[]),
    ("filecreate --filesize=4k --number_ios=2", &[]),
    ("filecreate --filesize=4k --numjobs=2", &[]),
    ("filecreate --filesize=4k --rw=randwrite", &[]),
    ("filecreate --filesize=16k --rw=write --fsync=1", &[]),
    (
        "filecreate --filesize=4k --loops=2 --unlink_each_loop=1",
        &[],
    ),
    ("filecreate --filesize=4k --readonly", &[]),
    ("--name=j --ioengine=filecreate --filename=dir", &[]),
    ("--name=j --ioengine=filecreate --filename=missing/f", &[]),
    ("filestat", ALL),
    ("filestat", &[]),
    ("filestat --filesize=4k --loops=2 --iodepth=4", &[]),
    ("filestat --filesize=12k --rw=write --openfiles=1", &[]),
    ("filestat --filesize=12k --rw=trim", &[]),
    (
        "filestat --filesize=16k --offset=8k --file_service_type=random",
        &[],
    ),
    ("filestat --filesize=8k --disable_lat=1", &[]),
    ("filestat --filesize=8k --disable_clat=1", &[]),
    ("filestat --filesize=8k --max_latency=1ns", &[]),
    ("filestat --filesize=8k --create_on_open=1", &[]),
    ("filestat --filesize=8k --create_only=1", &[]),
    (
        "--name=j --ioengine=filestat --filename=dir --stat_type=statx",
        &[],
    ),
    (
        "--name=j --ioengine=filestat --filename=link --stat_type=lstat",
        &[],
    ),
    (
        "--name=j --ioengine=filestat --filename=/dev/loop-control --size=4k --stat_type=no",
        &[],
    ),
    ("filedelete", ALL),
    ("filedelete --filesize=4k --loops=2", &[]),
    (
        "--name=j --ioengine=filedelete --filename=j.0.0:j.0.2 --unlink=1",
        ALL,
    ),
    ("filedelete --create_on_open=1 --filesize=4k", &[]),
];

#[test]
fn files_are_counted_and_left_as_by_fio() {
    let Some(fio) = tool("fio") else { return };
    for (line, names) in JOBS {
        let line = match line.starts_with("file") {
            true => format!("--name=j --nrfiles=3 --ioengine={line}"),
            false => (*line).to_owned(),
        };
        let theirs = did(&[fio, "--thread"], &line, names);
        let ours = did(&[UGEOM, "run"], &line, names);
        let is_language = ours.1.is_empty();
        assert_eq!((ours.0, &ours.2), (theirs.0, &theirs.2), "{line}");
        // A job that ugeom refuses before it begins has no result.
        assert!(
            ours.1 == theirs.1 || (is_language && ours.0 == 1),
            "{line}\n{ours:?}\n{theirs:?}"
        );
    }
}

/// The calls of the thread of a job on its files, by strace(1), in their order.
fn calls(strace: &str, program: &[&str], line: &str) -> Vec<String> {
    let folder = folder(&["f.0", "f.1", "f.2"]);
    let all = "trace=openat,newfstatat,statx,unlink,unlinkat,fsync,close";
    let traced = [strace, "-ff", "-qq", "-y", "-e", all, "-o", "calls"];
    let job = "--name=f --filename_format=$jobname.$filenum --nrfiles=3 --filesize=16k --bs=16k";
    let ended = run_lines(&[&traced, program].concat(), &folder, &[job, line]);
    assert_eq!(ended.code, 0, "{program:?} {line}: {}", ended.stderr);
    let entries = std::fs::read_dir(folder.path()).expect("the folder");
    let entries = entries.map(|entry| entry.expect("an entry"));
    let traces = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("calls."));
    // Numbers of threads begin again at the smallest; the files are made in the order of the
    // threads.
    let made = |path: &Path| {
        path.metadata()
            .and_then(|facts| facts.created())
            .expect("a time")
    };
    let mut traces: Vec<_> = traces
        .map(|trace| (made(&trace.path()), trace.path()))
        .collect();
    traces.sort();
    // The first is the program, which looks at the files and makes them.
    let traces = traces[1..]
        .iter()
        .map(|(_, path)| std::fs::read_to_string(path).expect("calls"));
    let calls = traces.flat_map(|trace| trace.lines().map(call).collect::<Vec<_>>());
    calls.flatten().collect()
}

/// The name of a call, whether it is of a link itself or of a canonical path, and its file.
fn call(line: &str) -> Option<String> {
    let (name, arguments) = line.split_once('(')?;
    let file = arguments.find("f.").map(|at| &arguments[at..at + 3])?;
    let itself = arguments.contains("SYMLINK_NOFOLLOW");
    let whole = arguments.contains("\"/");
    Some(format!("{name} {file} itself={itself} whole={whole}"))
}

#[test]
fn files_are_opened_by_the_calls_of_fio() {
    let [Some(fio), Some(strace)] = ["fio", "strace"].map(tool) else { return };
    for line in [
        "--ioengine=filestat --openfiles=1",
        "--ioengine=filestat --stat_type=lstat",
        "--ioengine=filestat --stat_type=statx",
        "--ioengine=filedelete",
    ] {
        let theirs = calls(strace, &[fio, "--thread"], line);
        let ours = calls(strace, &[UGEOM, "run"], line);
        assert_eq!(ours, theirs, "{line}");
        assert_eq!(ours.len(), 3, "{line}");
    }
    let opens = |program: &[&str], line: &str| {
        let mut calls = calls(strace, program, line);
        // ugeom looks at what it removes.
        calls.retain(|call| !call.starts_with("statx"));
        calls.truncate(18);
        calls
    };
    for line in [
        "--ioengine=filecreate --openfiles=1",
        "--ioengine=filecreate --openfiles=2 --loops=2",
        "--ioengine=filecreate --openfiles=1 --time_based --runtime=200ms --unlink_each_loop=1",
    ] {
        let ours = opens(&[UGEOM, "run"], line);
        assert_eq!(ours, opens(&[fio, "--thread"], line), "{line}");
        assert!(ours.len() > 5, "{line}: {ours:?}");
    }
}

/// Where time ends a job, files in order are opened again when all have been worked through, random
/// ones and a single one are not.
#[test]
fn files_are_opened_again_where_fio_opens_them_again() {
    let Some(fio) = tool("fio") else { return };
    let timed = "--name=j --ioengine=filestat --time_based --runtime=200ms";
    for (line, opened_once) in [
        ("--nrfiles=1 --filesize=4k", Some(1)),
        ("--nrfiles=4 --filesize=16k --rw=randread", Some(4)),
        ("--nrfiles=4 --filesize=12k --openfiles=2", None),
        (
            "--nrfiles=4 --filesize=12k --file_service_type=zipf:1.2",
            None,
        ),
    ] {
        for program in [&[fio, "--thread"][..], &[UGEOM, "run"]] {
            let (code, counts, _) = did(program, &format!("{timed} {line}"), &[]);
            let (requests, opened) = (counts[0], counts[3]);
            assert_eq!(code, 0, "{line}");
            match opened_once {
                Some(files) => assert_eq!(opened, files, "{program:?} {line}"),
                // A file has three requests each time.
                None => assert!(
                    opened.abs_diff(requests / 3) <= 4,
                    "{program:?} {line} {counts:?}"
                ),
            }
        }
    }
}

#[test]
fn syncs_at_the_end_are_not_reported_as_by_fio() {
    let Some(fio) = tool("fio") else { return };
    for (options, expected) in [("--end_fsync=1", 0), ("--fsync=4 --end_fsync=1", 3)] {
        for program in [&[fio, "--thread"][..], &[UGEOM, "run"]] {
            let folder = folder(&[]);
            let job = format!("--name=j --rw=write --size=64k {options}");
            let json = json_of(run_lines(program, &folder, &[&job, "--output-format=json"]).text());
            let syncs = &json["jobs"][0]["sync"]["total_ios"];
            assert_eq!(syncs.as_u64(), Some(expected), "{program:?} {job}");
        }
    }
}

#[test]
fn syncs_at_the_end_are_none_of_the_depths_as_by_fio() {
    as_fio(
        &["--name=j --rw=write --size=16k --bs=4k --ioengine=libaio --iodepth=4 --end_fsync=1"],
        |program, line| {
            let folder = folder(&[]);
            let ended = run_lines(program, &folder, &[line, "--output-format=json"]);
            json_of(ended.text())["jobs"][0]["iodepth_level"].clone()
        },
    );
}

#[test]
fn what_is_no_file_is_refused_and_readonly_keeps_files() {
    let device = Path::new("/dev/null");
    assert!(device.exists());
    for (line, said) in [
        (
            "--ioengine=filestat --filename=/dev/null --size=4k",
            "/dev/null is a device",
        ),
        (
            "--ioengine=filecreate --filename=md:1m",
            "`md:1m` is a stack",
        ),
        (
            "--ioengine=filedelete --filename=f.0 --readonly",
            "against --readonly",
        ),
        (
            "--ioengine=filestat --filename=f.0 --stat_type=no",
            "stat, lstat",
        ),
    ] {
        let folder = folder(&["f.0"]);
        let words: Vec<&str> = ["run", "--name=j"]
            .into_iter()
            .chain(line.split(' '))
            .collect();
        let ended = run_in(folder.path(), UGEOM, &words);
        assert_eq!(ended.code, 1, "{line}");
        assert!(ended.stderr.contains(said), "{line}: {}", ended.stderr);
        assert!(folder.path().join("f.0").exists(), "{line}");
    }
}
