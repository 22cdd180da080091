//! The two copies of a GPT: reading both, choosing one, and naming the damage of the disk.

use super::header::Crc;
use super::protective::{self, MbrDamage};
use super::{Entry, Error, Header, Table};
use crate::media::{Media, SectorRead};
use std::collections::HashMap;
use std::fmt;

/// The largest single read.
const MAX_READ_BYTES: u64 = 1 << 20;

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
    /// Sector 0, or why it could not be read.
    pub sector0: Result<Vec<u8>, Error>,
    /// The copies whose only fault is a checksum, as they stand.
    doubtful: [Option<Table>; 2],
}

/// Something about a GPT that its owner should know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum Finding {
    /// A copy that cannot be used; the other one is.
    #[error("the {side} GPT is damaged: {error}")]
    Damaged {
        side: Side,
        /// The defect.
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
    #[error("the table ends with sector {needed}, the media with sector {last}: it was cut")]
    Truncated {
        /// Last sector that the table speaks of.
        needed: u64,
        /// Last sector of the media.
        last: u64,
    },
    /// Sector 0 is not the protective MBR of this GPT.
    #[error(transparent)]
    Mbr(MbrDamage),
    /// A partition with something wrong.
    #[error("partition {number} ({first} to {last}) {damage}")]
    Partition {
        /// Number of the entry, from 1.
        number: usize,
        first: u64,
        last: u64,
        damage: Damage,
    },
}

/// The defects of one entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum Damage {
    /// The last sector lies before the first.
    #[error("ends before it begins")]
    Reversed,
    #[error("reaches past the media, which ends with sector {last_lba}")]
    PastEnd {
        /// Last sector of the media.
        last_lba: u64,
    },
    #[error("leaves the usable range, {first} to {last}")]
    OutsideUsable { first: u64, last: u64 },
    /// Sectors that another partition has too.
    #[error("overlaps partition {other}")]
    Overlaps {
        /// Number of the other entry.
        other: usize,
    },
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
    /// At most sector 0, two headers and two tables of
    /// [`super::MAX_TABLE_SIZE_BYTES`] are read.
    pub fn read(media: Media, read: &mut SectorRead<'_>) -> Gpt {
        let (primary, primary_as_is) = read_copy(media, 1, read);
        let backup_lba = match primary.header {
            Some(alternate_lba) => alternate_lba,
            None => media.last_lba(),
        };
        let (backup, backup_as_is) = read_copy(media, backup_lba, read);
        Gpt {
            media,
            primary: primary.table,
            backup: backup.table,
            sector0: read_sectors(media, 0, 1, read),
            doubtful: [primary_as_is, backup_as_is],
        }
    }

    /// One copy, also where a wrong checksum is all that is wrong with it.
    pub(crate) fn as_it_stands(&self, side: Side) -> Result<&Table, &Error> {
        let (copy, doubtful) = match side {
            Side::Primary => (&self.primary, &self.doubtful[0]),
            Side::Backup => (&self.backup, &self.doubtful[1]),
        };
        match (copy, doubtful) {
            (Ok(table), _) | (Err(_), Some(table)) => Ok(table),
            (Err(error), None) => Err(error),
        }
    }

    /// The copy to be listed: the [`best`](Gpt::best) one, else one of which a checksum is wrong.
    pub fn listed(&self) -> Option<(Side, &Table)> {
        let is_table = |copy: &Result<Table, Error>| matches!(copy, Err(Error::TableCrc { .. }));
        self.best().or_else(|| {
            // A good header makes the places of its partitions more likely.
            let backup_first = is_table(&self.backup) && !is_table(&self.primary);
            let sides = match backup_first {
                true => [Side::Backup, Side::Primary],
                false => [Side::Primary, Side::Backup],
            };
            let mut sides = sides.into_iter();
            sides.find_map(|side| Some((side, self.as_it_stands(side).ok()?)))
        })
    }

    /// True when there are partitions to list, and no copy is good.
    pub fn is_doubtful(&self) -> bool {
        self.best().is_none() && self.listed().is_some()
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

    /// Everything that is wrong, in the order: copies, media, sector 0, partitions.
    /// Empty for a healthy disk, and when there is no copy to list.
    pub fn findings(&self) -> Vec<Finding> {
        let Some((_, table)) = self.listed() else { return Vec::new() };
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
        findings.extend(self.mbr_damage(table, end == last).map(Finding::Mbr));
        check_partitions(table, last, &mut findings);
        findings
    }

    fn mbr_damage(&self, table: &Table, fits: bool) -> Option<MbrDamage> {
        match &self.sector0 {
            Ok(sector0) => protective::check(sector0, self.media, table, fits),
            Err(error) => Some(MbrDamage::Missing {
                reason: error.to_string(),
            }),
        }
    }
}

/// A copy as it was read; with a good header, where that says that the other one is.
struct Copy {
    header: Option<u64>,
    table: Result<Table, Error>,
}

/// Reads a copy; also as it stands, where a checksum is all that is wrong.
fn read_copy(media: Media, lba: u64, read: &mut SectorRead<'_>) -> (Copy, Option<Table>) {
    let bad = |error| Copy {
        header: None,
        table: Err(error),
    };
    let sector = match read_sectors(media, lba, 1, read) {
        Ok(sector) => sector,
        Err(error) => return (bad(error), None),
    };
    let (header, wrong) = match Header::decode(&sector, lba) {
        Ok(header) => (header, None),
        Err(error) => match Header::decode_with(&sector, lba, Crc::Ignored) {
            Ok(header) if matches!(error, Error::HeaderCrc { .. }) => (header, Some(error)),
            _ => return (bad(error), None),
        },
    };
    let alternate = wrong.is_none().then_some(header.alternate_lba);
    let count = header.table_sectors(media.sector_size_bytes);
    let data = read_sectors(media, header.table_lba, count, read);
    let as_it_stands = |data: &[u8]| Table::decode_with(header.clone(), data, Crc::Ignored).ok();
    let (table, doubtful) = match (data, wrong) {
        (Ok(data), Some(error)) => (Err(error), as_it_stands(&data)),
        (Ok(data), None) => match Table::decode(header.clone(), &data) {
            Ok(table) => (Ok(table), None),
            Err(error) => {
                let doubtful = as_it_stands(&data);
                (Err(error), doubtful)
            }
        },
        (Err(_), Some(error)) | (Err(error), None) => (Err(error), None),
    };
    let header = alternate;
    (Copy { header, table }, doubtful)
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
    // Piece by piece: what a header claims costs no memory before it is there.
    let most = (MAX_READ_BYTES / u64::from(media.sector_size_bytes)).max(1);
    let mut data = Vec::new();
    let mut done = 0;
    while done < count {
        let (lba, piece) = (lba + done, most.min(count - done));
        let last = lba + piece - 1;
        let read = read(lba, piece).map_err(|reason| Error::Read { lba, last, reason })?;
        let short = read.len() < piece as usize * media.sector_len();
        data.extend(read);
        if short {
            break;
        }
        done += piece;
    }
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

/// Sector sizes that disks have.
const SECTOR_SIZES_BYTES: [u32; 3] = [512, 2048, 4096];

/// The sector size of another disk whose primary header stands here, where a header of a disk
/// with such sectors stands. It is whole, its checksum included.
pub fn other_sector_size(media: Media, read: &mut SectorRead<'_>) -> Option<u32> {
    let own = u64::from(media.sector_size_bytes.max(1));
    let fits = |size: &u32| {
        let wanted = u64::from(*size);
        if wanted == own {
            return false;
        }
        let count = wanted.div_ceil(own);
        let Ok(bytes) = read_sectors(media, wanted / own, count, read) else { return false };
        let header = bytes.get((wanted % own) as usize..).unwrap_or_default();
        let header = header.get(..wanted as usize).unwrap_or(header);
        Header::decode(header, 1).is_ok()
    };
    SECTOR_SIZES_BYTES.into_iter().find(fits)
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
