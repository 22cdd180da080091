//! `ugeom read`: bytes of a provider, to stdout.

use crate::opening::{self, TargetArgs};
use crate::output;
use crate::transfer;
use anyhow::{Result, bail};
use clap::Args;
use std::io::IsTerminal;
use ugeom_stack::Delta;

const LONG_ABOUT: &str = "\
Reads bytes of a provider and writes them to stdout. Offset and length need not be multiples of \
the sector size.

When a read fails, the bytes before it have been written, the error names the layer, the offset \
and the reason, and the exit code is 1.";

const EXAMPLES: &str = "\
Examples:
  ugeom read disk.img@s1a > root.img                copy a partition out
  ugeom read disk.img --offset 1s --length 1s | xxd  look at sector 1
  ugeom read disk.img@p2 | file -                   use it with other programs";

/// Read bytes of a provider, to stdout
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Read {
    #[command(flatten)]
    target: TargetArgs,

    /// Where to begin: 0, 4k, 1.5g, 8s (sectors of 512 bytes)
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = opening::size)]
    offset: u64,

    /// How much to read [default: up to the end of the media]
    #[arg(long, value_name = "SIZE", value_parser = opening::size)]
    length: Option<u64>,

    /// Write to stdout even if it is a terminal
    #[arg(long)]
    force: bool,
}

impl Read {
    pub fn run(&self) -> Result<()> {
        if std::io::stdout().is_terminal() && !self.force {
            bail!("stdout is a terminal, and disks are not made to be read there; --force does it");
        }
        let target = self.target.open()?;
        let provider = opening::top(&target)?;
        let range = transfer::range(&provider, self.offset, self.length)?;
        let opened = target.stack.open(target.top, Delta::READ)?;
        let channel = target.stack.channel(transfer::read::CHANNEL_DEPTH)?;
        transfer::read::copy(&opened, channel, range, &mut output::stdout())?;
        Ok(())
    }
}
