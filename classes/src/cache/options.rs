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
];

const fn doc(name: &'static str, value: &'static str, about: &'static str) -> OptionDoc {
    OptionDoc { name, value, about }
}

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

/// What the options say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub buffers: u32,
    pub block_bytes: u64,
    pub index: Kind,
    /// The longest window of read-ahead, blocks; 0 for none.
    pub ahead_blocks: u64,
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
        options.finish()?;
        Ok(Self {
            buffers: buffers as u32,
            block_bytes,
            index,
            ahead_blocks,
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
