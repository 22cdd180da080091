//! Records of blktrace(8): `struct blk_io_trace` of linux/blktrace_api.h, version 7, in the order
//! of bytes of the machine that recorded them.
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 4 | 0x65617407: a mark and the version |
//! | 4 | 4 | number of the event |
//! | 8 | 8 | time, ns |
//! | 16 | 8 | first sector of 512 bytes |
//! | 24 | 4 | length, bytes |
//! | 28 | 4 | event in the lower half, kinds of the request in the upper one |
//! | 32 | 4 | process |
//! | 36 | 4 | device: minor number in the lower 20 bits, major number above |
//! | 40 | 4 | processor |
//! | 44 | 2 | error |
//! | 46 | 2 | bytes of data that follow |

use std::io::{self, BufRead, Read as _};

use super::lines::SECTOR_BYTES;
use super::{Error, Kind, Reader, Record};

const MARK: u32 = 0x6561_7407;
const RECORD_BYTES: usize = 48;

/// The event of a request that is queued.
const QUEUED: u32 = 1;
// Kinds of requests, as bits of the upper half.
const READ: u32 = 1 << 0;
const WRITE: u32 = 1 << 1;
const FLUSH: u32 = 1 << 2;
const NOTIFY: u32 = 1 << 10;
const DISCARD: u32 = 1 << 13;

/// Whether a trace that begins so is one of blktrace, of a machine that puts the highest byte
/// first.
pub(super) fn known(begin: &[u8]) -> Option<bool> {
    let mark = *begin.first_chunk::<4>()?;
    match (u32::from_le_bytes(mark), u32::from_be_bytes(mark)) {
        (MARK, _) => Some(false),
        (_, MARK) => Some(true),
        _ => None,
    }
}

/// The numbers of a record.
struct Words<'a> {
    bytes: &'a [u8; RECORD_BYTES],
    big_endian: bool,
}

impl Words<'_> {
    fn part<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut part = [0; N];
        part.copy_from_slice(&self.bytes[at..at + N]);
        if self.big_endian {
            part.reverse();
        }
        part
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.part(at))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.part(at))
    }

    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.part(at))
    }
}

impl<R: BufRead> Reader<R> {
    /// The next request that was queued.
    pub(super) fn next_of_blktrace(&mut self, big_endian: bool) -> Result<Option<Record>, Error> {
        let mut bytes = [0; RECORD_BYTES];
        loop {
            let offset = self.offset;
            let wrong = |reason| Error::WrongBytes { offset, reason };
            self.number += 1;
            match self.fill(&mut bytes)? {
                0 => return Ok(None),
                RECORD_BYTES => {}
                _ => return Err(wrong("the trace ends within a record")),
            }
            let words = Words {
                bytes: &bytes,
                big_endian,
            };
            if words.u32(0) != MARK {
                return Err(wrong("this is no record of blktrace, version 7"));
            }
            let data = u64::from(words.u16(46));
            if self.skip(data)? != data {
                return Err(wrong("the trace ends within the data of a record"));
            }
            let Some(kind) = kind_of(words.u32(28), words.u32(24)) else {
                continue;
            };
            let device = words.u32(36);
            if device != self.device.0 {
                let name = format!("{},{}", device >> 20, device & 0xf_ffff);
                self.device = (device, name);
            }
            let name = self.device.1.as_bytes();
            let at_ns = self.parser.since_begin(words.u64(8));
            let (start, length) = match kind {
                Kind::Sync => (Some(0), 0),
                _ => (words.u64(16).checked_mul(SECTOR_BYTES), words.u32(24)),
            };
            let start = start.ok_or(wrong("the request ends behind 2^64 bytes"))?;
            let length = u64::from(length);
            let record = self.parser.complete(at_ns, kind, name, start, length);
            return record.map(Some).map_err(wrong);
        }
    }

    /// Reads as many bytes as there are, up to a record.
    fn fill(&mut self, bytes: &mut [u8; RECORD_BYTES]) -> Result<usize, Error> {
        let mut has = 0;
        while has < RECORD_BYTES {
            match self.input.read(&mut bytes[has..]) {
                Ok(0) => break,
                Ok(more) => has += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    let line = self.number;
                    return Err(Error::Unreadable { line, source });
                }
            }
        }
        self.offset += has as u64;
        Ok(has)
    }

    /// Skips bytes; how many there were.
    fn skip(&mut self, bytes: u64) -> Result<u64, Error> {
        if bytes == 0 {
            return Ok(0);
        }
        let skipped = io::copy(&mut (&mut self.input).take(bytes), &mut io::sink());
        let line = self.number;
        let skipped = skipped.map_err(|source| Error::Unreadable { line, source })?;
        self.offset += skipped;
        Ok(skipped)
    }
}

/// The kind of a request; `None` for other events.
fn kind_of(event: u32, bytes: u32) -> Option<Kind> {
    let kinds = event >> 16;
    let has = |bit: u32| kinds & bit != 0;
    if has(NOTIFY) || event & 0xffff != QUEUED {
        return None;
    }
    match () {
        () if bytes == 0 => has(FLUSH).then_some(Kind::Sync),
        () if has(DISCARD) => Some(Kind::Trim),
        () if has(WRITE) => Some(Kind::Write),
        () if has(READ) => Some(Kind::Read),
        () => None,
    }
}
