//! Reads both copies of a GPT and uses the better one.
//!
//! As in FreeBSD (`g_part_gpt_read`): the primary if it is good, else the backup; a table with any
//! damage is `CORRUPT` and says why, and is never repaired here. A partition of type `freebsd` is
//! a slice and named `s1`, all others `p1`. When sector 0 holds partitions of its own (a hybrid
//! MBR), all are `p1`: the MBR's have the other names.

use super::{NAME, letter};
use crate::part::look;
use crate::part::slicer::{self, Part, Table};
use ugeom_format::gpt::{Damage, Entry, Error, Finding, Gpt, Side, types};
use ugeom_format::mbr::{Kind, Mbr};
use ugeom_stack::{Plan, TasteError, Taster};

/// Sector sizes that disks have.
const SECTOR_SIZES_BYTES: [u64; 3] = [512, 2048, 4096];
/// Fewest sectors that can hold a GPT: MBR, two headers, two tables, one sector of a partition.
const LEAST_SECTORS: u64 = 6;

pub(super) fn taste(taster: &mut Taster<'_>) -> Result<Option<Plan>, TasteError> {
    let Some(media) = look::ground(NAME, taster)? else {
        return Ok(None);
    };
    if media.sectors < LEAST_SECTORS {
        let problem = format!(
            "a GPT needs {LEAST_SECTORS} sectors, there are {}",
            media.sectors
        );
        return look::nothing(NAME, taster, problem);
    }
    let mbr = taster
        .sector(0)
        .ok()
        .and_then(|sector| Mbr::decode(&sector).ok());
    let mbr = mbr.map_or(Kind::Empty, |mbr| mbr.kind());
    let gpt = Gpt::read(media, &mut look::reader(taster));
    let Some((side, table)) = gpt.best() else {
        // The last sector of a partition may hold the header of an older, larger disk.
        let expected = mbr == Kind::Protective || gpt.is_present() && !look::is_nested(taster);
        if !expected && !taster.insists() {
            return Ok(None);
        }
        let problem = neither(&gpt, mbr) + &other_sectors(taster);
        return Err(look::unusable(NAME, taster, problem));
    };
    let findings = gpt.findings();
    let whole = |finding: &&Finding| !matches!(finding, Finding::Partition { .. });
    let mut damage: Vec<String> = findings
        .iter()
        .filter(whole)
        .map(ToString::to_string)
        .collect();
    if mbr == Kind::Partitioned {
        damage.push(
            "sector 0 holds an ordinary MBR, not a protective one: \
             the GPT may be left over from an earlier use of the disk"
                .to_owned(),
        );
    }
    let below = taster.name().to_owned();
    let parts = table
        .partitions()
        .map(|(number, entry)| part(&below, mbr, number, entry, &findings))
        .collect();
    let header = &table.header;
    let config = vec![
        ("entries".to_owned(), header.entry_count.to_string()),
        ("first".to_owned(), header.first_usable.to_string()),
        ("last".to_owned(), header.last_usable.to_string()),
        ("rawuuid".to_owned(), header.disk_guid.to_string()),
        ("selected".to_owned(), side.to_string()),
        ("primary".to_owned(), state(&gpt, Side::Primary).to_owned()),
        ("backup".to_owned(), state(&gpt, Side::Backup).to_owned()),
    ];
    let table = Table {
        scheme: NAME,
        config,
        damage,
        parts,
    };
    slicer::plan(taster, table)
}

fn state(gpt: &Gpt, side: Side) -> &'static str {
    let copy = match side {
        Side::Primary => &gpt.primary,
        Side::Backup => &gpt.backup,
    };
    if copy.is_ok() { "ok" } else { "damaged" }
}

/// Why neither copy can be used.
fn neither(gpt: &Gpt, mbr: Kind) -> String {
    let protected = match mbr {
        Kind::Protective => "the MBR in sector 0 is a protective one, but ",
        _ => "",
    };
    let last = gpt.media.last_lba();
    match (&gpt.primary, &gpt.backup) {
        (Err(Error::Signature { .. }), Err(Error::Signature { .. })) => format!(
            "{protected}neither sector 1 nor the last one ({last}) begins with \"EFI PART\""
        ),
        (Err(primary), Err(backup)) => {
            format!("no usable copy; primary: {primary}; backup: {backup}")
        }
        _ => "no copy was chosen".to_owned(),
    }
}

/// Where a header of a disk with other sectors stands, in words.
fn other_sectors(taster: &mut Taster<'_>) -> String {
    let own = u64::from(taster.sectorsize_bytes());
    let has_header = |size: &u64| {
        let sector = taster.sector(size / own).unwrap_or_default();
        let header = sector.get((size % own) as usize..);
        *size != own && header.is_some_and(|bytes| bytes.starts_with(b"EFI PART"))
    };
    match SECTOR_SIZES_BYTES.into_iter().find(has_header) {
        Some(size) => format!(
            "; the header at byte {size} was made for sectors of {size} bytes, \
             not of {own} as here"
        ),
        None => String::new(),
    }
}

fn part(below: &str, mbr: Kind, number: usize, entry: &Entry, findings: &[Finding]) -> Part {
    let letter = letter(entry.kind, mbr);
    let mut config = vec![("rawuuid".to_owned(), entry.guid.to_string())];
    let attributes = entry.attribute_names();
    if !attributes.is_empty() {
        config.push(("attrib".to_owned(), attributes.join(",")));
    }
    Part {
        name: format!("{below}{letter}{number}"),
        index: number as u32,
        first: entry.first,
        sectors: entry.sectors(),
        kind: types::name(entry.kind),
        raw_kind: entry.kind.to_string(),
        label: Some(entry.label()).filter(|label| !label.is_empty()),
        mark: mark(number, findings),
        config,
        ..Part::default()
    }
}

/// What is wrong with the entry itself. Overlaps and the end of the media are the slicer's to see.
fn mark(wanted: usize, findings: &[Finding]) -> Option<String> {
    let words = findings.iter().filter_map(|finding| match finding {
        Finding::Partition { number, damage, .. } if *number == wanted => match damage {
            Damage::PastEnd { .. } | Damage::Overlaps { .. } => None,
            damage => Some(damage.to_string()),
        },
        _ => None,
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join("; "))
}
