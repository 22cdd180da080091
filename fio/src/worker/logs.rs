//! The logs of latencies, bandwidths and requests, as fio writes them (fio(1), "Log file formats"):
//! `time (ms), value, direction (0 read, 1 write, 2 trim), size, offset or 0`.

use std::fmt::Write as _;

/// A log: one line an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    time_ms: u64,
    value: u64,
    kind: usize,
    bytes: u32,
}

/// Entries of one log, averaged over windows if that is wanted.
#[derive(Clone, Debug, Default)]
pub struct Log {
    entries: Vec<Entry>,
    window_ns: u64,
    window_start_ns: u64,
    sums: [(u128, u64); 3],
    /// The values of a window are summed up into a rate a second instead of being averaged.
    rate: Option<u64>,
}

impl Log {
    /// A log of latencies.
    #[must_use]
    pub fn of_latencies(window_ns: u64) -> Self {
        Self {
            window_ns,
            ..Self::default()
        }
    }

    /// A log of rates: what is added up is divided by `unit` and by the seconds of the window.
    #[must_use]
    pub fn of_rates(window_ns: u64, unit: u64) -> Self {
        Self {
            window_ns,
            rate: Some(unit),
            ..Self::default()
        }
    }

    /// A request of `kind` ended `at_ns` after the start.
    pub fn add(&mut self, at_ns: u64, kind: usize, bytes: u32, value: u64) {
        if self.window_ns == 0 {
            self.entries.push(Entry {
                time_ms: at_ns / 1_000_000,
                value,
                kind,
                bytes,
            });
            return;
        }
        if at_ns >= self.window_start_ns + self.window_ns {
            self.close(at_ns);
        }
        let (sum, count) = &mut self.sums[kind];
        *sum += u128::from(value);
        *count += 1;
    }

    /// Ends the window that is open.
    pub fn close(&mut self, at_ns: u64) {
        if self.window_ns == 0 {
            return;
        }
        let elapsed_ns = at_ns.saturating_sub(self.window_start_ns).max(1);
        for (kind, (sum, count)) in self.sums.iter_mut().enumerate() {
            if *count > 0 {
                let value = match self.rate {
                    None => *sum / u128::from(*count),
                    Some(unit) => *sum * 1_000_000_000 / u128::from(elapsed_ns) / u128::from(unit),
                };
                self.entries.push(Entry {
                    time_ms: at_ns / 1_000_000,
                    value: value as u64,
                    kind,
                    bytes: 0,
                });
            }
            (*sum, *count) = (0, 0);
        }
        self.window_start_ns = at_ns;
    }

    /// The text of the log.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for entry in &self.entries {
            let Entry {
                time_ms,
                value,
                kind,
                bytes,
            } = entry;
            let _ = writeln!(text, "{time_ms}, {value}, {kind}, {bytes}, 0");
        }
        text
    }
}

/// The logs of a job.
#[derive(Clone, Debug, Default)]
pub struct Logs {
    /// Submission, completion and total latencies, ns.
    pub latencies: Option<[Log; 3]>,
    /// KiB a second.
    pub bw: Option<Log>,
    /// Requests a second.
    pub iops: Option<Log>,
}

impl Logs {
    /// The logs that the job asks for; `None` when it asks for none.
    #[must_use]
    pub fn of(job: &super::super::Job) -> Option<Self> {
        let window_ns = job.log_avg_ns;
        let latency = || Log::of_latencies(window_ns);
        let logs = Self {
            latencies: job
                .lat_log
                .as_ref()
                .map(|_| [latency(), latency(), latency()]),
            bw: job.bw_log.as_ref().map(|_| Log::of_rates(window_ns, 1024)),
            iops: job.iops_log.as_ref().map(|_| Log::of_rates(window_ns, 1)),
        };
        let any = logs.latencies.is_some() || logs.bw.is_some() || logs.iops.is_some();
        any.then_some(logs)
    }

    /// A request ended.
    pub fn add(&mut self, at_ns: u64, kind: usize, bytes: u32, slat_clat_lat_ns: [Option<u64>; 3]) {
        if let Some(logs) = &mut self.latencies {
            for (log, value) in logs.iter_mut().zip(slat_clat_lat_ns) {
                if let Some(value) = value {
                    log.add(at_ns, kind, bytes, value);
                }
            }
        }
        if let Some(log) = &mut self.bw {
            // Without a window each request is a line of its own, with the rate of that request.
            let value = match (log.window_ns, slat_clat_lat_ns[1]) {
                (0, Some(ns)) => u64::from(bytes) * 1_000_000_000 / ns.max(1) / 1024,
                _ => u64::from(bytes),
            };
            log.add(at_ns, kind, bytes, value);
        }
        if let Some(log) = &mut self.iops {
            log.add(at_ns, kind, bytes, 1);
        }
    }

    /// Every log with the part of its name.
    pub fn each(&mut self) -> impl Iterator<Item = (&'static str, &mut Log)> {
        let latencies = self.latencies.iter_mut().flatten();
        let latencies = ["slat", "clat", "lat"].into_iter().zip(latencies);
        let bw = self.bw.iter_mut().map(|log| ("bw", log));
        let iops = self.iops.iter_mut().map(|log| ("iops", log));
        latencies.chain(bw).chain(iops)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_fio_writes_them() {
        let mut log = Log::of_latencies(0);
        log.add(1_500_000, 1, 4096, 37_065);
        assert_eq!(log.text(), "1, 37065, 1, 4096, 0\n");
    }

    #[test]
    fn windows_average_latencies_and_turn_bytes_into_rates() {
        let mut latency = Log::of_latencies(50_000_000);
        let mut rate = Log::of_rates(50_000_000, 1024);
        for at_ms in [10, 20, 30, 49, 50, 60] {
            latency.add(at_ms * 1_000_000, 0, 4096, at_ms);
            rate.add(at_ms * 1_000_000, 0, 4096, 4096);
        }
        latency.close(100_000_000);
        rate.close(100_000_000);
        assert_eq!(latency.text(), "50, 27, 0, 0, 0\n100, 55, 0, 0, 0\n");
        assert_eq!(rate.text(), "50, 320, 0, 0, 0\n100, 160, 0, 0, 0\n");
    }
}
