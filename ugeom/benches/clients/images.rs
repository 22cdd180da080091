//! Images of virtual machines beside qemu's own programs, in the same rounds:
//!
//! - random reads of 4 KiB at queue depth 32 from one qcow2 image, by one client (the class `nbd`)
//!   from `ugeom serve` and from `qemu-nbd`, and in this process without a server;
//! - seconds in which an image of 10 GiB with 1 GiB of data is copied out, by `ugeom read` and by
//!   `qemu-img convert -S 4k`, from qcow2 and from a plain file.
//!
//! Images lie in `TMPDIR`; everything is in the page cache.

use crate::Plan;
use crate::reads::iops;
use crate::shared::{Failure, Process, program, ugeom, words};
use crate::table::{middle, ratios};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use ugeom_classes::{Target, TargetOptions, open_target};
use ugeom_stack::{Channel, Delta, Opened, StackKnobs, Statistics};

const MIB: u64 = 1 << 20;
const REQUEST_BYTES: u64 = 4096;
const DEPTH: usize = 32;
/// Data of an image comes in pieces of this.
const PIECE_BYTES: u64 = 4 * MIB;

pub(crate) fn measure(plan: Plan) -> Result<(), Failure> {
    let missing = ["qemu-img", "qemu-nbd"].map(|name| program(name).is_none());
    if missing != [false; 2] {
        println!("SKIP images: qemu-img or qemu-nbd is not installed (Debian: qemu-utils)");
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let read_bytes = (plan.bytes / 4).next_multiple_of(PIECE_BYTES);
    read(folder.path(), read_bytes, plan)?;
    match plan.others {
        true => copy(folder.path(), plan.rounds),
        false => Ok(()),
    }
}

/// A plain image: every `apart`-th piece is data, the others are holes.
fn plain(path: &Path, size_bytes: u64, apart: u64) -> Result<(), Failure> {
    let file = File::create(path)?;
    file.set_len(size_bytes)?;
    let mut random = fastrand::Rng::with_seed(3);
    let mut data = vec![0; PIECE_BYTES.min(size_bytes) as usize];
    for at in (0..size_bytes).step_by((PIECE_BYTES * apart) as usize) {
        random.fill(&mut data);
        file.write_all_at(&data, at)?;
    }
    Ok(())
}

fn converted(from: &Path, to: &Path) -> Result<(), Failure> {
    let mut command = Command::new("qemu-img");
    command.args(["convert", "-f", "raw", "-O", "qcow2"]);
    let status = command.args([from, to]).status()?;
    status
        .success()
        .then_some(())
        .ok_or("qemu-img failed".into())
}

/// The data source: a server or this process.
struct Reader {
    channel: Channel,
    opened: Opened,
    size_bytes: u64,
    /// Keeps what is open.
    _target: Target,
    /// The server, which ends when this is dropped.
    _process: Option<Process>,
}

impl Reader {
    fn new(process: Option<Process>, image: &str, size_bytes: u64) -> Result<Self, Failure> {
        let options = TargetOptions {
            knobs: StackKnobs {
                taste: false,
                statistics: Statistics::Off,
                ..StackKnobs::default()
            },
            ..TargetOptions::default()
        };
        let uri = process.as_ref().map(Process::uri);
        let target = open_target(uri.as_deref().unwrap_or(image), &options)?;
        Ok(Self {
            opened: target.open(Delta::READ)?,
            channel: target.stack.channel(DEPTH)?,
            size_bytes,
            _target: target,
            _process: process,
        })
    }

    /// Requests in a second.
    fn measure(&mut self, run: Duration, seed: u64) -> Result<f64, Failure> {
        let mut random = fastrand::Rng::with_seed(seed);
        let places = self.size_bytes / REQUEST_BYTES;
        let place = || random.u64(..places) * REQUEST_BYTES;
        let work = (REQUEST_BYTES as usize, DEPTH);
        iops(&mut self.channel, &self.opened, work, run, place)
    }
}

fn read(folder: &Path, size_bytes: u64, plan: Plan) -> Result<(), Failure> {
    let (raw, image) = (folder.join("read.img"), folder.join("read.qcow2"));
    plain(&raw, size_bytes, 1)?;
    converted(&raw, &image)?;
    let image = image.display().to_string();
    let (ours, theirs) = (folder.join("ours"), folder.join("theirs"));
    let socket = theirs.display().to_string();
    let line = words(&[
        "qemu-nbd", "-t", "-r", "-e", "4", "-f", "qcow2", "-k", &socket, &image,
    ]);
    let mut readers = [
        Reader::new(
            Some(Process::start(&ugeom(&ours, &[&image]), &ours)?),
            "",
            size_bytes,
        )?,
        Reader::new(Some(Process::start(&line, &theirs)?), "", size_bytes)?,
        Reader::new(None, &image, size_bytes)?,
    ];
    let mut rates: [Vec<f64>; 3] = Default::default();
    for round in 0..=plan.rounds {
        let mut order: Vec<usize> = (0..readers.len()).collect();
        fastrand::Rng::with_seed(round as u64).shuffle(&mut order);
        for number in order {
            let rate = readers[number].measure(plan.run, round as u64)?;
            // The first round fills the page cache and the caches of the map.
            if round > 0 {
                rates[number].push(rate);
            }
        }
    }
    println!("qcow2, random reads of 4 KiB at queue depth {DEPTH}, IOPS:");
    let peer = &rates[1];
    let names = ["ugeom serve", "qemu-nbd", "ugeom, no server"];
    for (name, rates) in names.iter().zip(&rates) {
        let ratio = middle(&ratios(rates, peer), 2)?;
        println!("  {name}: {}, {ratio} x qemu-nbd", middle(rates, 0)?);
    }
    Ok(())
}

/// Seconds that a command takes whose output is a new file.
fn seconds(mut command: Command, out: &Path, to_stdout: bool) -> Result<f64, Failure> {
    let _ = std::fs::remove_file(out);
    match to_stdout {
        true => command.stdout(Stdio::from(File::create(out)?)),
        false => command.arg(out),
    };
    let begin = Instant::now();
    let status = command.stderr(Stdio::null()).status()?;
    let taken = begin.elapsed().as_secs_f64();
    status
        .success()
        .then_some(taken)
        .ok_or("a copy failed".into())
}

fn copy(folder: &Path, rounds: usize) -> Result<(), Failure> {
    let (raw, image) = (folder.join("copy.img"), folder.join("copy.qcow2"));
    plain(&raw, 10 << 30, 10)?;
    converted(&raw, &image)?;
    let (ours, theirs) = (folder.join("ours.img"), folder.join("theirs.img"));
    for (format, source) in [("qcow2", &image), ("raw", &raw)] {
        let mut taken: [Vec<f64>; 2] = Default::default();
        for round in 0..=rounds {
            let mut read = Command::new(env!("CARGO_BIN_EXE_ugeom"));
            read.arg("read").arg(source);
            let mut convert = Command::new("qemu-img");
            convert
                .args(["convert", "-S", "4k", "-f", format, "-O", "raw"])
                .arg(source);
            // Each has the unwritten pages of the other beside it.
            let pair = match round % 2 {
                0 => [
                    seconds(read, &ours, true)?,
                    seconds(convert, &theirs, false)?,
                ],
                _ => {
                    let convert = seconds(convert, &theirs, false)?;
                    [seconds(read, &ours, true)?, convert]
                }
            };
            if round > 0 {
                taken[0].push(pair[0]);
                taken[1].push(pair[1]);
            }
        }
        let compared = Command::new("cmp").args([&ours, &theirs]).status()?;
        if !compared.success() {
            return Err(format!("the copies of {format} differ").into());
        }
        println!("10 GiB with 1 GiB of data, out of {format}, s:");
        println!("  ugeom read: {}", middle(&taken[0], 2)?);
        println!("  qemu-img convert -S 4k: {}", middle(&taken[1], 2)?);
        println!("  ratio: {}", middle(&ratios(&taken[0], &taken[1]), 2)?);
    }
    Ok(())
}
