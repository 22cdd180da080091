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
