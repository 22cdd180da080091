//! `ugeom lab sweep`: its flags, the safety of writing, and where its results go.

use super::flags::ExperimentArgs;
use crate::failure::Usage;
use crate::opening;
use crate::safety;
use anyhow::Result;
use clap::{Args, ValueEnum, ValueHint};
use ugeom_classes::{TargetOptions, TargetText, open_target, path_of};
use ugeom_devices::sweep::{self, SweepOptions};

const LONG_ABOUT: &str = "\
Reads the same bytes in blocks of 512 bytes to 512 KiB, doubling, direct (O_DIRECT) and buffered \
in turns, and prints the limit: IOPS, bandwidth or the processor, and from which block size on. \
Beside each block size it prints the device's own counters, as iostat does, which show whether a \
cache answered, or blocks were merged or split.

A TARGET is a file, a block device or any stack. It is only read, unless --write is given. Without \
a TARGET, it measures a temporary file in the current directory and a simulated disk of 2004.

To fit the budget, it reduces repetitions first, then bytes; the report states both.";

const EXAMPLES: &str = "\
Examples:
  ugeom lab sweep                          # a temporary file, the disk of 2004
  ugeom lab sweep --full /dev/sda          # all of 64 MiB in each block size
  ugeom lab sweep --direct --random disk.img
  ugeom lab sweep 'disk:64m,rate=200m/s'   # a disk whose limits are known
  ugeom lab sweep --format dd disk.img     # the lines of dd and csh";

/// What limits a device: IOPS, bandwidth, or the processor?
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Sweep {
    /// Target to measure [default: a temporary file and a simulated disk]
    #[arg(value_name = "TARGET", value_hint = ValueHint::FilePath,
          value_parser = crate::opening::word())]
    target: Option<String>,

    /// Smallest block size
    #[arg(long, value_name = "SIZE", default_value = "512", value_parser = opening::size)]
    min: u64,

    /// Largest block size
    #[arg(long, value_name = "SIZE", default_value = "512k", value_parser = opening::size)]
    max: u64,

    /// Bytes transferred in each block size
    #[arg(long, value_name = "SIZE", default_value = "64m", value_parser = opening::size)]
    bytes: u64,

    /// Write instead of reading; data on the target is lost
    #[arg(long)]
    write: bool,

    /// Overwrite a target with a partition table or a file system
    #[arg(long, requires = "write")]
    destroy: bool,

    /// Access blocks in random order instead of sequentially
    #[arg(long)]
    random: bool,

    /// Direct (O_DIRECT) only
    #[arg(long, group = "way")]
    direct: bool,

    /// Buffered (page cache) only
    #[arg(long, group = "way")]
    buffered: bool,

    /// Output format: the report, or the lines of dd and csh
    #[arg(long, value_name = "FORMAT", default_value = "report")]
    format: Format,

    #[command(flatten)]
    one: ExperimentArgs,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Report,
    Dd,
}

/// The largest block that memory is taken for, bytes.
const BLOCK_BYTES_MAX: u64 = 1 << 30;

/// The smallest unit of direct I/O, bytes.
const SECTOR_BYTES: u64 = 512;

impl Sweep {
    pub fn run(&self) -> Result<()> {
        let options = self.options()?;
        self.check_target()?;
        self.one
            .run_printing::<sweep::Sweep>(&options, |document, page| {
                Ok(match self.format {
                    Format::Report => self.one.flags.text(document, page),
                    Format::Dd => sweep::dd(document),
                })
            })
    }

    fn options(&self) -> Result<SweepOptions> {
        let wrong = |what: String| Err(Usage(what).into());
        let sizes = [
            ("--min", self.min),
            ("--max", self.max),
            ("--bytes", self.bytes),
        ];
        for (flag, size) in sizes {
            if size == 0 {
                return wrong(format!("{flag} must be above 0"));
            }
        }
        if self.min > self.max {
            return wrong(format!(
                "--min {} is more than --max {}",
                self.min, self.max
            ));
        }
        if self.max > BLOCK_BYTES_MAX {
            return wrong(format!(
                "--max {} is more than 1g, the largest block",
                self.max
            ));
        }
        let target = self.target.as_deref();
        let stack = target.is_some_and(|text| !sweep::is_file(text));
        if (self.direct || self.buffered) && stack {
            let flag = if self.direct {
                "--direct"
            } else {
                "--buffered"
            };
            return wrong(format!(
                "{flag} applies to files and devices only, not to stacks"
            ));
        }
        if !self.buffered && !stack && !self.min.is_multiple_of(SECTOR_BYTES) {
            return wrong(format!(
                "--min {} is not a multiple of {SECTOR_BYTES}, which direct reads (O_DIRECT) need; \
                 --buffered takes any size",
                self.min
            ));
        }
        if self.bytes < self.min {
            return wrong(format!(
                "--bytes {} is less than --min {}, one block",
                self.bytes, self.min
            ));
        }
        Ok(SweepOptions {
            target: self.target.clone(),
            min_bytes: self.min,
            max_bytes: self.max,
            bytes: self.bytes,
            write: self.write,
            random: self.random,
            direct: !self.buffered,
            buffered: !self.direct,
            common: self.one.flags.common(),
            ..SweepOptions::default()
        })
    }

    /// Mounted targets and those with content are not written.
    fn check_target(&self) -> Result<()> {
        let Some(target) = self.target.as_deref().filter(|_| self.write) else { return Ok(()) };
        // A path is written to without a stack.
        match TargetText::parse(target)?.single_path().map(path_of) {
            Some(path) => {
                safety::refuse_in_use(&path)?;
                match self.destroy {
                    true => Ok(()),
                    false => safety::refuse_content_of_path(&path),
                }
            }
            None if self.destroy => Ok(()),
            None => safety::refuse_content(&open_target(target, &TargetOptions::default())?),
        }
    }
}
