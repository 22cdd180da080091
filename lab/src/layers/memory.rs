//! The cases of the experiment without a target: the memory disk of 2002 and the cases that explain
//! it.

use super::image::Image;
use super::layered::LAYERED;
use super::names;
use super::stacks::{self, CHAIN, Labelled, Levels, MD_BYTES, Mode, TIME};
use super::subject::{Disk, Link, Subject, layers};
use super::{LayersOptions, Matrix, through};
use std::path::Path;
use std::sync::Arc;
use ugeom_classes::target::QUEUED_SPIN_NS;
use ugeom_harness::HarnessError;
use ugeom_harness::baseline;
use ugeom_harness::{Case, Length};
use ugeom_load::cases;
use ugeom_load::start::Cores;
use ugeom_load::tst::{LOOPS, READ_BYTES, WARM_UP_LOOPS};
use ugeom_machine::region::Region;
use ugeom_stack::{Dispatch, Statistics};

/// Where the slice of the memory disk begins, bytes: at the second track, as fdisk puts it.
const SLICE_OFFSET_BYTES: u64 = 63 * 512;

/// The queued mode: GEOM's threads, counting.
pub(super) const QUEUED: Mode = Mode {
    dispatch: Dispatch::Queued {
        spin_ns: QUEUED_SPIN_NS,
    },
    ..Mode::direct(Statistics::Counts)
};

/// All cases and their subjects.
pub(super) fn matrix(options: &LayersOptions) -> Result<Matrix, HarnessError> {
    let subject = subject(options);
    let mut matrix = Matrix {
        cases: Vec::new(),
        subject,
        figures: Vec::new(),
    };
    published(&mut matrix, options)?;
    if options.faithful {
        floors(&mut matrix);
        let rest = "everything that has no row in the mail of 2002 (--faithful)";
        matrix.subject.left_out.push(rest.to_owned());
        return Ok(matrix);
    }
    queued(&mut matrix, options)?;
    sizes(&mut matrix)?;
    statistics(&mut matrix)?;
    layered(&mut matrix, options)?;
    limits(&mut matrix)?;
    let disk = stacks::labelled(Mode::direct(Statistics::Counts))?;
    through(&mut matrix, &options.servers, &disk.stack, CHAIN[2]);
    show(&mut matrix);
    floors(&mut matrix);
    Ok(matrix)
}

/// Only the cases of the figures that were to be reached, and the disk twice for the noise.
pub(super) fn goals(options: &LayersOptions) -> Result<Matrix, HarnessError> {
    let mut matrix = Matrix {
        cases: Vec::new(),
        subject: subject(options),
        figures: Vec::new(),
    };
    let Labelled { stack, chain } = stacks::labelled(Mode::direct(Statistics::Counts))?;
    let bottom = matrix.subject.bottom().to_owned();
    for name in [names::direct(&bottom), names::direct_again(&bottom)] {
        matrix.reading(&name, &stack, chain[0], READ_BYTES as u64)?;
    }
    layered(&mut matrix, &LayersOptions::default())?;
    limits(&mut matrix)?;
    show(&mut matrix);
    floors(&mut matrix);
    Ok(matrix)
}

fn subject(options: &LayersOptions) -> Subject {
    let classes = ["MD", "MBR", "BSD"];
    let link = |(index, provider): (usize, &&str)| Link {
        provider: (*provider).to_owned(),
        class: classes[index].to_owned(),
        layers: layers(&classes[..=index]),
        plain: true,
    };
    Subject {
        target: None,
        chain: CHAIN.iter().enumerate().map(link).collect(),
        read_bytes: READ_BYTES as u64,
        sizes_bytes: vec![4 << 10, 64 << 10, 128 << 10],
        depths: if options.common.full {
            (0..=8).collect()
        } else {
            vec![0, 1, 2, 4, 8]
        },
        faithful: options.faithful,
        all: options.common.full,
        disk: Disk::assumed(),
        through: Vec::new(),
        left_out: Vec::new(),
    }
}

/// The rows of 2002: `/dev/zero`, the chain with GEOM, and the same bytes without; the control and
/// the disk stand there twice.
fn published(matrix: &mut Matrix, options: &LayersOptions) -> Result<(), HarnessError> {
    let read_bytes = matrix.subject.read_bytes;
    let Labelled { stack, chain } = stacks::labelled(Mode::direct(Statistics::Counts))?;
    let mut cases = Vec::new();
    for name in [names::ZERO, names::ZERO_AGAIN] {
        cases.push(cases::calling(
            name,
            Path::new("/dev/zero"),
            READ_BYTES as u64,
        )?);
    }
    for (name, provider) in CHAIN.iter().zip(chain) {
        cases.push(cases::reading(
            &names::direct(name),
            &stack,
            provider,
            read_bytes,
        )?);
    }
    // Built separately: what differs between two stacks of the same is no effect of a layer.
    let other = stacks::labelled(Mode::direct(Statistics::Counts))?;
    let again = names::direct_again(CHAIN[0]);
    cases.push(cases::reading(
        &again,
        &other.stack,
        other.chain[0],
        read_bytes,
    )?);
    let region = Arc::new(initialised()?);
    for (name, offset) in CHAIN
        .iter()
        .zip([0, SLICE_OFFSET_BYTES, SLICE_OFFSET_BYTES])
    {
        cases.push(cases::copying(
            &names::plain(name),
            &region,
            offset,
            read_bytes,
        ));
    }
    let exactly = Length::Exactly {
        warm_up: WARM_UP_LOOPS,
        iterations: LOOPS,
    };
    let length = if options.faithful {
        exactly
    } else {
        Length::Calibrated
    };
    matrix
        .cases
        .extend(cases.into_iter().map(|case| case.with_length(length)));
    Ok(())
}

/// Memory like that of the memory disk.
fn initialised() -> Result<Region, HarnessError> {
    let region = Region::new(MD_BYTES).map_err(HarnessError::os("memory", "mapping 1 MiB"))?;
    region.fill(0, MD_BYTES, 0x5A);
    Ok(region)
}

fn queued(matrix: &mut Matrix, options: &LayersOptions) -> Result<(), HarnessError> {
    let read_bytes = matrix.subject.read_bytes;
    let Labelled { stack, chain } = stacks::labelled(QUEUED)?;
    for (index, provider) in chain.into_iter().enumerate() {
        if index == 1 && !options.common.full {
            continue;
        }
        let name = names::queued(CHAIN[index]);
        matrix.reading(&name, &stack, provider, read_bytes)?;
    }
    let name = names::queued_two(CHAIN[2]);
    matrix.cases.push(cases::reading_by(
        (2, Cores::Any),
        &name,
        &stack,
        chain[2],
        read_bytes,
    )?);
    Ok(())
}

fn sizes(matrix: &mut Matrix) -> Result<(), HarnessError> {
    let region = Arc::new(initialised()?);
    let Labelled { stack, chain } = stacks::labelled(Mode::direct(Statistics::Counts))?;
    for size in matrix.subject.sizes_bytes.clone() {
        for (index, provider) in [(0, chain[0]), (2, chain[2])] {
            let name = names::sized(CHAIN[index], size);
            matrix.reading(&name, &stack, provider, size)?;
        }
        // From the same offsets: the place within a page changes what a copy costs.
        for (index, offset) in [(0, 0), (2, SLICE_OFFSET_BYTES)] {
            let name = names::plain_sized(CHAIN[index], size);
            matrix
                .cases
                .push(cases::copying(&name, &region, offset, size));
        }
    }
    Ok(())
}

fn statistics(matrix: &mut Matrix) -> Result<(), HarnessError> {
    for (name, level) in [
        (names::STATISTICS_OFF, Statistics::Off),
        (names::STATISTICS_TIME, TIME),
    ] {
        let disk = stacks::labelled(Mode::direct(level))?;
        let case = cases::reading(name, &disk.stack, disk.chain[2], matrix.subject.read_bytes)?;
        matrix.cases.push(case);
    }
    Ok(())
}

fn layered(matrix: &mut Matrix, options: &LayersOptions) -> Result<(), HarnessError> {
    let depths = matrix.subject.depths.clone();
    let deepest = depths.iter().copied().max().unwrap_or(0) as usize;
    let wanted = LAYERED.iter();
    for layers in wanted.filter(|layers| layers.always || options.common.full) {
        let mode = Mode::direct(layers.statistics);
        let Levels { stack, levels } = match layers.kind {
            "slicers" => stacks::slicers(deepest, mode)?,
            "fused" => stacks::slicers(deepest, Mode::fused(layers.statistics))?,
            kind => stacks::nops(deepest, kind == "hooks", mode)?,
        };
        for depth in &depths {
            let depth = *depth as usize;
            let provider = levels.get(depth).copied();
            let provider = provider.ok_or_else(|| stacks::made("a stack lacks a layer"))?;
            let name = layers.case(depth);
            matrix.reading(&name, &stack, provider, READ_BYTES as u64)?;
        }
    }
    Ok(())
}

/// A read that does nothing but pass through the stack, alone and by two threads; and a thousand
/// requests that wait together.
fn limits(matrix: &mut Matrix) -> Result<(), HarnessError> {
    let read_bytes = READ_BYTES as u64;
    let null = stacks::open("zero:clear=0", Mode::direct(Statistics::Off))?;
    let one = cases::reading(names::NULL_ONE, &null.stack, null.top, read_bytes)?;
    let two = cases::reading_by(
        (2, Cores::OneEach),
        names::NULL_TWO,
        &null.stack,
        null.top,
        read_bytes,
    )?;
    let slow = stacks::open(
        "zero:clear=0 | nop:delay=1ms",
        Mode::direct(Statistics::Counts),
    )?;
    let delay = cases::reading_at_once(1000, names::DELAY, &slow.stack, slow.top, read_bytes)?;
    matrix.cases.extend([one, two, delay]);
    Ok(())
}

/// Listing a large image; a machine that has no memory files goes without.
fn show(matrix: &mut Matrix) {
    let measured = Image::new().and_then(|image| Ok((image.read_bytes()?, image)));
    match measured {
        Ok((read, image)) => {
            matrix.figures.push(read);
            matrix.cases.push(image.case());
        }
        Err(error) => matrix
            .subject
            .left_out
            .push(format!("the 1 TiB image ({error})")),
    }
}

/// The cost of the bench itself.
pub(super) fn floors(matrix: &mut Matrix) {
    let depths = matrix.subject.depths.clone();
    let calls = depths.iter().map(|depth| *depth as usize);
    let calls = calls.map(|depth| baseline::indirect_calls(&names::calls(depth), depth));
    let cases: Vec<Case<'static>> = calls.collect();
    matrix.cases.push(baseline::empty_loop(names::LOOP));
    matrix.cases.push(baseline::clock_reading(names::CLOCK));
    matrix.cases.push(baseline::ticks_reading(names::TICKS));
    matrix.cases.extend(cases);
}
