//! The reference counts of an image, of which pieces are read as they are needed.

use super::{Header, REFCOUNT_OFFSET_BITS, REFCOUNT_TABLE_BYTES_MAX, table_of};
use crate::{ReadAt, bytes};
use std::io;

/// As much of a block of counts is read at a time, bytes: a hostile table may lead to another
/// block, of up to 2 MiB, for each of millions of structures.
const PIECE_BYTES: u64 = 4096;

/// The table of an image, and the last piece that was read.
pub(super) struct Counts {
    /// An offset of a block for each entry of 8 bytes.
    table: Vec<u8>,
    /// The width of a count.
    bits: u64,
    block_clusters: u64,
    piece_bytes: u64,
    /// Its number, and its counts; nothing where no block is.
    piece: (Option<u64>, Vec<u8>),
}

impl Counts {
    /// # Errors
    /// The table cannot be read, or is larger than any image needs.
    pub fn open(header: &Header, read: &mut ReadAt<'_>) -> io::Result<Self> {
        let bits = u64::from(header.refcount_bits.max(1));
        Ok(Self {
            table: table_of(&header.refcounts, REFCOUNT_TABLE_BYTES_MAX, read)?,
            bits,
            block_clusters: header.cluster_bytes * 8 / bits,
            piece_bytes: PIECE_BYTES.min(header.cluster_bytes),
            piece: (None, Vec::new()),
        })
    }

    /// The count of a cluster; 0 where no block has it.
    ///
    /// # Errors
    /// A block cannot be read.
    pub fn of(&mut self, cluster: u64, read: &mut ReadAt<'_>) -> io::Result<u64> {
        let piece_clusters = self.piece_bytes * 8 / self.bits;
        let number = cluster / piece_clusters;
        if self.piece.0 != Some(number) {
            let block = usize::try_from(cluster / self.block_clusters).unwrap_or(usize::MAX);
            let entry = self
                .table
                .get(block.saturating_mul(8)..)
                .unwrap_or_default();
            let at = entry.first_chunk().map_or(0, |it| u64::from_be_bytes(*it));
            let inside = cluster % self.block_clusters / piece_clusters * self.piece_bytes;
            let counts = match at & REFCOUNT_OFFSET_BITS {
                0 => Vec::new(),
                at => read(at.saturating_add(inside), self.piece_bytes as usize)?,
            };
            self.piece = (Some(number), counts);
        }
        Ok(count(&self.piece.1, cluster % piece_clusters, self.bits))
    }
}

/// A count, by its number among these. Those below a byte begin with its lowest bits.
fn count(counts: &[u8], number: u64, bits: u64) -> u64 {
    let byte = (number * bits / 8) as usize;
    let Some(first) = counts.get(byte) else { return 0 };
    match bits {
        8 => u64::from(*first),
        16 => u64::from(bytes::u16_be(counts, byte)),
        32 => u64::from(bytes::u32_be(counts, byte)),
        64 => bytes::u64_be(counts, byte),
        _ => u64::from(*first) >> (number * bits % 8) & ((1 << bits) - 1),
    }
}
