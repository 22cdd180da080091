//! When a job has done enough: bytes, requests, passes through its files, and time.

use ugeom_machine::clock;
use ugeom_measure::units::Size;

use super::Task;
use ugeom_job::settings::{Verify, WRITE};

/// How many loops a job makes one after the other, as fio: where each of them ends with a sync, is
/// read back, or removes its files.
pub(super) fn loops_apart(task: &Task<'_>) -> u64 {
    let job = task.job;
    // Where a pass ends before the time is over: see `Places::goes_on_with`.
    let has_passes = !job.rw.random && task.regions.len() > 1 && job.number_ios == 0;
    if job.time_based && job.unlink_each_loop && has_passes {
        return u64::MAX;
    }
    // Places that are drawn again and again have no end: all loops are one.
    if job.rw.random && !job.visits_once() {
        return 1;
    }
    let reads_back = job.rw.does[WRITE] && job.verify != Verify::No && job.do_verify;
    let is_whole = !job.time_based && job.read_iolog.is_none() && job.io_size.is_none();
    let syncs = job.rw.does[WRITE] && (job.end_fsync || job.fsync_on_close);
    let ends = reads_back || syncs || job.unlink_each_loop;
    match ends && is_whole && !job.verifying.only {
        true => job.loops,
        false => 1,
    }
}

/// What is left to be done.
pub(super) struct Limits {
    pub(super) bytes_left: u64,
    /// How often the files may still be worked through: as often as `loops` says, and without a
    /// limit where the time or `io_size` says when to end.
    pub(super) passes_left: u64,
    /// Nothing has been transferred in this pass.
    pass_is_new: bool,
    pub(super) requests_left: u64,
    /// What is to be transferred is no multiple of the requests: fio looks for another one, and
    /// syncs before it.
    pub(super) has_rest: bool,
    pub(super) ramp_end: u64,
    pub(super) runtime_ticks: u64,
    pub(super) end: u64,
}

impl Limits {
    pub(super) fn new(task: &Task<'_>) -> Self {
        let mut limits = Self {
            bytes_left: 0,
            passes_left: 0,
            pass_is_new: true,
            requests_left: 0,
            has_rest: task.regions.iter().map(|region| region.length).sum::<u64>()
                > blocks_of(task),
            ramp_end: 0,
            runtime_ticks: clock::ns_to_ticks(task.job.runtime_ns),
            end: u64::MAX,
        };
        limits.set_amount(task);
        limits
    }

    /// What is to be done before the job ends, or reads back what it wrote.
    pub(super) fn set_amount(&mut self, task: &Task<'_>) {
        let job = task.job;
        let parts = loops_apart(task);
        self.bytes_left = match goal_bytes(task) {
            u64::MAX => u64::MAX,
            bytes => bytes / parts,
        };
        let unlimited = job.io_size.is_some() || self.bytes_left == u64::MAX;
        self.passes_left = match (parts, unlimited) {
            (u64::MAX, _) => 1,
            (_, true) => u64::MAX,
            (parts, false) => job.loops / parts,
        };
        self.pass_is_new = true;
        self.requests_left = match job.number_ios {
            0 => u64::MAX,
            // A trim and its write are one, as by fio.
            number if job.rw.trim_then_write => number.saturating_mul(2 * job.loops) / parts,
            number => number.saturating_mul(job.loops) / parts,
        };
    }
}

/// What requests do to the limits.
impl Limits {
    /// A request is made. As by fio, the last one may be more than what was left.
    #[inline]
    pub(super) fn take(&mut self, bytes: u64) {
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        self.pass_is_new = false;
        self.requests_left -= 1;
    }

    /// No place is left in this pass: whether another one begins.
    pub(super) fn next_pass(&mut self) -> bool {
        if self.passes_left <= 1 || self.pass_is_new {
            return false;
        }
        self.passes_left -= 1;
        self.pass_is_new = true;
        true
    }
}

/// What a job transfers in all, bytes.
pub(super) fn goal_bytes(task: &Task<'_>) -> u64 {
    let job = task.job;
    let whole: u64 = task.regions.iter().map(|region| region.length).sum();
    let io_size = job
        .io_size
        .map(|size| size.of(whole))
        .filter(|bytes| *bytes > 0);
    let pass = match job.size {
        Some(Size::Bytes(bytes)) if bytes > 0 => blocks_of(task).min(bytes),
        _ => blocks_of(task),
    };
    let passes = pass.saturating_mul(job.loops);
    match (job.time_based || job.read_iolog.is_some(), io_size) {
        (true, _) => u64::MAX,
        // As by fio: that many bytes for each loop; or, where places end, all loops if they are
        // less, and that many bytes at least.
        (false, Some(bytes)) => {
            let all = bytes.saturating_mul(job.loops);
            let is_uneven = task.regions.len() > 1 && job.file_order.is_uneven();
            match is_uneven || (job.rw.random && !job.visits_once()) {
                true => all,
                false => passes.max(bytes).min(all),
            }
        }
        (false, None) => passes,
    }
}

/// What the files have for requests of one size; all that they have where sizes differ, or where
/// reads and writes go through them each for themselves.
fn blocks_of(task: &Task<'_>) -> u64 {
    let job = task.job;
    let (smallest, largest) = (job.smallest_bytes().max(1), job.largest_bytes());
    let kinds = job.rw.does.iter().filter(|does| **does).count();
    // Places that come again fill the size.
    let all_drawn = job.rw.modifier <= 1 && job.random_percent == [100; 3];
    let ends = !job.rw.random || (all_drawn && job.visits_once());
    let alike = ends && smallest == largest && (kinds == 1 || job.rw.random);
    let unit = if alike { smallest } else { 1 };
    let regions = task.regions.iter();
    regions.map(|region| region.length / unit * unit).sum()
}
