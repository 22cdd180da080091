//! `ugeom lab layers`: what does GEOM cost, and what does each layer of it cost?
//!
//! The experiment of 2002 on today's machine: a 512-byte read from the first sector of a memory
//! disk, of its slice and of the partition in that slice, with GEOM and without; and then what
//! explains the figures: sizes, piles of layers, statistics, dispatch. `docs/lab-layers.md` is the
//! page for users.

mod findings;
#[cfg(test)]
pub(crate) mod fixture;
mod image;
mod memory;
mod names;
mod processes;
pub mod published;
mod report;
mod stacks;
mod subject;
mod target;
#[cfg(test)]
mod tests;

use crate::served::{Door, Way};
use ugeom_harness::HarnessError;
use ugeom_harness::figure::Figure;
use ugeom_harness::host::{Host, TargetFacts};
use ugeom_harness::{self as harness, Cell, Control, Meter, Settings};

use std::path::Path;
use ugeom_stack::{ProviderId, Slicers, Stack, Statistics};

pub use findings::compute;
pub use processes::run_in_processes;
pub use report::{goals_report, page, report};
pub use subject::{Disk, Document, EXPERIMENT, Link, Subject};

/// What the user asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The target to measure; none for the memory disk of the experiment's own.
    pub target: Option<String>,
    /// The full matrix: every depth, every kind of layer, every level of statistics.
    pub all: bool,
    /// As many rounds of as long runs as precision needs, whatever time that takes.
    pub full: bool,
    /// Ten runs of exactly 100 and 100,000 loops for the rows of 2002.
    pub faithful: bool,
    /// The seed of the order of cells; none for one of the clock.
    pub seed: Option<u64>,
    /// The servers through which the deepest provider is read, too.
    pub ways: Vec<Way>,
    /// The time that it may take, ns; none for [`BUDGET_NS`]. Without meaning when `full`.
    pub budget_ns: Option<u64>,
}

/// A memory disk with so many slicers on one another, and the provider on top of them. They are
/// passed, or each is asked.
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

/// A memory disk with so many layers on one another that each ask to see requests come back, and
/// the provider on top of them.
///
/// # Errors
/// [`HarnessError`] when the stack cannot be built.
pub fn hooks_over_md(
    depth: usize,
    statistics: Statistics,
) -> Result<(Stack, ProviderId), HarnessError> {
    top(stacks::nops(depth, true, stacks::Mode::direct(statistics))?)
}

fn top(pile: stacks::Pile) -> Result<(Stack, ProviderId), HarnessError> {
    let top = pile.levels.last().copied();
    Ok((
        pile.stack,
        top.ok_or_else(|| stacks::made("a pile without a bottom"))?,
    ))
}

/// The time that the experiment may take when nothing else is said, ns.
pub const BUDGET_NS: u64 = 15_000_000_000;

/// The cells of an experiment and what they are about.
struct Matrix {
    cells: Vec<Cell<'static>>,
    subject: Subject,
    /// Figures that no sample gives.
    figures: Vec<Figure>,
}

/// Measures, and computes the figures.
///
/// # Errors
/// [`HarnessError`] when a stack cannot be built or a read fails. When `control` asks to stop, what
/// was measured until then is the result.
pub fn run(
    options: &Options,
    meter: &dyn Meter,
    control: &mut Control<'_>,
) -> Result<Document, HarnessError> {
    run_with(options, |settings| settings, meter, control)
}

fn run_with(
    options: &Options,
    adjust: impl FnOnce(Settings) -> Settings,
    meter: &dyn Meter,
    control: &mut Control<'_>,
) -> Result<Document, HarnessError> {
    let matrix = || match &options.target {
        None => memory::matrix(options),
        Some(text) => target::matrix(text, options),
    };
    measure(options, matrix, adjust, meter, control)
}

/// Measures only what [`goals_report`] prints: what was to be reached.
///
/// # Errors
/// As [`run`].
pub fn run_goals(
    options: &Options,
    meter: &dyn Meter,
    control: &mut Control<'_>,
) -> Result<Document, HarnessError> {
    let matrix = || memory::goals(options);
    measure(options, matrix, |settings| settings, meter, control)
}

fn measure(
    options: &Options,
    matrix: impl FnOnce() -> Result<Matrix, HarnessError>,
    adjust: impl FnOnce(Settings) -> Settings,
    meter: &dyn Meter,
    control: &mut Control<'_>,
) -> Result<Document, HarnessError> {
    let started_ns = meter.now_ns();
    let host = Host::now().with_wakeups();
    let mut matrix = matrix()?;
    let set_up_ns = meter.now_ns().saturating_sub(started_ns);
    let settings = adjust(settings(options, &host, set_up_ns));
    let measured = harness::run(&mut matrix.cells, &settings, meter, control)?;
    let mut document = Document::new(EXPERIMENT, host, settings, matrix.subject, measured);
    document.figures = matrix.figures;
    document.target = target_facts(options);
    compute(&mut document);
    Ok(document)
}

/// The cells that read a provider through servers. A way that is closed here is left out, and said.
fn through(matrix: &mut Matrix, ways: &[Way], stack: &Stack, provider: &str) {
    let read_bytes = matrix.subject.read_bytes;
    for way in ways {
        let name = names::through(way.name, provider);
        let door = Door::open(way, stack, provider);
        let cell = door.and_then(|door| {
            let cell = door.reading(&name, read_bytes);
            cell.map_err(|error| error.to_string())
        });
        match cell {
            Ok(cell) => {
                matrix.cells.push(cell);
                matrix.subject.through.push(way.name.to_owned());
            }
            Err(problem) => {
                let problem = problem.lines().next().unwrap_or_default().to_owned();
                let left_out = &mut matrix.subject.left_out;
                left_out.push(format!("reads through {} ({problem})", way.name));
            }
        }
    }
}

/// What the system tells of a target that is a path.
fn target_facts(options: &Options) -> Option<TargetFacts> {
    TargetFacts::of(Path::new(options.target.as_ref()?))
}

/// How to measure. Setting up counts against the budget.
fn settings(options: &Options, host: &Host, set_up_ns: u64) -> Settings {
    // Ten runs a row, as in 2002.
    let rounds_max = match options.faithful {
        true => harness::ROUNDS_MIN,
        false => Settings::default().rounds_max,
    };
    let budget_ns = options
        .budget_ns
        .unwrap_or(BUDGET_NS)
        .saturating_sub(set_up_ns);
    Settings {
        seed: options.seed.unwrap_or(host.started_unix_s),
        rounds_max,
        budget_ns: (!options.full).then_some(budget_ns),
        ..Settings::default()
    }
}
