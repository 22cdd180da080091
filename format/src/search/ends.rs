//! From places to partitions: where they end, and which of two that overlap is offered.

use super::{Holds, Lost, PhysicalVolume, Place, labels};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;

/// More structures than these do not count for more.
const MOST_SIGNS: usize = 3;

/// The stretches of the medium that belong to logical volumes, in their order. A physical volume
/// counts when something was found where one of its logical volumes begins: an old one may lie
/// under newer partitions.
pub(super) fn inside<'a>(
    physical: &[PhysicalVolume],
    found: impl Iterator<Item = &'a Place>,
) -> Vec<Range<u64>> {
    let starts: BTreeSet<u64> = found.map(|place| place.start_bytes).collect();
    let mut all: Vec<Range<u64>> = Vec::new();
    for group in physical
        .iter()
        .filter_map(|one| one.group.as_ref().ok()?.as_ref())
    {
        let listed = || {
            group
                .volumes
                .iter()
                .filter_map(|one| one.pieces.as_deref().ok())
        };
        let is_used = |pieces: &[(u64, u64)]| {
            pieces
                .first()
                .is_some_and(|first| starts.contains(&first.0))
        };
        if listed().any(is_used) {
            let pieces = listed().flatten();
            all.extend(pieces.map(|&(at, length)| at..at.saturating_add(length)));
        }
    }
    all.sort_unstable_by_key(|one| one.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for one in all {
        match merged.last_mut() {
            Some(last) if one.start <= last.end => last.end = last.end.max(one.end),
            _ => merged.push(one),
        }
    }
    merged
}

pub(super) fn partitions<'a>(
    size_bytes: u64,
    sector: u64,
    found: impl Iterator<Item = &'a Place>,
    inside: &[Range<u64>],
) -> Vec<Lost> {
    let is_inside = |place: &Place| {
        let before = inside.partition_point(|one| one.start <= place.start_bytes);
        let last = before.checked_sub(1).and_then(|last| inside.get(last));
        last.is_some_and(|one| one.contains(&place.start_bytes))
    };
    let mut places: Vec<&Place> = found
        .filter(|place| place.start_bytes.is_multiple_of(sector))
        .collect();
    let contents = places.iter().filter(|place| !place.holds.is_label());
    let starts: BTreeSet<u64> = contents.map(|place| place.start_bytes).collect();
    // An entry of a table states more than a file system does, what states its end more than what
    // reaches to the next one, and two signs more than one. Of two alike the one that begins first
    // holds the other, as a file that is an image. A structure in a logical volume is no partition.
    // Structures in the partitions of a disklabel confirm it; without them it is an old one.
    places.sort_by_key(|place| {
        let listed = place.holds == Holds::Listed;
        let is_label = place.holds.is_label();
        let holds_others = is_label && labels::is_confirmed(place, &starts);
        let length = place.length_bytes.unwrap_or(0);
        let sign_count = match holds_others {
            true => MOST_SIGNS,
            false => place.sign_count.min(MOST_SIGNS),
        };
        (
            is_inside(place),
            is_label && !holds_others,
            !listed,
            place.length_bytes.is_none(),
            Reverse(sign_count),
            place.start_bytes,
            Reverse(length),
        )
    });
    let open = places.iter().filter(|place| place.length_bytes.is_none());
    let open: Vec<u64> = open.map(|place| place.start_bytes / sector).collect();
    let mut lost: Vec<Lost> = Vec::new();
    for place in places {
        if let Some(disc) = lost.iter_mut().find(|one| is_bridge(&one.place, place)) {
            add_to_bridge(disc, place, (size_bytes, sector));
            continue;
        }
        let made = partition(size_bytes, sector, place, (&lost, &open));
        // A structure at the start of a table's entry is the content of that partition.
        let is_content = |entry: &Lost| {
            entry.place.holds == Holds::Listed && entry.over.is_none() && entry.first == made.first
        };
        if place.holds == Holds::Listed || !lost.iter().any(is_content) {
            lost.push(made);
        }
    }
    lost.sort_by_key(|one| (one.first, one.over.is_some(), Reverse(one.sectors)));
    lost
}

/// True for ISO 9660 and UDF that begin together: two descriptions of the same files (ECMA-167 2/8,
/// UDF 2.60 appendix 6.11).
fn is_bridge(one: &Place, other: &Place) -> bool {
    let is_disc = |place: &Place| matches!(place.holds, Holds::Iso9660 | Holds::Udf);
    is_disc(one)
        && is_disc(other)
        && one.holds != other.holds
        && one.start_bytes == other.start_bytes
}

/// Adds the other description; the disc is as long as the longer one.
fn add_to_bridge(disc: &mut Lost, other: &Place, (size_bytes, sector): (u64, u64)) {
    let place = &mut disc.place;
    place.holds = Holds::Bridge;
    place.length_bytes = place.length_bytes.max(other.length_bytes);
    place.signs.extend_from_slice(&other.signs);
    place.sign_count += other.sign_count;
    if let Some(bytes) = place.length_bytes {
        let (sectors, there) = (bytes.div_ceil(sector), size_bytes / sector - disc.first);
        (disc.sectors, disc.cut) = (sectors.min(there), sectors > there);
    }
}

/// `open` are the first sectors of all that do not state their ends: one ends where the next
/// begins.
fn partition(
    size_bytes: u64,
    sector: u64,
    place: &Place,
    (offered, open): (&[Lost], &[u64]),
) -> Lost {
    let first = place.start_bytes / sector;
    let media = size_bytes / sector;
    let taken = || offered.iter().filter(|one| one.over.is_none());
    let holder = taken().find(|one| (one.first..one.first + one.sectors).contains(&first));
    let next = taken().map(|one| one.first).filter(|&next| next > first);
    let free = next.min().unwrap_or(media) - first;
    let next_open = open.iter().copied().filter(|&next| next > first).min();
    let guess = free.min(next_open.unwrap_or(media) - first);
    let stated = place
        .length_bytes
        .map(|bytes| bytes.div_ceil(sector).max(1));
    let sectors = stated.unwrap_or(guess);
    let there = media - first;
    let cut = sectors > there;
    let sectors = sectors.min(there);
    let over = match holder {
        Some(holder) => Some(holder.first),
        None if sectors > free => Some(first + free),
        None => None,
    };
    Lost {
        place: place.clone(),
        first,
        sectors,
        guessed_end: stated.is_none(),
        cut,
        over,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{extent, put, search_in};
    use super::*;

    /// A descriptor of ISO 9660 and an anchor of UDF with its sequence.
    #[test]
    fn iso_9660_and_udf_that_begin_together_are_one_disc() {
        let start = 1 << 20;
        let mut disk = vec![0; 8 << 20];
        let iso = start + (32 << 10);
        put(&mut disk, iso, b"\x01CD001\x01");
        for (at, bytes) in [
            (80, &500_u32.to_le_bytes()[..]),
            (84, &500_u32.to_be_bytes()),
            (128, &2048_u16.to_le_bytes()),
            (130, &2048_u16.to_be_bytes()),
        ] {
            put(&mut disk, iso + at, bytes);
        }
        let mut descriptor = |kind: u16, number: u32, words: &[(usize, u32)]| {
            let at = start + number as usize * 2048;
            let mut tag = [0; 16];
            put(&mut tag, 0, &kind.to_le_bytes());
            put(&mut tag, 12, &number.to_le_bytes());
            tag[2] = 3;
            tag[4] = tag.iter().fold(0, |sum: u8, byte| sum.wrapping_add(*byte));
            put(&mut disk, at, &tag);
            for (place, word) in words {
                put(&mut disk, at + place, &word.to_le_bytes());
            }
        };
        descriptor(2, 256, &[(16, 4096), (20, 32)]);
        descriptor(5, 32, &[(188, 257), (192, 300)]);
        descriptor(8, 33, &[]);
        let lost = search_in(&disk).partitions();
        let found: Vec<_> = lost.iter().map(|one| (extent(one), one.over)).collect();
        assert_eq!(found, [((Holds::Bridge, 2048, 557 * 4), None)]);
        assert_eq!(lost[0].place.sign_count, 2);
    }
}
