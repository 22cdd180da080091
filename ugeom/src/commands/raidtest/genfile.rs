//! `ugeom raidtest genfile`: makes a file of random requests.

use super::{FileArgs, OnlyArgs, totals_text};
use crate::failure::Usage;
use crate::{opening, output};
use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use ugeom_format::raidtest::{REQUESTS_MAX, Shape, Totals};
use ugeom_machine::result_file::refuse_disk;

const EXAMPLES: &str = "\
Examples:
  ugeom raidtest genfile -s 1g -n 100000
  ugeom raidtest genfile -f -r -s 500g -S 4096 -n 1000000 reads.data
  ugeom raidtest genfile --seed 7 -s 1g -n 1000 same-every-time.data";

/// Make a file of random requests: lengths of 1 sector to 128 KiB, offsets and kinds uniform
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Genfile {
    /// The size of the device: 1g, 500000000, 4096s (sectors of 512 bytes)
    #[arg(short = 's', long, value_name = "SIZE", value_parser = opening::size)]
    mediasize: u64,

    /// The sector size of the device
    #[arg(short = 'S', long, value_name = "SIZE", value_parser = opening::size,
          default_value = "512")]
    sectorsize: u64,

    /// Number of requests
    #[arg(short = 'n', long, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=REQUESTS_MAX))]
    requests: u64,

    #[command(flatten)]
    only: OnlyArgs,

    /// Overwrite the file
    #[arg(short = 'f', long)]
    force: bool,

    /// Seed of the requests: the same seed gives the same file [default: random]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    file: FileArgs,
}

#[derive(Serialize)]
struct Done {
    file: String,
    seed: u64,
    reads: u64,
    writes: u64,
    bytes: u64,
}

impl Genfile {
    pub fn run(&self) -> Result<()> {
        let shape = Shape {
            media_bytes: self.mediasize,
            sector_bytes: u32::try_from(self.sectorsize).unwrap_or(u32::MAX),
            kind: self.only.kind(),
        };
        let seed = self.seed.unwrap_or_else(|| fastrand::u64(..));
        let mut random = fastrand::Rng::with_seed(seed);
        let requests = shape
            .requests(|below| random.u64(0..below))
            .map_err(|error| Usage(error.to_string()))?;
        let path = &self.file.file;
        let name = path.display().to_string();
        let mut out = BufWriter::new(self.create().with_context(|| name.clone())?);
        let mut totals = Totals::default();
        for request in requests.take(self.requests as usize) {
            totals.add(&request);
            out.write_all(&request.encode())
                .with_context(|| format!("{name}: writing"))?;
        }
        out.flush().with_context(|| format!("{name}: writing"))?;
        if self.json {
            return output::print_json(&Done {
                file: name,
                seed,
                reads: totals.reads,
                writes: totals.writes,
                bytes: totals.bytes,
            });
        }
        let name = output::printable(&name);
        output::print(&format!("File {name} generated.\n{}", totals_text(&totals)))
    }

    /// A new file; one that is there only with `-f`.
    fn create(&self) -> io::Result<File> {
        refuse_disk(&self.file.file)?;
        let mut options = OpenOptions::new();
        options.write(true);
        match self.force {
            true => options.create(true).truncate(true),
            false => options.create_new(true),
        };
        options.open(&self.file.file)
    }
}
