//! Conditions that delay requests beside their rate: pauses, a queue depth that keeps a latency,
//! the turn among the jobs of a flow, and overlapping requests in flight.

use ugeom_load::door::{Door, Kind, Request};
use ugeom_machine::clock;

use super::flow::Share;
use super::{DRAINED, FLOW_NAP_NS, PASSED, Slot, Worker, later};
use ugeom_job::settings::WRITE;

/// The state of `thinktime`.
#[derive(Default)]
pub(super) struct Pauses {
    /// When the last pause was due, and how many requests there were (`thinktime_blocks`).
    at: u64,
    requests: u64,
    /// How many requests have been made, and whether one was since the last look.
    made: u64,
    pub(super) has_made: bool,
    /// The processor is kept busy until then (`thinktime_spin`).
    pub(super) spin_until: u64,
}

impl Pauses {
    /// A request has been made.
    pub(super) fn made(&mut self) {
        self.made += 1;
        self.has_made = true;
    }
}

impl<D: Door> Worker<'_, D> {
    /// Looks, once after each request, whether it is time for a pause: after so many requests, or
    /// after so long. As by fio, requests in flight end first, see [`Worker::begin_pause`].
    pub(super) fn thinks(&mut self, now: u64) -> bool {
        let (job, in_flight) = (self.task.job, u64::from(self.in_flight()));
        let pauses = &mut self.pauses;
        pauses.has_made = false;
        let made = match job.thinktime_by_issue {
            true => pauses.made,
            false => pauses.made.saturating_sub(in_flight),
        };
        if pauses.at == 0 {
            pauses.at = self.started;
        }
        let between_ns = job.thinktime_iotime_ns.saturating_add(job.thinktime_ns);
        let by_time = job.thinktime_iotime_ns > 0;
        let thinks = match by_time {
            true if now.saturating_sub(pauses.at) >= clock::ns_to_ticks(between_ns) => true,
            true if !job.was_set("thinktime_blocks") => false,
            _ => made >= pauses.requests + u64::from(job.thinktime_blocks),
        };
        if thinks {
            pauses.requests = made;
            pauses.at = now;
            self.not_before = Some(DRAINED);
        }
        thinks
    }

    /// Nothing is in flight any more: a pause that waited for it begins, or the next pass.
    pub(super) fn begin_pause(&mut self) {
        match self.not_before {
            Some(DRAINED) => {}
            Some(PASSED) => return self.not_before = None,
            _ => return,
        }
        let (job, now) = (self.task.job, clock::ticks());
        let spin_ns = job.thinktime_spin_ns.min(job.thinktime_ns);
        self.pauses.spin_until = later(now, spin_ns);
        self.not_before = Some(later(now, job.thinktime_ns));
    }

    /// Whether conditions beside those of every job allow another request: the depth that keeps a
    /// latency, and the turn among jobs of a flow.
    pub(super) fn may_make_any(&mut self, now: u64) -> bool {
        if let Some(depth) = &self.depth
            && self.in_flight() >= depth.depth()
        {
            return false;
        }
        let sleep_ns = self.task.job.flow_sleep_ns;
        let is_new = self.next_up.is_none();
        let waits = |share: &mut Share<'_>| is_new && !share.take_turn();
        let waits = self.share.as_mut().is_some_and(waits);
        if waits {
            self.not_before = Some(later(now, sleep_ns.max(FLOW_NAP_NS)));
        }
        !waits
    }

    /// Whether a request may be made now: with `serialize_overlap`, when none is in flight that it
    /// overlaps; one that changes what is to be verified, when its place is neither written nor
    /// read back; and when its file can be opened. Else it is kept. One that checks what an
    /// earlier job had not written ends the job.
    pub(super) fn may_make(&mut self, request: &Request, due: u64) -> bool {
        if self.is_unwritten(request) && !self.task.job.rw.does[WRITE] {
            self.finished = true;
            return false;
        }
        let job = self.task.job;
        let window = job.limits_open_files(self.task.regions.len());
        let waits = (job.serialize_overlap && self.overlaps(request, |_, _| true))
            || self.spoils(request)
            || (window && !self.can_open(request.file, job.openfiles as usize));
        if waits {
            self.next_up = Some((*request, Some(due)));
        }
        !waits
    }

    /// Whether a request changes a place that is being written or read back: the content of the
    /// device would then depend on the order of completion.
    fn spoils(&self, request: &Request) -> bool {
        let changes = |kind| matches!(kind, Kind::Write | Kind::Trim);
        self.written.is_some()
            && changes(request.kind)
            && self.overlaps(request, |slot, checks| {
                changes(slot.request.kind) || checks.is_some()
            })
    }

    /// Whether a place is being written.
    pub(super) fn is_being_written(&self, place: &Request) -> bool {
        self.overlaps(place, |slot, _| slot.request.kind == Kind::Write)
    }

    /// Whether a request in flight has bytes in common with `request` and is meant: `is_meant` gets
    /// its slot, and the number of the write that it reads back.
    fn overlaps(&self, request: &Request, is_meant: impl Fn(&Slot, Option<u16>) -> bool) -> bool {
        if let Some(granules) = &self.granules
            && granules.are_free(request)
        {
            return false;
        }
        let mut slots = self.slots.iter().enumerate();
        slots.any(|(number, slot)| {
            slot.in_flight
                && overlap(&slot.request, request)
                && is_meant(slot, self.checks.get(number).copied().flatten())
        })
    }

    /// Whether a request to `file` leaves at most `window` files in use: as by fio, a file is
    /// closed after its last request has ended, and another one is opened then.
    fn can_open(&self, file: u32, window: usize) -> bool {
        let used = |slot: &&Slot| slot.in_flight && !slot.request.is_sync();
        let mut files: Vec<u32> = self
            .slots
            .iter()
            .filter(used)
            .map(|it| it.request.file)
            .collect();
        files.sort_unstable();
        files.dedup();
        files.contains(&file) || files.len() < window
    }
}

/// Whether two requests have bytes in common.
pub(super) fn overlap(one: &Request, other: &Request) -> bool {
    let end = |request: &Request| request.offset + u64::from(request.length);
    one.file == other.file && one.offset < end(other) && end(one) > other.offset
}
