//! The output beside that of fio itself, for an outcome with known figures.

use super::{json, normal, progress_line, terse, title};
use crate::outcome::{JobOutcome, Outcome};
use crate::run::Progress;
use crate::tally::{Phase, Samples, Tally};
use ugeom_job::error::Origin;
use ugeom_job::settings::Job;
use ugeom_testkit::has;

fn outcome() -> Outcome {
    let mut tally = Tally {
        elapsed_ns: 636_000_000,
        depths: [1, 1, 1, 1, 1, 20, 975],
        submits: [0, 1000, 0, 0, 0, 0, 0],
        completes: [0, 999, 0, 0, 0, 0, 1],
        ..Tally::default()
    };
    let side = &mut tally.sides[0];
    side.requests = 8160;
    side.bytes = 8160 * 4096;
    side.runtime_ns = 636_000_000;
    for step in 0..8160 {
        side.slat.record(2_000 + step);
        side.clat.record(278_000 + step * 4_000);
        side.lat.record(282_000 + step * 4_000);
    }
    side.bw = Samples::of(vec![59_800.0]);
    side.iops = Samples::of(vec![14_950.0]);
    let mut job = Job::new("job1", Origin::Default);
    job.iodepth = 100;
    job.own = vec![("iodepth".to_owned(), "100".to_owned())];
    Outcome {
        jobs: vec![JobOutcome {
            job,
            group: 0,
            jobs: 1,
            tally,
            trouble: None,
            begun_unix_ms: 1_795_327_461_000,
            ended_unix_s: 1_795_327_461,
            pid: 7,
            steady: None,
        }],
        disks: Vec::new(),
        idleness: None,
        lost: Vec::new(),
        warnings: Vec::new(),
    }
}

#[test]
fn the_normal_output_is_that_of_fio_line_by_line() {
    let text = normal(&outcome());
    for expected in [
        "job1: (groupid=0, jobs=1): err= 0: pid=7: ",
        "  read: IOPS=12.8k, BW=50.1MiB/s (52.6MB/s)(31.9MiB/636msec)\n",
        "    slat (nsec): min=2000, max=10159, avg=6079.50, stdev=",
        "    clat (usec): min=278, max=32914, avg=16596.00, stdev=",
        "     lat (usec): min=282, max=32918, avg=16600.00, stdev=",
        "    clat percentiles (usec):\n     |  1.00th=[  ",
        "],\n     | 30.00th=[",
        "   bw (  KiB/s): min=59800, max=59800, per=100.00%, avg=59800.00, \
         stdev= 0.00, samples=1\n",
        "   iops        : min=14950, max=14950, avg=14950.00, stdev= 0.00, samples=1\n",
        "  lat (usec)   : 500=0.6",
        "  lat (msec)   : 2=3.0",
        "  cpu          : usr=0.00%, sys=0.00%, ctx=0, majf=0, minf=0\n",
        "  IO depths    : 1=0.1%, 2=0.1%, 4=0.1%, 8=0.1%, 16=0.1%, 32=2.0%, >=64=97.5%\n",
        "     submit    : 0=0.0%, 4=100.0%, 8=0.0%, 16=0.0%, 32=0.0%, 64=0.0%, >=64=0.0%\n",
        "     complete  : 0=0.0%, 4=99.9%, 8=0.0%, 16=0.0%, 32=0.0%, 64=0.0%, >=64=0.1%\n",
        "     issued rwts: total=8160,0,0,0 short=0,0,0,0 dropped=0,0,0,0\n",
        "     latency   : target=0, window=0, percentile=100.00%, depth=100\n",
        "\nRun status group 0 (all jobs):\n   READ: bw=50.1MiB/s (52.6MB/s), 50.1MiB/s-50.1MiB/s \
         (52.6MB/s-52.6MB/s), io=31.9MiB (33.4MB), run=636-636msec\n",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in\n{text}");
    }
}

/// fio keeps the target in ns and the window in us, and prints both without a unit.
#[test]
fn the_latency_target_is_printed_in_ns() {
    let mut outcome = outcome();
    outcome.jobs[0].job.latency.target_ns = 2_000_000;
    outcome.jobs[0].job.latency.window_ns = 10_000_000;
    let expected = "     latency   : target=2000000, window=10000, percentile=100.00%, depth=100\n";
    let text = normal(&outcome);
    assert!(text.contains(expected), "{text}");
    let json = json(&outcome, true).unwrap();
    assert!(json.contains("\"latency_target\" : 2000000"));
}

#[test]
fn options_that_programs_look_for_are_always_in_the_json() {
    let text = json(&outcome(), true).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let options = &value["jobs"][0]["job options"];
    for (key, expected) in [
        ("bs", "4k"),
        ("rw", "read"),
        ("iodepth", "100"),
        ("numjobs", "1"),
    ] {
        assert_eq!(options[key], expected, "{key}");
    }
    let read = &value["jobs"][0]["read"];
    assert_eq!(read["total_ios"], 8160);
    let bins = read["clat_ns"]["bins"].as_object().unwrap();
    let counted: u64 = bins.values().filter_map(serde_json::Value::as_u64).sum();
    assert_eq!(counted, 8160);
    // fio's name of a bucket: its first value and half of its width, both even from 256 on.
    let names = bins.keys().map(|name| name.parse::<u64>().unwrap());
    assert!(names.filter(|name| *name >= 256).all(|name| name % 2 == 0));
    assert!(read["clat_ns"]["percentile"]["99.950000"].as_u64().unwrap() > 32_000_000);
}

#[test]
fn titles_and_progress_are_as_fio_draws_them() {
    let mut job = Job::new("job1", Origin::Default);
    job.ioengine = "libaio".to_owned();
    job.iodepth = 100;
    assert_eq!(
        title(&job, 0),
        "job1: (g=0): rw=read, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, \
         ioengine=libaio, iodepth=100"
    );
    let jobs = [
        (&job, Phase::Running),
        (&job, Phase::Running),
        (&job, Phase::Ended),
    ];
    let line = progress_line(&Progress {
        jobs: &jobs,
        rates: [(104_857_600.0, 25_600.0), (0.0, 0.0), (0.0, 0.0)],
        is_new: true,
        done: Some(0.5),
        left_s: Some(61),
    });
    assert_eq!(
        line,
        "Jobs: 2 (f=2): [R(2),_(1)][50.0%][r=100MiB/s][r=25.6k IOPS][eta 01m:01s]"
    );
    // fio sums the limits of the kinds of requests that the running jobs make.
    let limited = |rate_min, rate, rate_iops| {
        let mut job = job.clone();
        (job.rate_min, job.rate, job.rate_iops) = ([rate_min; 3], [rate; 3], [rate_iops; 3]);
        let line = progress_line(&Progress {
            jobs: &[(&job, Phase::Running), (&job, Phase::Running)],
            rates: [(0.0, 0.0); 3],
            is_new: true,
            done: None,
            left_s: None,
        });
        line.split_once(": [").expect("states").0.to_owned()
    };
    assert_eq!(limited(0, 0, 200), "Jobs: 2 (f=2), 0-400 IOPS");
    assert_eq!(
        limited(1 << 20, 8 << 20, 0),
        "Jobs: 2 (f=2), 2048KiB/s-16.0MiB/s"
    );
}

#[test]
fn the_terse_percentiles_are_of_lat_where_that_is_asked_for() {
    let mut outcome = outcome();
    let field = |outcome: &Outcome| terse(outcome, 3).split(';').nth(23).map(str::to_owned);
    let middle = |times: &ugeom_measure::Histogram| {
        let us = times.percentile(50.0).unwrap() / 1000;
        Some(format!("50.000000%={us}"))
    };
    let side = outcome.jobs[0].tally.sides[0].clone();
    assert_eq!(field(&outcome), middle(&side.clat));
    outcome.jobs[0].job.percentiles.lat = true;
    assert_eq!(field(&outcome), middle(&side.lat));
    outcome.jobs[0].job.percentiles.clat = false;
    assert_eq!(field(&outcome), middle(&side.lat));
}

#[test]
fn each_priority_has_its_latencies_where_there_is_more_than_one() {
    let mut outcome = outcome();
    let side = &mut outcome.jobs[0].tally.sides[0];
    side.of_priority(1 << 13 | 3).record(300_000);
    let value = |outcome: &Outcome| -> serde_json::Value {
        serde_json::from_str(&json(outcome, true).unwrap()).unwrap()
    };
    assert!(value(&outcome)["jobs"][0]["read"].get("prios").is_none());
    outcome.jobs[0].tally.sides[0]
        .of_priority(0)
        .record(500_000);
    let value = value(&outcome);
    let priorities = value["jobs"][0]["read"]["prios"].as_array().unwrap();
    let numbers = |index: usize| {
        let one = &priorities[index];
        [&one["prioclass"], &one["prio"], &one["clat_ns"]["min"]].map(|n| n.as_u64().unwrap())
    };
    assert_eq!((numbers(0), numbers(1)), ([1, 3, 300_000], [0, 0, 500_000]));
    assert!(priorities[0]["clat_ns"]["bins"].is_object());
    let text = normal(&outcome);
    has(&text, "    clat prio 1/3 (nsec): min=300000, max=300000, ");
    has(&text, "    clat prio 0/0 (50.00% of IOs) percentiles (");
}

/// As fio adds them (`sum_stat` of its stat.c with `pure_sum`).
#[test]
fn samples_of_copies_are_those_of_jobs_that_run_together() {
    let copies = [vec![10.0, 20.0], vec![30.0, 50.0], Vec::new()];
    let mut together = Tally::default();
    for copy in copies {
        let mut tally = Tally::default();
        tally.sides[0].iops = Samples::of(copy);
        together.merge(&tally);
    }
    let samples = &together.sides[0].iops;
    assert_eq!((samples.ends(), samples.count()), ((40, 70), 4));
    assert!((samples.mean() - 55.0).abs() < 1e-9);
    assert!((samples.deviation() - (250.0_f64 / 3.0).sqrt()).abs() < 1e-9);
}

/// A reader divides the bytes by the runtime that stands beside them.
#[test]
fn rates_are_those_of_the_reported_runtime() {
    let mut tally = Tally::default();
    let side = &mut tally.sides[0];
    (side.bytes, side.requests, side.runtime_ns) = (16 << 20, 4096, 288_000);
    assert_eq!(side.runtime_ms(), 1);
    assert_eq!(side.bytes_per_s(), 16_777_216_000);
    assert!((side.iops_issued() - 4_096_000.0).abs() < 1e-6);
}
