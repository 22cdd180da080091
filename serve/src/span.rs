//! Ranges of bytes and the sectors that they touch.

use std::ops::Range;

/// The longest piece of a request, bytes, or one sector if that is more.
pub(crate) const PIECE_BYTES: u64 = 1 << 20;

/// The longest piece of whole sectors, bytes.
#[inline]
fn piece_bytes(sector: u64) -> u64 {
    if sector.is_power_of_two() {
        return PIECE_BYTES.max(sector);
    }
    (PIECE_BYTES / sector).max(1) * sector
}

/// How far an offset is beyond a multiple of `unit`. Units are almost always powers of two, and a
/// division takes as long as a few dozen other instructions.
#[inline]
fn beyond(offset: u64, unit: u64) -> u64 {
    if unit.is_power_of_two() {
        offset & (unit - 1)
    } else {
        offset % unit
    }
}

/// A range of bytes, and the whole sectors that it touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// Where the range begins, bytes.
    pub offset: u64,
    /// Its length, bytes.
    pub length: usize,
    /// How many bytes of the first sector lie before it.
    pub skip: usize,
    /// The length of the sectors, bytes.
    pub sectors: usize,
}

impl Span {
    /// A range, and the sectors of `sector` bytes around it.
    #[inline]
    pub fn new(range: &Range<u64>, sector: u64) -> Self {
        let skip = beyond(range.start, sector);
        let last = beyond(range.end, sector);
        let tail = if last == 0 { 0 } else { sector - last };
        let length = range.end - range.start;
        Self {
            offset: range.start,
            length: length as usize,
            skip: skip as usize,
            sectors: (skip + length + tail) as usize,
        }
    }

    /// A range that is one piece, if it is.
    #[inline]
    pub fn single(range: &Range<u64>, sector: u64) -> Option<Self> {
        let piece = piece_bytes(sector);
        let one = beyond(range.start, piece) + (range.end - range.start) <= piece;
        one.then(|| Self::new(range, sector))
    }

    /// Divides a range into pieces that end where sectors do.
    pub fn pieces(range: Range<u64>, sector: u64) -> impl Iterator<Item = Self> {
        let piece = piece_bytes(sector);
        let mut at = range.start;
        std::iter::from_fn(move || {
            let end = range
                .end
                .min((at - beyond(at, piece)).saturating_add(piece));
            let span = (at < end).then(|| Self::new(&(at..end), sector));
            at = end;
            span
        })
    }

    /// Where the sectors begin, bytes.
    pub fn start(&self) -> u64 {
        self.offset - self.skip as u64
    }

    /// The sectors, as a range of bytes.
    pub fn sector_range(&self) -> Range<u64> {
        self.start()..self.start() + self.sectors as u64
    }

    /// True when no sector is touched in part.
    pub fn is_whole(&self) -> bool {
        self.skip == 0 && self.length == self.sectors
    }
}

/// The whole sectors inside a range, if there are any.
pub(crate) fn whole_sectors(range: &Range<u64>, sector: u64) -> Option<Range<u64>> {
    let inner = range.start.next_multiple_of(sector)..range.end - range.end % sector;
    (!inner.is_empty()).then_some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_a_range_and_end_where_sectors_do() {
        for (range, sector) in [
            (0..1, 512),
            (5..700, 512),
            (1_048_064..1_048_576, 512),
            (1_048_064..1_048_577, 512),
            (1_048_000..3_146_000, 4096),
            (3_000_000..9_000_000, 3 << 19),
            (u64::from(u32::MAX)..u64::from(u32::MAX) + (32 << 20), 512),
        ] {
            let pieces: Vec<Span> = Span::pieces(range.clone(), sector).collect();
            let single = Span::single(&range, sector);
            assert_eq!(single, (pieces.len() == 1).then(|| pieces[0]));
            let mut at = range.start;
            for piece in &pieces {
                assert_eq!(piece.offset, at);
                assert_eq!(piece.start() % sector, 0);
                assert_eq!(piece.sectors as u64 % sector, 0);
                assert!(piece.skip + piece.length <= piece.sectors);
                at += piece.length as u64;
                assert!(at == range.end || at % sector == 0);
            }
            assert_eq!(at, range.end);
        }
    }
}
