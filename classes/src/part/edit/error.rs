//! Why a partition table was not changed.

use std::fmt;
use ugeom_format::content::Content;
use ugeom_format::plan::{self, Scheme};
use ugeom_stack::IoError;

/// Why an edit was refused or failed. Unless it says that a write failed, nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum EditError {
    #[error("the provider is destroyed")]
    Gone,
    #[error(
        "{provider} has sectors of {sectorsize_bytes} bytes; \
         partition tables need a power of two from 512 to 65536"
    )]
    SectorSize {
        provider: String,
        /// Its sector size in bytes.
        sectorsize_bytes: u32,
    },
    /// No class would look for the table there.
    #[error("{scheme} on {provider} would never be found: {reason}")]
    Nested {
        provider: String,
        /// The scheme that was asked for.
        scheme: Scheme,
        /// The violated rule.
        reason: String,
    },
    /// The provider carries something that a new table would destroy.
    #[error("{provider} carries {}; nothing was written, force overwrites it", list(.found))]
    Found {
        provider: String,
        /// The structures found, with their offsets; never empty.
        found: Vec<Content>,
    },
    #[error(
        "{provider} carries {} where {what} would be written; nothing was written",
        list(.found)
    )]
    InTheWay {
        /// Name of the provider that was to be changed.
        provider: String,
        /// The data to write.
        what: &'static str,
        /// The structures found, with their offsets; never empty.
        found: Vec<Content>,
    },
    /// An empty table on a medium with other content.
    #[error(
        "{provider} carries {} beside a {scheme} without partitions; nothing was written, \
         `part create --destroy` makes a table in its place",
        list(.found)
    )]
    Owned {
        /// Name of the provider with the empty table.
        provider: String,
        /// The scheme of the empty table.
        scheme: Scheme,
        /// The structures found, with their offsets; never empty.
        found: Vec<Content>,
    },
    /// A shorter partition would end before its content.
    #[error(
        "{provider} carries {}, and would have {new_bytes} bytes; nothing was written",
        cut_off(.cut)
    )]
    Cut {
        /// Name of the partition's provider.
        provider: String,
        /// Its new length in bytes.
        new_bytes: u64,
        /// The structures that would be cut off; never empty.
        cut: Vec<Cut>,
    },
    #[error("there is no partition table on {provider} that can be edited{}", because(.damaged))]
    NoTable {
        provider: String,
        /// Why a table that is there cannot be used.
        damaged: Option<String>,
    },
    #[error("{provider} carries more than one table ({}): name the scheme", names(.schemes))]
    Several {
        provider: String,
        schemes: Vec<Scheme>,
    },
    /// A table that is not to be destroyed with its partitions.
    #[error("the {scheme} of {provider} is not empty (partitions: {count}); nothing was written")]
    NotEmpty {
        provider: String,
        scheme: Scheme,
        count: usize,
    },
    #[error("boot code is not written to {provider}: {reason}")]
    PartCode {
        /// The partition's provider, or the disk where there is none.
        provider: String,
        reason: String,
    },
    /// The table does not allow the change.
    #[error("{provider}: {error}")]
    Plan {
        provider: String,
        #[source]
        error: plan::Error,
    },
    /// Reading failed, or a write did, in which case the table may be half written.
    #[error("{doing}: {error}")]
    Io {
        /// The operation (`reading the table of md0`).
        doing: String,
        #[source]
        error: IoError,
    },
    /// A write ended early.
    #[error("{provider}: writing the table: {done} of {wanted} bytes at {offset_bytes}")]
    Short {
        provider: String,
        offset_bytes: u64,
        done: usize,
        /// Bytes to be written.
        wanted: usize,
    },
    #[error("no random numbers for a GUID: {0}")]
    Random(#[source] std::io::Error),
}

/// Something that a shorter partition would cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The kind of structure, and its offset in the partition.
    pub(super) what: String,
    /// How far it reaches in the partition, bytes, where it states that.
    pub(super) reach_bytes: Option<u64>,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, reach_bytes } = self;
        match reach_bytes {
            Some(bytes) => write!(f, "{what} of {bytes} bytes"),
            None => write!(f, "{what} of unknown length"),
        }
    }
}

fn list(found: &[Content]) -> String {
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    found.join(", ")
}

fn cut_off(cut: &[Cut]) -> String {
    let cut: Vec<String> = cut.iter().map(ToString::to_string).collect();
    cut.join(", ")
}

fn names(schemes: &[Scheme]) -> String {
    let names: Vec<String> = schemes.iter().map(ToString::to_string).collect();
    names.join(", ")
}

fn because(damaged: &Option<String>) -> String {
    damaged.as_ref().map_or_else(
        || "; `ugeom part search` looks for lost partitions".to_owned(),
        |damaged| format!(": {damaged}"),
    )
}
