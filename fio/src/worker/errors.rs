//! Errors of requests: those that end a job, those that are counted, and the messages.

use std::io;

use ugeom_engine::Errno;
use ugeom_load::door::{Door, Kind, Request};
use ugeom_machine::clock;

use super::{Trouble, Worker};
use ugeom_job::error::Origin;
use ugeom_job::settings::{READ, TRIM, WRITE};

/// EILSEQ, which fio reports for a block that is not what was written.
pub(super) const WRONG_CONTENT: i32 = 84;
/// The errors after which `continue_on_error` goes on where `ignore_error` names no others, as in
/// fio: EIO and EILSEQ.
const NOT_FATAL: [i32; 2] = [5, WRONG_CONTENT];
/// EIO, which fio reports for a rate that is too low.
const TOO_SLOW: i32 = 5;
/// ETIMEDOUT, which fio reports for a latency that is too long.
pub(super) const TOO_LATE: i32 = 110;

impl<D: Door> Worker<'_, D> {
    /// Whether the job goes on after an error of a kind: 0 of reads, 1 of writes and trims, 2 of
    /// checks. It is counted then, as is one that ends the job where others would not.
    fn goes_on(&mut self, kind: usize, errno: i32) -> bool {
        let job = self.task.job;
        let listed = &job.ignored_errors[kind];
        let wanted = match kind {
            0 | 1 => job.goes_on.requests[kind],
            _ => job.goes_on.verify,
        };
        let goes_on = match listed.is_empty() {
            true => wanted && NOT_FATAL.contains(&errno),
            false => listed.contains(&errno),
        };
        // fio takes a wrong block that ends a job for an error of a read.
        let request = kind % 2;
        let counts = job.goes_on.requests[request] || !job.ignored_errors[request].is_empty();
        if goes_on || counts {
            self.tally.errors += 1;
            if self.tally.first_error == 0 {
                self.tally.first_error = errno;
            }
        }
        goes_on
    }

    /// Ends the job with an error; the first one is reported.
    pub(super) fn end_with(&mut self, errno: i32, message: String) {
        self.finished = true;
        self.task.live.fail();
        self.trouble.get_or_insert(Trouble { errno, message });
    }

    #[cold]
    pub(super) fn failed(&mut self, request: &Request, errno: Errno) {
        let number = errno.raw_os_error();
        match request.kind {
            Kind::Read => self.tally.sides[READ].failed += 1,
            Kind::Write => self.tally.sides[WRITE].failed += 1,
            Kind::Trim => self.tally.sides[TRIM].failed += 1,
            Kind::DataSync | Kind::Sync => {}
        }
        let is_write = matches!(request.kind, Kind::Write);
        if is_write && errno == Errno::NOSPC && self.task.job.fill_device {
            self.finished = true;
            return;
        }
        let kind = match request.kind {
            Kind::Read => 0,
            Kind::Write | Kind::Trim | Kind::DataSync | Kind::Sync => 1,
        };
        let story = self.door.explain().map(|error| error.to_string());
        if self.goes_on(kind, number) {
            // As by fio, it is none of `number_ios`.
            let left = self.limits.requests_left;
            self.limits.requests_left = left.saturating_add(u64::from(!request.is_sync()));
            return;
        }
        let name = &self.task.regions[request.file as usize].name;
        let doing = match request.kind {
            Kind::Read => "reading",
            Kind::Write => "writing",
            Kind::Trim => "trimming",
            Kind::DataSync | Kind::Sync => "syncing",
        };
        let Request { offset, length, .. } = request;
        let why = story.unwrap_or_else(|| io::Error::from(errno).to_string());
        // ENOSPC depends on the requested size.
        let origin = match errno {
            Errno::NOSPC | Errno::FBIG | Errno::DQUOT => self.task.job.origin_of("size"),
            _ => &Origin::Default,
        };
        let message = format!("{origin}{doing} {length} bytes at offset {offset} of {name}: {why}");
        self.end_with(number, message);
    }

    /// A block has other data than was written.
    #[cold]
    pub(super) fn wrong_content(&mut self, message: String) {
        if !self.goes_on(2, WRONG_CONTENT) {
            self.end_with(WRONG_CONTENT, message);
        }
    }

    /// A request took longer than `max_latency`.
    #[cold]
    pub(super) fn too_late(&mut self, ns: u64) {
        let limit_ns = self.task.job.max_latency_ns;
        let message = format!(
            "a request took {} us, more than max_latency={}us",
            ns / 1000,
            limit_ns / 1000
        );
        self.end_with(TOO_LATE, message);
    }

    /// Whether there is a rate that the job must reach.
    #[inline]
    pub(super) fn has_min_rates(&self) -> bool {
        let job = self.task.job;
        job.rate_min != [0; 3] || job.rate_iops_min != [0; 3]
    }

    /// Compares the work of the last `rate_cycle` with `rate_min` and `rate_iops_min`.
    pub(super) fn compare_min_rates(&mut self, now: u64) {
        let job = self.task.job;
        let cycle = clock::ns_to_ticks(job.rate_cycle_ns);
        let elapsed = now.saturating_sub(self.min_rates_at);
        if !self.counting || self.finished || elapsed < cycle {
            return;
        }
        // fio looks when a request has ended: a rate of less than one request a cycle is none that
        // is too low.
        let done = [0, 1, 2].map(|kind| self.tally.sides[kind].requests);
        if done == self.min_rates_done.map(|(_, requests)| requests) {
            return;
        }
        let seconds = clock::ticks_to_ns(elapsed) as f64 / 1e9;
        for kind in [READ, WRITE, TRIM] {
            let side = &self.tally.sides[kind];
            let before = self.min_rates_done[kind];
            let done = (side.bytes, side.requests);
            self.min_rates_done[kind] = done;
            for (what, min, count) in [
                (
                    "rate_min",
                    job.rate_min[kind],
                    done.0.saturating_sub(before.0),
                ),
                (
                    "rate_iops_min",
                    job.rate_iops_min[kind],
                    done.1.saturating_sub(before.1),
                ),
            ] {
                let rate = count as f64 / seconds;
                if min > 0 && job.rw.does[kind] && rate < min as f64 {
                    let message = format!("{what}={min} was not reached: {rate:.0} per second");
                    return self.end_with(TOO_SLOW, message);
                }
            }
        }
        self.min_rates_at = now;
    }
}
