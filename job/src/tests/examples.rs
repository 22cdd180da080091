//! Job files and command lines as people write them.

use super::{arguments, of_file};
use crate::error::Origin;
use crate::options::OPTIONS;
use crate::settings::{Distribution, FileOrder, Fill, Job, Piece, READ, WRITE};
use crate::understand;
use ugeom_classes::spec::OptionDefault;
use ugeom_measure::units::Size;
use ugeom_testkit::has;

#[test]
fn the_command_line_of_2007_is_understood() {
    let line = "--name=global --rw=randrw --size=256m --bs=4k --direct=1 --ioengine=guasi \
                --name=job1 --iodepth=100 --thread";
    let words: Vec<&str> = line.split_whitespace().collect();
    let jobs = understand(&arguments(&words, &[]).unwrap().sections)
        .unwrap()
        .jobs;
    let [job] = jobs.as_slice() else { panic!("{} jobs", jobs.len()) };
    assert_eq!((job.name.as_str(), job.iodepth), ("job1", 100));
    assert_eq!((job.rw.does, job.rw.random), ([true, true, false], true));
    assert_eq!(job.size, Some(Size::Bytes(256 << 20)));
    assert!(job.direct && job.ioengine == "guasi");
}

#[test]
fn global_settings_hold_for_what_follows_and_give_way_to_a_jobs_own() {
    let text = "
        ; a comment
        # another
        [global]
        bs=4k,8k
        iodepth=16
        [a]
        rw=randrw
        filename=${DISK}
        [global]
        iodepth=$ncpus
        [b]
        bs=,64k
        time_based
        runtime=2m
    ";
    let jobs = of_file(text).unwrap().jobs;
    assert_eq!(jobs[0].iodepth, 16);
    assert_eq!(jobs[0].filename.as_deref(), Some("/dev/sdx"));
    assert_eq!(jobs[1].iodepth, 4);
    assert_eq!(
        (jobs[1].sizes[READ].min, jobs[1].sizes[WRITE].min),
        (4096, 65536)
    );
    assert_eq!(jobs[1].runtime_ns, 120_000_000_000);
}

#[test]
fn an_included_file_stands_where_its_name_stood() {
    let files = [
        ("main.fio", "[global]\ninclude part.fio\n[job]\nrw=write\n"),
        ("part.fio", "bs=16k\niodepth=8\n"),
    ];
    let sections = arguments(&["main.fio"], &files).unwrap().sections;
    let jobs = understand(&sections).unwrap().jobs;
    assert_eq!((jobs[0].sizes[WRITE].max, jobs[0].iodepth), (16384, 8));
}

#[test]
fn values_that_only_one_option_has() {
    let text = "[a]
        rw=randrw:8
        bssplit=4k/10:64k/50:32k/
        random_distribution=zoned:50/50:50/50,60/10:40/90
        buffer_pattern=0xdead%o\"ab\"-1
        percentile_list=99.9:50
        cpus_allowed=0-1
        rwmixwrite=30
        startdelay=1-2
    ";
    let understood = of_file(text).unwrap();
    let job = &understood.jobs[0];
    assert_eq!(job.rw.modifier, 8);
    assert_eq!(
        job.sizes[READ].split,
        [(4096, 10), (32768, 40), (65536, 50)]
    );
    let halves = vec![(50.0, 50.0), (50.0, 50.0)];
    assert_eq!(job.distribution[READ], Distribution::Zoned(halves));
    let zones = vec![(60.0, 10.0), (40.0, 90.0)];
    assert_eq!(job.distribution[WRITE], Distribution::Zoned(zones));
    let pattern = vec![
        Piece::Bytes(vec![0xde, 0xad]),
        Piece::Offset,
        Piece::Bytes(b"ab".to_vec()),
        Piece::Bytes(vec![0xff; 4]),
    ];
    assert_eq!(job.fill, Fill::Pattern(pattern));
    assert_eq!(job.percentile_list, [50.0, 99.9]);
    assert_eq!(job.rwmixread, 70);
    assert_eq!(job.startdelay_ns, (1_000_000_000, 2_000_000_000));
}

#[test]
fn options_of_the_program_are_no_settings_of_a_job() {
    let line = [
        "--output=x",
        "--name=a",
        "--output-format=json,normal",
        "--rw",
        "write",
        "--destroy",
    ];
    let read = arguments(&line, &[]).unwrap();
    assert_eq!(read.report.output.as_deref(), Some("x"));
    assert_eq!(read.report.formats, ["json", "normal"]);
    assert!(read.report.destroy);
    assert_eq!(read.sections[0].settings.len(), 1);
    assert_eq!(read.sections[0].settings[0].value.as_deref(), Some("write"));
}

#[test]
fn settings_without_effect_are_said() {
    let text = "[a]\nrw=randread\nioengine=psync\niodepth=8\nfsync=1\nrwmixread=10\n\
                guasi_workers=4\nguasi_backend=ring\n";
    let warnings = of_file(text).unwrap().warnings.join("\n");
    for expected in [
        "jobs.fio:4: iodepth has no effect: psync",
        "jobs.fio:5: fsync has no effect",
        "jobs.fio:6: rwmixread has no effect",
        "jobs.fio:7: guasi_workers has no effect: psync is not guasi",
        "jobs.fio:8: guasi_backend has no effect",
    ] {
        assert!(
            warnings.contains(expected),
            "{expected} is not in\n{warnings}"
        );
    }
    assert!(of_file("[a]\nrw=read\n").unwrap().warnings.is_empty());
}

#[test]
fn a_verification_that_cannot_succeed_is_said() {
    let warnings = |settings: &str| {
        of_file(&format!("[a]\nverify=md5\n{settings}"))
            .unwrap()
            .warnings
    };
    for (settings, expected) in [
        (
            "rw=write\nnumjobs=2\nfilename=f\n",
            "jobs.fio:2: verify: 2 copies of `a` write to the same",
        ),
        (
            "rw=randwrite\nnumjobs=2\nfilename_format=$jobname\n",
            "2 copies of `a` write",
        ),
        (
            "rw=write\ntime_based\nruntime=1\n",
            "jobs.fio:2: verify: `a` writes until runtime is over",
        ),
    ] {
        let said = warnings(settings);
        assert!(
            said.len() == 1 && said[0].contains(expected),
            "{settings}: {said:?}"
        );
    }
    for settings in [
        "rw=write\nnumjobs=2\n",
        "rw=write\nnumjobs=2\nfilename=f\noffset_increment=1m\nsize=1m\n",
        "rw=write\nnumjobs=2\nfilename=f\ndo_verify=0\n",
        "rw=read\nnumjobs=2\nfilename=f\n",
        "rw=write\ntime_based\nruntime=1\nverify_backlog=8\n",
        "rw=rw\ntime_based\nruntime=1\n",
        "rw=write\nruntime=1\n",
    ] {
        assert!(
            warnings(settings).is_empty(),
            "{settings}: {:?}",
            warnings(settings)
        );
    }
}

#[test]
fn a_variable_that_is_not_set_is_empty_as_by_fio() {
    let understood = of_file("[a]\nfilename=x${NOPE}y${DISK}\n[b${NOPE}]\n").unwrap();
    let [a, b] = &understood.jobs[..] else {
        panic!("{:?}", understood.jobs.len());
    };
    assert_eq!(a.filename.as_deref(), Some("xy/dev/sdx"));
    assert_eq!(b.name, "b${NOPE}");
    assert_eq!(
        understood.warnings,
        ["jobs.fio:2: the environment variable `NOPE` is not set: `${NOPE}` is empty"]
    );
}

#[test]
fn names_on_the_command_line_may_be_cut_short() {
    let one = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        arguments(&words, &[])
    };
    let read = one("--numjob=2 --output-form json --runt 3 --name=a -ioeng=psync").unwrap();
    let set: Vec<_> = read
        .sections
        .iter()
        .flat_map(|section| &section.settings)
        .collect();
    let names: Vec<&str> = set.iter().map(|setting| setting.name.as_str()).collect();
    assert_eq!(names, ["numjobs", "runtime", "ioengine"]);
    assert_eq!(set[1].value.as_deref(), Some("3"));
    assert_eq!(read.report.formats, ["json"]);
    let wrong = |line| one(line).unwrap_err().to_string();
    assert!(wrong("--clien=x").contains("--client is not supported"));
    let message = wrong("--buffer=1");
    assert_eq!(
        message,
        "--buffer=1: `buffer` could be buffered, buffer_pattern, buffer_compress_percentage, \
         buffer_compress_chunk"
    );
    // A name that is whole is not the beginning of another, and job files have whole names.
    assert_eq!(
        one("--name=a --bs=8k").unwrap().sections[0].settings[0].name,
        "bs"
    );
    assert!(of_file("[a]\nnumjob=2\n").is_err());
}

#[test]
fn fios_letters_are_options_of_the_program() {
    let report = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        arguments(&words, &[]).expect(line).report
    };
    let read = report("-o out -m -L 2 -E 1 -e never -V 4 -x a -r -P --name=a");
    assert_eq!(read.output.as_deref(), Some("out"));
    assert_eq!(read.formats, ["terse"]);
    assert_eq!(read.status_interval_ns, Some(2_000_000_000));
    assert_eq!(read.eta_newline_ns, Some(1_000_000_000));
    assert_eq!(read.eta.as_deref(), Some("never"));
    assert_eq!(read.terse_version, Some(4));
    assert_eq!(read.sections, ["a"]);
    assert!(read.read_only && read.parse_only);
    assert_eq!(report("-c").describe.as_deref(), Some("all"));
    assert_eq!(report("-i").engines.as_deref(), Some(""));
    // Behind two dashes a letter is the beginning of a name.
    assert!(arguments(&["--o", "out"], &[]).is_err());
}

#[test]
fn every_documented_default_is_what_a_job_has_without_the_option() {
    for entry in OPTIONS.0 {
        let OptionDefault::Value(text) = entry.doc.default else {
            continue;
        };
        let (mut job, unset) = (
            Job::new("job", Origin::default()),
            Job::new("job", Origin::default()),
        );
        let name = entry.doc.name;
        assert_eq!((entry.set)(&mut job, text), Ok(()), "{name}={text}");
        assert_eq!(format!("{job:?}"), format!("{unset:?}"), "{name}={text}");
    }
}

/// Name, size of writes, file, stonewall.
type PlacedJob = (String, u64, Option<String>, bool);

/// The jobs of a command line beside `w.fio` and `v.fio`.
fn placed(line: &str) -> (Vec<PlacedJob>, String) {
    let files = [
        ("w.fio", "[w]\nrw=write\nsize=64k\n"),
        ("v.fio", "[v]\nrw=write\nsize=64k\n"),
    ];
    let words: Vec<&str> = line.split_whitespace().collect();
    let understood = understand(&arguments(&words, &files).unwrap().sections).unwrap();
    let facts = |job: Job| (job.name, job.sizes[WRITE].max, job.filename, job.stonewall);
    (
        understood.jobs.into_iter().map(facts).collect(),
        understood.warnings.join("\n"),
    )
}

#[test]
fn options_beside_a_job_file_hold_for_its_jobs() {
    let w = |bytes, file: Option<&str>| {
        vec![("w".to_owned(), bytes, file.map(ToOwned::to_owned), false)]
    };
    for (line, expected) in [
        ("--filename=safe.dat w.fio", w(4096, Some("safe.dat"))),
        ("w.fio --filename=safe.dat", w(4096, Some("safe.dat"))),
        (
            "-bs=8k w.fio --filename safe.dat",
            w(8192, Some("safe.dat")),
        ),
        ("--name=global --bs=8k w.fio", w(8192, None)),
    ] {
        assert_eq!(placed(line), (expected, String::new()), "{line}");
    }
}

#[test]
fn jobs_of_the_command_line_come_first_and_keep_their_options() {
    let named = |name: &str, bytes, stonewall| (name.to_owned(), bytes, None, stonewall);
    for line in [
        "w.fio --name=x --rw=write --size=8k --bs=8k",
        "--name=x --rw=write --size=8k w.fio --bs=8k",
    ] {
        let (jobs, warnings) = placed(line);
        assert_eq!(jobs, [named("x", 8192, false), named("w", 4096, false)]);
        assert_eq!(warnings, "", "{line}");
    }
    let (jobs, warnings) = placed("--bs=8k w.fio v.fio");
    assert_eq!(jobs, [named("w", 8192, false), named("v", 4096, true)]);
    has(
        &warnings,
        "bs has no effect in other job files than the first",
    );
}

#[test]
fn comments_follow_values_and_need_not_be_utf_8() {
    let job = |text: &[u8]| {
        struct One<'a>(&'a [u8]);
        impl crate::Loader for One<'_> {
            fn load(&mut self, name: &str, _: Option<&str>) -> std::io::Result<(Vec<u8>, String)> {
                Ok((self.0.to_vec(), name.to_owned()))
            }
        }
        let read = crate::parse_arguments(&["-".to_owned()], &mut One(text), &super::Fixed)?;
        understand(&read.sections)
    };
    let text = b"# caf\xe9\n[a] ; caf\xe9\ndirect=0   # why\r\nrw=write;x\ndescription=caf\xe9\n";
    let jobs = job(text).unwrap().jobs;
    assert_eq!((jobs[0].direct, jobs[0].rw.name), (false, "write"));
    assert_eq!(jobs[0].description.as_deref(), Some("caf\u{fffd}"));
    let error = job(b"[a]\nfilename=caf\xe9\n").unwrap_err().to_string();
    assert!(error.starts_with("-:2: the line is not UTF-8"), "{error}");
}

#[test]
fn zones_without_a_size_divide_what_is_left() {
    let zones = |text: &str| {
        let jobs = of_file(&format!(
            "[a]\nrw=randread\nrandom_distribution=zoned:{text}\n"
        ));
        jobs.map(|understood| understood.jobs[0].distribution[READ].clone())
    };
    let one = Distribution::Zoned(vec![(50.0, 5.0), (30.0, 15.0), (20.0, 80.0)]);
    assert_eq!(zones("50/5:30/15:20/").unwrap(), one);
    let two = Distribution::Zoned(vec![(50.0, 40.0), (30.0, 20.0), (20.0, 40.0)]);
    assert_eq!(zones("50/:30/20:20/").unwrap(), two);
    // As by fio: fractions are ignored, 0 is not given, and some of the file may be left out.
    let odd = Distribution::Zoned(vec![(99.0, 1.0), (1.0, 99.0)]);
    assert_eq!(zones("99/0.0001:1/99").unwrap(), odd);
    let thirds = Distribution::Zoned(vec![(50.0, 33.0), (30.0, 33.0), (20.0, 33.0)]);
    assert_eq!(zones("50/:30/:20/").unwrap(), thirds);
    let part = Distribution::Zoned(vec![(50.0, 5.0), (50.0, 15.0)]);
    assert_eq!(zones("50/5.9:50/15").unwrap(), part);
    assert!(zones("50/5:30/15:20/81").is_err());
    assert!(zones("50/5:30/15").is_err());
}

#[test]
fn a_pattern_may_come_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pattern");
    std::fs::write(&path, b"ABCD").unwrap();
    let text = |path: &str| format!("[a]\nrw=write\nbuffer_pattern=\"abc\"'{path}'0x11\n");
    let jobs = of_file(&text(path.to_str().unwrap())).unwrap().jobs;
    let piece = |bytes: &[u8]| Piece::Bytes(bytes.to_vec());
    let expected = vec![piece(b"abc"), piece(b"ABCD"), piece(&[0x11])];
    assert_eq!(jobs[0].fill, Fill::Pattern(expected));
    for wrong in ["/nonexistent", "/dev/zero"] {
        let error = of_file(&text(wrong)).unwrap_err().to_string();
        assert!(error.contains(&format!("{wrong}: ")), "{error}");
    }
}

#[test]
fn units_are_decimal_with_kb_base_wherever_it_stands_in_its_section() {
    let text = "[global]\nbs=4k\nsize=1GiB\nkb_base=1000\nbssplit=4KiB/50:8KiB/50\n[a]\n[b]\n\
                bsrange=8ki-16kib\nnumber_ios=10k\nrw=randread:2k\n[c]\nkb_base=1024\n\
                io_size=4kib\noffset=0x1e000\n";
    let jobs = of_file(text).unwrap().jobs;
    assert_eq!(jobs[0].size, Some(Size::Bytes(1 << 30)));
    let split = &jobs[0].sizes[0];
    assert_eq!((split.min, split.max), (4096, 8192));
    let range = &jobs[1].sizes[0];
    assert_eq!((range.min, range.max), (8000, 16_384));
    assert_eq!((jobs[1].number_ios, jobs[1].rw.modifier), (10_000, 2000));
    assert_eq!(jobs[2].io_size, Some(Size::Bytes(4000)));
    assert_eq!(jobs[2].offset, Size::Bytes(0x1e000));
    let error = of_file("[a]\nkb_base=10\n").unwrap_err().to_string();
    assert!(error.contains("`10` is neither 1000 nor 1024"), "{error}");
}

#[test]
fn ranges_and_splits_win_over_a_size_as_in_fio() {
    for (text, sizes) in [
        ("[a]\nbs=4k\nbsrange=8k-16k\n", (8 << 10, 16 << 10)),
        ("[a]\nbsrange=8k-16k\nbs=4k\n", (8 << 10, 16 << 10)),
        (
            "[global]\nbssplit=8k/50:16k/50\n[a]\nbs=4k\n",
            (8 << 10, 16 << 10),
        ),
        ("[global]\nbs=4k\n[a]\nbs=8k\n", (8 << 10, 8 << 10)),
    ] {
        let understood = of_file(text).unwrap();
        let read = &understood.jobs[0].sizes[0];
        assert_eq!((read.min, read.max), sizes, "{text}");
        let said = understood
            .warnings
            .iter()
            .any(|it| it.contains("bs has no effect"));
        assert_eq!(said, read.min != read.max, "{text}");
    }
}

/// Lines of public job files that fio runs.
#[test]
fn what_fio_reads_of_a_value_is_read_with_a_warning() {
    for (line, read) in [
        ("size=2g    // total bytes of this job", "2g"),
        ("size=6400K:6400K:6400K", "6400K"),
        ("per_job_logs=0/1", "0"),
        ("filesize=16-8k/8M-512M", "16-8k"),
        ("bsrange=512/25:1k:25:2k:25:4k/25", "512-1k"),
        ("filesize=65536)", "65536"),
    ] {
        let (name, _) = line.split_once('=').unwrap();
        let whole = of_file(&format!("[a]\n{line}\n")).unwrap();
        let part = of_file(&format!("[a]\n{name}={read}\n")).unwrap();
        let (whole_job, part_job) = (&whole.jobs[0], &part.jobs[0]);
        assert_eq!(whole_job.size, part_job.size, "{line}");
        assert_eq!(whole_job.filesize, part_job.filesize, "{line}");
        assert_eq!(whole_job.sizes, part_job.sizes, "{line}");
        assert_eq!(whole_job.per_job_logs, part_job.per_job_logs, "{line}");
        let note = format!("jobs.fio:2: {line}: only `{read}` is read, as by fio");
        assert!(whole.warnings.contains(&note), "{:?}", whole.warnings);
        assert!(part.warnings.iter().all(|said| !said.contains("only")));
    }
    // A warning about options of all jobs is printed once.
    let jobs = of_file("[global]\nloops=2:3\n[a]\n[b]\n").unwrap();
    assert_eq!((jobs.jobs[1].loops, jobs.warnings.len()), (2, 1));
}

#[test]
fn shares_of_sizes_that_are_not_100_percent_are_those_of_fio() {
    let split = |value: &str| {
        let text = format!("[a]\nbssplit={value}\n");
        of_file(&text).unwrap().jobs[0].sizes[READ].split.clone()
    };
    let (small, middle, large) = (4096, 8192, 16384);
    assert_eq!(split("4k/60:8k/60"), [(small, 60), (middle, 40)]);
    assert_eq!(split("4k/10:8k/20"), [(small, 10), (middle, 90)]);
    assert_eq!(split("4k/0:8k/0"), [(small, 50), (middle, 50)]);
    assert_eq!(split("4k/100:8k"), [(middle, 0), (small, 100)]);
    let three = [(large, 20), (small, 50), (middle, 30)];
    assert_eq!(split("4k/50:8k/60:16k/20"), three);
    let all = [(large, 100), (small, 0), (middle, 0)];
    assert_eq!(split("4k/60:8k/60:16k"), all);
    assert_eq!(split("4k/60:8k/60:16k/"), all);
}

#[test]
fn values_with_keywords_are_calculated() {
    // Scripts for devices say so; fio reads all of the device.
    let whole = of_file("[a]\nfilesize=100%\n").unwrap();
    assert_eq!(whole.jobs[0].filesize, None);
    let text = "[a]\nfilesize=10*10*1000*$ncpus\niodepth=2*$ncpus\nnumjobs=$ncpus/2\n\
                bs=(4k*2)\nruntime=10+$ncpus\nfilename=disk-$ncpus\ndirectory=/tmp/$ncpus\n";
    let jobs = of_file(text).unwrap().jobs;
    let job = &jobs[0];
    assert_eq!(
        job.filesize,
        of_file("[a]\nfilesize=400000\n").unwrap().jobs[0].filesize
    );
    assert_eq!(
        (job.iodepth, job.numjobs, job.sizes[READ].min),
        (8, 2, 8192)
    );
    assert_eq!(job.runtime_ns, 14_000_000_000);
    let error = of_file("[a]\nsize=4k\nbs=4096/($ncpus-4)\n")
        .unwrap_err()
        .to_string();
    has(&error, "jobs.fio:3: bs=4096/(4-4): a division by zero");
}

#[test]
fn words_may_have_any_number_but_yes_and_no_stay_apart() {
    for (line, on) in [("thread=2", true), ("thread=0", false), ("thread", true)] {
        assert_eq!(
            of_file(&format!("[a]\n{line}\n")).unwrap().jobs[0].thread,
            on
        );
    }
    let job = |line: &str| of_file(&format!("[a]\nruntime=1\n{line}\n")).unwrap().jobs[0].clone();
    assert!(job("group_reporting=2").group_reporting && job("stonewall=3").stonewall);
    assert!(job("time_based=2").time_based && !job("time_based=0").time_based);
    assert!(!job("stonewall=0").stonewall && job("new_group=-1").new_group);
}

#[test]
fn names_of_sections_end_before_the_last_character_as_in_fio() {
    let text = "[global-all]\nbs=8k\n[fio-test]G\nrw=write\n[job1]]\n[a b]\n";
    let jobs = of_file(text).unwrap().jobs;
    let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["fio-test]", "job1]", "a b"]);
    assert!(jobs.iter().all(|job| job.sizes[READ].min == 8192));
}

#[test]
fn settings_that_ask_for_what_is_done_anyway_are_not_said() {
    let text = "[a]\nrw=read\nioengine=io_uring\nnorandommap\nio_submit_mode=offload\n\
                clocksource=gettimeofday\nregisterfiles\nfixedbufs\nnonvectored=1\n\
                verifysort=1\nmem=malloc\ncreate_serialize=0\n";
    assert_eq!(of_file(text).unwrap().warnings, [] as [&str; 0]);
    let read = of_file("[a]\nverifysort=0\n").unwrap();
    assert_eq!(read.warnings.len(), 1);
}

#[test]
fn a_setting_of_all_jobs_is_said_once_and_only_if_it_has_no_effect_in_any() {
    let warnings = |text: &str| of_file(text).unwrap().warnings.join("\n");
    let global = "[global]\nfsync=1\niodepth=8\n[a]\nrw=read\n";
    let both = "jobs.fio:2: fsync has no effect: the job writes nothing\n\
                jobs.fio:3: iodepth has no effect: psync runs one request at a time";
    let said = warnings(&format!("{global}[b]\nrw=randread\n"));
    assert!(both.lines().all(|line| said.contains(line)), "{said}");
    assert_eq!(said.lines().count(), 2, "{said}");
    let writer = format!("{global}[b]\nrw=write\nioengine=libaio\n");
    assert_eq!(warnings(&writer), "");
    let own = format!("{global}[b]\nrw=write\niodepth=4\n");
    assert!(warnings(&own).contains("jobs.fio:3: iodepth has no effect"));
}

#[test]
fn time_based_without_a_runtime_is_said_and_changes_nothing() {
    let read = of_file("[a]\ntime_based\n").unwrap();
    assert!(!read.jobs[0].time_based);
    let said = "jobs.fio:2: time_based has no effect: there is no runtime";
    assert_eq!(read.warnings, [said]);
}

#[test]
fn a_distribution_may_have_a_centre() {
    let read = of_file("[a]\nrw=randread\nrandom_distribution=normal:10:0.25\n").unwrap();
    let expected = Distribution::Normal(10.0, Some(0.25));
    assert_eq!(read.jobs[0].distribution[READ], expected);
    let read = of_file("[a]\nfile_service_type=pareto:0.20:0\n").unwrap();
    let expected = (FileOrder::Pareto(0.2, Some(0.0)), 1);
    assert_eq!((read.jobs[0].file_order, read.jobs[0].file_run), expected);
}
