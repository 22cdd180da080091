//! `/proc/diskstats` and `/sys/block/NAME/stat`: the kernel's counters of each block device.
//!
//! Source: Documentation/admin-guide/iostats.rst and Documentation/ABI/testing/procfs-diskstats of
//! Linux. A line of `/proc/diskstats` has the numbers of the device, its name, and 11 counters;
//! kernels from 4.18 on have 4 more (discards), from 5.5 on another 2 (flushes). Partitions of
//! kernels before 2.6.25 had 4 in all, and are refused. `docs/formats/diskstats.md` has the fields.

#[cfg(test)]
mod tests;

use std::fmt;

/// The unit of sectors in these files, for any sector size of the device.
pub const SECTOR_BYTES: u64 = 512;

/// Columns that every kernel since 2.6.25 has.
const COUNTERS_MIN: usize = 11;
/// Columns with discards (Linux 4.18).
const COUNTERS_DISCARD: usize = 15;
/// Columns with discards and flushes (Linux 5.5).
const COUNTERS_FLUSH: usize = 17;

/// More lines than any machine has devices; a longer file is not read to its end.
const LINES_MAX: usize = 65_536;

/// The counters of one kind of request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Requests that were completed.
    pub completed: u64,
    /// Requests that were joined to another before they were handed to the device.
    pub merged: u64,
    /// Sectors of [`SECTOR_BYTES`] that were moved.
    pub sectors: u64,
    /// The times of all requests from their being queued to their end, added up, ms.
    pub time_ms: u64,
}

/// The counters of a device since it appeared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Counters of read requests.
    pub reads: Requests,
    /// Counters of write requests.
    pub writes: Requests,
    /// Requests that are in flight now: the one field that also falls.
    pub in_flight: u64,
    /// The time in which anything was in flight, ms.
    pub busy_ms: u64,
    /// The times of all requests added up, those in flight included, ms.
    pub queue_ms: u64,
    /// Discards; none from kernels before 4.18.
    pub discards: Option<Requests>,
    /// Flushes; none from kernels before 5.5. Only how many and their time are counted.
    pub flushes: Option<Flushes>,
}

/// The counters of flushes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flushes {
    /// Flushes that were completed.
    pub completed: u64,
    /// Their times added up, ms.
    pub time_ms: u64,
}

/// A line of `/proc/diskstats`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device<'a> {
    /// Major number of the device, field 1 of a line.
    pub major: u32,
    /// Minor number of the device, field 2 of a line.
    pub minor: u32,
    /// The name, as in `/dev` (`!` stands for `/`).
    pub name: &'a str,
    /// The counters behind the name.
    pub stat: Stat,
}

/// Why a text is none of these files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A line has too few columns.
    #[error("line {line}: {found} columns, at least {needed} were expected")]
    Short {
        /// The line, from 1.
        line: usize,
        /// How many there are.
        found: usize,
        /// How many there must be.
        needed: usize,
    },
    /// A column is no number.
    #[error("line {line}, column {column}: `{text}` is no number")]
    Number {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// The text there, at most 40 characters of it.
        text: String,
    },
    /// There are too many lines.
    #[error("more than {LINES_MAX} lines")]
    Long,
}

/// Reads the text of `/proc/diskstats`. Empty lines are passed over.
///
/// # Errors
/// [`Error`] with the line and the column.
pub fn parse(text: &str) -> Result<Vec<Device<'_>>, Error> {
    let mut devices = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if index >= LINES_MAX {
            return Err(Error::Long);
        }
        let mut columns = Columns::of(index + 1, line);
        if columns.is_empty() {
            continue;
        }
        columns.require(3 + COUNTERS_MIN)?;
        let (major, minor) = (columns.number()?, columns.number()?);
        let name = columns.word();
        devices.push(Device {
            major,
            minor,
            name,
            stat: columns.stat()?,
        });
    }
    Ok(devices)
}

/// Reads the text of `/sys/block/NAME/stat`.
///
/// # Errors
/// [`Error`] with the column.
pub fn parse_stat(text: &str) -> Result<Stat, Error> {
    let mut columns = Columns::of(1, text.lines().next().unwrap_or(""));
    columns.require(COUNTERS_MIN)?;
    columns.stat()
}

/// The columns of a line, taken one after the other.
struct Columns<'a> {
    line: usize,
    taken: usize,
    words: Vec<&'a str>,
}

impl<'a> Columns<'a> {
    fn of(line: usize, text: &'a str) -> Self {
        // Later kernels may add columns; what they mean is not known here.
        let words = text.split_ascii_whitespace().take(3 + COUNTERS_FLUSH);
        Self {
            line,
            taken: 0,
            words: words.collect(),
        }
    }

    fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    fn left(&self) -> usize {
        self.words.len().saturating_sub(self.taken)
    }

    fn require(&self, needed: usize) -> Result<(), Error> {
        let (line, found) = (self.line, self.words.len());
        if found < needed {
            return Err(Error::Short {
                line,
                found,
                needed,
            });
        }
        Ok(())
    }

    fn word(&mut self) -> &'a str {
        let word = self.words.get(self.taken).copied().unwrap_or("");
        self.taken += 1;
        word
    }

    fn number<T: std::str::FromStr>(&mut self) -> Result<T, Error> {
        let word = self.word();
        word.parse().map_err(|_| Error::Number {
            line: self.line,
            column: self.taken,
            text: word.chars().take(40).collect(),
        })
    }

    fn requests(&mut self) -> Result<Requests, Error> {
        Ok(Requests {
            completed: self.number()?,
            merged: self.number()?,
            sectors: self.number()?,
            time_ms: self.number()?,
        })
    }

    fn stat(&mut self) -> Result<Stat, Error> {
        let counters = self.left();
        let mut stat = Stat {
            reads: self.requests()?,
            writes: self.requests()?,
            in_flight: self.number()?,
            busy_ms: self.number()?,
            queue_ms: self.number()?,
            discards: None,
            flushes: None,
        };
        if counters >= COUNTERS_DISCARD {
            stat.discards = Some(self.requests()?);
        }
        if counters >= COUNTERS_FLUSH {
            stat.flushes = Some(Flushes {
                completed: self.number()?,
                time_ms: self.number()?,
            });
        }
        Ok(stat)
    }
}

/// The columns of `/sys/block/NAME/stat`, with a blank between them.
impl fmt::Display for Stat {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests = |out: &mut fmt::Formatter<'_>, of: &Requests| {
            let Requests {
                completed,
                merged,
                sectors,
                time_ms,
            } = of;
            write!(out, "{completed} {merged} {sectors} {time_ms} ")
        };
        requests(out, &self.reads)?;
        requests(out, &self.writes)?;
        write!(out, "{} {} {}", self.in_flight, self.busy_ms, self.queue_ms)?;
        // Flushes stand behind discards: a kernel has the first only with the second.
        if let Some(discards) = &self.discards {
            write!(out, " ")?;
            requests(out, discards)?;
            if let Some(flushes) = &self.flushes {
                write!(out, "{} {}", flushes.completed, flushes.time_ms)?;
            }
        }
        Ok(())
    }
}

/// A line of `/proc/diskstats`.
impl fmt::Display for Device<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            major,
            minor,
            name,
            stat,
        } = self;
        write!(out, "{major:4} {minor:7} {name} {stat}")
    }
}
