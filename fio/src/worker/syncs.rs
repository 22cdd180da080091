//! `fsync`, `fdatasync` and `sync_file_range`: the syncs between the writes of a job, as by fio.
//!
//! A sync is due before the next request when the number of writes so far is a multiple of the
//! option's value, unless the last request that ended was a sync. So a sync follows each read, too,
//! that comes between such a write and the next one. fio's `libaio` makes a sync when it is due,
//! and takes requests back one at a time, when the queue is full. Here they come back together, and
//! count as ended one for each that follows. A request of an engine without a queue that fails does
//! not count as ended. fio repeats syncs of its other asynchronous engines until the first of them
//! ends; here there is one.

use ugeom_load::door::{Door, Event, Kind, Request};

use super::range_syncs::Written;
use super::{NO_REQUEST, Slot, Task, Worker};
use ugeom_job::settings::WRITE;

/// A sync between requests.
#[derive(Clone, Copy)]
enum Sync {
    /// fsync(2) or fdatasync(2), by the engine.
    Whole(Kind),
    /// sync_file_range(2), by the worker itself, for any engine.
    Range,
}

/// The syncs of a job.
pub(super) struct Syncs {
    /// After how many writes there is one of which kind.
    every: Vec<(u64, Sync)>,
    /// Writes that have been made.
    writes: u64,
    /// The writes before the last sync; `None` where requests that end make syncs possible.
    writes_synced: Option<u64>,
    /// The last request that counts as ended was a sync.
    was_last: bool,
    /// Requests that have ended and do not count yet; syncs are none of them.
    uncounted: u32,
    /// Requests that have not ended and count already.
    counted_early: u32,
    /// Syncs that were made and have not ended.
    in_flight: u32,
    /// The state of `sync_file_range`.
    written: Option<Written>,
    /// Whether each pass ends with a sync and begins with one.
    between_passes: bool,
}

impl Syncs {
    /// Those that a job asks for.
    pub(super) fn of(task: &Task<'_>) -> Option<Self> {
        let job = task.job;
        // Stacks and the null engine have no files.
        let range = job.sync_file_range.filter(|_| !task.paths.is_empty());
        let every = [
            (job.fsync, Sync::Whole(Kind::Sync)),
            (job.fdatasync, Sync::Whole(Kind::DataSync)),
            (range.map_or(0, |range| range.every), Sync::Range),
        ];
        let every = every.into_iter().filter(|(writes, _)| *writes > 0);
        let every: Vec<(u64, Sync)> = every.map(|(writes, sync)| (writes.into(), sync)).collect();
        let by_completion = job.is_sync() || job.ioengine == "libaio";
        (!every.is_empty() && job.rw.does[WRITE]).then_some(Self {
            every,
            writes: 0,
            writes_synced: (!by_completion).then_some(0),
            was_last: false,
            uncounted: 0,
            counted_early: 0,
            in_flight: 0,
            written: range.map(|range| Written::new(range, task.paths.len())),
            between_passes: job.is_sync(),
        })
    }

    /// A write is made.
    pub(super) fn wrote(&mut self) {
        self.writes += 1;
    }

    /// Requests have ended together.
    pub(super) fn ended(&mut self, events: &[Event], slots: &[Slot], blocking: bool) {
        for event in events {
            let request = &slots[event.slot as usize].request;
            if request.is_sync() {
                self.in_flight = self.in_flight.saturating_sub(1);
            } else if self.counted_early > 0 {
                self.counted_early -= 1;
            } else if event.result.is_ok() || !blocking {
                self.uncounted += 1;
            }
            if let Some(written) = &mut self.written {
                written.ended(request, event.result);
            }
        }
    }

    /// Counts requests as ended until one more fits into the queue.
    fn make_room(&mut self, in_flight: u32, depth: u32) {
        let others = in_flight.saturating_sub(self.in_flight);
        while self.uncounted > 0 && others + self.uncounted >= depth {
            self.uncounted -= 1;
            self.was_last = false;
        }
    }

    /// Counts a request as ended for each file that is passed over, while there are some: fio waits
    /// for one each time.
    fn pass_over(&mut self, files: usize, in_flight: u32) {
        let waiting = in_flight.saturating_sub(self.in_flight + self.counted_early);
        let files = u32::try_from(files).unwrap_or(u32::MAX);
        let counted = files.min(self.uncounted + waiting);
        if counted > 0 {
            self.counted_early += counted.saturating_sub(self.uncounted);
            self.uncounted = self.uncounted.saturating_sub(counted);
            self.was_last = false;
        }
    }

    /// A pass over the files begins: it may begin with a sync where the job is synchronous.
    pub(super) fn begin_pass(&mut self) {
        if self.between_passes {
            self.was_last = false;
        }
    }

    /// The kind of the sync that is due before the next request.
    fn due(&self) -> Option<Sync> {
        let is_synced = match self.writes_synced {
            Some(writes) => writes == self.writes,
            None => self.was_last || self.writes == 0,
        };
        let mut every = self.every.iter();
        let due = every.find(|(writes, _)| self.writes.is_multiple_of(*writes));
        due.filter(|_| !is_synced).map(|(_, sync)| *sync)
    }

    fn made(&mut self, sync: Sync) {
        self.was_last = true;
        self.in_flight += u32::from(matches!(sync, Sync::Whole(_)));
        if let Some(writes) = &mut self.writes_synced {
            *writes = self.writes;
        }
    }
}

impl<D: Door> Worker<'_, D> {
    /// The sync that is due now, for the engine. One of a range is made at once, and the clock is
    /// read again before the next request. Not a part of the path of jobs without syncs.
    #[inline(never)]
    pub(super) fn due_sync(&mut self) -> Option<Request> {
        // Reaped requests have ended, for syncs, before they are taken in.
        let in_flight = self.in_flight() - self.unaccounted as u32;
        let depth = self.slots.len() as u32;
        let syncs = self.syncs.as_mut()?;
        syncs.make_room(in_flight, depth);
        syncs.pass_over(self.places.passed_over(), in_flight);
        let sync = syncs.due()?;
        // No write follows the last one, where they fill the amount.
        let limits = &self.limits;
        if (!limits.has_bytes() && !limits.has_rest) || limits.requests_left == 0 {
            return None;
        }
        let file = self.places.next_file()?;
        syncs.made(sync);
        match (sync, &mut syncs.written) {
            (Sync::Whole(kind), _) => Some(Request {
                kind,
                file,
                ..NO_REQUEST
            }),
            (Sync::Range, Some(written)) => {
                let made = written.sync(file, &self.task.paths[file as usize]);
                self.range_synced(file, made);
                self.not_before = Some(0);
                None
            }
            (Sync::Range, None) => None,
        }
    }
}
