//! `ugeom lab cached`: its flags, and where its results go.

use super::duration_ns;
use super::measuring::Results;
use super::ways::WAYS;
use crate::opening::size;
use anyhow::Result;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use ugeom_harness::{Control, Machine};
use ugeom_lab::cached::{self, Options, SIZE_BYTES_MIN};

const ABOUT: &str = "\
Repeats the measurement of cached reads of 2006 on this machine: reading what is in memory \
already, at random and in sequence, 4 and 16 KiB at a time, from the kernel's page cache, from a \
mapping, and through the cache class with a hash and with a splay tree, by itself and behind NBD \
and FUSE; the same while buffers are recycled all the time; and lookups alone. Then a profile of \
the cache's steps, and what it means. In full it takes some minutes; see to it that nothing else \
runs.

Without a FILE a temporary one is made in the current folder, written in full, and removed \
afterwards. A FILE is only read.";

const EXAMPLES: &str = "\
Examples:
  ugeom lab cached                     a temporary file of 1 GiB, as precisely as it needs
  ugeom lab cached --budget 15s        the short form, of 256 MiB
  ugeom lab cached --size 4g disk.img  the first 4 GiB of an image";

/// What does a cached read cost, and why?
#[derive(Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub struct Cached {
    /// The file to read [default: a temporary one in the current folder]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,

    /// How much of it to read, and to cache [default: 1g; 256m with --budget]
    #[arg(long, value_name = "SIZE", value_parser = enough)]
    size: Option<u64>,

    /// How long it may take; less is measured then [default: as long as precision needs]
    #[arg(long, value_name = "TIME", value_parser = duration_ns)]
    budget: Option<u64>,

    #[command(flatten)]
    results: Results,
}

fn enough(text: &str) -> Result<u64, String> {
    match size(text)? {
        bytes if bytes < SIZE_BYTES_MIN => {
            Err(format!("at least {}m is needed", SIZE_BYTES_MIN >> 20))
        }
        bytes => Ok(bytes),
    }
}

impl Cached {
    pub fn run(&self) -> Result<()> {
        let options = Options {
            file: self.file.clone(),
            size_bytes: self.size,
            budget_ns: self.budget,
            seed: self.results.seed,
            ways: WAYS.to_vec(),
        };
        let measure = |control: &mut Control<'_>| cached::run(&options, &Machine, control);
        self.results.of(measure, cached::page)
    }
}
