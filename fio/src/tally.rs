//! The counts of a worker, and their sum over several.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use ugeom_machine::mutex::Mutex;

use ugeom_machine::cpu::Usage;
use ugeom_measure::Histogram;

/// The counts of the requests of one kind.
#[derive(Clone, Debug, Default)]
pub struct RequestCounts {
    /// Bytes that were transferred.
    pub bytes: u64,
    /// Requests that ended well.
    pub requests: u64,
    /// Requests that ended with an error: fio reports them among those that were issued.
    pub failed: u64,
    /// Those that were shorter than asked for.
    pub short: u64,
    /// From when a request was taken up until it was handed over, ns.
    pub slat: Histogram,
    /// From then until it ended, ns.
    pub clat: Histogram,
    /// From when it was due until it ended, ns.
    pub lat: Histogram,
    /// The same of the requests of each I/O priority (of `lat` with `lat_percentiles`, else of
    /// `clat`), ns; empty where there are no priorities.
    pub by_priority: Vec<(u16, Histogram)>,
    /// How long requests of this kind were made, ns.
    pub runtime_ns: u64,
    /// Bandwidth in KiB/s, a value each half second.
    pub bw: Samples,
    /// Requests a second, as often.
    pub iops: Samples,
}

/// Figures that were looked at now and then.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// Those of each copy of the job that has any, in the order of time.
    copies: Vec<Vec<f64>>,
}

impl Samples {
    /// Those of one copy.
    pub(crate) fn of(values: Vec<f64>) -> Self {
        let copies = match values.is_empty() {
            true => Vec::new(),
            false => vec![values],
        };
        Self { copies }
    }

    /// How many there are, of all copies.
    pub(crate) fn count(&self) -> usize {
        self.copies.iter().map(Vec::len).sum()
    }

    /// The smallest and the largest, of copies together the sums of theirs; 0 when there are none.
    pub fn ends(&self) -> (u64, u64) {
        let least = |copy: &Vec<f64>| copy.iter().copied().fold(f64::INFINITY, f64::min) as u64;
        let most = |copy: &Vec<f64>| copy.iter().copied().fold(0.0, f64::max) as u64;
        let copies = self.copies.iter();
        (copies.clone().map(least).sum(), copies.map(most).sum())
    }

    /// The mean; of copies together, the sum of their means.
    pub fn mean(&self) -> f64 {
        // The sum of nothing is -0, which would be printed.
        let means = self.copies.iter().map(|copy| mean(copy));
        means.fold(0.0, |sum, mean| sum + mean)
    }

    /// The standard deviation (n - 1 below the line), each copy around its own mean, as fio's.
    pub fn deviation(&self) -> f64 {
        let n = self.count();
        if n < 2 {
            return 0.0;
        }
        let squares = |copy: &Vec<f64>| -> f64 {
            let mean = mean(copy);
            copy.iter().map(|value| (value - mean).powi(2)).sum()
        };
        let squares: f64 = self.copies.iter().map(squares).sum();
        (squares / (n - 1) as f64).sqrt()
    }

    fn merge(&mut self, other: &Self) {
        self.copies.extend_from_slice(&other.copies);
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

impl RequestCounts {
    /// How long requests of this kind were made, ms; a part of one counts as a whole, as in fio.
    pub(crate) fn runtime_ms(&self) -> u64 {
        self.runtime_ns.div_ceil(1_000_000)
    }

    /// Whether there were requests of this kind in some time; not so the phases of `cpuio`.
    pub(crate) fn has_run(&self) -> bool {
        self.requests > 0 && self.runtime_ns > 0
    }

    /// The latencies of the requests of one priority.
    pub(crate) fn of_priority(&mut self, priority: u16) -> &mut Histogram {
        let found = self.by_priority.iter().position(|(of, _)| *of == priority);
        let index = found.unwrap_or_else(|| {
            self.by_priority.push((priority, Histogram::new()));
            self.by_priority.len() - 1
        });
        &mut self.by_priority[index].1
    }

    /// Requests that were issued, whether they failed or not.
    pub(crate) fn issued(&self) -> u64 {
        self.requests + self.failed
    }

    /// IOPS as fio counts them: of all requests that were issued; 0 where all have failed.
    pub(crate) fn iops_issued(&self) -> f64 {
        match self.runtime_ms() {
            0 => 0.0,
            ms => self.issued() as f64 * 1000.0 / ms as f64,
        }
    }

    /// Throughput, bytes per second, in the time that is reported; 0 where nothing was done.
    pub(crate) fn bytes_per_s(&self) -> u64 {
        per_second(self.bytes, self.runtime_ms())
    }

    fn merge(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.requests += other.requests;
        self.failed += other.failed;
        self.short += other.short;
        self.slat.merge(&other.slat);
        self.clat.merge(&other.clat);
        self.lat.merge(&other.lat);
        for (priority, times) in &other.by_priority {
            self.of_priority(*priority).merge(times);
        }
        self.runtime_ns = self.runtime_ns.max(other.runtime_ns);
        self.bw.merge(&other.bw);
        self.iops.merge(&other.iops);
    }
}

/// A rate per second of what was done in so many ms; 0 in no time.
pub(crate) fn per_second(amount: u64, ms: u64) -> u64 {
    let rate = (u128::from(amount) * 1000).checked_div(u128::from(ms));
    rate.map_or(0, |rate| rate as u64)
}

/// All that one worker counts.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Reads, writes and trims, in this order.
    pub sides: [RequestCounts; 3],
    /// Latencies of fsync and fdatasync, ns.
    pub syncs: Histogram,
    /// How many of them were fsync: those that fio counts as requests.
    pub fsyncs: u64,
    /// Requests by how many were in flight: 1, 2, 4, 8, 16, 32, 64 and more.
    pub depths: [u64; 7],
    /// Calls by how many requests they handed over: 0, to 4, to 8, 16, 32, 64, more.
    pub submits: [u64; 7],
    /// Calls by how many requests they brought back, likewise.
    pub completes: [u64; 7],
    /// CPU time and context switches.
    pub usage: Usage,
    /// How long the job worked, ns.
    pub elapsed_ns: u64,
    /// Errors that did not end the job, and the number of the first.
    pub errors: u64,
    /// See [`Tally::errors`]; 0 when there was none.
    pub first_error: i32,
    /// How long after its time in the trace each request began, ns.
    pub lateness: Histogram,
    /// The depth that `latency_target` came to; 0 without it.
    pub latency_depth: u32,
}

impl Tally {
    /// Requests are handed over and count as one of `in_flight`.
    #[inline]
    pub fn depth(&mut self, in_flight: u32, requests: u64) {
        self.depths[(in_flight.max(1).ilog2() as usize).min(6)] += requests;
    }

    /// The place of a number of requests in [`Tally::submits`].
    #[inline]
    pub fn batch(count: usize) -> usize {
        match count {
            0 => 0,
            1..=4 => 1,
            5..=8 => 2,
            9..=16 => 3,
            17..=32 => 4,
            33..=64 => 5,
            _ => 6,
        }
    }

    /// Reads, writes and trims together.
    pub fn mixed(&self) -> RequestCounts {
        let mut mixed = self.sides[0].clone();
        self.sides[1..].iter().for_each(|side| mixed.merge(side));
        mixed
    }

    /// Adds the counts of another job of the same group.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.sides.iter_mut().zip(&other.sides) {
            mine.merge(theirs);
        }
        self.syncs.merge(&other.syncs);
        self.fsyncs += other.fsyncs;
        let maps = [
            (&mut self.depths, &other.depths),
            (&mut self.submits, &other.submits),
            (&mut self.completes, &other.completes),
        ];
        for (mine, theirs) in maps {
            mine.iter_mut()
                .zip(theirs)
                .for_each(|(mine, theirs)| *mine += theirs);
        }
        self.usage = self.usage.plus(&other.usage);
        self.elapsed_ns += other.elapsed_ns;
        self.errors += other.errors;
        self.lateness.merge(&other.lateness);
        if self.first_error == 0 {
            self.first_error = other.first_error;
        }
    }
}

/// The state that a worker publishes while it works.
#[derive(Debug, Default)]
pub struct Live {
    /// Bytes done: read, written, trimmed.
    pub bytes: [AtomicU64; 3],
    /// Completed reads, writes and trims.
    pub requests: [AtomicU64; 3],
    /// A [`Phase`], which the watching thread reads.
    phase: AtomicU8,
    failed: AtomicBool,
    /// Bytes that will be done in all, as far as is known.
    pub goal_bytes: AtomicU64,
    /// The worker shares its counts when it is asked, and when it ends.
    pub publishes: bool,
    is_asked: AtomicBool,
    published: Mutex<Option<Tally>>,
}

/// Where a worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Getting ready, or waiting for its start.
    Waiting = 0,
    /// Working, and nothing is counted yet.
    Ramping = 1,
    /// The job makes its requests.
    Running = 2,
    /// Written blocks are read back and compared.
    Verifying = 3,
    /// The job makes no more requests.
    Ended = 4,
}

impl Live {
    /// The counters of a worker before it starts; with `publishes` it shares its counts.
    pub fn new(publishes: bool) -> Self {
        Self {
            publishes,
            ..Self::default()
        }
    }

    /// Where the worker is.
    pub fn phase(&self) -> Phase {
        match self.phase.load(Relaxed) {
            0 => Phase::Waiting,
            1 => Phase::Ramping,
            2 => Phase::Running,
            3 => Phase::Verifying,
            _ => Phase::Ended,
        }
    }

    /// Asks the worker for its counts.
    pub fn ask(&self) {
        self.is_asked.store(true, Relaxed);
    }

    /// Whether the worker has yet to answer [`Live::ask`].
    pub fn is_asked(&self) -> bool {
        self.is_asked.load(Relaxed)
    }

    /// The worker's counts so far.
    pub fn publish(&self, tally: Tally) {
        *self.published.lock() = Some(tally);
        self.is_asked.store(false, Relaxed);
    }

    /// The counts that the worker published last.
    pub fn published(&self) -> Tally {
        self.published.lock().clone().unwrap_or_default()
    }

    /// The job ends early.
    pub fn fail(&self) {
        self.failed.store(true, Relaxed);
    }

    /// Whether the job ends early, or ended so.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Relaxed)
    }

    /// The worker goes on.
    pub fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Relaxed);
    }

    /// Requests of a kind have been done; for the one worker.
    #[inline]
    pub fn add(&self, kind: usize, requests: u64, bytes: u64) {
        let add = |counter: &AtomicU64, more| counter.store(counter.load(Relaxed) + more, Relaxed);
        add(&self.bytes[kind], bytes);
        add(&self.requests[kind], requests);
    }

    /// Bytes and requests of all kinds so far.
    pub fn totals(&self) -> [(u64, u64); 3] {
        [0, 1, 2].map(|kind| {
            (
                self.bytes[kind].load(Relaxed),
                self.requests[kind].load(Relaxed),
            )
        })
    }
}
