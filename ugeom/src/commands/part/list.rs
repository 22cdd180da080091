//! `ugeom part list` and `status`: every fact of every table, as geom(8) prints them.

use super::show::is_table;
use crate::commands::geom_list::{described, status};
use crate::opening::TargetArgs;
use crate::output::{self, printable};
use anyhow::{Result, bail};
use clap::Args;
use ugeom_stack::{GeomView, ProviderView, Tree};

const LIST_ABOUT: &str = "\
Lists the partition tables of a target with all that is known of them and of their partitions, in \
the form of FreeBSD's `gpart list`. `ugeom show --json` has the same for programs.";

const LIST_EXAMPLES: &str = "\
Examples:
  ugeom part list disk.img
  ugeom part list disk.img@s1     # the tables on that partition";

/// List all facts of tables and their partitions
#[derive(Args)]
#[command(long_about = LIST_ABOUT, after_help = LIST_EXAMPLES)]
pub struct List {
    #[command(flatten)]
    target: TargetArgs,
}

impl List {
    pub fn run(&self) -> Result<()> {
        let tables = of_tables(&self.target, |tree, table| {
            described(table, below(tree, table))
        })?;
        output::print(&tables.concat())
    }
}

/// Print the state of the table of each partition
#[derive(Args)]
#[command(after_help = "Examples:\n  ugeom part status disk.img")]
pub struct Status {
    #[command(flatten)]
    target: TargetArgs,
}

impl Status {
    pub fn run(&self) -> Result<()> {
        let rows = of_tables(&self.target, |tree, table| {
            let state = table.fact("state").unwrap_or_default();
            let component = below(tree, table).map_or("", |it| it.name.as_str());
            let row = |part: &ProviderView| [part.name.as_str(), state, component].map(printable);
            table.providers.iter().map(row).collect::<Vec<_>>()
        })?;
        output::print(&status(&rows.concat()))
    }
}

/// Something of each table of a target, in the order of `ugeom show`; of an address, the tables on
/// it and above it.
fn of_tables<T>(target: &TargetArgs, one: impl Fn(&Tree, &GeomView) -> T) -> Result<Vec<T>> {
    let target = target.open()?;
    let tree = target.stack.tree();
    let start = match target.addressed {
        true => vec![target.top],
        false => {
            let bottoms = tree.geoms.iter().filter(|geom| geom.consumers.is_empty());
            let providers = bottoms.flat_map(|geom| &geom.providers);
            providers.map(|provider| provider.id).collect()
        }
    };
    let mut pending = start;
    pending.reverse();
    let mut tables: Vec<&GeomView> = Vec::new();
    while let Some(provider) = pending.pop() {
        for geom in tree.above(provider) {
            // A geom on several providers is met once on each.
            if tables.iter().any(|seen| seen.id == geom.id) {
                continue;
            }
            if is_table(geom.class) {
                tables.push(geom);
            }
            pending.extend(geom.providers.iter().rev().map(|above| above.id));
        }
    }
    if tables.is_empty() {
        let name = tree.providers().find(|provider| provider.id == target.top);
        bail!(
            "there is no partition table on {}; `ugeom part search` looks for lost partitions",
            name.map_or("the target", |provider| provider.name.as_str())
        );
    }
    Ok(tables.into_iter().map(|table| one(&tree, table)).collect())
}

/// The provider that a table stands on.
fn below<'a>(tree: &'a Tree, table: &GeomView) -> Option<&'a ProviderView> {
    let mut providers = tree.providers();
    providers.find(|provider| tree.above(provider.id).any(|geom| geom.id == table.id))
}
