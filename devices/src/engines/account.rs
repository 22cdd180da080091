//! The sums of the runs of a case of the job.

use super::subject::{Latency, Side};
use ugeom_measure::Histogram;

/// The times of the requests of one kind, over all runs of a case.
#[derive(Default)]
struct Times {
    submitting: Histogram,
    completing: Histogram,
    whole: Histogram,
}

impl Times {
    fn side(&self) -> Side {
        Side {
            requests: self.whole.count(),
            submitting: Latency::of(&self.submitting),
            completing: Latency::of(&self.completing),
            whole: Latency::of(&self.whole),
        }
    }
}

/// The sums of a case, over all its runs.
#[derive(Default)]
pub(super) struct Account {
    reads: Times,
    writes: Times,
    wall_ns: u64,
    /// Requests that ended while the queue was kept full, and how long that was, ns.
    steady: (u64, u64),
    /// The sum of the requests in flight times how long they were, ns.
    in_flight_ns: u128,
}

impl Account {
    pub fn sides(&self) -> (Side, Side) {
        (self.reads.side(), self.writes.side())
    }

    /// Requests a second while the queue was kept full; none where no such time was.
    pub fn steady_per_second(&self) -> Option<f64> {
        let (requests, ns) = self.steady;
        (requests > 0 && ns > 0).then(|| requests as f64 * 1e9 / ns as f64)
    }

    /// The mean number in flight, seen by looking; none where it was not looked at.
    pub fn in_flight(&self) -> Option<f64> {
        (self.in_flight_ns > 0).then(|| self.in_flight_ns as f64 / self.wall_ns.max(1) as f64)
    }

    /// The same by Little's law: requests a second times the mean time of one.
    pub fn in_flight_by_law(&self) -> f64 {
        let sum = self.reads.whole.sum() + self.writes.whole.sum();
        sum as f64 / self.wall_ns.max(1) as f64
    }

    /// So many requests were in flight for so long.
    pub fn seen(&mut self, ns: u64, in_flight: usize) {
        self.in_flight_ns += u128::from(ns) * in_flight as u128;
    }

    /// A run took so long; of it, so many requests and so long with the queue full.
    pub fn ran(&mut self, wall_ns: u64, steady: Option<(u64, u64)>) {
        self.wall_ns += wall_ns;
        let (requests, ns) = steady.unwrap_or_default();
        self.steady.0 += requests;
        self.steady.1 += ns;
    }

    fn of(&mut self, write: bool) -> &mut Times {
        if write {
            &mut self.writes
        } else {
            &mut self.reads
        }
    }

    /// A request has ended that began, was handed over and ended at these times.
    pub fn ended(&mut self, write: bool, [start_ns, issued_ns, end_ns]: [u64; 3]) {
        let times = self.of(write);
        times.submitting.record(issued_ns.saturating_sub(start_ns));
        times.completing.record(end_ns.saturating_sub(issued_ns));
        times.whole.record(end_ns.saturating_sub(start_ns));
    }

    /// Plain calls took so long, which were not handed over.
    pub fn called(&mut self, write: bool, took: &Histogram) {
        let times = self.of(write);
        times.submitting.record_many(0, took.count());
        times.completing.merge(took);
        times.whole.merge(took);
    }
}
