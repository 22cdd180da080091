//! `ugeom trace` beside the known facts of a load: a delay that was planted in a layer, fio's own
//! latencies, and the replay of a recording.

use crate::run::{UGEOM, command, has, json_of, run, wait_for, words_of};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;
use ugeom_testkit::{LoopDevice, program, skip};

/// The delay of each read, ns.
const DELAY_NS: f64 = 2e6;
const READS: u64 = 50;
/// The script of COMMAND, with the device in $0: fio's latencies go to $1.
const LOAD: &str = "fio --name=x --filename=$0 --rw=randread --direct=1 --bs=4k \
    --number_ios=50 --output-format=json --output=$1 >&2";

/// Whether this source works here; says why not.
fn works(device: &str, source: &str) -> bool {
    let trace = ["trace", device, "--source", source, "--for", "1ms"];
    let tried = run(command(UGEOM, &trace), b"");
    if tried.code != 0 {
        skip(tried.stderr.trim());
    }
    tried.code == 0
}

fn layer<'a>(trace: &'a Value, name: &str) -> &'a Value {
    let mut layers = trace["layers"].as_array().expect("layers").iter();
    let found = layers.find(|layer| layer["name"].as_str().expect("a name").ends_with(name));
    found.unwrap_or_else(|| panic!("no layer {name}: {trace:#}"))
}

/// Median exclusive time, ns.
fn median(percentiles: &Value) -> f64 {
    percentiles[0][1][1].as_f64().expect("a median")
}

/// Exclusive time of a layer but for waits for a processor, which a busy machine makes long, ns.
fn work_ns(layer: &Value) -> f64 {
    let phases = layer["phases_ns"].as_array().expect("phases").iter();
    let works = phases.filter(|phase| phase[0] != "Worker");
    works.map(|phase| phase[1].as_f64().expect("a time")).sum()
}

#[test]
fn a_planted_delay_is_found_in_its_layer_and_in_no_other() {
    if program("fio").is_none() {
        return;
    }
    served("md:4m | nop:delay=2ms", planted);
}

/// Runs this while a target is served as files: with a folder, and where it is mounted in that.
fn served(target: &str, then: fn(&Path, &Path)) {
    let folder = tempfile::tempdir().expect("a folder");
    let mounted = folder.path().join("m");
    std::fs::create_dir(&mounted).expect("a folder");
    let place = mounted.display().to_string();
    let ready = folder.path().join("ready");
    let wait = format!("touch {}; cat", ready.display());
    let mut serve = command(UGEOM, &["serve", target, "--fuse", &place]);
    serve.args(["--run", &wait]);
    let mut server = serve.spawn().expect("a server");
    let mut waited = 0;
    while !ready.exists() && server.try_wait().expect("a state").is_none() && waited < 600 {
        std::thread::sleep(std::time::Duration::from_millis(100));
        waited += 1;
    }
    if ready.exists() {
        then(folder.path(), &mounted);
    } else {
        skip("no FUSE mount");
    }
    // The end of its input ends the command, and that the server.
    drop(server.stdin.take());
    assert!(server.wait().expect("it ends").success() || !ready.exists());
}

#[test]
fn requests_that_fail_are_counted_on_the_device_that_reports_them() {
    served("md:4m | nop:rfail=100%", failing);
}

fn failing(_: &Path, mounted: &Path) {
    let Some(device) = LoopDevice::over(&mounted.join("md0.nop"), &["--direct-io=on"]) else {
        return;
    };
    for source in ["bpf", "tracefs"] {
        if !works(&device.text(), source) {
            continue;
        }
        let read = "dd if=$0 of=/dev/null bs=4k count=1 iflag=direct; true";
        let mut trace = command(
            UGEOM,
            &["trace", &device.text(), "--json", "--source", source],
        );
        trace.args(["--", "sh", "-c", read, &device.text()]);
        let ended = run(trace, b"");
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let trace = json_of(ended.text());
        let top = layer(&trace, device.text().trim_start_matches("/dev/"));
        let (requests, failed) = (top["requests"].as_u64(), top["failed"].as_u64());
        assert!(failed >= Some(1) && failed <= requests, "{trace:#}");
    }
}

fn planted(folder: &Path, mounted: &Path) {
    let Some(device) = LoopDevice::over(&mounted.join("md0.nop"), &["--direct-io=on"]) else {
        return;
    };
    for source in ["bpf", "tracefs"] {
        if !works(&device.text(), source) {
            continue;
        }
        // A busy machine takes the processor from a worker at any place: then again.
        let clear = (0..5).any(|_| planted_once(folder, mounted, &device.text(), source));
        assert!(
            clear,
            "{source}: the delay was found in the loop device, too, five times"
        );
    }
    if works(&device.text(), "bpf") {
        both_halves(mounted, &device.text());
    }
}

/// The layers of the server stand below the connection and the device that it serves.
fn both_halves(mounted: &Path, device: &str) {
    let file = format!("--filename={device}");
    let job = ["run", "--name=x", &file, "--rw=randread", "--direct=1"];
    let mut load = command(UGEOM, &job);
    load.args(["--bs=4k", "--time_based", "--runtime=60s", "--size=4m"]);
    load.stdout(Stdio::null());
    let mut load = load.spawn().expect("a load");
    // A busy machine may run no request in an interval: then another one.
    let mut last = Value::Null;
    let clear = (0..20).any(|_| {
        let stat = ["stat", "--kernel", device, "-b", "--json", "-I", "500ms"];
        let text = run(command(UGEOM, &stat), b"").text();
        last = json_of(&text);
        has_both_halves(&last, mounted, device.trim_start_matches("/dev/"))
    });
    load.kill()
        .and_then(|()| load.wait())
        .expect("the load's end");
    assert!(clear, "{last:#}");
}

/// Whether each layer from the medium up to the device had requests, and the delay is in its own;
/// the layers must be in this order.
fn has_both_halves(interval: &Value, mounted: &Path, device: &str) -> bool {
    let rows = interval["rows"].as_array().expect("rows");
    // Waits for a processor are no device's.
    let rows: Vec<&Value> = rows.iter().filter(|row| row["class"] != "wait").collect();
    let name = |row: &Value| row["name"].as_str().expect("a name").to_owned();
    let depths = rows
        .iter()
        .map(|row| row["depth"].as_u64().expect("a depth"));
    assert!(depths.is_sorted(), "{interval:#}");
    let classes: Vec<&str> = rows
        .iter()
        .filter_map(|row| row["class"].as_str())
        .collect();
    assert_eq!(
        classes,
        ["MD", "NOP", "SERVER", "FUSE", "LOOP"],
        "{interval:#}"
    );
    assert_eq!(name(rows[3]), mounted.display().to_string());
    assert_eq!(name(rows[4]), device);
    // An interval may begin between a request's time and its count, which few requests show.
    let slow = rows[1]["exclusive_ns"].as_f64();
    let mut times = rows.iter().map(|row| row["exclusive_ns"].as_f64());
    slow.is_some_and(|ns| ns >= DELAY_NS) && times.all(|ns| ns.is_some_and(|ns| ns >= 0.0))
}

#[test]
fn the_parts_of_a_sample_add_up_and_its_recording_has_the_same_requests() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(device) = over_image(folder.path(), 4, &["--direct-io=on"]) else { return };
    for source in ["bpf", "tracefs"] {
        if !works(&device.text(), source) {
            continue;
        }
        let record = text(&folder.path().join("t.trace"));
        let mut trace = command(
            UGEOM,
            &["trace", &device.text(), "--json", "--source", source],
        );
        trace.args(["--sample", "1%", "--output", &record, "--", "sh", "-c"]);
        let job =
            "exec $1 run --name=x --filename=$0 --rw=randread --direct=1 --bs=4k --size=4m >&2";
        trace.args([job, &device.text(), UGEOM]);
        let ended = run(trace, b"");
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let trace = json_of(ended.text());
        let requests = trace["requests"].as_u64().expect("requests");
        assert!(requests > 0, "{trace:#}");
        assert_eq!(trace["parts_ns"], trace["whole_ns"]);
        let sample = &trace["sample"];
        assert_eq!(sample["allowed_percent"], 1.0);
        // How many windows there were depends on how fast this machine is.
        assert!(sample["windows"].as_u64() >= Some(1), "{sample:#}");
        assert!(sample["counted"].as_u64() >= Some(1024), "{sample:#}");
        assert!(sample["counted"].as_u64() >= Some(requests), "{trace:#}");
        // The recording tells where windows begin and end.
        let show = ["trace", "show", &record, "--json"];
        let shown = json_of(run(command(UGEOM, &show), b"").text());
        for key in ["requests", "whole_ns", "parts_ns", "layers"] {
            assert_eq!(shown[key], trace[key], "{key}");
        }
    }
}

/// Whether the delay was found in no other layer.
fn planted_once(folder: &Path, mounted: &Path, device: &str, source: &str) -> bool {
    let (trace, fio) = traced(folder, device, source);
    assert_eq!(trace["source"], source);
    if trace["requests"].as_u64() != Some(READS) {
        // Beside another trace a source may miss an event, but not in silence: then again.
        assert!(reports_a_miss(&trace), "{trace:#}");
        return false;
    }
    assert_eq!(trace["parts_ns"], trace["whole_ns"]);
    // The server tells when it had each request; what is left to the connection are wake-ups.
    let connection = layer(&trace, &mounted.display().to_string());
    let phases = connection["phases_ns"].as_array().expect("phases");
    let told = phases.iter().all(|phase| phase[0] != "Device");
    let mut layers = trace["layers"].as_array().expect("layers").iter();
    let server = layers.find(|layer| layer["depth"] == 2);
    let server = server.unwrap_or_else(|| panic!("no server: {trace:#}"));
    let name = server["name"].as_str().expect("a name");
    assert!(name.starts_with("ugeom md:4m | nop:delay=2ms"), "{name}");
    // On a busy machine some requests have no record in time: then again.
    let told = told && server["requests"].as_u64() == Some(READS);
    let planted = median(&server["exclusive_percentiles_ns"]);
    assert!(planted >= DELAY_NS, "{planted}: {trace:#}");
    // A read of fio begins before the bio and ends after the thread runs again.
    let clat = fio["jobs"][0]["read"]["clat_ns"]["mean"]
        .as_f64()
        .expect("a mean");
    let seen = trace["mean_ns"].as_f64().expect("a mean");
    assert!(seen <= clat * 1.001, "{seen} of {clat}: {trace:#}");
    let top = layer(&trace, device.trim_start_matches("/dev/"));
    told && work_ns(top) / (READS as f64) < DELAY_NS / 2.0 && seen > clat * 0.99
}

/// Whether the trace itself says that its source has not seen all that the kernel counted.
fn reports_a_miss(trace: &Value) -> bool {
    let checks = trace["checks"].as_array().expect("checks");
    let differs = |check: &Value| {
        let counted = check["reads_counted"].as_array().expect("counts");
        let seen = check["reads_seen"].as_u64();
        seen < counted[0].as_u64() || seen > counted[1].as_u64()
    };
    trace["lost"].as_u64() > Some(0) || checks.iter().any(differs)
}

fn traced(folder: &Path, device: &str, source: &str) -> (Value, Value) {
    let [fio, record] = ["fio.json", "t.trace"].map(|name| text(&folder.join(name)));
    let mut trace = command(UGEOM, &["trace", device, "--json", "--source", source]);
    trace.args(["--output", &record, "--", "sh", "-c", LOAD, device, &fio]);
    let trace = run(trace, b"");
    assert_eq!(trace.code, 0, "{}", trace.stderr);
    let trace = json_of(trace.text());
    let fio = std::fs::read_to_string(fio).expect("fio's result");
    (trace, json_of(&fio))
}

/// A loop device over a new file of so many MiB.
fn over_image(folder: &Path, mib: usize, options: &[&str]) -> Option<LoopDevice> {
    let image = folder.join("disk.img");
    std::fs::write(&image, vec![1; mib << 20]).expect("an image");
    LoopDevice::over(&image, options)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn a_recording_shows_what_the_trace_showed_and_is_replayed() {
    if program("fio").is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let Some(device) = over_image(folder.path(), 4, &["--direct-io=on"]) else { return };
    if !works(&device.text(), "bpf") {
        return;
    }
    let (trace, _) = traced(folder.path(), &device.text(), "bpf");
    let [record, log] = ["t.trace", "x.log"].map(|name| text(&folder.path().join(name)));
    let show = ["trace", "show", &record, "--json", "--iolog", &log];
    let shown = json_of(run(command(UGEOM, &show), b"").quiet());
    for key in ["requests", "whole_ns", "parts_ns", "layers"] {
        assert_eq!(shown[key], trace[key], "{key}");
    }
    // One tidy table, whose lines all have as many fields.
    let csv = run(command(UGEOM, &["trace", "show", &record, "--csv"]), b"").quiet();
    let head = "experiment,case,metric,round,value,unit,process";
    assert!(csv.starts_with(&format!("{head}\ntrace,")), "{csv}");
    assert!(
        csv.lines().all(|line| line.split(',').count() == 7),
        "{csv}"
    );
    let replay = format!("--read_iolog={log}");
    let replayed = ["run", "--name=x", &replay, "--output-format=json"];
    let replayed = run(command(UGEOM, &replayed), b"");
    let replayed = json_of(replayed.text());
    let reads = &replayed["jobs"][0]["read"]["total_ios"];
    // Some kernels run no program at a few events: the recording has what the trace saw.
    assert_eq!(reads, &trace["requests"], "{replayed:#}");
    // A trace that breaks off is shown as far as it goes; a file that is none is refused.
    let bytes = std::fs::read(&record).expect("the recording");
    std::fs::write(&record, &bytes[..bytes.len() - 1]).expect("the recording");
    let cut = run(command(UGEOM, &["trace", "show", &record]), b"");
    assert_eq!(cut.code, 0);
    has(&cut.stderr, "not written whole");
    std::fs::write(&record, b"no recording").expect("the recording");
    let refused = run(command(UGEOM, &["trace", "show", &record]), b"").failed(1);
    has(&refused, "not a recording of ugeom trace");
}

#[test]
fn wrong_devices_and_sources_are_refused_by_name() {
    let refused = |arguments: &[&str], code, word: &str| {
        let why = run(command(UGEOM, arguments), b"").failed(code);
        has(&why, word);
    };
    refused(&["trace", "no-such-device"], 1, "no-such-device");
    refused(
        &["trace", "vda", "--source", "ftrace"],
        2,
        "there are bpf, tracefs, perf",
    );
    refused(&["trace"], 2, "DEVICE");
    refused(
        &["trace", "vda", "--overhead", "--for", "1s"],
        2,
        "--overhead",
    );
    refused(&["lab", "layers", "--bottom", "memory"], 2, "--kernel");
    for share in ["0", "101%", "1ms", "-1%"] {
        refused(
            &["trace", "vda", &format!("--sample={share}")],
            2,
            "--sample",
        );
    }
    refused(&["trace", "show", "no-such-file"], 1, "no-such-file");
    refused(&["trace", "/proc/self/stat"], 2, "no block device");
}

#[test]
fn a_device_named_twice_is_followed_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(device) = over_image(folder.path(), 1, &[]) else { return };
    if !works(&device.text(), "bpf") {
        return;
    }
    let name = device.text();
    let short = name.trim_start_matches("/dev/");
    let mut trace = command(UGEOM, &["trace", &name, short, &name, "--json"]);
    let read = "dd if=$0 of=/dev/null bs=4k count=1; true";
    trace.args(["--", "sh", "-c", read, &name]);
    let found = json_of(run(trace, b"").text());
    assert_eq!(found["targets"], serde_json::json!([name]));
    let tops = found["layers"].as_array().expect("layers").iter();
    assert_eq!(tops.filter(|layer| layer["depth"] == 0).count(), 1);
}

/// Exclusive times beside the differences: they add up, and workers were seen.
fn traced_reads(traced: &Value) {
    let layers = traced["layers"].as_array().expect("layers").iter();
    let parts: f64 = layers.filter_map(|it| it["exclusive_ns"].as_f64()).sum();
    let parts = parts + traced["wake_up_ns"].as_f64().expect("a time");
    let whole = traced["kernel_ns"].as_f64().expect("a time");
    assert!((parts - whole).abs() < 1.0, "{traced:#}");
    assert!(traced["reads"].as_u64() >= Some(40), "{traced:#}");
    assert!(
        whole < traced["caller_ns"].as_f64().expect("a time") * 1.05,
        "{traced:#}"
    );
    let starts = traced["workers"][0]["starts"].as_u64();
    assert!(starts >= Some(20), "{traced:#}");
}

#[test]
fn the_program_of_2002_runs_on_each_layer_of_a_chain() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(device) = over_image(folder.path(), 1, &["--direct-io=on"]) else { return };
    let mut layers = command(
        UGEOM,
        &["lab", "layers", "--kernel", &device.text(), "--faithful"],
    );
    layers.args(["--bottom", "memory", "--json", "-"]);
    let found = json_of(run(layers, b"").text());
    let rows = found["faithful"]["rows"].as_array().expect("rows");
    let classes: Vec<&str> = rows
        .iter()
        .filter_map(|row| row["class"].as_str())
        .collect();
    assert_eq!(classes, ["LOOP", "FILE"], "{found:#}");
    assert_eq!(found["faithful"]["loops"], 100_000);
    for row in rows {
        assert_eq!(row["runs_ns"].as_array().map(Vec::len), Some(10), "{row:#}");
        assert!(row["loop_ns"]["estimate"].as_f64() > Some(0.0), "{row:#}");
    }
    assert!(rows[0]["added_ns"]["estimate"].is_number() && rows[1]["added_ns"].is_null());
}

#[test]
fn a_chain_is_measured_again_over_memory_and_nothing_is_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(device) = over_image(folder.path(), 1, &["--direct-io=on"]) else { return };
    let layers = format!("lab layers --kernel {} --bottom memory", device.text());
    let layers = words_of(&layers);
    let mut layers = command(UGEOM, &layers);
    layers.args(["--budget", "100ms", "--json", "-"]);
    let ended = run(layers, b"");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let found = json_of(ended.text());
    let rows = found["cases"][0]["rows"].as_array().expect("rows");
    let classes: Vec<&str> = rows
        .iter()
        .filter_map(|row| row["class"].as_str())
        .collect();
    assert_eq!(classes, ["LOOP", "FILE"], "{found:#}");
    if works(&device.text(), "bpf") {
        traced_reads(&found["cases"][0]["traced"]);
    }
    let file = rows[1]["name"].as_str().expect("a name");
    assert!(file.starts_with("/dev/shm/ugeom-") && !Path::new(file).exists());
    let top = found["target"]
        .as_str()
        .expect("a device")
        .trim_start_matches("/dev/");
    let backing = format!("/sys/block/{top}/loop/backing_file");
    // The kernel detaches a device when its last user leaves; tests beside this one read all.
    let attached = || std::fs::read_to_string(&backing).is_ok_and(|backing| backing.contains(file));
    wait_for("a loop device without its file", || !attached());
}

#[test]
fn a_partition_is_measured_again_over_memory_and_nothing_is_left() {
    if program("addpart").is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let Some(device) = over_image(folder.path(), 4, &["--direct-io=on"]) else { return };
    let device = device.text();
    let added = run(command("addpart", &[&device, "1", "63", "4096"]), b"");
    assert_eq!(added.code, 0, "{}", added.stderr);
    let partition = format!("{device}p1");
    let layers = [
        "lab", "layers", "--kernel", &partition, "--bottom", "memory",
    ];
    let mut layers = command(UGEOM, &layers);
    layers.args(["--budget", "100ms", "--json", "-"]);
    let ended = run(layers, b"");
    run(command("delpart", &[&device, "1"]), b"");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let found = json_of(ended.text());
    let rows = found["cases"][0]["rows"].as_array().expect("rows");
    let classes = rows.iter().map(|row| row["class"].as_str());
    let classes: Vec<&str> = classes.flatten().collect();
    assert_eq!(classes, ["PART", "LOOP", "FILE"], "{found:#}");
    let made = found["target"].as_str().expect("a partition");
    assert!(made.ends_with("p1") && made != partition, "{made}");
    assert!(!Path::new(made).exists(), "{made} is left");
}

#[test]
fn a_file_is_a_layer_of_its_own_above_its_device() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().canonicalize().expect("a path").join("a.bin");
    std::fs::write(&file, vec![1; 1 << 20]).expect("a file");
    let mut layers = command(UGEOM, &["lab", "layers", "--kernel", &text(&file)]);
    layers.args(["--budget", "100ms", "--json", "-"]);
    let ended = run(layers, b"");
    if ended.code == 2 {
        return skip(ended.stderr.trim());
    }
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let found = json_of(ended.text());
    let top = &found["cases"][0]["rows"][0];
    assert_eq!(
        (top["name"].as_str(), top["class"].as_str()),
        (file.to_str(), Some("FILE")),
        "{found:#}"
    );
}
