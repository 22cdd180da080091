//! Where the map of an image is: its header and L1 table point to L2 tables, and those to clusters.
//!
//! Reference counts have no place in the order: the mark of an image that is not closed makes the
//! next writer count anew.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use ugeom_engine::{Layout, Rank};
use ugeom_format::qcow2::Header;
use ugeom_machine::mutex::RwLock;

/// The offset in an entry of the L1 table, whose other bits are flags.
const OFFSET_BITS: u64 = 0x00ff_ffff_ffff_fe00;
/// The largest L1 table that qemu takes, bytes.
const L1_BYTES_MAX: u64 = 32 << 20;

/// The map of one image.
#[derive(Debug)]
pub(super) struct Map {
    file: File,
    cluster_bytes: u64,
    tables: RwLock<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    l1: Range<u64>,
    /// Where L2 tables are, or have been.
    l2: HashSet<u64>,
}

impl Map {
    /// Reads the L1 table of an image.
    ///
    /// # Errors
    /// It cannot be read, or is larger than a disk needs.
    pub fn open(file: File, header: &Header) -> io::Result<Self> {
        let map = Self {
            file,
            cluster_bytes: header.cluster_bytes,
            tables: RwLock::default(),
        };
        map.look(header.l1.clone())?;
        Ok(map)
    }

    /// Whether these bytes are the L1 table, or its beginning.
    pub fn is_l1(&self, offset: u64, length: u64) -> bool {
        let tables = self.tables.read();
        tables.l1.start == offset && offset + length <= tables.l1.end
    }

    /// Whether these bytes are an L2 table.
    pub fn is_l2(&self, offset: u64, length: u64) -> bool {
        let tables = self.tables.read();
        length == self.cluster_bytes && tables.l2.contains(&offset)
    }

    /// Learns the tables that an L1 table points to.
    fn look(&self, l1: Range<u64>) -> io::Result<()> {
        if l1.end - l1.start > L1_BYTES_MAX {
            return Err(io::Error::other("its L1 table has more than 32 MiB"));
        }
        self.learn(&l1)?;
        self.tables.write().l1 = l1;
        Ok(())
    }

    /// Learns the tables that a part of an L1 table points to.
    fn learn(&self, entries: &Range<u64>) -> io::Result<()> {
        let mut bytes = vec![0; (entries.end - entries.start) as usize];
        let mut filled = 0;
        while filled < bytes.len() {
            // Data past the end of the file reads as zeroes.
            match self
                .file
                .read_at(&mut bytes[filled..], entries.start + filled as u64)?
            {
                0 => break,
                count => filled += count,
            }
        }
        let mut tables = self.tables.write();
        let (entries, _) = bytes.as_chunks::<8>();
        let offsets = entries
            .iter()
            .map(|entry| u64::from_be_bytes(*entry) & OFFSET_BITS);
        tables.l2.extend(offsets.filter(|offset| *offset > 0));
        Ok(())
    }
}

impl Layout for Map {
    fn rank(&self, offset: u64) -> Rank {
        let tables = self.tables.read();
        if offset < self.cluster_bytes || tables.l1.contains(&offset) {
            Rank::Pointer
        } else if tables.l2.contains(&(offset - offset % self.cluster_bytes)) {
            Rank::Table
        } else {
            Rank::Data
        }
    }

    fn pointers_changed(&self, offset: u64, length: u64) -> io::Result<()> {
        if offset < self.cluster_bytes {
            // The header may name another L1 table now.
            let mut head = vec![0; self.cluster_bytes.min(1 << 16) as usize];
            self.file.read_exact_at(&mut head, 0)?;
            let header = Header::decode(&head).map_err(io::Error::other)?;
            return self.look(header.l1);
        }
        let l1 = self.tables.read().l1.clone();
        let whole = |at: u64| (at.clamp(l1.start, l1.end) - l1.start) / 8 * 8 + l1.start;
        self.learn(&(whole(offset)..whole((offset + length).next_multiple_of(8))))
    }
}
