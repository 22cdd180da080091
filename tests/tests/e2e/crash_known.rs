//! `ugeom crash` on programs whose answer is known. The examples of docs/crash.md run as they stand
//! there. `UGEOM_CRASH_STATES=10000` is the long mode.

use crate::crash::{PATIENCE, can_mount, crash, states};
use crate::run::{Ended, UGEOM, command, end_within, has, json_of};

/// Runs the example of that name in docs/crash.md, with these variables.
fn example(
    name: &str,
    programs: &[&str],
    usual_states: u64,
    variables: &[(&str, &str)],
) -> Option<Ended> {
    if !can_mount(programs) {
        return None;
    }
    let page = include_str!("../../../docs/crash.md");
    let begin = format!("```sh {name}\n");
    let script = page.split_once(&begin).expect("the example").1;
    let script = script.split_once("\n```").expect("its end").0;
    let folder = tempfile::tempdir().expect("a folder");
    // The example calls the program by its name.
    std::os::unix::fs::symlink(UGEOM, folder.path().join("ugeom")).expect("a link");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = command("/bin/sh", &["-ec", script]);
    shell.env(
        "PATH",
        format!("{}:{path}:/usr/sbin:/sbin", folder.path().display()),
    );
    shell.current_dir(folder.path());
    shell.env("states", states(usual_states));
    shell.envs(variables.iter().copied());
    Some(end_within(shell.spawn().expect("starts"), PATIENCE))
}

/// It was caught, and for each of these reasons at least once.
fn caught(ended: &Ended, verdicts: &[&str]) {
    let text = ended.text();
    assert_eq!(ended.code, 1, "{text}{}", ended.stderr);
    let by = text.lines().find(|line| line.starts_with("by verdict: "));
    let by = by.unwrap_or_else(|| panic!("{text}{}", ended.stderr));
    for verdict in verdicts {
        assert!(by.contains(verdict), "{text}");
    }
}

pub fn survived(ended: &Ended) {
    let text = ended.text();
    assert_eq!(ended.code, 0, "{text}{}", ended.stderr);
    assert!(text.starts_with("0 of "), "{text}");
}

fn sqlite(mode: &str, sync: &str, judge: &str) -> Option<Ended> {
    // As many commits as it takes for so many states that differ.
    let wanted = states(60).parse().unwrap_or(60_u64);
    let commits = (wanted / 25).max(20).to_string();
    let variables = [
        ("mode", mode),
        ("sync", sync),
        ("judge", judge),
        ("commits", &commits),
    ];
    example("sqlite", &["sqlite3"], 60, &variables)
}

#[test]
fn sqlite_with_full_and_wal_or_a_kept_journal_survives() {
    for mode in ["wal", "truncate", "persist"] {
        if let Some(ended) = sqlite(mode, "full", "") {
            survived(&ended);
        }
    }
}

#[test]
fn sqlite_with_a_deleted_journal_and_extra_survives() {
    if let Some(ended) = sqlite("delete", "extra", "") {
        survived(&ended);
    }
}

#[test]
fn sqlite_with_a_deleted_journal_and_full_stays_whole_but_loses_the_last_commit() {
    // Whole: no state fails its integrity check, none has half of a transaction.
    if let Some(ended) = sqlite("delete", "full", "--no-durability --ordered") {
        survived(&ended);
    }
    // As https://sqlite.org/pragma.html#pragma_synchronous says of FULL and EXTRA.
    if let Some(ended) = sqlite("delete", "full", "") {
        caught(&ended, &["durability"]);
        let text = ended.text();
        has(&text, "  0 writes lost or torn");
        assert!(!text.contains("by verdict: check"), "{text}");
    }
}

#[test]
fn sqlite_without_syncs_is_caught() {
    for mode in ["wal", "delete"] {
        if let Some(ended) = sqlite(mode, "off", "") {
            caught(&ended, &["durability"]);
        }
    }
}

#[test]
fn lmdb_survives_and_without_syncs_is_caught() {
    if ugeom_testkit::python("lmdb").is_none() {
        return;
    }
    if let Some(ended) = example("lmdb", &[], 60, &[("sync", "sync")]) {
        survived(&ended);
    }
    if let Some(ended) = example("lmdb", &[], 60, &[("sync", "nosync")]) {
        caught(&ended, &[]);
    }
}

fn postgresql(states: u64, option: &str) -> Option<Ended> {
    let programs = ["pg_ctlcluster", "setpriv"];
    example("postgresql", &programs, states, &[("option", option)])
}

#[test]
fn postgresql_survives() {
    if let Some(ended) = postgresql(30, "") {
        survived(&ended);
    }
}

#[test]
fn postgresql_without_fsync_is_caught() {
    if let Some(ended) = postgresql(20, "fsync=off") {
        caught(&ended, &["durability"]);
    }
}

#[test]
fn postgresql_without_full_page_writes_is_caught_with_torn_pages() {
    if let Some(ended) = postgresql(150, "full_page_writes=off") {
        caught(&ended, &["check"]);
        has(&ended.text(), "torn=");
    }
}

fn files(programs: &[&str], variables: &[(&str, &str)]) -> Option<Ended> {
    example("files", programs, 60, variables)
}

#[test]
fn ext4_survives_and_without_barriers_is_caught() {
    if let Some(ended) = files(&["e2fsck"], &[]) {
        survived(&ended);
    }
    if let Some(ended) = files(&["e2fsck"], &[("options", "nobarrier")]) {
        // By fsck, or because it cannot be mounted; and by acknowledgements.
        caught(&ended, &["check", "durability"]);
    }
}

#[test]
fn xfs_survives() {
    let variables = [("fs", "xfs"), ("size", "320m")];
    if let Some(ended) = files(&["mkfs.xfs", "xfs_repair"], &variables) {
        survived(&ended);
    }
}

#[test]
fn btrfs_survives() {
    let variables = [("fs", "btrfs"), ("size", "128m")];
    if let Some(ended) = files(&["mkfs.btrfs", "btrfs"], &variables) {
        survived(&ended);
    }
}

#[test]
fn a_renamed_file_is_durable_once_its_folder_is_synced() {
    if let Some(ended) = example("rename", &[], 60, &[("after", "true")]) {
        caught(&ended, &["durability"]);
    }
    if let Some(ended) = example("rename", &[], 60, &[("after", "sync")]) {
        survived(&ended);
    }
}

/// One write after the other, each durable before the next.
const STEPS: &str =
    "for i in 1 2 3 4 5 6; do echo $i >$mnt/file; sync $mnt/file $mnt; echo ack $i >&3; done";

#[test]
fn fsck_finds_what_nobarrier_breaks() {
    if !can_mount(&["e2fsck"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let points = states(100);
    let run = "for i in $(seq 30); do mkdir $mnt/d$i; echo $i >$mnt/d$i/f; sync $mnt; done";
    let arguments = [
        "--size",
        "16m",
        "--fs",
        "ext4",
        "--fsck",
        "--json",
        "--points",
        &points,
        "--mount-options",
        "nobarrier",
        "--run",
        run,
        "--check",
        "true",
    ];
    let ended = crash(folder.path(), &arguments);
    let found = json_of(&ended.stdout);
    let failures = found["failures"].as_array().expect("failures");
    let by_fsck = |failure: &&serde_json::Value| {
        let detail = failure["detail"].as_str().unwrap_or_default();
        detail.starts_with("e2fsck: ")
    };
    assert!(
        failures.iter().any(|failure| by_fsck(&failure)),
        "{found:#}"
    );
}

#[test]
fn a_file_system_that_a_mount_namespace_keeps_is_no_finding() {
    if !can_mount(&["unshare"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    // Without the mark of the run, so that it is not ended with the check; and without the mounts
    // of tests beside this one.
    let keeper = |seconds: u32| {
        let only_this = "for other in /tmp/ugeom-crash-*/mnt; do
            test $other = $1 || umount -l $other; done 2>/dev/null; exec sleep $2";
        format!(
            "(exec env -i PATH=$PATH setsid unshare -m sh -c '{only_this}' sh $mnt {seconds} \
                 </dev/null >/dev/null 2>&1 3>&-) &
             until test $(readlink /proc/$!/exe | grep -c sleep) = 1; do :; done
             seq $(cat $mnt/file) | sed 's/^/found /' >&3"
        )
    };
    let run = |seconds: u32, points: &str| {
        let check = keeper(seconds);
        let arguments = [
            "--size", "16m", "--fs", "ext4", "--jobs", "1", "--points", points, "--run", STEPS,
            "--check", &check,
        ];
        crash(folder.path(), &arguments)
    };
    // It ends by itself: the next state waits for it, and is not mistaken for the one before.
    survived(&run(1, "8"));
    let problem = run(15, "8").failed(1);
    has(&problem, "still in use after its unmount");
    has(&problem, "(sleep)");
}
