//! Traces of requests as text, a line each: fio's iolog, versions 2 and 3, and the CSV of MSR
//! Cambridge and of Alibaba.
//!
//! ```text
//! fio version 2 iolog           fio version 3 iolog
//! /dev/sda add                  0 /dev/sda add
//! /dev/sda read 4096 8192       125 /dev/sda read 4096 8192      us since the beginning
//! /dev/sda wait 250 0           375 /dev/sda close               a pause of 250 us in version 2
//!
//! MSR:      128166372003061629,usr,0,Read,7014609920,24576,41286    100 ns since 1601
//! Alibaba:  419,W,8792731648,16384,1577808144360767                 us since 1970
//! ```
//!
//! A trace is read as it comes, with memory for one line and the names of the files. Sources:
//! `docs/formats/trace.md`.

mod fields;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{self, BufRead};

use fields::Fields;

/// The longest line, bytes.
pub const LINE_BYTES_MAX: usize = 64 << 10;
/// The most files that a trace may name.
pub const FILES_MAX: usize = 1 << 16;

/// What a request of a trace does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Discards.
    Trim,
    /// Makes earlier writes durable.
    Sync,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it is due, ns since the first record of the trace.
    pub at_ns: u64,
    /// What it does.
    pub action: Action,
    /// The index of its file in [`Reader::files`].
    pub file: u32,
    /// Where, bytes.
    pub offset_bytes: u64,
    /// How much, bytes.
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
    /// Alibaba's block traces.
    Alibaba,
}

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system did not deliver it.
    #[error("line {line}: {source}")]
    Unreadable {
        /// The line, counted from 1.
        line: u64,
        /// What the system said.
        source: io::Error,
    },
    /// A line is no record.
    #[error("line {line}: {reason}")]
    Wrong {
        /// The line, counted from 1.
        line: u64,
        /// What is wrong.
        reason: &'static str,
    },
}

/// Reads a trace.
pub struct Reader<R> {
    input: R,
    dialect: Dialect,
    /// The first line of a trace without a header, which is a record.
    line: Vec<u8>,
    has_line: bool,
    number: u64,
    files: Vec<String>,
    indexes: BTreeMap<Vec<u8>, u32>,
    /// The name that was looked up last: most records have it again.
    last: (Vec<u8>, u32),
    /// The time of the first record, in ns of the trace's clock; the pauses so far in version 2.
    begin_ns: Option<u64>,
    waited_ns: u64,
}

impl<R: BufRead> Reader<R> {
    /// Reads the first line, which says what the rest is.
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
            files: Vec::new(),
            indexes: BTreeMap::new(),
            last: (Vec::new(), 0),
            begin_ns: None,
            waited_ns: 0,
        };
        if !reader.next_line()? {
            return Err(reader.wrong("the trace is empty"));
        }
        reader.dialect = match reader.line.trim_ascii() {
            b"fio version 2 iolog" => Dialect::FioVersion2,
            b"fio version 3 iolog" => Dialect::FioVersion3,
            line => {
                reader.has_line = true;
                fields::csv_dialect(line).ok_or(Error::Wrong {
                    line: 1,
                    reason: "this is neither `fio version 2 iolog` nor version 3, nor CSV of MSR \
                             Cambridge or Alibaba",
                })?
            }
        };
        Ok(reader)
    }

    /// How the trace is written.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The files of the records so far, by their indexes.
    #[must_use]
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// A line that is no record, or that cannot be read.
    pub fn next_record(&mut self) -> Result<Option<Record>, Error> {
        loop {
            if !std::mem::take(&mut self.has_line) && !self.next_line()? {
                return Ok(None);
            }
            let line = std::mem::take(&mut self.line);
            let record = self.record(line.trim_ascii());
            self.line = line;
            if let Some(record) = record.map_err(|reason| self.wrong(reason))? {
                return Ok(Some(record));
            }
        }
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
        loop {
            let piece = match self.input.fill_buf() {
                Ok(piece) => piece,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => {
                    let line = self.number;
                    return Err(Error::Unreadable { line, source });
                }
            };
            if piece.is_empty() {
                return Ok(!self.line.is_empty());
            }
            let end = piece.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(piece.len());
            if self.line.len() + taken > LINE_BYTES_MAX {
                return Err(self.wrong("the line is longer than 64 KiB"));
            }
            self.line.extend_from_slice(&piece[..taken]);
            let used = end.map_or(taken, |end| end + 1);
            self.input.consume(used);
            if end.is_some() {
                return Ok(true);
            }
        }
    }

    /// What a line says; nothing for one that is no request.
    fn record(&mut self, line: &[u8]) -> Result<Option<Record>, &'static str> {
        if line.is_empty() {
            return Ok(None);
        }
        match self.dialect {
            Dialect::FioVersion2 => self.of_fio(Fields::spaced(line), None),
            Dialect::FioVersion3 => {
                let mut fields = Fields::spaced(line);
                let us = fields.number("a time in us is missing")?;
                self.of_fio(fields, Some(us))
            }
            Dialect::Msr => self.of_msr(Fields::commas(line)).map(Some),
            Dialect::Alibaba => self.of_alibaba(Fields::commas(line)).map(Some),
        }
    }

    fn of_fio(
        &mut self,
        mut fields: Fields<'_>,
        us: Option<u64>,
    ) -> Result<Option<Record>, &'static str> {
        let name = fields.text("the name of a file is missing")?;
        let action = match fields.text("what to do with the file is missing")? {
            b"read" => Action::Read,
            b"write" => Action::Write,
            b"trim" => Action::Trim,
            b"sync" | b"datasync" => Action::Sync,
            b"add" | b"open" | b"close" => {
                self.file(name)?;
                return Ok(None);
            }
            b"wait" if us.is_none() => {
                let us = fields.number("the length of the pause is missing")?;
                self.waited_ns = self.waited_ns.saturating_add(us.saturating_mul(1000));
                return Ok(None);
            }
            b"wait" => return Err("`wait` is of version 2: version 3 has times"),
            _ => return Err("this is none of read, write, trim, sync, datasync, add, open, close"),
        };
        let at_ns = match us {
            Some(us) => self.since_begin(us.saturating_mul(1000)),
            None => self.waited_ns,
        };
        let (offset, length) = match (action, fields.is_empty()) {
            (Action::Sync, true) => (0, 0),
            _ => (
                fields.number("the offset is missing")?,
                fields.number("the length is missing")?,
            ),
        };
        self.complete(at_ns, action, name, offset, length).map(Some)
    }

    fn of_msr(&mut self, mut fields: Fields<'_>) -> Result<Record, &'static str> {
        let ticks = fields.number("the time is missing")?;
        let (rest, host) = (fields.rest(), fields.text("the host is missing")?);
        let disk = fields.text("the disk is missing")?;
        // Host and disk, and the comma between them.
        let name = &rest[..(host.len() + 1 + disk.len()).min(rest.len())];
        let action = match fields.text("the type is missing")? {
            b"Read" => Action::Read,
            b"Write" => Action::Write,
            _ => return Err("the type is neither Read nor Write"),
        };
        let offset = fields.number("the offset is missing")?;
        let length = fields.number("the size is missing")?;
        let at_ns = self.since_begin(ticks.saturating_mul(100));
        self.complete(at_ns, action, name, offset, length)
    }

    fn of_alibaba(&mut self, mut fields: Fields<'_>) -> Result<Record, &'static str> {
        let name = fields.text("the device is missing")?;
        let action = match fields.text("the operation is missing")? {
            b"R" => Action::Read,
            b"W" => Action::Write,
            _ => return Err("the operation is neither R nor W"),
        };
        let offset = fields.number("the offset is missing")?;
        let length = fields.number("the length is missing")?;
        let us = fields.number("the time is missing")?;
        let at_ns = self.since_begin(us.saturating_mul(1000));
        self.complete(at_ns, action, name, offset, length)
    }

    /// The time since the first record; one that lies before it counts as the same.
    fn since_begin(&mut self, ns: u64) -> u64 {
        ns.saturating_sub(*self.begin_ns.get_or_insert(ns))
    }

    fn complete(
        &mut self,
        at_ns: u64,
        action: Action,
        name: &[u8],
        offset_bytes: u64,
        length: u64,
    ) -> Result<Record, &'static str> {
        let length_bytes = u32::try_from(length).map_err(|_| "the length is 4 GiB or more")?;
        if offset_bytes.checked_add(length).is_none() {
            return Err("the request ends behind 2^64 bytes");
        }
        Ok(Record {
            at_ns,
            action,
            file: self.file(name)?,
            offset_bytes,
            length_bytes,
        })
    }

    /// The index of a file.
    fn file(&mut self, name: &[u8]) -> Result<u32, &'static str> {
        if self.last.0 == name && !self.files.is_empty() {
            return Ok(self.last.1);
        }
        let index = match self.indexes.get(name) {
            Some(index) => *index,
            None => {
                if self.files.len() >= FILES_MAX {
                    return Err("the trace names more than 65536 files");
                }
                let index = self.files.len() as u32;
                self.files.push(String::from_utf8_lossy(name).into_owned());
                self.indexes.insert(name.to_vec(), index);
                index
            }
        };
        self.last.0.clear();
        self.last.0.extend_from_slice(name);
        self.last.1 = index;
        Ok(index)
    }
}
