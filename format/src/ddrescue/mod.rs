//! The map file of GNU ddrescue: which parts of a disk have been read.
//!
//! ```text
//! # Mapfile. Created by ...
//! # current_pos  current_status  current_pass
//! 0x00000000     +               1
//! #      pos        size  status
//! 0x00000000  0x00100000  +
//! 0x00100000  0x00000200  -
//! ```
//! Source: the manual of GNU ddrescue 1.27, "Mapfile structure"; `docs/formats/ddrescue.md`.

use std::fmt;
use std::ops::Range;

/// The longest map that is read, in lines that name a block.
pub(crate) const BLOCKS_MAX: usize = 1 << 20;

/// The state of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// `?`: not tried yet.
    Untried,
    /// `*`: a read of the whole block failed.
    Failed,
    /// `/`: its edges are known, its inside is not.
    Trimmed,
    /// `-`: sectors that could not be read.
    Bad,
    /// `+`: read without an error.
    Done,
}

impl Status {
    const ALL: [(char, Self); 5] = [
        ('?', Self::Untried),
        ('*', Self::Failed),
        ('/', Self::Trimmed),
        ('-', Self::Bad),
        ('+', Self::Done),
    ];

    fn glyph(self) -> char {
        let found = Self::ALL.iter().find(|(_, status)| *status == self);
        found.map_or('?', |(glyph, _)| *glyph)
    }
}

/// Why a text is no map.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
#[allow(missing_docs, reason = "messages name the fields")]
pub struct Error {
    pub line: usize,
    pub problem: &'static str,
}

/// A map: blocks in order, without gaps and without overlaps. Sectors outside of them were not
/// tried.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Map {
    blocks: Vec<(Range<u64>, Status)>,
    /// The bytes of each status, in the order of [`Status::ALL`].
    bytes: [u64; Status::ALL.len()],
}

impl Map {
    /// A map of a range that was not tried.
    pub fn new(range: Range<u64>) -> Self {
        let mut map = Self::default();
        map.set(range, Status::Untried);
        map
    }

    /// Parses the text of a map file.
    ///
    /// # Errors
    /// A line is wrong, blocks overlap or leave a gap, or there are more than [`BLOCKS_MAX`].
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut map = Self::default();
        let mut has_status = false;
        for (number, line) in text.lines().enumerate() {
            let wrong = |problem| Error {
                line: number + 1,
                problem,
            };
            let line = line.split('#').next().unwrap_or("").trim();
            if line.is_empty() {
                continue;
            }
            let mut words = line.split_whitespace();
            let pos = words.next().and_then(number_of);
            let pos = pos.ok_or_else(|| wrong("no number of bytes"))?;
            if !has_status {
                has_status = true;
                continue;
            }
            let size = words.next().and_then(number_of);
            let size = size.ok_or_else(|| wrong("no size"))?;
            let end = pos.checked_add(size).filter(|_| size > 0);
            let end = end.ok_or_else(|| wrong("a size of 0, or past 2^64"))?;
            let mut glyph = words.next().unwrap_or("").chars();
            let glyph = glyph.next().filter(|_| glyph.next().is_none());
            let found = Status::ALL.iter().find(|(it, _)| Some(*it) == glyph);
            let (_, status) = found.ok_or_else(|| wrong("no status (?, *, /, - or +)"))?;
            if map.blocks.last().is_some_and(|(last, _)| last.end != pos) {
                return Err(wrong("it does not begin where the block before it ends"));
            }
            if map.blocks.len() == BLOCKS_MAX {
                return Err(wrong("too many blocks"));
            }
            map.blocks.push((pos..end, *status));
            map.bytes[*status as usize] += size;
        }
        Ok(map)
    }

    /// All blocks, in order.
    pub fn blocks(&self) -> impl DoubleEndedIterator<Item = (Range<u64>, Status)> + '_ {
        self.blocks.iter().cloned()
    }

    /// The blocks of one status.
    pub fn with(&self, status: Status) -> Vec<Range<u64>> {
        let found = self.blocks.iter().filter(|(_, it)| *it == status);
        found.map(|(range, _)| range.clone()).collect()
    }

    /// The number of bytes of one status.
    pub fn bytes(&self, status: Status) -> u64 {
        self.bytes[status as usize]
    }

    /// Gives a range a status. The rest of the blocks keeps its status; a gap between was not
    /// tried.
    pub fn set(&mut self, range: Range<u64>, status: Status) {
        if range.is_empty() {
            return;
        }
        let mut before = self.blocks.partition_point(|(it, _)| it.end < range.start);
        let after = self.blocks.partition_point(|(it, _)| it.start <= range.end);
        let mut put: Vec<(Range<u64>, Status)> = Vec::with_capacity(5);
        match self.blocks.get(before) {
            Some((first, kept)) if first.start < range.start => {
                put.push((first.start..range.start.min(first.end), *kept));
            }
            None if before > 0 => {
                before -= 1;
                let last = self.blocks[before].clone();
                put.push((last.0.end..range.start, Status::Untried));
                put.insert(0, last);
            }
            _ => {}
        }
        put.push((range.clone(), status));
        if let Some((last, kept)) = self.blocks[before..after].last()
            && last.end > range.end
        {
            put.push((range.end..last.end, *kept));
        }
        if let Some((next, _)) = self.blocks.get(after)
            && put.last().is_some_and(|(last, _)| last.end < next.start)
        {
            let gap = put.last().map_or(range.end, |(last, _)| last.end)..next.start;
            put.push((gap, Status::Untried));
        }
        let mut joined: Vec<(Range<u64>, Status)> = Vec::with_capacity(put.len());
        for (range, status) in put {
            match joined.last_mut() {
                Some((last, same)) if *same == status && last.end == range.start => {
                    last.end = range.end;
                }
                _ => joined.push((range, status)),
            }
        }
        for (range, status) in &joined {
            self.bytes[*status as usize] += range.end - range.start;
        }
        for (range, status) in self.blocks.splice(before..after.max(before), joined) {
            self.bytes[status as usize] -= range.end - range.start;
        }
    }
}

fn number_of(word: &str) -> Option<u64> {
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => word.parse().ok(),
    }
}

impl fmt::Display for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = self
            .blocks
            .iter()
            .find(|(_, status)| *status != Status::Done);
        let (at, glyph) = open.map_or((0, '+'), |(range, status)| {
            let phase = if *status == Status::Bad {
                '-'
            } else {
                status.glyph()
            };
            (range.start, phase)
        });
        writeln!(f, "# Mapfile. Created by ugeom")?;
        writeln!(f, "# current_pos  current_status  current_pass")?;
        writeln!(f, "0x{at:08X}     {glyph}               1")?;
        writeln!(f, "#      pos        size  status")?;
        for (range, status) in &self.blocks {
            let size = range.end - range.start;
            writeln!(f, "0x{:08X}  0x{size:08X}  {}", range.start, status.glyph())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
