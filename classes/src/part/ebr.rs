//! EBR: the logical partitions of an extended one, `s5` and up.
//!
//! ```text
//! extended partition  [ EBR | s5 ........ ][ EBR | s6 ... ][ EBR | s7 ..... ]
//!                        \__ link ________/\__ link ______/
//! ```
//! A read of `md0s5`: [`crate::part::slicer::Slicer`] adds the place of the logical partition in
//! the extended one and forwards to `md0s2`, whose MBR adds the rest; a write likewise. The layout
//! is described in `ugeom_format::ebr`.
//!
//! Follows the chain of extended boot records in an extended partition.
//!
//! Rules of `g_mbrext_taste`: only on a partition of an MBR that has an extended type; the logical
//! partitions are named after the disk, not after the extended partition, and counted from 5 in the
//! order of the chain; a record without a partition has no number. A chain that breaks gives the
//! partitions before the break, and the last of them is marked.
//!
//! GEOM has no name for the logical partitions of a second extended partition on the same disk;
//! here they carry its name, `md0s3s5`, because `md0s5` is taken by the first.

use crate::entry::Miss;
use crate::part::look;
use crate::part::mbr;
use crate::part::slicer::{self, Part, Table};
use ugeom_format::ebr::{EbrWalk, Logical};
use ugeom_stack::{AttributeValue, Plan, Taster};

/// GEOM's name of the class, and gpart's of the scheme.
pub use super::names::EBR as NAME;

/// Number of the first logical partition.
const FIRST_NUMBER: usize = 5;
/// Most logical partitions of one chain; Linux stops at the same number.
const MOST_LOGICALS: usize = 256;

pub(crate) fn taste(taster: &mut Taster<'_>) -> Result<Plan, Miss> {
    let media = look::ground(NAME, taster)?;
    let (logicals, damage) = follow(taster, EbrWalk::new(0, media.sectors));
    if let (true, Some(problem)) = (logicals.is_empty(), &damage) {
        return Err(Miss::unusable(problem));
    }
    let prefix = prefix(taster);
    let mut parts: Vec<Part> = logicals
        .iter()
        .enumerate()
        .map(|(at, logical)| part(&prefix, FIRST_NUMBER + at, media.sector_size_bytes, logical))
        .collect();
    if let (Some(last), Some(problem)) = (parts.last_mut(), &damage) {
        last.mark = Some(format!(
            "the chain of logical partitions breaks after it: {problem}"
        ));
    }
    let table = Table {
        scheme: NAME,
        config: Vec::new(),
        damage: Vec::from_iter(damage),
        parts,
    };
    slicer::plan(taster, table)
}

/// The logical partitions, and why the chain ended before its end.
fn follow(taster: &mut Taster<'_>, mut walk: EbrWalk) -> (Vec<Logical>, Option<String>) {
    let mut found = Vec::new();
    while let Some(lba) = walk.next_lba() {
        let sector = match taster.sector(lba) {
            Ok(sector) => sector,
            Err(error) => return (found, Some(error.to_string())),
        };
        let step = walk.feed(&sector);
        found.extend(step.logical);
        if let Some(error) = step.error {
            return (found, Some(error.to_string()));
        }
        if found.len() == MOST_LOGICALS && walk.next_lba().is_some() {
            let end = format!("no more than {MOST_LOGICALS} logical partitions are followed");
            return (found, Some(end));
        }
    }
    (found, None)
}

/// The prefix of `s5`: the disk's name, or for a second extended partition its own.
fn prefix(taster: &mut Taster<'_>) -> String {
    let is_first = look::number(taster, mbr::EXTENDED_ORDINAL) == Some(1);
    prefix_of(taster.name(), is_first)
}

/// The same for the extended partition of that name.
pub(in crate::part) fn prefix_of(own: &str, is_first: bool) -> String {
    let disk = own
        .trim_end_matches(|c: char| c.is_ascii_digit())
        .strip_suffix('s');
    let disk = disk.filter(|disk| is_first && disk.len() + 1 < own.len());
    disk.unwrap_or(own).to_owned()
}

fn part(prefix: &str, number: usize, unit_bytes: u32, logical: &Logical) -> Part {
    let kind = logical.entry.kind;
    let offset = logical.start.saturating_mul(u64::from(unit_bytes));
    Part {
        name: format!("{prefix}s{number}"),
        index: number as u32,
        first: logical.start,
        sectors: logical.sectors,
        kind: kind.to_string(),
        raw_kind: kind.0.to_string(),
        config: vec![("record", logical.ebr_lba.to_string())],
        attributes: vec![
            ("MBR::type", AttributeValue::Number(i64::from(kind.0))),
            ("MBR::offset", AttributeValue::Number(offset as i64)),
        ],
        ..Part::default()
    }
}
