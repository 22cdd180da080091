//! `ugeom part show`: tables with their partitions and free space, as gpart prints them.

use super::scheme;
use crate::contents::{self, Carried, Contents, carried};
use crate::opening::{TargetArgs, TargetsArgs};
use crate::output;
use anyhow::Result;
use clap::Args;
use serde::Serialize;
use std::collections::BTreeMap;
use ugeom_classes::part::edit::{self, EditError};
use ugeom_classes::{Role, registry};
use ugeom_format::content::Content;
use ugeom_format::plan::{Column, Part, Row, Scheme, Table};
use ugeom_stack::{Delta, ProviderId, Tree};

const LONG_ABOUT: &str = "\
Shows partition tables with their partitions and free space, in gpart's columns: first sector, \
sectors, place in the table, type and size. It shows all tables of each target, or with an address \
(disk.img@s1) those on that provider. The content of a partition is at the end of its line.

A damaged table is marked [CORRUPT], and stderr describes the damage. Only `ugeom part recover` \
repairs.";

const EXAMPLES: &str = "\
Examples:
  ugeom part show disk.img
  ugeom part show -l disk.img       # labels instead of types
  ugeom part show -p a.img b.img    # names of providers, of two disks";

/// Show tables with their partitions and free space
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Show {
    #[command(flatten)]
    targets: TargetsArgs,

    /// Show labels instead of types
    #[arg(short = 'l', conflicts_with = "raw")]
    labels: bool,

    /// Show the numbers or GUIDs of types instead of their names
    #[arg(short = 'r')]
    raw: bool,

    /// Show names of providers instead of places in the table
    #[arg(short = 'p')]
    providers: bool,

    /// Only tables of this scheme: mbr, bsd, gpt, ...
    #[arg(long, value_name = "SCHEME", value_parser = scheme)]
    scheme: Option<Scheme>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A table and the provider that it lies on.
struct Shown {
    provider: String,
    table: Table,
    /// The content of its partitions, by their index.
    carried: BTreeMap<u32, Vec<Content>>,
}

impl Show {
    pub fn run(&self) -> Result<()> {
        let mut shown = Vec::new();
        for target in self.targets.each() {
            shown.extend(self.tables(&target)?);
        }
        for one in &shown {
            for damage in one.table.damage() {
                let damage = format!("{}: {damage}", one.provider);
                output::warn(&output::printable(&damage));
            }
        }
        if self.json {
            let all: Vec<Described> = shown.iter().map(Described::new).collect();
            return output::print_json(&all);
        }
        let column = match (self.labels, self.raw, self.providers) {
            (true, _, false) => Column::Label,
            (true, _, true) => Column::ProviderLabel,
            (_, true, false) => Column::RawType,
            (_, true, true) => Column::ProviderRawType,
            (_, _, true) => Column::Provider,
            _ => Column::Type,
        };
        let tables = shown.iter().map(|one| {
            let content = |part: &Part| {
                let carried = one.carried.get(&part.index)?;
                contents::cell(carried)
            };
            one.table.show_with(&one.provider, column, &content)
        });
        let text: String = tables.collect();
        let lines = text.lines().map(|line| output::printable(line) + "\n");
        output::print(&lines.collect::<String>())
    }

    fn tables(&self, target: &TargetArgs) -> Result<Vec<Shown>> {
        let target = target.open()?;
        let mut tree = target.stack.tree();
        let contents = contents::annotate(&target, &mut tree)?;
        let wanted = tree
            .providers()
            .filter(|provider| !target.addressed || provider.id == target.top);
        let providers: Vec<(ProviderId, String)> = wanted
            .map(|provider| (provider.id, provider.name.clone()))
            .collect();
        let outermost = providers.first().map(|it| it.1.clone()).unwrap_or_default();
        let mut channel = target.stack.channel(1)?;
        let mut shown = Vec::new();
        let mut nothing = None;
        for (id, provider) in providers {
            let opened = target.stack.open(id, Delta::READ)?;
            match edit::show(&mut channel, &opened) {
                Ok(tables) => {
                    let wanted = |table: &Table| {
                        let scheme = table.scheme();
                        self.scheme.is_none_or(|only| only == scheme)
                            && (target.addressed || is_looked_for(&tree, id, scheme))
                    };
                    let tables = tables.into_iter().filter(wanted);
                    shown.extend(tables.map(|table| Shown {
                        provider: provider.clone(),
                        carried: carried_by(&tree, &contents, id, table.scheme()),
                        table,
                    }));
                }
                Err(error @ EditError::NoTable { .. }) => {
                    nothing.get_or_insert(error);
                }
                Err(error) => return Err(error.into()),
            }
        }
        if !shown.is_empty() {
            return Ok(shown);
        }
        let first = tree.providers().find(|provider| provider.name == outermost);
        let has_gpt = first.is_some_and(|it| tree.above(it.id).any(|geom| geom.class == "GPT"));
        match (nothing, self.scheme) {
            (None, None) => Ok(shown),
            // The reason of a partition is not that of the disk.
            (Some(EditError::NoTable { provider, .. }), Some(scheme)) if provider != outermost => {
                Err(no_table_of(scheme, &outermost, has_gpt))
            }
            (Some(error), _) => Err(error.into()),
            (None, Some(scheme)) => Err(no_table_of(scheme, &outermost, has_gpt)),
        }
    }
}

fn no_table_of(scheme: Scheme, provider: &str, has_gpt: bool) -> anyhow::Error {
    if has_gpt && scheme == Scheme::Mbr {
        return anyhow::anyhow!(
            "the MBR of {provider} belongs to its GPT and cannot be edited; \
             `ugeom show` lists the partitions of a hybrid one"
        );
    }
    anyhow::anyhow!("there is no {scheme} table on {provider} that can be edited")
}

/// Whether a table on a provider counts: not the label of a slice that is seen once more through
/// its own partitions.
fn is_looked_for(tree: &Tree, id: ProviderId, scheme: Scheme) -> bool {
    let inside_a_table = tree.geoms.iter().any(|geom| {
        geom.providers.iter().any(|provider| provider.id == id) && is_table(geom.class)
    });
    let scheme = scheme.to_string();
    !inside_a_table || tree.above(id).any(|geom| geom.class == scheme)
}

/// The content of the partitions of a table, as far as the class lists them.
fn carried_by(
    tree: &Tree,
    contents: &Contents,
    id: ProviderId,
    scheme: Scheme,
) -> BTreeMap<u32, Vec<Content>> {
    let scheme = scheme.to_string();
    let tables = tree.above(id).filter(|geom| geom.class == scheme);
    let parts = tables.flat_map(|geom| &geom.providers);
    parts
        .filter_map(|part| {
            let index = part.fact("index")?.parse().ok()?;
            Some((index, contents.get(&part.id)?.clone()))
        })
        .collect()
}

pub(super) fn is_table(class: &str) -> bool {
    let mut tables = registry().iter().filter(|entry| entry.role == Role::Table);
    tables.any(|entry| entry.class == class)
}

#[derive(Serialize)]
struct Described<'a> {
    provider: &'a str,
    scheme: String,
    first_usable_sector: u64,
    last_usable_sector: u64,
    sectorsize_bytes: u32,
    damage: Vec<String>,
    rows: Vec<DescribedRow<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "is", rename_all = "lowercase")]
enum DescribedRow<'a> {
    Partition {
        index: u32,
        provider: String,
        start_sector: u64,
        sectors: u64,
        #[serde(rename = "type")]
        kind: String,
        raw_type: String,
        label: Option<String>,
        attributes: Vec<&'static str>,
        marks: Vec<String>,
        contents: Vec<Carried<'a>>,
    },
    Free {
        start_sector: u64,
        sectors: u64,
    },
}

impl<'a> Described<'a> {
    fn new(shown: &'a Shown) -> Self {
        let table = &shown.table;
        let (first, last) = table.usable();
        let row = |row| match row {
            Row::Free(span) => DescribedRow::Free {
                start_sector: span.start,
                sectors: span.sectors,
            },
            Row::Part { part, marks } => DescribedRow::Partition {
                index: part.index,
                provider: format!("{}{}", shown.provider, part.suffix),
                start_sector: part.start,
                sectors: part.sectors,
                contents: shown
                    .carried
                    .get(&part.index)
                    .map_or_else(Vec::new, |all| all.iter().map(carried).collect()),
                kind: part.kind,
                raw_type: part.raw_kind,
                label: part.label,
                attributes: part.attributes,
                marks,
            },
        };
        Self {
            provider: &shown.provider,
            scheme: table.scheme().to_string(),
            first_usable_sector: first,
            last_usable_sector: last,
            sectorsize_bytes: table.media().sector_size_bytes,
            damage: table.damage(),
            rows: table.rows().into_iter().map(row).collect(),
        }
    }
}
