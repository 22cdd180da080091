//! Where an image keeps its own structures, and whether its reference counts know them.
//!
//! A writer that trusts wrong counts takes the header or the map for free clusters, and one that
//! trusts a wrong entry of the map writes data over them: both lose the whole image. qemu refuses
//! such writes (`block/qcow2-refcount.c`, `qcow2_check_metadata_overlap`).

use super::counts::Counts;
use super::{
    Header, L1_BYTES_MAX, REFCOUNT_OFFSET_BITS, REFCOUNT_TABLE_BYTES_MAX, SNAPSHOTS_MAX, table_of,
};
use crate::{ReadAt, bytes};
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::io;
use std::ops::Range;

/// The offset in an entry of a table, whose other bits are flags.
const OFFSET_BITS: u64 = 0x00ff_ffff_ffff_fe00;
/// In an entry of the L1 table: no snapshot uses the L2 table, which is changed in place.
const COPIED: u64 = 1 << 63;
/// The fixed part of an entry in the table of snapshots, bytes.
const SNAPSHOT_BYTES: usize = 40;
/// More clusters of structures than the largest L1 table has entries.
const CLUSTERS_MAX: u64 = 2 * L1_BYTES_MAX / 8;
/// So much of the L1 tables of snapshots is read, bytes: 4096 snapshots of a disk of 1 TiB in
/// clusters of 64 KiB. The L2 tables of the others are not known.
const SNAPSHOT_TABLES_BYTES: u64 = 64 << 20;
/// So many clusters past the end of the file may be in use in a row: a write that failed leaves
/// some, and a search for a free one passes over them in a tenth of a second.
const PAST_END_MAX: u64 = 1 << 20;

/// What is in a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    name: &'static str,
    /// How many tables point to it, as far as they are known.
    uses: u32,
    /// All of them are L1 tables, of the disk and of snapshots.
    is_l2: bool,
}

/// Why an image cannot be written to: the next change of its map would destroy a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The cluster of a structure counts as free, or an L2 table as that of fewer snapshots than
    /// use it.
    Uncounted {
        /// Where in the file.
        offset: u64,
        /// What is there.
        name: &'static str,
        /// Its reference count.
        count: u64,
        /// How many tables point to it.
        uses: u32,
    },
    /// Two tables point to a structure that only one of them can own.
    Shared {
        /// Where in the file.
        offset: u64,
        /// What is there.
        name: &'static str,
    },
    /// An L2 table of a snapshot would be changed in place.
    Changed {
        /// Where in the file.
        offset: u64,
    },
    /// Clusters past the end of the file are in use: a search for a free one could last for hours.
    PastTheEnd,
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uncounted {
                offset,
                name,
                count: 0,
                ..
            } => write!(
                f,
                "its reference counts take {name} at byte {offset} of the file for free space"
            ),
            Self::Uncounted {
                offset,
                name,
                count,
                uses,
            } => write!(
                f,
                "{name} at byte {offset} of the file has {uses} uses, and a reference count of \
                 {count}"
            ),
            Self::Shared { offset, name } => {
                write!(
                    f,
                    "two of its tables point to {name} at byte {offset} of the file"
                )
            }
            Self::Changed { offset } => write!(
                f,
                "the L2 table at byte {offset} of the file is marked COPIED, and a snapshot uses \
                 it, too"
            ),
            Self::PastTheEnd => write!(
                f,
                "more than {PAST_END_MAX} clusters past the end of the file have reference counts"
            ),
        }
    }
}

/// The clusters with structures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Structures {
    cluster_bytes: u64,
    /// The offset of each cluster, and what it holds.
    clusters: BTreeMap<u64, Held>,
    /// Clusters that were added, also those that were there already.
    added: u64,
    /// The L2 tables that the disk changes in place.
    own: Vec<u64>,
}

impl Structures {
    /// Header, L1 table, L2 tables, reference counts, snapshots with their L1 and L2 tables: of the
    /// latter those that [`SNAPSHOT_TABLES_BYTES`] of L1 tables name.
    ///
    /// # Errors
    /// A table cannot be read, or is larger than any image needs.
    pub fn read(header: &Header, read: &mut ReadAt<'_>) -> io::Result<Self> {
        let cluster_bytes = header.cluster_bytes;
        let mut found = Self {
            cluster_bytes,
            clusters: BTreeMap::new(),
            added: 0,
            own: Vec::new(),
        };
        let cluster = |at: u64| at..at.saturating_add(1);
        found.add(cluster(0), "its header")?;
        let (table, most) = (&header.refcounts, REFCOUNT_TABLE_BYTES_MAX);
        for entry in entries(table, most, read)? {
            let block = entry & REFCOUNT_OFFSET_BITS;
            if block > 0 {
                found.add(cluster(block), "a refcount block")?;
            }
        }
        found.add(table.clone(), "its refcount table")?;
        let tables = snapshots(header, read)?;
        for l1 in &tables {
            found.add(l1.clone(), "the L1 table of a snapshot")?;
        }
        let (start, count) = header.snapshots;
        let length = u64::from(count) * SNAPSHOT_BYTES as u64;
        let table = start..start.saturating_add(length);
        found.add(table, "its table of snapshots")?;
        for entry in entries(&header.l1, L1_BYTES_MAX, read)? {
            found.add_l2(entry & OFFSET_BITS, "an L2 table");
            if entry & COPIED != 0 {
                found.own.push(entry & OFFSET_BITS);
            }
        }
        found.add_snapshots(&tables, read)?;
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
        for cluster in first..end {
            let held = self.held(cluster * self.cluster_bytes, name);
            held.is_l2 = false;
        }
        Ok(())
    }

    /// One more use of a cluster.
    fn held(&mut self, offset: u64, name: &'static str) -> &mut Held {
        let unused = Held {
            name,
            uses: 0,
            is_l2: true,
        };
        let held = self.clusters.entry(offset).or_insert(unused);
        held.name = name;
        held.uses = held.uses.saturating_add(1);
        held
    }

    fn add_l2(&mut self, table: u64, name: &'static str) {
        if table > 0 {
            self.held(table - table % self.cluster_bytes, name);
        }
    }

    /// The L2 tables of snapshots. More than any image needs are passed over, since these only keep
    /// snapshots from changes.
    fn add_snapshots(&mut self, tables: &[Range<u64>], read: &mut ReadAt<'_>) -> io::Result<()> {
        let mut left_bytes = SNAPSHOT_TABLES_BYTES;
        for table in tables {
            left_bytes = left_bytes.saturating_sub(table.end - table.start);
            if left_bytes == 0 {
                return Ok(());
            }
            for entry in entries(table, L1_BYTES_MAX, read)? {
                if self.clusters.len() as u64 >= CLUSTERS_MAX {
                    return Ok(());
                }
                self.add_l2(entry & OFFSET_BITS, "an L2 table of a snapshot");
            }
        }
        Ok(())
    }

    /// The name of the first structure in a range of bytes.
    pub fn in_range(&self, offset: u64, length: u64) -> Option<&'static str> {
        let first = offset / self.cluster_bytes * self.cluster_bytes;
        let end = offset.saturating_add(length);
        let mut hit = self.clusters.range(first..end.max(first));
        hit.next().map(|(_, held)| held.name)
    }

    /// What makes a change of the map dangerous, in an image of so many bytes.
    ///
    /// # Errors
    /// A table of counts cannot be read.
    pub fn fault(
        &self,
        header: &Header,
        file_bytes: u64,
        read: &mut ReadAt<'_>,
    ) -> io::Result<Option<Fault>> {
        let mut counts = Counts::open(header, read)?;
        for (&offset, &Held { name, uses, is_l2 }) in &self.clusters {
            if uses > 1 && !is_l2 {
                return Ok(Some(Fault::Shared { offset, name }));
            }
            let count = counts.of(offset / self.cluster_bytes, read)?;
            if count < u64::from(uses) {
                return Ok(Some(Fault::Uncounted {
                    offset,
                    name,
                    count,
                    uses,
                }));
            }
        }
        let is_shared = |table: &u64| self.clusters.get(table).is_some_and(|held| held.uses > 1);
        if let Some(&offset) = self.own.iter().find(|table| is_shared(table)) {
            return Ok(Some(Fault::Changed { offset }));
        }
        let first = file_bytes.div_ceil(self.cluster_bytes);
        for cluster in first..first.saturating_add(PAST_END_MAX) {
            if counts.of(cluster, read)? == 0 {
                return Ok(None);
            }
        }
        Ok(Some(Fault::PastTheEnd))
    }
}

/// The entries of a table that are used.
fn entries(
    place: &Range<u64>,
    most: u64,
    read: &mut ReadAt<'_>,
) -> io::Result<impl Iterator<Item = u64> + use<>> {
    let table = table_of(place, most, read)?;
    let entries = (0..table.len() / 8).map(move |number| bytes::u64_be(&table, number * 8));
    Ok(entries.filter(|entry| *entry > 0))
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
