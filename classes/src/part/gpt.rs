//! GPT: the GUID partition table, partitions `p1` and up.
//!
//! ```text
//! [ MBR | header | table ]   p1 |------|   p2 |------------|   [ table | header ]
//!   0      1       2 ..                                          backup
//! ```
//! A read of `md0p1`: [`crate::part::slicer::Slicer`] adds the partition's first sector and
//! forwards to `md0`; a write likewise. The layout is described in `ugeom_format::gpt`.
//!
//! Reads both copies of a GPT and uses the better one.
//!
//! As in FreeBSD (`g_part_gpt_read`): the primary if it is good, else the backup; a table with any
//! damage is `CORRUPT` and says why, and is never repaired here. A partition of type `freebsd` is
//! a slice and named `s1`, all others `p1`. When sector 0 holds partitions of its own (a hybrid
//! MBR), all are `p1`: the MBR's have the other names.

use crate::entry::Miss;
use crate::part::look;
use crate::part::slicer::{self, Part, Table};
use ugeom_format::gpt::{Damage, Entry, Error, Finding, Gpt, Guid, Side, other_sector_size, types};
use ugeom_format::mbr::{Mbr, MbrKind};
use ugeom_stack::{Plan, Taster};

/// GEOM's name of the class, and gpart's of the scheme.
pub use super::names::GPT as NAME;

/// The letter before a partition's number: a partition of type `freebsd` is a slice, all others are
/// partitions. Where the MBR in sector 0 has slices of its own, `s1` is taken by them.
pub(super) fn letter(kind: Guid, mbr: MbrKind) -> char {
    let taken = matches!(mbr, MbrKind::Hybrid | MbrKind::Partitioned);
    match kind == types::FREEBSD && !taken {
        true => 's',
        false => 'p',
    }
}

/// Fewest sectors that can hold a GPT: MBR, two headers, two tables, one sector of a partition.
const LEAST_SECTORS: u64 = 6;

pub(crate) fn taste(taster: &mut Taster<'_>) -> Result<Plan, Miss> {
    let media = look::ground(NAME, taster)?;
    if media.sectors < LEAST_SECTORS {
        let problem = format!(
            "a GPT needs {LEAST_SECTORS} sectors, there are {}",
            media.sectors
        );
        return Err(Miss::absent(problem));
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
            return Err(Miss::Elsewhere);
        }
        let hint = other.map_or_else(String::new, |size| {
            format!("; {}", look::made_for("header", size.into(), size, media))
        });
        return Err(Miss::unusable(neither(&gpt, mbr) + &hint));
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
        ("entries", header.entry_count.to_string()),
        ("first", header.first_usable.to_string()),
        ("last", header.last_usable.to_string()),
        ("rawuuid", header.disk_guid.to_string()),
        ("selected", side.to_string()),
        ("primary", state(&gpt, Side::Primary).to_owned()),
        ("backup", state(&gpt, Side::Backup).to_owned()),
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

fn part(below: &str, mbr: MbrKind, number: usize, entry: &Entry, findings: &[Finding]) -> Part {
    let letter = letter(entry.kind, mbr);
    let mut config = vec![("rawuuid", entry.guid.to_string())];
    let attributes = entry.attribute_names();
    if !attributes.is_empty() {
        config.push(("attrib", attributes.join(",")));
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
