//! MBR: the PC's master boot record, four partitions `s1` to `s4`.
//!
//! ```text
//! sector 0 [ boot code | 4 entries | 55 AA ]   s1 |------|   s2 |------------|
//! ```
//! A read of `md0s1`: [`crate::part::slicer::Slicer`] adds the first sector and forwards to `md0`;
//! a write likewise. The layout is described in `ugeom_format::mbr`.
//!
//! Rules of `g_mbr_taste`: boot1's made-up table means nothing; entries of type 0xEE are left out,
//! so a protective MBR makes no provider at all and the disk is left to `gpt`; everything else is
//! listed, also when it overlaps or reaches past the end. The entries of a hybrid MBR are listed
//! beside those of the GPT.

use crate::entry::Miss;
use crate::part::ldm;
use crate::part::look;
use crate::part::slicer::{self, Part, Table};
use ugeom_format::mbr::{self, ENTRIES, Entry, Mbr, MbrKind};
use ugeom_format::pc98;
use ugeom_stack::{AttributeValue, Errno, Plan, Taster};

/// GEOM's name of the class, and gpart's of the scheme.
pub use super::names::MBR as NAME;
/// The attribute that tells extended partitions apart: 1 for the first of the table.
pub(super) const EXTENDED_ORDINAL: &str = "MBR::extended";

pub(crate) fn taste(taster: &mut Taster<'_>) -> Result<Plan, Miss> {
    look::ground(NAME, taster)?;
    let nested = look::is_nested(taster);
    let sector = match taster.sector(0) {
        Ok(sector) => sector,
        // Of a partition past the end of its disk the slicer says so.
        Err(error) if nested => return Err(Miss::absent(error)),
        // Of a new provider with tags, whose sectors were never written: they hold no table.
        Err(error) if error.errno == Errno::BADMSG => return Err(Miss::absent(error)),
        // The one class that says so: without sector 0 nothing can be found on the disk.
        Err(error) => {
            let problem = format!("the table's sector cannot be read: {error}");
            return Err(Miss::unusable(problem));
        }
    };
    let mbr = Mbr::decode(&sector).map_err(Miss::absent)?;
    if nested && mbr::bios_parameter_block(&sector).is_some() {
        let problem = "byte 11 begins a BIOS parameter block: a file system, not a partition table";
        return Err(Miss::absent(problem));
    }
    match mbr.kind() {
        MbrKind::Protective => {
            let problem = "the MBR is a protective one: the disk belongs to its GPT";
            return Err(Miss::absent(problem));
        }
        MbrKind::Dedicated => {
            let problem = "the MBR is the made-up one of FreeBSD's boot1: the disk belongs to its \
                           disklabel";
            return Err(Miss::absent(problem));
        }
        MbrKind::Empty | MbrKind::Partitioned | MbrKind::Hybrid => {}
    }
    if let Some(problem) = foreign(taster, &sector, &mbr) {
        return Err(Miss::absent(problem));
    }
    let unit = u64::from(taster.sectorsize_bytes());
    let mut extended = 0;
    let parts = mbr.slices().map(|(number, entry)| {
        let mut part = part(taster.name(), unit, number, entry);
        if entry.kind.is_extended() {
            extended += 1;
            let ordinal = (EXTENDED_ORDINAL, AttributeValue::Number(extended));
            part.attributes.push(ordinal);
        }
        part
    });
    let table = Table {
        scheme: NAME,
        config: vec![("entries", ENTRIES.to_string())],
        damage: Vec::new(),
        parts: parts.collect(),
    };
    slicer::plan(taster, table)
}

/// Whose the disk is where the MBR is only in its way: with the same names for other partitions.
fn foreign(taster: &mut Taster<'_>, sector: &[u8], mbr: &Mbr) -> Option<&'static str> {
    mbr.slices().next()?;
    if pc98::names_a_loader(sector) {
        let second = taster.sector(1).unwrap_or_default();
        if pc98::Table::decode(&[sector, &second[..]].concat()).is_ok() {
            return Some("sector 0 names a loader of the PC-98: the table of that counts");
        }
    }
    ldm::stands(taster, mbr)
        .then_some("the disk belongs to the database of Windows' logical disk manager")
}

fn part(below: &str, unit: u64, number: usize, entry: &Entry) -> Part {
    let offset = u64::from(entry.start) * unit;
    let mut config = Vec::new();
    if entry.is_active() {
        config.push(("attrib", "active".to_owned()));
    }
    Part {
        name: format!("{below}s{number}"),
        index: number as u32,
        first: u64::from(entry.start),
        sectors: u64::from(entry.sectors),
        kind: entry.kind.to_string(),
        raw_kind: entry.kind.0.to_string(),
        config,
        attributes: vec![
            ("MBR::type", AttributeValue::Number(i64::from(entry.kind.0))),
            ("MBR::offset", AttributeValue::Number(offset as i64)),
        ],
        ..Part::default()
    }
}
