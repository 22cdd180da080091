//! `ugeom part`: partition tables, made and changed in the manner of gpart(8).

mod backup;
mod bootcode;
mod change;
mod list;
mod logical;
mod modify;
mod recover;
mod search;
mod show;
mod types;

use crate::failure::Usage;
use crate::opening::TargetArgs;
use crate::output;
use anyhow::Result;
use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;
use std::ffi::OsString;
use ugeom_classes::part::edit::{Added, EditError};
use ugeom_classes::spec::nearest;
use ugeom_format::plan::{self, Scheme};

const LONG_ABOUT: &str = "\
Makes, changes and shows partition tables with the verbs and options of FreeBSD's gpart: APM, BSD, \
BSD64, EBR, GPT, MBR, PC98 and VTOC8. `ugeom show` also lists other kinds of tables, which \
ugeom does not write.

Each change is written immediately, in an order that leaves either the old or the new table after \
a crash. Tables with partitions in use are not changed.";

const EXAMPLES: &str = "\
Examples:
  truncate -s 1g disk.img
  ugeom part create -s gpt disk.img
  ugeom part add -t freebsd-ufs -s 256m -l root disk.img
  ugeom part show disk.img
  ugeom part backup disk.img > disk.part
  ugeom part restore -l other.img < disk.part
  ugeom part create -s bsd disk.img@s1     # a disklabel in a slice";

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
    Backup(backup::Backup),
    Bootcode(bootcode::Bootcode),
    Delete(change::Delete),
    List(list::List),
    Modify(modify::Modify),
    Resize(modify::Resize),
    Set(modify::Set),
    Unset(modify::Unset),
    Destroy(modify::Destroy),
    Recover(recover::Recover),
    Restore(backup::Restore),
    Search(search::SearchPart),
    Show(show::Show),
    Status(list::Status),
    Types(types::Types),
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

/// gpart's actions for changes that are not written at once.
const ELSEWHERE: [&str; 2] = ["commit", "undo"];
/// All others, for "did you mean".
const ACTIONS: [&str; 16] = [
    "add", "backup", "bootcode", "create", "delete", "destroy", "list", "modify", "recover",
    "resize", "restore", "set", "show", "status", "types", "unset",
];

impl Part {
    pub fn run(&self) -> Result<()> {
        run_each!(
            &self.action,
            Action: Create Add Backup Bootcode Delete List Modify Resize Set Unset Destroy Recover
                Restore Search Show Status Types,
            Action::Other(words) => Err(no_such_action(words).into())
        )
    }
}

fn no_such_action(words: &[OsString]) -> Usage {
    let name = words.first().map(|name| name.to_string_lossy());
    let name = name.unwrap_or_default();
    if ELSEWHERE.contains(&name.as_ref()) {
        return Usage(format!(
            "there is no `ugeom part {name}`: each change is written immediately"
        ));
    }
    let near = nearest(&name, ACTIONS).map(|near| format!(": did you mean {near}?"));
    Usage(format!(
        "{name:?} is no action of `ugeom part`, see `ugeom part --help`{}",
        near.unwrap_or_default()
    ))
}

/// The common arguments of the actions that change a table.
#[derive(Args)]
struct Common {
    #[command(flatten)]
    target: TargetArgs,

    /// Only C: each change is committed immediately (gpart's flags)
    #[arg(short = 'f', value_name = "FLAGS", value_parser = flags, help_heading = "Advanced")]
    _flags: Option<Committed>,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// The changes are written: the only thing that gpart's flags may say here.
#[derive(Clone, Copy, Debug)]
struct Committed;

fn flags(text: &str) -> Result<Committed, String> {
    match text.contains('C') {
        true => Ok(Committed),
        false => Err("only the flag C is supported: there are no pending changes".to_owned()),
    }
}

impl Common {
    /// Prints the result: gpart's line, or JSON.
    fn done(&self, line: &str, json: &impl Serialize) -> Result<()> {
        if self.json {
            output::print_json(json)
        } else {
            output::print(&format!("{}\n", output::printable(line)))
        }
    }

    /// The same of a partition: `md0s1 added`, or its place as JSON.
    fn done_to(&self, part: &Added, verb: &str) -> Result<()> {
        let json = json!({
            "provider": part.provider,
            "index": part.index,
            "start_sector": part.start,
            "sectors": part.sectors,
        });
        self.done(&format!("{} {verb}", part.provider), &json)
    }
}

/// An error of an edit, with the nearest name where one was not known.
fn explained(error: EditError) -> anyhow::Error {
    let near = match &error {
        EditError::Plan {
            error: plan::Error::UnknownType { scheme, kind, .. },
            ..
        } => {
            let names: Vec<String> = scheme.types().into_iter().map(|it| it.name).collect();
            nearest(kind, names.iter().map(String::as_str)).map(str::to_owned)
        }
        _ => None,
    };
    let is_usage = matches!(
        &error,
        EditError::Plan {
            error: plan::Error::UnknownType { .. } | plan::Error::UnknownAttribute { .. },
            ..
        }
    );
    match near {
        Some(near) => Usage(format!("{error}; did you mean {near}?")).into(),
        None if is_usage => Usage(error.to_string()).into(),
        None => error.into(),
    }
}

/// Reads the name of a scheme.
fn scheme(text: &str) -> Result<Scheme, String> {
    text.parse().map_err(|error: plan::Error| error.to_string())
}
