//! Comparable metrics: every quantity that samples hold, with its unit and the direction of better
//! values.

use crate::rounds::{Sample, total};
use serde::{Deserialize, Serialize};
use ugeom_measure::change::Better;
use ugeom_measure::units::{duration_measured, grouped};

/// A quantity of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Wall time of one iteration, ns.
    Time,
    /// CPU time of one iteration, of the process and its children, ns.
    Cpu,
    /// Bytes moved in a second.
    BytesPerSecond,
    /// Requests in a second.
    TransactionsPerSecond,
    /// The median latency of a run's requests, ns.
    LatencyMedian,
    /// The latency that one request in a hundred exceeds, ns.
    Latency99,
}

impl Metric {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 6] = [
        Self::Time,
        Self::Cpu,
        Self::BytesPerSecond,
        Self::TransactionsPerSecond,
        Self::LatencyMedian,
        Self::Latency99,
    ];

    /// The word for it on the command line and in JSON.
    pub fn id(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Cpu => "cpu",
            Self::BytesPerSecond => "bytes_per_second",
            Self::TransactionsPerSecond => "transactions_per_second",
            Self::LatencyMedian => "latency_median",
            Self::Latency99 => "latency99",
        }
    }

    /// The quantity, in plain words.
    pub fn what(self) -> &'static str {
        match self {
            Self::Time => "time of one iteration",
            Self::Cpu => "CPU time of one iteration",
            Self::BytesPerSecond => "throughput, bytes/s",
            Self::TransactionsPerSecond => "IOPS",
            Self::LatencyMedian => "median latency",
            Self::Latency99 => "99th percentile of latency",
        }
    }

    /// The unit of its values.
    pub fn unit(self) -> &'static str {
        match self {
            Self::BytesPerSecond => "bytes/s",
            Self::TransactionsPerSecond => "1/s",
            _ => "ns",
        }
    }

    /// The direction of better values.
    pub fn better(self) -> Better {
        match self {
            Self::BytesPerSecond | Self::TransactionsPerSecond => Better::Higher,
            _ => Better::Lower,
        }
    }

    /// Its value in a sample; none where the sample does not hold it.
    pub fn of(self, sample: &Sample) -> Option<f64> {
        let percentile = |percent| {
            let latency = sample.work.latency.as_ref()?;
            Some(latency.percentile(percent)? as f64)
        };
        match self {
            Self::Time => (sample.wall_ns > 0).then(|| sample.ns_per_iteration()),
            Self::Cpu => {
                // Results of older programs know no user and system time; children are not in it.
                let cpu = &sample.cpu;
                let whole = total([cpu.user_ns, cpu.system_ns]);
                let ns = if whole > 0 { whole } else { cpu.process_ns };
                (ns > 0).then(|| ns as f64 / sample.iterations.max(1) as f64)
            }
            Self::BytesPerSecond => sample.bytes_per_second(),
            Self::TransactionsPerSecond => sample.transactions_per_second(),
            Self::LatencyMedian => percentile(50.0),
            Self::Latency99 => percentile(99.0),
        }
    }

    /// A value with its unit, for people.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::BytesPerSecond => {
                let mb = value / 1e6;
                let decimals = if mb >= 1000.0 { 0 } else { 2 };
                format!("{mb:.decimals$} MB/s")
            }
            Self::TransactionsPerSecond => format!("{}/s", grouped(value.max(0.0).round() as u64)),
            _ => duration_measured(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rounds::Work;
    use ugeom_measure::Histogram;

    #[test]
    fn a_sample_has_what_it_holds() {
        let mut sample = Sample {
            iterations: 10,
            wall_ns: 1000,
            ..Sample::default()
        };
        let held = |sample: &Sample| Metric::ALL.map(|metric| metric.of(sample));
        assert_eq!(held(&sample), [Some(100.0), None, None, None, None, None]);
        sample.cpu.process_ns = 500;
        assert_eq!(Metric::Cpu.of(&sample), Some(50.0));
        sample.cpu.user_ns = 700;
        sample.cpu.system_ns = 200;
        assert_eq!(Metric::Cpu.of(&sample), Some(90.0));
        let mut latency = Histogram::new();
        (1..=100).for_each(|ns| latency.record(ns));
        sample.work = Work {
            latency: Some(Box::new(latency)),
            ..Work::of(4096, 8)
        };
        let all = held(&sample);
        assert_eq!(all[2], Some(4.096e9));
        assert_eq!(all[3], Some(8e6));
        assert_eq!((all[4], all[5]), (Some(50.0), Some(99.0)));
    }

    #[test]
    fn names_are_those_of_the_saved_form() {
        for metric in Metric::ALL {
            let json = serde_json::to_string(&metric).unwrap();
            assert_eq!(json, format!("\"{}\"", metric.id()));
        }
    }
}
