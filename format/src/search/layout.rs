//! An MBR for more than four partitions: which of them are logical ones of an extended partition.

use super::Lost;
use std::ops::Range;

/// Entries of an MBR.
pub(super) const ENTRIES: usize = 4;
/// The number of the first logical partition.
const FIRST_LOGICAL: usize = 5;
/// Type of an extended partition that is not limited to 8 GiB.
const EXTENDED: u8 = 0x0f;
/// Most sectors before the first logical partition, for its record: 1 MiB, as tools align it.
const RECORD_SECTORS: u64 = 2048;

/// One line of a table.
pub(super) struct Line<'a> {
    /// Number of the partition: from 5 on for logical ones.
    pub number: usize,
    pub first: u64,
    pub sectors: u64,
    /// Its content; `None` for the extended partition.
    pub holds: Option<&'a Lost>,
}

impl Line<'_> {
    /// The type of an extended partition, or that of `number_of`.
    pub fn kind(&self, number_of: impl Fn(&Lost) -> u8) -> u8 {
        self.holds.map_or(EXTENDED, number_of)
    }
}

/// The lines for these partitions, which are in the order of their sectors and do not overlap; only
/// the first four where no extended partition can hold the others.
pub(super) fn lines<'a>(all: &[&'a Lost]) -> Vec<Line<'a>> {
    let plain = |number, one: &'a Lost| Line {
        number,
        first: one.first,
        sectors: one.sectors,
        holds: Some(one),
    };
    let Some(run) = logical(all) else {
        let primary = all.iter().take(ENTRIES);
        return (1..).zip(primary).map(|(n, one)| plain(n, one)).collect();
    };
    let (before, after) = (&all[..run.start], &all[run.end..]);
    let run = &all[run];
    let first = free_from(all, before.len()).max(run[0].first.saturating_sub(RECORD_SECTORS));
    let end = run.last().map_or(first, |last| end_of(last));
    let extended = Line {
        number: before.len() + 1,
        first,
        sectors: end - first,
        holds: None,
    };
    let mut lines: Vec<Line<'a>> = (1..).zip(before).map(|(n, one)| plain(n, one)).collect();
    lines.push(extended);
    lines.extend(
        (before.len() + 2..)
            .zip(after)
            .map(|(n, one)| plain(n, one)),
    );
    lines.extend((FIRST_LOGICAL..).zip(run).map(|(n, one)| plain(n, one)));
    lines
}

/// The partitions of more than four that can be logical: three others at the most, and a sector
/// before each for its record. As many as possible stay primary before them, where systems boot
/// from.
fn logical(all: &[&Lost]) -> Option<Range<usize>> {
    let others = ENTRIES - 1;
    let last = all.len().checked_sub(ENTRIES + 1)?;
    let mut runs = (0..=others).rev().map(|before| before..before + last + 2);
    runs.find(|run| run.clone().all(|at| all[at].first > free_from(all, at)))
}

/// The first sector behind the partition before one; the MBR takes sector 0.
fn free_from(all: &[&Lost], at: usize) -> u64 {
    at.checked_sub(1).map_or(1, |before| end_of(all[before]))
}

fn end_of(one: &Lost) -> u64 {
    one.first + one.sectors
}
