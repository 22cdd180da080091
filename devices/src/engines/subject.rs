//! The description of the measurement in its document.

use serde::{Deserialize, Serialize};
use ugeom_measure::Histogram;
use ugeom_measure::summary::median;

/// A finished experiment about engines.
pub type Document = ugeom_harness::document::Document<Subject>;

/// The name of the experiment in documents.
pub const EXPERIMENT: &str = "engines";

/// The jobs and the device that `lab engines` measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// The file or device; none for a temporary file.
    pub target: Option<String>,
    /// How many requests at a time, one row of the experiment each.
    pub depths: Vec<u32>,
    /// The part of the file that is used, bytes.
    pub size_bytes: u64,
    /// Requests of one run, for each depth.
    pub requests: Vec<u64>,
    /// The device's schedulers that were tried, the one that it had first; empty when only that one
    /// was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedulers: Vec<String>,
    /// The sums of each case of the job, over all its runs.
    pub jobs: Vec<JobDetail>,
    /// The cases left out or made smaller, with reasons.
    pub left_out: Vec<String>,
}

/// The sums of the runs of one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobDetail {
    /// The name of the case.
    #[serde(rename = "cell")]
    pub case: String,
    /// `libaio`, `io_uring`, `guasi-workers`, `guasi-ring` or `threads`.
    pub engine: String,
    /// Requests at a time.
    pub depth: u32,
    /// How many threads made the calls at the most; none where the kernel did without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// The scheduler, when several were tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
    /// Requests of the job that read.
    pub reads: Side,
    /// Requests of the job that write.
    pub writes: Side,
    /// Requests a second while the queue was kept full, without the beginning and the end.
    pub steady_per_second: Option<f64>,
    /// The mean number in flight, as it was seen.
    pub in_flight: Option<f64>,
    /// The mean number in flight by Little's law.
    pub in_flight_by_law: f64,
}

/// The sums of the requests of one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// Requests that were completed.
    pub requests: u64,
    /// From the beginning of a request until it was handed over (fio's slat).
    pub submitting: Latency,
    /// From there until its end was seen (fio's clat).
    pub completing: Latency,
    /// Both together (fio's lat).
    pub whole: Latency,
}

/// How long something took, ns. Percentiles are known to 1 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Arithmetic mean of the latencies, ns.
    pub mean_ns: f64,
    /// 10 % took no longer; 0 in results of older versions, as in the others below.
    #[serde(default)]
    pub p10_ns: u64,
    /// Median of the latencies, ns.
    pub p50_ns: u64,
    /// 90 % took no longer.
    #[serde(default)]
    pub p90_ns: u64,
    /// 99 % took no longer.
    pub p99_ns: u64,
    /// 99.9 % took no longer.
    pub p999_ns: u64,
    /// 99.99 % took no longer.
    #[serde(default)]
    pub p9999_ns: u64,
    /// 99.999 % took no longer.
    #[serde(default)]
    pub p99999_ns: u64,
    /// Longest of the latencies, ns.
    pub max_ns: u64,
}

impl Latency {
    /// The figures of a histogram; zeroes of an empty one.
    pub fn of(histogram: &Histogram) -> Self {
        let percentile = |percent| histogram.percentile(percent).unwrap_or(0);
        Self {
            mean_ns: histogram.mean().unwrap_or(0.0),
            p10_ns: percentile(10.0),
            p50_ns: percentile(50.0),
            p90_ns: percentile(90.0),
            p99_ns: percentile(99.0),
            p999_ns: percentile(99.9),
            p9999_ns: percentile(99.99),
            p99999_ns: percentile(99.999),
            max_ns: histogram.max().unwrap_or(0),
        }
    }
}

impl Latency {
    /// Shares of the requests, and what so many took at the most, ns; as far as `requests` reach.
    pub fn quantiles(&self, requests: u64) -> Vec<(f64, u64)> {
        let all = [
            (0.1, self.p10_ns),
            (0.5, self.p50_ns),
            (0.9, self.p90_ns),
            (0.99, self.p99_ns),
            (0.999, self.p999_ns),
            (0.9999, self.p9999_ns),
            (0.99999, self.p99999_ns),
        ];
        let reached = |(share, ns): &(f64, u64)| *ns > 0 && requests as f64 * (1.0 - share) >= 1.0;
        all.into_iter().filter(reached).collect()
    }
}

impl Side {
    /// Requests are added up; times are the medians of all processes.
    fn join(&mut self, others: &[&Self]) {
        let latency = |of: fn(&Self) -> &Latency| {
            let all = std::iter::once(&*self).chain(others.iter().copied());
            Latency::middle(&all.map(of).collect::<Vec<_>>())
        };
        let (submitting, completing, whole) = (
            latency(|side| &side.submitting),
            latency(|side| &side.completing),
            latency(|side| &side.whole),
        );
        self.requests += others.iter().map(|side| side.requests).sum::<u64>();
        (self.submitting, self.completing, self.whole) = (submitting, completing, whole);
    }
}

impl Latency {
    /// The median of each; the longest is the longest of all.
    fn middle(all: &[&Self]) -> Self {
        let middle = |of: fn(&Self) -> f64| {
            let values: Vec<f64> = all.iter().map(|one| of(one)).collect();
            median(&values).unwrap_or(0.0)
        };
        Self {
            mean_ns: middle(|one| one.mean_ns),
            p10_ns: middle(|one| one.p10_ns as f64) as u64,
            p50_ns: middle(|one| one.p50_ns as f64) as u64,
            p90_ns: middle(|one| one.p90_ns as f64) as u64,
            p99_ns: middle(|one| one.p99_ns as f64) as u64,
            p999_ns: middle(|one| one.p999_ns as f64) as u64,
            p9999_ns: middle(|one| one.p9999_ns as f64) as u64,
            p99999_ns: middle(|one| one.p99999_ns as f64) as u64,
            max_ns: all.iter().map(|one| one.max_ns).max().unwrap_or(0),
        }
    }
}

impl JobDetail {
    /// Adds the counts of the same case in other processes.
    pub fn join(&mut self, others: &[&Self]) {
        let sides = |of: fn(&Self) -> &Side| others.iter().map(|one| of(one)).collect::<Vec<_>>();
        let (reads, writes) = (sides(|one| &one.reads), sides(|one| &one.writes));
        self.reads.join(&reads);
        self.writes.join(&writes);
        let all: Vec<&Self> = std::iter::once(&*self)
            .chain(others.iter().copied())
            .collect();
        let middle = |of: fn(&Self) -> Option<f64>| {
            let values: Vec<f64> = all.iter().filter_map(|one| of(one)).collect();
            median(&values).ok()
        };
        let (steady, seen) = (
            middle(|one| one.steady_per_second),
            middle(|one| one.in_flight),
        );
        let by_law = middle(|one| Some(one.in_flight_by_law)).unwrap_or(0.0);
        (
            self.steady_per_second,
            self.in_flight,
            self.in_flight_by_law,
        ) = (steady, seen, by_law);
    }

    /// The mean time of a request, reads and writes together, ns: submitting, completing, whole.
    pub(crate) fn means_ns(&self) -> [f64; 3] {
        let (reads, writes) = (self.reads.requests as f64, self.writes.requests as f64);
        let mean = |of: fn(&Side) -> f64| {
            (of(&self.reads) * reads + of(&self.writes) * writes) / (reads + writes).max(1.0)
        };
        [
            mean(|side| side.submitting.mean_ns),
            mean(|side| side.completing.mean_ns),
            mean(|side| side.whole.mean_ns),
        ]
    }
}
