//! Files that `ugeom run` makes before a job: their content, their flushes, their names, and an
//! interrupt meanwhile.

use crate::run::{UGEOM, command, end, other, run, wait_until_it_listens};
use std::fs;
use std::path::Path;

/// Runs a job in a folder; what it printed.
fn job(folder: &Path, line: &str) -> String {
    let words: Vec<&str> = ["run"].into_iter().chain(line.split(' ')).collect();
    let mut command = command(UGEOM, &words);
    command.current_dir(folder);
    run(command, b"").quiet()
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
    let test = "new_files_are_flushed_once_each_unless_that_is_turned_off";
    let Some(strace) = ugeom_testkit::program(test, "strace") else {
        return;
    };
    let flushes = |option: &str| {
        let folder = tempfile::tempdir().expect("a folder");
        let line = format!(
            "-f -qq -e trace=fsync -o trace {UGEOM} run --name=a --rw=read --nrfiles=300 \
             --filesize=4k {option} --create_only=1"
        );
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut command = command(&strace, &words);
        command.current_dir(folder.path());
        run(command, b"").quiet();
        let trace = fs::read_to_string(folder.path().join("trace")).expect("a trace");
        trace.lines().filter(|line| line.contains("fsync(")).count()
    };
    assert_eq!(flushes("--create_fsync=1"), 300);
    assert_eq!(flushes("--create_fsync=0"), 0);
}

#[test]
fn an_interrupt_removes_the_file_that_is_half_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let words = [
        "run",
        "--name=a",
        "--rw=read",
        "--size=64g",
        "--fallocate=none",
    ];
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
        assert!(
            stderr.contains("there is no device /dev/ugeom-absent"),
            "{stderr}"
        );
        assert!(!Path::new("/dev/ugeom-absent").exists());
        assert!(!Path::new("/dev/ugeom-absent.0.0").exists());
    }
}
