//! `ugeom run` and fio make the same requests in the same order, random ones included.

use crate::run::{UGEOM, has, run_in, tool, words_of};

/// Jobs, as options. Each runs on files of its own, of which `long` is there before, with 2 MiB.
const JOBS: &[&str] = &[
    "rw=randread size=3m bsrange=4k-16k bs_unaligned=1 nrfiles=9",
    "rw=randread size=1m",
    "rw=randread size=1m bs=512 norandommap",
    "rw=randread size=4m bsrange=4k-64k",
    "rw=randwrite size=1m bsrange=512-9k bs_unaligned=1 verify=crc32c",
    "rw=randread size=1m bsrange=512-9k norandommap",
    "rw=randread size=4m bssplit=4k/50:16k/30:64k/20",
    "rw=randrw size=1m bssplit=1k/33:5k/67,4k/50:16k/50",
    "rw=randread size=1m bs=1k-9k,4k ba=1k",
    "rw=randread size=1m bs_is_seq_rand=1 bs=4k,8k percentage_random=50",
    "rw=randrw size=4m rwmixread=30 bs=4k,8k",
    "rw=randrw size=4m rwmixwrite=10 bs=8k,4k nrfiles=4",
    "rw=randrw size=4m percentage_random=40,80",
    "rw=randread:8 size=1m nrfiles=3",
    "rw=randwrite:4 size=1m rw_sequencer=identical",
    "rw=randread size=4m nrfiles=8 file_service_type=random openfiles=3",
    "rw=randwrite size=3m nrfiles=30 openfiles=4 file_service_type=random:3 bsrange=4k-16k",
    "rw=randread size=2m nrfiles=8 file_service_type=zipf:1.2 io_size=2m",
    "rw=randread size=2m nrfiles=8 file_service_type=pareto:0.3 io_size=2m",
    "rw=randread size=128k nrfiles=2 file_service_type=zipf:1.2 io_size=300k loops=2",
    "rw=randread size=2m nrfiles=8 file_service_type=gauss:20 io_size=2m",
    "rw=randread size=4m random_distribution=zipf:0.8",
    "rw=randrw size=2m random_distribution=zipf:1.3:0.3 nrfiles=4 io_size=4m",
    "rw=randread size=100g ioengine=null random_distribution=zipf:1.1 number_ios=3000",
    "rw=randread size=4m random_distribution=pareto:0.2",
    "rw=randread size=1m filename=a:b:c random_distribution=zipf:1.1",
    "rw=randread size=4m random_distribution=normal:30:0.2",
    "rw=randread size=4m random_distribution=zoned:50/5:30/15:20/",
    "rw=randread size=4m random_distribution=zoned_abs:60/1m:40/3m",
    "rw=randread size=3m random_generator=lfsr bs=1k",
    "rw=randread size=2m random_generator=lfsr loops=2",
    "rw=randread size=4m random_generator=tausworthe64 bsrange=4k-32k",
    "rw=randrw size=1m loops=3 bsrange=4k-16k",
    "rw=rw nrfiles=5 filesize=4k-64k loops=3 bsrange=1k-4k openfiles=2",
    "rw=randread filesize=4k-64k nrfiles=20 file_service_type=random",
    "rw=randread size=1m io_size=3m",
    "rw=randrw size=1m loops=3 io_size=300k bsrange=4k-16k",
    "rw=read bs=16k size=1000k loops=3 io_size=2m",
    "rw=read nrfiles=3 filesize=16k-128k ioengine=null",
    "rw=randrw size=777k filename=a:b:c ioengine=null",
    "rw=write filesize=64k filename=a:b nrfiles=5 ioengine=null",
    "rw=randtrimwrite nrfiles=3 filesize=16k-128k size=200k ioengine=null",
    "rw=rw bs=4k,8k size=777k loops=2 ioengine=libaio iodepth=4",
    "rw=randrw bs=4k norandommap size=512k loops=3 ioengine=libaio iodepth=4",
    "rw=randwrite bs=4k norandommap size=512k io_size=1m ioengine=libaio iodepth=4",
    "rw=write bs=8k size=100k loops=2 io_size=2m",
    "rw=write bs=8k size=100k io_size=197k",
    "rw=randread bsrange=1k-8k size=100k loops=3 io_size=450k",
    "rw=rw bs=8k size=777k loops=2 io_size=3m",
    "rw=write bs=16k size=128k loops=3 number_ios=10 verify=crc32c",
    "rw=randrw bs=16k size=1m loops=2 number_ios=20 verify=crc32c",
    "rw=write bs=16k size=1m number_ios=10 verify=crc32c verify_backlog=4 loops=2",
    "rw=write bs=16k size=1m loops=2 number_ios=20 end_fsync=1",
    "rw=randwrite size=1m loops=2 io_size=2m norandommap",
    "rw=randrw size=1m numjobs=4 bsrange=4k-16k",
    "rw=randwrite size=2m verify=crc32c verify_backlog=16",
    "rw=randwrite size=1m verify=md5 loops=2 norandommap",
    "rw=randrw size=4m iodepth=16 ioengine=io_uring",
    "rw=randtrimwrite size=1m ioengine=null bsrange=4k-16k",
    "rw=randread size=4m zonemode=strided zonesize=64k zonerange=256k zoneskip=128k",
    "rw=read size=1m nrfiles=2 zonemode=strided zonesize=64k zoneskip=64k",
    "rw=randwrite bs=512 size=300000 loops=3 zonemode=strided zonesize=64k zoneskip=64k",
    "rw=randread:4 bs=8k size=2m nrfiles=2 zonemode=strided zonesize=64k zonerange=128k",
    "rw=randread size=1m random_distribution=normal:10 zonemode=strided zonesize=64k zoneskip=64k",
    "rw=read:4k size=1m zonemode=strided zonesize=64k zoneskip=64k",
    "rw=randread size=1m ba=4k",
    "rw=randrw bs=512 size=2m ba=512",
    "rw=rw size=1m nrfiles=2 file_append=1 offset=10000",
    "rw=trimwrite size=777k ioengine=null nrfiles=3 bsrange=4k-16k",
    "rw=trimwrite size=777k ioengine=null nrfiles=2 file_service_type=roundrobin:4 openfiles=1",
    "rw=randtrimwrite size=1m ioengine=null nrfiles=3 file_service_type=random number_ios=90",
    "rw=randread size=1m random_generator=lfsr bsrange=4k-16k",
    "rw=randread size=1m random_generator=lfsr bssplit=4k/50:12k/50 norandommap",
    "rw=randrw size=1m fsync=4",
    "rw=randread:0 size=256k io_size=512k",
    "rw=randrw:0 size=256k loops=2",
    "rw=write size=1m fsync=4 fdatasync=6 nrfiles=3",
    "rw=randwrite size=256k fsync=1 loops=2",
    "rw=write size=256k fdatasync=1 ioengine=libaio iodepth=1",
    "rw=randrw size=1m fsync=4 ioengine=libaio iodepth=8 direct=1",
    "rw=write bs=12k size=1m zonemode=strided zonesize=256k",
    "rw=read bs=20k size=1m offset=64k zonemode=strided zonesize=128k",
    "rw=write:8k bs=4k size=2m nrfiles=3",
    "rw=randrw bsrange=8k-32k,4k-8k size=2101248 verify=meta",
    "rw=rw:4k bssplit=4k/50:8k/50 size=1089536 rwmixread=90 verify=meta ioengine=libaio iodepth=8",
    "rw=rw bsrange=4k-64k size=3m rwmixread=30 verify=crc32c loops=2",
    "rw=write:8k bssplit=4k/60:16k/40,8k/50:32k/50 size=2m verify=sha1 verify_backlog=1 loops=2",
    "rw=read bs=4k,8k size=1052160 io_size=2104320",
    "rw=read size=1m bsrange=8k-16k bs=4k",
    "rw=read size=1m bssplit=8k/50:16k/50 bs=4k",
    "rw=randread bs=16k size=1m nrfiles=30 openfiles=1 ioengine=libaio iodepth=16",
    "rw=randwrite bs=28k size=4m random_distribution=zipf:1.2 verify=crc32c",
    "rw=randwrite:4 bs=28k size=1m norandommap verify=crc32c ioengine=libaio iodepth=4",
    "rw=randrw bsrange=4k-200k size=4m ioengine=splice",
    "rw=randrw bs=12k size=2m io_size=1m ba=4k random_generator=lfsr",
    "rw=randread bs=8k size=2m ba=4k random_generator=lfsr",
    "rw=randwrite filename=long size=1m percentage_random=5 bsrange=4k-16k",
    "rw=randrw filename=long size=25% offset=256k percentage_random=10 bs=8k",
    "rw=randread filename=long offset=1m percentage_random=5 bsrange=4k-16k",
    "rw=randwrite:50 filename=long size=1900k bsrange=4k-16k",
];

/// Runs a job, whose options stand in a line without dashes, with more words, in a new folder.
fn run_job(program: &[&str], job: &str, more: [&str; 2]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let long = std::fs::File::create(folder.path().join("long")).expect("a file");
    long.set_len(2 << 20).expect("its size");
    let options = job.split_whitespace().map(|option| format!("--{option}"));
    let words = ["--name=j"].into_iter().chain(more).map(str::to_owned);
    let words = program[1..].iter().map(ToString::to_string).chain(words);
    let words: Vec<String> = words.chain(options).collect();
    let ended = run_in(folder.path(), program[0], &words);
    assert_eq!(ended.code, 0, "{program:?} {job}: {}", ended.stderr);
    folder
}

/// The requests of a program: file, kind, offset and length of each, files apart.
fn requests(program: &[&str], job: &str) -> Vec<String> {
    let folder = run_job(program, job, ["--write_iolog=log", "--output=result"]);
    let mut lines = Vec::new();
    for entry in std::fs::read_dir(folder.path()).expect("the folder") {
        let entry = entry.expect("an entry");
        if !entry.file_name().to_string_lossy().starts_with("log") {
            continue;
        }
        let log = std::fs::read_to_string(entry.path()).expect("a log");
        // Version 3 has the time in front, and copies of a job share a log.
        lines.extend(log.lines().filter_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let request = &words[words.len().checked_sub(4)?..];
            match request[1] {
                "read" | "write" | "trim" => Some(request.join(" ")),
                "sync" | "datasync" => Some(request[..2].join(" ")),
                _ => None,
            }
        }));
    }
    let copies_are_mixed = job.contains("numjobs");
    if copies_are_mixed {
        lines.sort_by(|a, b| a.split(' ').next().cmp(&b.split(' ').next()));
    }
    lines
}

#[test]
fn requests_come_in_the_order_of_fio() {
    let Some(fio) = ugeom_testkit::program("fio") else { return };
    let fio = fio.to_string_lossy();
    for job in JOBS {
        let fios = requests(&[&fio], job);
        let ours = requests(&[UGEOM, "run"], job);
        let differs = fios.iter().zip(&ours).position(|(fio, ours)| fio != ours);
        let differs = differs.map(|at| (at, &fios[at], &ours[at]));
        assert_eq!((differs, ours.len()), (None, fios.len()), "{job}");
        assert!(fios.len() > 20, "{job}: {}", fios.len());
    }
}

#[test]
fn the_first_request_in_a_zone_behind_the_end_of_a_file_ends_the_job() {
    let Some(fio) = tool("fio") else { return };
    let job = "size=4m rw=randread random_distribution=zoned_abs:60/1m:40/8m";
    let ours = requests(&[UGEOM, "run"], job);
    assert!((1..1024).contains(&ours.len()), "{}", ours.len());
    assert_eq!(ours, requests(&[fio], job));
    let folder = tempfile::tempdir().expect("a folder");
    let distribution = "--random_distribution=zoned_abs:60/1m:40/8m";
    let words = format!("run --name=j --size=4m --rw=randread {distribution}");
    let words = words_of(&words);
    let ended = run_in(folder.path(), UGEOM, &words);
    let expected = "the zones end at byte 9437184 of j.0.0, which has 4194304 bytes";
    assert_eq!(ended.code, 0);
    has(&ended.stderr, &expected);
}

/// The shares of requests at each depth of a job, percent.
fn depths(program: &[&str], job: &str) -> Vec<f64> {
    let more = ["--output-format=json", "--output=result"];
    let folder = run_job(program, job, more);
    let result = std::fs::read_to_string(folder.path().join("result")).expect("a result");
    let json: serde_json::Value = serde_json::from_str(&result).expect("JSON");
    let levels = json["jobs"][0]["iodepth_level"]
        .as_object()
        .expect("depths");
    levels
        .values()
        .map(|share| share.as_f64().expect("a share"))
        .collect()
}

#[test]
fn as_many_requests_are_in_flight_as_by_fio() {
    let Some(fio) = tool("fio") else { return };
    for job in [
        // Blocks are read back at the depth of the job.
        "rw=write size=2m bs=4k ioengine=libaio iodepth=16 direct=1 verify=crc32c",
        "rw=write size=2m bs=4k ioengine=libaio iodepth=8 direct=1 verify=meta verify_backlog=1",
        // A file is closed after its last request has ended, and another one is opened then.
        "rw=read size=2m bs=64k nrfiles=32 openfiles=1 ioengine=libaio iodepth=16 direct=1",
        // Those of a batch count together.
        "rw=read size=2m bs=4k ioengine=libaio iodepth=16 iodepth_batch=8 iodepth_low=8",
        "rw=read size=2m bs=4k ioengine=io_uring direct=1 iodepth=4 iodepth_batch_submit=4 \
         iodepth_batch_complete_min=4",
        // A pause waits for what is in flight, and so does each loop.
        "rw=read size=1m ioengine=libaio direct=1 iodepth=16 thinktime=300 thinktime_blocks=4",
        "rw=read size=1m ioengine=libaio direct=1 iodepth=16 thinktime=300 thinktime_blocks=16",
        "rw=read size=1m ioengine=libaio direct=1 iodepth=16 thinktime=300 thinktime_blocks=4 \
         thinktime_blocks_type=issue",
        "rw=randread size=256k ioengine=libaio direct=1 iodepth=16 loops=5",
    ] {
        let (ours, fios) = (depths(&[UGEOM, "run"], job), depths(&[fio], job));
        let all = ours.iter().zip(&fios);
        let apart = all
            .map(|(ours, fios)| (ours - fios).abs())
            .fold(0.0, f64::max);
        assert!(apart < 5.0, "{job}: {ours:?}, by fio {fios:?}");
    }
}

/// A pause begins when the request before it has ended, however long that takes.
#[test]
fn a_pause_begins_when_requests_in_flight_have_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    for engine in ["--ioengine=psync", "--ioengine=libaio"] {
        let target = "--filename=md:1m | nop:delay=10ms";
        let words = [
            "run",
            "--name=j",
            target,
            "--rw=read",
            "--size=40k",
            "--thinktime=10ms",
            "--output-format=json",
            "--output=result",
            engine,
        ];
        let ended = run_in(folder.path(), UGEOM, &words);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let result = std::fs::read_to_string(folder.path().join("result")).expect("a result");
        let json: serde_json::Value = serde_json::from_str(&result).expect("JSON");
        // Ten requests and nine pauses; the tenth pause is left out.
        let runtime = json["jobs"][0]["read"]["runtime"].as_u64().expect("ms");
        assert!(runtime >= 185, "{engine}: {runtime} ms");
    }
}
