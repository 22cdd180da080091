//! The actions that write: create, add, delete.

use super::{Common, explained, scheme};
use crate::failure::Usage;
use crate::opening;
use crate::output;
use crate::safety;
use anyhow::Result;
use clap::Args;
use serde_json::json;
use std::str::FromStr;
use ugeom_classes::Target;
use ugeom_classes::part::edit::{self, EditError, Editor};
use ugeom_format::plan::{NewPart, Scheme};
use ugeom_measure::units;
use ugeom_stack::{Channel, Delta, Opened, ProviderView, Stack};

const CREATE_ABOUT: &str = "\
Makes a new, empty partition table.

A provider that carries a partition table or a file system is refused with the name of what was \
found, unless --destroy is given, which wipes it first. A disk or image that is mounted or \
attached to a loop device is refused in any case.";

const CREATE_EXAMPLES: &str = "\
Examples:
  ugeom part create -s gpt disk.img
  ugeom part create -s bsd -n 20 disk.img@s1   # 20 entries, in a slice";

/// Make a new, empty partition table
#[derive(Args)]
#[command(long_about = CREATE_ABOUT, after_help = CREATE_EXAMPLES)]
pub struct Create {
    #[command(flatten)]
    common: Common,

    /// Scheme: apm, bsd, bsd64, ebr, gpt, mbr, pc98 or vtoc8
    #[arg(short = 's', value_name = "SCHEME", value_parser = scheme)]
    scheme: Scheme,

    /// Number of entries: 16 to 1023 for APM [default: 16], 8 to 20 for BSD [default: 8], 1 to 4096
    /// for GPT [default: 128]
    #[arg(short = 'n', value_name = "ENTRIES")]
    entries: Option<u32>,

    /// Overwrite a table, a file system or metadata that is there
    #[arg(long, visible_alias = "force")]
    destroy: bool,
}

/// Where partitions begin if nothing else is said.
const ALIGN_BYTES: u64 = 1 << 20;
/// Physical sectors of today's disks: a partition that begins inside one is slow to write.
const LEAST_ALIGN_BYTES: u64 = 4096;

const ADD_ABOUT: &str = "\
Adds a partition to a table. Without a start it takes the smallest free space that is large \
enough, from a multiple of 1 MiB on where there is room; without a size, all of the largest.

Starts, sizes and alignments are in sectors, or in bytes with a suffix (64k, 1m, 1.5g). A type is \
gpart's name (freebsd-ufs, linux-data, efi, ms-basic-data; `part types` lists them), or ! and its \
number or GUID. In PC98 and VTOC8 tables, starts and sizes are whole cylinders.";

const ADD_EXAMPLES: &str = "\
Examples:
  ugeom part add -t freebsd-ufs -s 256m -l root disk.img
  ugeom part add -t '!0x83' -b 2048 disk.img   # from sector 2048 on";

/// Add a partition to a table
#[derive(Args)]
#[command(long_about = ADD_ABOUT, after_help = ADD_EXAMPLES)]
pub struct Add {
    #[command(flatten)]
    common: Common,

    /// Type: freebsd, freebsd-ufs, linux-data, !0x83, ...
    #[arg(short = 't', value_name = "TYPE")]
    kind: String,

    /// Align start and size to multiples of this, in sectors, or bytes with a suffix (1m) [default:
    /// the start to 1 MiB]
    #[arg(short = 'a', value_name = "ALIGN")]
    align: Option<Amount>,

    /// First sector [default: the first free one]
    #[arg(short = 'b', value_name = "START")]
    start: Option<Amount>,

    /// Length in sectors, or bytes with a suffix (256m) [default: all free space there]
    #[arg(short = 's', value_name = "SIZE")]
    size: Option<Amount>,

    /// Index in the table [default: the first free one]
    #[arg(short = 'i', value_name = "INDEX")]
    index: Option<u32>,

    /// Label (GPT and APM only)
    #[arg(short = 'l', value_name = "LABEL")]
    label: Option<String>,

    /// Scheme of the table, if there are several: mbr, bsd, gpt, ...
    #[arg(long, value_name = "SCHEME", value_parser = scheme)]
    scheme: Option<Scheme>,
}

const DELETE_EXAMPLES: &str = "\
Examples:
  ugeom part delete -i 2 disk.img";

/// Delete a partition from a table; its contents stay where they are
#[derive(Args)]
#[command(after_help = DELETE_EXAMPLES)]
pub struct Delete {
    #[command(flatten)]
    common: Common,

    /// Index of the partition, as `part show` prints it
    #[arg(short = 'i', value_name = "INDEX")]
    index: u32,

    /// Scheme of the table, if there are several: mbr, bsd, gpt, ...
    #[arg(long, value_name = "SCHEME", value_parser = scheme)]
    scheme: Option<Scheme>,
}

/// A number of sectors, or of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amount {
    Sectors(u64),
    Bytes(u64),
}

impl FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_suffix(['s', 'S']).unwrap_or(text);
        match units::whole_number(digits) {
            Ok(sectors) => Ok(Self::Sectors(sectors)),
            Err(_) => opening::size(text).map(Self::Bytes),
        }
    }
}

impl Amount {
    pub(super) fn sectors(self, provider: &ProviderView, what: &str) -> Result<u64, Usage> {
        let sector = u64::from(provider.sectorsize_bytes);
        match self {
            Self::Sectors(sectors) => Ok(sectors),
            Self::Bytes(bytes) if bytes.checked_rem(sector) == Some(0) => Ok(bytes / sector),
            Self::Bytes(bytes) => Err(Usage(format!(
                "the {what} of {bytes} bytes is no whole number of the {sector}-byte sectors of {}",
                provider.name
            ))),
        }
    }
}

/// A provider that is open for a change of its table.
pub(super) struct Ready {
    pub(super) provider: ProviderView,
    pub(super) opened: Opened,
    pub(super) channel: Channel,
    stack: Stack,
}

impl Ready {
    /// The table that is changed.
    pub(super) fn editor(&mut self, scheme: Option<Scheme>) -> Result<Editor<'_>, EditError> {
        Editor::open(&mut self.channel, &self.opened, scheme)
    }

    /// Closes the provider after a change, and reports lost data.
    pub(super) fn close<T>(self, outcome: Result<T>) -> Result<T> {
        drop(self.channel);
        opening::close_written(&self.stack, self.opened, outcome)
    }
}

impl Common {
    pub(super) fn ready(&self) -> Result<Ready> {
        self.ready_for(safety::refuse_table_within)
    }

    /// Opens the provider once `refused` has nothing against the target.
    fn ready_for(&self, refused: impl FnOnce(&Target) -> Result<()>) -> Result<Ready> {
        let target = self.target.open_for_table()?;
        refused(&target)?;
        Ok(Ready {
            provider: opening::top(&target)?,
            opened: target.open(Delta::READ_WRITE)?,
            channel: target.stack.channel(1)?,
            stack: target.stack,
        })
    }
}

impl Create {
    pub fn run(&self) -> Result<()> {
        // A new table is not written into a window that shows another structure. For a change, a
        // table below is not in the way: it may be the same one.
        let mut ready = self.common.ready_for(|target| match self.destroy {
            true => Ok(()),
            false => safety::refuse_content_below(target),
        })?;
        let wanted = edit::Create {
            scheme: self.scheme,
            entries: self.entries,
            force: self.destroy,
        };
        let created = edit::create(&mut ready.channel, &ready.opened, &wanted);
        let created = created.map_err(|error| match error {
            EditError::Found { provider, found } => safety::carries(&provider, &found),
            error => error.into(),
        });
        let name = ready.provider.name.clone();
        ready.close(created)?;
        let scheme = self.scheme.to_string();
        let json = json!({ "provider": name, "scheme": scheme });
        self.common.done(&format!("{name} created"), &json)
    }
}

impl Add {
    pub fn run(&self) -> Result<()> {
        let mut ready = self.common.ready()?;
        let provider = &ready.provider;
        let unit = u64::from(provider.sectorsize_bytes);
        let has_room = provider.mediasize_bytes >= 2 * ALIGN_BYTES;
        let sectors = |amount: Option<Amount>, what| {
            amount
                .map(|amount| amount.sectors(provider, what))
                .transpose()
        };
        let wanted = NewPart {
            start: sectors(self.start, "start")?,
            sectors: sectors(self.size, "size")?,
            align_sectors: sectors(self.align, "alignment")?,
            preferred_align_sectors: Some(ALIGN_BYTES / unit),
            index: self.index,
            kind: self.kind.clone(),
            label: self.label.clone(),
            ..NewPart::default()
        };
        let table = ready.editor(self.scheme);
        let added = table.and_then(|it| it.add_part(&wanted));
        let added = ready.close(added.map_err(explained))?;
        // gpart warns, too, of a start that is no multiple of the disk's stripes.
        let is_asked = self.start.is_some() || self.align.is_some() || self.size.is_some();
        if !is_asked && has_room && !(added.start * unit).is_multiple_of(LEAST_ALIGN_BYTES) {
            output::warn(&output::printable(&format!(
                "{}: sector {} is not aligned to 4 KiB; no other free space is larger",
                added.provider, added.start
            )));
        }
        self.common.done_to(&added, "added")
    }
}

impl Delete {
    pub fn run(&self) -> Result<()> {
        let mut ready = self.common.ready()?;
        let table = ready.editor(self.scheme);
        let deleted = table.and_then(|it| it.delete(self.index));
        let deleted = ready.close(deleted.map_err(explained))?;
        let json = json!({ "provider": deleted, "index": self.index });
        self.common.done(&format!("{deleted} deleted"), &json)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_sectors_unless_they_have_a_unit() {
        let read = |text: &str| text.parse::<Amount>();
        assert_eq!(read("63"), Ok(Amount::Sectors(63)));
        assert_eq!(read("63s"), Ok(Amount::Sectors(63)));
        assert_eq!(read("0x40"), Ok(Amount::Sectors(64)));
        assert_eq!(read("1m"), Ok(Amount::Bytes(1 << 20)));
        assert_eq!(read("1.5k"), Ok(Amount::Bytes(1536)));
        assert!(read("big").is_err());
    }
}
