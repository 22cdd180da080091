//! Files that `ugeom run` makes before a job: their content, their flushes, their names, and an
//! interrupt meanwhile. What it drops from the cache.

use crate::run::{UGEOM, command, end, has, other, run, run_in, wait_until_it_listens, words_of};
use std::fs;
use std::path::Path;

/// Runs a job in a folder; what it printed.
fn job(folder: &Path, line: &str) -> String {
    let words: Vec<&str> = ["run"].into_iter().chain(line.split(' ')).collect();
    run_in(folder, UGEOM, &words).quiet()
}

#[test]
fn each_new_file_has_content_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    job(
        folder.path(),
        "--name=a --rw=read --nrfiles=3 --filesize=10000 --bs=4k --create_only=1",
    );
    let read = |name| fs::read(folder.path().join(name)).expect("a file");
    let files = ["a.0.0", "a.0.1", "a.0.2"].map(read);
    assert!(files.iter().all(|file| file.len() == 10000));
    assert!(files[0] != files[1] && files[1] != files[2] && files[0] != files[2]);
}

#[test]
fn new_files_hold_what_the_options_of_content_ask_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |option: &str| {
        let line = format!("--name=a --rw=read --size=256k {option} --create_only=1");
        job(folder.path(), &line);
        let bytes = fs::read(folder.path().join("a.0.0")).expect("a file");
        fs::remove_file(folder.path().join("a.0.0")).expect("removing it");
        bytes
    };
    assert_eq!(file("--zero_buffers"), vec![0; 256 << 10]);
    assert_eq!(
        file("--buffer_pattern=0xabcd"),
        [0xab, 0xcd].repeat(128 << 10)
    );
    let compressible = file("--buffer_compress_percentage=75");
    let zeros = compressible.iter().filter(|byte| **byte == 0).count();
    assert!((190 << 10..200 << 10).contains(&zeros), "{zeros}");
}

#[test]
fn new_files_are_flushed_once_each_unless_that_is_turned_off() {
    let Some(strace) = ugeom_testkit::program("strace") else { return };
    let flushes = |option: &str| {
        let folder = tempfile::tempdir().expect("a folder");
        let line = format!(
            "-f -qq -e trace=fsync -o trace {UGEOM} run --name=a --rw=read --nrfiles=300 \
             --filesize=4k {option} --create_only=1"
        );
        let words: Vec<&str> = line.split_whitespace().collect();
        run_in(folder.path(), &strace, &words).quiet();
        let trace = fs::read_to_string(folder.path().join("trace")).expect("a trace");
        trace.lines().filter(|line| line.contains("fsync(")).count()
    };
    assert_eq!(flushes("--create_fsync=1"), 300);
    assert_eq!(flushes("--create_fsync=0"), 0);
}

#[test]
fn an_interrupt_removes_the_file_that_is_half_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let words = words_of("run --name=a --rw=read --size=64g --fallocate=none");
    let mut command = command(UGEOM, &words);
    command.current_dir(folder.path());
    let child = command.spawn().expect("a program");
    wait_until_it_listens(&child);
    let path = folder.path().join("a.0.0");
    while fs::metadata(&path).map_or(0, |about| about.len()) < 1 << 20 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    other("kill", &["-INT", &child.id().to_string()]);
    assert_eq!(end(child).code, 128);
    assert!(!path.exists());
}

#[test]
fn a_job_named_after_a_device_works_on_the_device() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("j"), "[/dev/null]\nrw=write\nsize=64k\n").expect("a file");
    assert!(job(folder.path(), "j").contains("WRITE: bw="));
    job(folder.path(), "--name=/dev/zero --rw=read --size=64k");
    let left: Vec<_> = fs::read_dir(folder.path()).expect("the folder").collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn a_missing_device_is_an_error_and_no_file_in_dev() {
    for target in ["--filename=/dev/ugeom-absent", "--rw=write"] {
        let name = if target.contains('/') {
            "a"
        } else {
            "/dev/ugeom-absent"
        };
        let name = format!("--name={name}");
        let words = ["run", &name, target, "--rw=write", "--size=4k"];
        let stderr = run(command(UGEOM, &words), b"").stderr;
        has(&stderr, "there is no device /dev/ugeom-absent");
        assert!(!Path::new("/dev/ugeom-absent").exists());
        assert!(!Path::new("/dev/ugeom-absent.0.0").exists());
    }
}

/// The system calls of one name that a program makes for a job on files `f` and `g` of 64 KiB.
fn calls(strace: &Path, call: &str, program: &[&str], job: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["f", "g"] {
        fs::write(folder.path().join(name), [1; 65536]).expect("a file");
    }
    let traced = format!("-f -qq -e trace={call} -o trace");
    let words = traced.split(' ').chain(program.iter().copied());
    let words: Vec<&str> = words.chain(job.split_whitespace()).collect();
    let ended = run_in(folder.path(), strace, &words);
    assert_eq!(ended.code, 0, "{program:?} {job}: {}", ended.stderr);
    let trace = fs::read_to_string(folder.path().join("trace")).expect("a trace");
    trace.lines().map(ToOwned::to_owned).collect()
}

/// How often a program drops its files from the cache.
fn drops(strace: &Path, program: &[&str], job: &str) -> usize {
    let calls = calls(strace, "fadvise64", program, job);
    let dropping = |call: &&String| call.contains("POSIX_FADV_DONTNEED");
    calls.iter().filter(dropping).count()
}

#[test]
fn buffered_requests_of_libaio_are_submitted_one_at_a_time() {
    let Some(strace) = ugeom_testkit::program("strace") else { return };
    let job = "--name=a --filename=f --rw=randread --bs=4k --ioengine=libaio --iodepth=16";
    let calls = calls(&strace, "io_submit", &[UGEOM, "run"], job);
    assert_eq!(calls.len(), 16);
    assert!(
        calls.iter().all(|call| call.contains(", 1, [")),
        "{calls:?}"
    );
}

#[test]
fn each_pass_finds_its_file_out_of_the_cache_as_in_fio() {
    let (Some(fio), Some(strace)) = (
        ugeom_testkit::program("fio"),
        ugeom_testkit::program("strace"),
    ) else {
        return;
    };
    let fio = fio.to_str().expect("UTF-8");
    for (job, expected) in [
        ("--filename=f --rw=read", 1),
        ("--filename=f --rw=read --loops=3", 3),
        ("--filename=f --rw=randread --loops=3", 3),
        ("--filename=f:g --rw=read --loops=2", 4),
        ("--filename=f --rw=read --loops=3 --invalidate=0", 0),
    ] {
        let job = format!("--name=a --bs=4k {job}");
        assert_eq!(
            drops(&strace, &[fio, "--thread"], &job),
            expected,
            "fio {job}"
        );
        assert_eq!(drops(&strace, &[UGEOM, "run"], &job), expected, "{job}");
    }
    // fio drops what O_DIRECT does not use, too.
    let direct = "--name=a --bs=4k --filename=f --rw=read --loops=3 --direct=1";
    assert_eq!(drops(&strace, &[UGEOM, "run"], direct), 0);
    // As often as the job passes over its file, which is once in 16 requests.
    let timed = "--name=a --bs=4k --filename=f --size=64k --time_based --runtime=1 --rate_iops=160";
    for rw in ["read", "randread"] {
        let job = format!("{timed} --rw={rw}");
        for program in [&[fio, "--thread"][..], &[UGEOM, "run"]] {
            let drops = drops(&strace, program, &job);
            assert!((8..=12).contains(&drops), "{program:?} {job}: {drops}");
        }
    }
}
