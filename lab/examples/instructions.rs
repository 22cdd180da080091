//! `instructions CASE ITERATIONS`: reads 512 bytes so many times and ends. `cargo xtask
//! instructions` runs it under callgrind with N and with 2 N reads and takes the difference, so
//! that start-up does not count. The cases stand in `lab/instructions.toml`.

use std::error::Error;
use ugeom_classes::{TargetOptions, open_target};
use ugeom_harness::HarnessError;
use ugeom_harness::{Case, RunResult};
use ugeom_lab::layers;
use ugeom_load::cases;
use ugeom_load::{Load, LoadJob, Pattern, Range};
use ugeom_machine::buffer::Buffer;
use ugeom_machine::clock;
use ugeom_stack::{Delta, IoError, ProviderId, Slicers, Stack, StackKnobs, Statistics};

/// The usage, for wrong arguments.
const USAGE: &str = "usage: instructions CASE ITERATIONS\n\
    cases: zero, md, md-through-3-slicers, md-past-3-slicers, md-through-3-hooks, cache-hit,\n\
    cache-hit-4k, cache-miss, load, each with -counts at the end";

/// Bytes of one read.
const READ_BYTES: u64 = 512;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(case), Some(iterations)) = (arguments.next(), arguments.next()) else {
        return Err(USAGE.into());
    };
    let iterations: u64 = iterations.parse()?;
    let mut case = case_named(&case)?;
    (case.run)(iterations)?;
    Ok(())
}

/// A cache over the device that touches no data.
const CACHE: &str = "zero:clear=0 | cache:1m,block=4k,readahead=off";
const CACHE_BYTES: u64 = 1 << 20;
/// How much of it a reader asks for in turn: what the cache holds, or far more.
const CACHED_BYTES: u64 = 256 << 10;
const MISSED_BYTES: u64 = 256 << 20;
const BLOCK_BYTES: u64 = 4096;

fn case_named(wanted: &str) -> Result<Case<'static>, Box<dyn Error>> {
    let (name, statistics) = match wanted.strip_suffix("-counts") {
        Some(name) => (name, Statistics::Counts),
        None => (wanted, Statistics::Off),
    };
    let (stack, provider) = match name {
        "cache-hit" => return cached(statistics, READ_BYTES, CACHED_BYTES),
        "cache-hit-4k" => return cached(statistics, BLOCK_BYTES, CACHED_BYTES),
        "cache-miss" => return cached(statistics, READ_BYTES, MISSED_BYTES),
        "load" => return generated(statistics),
        "zero" => null(statistics)?,
        "md" => layers::slicers_over_md(0, statistics, Slicers::Called)?,
        "md-through-3-slicers" => layers::slicers_over_md(3, statistics, Slicers::Called)?,
        "md-past-3-slicers" => layers::slicers_over_md(3, statistics, Slicers::Fused)?,
        "md-through-3-hooks" => layers::hooks_over_md(3, statistics)?,
        _ => return Err(USAGE.into()),
    };
    Ok(cases::reading(wanted, &stack, provider, READ_BYTES)?)
}

/// Reads through a cache, a block after the other, round and round.
fn cached(
    statistics: Statistics,
    read_bytes: u64,
    round_bytes: u64,
) -> Result<Case<'static>, Box<dyn Error>> {
    let options = TargetOptions {
        knobs: StackKnobs {
            statistics,
            ..StackKnobs::default()
        },
        ..TargetOptions::default()
    };
    let target = open_target(CACHE, &options)?;
    let opened = target.open(Delta::READ)?;
    let mut channel = target.stack.channel(1)?;
    let mut buffer = Buffer::new(read_bytes as usize);
    let mut offset = 0;
    let mut read = move |times: u64| -> Result<(), IoError> {
        for _ in 0..times {
            channel.read(&opened, offset, &mut buffer)?;
            offset = (offset + BLOCK_BYTES) % round_bytes;
        }
        Ok(())
    };
    // Every buffer has been used once then, and misses evict.
    read(2 * CACHE_BYTES / BLOCK_BYTES)?;
    Ok(Case::new("cached", move |iterations| {
        let start_ns = clock::now_ns();
        read(iterations).map_err(|source| HarnessError::request("cached", source))?;
        Ok(RunResult::taking(clock::now_ns() - start_ns))
    }))
}

/// Requests of the load generator, one after the other. Without the time of each: how many
/// instructions it takes to record a time depends on the time.
fn generated(statistics: Statistics) -> Result<Case<'static>, Box<dyn Error>> {
    let (stack, provider) = null(statistics)?;
    let pattern = Pattern::Sequential(Range {
        start_bytes: 0,
        blocks: 1 << 20,
        block_bytes: READ_BYTES as u32,
        write_percent: 0,
    });
    let job = LoadJob {
        latency: false,
        ..LoadJob::new("load", pattern)
    };
    let mut load = Load::new(&stack, provider, &job)?;
    Ok(Case::new("load", move |iterations| {
        let outcome = load.run(iterations)?;
        Ok(RunResult::taking(outcome.wall_ns))
    }))
}

/// The device that touches no data.
fn null(statistics: Statistics) -> Result<(Stack, ProviderId), Box<dyn Error>> {
    let options = TargetOptions {
        knobs: StackKnobs {
            statistics,
            ..StackKnobs::default()
        },
        ..TargetOptions::default()
    };
    let target = open_target("zero:clear=0", &options)?;
    Ok((target.stack, target.top))
}
