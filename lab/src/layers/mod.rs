//! `ugeom lab layers`: what does GEOM cost, and what does each layer of it cost?
//!
//! The experiment of 2002 on today's machine: a 512-byte read from the first sector of a memory
//! disk, of its slice and of the partition in that slice, with GEOM and without; and then cases
//! that explain the figures: sizes, stacks of N layers, statistics, dispatch. `docs/lab-layers.md`
//! is the page for users.

mod findings;
#[cfg(test)]
pub(crate) mod fixture;
mod image;
mod layered;
mod memory;
mod names;
mod page;
pub mod published;
mod sections;
mod stacks;
mod subject;
mod target;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;
use ugeom_experiment::served::{Client, ServerKind};
use ugeom_experiment::targets;
use ugeom_experiment::{Common, Experiment, Process};
use ugeom_harness::HarnessError;
use ugeom_harness::figure::Figure;
use ugeom_harness::host::TargetFacts;
use ugeom_harness::processes::{Protocol, Share};
use ugeom_harness::{self as harness, Case, Control, Meter};
use ugeom_load::cases;
use ugeom_stack::{ProviderId, Slicers, Stack, Statistics};

pub use findings::compute;
pub use page::page;
pub use subject::{Disk, Document, EXPERIMENT, Link, Subject};

/// The user's options.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayersOptions {
    /// The target to measure; none for the memory disk of the experiment's own.
    pub target: Option<String>,
    /// Only the rows of 2002, ten runs of exactly 100 and 100,000 loops, without a time limit.
    pub faithful: bool,
    /// The servers through which the deepest provider is read, too.
    #[serde(skip)]
    pub servers: Vec<ServerKind>,
    /// Time, seed, processes. Without a limit the matrix is the full one: every depth, every kind
    /// of layer, every level of statistics.
    pub common: Common,
}

/// `lab layers`: the cost of each layer in a read.
pub struct Layers;

/// Runs of a row in 2002.
const RUNS: u64 = 10;

impl Experiment for Layers {
    const NAME: &'static str = EXPERIMENT;
    const ROUNDS: u64 = 5;
    const COMPUTE: fn(&mut Document) = compute;
    const PAGE: fn(&Document) -> ugeom_report::Page = page;
    type Options = LayersOptions;
    type Subject = Subject;
    type Prepared = ();

    fn common(options: &mut LayersOptions) -> &mut Common {
        &mut options.common
    }

    fn set_servers(options: &mut LayersOptions, servers: &[ServerKind]) {
        options.servers = servers.to_vec();
    }

    fn prepare(options: &mut LayersOptions, _: u64, _: &AtomicBool) -> Result<(), HarnessError> {
        options.target.as_deref().map_or(Ok(()), targets::check)
    }

    /// Nothing is shortened for the rows of 2002.
    fn protocol(options: &LayersOptions, protocol: Protocol) -> Protocol {
        match options.faithful {
            true => Protocol {
                rounds: RUNS,
                budget_ns: None,
                ..protocol
            },
            false => protocol,
        }
    }

    fn measure(
        options: &LayersOptions,
        process: Process<'_, '_>,
    ) -> Result<Document, HarnessError> {
        let matrix = || match &options.target {
            None => memory::matrix(options),
            Some(text) => target::matrix(text, options),
        };
        measure(options, process, matrix)
    }
}

/// A memory disk with `depth` slicers on one another, fused or called, and the provider on top.
///
/// # Errors
/// [`HarnessError`] when the stack cannot be built.
pub fn slicers_over_md(
    depth: usize,
    statistics: Statistics,
    slicers: Slicers,
) -> Result<(Stack, ProviderId), HarnessError> {
    let mode = stacks::Mode {
        slicers,
        ..stacks::Mode::direct(statistics)
    };
    top(stacks::slicers(depth, mode)?)
}

/// A memory disk with `depth` layers with completion hooks on one another, and the provider on top.
///
/// # Errors
/// [`HarnessError`] when the stack cannot be built.
pub fn hooks_over_md(
    depth: usize,
    statistics: Statistics,
) -> Result<(Stack, ProviderId), HarnessError> {
    top(stacks::nops(depth, true, stacks::Mode::direct(statistics))?)
}

fn top(layers: stacks::Levels) -> Result<(Stack, ProviderId), HarnessError> {
    let top = layers.levels.last().copied();
    Ok((
        layers.stack,
        top.ok_or_else(|| stacks::made("a stack without a bottom"))?,
    ))
}

/// The cases of an experiment and their subjects.
struct Matrix {
    cases: Vec<Case<'static>>,
    subject: Subject,
    /// Figures that no sample gives.
    figures: Vec<Figure>,
}

impl Matrix {
    /// Adds a case that reads the beginning of a provider.
    fn reading(
        &mut self,
        name: &str,
        stack: &Stack,
        provider: ProviderId,
        read_bytes: u64,
    ) -> Result<(), HarnessError> {
        let case = cases::reading(name, stack, provider, read_bytes)?;
        self.cases.push(case);
        Ok(())
    }
}

/// Measures only the figures with targets, in this process.
///
/// # Errors
/// [`HarnessError`] when a stack cannot be built or a read fails.
pub fn run_goals(
    options: &LayersOptions,
    meter: &dyn Meter,
    control: &mut Control<'_>,
) -> Result<Document, HarnessError> {
    let share = Share::alone(1, options.common.limit_ns());
    let process = Process::new(&share, meter, control);
    let mut document = measure(options, process, || memory::goals(options))?;
    compute(&mut document);
    Ok(document)
}

fn measure(
    options: &LayersOptions,
    process: Process<'_, '_>,
    matrix: impl FnOnce() -> Result<Matrix, HarnessError>,
) -> Result<Document, HarnessError> {
    let host = process.host();
    let mut matrix = matrix()?;
    let settings = process.settings();
    let Process { meter, control, .. } = process;
    let measured = harness::run(&mut matrix.cases, &settings, meter, control)?;
    let mut document = Document::new(EXPERIMENT, host, settings, matrix.subject, measured);
    document.figures = matrix.figures;
    document.target = target_facts(options);
    Ok(document)
}

/// The cases that read a provider through servers. A server that cannot start here is left out with
/// its reason.
fn through(matrix: &mut Matrix, servers: &[ServerKind], stack: &Stack, provider: &str) {
    let read_bytes = matrix.subject.read_bytes;
    for server in servers {
        let name = names::through(server.name, provider);
        let client = Client::open(server, stack, provider);
        let case = client.and_then(|client| {
            let case = client.reading(&name, read_bytes);
            case.map_err(|error| error.to_string())
        });
        match case {
            Ok(case) => {
                matrix.cases.push(case);
                matrix.subject.through.push(server.name.to_owned());
            }
            Err(problem) => {
                let problem = problem.lines().next().unwrap_or_default().to_owned();
                let left_out = &mut matrix.subject.left_out;
                left_out.push(format!("reads through {} ({problem})", server.name));
            }
        }
    }
}

/// The system's facts about the file or device at the bottom of a target.
fn target_facts(options: &LayersOptions) -> Option<TargetFacts> {
    let file = targets::bottom_file(options.target.as_ref()?)?;
    TargetFacts::of(&file)
}
