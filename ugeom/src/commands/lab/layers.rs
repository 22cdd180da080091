//! `ugeom lab layers`: its flags, the processes that it measures in, and where its results go.

use super::flags::ExperimentArgs;
use super::measuring::{interrupted, with_progress};
use crate::commands::files;
use crate::commands::show;
use crate::failure::{Interrupted, Usage};
use crate::output;
use anyhow::{Context, Result};
use clap::{Args, ValueEnum, ValueHint};
use std::time::SystemTime;
use ugeom_devices::kernel;
use ugeom_harness::processes::BUDGET_NS;
use ugeom_lab::layers::{self, LayersOptions};
use ugeom_machine::interrupt;
use ugeom_report::{Saved, to_html};
use ugeom_trace::tree::{Class, KernelTree};

const LAYERS_ABOUT: &str = "\
Repeats the GEOM benchmarks of 2002 on this machine: 512-byte reads of sector 0 of a memory disk, \
of its slice, and of the partition in that slice, with GEOM and without. Further cases explain the \
figures: sizes, stacks of N layers, statistics, dispatch. It prints the published figures, too.

With a TARGET it measures the providers of the target, which is only read.

With --kernel it reads each device of a chain of the kernel directly (O_DIRECT; 512 bytes and 4 \
KiB, queue depth 1 and 32), with idle processors and with processors kept awake. The cost of a \
layer is the difference to the one below within rounds. At queue depth 1 the same reads are \
traced, too (this needs root): the exclusive time of each layer, and the processors on which \
workers wake. With --faithful the program of 2002 runs on each layer instead. --kernel measures in \
one process and refuses --processes, --full and --goals.";

const LAYERS_EXAMPLES: &str = "\
Examples:
  ugeom lab layers                        # the memory disk of 2002
  ugeom lab layers --kernel /dev/loop0    # what do the kernel's layers cost?
  ugeom lab layers --kernel /dev/loop0 --bottom memory   # over memory
  ugeom lab layers --kernel /dev/loop0 --faithful   # the program of 2002
  ugeom lab layers --all --full           # the full matrix and the whole page
  ugeom lab layers --json before.json disk.img   # keep the figures of a disk";

/// What does GEOM cost, and what does each layer of it cost?
#[derive(Args)]
#[command(long_about = LAYERS_ABOUT, after_help = LAYERS_EXAMPLES)]
pub struct Layers {
    /// Target to measure [default: a memory disk with an MBR and a BSD label]
    #[arg(value_name = "TARGET", value_hint = ValueHint::FilePath,
          value_parser = crate::opening::word())]
    target: Option<String>,

    /// Only the rows of 2002: ten runs of exactly 100 and 100,000 loops, no time limit. With
    /// --kernel the program of 2002 on each layer
    #[arg(long, conflicts_with = "budget")]
    faithful: bool,

    /// Measure the kernel's own layers below a device or a file instead, by direct reads (O_DIRECT)
    /// of each in the same rounds
    #[arg(long, value_name = "DEVICE", value_hint = ValueHint::AnyPath,
          conflicts_with_all = ["target", "full", "processes", "goals"])]
    kernel: Option<String>,

    /// Bottom of the chain of --kernel: its device, or memory, which rebuilds the loop devices and
    /// partitions over a file in /dev/shm for each pass, so that no disk hides the cost of a layer
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = Bottom::Device,
          requires = "kernel")]
    bottom: Bottom,

    #[command(flatten)]
    one: ExperimentArgs,
}

/// The bottom of a chain of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Bottom {
    Device,
    Memory,
}

impl Layers {
    pub fn run(&self) -> Result<()> {
        if let Some(target) = &self.kernel {
            return self.run_kernel(target);
        }
        let options = LayersOptions {
            target: self.target.clone(),
            faithful: self.faithful,
            servers: Vec::new(),
            common: self.one.flags.common(),
        };
        self.one.run::<layers::Layers>(&options)
    }

    fn run_kernel(&self, target: &str) -> Result<()> {
        let bottom = match self.bottom {
            Bottom::Device => kernel::Bottom::Device,
            Bottom::Memory => {
                let (tree, at) = show::kernel::read(Some(target))?;
                let layers = at.map_or(Ok(Vec::new()), |at| made_of(&tree, at))?;
                // Ctrl-C must not leave devices behind.
                interrupt::catch().context("listening for Ctrl-C")?;
                kernel::Bottom::Memory { layers }
            }
        };
        let flags = &self.one.flags;
        self.one.check()?;
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let common = flags.common();
        let options = kernel::KernelLayersOptions {
            target: target.to_owned(),
            bottom,
            budget_ns: common.limit_ns().unwrap_or(BUDGET_NS),
            seed: common
                .seed
                .unwrap_or(since_1970.map_or(0, |since| since.as_secs())),
            faithful: self.faithful,
        };
        let result = with_progress(|control| {
            flags.announce(1);
            kernel::run(&options, control)
        })?;
        let faithful = result.faithful.as_ref().map(|found| &found.rows[..]);
        let measured = faithful.is_some_and(|rows| rows.iter().any(|row| !row.runs_ns.is_empty()));
        if result.cases.is_empty() && !measured {
            return Err(Interrupted("stopped before anything was measured".to_owned()).into());
        }
        let saved = Saved::new(
            serde_json::to_string_pretty(&result)?,
            kernel::page(&result),
        )?;
        let [json, report] = self.one.outputs();
        files::deliver(
            || Ok(output::page_or_screen(saved.page(), flags.all)),
            &[
                (json, &|| Ok(saved.json().to_owned())),
                (report, &|| Ok(to_html(std::slice::from_ref(&saved)))),
            ],
        )?;
        interrupted()
    }
}

/// The loop devices of the chain and the partitions on them, the lowest first. The layers below the
/// lowest loop device are replaced by memory; above it, other layers cannot be made.
fn made_of(tree: &KernelTree, top: usize) -> Result<Vec<kernel::Made>> {
    let nodes: Vec<_> = tree.chain(top).iter().map(|at| &tree.nodes[*at]).collect();
    let Some(lowest) = nodes.iter().rposition(|node| node.class == Class::Loop) else {
        let name = &tree.nodes[top].name;
        let why = format!("{name}: no loop device in its chain that could be made in memory");
        return Err(Usage(why).into());
    };
    let mut layers = Vec::new();
    for node in nodes[..=lowest].iter().rev() {
        match node.class {
            Class::Loop => layers.push(kernel::Made::Loop),
            Class::Part => layers.push(kernel::Made::Partition {
                start_bytes: node.start_bytes.unwrap_or(0),
            }),
            Class::File | Class::Fs => {}
            _ => {
                let name = &node.name;
                let why = format!("{name}: only loop devices and partitions can be made in memory");
                return Err(Usage(why).into());
            }
        }
    }
    Ok(layers)
}
