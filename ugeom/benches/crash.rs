//! `cargo bench -p ugeom --bench crash [-- WORD...]`: the cost of `ugeom crash`, each figure over
//! fresh processes with its 95 % interval:
//!
//! - `states`: crash states checked per second; SQLite's integrity check on 10 MB with ext4 (root);
//! - `recording`: fio's random writes of 4 KiB at queue depth 32 over NBD, into memory that is
//!   recorded beside memory that is not, in the same rounds;
//! - `shrink`: seconds for a whole command that checks eight states and shrinks the smallest that
//!   fails, SQLite without syncs (root);
//! - `memory`: the most memory of a campaign over a log of a million writes, MiB.
//!
//! With words, only these. `UGEOM_BENCH_ROUNDS` sets the number of processes. Started as a test it
//! measures the memory for a short log.

use std::error::Error;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use ugeom_measure::interval::student_of;
use ugeom_measure::ratio::log_ratio_paired;
use ugeom_testkit::Server;

type Failure = Box<dyn Error>;

const UGEOM: &str = env!("CARGO_BIN_EXE_ugeom");
const CONFIDENCE: f64 = 0.95;
/// States that a campaign is asked for.
const STATES: &str = "400";
/// Bytes that fio writes in a run.
const FIO_BYTES: &str = "400m";

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let as_bench = arguments.iter().any(|argument| argument == "--bench");
    let words: Vec<&String> = arguments.iter().filter(|it| !it.starts_with('-')).collect();
    let wants = |name: &str| words.is_empty() || words.iter().any(|word| *word == name);
    let rounds = std::env::var("UGEOM_BENCH_ROUNDS").ok();
    let rounds: Option<usize> = rounds.map(|text| text.parse()).transpose()?;
    let folder = tempfile::tempdir()?;
    if !as_bench {
        return memory(folder.path(), 2000, 2);
    }
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("states, shrink: left out, only root mounts file systems");
    }
    if wants("states") && root {
        states(folder.path(), rounds.unwrap_or(8))?;
    }
    if wants("shrink") && root {
        shrink(folder.path(), rounds.unwrap_or(5))?;
    }
    if wants("recording") {
        recording(folder.path(), rounds.unwrap_or(12))?;
    }
    if wants("memory") {
        memory(folder.path(), 1_000_000, rounds.unwrap_or(3))?;
    }
    Ok(())
}

/// Prints a figure with its interval.
fn tell(name: &str, values: &[f64], unit: &str) -> Result<(), Failure> {
    let first = values.first().copied().unwrap_or_default();
    if values.iter().all(|value| *value == first) {
        println!(
            "{name}: {first:.1} {unit} in each of {} processes",
            values.len()
        );
        return Ok(());
    }
    let interval = student_of(values, CONFIDENCE)?.interval;
    println!(
        "{name}: {:.1} {unit} (95 % CI {:.1} to {:.1}; {} processes, {:.1} to {:.1})",
        interval.estimate,
        interval.low,
        interval.high,
        values.len(),
        values.iter().copied().fold(f64::INFINITY, f64::min),
        values.iter().copied().fold(0.0, f64::max),
    );
    Ok(())
}

/// `ugeom crash` in that folder, with the result as JSON.
fn crash(folder: &Path, arguments: &[&str]) -> Result<serde_json::Value, Failure> {
    let mut command = Command::new(UGEOM);
    command.args(["crash", "--json"]).args(arguments);
    let output = command.current_dir(folder).output()?;
    serde_json::from_slice(&output.stdout).map_err(|_| said(&output).into())
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Commands of a database that inserts and is checked, as in docs/crash.md.
fn record(folder: &Path, sync: &str) -> Result<(), Failure> {
    let run = format!(
        "{{ echo 'pragma journal_mode=wal; pragma synchronous={sync};'
        for i in $(seq 30); do echo \"insert into t values($i, zeroblob(1000)); select 'ack $i';\"
        done; }} | stdbuf -oL sqlite3 $mnt/db >&3"
    );
    let setup = "sqlite3 $mnt/db 'create table t(k primary key, v)'";
    let arguments = ["--log", "log", "--points", "1", "--no-durability"];
    let device = ["--size", "10m", "--fs", "ext4", "--check", "true"];
    let all = [&arguments[..], &device, &["--setup", setup, "--run", &run]].concat();
    crash(folder, &all).map(|_| ())
}

const INTEGRITY: &str = "test \"$(sqlite3 $mnt/db 'pragma integrity_check')\" = ok";

fn states(folder: &Path, rounds: usize) -> Result<(), Failure> {
    record(folder, "full")?;
    let mut rates = Vec::new();
    for _ in 0..rounds {
        let started = Instant::now();
        let arguments = ["--log", "log", "--fs", "ext4", "--points", STATES];
        let judged = ["--no-durability", "--check", INTEGRITY];
        let found = crash(folder, &[&arguments[..], &judged].concat())?;
        let states = found["states"].as_f64().ok_or("no states")?;
        rates.push(states / started.elapsed().as_secs_f64());
    }
    tell("states checked per second", &rates, "states/s")
}

fn shrink(folder: &Path, rounds: usize) -> Result<(), Failure> {
    record(folder, "off")?;
    let check = format!("{INTEGRITY} && sqlite3 $mnt/db \"select 'found ' || k from t\" >&3");
    let (mut times, mut checks) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let started = Instant::now();
        let arguments = ["--log", "log", "--fs", "ext4", "--points", "8"];
        let found = crash(folder, &[&arguments[..], &["--check", &check]].concat())?;
        times.push(started.elapsed().as_secs_f64());
        checks.push(
            found["smallest"]["checks"]
                .as_f64()
                .ok_or("nothing fails")?,
        );
    }
    tell("eight states, and one failure made smaller", &times, "s")?;
    tell("checks of it", &checks, "checks")
}

/// Write IOPS of fio at a target.
fn fio(folder: &Path, target: &str) -> Result<f64, Failure> {
    let socket = folder.join("socket");
    for old in [&socket, &folder.join("run.log")] {
        // The first round has none.
        let _ = std::fs::remove_file(old);
    }
    let address = format!("unix:{}", socket.display());
    let mut serve = Command::new(UGEOM);
    serve.args([
        "serve",
        target,
        "--rw",
        "--control",
        "none",
        "--nbd",
        &address,
    ]);
    let serve = serve.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let server = Server(serve);
    let started = Instant::now();
    while !socket.exists() {
        if started.elapsed() > Duration::from_secs(30) {
            return Err(format!("{target} is not served").into());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut fio = Command::new("fio");
    fio.args([
        "--name=n",
        "--ioengine=nbd",
        "--rw=randwrite",
        "--bs=4k",
        "--iodepth=32",
    ]);
    fio.args(["--size=64m", "--norandommap", "--output-format=json"]);
    fio.arg(format!("--io_size={FIO_BYTES}"));
    fio.arg(format!("--uri=nbd+unix:///?socket={}", socket.display()));
    let output = fio.output()?;
    drop(server);
    let text = String::from_utf8_lossy(&output.stdout);
    let json = text.find('{').map_or("", |at| &text[at..]);
    let found: serde_json::Value = serde_json::from_str(json).map_err(|_| said(&output))?;
    let rate = found["jobs"][0]["write"]["iops"].as_f64();
    Ok(rate.filter(|rate| *rate > 0.0).ok_or("fio wrote nothing")?)
}

fn recording(folder: &Path, rounds: usize) -> Result<(), Failure> {
    let recorded = format!("md:64m | crash:log={}", folder.join("run.log").display());
    let (mut plain, mut logged) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        // The order changes, so that neither always comes after the other.
        if round % 2 == 0 {
            plain.push(fio(folder, "md:64m")?);
            logged.push(fio(folder, &recorded)?);
        } else {
            logged.push(fio(folder, &recorded)?);
            plain.push(fio(folder, "md:64m")?);
        }
    }
    tell("plain device", &plain, "IOPS")?;
    tell("recorded device", &logged, "IOPS")?;
    let cost = log_ratio_paired(&plain, &logged, CONFIDENCE)?.interval;
    println!(
        "cost of recording: {:.2} x (95 % CI {:.2} to {:.2})",
        cost.estimate, cost.low, cost.high
    );
    Ok(())
}

fn memory(folder: &Path, writes: u64, rounds: usize) -> Result<(), Failure> {
    let log = folder.join("long");
    write_log(&log, writes)?;
    let mut peaks = Vec::new();
    for _ in 0..rounds {
        let mut child = Command::new(UGEOM)
            .args([
                "crash", "--points", "100", "--jobs", "2", "--check", "true", "--log",
            ])
            .arg(&log)
            .stdout(Stdio::null())
            .spawn()?;
        let status = format!("/proc/{}/status", child.id());
        let mut peak_kib = 0.0_f64;
        let ended = loop {
            let text = std::fs::read_to_string(&status).unwrap_or_default();
            let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let peak = peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse().ok());
            peak_kib = peak_kib.max(peak.unwrap_or(0.0));
            if let Some(ended) = child.try_wait()? {
                break ended;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        if !ended.success() {
            return Err("the campaign failed".into());
        }
        peaks.push(peak_kib / 1024.0);
    }
    std::fs::remove_file(&log)?;
    tell(&format!("memory, {writes} writes"), &peaks, "MiB")
}

/// A log of that many writes, with a barrier after each thousand.
fn write_log(path: &Path, writes: u64) -> Result<(), Failure> {
    const SECTORS: u64 = 16384;
    let recording = ugeom_crash::Recording::start(path, SECTORS * 512)?;
    let disk = recording.disk();
    recording.begin();
    let mut random = fastrand::Rng::with_seed(7);
    for number in 1..=writes {
        disk.write(random.u64(..SECTORS) * 512, &[number as u8; 512])?;
        if number % 1000 == 0 {
            disk.flush()?;
        }
    }
    Ok(recording.finish()?)
}
