//! Entries of logs: as lines, and as compressed logs have them (`log_store_compressed`, fio's
//! `iolog.h` and `iolog.c`): streams of zlib (RFC 1950), one after the other, of samples in the
//! machine's byte order.
//!
//! ```text
//! byte  0  time u64, ms        8  value u64       16  u32: kind (0 read, 1 write, 2 trim), flags
//!      20  priority u16       22  unused          24  size u64
//!      32  offset u64, where flag 31 says so; flag 30: lines have the whole priority
//! ```

use std::fmt::Write as _;
use std::io::{self, Read, Write};

use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};
use ugeom_machine::io_priority::is_real_time;

/// zlib's own default.
const LEVEL: u8 = 6;
/// Read and unpacked at a time, bytes.
const CHUNK_BYTES: usize = 64 << 10;

const OFFSETS: u32 = 1 << 31;
const PRIORITIES: u32 = 1 << 30;

/// One entry of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    pub time_ms: u64,
    pub value: u64,
    /// 0 read, 1 write, 2 trim.
    pub kind: u32,
    pub priority: u16,
    pub bytes: u64,
    pub offset: u64,
}

/// What the entries of a log have besides time, value, kind and size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// The offset of the request.
    pub offsets: bool,
    /// The whole priority; else 1 for the real-time class and 0.
    pub priorities: bool,
}

impl Columns {
    /// Bytes of a sample.
    fn len(self) -> usize {
        if self.offsets { 40 } else { 32 }
    }

    fn flags(self) -> u32 {
        let flag = |has, flag| if has { flag } else { 0 };
        flag(self.offsets, OFFSETS) | flag(self.priorities, PRIORITIES)
    }
}

impl Sample {
    /// Appends the line of the entry.
    pub fn write_line(&self, columns: Columns, text: &mut String) {
        let Self {
            time_ms,
            value,
            kind,
            bytes,
            offset,
            priority,
        } = self;
        let _ = write!(text, "{time_ms}, {value}, {kind}, {bytes}, ");
        if columns.offsets {
            let _ = write!(text, "{offset}, ");
        }
        let _ = match columns.priorities {
            true => writeln!(text, "{priority:#06x}"),
            false => writeln!(text, "{}", u8::from(is_real_time(*priority))),
        };
    }

    fn write_bytes(&self, columns: Columns, to: &mut Vec<u8>) {
        to.extend(self.time_ms.to_ne_bytes());
        to.extend(self.value.to_ne_bytes());
        to.extend((self.kind | columns.flags()).to_ne_bytes());
        to.extend(self.priority.to_ne_bytes());
        to.extend([0; 2]);
        to.extend(self.bytes.to_ne_bytes());
        if columns.offsets {
            to.extend(self.offset.to_ne_bytes());
        }
    }

    /// The sample in `columns.len()` bytes.
    fn of(bytes: &[u8], columns: Columns) -> Self {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_ne_bytes(word)
        };
        Self {
            time_ms: word(0),
            value: word(8),
            kind: kind_and_flags(bytes) & !(OFFSETS | PRIORITIES),
            priority: u16::from_ne_bytes([bytes[20], bytes[21]]),
            bytes: word(24),
            offset: if columns.offsets { word(32) } else { 0 },
        }
    }
}

fn kind_and_flags(bytes: &[u8]) -> u32 {
    u32::from_ne_bytes([bytes[16], bytes[17], bytes[18], bytes[19]])
}

/// The samples as one stream of a compressed log.
pub fn packed(samples: impl Iterator<Item = Sample>, columns: Columns) -> Vec<u8> {
    let mut bytes = Vec::new();
    samples.for_each(|sample| sample.write_bytes(columns, &mut bytes));
    match bytes.is_empty() {
        true => bytes,
        false => compress_to_vec_zlib(&bytes, LEVEL),
    }
}

/// The lines of a stream, as its samples come.
#[derive(Default)]
struct Lines {
    /// Unpacked bytes that are no whole sample yet.
    bytes: Vec<u8>,
    /// Of this stream, once its first sample is there.
    columns: Option<Columns>,
}

impl Lines {
    fn print(&mut self, to: &mut impl Write) -> io::Result<()> {
        if self.columns.is_none() && self.bytes.len() >= 32 {
            let flags = kind_and_flags(&self.bytes);
            self.columns = Some(Columns {
                offsets: flags & OFFSETS > 0,
                priorities: flags & PRIORITIES > 0,
            });
        }
        let Some(columns) = self.columns else { return Ok(()) };
        let samples = self.bytes.chunks_exact(columns.len());
        let rest = samples.remainder().len();
        let mut text = String::new();
        samples.for_each(|bytes| Sample::of(bytes, columns).write_line(columns, &mut text));
        self.bytes.drain(..self.bytes.len() - rest);
        to.write_all(text.as_bytes())
    }
}

/// Why a compressed log is not printed.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// It cannot be read; `InvalidData` and `UnexpectedEof` for what is no compressed log.
    #[error(transparent)]
    Input(io::Error),
    /// Its text cannot be written.
    #[error(transparent)]
    Output(io::Error),
}

/// Prints a compressed log as text, with constant memory (`--inflate-log`).
///
/// # Errors
/// [`LogError`].
pub fn inflate_log(input: &mut impl Read, output: &mut impl Write) -> Result<(), LogError> {
    let damaged = |why: &str| LogError::Input(io::Error::new(io::ErrorKind::InvalidData, why));
    let mut state = InflateState::new_boxed(DataFormat::Zlib);
    let (mut ahead, mut unpacked) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
    let (mut begin, mut end) = (0, 0);
    // Whether a stream has begun and not ended.
    let mut inside = false;
    let mut lines = Lines::default();
    loop {
        let step = inflate(&mut state, &ahead[begin..end], &mut unpacked, MZFlush::None);
        begin += step.bytes_consumed;
        inside |= step.bytes_consumed > 0;
        lines.bytes.extend(&unpacked[..step.bytes_written]);
        lines.print(output).map_err(LogError::Output)?;
        match step.status {
            Ok(MZStatus::StreamEnd) => {
                if !lines.bytes.is_empty() {
                    return Err(damaged("a compressed log has a part of an entry"));
                }
                lines = Lines::default();
                state = InflateState::new_boxed(DataFormat::Zlib);
                inside = false;
            }
            Ok(_) | Err(MZError::Buf) => {}
            Err(_) => return Err(damaged("no compressed log of fio")),
        }
        if begin == end && step.bytes_written == 0 {
            (begin, end) = (0, input.read(&mut ahead).map_err(LogError::Input)?);
            if end == 0 {
                break;
            }
        }
    }
    match inside {
        true => Err(LogError::Input(io::ErrorKind::UnexpectedEof.into())),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(count: u64) -> impl Iterator<Item = Sample> {
        (0..count).map(|n| Sample {
            time_ms: n / 7,
            value: n * n * 12_345,
            kind: (n % 3) as u32,
            priority: if n % 5 == 0 { 0x2003 } else { 0 },
            bytes: 4096 << (n % 4),
            offset: n << 12,
        })
    }

    fn text(packed: &[u8]) -> Result<String, LogError> {
        let mut text = Vec::new();
        inflate_log(&mut &packed[..], &mut text)?;
        Ok(String::from_utf8(text).unwrap())
    }

    #[test]
    fn a_compressed_log_has_the_lines_of_its_streams() {
        let (mut all, mut lines) = (Vec::new(), String::new());
        for (offsets, priorities, count) in [
            (false, false, 1),
            (true, true, 10_000),
            (false, true, 0),
            (true, false, 77),
        ] {
            let columns = Columns {
                offsets,
                priorities,
            };
            all.extend(packed(samples(count), columns));
            samples(count).for_each(|sample| sample.write_line(columns, &mut lines));
        }
        assert_eq!(text(&all).unwrap(), lines);
        assert_eq!(text(b"").unwrap(), "");
    }

    #[test]
    fn what_is_no_compressed_log_is_an_error() {
        let whole = packed(samples(100), Columns::default());
        for (bytes, kind) in [
            (&b"0, 1, 2, 3, 4\n"[..], io::ErrorKind::InvalidData),
            (&whole[..whole.len() - 1], io::ErrorKind::UnexpectedEof),
            (&whole[..20], io::ErrorKind::UnexpectedEof),
            (
                &compress_to_vec_zlib(&[0; 50], LEVEL),
                io::ErrorKind::InvalidData,
            ),
        ] {
            let Err(LogError::Input(error)) = text(bytes) else {
                panic!("{} bytes are a log", bytes.len());
            };
            assert_eq!(error.kind(), kind, "{} bytes", bytes.len());
        }
    }
}
