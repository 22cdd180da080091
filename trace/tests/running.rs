//! Traces of the running kernel. They need the right to use BPF, and some of them loop devices;
//! without these they skip.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use ugeom_machine::buffer::Buffer;
use ugeom_testkit::LoopDevice;
use ugeom_trace::figures::{About, Traced};
use ugeom_trace::load;
use ugeom_trace::overhead::{self, OverheadError};
use ugeom_trace::session::{Scope, Session};
use ugeom_trace::source::Choice;
use ugeom_trace::tally::Tally;
use ugeom_trace::tree::KernelTree;

const BLOCK: usize = 4096;

/// Reads blocks of a path past the page cache: the time of each, ns.
fn read(path: &Path, count: u64) -> io::Result<Vec<u64>> {
    let file = File::options()
        .read(true)
        .custom_flags(rustix::fs::OFlags::DIRECT.bits() as i32)
        .open(path)?;
    let mut buffer = Buffer::new(BLOCK);
    let mut times = Vec::new();
    for at in 0..count {
        let started = Instant::now();
        file.read_exact_at(&mut buffer[..], (at * 37 % 251) * BLOCK as u64)?;
        times.push(started.elapsed().as_nanos() as u64);
    }
    Ok(times)
}

/// Traces reads of a path: the figures, and the times that the reader measured.
fn trace(of: &Path, count: u64, source: Choice) -> Option<(Traced, Vec<u64>)> {
    let tree = KernelTree::now().ok()?;
    let at = tree.at(of).ok().flatten();
    let Some(at) = at else {
        ugeom_testkit::skip(&format!("{}: lies on no block device", of.display()));
        return None;
    };
    let scope = Scope::of(&tree, &[at]);
    let mut session = match Session::start(scope.clone(), &[source]) {
        Ok(session) => session,
        Err(why) => {
            ugeom_testkit::skip(&why);
            return None;
        }
    };
    let mut tally = Tally::new(scope.tops.clone());
    let path = of.to_owned();
    let reader = std::thread::spawn(move || read(&path, count));
    while !reader.is_finished() {
        std::thread::sleep(Duration::from_millis(5));
        for tree in session.poll(&mut |_| {}).unwrap() {
            tally.add(&tree);
        }
    }
    let times = match reader.join().unwrap() {
        Ok(times) => times,
        Err(error) => {
            ugeom_testkit::skip(&format!("reading {}: {error}", of.display()));
            return None;
        }
    };
    let ended = session.finish(&mut |_| {}).unwrap();
    for tree in &ended.trees {
        tally.add(tree);
    }
    let about = About {
        targets: Vec::new(),
        source: source.name(),
        seconds: 1.0,
        scope: &scope,
    };
    let traced = Traced::new(&about, &tally, (ended.lost, ended.quality, ended.checks));
    assert_eq!(traced.parts_ns, traced.whole_ns);
    Some((traced, times))
}

/// The result without its long lists.
fn brief(traced: &Traced) -> String {
    let layer = |layer: &ugeom_trace::figures::LayerFigures| {
        let name = format!("{}{}", "  ".repeat(layer.depth), layer.name);
        format!(
            "{name} {} {:.0} ns {:?}",
            layer.requests, layer.exclusive_mean_ns, layer.phases_ns
        )
    };
    let layers: Vec<String> = traced.layers.iter().map(layer).collect();
    let Traced {
        requests,
        lost,
        quality,
        others,
        checks,
        ..
    } = traced;
    let layers = layers.join("\n");
    format!("{requests} {lost} {quality:?}\n{layers}\n{others:?}\n{checks:?}")
}

fn image(folder: &Path) -> PathBuf {
    let path = folder.join("disk.img");
    std::fs::write(&path, vec![7; 256 * BLOCK]).unwrap();
    File::open(&path).unwrap().sync_all().unwrap();
    path
}

#[test]
fn each_read_of_a_loop_device_is_found_with_its_layers() {
    let folder = tempfile::tempdir().unwrap();
    let Some(device) = LoopDevice::over(&image(folder.path()), &["--direct-io=on"]) else {
        return;
    };
    for source in Choice::ALL {
        reads_are_found(&device.path, source);
    }
}

fn reads_are_found(device: &Path, source: Choice) {
    let Some((traced, times)) = trace(device, 300, source) else { return };
    // Some kernels run no program at events of one processor: a few with BPF, all that end in its
    // idle task with perf events. The trace may not hide that.
    let name = device.strip_prefix("/dev").unwrap().to_string_lossy();
    let mut checks = traced.checks.iter();
    let check = checks.find(|check| check.device == name);
    let agrees = check.is_some_and(ugeom_trace::session::Check::agrees);
    assert!(agrees || !traced.warnings().is_empty(), "{check:?}");
    if !agrees && source == Choice::Perf {
        ugeom_testkit::skip("perf events of this kernel miss requests, which is reported");
        return;
    }
    assert_eq!(traced.layers[0].name, name, "{source:?}");
    let (seen, open) = (traced.requests, traced.quality.unmatched_starts);
    let all = seen + open + traced.lost;
    let found = all >= 300 && seen >= 270;
    assert!(found, "{source:?}: {}", brief(&traced));
    // The reader's latencies are those of the trace, but for entering and leaving the kernel. Means
    // also have what other programs took from the reader outside of its requests.
    let mut sorted = times.clone();
    sorted.sort_unstable();
    let own = sorted[sorted.len() / 2] as f64;
    let share = traced.percentiles_ns[0].1[1] as f64 / own;
    assert!((0.7..1.05).contains(&share), "{share}: {}", brief(&traced));
}

#[test]
fn chains_of_loop_devices_have_a_layer_each() {
    let folder = tempfile::tempdir().unwrap();
    let mut devices: Vec<LoopDevice> = Vec::new();
    let mut below = image(folder.path());
    for depth in 1..=6 {
        let Some(device) = LoopDevice::over(&below, &["--direct-io=on"]) else { return };
        below.clone_from(&device.path);
        devices.push(device);
        layers_are_found(&below, (depth, Choice::Bpf));
        if depth == 6 {
            layers_are_found(&below, (depth, Choice::Tracefs));
        }
    }
    // The uppermost first.
    while devices.pop().is_some() {}
}

fn layers_are_found(of: &Path, (depth, source): (usize, Choice)) {
    let Some((traced, _)) = trace(of, 100, source) else { return };
    // Other programs look at new devices, too; their requests are few.
    let mut loops: Vec<&str> = traced
        .layers
        .iter()
        .filter(|layer| layer.name.starts_with("loop") && layer.requests >= 90)
        .map(|layer| layer.name.as_str())
        .collect();
    loops.dedup();
    assert_eq!(loops.len(), depth, "{}", brief(&traced));
    assert!(traced.ambiguous_percent < 1.0, "{}", brief(&traced));
}

/// A loop device over an image, and the scope that has only it.
fn traced_device() -> Option<(LoopDevice, Scope, tempfile::TempDir)> {
    let folder = tempfile::tempdir().unwrap();
    let device = LoopDevice::over(&image(folder.path()), &["--direct-io=on"])?;
    let tree = KernelTree::now().unwrap();
    let at = tree.at(&device.path).unwrap().unwrap();
    let scope = Scope::of(&tree, &[at]);
    Some((device, scope, folder))
}

#[test]
fn the_cost_of_a_trace_is_measured_on_the_device_itself() {
    let Some((device, scope, _folder)) = traced_device() else { return };
    let size = 256 * BLOCK as u64;
    let cancelled = AtomicBool::new(false);
    let measured = overhead::measure(&device.path, size, (&scope, &Choice::ALL), 3, &cancelled);
    let found = match measured {
        Err(OverheadError::Source(why)) => return ugeom_testkit::skip(&why),
        other => other.unwrap(),
    };
    // A worker serves each read, so the difference says nothing of an event.
    assert!(
        !found.synchronous && found.event_ns().is_none(),
        "{found:?}"
    );
    assert!(found.events_per_read >= 4.0, "{found:?}");
    assert!(found.read_ns.estimate > 0.0, "{found:?}");
    let none = Path::new("/dev/no-such-device");
    let error = overhead::measure(none, size, (&scope, &Choice::ALL), 3, &cancelled).unwrap_err();
    assert!(error.to_string().contains("no-such-device"), "{error}");
}

#[test]
fn the_effect_of_a_trace_is_measured_on_runs_of_a_command() {
    let Some((device, scope, _folder)) = traced_device() else { return };
    let of = device.text();
    let cancelled = AtomicBool::new(false);
    let run = |script: &str| {
        let command = ["sh", "-c", script].map(Into::into);
        load::measure(
            &command,
            std::slice::from_ref(&of),
            (&scope, &Choice::ALL),
            3,
            &cancelled,
        )
    };
    let reads = format!("dd if={of} of=/dev/null bs=4k count=100 iflag=direct 2>/dev/null");
    let found = match run(&reads) {
        Err(OverheadError::Source(why)) => return ugeom_testkit::skip(&why),
        other => other.unwrap(),
    };
    // Three traced runs of a hundred reads, each with four events and more.
    assert!(found.events + found.lost >= 1200, "{found:?}");
    assert!(found.ratio.contains(found.ratio.estimate) && found.ratio.low > 0.0);
    let text = found.page().to_text(100);
    assert!(text.contains("interval  "), "{text}");
    let error = run("exit 3").unwrap_err().to_string();
    assert!(error.contains("it failed: exit status: 3"), "{error}");
}
