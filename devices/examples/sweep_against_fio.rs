//! Holds the cases of `ugeom lab sweep` against programs of others: sequential reads past the
//! system's cache in blocks of 4, 64 and 512 KiB, by fio and by a case of the sweep in the same
//! rounds, in random order, of a temporary file and (as root) of a loop device over it; what the
//! kernel counted beside them; and once `iostat -x`.
//!
//! Run it with `cargo run --release -p ugeom-devices --example sweep_against_fio`, and behind `--`
//! the folder of the temporary file, the seed, the seconds to go on for, the cores, and what is
//! read, if not the current one, 1, 30, `any`, and `file,loop`; `file 4k` is one size only. Cores
//! are a list: with `any,0,1` both programs are measured where the system puts them, and bound to
//! core 0, and to core 1. A read sleeps until the device's interrupt wakes it; on another core than
//! the interrupt's that is a wake-up across cores, so that two programs can only be compared on the
//! same one.
//!
//! fio tells its time in whole milliseconds: of runs of 400 ms that is up to 0.3 %. It also tells
//! how long its reads took by themselves. The rest is its own bookkeeping between them, which a
//! sweep does not have: where the ratio of the rates leaves the promised range, the ratio to the
//! time of the reads alone says whether that is why.
//!
//! Ends with 1 when neither ratio of a size can be the promised one: when both intervals lie
//! wholly outside.
#![forbid(unsafe_code)]

use serde_json::Value;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use ugeom_devices::sweep::direct_reads;
use ugeom_harness::scratch::Scratch;
use ugeom_harness::{Case, Counters, DeviceCounts};
use ugeom_load::devices::KernelDevice;
use ugeom_machine::cpu;
use ugeom_measure::Interval;
use ugeom_measure::ratio::log_ratio_paired;

/// The range that the ratio of the rates has to lie in.
const PROMISED: (f64, f64) = (0.95, 1.05);
const BLOCKS_BYTES: [u64; 3] = [4 << 10, 64 << 10, 512 << 10];
/// The temporary file, bytes.
const FILE_BYTES: u64 = 128 << 20;
/// A run of either program takes about this long.
const RUN: Duration = Duration::from_millis(400);
/// So many rounds at least,
const ROUNDS_MIN: usize = 10;
/// and more while this time is not over, if no other is given, seconds.
const ENOUGH_S: u64 = 30;
/// The interval of one report of iostat, seconds.
const IOSTAT_S: u64 = 3;
/// How long is read meanwhile.
const WATCHED: Duration = Duration::from_millis(500);

static GO_ON: AtomicBool = AtomicBool::new(false);

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| ".".to_owned());
    let mut number = |default| {
        arguments
            .next()
            .map_or(Ok(default), |text| text.parse::<u64>())
    };
    let (seed, enough_s) = (number(1), number(ENOUGH_S));
    let cores = arguments.next().unwrap_or_else(|| "any".to_owned());
    let cores: Option<Vec<Core>> = cores.split(',').map(core_of).collect();
    let wanted = arguments.next().unwrap_or_else(|| "file,loop".to_owned());
    let (Ok(seed), Ok(enough_s), Some(cores)) = (seed, enough_s, cores) else {
        eprintln!("usage: sweep_against_fio [FOLDER] [SEED] [SECONDS] [any,0,1...] [file,loop]");
        return ExitCode::from(2);
    };
    let enough = Duration::from_secs(enough_s);
    match compare(Path::new(&folder), seed, enough, (&cores, &wanted)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("sweep_against_fio: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The core that both programs are bound to; none where the system puts them.
type Core = Option<usize>;

fn core_of(text: &str) -> Option<Core> {
    match text {
        "any" => Some(None),
        number => number.parse().ok().map(Some),
    }
}

/// A block size of a target, and what both programs did with it.
struct Pair<'a> {
    name: String,
    path: PathBuf,
    core: Core,
    device: Option<KernelDevice>,
    block_bytes: u64,
    /// The part of the target that is read, over and over, bytes.
    region_bytes: u64,
    /// Blocks of a run: whole regions.
    blocks: u64,
    ours: Case<'a>,
    our_ns: Vec<f64>,
    fio_ns: Vec<f64>,
    /// The time of fio's reads by themselves, ns a block.
    fio_read_ns: Vec<f64>,
    /// The counters of the device over all of our runs.
    our_device: DeviceCounts,
    /// And during those of fio.
    fio_device: DeviceCounts,
}

/// Measures and prints; whether every size keeps the promise or says why not.
fn compare(
    folder: &Path,
    seed: u64,
    enough: Duration,
    (cores, wanted): (&[Core], &str),
) -> Result<bool> {
    let version = output(Command::new("fio").arg("--version"))?;
    let scratch = Scratch::new(Some(folder), FILE_BYTES, seed, &GO_ON)?;
    let looped = match Loop::over(scratch.path()) {
        Ok(looped) => Some(looped),
        Err(error) => {
            eprintln!("SKIP the loop device: {error}");
            None
        }
    };
    let mut targets = vec![("file", scratch.path().to_owned())];
    targets.extend(looped.iter().map(|looped| ("loop", looped.path.clone())));
    let mut pairs = Vec::new();
    for (name, path) in &targets {
        for block_bytes in BLOCKS_BYTES {
            let name = format!("{name} {}k", block_bytes >> 10);
            if !wanted.split(',').any(|wanted| name.starts_with(wanted)) {
                continue;
            }
            for core in cores {
                pairs.push(Pair::new(&name, path, block_bytes, *core)?);
            }
        }
    }
    let rounds = run(&mut pairs, seed, enough)?;
    println!(
        "{} against ugeom's sweep: {rounds} rounds, seed {seed}, in {}",
        version.trim(),
        folder.display()
    );
    println!("reads past the cache; ratios of rates, ugeom / fio, with their 95 % intervals");
    let mut kept = true;
    for pair in &pairs {
        kept &= pair.print()?;
    }
    // The loop device, if there is one: no other program reads it.
    if let Some(pair) = pairs.last_mut() {
        beside_iostat(pair)?;
    }
    Ok(kept)
}

/// Rounds in random order.
fn run(pairs: &mut [Pair<'_>], seed: u64, enough: Duration) -> Result<usize> {
    let mut random = fastrand::Rng::with_seed(seed);
    let started = Instant::now();
    let mut rounds = 0;
    while rounds < ROUNDS_MIN || started.elapsed() < enough {
        let both = |index| [(index, true), (index, false)];
        let mut order: Vec<_> = (0..pairs.len()).flat_map(both).collect();
        random.shuffle(&mut order);
        for (index, is_ours) in order {
            match is_ours {
                true => pairs[index].run_ours()?,
                false => pairs[index].run_fio()?,
            }
        }
        rounds += 1;
    }
    Ok(rounds)
}

impl Pair<'_> {
    fn new(name: &str, path: &Path, block_bytes: u64, core: Core) -> Result<Self> {
        let place = core.map_or(String::new(), |core| format!(", core {core}"));
        let name = format!("{name}{place}");
        let (mut tried, mut spent_ns) = (1, 0);
        let mut trial = direct_reads(&name, path, (block_bytes, FILE_BYTES), &GO_ON)?;
        while Duration::from_nanos(spent_ns) < RUN / 2 {
            tried *= 2;
            spent_ns = (trial.run)(tried)?.ns_total;
        }
        let filling = RUN.as_nanos() as f64 * tried as f64 / spent_ns as f64;
        let wanted = (filling as u64).max(1);
        let in_region = wanted.min(FILE_BYTES / block_bytes);
        let region_bytes = in_region * block_bytes;
        Ok(Self {
            ours: direct_reads(&name, path, (block_bytes, region_bytes), &GO_ON)?,
            name,
            path: path.to_owned(),
            core,
            device: KernelDevice::below(path),
            block_bytes,
            region_bytes,
            blocks: wanted.div_ceil(in_region) * in_region,
            our_ns: Vec::new(),
            fio_ns: Vec::new(),
            fio_read_ns: Vec::new(),
            our_device: DeviceCounts::default(),
            fio_device: DeviceCounts::default(),
        })
    }

    fn counts(&self) -> DeviceCounts {
        let read = self.device.as_ref().and_then(Counters::read);
        read.unwrap_or_default()
    }

    fn run_ours(&mut self) -> Result<()> {
        let before = self.counts();
        let elsewhere = self.core.map(|core| cpu::pin(&[core])).transpose()?;
        let result = (self.ours.run)(self.blocks);
        elsewhere.map_or(Ok(()), |elsewhere| elsewhere.apply())?;
        let result = result?;
        let did = self.counts().since(&before);
        add(&mut self.our_device, &did);
        let blocks = result.work.transactions as f64;
        self.our_ns.push(result.ns_total as f64 / blocks);
        Ok(())
    }

    fn run_fio(&mut self) -> Result<()> {
        let before = self.counts();
        let mut fio = Command::new("fio");
        fio.args(["--name=sweep", "--readonly", "--thread", "--invalidate=0"])
            .args(["--ioengine=psync", "--direct=1", "--rw=read"])
            .arg(format!("--filename={}", self.path.display()))
            .arg(format!("--bs={}", self.block_bytes))
            .arg(format!("--size={}", self.region_bytes))
            .arg(format!("--io_size={}", self.blocks * self.block_bytes))
            .arg("--output-format=json")
            .args(self.core.map(|core| format!("--cpus_allowed={core}")));
        let document: Value = serde_json::from_str(&output(&mut fio)?)?;
        let did = self.counts().since(&before);
        add(&mut self.fio_device, &did);
        let read = &document["jobs"][0]["read"];
        let of = |value: &Value| value.as_f64().ok_or("fio's JSON lacks a figure");
        let blocks = of(&read["total_ios"])?;
        if blocks != self.blocks as f64 {
            return Err(format!("fio read {blocks} blocks and not {}", self.blocks).into());
        }
        self.fio_ns.push(of(&read["runtime"])? * 1e6 / blocks);
        self.fio_read_ns.push(of(&read["lat_ns"]["mean"])?);
        Ok(())
    }

    /// Prints what came out; false when no ratio can be the promised one.
    fn print(&self) -> Result<bool> {
        // Rates are the inverse of times.
        let rates = log_ratio_paired(&self.fio_ns, &self.our_ns, 0.95)?.interval;
        let reads = log_ratio_paired(&self.fio_read_ns, &self.our_ns, 0.95)?.interval;
        let us = |ns: &[f64]| ns.iter().sum::<f64>() / ns.len() as f64 / 1e3;
        println!(
            "\n{}: {:.1} us a block, fio {:.1} us, of which its reads {:.1} us",
            self.name,
            us(&self.our_ns),
            us(&self.fio_ns),
            us(&self.fio_read_ns)
        );
        println!("  of the runs          {rates:.3}: {}", judged(&rates));
        println!("  of fio's reads alone {reads:.3}: {}", judged(&reads));
        let asked = self.blocks * self.our_ns.len() as u64;
        for (who, did) in [("ugeom", &self.our_device), ("fio", &self.fio_device)] {
            println!(
                "  {who:<5} asked for {asked} transfers, {} bytes; {} did {}, {} bytes",
                asked * self.block_bytes,
                self.device.as_ref().map_or("nothing", Counters::name),
                did.reads,
                did.read_bytes
            );
        }
        Ok(!(is_outside(&rates) && is_outside(&reads)))
    }
}

fn is_outside(ratio: &Interval) -> bool {
    ratio.high < PROMISED.0 || ratio.low > PROMISED.1
}

fn judged(ratio: &Interval) -> String {
    let word = match (ratio.lies_within(PROMISED.0, PROMISED.1), is_outside(ratio)) {
        (true, _) => "inside",
        (_, true) => "outside",
        _ => "not decided: reaches out of",
    };
    format!("{word} [{}, {}]", PROMISED.0, PROMISED.1)
}

fn add(sum: &mut DeviceCounts, more: &DeviceCounts) {
    sum.reads += more.reads;
    sum.read_bytes += more.read_bytes;
}

/// Runs a pair's blocks while iostat watches the device, and prints both counts.
fn beside_iostat(pair: &mut Pair<'_>) -> Result<()> {
    let Some(device) = pair.device.clone() else {
        eprintln!("SKIP iostat: the target has no device");
        return Ok(());
    };
    // Without its first report, which is of the time since the start of the system.
    let mut iostat = Command::new("iostat");
    iostat.args(["-x", "-y", "-o", "JSON", device.name()]);
    iostat.args([&IOSTAT_S.to_string(), "1"]);
    let watching = iostat.stdout(Stdio::piped()).spawn();
    let watching = match watching {
        Ok(watching) => watching,
        Err(error) => {
            eprintln!("SKIP iostat: {error} (package sysstat)");
            return Ok(());
        }
    };
    std::thread::sleep(Duration::from_millis(500));
    let (before, mut asked) = (pair.counts(), 0);
    let (started, piece) = (Instant::now(), pair.blocks.div_ceil(8));
    while started.elapsed() < WATCHED {
        (pair.ours.run)(piece)?;
        asked += piece;
    }
    let did = pair.counts().since(&before);
    let ended = watching.wait_with_output()?;
    let document: Value = serde_json::from_slice(&ended.stdout)?;
    let disk = &document["sysstat"]["hosts"][0]["statistics"][0]["disk"][0];
    let in_all = |key: &str| disk[key].as_f64().unwrap_or(f64::NAN) * IOSTAT_S as f64;
    println!(
        "\niostat -x {}, {IOSTAT_S} s around {} of ugeom:",
        device.name(),
        pair.name
    );
    println!(
        "  asked for    {asked} transfers, {} KiB",
        (asked * pair.block_bytes) >> 10
    );
    println!(
        "  ugeom counts {} transfers, {} KiB",
        did.reads,
        did.read_bytes >> 10
    );
    println!(
        "  iostat shows {:.0} transfers, {:.0} KiB (r/s and rkB/s times its seconds)",
        in_all("r/s"),
        in_all("rkB/s")
    );
    Ok(())
}

/// A loop device, which is removed when this is dropped.
struct Loop {
    path: PathBuf,
}

impl Loop {
    fn over(file: &Path) -> Result<Self> {
        let mut losetup = Command::new("losetup");
        losetup.args(["--find", "--show", "--read-only"]).arg(file);
        let path = output(&mut losetup)?;
        Ok(Self {
            path: PathBuf::from(path.trim()),
        })
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let removed = output(Command::new("losetup").arg("--detach").arg(&self.path));
        if let Err(error) = removed {
            eprintln!("sweep_against_fio: {} stays: {error}", self.path.display());
        }
    }
}

/// The output of a program.
fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let ended = command
        .output()
        .map_err(|error| format!("{name}: {error}"))?;
    if !ended.status.success() {
        let said = String::from_utf8_lossy(&ended.stderr);
        return Err(format!("{name}: {}: {}", ended.status, said.trim()).into());
    }
    Ok(String::from_utf8(ended.stdout)?)
}
