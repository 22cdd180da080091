//! `ugeom show`: the providers of a target as a tree, or as FreeBSD's configuration dumps.

mod json;
pub mod kernel;
mod tree;

use crate::contents;
use crate::opening::{OpeningArgs, TargetArgs};
use crate::output::{self, Paint};
use anyhow::Result;
use clap::{Args, ValueHint};
use ugeom_stack::{GeomView, ProviderId, ProviderView, Tree, conf};

const LONG_ABOUT: &str = "\
Shows the providers of a target as a tree. Each line has class, size, number and size of the \
sectors, access counts (readers, writers, exclusive holders), type and label from the table, and \
the content: a file system, volume, image or table.

A line that begins with `!` reports a partition that reaches past the end of its parent, overlaps \
another, or is otherwise damaged. Stderr names metadata that is too damaged to use. Nothing is \
repaired.

An address (disk.img@s1) limits the tree to that provider and the layers above it.

With --kernel the layers are those of the running kernel: disks, partitions, loop devices with \
their files, mapped devices, RAID, file systems. MODE is ro or rw, since the kernel publishes no \
access counts; CONTENT is the scheduler and the queue depth; -v adds limits and settings. Only the \
targets of mapped devices need root.";

const EXAMPLES: &str = "\
Examples:
  ugeom show disk.img                        # what is on this disk?
  ugeom show -v disk.img                     # with the settings of each layer
  ugeom show --json disk.img | jq .          # the same for programs
  ugeom show --kernel                        # the kernel's disks and layers
  ugeom show --kernel /dev/loop0             # from its disk upwards
  ugeom show --dot 'md:1m | nop' | dot -Tsvg  # a picture of the stack";

/// Show the providers of a target as a tree
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Show {
    /// A path, `md:64m`, layers joined by `|`, or `disk.img@s1a` for a partition (see ugeom --help)
    #[arg(value_name = "TARGET", value_hint = ValueHint::FilePath,
          required_unless_present = "kernel", value_parser = crate::opening::word())]
    target: Option<String>,

    #[command(flatten)]
    opening: OpeningArgs,

    /// Show the layers of the running kernel instead of a target: all, or the chain of a DEVICE, a
    /// file or a mount point
    #[arg(long, value_name = "DEVICE", num_args = 0..=1,
          conflicts_with_all = ["target", "dot", "xml", "no_taste"])]
    kernel: Option<Option<String>>,

    /// Also show the settings of each layer, such as the engine of a file and the reason for it
    #[arg(short, long, conflicts_with = "form")]
    verbose: bool,

    /// Print JSON: sizes in bytes, the layers on a provider as its `geoms`
    #[arg(long, group = "form")]
    json: bool,

    /// Print the graph for graphviz, in the format of FreeBSD's kern.geom.confdot
    #[arg(long, group = "form")]
    dot: bool,

    /// Print XML, in the format of FreeBSD's kern.geom.confxml
    #[arg(long, group = "form")]
    xml: bool,
}

impl Show {
    pub fn run(&self) -> Result<()> {
        if let Some(device) = &self.kernel {
            return kernel::show(device.as_deref(), self.verbose, self.json);
        }
        let arguments = TargetArgs {
            target: self.target.clone().unwrap_or_default(),
            opening: self.opening.clone(),
        };
        let target = arguments.open()?;
        let mut tree = target.stack.tree();
        let contents = contents::annotate(&target, &mut tree)?;
        let only = target.addressed.then_some(target.top);
        if self.json {
            let errors = target.stack.taste_errors();
            return output::print_json(&json::Shown::new(
                &arguments.target,
                &tree,
                only,
                &errors,
                &contents,
            ));
        }
        output::print(&if self.dot {
            conf::confdot(&tree)
        } else if self.xml {
            conf::confxml(&as_geom_has_it(tree))
        } else {
            let utf8 = output::is_utf8();
            tree::render(&tree, only, self.verbose, (Paint::of_stdout(), utf8))
        })
    }
}

/// Without the facts about tables that GEOM does not have: programs compare its dump.
fn as_geom_has_it(mut tree: Tree) -> Tree {
    for geom in &mut tree.geoms {
        geom.config.retain(|(name, _)| *name != "hint");
    }
    tree
}

/// The geoms that stand on a provider, without the handles of its users.
fn above(tree: &Tree, provider: ProviderId) -> impl Iterator<Item = &GeomView> {
    tree.above(provider).filter(|geom| geom.class != "DEV")
}

/// The settings of a geom and of its provider that the tree has no column for.
fn settings<'a>(
    geom: &'a GeomView,
    provider: &'a ProviderView,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    const SHOWN: [&str; 7] = [
        "damage", "start", "type", "label", "attrib", "content", "hint",
    ];
    let all = provider.config.iter().chain(&geom.config);
    all.map(|(name, value)| (*name, value.as_str()))
        .filter(|(name, value)| !SHOWN.contains(name) && !value.is_empty())
}

/// The defects of the metadata of a geom as a whole.
fn damage(geom: &GeomView) -> impl Iterator<Item = &str> {
    let facts = geom.config.iter().filter(|(name, _)| *name == "damage");
    facts.map(|(_, text)| text.as_str())
}
