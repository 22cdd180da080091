//! Options of the program, and permissions of a job: the same files and exit codes from `ugeom run`
//! and fio.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::run::{UGEOM, as_fio, json_in, json_of, run_in, run_lines, succeeds, tool};
use ugeom_testkit::{begins, has};

/// The names of the files in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// A block with a wrong byte is written to files of the same names by both programs.
fn wrong_block_is_dumped(at: usize, name: &str) {
    let Some(fio) = tool("fio") else { return };
    let both = [&[fio, "--thread"][..], &[UGEOM, "run"][..]].map(|program| {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let aux = folder.join("aux");
        std::fs::create_dir(&aux).expect("a folder");
        let job = "--name=a --filename=f --size=16k --verify=crc32c --verify_dump=1";
        let write = format!("{job} --rw=write --do_verify=0");
        assert!(succeeds(program, folder, &write), "{program:?}");
        let mut bytes = std::fs::read(folder.join("f")).expect("the file");
        bytes[at] ^= 1;
        std::fs::write(folder.join("f"), bytes).expect("the file");
        let read = format!("{job} --rw=read --aux-path=aux --output=o");
        assert!(!succeeds(program, folder, &read), "{program:?}");
        let block = std::fs::read(aux.join(name)).expect("the wrong block");
        (names(&aux), names(folder), block.len())
    });
    assert_eq!(both[1], both[0]);
}

#[test]
fn wrong_blocks_are_written_to_the_folder_of_aux_path() {
    wrong_block_is_dumped(5000, "f.4096.received");
}

/// Byte 4112 is in the header of the second block.
#[test]
fn a_block_with_a_wrong_header_is_written_to_fios_file() {
    wrong_block_is_dumped(4112, "f.4096.hdr_fail");
}

#[test]
fn the_bandwidth_of_all_jobs_is_logged_to_the_files_of_fio() {
    let Some(fio) = tool("fio") else { return };
    let job = "--name=a --rw=read --ioengine=null --size=1g --rate=64m --time_based --runtime=2 \
               --bandwidth-log --output=o";
    let folders = [&[fio, "--thread"][..], &[UGEOM, "run"][..]].map(|program| {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(succeeds(program, folder.path(), job), "{program:?}");
        folder
    });
    assert_eq!(names(folders[1].path()), names(folders[0].path()));
    let log = |kind: &str| {
        let path = folders[1].path().join(format!("agg-{kind}_bw.log"));
        let text = std::fs::read_to_string(path).expect("a log");
        let number = |text: &str| text.trim().parse::<u64>().expect("a number");
        let lines = text
            .lines()
            .map(|line| line.split(',').map(number).collect());
        lines.collect::<Vec<Vec<u64>>>()
    };
    for (kind, name) in ["read", "write", "trim"].iter().enumerate() {
        let lines = log(name);
        assert!(lines.len() >= 2, "{lines:?}");
        for line in &lines {
            assert_eq!((line.len(), &line[2..]), (5, &[kind as u64, 0, 0][..]));
        }
        let most = lines.iter().map(|line| line[1]).max().expect("a line");
        // Of 64 MiB a second a part may fall into the next interval.
        let expected = if kind == 0 {
            16 << 10..=128 << 10
        } else {
            0..=0
        };
        assert!(expected.contains(&most), "{lines:?}");
    }
}

#[test]
fn a_job_opens_its_files_as_its_user_and_group() {
    let Some(fio) = tool("fio") else { return };
    if !rustix::process::geteuid().is_root() {
        return ugeom_testkit::skip("needs root");
    }
    for job in ["--create_on_open=1", "--create_on_open=0"] {
        let both = [fio, UGEOM].map(|program| {
            let folder = tempfile::tempdir().expect("a folder");
            let folder = folder.path();
            let open = std::fs::Permissions::from_mode(0o777);
            std::fs::set_permissions(folder, open).expect("permissions");
            let words = if program == UGEOM {
                &[program, "run"][..]
            } else {
                &[program]
            };
            let line =
                format!("--name=a --filename=f --rw=write --size=16k --uid=1234 --gid=1235 {job}");
            let succeeded = succeeds(words, folder, &line);
            let file = std::fs::metadata(folder.join("f")).expect("the file");
            (succeeded, file.uid(), file.gid())
        });
        assert_eq!(both[1], both[0], "{job}");
    }
}

#[test]
fn a_job_that_cannot_open_its_files_leaves_the_results_of_the_others() {
    let Some(fio) = tool("fio") else { return };
    if !rustix::process::geteuid().is_root() {
        return ugeom_testkit::skip("needs root");
    }
    let job = "--output-format=json --output=o --size=16k --rw=read --name=a --name=b --uid=1234 \
               --filename=secret --name=c --stonewall";
    let both = [&[fio][..], &[UGEOM, "run"]].map(|program| {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let secret = folder.join("secret");
        std::fs::write(&secret, vec![1; 16384]).expect("a file");
        let closed = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&secret, closed).expect("permissions");
        assert!(!succeeds(program, folder, job), "{program:?}");
        let text = std::fs::read_to_string(folder.join("o")).expect("a report");
        let report = json_in(&text);
        let of = |job: &serde_json::Value| (job["error"].clone(), job["read"]["io_bytes"].clone());
        let jobs = report["jobs"].as_array().expect("jobs").iter();
        jobs.map(of).collect::<Vec<_>>()
    });
    assert_eq!(both[1], both[0]);
}

#[test]
fn the_whole_report_comes_at_each_status_interval() {
    let Some(fio) = tool("fio") else { return };
    let job = "--output-format=json --output=o --status-interval=1 --ioengine=null --size=1g \
               --runtime=2500ms --time_based --name=a --rw=randrw --iodepth=4 --rate=8m \
               --name=b --rw=read --stonewall";
    for program in [&[fio, "--thread"][..], &[UGEOM, "run"][..]] {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(succeeds(program, folder.path(), job), "{program:?}");
        let text = std::fs::read_to_string(folder.path().join("o")).expect("reports");
        let json = text.find('{').map_or("", |at| &text[at..]);
        let reports = serde_json::Deserializer::from_str(json).into_iter::<serde_json::Value>();
        let reports: Vec<_> = reports.map(|report| report.expect("JSON")).collect();
        assert!(reports.len() >= 4, "{program:?}: {}", reports.len());
        let count = |report: &serde_json::Value, job: usize, key: &str| {
            report["jobs"][job]["read"][key].as_u64().unwrap_or(0)
        };
        // Of the first job in the first second, and of both in the end.
        let (first, last) = (&reports[0], &reports[reports.len() - 1]);
        assert!(count(first, 0, "total_ios") > 0, "{program:?}");
        assert!(count(first, 0, "total_ios") < count(last, 0, "total_ios"));
        assert!(
            (500..2000).contains(&count(first, 0, "runtime")),
            "{program:?}"
        );
        assert_eq!(count(first, 1, "total_ios"), 0, "{program:?}");
        assert!(count(last, 1, "total_ios") > 0, "{program:?}");
        let before = &reports[reports.len() - 2];
        assert_eq!(count(before, 0, "total_ios"), count(last, 0, "total_ios"));
    }
}

/// The exit code is the number of jobs that could not begin.
#[test]
fn a_job_that_cannot_begin_is_reported_and_the_others_run() {
    let Some(fio) = tool("fio") else { return };
    let jobs = "[no-size]\nrw=write\nfilename=missing\n\
                [runs]\nrw=write\nsize=16k\n\
                [offset]\nrw=read\nfilename=there\noffset=1m\n\
                [folder]\nrw=write\nfilename=folder\nsize=4k\n\
                [after]\nstonewall\nrw=read\nsize=8k\n\
                [also-no-size]\nrw=read\n";
    let both = [&[fio, "--thread"][..], &[UGEOM, "run"][..]].map(|program| {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        std::fs::write(folder.join("jobs.fio"), jobs).expect("a job file");
        std::fs::write(folder.join("there"), [0; 4096]).expect("a file");
        std::fs::create_dir(folder.join("folder")).expect("a folder");
        let line = "jobs.fio --output-format=json --output=o";
        let ended = run_lines(program, folder, &[line]);
        let json = json_in(&std::fs::read_to_string(folder.join("o")).expect("a report"));
        let jobs = json["jobs"].as_array().expect("jobs").iter().map(|job| {
            let bytes = ["read", "write"].map(|kind| job[kind]["io_bytes"].as_u64());
            (job["jobname"].to_string(), job["error"].as_i64(), bytes)
        });
        (ended.code, names(folder), jobs.collect::<Vec<_>>())
    });
    assert_eq!(both[1], both[0]);
    assert_eq!(both[1].0, 4);
}

#[test]
fn idle_prof_reports_the_processors_as_fio_does() {
    let Some(fio) = tool("fio") else { return };
    let idleness = |program: &[&str], words: &[&str]| {
        let folder = tempfile::tempdir().expect("a folder");
        let job = [
            "--name=j",
            "--size=1m",
            "--output=result",
            "--output-format=json,normal",
        ];
        let ended = run_in(
            folder.path(),
            program[0],
            &[&program[1..], &job, words].concat(),
        );
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let result = std::fs::read_to_string(folder.path().join("result")).expect("a result");
        assert!(result.contains("CPU idleness:\n  system: "), "{result}");
        let json = &result[result.find('{').expect("JSON")..];
        let mut stream = serde_json::Deserializer::from_str(json).into_iter();
        let json: serde_json::Value = stream.next().expect("a value").expect("JSON");
        let shares = json["cpu_idleness"].as_object().expect("shares").clone();
        let percent = |share: &serde_json::Value| (0.0..=100.0).contains(&share.as_f64().unwrap());
        let of_work = |name: &str| name.starts_with("unit_");
        let names = shares.iter().filter(|(name, _)| !of_work(name));
        let ours = program[0] == UGEOM;
        let names = names.inspect(|(_, share)| assert!(!ours || percent(share), "{json}"));
        let mut names: Vec<String> = names.map(|(name, _)| name.clone()).collect();
        names.sort();
        names
    };
    for what in ["system", "percpu"] {
        let words = [format!("--idle-prof={what}")];
        let words = words.each_ref().map(String::as_str);
        let ours = idleness(&[UGEOM, "run"], &words);
        assert_eq!(ours, idleness(&[fio], &words), "{what}");
        assert!(ours.contains(&"system".to_owned()), "{ours:?}");
    }
}

/// The jobs would take ten seconds.
#[test]
fn a_result_that_cannot_be_written_is_refused_before_the_jobs_run() {
    let Some(fio) = tool("fio") else { return };
    let job = "--name=a --rw=write --size=16k --time_based --runtime=10 --output=gone/o";
    for program in [&[fio, "--thread"][..], &[UGEOM, "run"][..]] {
        let folder = tempfile::tempdir().expect("a folder");
        let began = Instant::now();
        let ended = run_lines(program, folder.path(), &[job]);
        assert_eq!((ended.code, names(folder.path())), (1, vec![]));
        assert!(began.elapsed().as_secs() < 8, "{program:?}");
    }
}

/// Programs that follow the file see each report when it is made.
#[test]
fn reports_are_in_the_file_while_jobs_run() {
    let Some(fio) = tool("fio") else { return };
    for program in [&[fio, "--thread"][..], &[UGEOM, "run"][..]] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("o");
        // The second job asks what is there after two seconds of the first.
        let job = "--status-interval=500ms --output=o --ioengine=null --size=1g --rw=read \
                   --rate=1m --time_based --runtime=2 --name=a --name=b --stonewall \
                   --exec_prerun=cp${IFS}o${IFS}seen";
        let ended = run_lines(program, folder.path(), &[job]);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let count = |path: &Path| {
            let text = std::fs::read_to_string(path).expect("a file");
            text.matches("a: (groupid=0").count()
        };
        let (seen, all) = (count(&folder.path().join("seen")), count(&file));
        assert!(seen >= 1 && seen < all, "{program:?}: {seen} of {all}");
    }
}

#[test]
fn warnings_are_in_the_file_of_the_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let job = "--name=a --ioengine=null --size=16k --iodepth=4 --bsrange=512/25:1k:25 --output=o";
    let result = |format: &str| {
        let line = format!("{job} --output-format={format}");
        let ended = run_lines(&[UGEOM, "run"], folder.path(), &[&line]);
        let text = std::fs::read_to_string(folder.path().join("o")).expect("a result");
        (ended.code, ended.stderr, text)
    };
    let (code, stderr, text) = result("normal");
    assert_eq!((code, stderr.as_str()), (0, ""));
    begins(&text, "warning: --bsrange=512/25:1k:25: ");
    let (code, stderr, text) = result("json");
    assert_eq!((code, stderr.as_str()), (0, ""));
    let warnings = json_of(&text)["warnings"].to_string();
    has(&warnings, "only `512-1k` is read, as by fio");
    // Terse lines have no room for them.
    let (code, stderr, text) = result("terse");
    assert!(
        code == 0 && stderr.contains("only `512-1k` is read"),
        "{stderr}"
    );
    assert!(text.starts_with("3;fio-"), "{text}");
}

#[test]
fn triggers_end_the_jobs_and_run_a_command_as_in_fio() {
    let Some(fio) = tool("fio") else { return };
    let job = "--rw=randwrite --bs=4k --size=1m --rate_iops=20 --verify=crc32c --name=a --name=b \
               --name=c --stonewall --output-format=json --output=o";
    let both = [&[fio][..], &[UGEOM, "run"][..]].map(|program| {
        ["--trigger-timeout=1", "--trigger-file=sign"].map(|trigger| {
            let folder = tempfile::tempdir().expect("a folder");
            let folder = folder.path();
            let words: Vec<&str> = job.split_whitespace().collect();
            let words = [&program[1..], &words, &[trigger]].concat();
            let words = [&words[..], &["--trigger=ls *.state > states; exit 3"]].concat();
            let began = Instant::now();
            let ended = std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_secs(1));
                    std::fs::write(folder.join("sign"), "").expect("a file");
                });
                run_in(folder, program[0], &words)
            });
            assert!(began.elapsed().as_secs() < 8, "{program:?}");
            let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a file");
            let reads = &json_in(&read("o"))["jobs"][0]["read"]["total_ios"];
            let has_sign = trigger.ends_with("sign") && folder.join("sign").exists();
            let states: Vec<String> = read("states").lines().take(2).map(str::to_owned).collect();
            (ended.code, reads.as_u64(), has_sign, states)
        })
    });
    assert_eq!(both[1], both[0]);
    let (code, reads, ..) = both[1][0];
    assert_eq!((code, reads), (0, Some(0)));
}

/// A write of a later turn may not reach a block while it is read back.
#[test]
fn a_block_is_not_read_back_while_it_is_written_again() {
    let job = "--name=a --rw=randrw --iodepth=8 --bs=16k --size=2m --rwmixread=10 \
               --random_distribution=pareto:0.3 --verify=crc32c --verify_backlog=1 \
               --verify_backlog_batch=10 --output=o --ioengine=";
    let folder = tempfile::tempdir().expect("a folder");
    for engine in ["posixaio", "guasi", "libaio", "io_uring"] {
        for _ in 0..3 {
            let ended = run_lines(&[UGEOM, "run"], folder.path(), &[&format!("{job}{engine}")]);
            assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{engine}");
        }
    }
}

/// Who wins where two writes of a place are in flight is open, and fio's check fails then, too.
#[test]
fn a_place_to_be_verified_is_not_written_twice_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    for places in [
        "--size=64k --io_size=4m --norandommap --bs=4k",
        "--size=256k --percentage_random=50 --bs=4k --loops=4",
        "--size=1m --random_distribution=zipf:1.2 --bsrange=4k-64k",
    ] {
        let job = "--name=a --rw=randwrite --ioengine=guasi --iodepth=32 --verify=crc32c";
        for _ in 0..3 {
            let ended = run_lines(&[UGEOM, "run"], folder.path(), &[job, places, "--output=o"]);
            assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{places}");
        }
    }
}

/// The threads that write to files.
fn writers(strace: &str, program: &[&str], line: &str) -> usize {
    let folder = tempfile::tempdir().expect("a folder");
    let traced = ["-f", "-e", "trace=pwrite64", "-o", "calls"];
    let program = [&[strace][..], &traced, program].concat();
    let ended = run_lines(&program, folder.path(), &[line]);
    assert_eq!(ended.code, 0, "{program:?} {line}: {}", ended.stderr);
    let text = std::fs::read_to_string(folder.path().join("calls")).expect("calls");
    let writes = text.lines().filter(|line| line.contains("pwrite64("));
    let threads = writes.filter_map(|line| line.split_whitespace().next());
    threads.collect::<std::collections::BTreeSet<_>>().len()
}

#[test]
fn posix_requests_of_a_file_are_made_one_at_a_time_as_by_glibc() {
    let Some(strace) = tool("strace") else { return };
    as_fio(
        &["--name=a --rw=randwrite --ioengine=posixaio --iodepth=8 --size=1m --output=o"],
        |program, line| writers(strace, program, line),
    );
}

/// fio has no memory for it, either.
#[test]
fn a_job_without_memory_for_its_map_fails_alone() {
    let job = "--ioengine=null --size=4096p --number_ios=9 --output-format=json --output=o \
               --name=a --rw=randread --name=b --rw=read --name=c --rw=randread --norandommap";
    let folder = tempfile::tempdir().expect("a folder");
    let ended = run_lines(&[UGEOM, "run"], folder.path(), &[job]);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let said = "ugeom: a: allocating the map of its blocks (norandommap needs none): ";
    assert!(ended.stderr.starts_with(said), "{}", ended.stderr);
    let json = std::fs::read_to_string(folder.path().join("o")).expect("a result");
    let jobs = json_of(json)["jobs"].clone();
    let counts = [0, 1, 2].map(|job: usize| jobs[job]["read"]["total_ios"].as_u64());
    assert_eq!(counts, [Some(0), Some(9), Some(9)]);
}

/// The lines of JSON with a number, with as many zeros as it has decimals in its place.
fn laid_out(program: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let job = "--name=j --rw=randrw --size=256k --bs=4k --lat_percentiles=1 --output-format=json";
    let text = run_lines(program, &folder, &[job]).text();
    let one = |line: &str| {
        let (key, value) = line.split_once(" : ")?;
        let value = value.trim_end_matches(',');
        let (_, decimals) = value.split_once('.').unwrap_or((value, ""));
        let is_number = value.starts_with(|c: char| c.is_ascii_digit());
        is_number.then(|| format!("{key} : .{}", "0".repeat(decimals.len())))
    };
    text.lines().filter_map(one).collect()
}

/// Scripts that search fio's JSON for text find the same text.
#[test]
fn the_layout_of_json_is_that_of_fio() {
    let Some(fio) = tool("fio") else { return };
    let (theirs, ours) = (laid_out(&[fio]), laid_out(&[UGEOM, "run"]));
    assert!(theirs.len() > 100, "{theirs:#?}");
    let mut rest = ours.iter();
    for line in theirs {
        // Lines that only ugeom has may stand between them.
        assert!(rest.any(|our| *our == line), "{line}: {ours:#?}");
    }
}
