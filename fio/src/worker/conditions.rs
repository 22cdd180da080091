//! What holds requests back beside their rate: pauses, a depth that keeps a latency, the turn among
//! the jobs of a flow, and requests in flight that overlap.

use ugeom_load::door::{Door, Request};
use ugeom_machine::clock;

use super::flow::Share;
use super::{FLOW_NAP_NS, Worker};
use ugeom_job::settings::WRITE;

impl<D: Door> Worker<'_, D> {
    /// Pauses when it is time to: after so many requests, or after so long.
    pub(super) fn think(&mut self, now: u64) {
        let job = self.task.job;
        self.since_thought += 1;
        let by_time = job.thinktime_iotime_ns > 0;
        let due = if by_time && !job.was_set("thinktime_blocks") {
            false
        } else {
            self.since_thought >= job.thinktime_blocks
        };
        if self.thought_at == 0 {
            self.thought_at = now;
        }
        let working = now.saturating_sub(self.thought_at);
        if due || (by_time && working >= clock::ns_to_ticks(job.thinktime_iotime_ns)) {
            let until = now + clock::ns_to_ticks(job.thinktime_ns);
            let spin_ns = job.thinktime_spin_ns.min(job.thinktime_ns);
            self.spin_until = now + clock::ns_to_ticks(spin_ns);
            self.since_thought = 0;
            self.thought_at = until;
            self.not_before = Some(until);
        }
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
            self.not_before = Some(now + clock::ns_to_ticks(sleep_ns.max(FLOW_NAP_NS)));
        }
        !waits
    }

    /// Whether a request may be made now: with `serialize_overlap`, when none is in flight that it
    /// overlaps, and when its file can be opened; else it is kept. One that checks what an earlier
    /// job had not written ends the job.
    pub(super) fn may_make(&mut self, request: &Request, due: u64) -> bool {
        if self.is_unwritten(request) && !self.task.job.rw.does[WRITE] {
            self.finished = true;
            return false;
        }
        let job = self.task.job;
        let opens = job.limits_open_files(self.task.regions.len());
        if !job.serialize_overlap && !opens {
            return true;
        }
        let in_flight = self.requests_in_flight();
        let waits = (job.serialize_overlap && in_flight.iter().any(|it| overlap(it, request)))
            || (opens && !can_open(in_flight, request.file, job.openfiles));
        if waits {
            self.next_up = Some((*request, Some(due)));
        }
        !waits
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
