//! Why a table cannot be made, read or changed.

use super::Scheme;
use crate::{apm, bsd, bsd64, ebr, gpt, mbr, pc98, vtoc8};

/// Why a request was refused. Nothing has changed then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum Error {
    /// A scheme that does not exist or cannot be written.
    #[error("{0:?} is no partitioning scheme; there are {known}", known = schemes())]
    UnknownScheme(String),
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
    #[error("no usable disklabel: {0}")]
    Bsd(#[from] bsd::Error),
    #[error("no usable Apple partition map: {0}")]
    Apm(#[from] apm::Error),
    /// No disklabel64, or a damaged one without a copy.
    #[error("no usable disklabel64: {0}")]
    Bsd64(#[from] bsd64::Error),
    /// No extended boot record.
    #[error("no logical partitions: {0}")]
    Ebr(#[from] ebr::Error),
    #[error("no usable database of a dynamic disk: {0}")]
    Ldm(String),
    #[error("no table of a PC-98: {0}")]
    Pc98(#[from] pc98::Error),
    #[error("no usable Sun label: {0}")]
    Vtoc8(#[from] vtoc8::Error),
    /// Neither copy of the GPT is good.
    #[error("no usable GPT; primary: {primary}; backup: {backup}")]
    Gpt {
        /// The defect of the primary copy.
        primary: gpt::Error,
        /// The defect of the backup.
        backup: gpt::Error,
    },
    /// The table does not fit on the media.
    #[error(transparent)]
    Layout(#[from] gpt::LayoutError),
    #[error("{scheme} needs {needed} sectors, the media has {found}")]
    TooSmall {
        scheme: Scheme,
        needed: u64,
        found: u64,
    },
    /// Too few or too many cylinders for a scheme that counts in them.
    #[error("{scheme} needs {least} to {most} cylinders, the media has {found}")]
    Cylinders {
        scheme: Scheme,
        least: u64,
        most: u64,
        found: u64,
    },
    #[error("a partition of this scheme has whole cylinders of {sectors} sectors, at least one")]
    Cylinder {
        /// Sectors of a cylinder.
        sectors: u64,
    },
    #[error("{scheme} cannot be used with sectors of {found} bytes: {reason}")]
    SectorSize {
        scheme: Scheme,
        /// The sector size in question.
        found: u32,
        reason: &'static str,
    },
    #[error("the {scheme} table is only read: {reason}")]
    ReadOnly {
        scheme: Scheme,
        reason: &'static str,
    },
    /// The number of entries asked for is impossible.
    #[error("{scheme}: a table has {} entries, not {found}", span(*least, *most))]
    EntryCount {
        scheme: Scheme,
        /// The requested value.
        found: u32,
        least: u32,
        most: u32,
    },
    #[error("the {scheme} table is damaged ({damage}): recover it first")]
    Corrupt {
        scheme: Scheme,
        /// The first thing that is wrong.
        damage: String,
    },
    #[error(
        "partitions {first} and {second} of the {scheme} table overlap: delete one of them first"
    )]
    Overlapping {
        scheme: Scheme,
        /// The partition that begins first.
        first: u32,
        /// The one that begins inside it.
        second: u32,
    },
    #[error(
        "neither copy of the GPT is valid: compare them, then name the one to use (--from \
         primary, --from backup)"
    )]
    Doubtful,
    #[error("the {side} copy cannot be used: {error}")]
    Copy {
        side: gpt::Side,
        /// The defect.
        error: gpt::Error,
    },
    /// Sector 0 divides the disk in another way.
    #[error(
        "sector 0 holds an ordinary MBR with partitions, which may be the newer table; \
         --from primary or --from backup takes the GPT and replaces it"
    )]
    OrdinaryMbr,
    #[error("a {0} table has no second copy, there is nothing to recover from")]
    NothingToRecover(Scheme),
    #[error("{0} keeps no sectors for boot code; -p writes it into a partition")]
    NoBootCode(Scheme),
    #[error("boot code of {found} bytes is too large, the scheme has room for {most}")]
    BootCodeSize {
        /// Its size in bytes.
        found: usize,
        most: usize,
    },
    #[error("boot code of a PC-98 names its loader at byte 4: IPL1, \"Linux 98\" or \"GRUB/98 \"")]
    BootCodeName,
    #[error("{kind:?} is no partition type of {scheme}; give a name or !{form}")]
    UnknownType {
        scheme: Scheme,
        /// The requested type.
        kind: String,
        /// The text that may follow the exclamation mark.
        form: &'static str,
    },
    #[error("{scheme} has no attribute {attribute:?}{}", listed(.known))]
    UnknownAttribute {
        scheme: Scheme,
        /// The requested attribute.
        attribute: String,
        /// Those that there are.
        known: String,
    },
    #[error("{attribute} is an attribute of a partition of {scheme}: name the partition (-i)")]
    OfPartition { scheme: Scheme, attribute: String },
    #[error("{attribute} is an attribute of a {scheme} itself: leave out the partition (-i)")]
    OfTable { scheme: Scheme, attribute: String },
    #[error(
        "sector 0 holds an MBR with partitions of its own, whose bytes are left alone: \
         {0:?} is set there"
    )]
    ForeignMbr(String),
    /// A label where the scheme has none, or too long.
    #[error("the label {label:?} cannot be stored: {reason}")]
    Label {
        /// The requested label.
        label: String,
        reason: &'static str,
    },
    #[error("sectors {start} to {end} are outside the usable range, {first} to {last}")]
    OutOfRange {
        /// First sector asked for.
        start: u64,
        /// Last sector asked for.
        end: u64,
        first: u64,
        last: u64,
    },
    #[error("sectors {start} to {end} overlap partition {other} ({other_start} to {other_end})")]
    Overlap {
        /// First sector asked for.
        start: u64,
        /// Last sector asked for.
        end: u64,
        /// Index of the other partition.
        other: u32,
        other_start: u64,
        other_end: u64,
    },
    #[error("no free space of {needed} sectors (aligned to {align}): the largest has {largest}")]
    NoSpace {
        needed: u64,
        align: u64,
        /// Sectors in the largest free space after alignment.
        largest: u64,
    },
    #[error("a partition of 0 sectors is impossible")]
    Empty,
    #[error("an alignment of 0 sectors is impossible")]
    Align,
    #[error("index {found} is not in the table, which has 1 to {most}")]
    Index {
        /// The requested value.
        found: u32,
        most: u32,
    },
    #[error(
        "the partition at this place has index {index}, not {found}: they are numbered in order"
    )]
    IndexOfPlace {
        /// The requested value.
        found: u32,
        /// The index that it would have.
        index: u32,
    },
    #[error("index {0} is in use")]
    IndexInUse(u32),
    #[error("all {0} entries of the table are in use")]
    TableFull(u32),
    #[error("there is no partition {0}")]
    NoSuchPartition(u32),
    #[error(
        "partition {0} is the only sign that this label's offsets are relative: \
         without it the others would move"
    )]
    MovesOthers(u32),
}

impl Error {
    pub(super) fn label(label: &str, reason: &'static str) -> Self {
        let label = label.to_owned();
        Self::Label { label, reason }
    }

    pub(super) fn unknown_type(scheme: Scheme, kind: &str, form: &'static str) -> Self {
        let kind = kind.to_owned();
        Self::UnknownType { scheme, kind, form }
    }

    /// So many sectors from `start` on, outside the first and last that a partition may have.
    pub(super) fn out_of_range(start: u64, sectors: u64, (first, last): (u64, u64)) -> Self {
        Self::OutOfRange {
            start,
            end: start.saturating_add(sectors.saturating_sub(1)),
            first,
            last,
        }
    }
}

fn span(least: u32, most: u32) -> String {
    match least == most {
        true => least.to_string(),
        false => format!("{least} to {most}"),
    }
}

fn listed(known: &str) -> String {
    match known {
        "" => String::new(),
        known => format!(", it has {known}"),
    }
}

/// Those that can be created.
fn schemes() -> String {
    let written = Scheme::ALL.iter().filter(|scheme| **scheme != Scheme::Ldm);
    let names: Vec<&str> = written.map(|scheme| scheme.name()).collect();
    names.join(", ")
}
