//! Tests of a worker, on a door that only records its requests.

use std::io;
use std::sync::Mutex;
use ugeom_testkit::has;

use ugeom_engine::Errno;
use ugeom_load::door::{Direct, Explain};

use super::*;
use ugeom_job::error::Origin;
use ugeom_job::options::Setting;
use ugeom_job::options::apply;

/// Ends every request at once, and keeps it.
struct Paper<'a> {
    asked: &'a Mutex<Vec<Request>>,
    ended: Vec<Event>,
    memory: Vec<Vec<u8>>,
    /// The buffers that the worker has taken to write into them or to look at them.
    taken: &'a Mutex<Vec<u32>>,
    /// The request of this number fails, with no room left.
    fails: usize,
}

impl Explain for Paper<'_> {}

impl Door for Paper<'_> {
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.taken.lock().unwrap().push(slot);
        &mut self.memory[slot as usize]
    }

    fn submit(&mut self, slot: u32, request: &Request) {
        let mut asked = self.asked.lock().unwrap();
        let result = if asked.len() == self.fails {
            Err(Errno::NOSPC)
        } else {
            Ok(u64::from(request.length))
        };
        asked.push(*request);
        self.ended.push(Event { slot, result });
    }

    fn flush(&mut self) {}

    fn reap(&mut self, events: &mut Vec<Event>) {
        events.append(&mut self.ended);
    }

    fn wait(&mut self, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }
}

impl Direct for Paper<'_> {
    fn call(&mut self, request: &Request) -> Result<u64, Errno> {
        self.submit(0, request);
        self.ended.pop().unwrap().result
    }
}

fn done(settings: &[&str], fails: usize) -> (Done, Vec<Request>) {
    done_by("io_uring", settings, fails, |worker| worker.run())
}

fn done_by(
    engine: &str,
    settings: &[&str],
    fails: usize,
    run: fn(Worker<'_, Paper<'_>>) -> Done,
) -> (Done, Vec<Request>) {
    let (done, asked, _) = taking(engine, settings, fails, run);
    (done, asked)
}

/// The result of a job, its requests, and the buffers it has taken from the door.
fn taking(
    engine: &str,
    settings: &[&str],
    fails: usize,
    run: fn(Worker<'_, Paper<'_>>) -> Done,
) -> (Done, Vec<Request>, Vec<u32>) {
    let mut job = Job::new("test", Origin::Default);
    job.ioengine = engine.to_owned();
    for setting in settings {
        let (name, value) = setting.split_once('=').unwrap();
        let setting = Setting::new(name, Some(value.to_owned()), Origin::Default);
        apply(&mut job, &setting).unwrap();
    }
    let regions = [Region {
        name: "paper".to_owned(),
        start: 0,
        length: 1 << 20,
        file_bytes: 1 << 20,
    }];
    let asked = Mutex::new(Vec::new());
    let taken = Mutex::new(Vec::new());
    let done = {
        let task = Task {
            job: &job,
            regions: &regions,
            paths: &[],
            number: 0,
            seeds: Seeds::of(&job, 10),
            blocking: job.is_sync(),
            live: &Live::default(),
            stop: &AtomicBool::new(false),
            flow: None,
            locks: &super::FileLocks::default(),
            state: None,
        };
        let paper = Paper {
            asked: &asked,
            ended: Vec::new(),
            memory: vec![vec![0; job.largest_bytes() as usize]; slots(&job) as usize],
            taken: &taken,
            fails,
        };
        run(Worker::new(&task, Traces::default(), paper).expect("a worker"))
    };
    (
        done,
        asked.into_inner().unwrap(),
        taken.into_inner().unwrap(),
    )
}

fn of(settings: &[&str]) -> (Done, Vec<Request>) {
    done(settings, usize::MAX)
}

#[test]
fn a_job_ends_when_its_size_its_number_or_its_loops_are_done() {
    for (settings, requests) in [
        (&["rw=read"][..], 256),
        (&["rw=randread", "iodepth=16"], 256),
        (&["rw=read", "number_ios=10"], 10),
        (&["rw=randread", "loops=3"], 768),
        (&["rw=read", "io_size=64k"], 16),
        (&["rw=read", "io_size=2m", "iodepth=300"], 512),
        (&["rw=write", "bs=64k"], 16),
    ] {
        let (done, asked) = of(settings);
        assert_eq!(asked.len(), requests, "{settings:?}");
        let counted: u64 = done.tally.sides.iter().map(|side| side.requests).sum();
        assert_eq!(counted, requests as u64, "{settings:?}");
        let side = done
            .tally
            .sides
            .iter()
            .find(|side| side.requests > 0)
            .unwrap();
        assert_eq!(side.lat.count(), requests as u64);
        assert_eq!(done.tally.depths.iter().sum::<u64>(), requests as u64);
        assert_eq!(done.trouble, None);
    }
}

#[test]
fn each_loop_reads_back_what_it_has_written() {
    let whole = "wwwwrrrrwwwwrrrrwwwwrrrr";
    for (settings, expected) in [
        (&["rw=write", "verify=null"][..], whole),
        (&["rw=randwrite", "verify=null"], whole),
        // As by fio, the number is that of all loops, and counts the reads.
        (&["rw=write", "verify=null", "number_ios=3"], "wwwwrrrrwr"),
        (&["rw=write", "verify=null", "number_ios=1"], "wwwrrr"),
        (&["rw=write", "verify=null", "do_verify=0"], "wwwwwwwwwwww"),
        (
            &["rw=write", "verify=null", "do_verify=0", "verify_backlog=2"],
            "wwwwwwwwwwww",
        ),
        (
            &["rw=write", "verify=null", "do_verify=0", "verify_only=1"],
            "",
        ),
    ] {
        let (done, asked) = of(&[settings, &["bs=256k", "loops=3"]].concat());
        let kinds: String = asked.iter().map(letter).collect();
        assert_eq!(kinds, expected, "{settings:?}");
        let reads = &done.tally.sides[READ];
        assert!(reads.runtime_ns <= done.tally.elapsed_ns);
        assert_eq!(reads.requests > 0, reads.runtime_ns > 0);
        assert_eq!(done.trouble, None);
    }
}

#[test]
fn a_size_of_zero_is_no_size() {
    let mut job = Job::new("test", Origin::Default);
    for (value, is_set) in [("4k", true), ("0", false), ("50%", true)] {
        let setting = Setting::new("size", Some(value.to_owned()), Origin::Default);
        apply(&mut job, &setting).unwrap();
        assert_eq!(job.size.is_some(), is_set, "{value}");
    }
}

fn letter(request: &Request) -> char {
    match request.kind {
        Kind::Write => 'w',
        Kind::Read => 'r',
        _ => '-',
    }
}

#[test]
fn a_mix_has_the_share_that_was_asked_for() {
    let (_, asked) = of(&[
        "rw=randrw",
        "rwmixread=70",
        "bs=512",
        "norandommap=1",
        "loops=10",
    ]);
    let reads = asked
        .iter()
        .filter(|request| request.kind == Kind::Read)
        .count();
    let share = reads as f64 / asked.len() as f64;
    // Five standard deviations of a share of 20480.
    assert!(
        (share - 0.7).abs() < 5.0 * (0.7_f64 * 0.3 / 20480.0).sqrt(),
        "{share}"
    );
}

#[test]
fn syncs_follow_the_writes_they_are_for_and_are_counted_apart() {
    let syncs = |asked: &[Request], kind| -> Vec<usize> {
        let all = 0..asked.len();
        all.filter(|i| asked[*i].kind == kind).collect()
    };
    let (done, asked) = of(&["rw=write", "bs=64k", "fdatasync=4", "end_fsync=1"]);
    assert_eq!(syncs(&asked, Kind::DataSync), [4, 9, 14]);
    // The last four writes get that of end_fsync, which is not counted.
    assert_eq!(syncs(&asked, Kind::Sync), [19]);
    assert_eq!(done.tally.syncs.count(), 3);
    let (done, asked) = of(&["rw=write", "bs=64k", "fsync=4", "end_fsync=1"]);
    assert_eq!(syncs(&asked, Kind::Sync), [4, 9, 14, 19]);
    assert_eq!(
        (done.tally.syncs.count(), done.tally.sides[WRITE].requests),
        (3, 16)
    );
    // fio counts those of fsync as requests.
    let fsyncs = |options: &[&str]| of(options).0.tally.fsyncs;
    assert_eq!(fsyncs(&["rw=write", "bs=64k", "fdatasync=4"]), 0);
    assert_eq!(fsyncs(&["rw=write", "bs=64k", "fsync=4", "fdatasync=1"]), 3);
    // Neither is a short read: fio 3.33 counts those of fdatasync behind the end of its counters.
    let short = |options: &[&str]| of(options).0.tally.sides[READ].short;
    assert_eq!(short(&["rw=write", "bs=64k", "fdatasync=4"]), 0);
    assert_eq!(short(&["rw=write", "bs=64k", "fsync=4"]), 0);
}

#[test]
fn buffers_of_a_job_that_only_reads_are_not_filled() {
    let taken = |rw| {
        let settings = [rw, "iodepth=64", "number_ios=1"];
        taking("io_uring", &settings, usize::MAX, |worker| worker.run()).2
    };
    assert!(taken("rw=randread").is_empty());
    assert_eq!(taken("rw=randwrite")[..64], (0..64).collect::<Vec<_>>());
}

#[test]
fn writes_that_lengthen_a_file_are_handed_over_one_by_one() {
    let batches = |more: &[&str]| {
        let settings = [
            &["rw=write", "iodepth=64", "iodepth_batch=16", "direct=1"],
            more,
        ]
        .concat();
        let (done, _) = done_by("libaio", &settings, usize::MAX, |worker| worker.run());
        done.tally.submits
    };
    let submits = |count| batches(&[])[Tally::batch(count)];
    assert_eq!((submits(1), submits(16)), (0, 16));
    let submits = |count| batches(&["create_on_open=1"])[Tally::batch(count)];
    assert_eq!((submits(1), submits(16)), (256, 0));
}

#[test]
fn each_trim_is_followed_by_the_write_of_its_range() {
    let (done, asked) = of(&["rw=trimwrite", "bs=64k"]);
    assert_eq!(asked.len(), 32);
    for pair in asked.chunks(2) {
        assert_eq!((pair[0].kind, pair[1].kind), (Kind::Trim, Kind::Write));
        assert_eq!(pair[0].offset, pair[1].offset);
    }
    assert_eq!(done.tally.sides[TRIM].requests, 16);
}

#[test]
fn a_job_that_ends_before_its_ramp_is_over_took_the_time_since_its_begin() {
    let (done, asked) = of(&["rw=write", "bs=64k", "ramp_time=1h"]);
    assert_eq!((asked.len(), done.tally.sides[WRITE].requests), (16, 16));
    let hour_ns = 3_600_000_000_000;
    assert!(done.tally.elapsed_ns < hour_ns, "{}", done.tally.elapsed_ns);
    assert!(done.tally.sides[WRITE].runtime_ns < hour_ns);
}

#[test]
fn the_longest_times_do_not_end() {
    for time in ["runtime", "ramp_time"] {
        let (_, asked) = of(&["rw=write", "bs=64k", &format!("{time}=18446744073s")]);
        assert_eq!(asked.len(), 16, "{time}");
    }
}

#[test]
fn the_first_error_ends_the_job_and_is_told_with_its_place() {
    let (done, asked) = done(&["rw=write"], 20);
    let trouble = done.trouble.unwrap();
    assert_eq!(asked.len(), 21);
    assert_eq!(trouble.errno, 28);
    let expected = "writing 4096 bytes at offset 81920 of paper: No space left";
    assert!(trouble.message.starts_with(expected), "{}", trouble.message);
}

#[test]
fn what_is_read_back_and_is_not_what_was_written_is_found() {
    // The door reads nothing: a block is right only while the slot that wrote it has not been used
    // again, so one slot finds the second of two blocks in the place of the first.
    let settings = ["rw=write", "verify=crc32c", "io_size=8k", "iodepth=1"];
    let (done, asked) = of(&settings);
    assert_eq!(asked.len(), 3);
    let trouble = done.trouble.unwrap();
    assert_eq!(trouble.errno, 84);
    let expected = "verify: paper is wrong at offset 16 (byte 16 of the block at 0, 4096 bytes): \
                    offset in the header: expected 0x0, found 0x1000";
    assert_eq!(trouble.message, expected);
    let (done, asked) = of(&["rw=write", "verify=crc32c", "io_size=4k"]);
    assert_eq!((asked.len(), done.trouble), (2, None));
}

#[test]
fn the_latency_of_a_late_request_counts_from_when_it_was_due() {
    // 1000 a second: the whole takes 15 ms and more, however fast the door is.
    let (done, asked) = of(&["rw=read", "bs=64k", "rate_iops=1000"]);
    assert_eq!(asked.len(), 16);
    assert!(
        done.tally.elapsed_ns >= 15_000_000,
        "{}",
        done.tally.elapsed_ns
    );
    let side = &done.tally.sides[READ];
    assert!(side.lat.max() >= side.clat.max());
}

/// Requests (kind, offset, length), then the counts of each direction, then the maps.
type Counted = (Vec<(Kind, u64, u32)>, Vec<[u64; 6]>, Vec<u64>);

/// Requests, and what was counted of them.
fn counted(asked: &[Request], done: &Done) -> Counted {
    let asked = asked.iter();
    let asked = asked.map(|request| (request.kind, request.offset, request.length));
    let sides = done.tally.sides.iter().map(|side| {
        let [clat, lat, slat] = [&side.clat, &side.lat, &side.slat].map(|times| times.count());
        [side.requests, side.bytes, side.short, clat, lat, slat]
    });
    let maps = [
        &done.tally.depths,
        &done.tally.submits,
        &done.tally.completes,
    ];
    let maps = maps.into_iter().flatten().copied();
    (asked.collect(), sides.collect(), maps.collect())
}

#[test]
fn a_plain_job_makes_the_requests_of_any_other() {
    for settings in [
        &["rw=read"][..],
        &["rw=read", "bs=3k"],
        &["rw=write", "bs=64k", "loops=3"],
        &["rw=trim", "io_size=300k"],
        &["rw=read", "number_ios=1000"],
        &["rw=randread"],
        &["rw=randread", "loops=3", "bs=16k"],
        &["rw=randread", "bs=3k", "io_size=3m"],
        &["rw=randread", "norandommap=1", "loops=2"],
        &["rw=randwrite", "norandommap=1", "number_ios=77"],
        &["rw=randtrim", "gtod_reduce=1"],
        &["rw=randread", "disable_lat=1"],
        &["rw=randread", "gtod_reduce=1", "loops=9"],
        // Those that are not plain come out alike in any case.
        &["rw=randrw"],
        &["rw=randread", "bsrange=1k-16k"],
        &["rw=write", "fsync=3"],
        &["rw=read:8k"],
        &["rw=randread", "percentage_random=40"],
    ] {
        for fails in [usize::MAX, 5] {
            let (done, asked) = done_by("psync", settings, fails, |worker| worker.run());
            let usual = counted(&asked, &done);
            let trouble = done.trouble;
            let (done, asked) = done_by("psync", settings, fails, |worker| worker.run_directly());
            assert_eq!(counted(&asked, &done), usual, "{settings:?}");
            assert_eq!(done.trouble, trouble, "{settings:?}");
            assert!(!asked.is_empty());
        }
    }
}

#[test]
fn plain_jobs_are_taken_for_plain() {
    for (settings, plain) in [
        (&["rw=read"][..], true),
        (&["rw=randread", "norandommap=1", "gtod_reduce=1"], true),
        (&["rw=randwrite"], true),
        (&["rw=randrw"], false),
        (&["rw=read", "rate_iops=1000000"], false),
        (&["rw=write", "fsync=3"], false),
        (&["rw=randread", "random_distribution=zipf:1.1"], false),
        (&["rw=read", "max_latency=10s"], false),
    ] {
        let run = match plain {
            true => |mut worker: Worker<'_, Paper<'_>>| {
                assert!(worker.plain().is_some());
                worker.run()
            },
            false => |mut worker: Worker<'_, Paper<'_>>| {
                assert!(worker.plain().is_none());
                worker.run()
            },
        };
        let one: fn(Worker<'_, Paper<'_>>) -> Done = run;
        done_by(
            "psync",
            &[settings, &["number_ios=0"]].concat(),
            usize::MAX,
            one,
        );
    }
}

#[test]
fn so_many_requests_have_a_priority_as_were_asked_for() {
    let counted = |done: &Done, kind: usize| {
        let side = &done.tally.sides[kind];
        let by_priority = side.by_priority.iter();
        let mut counts: Vec<(u16, u64)> = by_priority
            .map(|(of, times)| (*of, times.count()))
            .collect();
        counts.sort_unstable();
        let all: u64 = counts.iter().map(|(_, count)| count).sum();
        assert!(counts.is_empty() || all == side.requests);
        counts
    };
    let loops = "loops=40";
    let (done, _) = of(&["rw=read", loops, "cmdprio_percentage=25", "cmdprio_class=2"]);
    let (mostly, _) = of(&["rw=read", "cmdprio_percentage=95", "cmdprio_class=1"]);
    let order = mostly.tally.sides[READ].by_priority.iter();
    let order: Vec<u16> = order.map(|(of, _)| *of).collect();
    assert_eq!(order, [0, 1 << 13], "that of the thread comes first");
    // Five standard deviations of a share of 10240.
    let counts = counted(&done, READ);
    assert_eq!(counts[1].0, 2 << 13);
    assert!(counts[1].1.abs_diff(2560) < 220, "{counts:?}");
    let (done, _) = of(&[
        "rw=write",
        "bssplit=4k/50:8k/50",
        loops,
        "cmdprio_bssplit=4k/25/1/1:4k/75/3/2:8k/0",
    ]);
    let counts = counted(&done, WRITE);
    let kinds: Vec<u16> = counts.iter().map(|(of, _)| *of).collect();
    assert_eq!(kinds, [0, 1 << 13 | 1, 3 << 13 | 2]);
    let thrice = counts[1].1 * 3;
    assert!(counts[2].1.abs_diff(thrice) < thrice / 5, "{counts:?}");
    let (done, _) = of(&["rw=write", loops, "cmdprio_percentage=0,50"]);
    assert_eq!(counted(&done, WRITE).len(), 2);
    let (done, _) = done_by(
        "psync",
        &["rw=read", "cmdprio_percentage=50"],
        usize::MAX,
        |worker| worker.run(),
    );
    assert!(counted(&done, READ).is_empty());
}

#[test]
fn a_rate_is_too_low_when_a_request_says_so() {
    // A request each 100 ms: 10 and 655,360 bytes a second, compared every 20 ms. On a busy machine
    // they may be a tenth of that.
    let settings = [
        "rw=read",
        "bs=64k",
        "rate_iops=10",
        "rate_cycle=20",
        "number_ios=4",
    ];
    let with = |min: &'static str| of(&[&settings[..], &[min]].concat()).0.trouble;
    assert_eq!(with("rate_iops_min=1"), None);
    assert_eq!(with("rate_min=64k"), None);
    let trouble = with("rate_iops_min=50").expect("too slow");
    has(&trouble.message, "rate_iops_min=50 was not reached");
}

#[test]
fn blocks_are_read_back_at_the_depth_of_the_job() {
    for settings in [
        &["verify=null"][..],
        &["verify=null", "verify_backlog=4"],
        &["verify=null", "verify_backlog=8", "verify_backlog_batch=2"],
    ] {
        let job = ["rw=write", "bs=4k", "iodepth=16"];
        let (done, asked) = of(&[&job, settings].concat());
        assert_eq!(asked.len(), 512, "{settings:?}");
        // 1, 2, 4, 8, 16, 32, 64 and more.
        let deep = done.tally.depths[4];
        assert!(deep > 460, "{settings:?}: {:?}", done.tally.depths);
    }
}

#[test]
fn the_spin_before_a_request_follows_how_long_waking_up_takes() {
    let after =
        |late_ns, sleeps| (0..sleeps).fold(SPIN_NS, |spin_ns, _| spin_after(spin_ns, late_ns));
    assert_eq!(after(60_000, 1), 75_000);
    assert_eq!(after(2_000_000, 1), SPIN_MOST_NS);
    assert_eq!(after(8_000, 1000), 10_000);
    assert_eq!(after(0, 1000), SPIN_LEAST_NS);
}
