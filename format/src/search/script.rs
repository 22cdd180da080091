//! A table of found partitions as text that other programs take.

use super::layout::{self, ENTRIES};
use super::{Holds, Lost};
use crate::gpt::{Guid, attribute_names, types};
use crate::plan::{Backup, BackupPart, DiskId, Ids, PartId, Scheme};
use crate::text::is_hidden;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Entries of an offered GPT, as usual.
const MOST_PARTITIONS: u32 = 128;

/// The tables that can be written as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptScheme {
    /// GUID partition table, `label: gpt`.
    Gpt,
    /// Master boot record. With more than four partitions, the others are logical ones.
    Mbr,
}

impl ScriptScheme {
    /// The scheme that holds all offered partitions: a GPT where they leave room for its two
    /// copies, else an MBR. An end that is a guess keeps no GPT out.
    pub fn fitting(lost: &[Lost], media_sectors: u64, sector_size_bytes: u32) -> ScriptScheme {
        let (first, after) = usable(media_sectors, sector_size_bytes);
        let mut offered = lost.iter().filter(|one| one.over.is_none());
        let fits = |one: &Lost| {
            let end = match one.guessed_end {
                true => one.first + 1,
                false => one.first + one.sectors,
            };
            one.first >= first && end <= after
        };
        match offered.all(fits) {
            true => ScriptScheme::Gpt,
            false => ScriptScheme::Mbr,
        }
    }

    /// How many of the offered partitions have no place in the text for gpart, or in that for
    /// sfdisk (`with_logical`).
    pub fn left_out(self, lost: &[Lost], with_logical: bool) -> usize {
        let offered = lost.iter().filter(|one| one.over.is_none()).count();
        let chosen = chosen(lost, self);
        let taken = match self {
            ScriptScheme::Gpt => chosen.len(),
            ScriptScheme::Mbr if with_logical => {
                let lines = layout::lines(&chosen);
                lines.iter().filter(|line| line.holds.is_some()).count()
            }
            ScriptScheme::Mbr => chosen.len().min(ENTRIES),
        };
        offered - taken
    }

    /// Ends that are guesses leave room for the second copy of a GPT.
    pub fn shorten(self, lost: &mut [Lost], media_sectors: u64, sector_size_bytes: u32) {
        let (_, after) = usable(media_sectors, sector_size_bytes);
        if self == ScriptScheme::Mbr {
            return;
        }
        for one in lost.iter_mut().filter(|one| one.guessed_end) {
            let room = after.saturating_sub(one.first);
            if room > 0 {
                one.sectors = one.sectors.min(room);
            }
        }
    }
}

/// The first sector that a GPT of 128 entries leaves to partitions, and the one behind the last.
fn usable(media_sectors: u64, sector_size_bytes: u32) -> (u64, u64) {
    let table = 16_384_u64.div_ceil(u64::from(sector_size_bytes.max(512)));
    (2 + table, media_sectors.saturating_sub(1 + table))
}

/// The partitions that go into a table of that scheme, in their order.
fn chosen(lost: &[Lost], scheme: ScriptScheme) -> Vec<&Lost> {
    let offered = lost.iter().filter(|one| one.over.is_none());
    match scheme {
        ScriptScheme::Gpt => offered.take(MOST_PARTITIONS as usize).collect(),
        ScriptScheme::Mbr => offered
            .filter(|one| one.first > 0 && one.first + one.sectors <= u64::from(u32::MAX))
            .take(MOST_PARTITIONS as usize)
            .collect(),
    }
}

/// A script for `sfdisk IMAGE`.
pub fn sfdisk_script(lost: &[Lost], scheme: ScriptScheme, sector_size_bytes: u32) -> String {
    let chosen = chosen(lost, scheme);
    let head = match scheme {
        ScriptScheme::Gpt => gpt_head(&chosen, sector_size_bytes),
        ScriptScheme::Mbr => "label: dos\n".to_owned(),
    };
    let mut text = format!("{head}unit: sectors\nsector-size: {sector_size_bytes}\n\n");
    if scheme == ScriptScheme::Mbr {
        for line in layout::lines(&chosen) {
            let kind = line.kind(|one| number_of(one.place.holds));
            let (number, first, sectors) = (line.number, line.first, line.sectors);
            let _ = writeln!(
                text,
                "{number} : start={first}, size={sectors}, type={kind:x}"
            );
        }
        return text;
    }
    let ids = ids(&chosen);
    for (index, one) in numbered(chosen) {
        let kind = type_of(one).to_string().to_uppercase();
        let (first, sectors) = (one.first, one.sectors);
        let _ = write!(text, "{index} : start={first}, size={sectors}, type={kind}");
        if let Some(id) = ids.parts.get(&index) {
            let _ = write!(text, ", uuid={}", id.uuid.to_string().to_uppercase());
        }
        if let Some(entry) = &one.place.entry {
            if !entry.label.is_empty() {
                let _ = write!(text, ", name=\"{}\"", sfdisk_quoted(&entry.label));
            }
            if let Some(names) = sfdisk_attributes(entry.attributes) {
                let _ = write!(text, ", attrs=\"{names}\"");
            }
        }
        text.push('\n');
    }
    text
}

/// sfdisk puts no partition before 1 MiB unless it is told the first sector.
fn gpt_head(chosen: &[&Lost], sector_size_bytes: u32) -> String {
    let mut head = "label: gpt\n".to_owned();
    if let Some(DiskId::Uuid(uuid)) = ids(chosen).disk {
        let _ = writeln!(head, "label-id: {}", uuid.to_string().to_uppercase());
    }
    let usual = (1 << 20) / u64::from(sector_size_bytes.max(1));
    if chosen.iter().any(|one| one.first < usual) {
        let (first, _) = usable(0, sector_size_bytes);
        let _ = writeln!(head, "first-lba: {first}");
    }
    head
}

/// A name as sfdisk reads it between quotes (util-linux, `lib/strutils.c`, `unhexmangle_string`).
fn sfdisk_quoted(label: &str) -> String {
    let mut text = String::new();
    for c in label.chars() {
        if c.is_control() || is_hidden(c) || matches!(c, '"' | '\\') {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                let _ = write!(text, "\\x{byte:02x}");
            }
        } else {
            text.push(c);
        }
    }
    text
}

/// sfdisk's names of bits 0 to 2 and numbers of 48 to 63; it has none for those reserved between.
fn sfdisk_attributes(attributes: u64) -> Option<String> {
    const NAMES: [&str; 3] = [
        "RequiredPartition",
        "NoBlockIOProtocol",
        "LegacyBIOSBootable",
    ];
    let is_set = |bit: &u32| attributes >> bit & 1 == 1;
    let names = (0_u32..).zip(NAMES).filter(|(bit, _)| is_set(bit));
    let mut all: Vec<String> = names.map(|(_, name)| name.to_owned()).collect();
    let numbers: Vec<String> = (48..64).filter(is_set).map(|bit| bit.to_string()).collect();
    if !numbers.is_empty() {
        all.push(format!("GUID:{}", numbers.join(",")));
    }
    (!all.is_empty()).then(|| all.join(" "))
}

/// A table as `gpart backup` prints it, for `gpart restore`.
pub fn gpart_script(lost: &[Lost], scheme: ScriptScheme) -> String {
    let mut chosen = chosen(lost, scheme);
    if scheme == ScriptScheme::Mbr {
        chosen.truncate(ENTRIES);
    }
    let last = chosen.iter().map(|one| one.first + one.sectors).max();
    let (ids, parts) = match scheme {
        ScriptScheme::Gpt => (ids(&chosen), numbered(chosen)),
        ScriptScheme::Mbr => (Ids::default(), (1..).zip(chosen).collect()),
    };
    let saved = |(index, one): (u32, &Lost)| {
        let entry = one.place.entry.as_ref();
        let entry = entry.filter(|_| scheme == ScriptScheme::Gpt);
        BackupPart {
            index,
            kind: match scheme {
                ScriptScheme::Gpt => types::name(type_of(one)),
                ScriptScheme::Mbr => format!("!{}", number_of(one.place.holds)),
            },
            start: one.first,
            sectors: one.sectors,
            label: entry.map(|entry| entry.label.clone()),
            attributes: entry.map_or_else(Vec::new, |entry| {
                let names = attribute_names(entry.attributes).into_iter();
                names.map(str::to_owned).collect()
            }),
        }
    };
    let (scheme, entries) = match scheme {
        ScriptScheme::Gpt => (Scheme::Gpt, MOST_PARTITIONS),
        ScriptScheme::Mbr => (Scheme::Mbr, ENTRIES as u32),
    };
    let backup = Backup {
        scheme,
        entries: Some(entries),
        parts: parts.into_iter().map(saved).collect(),
        ids,
    };
    backup.text(last.unwrap_or(0))
}

/// Each with its number: entries of the medium's table keep theirs, others get free ones.
fn numbered(chosen: Vec<&Lost>) -> Vec<(u32, &Lost)> {
    let mut taken = BTreeSet::new();
    let mut own = |one: &Lost| {
        let entry = one.place.entry.as_ref()?;
        let fits = entry.disk_uuid.is_some() && entry.index <= MOST_PARTITIONS;
        (fits && taken.insert(entry.index)).then_some(entry.index)
    };
    let indexes: Vec<Option<u32>> = chosen.iter().map(|one| own(one)).collect();
    let mut free = (1..).filter(|index| !taken.contains(index));
    let numbers = indexes.into_iter().map(|own| own.or_else(|| free.next()));
    numbers.flatten().zip(chosen).collect()
}

/// GUIDs of the medium's table, and of entries; no GUID stands for two partitions.
fn ids(chosen: &[&Lost]) -> Ids {
    let entries = || chosen.iter().filter_map(|one| one.place.entry.as_ref());
    let disk = entries().find_map(|entry| entry.disk_uuid);
    let mut seen = BTreeSet::from([Guid::UNUSED]);
    let id = |(index, one): (u32, &Lost)| {
        let entry = one.place.entry.as_ref()?;
        let (uuid, attributes) = (entry.uuid, entry.attributes);
        seen.insert(uuid)
            .then_some((index, PartId { uuid, attributes }))
    };
    Ids {
        disk: disk.map(DiskId::Uuid),
        parts: numbered(chosen.to_vec())
            .into_iter()
            .filter_map(id)
            .collect(),
    }
}

fn type_of(one: &Lost) -> Guid {
    if let Some(entry) = &one.place.entry {
        return entry.kind;
    }
    let name = match one.place.holds {
        Holds::Fat | Holds::ExFat | Holds::Ntfs | Holds::Udf | Holds::Bridge => "ms-basic-data",
        Holds::Apfs => "apple-apfs",
        Holds::Hfs | Holds::HfsPlus => "apple-hfs",
        Holds::Bsd => "freebsd",
        Holds::Md => "linux-raid",
        Holds::Ufs => "freebsd-ufs",
        Holds::Solaris => "solaris-root",
        Holds::Swap => "linux-swap",
        Holds::Lvm2 => "linux-lvm",
        _ => "linux-data",
    };
    types::parse(name).unwrap_or(types::LINUX_DATA)
}

fn number_of(holds: Holds) -> u8 {
    match holds {
        Holds::Fat => 0x0c,
        Holds::ExFat | Holds::Ntfs | Holds::Udf | Holds::Bridge => 0x07,
        Holds::Hfs | Holds::HfsPlus => 0xaf,
        Holds::Md => 0xfd,
        Holds::Minix => 0x81,
        Holds::Solaris => 0xbf,
        Holds::Bsd | Holds::Ufs => 0xa5,
        Holds::Swap => 0x82,
        Holds::Lvm2 => 0x8e,
        _ => 0x83,
    }
}
