//! `ugeom crash`: a missing sync is caught, synced data survives, reports can be replayed, and
//! nothing is left behind.

use crate::run::{Ended, UGEOM, command, end_within, has, json_of, ugeom, wait_for};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// A campaign runs its check some hundreds of times.
pub const PATIENCE: Duration = Duration::from_secs(7200);

/// States of a campaign here: `UGEOM_CRASH_STATES` asks for more.
pub fn states(usual: u64) -> String {
    std::env::var("UGEOM_CRASH_STATES").unwrap_or_else(|_| usual.to_string())
}

/// Runs ugeom in a folder.
pub fn crash(folder: &Path, arguments: &[&str]) -> Ended {
    let mut command = command(UGEOM, &[&["crash"], arguments].concat());
    command.current_dir(folder);
    end_within(command.spawn().expect("starts"), PATIENCE)
}

/// False, after saying so, where the kernel has no FUSE for us.
pub fn has_files() -> bool {
    let there = Path::new("/dev/fuse").exists();
    let may =
        rustix::process::geteuid().is_root() || ugeom_testkit::program("fusermount3").is_some();
    if !there {
        ugeom_testkit::skip("no /dev/fuse");
    }
    there && may
}

/// A folder for a test that serves files; `None` without FUSE.
pub fn folder() -> Option<tempfile::TempDir> {
    has_files().then(|| tempfile::tempdir().expect("a folder"))
}

/// Whether this user can mount ext4, and these programs are there; else the reason is printed.
pub fn can_mount(programs: &[&str]) -> bool {
    if !rustix::process::geteuid().is_root() {
        ugeom_testkit::skip("only root mounts file systems");
        return false;
    }
    let common = ["losetup", "mkfs.ext4", "stdbuf"];
    let mut all = common.iter().chain(programs);
    all.all(|program| ugeom_testkit::program(program).is_some()) && has_files()
}

/// Writes ten blocks, each with `sync` after it, and acknowledges each.
fn writer(sync: &str) -> String {
    format!(
        "for i in 0 1 2 3 4 5 6 7 8 9; do
             printf 'block %04d' $i |
                 dd of=$dev bs=4096 seek=$i conv=sync,notrunc{sync} || exit 1
             echo ack $i >&3
         done"
    )
}

/// Finds the blocks that are there.
const READER: &str = "for i in 0 1 2 3 4 5 6 7 8 9; do
    at=$(dd if=$dev bs=4096 skip=$i count=1 2>/dev/null | head -c 10)
    test \"$at\" != \"$(printf 'block %04d' $i)\" || echo found $i >&3
done";

#[test]
fn a_write_that_is_never_synced_is_caught_and_replayed_exactly() {
    let Some(folder) = folder() else { return };
    let run = writer("");
    let arguments = ["--size", "1m", "--points", "20", "--json", "--run", &run];
    let ended = crash(
        folder.path(),
        &[&arguments[..], &["--check", READER]].concat(),
    );
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let found = json_of(&ended.stdout);
    assert_eq!(found["smallest"]["verdict"], "durability");
    assert_eq!(found["smallest"]["damage"], 1);
    assert_eq!(found["barriers"], 0, "closing a file syncs nothing");
    let saved = folder.path().join("result.json");
    std::fs::write(&saved, &ended.stdout).expect("written");
    let page = ["report", "--markdown", saved.to_str().expect("UTF-8")];
    let page = ugeom(&page).quiet();
    let state = found["smallest"]["state"].as_str().expect("a state");
    for text in [
        state,
        "Time line of writes and barriers",
        "power cut",
        "lost",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    let log = found["log"].as_str().expect("a log is kept");
    let replay = found["replay"].as_str().expect("a command");
    has(&replay, &format!("--log {log} --state {state}"));
    let same = ["--log", log, "--check", READER, "--state"];
    let again = crash(folder.path(), &[&same[..], &[state]].concat());
    assert_eq!(again.code, 1, "{}", again.stderr);
    has(&again.text(), "fails (durability)");
    let cut = state.split(',').next().expect("the cut");
    let whole = crash(folder.path(), &[&same[..], &[cut]].concat());
    assert_eq!(whole.code, 0, "nothing is lost: {}", whole.text());
    let wrong = crash(folder.path(), &[&same[..], &["cut=99999"]].concat());
    has(&wrong.stderr, "the log has");
}

/// Each report names a command that builds a state of its own log, so a later run keeps the logs of
/// earlier ones; the limit of a command is part of the verdict.
#[test]
fn a_later_failure_leaves_the_log_of_an_earlier_one() {
    let Some(folder) = folder() else { return };
    let replay = |text: &str| {
        let run = format!("printf {text} | dd of=$dev bs=512 conv=sync,notrunc && echo ack k >&3");
        let check = "! grep -aqE 'one|two' $dev || echo found k >&3";
        let fixed = [
            "--size",
            "1m",
            "--timeout",
            "50s",
            "--json",
            "--check",
            check,
            "--run",
        ];
        let ended = crash(folder.path(), &[&fixed[..], &[&run]].concat());
        assert_eq!(ended.code, 1, "{}", ended.stderr);
        let found = json_of(&ended.stdout);
        let replay = found["replay"].as_str().expect("a command").to_owned();
        has(&replay, " --timeout 50s");
        replay
    };
    let (first, second) = (replay("one"), replay("two"));
    has(&first, " --log crash-0.log ");
    has(&second, " --log crash-0.2.log ");
    assert_eq!(replay("one"), first, "the same log is kept once");
    let logs = std::fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(logs, 2);
}

#[test]
fn a_write_that_is_synced_survives() {
    let Some(folder) = folder() else { return };
    let run = writer(",fsync");
    let arguments = [
        "--size", "1m", "--points", "40", "--run", &run, "--check", READER,
    ];
    let ended = crash(folder.path(), &arguments);
    assert_eq!(ended.code, 0, "{}{}", ended.text(), ended.stderr);
    let text = ended.quiet();
    assert!(text.starts_with("0 of "), "{text}");
    has(&text, "10 barriers, 10 acknowledgements");
}

/// Whole sectors go one way through the server, parts of sectors another.
#[test]
fn a_write_to_a_file_opened_with_o_dsync_survives() {
    if !has_files() {
        return;
    }
    for (flag, bytes) in [("dsync", 4096), ("sync", 4096), ("dsync", 1000)] {
        let folder = tempfile::tempdir().expect("a folder");
        let whole = format!(",notrunc oflag={flag}");
        let run = writer(&whole).replace("bs=4096", &format!("bs={bytes}"));
        let check = READER.replace("bs=4096", &format!("bs={bytes}"));
        let arguments = ["--size", "1m", "--points", "40", "--run", &run];
        let ended = crash(
            folder.path(),
            &[&arguments[..], &["--check", &check]].concat(),
        );
        let shown = ended.text();
        assert_eq!(ended.code, 0, "{flag} {bytes}: {shown}{}", ended.stderr);
    }
}

#[test]
fn a_check_that_is_wrong_is_no_finding() {
    let Some(folder) = folder() else { return };
    let run = writer(",fsync");
    let arguments = ["--size", "1m", "--run", &run, "--check", "echo no; false"];
    let problem = crash(folder.path(), &arguments).failed(1);
    let expected = "fails on the device as the run left it";
    has(&problem, expected);
    has(&problem, "no");
}

#[test]
fn wrong_uses_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for (arguments, problem) in [
        (&["--check", "true"][..], "nothing to record"),
        (
            &["--check", "true", "--run", "true", "--size", "1"],
            "whole number of sectors",
        ),
        (
            &["--check", "true", "--run", "true", "--tear", "1k"],
            "512, 4096 or 16384",
        ),
        (
            &["--check", "true", "--log", "x", "--state", "lost=1"],
            "cut=N is missing",
        ),
        (
            &["--check", "true", "--run", "true", "--points", "few"],
            "a number from 1 on, or all",
        ),
    ] {
        let text = crash(folder.path(), arguments).failed(2);
        assert!(text.contains(problem), "{arguments:?}: {text}");
    }
    let log = folder.path().join("log");
    std::fs::write(&log, "this is no log, but it is long enough").expect("written");
    let problem = crash(folder.path(), &["--log", "log", "--check", "true"]).failed(1);
    has(&problem, "this is no crash log");
}

/// The loop devices on disks of runs that have ended: their file is shown without its mount point.
pub fn loops_left() -> Vec<String> {
    let devices = std::fs::read_dir("/sys/block").expect("devices").flatten();
    let is_left = |device: &Path| {
        let backing = std::fs::read_to_string(device.join("loop/backing_file"));
        backing.is_ok_and(|path| path.trim() == "/disk")
    };
    let devices = devices.map(|entry| entry.path());
    let left = devices.filter(|device| is_left(device));
    left.map(|device| device.display().to_string()).collect()
}

/// Fails where a run has left a loop device that was not there `before`.
pub fn assert_no_loops_beside(before: &[String]) {
    let mut loops = loops_left();
    loops.retain(|device| !before.contains(device));
    assert_eq!(loops, Vec::<String>::new());
}

/// The leftovers of runs whose files lie in `folder`: mounts, processes.
pub fn left(folder: &Path) -> Vec<String> {
    let name = folder.to_str().expect("UTF-8");
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("mounts");
    let mut found: Vec<String> = mounts.lines().map(str::to_owned).collect();
    for entry in std::fs::read_dir("/proc").expect("processes").flatten() {
        for file in ["cmdline", "environ"] {
            let read = std::fs::read(entry.path().join(file)).unwrap_or_default();
            let text = String::from_utf8_lossy(&read).into_owned();
            found.push(format!("{} {text}", entry.path().display()));
        }
    }
    found.retain(|text| text.contains(name));
    found
}

#[test]
fn a_run_that_is_killed_leaves_nothing() {
    if !can_mount(&["mount"]) {
        return;
    }
    let before = loops_left();
    // Kills come while states are built, mounted, checked and unmounted.
    for round in 0..6_u32 {
        let folder = tempfile::tempdir().expect("a folder");
        let (temporary, begun) = (folder.path().join("tmp"), folder.path().join("begun"));
        std::fs::create_dir(&temporary).expect("a folder");
        let daemon = "(cd $mnt && exec setsid sleep 1000) >/dev/null 2>&1 &";
        let check = format!(
            "{daemon} dd if=$mnt/file of=/dev/null; echo >>{}",
            begun.display()
        );
        let run = "for i in 1 2 3 4 5; do date >>$mnt/file; sync $mnt/file; done";
        let arguments = [
            "crash", "--size", "16m", "--fs", "ext4", "--jobs", "3", "--run", run, "--check",
            &check,
        ];
        let mut crash = command(UGEOM, &arguments);
        crash.current_dir(folder.path()).env("TMPDIR", &temporary);
        let mut crash = crash
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");
        wait_for("a check", || {
            assert!(crash.try_wait().expect("waits").is_none(), "it ended early");
            let written = std::fs::metadata(&begun).map_or(0, |it| it.len());
            written > u64::from(round) * 2
        });
        std::thread::sleep(Duration::from_millis(u64::from(round) * 7));
        crash.kill().expect("killed");
        crash.wait().expect("it ends");
        wait_for("the end of what is left", || left(folder.path()).is_empty());
        assert_no_loops_beside(&before);
    }
}

#[test]
fn a_daemon_that_a_check_leaves_is_ended() {
    if !can_mount(&[]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    // One has the mark of the run in its environment, the other has a file open.
    let check = "(exec setsid sleep 1000) >/dev/null 2>&1 &
        (exec env -i setsid sleep 1000 7<$mnt/file) >/dev/null 2>&1 &
        until test $(readlink /proc/$!/exe | grep -c sleep) = 1; do :; done";
    let arguments = [
        "--size",
        "16m",
        "--fs",
        "ext4",
        "--points",
        "4",
        "--run",
        "date >$mnt/file; sync $mnt/file",
        "--setup",
        "echo >$mnt/file",
        "--check",
        check,
    ];
    let mut crash = command(UGEOM, &[&["crash"], &arguments[..]].concat());
    crash
        .current_dir(folder.path())
        .env("TMPDIR", folder.path());
    let ended = end_within(crash.spawn().expect("starts"), PATIENCE);
    assert_eq!(ended.code, 0, "{}{}", ended.text(), ended.stderr);
    assert_eq!(left(folder.path()), Vec::<String>::new());
}
