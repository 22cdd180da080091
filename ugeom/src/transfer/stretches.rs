//! Where a provider has holes, asked piece by piece ahead of a copy.

use super::Geometry;
use std::collections::VecDeque;
use std::ops::Range;
use ugeom_stack::{Channel, ExtentKind, Opened};

/// How many stretches are asked for at a time.
const ASKED: usize = 256;

/// The stretches of a range, from its start on.
pub struct Stretches<'a> {
    channel: Channel,
    opened: &'a Opened,
    geometry: Geometry,
    /// The unused answers: holes or not, in order.
    known: VecDeque<(bool, Range<u64>)>,
    /// Whether the provider answers EXTENTS.
    answers: bool,
}

impl<'a> Stretches<'a> {
    /// Asks a provider over a channel of its own.
    pub fn new(channel: Channel, opened: &'a Opened, geometry: Geometry) -> Self {
        Self {
            channel,
            opened,
            geometry,
            known: VecDeque::new(),
            answers: true,
        }
    }

    /// Whether there is a hole at `range.start`, and up to where, at most to its end. A hole begins
    /// and ends with a sector.
    pub fn at(&mut self, range: &Range<u64>) -> (bool, u64) {
        while self
            .known
            .front()
            .is_some_and(|(_, it)| it.end <= range.start)
        {
            self.known.pop_front();
        }
        if self.known.is_empty() && self.answers {
            self.ask(range);
        }
        match self.known.front() {
            Some((true, it)) if it.start <= range.start => (true, it.end.min(range.end)),
            Some((false, it)) if it.start <= range.start => (false, it.end.min(range.end)),
            _ => (false, range.end),
        }
    }

    fn ask(&mut self, range: &Range<u64>) {
        let sectors = self.geometry.sectors(range);
        let length = sectors.end - sectors.start;
        let asked = self
            .channel
            .extents(self.opened, sectors.start, length, ASKED);
        // Without an answer everything is data.
        let Ok(extents) = asked else {
            self.answers = false;
            return;
        };
        let sector = self.geometry.sector_bytes;
        let mut at = sectors.start;
        for extent in extents {
            let end = at + extent.length_bytes;
            let hole = at.next_multiple_of(sector)..end - end % sector;
            if extent.kind == ExtentKind::Hole && hole.start < hole.end {
                self.push(false, at..hole.start);
                self.push(true, hole.clone());
                self.push(false, hole.end..end);
            } else {
                self.push(false, at..end);
            }
            at = end;
        }
    }

    fn push(&mut self, hole: bool, range: Range<u64>) {
        match self.known.back_mut() {
            Some((same, last)) if *same == hole => last.end = range.end,
            _ if range.is_empty() => {}
            _ => self.known.push_back((hole, range)),
        }
    }
}
