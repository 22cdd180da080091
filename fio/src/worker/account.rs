//! Completion of requests: they are counted and recorded, and their slots are free.
//!
//! Requests that were handed over together and came back together took equally long, since clocks
//! are read once for all of them; so they are counted with one step for the whole run of them.

use std::io;
use std::time::Duration;

use ugeom_engine::Errno;
use ugeom_load::door::{Door, Event, Kind};
use ugeom_machine::clock;

use super::super::places::Place;
use super::super::tally::Tally;
use super::granules::Granules;
use super::{NAP_MS, PASSED, Slot, Worker};
use ugeom_job::settings::{READ, TRIM, Verify, WRITE};

/// Requests of one kind with the same stamps.
#[derive(Default)]
struct Alike {
    kind: usize,
    priority: u16,
    /// When they were due, begun, and handed over.
    stamps: [u64; 3],
    requests: u64,
    bytes: u64,
}

/// slat, clat and lat of a request with these stamps that came back now.
#[inline]
fn latencies_ns([due, begun, issued]: [u64; 3], now: u64) -> [u64; 3] {
    [
        clock::ticks_to_ns(issued.saturating_sub(begun)),
        clock::ticks_to_ns(now.saturating_sub(issued)),
        clock::ticks_to_ns(now.saturating_sub(due)),
    ]
}

impl<D: Door> Worker<'_, D> {
    /// Takes completed requests, `together` at a time with new ones in between; sleeps when
    /// there are none, but not past the time of the next request.
    pub(super) fn collect(&mut self, together: usize) {
        self.collect_and(together, Self::refill);
    }

    /// The same, where `refill` makes the new requests, and answers with the time after it.
    pub(super) fn collect_and(
        &mut self,
        together: usize,
        mut refill: impl FnMut(&mut Self, u64) -> u64,
    ) {
        let job = self.task.job;
        if self.batched > 0 {
            self.end_batch();
        }
        let wanted = job.iodepth_batch_complete_min.clamp(1, self.in_flight()) as usize;
        let mut events = std::mem::take(&mut self.events);
        let mut timed_out = false;
        loop {
            self.door.reap(&mut events);
            if events.len() >= wanted || timed_out {
                break;
            }
            let due = self.not_before.filter(|due| *due < PASSED);
            let nap_ns = match due {
                Some(due) => clock::ticks_to_ns(due.saturating_sub(clock::ticks())),
                None => NAP_MS * 1_000_000,
            };
            timed_out = due.is_some();
            let nap = Duration::from_nanos(nap_ns.min(NAP_MS * 1_000_000));
            if let Err(error) = self.door.wait(Some(nap)) {
                self.give_up(&error);
                break;
            }
        }
        if !events.is_empty() {
            self.tally.completes[Tally::batch(events.len())] += 1;
            let now = clock::ticks();
            let mut alike = Alike::default();
            if let Some(syncs) = &mut self.syncs {
                syncs.ended(&events, &self.slots, self.task.blocking);
            }
            let (mut count, mut after) = (0, now);
            self.unaccounted = events.len();
            for event in events.drain(..) {
                if count == together {
                    after = refill(self, after);
                    count = 0;
                }
                count += 1;
                self.unaccounted -= 1;
                self.account(event, now, &mut alike);
            }
            self.record(&alike, now);
        }
        self.events = events;
    }

    /// The system does not answer any more: requests in flight are not waited for.
    #[cold]
    fn give_up(&mut self, error: &io::Error) {
        let errno = error.raw_os_error().unwrap_or(5);
        self.end_with(errno, format!("waiting for requests: {error}"));
        self.free = (0..self.slots.len() as u32).collect();
        self.slots
            .iter_mut()
            .for_each(|slot| slot.in_flight = false);
        self.granules.iter_mut().for_each(Granules::clear);
    }

    #[inline]
    fn account(&mut self, event: Event, now: u64, alike: &mut Alike) {
        let slot = self.slots[event.slot as usize];
        self.slots[event.slot as usize].in_flight = false;
        if let Some(granules) = &mut self.granules {
            granules.leave(&slot.request);
        }
        self.free.push(event.slot);
        if let Some(held) = &mut self.held {
            held.give(event.slot);
        }
        let bytes = match event.result {
            Ok(bytes) => bytes,
            Err(errno) => return self.failed_of(event.slot, errno),
        };
        let kind = match slot.request.kind {
            Kind::Read => READ,
            Kind::Write => WRITE,
            Kind::Trim => TRIM,
            Kind::DataSync | Kind::Sync => {
                let ns = clock::ticks_to_ns(now.saturating_sub(slot.begun));
                self.tally.syncs.record(ns);
                self.tally.fsyncs += u64::from(slot.request.kind == Kind::Sync);
                return;
            }
        };
        if bytes < u64::from(slot.request.length) {
            // A request that moved nothing is none of them, as by fio.
            self.tally.sides[kind].short += u64::from(bytes > 0);
            // Behind the end of a file fio lets reads of its asynchronous engines pass.
            let ended = kind == READ && !self.task.blocking;
            if bytes == 0 && !ended {
                return self.failed_of(event.slot, Errno::IO);
            }
        }
        let stamps = [slot.due, slot.begun, slot.issued];
        let priority = slot.priority;
        if (kind, stamps, priority) != (alike.kind, alike.stamps, alike.priority) {
            self.record(alike, now);
            *alike = Alike {
                kind,
                priority,
                stamps,
                requests: 0,
                bytes: 0,
            };
        }
        alike.requests += 1;
        alike.bytes += bytes;
        if self.logs.is_some() {
            self.log(&slot, kind, now);
        }
        if self.task.job.verify != Verify::No {
            self.remember(event.slot, kind, &slot);
        }
    }

    /// The request of a slot has failed.
    #[cold]
    fn failed_of(&mut self, slot: u32, errno: Errno) {
        if let Some(check) = self.checks.get_mut(slot as usize) {
            *check = None;
        }
        let request = self.slots[slot as usize].request;
        self.failed(&request, errno);
    }

    /// Counts requests that took equally long.
    #[inline]
    fn record(&mut self, alike: &Alike, now: u64) {
        if alike.requests == 0 {
            return;
        }
        let side = &mut self.tally.sides[alike.kind];
        side.bytes += alike.bytes;
        side.requests += alike.requests;
        let [slat_ns, clat_ns, lat_ns] = latencies_ns(alike.stamps, now);
        let unmeasured = self.unmeasured;
        if !unmeasured.clat {
            side.clat.record_many(clat_ns, alike.requests);
        }
        if !unmeasured.lat {
            side.lat.record_many(lat_ns, alike.requests);
        }
        if !self.task.blocking && !unmeasured.slat {
            side.slat.record_many(slat_ns, alike.requests);
        }
        if self.priorities.is_some() {
            let total = self.task.job.percentiles.lat;
            let ns = if total { lat_ns } else { clat_ns };
            let times = side.of_priority(alike.priority);
            times.record_many(ns, alike.requests);
        }
        self.task.live.add(alike.kind, alike.requests, alike.bytes);
        if let Some(depth) = &mut self.depth {
            depth.add(alike.requests, lat_ns);
        }
        let max_ns = self.task.job.max_latency_ns;
        if max_ns > 0 && lat_ns > max_ns && !unmeasured.lat {
            self.too_late(lat_ns);
        }
    }

    fn log(&mut self, slot: &Slot, kind: usize, now: u64) {
        if self.counting
            && let Some(logs) = &mut self.logs
        {
            let at_ns = clock::ticks_to_ns(now.saturating_sub(self.started));
            let [slat_ns, clat_ns, lat_ns] = latencies_ns([slot.due, slot.begun, slot.issued], now);
            let unmeasured = self.unmeasured;
            let latencies = [
                (!self.task.blocking && !unmeasured.slat).then_some(slat_ns),
                (!unmeasured.clat).then_some(clat_ns),
                (!unmeasured.lat).then_some(lat_ns),
            ];
            logs.add(at_ns, kind, slot, latencies);
        }
    }

    /// Keeps what was written in mind; checks what was read back, and what a job that only reads
    /// has read.
    fn remember(&mut self, index: u32, kind: usize, slot: &Slot) {
        let place = Place {
            file: slot.request.file,
            offset: slot.request.offset,
            length: slot.request.length,
        };
        if kind == WRITE {
            self.states.wrote(&place);
        }
        match (kind, &mut self.written) {
            (WRITE, Some(written)) => {
                let turn = written.add(place, slot.number);
                let count = written.count() as u64;
                self.trims
                    .iter_mut()
                    .for_each(|trims| trims.wrote(place, turn));
                self.begin_backlog(count);
            }
            (TRIM, Some(written)) if self.trims.is_none() => written.forget(place),
            (READ, _) if self.checks[index as usize].is_some() => self.check_back(index, place),
            (READ, _) if !self.task.job.rw.does[WRITE] => self.check(index, place, None),
            _ => {}
        }
    }
}
