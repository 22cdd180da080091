//! `ugeom part recover`: a damaged GPT becomes whole, and the overwritten sectors are kept.

use super::{Common, explained};
use crate::opening;
use crate::output;
use crate::safety;
use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use ugeom_classes::part::edit::{self, Recovery};
use ugeom_format::gpt::Side;
use ugeom_machine::temporary::sync_folder_of;
use ugeom_stack::Delta;

const RECOVER_ABOUT: &str = "\
Repairs a damaged GPT: both copies from the valid one, the backup at the end of the media, a \
protective MBR in sector 0. A BSD64 label is taken from the copy behind its partitions. A valid \
table stays unchanged.

If neither copy is valid, --from uses one despite its wrong checksum; compare both with --dry-run \
first. A disk that is a member of a mirror has the mirror's metadata where the backup would be \
written: recover the table on the mirror, --destroy overwrites the metadata. With --from, an \
ordinary MBR in sector 0 is replaced, too.

The old sectors are saved in a file, whose name is printed: a hex dump with offsets on the \
provider, for `xxd -r FILE disk.img`.";

const RECOVER_EXAMPLES: &str = "\
Examples:
  ugeom part show disk.img                # is it damaged?
  ugeom part recover --dry-run disk.img   # what would be written
  ugeom part recover disk.img
  ugeom part recover --from backup disk.img";

/// Repair a damaged GPT from its valid copy
#[derive(Args)]
#[command(long_about = RECOVER_ABOUT, after_help = RECOVER_EXAMPLES)]
pub struct Recover {
    #[command(flatten)]
    common: Common,

    /// Use this copy even if its checksum is wrong: primary or backup
    #[arg(long, value_name = "COPY", value_parser = side)]
    from: Option<Side>,

    /// Print what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,

    /// Overwrite other metadata in place of a copy, such as that of a mirror
    #[arg(long)]
    destroy: bool,

    /// Save the overwritten sectors in this new file [default: NAME.before-recover]
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    keep: Option<PathBuf>,
}

fn side(text: &str) -> Result<Side, String> {
    [Side::Primary, Side::Backup]
        .into_iter()
        .find(|side| side.to_string() == text)
        .ok_or_else(|| "a GPT has the copies primary and backup".to_owned())
}

/// The changes made, or planned.
#[derive(Serialize)]
struct Done<'a> {
    provider: &'a str,
    repaired: &'a [String],
    writes: Vec<DoneWrite>,
    dry_run: bool,
    kept: Option<String>,
}

#[derive(Serialize)]
struct DoneWrite {
    part: &'static str,
    first_sector: u64,
    sectors: u64,
}

impl Recover {
    pub fn run(&self) -> Result<()> {
        if self.dry_run {
            let target = self.common.target.open()?;
            let mut channel = target.stack.channel(1)?;
            let opened = target.open(Delta::READ)?;
            let recovery = edit::plan_recovery(&mut channel, &opened, self.from)?;
            return self.report(&recovery, None);
        }
        let target = self.common.target.open_for_table()?;
        if !self.destroy {
            safety::refuse_table_within(&target)?;
        }
        let opened = target.open(Delta::READ_WRITE)?;
        let mut channel = target.stack.channel(1)?;
        let recovered = edit::plan_recovery(&mut channel, &opened, self.from)
            .map_err(anyhow::Error::from)
            .and_then(|recovery| {
                if !self.destroy {
                    edit::check_recovery(&mut channel, &opened, &recovery).map_err(explained)?;
                }
                let kept = self.keep(&recovery)?;
                edit::write_recovery(&mut channel, &opened, &recovery)?;
                Ok((recovery, kept))
            });
        drop(channel);
        let (recovery, kept) = opening::close_written(&target.stack, opened, recovered)?;
        self.report(&recovery, kept)
    }

    /// Keeps the old sectors, durably, before any is overwritten.
    fn keep(&self, recovery: &Recovery) -> Result<Option<PathBuf>> {
        if recovery.writes.is_empty() {
            return Ok(None);
        }
        let (path, file) = match &self.keep {
            Some(path) => (path.clone(), File::create_new(path)),
            None => new_file(&recovery.provider),
        };
        let refused = || {
            let name = path.display();
            format!("nothing was written: creating {name} for the old sectors (--keep)")
        };
        let mut file = file.map(BufWriter::new).with_context(refused)?;
        dump(&mut file, recovery)
            .and_then(|()| file.into_inner().map_err(io::Error::from))
            .and_then(|file| file.sync_all())
            .and_then(|()| sync_folder_of(&path))
            .with_context(refused)?;
        Ok(Some(path))
    }

    fn report(&self, recovery: &Recovery, kept: Option<PathBuf>) -> Result<()> {
        let unit = recovery.sectorsize_bytes.max(1) as usize;
        let writes: Vec<DoneWrite> = recovery
            .writes
            .iter()
            .map(|write| DoneWrite {
                part: write.part,
                first_sector: write.new.lba,
                sectors: (write.new.data.len() / unit) as u64,
            })
            .collect();
        let text = self.text(recovery, &writes, kept.as_deref());
        let done = Done {
            provider: &recovery.provider,
            repaired: &recovery.repaired,
            writes,
            dry_run: self.dry_run,
            kept: kept.map(|path| path.display().to_string()),
        };
        if self.common.json {
            return output::print_json(&done);
        }
        output::print(&text)
    }

    fn text(&self, recovery: &Recovery, writes: &[DoneWrite], kept: Option<&Path>) -> String {
        let name = output::printable(&recovery.provider);
        if recovery.repaired.is_empty() {
            return format!("{name}: nothing to recover\n");
        }
        let mut text = String::new();
        if self.dry_run {
            for damage in &recovery.repaired {
                let _ = writeln!(text, "{name}: {}", output::printable(damage));
            }
            for write in writes {
                let last = write.first_sector + write.sectors - 1;
                let (part, first) = (write.part, write.first_sector);
                let sectors = match write.sectors {
                    1 => format!("sector {first}"),
                    _ => format!("sectors {first} to {last}"),
                };
                let _ = writeln!(text, "{name}: {part}, {sectors}: would be written");
            }
            return text;
        }
        let _ = writeln!(text, "{name} recovered");
        if let Some(kept) = kept {
            let kept = output::printable(&kept.display().to_string());
            let _ = writeln!(text, "{name}: the overwritten sectors are in {kept}");
        }
        text
    }
}

/// A file that did not exist, named after the provider, in the current folder.
fn new_file(provider: &str) -> (PathBuf, io::Result<File>) {
    let plain = |c: char| {
        if c.is_ascii_graphic() && c != '/' {
            c
        } else {
            '_'
        }
    };
    let name: String = provider.chars().map(plain).collect();
    let first = PathBuf::from(format!("{name}.before-recover"));
    let further = (2..1000).map(|n| PathBuf::from(format!("{name}.before-recover.{n}")));
    let mut last = (first.clone(), Err(io::ErrorKind::AlreadyExists.into()));
    for path in std::iter::once(first).chain(further) {
        let file = File::create_new(&path);
        let exists = matches!(&file, Err(error) if error.kind() == io::ErrorKind::AlreadyExists);
        last = (path, file);
        if !exists {
            break;
        }
    }
    last
}

/// The old sectors as xxd(1) writes bytes, in the order of their places.
fn dump(out: &mut impl Write, recovery: &Recovery) -> io::Result<()> {
    let unit = u64::from(recovery.sectorsize_bytes);
    let mut writes: Vec<_> = recovery.writes.iter().collect();
    writes.sort_by_key(|write| write.new.lba);
    for write in writes {
        let mut at = write.new.lba * unit;
        for line in write.old.chunks(16) {
            write!(out, "{at:08x}:")?;
            for pair in line.chunks(2) {
                write!(out, " ")?;
                for byte in pair {
                    write!(out, "{byte:02x}")?;
                }
            }
            let shown = |&byte: &u8| match byte {
                b' '..=b'~' => char::from(byte),
                _ => '.',
            };
            let text: String = line.iter().map(shown).collect();
            writeln!(out, "  {text}")?;
            at += line.len() as u64;
        }
    }
    Ok(())
}
