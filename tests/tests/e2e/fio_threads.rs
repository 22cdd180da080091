//! The settings of a job's thread: `ugeom run` and fio make the same system calls.

use std::path::Path;

use crate::run::{UGEOM, run_lines, tool, ugeom, words_of};

/// The calls that set something for the thread of a job, by strace(1).
fn calls(strace: &str, program: &[&str], option: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let traced = words_of("-f -qq -e trace=set_mempolicy,ioprio_set,mlock -o calls");
    let job = "--name=a --ioengine=null --size=64k --rw=read";
    let program = [&[strace], &traced[..], program].concat();
    let ended = run_lines(&program, &folder, &[job, option]);
    assert_eq!(ended.code, 0, "{program:?} {option}: {}", ended.stderr);
    let calls = std::fs::read_to_string(folder.path().join("calls")).expect("calls");
    // fio's library tries some policies in the first thread, whose number comes first.
    let number = |line: &str| line.split(' ').next().map(str::to_owned);
    let first = calls.lines().next().and_then(number);
    let probes = |line: &str| line.contains("MPOL_PREFERRED_MANY");
    let has_probes = calls.lines().any(probes);
    let of_job = calls
        .lines()
        .filter(|line| !has_probes || number(line) != first);
    let call = |line: &str| {
        let call = line.split_once(' ')?.1.trim();
        // Addresses differ.
        let length = call
            .strip_prefix("mlock(0x")
            .and_then(|call| call.split_once(", "));
        Some(length.map_or(call.to_owned(), |(_, length)| format!("mlock({length}")))
    };
    of_job.filter_map(call).collect()
}

#[test]
fn memory_and_priorities_of_a_thread_are_set_as_by_fio() {
    let [Some(fio), Some(strace)] = ["fio", "strace"].map(tool) else { return };
    for (option, made) in [
        ("--numa_mem_policy=bind:0", 1),
        ("--numa_mem_policy=prefer:0", 1),
        ("--numa_mem_policy=interleave:0", 1),
        ("--numa_mem_policy=interleave", 1),
        ("--numa_mem_policy=local", 1),
        ("--lockmem=1m", 1),
        ("--prio=3", 1),
        ("--prioclass=3", 1),
    ] {
        let ours = calls(strace, &[UGEOM, "run"], option);
        assert_eq!(ours.len(), made, "{option}: {ours:?}");
        assert_eq!(ours, calls(strace, &[fio, "--thread"], option), "{option}");
    }
}

#[test]
fn policies_that_are_none_are_refused() {
    for (policy, reason) in [
        ("bind", "bind needs nodes"),
        ("prefer", "prefer needs nodes"),
        ("prefer:0-1", "node 1"),
        ("bind:1023", "node 1023"),
        ("local:0", "local takes no nodes"),
        ("next", "`next` is not one of"),
    ] {
        if policy == "prefer:0-1" && Path::new("/sys/devices/system/node/node1").exists() {
            continue;
        }
        let option = format!("--numa_mem_policy={policy}");
        let refused = ugeom(&["run", "--name=a", "--ioengine=null", "--size=4k", &option]);
        let said = refused.failed(1);
        assert!(said.contains(reason), "{policy}: {said}");
    }
}
