//! Extended boot records: the chain that gives an MBR more than four
//! partitions (s5 and up).
//!
//! An extended partition begins with a record laid out like an MBR, of which
//! two entries count:
//!
//! ```text
//! entry of any type but 5, F, 85   the logical partition;
//!                                  its first sector counts from this record
//! entry of type 5, F or 85         the next record;
//!                                  its first sector counts from the start
//!                                  of the extended partition
//! ```
//! Every disk written so far has the logical partition first and the link
//! second; both orders are read, as Linux does. Sources: FreeBSD
//! `sys/geom/geom_mbr.c` (`g_mbrext_taste`), Linux `block/partitions/msdos.c`,
//! `docs/formats/ebr.md`.

use crate::mbr::{self, Entry, Geometry, PartType};
use std::collections::BTreeSet;

/// Most logical partitions that are followed; Linux stops at 256 partitions in
/// all, GEOM of 2002 at 32.
pub const MAX_LOGICALS: usize = 1024;

/// Why the chain ends before its end. The partitions before it stay valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum Error {
    #[error("no extended boot record at sector {lba}: {source}")]
    Record {
        /// Sector of the provider that was read.
        lba: u64,
        /// The defect.
        source: mbr::Error,
    },
    #[error("the extended boot record at sector {lba} links back to sector {next}: a loop")]
    Loop {
        /// Sector of the record that holds the link.
        lba: u64,
        next: u64,
    },
    #[error(
        "the extended boot record at sector {lba} links to sector {next}, \
         outside the extended partition (sectors {first} to {last})"
    )]
    Outside {
        /// Sector of the record that holds the link.
        lba: u64,
        next: u64,
        /// First sector of the extended partition.
        first: u64,
        /// Last sector of the extended partition.
        last: u64,
    },
    #[error("more than {MAX_LOGICALS} extended boot records, the chain ends at sector {lba}")]
    TooMany {
        /// Sector of the last record that was read.
        lba: u64,
    },
    /// A chain to be encoded does not fit in its extended partition.
    #[error("the logical partition of {sectors} sectors at sector {start} {reason}")]
    Encode {
        /// First sector of the logical partition.
        start: u64,
        sectors: u64,
        /// The part that does not fit.
        reason: &'static str,
    },
}

/// One extended boot record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ebr {
    /// The logical partition; its start counts from this record.
    pub logical: Option<Entry>,
    /// The link; its start counts from the extended partition.
    pub next: Option<Entry>,
}

impl Ebr {
    /// Decodes the record in `sector`, which was read from sector `lba`.
    ///
    /// # Errors
    /// [`Error::Record`] when it has no signature or an impossible flag.
    pub fn decode(sector: &[u8], lba: u64) -> Result<Ebr, Error> {
        let entries =
            mbr::decode_entries(sector).map_err(|source| Error::Record { lba, source })?;
        let mut ebr = Ebr::default();
        for entry in entries.iter().take(2).filter(|entry| entry.is_used()) {
            let place = if entry.kind.is_extended() {
                &mut ebr.next
            } else {
                &mut ebr.logical
            };
            place.get_or_insert(*entry);
        }
        Ok(ebr)
    }

    /// The record's 512 bytes, logical partition first, without boot code.
    pub fn encode(&self) -> [u8; mbr::SIZE_BYTES] {
        let mut sector = [0; mbr::SIZE_BYTES];
        self.logical.unwrap_or_default().encode(&mut sector, 0);
        self.next.unwrap_or_default().encode(&mut sector, 1);
        mbr::encode_signature(&mut sector);
        sector
    }
}

/// A logical partition with its place on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Logical {
    /// Sector of the record that describes it.
    pub ebr_lba: u64,
    /// First sector of its data on the disk.
    pub start: u64,
    /// Length of its data in sectors.
    pub sectors: u64,
    /// The entry as it stands in the record.
    pub entry: Entry,
}

/// The result of one record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Step {
    /// The logical partition that the record describes.
    pub logical: Option<Logical>,
    /// Why the chain ends here before its end. A good record with a bad link
    /// gives both.
    pub error: Option<Error>,
}

/// Follows a chain: asks for a sector, is given it, and yields its partitions.
///
/// All sector numbers count from the provider that holds the MBR. The walk
/// ends by itself: every link must stay inside the extended partition, no
/// record is visited twice, and no more than [`MAX_LOGICALS`] are read.
///
/// ```
/// # use ugeom_format::ebr::EbrWalk;
/// # fn read(lba: u64) -> Vec<u8> { vec![0; 512] }
/// let mut walk = EbrWalk::new(63, 1000);
/// while let Some(lba) = walk.next_lba() {
///     let step = walk.feed(&read(lba));
///     if let Some(logical) = step.logical {
///         println!("{} + {}", logical.start, logical.sectors);
///     }
///     if let Some(error) = step.error {
///         eprintln!("{error}");
///     }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct EbrWalk {
    first: u64,
    sectors: u64,
    next: Option<u64>,
    seen: BTreeSet<u64>,
}

impl EbrWalk {
    /// A walk through the extended partition of `sectors` sectors that starts
    /// at sector `start`.
    pub fn new(start: u64, sectors: u64) -> EbrWalk {
        EbrWalk {
            first: start,
            sectors,
            next: Some(start),
            seen: BTreeSet::new(),
        }
    }

    /// The sector to read next; `None` when the chain has ended.
    pub fn next_lba(&self) -> Option<u64> {
        self.next
    }

    /// Takes the sector that [`EbrWalk::next_lba`] named and answers with the
    /// logical partition in it, if there is one, and with the reason if the
    /// chain is broken there. After the end it answers nothing.
    pub fn feed(&mut self, sector: &[u8]) -> Step {
        let Some(lba) = self.next.take() else {
            return Step::default();
        };
        self.seen.insert(lba);
        let ebr = match Ebr::decode(sector, lba) {
            Ok(ebr) => ebr,
            Err(error) => {
                return Step {
                    logical: None,
                    error: Some(error),
                };
            }
        };
        let logical = ebr.logical.map(|entry| Logical {
            ebr_lba: lba,
            start: lba.saturating_add(u64::from(entry.start)),
            sectors: u64::from(entry.sectors),
            entry,
        });
        let error = ebr.next.and_then(|link| self.follow(lba, link).err());
        Step { logical, error }
    }

    fn follow(&mut self, lba: u64, link: Entry) -> Result<(), Error> {
        let next = self.first.saturating_add(u64::from(link.start));
        let last = self.first.saturating_add(self.sectors.saturating_sub(1));
        if next > last {
            return Err(Error::Outside {
                lba,
                next,
                first: self.first,
                last,
            });
        }
        if self.seen.contains(&next) {
            return Err(Error::Loop { lba, next });
        }
        if self.seen.len() >= MAX_LOGICALS {
            return Err(Error::TooMany { lba });
        }
        self.next = Some(next);
        Ok(())
    }
}

/// A logical partition to be written by [`encode_chain`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewLogical {
    /// Sector of its record, before `start`.
    pub ebr_lba: u64,
    /// First sector of its data on the disk.
    pub start: u64,
    /// Length of its data in sectors.
    pub sectors: u64,
    /// Type of its entry, as 0x83 for Linux.
    pub kind: PartType,
}

/// The records of an extended partition that starts at sector `extended`, as
/// sector writes. The partitions must be in the order of their records, and
/// the first record must be the first sector of the extended partition.
///
/// # Errors
/// [`Error::Encode`] for a record or partition out of order or too far away
/// for 32 bits, [`Error::TooMany`] for more than [`MAX_LOGICALS`].
pub fn encode_chain(
    extended: u64,
    logicals: &[NewLogical],
    geometry: Geometry,
) -> Result<Vec<(u64, [u8; mbr::SIZE_BYTES])>, Error> {
    let refuse = |at: &NewLogical, reason| Error::Encode {
        start: at.start,
        sectors: at.sectors,
        reason,
    };
    if let Some(extra) = logicals.get(MAX_LOGICALS) {
        return Err(Error::TooMany { lba: extra.ebr_lba });
    }
    let mut writes = Vec::with_capacity(logicals.len());
    let mut earliest = extended;
    for (index, logical) in logicals.iter().enumerate() {
        if index == 0 && logical.ebr_lba != extended {
            return Err(refuse(
                logical,
                "does not have its record at the extended start",
            ));
        }
        if logical.ebr_lba < earliest || logical.start <= logical.ebr_lba {
            return Err(refuse(logical, "is out of order"));
        }
        let entry = absolute_entry(logical.ebr_lba, logical, geometry)
            .ok_or_else(|| refuse(logical, "is too large for 32 bits"))?;
        earliest = logical.start.saturating_add(logical.sectors);
        let next = match logicals.get(index + 1) {
            None => None,
            Some(next) => Some(
                link_entry(extended, next, geometry)
                    .ok_or_else(|| refuse(next, "is too far away for 32 bits"))?,
            ),
        };
        writes.push((
            logical.ebr_lba,
            Ebr {
                logical: Some(entry),
                next,
            }
            .encode(),
        ));
    }
    Ok(writes)
}

/// The logical entry: start relative to the record, CHS absolute.
fn absolute_entry(ebr_lba: u64, logical: &NewLogical, geometry: Geometry) -> Option<Entry> {
    let start = u32::try_from(logical.start.checked_sub(ebr_lba)?).ok()?;
    let sectors = u32::try_from(logical.sectors).ok()?;
    Some(place(
        Entry::new(logical.kind, start, sectors, geometry),
        logical.start,
        geometry,
    ))
}

/// The link: covers the next record and its partition.
fn link_entry(extended: u64, next: &NewLogical, geometry: Geometry) -> Option<Entry> {
    let start = u32::try_from(next.ebr_lba.checked_sub(extended)?).ok()?;
    let length = next
        .start
        .checked_add(next.sectors)?
        .checked_sub(next.ebr_lba)?;
    let sectors = u32::try_from(length).ok()?;
    let entry = Entry::new(PartType::EXTENDED, start, sectors, geometry);
    Some(place(entry, next.ebr_lba, geometry))
}

fn place(mut entry: Entry, lba: u64, geometry: Geometry) -> Entry {
    let last = lba.saturating_add(u64::from(entry.sectors).saturating_sub(1));
    entry.first_chs = mbr::Chs::from_lba(lba, geometry);
    entry.last_chs = mbr::Chs::from_lba(last, geometry);
    entry
}

#[cfg(test)]
mod tests;
