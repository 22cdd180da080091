//! `latency_target`: the largest number of requests in flight that keeps a latency.
//!
//! The depth is doubled from 1 on until a window fails, and then searched between the largest that
//! kept the latency and the smallest that did not. When it has been found, counting begins anew for
//! one more window, so that the results are those of this depth.

use ugeom_load::door::Door;
use ugeom_machine::clock;

use super::Worker;
use super::errors::TOO_LATE;
use ugeom_job::settings::Job;

/// The search of a job.
pub struct DepthSearch {
    target_ns: u64,
    window_ticks: u64,
    percentile: f64,
    runs_on: bool,
    depth: u32,
    /// The largest depth that kept the latency, and the smallest that did not.
    low: u32,
    high: Option<u32>,
    max: u32,
    begun: u64,
    requests: u64,
    late: u64,
    last_window: bool,
}

/// The decision after a window.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// The search goes on, or the window has not ended.
    GoOn,
    /// The depth is found: count from now on.
    Found,
    /// The window with the depth that was found has ended.
    Done,
    /// One request at a time takes too long.
    Hopeless,
}

impl DepthSearch {
    /// The search that a job asks for.
    pub fn of(job: &Job) -> Option<Self> {
        let goal = job.latency;
        (goal.target_ns > 0).then(|| Self {
            target_ns: goal.target_ns,
            window_ticks: clock::ns_to_ticks(goal.window_ns).max(1),
            percentile: goal.percentile,
            runs_on: goal.runs_on,
            depth: 1,
            low: 1,
            high: None,
            max: super::slots(job),
            begun: 0,
            requests: 0,
            late: 0,
            last_window: false,
        })
    }

    /// Requests in flight at the most.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// So many requests took so long.
    pub fn add(&mut self, requests: u64, lat_ns: u64) {
        self.requests += requests;
        if lat_ns > self.target_ns {
            self.late += requests;
        }
    }

    fn look(&mut self, now: u64) -> Verdict {
        if self.begun == 0 {
            self.begun = now;
        }
        let kept = |search: &Self| {
            let in_time = (search.requests - search.late) as f64;
            in_time * 100.0 >= search.percentile * search.requests as f64
        };
        let failed_early = self.percentile == 100.0 && self.late > 0;
        let over = now.saturating_sub(self.begun) >= self.window_ticks && self.requests > 0;
        if !over && !failed_early {
            return Verdict::GoOn;
        }
        let verdict = if kept(self) {
            self.kept()
        } else {
            self.failed()
        };
        (self.begun, self.requests, self.late) = (now, 0, 0);
        verdict
    }

    fn kept(&mut self) -> Verdict {
        self.low = self.depth;
        let next = match self.high {
            None => self.depth.saturating_mul(2).min(self.max),
            Some(high) => self.depth.midpoint(high),
        };
        if next != self.depth {
            self.depth = next;
            return Verdict::GoOn;
        }
        match (self.runs_on, self.last_window) {
            (true, _) => Verdict::GoOn,
            (false, true) => Verdict::Done,
            (false, false) => {
                self.last_window = true;
                Verdict::Found
            }
        }
    }

    fn failed(&mut self) -> Verdict {
        if self.depth == 1 {
            return Verdict::Hopeless;
        }
        self.last_window = false;
        self.high = Some(self.depth);
        // A depth that was slow enough before may have become too slow.
        self.low = self.low.min(self.depth - 1);
        self.depth = self.low.midpoint(self.depth).max(1);
        Verdict::GoOn
    }
}

impl<D: Door> Worker<'_, D> {
    /// Goes on with the search for a depth when a window is over.
    pub(super) fn search_depth(&mut self, now: u64) {
        let Some(depth) = &mut self.depth else {
            return;
        };
        match depth.look(now) {
            Verdict::GoOn => {}
            Verdict::Found => self.start_counting(now),
            Verdict::Done => self.finished = true,
            Verdict::Hopeless => {
                let us = depth.target_ns / 1000;
                let message =
                    format!("one request at a time already exceeds latency_target={us}us");
                self.end_with(TOO_LATE, message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ugeom_job::error::Origin;

    /// The depth that is found on a device that keeps the latency up to `limit` in flight.
    fn found(limit: u32, max: u32) -> u32 {
        let mut job = Job::new("a", Origin::Default);
        job.ioengine = "io_uring".to_owned();
        job.iodepth = max;
        (job.latency.target_ns, job.latency.window_ns) = (1000, 1);
        let mut search = DepthSearch::of(&job).expect("a search");
        search.window_ticks = 10;
        let mut now = 1;
        for _ in 0..100 {
            search.look(now);
            let ns = if search.depth() <= limit { 900 } else { 1100 };
            search.add(5, ns);
            now += 10;
            if search.look(now) == Verdict::Done {
                break;
            }
        }
        search.depth()
    }

    #[test]
    fn the_search_ends_at_the_largest_depth_that_keeps_the_latency() {
        for limit in 1..40 {
            assert_eq!(found(limit, 64), limit, "{limit}");
        }
        assert_eq!((found(100, 64), found(64, 64)), (64, 64));
    }
}
