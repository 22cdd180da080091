//! The engines `falloc` and `ftruncate`: `ugeom run` and fio make the same system calls and leave
//! the same files.

use crate::run::{UGEOM, command, has, run, run_in, tool, words_of};

/// Runs a job on the file `f` of 64 KiB: its exit code, its calls by strace(1), and what it leaves.
fn did(strace: &str, program: &[&str], job: &str) -> (i32, Vec<String>, Vec<u8>) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("f"), [1; 65536]).expect("a file");
    let traced = words_of("-f -qq -y -e trace=fallocate,ftruncate -o calls");
    let words = traced.iter().chain(program).copied();
    let words = words.chain("--name=f --filename=f --size=64k".split(' '));
    let words: Vec<&str> = words.chain(job.split(' ')).collect();
    let ended = run_in(folder.path(), strace, &words);
    let calls = std::fs::read_to_string(folder.path().join("calls")).expect("calls");
    let calls = calls.lines().filter(|line| line.contains("/f>"));
    // Behind the thread: the call, without the number and the folder of the descriptor.
    let calls = calls.map(|line| {
        let (name, arguments) = line.split_once('(').expect("a call");
        let name = name.rsplit(' ').next().expect("a name");
        let (_, arguments) = arguments.split_once("/f>").expect("a file");
        format!("{name}{arguments}")
    });
    let calls = calls.collect();
    let left = std::fs::read(folder.path().join("f")).expect("the file");
    (ended.code, calls, left)
}

#[test]
fn ranges_are_reserved_punched_and_cut_as_by_fio() {
    let (Some(fio), Some(strace)) = (tool("fio"), tool("strace")) else { return };
    for (job, calls_expected) in [
        ("--ioengine=falloc --rw=write", 16),
        ("--ioengine=falloc --rw=read", 16),
        ("--ioengine=falloc --rw=randtrim", 16),
        ("--ioengine=falloc --rw=randtrim --bs=8k --iodepth=4", 8),
        (
            "--ioengine=falloc --rw=randwrite --bssplit=4k/10:64k/50:32k/40 --norandommap",
            1,
        ),
        (
            "--ioengine=falloc --rw=write --size=32k --offset=32k --number_ios=3",
            3,
        ),
        ("--ioengine=falloc --rw=trimwrite --io_size=32k", 8),
        ("--ioengine=falloc --rw=randrw --direct=1", 16),
        ("--ioengine=ftruncate --rw=write", 16),
        ("--ioengine=ftruncate --rw=randwrite --norandommap", 16),
        ("--ioengine=ftruncate --rw=randwrite --loops=2", 32),
        ("--ioengine=ftruncate --rw=read", 0),
    ] {
        let theirs = did(strace, &[fio, "--thread"], job);
        let ours = did(strace, &[UGEOM, "run"], job);
        assert_eq!(ours, theirs, "{job}");
        assert!(ours.1.len() >= calls_expected, "{job}: {:?}", ours.1);
    }
}

#[test]
fn ranges_of_a_stack_are_refused() {
    let words = ["run", "--name=j", "--ioengine=falloc", "--filename=md:1m"];
    let ended = run(command(UGEOM, &words), b"");
    assert_eq!(ended.code, 1);
    has(&ended.stderr, "`md:1m` is a stack");
}
