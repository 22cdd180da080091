//! `ugeom crash` where something goes wrong: commands that fail or hang, Ctrl-C, devices and disks
//! that are too small, results that must not depend on the moment.

use crate::crash::{
    PATIENCE, assert_no_loops_beside, can_mount, crash, folder, has_files, left, loops_left,
};
use crate::run::{UGEOM, command, end_within, has, json_of, wait_for};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

/// Writes four blocks, each synced.
const RUN: &str = "for i in 0 1 2 3; do
    printf 'block %04d' $i | dd of=$dev bs=4096 seek=$i conv=sync,notrunc,fsync || exit 1
done";
/// The same below a file system.
const RUN_MOUNTED: &str = "for i in 0 1 2 3; do echo $i >$mnt/file$i; sync $mnt; done";

#[test]
fn commands_that_fail_are_named_with_what_they_printed() {
    let Some(folder) = folder() else { return };
    let failing = "echo the words >&2; exit 3";
    for (arguments, what) in [
        (["--setup", failing, "--run", "true"], "the set-up `"),
        (["--setup", "true", "--run", failing], "the run `"),
    ] {
        let all = [&["--size", "1m", "--check", "true"], &arguments[..]].concat();
        let problem = crash(folder.path(), &all).failed(1);
        has(&problem, what);
        has(&problem, "exit status: 3: the words");
    }
    let nothing = ["--size", "1m", "--check", "true", "--run", "true"];
    let problem = crash(folder.path(), &nothing).failed(1);
    has(&problem, "wrote nothing to the device");
}

#[test]
fn commands_that_hang_are_ended() {
    let Some(folder) = folder() else { return };
    let common = ["--size", "1m", "--timeout", "300ms"];
    let run = [&common[..], &["--run", "sleep 1000", "--check", "true"]].concat();
    let problem = crash(folder.path(), &run).failed(1);
    has(&problem, "it did not end within 0.3 s");
    // A check that hangs is a finding.
    let check = "dd if=$dev bs=4096 skip=3 count=1 | grep -q block || sleep 1000";
    let arguments = ["--timeout", "5s", "--size", "1m", "--points", "6", "--json"];
    let arguments = [&arguments[..], &["--run", RUN, "--check", check]].concat();
    let ended = crash(folder.path(), &arguments);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let found = json_of(&ended.stdout);
    assert_eq!(found["smallest"]["verdict"], "check");
    let detail = found["smallest"]["detail"].as_str().expect("words");
    assert!(detail.starts_with("it did not end within 5 s"), "{detail}");
}

/// Starts a campaign whose commands say in a file that they run.
fn start(folder: &Path, arguments: &[&str]) -> Child {
    let mut crash = command(UGEOM, &[&["crash"], arguments].concat());
    crash.current_dir(folder).env("TMPDIR", folder.join("tmp"));
    crash.stdin(Stdio::null()).spawn().expect("starts")
}

/// Waits until `file` is there, then presses Ctrl-C.
fn interrupt_once(crash: &mut Child, file: &Path) {
    wait_for("a command of the campaign", || {
        assert!(crash.try_wait().expect("waits").is_none(), "it ended early");
        file.exists()
    });
    let pid = rustix::process::Pid::from_child(crash);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("is there");
}

#[test]
fn ctrl_c_ends_it_with_130_and_leaves_nothing() {
    if !has_files() {
        return;
    }
    let root = rustix::process::geteuid().is_root();
    let mounts = root && ugeom_testkit::program("mkfs.ext4").is_some();
    let (file_system, writes): (&[&str], _) = match mounts {
        true => (&["--fs", "ext4"], RUN_MOUNTED),
        false => (&[], RUN),
    };
    // While the set-up, the run and a check take long, and while a failure is made smaller.
    for (setup, run, check) in [
        ("touch begun; sleep 1000", writes, "true"),
        ("true", "touch begun; sleep 1000", "true"),
        ("true", writes, "touch begun; sleep 1000"),
        (
            "true",
            writes,
            "test ! -e first || { touch begun; sleep 0.2; false; }; touch first",
        ),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("tmp")).expect("a folder");
        let before = loops_left();
        let arguments = [
            &[
                "--size", "16m", "--points", "9", "--setup", setup, "--run", run,
            ],
            &["--check", check][..],
            file_system,
        ];
        let mut crash = start(folder.path(), &arguments.concat());
        interrupt_once(&mut crash, &folder.path().join("begun"));
        let ended = end_within(crash, Duration::from_secs(60));
        assert_eq!(ended.code, 130, "{}{}", ended.text(), ended.stderr);
        has(&ended.stderr, "interrupted");
        assert_eq!(ended.text(), "", "there is no result");
        assert_eq!(left(folder.path()), Vec::<String>::new());
        let files = std::fs::read_dir(folder.path().join("tmp")).expect("a folder");
        assert_eq!(files.count(), 0, "files of the run");
        assert_no_loops_beside(&before);
    }
}

#[test]
fn a_device_that_is_too_small_is_refused_by_its_file_system() {
    if !can_mount(&["mkfs.btrfs"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = [
        "--size", "1m", "--fs", "btrfs", "--run", "true", "--check", "true",
    ];
    let problem = crash(folder.path(), &arguments).failed(1);
    has(&problem, "mkfs.btrfs: exit status");
}

#[test]
fn a_full_temporary_folder_is_an_error_and_no_finding() {
    if !rustix::process::geteuid().is_root() {
        return ugeom_testkit::skip("only root mounts a small file system");
    }
    if !has_files() || ugeom_testkit::program("mount").is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let script = format!(
        "mount -t tmpfs -o size=5m none tmp && export TMPDIR=$PWD/tmp && \
         {UGEOM} crash --size 8m --jobs 4 --run \"$1\" --check \"$2\"; \
         code=$?; umount tmp; exit $code"
    );
    std::fs::create_dir(folder.path().join("tmp")).expect("a folder");
    // The log of the first run does not fit, the images of the states of the second.
    for run in [
        "dd if=/dev/urandom of=$dev bs=64k count=100 conv=notrunc,fsync",
        "for i in 1 2 3; do dd if=/dev/urandom of=$dev bs=64k count=16 conv=notrunc,fsync; done",
    ] {
        let mut shell = command(
            "unshare",
            &["-m", "sh", "-c", &script, "sh", run, "cmp $dev $dev"],
        );
        shell.current_dir(folder.path());
        let ended = end_within(shell.spawn().expect("starts"), PATIENCE);
        assert_eq!(ended.code, 1, "{}{}", ended.text(), ended.stderr);
        let full = ended.stderr.contains("No space left") || ended.stderr.contains("the run `");
        assert!(full, "{}", ended.stderr);
        assert_eq!(ended.text(), "");
    }
}

#[test]
fn the_same_log_and_seed_give_the_same_report_byte_for_byte() {
    let Some(folder) = folder() else { return };
    let run = "for i in 0 1 2 3 4 5 6 7; do
        printf 'block %04d' $i | dd of=$dev bs=8192 seek=$((i % 3)) conv=sync,notrunc || exit 1
    done";
    let check = "cksum <$dev; grep -q 'block 0007' $dev";
    let record = [
        "--size", "1m", "--log", "log", "--points", "4", "--run", run,
    ];
    let ended = crash(folder.path(), &[&record[..], &["--check", "true"]].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let log = std::fs::read(folder.path().join("log")).expect("the log");
    let again = |seed: &str, jobs: &str| {
        let same = [
            "--log", "log", "--points", "60", "--tear", "512", "--json", "--check", check,
        ];
        let ended = crash(
            folder.path(),
            &[&same[..], &["--seed", seed, "--jobs", jobs]].concat(),
        );
        let found: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap_or_default();
        (ended.code, ended.stderr, found)
    };
    let without_command = |(code, stderr, mut found): (i32, String, serde_json::Value)| {
        found["command"] = serde_json::Value::Null;
        (code, stderr, found)
    };
    let first = again("3", "1");
    assert_eq!(first.0, 1, "{}", first.1);
    assert!(
        first.2["failures"]
            .as_array()
            .is_some_and(|all| all.len() > 5),
        "{}",
        first.2
    );
    assert_eq!(again("3", "1"), first);
    let first = without_command(first);
    assert_eq!(
        without_command(again("3", "4")),
        first,
        "lanes change nothing"
    );
    assert_ne!(without_command(again("4", "1")), first, "another seed does");
    let kept = std::fs::read(folder.path().join("log")).expect("the log");
    assert!(log == kept, "checks leave the log alone");
}

#[test]
fn two_runs_of_the_same_program_give_the_same_log_and_report() {
    if !has_files() {
        return;
    }
    let run = "for i in 0 1 2 3 4 5; do
        printf 'block %04d' $i | dd of=$dev bs=8192 seek=$i conv=sync,notrunc || exit 1
        test $i != 3 || dd if=/dev/zero of=$dev bs=8192 seek=9 count=1 conv=notrunc,fsync
    done";
    let both = [(); 2].map(|()| {
        let folder = tempfile::tempdir().expect("a folder");
        let device = [
            "--size", "1m", "--log", "log", "--tear", "512", "--seed", "7",
        ];
        let judged = [
            "--json",
            "--run",
            run,
            "--check",
            "grep -q 'block 0005' $dev",
        ];
        let ended = crash(folder.path(), &[&device[..], &judged].concat());
        assert_eq!(ended.code, 1, "{}", ended.stderr);
        let log = std::fs::read(folder.path().join("log")).expect("the log");
        (log, ended.stdout)
    });
    assert!(both[0] == both[1]);
}
