//! The logs of latencies, bandwidths and requests, as fio writes them (fio(1), "Log file formats"):
//! `time (ms), value, direction (0 read, 1 write, 2 trim), size, priority`, with `log_offset` the
//! offset before the priority: 1 for the real-time class, or with `log_prio` class and level.

use rustix::time::{ClockId, clock_gettime};

use super::histograms::Histograms;
use super::samples::{Columns, Sample, packed};
use super::{IDLE, NO_REQUEST, Slot};

/// How a log is kept and written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// Entries are averaged over windows of this length; 0: each request has one.
    pub window_ns: u64,
    /// The largest value of a window instead of the mean.
    pub max: bool,
    pub columns: Columns,
    /// Added to all times, ms: the beginning of the job by the clock of the log.
    pub epoch_ms: u64,
}

/// Entries of one log, averaged over windows if that is wanted.
#[derive(Clone, Debug, Default)]
pub struct Log {
    entries: Vec<Sample>,
    style: Style,
    window_start_ns: u64,
    sums: [(u128, u64, u64); 3],
    /// The values of a window are summed up into a rate a second instead of being averaged.
    rate: Option<u64>,
}

impl Log {
    /// A log of latencies.
    pub fn of_latencies(style: Style) -> Self {
        Self {
            style,
            ..Self::default()
        }
    }

    /// A log of rates: what is added up is divided by `unit` and by the seconds of the window.
    pub fn of_rates(style: Style, unit: u64) -> Self {
        Self {
            style,
            rate: Some(unit),
            ..Self::default()
        }
    }

    /// A request of `kind` ended `at_ns` after the start.
    fn add(&mut self, at_ns: u64, kind: usize, slot: &Slot, value: u64) {
        if self.style.window_ns == 0 {
            self.entries.push(Sample {
                time_ms: at_ns / 1_000_000,
                value,
                kind: kind as u32,
                bytes: slot.request.length.into(),
                offset: slot.request.offset,
                priority: slot.priority,
            });
            return;
        }
        if at_ns >= self.window_start_ns + self.style.window_ns {
            self.close(at_ns);
        }
        let (sum, count, max) = &mut self.sums[kind];
        *sum += u128::from(value);
        *count += 1;
        *max = value.max(*max);
    }

    /// The job ends. Of a rate, a last window that is shorter than half of the others says little
    /// and is dropped; fio writes no last window of rates at all.
    pub fn end(&mut self, at_ns: u64) {
        let elapsed_ns = at_ns.saturating_sub(self.window_start_ns);
        let is_short = elapsed_ns < self.style.window_ns / 2;
        if self.rate.is_none() || !is_short || self.entries.is_empty() {
            self.close(at_ns);
        }
    }

    /// Ends the window that is open.
    fn close(&mut self, at_ns: u64) {
        if self.style.window_ns == 0 {
            return;
        }
        let elapsed_ns = at_ns.saturating_sub(self.window_start_ns).max(1);
        for (kind, (sum, count, max)) in self.sums.iter_mut().enumerate() {
            if *count > 0 {
                let value = match self.rate {
                    None if self.style.max => u128::from(*max),
                    None => *sum / u128::from(*count),
                    Some(unit) => *sum * 1_000_000_000 / u128::from(elapsed_ns) / u128::from(unit),
                };
                self.entries.push(Sample {
                    time_ms: at_ns / 1_000_000,
                    value: value as u64,
                    kind: kind as u32,
                    bytes: 0,
                    offset: 0,
                    priority: 0,
                });
            }
            (*sum, *count, *max) = (0, 0, 0);
        }
        self.window_start_ns = at_ns;
    }

    fn samples(&self) -> impl Iterator<Item = Sample> + '_ {
        self.entries.iter().map(|entry| Sample {
            time_ms: self.style.epoch_ms + entry.time_ms,
            ..*entry
        })
    }

    /// The text of the log.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let columns = self.style.columns;
        self.samples()
            .for_each(|sample| sample.write_line(columns, &mut text));
        text
    }

    /// The log as `log_store_compressed` keeps it.
    pub fn packed(&self) -> Vec<u8> {
        packed(self.samples(), self.style.columns)
    }
}

/// The logs of a job.
#[derive(Clone, Debug, Default)]
pub struct Logs {
    /// Submission, completion and total latencies, ns.
    pub latencies: Option<[Log; 3]>,
    /// Throughput in KiB/s (`write_bw_log`).
    pub bw: Option<Log>,
    /// IOPS of an interval (`write_iops_log`).
    pub iops: Option<Log>,
    /// Histograms of completion latencies.
    pub histograms: Option<Histograms>,
}

impl Logs {
    /// The logs that the job asks for; `None` when it asks for none.
    pub fn of(job: &ugeom_job::Job) -> Option<Self> {
        let epoch = job.log_epoch.then(|| now_ms(job.log_clock));
        let style = Style {
            window_ns: job.log_avg_ns,
            max: job.log_max,
            columns: Columns {
                offsets: job.log_offset,
                priorities: job.log_prio,
            },
            epoch_ms: epoch.unwrap_or(0),
        };
        let latency = || Log::of_latencies(style);
        let logs = Self {
            latencies: job
                .lat_log
                .as_ref()
                .map(|_| [latency(), latency(), latency()]),
            bw: job.bw_log.as_ref().map(|_| Log::of_rates(style, 1024)),
            iops: job.iops_log.as_ref().map(|_| Log::of_rates(style, 1)),
            histograms: job.hist_log.as_ref().map(|_| {
                let window_ms = job.log_hist_ns / 1_000_000;
                Histograms::new(window_ms, job.log_hist_coarseness, style.epoch_ms)
            }),
        };
        let lines = logs.latencies.is_some() || logs.bw.is_some() || logs.iops.is_some();
        (lines || logs.histograms.is_some()).then_some(logs)
    }

    /// Adds a request that has ended.
    pub(super) fn add(
        &mut self,
        at_ns: u64,
        kind: usize,
        slot: &Slot,
        slat_clat_lat_ns: [Option<u64>; 3],
    ) {
        if let (Some(log), Some(clat_ns)) = (&mut self.histograms, slat_clat_lat_ns[1]) {
            log.add(at_ns, kind, &slot.request, clat_ns);
        }
        if let Some(logs) = &mut self.latencies {
            for (log, value) in logs.iter_mut().zip(slat_clat_lat_ns) {
                if let Some(value) = value {
                    log.add(at_ns, kind, slot, value);
                }
            }
        }
        self.add_rates(at_ns, kind, slot, slat_clat_lat_ns[1]);
    }

    /// Adds an engine's operation on a file, which is no request.
    pub fn add_clat(&mut self, at_ns: u64, kind: usize, clat_ns: u64) {
        if let Some(log) = &mut self.histograms {
            log.add(at_ns, kind, &NO_REQUEST, clat_ns);
        }
        if let Some([_, log, _]) = &mut self.latencies {
            log.add(at_ns, kind, &IDLE, clat_ns);
        }
    }

    fn add_rates(&mut self, at_ns: u64, kind: usize, slot: &Slot, clat_ns: Option<u64>) {
        if let Some(log) = &mut self.bw {
            // Without a window each request is a line of its own, with the rate of that request.
            let bytes = u64::from(slot.request.length);
            let value = match (log.style.window_ns, clat_ns) {
                (0, Some(ns)) => bytes * 1_000_000_000 / ns.max(1) / 1024,
                _ => bytes,
            };
            log.add(at_ns, kind, slot, value);
        }
        if let Some(log) = &mut self.iops {
            log.add(at_ns, kind, slot, 1);
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

/// The time now by a clock of clock_gettime(2), ms.
fn now_ms(clock: i32) -> u64 {
    let clock = ClockId::try_from(clock).unwrap_or(ClockId::Realtime);
    let now = clock_gettime(clock);
    (now.tv_sec * 1000 + now.tv_nsec / 1_000_000) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use ugeom_load::door::{Kind, Request};

    fn slot(length: u32) -> Slot {
        let request = Request {
            kind: Kind::Write,
            file: 0,
            offset: 8192,
            length,
        };
        Slot {
            request,
            priority: 0x2003,
            ..IDLE
        }
    }

    #[test]
    fn lines_are_as_fio_writes_them() {
        for (offsets, priorities, line) in [
            (false, false, "1, 37065, 1, 4096, 1\n"),
            (true, false, "1, 37065, 1, 4096, 8192, 1\n"),
            (true, true, "1, 37065, 1, 4096, 8192, 0x2003\n"),
        ] {
            let mut log = Log::of_latencies(Style {
                columns: Columns {
                    offsets,
                    priorities,
                },
                ..Style::default()
            });
            log.add(1_500_000, 1, &slot(4096), 37_065);
            assert_eq!(log.text(), line);
        }
    }

    #[test]
    fn windows_average_latencies_and_turn_bytes_into_rates() {
        let style = Style {
            window_ns: 50_000_000,
            ..Style::default()
        };
        let mut latency = Log::of_latencies(style);
        let mut largest = Log::of_latencies(Style { max: true, ..style });
        let mut rate = Log::of_rates(style, 1024);
        for at_ms in [10, 20, 30, 49, 50, 60] {
            latency.add(at_ms * 1_000_000, 0, &slot(4096), at_ms);
            largest.add(at_ms * 1_000_000, 0, &slot(4096), at_ms);
            rate.add(at_ms * 1_000_000, 0, &slot(4096), 4096);
        }
        largest.end(100_000_000);
        assert_eq!(largest.text(), "50, 49, 0, 0, 0\n100, 60, 0, 0, 0\n");
        latency.end(100_000_000);
        rate.end(100_000_000);
        assert_eq!(latency.text(), "50, 27, 0, 0, 0\n100, 55, 0, 0, 0\n");
        assert_eq!(rate.text(), "50, 320, 0, 0, 0\n100, 160, 0, 0, 0\n");
    }
    /// Two requests of a millisecond are no rate of a window of 50.
    #[test]
    fn a_rate_has_no_last_window_that_is_shorter_than_half() {
        let style = Style {
            window_ns: 50_000_000,
            ..Style::default()
        };
        let log_of = |mut log: Log, times_ms: &[u64], end_ms: u64| {
            for at_ms in times_ms {
                log.add(at_ms * 1_000_000, 0, &slot(4096), 1);
            }
            log.end(end_ms * 1_000_000);
            log.text()
        };
        let rate = || Log::of_rates(style, 1);
        assert_eq!(log_of(rate(), &[10, 50, 51], 52), "50, 20, 0, 0, 0\n");
        let lines = "50, 20, 0, 0, 0\n80, 66, 0, 0, 0\n";
        assert_eq!(log_of(rate(), &[10, 50, 79], 80), lines);
        // A job that is shorter than a window has its own rate.
        assert_eq!(log_of(rate(), &[1, 5], 10), "10, 200, 0, 0, 0\n");
        let lines = "50, 1, 0, 0, 0\n52, 1, 0, 0, 0\n";
        assert_eq!(log_of(Log::of_latencies(style), &[10, 50, 51], 52), lines);
    }
}
