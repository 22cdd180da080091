//! `ugeom lab`: the experiments. What they measure and how they judge it is in `ugeom_bench`; here
//! are their flags, the progress, and where the results go.

use crate::output;
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueHint};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::Command;
use ugeom_bench::layers::{self, Document, Options};
use ugeom_bench::runner::{Control, Machine, Phase, Progress};
use ugeom_bench::tst;
use ugeom_classes::spec::units;
use ugeom_machine::interrupt;

const LONG_ABOUT: &str = "\
Measures, and says what the figures mean: each result comes with its interval, its noise, and \
what cannot be concluded from it.

Without an experiment every one that there is runs for 15 seconds, and says what was shortened \
for that; with --full each takes the time that its precision needs. Ctrl-C ends a measurement \
early and keeps what was measured.

Measure on a quiet machine, with a release build.";

const EXAMPLES: &str = "\
Examples:
  ugeom lab                     every experiment, 15 seconds each
  ugeom lab layers              what does GEOM cost, and each layer of it?
  ugeom lab layers disk.img     the same for your own disk or image
  ugeom lab tst /dev/zero       the program of 2002";

/// Measure: what does a layer cost on this machine?
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Lab {
    #[command(subcommand)]
    experiment: Option<Experiment>,

    /// Take the time that precision needs, instead of 15 seconds for each experiment
    #[arg(long)]
    full: bool,

    /// The seed of the random order of runs [default: one of the clock, which is printed]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

#[derive(Subcommand)]
enum Experiment {
    Layers(Layers),
    Tst(Tst),
}

const LAYERS_ABOUT: &str = "\
Repeats the GEOM benchmarks of 2002 on this machine: 512-byte reads of sector 0 of a memory disk, \
of its slice, and of the partition in that slice, with GEOM and without; and then what explains \
the figures: sizes, piles of layers, statistics, dispatch. The published figures stand beside.

With a TARGET the same is measured for its providers. It is only read.";

const LAYERS_EXAMPLES: &str = "\
Examples:
  ugeom lab layers                        the memory disk of 2002
  ugeom lab layers --all --full           everything, as precisely as it can be
  ugeom lab layers --json before.json disk.img   keep the figures of a disk";

/// What does GEOM cost, and what does each layer of it cost?
#[derive(Args)]
#[command(long_about = LAYERS_ABOUT, after_help = LAYERS_EXAMPLES)]
struct Layers {
    /// What to measure [default: a memory disk with an MBR and a BSD label]
    #[arg(value_name = "TARGET", value_hint = ValueHint::FilePath)]
    target: Option<String>,

    /// Save all samples and figures as JSON; `-` prints them instead of the report
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    json: Option<PathBuf>,

    /// Run exactly as in 2002: 100 and 100,000 loops, ten runs
    #[arg(long)]
    faithful: bool,

    /// Measure the full matrix: every depth, every kind of layer, every level of statistics
    #[arg(long)]
    all: bool,

    /// How long it may take [default: 15s]
    #[arg(long, value_name = "TIME", value_parser = duration_ns, group = "time")]
    budget: Option<u64>,

    /// Take the time that precision needs
    #[arg(long, group = "time")]
    full: bool,

    /// The seed of the random order of runs [default: one of the clock, which is printed]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Measure in so many fresh processes: how much of a figure is an accident of memory layout?
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=100))]
    processes: u32,
}

const TST_EXAMPLES: &str = "\
Examples:
  ugeom lab tst /dev/zero
  ugeom lab tst disk.img";

/// The program of 2002: nanoseconds of one lseek and read of 512 bytes from the start of a file
#[derive(Args)]
#[command(after_help = TST_EXAMPLES)]
struct Tst {
    /// A file or device; it is read by the kernel and not through a stack
    #[arg(value_name = "PATH", value_hint = ValueHint::FilePath)]
    path: PathBuf,
}

fn duration_ns(text: &str) -> Result<u64, String> {
    units::duration_ns(text).map_err(|error| match error.help() {
        Some(help) => format!("{error}; write {help}"),
        None => error.to_string(),
    })
}

impl Lab {
    pub fn run(&self) -> Result<()> {
        match &self.experiment {
            Some(Experiment::Layers(layers)) => layers.run(),
            Some(Experiment::Tst(tst)) => tst.run(),
            None => {
                let options = Options {
                    full: self.full,
                    seed: self.seed,
                    ..Options::default()
                };
                let document = measured(|control| layers::run(&options, &Machine, control))?;
                output::print(&layers::report(&document, false))
            }
        }
    }
}

impl Layers {
    fn run(&self) -> Result<()> {
        let options = Options {
            target: self.target.clone(),
            all: self.all,
            full: self.full,
            faithful: self.faithful,
            seed: self.seed,
            budget_ns: self.budget,
        };
        let file = self.json.as_deref().filter(|path| *path != Path::new("-"));
        if let Some(path) = file {
            // Better now than after the measurement. What is there stays until then.
            File::options()
                .create(true)
                .truncate(false)
                .write(true)
                .open(path)
                .with_context(|| path.display().to_string())?;
        }
        let document = match self.processes {
            1 => measured(|control| layers::run(&options, &Machine, control))?,
            processes => {
                let program = std::env::current_exe().context("finding this program")?;
                let mut again = |options: &Options| again(&program, options);
                measured(|control| {
                    layers::run_in_processes(&options, processes, &mut again, control)
                })?
            }
        };
        match (&self.json, file) {
            (None, _) => {}
            (Some(_), None) => return output::print(&document.to_json()?),
            (Some(_), Some(path)) => std::fs::write(path, document.to_json()?)
                .with_context(|| path.display().to_string())?,
        }
        output::print(&layers::report(&document, self.all))
    }
}

/// The command that measures once more in a process of its own, and prints JSON.
fn again(program: &Path, options: &Options) -> Command {
    let mut command = Command::new(program);
    command.args(["lab", "layers", "--json", "-"]);
    let flags = [
        ("--all", options.all),
        ("--full", options.full),
        ("--faithful", options.faithful),
    ];
    command.args(flags.iter().filter(|flag| flag.1).map(|flag| flag.0));
    if let Some(seed) = options.seed {
        command.args(["--seed", &seed.to_string()]);
    }
    if let Some(budget_ns) = options.budget_ns.filter(|_| !options.full) {
        command.args(["--budget", &format!("{budget_ns}ns")]);
    }
    command.arg("--").args(&options.target);
    command
}

impl Tst {
    fn run(&self) -> Result<()> {
        let ns_per_loop = tst::tst(&self.path)?;
        output::print(&format!("{}\n", tst::line(ns_per_loop)))
    }
}

/// Measures while showing the progress and listening for Ctrl-C.
fn measured(
    measure: impl FnOnce(&mut Control<'_>) -> Result<Document, ugeom_bench::BenchError>,
) -> Result<Document> {
    let cancelled = interrupt::catch().context("listening for Ctrl-C")?;
    if cfg!(debug_assertions) {
        output::warn("this is a debug build: its figures mean nothing (cargo run --release)");
    }
    let bar = Bar::new();
    let mut progress = |progress: &Progress<'_>| bar.show(progress);
    let mut control = Control {
        progress: &mut progress,
        cancelled,
    };
    let document = measure(&mut control);
    bar.clear();
    let document = document?;
    if document.rounds() == 0 {
        bail!("it was stopped before anything was measured");
    }
    Ok(document)
}

/// A bar on stderr while somebody watches. It is drawn between runs, by the thread that measures:
/// another one would be in the way of what is measured.
struct Bar(Option<ProgressBar>);

/// How often it is drawn, in Hz.
const DRAWS_HZ: u8 = 5;

impl Bar {
    fn new() -> Self {
        if !io::stderr().is_terminal() {
            return Self(None);
        }
        let target = ProgressDrawTarget::stderr_with_hz(DRAWS_HZ);
        let bar = ProgressBar::with_draw_target(Some(0), target);
        let template = "{bar:30} {percent}%, {eta} left  {msg}";
        Self(Some(match ProgressStyle::with_template(template) {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        }))
    }

    fn show(&self, progress: &Progress<'_>) {
        let Some(bar) = &self.0 else {
            return;
        };
        bar.set_length(progress.total);
        bar.set_position(progress.done);
        bar.set_message(match progress.phase {
            Phase::Calibrating => format!("how long must runs of {} be?", progress.cell),
            Phase::Measuring => progress.cell.to_owned(),
        });
    }

    fn clear(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
