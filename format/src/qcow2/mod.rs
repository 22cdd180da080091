//! The header of a qcow2 image: the facts needed before the image is opened, above all the other
//! files that it names.
//!
//! ```text
//! byte  0  "QFI\xfb"            4  version u32 (2 or 3)
//!       8  backing name u64    16  its length u32     20  cluster bits u32
//!      24  disk size u64       32  encryption u32     36  L1 entries u32, 40 L1 table u64
//!      48  refcount table u64  56  its clusters u32   60  snapshots u32, 64 their table u64
//!      72  incompatible u64    80  compatible u64     88  autoclear u64     (version 3)
//!      96  refcount order u32 100  header length u32 104  compression u8    (version 3)
//!       H  extensions: type u32, length u32, data, filled up to 8 bytes; type 0 ends them
//! ```
//! All integers are big-endian. Source: QEMU `docs/interop/qcow2.rst`; `docs/formats/qcow2.md`.

mod counts;
mod structures;

pub use structures::{Fault, Structures};

use crate::text::begins;
use crate::{ReadAt, bytes};
use std::io;
use std::ops::Range;

/// Bytes at the start of an image that [`Header::decode`] looks at, at most: the header lies within
/// the first cluster, and names are no longer than 1023 bytes.
pub const HEAD_BYTES: usize = 64 << 10;

const MAGIC: [u8; 4] = *b"QFI\xfb";
const V2_BYTES: usize = 72;
const V3_BYTES: usize = 104;
/// The longest name of another file, bytes.
const NAME_BYTES_MAX: usize = 1023;
const CLUSTER_BITS: std::ops::RangeInclusive<u32> = 9..=21;
/// The largest tables that qemu takes (`block/qcow2.h`), bytes and snapshots.
const L1_BYTES_MAX: u64 = 32 << 20;
const REFCOUNT_TABLE_BYTES_MAX: u64 = 8 << 20;
/// The offset in an entry of the refcount table.
const REFCOUNT_OFFSET_BITS: u64 = !0x1ff;
const SNAPSHOTS_MAX: u64 = 65536;
/// The fixed part of an entry in the table of snapshots.
const SNAPSHOT_BYTES_MIN: u64 = 40;
/// The largest refcounts have 2^6 bits.
const REFCOUNT_ORDER_MAX: u32 = 6;
const BACKING_FORMAT: u32 = 0xe279_2aca;
const DATA_FILE: u32 = 0x4441_5441;

/// A table that is no larger than `most` bytes.
fn table_of(place: &Range<u64>, most: u64, read: &mut ReadAt<'_>) -> io::Result<Vec<u8>> {
    let length = place.end.saturating_sub(place.start);
    if length > most {
        return Err(io::Error::other("a table is larger than any image needs"));
    }
    read(place.start, length as usize)
}

/// Bits of [`Header::incompatible`]: an image with an unknown one is not opened.
pub mod incompatible {
    /// The refcounts may be wrong: the image was not closed.
    pub const DIRTY: u64 = 1;
    /// Its structures are damaged, by its own last user's word.
    pub const CORRUPT: u64 = 2;
    /// The data lies in another file.
    pub const DATA_FILE: u64 = 4;
    /// An entry of an L2 table has 16 bytes instead of 8.
    pub const EXTENDED_L2: u64 = 16;
}

/// Why bytes are no header of a qcow2 image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum Error {
    #[error("the header ends at byte {found}, {needed} are needed")]
    Short { found: usize, needed: usize },
    #[error("no qcow2 image: {}", begins(found, b"QFI\xfb"))]
    Magic { found: [u8; 4] },
    #[error("version {found} at byte 4, expected 2 or 3")]
    Version { found: u32 },
    /// A cluster size that qemu refuses.
    #[error("cluster bits {found} at byte 20, expected 9 to 21")]
    ClusterBits { found: u32 },
    #[error("header length {found} at byte 100, expected a multiple of 8 from 104 on")]
    HeaderLength { found: u32 },
    /// The name of another file is not where it should be, or no text.
    #[error("the name of the {what} at byte {offset}, {length} bytes: {problem}")]
    Name {
        /// `backing file`, `backing format` or `data file`.
        what: &'static str,
        offset: u64,
        /// Its length in bytes.
        length: u64,
        problem: &'static str,
    },
    /// A table that cannot be where the header places it.
    #[error("the {what} at byte {offset}, {length} bytes: {problem}")]
    Table {
        /// `L1 table`, `refcount table` or `table of snapshots`.
        what: &'static str,
        offset: u64,
        /// Its length in bytes.
        length: u64,
        problem: &'static str,
    },
    #[error("a disk of {size_bytes} bytes needs {needed} entries in the L1 table, it has {found}")]
    Uncovered {
        size_bytes: u64,
        needed: u64,
        found: u64,
    },
}

/// The image that lies below another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backing {
    /// Its file name, relative to the folder of the image that names it.
    pub name: String,
    /// Its format, if the image tells it.
    pub format: Option<String>,
}

/// The fields of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Version of the format, 2 or 3.
    pub version: u32,
    /// The size of the disk inside, bytes.
    pub size_bytes: u64,
    /// The size of a cluster, bytes.
    pub cluster_bytes: u64,
    /// 0, or the number of an encryption method.
    pub encryption: u32,
    /// Where the L1 table is, which has 8 bytes for each L2 table.
    pub l1: Range<u64>,
    /// Where the table of refcount blocks is.
    pub refcounts: Range<u64>,
    /// The size of a refcount, bits: a power of two; 0 if the header has no valid one.
    pub refcount_bits: u32,
    /// Where the table of snapshots begins, and their number.
    pub snapshots: (u64, u32),
    /// Features without which the image cannot be read; bits of [`incompatible`], 0 in version 2.
    pub incompatible: u64,
    /// Features that a writer that does not know them has to clear, such as bitmaps (bit 0); 0 in
    /// version 2.
    pub autoclear: u64,
    /// The image below, if there is one.
    pub backing: Option<Backing>,
    /// The name of the file that holds the data, if it is not this one.
    pub data_file: Option<String>,
}

impl Header {
    /// Reads the header from the first bytes of an image, at most [`HEAD_BYTES`] of them.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn decode(data: &[u8]) -> Result<Self, Error> {
        let data = &data[..data.len().min(HEAD_BYTES)];
        need(data, V2_BYTES)?;
        let magic = [data[0], data[1], data[2], data[3]];
        if magic != MAGIC {
            return Err(Error::Magic { found: magic });
        }
        let version = bytes::u32_be(data, 4);
        if !(2..=3).contains(&version) {
            return Err(Error::Version { found: version });
        }
        let bits = bytes::u32_be(data, 20);
        if !CLUSTER_BITS.contains(&bits) {
            return Err(Error::ClusterBits { found: bits });
        }
        let (incompatible, autoclear, order, header_bytes) = if version == 2 {
            (0, 0, 4, V2_BYTES)
        } else {
            need(data, V3_BYTES)?;
            let found = bytes::u32_be(data, 100);
            if (found as usize) < V3_BYTES || !found.is_multiple_of(8) {
                return Err(Error::HeaderLength { found });
            }
            (
                bytes::u64_be(data, 72),
                bytes::u64_be(data, 88),
                bytes::u32_be(data, 96),
                found as usize,
            )
        };
        let (offset, length) = (bytes::u64_be(data, 8), bytes::u32_be(data, 16));
        let (l1_at, refcounts_at) = (bytes::u64_be(data, 40), bytes::u64_be(data, 48));
        let end = match offset {
            0 => data.len().min(1 << bits),
            start => data.len().min(usize::try_from(start).unwrap_or(usize::MAX)),
        };
        let (format, data_file) = extensions(data.get(..end).unwrap_or(data), header_bytes)?;
        let backing = match offset {
            0 => None,
            start => Some(Backing {
                name: name(data, "backing file", start, u64::from(length))?,
                format,
            }),
        };
        Ok(Self {
            version,
            size_bytes: bytes::u64_be(data, 24),
            cluster_bytes: 1 << bits,
            encryption: bytes::u32_be(data, 32),
            l1: l1_at..l1_at.saturating_add(u64::from(bytes::u32_be(data, 36)) * 8),
            refcounts: refcounts_at
                ..refcounts_at.saturating_add(u64::from(bytes::u32_be(data, 56)) << bits),
            refcount_bits: if order <= REFCOUNT_ORDER_MAX {
                1 << order
            } else {
                0
            },
            snapshots: (bytes::u64_be(data, 64), bytes::u32_be(data, 60)),
            incompatible,
            autoclear,
            backing,
            data_file,
        })
    }

    /// Checks that the L1 table covers the disk and lies in a file of this length.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn check_map(&self, file_bytes: u64) -> Result<(), Error> {
        self.check_table("L1 table", &self.l1, L1_BYTES_MAX, file_bytes)?;
        let entry_bytes = match self.incompatible & incompatible::EXTENDED_L2 {
            0 => 8,
            _ => 16,
        };
        let covered = self.cluster_bytes * (self.cluster_bytes / entry_bytes);
        let (needed, found) = (
            self.size_bytes.div_ceil(covered),
            (self.l1.end - self.l1.start) / 8,
        );
        if found < needed {
            return Err(Error::Uncovered {
                size_bytes: self.size_bytes,
                needed,
                found,
            });
        }
        Ok(())
    }

    /// Checks the place of the tables that only writers need: refcounts and snapshots.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn check_accounts(&self, file_bytes: u64) -> Result<(), Error> {
        let what = "refcount table";
        self.check_table(what, &self.refcounts, REFCOUNT_TABLE_BYTES_MAX, file_bytes)?;
        if self.refcounts.is_empty() {
            return Err(Error::Table {
                what,
                offset: self.refcounts.start,
                length: 0,
                problem: "it is empty",
            });
        }
        let (start, count) = self.snapshots;
        let table = start..start.saturating_add(u64::from(count) * SNAPSHOT_BYTES_MIN);
        let largest = SNAPSHOTS_MAX * SNAPSHOT_BYTES_MIN;
        self.check_table("table of snapshots", &table, largest, file_bytes)
    }

    fn check_table(
        &self,
        what: &'static str,
        table: &Range<u64>,
        bytes_max: u64,
        file_bytes: u64,
    ) -> Result<(), Error> {
        let length = table.end - table.start;
        // The last cluster of a file may be there in part.
        let end = file_bytes.next_multiple_of(self.cluster_bytes);
        let problem = if !table.start.is_multiple_of(self.cluster_bytes) {
            "its offset is no multiple of the cluster size"
        } else if length > bytes_max {
            "it is larger than any image needs"
        } else if (length > 0 && table.end > end) || table.end > i64::MAX as u64 {
            "it lies past the end of the file"
        } else {
            return Ok(());
        };
        Err(Error::Table {
            what,
            offset: table.start,
            length,
            problem,
        })
    }
}

fn need(data: &[u8], needed: usize) -> Result<(), Error> {
    let found = data.len();
    if found < needed {
        return Err(Error::Short { found, needed });
    }
    Ok(())
}

/// The format of the backing image and the name of the data file, as the extensions tell them.
fn extensions(data: &[u8], from: usize) -> Result<(Option<String>, Option<String>), Error> {
    let (mut format, mut data_file) = (None, None);
    let mut at = from;
    while let Some(head) = data.get(at..at + 8) {
        let (kind, length) = (bytes::u32_be(head, 0), bytes::u32_be(head, 4));
        let start = at as u64 + 8;
        match kind {
            0 => break,
            BACKING_FORMAT => {
                format = Some(name(data, "backing format", start, u64::from(length))?);
            }
            DATA_FILE => data_file = Some(name(data, "data file", start, u64::from(length))?),
            _ => {}
        }
        let next = start + u64::from(length).next_multiple_of(8);
        // Past the end there is none; on a machine of 32 bits it may not fit at all.
        at = usize::try_from(next).unwrap_or(usize::MAX - 8);
    }
    Ok((format, data_file))
}

fn name(data: &[u8], what: &'static str, offset: u64, length: u64) -> Result<String, Error> {
    let wrong = |problem| Error::Name {
        what,
        offset,
        length,
        problem,
    };
    if length > NAME_BYTES_MAX as u64 {
        return Err(wrong("more than 1023 bytes"));
    }
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let end = start.saturating_add(length as usize);
    let found = data.get(start..end);
    let found = found.ok_or_else(|| wrong("it lies outside of the header"))?;
    if found.is_empty() || found.contains(&0) {
        return Err(wrong("it is empty or holds a NUL"));
    }
    let text = str::from_utf8(found).map_err(|_| wrong("it is not UTF-8"))?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests;
