//! Editing a GPT: both copies and the protective MBR.

use super::{Change, Create, DiskId, Edit, Error, Ids, NewPart, Part, PartId, Scheme, Span};
use crate::gpt::{ATTR_BOOTFAILED, ATTR_BOOTME, ATTR_BOOTONCE};
use crate::gpt::{
    DEFAULT_ENTRIES, Entry, Finding, Gpt, Guid, MAX_ENTRIES, MbrDamage, SIGNATURE, Side, Table,
    protective, types,
};
use crate::mbr::{Mbr, MbrKind, PartType};
use crate::media::{Media, SectorRead, SectorWrite};

/// A GPT with the MBR in front of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GptTable {
    media: Media,
    sector0: Vec<u8>,
    table: Table,
    findings: Vec<Finding>,
    /// The table as it was read; nothing for a new one.
    read: Option<Gpt>,
    /// Sector 0 becomes a protective MBR, whether it is empty or not.
    mends_sector0: bool,
    /// The last sector holds a header that is not of this table: the media grew, was used, and
    /// has the table of before.
    old_header_last: bool,
}

impl GptTable {
    pub(super) fn create(media: Media, create: &Create) -> Result<GptTable, Error> {
        let entries = create.entries.unwrap_or(DEFAULT_ENTRIES);
        if !(1..=MAX_ENTRIES).contains(&entries) {
            let (scheme, found) = (Scheme::Gpt, entries);
            return Err(Error::EntryCount {
                scheme,
                found,
                least: 1,
                most: MAX_ENTRIES,
            });
        }
        let table = Table::create(media, entries, Guid::from_random(create.random))?;
        let mut sector0 = create.sector0.clone();
        sector0.resize(media.sector_len(), 0);
        // A table of partitions in the old sector 0 would be taken for a
        // hybrid MBR and kept.
        crate::bytes::put(&mut sector0, crate::mbr::TABLE_OFFSET_BYTES, &[0; 64]);
        Ok(GptTable {
            media,
            sector0,
            table,
            findings: Vec::new(),
            read: None,
            mends_sector0: true,
            old_header_last: false,
        })
    }

    pub(super) fn load(media: Media, read: &mut SectorRead<'_>) -> Result<GptTable, Error> {
        // The copies first: without them it does not matter what sector 0 is.
        let gpt = Gpt::read(media, read);
        let Some((_, table)) = gpt.listed() else {
            return Err(match (gpt.primary, gpt.backup) {
                (Err(primary), Err(backup)) => Error::Gpt { primary, backup },
                _ => Error::Read {
                    lba: 1,
                    reason: "no copy was chosen".to_owned(),
                },
            });
        };
        let unreadable = vec![0; media.sector_len()];
        let last = media.last_lba();
        let old_header_last = backup_lba(table) != last
            && read(last, 1).is_ok_and(|sector| sector.starts_with(&SIGNATURE));
        Ok(GptTable {
            media,
            sector0: gpt.sector0.clone().unwrap_or(unreadable),
            table: table.clone(),
            findings: gpt.findings(),
            read: Some(gpt),
            mends_sector0: false,
            old_header_last,
        })
    }

    /// Sector 0 as it was read.
    pub(super) fn sector0(&self) -> &[u8] {
        &self.sector0
    }

    /// True when neither copy is good: one of which a checksum is wrong is listed.
    pub fn is_doubtful(&self) -> bool {
        self.read.as_ref().is_some_and(Gpt::is_doubtful)
    }

    /// The copy that is edited.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Everything that was found wrong when the table was read, single
    /// partitions included.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    pub(super) fn recover(&mut self, from: Option<Side>) -> Result<Vec<String>, Error> {
        match (from, &self.read) {
            (Some(side), Some(gpt)) => match gpt.as_it_stands(side) {
                Ok(table) => self.table = table.clone(),
                Err(error) => {
                    let error = error.clone();
                    return Err(Error::Copy { side, error });
                }
            },
            _ if self.is_doubtful() => return Err(Error::Doubtful),
            _ => {}
        }
        let ordinary = Finding::Mbr(MbrDamage::Ordinary);
        if from.is_none() && self.findings.contains(&ordinary) {
            return Err(Error::OrdinaryMbr);
        }
        self.mends_sector0 = self.findings.iter().any(|it| matches!(it, Finding::Mbr(_)));
        self.table.fit(self.media)?;
        let repaired = self.damage();
        self.findings
            .retain(|finding| matches!(finding, Finding::Partition { .. }));
        Ok(repaired)
    }

    /// Sector 0 with the protective entry. A hybrid MBR follows the
    /// partitions that it repeats. One that has partitions of its own is
    /// replaced only where the table is mended.
    fn protective(&self) -> Option<SectorWrite> {
        let old = Mbr::decode(&self.sector0).ok();
        let kind = old.as_ref().map(Mbr::kind);
        if kind == Some(MbrKind::Partitioned) && !self.mends_sector0 {
            return None;
        }
        let before = self.read.as_ref().and_then(Gpt::listed);
        if let (Some(MbrKind::Hybrid), Some(old), Some((_, before))) = (kind, &old, before)
            && let Some(mbr) = protective::follow(old, before, &self.table)
        {
            return Some(self.sector0_with(&mbr));
        }
        let mut mbr = Mbr::protective(self.media.sectors);
        mbr.boot_code = crate::bytes::take(&self.sector0, 0);
        if let Some(old) = old {
            (mbr.disk_id, mbr.reserved) = (old.disk_id, old.reserved);
            mbr.entries[0].flag = old.entries[0].flag;
            // gpart's lenovofix.
            if !old.entries[0].is_used() && old.entries[1].kind == PartType::PROTECTIVE {
                mbr.entries[0].flag = old.entries[1].flag;
                mbr.entries.swap(0, 1);
            }
        }
        Some(self.sector0_with(&mbr))
    }

    fn entry(&mut self, index: u32) -> Result<&mut Entry, Error> {
        let entry = self.table.entries.get_mut(index.wrapping_sub(1) as usize);
        entry.ok_or(Error::NoSuchPartition(index))
    }

    fn sector0_with(&self, mbr: &Mbr) -> SectorWrite {
        let mut data = self.sector0.clone();
        crate::bytes::put(&mut data, 0, &mbr.encode());
        SectorWrite { lba: 0, data }
    }
}

/// The sector of the header at the end, by either of the two headers.
fn backup_lba(table: &Table) -> u64 {
    table.header.my_lba.max(table.header.alternate_lba)
}

/// gpart's names of attributes and the bits that they set; clearing one clears
/// the first bit only.
const ATTRIBUTES: [(&str, u64, u64); 3] = [
    ("bootme", ATTR_BOOTME, 0),
    ("bootonce", ATTR_BOOTONCE, ATTR_BOOTME),
    ("bootfailed", ATTR_BOOTFAILED, 0),
];
/// One attribute of the table: the protective MBR is active, which some
/// firmware wants before it boots.
const ACTIVE: &str = "active";
/// The other one: the protective entry is the second, which some firmware wants.
const LENOVOFIX: &str = "lenovofix";

fn parse_kind(kind: &str) -> Result<Guid, Error> {
    types::parse(kind).ok_or_else(|| Error::unknown_type(Scheme::Gpt, kind, "GUID"))
}

fn set_label(entry: &mut Entry, label: &str) -> Result<(), Error> {
    match entry.set_label(label) {
        true => Ok(()),
        false => Err(Error::label(
            label,
            "at most 36 UTF-16 units fit, and no NUL",
        )),
    }
}

impl Edit for GptTable {
    media_and_scheme!(Gpt);

    fn usable(&self) -> (u64, u64) {
        (
            self.table.header.first_usable,
            self.table.header.last_usable,
        )
    }

    fn entries(&self) -> u32 {
        self.table.entries.len() as u32
    }

    fn parts(&self) -> Vec<Part> {
        let part = |(number, entry): (usize, &Entry)| Part {
            index: number as u32,
            suffix: match entry.kind == types::FREEBSD {
                true => format!("s{number}"),
                false => format!("p{number}"),
            },
            start: entry.first,
            sectors: entry.sectors(),
            kind: types::name(entry.kind),
            raw_kind: entry.kind.to_string(),
            label: Some(entry.label()),
            attributes: entry.attribute_names(),
        };
        self.table.partitions().map(part).collect()
    }

    fn damage(&self) -> Vec<String> {
        let whole = |finding: &&Finding| !matches!(finding, Finding::Partition { .. });
        self.findings
            .iter()
            .filter(whole)
            .map(ToString::to_string)
            .collect()
    }

    fn insert(&mut self, index: u32, span: Span, new: &NewPart) -> Result<(), Error> {
        let mut entry = Entry {
            kind: parse_kind(&new.kind)?,
            guid: Guid::from_random(new.random),
            first: span.start,
            last: span.start + span.sectors - 1,
            ..Default::default()
        };
        set_label(&mut entry, new.label.as_deref().unwrap_or(""))?;
        *self.entry(index)? = entry;
        Ok(())
    }

    fn change(&mut self, index: u32, change: &Change) -> Result<(), Error> {
        let bits = match change {
            Change::Attribute { name, .. } => {
                let known = ATTRIBUTES.iter().find(|it| it.0.eq_ignore_ascii_case(name));
                Some(*known.ok_or_else(|| self.no_attribute(name))?)
            }
            _ => None,
        };
        let entry = self.entry(index)?;
        match (change, bits) {
            (Change::Kind(kind), _) => entry.kind = parse_kind(kind)?,
            (Change::Label(label), _) => set_label(entry, label)?,
            (Change::Sectors(sectors), _) => {
                entry.last = entry.first.saturating_add(*sectors).saturating_sub(1);
            }
            (Change::Attribute { on: true, .. }, Some((_, own, more))) => {
                entry.attributes |= own | more;
            }
            (Change::Attribute { .. }, Some((_, own, _))) => entry.attributes &= !own,
            (Change::Attribute { .. }, None) => {}
        }
        Ok(())
    }

    fn ids(&self) -> Ids {
        let id = |(number, entry): (usize, &Entry)| {
            let (uuid, attributes) = (entry.guid, entry.attributes);
            (number as u32, PartId { uuid, attributes })
        };
        Ids {
            disk: Some(DiskId::Uuid(self.table.header.disk_guid)),
            parts: self.table.partitions().map(id).collect(),
        }
    }

    fn set_ids(&mut self, ids: &Ids) {
        if let Some(DiskId::Uuid(uuid)) = ids.disk {
            self.table.header.disk_guid = uuid;
        }
        for (&index, id) in &ids.parts {
            if let Some(entry) = self.entry(index).ok().filter(|entry| entry.is_used()) {
                (entry.guid, entry.attributes) = (id.uuid, id.attributes);
            }
        }
    }

    fn set_on_table(&mut self, attribute: &str, on: bool) -> Result<(), Error> {
        let name = attribute.to_ascii_lowercase();
        if ![ACTIVE, LENOVOFIX].contains(&name.as_str()) {
            return Err(self.no_attribute(attribute));
        }
        let own = |mbr: Mbr| matches!(mbr.kind(), MbrKind::Partitioned | MbrKind::Hybrid);
        let write = match Mbr::decode(&self.sector0).is_ok_and(own) {
            true => None,
            false => self.protective(),
        };
        let Some(write) = write else {
            return Err(Error::ForeignMbr(attribute.to_owned()));
        };
        let mut mbr = Mbr::decode(&write.data)?;
        let second = mbr.entries[1].kind == PartType::PROTECTIVE;
        if name == ACTIVE {
            mbr.entries[usize::from(second)].flag = if on { 0x80 } else { 0 };
        } else if second != on {
            mbr.entries.swap(0, 1);
        }
        self.sector0 = write.data;
        crate::bytes::put(&mut self.sector0, 0, &mbr.encode());
        Ok(())
    }

    fn attributes(&self) -> &'static [&'static str] {
        &["bootme", "bootonce", "bootfailed", ACTIVE, LENOVOFIX]
    }

    fn remove(&mut self, index: u32) -> Result<(), Error> {
        *self.entry(index)? = Entry::default();
        Ok(())
    }

    fn encode(&self) -> Vec<SectorWrite> {
        let mut writes = self.table.encode(self.media);
        writes.extend(self.protective());
        writes
    }

    /// Backup header, primary header, and sector 0 where it belongs to the GPT.
    fn own_sectors(&self) -> Vec<u64> {
        let foreign =
            Mbr::decode(&self.sector0).is_ok_and(|mbr| mbr.kind() == MbrKind::Partitioned);
        let sector0 = (!foreign).then_some(0);
        let last = self.old_header_last.then(|| self.media.last_lba());
        let headers = [backup_lba(&self.table), 1];
        sector0.into_iter().chain(last).chain(headers).collect()
    }
}
