//! Why a table cannot be made, read or changed.

use super::Scheme;
use crate::{bsd, gpt, mbr};

/// Why a request was refused. Nothing has changed then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A scheme that does not exist or cannot be written.
    #[error("{0:?} is no partitioning scheme that can be written, there are MBR, BSD and GPT")]
    UnknownScheme(String),
    /// A sector could not be read.
    #[error("sector {lba} cannot be read: {reason}")]
    Read {
        /// First sector of the request.
        lba: u64,
        /// The reader's own words.
        reason: String,
    },
    /// No MBR, or not a plausible one.
    #[error("no MBR: {0}")]
    Mbr(#[from] mbr::Error),
    /// No disklabel, or a damaged one.
    #[error("no usable disklabel: {0}")]
    Bsd(#[from] bsd::Error),
    /// Neither copy of the GPT is good.
    #[error("no usable GPT; primary: {primary}; backup: {backup}")]
    Gpt {
        /// What is wrong with the primary copy.
        primary: gpt::Error,
        /// What is wrong with the backup.
        backup: gpt::Error,
    },
    /// The table does not fit on the media.
    #[error(transparent)]
    Layout(#[from] gpt::LayoutError),
    /// The media has no room for the scheme.
    #[error("{scheme} needs {needed} sectors, the media has {found}")]
    TooSmall {
        /// The scheme.
        scheme: Scheme,
        /// Sectors needed.
        needed: u64,
        /// Sectors there are.
        found: u64,
    },
    /// A sector size that the scheme is not made for.
    #[error("{scheme} cannot be used with sectors of {found} bytes: {reason}")]
    SectorSize {
        /// The scheme.
        scheme: Scheme,
        /// The sector size in question.
        found: u32,
        /// Why not.
        reason: &'static str,
    },
    /// A table of a kind that is only read.
    #[error("the {scheme} table is only read: {reason}")]
    ReadOnly {
        /// The scheme.
        scheme: Scheme,
        /// Why.
        reason: &'static str,
    },
    /// The number of entries asked for is impossible.
    #[error("a {scheme} table has {least} to {most} entries, not {found}")]
    EntryCount {
        /// The scheme.
        scheme: Scheme,
        /// What was asked for.
        found: u32,
        /// Fewest entries.
        least: u32,
        /// Most entries.
        most: u32,
    },
    /// A damaged table is not changed before it is recovered.
    #[error("the {scheme} table is damaged ({damage}): recover it first")]
    Corrupt {
        /// The scheme.
        scheme: Scheme,
        /// The first thing that is wrong.
        damage: String,
    },
    /// Only a GPT has a second copy to recover from.
    #[error("a {0} table has no second copy, there is nothing to recover from")]
    NothingToRecover(Scheme),
    /// A type that the scheme has no number for.
    #[error("{kind:?} is no partition type of {scheme}; give a name or !{form}")]
    UnknownType {
        /// The scheme.
        scheme: Scheme,
        /// What was asked for.
        kind: String,
        /// What may follow the exclamation mark.
        form: &'static str,
    },
    /// An attribute that the scheme does not have.
    #[error("{scheme} has no attribute {attribute:?}{}", listed(.known))]
    UnknownAttribute {
        /// The scheme.
        scheme: Scheme,
        /// What was asked for.
        attribute: String,
        /// Those that there are.
        known: String,
    },
    /// An attribute of a protective MBR, where sector 0 holds another one.
    #[error(
        "sector 0 holds an MBR with partitions of its own, whose bytes are left alone: \
         {0:?} is set there"
    )]
    ForeignMbr(String),
    /// A label where the scheme has none, or too long.
    #[error("the label {label:?} cannot be stored: {reason}")]
    Label {
        /// What was asked for.
        label: String,
        /// Why not.
        reason: &'static str,
    },
    /// A partition outside the usable sectors.
    #[error("sectors {start} to {end} are not inside the usable ones, {first} to {last}")]
    OutOfRange {
        /// First sector asked for.
        start: u64,
        /// Last sector asked for.
        end: u64,
        /// First usable sector.
        first: u64,
        /// Last usable sector.
        last: u64,
    },
    /// A partition over another one.
    #[error("sectors {start} to {end} overlap partition {other} ({other_start} to {other_end})")]
    Overlap {
        /// First sector asked for.
        start: u64,
        /// Last sector asked for.
        end: u64,
        /// Index of the other partition.
        other: u32,
        /// Its first sector.
        other_start: u64,
        /// Its last sector.
        other_end: u64,
    },
    /// No free space that is large enough.
    #[error("no free space of {needed} sectors at multiples of {align}, the largest has {largest}")]
    NoSpace {
        /// Sectors asked for.
        needed: u64,
        /// Alignment in sectors.
        align: u64,
        /// Sectors in the largest free space after alignment.
        largest: u64,
    },
    /// An alignment of 0 sectors.
    #[error("an alignment of 0 sectors is impossible")]
    Align,
    /// An index outside the table.
    #[error("index {found} is not in the table, which has 1 to {most}")]
    Index {
        /// What was asked for.
        found: u32,
        /// Number of entries.
        most: u32,
    },
    /// An index that is taken.
    #[error("index {0} is in use")]
    IndexInUse(u32),
    /// All entries are taken.
    #[error("all {0} entries of the table are in use")]
    TableFull(u32),
    /// No partition to delete.
    #[error("there is no partition {0}")]
    NoSuchPartition(u32),
    /// A deletion that would move the partitions that stay.
    #[error(
        "partition {0} is the only sign that this label's offsets are relative: \
         without it the others would move"
    )]
    MovesOthers(u32),
}

fn listed(known: &str) -> String {
    match known {
        "" => String::new(),
        known => format!(", it has {known}"),
    }
}
