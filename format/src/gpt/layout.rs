//! Where the parts of a GPT go on a media: new tables, the second copy of a
//! table, and tables moved to the end of a media that grew.

use super::{ENTRY_SIZE_BYTES, Entries, Guid, Header, MIN_RESERVED_BYTES, REVISION, Side, Table};
use super::{MAX_ENTRIES, MAX_TABLE_SIZE_BYTES};
use crate::media::{Media, SectorWrite};

/// Why a table cannot be placed on a media.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum LayoutError {
    #[error("a GPT of {entries} entries needs {needed} sectors, the media has {found}")]
    TooSmall {
        entries: u32,
        needed: u64,
        found: u64,
    },
    /// Too many entries, or none.
    #[error("a GPT of {0} entries cannot be made, 1 to {MAX_ENTRIES} are possible")]
    EntryCount(u32),
    /// A partition that would lie over the backup copy or past the media.
    #[error(
        "partition {number} ends with sector {last}, \
         the backup GPT has to begin with sector {backup}: without the partition's line, the text \
         of `ugeom part backup` makes a table that fits (`ugeom part restore -F --uuids`)"
    )]
    InTheWay {
        /// Number of the entry, from 1.
        number: usize,
        last: u64,
        /// First sector of the backup table.
        backup: u64,
    },
}

impl Table {
    /// An empty primary table of `entries` entries for a media.
    ///
    /// At least [`MIN_RESERVED_BYTES`] are reserved on both sides, however few
    /// the entries are.
    ///
    /// # Errors
    /// [`LayoutError::EntryCount`] and [`LayoutError::TooSmall`].
    pub fn create(media: Media, entries: u32, disk_guid: Guid) -> Result<Table, LayoutError> {
        let size = u64::from(entries) * ENTRY_SIZE_BYTES as u64;
        if !(1..=MAX_ENTRIES).contains(&entries) || size > MAX_TABLE_SIZE_BYTES {
            return Err(LayoutError::EntryCount(entries));
        }
        let reserved = media.sectors_for(size.max(MIN_RESERVED_BYTES));
        let needed = 2 * reserved + 4;
        if media.sectors < needed {
            return Err(LayoutError::TooSmall {
                entries,
                needed,
                found: media.sectors,
            });
        }
        let header = Header {
            revision: REVISION,
            my_lba: 1,
            alternate_lba: media.last_lba(),
            first_usable: 2 + reserved,
            last_usable: media.last_lba() - reserved - 1,
            disk_guid,
            table_lba: 2,
            entry_count: entries,
            entry_size_bytes: ENTRY_SIZE_BYTES as u32,
            table_crc: 0,
            extra: Vec::new(),
        };
        let mut table = Table {
            header,
            entries: Entries::unused(entries as usize),
        };
        table.encode_entries(media.sector_size_bytes);
        Ok(table)
    }

    /// Fits a table to a media: the backup in its last sectors, the usable
    /// range up to there. The first usable sector stays where it is.
    ///
    /// # Errors
    /// [`LayoutError::TooSmall`], and [`LayoutError::InTheWay`] for the first
    /// partition that reaches into the backup's place.
    pub fn fit(&mut self, media: Media) -> Result<(), LayoutError> {
        let header = &self.header;
        let table = header.table_sectors(media.sector_size_bytes);
        let reserved = table.max(media.sectors_for(MIN_RESERVED_BYTES));
        let needed = header
            .first_usable
            .saturating_add(reserved)
            .saturating_add(2);
        if media.sectors < needed {
            let (entries, found) = (header.entry_count, media.sectors);
            return Err(LayoutError::TooSmall {
                entries,
                needed,
                found,
            });
        }
        // A table whose partitions end inside the usual reserve but before the
        // backup itself is legal: the range is widened for them, as gpart does.
        let backup = media.last_lba() - table;
        let reach = self
            .partitions()
            .map(|(_, entry)| entry.last)
            .max()
            .unwrap_or(0);
        if reach >= backup {
            let entry = self.partitions().find(|(_, entry)| entry.last >= backup);
            let (number, last) = entry.map_or((0, reach), |(number, entry)| (number, entry.last));
            return Err(LayoutError::InTheWay {
                number,
                last,
                backup,
            });
        }
        self.header.last_usable = reach.max(media.last_lba() - reserved - 1);
        *self = self.placed(Side::Primary, media);
        Ok(())
    }

    /// This table as the copy on `side` of the media.
    pub fn placed(&self, side: Side, media: Media) -> Table {
        let mut copy = self.clone();
        copy.encode_entries(media.sector_size_bytes);
        let header = &mut copy.header;
        let sectors = header.table_sectors(media.sector_size_bytes);
        let last = media.last_lba();
        (header.my_lba, header.alternate_lba, header.table_lba) = match side {
            Side::Primary => (1, last, self.primary_table_lba(sectors)),
            Side::Backup => (last, 1, last.saturating_sub(sectors)),
        };
        copy
    }

    /// A primary table keeps its place; a backup does not say where the
    /// primary's was, so it goes to the usual one.
    fn primary_table_lba(&self, sectors: u64) -> u64 {
        let at = self.header.table_lba;
        let usable = at >= 2 && at.saturating_add(sectors) <= self.header.first_usable;
        if self.header.my_lba == 1 && usable {
            at
        } else {
            2
        }
    }

    /// Both copies as sector writes, in an order that leaves one good copy at
    /// every moment: backup table, backup header, primary table, primary
    /// header. The protective MBR is not among them.
    pub fn encode(&self, media: Media) -> Vec<SectorWrite> {
        let size = media.sector_size_bytes;
        [Side::Backup, Side::Primary]
            .into_iter()
            .flat_map(|side| {
                let mut copy = self.placed(side, media);
                let data = copy.encode_entries(size);
                let table = SectorWrite {
                    lba: copy.header.table_lba,
                    data,
                };
                let header = SectorWrite {
                    lba: copy.header.my_lba,
                    data: copy.header.encode(size),
                };
                [table, header]
            })
            .collect()
    }
}
