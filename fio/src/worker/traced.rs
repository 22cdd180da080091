//! Requests that come from a trace, and a log of those that are made.

use ugeom_load::door::{Door, Request};
use ugeom_machine::clock;

use super::super::replay::Replay;
use super::{Iolog, Worker, later};

/// EINVAL, for a trace that cannot be read further.
const WRONG_TRACE: i32 = 22;
/// EIO, for a log that cannot be written.
const NOT_WRITTEN: i32 = 5;

/// The traces of a job.
#[derive(Default)]
pub struct Traces {
    /// Where its requests come from.
    pub replay: Option<Replay>,
    /// Where they are logged.
    pub log: Option<Iolog>,
}

impl<D: Door> Worker<'_, D> {
    /// The next request of the trace and when it was due; `None` when it is not due yet, and at the
    /// end.
    pub(super) fn next_of_trace(&mut self, now: u64) -> Option<(Request, u64)> {
        let replay = self.traces.replay.as_mut()?;
        let next = match replay.pending.take() {
            Some(record) => Ok(Some(record)),
            None => replay.next(),
        };
        let record = match next {
            Ok(record) => record,
            Err(why) => {
                self.end_with(WRONG_TRACE, why);
                return None;
            }
        };
        let Some(record) = record.filter(|_| self.limits.requests_left > 0) else {
            self.finished = true;
            return None;
        };
        // Without times of its own a request is due when it can be made.
        let keeps_times = !self.task.job.replaying.no_stall;
        let due = match keeps_times {
            true => later(*replay.begun.get_or_insert(now), record.at_ns),
            false => now,
        };
        if due > now {
            replay.pending = Some(record);
            self.not_before = Some(due);
            return None;
        }
        self.limits.requests_left -= 1;
        if keeps_times {
            self.tally.lateness.record(clock::ticks_to_ns(now - due));
        }
        let request = Request {
            kind: record.kind,
            file: record.file,
            offset: record.offset_bytes,
            length: record.length_bytes,
        };
        Some((request, due))
    }

    pub(super) fn log_request(&mut self, request: &Request) {
        let log = self.traces.log.as_mut();
        if let Some(Err(error)) = log.map(|log| log.add(request, self.task.regions)) {
            self.traces.log = None;
            self.end_with(NOT_WRITTEN, format!("writing the log of requests: {error}"));
        }
    }

    pub(super) fn close_log(&mut self) {
        let log = self.traces.log.take();
        if let Some(Err(error)) = log.map(|log| log.close(self.task.regions)) {
            self.end_with(NOT_WRITTEN, format!("writing the log of requests: {error}"));
        }
    }
}
