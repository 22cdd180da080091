//! The log as it is written: one buffer, given to a writer when it is full.

use super::writer::{BUFFER_BYTES, Writer};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use ugeom_format::crash_log::{
    Entry, HEADER_BYTES, Header, PROMISE_BYTES_MAX, RECORD_BYTES, Record, without_zeroes,
};
use ugeom_machine::mutex::Mutex;
use ugeom_machine::result_file::refuse_disk;
use ugeom_stack::{Command, Flags};

/// Where promises to the workload come from: called before each record is written, with a function
/// that takes one promise. A promise made before a write then stands before the write.
pub type Promises = Box<dyn FnMut(&mut dyn FnMut(&[u8])) + Send>;

/// The log cannot be written.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{path}: writing the log: {error}")]
#[allow(missing_docs, reason = "messages name the fields")]
pub struct LogError {
    pub path: PathBuf,
    #[source]
    pub error: Arc<io::Error>,
}

impl LogError {
    /// The system's answer alone.
    #[must_use]
    pub(crate) fn into_io(self) -> io::Error {
        Arc::try_unwrap(self.error).unwrap_or_else(|shared| io::Error::from(shared.kind()))
    }
}

/// A FLUSH in flight, with the writes that it covers.
struct Flush {
    covers: u64,
    except: Vec<u64>,
}

struct Log {
    writer: Writer,
    buffer: Vec<u8>,
    /// The number of the next record.
    next: u64,
    /// Writes that have not completed.
    in_flight: BTreeSet<u64>,
    /// FLUSHes that have not completed, by a ticket.
    flushes: Vec<(u64, Flush)>,
    tickets: u64,
    promises: Option<Promises>,
}

impl Log {
    /// Adds a record, whose number it returns.
    fn add(&mut self, entry: Entry, data: &[u8]) -> u64 {
        let record = Record::new(entry, data);
        self.buffer.extend_from_slice(&record.encode());
        self.buffer.extend_from_slice(data);
        self.next += 1;
        self.make_room();
        self.next - 1
    }

    fn make_room(&mut self) {
        if self.buffer.len() >= BUFFER_BYTES {
            self.writer.take(&mut self.buffer);
        }
    }

    fn take_promises(&mut self) {
        let Some(mut promises) = self.promises.take() else { return };
        promises(&mut |promise| {
            let promise = &promise[..promise.len().min(PROMISE_BYTES_MAX)];
            self.add(Entry::Promise, promise);
        });
        self.promises = Some(promises);
    }
}

/// Refuses a file of others: a path that is one letter off may be that of a disk.
fn replaceable(path: &Path) -> io::Result<()> {
    refuse_disk(path)?;
    let is_file = std::fs::metadata(path).is_ok_and(|about| about.is_file());
    if !is_file {
        return Ok(());
    }
    let mut head = Vec::new();
    File::open(path)?
        .take(HEADER_BYTES as u64)
        .read_to_end(&mut head)?;
    match head.is_empty() || Header::decode(&head).is_ok() {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "it is not a crash log and is not overwritten; name another file",
        )),
    }
}

/// Writes a log. Shared by all threads that serve the device.
pub struct Recorder {
    path: PathBuf,
    log: Mutex<Log>,
}

impl Recorder {
    /// A new log with that header, in a file that is made or emptied.
    ///
    /// # Errors
    /// [`LogError`] when it cannot be made.
    pub fn create(path: &Path, header: Header) -> Result<Self, LogError> {
        let writer = replaceable(path)
            .and_then(|()| File::create(path))
            .and_then(Writer::start);
        let writer = writer.map_err(|error| LogError {
            path: path.to_owned(),
            error: Arc::new(error),
        })?;
        Ok(Self {
            path: path.to_owned(),
            log: Mutex::new(Log {
                writer,
                buffer: header.encode().to_vec(),
                next: 0,
                in_flight: BTreeSet::new(),
                flushes: Vec::new(),
                tickets: 0,
                promises: None,
            }),
        })
    }

    /// The file that it is written to.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many records there are.
    pub fn records(&self) -> u64 {
        self.log.lock().next
    }

    /// Asks `promises` for the promises to the workload, from now on.
    pub fn listen(&self, promises: Option<Promises>) {
        let mut log = self.log.lock();
        log.take_promises();
        log.promises = promises;
    }

    /// The set-up is over, and all that was written is durable.
    pub fn begin(&self) {
        self.log.lock().add(Entry::Begin, &[]);
    }

    /// Something was promised to the workload; more than [`PROMISE_BYTES_MAX`] are cut off.
    pub fn promise(&self, promise: &[u8]) {
        let promise = &promise[..promise.len().min(PROMISE_BYTES_MAX)];
        self.log.lock().add(Entry::Promise, promise);
    }

    /// A change is submitted. `data` yields the data of a write, piece by piece. The number of the
    /// record, for [`Recorder::completed`].
    pub fn submitted(
        &self,
        entry: Entry,
        data: impl FnOnce(&mut dyn FnMut(&[u8])),
    ) -> Result<u64, LogError> {
        let mut log = self.log.lock();
        log.take_promises();
        let start = log.buffer.len();
        log.buffer.extend_from_slice(&[0; RECORD_BYTES]);
        let at = start + RECORD_BYTES;
        data(&mut |piece| log.buffer.extend_from_slice(piece));
        let kept = without_zeroes(&log.buffer[at..]).len();
        log.buffer.truncate(at + kept);
        let record = Record::new(entry, &log.buffer[at..]).encode();
        log.buffer[start..at].copy_from_slice(&record);
        let number = log.next;
        log.next += 1;
        log.in_flight.insert(number);
        log.make_room();
        match log.writer.failed() {
            None => Ok(number),
            Some(error) => Err(self.failure(error)),
        }
    }

    /// That change has completed. One that failed may have reached the media all the same, so it
    /// counts as volatile until the next barrier.
    pub fn completed(&self, number: u64, durable: bool) {
        let mut log = self.log.lock();
        log.in_flight.remove(&number);
        if durable {
            log.take_promises();
            log.add(Entry::Durable { write: number }, &[]);
        }
    }

    /// A FLUSH is submitted: a ticket for [`Recorder::flushed`].
    pub fn flush(&self) -> u64 {
        let mut log = self.log.lock();
        let flush = Flush {
            covers: log.next,
            except: log.in_flight.iter().copied().collect(),
        };
        log.tickets += 1;
        let ticket = log.tickets;
        log.flushes.push((ticket, flush));
        ticket
    }

    /// It has succeeded, or not.
    pub fn flushed(&self, ticket: u64, succeeded: bool) {
        let mut log = self.log.lock();
        let Some(at) = log.flushes.iter().position(|(other, _)| *other == ticket) else { return };
        let (_, flush) = log.flushes.swap_remove(at);
        if succeeded {
            log.take_promises();
            let words = flush.except.iter().flat_map(|number| number.to_le_bytes());
            let words: Vec<u8> = words.collect();
            let covers = flush.covers;
            log.add(Entry::Barrier { covers }, &words);
        }
    }

    /// Writes the collected records to the file.
    ///
    /// # Errors
    /// [`LogError`], also of an earlier write.
    pub fn write_out(&self) -> Result<(), LogError> {
        let mut log = self.log.lock();
        log.take_promises();
        let log = &mut *log;
        if !log.buffer.is_empty() {
            log.writer.take(&mut log.buffer);
        }
        log.writer.wait();
        match log.writer.failed() {
            None => Ok(()),
            Some(error) => Err(self.failure(error)),
        }
    }

    fn failure(&self, error: &Arc<io::Error>) -> LogError {
        LogError {
            path: self.path.clone(),
            error: Arc::clone(error),
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // Callers that need the result call `write_out`.
        let _ = self.write_out();
    }
}

/// The record of a request that changes the media.
pub(super) fn entry(
    command: Command,
    offset_bytes: u64,
    length_bytes: u64,
    flags: Flags,
) -> Option<Entry> {
    match command {
        Command::Write => Some(Entry::Write {
            offset_bytes,
            length_bytes,
            fua: flags.contains(Flags::FUA),
        }),
        Command::Zero => Some(Entry::Zero {
            offset_bytes,
            length_bytes,
        }),
        Command::Delete => Some(Entry::Delete {
            offset_bytes,
            length_bytes,
        }),
        _ => None,
    }
}
