//! `ugeom lab`: the experiments. The measurements and verdicts are in `ugeom_lab` and
//! `ugeom_devices`; here are their flags, one file an experiment, and in `flags.rs` those that all
//! have, in `measuring.rs` the progress and Ctrl-C.

mod all;
mod cached;
mod engines;
pub(super) mod flags;
mod layers;
pub(super) mod measuring;
mod scaling;
mod servers;
mod sweep;
mod tst;
mod worker;

use anyhow::Result;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;
use ugeom_measure::units::{self, TimeUnit};

const LONG_ABOUT: &str = "\
Measures, and prints the answer, one table and warnings; --all prints the whole page. Differences, \
ratios and shares have a confidence interval in parentheses (at least 95 %; the level is printed), \
times and rates their 10th and 90th percentile in square brackets. Each experiment runs in fresh \
processes of this program, whose values are the observations.

Without an experiment all five run, 15 seconds each, and report.html holds all pages in one file. \
Ctrl-C ends a measurement early and keeps what was measured.

Measure on a quiet machine, with a release build.";

const EXAMPLES: &str = "\
Examples:
  ugeom lab                     # all five, 15 seconds each; report.html
  ugeom lab layers              # what does GEOM cost, and each layer of it?
  ugeom lab layers disk.img     # the same for your own disk or image
  ugeom lab sweep disk.img      # what limits it: IOPS or bandwidth?
  ugeom lab cached              # what does a cached read cost, and why?
  ugeom lab scaling             # how many IOPS, and what does each knob gain?
  ugeom lab engines             # threads, libaio or io_uring?
  ugeom lab tst /dev/zero       # the program of 2002";

/// Measure: what do layers cost, what limits a disk, how does it scale?
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Lab {
    #[command(subcommand)]
    experiment: Option<Experiment>,

    #[command(flatten)]
    flags: flags::Flags,

    /// File for the report of all experiments
    #[arg(long, value_name = "FILE", default_value = "report.html",
          value_hint = ValueHint::FilePath)]
    report: PathBuf,

    /// Write no report
    #[arg(long, conflicts_with = "report")]
    no_report: bool,
}

#[derive(Subcommand)]
enum Experiment {
    Layers(layers::Layers),
    Sweep(sweep::Sweep),
    Cached(cached::Cached),
    Scaling(scaling::Scaling),
    Engines(engines::Engines),
    Tst(tst::Tst),
    #[command(hide = true)]
    Worker(worker::Worker),
}

/// Reads a time from an argument: `250us`, `5m`; a bare number counts seconds.
pub(in crate::commands) fn duration_ns(text: &str) -> Result<u64, String> {
    units::duration_ns(text, TimeUnit::Seconds).map_err(|error| error.with_help())
}

/// Reads the time that a measurement may take.
pub(in crate::commands) fn budget_ns(text: &str) -> Result<u64, String> {
    match duration_ns(text)? {
        0 => Err("a measurement needs more than 0, such as 15s".to_owned()),
        budget_ns => Ok(budget_ns),
    }
}

impl Lab {
    pub fn run(&self) -> Result<()> {
        let Some(experiment) = &self.experiment else {
            let report = (!self.no_report).then_some(&self.report);
            let flags = &self.flags;
            return all::All { flags, report }.run();
        };
        run_each!(experiment, Experiment: Layers Sweep Cached Scaling Engines Tst Worker)
    }
}
