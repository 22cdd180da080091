//! `ugeom part`: partition tables, made and changed in the manner of gpart(8).

mod change;
mod modify;
mod show;

use crate::failure::Usage;
use crate::opening::TargetArgs;
use crate::output;
use anyhow::Result;
use clap::{Args, Subcommand};
use serde::Serialize;
use std::ffi::OsString;
use ugeom_format::plan::Scheme;

const LONG_ABOUT: &str = "\
Makes, changes and shows partition tables, in the manner of FreeBSD's gpart: MBR, BSD disklabel \
and GPT. Tables of other kinds are found by `ugeom show`, and not written.

Each change is written at once, in an order that leaves a good copy of a GPT at every moment. A \
table whose partitions are in use is not changed. gpart's backup, restore and bootcode are not \
here.";

const EXAMPLES: &str = "\
Examples:
  truncate -s 1g disk.img
  ugeom part create -s gpt disk.img
  ugeom part add -t freebsd-ufs -s 256m -l root disk.img
  ugeom part show disk.img
  ugeom part create -s bsd disk.img@s1     a disklabel in a slice";

/// Make, change and show partition tables, as gpart does
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Part {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Create(change::Create),
    Add(change::Add),
    Delete(change::Delete),
    Modify(modify::Modify),
    Resize(modify::Resize),
    Set(modify::Set),
    Unset(modify::Unset),
    Destroy(modify::Destroy),
    Recover(change::Recover),
    Show(show::Show),
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

/// gpart's actions that are not here, and what does their work.
const ELSEWHERE: [(&str, &str); 5] = [
    (
        "backup",
        "`sfdisk --dump` and `sgdisk --backup` save a table",
    ),
    (
        "restore",
        "`sfdisk` and `sgdisk --load-backup` put a saved table back",
    ),
    ("bootcode", "FreeBSD's gpart writes boot code"),
    ("commit", "each change is written at once"),
    ("undo", "each change is written at once"),
];

impl Part {
    pub fn run(&self) -> Result<()> {
        match &self.action {
            Action::Create(create) => create.run(),
            Action::Add(add) => add.run(),
            Action::Delete(delete) => delete.run(),
            Action::Modify(modify) => modify.run(),
            Action::Resize(resize) => resize.run(),
            Action::Set(set) => set.run(),
            Action::Unset(unset) => unset.run(),
            Action::Destroy(destroy) => destroy.run(),
            Action::Recover(recover) => recover.run(),
            Action::Show(show) => show.run(),
            Action::Other(words) => Err(no_such_action(words).into()),
        }
    }
}

fn no_such_action(words: &[OsString]) -> Usage {
    let name = words.first().map(|name| name.to_string_lossy());
    let name = name.unwrap_or_default();
    match ELSEWHERE.iter().find(|known| known.0 == name) {
        Some((name, instead)) => Usage(format!("there is no `ugeom part {name}`: {instead}")),
        None => Usage(format!(
            "{name:?} is no action of `ugeom part`, see `ugeom part --help`"
        )),
    }
}

/// What the actions that change a table have in common.
#[derive(Args)]
struct Common {
    #[command(flatten)]
    target: TargetArgs,

    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

impl Common {
    /// Prints what was done: gpart's line, or JSON.
    fn done(&self, line: &str, json: &impl Serialize) -> Result<()> {
        if self.json {
            output::print_json(json)
        } else {
            output::print(&format!("{}\n", output::printable(line)))
        }
    }
}

/// Reads the name of a scheme.
fn scheme(text: &str) -> Result<Scheme, String> {
    text.parse()
        .map_err(|error: ugeom_format::plan::Error| error.to_string())
}
