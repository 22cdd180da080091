//! `ugeom lab scaling`: IOPS against workers, and the gain of each knob.

use super::flags::ExperimentArgs;
use anyhow::Result;
use clap::Args;
use ugeom_lab::scaling::{self, ScalingOptions, WORKERS_MAX};

const ABOUT: &str = "\
Measures how IOPS scale with workers, and what each knob of the stack gains. It repeats the \
measurement of GEOM's limits with gzero: raidtest's requests to a device that touches no data, \
with 1 worker, one per core, 4, 8 and 16.

The knobs are added one by one: statistics off, direct dispatch, no lock around devices, a pool of \
requests per core. Then each knob alone is switched off again. Every step has two verdicts: \
ministat's, as in the published table, and one that holds for all steps of its kind together.";

const EXAMPLES: &str = "\
Examples:
  ugeom lab scaling                          # 15 seconds
  ugeom lab scaling --full                   # no time limit
  ugeom lab scaling --workers 1,2,32 --json scaling.json";

/// How do IOPS scale with workers, and what does each knob gain?
#[derive(Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub struct Scaling {
    /// Numbers of workers, one column each [default: 1, the number of cores, 4, 8 and 16]
    #[arg(long, value_name = "N,N,...", value_delimiter = ',',
          value_parser = clap::value_parser!(u64).range(1..=WORKERS_MAX))]
    workers: Vec<u64>,

    #[command(flatten)]
    one: ExperimentArgs,
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
