//! `ugeom run` beside fio: the same JSON, blocks that each can check for the other, and errors.

use crate::run::{has, other, ugeom};
use serde_json::Value;
use std::path::Path;

fn fio_and_ugeom_json(fio: &Path, arguments: &[String]) -> (Value, Value) {
    let mut arguments = arguments.to_vec();
    arguments.push("--output-format=json".to_owned());
    let theirs = other(fio, &arguments);
    let ours = ugeom(&[&["run".to_owned()], &arguments[..]].concat());
    assert_eq!(ours.code, 0, "{}", ours.stderr);
    let theirs = String::from_utf8(theirs).expect("UTF-8");
    // fio puts notes before its JSON.
    let theirs = &theirs[theirs.find('{').expect("an object")..];
    (
        serde_json::from_str(theirs).expect("JSON of fio"),
        serde_json::from_str(&ours.text()).expect("JSON of ugeom"),
    )
}

/// Every key of `theirs` is in `ours`, with a value of the same type; `ours` has no others but
/// those named.
fn same_keys(path: &str, theirs: &Value, ours: &Value, extra: &[&str]) {
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => {
            for (key, value) in theirs {
                let path = format!("{path}.{key}");
                let found = ours.get(key).unwrap_or_else(|| panic!("{path} is missing"));
                if key != "job options" && key != "global options" {
                    same_keys(&path, value, found, extra);
                }
            }
            for key in ours.keys().filter(|key| !theirs.contains_key(*key)) {
                assert!(
                    extra.contains(&key.as_str()),
                    "{path}.{key} is not one of fio's"
                );
            }
        }
        (Value::Array(theirs), Value::Array(ours)) => {
            if let (Some(theirs), Some(ours)) = (theirs.first(), ours.first()) {
                same_keys(&format!("{path}[]"), theirs, ours, extra);
            }
        }
        (Value::Number(theirs), Value::Number(ours)) => {
            assert_eq!(
                theirs.is_f64(),
                ours.is_f64(),
                "{path}: {theirs} and {ours}"
            );
        }
        _ => {
            let kind = |value: &Value| (value.is_string(), value.is_number());
            assert_eq!(kind(theirs), kind(ours), "{path}");
        }
    }
}

#[test]
fn the_json_has_the_keys_and_types_of_fio() {
    let Some(fio) = ugeom_testkit::program("fio") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = format!("--filename={}", folder.path().join("f").display());
    for job in [
        "--name=a --rw=read --bs=4k --size=2m",
        "--name=a --rw=randrw --bs=4k --size=2m --ioengine=io_uring --iodepth=8",
        "--name=a --rw=write --bs=64k --size=4m --fsync=4 --numjobs=2 --group_reporting",
        "--name=global --bs=4k --name=a --rw=randwrite --size=1m --description=text",
    ] {
        let mut arguments: Vec<String> = job.split(' ').map(ToOwned::to_owned).collect();
        arguments.push(file.clone());
        let (theirs, ours) = fio_and_ugeom_json(Path::new(&fio), &arguments);
        // Newer versions of fio write job_start, too.
        same_keys(job, &theirs, &ours, &["job_start"]);
        let (theirs, ours) = (&theirs["jobs"][0], &ours["jobs"][0]);
        if !job.contains("randrw") {
            for kind in ["read", "write"] {
                for key in ["io_bytes", "io_kbytes", "total_ios"] {
                    assert_eq!(theirs[kind][key], ours[kind][key], "{job}: {kind}.{key}");
                }
            }
        }
    }
}

/// A field with its numbers made one: what two programs that measure cannot differ in.
fn shape(field: &str) -> String {
    let mut shape = String::new();
    for letter in field.chars() {
        let letter = if letter.is_ascii_digit() { '9' } else { letter };
        if letter != '9' || !shape.ends_with('9') {
            shape.push(letter);
        }
    }
    shape
}

#[test]
fn the_terse_line_has_the_fields_of_fio() {
    let Some(fio) = ugeom_testkit::program("fio") else { return };
    let folder = tempfile::tempdir_in(".").expect("a folder");
    let file = format!("--filename={}", folder.path().join("f").display());
    for job in [
        "--name=a --rw=read --bs=4k --size=2m",
        "--name=a --rw=randrw --bs=4k --size=2m --ioengine=io_uring --iodepth=8 --description=x",
        "--name=a --rw=write --bs=4k --size=1m --percentile_list=50:99 \
         --name=b --rw=read --size=1m",
    ] {
        // Before the first name: for all jobs.
        let mut arguments: Vec<&str> = vec![&file, "--output-format=terse"];
        arguments.extend(job.split_whitespace());
        let theirs = String::from_utf8(other(&fio, &arguments)).expect("UTF-8");
        let ours = ugeom(&[&["run"], &arguments[..]].concat());
        assert_eq!(ours.code, 0, "{}", ours.stderr);
        // fio puts notes before its lines.
        let lines = theirs.lines().filter(|line| line.starts_with("3;fio"));
        let (ours, theirs) = (ours.text(), lines.collect::<Vec<_>>());
        let ours: Vec<&str> = ours
            .lines()
            .filter(|line| line.starts_with("3;fio"))
            .collect();
        assert_eq!(ours.len(), theirs.len(), "{ours:?} {theirs:?}");
        for (ours, theirs) in ours.iter().zip(theirs) {
            let fields = |line: &str| line.split(';').map(shape).collect::<Vec<_>>();
            assert_eq!(fields(ours), fields(theirs), "{ours}\n{theirs}");
            let named = |line: &str, at: usize| line.split(';').nth(at).map(ToOwned::to_owned);
            // The version, the program, the name, the group, the error; KiB that were read.
            let whole: &[usize] = if job.contains("randrw") { &[] } else { &[5] };
            for at in [0, 1, 2, 3, 4].iter().chain(whole) {
                assert_eq!(named(ours, *at), named(theirs, *at), "field {at}");
            }
        }
    }
}

#[test]
fn each_checks_the_blocks_that_the_other_wrote() {
    let Some(fio) = ugeom_testkit::program("fio") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("f");
    let file = format!("--filename={}", path.display());
    for verify in [
        "--verify=crc32c",
        "--verify=pattern --verify_pattern=0xdeadbeef%o\"ab\"-12",
    ] {
        let verify: Vec<&str> = verify.split(' ').collect();
        let write = ["--name=w", "--rw=randwrite", "--size=1m", "--bs=4k", &file];
        let read = ["--name=r", "--rw=read", "--size=1m", "--bs=4k", &file];
        let run = |arguments: &[&str]| ugeom(&[&["run"], arguments].concat());

        // Its state would be a file in the current folder.
        let stateless = ["--verify_state_save=0"];
        let wrote = run(&[&write[..], &verify, &stateless].concat());
        assert_eq!(wrote.code, 0, "{}", wrote.stderr);
        other(&fio, &[&read[..], &verify].concat());
        let threads = ["--ioengine=guasi", "--iodepth=16", "--guasi_workers=2..8"];
        let read_by_threads = run(&[&read[..], &verify, &threads].concat());
        assert_eq!(read_by_threads.code, 0, "{}", read_by_threads.stderr);

        let alone = ["--do_verify=0", "--verify_state_save=0"];
        other(&fio, &[&write[..], &verify, &alone].concat());
        let checked = run(&[&read[..], &verify].concat());
        assert_eq!(checked.code, 0, "{}", checked.stderr);

        let mut bytes = std::fs::read(&path).expect("the file");
        bytes[9000] ^= 1;
        std::fs::write(&path, bytes).expect("the file");
        let damaged = run(&[&read[..], &verify].concat());
        assert_eq!(damaged.code, 1);
        for word in ["offset", "expected", "found", &path.display().to_string()] {
            assert!(damaged.stderr.contains(word), "{word}: {}", damaged.stderr);
        }
    }
}

#[test]
fn what_cannot_be_run_is_told_with_its_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("typo.fio"), "[a]\nrw=read\niodpeth=4\n").expect("a job file");
    std::fs::write(path("circle.fio"), "[a]\ninclude circle.fio\n").expect("a job file");
    let new = format!("--filename={}", path("new"));
    std::fs::write(path("missing.fio"), "[a]\nrw=read\nbs=\n").expect("a job file");
    let text = "[a]\nfilename=md:1m\nrw=read\nsize=2m\n";
    std::fs::write(path("large.fio"), text).expect("a job file");
    let (missing, large) = (path("missing.fio"), path("large.fio"));
    let typo = path("typo.fio");
    let circle = path("circle.fio");
    for (arguments, code, words) in [
        (
            vec![typo.as_str()],
            1,
            "typo.fio:3: there is no option `iodpeth`; did you mean `iodepth`?",
        ),
        (
            vec![circle.as_str()],
            1,
            "circle.fio:2: includes form a loop",
        ),
        (vec!["--name=a", "--bs="], 1, "bs needs a value"),
        (vec![missing.as_str()], 1, "missing.fio:3: bs needs a value"),
        (
            vec![large.as_str()],
            1,
            "large.fio:4: offset 0 and size 2097152 reach past the end of md0",
        ),
        (vec!["--name=a", "--rw=read", &new], 1, "size=SIZE"),
        (
            vec!["--name=a", "--filename=md:1m", "--size=2m"],
            1,
            "past the end of md0",
        ),
        (
            vec!["--name=a", "--filename=md:1m | nop:rfail=100%"],
            1,
            "reading 4096 bytes at offset 0",
        ),
        (vec!["--name=a", "--filename=md:64mm"], 1, "64mm"),
    ] {
        let ended = ugeom(&[&["run"], &arguments[..]].concat());
        assert_eq!(ended.code, code, "{arguments:?}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(words),
            "{arguments:?}: {}",
            ended.stderr
        );
    }
}

/// A file system of 1 MiB, which is taken away at the end.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// None where this user may not mount.
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().ok()?;
        let path = folder.path().as_os_str();
        let mut mount = std::process::Command::new("mount");
        let mount = mount.args(["-t", "tmpfs", "-o", "size=1m", "ugeom-test"]);
        let mounted = mount
            .arg(path)
            .output()
            .is_ok_and(|out| out.status.success());
        mounted.then_some(Self(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount")
            .arg(self.0.path())
            .status();
    }
}

#[test]
fn a_target_that_fills_up_is_told_with_the_line_of_its_size() {
    let Some(disk) = SmallDisk::new() else {
        let why = "a small file system cannot be mounted (root can)";
        return ugeom_testkit::skip(why);
    };
    let folder = tempfile::tempdir().expect("a folder");
    let job = folder.path().join("full.fio").display().to_string();
    let file = disk.0.path().join("f").display().to_string();
    for (rw, more, words) in [
        ("write", "", "reserving"),
        (
            "write",
            "fallocate=none\n",
            "writing 65536 bytes at offset 1048576",
        ),
        (
            "write",
            "fallocate=none\nioengine=io_uring\niodepth=4\n",
            "writing 65536 bytes at offset",
        ),
        ("read", "fallocate=none\n", "writing"),
    ] {
        let text = format!("[w]\nfilename={file}\nrw={rw}\nbs=64k\nsize=4m\n{more}");
        std::fs::write(&job, text).expect("a job file");
        let ended = ugeom(&["run", &job]);
        let _ = std::fs::remove_file(&file);
        assert_eq!(ended.code, 1, "{more}: {}", ended.stderr);
        for part in ["full.fio:5: ", words, &file, "No space left"] {
            assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
        }
    }
}

#[test]
fn a_disk_with_a_table_is_not_written_to_without_destroy() {
    let folder = tempfile::tempdir().expect("a folder");
    let image = folder.path().join("disk.img");
    std::fs::File::create(&image)
        .and_then(|file| file.set_len(4 << 20))
        .expect("an image");
    let name = image.display().to_string();
    ugeom(&["part", "create", "-s", "gpt", &name]).text();
    let file = format!("--filename={name}");
    let write = ["run", "--name=a", "--rw=write", "--size=1m", &file];
    let refused = ugeom(&write);
    assert_eq!(refused.code, 1);
    has(&refused.stderr, "carries a GPT");
    let done = ugeom(&[&write[..], &["--destroy"]].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
}

/// The six command lines of 2007, with a smaller size: options, order and all.
#[test]
fn the_command_lines_of_2007_run_and_print_every_block() {
    let folder = tempfile::tempdir_in(".").expect("a folder");
    let file = format!("--filename={}", folder.path().join("f").display());
    for depth in [100, 1000, 10_000] {
        for engine in ["guasi", "libaio", "io_uring"] {
            let line = format!(
                "run --name=global --rw=randrw --size=8m --bs=4k --direct=1 --ioengine={engine} \
                 --name=job1 --iodepth={depth} --thread {file}"
            );
            let ended = ugeom(&line.split_whitespace().collect::<Vec<_>>());
            if ended.stderr.contains("cannot be used") || ended.stderr.contains("O_DIRECT") {
                ugeom_testkit::skip(&ended.stderr);
                continue;
            }
            assert_eq!(ended.code, 0, "{line}: {}", ended.stderr);
            let text = ended.text();
            let title = format!("ioengine={engine}, iodepth={depth}");
            for block in [
                &title,
                "Starting 1 thread",
                "job1: (groupid=0, jobs=1): err= 0: pid=",
                "  read: IOPS=",
                "  write: IOPS=",
                "    slat (",
                "    clat (",
                "  cpu          : usr=",
                "  IO depths    : 1=",
                "     submit    : ",
                "     issued rwts: total=",
                "Run status group 0 (all jobs):",
                "   READ: bw=",
                "  WRITE: bw=",
            ] {
                assert!(text.contains(block), "{line}: {block}\n{text}");
            }
            let issued = text.split("total=").nth(1).expect("a total");
            let counts: Vec<u64> = issued
                .split(',')
                .take(2)
                .filter_map(|n| n.parse().ok())
                .collect();
            assert_eq!(counts.iter().sum::<u64>(), 2048, "{text}");
        }
    }
}

#[test]
fn logs_have_the_lines_of_fio() {
    let folder = tempfile::tempdir().expect("a folder");
    let prefix = folder.path().join("l").display().to_string();
    let ended = ugeom(&[
        "run",
        "--name=a",
        "--filename=md:1m",
        "--rw=write",
        "--bs=64k",
        &format!("--write_lat_log={prefix}"),
        &format!("--write_bw_log={prefix}"),
        &format!("--write_iops_log={prefix}"),
    ]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    for part in ["clat", "lat", "bw", "iops"] {
        let text = std::fs::read_to_string(format!("{prefix}_{part}.1.log")).expect("a log");
        assert_eq!(text.lines().count(), 16, "{part}");
        for line in text.lines() {
            let fields: Vec<&str> = line.split(", ").collect();
            assert_eq!(
                (fields.len(), &fields[2..]),
                (5, &["1", "65536", "0"][..]),
                "{line}"
            );
        }
    }
}
