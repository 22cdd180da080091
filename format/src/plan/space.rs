//! Free space between partitions, and where a new partition goes: gpart's
//! rules, in sectors.

use super::{Error, NewPart, Part};

/// A run of sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// First sector of the range.
    pub start: u64,
    /// Length in sectors, never 0.
    pub sectors: u64,
}

/// The runs between `first` and `last` that no partition has, in order.
/// Overlapping and reversed partitions are taken as they come.
pub(crate) fn free(parts: &[Part], first: u64, last: u64) -> Vec<Span> {
    let mut taken: Vec<(u64, u64)> = parts
        .iter()
        .filter(|part| part.sectors > 0)
        .map(|part| (part.start, part.start.saturating_add(part.sectors)))
        .collect();
    taken.sort_unstable();
    let mut spans = Vec::new();
    let mut at = first;
    let end = last.saturating_add(1);
    for (start, after) in taken {
        if start.min(end) > at {
            spans.push(Span {
                start: at,
                sectors: start.min(end) - at,
            });
        }
        at = at.max(after);
    }
    if end > at {
        spans.push(Span {
            start: at,
            sectors: end - at,
        });
    }
    spans
}

/// The first two partitions that share sectors: the one that begins first, and the other.
pub(crate) fn overlapping(parts: &[Part]) -> Option<(u32, u32)> {
    let mut order: Vec<&Part> = parts.iter().filter(|part| part.sectors > 0).collect();
    order.sort_by_key(|part| (part.start, part.index));
    let mut furthest: Option<(u32, u64)> = None;
    for part in order {
        match furthest {
            Some((other, reach)) if part.start < reach => return Some((other, part.index)),
            _ => furthest = Some((part.index, part.start.saturating_add(part.sectors))),
        }
    }
    None
}

/// Where a new partition goes.
///
/// As in gpart: a start is rounded up and a size down to the alignment; with a
/// size alone the smallest free space that is large enough is taken, with a
/// start alone all of the free space after it, with neither the largest one.
///
/// # Errors
/// [`Error::Align`], [`Error::OutOfRange`], [`Error::Overlap`],
/// [`Error::NoSpace`].
pub(crate) fn choose(
    parts: &[Part],
    (first, last): (u64, u64),
    wanted: &NewPart,
) -> Result<Span, Error> {
    let align = wanted.align_sectors.unwrap_or(1);
    if align == 0 {
        return Err(Error::Align);
    }
    if wanted.sectors == Some(0) {
        return Err(Error::Empty);
    }
    let sectors = wanted.sectors.map(|sectors| match sectors > align {
        true => sectors - sectors % align,
        false => sectors,
    });
    let spans: Vec<Span> = free(parts, first, last)
        .into_iter()
        .filter_map(|span| aligned(span, align))
        .collect();
    let no_space = |needed| Error::NoSpace {
        needed,
        align,
        largest: spans.iter().map(|span| span.sectors).max().unwrap_or(0),
    };
    if let Some(start) = wanted.start {
        let start = start.checked_next_multiple_of(align).unwrap_or(u64::MAX);
        return at(parts, (first, last), start, sectors, align);
    }
    if let (None, Some(preferred)) = (wanted.align_sectors, wanted.preferred_align_sectors)
        && let Some(span) = preferred_place(&spans, preferred, sectors)
    {
        return Ok(span);
    }
    match sectors {
        Some(needed) => spans
            .iter()
            .filter(|span| span.sectors >= needed)
            .min_by_key(|span| span.sectors)
            .map(|span| Span {
                start: span.start,
                sectors: needed,
            })
            .ok_or_else(|| no_space(needed)),
        None => spans
            .iter()
            .rev()
            .max_by_key(|span| span.sectors)
            .copied()
            .ok_or(no_space(1)),
    }
}

/// The smallest free space that is large enough from a multiple of the
/// alignment on, or all of the largest one.
fn preferred_place(spans: &[Span], align: u64, sectors: Option<u64>) -> Option<Span> {
    let rest = |span: &Span| {
        let start = span.start.checked_next_multiple_of(align)?;
        let sectors = (span.start + span.sectors).checked_sub(start)?;
        (sectors > 0).then_some(Span { start, sectors })
    };
    let places = spans.iter().filter_map(rest);
    match sectors {
        Some(needed) => places
            .filter(|span| span.sectors >= needed)
            .min_by_key(|span| span.sectors)
            .map(|span| Span {
                sectors: needed,
                ..span
            }),
        None => places.max_by_key(|span| span.sectors),
    }
}

/// A place of at least one sector that the user named: checked against the range and against every
/// partition.
fn at(
    parts: &[Part],
    (first, last): (u64, u64),
    start: u64,
    sectors: Option<u64>,
    align: u64,
) -> Result<Span, Error> {
    let sectors = match sectors {
        Some(sectors) => sectors,
        None => {
            let containing = free(parts, first, last)
                .into_iter()
                .find(|span| span.start <= start && start < span.start + span.sectors);
            let room = containing.map_or(1, |span| span.start + span.sectors - start);
            if room > align {
                room - room % align
            } else {
                room
            }
        }
    };
    let end = start.saturating_add(sectors - 1);
    if start < first || end > last {
        return Err(Error::out_of_range(start, sectors, (first, last)));
    }
    for part in parts.iter().filter(|part| part.sectors > 0) {
        let other_end = part.start.saturating_add(part.sectors - 1);
        if part.start <= end && other_end >= start {
            let (other, other_start) = (part.index, part.start);
            return Err(Error::Overlap {
                start,
                end,
                other,
                other_start,
                other_end,
            });
        }
    }
    Ok(Span { start, sectors })
}

/// The part of a free space that begins and, if it is long enough, ends at a
/// multiple of the alignment.
fn aligned(span: Span, align: u64) -> Option<Span> {
    let start = span.start.checked_next_multiple_of(align)?;
    let room = (span.start + span.sectors)
        .checked_sub(start)
        .filter(|&room| room > 0)?;
    let sectors = if room > align {
        room - room % align
    } else {
        room
    };
    Some(Span { start, sectors })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(start: Option<u64>, sectors: Option<u64>, align: u64) -> Result<Span, Error> {
        let wanted = NewPart {
            start,
            sectors,
            align_sectors: Some(align),
            ..NewPart::default()
        };
        choose(&[], (1, u64::MAX - 1), &wanted)
    }

    #[test]
    fn numbers_at_the_end_of_their_range_do_not_wrap() {
        for start in [u64::MAX, u64::MAX - 1] {
            for (sectors, align) in [(None, 1), (Some(2), 1), (Some(u64::MAX), 1), (None, 8)] {
                match chosen(Some(start), sectors, align) {
                    Err(Error::OutOfRange { start, end, .. }) => assert!(start <= end),
                    Ok(span) => assert_eq!((span.start, span.sectors), (u64::MAX - 1, 1)),
                    Err(other) => panic!("{other}"),
                }
            }
        }
    }

    #[test]
    fn a_partition_without_a_sector_is_refused() {
        for start in [None, Some(5)] {
            assert!(matches!(chosen(start, Some(0), 1), Err(Error::Empty)));
        }
    }
}
