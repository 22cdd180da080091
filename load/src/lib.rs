//! The load generator: drives a provider through channels, from one thread or many, one request at
//! a time or many at once, and takes the time of every request if asked.
//!
//! ```text
//!   places --> requests --> loop --> door          each a type parameter of the loop, so that it
//!   (offsets)  (iterator)    |                     has no branch for what it does not do
//!                            +-----> recorder
//!
//!   drive        the two loops: one request at a time, and many in flight
//!   door         an engine with files, a stack, calls, nothing
//!   places       one after the other, at random, each once, drawn before
//!   recorder     nothing, a histogram, or the notes of an experiment
//!
//!   LoadJob      the load on a stack: a pattern, a depth, whether requests are timed
//!   Load         workers that are ready: a thread each, a channel each, a part of the pattern each
//!   Load::run    so many requests, shared by the workers; returns an Outcome
//! ```
//!
//! Every load that repeats requests (experiments, `ab`, `raidtest`, `diskinfo`) uses these loops;
//! fio's jobs have loops of their own on the same doors and places, because most of their options
//! say something about each request.
//!
//! [`cases`] has the cases that read one place again and again, [`tst`] the same by system calls
//! alone, [`devices`] the counters of the devices below.

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

pub mod block_map;
pub mod cases;
pub mod devices;
pub mod door;
pub mod drive;
mod failure;
mod pattern;
pub mod places;
pub mod recorder;
pub mod start;
#[cfg(test)]
mod tests;
pub mod tst;
mod worker;

use std::sync::Arc;
use ugeom_harness::HarnessError;
use ugeom_harness::{Case, RunResult, Seats, Work};
use ugeom_measure::Histogram;
use ugeom_stack::{Delta, Opened, ProviderId, Stack};

pub use failure::Failure;
pub use pattern::{Mixed, Pattern, Range};
use start::{Cores, together};
use worker::Worker;

/// The work to do.
#[derive(Clone, Debug)]
pub struct LoadJob {
    /// The name in errors.
    pub name: String,
    /// Kinds, places and lengths of the requests.
    pub pattern: Pattern,
    /// Queue depth of each worker, at least 1.
    pub depth: usize,
    /// Take the time of every request.
    pub latency: bool,
    /// How many threads, at least 1.
    pub workers: usize,
    /// On which cores the workers run.
    pub cores: Cores,
    /// Begins all random choices.
    pub seed: u64,
}

impl LoadJob {
    /// One worker, one request at a time, untimed.
    pub fn new(name: &str, pattern: Pattern) -> Self {
        Self {
            name: name.to_owned(),
            pattern,
            depth: 1,
            latency: false,
            workers: 1,
            cores: Cores::OneEach,
            seed: 1,
        }
    }
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// From the first start to the last end, ns.
    pub wall_ns: u64,
    /// Requests that were completed in the run.
    pub requests: u64,
    /// Bytes that they have transferred.
    pub bytes: u64,
    /// How long each request took, ns, when that was asked for.
    pub latency: Option<Box<Histogram>>,
}

impl Outcome {
    /// IOPS: requests by the time of the run.
    pub fn requests_per_second(&self) -> f64 {
        self.requests as f64 * 1e9 / self.wall_ns.max(1) as f64
    }
}

/// Workers that are ready to run.
pub struct Load {
    name: String,
    seats: Option<Seats>,
    workers: Vec<Worker>,
}

impl Load {
    /// Opens the provider, for writing only when the pattern writes, and makes the workers ready.
    ///
    /// # Errors
    /// It cannot be opened, or a request of the pattern does not fit it.
    pub fn new(stack: &Stack, provider: ProviderId, job: &LoadJob) -> Result<Self, HarnessError> {
        let opened = opened(stack, provider, job)?;
        let workers = job.workers.max(1);
        let worker = |index| Worker::new(stack, &opened, job, index, workers);
        Ok(Self {
            name: job.name.clone(),
            seats: job.cores.seats(workers),
            workers: (0..workers).map(worker).collect::<Result<_, _>>()?,
        })
    }

    /// The same with a stack for each worker: workers that share nothing but the list of requests.
    ///
    /// # Errors
    /// As [`Load::new`].
    pub fn apart(stacks: &[(Stack, ProviderId)], job: &LoadJob) -> Result<Self, HarnessError> {
        let worker = |(index, (stack, provider)): (usize, &(Stack, ProviderId))| {
            let opened = opened(stack, *provider, job)?;
            Worker::new(stack, &opened, job, index, stacks.len())
        };
        let numbered = stacks.iter().enumerate();
        Ok(Self {
            name: job.name.clone(),
            seats: job.cores.seats(stacks.len()),
            workers: numbered.map(worker).collect::<Result<_, _>>()?,
        })
    }

    /// Lets every worker send so many requests; those of a list begin again when it ends.
    ///
    /// # Errors
    /// The first request that failed or was short, or a thread that could not be started.
    pub fn run(&mut self, requests_each: u64) -> Result<Outcome, HarnessError> {
        let counts = vec![requests_each; self.workers.len()];
        self.run_each(&counts)
    }

    /// Lets every worker send all requests of its part of a list once.
    ///
    /// # Errors
    /// As [`Load::run`].
    pub fn run_lists(&mut self) -> Result<Outcome, HarnessError> {
        let counts: Vec<u64> = self.workers.iter().map(Worker::list_length).collect();
        self.run_each(&counts)
    }

    fn run_each(&mut self, counts: &[u64]) -> Result<Outcome, HarnessError> {
        let workers = self.workers.iter_mut().zip(counts);
        let one = |_, (worker, count): (&mut Worker, &u64)| worker.run(*count);
        let (wall_ns, done) = together(&self.name, self.seats.as_ref(), workers, one)?;
        let mut outcome = Outcome {
            wall_ns,
            requests: done.iter().map(|done| done.requests).sum(),
            bytes: done.iter().map(|done| done.bytes).sum(),
            latency: None,
        };
        for worker in &mut self.workers {
            if let Some(latency) = worker.take_latency() {
                match &mut outcome.latency {
                    Some(sum) => sum.merge(&latency),
                    none => *none = Some(latency),
                }
            }
        }
        Ok(outcome)
    }
}

/// The provider, open for the pattern and fit for it.
fn opened(stack: &Stack, provider: ProviderId, job: &LoadJob) -> Result<Arc<Opened>, HarnessError> {
    let delta = Delta::of_user(job.pattern.writes());
    let opened = Arc::new(stack.open(provider, delta).map_err(HarnessError::stack)?);
    job.pattern.check(&job.name, &opened)?;
    Ok(opened)
}

/// A case that does a job: its iterations are requests, which the workers share.
///
/// # Errors
/// As [`Load::new`].
pub fn case(
    stack: &Stack,
    provider: ProviderId,
    job: &LoadJob,
) -> Result<Case<'static>, HarnessError> {
    Ok(case_of(Load::new(stack, provider, job)?))
}

/// A case of workers that are ready.
pub fn case_of(mut load: Load) -> Case<'static> {
    let workers = load.workers.len() as u64;
    let name = load.name.clone();
    let seats = load.seats.clone();
    let run = move |iterations: u64| {
        let outcome = load.run(iterations / workers)?;
        let work = Work {
            latency: outcome.latency,
            ..Work::of(outcome.bytes, outcome.requests)
        };
        Ok(RunResult::taking(outcome.wall_ns).doing(work))
    };
    let mut case = Case::new(name, run).in_steps_of(workers);
    case.seats = seats;
    case
}
