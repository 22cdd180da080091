//! When a job has done enough: bytes, requests, passes through its files, and time.

use ugeom_machine::clock;
use ugeom_measure::units::Size;

use super::Task;
use ugeom_job::settings::{Job, READ, Verify, WRITE};

/// See [`Limits::empty_passes_left`]: so many only where all places are past the end.
const EMPTY_PASSES_MAX: u32 = 1000;

/// How many loops a job makes one after the other, as fio: where each of them ends with a sync, is
/// read back, or removes its files.
pub(super) fn loops_apart(task: &Task<'_>) -> u64 {
    let job = task.job;
    if checks_each_pass(task) {
        return u64::MAX;
    }
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

/// Whether each pass is read back before the next begins, without a number of passes: as by fio,
/// they go on until the time is over, or until writes and the reads that check fill `io_size`, or
/// the size.
pub(super) fn checks_each_pass(task: &Task<'_>) -> bool {
    let job = task.job;
    let reads_back = job.rw.does[WRITE] && job.verify != Verify::No && job.do_verify;
    let verifying = &job.verifying;
    if !reads_back || verifying.only || verifying.counted || job.read_iolog.is_some() {
        return false;
    }
    if job.time_based {
        // Where a pass ends before the time is over: see `Places::goes_on_with`, `pass_bytes`.
        let ends = !job.rw.random && task.regions.len() > 1 && job.number_ios == 0;
        return ends || (!task.blocking && verifying.backlog == 0);
    }
    let has_zones = job.zones.range().is_some();
    let ends = !job.rw.random || job.visits_once() || has_zones;
    let whole: u64 = task.regions.iter().map(|region| region.length).sum();
    // Gaps between requests leave some of the size to another pass; so do reads and writes that
    // share the blocks of a map, or end with the first of them that comes to the end of a file.
    let has_gaps = job.rw.modifier != 0 && !job.rw.random || has_zones;
    let is_mixed = job.rw.does[READ] && job.rw.does[WRITE];
    // Places that are drawn again and again have no end, but a request that would reach past the
    // end of a file ends a pass.
    match io_bytes(task) {
        None => has_gaps || is_mixed || !ends,
        Some(bytes) => ends && bytes > whole,
    }
}

/// The remaining work.
pub(super) struct Limits {
    pub(super) bytes_left: u64,
    /// How often the files may still be worked through: as often as `loops` says, and without a
    /// limit where the time or `io_size` says when to end.
    pub(super) passes_left: u64,
    /// Nothing has been transferred in this pass.
    pass_is_new: bool,
    /// How many passes may transfer nothing: the first place that a law draws may be
    /// past the end of a file.
    empty_passes_left: u32,
    /// Bytes that passes beyond `loops` are for (`io_size`), and those of the largest request:
    /// fio begins no pass for less.
    io_bytes: u64,
    largest_bytes: u64,
    /// Bytes from which `bytes_left` and `bytes_beyond` began.
    bytes: u64,
    /// Bytes after which a pass ends wherever its places are, and those for the passes after it.
    pass_bytes: u64,
    bytes_beyond: u64,
    /// Of all loops, reads that check included.
    pub(super) requests_left: u64,
    /// The amount is no multiple of the requests: fio looks for another one, and syncs before it.
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
            empty_passes_left: if has_no_end(task) {
                EMPTY_PASSES_MAX
            } else {
                0
            },
            io_bytes: 0,
            largest_bytes: most_bytes(task.job),
            bytes: 0,
            pass_bytes: pass_bytes(task),
            bytes_beyond: 0,
            requests_left: match task.job.number_ios {
                0 => u64::MAX,
                // A trim and its write are one, as by fio.
                number if task.job.rw.trim_then_write => number.saturating_mul(2 * task.job.loops),
                number => number.saturating_mul(task.job.loops),
            },
            has_rest: task.regions.iter().map(|region| region.length).sum::<u64>()
                > blocks_of(task),
            ramp_end: 0,
            runtime_ticks: clock::ns_to_ticks(task.job.runtime_ns),
            end: u64::MAX,
        };
        limits.set_amount(task);
        limits
    }

    /// The amount of work before the job ends, or reads back its writes.
    pub(super) fn set_amount(&mut self, task: &Task<'_>) {
        let job = task.job;
        let parts = loops_apart(task);
        let is_checked = checks_each_pass(task);
        self.bytes_left = match (goal_bytes(task), io_bytes(task)) {
            (u64::MAX, _) => u64::MAX,
            (_, Some(bytes)) if is_checked => bytes.saturating_mul(job.loops),
            (bytes, None) if is_checked => bytes,
            (bytes, None) => bytes / parts,
            (bytes, Some(_)) if is_alike(job) => bytes,
            (_, Some(bytes)) => bytes.saturating_mul(job.loops),
        };
        self.bytes = self.bytes_left;
        self.bytes_beyond = 0;
        self.io_bytes = io_bytes(task).filter(|_| !is_checked).unwrap_or(0);
        let unlimited = self.bytes_left == u64::MAX || (self.io_bytes > 0 && has_no_end(task));
        self.passes_left = match (parts, unlimited) {
            (u64::MAX, _) => 1,
            (_, true) => u64::MAX,
            (parts, false) => job.loops / parts,
        };
        self.begin_pass();
    }

    fn begin_pass(&mut self) {
        let bytes = self.bytes_left.saturating_add(self.bytes_beyond);
        self.bytes_left = bytes.min(self.pass_bytes);
        self.bytes_beyond = bytes - self.bytes_left;
        self.pass_is_new = true;
    }
}

/// The effect of requests on the limits.
impl Limits {
    /// A request is made. As by fio, the last one may be more than what was left.
    #[inline]
    pub(super) fn take(&mut self, bytes: u64) {
        match self.bytes_left.checked_sub(bytes) {
            Some(left) => self.bytes_left = left,
            None => self.overshoot(bytes),
        }
        self.pass_is_new = false;
        self.requests_left -= 1;
    }

    /// The last request of a pass is more than what was left.
    #[cold]
    fn overshoot(&mut self, bytes: u64) {
        let over = bytes - self.bytes_left;
        self.bytes_left = 0;
        self.bytes_beyond = self.bytes_beyond.saturating_sub(over);
    }

    /// Whether bytes are left in this pass or for those after it.
    #[inline]
    pub(super) fn has_bytes(&self) -> bool {
        self.bytes_left > 0 || self.bytes_beyond > 0
    }

    /// No place is left in this pass, or none of its bytes: whether another one begins.
    pub(super) fn next_pass(&mut self) -> bool {
        let moved = self.bytes - self.bytes_left - self.bytes_beyond;
        let fills_up = self.io_bytes >= moved.saturating_add(self.largest_bytes);
        if self.passes_left <= 1 && !fills_up {
            return false;
        }
        if self.pass_is_new {
            let Some(left) = self.empty_passes_left.checked_sub(1) else {
                return false;
            };
            self.empty_passes_left = left;
        }
        self.passes_left = self.passes_left.saturating_sub(1);
        self.begin_pass();
        true
    }
}

/// The amount of a job, bytes.
pub(super) fn goal_bytes(task: &Task<'_>) -> u64 {
    let job = task.job;
    let pass = match job.size {
        Some(Size::Bytes(bytes)) if bytes > 0 => blocks_of(task).min(bytes),
        _ => blocks_of(task),
    };
    let passes = pass.saturating_mul(job.loops);
    match (job.time_based || job.read_iolog.is_some(), io_bytes(task)) {
        (true, _) => u64::MAX,
        // As by fio: that many bytes for each loop; or, where places end, whole passes: all loops,
        // and as many as these bytes need, but for the rest of one request.
        (false, Some(bytes)) => {
            let all = bytes.saturating_mul(job.loops);
            let needed = (bytes + 1).saturating_sub(most_bytes(job));
            let needed = needed.div_ceil(pass.max(1)).saturating_mul(pass);
            match (has_no_end(task), is_alike(job)) {
                (true, _) => all,
                (false, true) => passes.max(needed).min(all),
                (false, false) => passes.max(bytes).min(all),
            }
        }
        (false, None) => passes,
    }
}

/// After how many bytes a pass ends wherever its places are: as by fio, with engines that have a
/// queue, since it counts requests when they are queued.
fn pass_bytes(task: &Task<'_>) -> u64 {
    let job = task.job;
    let is_timed = job.time_based || job.read_iolog.is_some();
    let goes_on = (is_timed || loops_apart(task) > 1) && !checks_each_pass(task);
    if task.blocking || goes_on || job.verifying.backlog > 0 {
        return u64::MAX;
    }
    let whole: u64 = task.regions.iter().map(|region| region.length).sum();
    let size = match job.size {
        Some(Size::Bytes(bytes)) if bytes > 0 => bytes.min(whole),
        _ => whole,
    };
    match job.rw.random && job.rw.does[WRITE] && !job.visits_once() {
        true => size.max(io_bytes(task).unwrap_or(0)),
        false => size,
    }
}

/// `io_size` in bytes, a share as that of all regions; none if it is 0.
pub(super) fn io_bytes(task: &Task<'_>) -> Option<u64> {
    let whole: u64 = task.regions.iter().map(|region| region.length).sum();
    let size = task.job.io_size.map(|size| size.of(whole));
    size.filter(|bytes| *bytes > 0)
}

/// The largest size of requests of any kind, bytes: fio begins no pass for less, and counts kinds
/// that the job does not have, too.
pub(super) fn most_bytes(job: &Job) -> u64 {
    let sizes = job.sizes.iter().map(|sizes| sizes.max);
    sizes.max().unwrap_or(0)
}

/// Whether the places of a job go on without an end of a pass.
fn has_no_end(task: &Task<'_>) -> bool {
    let job = task.job;
    let is_uneven = task.regions.len() > 1 && job.file_order.is_uneven();
    is_uneven || (job.rw.random && !job.visits_once())
}

/// Whether all requests have one size, and go through the files together.
fn is_alike(job: &Job) -> bool {
    let kinds = job.rw.does.iter().filter(|does| **does).count();
    // Places that come again fill the size.
    let all_drawn = job.rw.modifier <= 1 && job.random_percent == [100; 3];
    // So do those of a sequence with gaps, or in zones.
    let in_sequence = !job.rw.random && job.rw.modifier == 0 && job.zones.range().is_none();
    let ends = in_sequence || (job.rw.random && all_drawn && job.visits_once());
    let same = job.smallest_bytes().max(1) == job.largest_bytes();
    ends && same && (kinds == 1 || job.rw.random)
}

/// The bytes of the files for requests of one size; all bytes where sizes differ, where reads and
/// writes pass through them separately, or where files begin anew before others are done.
fn blocks_of(task: &Task<'_>) -> u64 {
    let unit = match is_alike(task.job) && !has_no_end(task) {
        true => task.job.smallest_bytes().max(1),
        false => 1,
    };
    let regions = task.regions.iter();
    regions.map(|region| region.length / unit * unit).sum()
}
