//! The verbs that look: dump, version, list, status.

use super::{Ready, each};
use crate::commands::geom_list::{described, status};
use crate::opening::TargetArgs;
use crate::output::{self, printable};
use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use ugeom_classes::eli::admin::{AdminError, dump};
use ugeom_classes::path_of;
use ugeom_format::eli::{METADATA_BYTES, Metadata, VERSION_MAX};
use ugeom_stack::{Delta, GeomView, ProviderId, ProviderView, Tree};

const NOT_FULLY: &str = "Not fully done.";

/// The metadata of a target, or of a backup file, which is one sector long or less.
fn metadata(text: &str) -> Result<Metadata> {
    let path = path_of(text);
    let length = std::fs::metadata(&path).map(|data| data.len());
    let is_backup = path.is_file() && length.is_ok_and(|length| length <= 64 << 10);
    let from_file = || -> Result<Metadata> {
        let file = File::open(&path).with_context(|| format!("Cannot open {text}"))?;
        let mut bytes = Vec::new();
        file.take(METADATA_BYTES as u64).read_to_end(&mut bytes)?;
        Ok(Metadata::decode(&bytes).map_err(|error| AdminError::of_format(error, text))?)
    };
    let found = is_backup.then(from_file);
    if let Some(Ok(metadata)) = found {
        return Ok(metadata);
    }
    let mut ready = Ready::open(text, Delta::READ)?;
    Ok(ready.disk()?.metadata()?)
}

const DUMP_EXAMPLES: &str = "\
Examples:
  ugeom geli dump disk.img@p2
  ugeom geli dump /var/backups/disk.img.eli    # a backup";

/// Print the metadata of providers, or of backups
#[derive(Args)]
#[command(after_help = DUMP_EXAMPLES)]
pub struct Dump {
    /// The providers or backups: paths, or any targets
    #[arg(value_name = "TARGET", required = true, value_parser = crate::opening::word())]
    targets: Vec<String>,

    /// Accepted as in geli; the output is the same
    #[arg(short = 'v', id = "verbose")]
    _verbose: bool,
}

impl Dump {
    pub fn run(&self) -> Result<()> {
        let one = |text: &str| {
            let metadata = metadata(text)?;
            output::print(&format!("Metadata on {text}:\n{}\n", dump(&metadata)))
        };
        each(&self.targets, one, NOT_FULLY)
    }
}

const VERSION_EXAMPLES: &str = "\
Examples:
  ugeom geli version
  ugeom geli version disk.img";

/// Print the metadata version of providers, or the newest that is known
#[derive(Args)]
#[command(after_help = VERSION_EXAMPLES)]
pub struct Version {
    /// The providers: paths, or any targets
    #[arg(value_name = "TARGET", value_parser = crate::opening::word())]
    targets: Vec<String>,
}

impl Version {
    pub fn run(&self) -> Result<()> {
        if self.targets.is_empty() {
            return output::print(&format!("userland: {VERSION_MAX}\n"));
        }
        let one = |text: &str| {
            let version = metadata(text)?.version;
            output::print(&format!("{text}: {version}\n"))
        };
        each(&self.targets, one, NOT_FULLY)
    }
}

/// A geom of the class, with the provider that it stands on.
struct Shown<'a> {
    geom: &'a GeomView,
    below: Option<&'a ProviderView>,
}

/// All that the class found or opened. A locked provider is not shown beside the same one, opened.
fn shown(tree: &Tree) -> Vec<Shown<'_>> {
    let below = |geom: &GeomView| {
        tree.providers()
            .find(|provider| tree.above(provider.id).any(|above| above.id == geom.id))
    };
    let all = tree.geoms.iter().filter(|geom| geom.class == "ELI");
    let is_open = |geom: &GeomView| !geom.providers.is_empty();
    let opened = |name: &str| {
        let mut same = tree.geoms.iter().filter(|geom| geom.name == name);
        same.any(is_open)
    };
    all.filter(|geom| is_open(geom) || !opened(&geom.name))
        .map(|geom| Shown {
            geom,
            below: below(geom),
        })
        .collect()
}

/// The providers that carry metadata.
pub(super) fn providers(tree: &Tree) -> Vec<ProviderId> {
    let below = shown(tree).into_iter().filter_map(|one| one.below);
    below.map(|provider| provider.id).collect()
}

fn fact<'a>(geom: &'a GeomView, name: &str) -> &'a str {
    geom.fact(name).unwrap_or("")
}

const LIST_EXAMPLES: &str = "\
Examples:
  ugeom geli list disk.img
  ugeom geli list 'disk.img | eli:keyfile=geli.key,nopassphrase=1'";

/// List the encrypted providers of a target
#[derive(Args)]
#[command(after_help = LIST_EXAMPLES)]
pub struct List {
    #[command(flatten)]
    target: TargetArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl List {
    pub fn run(&self) -> Result<()> {
        let target = self.target.open()?;
        let tree = target.stack.tree();
        let shown = shown(&tree);
        if self.json {
            let one = |one: &Shown<'_>| {
                let facts: BTreeMap<_, _> = one.geom.config.iter().cloned().collect();
                json!({
                    "geom": one.geom.name,
                    "facts": facts,
                    "providers": one.geom.providers.iter().map(|p| &p.name).collect::<Vec<_>>(),
                    "consumer": one.below.map(|below| &below.name),
                })
            };
            return output::print_json(&shown.iter().map(one).collect::<Vec<_>>());
        }
        let text = shown.iter().map(|one| described(one.geom, one.below));
        output::print(&text.collect::<String>())
    }
}

/// Print the encrypted providers of a target
#[derive(Args)]
#[command(after_help = "Examples:\n  ugeom geli status disk.img")]
pub struct Status {
    #[command(flatten)]
    target: TargetArgs,
}

impl Status {
    pub fn run(&self) -> Result<()> {
        let target = self.target.open()?;
        let tree = target.stack.tree();
        let shown = shown(&tree);
        let row = |one: &Shown<'_>| {
            let below = one.below.map_or("", |below| below.name.as_str());
            [one.geom.name.as_str(), fact(one.geom, "State"), below].map(printable)
        };
        match shown.iter().map(row).collect::<Vec<_>>() {
            rows if rows.is_empty() => Ok(()),
            rows => output::print(&status(&rows)),
        }
    }
}
