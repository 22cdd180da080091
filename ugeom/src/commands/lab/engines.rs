//! `ugeom lab engines`: its flags, and where its results go.

use super::flags::ExperimentArgs;
use crate::{opening, safety};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueHint};
use std::path::PathBuf;
use ugeom_devices::engines::{self, EnginesOptions};

const ENGINES_ABOUT: &str = "\
Repeats the comparison of 2007, in which a library of threads (GUASI) kept up with the kernel's \
asynchronous I/O: direct random reads and writes of 4 KiB at queue depths of 100, 1000 and 10,000, \
by libaio, by io_uring, by GUASI, and by one thread per request, limited by size. Prints IOPS, \
submission and completion latency, CPU time and context switches per request, each engine compared \
with libaio, and the published table; then the cost of each engine, and of making any call \
asynchronous.

Without a TARGET a temporary file is written in full into the current folder, and removed \
afterwards. A TARGET is overwritten, which needs --destroy.

--schedulers repeats the job with every I/O scheduler of the device, and restores the original \
one, also after Ctrl-C. It needs root.";

const ENGINES_EXAMPLES: &str = "\
Examples:
  ugeom lab engines                            # a temporary file, 15 seconds
  ugeom lab engines --full                     # whole runs of 65,536 requests
  ugeom lab engines --depth 32,100 --size 64m
  ugeom lab engines --schedulers --depth 100   # every I/O scheduler
  ugeom lab engines --destroy /dev/sdX         # a disk with nothing on it";

/// Do blocking threads keep up with the kernel's asynchronous I/O?
#[derive(Args)]
#[command(long_about = ENGINES_ABOUT, after_help = ENGINES_EXAMPLES)]
pub struct Engines {
    /// The file or device to overwrite [default: a temporary file]
    #[arg(value_name = "TARGET", value_hint = ValueHint::FilePath)]
    target: Option<PathBuf>,

    /// Allow overwriting TARGET, with any content
    #[arg(long, requires = "target")]
    destroy: bool,

    /// Queue depths
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = engines::DEPTHS,
          value_parser = clap::value_parser!(u32).range(1..=32_768))]
    depth: Vec<u32>,

    /// Used part of the file [default: 256m]
    #[arg(long, value_name = "SIZE", value_parser = size_bytes)]
    size: Option<u64>,

    /// Repeat the job with every available I/O scheduler
    #[arg(long)]
    schedulers: bool,

    #[command(flatten)]
    one: ExperimentArgs,
}

/// The smallest part of a file that is worth measuring, bytes.
const SIZE_BYTES_MIN: u64 = 1 << 20;

fn size_bytes(text: &str) -> Result<u64, String> {
    match opening::size(text)? {
        size if size < SIZE_BYTES_MIN => Err("at least 1m is needed".to_owned()),
        size => Ok(size),
    }
}

impl Engines {
    pub fn run(&self) -> Result<()> {
        if let Some(target) = &self.target {
            let name = target.display();
            std::fs::metadata(target).with_context(|| name.to_string())?;
            if !self.destroy {
                bail!("{name}: the job overwrites it; nothing was written, --destroy allows it");
            }
            safety::refuse_in_use(target)?;
        }
        // Each once: a figure is found by its depth.
        let mut depths = self.depth.clone();
        depths.sort_unstable();
        depths.dedup();
        let options = EnginesOptions {
            target: self.target.clone(),
            depths,
            size_bytes: self.size,
            schedulers: self.schedulers,
            common: self.one.flags.common(),
            ..EnginesOptions::default()
        };
        self.one.run::<engines::Engines>(&options)
    }
}
