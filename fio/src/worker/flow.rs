//! `flow`: jobs with the same `flow_id` make their requests in the ratio of their weights.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use ugeom_machine::mutex::Mutex;

use ugeom_job::settings::Job;

/// How long a job that has ended still counts. Jobs with the same runtime do not end at the same
/// instant, and until the last has ended, it would make requests at full speed.
const GRACE: Duration = Duration::from_millis(50);

/// The state shared by the jobs of a flow: their weights, and their counts of requests.
#[derive(Debug, Default)]
pub struct Flow {
    weights: AtomicU64,
    requests: AtomicU64,
    left: Mutex<Left>,
}

/// The weights and requests of jobs that have ended and still count, and until when.
#[derive(Debug, Default)]
struct Left {
    weight: u64,
    requests: u64,
    until: Option<Instant>,
}

impl Flow {
    /// Jobs that ended some time ago count no more.
    fn forget_left(&self) {
        let Some(mut left) = self.left.try_lock() else { return };
        if left.until.is_some_and(|until| Instant::now() >= until) {
            self.weights.fetch_sub(left.weight, Relaxed);
            self.requests.fetch_sub(left.requests, Relaxed);
            *left = Left::default();
        }
    }

    /// A job takes part, from before any of them works.
    pub fn join(&self, job: &Job) {
        self.weights.fetch_add(u64::from(job.flow), Relaxed);
    }
}

/// The part of one job; the others go on without it some time after it is dropped.
pub struct Share<'a> {
    flow: &'a Flow,
    weight: u64,
    requests: u64,
}

impl<'a> Share<'a> {
    /// The part of a job that has joined the flow.
    pub fn new(flow: &'a Flow, job: &Job) -> Self {
        Self {
            flow,
            weight: u64::from(job.flow),
            requests: 0,
        }
    }

    /// Whether the job may make a request, which is counted then: not while its part of the
    /// requests is larger than its part of the weights.
    pub fn take_turn(&mut self) -> bool {
        let weights = u128::from(self.flow.weights.load(Relaxed));
        let all = u128::from(self.flow.requests.load(Relaxed)) + 1;
        if u128::from(self.requests) * weights > u128::from(self.weight) * all {
            self.flow.forget_left();
            return false;
        }
        self.requests += 1;
        self.flow.requests.fetch_add(1, Relaxed);
        true
    }

    /// The request of the last turn was not made.
    pub fn give_back(&mut self) {
        self.requests -= 1;
        self.flow.requests.fetch_sub(1, Relaxed);
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        let mut left = self.flow.left.lock();
        left.weight += self.weight;
        left.requests += self.requests;
        left.until = Some(Instant::now() + GRACE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ugeom_job::error::Origin;

    #[test]
    fn requests_have_the_ratio_of_the_weights() {
        let flow = Flow::default();
        let job = |weight| {
            let mut job = Job::new("a", Origin::Default);
            job.flow = weight;
            flow.join(&job);
            job
        };
        let jobs = [job(1), job(8)];
        let mut shares = jobs.each_ref().map(|job| Share::new(&flow, job));
        for turn in 0..9000 {
            shares[turn % 2].take_turn();
            // A request that is not due yet does not count.
            if shares[0].take_turn() {
                shares[0].give_back();
            }
        }
        let [one, eight] = shares.each_ref().map(|share| share.requests as f64);
        assert!((eight / one - 8.0).abs() < 0.1, "{one} {eight}");
        // The other does not wait for a job that has ended.
        let [first, mut second] = shares;
        drop(first);
        let begin = Instant::now();
        let mut turns = 0;
        while turns < 1000 && begin.elapsed() < Duration::from_secs(15) {
            turns += u32::from(second.take_turn());
        }
        assert_eq!(turns, 1000);
    }
}
