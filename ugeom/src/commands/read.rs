//! `ugeom read`: bytes of a provider, to stdout.

use crate::opening::{self, TransferArgs};
use crate::safety;
use crate::transfer;
use crate::transfer::rescue;
use crate::transfer::sink::Sink;
use anyhow::{Result, bail};
use clap::Args;
use std::io::IsTerminal;
use std::path::PathBuf;
use ugeom_stack::Delta;

const LONG_ABOUT: &str = "\
Reads bytes of a provider and writes them to stdout. Offset and length need not be multiples of \
the sector size.

Holes of the provider are not read, and zeroes become holes where stdout is a file. With \
--skip-errors, everything is read and written.

When a read fails, the bytes before it are on stdout, the error names the layer, the offset and \
the reason, and the exit code is 1. --skip-errors continues after an error: it reads large blocks \
first, forward and backward, then single sectors. --map records the sectors read, in the format of \
GNU ddrescue, so that a later run can continue, also with another --offset: with --map, whole \
sectors go to their offset of the provider in the output. The exit code is 1 while sectors are \
missing.

A block device on stdout, or a file opened with 1<>, that carries a partition table or a file \
system is refused without --destroy, unless the --map of an earlier run is there.";

const EXAMPLES: &str = "\
Examples:
  ugeom read disk.img@s1a > root.img                # copy a partition out
  ugeom read disk.img --offset 1s --length 1s | xxd  # look at sector 1
  ugeom read disk.img@p2 | file -                   # use it with other programs
  # Rescue a failing disk, or continue
  ugeom read --skip-errors --map sdb.map --retries 3 /dev/sdb 1<> sdb.img";

/// Read bytes of a provider, to stdout
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Read {
    #[command(flatten)]
    from: TransferArgs,

    /// Number of bytes to read [default: up to the end of the media]
    #[arg(long, value_name = "SIZE", value_parser = opening::size)]
    length: Option<u64>,

    /// Continue after errors; unreadable sectors become zeroes. Stdout must be a file
    #[arg(long)]
    skip_errors: bool,

    /// With --skip-errors: keep the map in this file, and continue from it
    #[arg(long, value_name = "FILE", requires = "skip_errors")]
    map: Option<PathBuf>,

    /// With --skip-errors: read each bad sector up to N more times
    #[arg(long, value_name = "N", default_value_t = 0, requires = "skip_errors")]
    retries: u32,

    /// Overwrite a file or block device on stdout with a partition table or a file system
    #[arg(long)]
    destroy: bool,

    /// Write to stdout even if it is a terminal
    #[arg(long)]
    force: bool,
}

impl Read {
    pub fn run(&self) -> Result<()> {
        if std::io::stdout().is_terminal() && !self.force {
            bail!("stdout is a terminal; --force writes to it");
        }
        safety::refuse_stdout_in_use()?;
        // What an earlier run has copied is there to be continued.
        let began = |map: &PathBuf| std::fs::metadata(map).is_ok_and(|about| about.len() > 0);
        if !self.destroy && !self.map.as_ref().is_some_and(began) {
            safety::refuse_content_of_stdout()?;
        }
        let target = self.from.target.open()?;
        let provider = opening::top(&target)?;
        let range = transfer::range(&provider, self.from.offset, self.length)?;
        let opened = target.stack.open(target.top, Delta::READ)?;
        let channel = target.stack.channel(transfer::read::CHANNEL_DEPTH)?;
        if self.skip_errors {
            let wanted = rescue::Wanted {
                map: self.map.as_deref(),
                retries: self.retries,
            };
            return rescue::copy(&opened, channel, range, &wanted);
        }
        let asking = target.stack.channel(1)?;
        transfer::read::copy(&opened, (channel, asking), range, &mut Sink::new())?;
        Ok(())
    }
}
