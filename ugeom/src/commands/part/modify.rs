//! The actions that change a table that there is: modify, resize, set, unset, destroy.

use super::change::Amount;
use super::{Common, explained, scheme};
use crate::failure::Usage;
use anyhow::Result;
use clap::{ArgGroup, Args};
use serde_json::json;
use ugeom_classes::part::edit::{self, EditError};
use ugeom_format::plan::{Change, Scheme};

const MODIFY_EXAMPLES: &str = "\
Examples:
  ugeom part modify -i 2 -t linux-data disk.img
  ugeom part modify -i 2 -l home disk.img";

/// Change type or label of a partition
#[derive(Args)]
#[command(after_help = MODIFY_EXAMPLES)]
#[command(group = ArgGroup::new("change").required(true).multiple(true))]
pub struct Modify {
    #[command(flatten)]
    common: Common,

    /// Index of the partition, as `part show` prints it
    #[arg(short = 'i', value_name = "INDEX")]
    index: u32,

    /// New type: freebsd-ufs, linux-data, !0x83, ...
    #[arg(short = 't', value_name = "TYPE", group = "change")]
    kind: Option<String>,

    /// New label (GPT and APM only)
    #[arg(short = 'l', value_name = "LABEL", group = "change")]
    label: Option<String>,

    /// Scheme of the table, if there are several: mbr, bsd, gpt, ...
    #[arg(long, value_name = "SCHEME", value_parser = scheme)]
    scheme: Option<Scheme>,
}

const RESIZE_ABOUT: &str = "\
Changes the length of a partition; its first sector stays. Without a size it extends to the next \
partition or the end. The contents do not change: shrink a file system before, and grow it \
afterwards.

Without --destroy, a partition keeps at least the length that its content (a file system, a \
volume, partitions) states. It does not shrink at all if the content states none, such as LUKS.";

const RESIZE_EXAMPLES: &str = "\
Examples:
  ugeom part resize -i 2 disk.img          # up to the next partition
  ugeom part resize -i 2 -s 10g disk.img";

/// Change the length of a partition
#[derive(Args)]
#[command(long_about = RESIZE_ABOUT, after_help = RESIZE_EXAMPLES)]
pub struct Resize {
    #[command(flatten)]
    common: Common,

    /// Index of the partition, as `part show` prints it
    #[arg(short = 'i', value_name = "INDEX")]
    index: u32,

    /// Round the size down to a multiple of this, in sectors, or bytes with a suffix
    #[arg(short = 'a', value_name = "ALIGN")]
    align: Option<Amount>,

    /// New size in sectors, or bytes with a suffix (10g) [default: up to the next partition or the
    /// end]
    #[arg(short = 's', value_name = "SIZE")]
    size: Option<Amount>,

    /// Shrink the partition even if that cuts off its content
    #[arg(long)]
    destroy: bool,

    /// Scheme of the table, if there are several: mbr, bsd, gpt, ...
    #[arg(long, value_name = "SCHEME", value_parser = scheme)]
    scheme: Option<Scheme>,
}

const SET_ABOUT: &str = "\
Sets an attribute of a partition (-i) or of a table. The attributes are gpart's:

  MBR, EBR         active; the other partitions lose it
  PC98             active, bootable
  GPT, partition   bootme, bootonce (sets bootme, too), bootfailed
  GPT, table       active (of the protective MBR), lenovofix (protective
                   entry second)";

const UNSET_ABOUT: &str = "\
Clears an attribute of a partition (-i) or of a table. `ugeom part set --help` lists the \
attributes.";

const SET_EXAMPLES: &str = "\
Examples:
  ugeom part set -a active -i 1 disk.img
  ugeom part set -a bootme -i 2 disk.img";

/// Set an attribute of a partition or of a table
#[derive(Args)]
#[command(long_about = SET_ABOUT, after_help = SET_EXAMPLES)]
pub struct Set {
    #[command(flatten)]
    attribute: Attribute,
}

const UNSET_EXAMPLES: &str = "\
Examples:
  ugeom part unset -a active -i 1 disk.img";

/// Clear an attribute of a partition or of a table
#[derive(Args)]
#[command(long_about = UNSET_ABOUT, after_help = UNSET_EXAMPLES)]
pub struct Unset {
    #[command(flatten)]
    attribute: Attribute,
}

#[derive(Args)]
struct Attribute {
    #[command(flatten)]
    common: Common,

    /// Attribute: active, bootable, bootme, bootonce, bootfailed, lenovofix
    #[arg(short = 'a', value_name = "ATTRIBUTE")]
    name: String,

    /// Index of the partition [default: the table itself]
    #[arg(short = 'i', value_name = "INDEX")]
    index: Option<u32>,

    /// Scheme of the table, if there are several: mbr, bsd, gpt, ...
    #[arg(long, value_name = "SCHEME", value_parser = scheme)]
    scheme: Option<Scheme>,
}

const DESTROY_ABOUT: &str = "\
Removes a partition table. The contents of its partitions stay on the disk and are no longer \
listed. A table with partitions is refused without --force.";

const DESTROY_EXAMPLES: &str = "\
Examples:
  ugeom part destroy disk.img         # an empty table
  ugeom part destroy -F disk.img      # with its partitions";

/// Remove a partition table
#[derive(Args)]
#[command(long_about = DESTROY_ABOUT, after_help = DESTROY_EXAMPLES)]
pub struct Destroy {
    #[command(flatten)]
    common: Common,

    /// Destroy a table that has partitions, too
    #[arg(short = 'F', long)]
    force: bool,

    /// Scheme of the table, if there are several: mbr, bsd, gpt, ...
    #[arg(long, value_name = "SCHEME", value_parser = scheme)]
    scheme: Option<Scheme>,
}

impl Modify {
    pub fn run(&self) -> Result<()> {
        let kind = self.kind.clone().map(Change::Kind);
        let label = self.label.clone().map(Change::Label);
        let changes: Vec<Change> = kind.into_iter().chain(label).collect();
        let mut ready = self.common.ready()?;
        let table = ready.editor(self.scheme);
        let changed = table.and_then(|it| it.change(self.index, &changes));
        let provider = ready.close(changed.map_err(explained))?;
        let json = json!({ "provider": provider, "index": self.index });
        self.common.done(&format!("{provider} modified"), &json)
    }
}

impl Resize {
    pub fn run(&self) -> Result<()> {
        let mut ready = self.common.ready()?;
        let sectors = |amount: Option<Amount>, what| -> Result<Option<u64>, Usage> {
            let amount = amount.map(|amount| amount.sectors(&ready.provider, what));
            amount.transpose()
        };
        let wanted = edit::Resize {
            index: self.index,
            sectors: sectors(self.size, "size")?,
            align_sectors: sectors(self.align, "alignment")?,
            force: self.destroy,
        };
        let resized = ready.editor(self.scheme).and_then(|it| it.resize(&wanted));
        let resized = resized.map_err(|error| match error {
            EditError::Cut { .. } => anyhow::anyhow!("{error}, --destroy cuts it off"),
            error => explained(error),
        });
        let resized = ready.close(resized)?;
        self.common.done_to(&resized, "resized")
    }
}

impl Attribute {
    fn apply(&self, on: bool) -> Result<()> {
        let mut ready = self.common.ready()?;
        let (name, provider) = (self.name.clone(), ready.provider.name.clone());
        let changed = ready.editor(self.scheme).and_then(|it| match self.index {
            None => it.set_on_table(&name, on).map(|()| provider),
            Some(index) => it.change(index, &[Change::Attribute { name, on }]),
        });
        let provider = ready.close(changed.map_err(explained))?;
        let json = json!({
            "provider": provider,
            "index": self.index,
            "attribute": self.name,
            "set": on,
        });
        let done = if on { "set" } else { "unset" };
        let line = format!("{} {done} on {provider}", self.name);
        self.common.done(&line, &json)
    }
}

impl Set {
    pub fn run(&self) -> Result<()> {
        self.attribute.apply(true)
    }
}

impl Unset {
    pub fn run(&self) -> Result<()> {
        self.attribute.apply(false)
    }
}

impl Destroy {
    pub fn run(&self) -> Result<()> {
        let mut ready = self.common.ready()?;
        let name = ready.provider.name.clone();
        let table = ready.editor(self.scheme);
        let destroyed = table.and_then(|it| it.destroy(self.force));
        let destroyed = destroyed.map_err(|error| match error {
            EditError::NotEmpty { .. } => {
                anyhow::anyhow!("{error}: -F destroys them with the table")
            }
            error => error.into(),
        });
        let scheme = ready.close(destroyed)?;
        let json = json!({ "provider": name, "scheme": scheme.to_string() });
        self.common.done(&format!("{name} destroyed"), &json)
    }
}
