//! The options of `cache` and their checks.

use super::index::{Index, hash::Hash, splay::Splay};
use crate::registry::OptionDoc;
use crate::spec::{Options, SpecError, units};
use ugeom_stack::ProviderView;

/// The options for the registry.
pub(super) const DOCS: &[OptionDoc] = &[
    doc("size", "SIZE", "memory for blocks [64m]"),
    doc(
        "block",
        "SIZE",
        "size of a block, a power of two from 4k to 64k [16k]",
    ),
    doc(
        "index",
        "hash|splay",
        "how a block is found; splay is there to compare [hash]",
    ),
    doc(
        "readahead",
        "SIZE|off",
        "the most that is read ahead of a sequential reader [512k]",
    ),
    doc(
        "write",
        "through|back",
        "when a write is done: below, or in memory, to be written later [through]",
    ),
    doc(
        "dirty",
        "SIZE|PERCENT",
        "with write=back, memory for what is not below yet [50%]",
    ),
    doc(
        "idle",
        "TIME",
        "with write=back, how long nobody writes before it gets below [100ms]",
    ),
    doc(
        "age",
        "TIME",
        "with write=back, after how long it gets below at the latest [5s]",
    ),
];

/// The names of the ways to write.
pub(super) const THROUGH: &str = "through";
pub(super) const BACK: &str = "back";

const fn doc(name: &'static str, value: &'static str, about: &'static str) -> OptionDoc {
    OptionDoc { name, value, about }
}

/// The part of the buffers that may be dirty when nothing is said.
const DIRTY_SHARE: f64 = 0.5;
/// How long the flusher leaves things alone after the last write, ns.
const IDLE_NS: u64 = 100_000_000;
/// How long something is dirty at the most when writes never pause, ns.
const AGE_NS: u64 = 5_000_000_000;
const SIZE_BYTES: u64 = 64 << 20;
const AHEAD_BYTES: u64 = 512 << 10;
const BLOCK_BYTES: u64 = 16 << 10;
const BLOCK_BYTES_MIN: u64 = 4 << 10;
const BLOCK_BYTES_MAX: u64 = 64 << 10;
/// Buffers have numbers of 32 bits, and the index wants room to grow to a power of two.
const BUFFERS_MAX: u64 = 1 << 30;

/// Which index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Hash,
    Splay,
}

/// When a write is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writing {
    /// When it is done below.
    Through,
    /// When it is in memory.
    Back {
        /// How many buffers may be dirty.
        limit: u32,
        /// How long nobody writes before the flusher begins, and how long it waits at the most, ns.
        idle_ns: u64,
        age_ns: u64,
    },
}

/// What the options say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub buffers: u32,
    pub block_bytes: u64,
    pub index: Kind,
    /// The longest window of read-ahead, blocks; 0 for none.
    pub ahead_blocks: u64,
    pub writing: Writing,
}

impl Settings {
    /// Reads and checks them. The machine has `memory_bytes` of memory.
    pub fn read(
        mut options: Options<'_>,
        below: &ProviderView,
        memory_bytes: u64,
    ) -> Result<Self, SpecError> {
        let block_bytes = block_size(&mut options, below)?;
        let size_bytes = options.take_size("size")?.unwrap_or(SIZE_BYTES);
        let buffers = size_bytes / block_bytes;
        let problem = if buffers == 0 {
            Some(format!(
                "{size_bytes} bytes do not hold one block of {block_bytes}"
            ))
        } else if size_bytes > memory_bytes {
            Some(format!(
                "this machine has {memory_bytes} bytes of memory, less than {size_bytes}"
            ))
        } else if buffers > BUFFERS_MAX {
            Some(format!("a cache has at most {BUFFERS_MAX} blocks"))
        } else {
            None
        };
        if let Some(problem) = problem {
            return Err(options.invalid("size", problem));
        }
        let kinds = [(Hash::NAME, Kind::Hash), (Splay::NAME, Kind::Splay)];
        let index = options.take_choice(&kinds, "index")?.unwrap_or(Kind::Hash);
        let ahead_blocks = ahead(&mut options)? / block_bytes;
        let writing = writing(&mut options, buffers as u32, block_bytes)?;
        options.finish()?;
        Ok(Self {
            buffers: buffers as u32,
            block_bytes,
            index,
            ahead_blocks,
            writing,
        })
    }
}

fn ahead(options: &mut Options<'_>) -> Result<u64, SpecError> {
    match options.take_str("readahead") {
        None => Ok(AHEAD_BYTES),
        Some("off") => Ok(0),
        Some(text) => units::size_bytes(text, units::SECTOR_BYTES)
            .map_err(|error| options.invalid("readahead", error.to_string())),
    }
}

fn writing(
    options: &mut Options<'_>,
    buffers: u32,
    block_bytes: u64,
) -> Result<Writing, SpecError> {
    let backs = options.take_choice(&[(THROUGH, false), (BACK, true)], "write")?;
    let dirty = options.take_str("dirty");
    let idle_ns = options.take_duration_ns("idle")?;
    let age_ns = options.take_duration_ns("age")?;
    if !backs.unwrap_or(false) {
        let given = [
            ("dirty", dirty.is_some()),
            ("idle", idle_ns.is_some()),
            ("age", age_ns.is_some()),
        ];
        return match given.into_iter().find(|(_, is_given)| *is_given) {
            None => Ok(Writing::Through),
            Some((key, _)) => Err(options.invalid(key, format!("{key} goes with write=back"))),
        };
    }
    let share = |share: f64| (share * f64::from(buffers)) as u64;
    let limit = match dirty {
        None => share(DIRTY_SHARE).max(1),
        Some(text) if text.ends_with('%') => {
            share(options.take_probability("dirty")?.unwrap_or(DIRTY_SHARE))
        }
        Some(_) => options.take_size("dirty")?.unwrap_or(0) / block_bytes,
    };
    let problem = if limit == 0 {
        format!("there must be room for one dirty block of {block_bytes} bytes")
    } else if limit > u64::from(buffers) {
        let size_bytes = u64::from(buffers) * block_bytes;
        format!("the whole cache has {size_bytes} bytes")
    } else {
        let limit = limit as u32;
        return Ok(Writing::Back {
            limit,
            idle_ns: idle_ns.unwrap_or(IDLE_NS),
            age_ns: age_ns.unwrap_or(AGE_NS),
        });
    };
    Err(options.invalid("dirty", problem))
}

fn block_size(options: &mut Options<'_>, below: &ProviderView) -> Result<u64, SpecError> {
    let block_bytes = options.take_size("block")?.unwrap_or(BLOCK_BYTES);
    let sector_bytes = u64::from(below.sectorsize_bytes);
    let (name, sizes) = (&below.name, BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX);
    let problem = if !block_bytes.is_power_of_two() || !sizes.contains(&block_bytes) {
        Some("a block size is a power of two from 4k to 64k".to_owned())
    } else if block_bytes < sector_bytes {
        Some(format!(
            "a block of {block_bytes} bytes is smaller than a sector of {name}, {sector_bytes}"
        ))
    } else if !block_bytes.is_multiple_of(sector_bytes) {
        Some(format!(
            "{block_bytes} bytes are no whole number of {name}'s sectors of {sector_bytes}"
        ))
    } else {
        None
    };
    match problem {
        Some(problem) => Err(options.invalid("block", problem)),
        None => Ok(block_bytes),
    }
}
