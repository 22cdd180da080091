//! `ugeom lab tst`: the program of 2002.

use crate::output;
use anyhow::Result;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use ugeom_load::tst;

const TST_EXAMPLES: &str = "\
Examples:
  ugeom lab tst /dev/zero
  ugeom lab tst disk.img";

/// The program of 2002: nanoseconds of one lseek and read of 512 bytes from the start of a file
#[derive(Args)]
#[command(after_help = TST_EXAMPLES)]
pub struct Tst {
    /// A file or device; it is read by the kernel and not through a stack
    #[arg(value_name = "PATH", value_hint = ValueHint::FilePath)]
    path: PathBuf,
}

impl Tst {
    pub fn run(&self) -> Result<()> {
        let ns_per_loop = tst::tst(&self.path)?;
        output::print(&format!("{}\n", tst::line(ns_per_loop)))
    }
}
