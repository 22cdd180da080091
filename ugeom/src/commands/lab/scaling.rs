//! `ugeom lab scaling`: how does the machinery scale, and which knob buys what?

use super::flags::One;
use anyhow::Result;
use clap::Args;
use ugeom_lab::scaling::{self, ScalingOptions, WORKERS_MAX};

const ABOUT: &str = "\
Repeats the measurement of GEOM's limits with gzero on this machine: raidtest's requests to a \
device that touches no data, with 1 worker, as many as there are cores, 4, 8 and 16; and a ladder \
of knobs, each added to the one before: statistics off, direct dispatch, no lock around devices, \
a pool of requests for each core. Then each knob alone is switched off again. Every step gets the \
verdict of ministat, as the published ones did, and beside it one that holds for all steps of its \
kind together.";

const EXAMPLES: &str = "\
Examples:
  ugeom lab scaling                          15 seconds
  ugeom lab scaling --full                   as precisely as it can be
  ugeom lab scaling --workers 1,2,32 --json scaling.json";

/// How do IOPS scale with workers, and what does each knob gain?
#[derive(Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub struct Scaling {
    /// How many workers, a column each [default: 1, the number of cores, 4, 8 and 16]
    #[arg(long, value_name = "N,N,...", value_delimiter = ',',
          value_parser = clap::value_parser!(u64).range(1..=WORKERS_MAX))]
    workers: Vec<u64>,

    #[command(flatten)]
    one: One,
}

impl Scaling {
    pub fn run(&self) -> Result<()> {
        let options = ScalingOptions {
            workers: self.workers.clone(),
            common: self.one.flags.common(),
            ..ScalingOptions::default()
        };
        self.one.run::<scaling::Scaling>(&options)
    }
}
