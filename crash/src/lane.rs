//! A lane: one disk on which states are built, one after the other. It follows the log forward; a
//! state that lies before the last one makes it begin again.

use crate::disk::Disk;
use crate::error::{CrashError, os};
use crate::log::{LogEntry, LogReader};
use crate::state::{CrashState, Tear};
use crate::tracker::{Change, Tracker};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use ugeom_format::crash_log;

pub(crate) struct Lane {
    log: LogReader,
    ahead: Option<LogEntry>,
    tracker: Tracker,
    /// All records before this one have been taken.
    position: u64,
    disk: Disk,
    cache_bytes: u64,
    tear_bytes: u64,
}

impl Lane {
    pub fn new(
        log: &Path,
        folder: &Path,
        cache_bytes: u64,
        tear_bytes: u64,
    ) -> Result<Self, CrashError> {
        let log = LogReader::open(log)?;
        let disk = Disk::new(folder, log.header.media_bytes, true)?;
        Ok(Self {
            log,
            ahead: None,
            tracker: Tracker::new(cache_bytes),
            position: 0,
            disk,
            cache_bytes,
            tear_bytes,
        })
    }

    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// The changes that were volatile at the cut of the state that was built last.
    pub fn volatile(&self) -> impl Iterator<Item = &Change> {
        self.tracker.volatile()
    }

    /// Makes the disk show a state.
    pub fn build(&mut self, state: &CrashState) -> Result<(), CrashError> {
        if state.cut.saturating_add(1) < self.position {
            self.disk
                .wipe()
                .map_err(os("emptying", Path::new("the image")))?;
            self.log.rewind()?;
            self.ahead = None;
            self.tracker = Tracker::new(self.cache_bytes);
            self.position = 0;
        }
        self.disk.reset();
        while let Some(entry) = self.next_until(state.cut)? {
            let (log, disk) = (&self.log, &self.disk);
            self.tracker.feed(
                &entry,
                || log.data(&entry),
                |change| apply(log, change, |piece| piece.write_image(disk)),
            )?;
            self.position = entry.number + 1;
        }
        for change in &self.tracker.changes {
            let lost = !change.durable && state.lost.contains(&change.number);
            if lost {
                continue;
            }
            let tear = state.torn.get(&change.number).filter(|_| !change.durable);
            self.show(change, tear.copied())?;
        }
        Ok(())
    }

    fn next_until(&mut self, cut: u64) -> Result<Option<LogEntry>, CrashError> {
        if self.ahead.is_none() {
            self.ahead = self.log.next()?;
        }
        match &self.ahead {
            Some(entry) if entry.number <= cut => Ok(self.ahead.take()),
            _ => Ok(None),
        }
    }

    /// Writes the part of a change that reached the media over the image.
    fn show(&self, change: &Change, tear: Option<Tear>) -> Result<(), CrashError> {
        let unit = self.tear_bytes;
        apply(&self.log, change, |piece| {
            let Some(tear) = tear else {
                return piece.write(&self.disk);
            };
            let pieces = piece.length.div_ceil(unit);
            for number in (0..pieces).filter(|number| tear.keeps(*number, pieces)) {
                piece.part(number * unit, unit).write(&self.disk)?;
            }
            Ok(())
        })
    }
}

/// A change of the media: data, and zeroes after it.
struct Piece<'a> {
    offset: u64,
    length: u64,
    data: &'a [u8],
}

impl Piece<'_> {
    fn part(&self, from: u64, length: u64) -> Piece<'_> {
        let end = (from + length).min(self.length);
        let stored = self.data.len() as u64;
        Piece {
            offset: self.offset + from,
            length: end - from,
            data: &self.data[from.min(stored) as usize..end.min(stored) as usize],
        }
    }

    fn zeroes(&self) -> (u64, u64) {
        let stored = self.data.len() as u64;
        (self.offset + stored, self.length - stored)
    }

    fn write(&self, disk: &Disk) -> std::io::Result<()> {
        let (at, zeroes) = self.zeroes();
        disk.write(self.offset, self.data)?;
        disk.zero(at, zeroes)
    }

    fn write_image(&self, disk: &Disk) -> std::io::Result<()> {
        let (at, zeroes) = self.zeroes();
        disk.write_image(self.offset, self.data)?;
        if zeroes == 0 {
            return Ok(());
        }
        disk.zero_image(at, zeroes)
    }
}

fn apply(
    log: &LogReader,
    change: &Change,
    with: impl FnOnce(Piece<'_>) -> std::io::Result<()>,
) -> Result<(), CrashError> {
    let Some((offset, length)) = change.record.range() else { return Ok(()) };
    let data = match change.record.entry {
        crash_log::Entry::Write { .. } => log.data(&LogEntry {
            number: change.number,
            record: change.record,
            data_at: change.data_at,
        })?,
        _ => Vec::new(),
    };
    let piece = Piece {
        offset,
        length,
        data: &data,
    };
    with(piece).map_err(os("writing", Path::new("the image")))
}

/// The contents of a log in one pass.
pub(crate) struct Summary {
    pub path: PathBuf,
    pub records: u64,
    pub writes: u64,
    pub barriers: u64,
    /// It has a mark where crashes begin. A log of `crash:log=` has none: they begin with it.
    pub begun: bool,
    pub promises: Arc<Vec<(u64, String)>>,
}

impl Summary {
    /// Reads the log once, in constant memory but for the promises.
    pub fn read(path: &Path) -> Result<Self, CrashError> {
        let mut log = LogReader::open(path)?;
        let (mut writes, mut barriers, mut begun) = (0, 0, false);
        let mut promises = Vec::new();
        let mut records = 0;
        while let Some(entry) = log.next()? {
            records += 1;
            match entry.record.entry {
                crash_log::Entry::Begin if !begun => {
                    // Earlier writes belong to the set-up.
                    (writes, barriers, begun) = (0, 0, true);
                }
                crash_log::Entry::Promise => {
                    let line = String::from_utf8_lossy(&log.data(&entry)?).into_owned();
                    promises.push((entry.number, line));
                }
                crash_log::Entry::Barrier { .. } => barriers += 1,
                _ if entry.record.range().is_some() => writes += 1,
                _ => {}
            }
        }
        if writes == 0 {
            return Err(CrashError::NothingWritten(path.to_owned()));
        }
        Ok(Self {
            path: path.to_owned(),
            records,
            writes,
            barriers,
            begun,
            promises: Arc::new(promises),
        })
    }
}
