//! System calls on files: `ugeom run` and fio make the same ones, in the same order.

use crate::run::{UGEOM, run_lines, tool};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The calls that read, change or sync files, by strace(1): the call, without the descriptor and
/// the data, and the numbers behind them. Syncs in a row are one: fio syncs again when it closes.
fn calls(strace: &str, program: &[&str], folder: &Path, line: &str) -> Vec<String> {
    let all = "trace=pread64,pwrite64,fsync,fdatasync,unlink";
    let traced = ["-f", "-s", "0", "-e", all, "-o", "calls"];
    let ended = run_lines(&[&[strace][..], &traced, program].concat(), folder, &[line]);
    assert_eq!(ended.code, 0, "{program:?} {line}: {}", ended.stderr);
    let text = std::fs::read_to_string(folder.join("calls")).expect("calls");
    let job = text.lines().filter(|line| {
        let done = !line.contains("= -1") && line.contains('(');
        // Reads of libraries are none of the job.
        done && !line.contains(", 784, 64)")
    });
    let mut calls: Vec<String> = job
        .filter_map(|line| line.split_once(' ').map(|(_, call)| call.trim()))
        .map(|call| {
            let (name, rest) = call.split_once('(').unwrap_or((call, ""));
            let data = rest.split_once(',').map_or("", |(_, rest)| rest);
            let numbers = data.trim_start_matches(" \"\"..., ");
            let numbers = numbers.split_once(')').map_or("", |(numbers, _)| numbers);
            match name {
                "unlink" => format!("{name} {rest}"),
                _ => format!("{name} {numbers}"),
            }
        })
        .collect();
    calls.dedup_by(|next, last| next == last && next.contains("sync"));
    calls
}

/// A record of blktrace: `struct blk_io_trace`.
fn blk_io_trace(ns: u64, sector: u64, bytes: u32, action: u32) -> Vec<u8> {
    let mut record = 0x6561_7407_u32.to_le_bytes().to_vec();
    record.extend(0_u32.to_le_bytes());
    record.extend(ns.to_le_bytes());
    record.extend(sector.to_le_bytes());
    for word in [bytes, action, 1, 8 << 20, 0, 0] {
        record.extend(word.to_le_bytes());
    }
    record
}

#[test]
fn files_get_the_calls_that_fio_makes() {
    let [Some(fio), Some(strace)] = ["fio", "strace"].map(tool) else { return };
    let (read, write, queued) = (1 << 16, 1 << 17, 1);
    let flush = 1 << 18 | 1 << 17;
    let trace = [
        blk_io_trace(0, 8, 4096, write | queued),
        // Issued and completed: neither is another request.
        blk_io_trace(500, 8, 4096, write | 7),
        blk_io_trace(900, 8, 4096, write | 8),
        blk_io_trace(1000, 64, 8192, read | queued),
        blk_io_trace(2000, 0, 512, write | queued),
        blk_io_trace(3000, 0, 0, flush | queued),
        blk_io_trace(4000, 100, 512, read | queued),
    ];
    let log = "fio version 2 iolog\nf add\nf open\nf write 0 4096\nf sync 0 0\nf write 4096 4096\n\
               f datasync 0 0\nf read 0 512\nf close\n";
    let small = "--name=j --filename=f --rw=write --size=12k --bs=4k";
    let loops = "--loops=2 --fsync_on_close=1 --unlink_each_loop=1";
    for line in [
        format!("{small} --fsync=1"),
        // As etcd's documentation has it: the size is no multiple.
        "--name=j --filename=g --rw=write --ioengine=psync --fdatasync=1 --size=20k --bs=2300"
            .to_owned(),
        format!("{small} --fdatasync=2 --end_fsync=1"),
        format!("{small} --loops=3 --end_fsync=1"),
        format!("{small} {loops}"),
        format!("{small} {loops} --unlink=1 --create_on_open=1 --fallocate=none"),
        "--name=j --read_iolog=log".to_owned(),
        "--name=j --read_iolog=trace --replay_redirect=img --replay_no_stall=1".to_owned(),
    ] {
        let made = [&[fio, "--thread"][..], &[UGEOM, "run"][..]].map(|program| {
            let folder = tempfile::tempdir().expect("a folder");
            let folder = folder.path();
            std::fs::write(folder.join("log"), log).expect("a log");
            std::fs::write(folder.join("trace"), trace.concat()).expect("a trace");
            std::fs::write(folder.join("f"), vec![1; 12 << 10]).expect("a file");
            std::fs::write(folder.join("img"), vec![1; 1 << 20]).expect("an image");
            calls(strace, program, folder, &line)
        });
        assert!(made[0].len() > 3, "{line}: {made:?}");
        assert_eq!(made[1], made[0], "{line}");
    }
}

#[test]
fn folders_of_files_are_made_as_by_fio() {
    let Some(fio) = tool("fio") else { return };
    for (line, expected) in [
        ("--filename=a/b/c", Some("a/b")),
        ("--filename_format=a/$jobnum/c", Some("a/0")),
        ("--directory=. --filename_format=a/$jobnum/c", Some("a/0")),
        ("--filename=file", Some(".")),
        // Names of classes that need more than a name.
        ("--filename=cache", Some(".")),
        ("--filename=nbd", Some(".")),
        ("--directory=none", None),
    ] {
        for program in [&[fio, "--thread"][..], &[UGEOM, "run"][..]] {
            let folder = tempfile::tempdir().expect("a folder");
            let job = "--name=j --rw=write --size=8k --output=result";
            let ended = run_lines(program, &folder, &[job, line]);
            assert_eq!(ended.code == 0, expected.is_some(), "{program:?} {line}");
            let Some(made) = expected.filter(|made| *made != ".") else { continue };
            let about = std::fs::metadata(folder.path().join(made)).expect("a folder");
            assert_eq!(about.permissions().mode() & 0o777, 0o700, "{line}");
        }
    }
}
