//! Conditions that delay requests beside their rate: pauses, a queue depth that keeps a latency,
//! the turn among the jobs of a flow, and overlapping requests in flight.

use ugeom_load::door::{Door, Kind, Request};
use ugeom_machine::clock;

use super::flow::Share;
use super::{DRAINED, FLOW_NAP_NS, PASSED, Worker, later};
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
    /// overlaps; a write, when its place is not being read back; and when its file can be opened.
    /// Else it is kept. One that checks what an earlier job had not written ends the job.
    pub(super) fn may_make(&mut self, request: &Request, due: u64) -> bool {
        if self.is_unwritten(request) && !self.task.job.rw.does[WRITE] {
            self.finished = true;
            return false;
        }
        let job = self.task.job;
        let opens = job.limits_open_files(self.task.regions.len());
        let spoils = job.verifying.backlog > 0
            && request.kind == Kind::Write
            && self.is_in_flight(Kind::Read, request);
        if !job.serialize_overlap && !opens && !spoils {
            return true;
        }
        let in_flight = self.requests_in_flight();
        let waits = spoils
            || (job.serialize_overlap && in_flight.iter().any(|it| overlap(it, request)))
            || (opens && !can_open(in_flight, request.file, job.openfiles));
        if waits {
            self.next_up = Some((*request, Some(due)));
        }
        !waits
    }

    /// Whether a write is in flight that overlaps a request, or a read that checks its place.
    pub(super) fn is_in_flight(&self, kind: Kind, request: &Request) -> bool {
        // One at a time is in flight when this is asked: none.
        let mut free = vec![self.slots.len() == 1; self.slots.len()];
        self.free
            .iter()
            .for_each(|slot| free[*slot as usize] = true);
        let slots = self.slots.iter().zip(&self.checks).zip(free);
        let mut busy = slots.filter(|(_, free)| !free).map(|(slot, _)| slot);
        busy.any(|(slot, check)| {
            let is_meant = slot.request.kind == kind && (kind == Kind::Write || check.is_some());
            is_meant && overlap(&slot.request, request)
        })
    }

    /// Requests in flight that transfer something.
    fn requests_in_flight(&self) -> Vec<Request> {
        let mut busy = vec![true; self.slots.len()];
        self.free
            .iter()
            .for_each(|slot| busy[*slot as usize] = false);
        let slots = self.slots.iter().zip(busy);
        let requests = slots
            .filter(|(_, busy)| *busy)
            .map(|(slot, _)| slot.request);
        requests.filter(|request| !request.is_sync()).collect()
    }
}

/// Whether two requests have bytes in common.
fn overlap(one: &Request, other: &Request) -> bool {
    let end = |request: &Request| request.offset + u64::from(request.length);
    one.file == other.file && one.offset < end(other) && end(one) > other.offset
}

/// Whether a request to `file` leaves at most `window` files in use: as by fio, a file is closed
/// after its last request has ended, and another one is opened then.
fn can_open(in_flight: Vec<Request>, file: u32, window: u32) -> bool {
    let mut files: Vec<u32> = in_flight.iter().map(|request| request.file).collect();
    files.sort_unstable();
    files.dedup();
    files.contains(&file) || files.len() < window as usize
}
