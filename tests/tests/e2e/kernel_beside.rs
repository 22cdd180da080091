//! `ugeom trace` beside other tools on the same run, the files of requests, the waits of io_uring
//! requests, and the state after a trace that breaks off.

use crate::run::{UGEOM, command, has, json_of, run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use ugeom_testkit::{LoopDevice, program, skip};

/// Reads or writes of each load.
const REQUESTS: u64 = 256;
/// A busy machine makes BPF programs lose events, which is counted: then another run.
const TRIES: usize = 5;

/// A loop device over an image in a folder of its own.
fn device() -> Option<(tempfile::TempDir, LoopDevice)> {
    let folder = tempfile::tempdir().expect("a folder");
    let image = folder.path().join("disk.img");
    std::fs::write(&image, vec![1; 16 << 20]).expect("an image");
    let device = LoopDevice::over(&image, &["--direct-io=on"])?;
    let tried = ["trace", &device.text(), "--source", "bpf", "--for", "1ms"];
    let tried = run(command(UGEOM, &tried), b"");
    if tried.code != 0 {
        skip(tried.stderr.trim());
        return None;
    }
    Some((folder, device))
}

/// Whether so many requests are those of the load. Beside other traces a few of its events may be
/// missing, which leaves their requests open.
fn nearly_all(count: &Value) -> bool {
    let count = count.as_u64();
    count.is_some_and(|count| (REQUESTS - REQUESTS / 16..=REQUESTS).contains(&count))
}

/// Traces a command until no event is lost and the counters agree; none when it fails.
fn traced(device: &str, load: &dyn Fn() -> Command) -> Option<(Value, String)> {
    let mut last = Value::Null;
    for _ in 0..TRIES {
        let load = load();
        let mut trace = command(UGEOM, &["trace", device, "--json", "--source", "bpf", "--"]);
        trace.arg(load.get_program()).args(load.get_args());
        let ended = run(trace, b"");
        if ended.code != 0 {
            skip(ended.stderr.trim());
            return None;
        }
        // The output of the load comes before the result.
        let text = ended.text();
        let begin = text.rfind("\n{\n").map_or(0, |at| at + 1);
        last = json_of(&text[begin..]);
        let checks = last["checks"].as_array().expect("checks");
        let agrees = checks.iter().all(|check| {
            let counted = &check["reads_counted"];
            check["reads_seen"] == counted[0] || check["reads_seen"] == counted[1]
        });
        if last["lost"] == 0 && agrees {
            return Some((last, text[..begin].to_owned()));
        }
    }
    skip(&format!(
        "a busy machine: events were lost {TRIES} times: {}",
        last["lost"]
    ));
    None
}

/// A file system that is mounted until it is dropped.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        run(
            command("umount", &["-l", &self.0.display().to_string()]),
            b"",
        );
    }
}

fn mounted(folder: &Path, device: &str) -> Option<Mounted> {
    program("mkfs.ext4")?;
    program("mount")?;
    let made = run(command("mkfs.ext4", &["-q", "-F", device]), b"");
    assert_eq!(made.code, 0, "{}", made.stderr);
    let place = folder.join("m");
    std::fs::create_dir(&place).expect("a folder");
    let mount = run(
        command("mount", &[device, &place.display().to_string()]),
        b"",
    );
    if mount.code != 0 {
        skip(mount.stderr.trim());
        return None;
    }
    Some(Mounted(place))
}

/// fio with that file through io_uring; `more` has further arguments.
fn fio(file: &Path, more: &[&str]) -> Command {
    let name = format!("--filename={}", file.display());
    let mut fio = Command::new("fio");
    fio.args(["--name=x", &name, "--rw=randread", "--bs=4k", "--direct=1"]);
    fio.args(["--size=1m", "--ioengine=io_uring", "--iodepth=4"]);
    fio.args(["--output-format=terse", "--output=/dev/null"])
        .args(more);
    fio
}

#[test]
fn requests_are_counted_for_the_file_that_they_are_for() {
    let Some((folder, device)) = device() else { return };
    if program("fio").is_none() {
        return;
    }
    let Some(mount) = mounted(folder.path(), &device.text()) else { return };
    let [read, written] = ["a file", "another"].map(|name| mount.0.join(name));
    std::fs::write(&read, vec![1; 1 << 20]).expect("a file");
    std::fs::File::open(&read)
        .and_then(|file| file.sync_all())
        .expect("sync");
    let load = || {
        let text = |path: &Path| path.display().to_string();
        let mut load = Command::new("sh");
        let job = "dd if=\"$0\" of=/dev/null bs=4k iflag=direct 2>/dev/null &&
            dd if=/dev/zero of=\"$1\" bs=4k count=3 conv=fsync 2>/dev/null";
        load.args(["-c", job, &text(&read), &text(&written)]);
        load
    };
    let Some((trace, _)) = traced(&device.text(), &load) else { return };
    let files = trace["files"].as_array().expect("files");
    if files.is_empty() {
        skip("this kernel has no bpf_rdonly_cast");
        return;
    }
    let requests = |name: &str| {
        let is_it = |file: &&Value| file["name"].as_str().expect("a name").contains(name);
        files
            .iter()
            .find(is_it)
            .map(|file| file["requests"].as_u64())
    };
    let of = |path: &Path| {
        use std::os::unix::fs::MetadataExt;
        let inode = std::fs::metadata(path).expect("a file").ino();
        // Without CAP_DAC_READ_SEARCH, the number.
        let number = format!("inode {inode} on ");
        requests(&path.display().to_string()).or_else(|| requests(&number))
    };
    assert_eq!(of(&read), Some(Some(REQUESTS)), "{files:#?}");
    assert!(
        of(&written).is_some_and(|count| count >= Some(1)),
        "{files:#?}"
    );
    // The journal and the inodes.
    let own = requests("the device's own page cache");
    assert!(own.is_some_and(|count| count >= Some(1)), "{files:#?}");
    let all = files.iter().filter_map(|file| file["requests"].as_u64());
    assert_eq!(Some(all.sum()), trace["requests"].as_u64());
}

#[test]
fn requests_of_io_urings_are_divided_and_those_of_workers_told_apart() {
    let Some((_folder, device)) = device() else { return };
    if program("fio").is_none() {
        return;
    }
    let path = PathBuf::from(device.text());
    for (more, workers) in [(&[][..], false), (&["--force_async=1"][..], true)] {
        let Some((trace, _)) = traced(&device.text(), &|| fio(&path, more)) else { return };
        assert!(nearly_all(&trace["requests"]), "{trace:#}");
        let rings = trace["urings"].as_array().expect("urings");
        let [ring] = &rings[..] else {
            panic!("{rings:#?}");
        };
        assert_eq!(ring["workers"], workers, "{ring:#}");
        for count in ["requests", "bios"] {
            assert!(nearly_all(&ring[count]), "{count}: {ring:#}");
        }
        let ns = |part: &str| ring[part].as_u64().expect("a time");
        assert_eq!(ns("queued_ns") > 0, workers, "{ring:#}");
        assert!(ns("before_ns") > 0 && ns("devices_ns") > 0, "{ring:#}");
    }
}

#[test]
fn counts_and_times_are_those_of_bpftrace() {
    let Some((_folder, device)) = device() else { return };
    if program("bpftrace").is_none() {
        return;
    }
    // bcc's biolatency in bpftrace's language: without the kernel's headers and kprobes.
    let name = device.text();
    let number = std::fs::read_to_string(format!("/sys/block/{}/dev", &name["/dev/".len()..]));
    let number = number.expect("the device's number");
    let (major, minor) = number.trim().split_once(':').expect("two numbers");
    let [major, minor] = [major, minor].map(|number| number.parse::<u64>().expect("a number"));
    let dev = major << 20 | minor;
    let script = format!(
        "tracepoint:block:block_io_start /args->dev == {dev}/ {{ @begun[args->sector] = nsecs; }}
         tracepoint:block:block_io_done /args->dev == {dev} && @begun[args->sector]/ {{
             @count = count(); @ns = sum(nsecs - @begun[args->sector]);
             delete(@begun[args->sector]); }}"
    );
    // A path, since bpftrace refuses a name that it finds in two folders.
    let job = format!("/bin/dd if={name} of=/dev/null bs=4k count={REQUESTS} iflag=direct");
    let mounting =
        "mount -t tracefs none /sys/kernel/tracing; exec bpftrace -f json -e \"$0\" -c \"$1\"";
    let load = || {
        let mut load = Command::new("unshare");
        load.args(["-m", "sh", "-c", mounting, &script, &job]);
        load
    };
    // Either may lose an event or its processor between two programs: then again.
    let mut nearest = f64::MAX;
    for _ in 0..TRIES {
        let Some((trace, text)) = traced(&name, &load) else { return };
        let value = |key: &str| {
            let line = text.lines().find(|line| line.contains(key))?;
            let map: Value = serde_json::from_str(line).ok()?;
            map["data"][key].as_f64()
        };
        let (Some(count), Some(ns)) = (value("@count"), value("@ns")) else {
            return skip(&format!("bpftrace tells nothing: {text}"));
        };
        assert!(nearly_all(&trace["requests"]), "{trace:#}");
        // It begins with the request and ends before the thread runs.
        let phases = trace["layers"][0]["phases_ns"].as_array().expect("phases");
        let outside = phases.iter().filter(|it| it[0] == "Block");
        let outside: f64 = outside.filter_map(|it| it[1].as_f64()).sum();
        let outside = outside + trace["wake_up"]["whole_ns"].as_f64().expect("a time");
        let inside = trace["whole_ns"].as_f64().expect("a time") - outside;
        let differs = (inside / ns - 1.0)
            .abs()
            .max((REQUESTS as f64 - count).abs());
        if differs < 0.1 {
            return;
        }
        nearest = nearest.min(differs);
    }
    assert!(nearest < REQUESTS as f64 / 20.0, "{nearest}");
    skip("a busy machine: the counts or times differ");
}

#[test]
fn counts_are_those_of_blktrace() {
    let Some((folder, device)) = device() else { return };
    if program("blktrace").is_none() || program("btt").is_none() {
        return;
    }
    // Some kernels refuse its files to all: then there is nothing to compare with.
    let job = "cd \"$0\"; mount -t debugfs none /sys/kernel/debug
        blktrace -d $1 -o b -w 60 >/dev/null 2>err & traced=$!
        until test -s b.blktrace.0 || ! kill -0 $traced 2>/dev/null; do sleep 0.1; done
        dd if=$1 of=/dev/null bs=4k count=$2 iflag=direct status=none
        kill -INT $traced 2>/dev/null; wait $traced
        blkparse -q -i b -d b.bin -O >/dev/null 2>>err && btt -i b.bin 2>>err";
    let load = || {
        let mut load = Command::new("unshare");
        let folder = folder.path().display().to_string();
        load.args([
            "-m",
            "sh",
            "-c",
            job,
            &folder,
            &device.text(),
            &REQUESTS.to_string(),
        ]);
        load
    };
    // The code of its last command is that of the load.
    let Some((trace, text)) = traced(&device.text(), &load) else { return };
    let line = text.lines().find(|line| line.starts_with("D2C"));
    let Some(count) = line.and_then(|line| line.split_ascii_whitespace().last()) else {
        skip("blktrace recorded nothing");
        return;
    };
    assert_eq!(count.parse(), Ok(REQUESTS), "{text}");
    assert!(nearly_all(&trace["requests"]), "{trace:#}");
}

#[test]
fn a_recording_without_room_ends_and_the_trace_goes_on() {
    let Some((_folder, device)) = device() else { return };
    let name = device.text();
    let mut trace = command(
        UGEOM,
        &["trace", &name, "--output", "/dev/full", "--json", "--"],
    );
    let from = format!("if={name}");
    trace.args([
        "dd",
        &from,
        "of=/dev/null",
        "bs=4k",
        "count=256",
        "iflag=direct",
    ]);
    let ended = run(trace, b"");
    assert_eq!(ended.code, 1);
    let why = "/dev/full: recording: No space left on device";
    has(&ended.stderr, why);
    let shown = json_of(ended.text());
    assert!(shown["requests"].as_u64() > Some(0), "{shown:#}");
}

#[test]
fn a_trace_that_is_killed_leaves_a_recording_and_no_instance_for_long() {
    let Some((folder, device)) = device() else { return };
    let record = folder.path().join("t.trace").display().to_string();
    for source in ["bpf", "tracefs"] {
        let trace = |more: &[&str]| {
            let mut trace = command(UGEOM, &["trace", &device.text(), "--source", source]);
            trace.args(more);
            trace
        };
        let tried = run(trace(&["--for", "1ms"]), b"");
        if tried.code != 0 {
            skip(tried.stderr.trim());
            continue;
        }
        let mut killed = trace(&["--for", "60s", "--output", &record])
            .spawn()
            .expect("a trace");
        let started = Instant::now();
        let read = format!("if={}", device.text());
        let recorded = || std::fs::metadata(&record).is_ok_and(|file| file.len() > 100_000);
        while !recorded() && started.elapsed() < Duration::from_secs(60) {
            run(
                command(
                    "dd",
                    &[&read, "of=/dev/null", "bs=4k", "count=500", "iflag=direct"],
                ),
                b"",
            );
        }
        killed.kill().expect("it is killed");
        killed.wait().expect("it ends");
        let shown = run(command(UGEOM, &["trace", "show", &record, "--json"]), b"");
        assert_eq!(shown.code, 0, "{}", shown.stderr);
        let shown = json_of(shown.text());
        assert!(shown["requests"].as_u64() > Some(0), "{shown:#}");
        assert_eq!(shown["parts_ns"], shown["whole_ns"]);
        // The next trace removes an instance that was left.
        assert_eq!(run(trace(&["--for", "1ms"]), b"").code, 0);
        std::fs::remove_file(&record).expect("the recording");
    }
}
