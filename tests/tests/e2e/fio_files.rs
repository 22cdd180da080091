//! Job files and options beside them: `ugeom run` and fio leave the same files behind.

use crate::run::{UGEOM, command, run};
use std::path::Path;

/// The folder in which both programs find the same job files.
fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).expect("a file");
    }
    folder
}

/// Names and sizes of the files that a program left, and whether it succeeded.
fn left(program: &[&str], folder: &Path, words: &[&str], input: &[u8]) -> (bool, Vec<String>) {
    let arguments = [&program[1..], words].concat();
    let mut command = command(program[0], &arguments);
    command.current_dir(folder);
    let ended = run(command, input);
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| {
            let entry = entry.expect("an entry");
            let bytes = entry.metadata().expect("its size").len();
            format!("{} {bytes}", entry.file_name().to_string_lossy())
        })
        .collect();
    files.sort();
    (ended.code == 0, files)
}

const W: &[u8] = b"[w]\nrw=write\nbs=4k\nsize=64k\n";
const COMMENTS: &[u8] = b"; caf\xe9\n[w] # a job\nrw=write # why\nsize=64k;no\nfilename=a#b\n";
const PATTERN: &[u8] = b"[w]\nrw=write\nsize=64k\nbuffer_pattern='w.fio'\n";
const GLOBAL: &[u8] = b"[global]\nsize=128k\n[v]\nrw=write\n";

#[test]
fn options_beside_job_files_leave_the_files_that_fio_leaves() {
    let test = "options_beside_job_files_leave_the_files_that_fio_leaves";
    let Some(fio) = ugeom_testkit::program(test, "fio") else {
        return;
    };
    let fio = std::path::Path::new(&fio).to_str().expect("UTF-8");
    let files = [
        ("w.fio", W),
        ("comments.fio", COMMENTS),
        ("pattern.fio", PATTERN),
        ("global.fio", GLOBAL),
    ];
    for (line, input) in [
        ("--filename=safe.dat w.fio", &b""[..]),
        ("w.fio --filename=safe.dat", b""),
        ("-bs=8k w.fio -filename safe.dat", b""),
        ("--numjobs=3 w.fio", b""),
        ("w.fio --directory=. --nrfiles=2", b""),
        ("w.fio --name=x --rw=write --size=8k --filename=x.dat", b""),
        ("--name=x --rw=write --size=8k --filename=x.dat w.fio", b""),
        ("--name=global --filename=safe.dat w.fio", b""),
        ("--filename=safe.dat w.fio global.fio", b""),
        ("--size=4k global.fio w.fio", b""),
        ("--filename=safe.dat -", W),
        ("comments.fio", b""),
        ("pattern.fio --filename=safe.dat", b""),
        (
            "--name=y --rw=write --size=4k comments.fio --section=w",
            b"",
        ),
        ("--bs=q w.fio", b""),
        ("missing.fio", b""),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let (theirs, ours) = (folder(&files), folder(&files));
        let theirs = left(&[fio], theirs.path(), &words, input);
        let ours = left(&[UGEOM, "run"], ours.path(), &words, input);
        assert_eq!(theirs, ours, "{line}");
    }
}
