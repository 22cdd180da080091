//! Reads both copies of a GPT and uses the better one.
//!
//! As in FreeBSD (`g_part_gpt_read`): the primary if it is good, else the backup; a table with any
//! damage is `CORRUPT` and says why, and is never repaired here. A partition of type `freebsd` is
//! a slice and named `s1`, all others `p1`. When sector 0 holds partitions of its own (a hybrid
//! MBR), all are `p1`: the MBR's have the other names.

use super::{NAME, letter};
use crate::part::look;
use crate::part::slicer::{self, Part, Table};
use ugeom_format::Media;
use ugeom_format::gpt::{Damage, Entry, Error, Finding, Gpt, Side, other_sector_size, types};
use ugeom_format::mbr::{Mbr, MbrKind};
use ugeom_stack::{Plan, TasteError, Taster};

/// Fewest sectors that can hold a GPT: MBR, two headers, two tables, one sector of a partition.
const LEAST_SECTORS: u64 = 6;

pub(super) fn taste(taster: &mut Taster<'_>) -> Result<Option<Plan>, TasteError> {
    let Some(media) = look::ground(NAME, taster)? else { return Ok(None) };
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
    let mbr = mbr.map_or(MbrKind::Empty, |mbr| mbr.kind());
    let gpt = Gpt::read(media, &mut look::reader(taster));
    // The remains of an older table do not coexist with an ordinary MBR.
    let trusted = match mbr {
        MbrKind::Protective | MbrKind::Empty => gpt.listed(),
        _ => gpt.best(),
    };
    let Some((side, table)) = trusted else {
        // The last sector of a partition may hold the header of an older, larger disk.
        let nested = look::is_nested(taster);
        let other = match nested && !taster.insists() {
            true => None,
            false => other_sector_size(media, &mut look::reader(taster)),
        };
        let present = gpt.is_present() && !nested;
        if mbr != MbrKind::Protective && !present && other.is_none() && !taster.insists() {
            return Ok(None);
        }
        let hint = other.map_or_else(String::new, |size| sectors_of(size, media));
        return Err(look::unusable(NAME, taster, neither(&gpt, mbr) + &hint));
    };
    let findings = gpt.findings();
    let damage = damage(&gpt, side, &findings);
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

/// The lines about the table as a whole; those of partitions stand beside each.
fn damage(gpt: &Gpt, side: Side, findings: &[Finding]) -> Vec<String> {
    let whole = |finding: &&Finding| !matches!(finding, Finding::Partition { .. });
    let mut damage: Vec<String> = findings
        .iter()
        .filter(whole)
        .map(ToString::to_string)
        .collect();
    if gpt.is_doubtful() {
        let doubt = format!(
            "DAMAGED: neither copy is whole; the partitions are those of the {side} one, \
             whose checksum is wrong"
        );
        damage.insert(0, doubt);
    }
    damage
}

fn state(gpt: &Gpt, side: Side) -> &'static str {
    let copy = match side {
        Side::Primary => &gpt.primary,
        Side::Backup => &gpt.backup,
    };
    if copy.is_ok() { "ok" } else { "damaged" }
}

/// Why neither copy can be used.
fn neither(gpt: &Gpt, mbr: MbrKind) -> String {
    let protected = match mbr {
        MbrKind::Protective => "the MBR in sector 0 is a protective one, but ",
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

/// A header of a disk with other sectors, in words.
pub(in crate::part) fn sectors_of(size: u32, media: Media) -> String {
    let own = media.sector_size_bytes;
    format!(
        "; the header at byte {size} was made for sectors of {size} bytes, not of {own} as here: \
         ?sectorsize={size} opens it"
    )
}

fn part(below: &str, mbr: MbrKind, number: usize, entry: &Entry, findings: &[Finding]) -> Part {
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

/// The defect of the entry itself. Overlaps and the end of the media are the slicer's to see.
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
