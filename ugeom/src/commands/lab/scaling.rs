//! `ugeom lab scaling`: how does the machinery scale, and which knob buys what?

use super::duration_ns;
use super::measuring::{Saved, check_writable, measured, save};
use crate::output;
use anyhow::Result;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use ugeom_bench::harness::Machine;
use ugeom_bench::scaling::{self, Options, WORKERS_MAX};

const ABOUT: &str = "\
Repeats the measurement of GEOM's limits with gzero on this machine: raidtest's requests to a \
device that touches no data, with 1 worker, as many as there are cores, 4, 8 and 16; and a ladder \
of knobs, each added to the one before: statistics off, direct dispatch, no lock around devices, \
a pool of requests for each core. Then each knob is taken away again. Every step gets the verdict \
of ministat, as the published ones did, and beside it one that holds for all steps together.";

const EXAMPLES: &str = "\
Examples:
  ugeom lab scaling                          15 seconds
  ugeom lab scaling --full                   as precisely as it can be
  ugeom lab scaling --workers 1,2,32 --json scaling.json";

/// How does it scale with workers, and which knob buys what?
#[derive(Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub struct Scaling {
    /// How many workers, a column each [default: 1, the number of cores, 4, 8 and 16]
    #[arg(long, value_name = "N,N,...", value_delimiter = ',',
          value_parser = clap::value_parser!(u64).range(1..=WORKERS_MAX))]
    workers: Vec<u64>,

    /// Save all samples and figures as JSON; `-` prints them instead of the report
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    json: Option<PathBuf>,

    /// How long it may take [default: 15s]
    #[arg(long, value_name = "TIME", value_parser = duration_ns, group = "time")]
    budget: Option<u64>,

    /// Take the time that precision needs
    #[arg(long, group = "time")]
    full: bool,

    /// The seed of the requests and of the order of runs [default: one of the clock]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

/// How wide the report is, characters.
const WIDTH: usize = 100;

impl Scaling {
    pub fn run(&self) -> Result<()> {
        let options = Options {
            workers: self.workers.clone(),
            full: self.full,
            seed: self.seed,
            budget_ns: self.budget,
        };
        check_writable(self.json.as_deref())?;
        let document = measured(|control| scaling::run(&options, &Machine, control))?;
        if save(self.json.as_deref(), &document)? == Saved::Printed {
            return Ok(());
        }
        output::print(&scaling::report(&document).to_text(WIDTH))
    }
}
