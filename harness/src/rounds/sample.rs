//! The report of a case about a run, and the stored part of it.

use super::NullFloor;
use super::device::DeviceCounts;
use super::meter::CpuTimes;
use serde::{Deserialize, Serialize};
use ugeom_measure::Histogram;

/// The cost of one run of a case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunResult {
    /// The wall time of all iterations together, by the case's own clock, ns.
    pub ns_total: u64,
    /// The work in that time, for cases that count it.
    pub work: Work,
    /// The iterations that there were, where the work itself has to find that out; else as many as
    /// were asked for.
    pub counted: Option<u64>,
}

impl RunResult {
    /// A run of a case that counts nothing but iterations.
    pub fn taking(ns_total: u64) -> Self {
        Self {
            ns_total,
            work: Work::default(),
            counted: None,
        }
    }

    /// The same run, of so many iterations, whatever was asked for.
    #[must_use]
    pub fn counting(mut self, iterations: u64) -> Self {
        self.counted = Some(iterations);
        self
    }

    /// The same run, with its work.
    #[must_use]
    pub fn doing(mut self, work: Work) -> Self {
        self.work = work;
        self
    }
}

/// The work of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Bytes that were moved.
    pub bytes: u64,
    /// Requests that moved them.
    pub transactions: u64,
    /// How long single requests took, ns; none where they were not timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Box<Histogram>>,
}

impl Work {
    /// So many bytes by so many requests, without single times.
    pub fn of(bytes: u64, transactions: u64) -> Self {
        Self {
            bytes,
            transactions,
            latency: None,
        }
    }

    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// The readings of the meter around one run of a case, as differences.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Number of iterations in the run.
    pub iterations: u64,
    /// Wall time of all of them, ns.
    pub wall_ns: u64,
    /// CPU time of the process during the run.
    pub cpu: CpuTimes,
    /// The work, for cases that count it.
    #[serde(default, skip_serializing_if = "Work::is_nothing")]
    pub work: Work,
    /// The load of the device below; none for cases without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceCounts>,
    /// The core on which the measuring thread ended the run; none where the system does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<u32>,
    /// The reference loop right before and right after the run, ns; none where time is not real.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference_ns: Option<[u64; 2]>,
    /// The cores on which the loop ran at the same time.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub reference_cores: u32,
}

fn one() -> u32 {
    1
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_one(cores: &u32) -> bool {
    *cores == 1
}

impl Default for Sample {
    fn default() -> Self {
        Self {
            iterations: 0,
            wall_ns: 0,
            cpu: CpuTimes::default(),
            work: Work::default(),
            device: None,
            core: None,
            reference_ns: None,
            reference_cores: one(),
        }
    }
}

impl Sample {
    /// Wall time of one iteration, ns.
    pub fn ns_per_iteration(&self) -> f64 {
        self.wall_ns as f64 / self.iterations.max(1) as f64
    }

    /// Bytes moved in a second; none for cases that do not count them.
    pub fn bytes_per_second(&self) -> Option<f64> {
        (self.work.bytes > 0).then(|| per_second(self.work.bytes, self.wall_ns))
    }

    /// Requests in a second; none for cases that do not count them.
    pub(crate) fn transactions_per_second(&self) -> Option<f64> {
        (self.work.transactions > 0).then(|| per_second(self.work.transactions, self.wall_ns))
    }
}

fn per_second(count: u64, wall_ns: u64) -> f64 {
    count as f64 * 1e9 / wall_ns.max(1) as f64
}

/// One round: every case once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// The indexes of the cases in the order in which they ran.
    pub order: Vec<usize>,
    /// A sample for each case, in the order of the cases.
    pub samples: Vec<Sample>,
    /// The time of measuring nothing at the beginning of the round; none where time was not real.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub null_floor: Option<NullFloor>,
}

/// A round that was not finished, because the user stopped it or a case failed. No comparison uses
/// it: the cases that it lacks are not lacking by chance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unfinished {
    /// Whether these are the trials that find the length of runs, and no measured runs.
    pub calibrating: bool,
    /// The runs that there are: the index of the case, and its sample.
    pub samples: Vec<(usize, Sample)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_known_for_what_was_counted_only() {
        let idle = Sample {
            iterations: 4,
            wall_ns: 2_000_000_000,
            ..Sample::default()
        };
        assert_eq!(
            (idle.bytes_per_second(), idle.transactions_per_second()),
            (None, None)
        );
        assert_eq!(idle.ns_per_iteration(), 5e8);
        let reading = Sample {
            work: Work::of(1 << 20, 256),
            ..idle
        };
        assert_eq!(reading.bytes_per_second(), Some(524_288.0));
        assert_eq!(reading.transactions_per_second(), Some(128.0));
    }

    #[test]
    fn what_a_sample_does_not_have_is_not_written() {
        let text = serde_json::to_string(&Sample::default()).unwrap();
        assert!(!text.contains("work") && !text.contains("device"), "{text}");
        let mut latency = Histogram::new();
        latency.record(700);
        let work = Work {
            latency: Some(Box::new(latency)),
            ..Work::of(512, 1)
        };
        let sample = Sample {
            work,
            device: Some(DeviceCounts::default()),
            ..Sample::default()
        };
        let text = serde_json::to_string(&sample).unwrap();
        assert_eq!(serde_json::from_str::<Sample>(&text).unwrap(), sample);
    }
}
