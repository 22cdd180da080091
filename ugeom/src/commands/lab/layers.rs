//! `ugeom lab layers`: its flags, the processes that it measures in, and where its results go.

use super::duration_ns;
use super::measuring::{Saved, check_writable, measured, save};
use super::ways::WAYS;
use crate::output;
use anyhow::{Context, Result};
use clap::{Args, ValueHint};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;
use ugeom_harness::Machine;
use ugeom_lab::kernel;
use ugeom_lab::layers::{self, Options};
use ugeom_machine::interrupt;
use ugeom_report::text::WIDTH;

const LAYERS_ABOUT: &str = "\
Repeats the GEOM benchmarks of 2002 on this machine: 512-byte reads of sector 0 of a memory disk, \
of its slice, and of the partition in that slice, with GEOM and without; and then what explains \
the figures: sizes, piles of layers, statistics, dispatch. The published figures stand beside.

With a TARGET the same is measured for its providers. It is only read.

With --kernel each device of a chain of the kernel is read past the page cache (512 bytes and \
4 KiB, queue depth 1 and 32), once with the processors as they are and once kept awake; the cost \
of a layer is the difference to the one below within rounds.";

const LAYERS_EXAMPLES: &str = "\
Examples:
  ugeom lab layers                        the memory disk of 2002
  ugeom lab layers --kernel /dev/loop0    what do the kernel's layers cost?
  ugeom lab layers --all --full           everything, as precisely as it can be
  ugeom lab layers --json before.json disk.img   keep the figures of a disk";

/// What does GEOM cost, and what does each layer of it cost?
#[derive(Args)]
#[command(long_about = LAYERS_ABOUT, after_help = LAYERS_EXAMPLES)]
pub struct Layers {
    /// What to measure [default: a memory disk with an MBR and a BSD label]
    #[arg(value_name = "TARGET", value_hint = ValueHint::FilePath)]
    target: Option<String>,

    /// Save all samples and figures as JSON; `-` prints them instead of the report
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    json: Option<PathBuf>,

    /// Measure the kernel's own layers below a device or a file instead: each is read past the page
    /// cache, in the same rounds
    #[arg(long, value_name = "DEVICE", value_hint = ValueHint::AnyPath,
          conflicts_with_all = ["target", "faithful", "all", "full", "processes"])]
    kernel: Option<String>,

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

impl Layers {
    pub fn run(&self) -> Result<()> {
        if let Some(target) = &self.kernel {
            return self.run_kernel(target);
        }
        let options = Options {
            target: self.target.clone(),
            all: self.all,
            full: self.full,
            faithful: self.faithful,
            seed: self.seed,
            budget_ns: self.budget,
            ways: WAYS.to_vec(),
        };
        check_writable(self.json.as_deref())?;
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
        if save(self.json.as_deref(), &document)? == Saved::Printed {
            return Ok(());
        }
        output::print(&layers::report(&document, self.all))
    }
}

impl Layers {
    fn run_kernel(&self, target: &str) -> Result<()> {
        check_writable(self.json.as_deref())?;
        if cfg!(debug_assertions) {
            output::warn("this is a debug build: its figures mean nothing (cargo run --release)");
        }
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let options = kernel::Options {
            target: target.to_owned(),
            budget_ns: self.budget.unwrap_or(KERNEL_BUDGET_NS),
            seed: self
                .seed
                .unwrap_or(since_1970.map_or(0, |since| since.as_secs())),
        };
        let stop = interrupt::catch().context("listening for Ctrl-C")?;
        let result = kernel::run(&options, stop)?;
        match self.json.as_deref() {
            Some(path) if path == Path::new("-") => return output::print_json(&result),
            Some(path) => {
                let json = serde_json::to_string_pretty(&result)?;
                std::fs::write(path, json).with_context(|| path.display().to_string())?;
            }
            None => {}
        }
        output::print(&kernel::page(&result).to_text(WIDTH))
    }
}

/// How long the kernel's layers are measured when nothing is said, ns.
const KERNEL_BUDGET_NS: u64 = 30_000_000_000;

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
