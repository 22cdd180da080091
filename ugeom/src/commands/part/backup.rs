//! `ugeom part backup` and `restore`: a table as gpart's text, and back.

use super::{Committed, explained, flags, scheme};
use crate::opening::{self, TargetArgs, TargetsArgs};
use crate::output;
use crate::safety;
use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::json;
use std::io::Read;
use ugeom_classes::part::edit::{self, EditError};
use ugeom_format::plan::{self, Keep, MAX_TEXT_BYTES, Scheme, Table};
use ugeom_stack::{Channel, Delta, Opened, Stack};

const BACKUP_ABOUT: &str = "\
Prints a partition table in the format of gpart backup, which `ugeom part restore` and gpart \
restore read: the scheme, then each partition with its sectors, label and attributes. Lines with \
# have what gpart's format has no place for and gpart skips: GUIDs, all attributes of a GPT, and \
the number of an MBR, for `restore --uuids`.";

const BACKUP_EXAMPLES: &str = "\
Examples:
  ugeom part backup disk.img > disk.part";

/// Print a table as text that `restore` reads
#[derive(Args)]
#[command(long_about = BACKUP_ABOUT, after_help = BACKUP_EXAMPLES)]
pub struct Backup {
    #[command(flatten)]
    target: TargetArgs,

    /// Scheme of the table, if there are several: mbr, bsd, gpt, ...
    #[arg(long, value_name = "SCHEME", value_parser = scheme)]
    scheme: Option<Scheme>,
}

const RESTORE_ABOUT: &str = "\
Writes the table that stdin describes, in the format of gpart backup, to each target: with the \
same sectors, or not at all where they do not fit. Nothing is written before the table fits on all \
targets. The contents of the partitions do not change. Partitions get new GUIDs, so that the disks \
of a computer differ; --uuids restores those of the backup, by which systems find them at boot \
(PARTUUID=).

A target that carries a table or a file system is refused without -F, which wipes it first.";

const RESTORE_EXAMPLES: &str = "\
Examples:
  ugeom part restore -l --uuids disk.img < disk.part   # as it was
  ugeom part backup a.img | ugeom part restore -l -F b.img c.img";

/// Write a table from the text of `backup` on stdin
#[derive(Args)]
#[command(long_about = RESTORE_ABOUT, after_help = RESTORE_EXAMPLES)]
pub struct Restore {
    #[command(flatten)]
    targets: TargetsArgs,

    /// Overwrite a table, a file system or metadata that is there
    #[arg(short = 'F', long)]
    force: bool,

    /// Restore labels, too
    #[arg(short = 'l')]
    labels: bool,

    /// Restore GUIDs, attributes and the number of an MBR, too
    #[arg(long)]
    uuids: bool,

    /// Only C: each change is committed immediately (gpart's flags)
    #[arg(short = 'f', value_name = "FLAGS", value_parser = flags, help_heading = "Advanced")]
    _flags: Option<Committed>,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Backup {
    pub fn run(&self) -> Result<()> {
        let target = self.target.open()?;
        let opened = target.open(Delta::READ)?;
        let mut channel = target.stack.channel(1)?;
        let mut tables = edit::show(&mut channel, &opened).map_err(explained)?;
        tables.retain(|table| self.scheme.is_none_or(|only| only == table.scheme()));
        if tables.len() > 1 {
            // Nothing restores the database of a dynamic disk.
            tables.retain(|table| table.scheme() != plan::Scheme::Ldm);
        }
        let text = match tables.as_slice() {
            [table] => {
                for damage in table.damage() {
                    output::warn(&output::printable(&damage));
                }
                table.backup()
            }
            several => {
                let names: Vec<&str> = several.iter().map(|it| it.scheme().name()).collect();
                let provider = opening::top(&target)?.name;
                bail!(
                    "{provider} carries these tables: {}; --scheme names one",
                    names.join(", ")
                );
            }
        };
        let lines = text.lines().map(|line| output::printable(line) + "\n");
        output::print(&lines.collect::<String>())
    }
}

/// A provider that is open for its new table.
struct Ready {
    name: String,
    opened: Opened,
    channel: Channel,
    stack: Stack,
}

impl Restore {
    pub fn run(&self) -> Result<()> {
        let backup = plan::Backup::parse(&text_of_stdin()?)?;
        let mut ready = Vec::new();
        for target in self.targets.each() {
            ready.push(self.open(&target)?);
        }
        for one in &mut ready {
            self.restore(one, &backup, true)?;
        }
        let mut done = Vec::new();
        for mut one in ready {
            let restored = self.restore(&mut one, &backup, false);
            drop(one.channel);
            let table = opening::close_written(&one.stack, one.opened, restored)?;
            done.push(json!({
                "provider": one.name,
                "scheme": table.scheme().name(),
                "partitions": table.parts().len(),
            }));
        }
        if !self.uuids && !backup.ids.is_empty() {
            let what = match backup.scheme {
                Scheme::Mbr => "the disk has a new identifier",
                _ => "the table and its partitions have new GUIDs",
            };
            output::warn(&format!("{what}; --uuids restores what the backup has"));
        }
        match self.json {
            true => output::print_json(&done),
            // As gpart, which prints nothing.
            false => Ok(()),
        }
    }

    fn open(&self, target: &TargetArgs) -> Result<Ready> {
        let target = target.open_for_table()?;
        if !self.force {
            safety::refuse_content_below(&target)?;
        }
        Ok(Ready {
            name: opening::top(&target)?.name,
            opened: target.open(Delta::READ_WRITE)?,
            channel: target.stack.channel(1)?,
            stack: target.stack,
        })
    }

    fn restore(&self, one: &mut Ready, backup: &plan::Backup, check_only: bool) -> Result<Table> {
        let wanted = edit::Restore {
            backup,
            keep: Keep {
                labels: self.labels,
                ids: self.uuids,
            },
            force: self.force,
            check_only,
        };
        edit::restore(&mut one.channel, &one.opened, &wanted).map_err(|error| match error {
            EditError::Found { provider, found } => {
                let found: Vec<String> = found.iter().map(ToString::to_string).collect();
                anyhow::anyhow!(
                    "{provider} carries {}; nothing was written, -F overwrites it",
                    found.join(", ")
                )
            }
            error => explained(error),
        })
    }
}

fn text_of_stdin() -> Result<String> {
    let mut bytes = Vec::new();
    let limit = MAX_TEXT_BYTES as u64 + 1;
    let stdin = std::io::stdin().lock().take(limit);
    let mut stdin = stdin;
    stdin.read_to_end(&mut bytes).context("stdin")?;
    if bytes.len() > MAX_TEXT_BYTES {
        bail!("stdin: more than {MAX_TEXT_BYTES} bytes: not a partition table");
    }
    String::from_utf8(bytes).context("stdin: no backup of a partition table")
}
