//! Recorded events as a file: compact, written as a stream, readable up to the last whole block
//! after a crash.
//!
//! ```text
//!   8 bytes  "UGEOMTR1"
//!   blocks:  u32 length of the data, u32 CRC-32 of it, data; little-endian
//!   first block: the scope, JSON; each other: events
//!   event:   kind, operation, processor (one byte each); then as LEB128 numbers, most of them
//!            differences to the event before in the block (zigzag): time, thread, process, device,
//!            sector, sectors, id, other, extra
//! ```
//!
//! `docs/trace.md` describes it.

use crate::event::{Event, EventKind, Op};
use crate::session::Scope;
use std::io::{self, Read, Write};

const MAGIC: &[u8; 8] = b"UGEOMTR1";
/// A block is written when it has so many bytes.
const BLOCK_BYTES: usize = 64 << 10;
/// Longer blocks are refused.
const BLOCK_BYTES_MAX: usize = 1 << 20;

/// Why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum RecordError {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    #[error("not a recording of ugeom trace: it begins with \"{}\"", .0.escape_ascii())]
    Magic([u8; 8]),
    #[error("a recording of ugeom trace that ends before its first block, at byte {0}")]
    Empty(u64),
    #[error("the block at byte {offset} is damaged: {reason}")]
    Block { offset: u64, reason: String },
}

/// Writes the events of a session to a file, for `ugeom trace show`.
pub struct Writer<W: Write> {
    out: W,
    block: Vec<u8>,
    last: Event,
}

impl<W: Write> Writer<W> {
    /// Begins a recording of these devices.
    ///
    /// # Errors
    /// The error of writing.
    pub fn new(mut out: W, scope: &Scope) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        let json = serde_json::to_vec(scope).map_err(io::Error::other)?;
        let mut writer = Self {
            out,
            block: json,
            last: Event::ZERO,
        };
        writer.end_block()?;
        Ok(writer)
    }

    /// Adds an event, as the differences to the one before.
    ///
    /// # Errors
    /// The error of writing.
    pub fn event(&mut self, event: &Event) -> io::Result<()> {
        let (block, last) = (&mut self.block, &self.last);
        block.extend([event.kind as u8, event.op as u8, event.cpu as u8]);
        number(block, event.time_ns.wrapping_sub(last.time_ns));
        for (now, before) in [
            (u64::from(event.tid), u64::from(last.tid)),
            (u64::from(event.pid), u64::from(last.pid)),
            (u64::from(event.dev), u64::from(last.dev)),
            (event.sector, last.sector),
            (u64::from(event.sectors), u64::from(last.sectors)),
            (event.id, last.id),
            (event.other, last.other),
            (event.extra, 0),
        ] {
            difference(block, now, before);
        }
        self.last = *event;
        if self.block.len() >= BLOCK_BYTES {
            self.end_block()?;
        }
        Ok(())
    }

    /// Says at the end how many events were lost.
    ///
    /// # Errors
    /// The error of writing.
    pub fn lost(&mut self, count: u64) -> io::Result<()> {
        self.event(&Event {
            kind: EventKind::Lost,
            extra: count,
            ..self.last
        })
    }

    /// Writes the block that is not full.
    ///
    /// # Errors
    /// The error of writing.
    pub fn flush(&mut self) -> io::Result<()> {
        if !self.block.is_empty() {
            self.end_block()?;
        }
        self.out.flush()
    }

    fn end_block(&mut self) -> io::Result<()> {
        self.out
            .write_all(&(self.block.len() as u32).to_le_bytes())?;
        self.out
            .write_all(&crc32fast::hash(&self.block).to_le_bytes())?;
        self.out.write_all(&self.block)?;
        self.block.clear();
        self.last = Event::ZERO;
        Ok(())
    }
}

/// Reads the events of a recording back, in order.
pub struct Reader<R: Read> {
    input: R,
    offset: u64,
    /// The last block was not written whole.
    pub truncated: bool,
}

impl<R: Read> Reader<R> {
    /// Opens a recording: it, and its devices.
    ///
    /// # Errors
    /// When it is none.
    pub fn new(input: R) -> Result<(Self, Scope), RecordError> {
        let mut reader = Self {
            input,
            offset: 0,
            truncated: false,
        };
        let mut magic = [0; 8];
        let whole = reader.fill(&mut magic)?;
        let end = magic.iter().position(|byte| *byte == 0 && !whole);
        let read = magic.get(..end.unwrap_or(magic.len())).unwrap_or_default();
        if !MAGIC.starts_with(read) {
            return Err(RecordError::Magic(magic));
        }
        if !whole {
            return Err(RecordError::Empty(read.len() as u64));
        }
        reader.offset = 8;
        let damaged = |reason: String| RecordError::Block { offset: 8, reason };
        let block = reader.block()?.ok_or(RecordError::Empty(8))?;
        let scope = serde_json::from_slice(&block);
        Ok((reader, scope.map_err(|error| damaged(error.to_string()))?))
    }

    /// The events of the next block; none at the end.
    ///
    /// # Errors
    /// When a block is damaged. One that was not written whole is the end.
    pub fn events(&mut self) -> Result<Option<Vec<Event>>, RecordError> {
        let offset = self.offset;
        let Some(block) = self.block()? else { return Ok(None) };
        let (mut rest, mut events, mut last) = (block.as_slice(), Vec::new(), Event::ZERO);
        while !rest.is_empty() {
            let place = block.len() - rest.len();
            let Some(event) = event(&mut rest, &last) else {
                let reason = format!("byte {place} of its data is not an event");
                return Err(RecordError::Block { offset, reason });
            };
            events.push(event);
            last = event;
        }
        Ok(Some(events))
    }

    fn block(&mut self) -> Result<Option<Vec<u8>>, RecordError> {
        let mut head = [0; 8];
        if !self.fill(&mut head)? {
            return Ok(None);
        }
        let [a, b, c, d, e, f, g, h] = head;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        let offset = self.offset;
        if length > BLOCK_BYTES_MAX {
            let reason = format!("{length} bytes, {BLOCK_BYTES_MAX} are the most");
            return Err(RecordError::Block { offset, reason });
        }
        let mut data = vec![0; length];
        if !self.fill(&mut data)? {
            self.truncated = true;
            return Ok(None);
        }
        let (found, expected) = (u32::from_le_bytes([e, f, g, h]), crc32fast::hash(&data));
        if found != expected {
            let reason = format!("CRC {found:08x}, its bytes give {expected:08x}");
            return Err(RecordError::Block { offset, reason });
        }
        self.offset += 8 + length as u64;
        Ok(Some(data))
    }

    /// Reads that many bytes; false at the end, which is marked where it is inside of them.
    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<bool> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.input.read(&mut bytes[filled..]) {
                Ok(0) => {
                    self.truncated |= filled > 0;
                    return Ok(false);
                }
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Zigzag: small differences of either sign are small numbers.
fn difference(out: &mut Vec<u8>, now: u64, before: u64) {
    let signed = now.wrapping_sub(before) as i64;
    number(out, (signed << 1 ^ signed >> 63) as u64);
}

fn event(rest: &mut &[u8], last: &Event) -> Option<Event> {
    let (head, tail) = rest.split_at_checked(3)?;
    *rest = tail;
    let ops = [Op::Read, Op::Write, Op::Flush, Op::Discard, Op::Other];
    let (kind, op) = (EventKind::numbered(head[0])?, *ops.get(head[1] as usize)?);
    let time_ns = last.time_ns.wrapping_add(read_number(rest)?);
    let mut next = |before: u64| {
        let value = read_number(rest)?;
        let signed = (value >> 1) as i64 ^ -((value & 1) as i64);
        Some(before.wrapping_add(signed as u64))
    };
    Some(Event {
        time_ns,
        kind,
        cpu: u16::from(head[2]),
        op,
        tid: next(u64::from(last.tid))? as u32,
        pid: next(u64::from(last.pid))? as u32,
        dev: next(u64::from(last.dev))? as u32,
        sector: next(last.sector)?,
        sectors: next(u64::from(last.sectors))? as u32,
        id: next(last.id)?,
        other: next(last.other)?,
        extra: next(0)?,
    })
}

fn read_number(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, tail) = rest.split_first()?;
        *rest = tail;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Requests as a trace that fio replays: `fio version 3 iolog`, times in us from the first one, as
/// fio's --write_iolog writes them. Source: fio(1), "Trace file format v3".
pub struct Iolog<W: Write> {
    out: W,
    file: String,
    start_ns: Option<u64>,
    last_us: u64,
}

impl<W: Write> Iolog<W> {
    /// Begins a trace of requests to that path.
    ///
    /// # Errors
    /// The error of writing.
    pub fn new(mut out: W, file: &str) -> io::Result<Self> {
        write!(out, "fio version 3 iolog\n0 {file} add\n0 {file} open\n")?;
        Ok(Self {
            out,
            file: file.to_owned(),
            start_ns: None,
            last_us: 0,
        })
    }

    /// Adds a request that began at that moment.
    ///
    /// # Errors
    /// The error of writing.
    pub fn request(&mut self, at_ns: u64, op: Op, sector: u64, sectors: u32) -> io::Result<()> {
        let start_ns = *self.start_ns.get_or_insert(at_ns);
        let (us, file) = (at_ns.saturating_sub(start_ns) / 1000, &self.file);
        self.last_us = self.last_us.max(us);
        let (offset, length) = (u128::from(sector) * 512, u64::from(sectors) * 512);
        match op {
            Op::Read if length > 0 => writeln!(self.out, "{us} {file} read {offset} {length}"),
            // A write without data is a flush of the block layer.
            Op::Write if length > 0 => writeln!(self.out, "{us} {file} write {offset} {length}"),
            Op::Discard if length > 0 => writeln!(self.out, "{us} {file} trim {offset} {length}"),
            Op::Write | Op::Flush => writeln!(self.out, "{us} {file} sync 0 0"),
            _ => Ok(()),
        }
    }

    /// Closes the file in the log, and writes the rest.
    ///
    /// # Errors
    /// The error of writing.
    pub fn finish(mut self) -> io::Result<()> {
        let (us, file) = (self.last_us, &self.file);
        writeln!(self.out, "{us} {file} close")?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ugeom_testkit::begins;

    fn recorded(events: &[Event]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, &Scope::default()).unwrap();
        for event in events {
            writer.event(event).unwrap();
        }
        writer.flush().unwrap();
        bytes
    }

    fn read(bytes: &[u8]) -> Result<(Vec<Event>, bool), RecordError> {
        let (mut reader, _) = Reader::new(bytes)?;
        let mut events = Vec::new();
        while let Some(more) = reader.events()? {
            events.extend(more);
        }
        Ok((events, reader.truncated))
    }

    #[test]
    fn a_recording_that_breaks_off_is_read_up_to_its_last_block() {
        let events: Vec<Event> = (0..20_000_u64)
            .map(|at| Event {
                time_ns: at * 1000,
                sector: at * 7919,
                id: at,
                ..Event::ZERO
            })
            .collect();
        let bytes = recorded(&events);
        assert!(bytes.len() < events.len() * 24, "{} bytes", bytes.len());
        assert_eq!(read(&bytes).unwrap(), (events.clone(), false));
        let (some, truncated) = read(&bytes[..bytes.len() - 1]).unwrap();
        assert!(truncated && some.len() > 10_000 && some[..] == events[..some.len()]);
    }

    #[test]
    fn a_damaged_block_is_named_by_its_place() {
        let mut bytes = recorded(&[Event::ZERO]);
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        let error = read(&bytes).unwrap_err().to_string();
        assert!(error.contains("is damaged: CRC"), "{error}");
        let error = read(b"UGEOMTR2........").unwrap_err().to_string();
        begins(&error, "not a recording of ugeom trace");
    }

    #[test]
    fn requests_are_lines_of_fios_third_version() {
        let mut bytes = Vec::new();
        let mut log = Iolog::new(&mut bytes, "/dev/vda").unwrap();
        log.request(5_000_000, Op::Read, 8, 8).unwrap();
        log.request(12_900_000, Op::Write, 16, 1).unwrap();
        log.request(13_000_000, Op::Write, 0, 0).unwrap();
        log.finish().unwrap();
        assert_eq!(
            String::from_utf8(bytes).unwrap(),
            "fio version 3 iolog\n0 /dev/vda add\n0 /dev/vda open\n0 /dev/vda read 4096 4096\n\
             7900 /dev/vda write 8192 512\n8000 /dev/vda sync 0 0\n8000 /dev/vda close\n"
        );
    }

    proptest! {
        #[test]
        fn events_come_back_as_they_were(
            list in prop::collection::vec(
                (any::<u64>(), 1_u8..20, any::<u8>(), any::<u32>(), any::<u64>(), any::<u64>()),
                0..50
            )
        ) {
            let events: Vec<Event> = list.into_iter().map(|(a, kind, cpu, b, c, d)| Event {
                time_ns: a,
                kind: EventKind::numbered(kind).unwrap(),
                cpu: u16::from(cpu),
                op: Op::of_flags(b),
                tid: b,
                pid: !b,
                dev: b.rotate_left(7),
                sector: c,
                sectors: b,
                id: d,
                other: !c,
                extra: a ^ d,
            }).collect();
            prop_assert_eq!(read(&recorded(&events)).unwrap(), (events, false));
        }

        #[test]
        fn any_bytes_are_a_recording_or_an_error(data: Vec<u8>, at: usize, with: u8) {
            let _ = read(&data);
            let mut bytes = recorded(&[Event::ZERO; 3]);
            let length = bytes.len();
            bytes[at % length] = with;
            let _ = read(&bytes);
        }
    }
}
