//! `ugeom lab cached`: its flags, and where its results go.

use super::flags::ExperimentArgs;
use crate::opening::size;
use anyhow::Result;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use ugeom_lab::cached::{self, CachedOptions, SIZE_BYTES_MIN};

const ABOUT: &str = "\
Repeats the measurement of cached reads of 2006 on this machine: random and sequential reads of 4 \
and 16 KiB from the kernel's page cache, from a mapping, and through the cache class with a hash \
and with a splay tree, alone, over NBD and over FUSE; the same with buffers that are recycled \
by every read; lookups only; and a profile of the cache's steps.

Without a FILE a temporary one is made in the current folder, written in full, and removed \
afterwards. A FILE is only read.";

const EXAMPLES: &str = "\
Examples:
  ugeom lab cached                     # a temporary file of 128 MiB
  ugeom lab cached --full              # 1 GiB, every order and block size
  ugeom lab cached --size 4g disk.img  # the first 4 GiB of an image";

/// What does a cached read cost, and why?
#[derive(Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub struct Cached {
    /// The file to read [default: a temporary one in the current folder]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,

    /// Bytes of the file to read and to cache [default: 128m; 1g with --full]
    #[arg(long, value_name = "SIZE", value_parser = enough)]
    size: Option<u64>,

    #[command(flatten)]
    one: ExperimentArgs,
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
        let options = CachedOptions {
            file: self.file.clone(),
            size_bytes: self.size,
            common: self.one.flags.common(),
            ..CachedOptions::default()
        };
        self.one.run::<cached::Cached>(&options)
    }
}
