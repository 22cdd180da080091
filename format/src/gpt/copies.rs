//! The two copies of a GPT: reading both, choosing one, and saying what is
//! wrong with the disk.

use super::{Entry, Error, Header, Table};
use crate::media::{Media, SectorRead};
use std::collections::HashMap;
use std::fmt;

/// One of the two copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// In sector 1 and after it.
    Primary,
    /// At the end of the disk.
    Backup,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Side::Primary => "primary",
            Side::Backup => "backup",
        })
    }
}

/// Both copies as they were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpt {
    /// The media that they were read from.
    pub media: Media,
    /// The copy at the beginning.
    pub primary: Result<Table, Error>,
    /// The copy at the end.
    pub backup: Result<Table, Error>,
}

/// Something about a GPT that its owner should know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Finding {
    /// A copy that cannot be used; the other one is.
    #[error("the {side} GPT is damaged: {error}")]
    Damaged {
        /// Which copy.
        side: Side,
        /// What is wrong with it.
        error: Error,
    },
    /// Two good copies that do not say the same; the primary is used.
    #[error("the backup GPT disagrees with the primary in its {field}")]
    Disagree {
        /// The first field that differs.
        field: &'static str,
    },
    /// The media is longer than when the table was made.
    #[error("the backup header is in sector {found}, the media ends with sector {last}")]
    BackupNotLast {
        /// Where the backup header is said to be.
        found: u64,
        /// Last sector of the media.
        last: u64,
    },
    /// The media is shorter than the table needs.
    #[error("the table ends with sector {needed}, the media with sector {last}: it was cut")]
    Truncated {
        /// Last sector that the table speaks of.
        needed: u64,
        /// Last sector of the media.
        last: u64,
    },
    /// A partition with something wrong.
    #[error("partition {number} ({first} to {last}) {damage}")]
    Partition {
        /// Number of the entry, from 1.
        number: usize,
        /// Its first sector.
        first: u64,
        /// Its last sector.
        last: u64,
        /// What is wrong.
        damage: Damage,
    },
}

/// What may be wrong with one entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The last sector lies before the first.
    #[error("ends before it begins")]
    Reversed,
    /// Sectors past the end of the media.
    #[error("reaches past the media, which ends with sector {last_lba}")]
    PastEnd {
        /// Last sector of the media.
        last_lba: u64,
    },
    /// Sectors outside the header's usable range.
    #[error("leaves the usable range, {first} to {last}")]
    OutsideUsable {
        /// First usable sector.
        first: u64,
        /// Last usable sector.
        last: u64,
    },
    /// Sectors that another partition has too.
    #[error("overlaps partition {other}")]
    Overlaps {
        /// Number of the other entry.
        other: usize,
    },
    /// The GUID of another partition.
    #[error("has the GUID of partition {other}")]
    SameGuid {
        /// Number of the other entry.
        other: usize,
    },
}

impl Gpt {
    /// Reads both copies: the primary in sector 1, the backup where a good
    /// primary header says, else in the last sector (as FreeBSD does).
    ///
    /// At most two headers and two tables of
    /// [`super::MAX_TABLE_SIZE_BYTES`] are read.
    pub fn read(media: Media, read: &mut SectorRead<'_>) -> Gpt {
        let header = read_header(media, 1, read);
        let backup_lba = match &header {
            Ok(header) => header.alternate_lba,
            Err(_) => media.last_lba(),
        };
        let primary = header.and_then(|header| read_table(media, header, read));
        let backup =
            read_header(media, backup_lba, read).and_then(|header| read_table(media, header, read));
        Gpt {
            media,
            primary,
            backup,
        }
    }

    /// The copy to be used: the primary if it is good, else the backup.
    pub fn best(&self) -> Option<(Side, &Table)> {
        match (&self.primary, &self.backup) {
            (Ok(table), _) => Some((Side::Primary, table)),
            (Err(_), Ok(table)) => Some((Side::Backup, table)),
            (Err(_), Err(_)) => None,
        }
    }

    /// True when either copy begins with the signature: the disk has, or had,
    /// a GPT. An error of the reader counts as no.
    pub fn is_present(&self) -> bool {
        let signed = |copy: &Result<Table, Error>, lba| match copy {
            Ok(_) => true,
            Err(Error::Signature { .. } | Error::Read { .. }) => false,
            Err(Error::Short { lba: at, .. }) => *at != lba,
            Err(_) => true,
        };
        signed(&self.primary, 1) || signed(&self.backup, self.media.last_lba())
    }

    /// Everything that is wrong, in the order: copies, media, partitions.
    /// Empty for a healthy disk, and when there is no usable copy.
    pub fn findings(&self) -> Vec<Finding> {
        let Some((_, table)) = self.best() else {
            return Vec::new();
        };
        let mut findings = Vec::new();
        for (side, copy) in [(Side::Primary, &self.primary), (Side::Backup, &self.backup)] {
            if let Err(error) = copy {
                findings.push(Finding::Damaged {
                    side,
                    error: error.clone(),
                });
            }
        }
        if let (Ok(primary), Ok(backup)) = (&self.primary, &self.backup)
            && let Some(field) = difference(&primary.header, &backup.header)
        {
            findings.push(Finding::Disagree { field });
        }
        let last = self.media.last_lba();
        let end = table.header.my_lba.max(table.header.alternate_lba);
        let needed = end.max(table.header.last_usable);
        if needed > last {
            findings.push(Finding::Truncated { needed, last });
        } else if end < last {
            findings.push(Finding::BackupNotLast { found: end, last });
        }
        check_partitions(table, last, &mut findings);
        findings
    }
}

fn read_header(media: Media, lba: u64, read: &mut SectorRead<'_>) -> Result<Header, Error> {
    let sector = read_sectors(media, lba, 1, read)?;
    Header::decode(&sector, lba)
}

fn read_table(media: Media, header: Header, read: &mut SectorRead<'_>) -> Result<Table, Error> {
    let count = header.table_sectors(media.sector_size_bytes);
    let data = read_sectors(media, header.table_lba, count, read)?;
    Table::decode(header, &data)
}

/// Reads, after checking that the sectors exist: a header may name any.
fn read_sectors(
    media: Media,
    lba: u64,
    count: u64,
    read: &mut SectorRead<'_>,
) -> Result<Vec<u8>, Error> {
    let expected = (count as usize).saturating_mul(media.sector_len());
    if lba.checked_add(count).is_none_or(|end| end > media.sectors) {
        let there = media.sectors.saturating_sub(lba).min(count) as usize;
        return Err(Error::Short {
            lba,
            found: there * media.sector_len(),
            expected,
        });
    }
    let last = lba + count.saturating_sub(1);
    let data = read(lba, count).map_err(|reason| Error::Read { lba, last, reason })?;
    if data.len() < expected {
        return Err(Error::Short {
            lba,
            found: data.len(),
            expected,
        });
    }
    Ok(data)
}

/// The first field that two good headers must share and do not.
fn difference(primary: &Header, backup: &Header) -> Option<&'static str> {
    let fields = [
        ("disk GUID", primary.disk_guid == backup.disk_guid),
        ("revision", primary.revision == backup.revision),
        (
            "first usable sector",
            primary.first_usable == backup.first_usable,
        ),
        (
            "last usable sector",
            primary.last_usable == backup.last_usable,
        ),
        (
            "number of entries",
            primary.entry_count == backup.entry_count,
        ),
        (
            "entry size",
            primary.entry_size_bytes == backup.entry_size_bytes,
        ),
        ("table", primary.table_crc == backup.table_crc),
        ("alternate sector", primary.my_lba == backup.alternate_lba),
    ];
    fields.iter().find(|field| !field.1).map(|field| field.0)
}

fn check_partitions(table: &Table, last_lba: u64, findings: &mut Vec<Finding>) {
    let mut report = |number: usize, entry: &Entry, damage| {
        let (first, last) = (entry.first, entry.last);
        findings.push(Finding::Partition {
            number,
            first,
            last,
            damage,
        });
    };
    let mut guids = HashMap::new();
    let (first, last) = (table.header.first_usable, table.header.last_usable);
    for (number, entry) in table.partitions() {
        if entry.last < entry.first {
            report(number, entry, Damage::Reversed);
        } else if entry.first < first || entry.last > last {
            report(number, entry, Damage::OutsideUsable { first, last });
        }
        if entry.last > last_lba {
            report(number, entry, Damage::PastEnd { last_lba });
        }
        if let Some(other) = guids.insert(entry.guid, number) {
            report(number, entry, Damage::SameGuid { other });
        }
    }
    let mut order: Vec<_> = table
        .partitions()
        .filter(|(_, entry)| entry.sectors() > 0)
        .collect();
    order.sort_by_key(|(_, entry)| entry.first);
    let mut furthest: Option<(usize, u64)> = None;
    for (number, entry) in order {
        if let Some((other, reach)) = furthest
            && entry.first <= reach
        {
            report(number, entry, Damage::Overlaps { other });
        }
        if furthest.is_none_or(|(_, reach)| entry.last > reach) {
            furthest = Some((number, entry.last));
        }
    }
}
