//! `verify_state_save` and `verify_state_load`: `ugeom run` leaves the file that fio leaves, and
//! each goes on from the file of the other.

use std::path::Path;

use crate::run::{UGEOM, command, has, json_in, run, succeeds, tool};

/// The state of the first job, and how many reads a later job made of it.
fn reads_of(program: &[&str], folder: &Path, line: &str) -> u64 {
    let line = format!("{line} --output-format=json --output=o.json");
    assert!(succeeds(program, folder, &line), "{program:?} {line}");
    let text = std::fs::read_to_string(folder.join("o.json")).expect("a report");
    let report = json_in(&text);
    report["jobs"][0]["read"]["total_ios"]
        .as_u64()
        .expect("a number")
}

#[test]
fn the_state_of_a_job_is_that_of_fio_to_the_byte() {
    let Some(fio) = tool("fio") else { return };
    let state = "local-a.b-0-verify.state";
    let both_jobs = [state, "local-a.b-1-verify.state"];
    for (line, states) in [
        ("--verify=crc32c --rw=write", &[state][..]),
        ("--rw=randwrite --ioengine=libaio --iodepth=4", &[state]),
        ("--rw=randwrite --do_verify=0", &[state]),
        (
            "--rw=randwrite --do_verify=0 --random_generator=tausworthe64 --loops=2",
            &[state],
        ),
        ("--rw=randrw --iodepth=3 --number_ios=7", &[state]),
        (
            "--rw=write --nrfiles=3 --iodepth=9 --ioengine=libaio --numjobs=2",
            &both_jobs,
        ),
        ("--rw=write --verify_only --do_verify=0", &[state]),
        (
            "--rw=write --aux-path=aux",
            &["aux/local-a.b-0-verify.state"],
        ),
        ("--rw=write --verify_state_save=0", &[]),
        ("--rw=write", &[]),
    ] {
        let both = [&[fio, "--thread"][..], &[UGEOM, "run"][..]].map(|program| {
            let folder = tempfile::tempdir().expect("a folder");
            let folder = folder.path();
            for name in ["a", "aux"] {
                std::fs::create_dir(folder.join(name)).expect("a folder");
            }
            let verify = if line == "--rw=write" {
                ""
            } else {
                "--verify=md5"
            };
            let line = format!("--name=a/b --size=96k --output=o {verify} {line}");
            assert!(succeeds(program, folder, &line), "{program:?} {line}");
            let read = |name: &&str| std::fs::read(folder.join(name)).expect(name);
            let states: Vec<Vec<u8>> = states.iter().map(read).collect();
            let left =
                ["", "aux"].map(|name| std::fs::read_dir(folder.join(name)).expect("a folder"));
            let names = left
                .into_iter()
                .flatten()
                .map(|entry| entry.expect("an entry").file_name());
            let is_state = |name: &std::ffi::OsString| name.to_string_lossy().ends_with(".state");
            (states, names.filter(is_state).count())
        });
        assert!(both[1] == both[0], "{line}");
        assert_eq!(both[1].1, states.len(), "{line}");
    }
}

#[test]
fn a_job_verifies_what_the_state_of_either_program_says() {
    let Some(fio) = tool("fio") else { return };
    let programs = [&[fio, "--thread"][..], &[UGEOM, "run"][..]];
    for (write, read, reads) in [
        ("--rw=write", "--rw=read", 16),
        ("--rw=write --number_ios=5", "--rw=read", 5),
        (
            "--rw=write --number_ios=5",
            "--rw=read --do_verify=0 --loops=2",
            5,
        ),
        (
            "--rw=randwrite --number_ios=9",
            "--rw=randread --iodepth=4",
            9,
        ),
        (
            "--rw=randwrite --number_ios=9 --iodepth=3",
            "--rw=randwrite --verify_only",
            9,
        ),
        (
            "--rw=write --number_ios=5 --iodepth=8 --ioengine=libaio",
            "--rw=write",
            5,
        ),
        (
            "--rw=write --number_ios=3",
            "--rw=write --verify_backlog=4",
            3,
        ),
        (
            "--rw=write --number_ios=5",
            "--rw=randrw --rwmixread=100",
            16,
        ),
    ] {
        for writer in programs {
            for reader in programs {
                let folder = tempfile::tempdir().expect("a folder");
                let common = "--name=a --filename=f --size=64k --verify=crc32c";
                let write = format!("{common} {write} --output=o");
                assert!(succeeds(writer, folder.path(), &write), "{write}");
                let read = format!("{common} {read} --verify_state_load=1 --verify_state_save=0");
                let found = reads_of(reader, folder.path(), &read);
                assert_eq!(found, reads, "{writer:?} {write}, {reader:?} {read}");
            }
        }
    }
}

#[test]
fn a_state_that_is_missing_or_damaged_ends_its_job_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let write = "--name=a --rw=write --size=16k --verify=crc32c --output=o";
    assert!(succeeds(&[UGEOM, "run"], folder, write));
    let state = folder.join("local-a-0-verify.state");
    let good = std::fs::read(&state).expect("a state");
    let job = "run --name=a --filename=a.0.0 --size=16k --rw=read --verify=crc32c \
               --verify_state_load=1 --name=b --filename=a.0.0 --size=16k --rw=read";
    let ended = |bytes: Option<&[u8]>| {
        match bytes {
            Some(bytes) => std::fs::write(&state, bytes).expect("written"),
            None => std::fs::remove_file(&state).expect("removed"),
        }
        let words: Vec<&str> = job.split_whitespace().collect();
        let mut command = command(UGEOM, &words);
        command.current_dir(folder);
        let ended = run(command, b"");
        has(&ended.text(), "\nb: (groupid=");
        (
            ended.code,
            ended.stderr + &String::from_utf8_lossy(&ended.stdout),
        )
    };
    assert_eq!(ended(Some(&good)).0, 0);
    let mut damaged = good.clone();
    damaged[180] ^= 1;
    for (bytes, reason) in [
        (None, "No such file"),
        (
            Some(&[][..]),
            "the file ends at byte 0: a verify state has 176 bytes",
        ),
        (Some(&damaged[..]), "the file is damaged"),
        (
            Some(&[&[9], &good[1..]].concat()[..]),
            "version 9 at byte 0",
        ),
    ] {
        let (code, said) = ended(bytes);
        assert_eq!(code, 1, "{said}");
        let message = "a: verify_state_load: reading local-a-0-verify.state: ";
        let line = said.lines().find(|line| line.contains(message));
        assert!(line.is_some_and(|line| line.contains(reason)), "{said}");
    }
}
