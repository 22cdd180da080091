//! Ranges of bytes and the sectors that they touch.

use super::range_lock::{Claim, RangeLock, Share};
use std::ops::Range;
use std::sync::Arc;
use std::task::Waker;

/// The longest piece of a request, bytes, or one sector if that is more.
pub const PIECE_BYTES: u64 = 1 << 20;

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
pub struct Span {
    /// Where the range begins, bytes.
    pub offset: u64,
    /// Length of the range, bytes.
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
    fn sector_range(&self) -> Range<u64> {
        self.start()..self.start() + self.sectors as u64
    }

    /// The sectors that are touched in part, each once, and where they begin, bytes.
    fn edges(&self, sector_bytes: u64) -> [Option<(Edge, u64)>; 2] {
        let last = self.start() + self.sectors as u64 - sector_bytes;
        let head = self.skip > 0;
        let tail = self.skip + self.length < self.sectors && (!head || last > self.start());
        [
            head.then(|| (Edge::First, self.start())),
            tail.then_some((Edge::Last, last)),
        ]
    }

    /// True when no sector is touched in part.
    pub fn is_whole(&self) -> bool {
        self.skip == 0 && self.length == self.sectors
    }
}

/// The whole sectors inside a range, if there are any.
pub fn whole_sectors(range: &Range<u64>, sector: u64) -> Option<Range<u64>> {
    let start = range.start.checked_next_multiple_of(sector)?;
    let inner = start..range.end - range.end % sector;
    (!inner.is_empty()).then_some(inner)
}

/// A sector that a write changes in part. It is read first, so that the rest of it stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The first sector of the span.
    First,
    /// Its last, when that is another one.
    Last,
}

/// A span that is to be written, and the claim on its sectors.
///
/// ```text
///   claimed --granted--> edges() are read --keep() or edge_ended() each--> written --drop--> free
/// ```
///
/// [`wait`](Self::wait) blocks; [`is_granted_or_wakes`](Self::is_granted_or_wakes) is for a poll.
pub struct ClaimedSpan {
    span: Span,
    claim: Claim,
    /// Edges that are being read.
    edges_left: u8,
}

impl ClaimedSpan {
    /// Claims the sectors of `span`: exclusively when one of them changes in part.
    pub fn new(ranges: &Arc<RangeLock>, span: Span) -> Self {
        let share = match span.is_whole() {
            true => Share::Shared,
            false => Share::Exclusive,
        };
        Self {
            span,
            claim: ranges.claim(span.sector_range(), share),
            edges_left: 0,
        }
    }

    /// See [`Claim::is_granted`].
    pub fn is_granted(&self) -> bool {
        self.claim.is_granted()
    }

    /// See [`Claim::is_granted_or_wakes`].
    pub fn is_granted_or_wakes(&self, waker: &Waker) -> bool {
        self.claim.is_granted_or_wakes(waker)
    }

    /// See [`Claim::wait`].
    pub fn wait(&self) {
        self.claim.wait();
    }

    /// The edges that are to be read now that the claim is granted, with the offsets of their
    /// sectors; none when all sectors are written as a whole.
    pub fn edges(&mut self, sector_bytes: u64) -> impl Iterator<Item = (Edge, u64)> + use<> {
        let edges = self.span.edges(sector_bytes);
        self.edges_left = edges.iter().flatten().count() as u8;
        edges.into_iter().flatten()
    }

    /// Copies what stays of an edge from its `sector` into the sectors of the span. True when the
    /// span can be written.
    pub fn keep(&mut self, edge: Edge, sector: &[u8], sectors: &mut [u8]) -> bool {
        let (skip, end) = (self.span.skip, self.span.skip + self.span.length);
        match edge {
            Edge::First => {
                sectors[..skip].copy_from_slice(&sector[..skip]);
                if end < sector.len() {
                    sectors[end..sector.len()].copy_from_slice(&sector[end..]);
                }
            }
            Edge::Last => {
                let last = self.span.sectors - sector.len();
                sectors[end..self.span.sectors].copy_from_slice(&sector[end - last..]);
            }
        }
        self.edge_ended()
    }

    /// An edge was read, or could not be. True when it was the last one.
    pub fn edge_ended(&mut self) -> bool {
        self.edges_left -= 1;
        self.edges_left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edges_of_a_range_keep_their_neighbours() {
        let ranges = Arc::new(RangeLock::new());
        let kept = |range: Range<u64>| {
            let span = Span::new(&range, 512);
            let mut sectors = vec![9; span.sectors];
            let mut claimed = ClaimedSpan::new(&ranges, span);
            for (edge, offset) in claimed.edges(512) {
                let sector = [(offset / 512) as u8; 512];
                claimed.keep(edge, &sector, &mut sectors);
            }
            sectors
        };
        assert_eq!(
            kept(520..530)[7..19],
            [1, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 1][..]
        );
        let two = kept(1023..2047);
        assert_eq!((two.len(), two[510], two[511], two[512]), (1536, 1, 9, 9));
        assert_eq!((two[1534], two[1535]), (9, 3));
        assert_eq!(kept(512..1024), [9; 512]);
    }

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
