//! How many requests are handed over together.

use ugeom_job::settings::{Job, WRITE};
use ugeom_load::door::Door;
use ugeom_load::drive::BATCH_MAX;

use super::Worker;

impl<D: Door> Worker<'_, D> {
    /// How many requests are handed over together: what the job says; else as many as are in flight
    /// already, so that a device that has run dry gets its next request at once, and the others
    /// while it works.
    #[inline]
    pub(super) fn batch(&self) -> usize {
        match self.task.job.iodepth_batch {
            None => {
                let over = self.queued.len() + self.unaccounted;
                let under_way = self.in_flight() as usize - over;
                under_way.clamp(1, self.batch_max)
            }
            Some(_) if self.batch_max == 1 => 1,
            Some(0) => self.task.job.iodepth as usize,
            Some(batch) => batch as usize,
        }
    }
}

/// How many requests are handed over together at the most; 1 also where the job wants more, since
/// io_submit(2) of buffered requests and of those that lengthen a file waits for each of them, and
/// for a kernel thread each time if they are many: 1.8 ms a read instead of 0.1 ms on a busy
/// machine.
pub(super) fn most(job: &Job) -> usize {
    let lengthens = job.rw.does[WRITE] && (job.fill_device || job.create_on_open);
    match job.ioengine.as_str() {
        "libaio" if !job.direct || lengthens => 1,
        _ => BATCH_MAX,
    }
}
