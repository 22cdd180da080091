//! `instructions CASE ITERATIONS`: reads 512 bytes so many times and ends. `cargo xtask
//! instructions` runs it under callgrind with N and with 2 N reads and takes the difference, so
//! that start-up does not count. The cases stand in `bench/instructions.toml`.

use std::error::Error;
use ugeom_bench::harness::Cell;
use ugeom_bench::{layers, work};
use ugeom_classes::{TargetOptions, open_target};
use ugeom_stack::{ProviderId, Stack, Statistics};

/// The usage, for whoever calls it with something else.
const USAGE: &str = "usage: instructions CASE ITERATIONS\n\
    cases: zero, md, md-through-3-slicers, md-through-3-hooks, each with -counts at the end";

/// Bytes of one read.
const READ_BYTES: u64 = 512;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(case), Some(iterations)) = (arguments.next(), arguments.next()) else {
        return Err(USAGE.into());
    };
    let iterations: u64 = iterations.parse()?;
    let mut cell = cell(&case)?;
    (cell.run)(iterations)?;
    Ok(())
}

fn cell(case: &str) -> Result<Cell<'static>, Box<dyn Error>> {
    let (name, statistics) = match case.strip_suffix("-counts") {
        Some(name) => (name, Statistics::Counts),
        None => (case, Statistics::Off),
    };
    let (stack, provider) = match name {
        "zero" => null(statistics)?,
        "md" => layers::slicers_over_md(0, statistics)?,
        "md-through-3-slicers" => layers::slicers_over_md(3, statistics)?,
        "md-through-3-hooks" => layers::hooks_over_md(3, statistics)?,
        _ => return Err(USAGE.into()),
    };
    Ok(work::reading(case, &stack, provider, READ_BYTES)?)
}

/// The device that touches no data.
fn null(statistics: Statistics) -> Result<(Stack, ProviderId), Box<dyn Error>> {
    let options = TargetOptions {
        statistics,
        ..TargetOptions::default()
    };
    let target = open_target("zero:clear=0", &options)?;
    Ok((target.stack, target.top))
}
