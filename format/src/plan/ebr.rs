//! Editing the logical partitions in an extended one. Each has a record in
//! front of it, and the record in sector 0 begins the chain: with the first
//! partition, or with a link only.
//!
//! Sectors count from the beginning of the extended partition. The numbers are
//! those of the providers, from 5 on in the order of the chain.

use super::{Change, Create, Edit, Error, NewPart, Part, Scheme, Span, large_enough, read_exactly};
use crate::ebr::{Ebr, EbrWalk, Logical};
use crate::mbr::{Chs, Entry, Geometry, PartType, SIZE_BYTES};
use crate::media::{Media, SectorRead, SectorWrite};
use std::collections::BTreeMap;

/// Number of the first logical partition.
const FIRST_INDEX: u32 = 5;
/// Most logical partitions that are followed in a listing.
const MOST: usize = 256;
const ACTIVE: &str = "active";
const NO_LABELS: &str = "logical partitions have none";

/// A chain of extended boot records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EbrTable {
    media: Media,
    /// The records as they were read, by their sectors.
    records: BTreeMap<u64, Vec<u8>>,
    /// In the order of the chain.
    logicals: Vec<Logical>,
    damage: Option<String>,
}

impl EbrTable {
    pub(super) fn create(media: Media, create: &Create) -> Result<EbrTable, Error> {
        let (scheme, needed) = (Scheme::Ebr, 2);
        if let Some(found) = create.entries.filter(|&count| count > MOST as u32) {
            return Err(Error::EntryCount {
                scheme,
                found,
                least: 0,
                most: MOST as u32,
            });
        }
        large_enough(scheme, media, needed)?;
        Ok(EbrTable {
            media,
            records: BTreeMap::new(),
            logicals: Vec::new(),
            damage: None,
        })
    }

    pub(super) fn load(media: Media, read: &mut SectorRead<'_>) -> Result<EbrTable, Error> {
        let mut table = EbrTable {
            media,
            records: BTreeMap::new(),
            logicals: Vec::new(),
            damage: None,
        };
        let mut walk = EbrWalk::new(0, media.sectors);
        while let Some(lba) = walk.next_lba() {
            let sector = read_exactly(media, lba, 1, read)?;
            let step = walk.feed(&sector);
            table.records.insert(lba, sector);
            table.logicals.extend(step.logical);
            match step.error {
                Some(error) if lba == 0 && table.logicals.is_empty() => return Err(error.into()),
                Some(error) => table.damage = Some(error.to_string()),
                None if table.logicals.len() > MOST => {
                    table.damage = Some(format!("it has more than {MOST} logical partitions"));
                    break;
                }
                None => {}
            }
        }
        let ends: Vec<u64> = table.logicals.iter().map(end).collect();
        let places = table.logicals.iter().skip(1).zip(&ends);
        if let Some((late, _)) = places.clone().find(|(next, end)| next.ebr_lba < **end) {
            table.damage.get_or_insert(format!(
                "the record in sector {} is not behind the partition before it",
                late.ebr_lba
            ));
        }
        Ok(table)
    }

    fn place(&mut self, index: u32) -> Result<&mut Logical, Error> {
        let at = index.checked_sub(FIRST_INDEX).map(|at| at as usize);
        let logical = at.and_then(|at| self.logicals.get_mut(at));
        logical.ok_or(Error::NoSuchPartition(index))
    }

    /// The records of the chain as they are to be, by their sectors.
    fn chain(&self) -> BTreeMap<u64, Ebr> {
        let mut chain = BTreeMap::new();
        for (at, logical) in self.logicals.iter().enumerate() {
            let next = self.logicals.get(at + 1).map(link);
            let logical_entry = Some(logical.entry);
            chain.insert(
                logical.ebr_lba,
                Ebr {
                    logical: logical_entry,
                    next,
                },
            );
        }
        chain.entry(0).or_insert_with(|| Ebr {
            logical: None,
            next: self.logicals.first().map(link),
        });
        chain
    }
}

/// The sector after a partition.
fn end(logical: &Logical) -> u64 {
    logical.start.saturating_add(logical.sectors)
}

/// The entry that leads to a partition's record and covers both.
fn link(to: &Logical) -> Entry {
    let sectors = end(to) - to.ebr_lba;
    at_place(
        Entry::new(
            PartType::EXTENDED,
            u32::try_from(to.ebr_lba).unwrap_or(u32::MAX),
            u32::try_from(sectors).unwrap_or(u32::MAX),
            Geometry::LBA_ASSIST,
        ),
        to.ebr_lba,
        sectors,
    )
}

/// The entry of a partition, whose start counts from its record.
fn entry_of(kind: PartType, ebr_lba: u64, start: u64, sectors: u64) -> Option<Entry> {
    let from_record = u32::try_from(start.checked_sub(ebr_lba)?).ok()?;
    let count = u32::try_from(sectors).ok()?;
    let entry = Entry::new(kind, from_record, count, Geometry::LBA_ASSIST);
    Some(at_place(entry, start, sectors))
}

fn at_place(mut entry: Entry, start: u64, sectors: u64) -> Entry {
    entry.first_chs = Chs::from_lba(start, Geometry::LBA_ASSIST);
    let last = start.saturating_add(sectors.saturating_sub(1));
    entry.last_chs = Chs::from_lba(last, Geometry::LBA_ASSIST);
    entry
}

fn parse_kind(kind: &str) -> Result<PartType, Error> {
    let parsed = PartType::parse(kind).filter(|kind| !kind.is_extended());
    parsed.ok_or_else(|| {
        Error::unknown_type(
            Scheme::Ebr,
            kind,
            "number from 1 to 255, but not of an extended partition",
        )
    })
}

impl Edit for EbrTable {
    media_and_scheme!(Ebr);

    fn usable(&self) -> (u64, u64) {
        let sectors = self.media.sectors.min(u64::from(u32::MAX));
        (1, sectors.saturating_sub(1))
    }

    fn entries(&self) -> u32 {
        MOST as u32
    }

    fn parts(&self) -> Vec<Part> {
        let part = |(index, logical): (u32, &Logical)| Part {
            index,
            suffix: format!("s{index}"),
            start: logical.start,
            sectors: logical.sectors,
            kind: logical.entry.kind.to_string(),
            raw_kind: logical.entry.kind.0.to_string(),
            label: None,
            attributes: match logical.entry.is_active() {
                true => vec![ACTIVE],
                false => Vec::new(),
            },
        };
        (FIRST_INDEX..).zip(&self.logicals).map(part).collect()
    }

    /// The partitions with their records.
    fn occupied(&self) -> Vec<Part> {
        let mut parts = self.parts();
        for (part, logical) in parts.iter_mut().zip(&self.logicals) {
            part.sectors = end(logical).saturating_sub(logical.ebr_lba);
            part.start = logical.ebr_lba;
        }
        parts
    }

    /// One sector, for the partition's own record.
    fn lead(&self) -> u64 {
        1
    }

    /// The number follows from the place.
    fn index_at(&self, start: u64) -> Option<u32> {
        let before = self.logicals.iter().filter(|it| it.start < start).count();
        Some(FIRST_INDEX + before as u32)
    }

    fn damage(&self) -> Vec<String> {
        Vec::from_iter(self.damage.clone())
    }

    fn insert(&mut self, index: u32, span: Span, new: &NewPart) -> Result<(), Error> {
        new.refuse_label(NO_LABELS)?;
        let kind = parse_kind(&new.kind)?;
        if self.logicals.len() >= MOST {
            return Err(Error::TableFull(MOST as u32));
        }
        let at = index.saturating_sub(FIRST_INDEX) as usize;
        let first = self.logicals.first().is_none_or(|it| it.ebr_lba != 0);
        let ebr_lba = match at == 0 && first {
            true => 0,
            false => span.start - 1,
        };
        let entry = entry_of(kind, ebr_lba, span.start, span.sectors);
        let entry =
            entry.ok_or_else(|| Error::out_of_range(span.start, span.sectors, self.usable()))?;
        let logical = Logical {
            ebr_lba,
            start: span.start,
            sectors: span.sectors,
            entry,
        };
        self.logicals.insert(at.min(self.logicals.len()), logical);
        Ok(())
    }

    fn change(&mut self, index: u32, change: &Change) -> Result<(), Error> {
        if let Change::Attribute { name, .. } = change
            && !name.eq_ignore_ascii_case(ACTIVE)
        {
            return Err(self.no_attribute(name));
        }
        let on = matches!(change, Change::Attribute { on: true, .. });
        self.place(index)?;
        if on {
            self.logicals.iter_mut().for_each(|it| it.entry.flag = 0);
        }
        let logical = self.place(index)?;
        match change {
            Change::Kind(kind) => logical.entry.kind = parse_kind(kind)?,
            Change::Label(label) => return Err(Error::label(label, NO_LABELS)),
            Change::Sectors(sectors) => {
                let (kind, flag) = (logical.entry.kind, logical.entry.flag);
                if let Some(entry) = entry_of(kind, logical.ebr_lba, logical.start, *sectors) {
                    logical.entry = Entry { flag, ..entry };
                    logical.sectors = *sectors;
                }
            }
            Change::Attribute { on, .. } => logical.entry.flag = if *on { 0x80 } else { 0 },
        }
        Ok(())
    }

    fn attributes(&self) -> &'static [&'static str] {
        &[ACTIVE]
    }

    fn remove(&mut self, index: u32) -> Result<(), Error> {
        self.place(index)?;
        self.logicals.remove((index - FIRST_INDEX) as usize);
        Ok(())
    }

    /// The records that change, the last one first: a new record is whole
    /// before the one before it leads to it.
    fn encode(&self) -> Vec<SectorWrite> {
        let mut writes = Vec::new();
        for (lba, record) in self.chain().into_iter().rev() {
            let old = self.records.get(&lba);
            let same = |old: &Vec<u8>| Ebr::decode(old, lba) == Ok(record);
            if old.is_some_and(same) {
                continue;
            }
            let mut data = old.cloned().unwrap_or_default();
            data.resize(self.media.sector_len(), 0);
            let bytes = record.encode();
            let table = crate::mbr::TABLE_OFFSET_BYTES;
            crate::bytes::put(&mut data, table, &bytes[table..SIZE_BYTES]);
            writes.push(SectorWrite { lba, data });
        }
        writes
    }
}
