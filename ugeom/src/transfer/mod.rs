//! Moving bytes between a provider and a stream, at any alignment, with several requests in
//! flight and bounded memory.
//!
//! ```text
//!   offset ──┐                                        ┌── offset + length
//!   |...#####|########|########|########|########|###....|
//!    block 0   block 1  ...   DEPTH of them in flight
//! ```
//!
//! Blocks begin at multiples of their own size, so that all but the first and the last are whole.
//! A reader asks for the sectors around what it wants. A writer sends the blocks that consist of
//! whole sectors as they are, and the one at either end that does not through
//! [`ugeom_stack::Unaligned`]. Holes are asked for ([`stretches`]) and neither read nor written.

pub mod input;
pub mod read;
pub mod rescue;
pub mod sink;
pub mod stretches;
pub mod write;

use crate::failure::Usage;
use anyhow::Result;
use std::ops::Range;
use ugeom_measure::units::grouped;
use ugeom_stack::ProviderView;

/// The size of a block in bytes, or one sector if that is more.
const BLOCK_BYTES: u64 = 1 << 20;
/// How many requests are in flight. With the size of a block it bounds the memory.
const DEPTH: usize = 8;

/// Sizes that a transfer needs to know.
#[derive(Clone, Copy)]
pub struct Geometry {
    sector_bytes: u64,
    block_bytes: u64,
}

impl Geometry {
    /// The sizes of a provider.
    pub fn of(provider: &ProviderView) -> Self {
        Self::in_blocks(provider, BLOCK_BYTES)
    }

    /// The same with blocks of that many bytes, or of one sector if that is more.
    fn in_blocks(provider: &ProviderView, bytes: u64) -> Self {
        let sector_bytes = u64::from(provider.sectorsize_bytes).max(1);
        Self {
            sector_bytes,
            block_bytes: (bytes / sector_bytes).max(1) * sector_bytes,
        }
    }

    /// The end of the block that `offset` lies in.
    fn block_end(self, offset: u64) -> u64 {
        (offset - offset % self.block_bytes).saturating_add(self.block_bytes)
    }

    fn is_aligned(self, offset: u64) -> bool {
        offset.is_multiple_of(self.sector_bytes)
    }

    /// The sectors around a range.
    fn sectors(self, range: &Range<u64>) -> Range<u64> {
        let start = range.start - range.start % self.sector_bytes;
        start..range.end.next_multiple_of(self.sector_bytes)
    }
}

/// The bytes of a provider that `--offset` and `--length` mean; without a length all up to the
/// end.
///
/// # Errors
/// Wrong usage when they reach past the end of the media.
pub fn range(provider: &ProviderView, offset: u64, length: Option<u64>) -> Result<Range<u64>> {
    let media = provider.mediasize_bytes;
    let name = &provider.name;
    let refuse = |what: String| {
        let size = grouped(media);
        Err(Usage(format!(
            "{what} lies past the end of {name}, which has {size} bytes"
        ))
        .into())
    };
    if offset > media {
        return refuse(format!("offset {}", grouped(offset)));
    }
    let length = length.unwrap_or(media - offset);
    match offset.checked_add(length) {
        Some(end) if end <= media => Ok(offset..end),
        _ => {
            let (length, offset) = (grouped(length), grouped(offset));
            refuse(format!("the end of {length} bytes at offset {offset}"))
        }
    }
}
