//! The checks that xfstests makes with dm-log-writes, with `ugeom crash`: a file as it was at each
//! mark (generic/455; with reflinks generic/457; with writes by mmap(2) generic/470), and a file
//! system in order at each barrier (generic/482).

use crate::crash::{can_mount, crash, states};
use crate::crash_known::survived;
use std::path::Path;
use ugeom_format::crash_log::{Entry, HEADER_BYTES, Header, RECORD_BYTES, Record};
use ugeom_testkit::begins;

/// File systems, with the size of their disk and what makes and checks them.
const FILE_SYSTEMS: [(&str, &str, [&str; 2]); 3] = [
    ("ext4", "16m", ["mkfs.ext4", "e2fsck"]),
    ("xfs", "320m", ["mkfs.xfs", "xfs_repair"]),
    ("btrfs", "128m", ["mkfs.btrfs", "btrfs"]),
];

/// Random operations on a file; a mark is a copy of the file after fsync(2). With `reflink` parts
/// of the file are shared with another one meanwhile.
const FSX: &str = r#"
import mmap, os, random, subprocess, sys
place, reflink = sys.argv[1], sys.argv[2] == "reflink"
random.seed(455)
file = os.open(place, os.O_RDWR | os.O_CREAT)
size = 0
for mark in range(10):
    for _ in range(random.randrange(1, 12)):
        what, at = random.randrange(5), random.randrange(200000)
        length = random.randrange(1, 30000)
        if what < 2:
            os.pwrite(file, random.randbytes(length), at)
            size = max(size, at + length)
        elif what == 2:
            size = at
            os.truncate(place, size)
        elif what == 3 and size > 0:
            with mmap.mmap(file, size) as view:
                end = min(at % size + length, size)
                view[at % size:end] = random.randbytes(end - at % size)
                view.flush()
        elif reflink:
            subprocess.run(["cp", "--reflink=always", place, place + ".shared"], check=True)
        else:
            os.posix_fallocate(file, at, length)
            size = max(size, at + length)
        if random.randrange(4) == 0:
            os.sync()
    os.fsync(file)
    with open(f"mark.{mark}", "wb") as copy:
        copy.write(os.pread(file, size, 0))
    os.write(3, f"ack {mark}\n".encode())
"#;

/// The records at which something was acknowledged.
fn marks(log: &Path) -> Vec<(u64, String)> {
    let bytes = std::fs::read(log).expect("the log");
    let header = Header::decode(&bytes).expect("a header");
    let mut rest = &bytes[HEADER_BYTES..];
    let (mut number, mut found) = (0, Vec::new());
    while !rest.is_empty() {
        let record = Record::decode(rest, number, &header).expect("a record");
        let data = &rest[RECORD_BYTES..][..record.stored_bytes as usize];
        if record.entry == Entry::Promise {
            found.push((number, String::from_utf8_lossy(data).into_owned()));
        }
        rest = &rest[RECORD_BYTES + data.len()..];
        number += 1;
    }
    found
}

fn python() -> bool {
    ugeom_testkit::program("python3").is_some()
}

fn file_is_as_at_each_mark((file_system, size, programs): (&str, &str, [&str; 2])) {
    if !python() || !can_mount(&programs) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("fsx.py"), FSX).expect("written");
    let shares = if file_system == "ext4" {
        "plain"
    } else {
        "reflink"
    };
    let run = format!("python3 fsx.py $mnt/file {shares}");
    let common = ["--log", "log", "--fs", file_system];
    let record = [
        "--size",
        size,
        "--points",
        "1",
        "--no-durability",
        "--run",
        &run,
    ];
    let recorded = crash(
        folder.path(),
        &[&common[..], &record, &["--check", "true"]].concat(),
    );
    survived(&recorded);
    let marks = marks(&folder.path().join("log"));
    assert_eq!(marks.len(), 10);
    for (record, mark) in marks {
        let check = format!("cmp $mnt/file mark.{mark}");
        // As dm-log-writes replays to a mark, and with all that was written besides.
        for state in [format!("cut={record},lost=all"), format!("cut={record}")] {
            let state = [
                "--fsck",
                "--no-durability",
                "--state",
                &state,
                "--check",
                &check,
            ];
            let ended = crash(folder.path(), &[&common[..], &state].concat());
            assert_eq!(
                ended.code,
                0,
                "mark {mark}: {}{}",
                ended.text(),
                ended.stderr
            );
        }
    }
    // The check can fail: before the last mark the file was another one.
    let state = [
        "--no-durability",
        "--state",
        "cut=9",
        "--check",
        "cmp $mnt/file mark.9",
    ];
    let ended = crash(folder.path(), &[&common[..], &state].concat());
    assert_eq!(ended.code, 1, "{}{}", ended.text(), ended.stderr);
    begins(&ended.text(), "cut=9: fails (check)");
}

#[test]
fn a_file_is_as_it_was_at_each_mark_on_ext4() {
    file_is_as_at_each_mark(FILE_SYSTEMS[0]);
}

#[test]
fn a_file_is_as_it_was_at_each_mark_on_xfs() {
    file_is_as_at_each_mark(FILE_SYSTEMS[1]);
}

#[test]
fn a_file_is_as_it_was_at_each_mark_on_btrfs() {
    file_is_as_at_each_mark(FILE_SYSTEMS[2]);
}

/// Random operations on a tree of files, some of them synced.
const FSSTRESS: &str = r#"
import os, random, sys
os.chdir(sys.argv[1])
random.seed(482)
names = [f"d{i}/f{j}" for i in range(4) for j in range(5)]
for i in range(4):
    os.mkdir(f"d{i}")
for _ in range(250):
    name, other = random.choice(names), random.choice(names)
    what = random.randrange(8)
    try:
        if what < 3:
            with open(name, "ab" if what else "wb") as file:
                file.write(random.randbytes(random.randrange(20000)))
                if random.randrange(3) == 0:
                    os.fsync(file.fileno())
        elif what == 3:
            os.rename(name, other)
        elif what == 4:
            os.link(name, other)
        elif what == 5:
            os.symlink(other, name)
        elif what == 6:
            os.unlink(name)
        else:
            os.truncate(name, random.randrange(30000))
    except OSError:
        pass
    if random.randrange(40) == 0:
        os.sync()
"#;

#[test]
fn file_systems_are_in_order_at_each_barrier() {
    for (file_system, size, programs) in FILE_SYSTEMS {
        if !python() || !can_mount(&programs) {
            continue;
        }
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("fsstress.py"), FSSTRESS).expect("written");
        let points = states(30);
        let arguments = [
            "--size",
            size,
            "--fs",
            file_system,
            "--fsck",
            "--points",
            &points,
            "--run",
            "python3 fsstress.py $mnt",
            "--check",
            "find $mnt -type f -exec cat {} + | cksum",
        ];
        survived(&crash(folder.path(), &arguments));
    }
}
