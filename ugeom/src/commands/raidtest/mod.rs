//! `ugeom raidtest`: the benchmark of storage devices of that name, with its files, options and
//! output (`docs/formats/raidtest.md`).

mod genfile;
mod test;

use anyhow::Result;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use ugeom_format::raidtest::{RaidtestKind, Totals};

const LONG_ABOUT: &str = "\
raidtest(8): genfile makes a file of random requests, test sends them to a device from several \
workers and prints the IOPS. The files are those of the original.

Differences: every request is sent (the original drops the remainder of a division by the number \
of processes), a failed request ends the test, times are not truncated to whole seconds, and only \
a test with writes opens the device for writing.";

const EXAMPLES: &str = "\
Examples:
  ugeom raidtest genfile -s 1g -n 100000      # requests for a device of 1 GiB
  ugeom raidtest test -r -d disk.img -n 4     # all as reads, from 4 workers
  ugeom raidtest test -d 'md:1g'              # on a memory disk";

/// Generate random requests, and test a device with them, as raidtest(8)
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Raidtest {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Genfile(genfile::Genfile),
    Test(test::Test),
}

/// The file that is meant when none is named.
const DEFAULT_FILE: &str = "raidtest.data";

/// All requests of one kind.
#[derive(Args)]
struct OnlyArgs {
    /// Reads only
    #[arg(short = 'r', long = "read", conflicts_with = "write")]
    read: bool,

    /// Writes only
    #[arg(short = 'w', long = "write")]
    write: bool,
}

impl OnlyArgs {
    fn kind(&self) -> Option<RaidtestKind> {
        match (self.read, self.write) {
            (true, _) => Some(RaidtestKind::Read),
            (_, true) => Some(RaidtestKind::Write),
            _ => None,
        }
    }
}

/// The file of requests.
#[derive(Args)]
struct FileArgs {
    /// The file of requests
    #[arg(value_name = "FILE", default_value = DEFAULT_FILE,
          value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
}

/// The lines about requests that both commands print.
fn totals_text(totals: &Totals) -> String {
    format!(
        "Number of READ requests: {}.\nNumber of WRITE requests: {}.\n\
         Number of bytes to transmit: {}.\n",
        totals.reads, totals.writes, totals.bytes
    )
}

impl Raidtest {
    pub fn run(&self) -> Result<()> {
        match &self.action {
            Action::Genfile(genfile) => genfile.run(),
            Action::Test(test) => test.run(),
        }
    }
}
