//! Job files and options beside them: `ugeom run` and fio leave the same files behind.

use crate::run::{UGEOM, as_fio, command, files_in, has, run, run_in, run_lines, tool, words_of};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

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
    (ended.code == 0, files_in(folder))
}

const W: &[u8] = b"[w]\nrw=write\nbs=4k\nsize=64k\n";
const COMMENTS: &[u8] = b"; caf\xe9\n[w] # a job\nrw=write # why\nsize=64k;no\nfilename=a#b\n";
const PATTERN: &[u8] = b"[w]\nrw=write\nsize=64k\nbuffer_pattern='w.fio'\n";
const PUBLIC: &[u8] =
    b"[global-all]\nrw=write\n[w]G\nname=other\nsize=64k // all\nper_job_logs=0/1\n\
                        bs=4k-8k\ntime_based\n";
const GLOBAL: &[u8] = b"[global]\nsize=128k\n[v]\nrw=write\n";

#[test]
fn options_beside_job_files_leave_the_files_that_fio_leaves() {
    let Some(fio) = ugeom_testkit::program("fio") else { return };
    let fio = std::path::Path::new(&fio).to_str().expect("UTF-8");
    let files = [
        ("w.fio", W),
        ("comments.fio", COMMENTS),
        ("pattern.fio", PATTERN),
        ("global.fio", GLOBAL),
        ("public.fio", PUBLIC),
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
        ("public.fio", b""),
        (
            "--name=y --rw=write --size=4k comments.fio --section=w",
            b"",
        ),
        ("--bs=q w.fio", b""),
        ("--readonly w.fio", b""),
        (
            "--readonly --name=r --rw=read --size=8k --filename=new",
            b"",
        ),
        (
            "--readonly --name=r --rw=read --size=1m --filename=safe.dat",
            b"",
        ),
        ("--sync=dsync --overwrite=1 w.fio", b""),
        ("missing.fio", b""),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let (theirs, ours) = (folder(&files), folder(&files));
        let theirs = left(&[fio], theirs.path(), &words, input);
        let ours = left(&[UGEOM, "run"], ours.path(), &words, input);
        assert_eq!(theirs, ours, "{line}");
    }
}

/// The advice that a program gives about its file, after that of laying it out.
fn advice(strace: &str, program: &[&str], job: &str) -> Vec<String> {
    let folder = folder(&[("f", &[1; 65536])]);
    let traced = ["-f", "-qq", "-e", "trace=fadvise64", "-o", "trace"];
    let words = format!("--name=x --filename=f --size=64k {job}");
    let words: Vec<&str> = words.split(' ').collect();
    let (done, _) = left(
        &[strace],
        folder.path(),
        &[&traced[..], program, &words].concat(),
        b"",
    );
    assert!(done, "{program:?} {job}");
    let trace = std::fs::read_to_string(folder.path().join("trace")).expect("a trace");
    let advice = trace.split(|c: char| !c.is_ascii_uppercase() && c != '_');
    let advice = advice.filter(|word| word.starts_with("POSIX_FADV"));
    advice.map(ToOwned::to_owned).collect()
}

#[test]
fn the_kernel_gets_the_advice_that_fio_gives() {
    let Some(strace) = tool("strace") else { return };
    let lines = [
        "--rw=read",
        "--rw=randread",
        "--rw=randwrite --invalidate=0",
        "--rw=randread --fadvise_hint=0",
        "--rw=randread --fadvise_hint=sequential",
        "--rw=read --fadvise_hint=random --ioengine=io_uring",
    ];
    as_fio(&lines, |program, job| advice(strace, program, job));
}

/// The bytes read by all threads of a process so far.
fn bytes_read(id: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{id}/io")).expect("its counters");
    let read = text.lines().find_map(|line| line.strip_prefix("rchar: "));
    read.and_then(|bytes| bytes.parse().ok()).expect("a number")
}

/// A job that runs until a signal ends it; its exit code, and the result that it wrote.
fn signalled(program: &[&str], signal: &str) -> (i32, String) {
    let folder = folder(&[]);
    let job = "--thread --name=x --filename=f --size=64k --rw=read --time_based --runtime=1000 \
               --output=result --name=y --filename=g --stonewall --rw=write --size=4k";
    let words: Vec<&str> = job.split_whitespace().collect();
    let mut command = command(program[0], &[&program[1..], &words].concat());
    command.current_dir(folder.path());
    let child = command.spawn().expect("a program");
    crate::run::wait_until_it_listens(&child);
    // More than it reads for anything but the job.
    while bytes_read(child.id()) < 16 << 20 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    crate::run::other("kill", &[signal, &child.id().to_string()]);
    let ended = crate::run::end(child);
    let result = std::fs::read_to_string(folder.path().join("result")).expect("a result");
    (ended.code, result)
}

#[test]
fn signals_end_jobs_with_the_exit_code_of_fio_and_keep_the_results() {
    if let Some(fio) = ugeom_testkit::program("fio") {
        let fio = Path::new(&fio).to_str().expect("UTF-8");
        assert_eq!(signalled(&[fio], "-INT").0, 128);
    }
    for signal in ["-INT", "-TERM", "-HUP"] {
        let (code, result) = signalled(&[UGEOM, "run"], signal);
        assert_eq!(code, 128, "{signal}: {result}");
        assert!(result.contains("READ: bw="), "{signal}: {result}");
        assert!(!result.contains("WRITE: bw="), "{signal}: {result}");
        // As by fio, the group of the job that did not begin is there, too.
        assert!(result.contains("Run status group 1"), "{signal}: {result}");
    }
}

/// The kinds of latencies that a program reports samples of, and whether it has shares of them.
fn reported(program: &[&str], job: &str) -> Vec<String> {
    let folder = folder(&[("f", &[1; 65536])]);
    let line = format!("--name=x --filename=f --size=64k --rw=read --ioengine=libaio {job}");
    let ended = run_lines(program, &folder, &[&line]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let text = ended.text();
    let first = text
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let mut kinds: Vec<String> = first
        .filter(|word| ["slat", "clat", "lat"].contains(word))
        .map(ToOwned::to_owned)
        .collect();
    kinds.sort();
    // How many lines of shares there are depends on how fast the machine is.
    kinds.dedup();
    kinds
}

#[test]
fn what_is_not_to_be_measured_is_not_reported() {
    let Some(fio) = tool("fio") else { return };
    for (job, expected) in [
        ("--disable_slat=0", &["clat", "lat", "slat"][..]),
        ("--disable_slat=1", &["clat", "lat"]),
        ("--disable_clat=1", &["lat", "slat"]),
        ("--disable_lat=1", &["clat", "lat", "slat"]),
        ("--gtod_reduce=1", &[]),
    ] {
        assert_eq!(reported(&[fio], job), expected, "fio {job}");
        assert_eq!(reported(&[UGEOM, "run"], job), expected, "{job}");
    }
}

/// The logs that a job leaves, and whether there is something in them.
fn logged(program: &[&str], option: &str) -> Vec<String> {
    let folder = folder(&[]);
    let job = "--name=j --rw=write --size=64k --write_bw_log=l --write_lat_log=l --output=l";
    let words: Vec<&str> = job.split(' ').chain([option]).collect();
    let (done, files) = left(program, folder.path(), &words, b"");
    assert!(done, "{program:?} {option}");
    let logs = files.iter().filter_map(|file| file.split_once(".1.log "));
    logs.map(|(name, bytes)| format!("{name} {}", bytes != "0"))
        .collect()
}

#[test]
fn what_is_not_to_be_measured_is_not_logged() {
    let lines = words_of(
        "--stats=1 --disable_slat=1 --disable_clat=1 --disable_lat=1 --disable_bw_measurement=1 \
         --gtod_reduce=1",
    );
    as_fio(&lines, logged);
}

#[test]
fn exitall_ends_the_jobs_beside() {
    let folder = folder(&[("f", &[1; 65536])]);
    for (of_all, of_the_other) in [("--exitall", ""), ("", "--exitall")] {
        let line = format!(
            "run {of_all} --name=a --filename=f --size=64k --rw=read --name=b {of_the_other} \
             --filename=f --size=64k --rw=read --time_based --runtime=1000"
        );
        let words: Vec<&str> = line.split_whitespace().collect();
        // Without exitall it would hang, which `run` finds.
        assert_eq!(run_in(folder.path(), UGEOM, &words).code, 0);
    }
}

#[test]
fn options_of_files_are_not_ignored_silently_by_stacks() {
    let line = "run --name=a --filename=md:64k --rw=write --sync=1 --fadvise_hint=0";
    let words: Vec<&str> = line.split(' ').collect();
    let ended = crate::run::ugeom(&words);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    for option in ["sync", "fadvise_hint"] {
        let warning = format!("{option} has no effect: `md:64k` is a stack");
        has(&ended.stderr, &warning);
    }
}

/// A log of histograms has the lines of fio's: a time, a direction, a size and a count for each
/// group of bins, of the requests of that window.
#[test]
fn histograms_are_logged_as_fio_logs_them() {
    let Some(fio) = tool("fio") else { return };
    let folder = folder(&[("f", &[7; 1 << 20])]);
    for (program, prefix) in [(&[fio][..], "fio"), (&[UGEOM, "run"], "ours")] {
        let log = format!("--write_hist_log={prefix}");
        let words = format!(
            "--name=h --rw=randread --filename=f --time_based --runtime=1 {log} \
             --log_hist_msec=150 --log_hist_coarseness=4 --rate_iops=200"
        );
        let words = words_of(&words);
        assert!(left(program, folder.path(), &words, b"").0);
        let log = folder.path().join(format!("{prefix}_clat_hist.1.log"));
        let log = std::fs::read_to_string(log).expect("a log");
        let number = |field: &str| field.trim().parse::<u64>().expect("a number");
        let lines: Vec<Vec<u64>> = log
            .lines()
            .map(|line| line.split(',').map(number).collect())
            .collect();
        // A machine that stands still for a window has no request in it.
        let counted: u64 = lines.iter().flat_map(|line| &line[3..]).sum();
        assert!(counted > 0, "{log}");
        for line in lines {
            assert_eq!((line[1], line[2], line.len()), (0, 4096, 3 + 1856 / 16));
        }
    }
}

/// Reads behind the end of a file that a job makes as it goes: fio's asynchronous engines let them
/// pass, its synchronous ones fail.
#[test]
fn reads_behind_the_end_of_a_new_file_end_as_in_fio() {
    let Some(fio) = tool("fio") else { return };
    for (engine, more, passes) in [
        ("libaio", "--iodepth=16", true),
        ("libaio", "--verify=crc32c", true),
        ("psync", "--iodepth=1", false),
    ] {
        let engine = format!("--ioengine={engine}");
        let words = format!(
            "--name=v --rw=randrw --size=1m --create_on_open=1 --fallocate=none --filename=new \
             {engine} {more}"
        );
        let words = words_of(&words);
        for program in [&[fio][..], &[UGEOM, "run"]] {
            let folder = folder(&[]);
            let (passed, _) = left(program, folder.path(), &words, b"");
            assert_eq!(passed, passes, "{program:?} {words:?}");
        }
    }
}

/// Writers that exclude each other leave whole writes, whatever their sizes.
#[test]
fn jobs_that_lock_their_file_end() {
    let folder = folder(&[]);
    for mode in ["exclusive", "readwrite"] {
        let mode = format!("--lockfile={mode}");
        for engine in ["--ioengine=psync", "--ioengine=libaio"] {
            let words = format!(
                "--rw=randrw --bs=4k --size=256k --filename=shared --iodepth=8 --numjobs=4 \
                 --loops=3 --name=l {engine} {mode}"
            );
            let words = words_of(&words);
            assert!(left(&[UGEOM, "run"], folder.path(), &words, b"").0);
        }
    }
}

/// How many requests a program made, and the files that it left.
fn made(program: &[&str], job: &str) -> (String, Vec<String>) {
    let folder = folder(&[]);
    let ended = run_lines(program, &folder, &["--name=j", job]);
    let text = ended.text();
    let issued = text.lines().find(|line| line.contains("issued rwts"));
    let issued = issued.unwrap_or_else(|| panic!("{job}: {text}{}", ended.stderr));
    (issued.trim().to_owned(), files_in(folder.path()))
}

#[test]
fn loops_shares_and_syncs_make_as_many_requests_as_in_fio() {
    let lines = [
        "--rw=randwrite --size=1m --number_ios=10 --loops=3",
        "--rw=write --size=64k --fsync=4",
        "--rw=write --size=64k --fsync=4 --number_ios=8",
        "--rw=randwrite --size=50% --filesize=1m",
        "--rw=write --size=1m --io_size=300k",
        "--rw=write --size=1m --zonemode=strided --zonesize=64k --zoneskip=64k",
        "--rw=randwrite --nrfiles=3 --size=999k",
        "--rw=randwrite --size=1m --blockalign=16k",
        "--rw=read --size=1m --nrfiles=10",
        "--rw=read --size=1m --nrfiles=10 --loops=2",
        "--rw=read --size=10k --loops=3",
        "--rw=rw --size=1m --nrfiles=10 --rwmixread=100",
        "--rw=read --size=1m --io_size=10k",
        "--rw=randread --size=1m --io_size=10k --norandommap",
        "--rw=randwrite --size=256k --loops=8 --verify=md5 --experimental_verify=1 \
         --verify_state_save=0",
        "--rw=write --size=256k --loops=2 --verify=md5 --experimental_verify=1 \
         --verify_state_save=0",
        "--rw=randrw --rwmixread=0 --size=256k --loops=3 --verify=md5 --experimental_verify=1 \
         --verify_state_save=0",
    ];
    as_fio(&lines, made);
}

/// The kind of a line of output: terse fields, JSON, or the report of a job.
fn parts(program: &[&str], options: &str) -> Vec<(String, usize)> {
    let folder = folder(&[]);
    let job = "--name=j --rw=write --size=64k";
    let text = run_lines(program, &folder, &[options, job]).text();
    let part = |line: &str| {
        let fields: Vec<&str> = line.split(';').collect();
        match line {
            "{" => Some(("json".to_owned(), 0)),
            line if line.starts_with("j: (groupid") => Some(("normal".to_owned(), 0)),
            // Disks follow, of which there may be any number.
            _ if fields.len() > 20 && fields[0] != "2" => Some((fields[..3].join(";"), 0)),
            _ if fields.len() > 1 && !line.starts_with(' ') => {
                Some((fields[..2].join(";"), fields.len()))
            }
            _ => None,
        }
    };
    let parts: Vec<_> = text.lines().filter_map(part).collect();
    assert!(!parts.is_empty(), "{program:?} {options}");
    parts
}

#[test]
fn formats_come_in_the_order_of_fio_and_terse_has_its_versions() {
    let lines = [
        "--output-format=normal,json,terse",
        "--output-format=json,terse",
        "--output-format=json,json+,normal",
        "--output-format=json --append-terse",
        "--output-format=terse --output-format=json",
        "--minimal --output-format=json --max-jobs=x",
        "--output-format=json,csv --minimal",
        "--minimal --terse-version=2",
        "--minimal --terse-version=2 --description=why",
        "--minimal --terse-version=2 --continue_on_error=all",
        "--minimal --terse-version=5",
    ];
    as_fio(&lines, parts);
}

/// The offsets in a log of requests.
fn places(program: &[&str], job: &str) -> Vec<String> {
    let folder = folder(&[]);
    let log = "--name=j --write_iops_log=j --log_offset=1 --ioengine=null --rw=read --bs=8k";
    let ended = run_lines(program, &folder, &[log, job]);
    let log = std::fs::read_to_string(folder.path().join("j_iops.1.log"));
    let log = log.unwrap_or_else(|error| panic!("{job}: {error}: {}", ended.stderr));
    let offset = |line: &str| line.split(',').nth(4).map(|text| text.trim().to_owned());
    log.lines().filter_map(offset).collect()
}

#[test]
fn each_program_prints_the_compressed_logs_of_the_other() {
    let Some(fio) = tool("fio") else { return };
    let programs = [&[UGEOM, "run"][..], &[fio]];
    for columns in ["", "--log_offset=1", "--log_offset=1 --log_prio=1 --prio=3"] {
        for program in programs {
            let folder = folder(&[]);
            let log = "--log_store_compressed=1 --log_compression=4k --write_bw_log=l";
            let job =
                "--name=j --ioengine=null --rw=randrw --bs=4k-64k --size=64m --write_lat_log=l";
            run_lines(program, &folder, &[job, log, columns]);
            for part in ["bw", "clat", "slat"] {
                let inflate = format!("--inflate-log=l_{part}.1.log.fz");
                let texts = programs.map(|by| run_lines(by, &folder, &[&inflate]).stdout);
                assert_eq!(texts[0], texts[1], "{program:?} {columns} {part}");
                assert_eq!(texts[0].is_empty(), part == "slat", "{program:?} {part}");
            }
        }
    }
    let folder = folder(&[("log", b"0, 1, 0, 4096, 0\n")]);
    let refused = run_lines(programs[0], &folder, &["--inflate-log=log"]);
    assert_eq!(refused.code, 1);
    has(&refused.stderr, "ugeom: log: no compressed log of fio");
}

#[test]
fn times_in_logs_are_those_of_the_clock_that_is_asked_for() {
    let lines = [
        "--log_unix_epoch=0",
        "--log_unix_epoch=1",
        "--log_alternate_epoch=1",
        "--log_alternate_epoch=1 --log_alternate_epoch_clock_id=1",
        "--log_unix_epoch=1 --log_alternate_epoch_clock_id=3",
        "--log_alternate_epoch_clock_id=1",
    ];
    as_fio(&lines, |program, line| {
        let folder = folder(&[]);
        let job = "--name=j --ioengine=null --rw=read --bs=4k --size=4k --write_iops_log=l";
        run_lines(program, &folder, &[job, line]);
        let log = std::fs::read_to_string(folder.path().join("l_iops.1.log")).expect("a log");
        let time_ms: u64 = log.split(',').next().expect("a field").parse().expect("ms");
        let since_1970 = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("a time");
        let uptime = std::fs::read_to_string("/proc/uptime").expect("the uptime");
        let uptime_s = uptime.split('.').next().expect("s").parse::<u64>();
        let clocks = [
            0,
            uptime_s.expect("s") * 1000,
            since_1970.as_millis() as u64,
        ];
        // The beginning that is nearest: of the job, of the machine, 1970.
        (0..3).min_by_key(|clock| clocks[*clock].abs_diff(time_ms))
    });
}

#[test]
fn the_null_engine_begins_at_the_offset_as_in_fio() {
    let lines = [
        "--size=64k --filesize=64k --offset=32k",
        "--size=64k --offset=32k",
        "--size=64k --io_size=64k --filesize=64k --offset=32k",
        "--size=64k --offset=50%",
        "--size=64k --filesize=64k --offset=32k --zonemode=strided --zonesize=8k --zonerange=16k",
    ];
    as_fio(&lines, places);
}

#[test]
fn engines_are_described_or_refused() {
    let folder = folder(&[]);
    for (engine, code, said) in [
        ("libaio", 0, "cmdprio_percentage"),
        ("libaio,cmdprio", 0, "level of the priority"),
        ("libaio,hipri", 1, "libaio has no option `hipri`"),
        ("nope", 1, "nope"),
    ] {
        let ended = run_in(
            folder.path(),
            UGEOM,
            &["run", &format!("--enghelp={engine}")],
        );
        let all = ended.text() + &ended.stderr;
        assert!(all.contains(said), "{engine}: {all}");
        assert_eq!(ended.code, code, "{engine}: {all}");
    }
}

/// Wrong usage is 1, and jobs that failed are counted.
#[test]
fn exit_codes_are_those_of_fio() {
    let Some(fio) = tool("fio") else { return };
    let unwritten = "--filename=f --size=64k --rw=read --verify=crc32c --name=v";
    for (line, expected) in [
        ("--name=a --filename=f --rw=read", 0),
        ("--name=a --bs=q", 1),
        ("--name=a --no-such-option=1", 1),
        ("missing.fio", 1),
        ("--name=a --readonly --rw=write --size=4k", 1),
        ("--name=a --readonly --rw=read --filename=f --size=1m", 1),
        (unwritten, 1),
        (&format!("--numjobs=2 {unwritten}"), 2),
        (&format!("--numjobs=3 {unwritten}"), 3),
        (&format!("{unwritten} --name=w --verify=0"), 1),
    ] {
        for program in [&[fio][..], &[UGEOM, "run"]] {
            let folder = folder(&[("f", &[1; 65536])]);
            let ended = run_lines(program, &folder, &[line]);
            assert_eq!(ended.code, expected, "{program:?} {line}: {}", ended.stderr);
        }
    }
}

#[test]
fn logs_and_outputs_of_a_job_are_not_written_over_a_disk() {
    let folder = folder(&[]);
    let (at, disk) = (|name: &str| folder.path().join(name), "disk.img");
    let image = std::fs::File::create(at(disk)).expect("an image");
    image.set_len(1 << 20).expect("its size");
    let created = crate::run::ugeom(&["part", "create", "-s", "gpt", &at(disk).to_string_lossy()]);
    assert_eq!(created.code, 0, "{}", created.stderr);
    let before = std::fs::read(at(disk)).expect("the image");
    for (option, written) in [
        ("--write_iolog=x.img", "x.img"),
        ("--write_bw_log=x", "x_bw.1.log"),
        ("--exec_prerun=true", "x.prerun.txt"),
    ] {
        std::fs::write(at(written), &before).expect("a copy");
        let job = format!("run --name=x --filename=r.bin --size=64k --rw=write {option}");
        let job = words_of(&job);
        let ended = run_in(folder.path(), UGEOM, &job);
        let said = &ended.stderr;
        assert!(
            ended.code == 1 && said.contains("it carries a GPT"),
            "{option}: {said}"
        );
        assert!(
            std::fs::read(at(written)).expect("the copy") == before,
            "{option}"
        );
    }
}
