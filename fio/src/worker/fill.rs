//! Makes requests and hands them over, until `iodepth` are in flight.

use super::flow::Share;
use super::{Slot, Worker};
use crate::content::Label;
use crate::tally::Tally;
use ugeom_load::door::{Door, Kind, Request};
use ugeom_machine::clock;

impl<D: Door> Worker<'_, D> {
    /// Makes requests until enough are in flight, and hands them over.
    pub(super) fn fill(&mut self, now: u64) {
        let now = self.refill(now);
        self.hand_over(now);
    }

    /// Makes requests until enough are in flight, and hands over full batches of them. The time
    /// after it: the last that was read.
    pub(super) fn refill(&mut self, now: u64) -> u64 {
        if self.draining {
            if self.in_flight() > self.task.job.iodepth_low {
                return now;
            }
            self.draining = false;
        }
        self.not_before = self.not_before.filter(|until| *until > now);
        let mut now = now;
        while !self.finished && self.not_before.is_none() {
            let Some(&slot) = self.free.last() else {
                self.draining = self.task.job.iodepth_low > 0;
                break;
            };
            if self.has_conditions {
                if self.pauses.has_made && self.thinks(now) {
                    break;
                }
                if self.make_trim(now) || (self.checks_left > 0 && self.make_check(now)) {
                    if self.queued.len() >= self.batch() {
                        now = self.hand_over(now);
                    }
                    continue;
                }
            }
            let is_new = self.next_up.is_none();
            if self.has_conditions && !self.may_make_any(now) {
                break;
            }
            let Some((request, due)) = self.next_request(now) else {
                if is_new && self.next_up.is_none() {
                    self.share.iter_mut().for_each(Share::give_back);
                }
                break;
            };
            let may_make = |it: &mut Self| {
                it.may_make(&request, due)
                    && it.may_use_file(slot, &request, due)
                    && it.has_opened(&request)
            };
            if self.has_conditions && !may_make(self) {
                break;
            }
            self.free.pop();
            self.make(slot, request, due, now);
            if self.queued.len() >= self.batch() {
                now = self.hand_over(now);
            }
        }
        now
    }

    #[inline]
    pub(super) fn make(&mut self, slot: u32, request: Request, due: u64, now: u64) {
        let mut number = 0;
        if request.kind == Kind::Write {
            number = self.write_number as u16;
            self.write_number += 1;
            let label = Label {
                offset: request.offset,
                number: Some(number),
            };
            let buffer = &mut self.door.buffer(slot)[..request.length as usize];
            self.content.before_write(buffer, label);
        }
        let mut priority = self.priority;
        if let Some(priorities) = &mut self.priorities {
            priority = priorities.draw(&request);
            self.door.set_priority(priority);
        }
        self.slots[slot as usize] = Slot {
            request,
            number,
            priority,
            due,
            begun: now,
            issued: now,
            in_flight: true,
        };
        if let Some(granules) = &mut self.granules {
            granules.enter(&request);
        }
        if self.traces.log.is_some() {
            self.log_request(&request);
        }
        self.door.submit(slot, &request);
        self.queued.push(slot);
        if !self.in_batches && !request.is_sync() {
            self.tally.depth(self.in_flight(), 1);
        }
    }

    /// Hands over queued requests, and returns the last clock reading after it.
    #[inline]
    pub(super) fn hand_over(&mut self, now: u64) -> u64 {
        if self.queued.is_empty() {
            return now;
        }
        self.door.flush();
        let issued = if self.task.blocking {
            now
        } else {
            clock::ticks()
        };
        let count = self.queued.len();
        if self.in_batches {
            self.batched += count as u32;
            if self.batched >= self.task.job.iodepth_batch.unwrap_or(0) {
                self.end_batch();
            }
        }
        for slot in self.queued.drain(..) {
            self.slots[slot as usize].issued = issued;
        }
        self.tally.submits[Tally::batch(count)] += 1;
        issued
    }

    /// A batch that the job asks for is full, or no more requests join it: as by fio, all of it
    /// counts as one of so many in flight.
    pub(super) fn end_batch(&mut self) {
        let batched = std::mem::take(&mut self.batched);
        self.tally.depth(self.in_flight(), batched.into());
    }
}
