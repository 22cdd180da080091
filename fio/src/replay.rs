//! `read_iolog`: the requests of a trace instead of those of `rw`, each when it is due.
//!
//! A trace is read twice, with constant memory: first for the needs of its requests (files, the end
//! of the last one, the longest), then while they are made.

use std::fs::File;
use std::io::BufReader;

use ugeom_format::trace::{Dialect, Kind, Reader, Record};

use super::target::split_names;
use ugeom_job::error::JobError;
use ugeom_job::settings::{Job, Pattern, READ, Replaying, Sizes, TRIM, WRITE};
use ugeom_measure::units::Size;

/// The size of a read of a trace, bytes.
const READ_BYTES: usize = 1 << 20;
/// A buffer is as large as the longest request: one that is longer is none of a block device.
const LENGTH_BYTES_MAX: u32 = 1 << 30;

/// The requests of a trace, one after the other.
pub struct Replay {
    reader: Reader<BufReader<File>>,
    path: String,
    rules: Replaying,
    /// Read, and not yet due.
    pub pending: Option<Record>,
    /// When the first record is due, ticks.
    pub begun: Option<u64>,
}

impl Replay {
    /// The trace of a job; `None` for a job without one.
    ///
    /// # Errors
    /// It cannot be read, or is none.
    pub fn open(job: &Job) -> Result<Option<Self>, JobError> {
        let Some(path) = &job.read_iolog else {
            return Ok(None);
        };
        let origin = job.origin_of("read_iolog");
        let wrong = |why: String| JobError::language(origin, format!("{path}: {why}"));
        let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
        let input = BufReader::with_capacity(READ_BYTES, file);
        let reader = Reader::new(input).map_err(|error| wrong(error.to_string()))?;
        Ok(Some(Self {
            reader,
            path: path.clone(),
            rules: job.replaying.clone(),
            pending: None,
            begun: None,
        }))
    }

    /// The next request that is not left out, with place and time as `replay_*` have them.
    ///
    /// # Errors
    /// A line that is no record, in words.
    pub fn next(&mut self) -> Result<Option<Record>, String> {
        loop {
            let record = self.reader.next_record();
            let record = record.map_err(|error| format!("{}: {error}", self.path))?;
            let Some(mut record) = record else {
                return Ok(None);
            };
            if self.rules.skip[place_of(record.kind)] {
                continue;
            }
            record.offset_bytes /= self.rules.scale.max(1);
            let align = self.rules.align_bytes.max(1);
            record.offset_bytes -= record.offset_bytes % align;
            let percent = u128::from(self.rules.time_percent.max(1));
            let at_ns = u128::from(record.at_ns) * 100 / percent;
            record.at_ns = if self.rules.no_stall { 0 } else { at_ns as u64 };
            if self.rules.redirect.is_some() {
                record.file = 0;
            }
            return Ok(Some(record));
        }
    }
}

/// The place of a kind in `replay_skip`: reads, writes, trims, syncs.
fn place_of(kind: Kind) -> usize {
    match kind {
        Kind::Read => READ,
        Kind::Write => WRITE,
        Kind::Trim => TRIM,
        Kind::DataSync | Kind::Sync => 3,
    }
}

/// The trace of the `clone`-th copy of a job: of several, joined by `:`, each copy takes the next.
fn of_copy(list: &str, clone: u32) -> String {
    let traces = split_names(list);
    let turn = clone as usize % traces.len().max(1);
    traces.get(turn).cloned().unwrap_or(list.to_owned())
}

/// The `clone`-th copy of a job with the needs of its trace: files, their size, the kinds and the
/// largest of the requests.
/// A job without a trace is answered as it is.
///
/// # Errors
/// The trace cannot be read, or has nothing to make; where its requests go to is not known.
pub fn planned(job: &Job, clone: u32) -> Result<Job, JobError> {
    let mut planned = job.clone();
    planned.read_iolog = job.read_iolog.as_deref().map(|list| of_copy(list, clone));
    let Some(mut replay) = Replay::open(&planned)? else {
        return Ok(planned);
    };
    let origin = job.origin_of("read_iolog");
    let path = replay.path.clone();
    let wrong = |why: &str| JobError::language(origin, format!("{path}: {why}"));
    let (mut end_bytes, mut longest, mut does) = (0, 1, [false; 4]);
    while let Some(record) = replay
        .next()
        .map_err(|why| JobError::language(origin, why))?
    {
        let end = record
            .offset_bytes
            .saturating_add(u64::from(record.length_bytes));
        end_bytes = end.max(end_bytes);
        // Trims have no buffer.
        if record.kind != Kind::Trim {
            longest = record.length_bytes.max(longest);
        }
        does[place_of(record.kind)] = true;
    }
    if does == [false; 4] {
        return Err(wrong("there is no request in it, or all are skipped"));
    }
    if longest > LENGTH_BYTES_MAX {
        return Err(wrong("a request is longer than 1 GiB"));
    }
    let is_log = matches!(
        replay.reader.dialect(),
        Dialect::FioVersion2 | Dialect::FioVersion3
    );
    planned.filename = match (&job.replaying.redirect, is_log) {
        (Some(target), _) => Some(target.clone()),
        (None, true) => {
            let names = replay.reader.files().iter();
            let names: Vec<String> = names.map(|name| name.replace(':', "\\:")).collect();
            Some(names.join(":"))
        }
        (None, false) => {
            return Err(wrong(
                "its devices are none of this machine: use replay_redirect",
            ));
        }
    };
    let [reads, writes, trims, _] = does;
    planned.rw = Pattern {
        name: if writes || trims { "rw" } else { "read" },
        does: [reads || !(writes || trims), writes, trims],
        ..Pattern::default()
    };
    let sizes = Sizes {
        min: 1,
        max: u64::from(longest),
        split: Vec::new(),
    };
    planned.sizes = [const { 0 }; 3].map(|_: u64| sizes.clone());
    planned.filesize = Some((end_bytes.max(1), end_bytes.max(1)));
    planned.size = None;
    // As by fio, the offsets of a trace are those of its files.
    planned.offset = Size::Bytes(0);
    planned.offset_increment = Size::Bytes(0);
    Ok(planned)
}
