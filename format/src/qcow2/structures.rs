//! Where an image keeps its own structures, and whether its reference counts know them.
//!
//! A writer that trusts wrong counts takes the header or the map for free clusters, and one that
//! trusts a wrong entry of the map writes data over them: both lose the whole image. qemu refuses
//! such writes (`block/qcow2-refcount.c`, `qcow2_check_metadata_overlap`).

use super::{Header, L1_BYTES_MAX, REFCOUNT_TABLE_BYTES_MAX, SNAPSHOTS_MAX};
use crate::bytes;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

/// The offset in an entry of a table, whose other bits are flags.
const OFFSET_BITS: u64 = 0x00ff_ffff_ffff_fe00;
const REFCOUNT_OFFSET_BITS: u64 = !0x1ff;
/// The fixed part of an entry in the table of snapshots, bytes.
const SNAPSHOT_BYTES: usize = 40;
/// As much of a block of counts is read for a structure, bytes: a hostile table may lead to another
/// block, of up to 2 MiB, for each of millions of structures.
const COUNTS_BYTES: u64 = 4096;
/// More clusters of structures than the largest L1 table has entries.
const CLUSTERS_MAX: u64 = 2 * L1_BYTES_MAX / 8;

/// Reads so many bytes from an offset of the file; zeroes past its end.
pub type ReadAt<'a> = dyn FnMut(u64, usize) -> io::Result<Vec<u8>> + 'a;

/// The clusters with structures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Structures {
    cluster_bytes: u64,
    /// The offset of each cluster, and the name of what it holds.
    clusters: BTreeMap<u64, &'static str>,
    /// Clusters that were added, also those that were there already.
    added: u64,
}

impl Structures {
    /// Header, L1 table, L2 tables, reference counts, snapshots with their L1 tables. The L2 tables
    /// of snapshots alone are not among them.
    ///
    /// # Errors
    /// A table cannot be read, or is larger than any image needs.
    pub fn read(header: &Header, read: &mut ReadAt<'_>) -> io::Result<Self> {
        let cluster_bytes = header.cluster_bytes;
        let mut found = Self {
            cluster_bytes,
            clusters: BTreeMap::new(),
            added: 0,
        };
        let cluster = |at: u64| at..at.saturating_add(1);
        found.add(cluster(0), "its header")?;
        let (table, most) = (&header.refcounts, REFCOUNT_TABLE_BYTES_MAX);
        for block in entries(table, most, REFCOUNT_OFFSET_BITS, read)? {
            found.add(cluster(block), "a refcount block")?;
        }
        found.add(table.clone(), "its refcount table")?;
        for l1 in snapshots(header, read)? {
            found.add(l1, "the L1 table of a snapshot")?;
        }
        let (start, count) = header.snapshots;
        let length = u64::from(count) * SNAPSHOT_BYTES as u64;
        let table = start..start.saturating_add(length);
        found.add(table, "its table of snapshots")?;
        for table in entries(&header.l1, L1_BYTES_MAX, OFFSET_BITS, read)? {
            found.add(cluster(table), "an L2 table")?;
        }
        found.add(header.l1.clone(), "its L1 table")?;
        Ok(found)
    }

    fn add(&mut self, bytes: Range<u64>, name: &'static str) -> io::Result<()> {
        let first = bytes.start / self.cluster_bytes;
        let end = bytes.end.div_ceil(self.cluster_bytes);
        self.added = self.added.saturating_add(end.saturating_sub(first));
        if self.added > CLUSTERS_MAX {
            return Err(io::Error::other("it has more tables than any image needs"));
        }
        let clusters = (first..end).map(|cluster| (cluster * self.cluster_bytes, name));
        self.clusters.extend(clusters);
        Ok(())
    }

    /// The name of the first structure in a range of bytes.
    pub fn in_range(&self, offset: u64, length: u64) -> Option<&'static str> {
        let first = offset / self.cluster_bytes * self.cluster_bytes;
        let end = offset.saturating_add(length);
        let mut hit = self.clusters.range(first..end.max(first));
        hit.next().map(|(_, name)| *name)
    }

    /// A structure whose cluster counts as free: its offset and name.
    ///
    /// # Errors
    /// A table of counts cannot be read.
    pub fn uncounted(
        &self,
        header: &Header,
        read: &mut ReadAt<'_>,
    ) -> io::Result<Option<(u64, &'static str)>> {
        let bits = u64::from(header.refcount_bits.max(1));
        let block_clusters = self.cluster_bytes * 8 / bits;
        let piece_bytes = COUNTS_BYTES.min(self.cluster_bytes);
        let piece_clusters = piece_bytes * 8 / bits;
        let (table, most) = (&header.refcounts, REFCOUNT_TABLE_BYTES_MAX);
        let table = table_of(table, most, read)?;
        let mut piece: (Option<u64>, Vec<u8>) = (None, Vec::new());
        for (offset, name) in &self.clusters {
            let cluster = offset / self.cluster_bytes;
            let number = cluster / piece_clusters;
            if piece.0 != Some(number) {
                let block = usize::try_from(cluster / block_clusters).unwrap_or(usize::MAX);
                let entry = table.get(block.saturating_mul(8)..).unwrap_or_default();
                let at = entry.first_chunk().map_or(0, |it| u64::from_be_bytes(*it));
                let inside = cluster % block_clusters / piece_clusters * piece_bytes;
                let bytes = match at & REFCOUNT_OFFSET_BITS {
                    0 => Vec::new(),
                    at => read(at.saturating_add(inside), piece_bytes as usize)?,
                };
                piece = (Some(number), bytes);
            }
            if !is_counted(&piece.1, cluster % piece_clusters, bits) {
                return Ok(Some((*offset, name)));
            }
        }
        Ok(None)
    }
}

/// Whether a count, by its number among these, is not 0. Counts below a byte begin with its lowest
/// bits.
fn is_counted(counts: &[u8], number: u64, bits: u64) -> bool {
    let byte = (number * bits / 8) as usize;
    match bits {
        8.. => counts
            .get(byte..byte + bits as usize / 8)
            .is_some_and(|count| count.iter().any(|byte| *byte != 0)),
        _ => counts.get(byte).is_some_and(|byte| {
            let mask = (1_u16 << bits) - 1;
            u16::from(*byte) >> (number * bits % 8) & mask != 0
        }),
    }
}

fn table_of(place: &Range<u64>, most: u64, read: &mut ReadAt<'_>) -> io::Result<Vec<u8>> {
    let length = place.end.saturating_sub(place.start);
    if length > most {
        return Err(io::Error::other("a table is larger than any image needs"));
    }
    read(place.start, length as usize)
}

/// The offsets in the entries of a table that are used.
fn entries(
    place: &Range<u64>,
    most: u64,
    bits: u64,
    read: &mut ReadAt<'_>,
) -> io::Result<Vec<u64>> {
    let table = table_of(place, most, read)?;
    let (entries, _) = table.as_chunks::<8>();
    let offsets = entries
        .iter()
        .map(|entry| u64::from_be_bytes(*entry) & bits);
    Ok(offsets.filter(|offset| *offset > 0).collect())
}

/// The L1 tables of snapshots.
fn snapshots(header: &Header, read: &mut ReadAt<'_>) -> io::Result<Vec<Range<u64>>> {
    let (mut at, count) = header.snapshots;
    let mut tables = Vec::new();
    for _ in 0..u64::from(count).min(SNAPSHOTS_MAX) {
        let entry = read(at, SNAPSHOT_BYTES)?;
        let start = bytes::u64_be(&entry, 0);
        let length = (u64::from(bytes::u32_be(&entry, 8)) * 8).min(L1_BYTES_MAX);
        tables.push(start..start.saturating_add(length));
        let id = u64::from(bytes::u16_be(&entry, 12));
        let name = u64::from(bytes::u16_be(&entry, 14));
        let extra = u64::from(bytes::u32_be(&entry, 36));
        let whole = SNAPSHOT_BYTES as u64 + extra + id + name;
        at = at.saturating_add(whole.next_multiple_of(8));
    }
    Ok(tables)
}
