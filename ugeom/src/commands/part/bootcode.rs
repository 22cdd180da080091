//! `ugeom part bootcode`: boot code around a table, or in a partition.

use super::{Common, explained, scheme};
use crate::failure::Usage;
use crate::output;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueHint};
use serde_json::json;
use std::io::Read;
use std::path::{Path, PathBuf};
use ugeom_format::plan::Scheme;

/// gpart's limit for the code around a table.
const MOST_BYTES: u64 = 800 << 10;
/// Limit of code in a partition: more than any loader has.
const MOST_IN_PARTITION_BYTES: u64 = 64 << 20;

const LONG_ABOUT: &str = "\
Writes boot code: around the table with -b, where the scheme keeps sectors for it (MBR, GPT: 446 \
bytes of sector 0; BSD, PC98: 8 KiB), or into a partition with -p and -i. A VTOC8 takes 8 KiB with \
-p, in one partition or, without -i, in all of them. Without --destroy, a partition with content \
where the code would be written is refused. The table does not change, nor does the disk's serial \
number in an MBR (-N overwrites it).";

const EXAMPLES: &str = "\
Examples:
  ugeom part bootcode -b pmbr disk.img
  ugeom part bootcode -b pmbr -p gptboot -i 1 disk.img";

/// Write boot code around a table or into a partition
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Bootcode {
    #[command(flatten)]
    common: Common,

    /// File with the boot code around the table
    #[arg(short = 'b', value_name = "FILE", value_hint = ValueHint::FilePath,
          required_unless_present = "partcode")]
    bootcode: Option<PathBuf>,

    /// File with the boot code for a partition
    #[arg(short = 'p', value_name = "FILE", value_hint = ValueHint::FilePath)]
    partcode: Option<PathBuf>,

    /// Index of the partition for -p
    #[arg(short = 'i', value_name = "INDEX", requires = "partcode")]
    index: Option<u32>,

    /// Overwrite the disk's serial number in an MBR, too
    #[arg(short = 'N')]
    without_serial: bool,

    /// Overwrite a partition that has content
    #[arg(long, requires = "partcode")]
    destroy: bool,

    /// Scheme of the table, if there are several: mbr, bsd, gpt, ...
    #[arg(long, value_name = "SCHEME", value_parser = scheme)]
    scheme: Option<Scheme>,
}

impl Bootcode {
    pub fn run(&self) -> Result<()> {
        let read =
            |file: &Option<PathBuf>, most| file.as_deref().map(|file| code(file, most)).transpose();
        let around = read(&self.bootcode, MOST_BYTES)?;
        let inside = read(&self.partcode, MOST_IN_PARTITION_BYTES)?;
        let mut ready = self.common.ready()?;
        let name = ready.provider.name.clone();
        let mut lines = Vec::new();
        let written = (|| {
            if let Some(code) = &inside {
                let table = ready.editor(self.scheme)?;
                let names = table.partition_code(self.index, code, self.destroy)?;
                let written = |name| format!("partcode written to {name}");
                lines.extend(names.into_iter().map(written));
            }
            if let Some(code) = &around {
                let keep = !self.without_serial;
                ready.editor(self.scheme)?.boot_code(code, keep)?;
                lines.push(format!("bootcode written to {name}"));
            }
            Ok(())
        })();
        ready.close(written.map_err(explained))?;
        let json = json!({ "provider": name, "written": lines });
        if self.common.json {
            return output::print_json(&json);
        }
        let lines = lines.iter().map(|line| output::printable(line) + "\n");
        output::print(&lines.collect::<String>())
    }
}

/// The bytes of a file, as gpart takes them.
fn code(file: &Path, most: u64) -> Result<Vec<u8>> {
    let name = output::printable(&file.display().to_string());
    let open = std::fs::File::open(file).with_context(|| name.clone())?;
    if !open.metadata().with_context(|| name.clone())?.is_file() {
        return Err(Usage(format!("{name}: not a regular file")).into());
    }
    let mut bytes = Vec::new();
    open.take(most + 1)
        .read_to_end(&mut bytes)
        .with_context(|| name.clone())?;
    match bytes.len() as u64 {
        0 => bail!("{name}: empty file"),
        length if length > most => bail!("{name}: file too big ({most} limit)"),
        _ => Ok(bytes),
    }
}
