//! `loops`, where something happens between them, and the sync at the end of each.

use std::error::Error as _;
use std::io;
use std::sync::atomic::Ordering::Relaxed;

use ugeom_load::door::{Door, Request};
use ugeom_machine::clock;

use super::super::files::{remove_files, renew_files};
use super::super::tally::Phase;
use super::limits::{checks_each_pass, goal_bytes, io_bytes, loops_apart, most_bytes};
use super::written::Written;
use super::{NO_REQUEST, Worker};
use ugeom_job::error::JobError;
use ugeom_job::settings::{READ, WRITE};

/// EIO, where no system call says more.
const FAILED: i32 = 5;

impl<D: Door> Worker<'_, D> {
    /// The loops after the first. Before each, the one before is synced, read back and checked, and
    /// its files are removed, as the job wants it. [`Worker::run_by`] ends the last one.
    pub(super) fn repeat(&mut self) {
        for passes in 1..loops_apart(self.task) {
            let is_over = self.task.stop.load(Relaxed) || clock::ticks() >= self.limits.end;
            if self.trouble.is_some() || is_over {
                return;
            }
            self.end_sync();
            let mut rest = u64::MAX;
            if self.written.is_some() {
                self.note_elapsed();
                self.read_back();
                rest = self.rest_of_passes();
                if rest == 0 || self.limits.requests_left == 0 || !self.begins_pass(passes) {
                    return;
                }
                self.written = Some(Written::new(self.places.are_mapped()));
            }
            if self.task.job.unlink_each_loop {
                self.renew_files();
            }
            self.task.live.enter(Phase::Running);
            self.limits.set_amount(self.task);
            self.limits.bytes_left = self.limits.bytes_left.min(rest);
            self.restart_places();
            self.finished = self.trouble.is_some();
            self.work();
        }
    }

    /// The remaining bytes of passes that are read back. As by fio, reads that check do not count
    /// unless the job asks for it (`experimental_verify`).
    fn rest_of_passes(&self) -> u64 {
        let (task, job) = (self.task, self.task.job);
        let is_checked = checks_each_pass(task) && !job.time_based;
        let amount = match io_bytes(task).filter(|_| is_checked) {
            Some(bytes) => bytes.saturating_mul(job.loops),
            None => goal_bytes(task),
        };
        let moved = match (job.verifying.counted, job.rw.does[READ]) {
            (true, _) => self.moved_bytes(),
            (false, true) => self.moved_bytes().saturating_sub(self.read_back_bytes),
            (false, false) => task.live.totals()[WRITE].0,
        };
        amount.saturating_sub(moved)
    }

    /// Whether a pass follows so many that were read back: as by fio, none does for less than one
    /// request of `io_size`, or of the size.
    fn begins_pass(&self, passes: u64) -> bool {
        let (task, job) = (self.task, self.task.job);
        if job.time_based || !checks_each_pass(task) || passes < job.loops {
            return true;
        }
        let wanted = io_bytes(task).unwrap_or(goal_bytes(task) / job.loops.max(1));
        let left = wanted.saturating_sub(self.moved_bytes());
        left > 0 && left >= most_bytes(job)
    }

    /// `unlink_each_loop`: removes the files and opens them anew: writes make them. Engines that do
    /// something to files open them when they come to them.
    fn renew_files(&mut self) {
        let (job, paths) = (self.task.job, self.task.paths);
        let failed = |error: io::Error| JobError::caused(&job.name, "files", error);
        let renewed = match &mut self.operations {
            Some(operations) => {
                let closed = operations.close_all().map_err(failed);
                closed.and_then(|()| remove_files(job, paths))
            }
            None => renew_files(job, paths)
                .and_then(|files| self.door.renew(files).map_err(|error| failed(error.into()))),
        };
        if let Err(error) = renewed {
            let source = error.source().and_then(|it| it.downcast_ref::<io::Error>());
            let errno = source.and_then(io::Error::raw_os_error);
            self.end_with(errno.unwrap_or(FAILED), error.to_string());
        }
    }

    /// Syncs the files that were written, for `end_fsync` and `fsync_on_close`.
    pub(super) fn end_sync(&mut self) {
        let job = self.task.job;
        if !(job.end_fsync || job.fsync_on_close) || !job.rw.does[WRITE] || job.verifying.only {
            return;
        }
        if self.operations.is_some() {
            return self.sync_created();
        }
        // As by fio, these are none of the syncs that the job reports.
        let reported = (self.tally.syncs.clone(), self.tally.fsyncs);
        for file in 0..self.task.regions.len() as u32 {
            let request = Request { file, ..NO_REQUEST };
            if let Some(slot) = self.free.pop() {
                let now = clock::ticks();
                self.make(slot, request, now, now);
                self.hand_over(now);
            }
            while self.in_flight() > 0 {
                self.collect(usize::MAX);
            }
        }
        (self.tally.syncs, self.tally.fsyncs) = reported;
    }
}
