//! Do fio and `ugeom run` get the same out of the same jobs? Interleaved, in both orders, with the
//! 95 % interval of the ratio of their rates and of the CPU time that a request costs.
//!
//! It measures, and so is not one of the tests that always run:
//!
//! ```text
//! cargo test --release -p ugeom-tests --test e2e -- --ignored --nocapture fio_ratio
//! ```

use crate::run::{UGEOM, command, json_in, run};
use std::path::Path;
use std::sync::Mutex;
use ugeom_measure::ratio::log_ratio_paired;
use ugeom_measure::{Error, Interval};

/// Rounds, each of which runs both programs once.
const ROUNDS: usize = 12;
/// The agreement that a ratio of rates is held against.
const AGREE: (f64, f64) = (0.9, 1.1);

/// Jobs, and whether the same work must come out at the same rate: a difference that is meant is
/// printed and not judged (`docs/run.md` explains each). Reads from the cache take no longer than
/// the program that makes them, and so measure it; fio flushes more often than asked for, and its
/// pauses to think end late.
const JOBS: [(&str, bool); 9] = [
    (
        "--rw=randread --bs=4k --direct=1 --ioengine=io_uring --iodepth=32",
        true,
    ),
    (
        "--rw=randread --bs=4k --direct=0 --ioengine=io_uring --iodepth=32",
        false,
    ),
    ("--rw=randread --bs=4k --direct=0 --ioengine=psync", false),
    ("--rw=randread --bs=4k --direct=1 --ioengine=psync", true),
    (
        "--rw=randrw --bs=16k --direct=1 --ioengine=io_uring --iodepth=8 --rate_iops=500",
        true,
    ),
    (
        "--rw=randrw --rwmixread=70 --bssplit=4k/60:16k/40 --direct=1 --ioengine=libaio \
         --iodepth=16 --iodepth_batch=4",
        true,
    ),
    (
        "--rw=read --bs=128k --direct=1 --ioengine=io_uring --iodepth=4",
        true,
    ),
    (
        "--rw=randread --bs=4k --direct=1 --ioengine=psync --thinktime=200 --thinktime_blocks=2",
        false,
    ),
    (
        "--rw=randwrite --bs=4k --direct=1 --ioengine=io_uring --iodepth=16 \
         --random_distribution=zipf:1.1 --fdatasync=64",
        false,
    ),
];

/// Jobs that measure the programs themselves: what both get, what fio gets, what ugeom gets, and
/// the ratio of their rates that is the goal.
const PROGRAMS: [(&str, &str, &str, f64); 5] = [
    (
        "--rw=randread --norandommap",
        "--ioengine=null",
        "--ioengine=null",
        6.0,
    ),
    ("--rw=randread", "--ioengine=null", "--ioengine=null", 6.0),
    ("--rw=read", "--ioengine=null", "--ioengine=null", 6.0),
    (
        "--rw=randread --norandommap",
        "--ioengine=null",
        "--filename=zero:clear=0",
        5.0,
    ),
    (
        "--rw=randread --norandommap --gtod_reduce=1",
        "--ioengine=null",
        "--ioengine=null",
        8.0,
    ),
];

/// Requests a second, and ns of CPU time a request in user space and in all.
fn figures(program: &Path, first: &[&str], arguments: &[String]) -> [f64; 3] {
    let words = first.iter().map(ToString::to_string);
    let all: Vec<String> = words.chain(arguments.iter().cloned()).collect();
    let ended = run(command(program, &all), b"");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let text = ended.text();
    let json = json_in(&text);
    let job = &json["jobs"][0];
    let of = |kind: &str, key: &str| job[kind][key].as_f64().unwrap_or(0.0);
    let requests = of("read", "total_ios") + of("write", "total_ios");
    let rate = of("read", "iops") + of("write", "iops");
    let elapsed_ns = job["job_runtime"].as_f64().unwrap_or(0.0) * 1e6;
    let cpu = |key: &str| job[key].as_f64().unwrap_or(0.0) / 100.0 * elapsed_ns / requests;
    [rate, cpu("usr_cpu"), cpu("usr_cpu") + cpu("sys_cpu")]
}

/// The two measurements run one after the other.
static ALONE: Mutex<()> = Mutex::new(());

/// The ratio of the rounds. Jobs with a rate may have the same one in all of them.
fn ratio(ours: &[f64], theirs: &[f64]) -> Interval {
    match log_ratio_paired(ours, theirs, 0.95) {
        Ok(ratio) => ratio.interval,
        Err(Error::ZeroVariance { value, .. }) => Interval::exact(value, 0.95),
        Err(error) => panic!("{error}"),
    }
}

#[test]
#[ignore = "it measures for two minutes; run it alone, on a quiet machine"]
fn fio_ratio_of_the_same_jobs() {
    let _alone = ALONE.lock();
    let Some(fio) = ugeom_testkit::program("fio") else { return };
    let folder = tempfile::tempdir_in(".").expect("a folder");
    let file = folder.path().join("f");
    let mut outside = Vec::new();
    for (job, judged) in JOBS {
        let mut arguments: Vec<String> = job.split_whitespace().map(ToOwned::to_owned).collect();
        arguments.extend([
            "--name=ratio".to_owned(),
            format!("--filename={}", file.display()),
            "--size=256m".to_owned(),
            "--norandommap".to_owned(),
            "--time_based".to_owned(),
            "--runtime=1".to_owned(),
            "--invalidate=0".to_owned(),
            "--output-format=json".to_owned(),
        ]);
        let theirs = |arguments: &[String]| figures(Path::new(&fio), &[], arguments);
        let ours = |arguments: &[String]| figures(Path::new(UGEOM), &["run"], arguments);
        // The file is made, and in the cache, before the first round.
        ours(&arguments);
        let mut pairs = Vec::new();
        for round in 0..ROUNDS {
            pairs.push(if round % 2 == 0 {
                let ours = ours(&arguments);
                (ours, theirs(&arguments))
            } else {
                let theirs = theirs(&arguments);
                (ours(&arguments), theirs)
            });
        }
        println!("{job}");
        for (index, name) in ["requests/s", "user ns", "CPU ns"].into_iter().enumerate() {
            let ours: Vec<f64> = pairs.iter().map(|pair| pair.0[index].max(1.0)).collect();
            let theirs: Vec<f64> = pairs.iter().map(|pair| pair.1[index].max(1.0)).collect();
            let ratio = ratio(&ours, &theirs);
            println!("  {name:<11} ugeom/fio {ratio}");
            if index == 0 && judged && !ratio.lies_within(AGREE.0, AGREE.1) {
                outside.push(job);
            }
        }
    }
    assert!(outside.is_empty(), "they do not agree: {outside:?}");
}

#[test]
#[ignore = "it measures for two minutes; run it alone, on a quiet machine"]
fn fio_ratio_of_the_programs_themselves() {
    let _alone = ALONE.lock();
    let Some(fio) = ugeom_testkit::program("fio") else { return };
    let mut below = Vec::new();
    for (job, theirs, ours, goal) in PROGRAMS {
        let all = "--name=own --thread --bs=512 --size=1g --time_based --runtime=1 \
                   --output-format=json";
        let words = |own: &str| -> Vec<String> {
            let words = [all, job, own]
                .map(str::split_whitespace)
                .into_iter()
                .flatten();
            words.map(ToOwned::to_owned).collect()
        };
        let (their_words, our_words) = (words(theirs), words(ours));
        let theirs = || figures(Path::new(&fio), &[], &their_words)[0];
        let ours = || figures(Path::new(UGEOM), &["run"], &our_words)[0];
        let rates = |round: usize| match round % 2 {
            0 => {
                let ours = ours();
                (ours, theirs())
            }
            _ => {
                let theirs = theirs();
                (ours(), theirs)
            }
        };
        let (ours, theirs): (Vec<f64>, Vec<f64>) = (0..ROUNDS).map(rates).unzip();
        let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64 / 1e6;
        let ratio = ratio(&ours, &theirs);
        println!(
            "{job} {}: {:.1} M/s, fio {:.1} M/s, ratio {ratio}, goal {goal}",
            our_words.last().map_or("", String::as_str),
            mean(&ours),
            mean(&theirs)
        );
        if !ratio.lies_within(goal, f64::INFINITY) {
            below.push(job);
        }
    }
    assert!(
        below.is_empty(),
        "the goal is not shown to be reached: {below:?}"
    );
}
