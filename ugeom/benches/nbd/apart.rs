//! The figures that are counted once and not timed: instructions that layers cost the server, and
//! the memory of idle connections.

use crate::cases::job;
use crate::servers::{Server, ServerKind};
use crate::shared::{Failure, program, ugeom};
use std::path::Path;
use ugeom_format::Media;
use ugeom_format::plan::{Create, NewPart, Scheme, Table};
use ugeom_harness::figure::{Figure, Goal, Unit};
use ugeom_load::Load;
use ugeom_measure::Interval;
use ugeom_measure::ratio::log_ratio_paired;
use ugeom_measure::summary::mean;
use ugeom_stack::Delta;

/// Connections that ask for nothing, and what they may take together, bytes.
const IDLE: usize = 64;
const IDLE_GOAL_BYTES: f64 = (64 << 20) as f64;

/// The disk of which requests are counted: `md:64m`, bytes.
const COUNTED_BYTES: u64 = 64 << 20;

/// Requests of the shorter run below callgrind; the longer one has twice as many. So many that
/// what differs from start to start, such as how often the clock is read to learn its rate, is a
/// part of a thousand.
const REQUESTS: u64 = 200_000 / BATCH * BATCH;

/// Requests that are sent at once, and all answered before the next are: how many arrive together
/// would else differ from run to run, and with it what a request costs.
const BATCH: u64 = 32;

/// How often each is counted.
const ROUNDS: usize = 4;

/// Three layers cost less than this, per cent.
const LAYERS_GOAL_PERCENT: f64 = 2.0;

/// All memory of a server with idle connections, whose device holds nothing.
pub(crate) fn memory(folder: &Path) -> Result<Option<Figure>, Failure> {
    let socket = folder.join("idle");
    let server = Server::run(ServerKind::Ours, &ugeom(&socket, &["md:1g"]), &socket)?;
    let mut idle = Vec::new();
    for _ in 0..IDLE {
        let target = server.target()?;
        let opened = target.open(Delta::READ)?;
        let mut channel = target.stack.channel(1)?;
        // A link connects with its first request.
        channel.read(&opened, 0, &mut [0; 4096])?;
        idle.push((channel, opened, target));
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let Some(Ok(kib)) = kib.map(str::parse::<f64>) else { return Ok(None) };
    let interval = Interval::exact(kib * 1024.0, 0.95);
    let what = format!("memory of a server with {IDLE} idle connections");
    let figure = Figure::plain("memory", &what, Unit::Bytes, interval);
    Ok(Some(figure.with_goal(Goal::Under(IDLE_GOAL_BYTES))))
}

/// Instructions in user space of a request of 4 KiB, 32 at a time: of the disk alone, and what a
/// pass-through layer, an MBR and a BSD label above it add.
pub(crate) fn instructions(folder: &Path) -> Result<Option<Figure>, Failure> {
    if program("valgrind").is_none() {
        return Ok(None);
    }
    let (mut bare, mut layered) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bare.push(slope(folder, "md:64m", "md0")?);
        layered.push(slope(folder, "md:64m | nop", "md0.nops1a")?);
    }
    let ratio = log_ratio_paired(&layered, &bare, 0.95)?.interval;
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    let more = Interval {
        estimate: percent(ratio.estimate),
        low: percent(ratio.low),
        high: percent(ratio.high),
        ..ratio
    };
    let what = format!(
        "MBR, BSD label and a pass-through above a request of {:.0} instructions: more of them",
        mean(&bare)?
    );
    let figure = Figure::plain("layers", &what, Unit::Percent, more);
    Ok(Some(figure.with_goal(Goal::Under(LAYERS_GOAL_PERCENT))))
}

/// Instructions a request, free of start and end.
fn slope(folder: &Path, target: &str, export: &str) -> Result<f64, Failure> {
    let once = count(folder, target, export, REQUESTS)?;
    let twice = count(folder, target, export, 2 * REQUESTS)?;
    Ok((twice - once) / REQUESTS as f64)
}

fn count(folder: &Path, target: &str, export: &str, requests: u64) -> Result<f64, Failure> {
    let socket = folder.join("counted");
    let counts = folder.join("callgrind");
    let out = format!("--callgrind-out-file={}", counts.display());
    let mut line: Vec<String> = ["valgrind", "--tool=callgrind", &out]
        .map(str::to_owned)
        .to_vec();
    let options = [target, "--rw", "--threads", "1", "--spin", "0us"];
    line.extend(ugeom(&socket, &options));
    let server = Server::run(ServerKind::Ours, &line, &socket)?;
    // Holes are filled by an instruction that callgrind counts once a byte.
    server.fill(COUNTED_BYTES)?;
    tables(&server)?;
    let wanted = server.export(export)?;
    let mut load = Load::new(
        &wanted.stack,
        wanted.top,
        &job(export, BATCH as usize, COUNTED_BYTES),
    )?;
    for _ in 0..requests / BATCH {
        load.run(BATCH)?;
    }
    drop((load, wanted));
    server.terminate()?;
    let text = std::fs::read_to_string(&counts)?;
    let line = text.lines().find_map(|line| line.strip_prefix("totals: "));
    Ok(line.ok_or("callgrind counted nothing")?.trim().parse()?)
}

/// Writes an MBR with one slice, and into that a BSD label with one partition, which both fill.
fn tables(server: &Server) -> Result<(), Failure> {
    let target = server.target()?;
    let opened = target.open(Delta::READ_WRITE)?;
    let mut channel = target.stack.channel(1)?;
    let sectors = opened.view().ok_or("no view")?.mediasize_bytes / 512;
    let slice = table(Scheme::Mbr, sectors, "freebsd", 64)?;
    let label = table(Scheme::Bsd, sectors - 64, "freebsd-ufs", 64)?;
    for (first, writes) in [(0, slice), (64, label)] {
        for (lba, data) in writes {
            channel.write(&opened, (first + lba) * 512, &data)?;
        }
    }
    channel.flush(&opened)?;
    Ok(())
}

type Writes = Vec<(u64, Vec<u8>)>;

fn table(scheme: Scheme, sectors: u64, kind: &str, first: u64) -> Result<Writes, Failure> {
    let media = Media::of_512(sectors);
    let mut table = Table::create(scheme, media, &Create::default())?;
    let part = NewPart {
        start: Some(first),
        sectors: Some(sectors - first),
        kind: kind.to_owned(),
        ..NewPart::default()
    };
    table.add(&part)?;
    let writes = table.encode().into_iter();
    Ok(writes.map(|it| (it.lba, it.data)).collect())
}
