//! Traces of requests: fio's iolog, versions 2 and 3, the CSV of MSR Cambridge, of Alibaba and of
//! VMware's vscsiStats, the lines of blkparse(1), and the recordings of blktrace(8).
//!
//! ```text
//! fio version 2 iolog           fio version 3 iolog
//! /dev/sda add                  0 /dev/sda add
//! /dev/sda read 4096 8192       125 /dev/sda read 4096 8192      us since the beginning
//! /dev/sda wait 250 0           375 /dev/sda close               a pause of 250 us in version 2
//!
//! MSR:      128166372003061629,usr,0,Read,7014609920,24576,41286    100 ns since 1601
//! Alibaba:  419,W,8792731648,16384,1577808144360767                 us since 1970
//! vscsi:    2147483692,4096,1,write,24048792,2756778716647          sectors of 512 bytes, us
//! blkparse: 8,0 3 1 0.000000000 697 Q W 223490 + 8 [kjournald]      sectors, s and ns
//! ```
//!
//! A trace is read as it comes, with memory for one line and the names of the files. Sources:
//! `docs/formats/trace.md`.

mod binary;
mod blkparse;
mod fields;
mod lines;
#[cfg(test)]
mod tests;

use std::io::{self, BufRead, Read as _};

use lines::Parser;

/// The longest line, bytes.
pub const LINE_BYTES_MAX: usize = 64 << 10;
/// The most files that a trace may name.
pub const FILES_MAX: usize = 1 << 16;

/// The kind of a request of a trace or of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Fills a buffer from the range.
    Read,
    /// Fills the range from a buffer.
    Write,
    /// Discards the range (TRIM).
    Trim,
    /// Makes earlier writes durable, as fdatasync(2) does.
    DataSync,
    /// The same with the times of the file, as fsync(2) does.
    Sync,
}

/// One request of a trace, in the form that all formats are read into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it is due, ns since the first record of the trace.
    pub at_ns: u64,
    /// Reads, writes, discards or syncs.
    pub kind: Kind,
    /// The index of its file in [`Reader::files`].
    pub file: u32,
    /// Byte offset on the device.
    pub offset_bytes: u64,
    /// Length of the request, bytes.
    pub length_bytes: u32,
}

/// How a trace is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// fio's log, without times but for pauses.
    FioVersion2,
    /// fio's log with times.
    FioVersion3,
    /// SNIA's block traces of MSR Cambridge.
    Msr,
    /// The CSV of Alibaba's block traces of 2020.
    Alibaba,
    /// The CSV of VMware's vscsiStats.
    Vscsi,
    /// The default output of blkparse(1).
    Blkparse,
    /// The recording of blktrace(8), also joined by blkparse(1) with `-d`.
    Blktrace {
        /// The trace is of a machine that puts the highest byte first.
        big_endian: bool,
    },
}

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum Error {
    /// The system did not deliver it.
    #[error("line {line}: {source}")]
    Unreadable {
        /// The line, or the record of a binary trace, counted from 1.
        line: u64,
        /// The error of the system.
        source: io::Error,
    },
    /// Bytes are no record.
    #[error("byte {offset}: {reason}")]
    WrongBytes {
        /// Where the record begins.
        offset: u64,
        reason: &'static str,
    },
    /// A line is no record.
    #[error("line {line}: {reason}")]
    Wrong {
        /// The line, counted from 1.
        line: u64,
        reason: &'static str,
    },
}

/// Reads the requests of a trace, in any [`Dialect`], one by one.
pub struct Reader<R> {
    input: R,
    dialect: Dialect,
    /// The first line of a trace without a header, which is a record.
    line: Vec<u8>,
    has_line: bool,
    /// Lines, or records of a binary trace, so far; and bytes of the latter.
    number: u64,
    offset: u64,
    /// The device of the last binary record, and its name.
    device: (u32, String),
    parser: Parser,
}

impl<R: BufRead> Reader<R> {
    /// Reads the first line, which names the format.
    ///
    /// # Errors
    /// The trace is empty, of no known form, or cannot be read.
    pub fn new(input: R) -> Result<Self, Error> {
        let mut reader = Self {
            input,
            dialect: Dialect::FioVersion3,
            line: Vec::new(),
            has_line: false,
            number: 0,
            offset: 0,
            device: (0, "0,0".to_owned()),
            parser: Parser::default(),
        };
        let begin = reader.input.fill_buf();
        let begin = begin.map_err(|source| Error::Unreadable { line: 1, source })?;
        if let Some(big_endian) = binary::known(begin) {
            reader.dialect = Dialect::Blktrace { big_endian };
            return Ok(reader);
        }
        if !reader.next_line()? {
            return Err(reader.wrong("the trace is empty"));
        }
        reader.dialect = match reader.line.trim_ascii() {
            b"fio version 2 iolog" => Dialect::FioVersion2,
            b"fio version 3 iolog" => Dialect::FioVersion3,
            line => {
                reader.has_line = true;
                lines::dialect(line).ok_or(Error::Wrong {
                    line: 1,
                    reason: "this is neither `fio version 2 iolog` nor version 3, nor CSV of MSR \
                             Cambridge, Alibaba or vscsiStats, nor of blktrace or blkparse",
                })?
            }
        };
        Ok(reader)
    }

    /// How the trace is written.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The files of the records so far, by their indexes.
    pub fn files(&self) -> &[String] {
        self.parser.files()
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// A line that is no record, or that cannot be read.
    pub fn next_record(&mut self) -> Result<Option<Record>, Error> {
        if let Dialect::Blktrace { big_endian } = self.dialect {
            return self.next_of_blktrace(big_endian);
        }
        loop {
            if !self.has_line
                && let Some(record) = self.next_in_memory()
            {
                match record? {
                    Some(record) => return Ok(Some(record)),
                    None => continue,
                }
            }
            if !std::mem::take(&mut self.has_line) && !self.next_line()? {
                return Ok(None);
            }
            let record = self.parser.record(self.dialect, self.line.trim_ascii_end());
            if let Some(record) = record.map_err(|reason| self.wrong(reason))? {
                return Ok(Some(record));
            }
        }
    }

    /// The event of the next line, without a copy if all of it is in the input's memory.
    #[inline]
    fn next_in_memory(&mut self) -> Option<Result<Option<Record>, Error>> {
        // An error comes back when the line is read.
        let buffer = self.input.fill_buf().ok()?;
        let end = fields::line_end(&buffer[..buffer.len().min(LINE_BYTES_MAX + 1)])?;
        self.number += 1;
        let record = self
            .parser
            .record(self.dialect, buffer[..end].trim_ascii_end());
        self.input.consume(end + 1);
        Some(record.map_err(|reason| self.wrong(reason)))
    }

    fn wrong(&self, reason: &'static str) -> Error {
        Error::Wrong {
            line: self.number.max(1),
            reason,
        }
    }

    /// Reads a line; false at the end.
    fn next_line(&mut self) -> Result<bool, Error> {
        self.line.clear();
        self.number += 1;
        let most = LINE_BYTES_MAX as u64 + 1;
        let read = (&mut self.input)
            .take(most)
            .read_until(b'\n', &mut self.line);
        match read {
            Err(source) => {
                let line = self.number;
                Err(Error::Unreadable { line, source })
            }
            Ok(bytes) if bytes as u64 == most && self.line.last() != Some(&b'\n') => {
                Err(self.wrong("the line is longer than 64 KiB"))
            }
            Ok(bytes) => Ok(bytes > 0),
        }
    }
}
