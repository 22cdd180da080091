//! Reading a log, record by record, in constant memory.

use crate::error::{CrashError, open, os};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use ugeom_format::crash_log::{CrashLogError, HEADER_BYTES, Header, RECORD_BYTES, Record};

/// A record, and where its data stands in the file.
pub(crate) struct LogEntry {
    pub number: u64,
    pub record: Record,
    pub data_at: u64,
}

/// A log that is read from its beginning.
pub(crate) struct LogReader {
    pub path: PathBuf,
    pub header: Header,
    input: BufReader<File>,
    /// For data, by position.
    pub file: Arc<File>,
    at: u64,
    length_bytes: u64,
    next: u64,
}

impl LogReader {
    pub fn open(path: &Path) -> Result<Self, CrashError> {
        let file = File::open(path).map_err(open(path))?;
        let length_bytes = file.metadata().map_err(open(path))?.len();
        let other = file.try_clone().map_err(open(path))?;
        let mut bytes = Vec::new();
        let head = (&file).take(HEADER_BYTES as u64).read_to_end(&mut bytes);
        head.map_err(os("reading", path))?;
        let header = Header::decode(&bytes).map_err(|error| CrashError::Log {
            path: path.to_owned(),
            record: 0,
            error,
        })?;
        Ok(Self {
            path: path.to_owned(),
            header,
            input: BufReader::with_capacity(1 << 18, file),
            file: Arc::new(other),
            at: HEADER_BYTES as u64,
            length_bytes,
            next: 0,
        })
    }

    /// Goes back to the first record.
    pub fn rewind(&mut self) -> Result<(), CrashError> {
        let start = SeekFrom::Start(HEADER_BYTES as u64);
        self.input.seek(start).map_err(os("reading", &self.path))?;
        (self.at, self.next) = (HEADER_BYTES as u64, 0);
        Ok(())
    }

    /// The next record; its data is checked when it is read ([`LogReader::data`]).
    pub fn next(&mut self) -> Result<Option<LogEntry>, CrashError> {
        let left = self.length_bytes.saturating_sub(self.at);
        if left == 0 {
            return Ok(None);
        }
        let mut bytes = [0; RECORD_BYTES];
        let there = left.min(RECORD_BYTES as u64) as usize;
        let read = self.input.read_exact(&mut bytes[..there]);
        read.map_err(os("reading", &self.path))?;
        let record = Record::decode(&bytes[..there], self.next, &self.header)
            .map_err(|error| self.damaged(self.next, error))?;
        let data_at = self.at + RECORD_BYTES as u64;
        let stored = u64::from(record.stored_bytes);
        if left - (RECORD_BYTES as u64) < stored {
            let error = CrashLogError::Truncated {
                what: "the data of a record",
                found: (left - RECORD_BYTES as u64) as usize,
                expected: stored as usize,
            };
            return Err(self.damaged(self.next, error));
        }
        // Within what is buffered, this moves no file position.
        let skip = self.input.seek_relative(stored as i64);
        skip.map_err(os("reading", &self.path))?;
        self.at = data_at + stored;
        let number = self.next;
        self.next += 1;
        Ok(Some(LogEntry {
            number,
            record,
            data_at,
        }))
    }

    /// The data of a record.
    pub fn data(&self, entry: &LogEntry) -> Result<Vec<u8>, CrashError> {
        let mut data = vec![0; entry.record.stored_bytes as usize];
        let read = self.file.read_exact_at(&mut data, entry.data_at);
        read.map_err(os("reading", &self.path))?;
        let checked = entry.record.check(&data);
        checked.map_err(|error| self.damaged(entry.number, error))?;
        Ok(data)
    }

    fn damaged(&self, record: u64, error: CrashLogError) -> CrashError {
        CrashError::Log {
            path: self.path.clone(),
            record,
            error,
        }
    }
}
