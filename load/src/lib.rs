//! The load generator: drives a provider through channels, from one thread or many, one request at
//! a time or many at once, and takes the time of every request if asked.
//!
//! ```text
//!   Job          what is sent: a pattern, a depth, whether requests are timed
//!   Load         workers that are ready: a thread each, a channel each, a part of the pattern each
//!   Load::run    so many requests, shared by the workers; returns an Outcome
//! ```
//!
//! What a worker does between two requests is chosen by type parameters before its loop begins
//! (where requests come from, whether they are timed), so that the loop has no branch for it. With
//! one request at a time a single reading of the clock ends one request and begins the next: what
//! is between two requests is counted to the second, and nothing is lost. With many at once the
//! reading that ends a request begins the one that takes its place.
//!
//! [`cells`] has the cells that read one place again and again, [`tst`] the same by system calls
//! alone, [`devices`] the counters of what is below.

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

pub mod block_map;
pub mod cells;
pub mod devices;
pub mod door;
mod pattern;
#[cfg(test)]
mod tests;
pub mod tst;
mod watch;
mod worker;

use crate::cells::{Cores, Start};
use std::sync::Arc;
use ugeom_harness::HarnessError;
use ugeom_harness::crew;
use ugeom_harness::{Cell, RunResult, Seats, Work};
use ugeom_measure::Histogram;
use ugeom_stack::{Delta, Opened, ProviderId, Stack};

pub use pattern::{Pattern, Range, Request};
use worker::{Span, Worker};

/// What is to be done.
#[derive(Clone, Debug)]
pub struct LoadJob {
    /// What to call it in an error.
    pub name: String,
    /// Which requests.
    pub pattern: Pattern,
    /// How many requests each worker has under way at a time, at least 1.
    pub depth: usize,
    /// Take the time of every request.
    pub latency: bool,
    /// How many threads, at least 1.
    pub workers: usize,
    /// Where they run.
    pub cores: Cores,
    /// Begins all random choices.
    pub seed: u64,
}

impl LoadJob {
    /// One worker, one request at a time, untimed.
    #[must_use]
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

/// What a run did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// From the first start to the last end, ns.
    pub wall_ns: u64,
    /// Requests done.
    pub requests: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// How long each request took, ns, when that was asked for.
    pub latency: Option<Box<Histogram>>,
}

impl Outcome {
    /// Requests a second.
    #[must_use]
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
        let start = Start::new(self.workers.len(), self.seats.as_ref());
        let together = |(index, (worker, count)): (usize, (&mut Worker, u64))| {
            let before = start.wait(index);
            let span = worker.run(count);
            // A thread that cannot be put back stays where it is: no figure is wrong for that.
            let _ = before.map(|before| before.apply());
            span
        };
        let spans = std::thread::scope(|scope| {
            let workers = self.workers.iter_mut().zip(counts.iter().copied());
            let mut numbered = workers.enumerate();
            let own = numbered.next();
            let others = crew::start(scope, numbered, together)?;
            let mut spans: Vec<_> = own.into_iter().map(|own| Some(together(own))).collect();
            spans.extend(others.join());
            Ok(spans)
        });
        self.joined(spans.map_err(crew::not_started(&self.name))?)
    }

    /// The outcome of all workers together.
    fn joined(
        &mut self,
        spans: Vec<Option<Result<Span, HarnessError>>>,
    ) -> Result<Outcome, HarnessError> {
        let (mut first_ns, mut last_ns) = (u64::MAX, 0);
        let mut outcome = Outcome::default();
        for span in spans {
            let panicked = || HarnessError::Thread {
                cell: self.name.clone(),
                problem: "a worker panicked".to_owned(),
            };
            let span = span.ok_or_else(panicked)??;
            first_ns = first_ns.min(span.start_ns);
            last_ns = last_ns.max(span.end_ns);
            outcome.requests += span.requests;
            outcome.bytes += span.bytes;
        }
        outcome.wall_ns = last_ns.saturating_sub(first_ns);
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

/// The provider, open for what the pattern does and fit for it.
fn opened(stack: &Stack, provider: ProviderId, job: &LoadJob) -> Result<Arc<Opened>, HarnessError> {
    let delta = match job.pattern.writes() {
        true => Delta::READ_WRITE,
        false => Delta::READ,
    };
    let opened = Arc::new(stack.open(provider, delta).map_err(HarnessError::stack)?);
    job.pattern.check(&job.name, &opened)?;
    Ok(opened)
}

/// A cell that does a job: its iterations are requests, which the workers share.
///
/// # Errors
/// As [`Load::new`].
pub fn cell(
    stack: &Stack,
    provider: ProviderId,
    job: &LoadJob,
) -> Result<Cell<'static>, HarnessError> {
    Ok(cell_of(Load::new(stack, provider, job)?))
}

/// A cell of workers that are ready.
#[must_use]
pub fn cell_of(mut load: Load) -> Cell<'static> {
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
    let mut cell = Cell::new(name, run).in_steps_of(workers);
    cell.seats = seats;
    cell
}
