//! Is a job in a steady state? `steadystate=` looks at the last seconds: either all values are near
//! their mean, or the line of least squares through them is nearly flat (fio(1), "steadystate").

use ugeom_measure::regression::Line;

use ugeom_job::settings::{Job, Steady, SteadyOf};

/// The shortest time between two looks.
const LOOK_NS_MIN: u64 = 1_000_000;

/// How long after the end of `steadystate_ramp_time` the first figure is taken.
const BEHIND_RAMP_NS: u64 = 1_000_000_000;

/// Figures of the seconds that are looked at.
pub struct Watch {
    steady: Steady,
    window: usize,
    duration_s: u64,
    look_ns: u64,
    ramp_ns: u64,
    values: Vec<(f64, f64)>,
    criterion: f64,
    last: (u64, u64, u64),
}

/// The result of the watch.
#[derive(Clone, Debug, PartialEq)]
pub struct SteadyState {
    /// As it was asked for.
    pub wanted: String,
    /// How long the window is, s.
    pub duration_s: u64,
    /// Whether the criterion came down to its limit.
    pub attained: bool,
    /// The figure that was compared with the limit, at last.
    pub criterion: f64,
    /// The slope in the window, a second, in the unit of what is looked at.
    pub slope: f64,
    /// Largest deviation from the mean in the window.
    pub deviation: f64,
    /// Requests a second in the window.
    pub iops: Vec<f64>,
    /// Bytes a second in the window.
    pub bw: Vec<f64>,
}

impl Watch {
    /// A watch on a job; `None` when it is not asked for.
    pub fn of(job: &Job) -> Option<Self> {
        let steady = job.steady?;
        let look_ns = job.steady_interval_ns.max(LOOK_NS_MIN);
        Some(Self {
            steady,
            window: (job.steady_duration_ns / look_ns).max(1) as usize,
            duration_s: (job.steady_duration_ns / 1_000_000_000).max(1),
            look_ns,
            ramp_ns: job.steady_ramp_ns,
            values: Vec::new(),
            criterion: f64::INFINITY,
            last: (0, 0, 0),
        })
    }

    /// Examines the work done after `at_ns`; true when the state is steady.
    pub fn look(&mut self, at_ns: u64, bytes: u64, requests: u64) -> bool {
        let (last_ns, last_bytes, last_requests) = self.last;
        if at_ns < last_ns + self.look_ns {
            return false;
        }
        self.last = (at_ns, bytes, requests);
        // As by fio, one second after the ramp.
        if self.ramp_ns > 0 && at_ns < self.ramp_ns + BEHIND_RAMP_NS {
            return false;
        }
        let seconds = (at_ns - last_ns) as f64 / 1e9;
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        self.values
            .push((rate(bytes, last_bytes), rate(requests, last_requests)));
        if self.values.len() > self.window {
            self.values.remove(0);
        }
        if self.values.len() < self.window {
            return false;
        }
        let values = self.looked_at();
        let figure = if self.steady.slope {
            self.slope(&values).abs()
        } else {
            deviation(&values)
        };
        self.criterion = match self.steady.percent {
            true => 100.0 * figure / mean(&values).max(f64::MIN_POSITIVE),
            false => figure,
        };
        self.criterion < self.steady.limit
    }

    /// The slope of the line of least squares, a second; 0 when there is none.
    fn slope(&self, values: &[f64]) -> f64 {
        let step_s = self.look_ns as f64 / 1e9;
        let seconds: Vec<f64> = (0..values.len()).map(|look| look as f64 * step_s).collect();
        Line::fit(&seconds, values).map_or(0.0, |line| line.slope)
    }

    fn looked_at(&self) -> Vec<f64> {
        let values = self.values.iter();
        match self.steady.of {
            SteadyOf::Bandwidth => values.map(|value| value.0).collect(),
            SteadyOf::Iops => values.map(|value| value.1).collect(),
        }
    }

    /// The values of the whole window; what was not looked at yet is 0, as in fio.
    fn filled(&self, part: fn(&(f64, f64)) -> f64) -> Vec<f64> {
        let mut values: Vec<f64> = self.values.iter().map(part).collect();
        values.resize(self.window, 0.0);
        values
    }

    /// The window as it is now, for the report.
    pub fn state(&self, attained: bool) -> SteadyState {
        let name = match (self.steady.of, self.steady.slope) {
            (SteadyOf::Iops, false) => "iops",
            (SteadyOf::Iops, true) => "iops_slope",
            (SteadyOf::Bandwidth, false) => "bw",
            (SteadyOf::Bandwidth, true) => "bw_slope",
        };
        let percent = if self.steady.percent { "%" } else { "" };
        let values = self.looked_at();
        SteadyState {
            wanted: format!("{name}:{:.6}{percent}", self.steady.limit),
            duration_s: self.duration_s,
            attained,
            criterion: if self.criterion.is_finite() {
                self.criterion
            } else {
                0.0
            },
            slope: self.slope(&values),
            deviation: deviation(&values),
            iops: self.filled(|value| value.1),
            bw: self.filled(|value| value.0),
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    values
        .iter()
        .map(|value| (value - mean).abs())
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ugeom_job::error::Origin;

    const LOOK_NS: u64 = 1_000_000_000;

    fn watch(slope: bool, limit: f64) -> Watch {
        let mut job = Job::new("a", Origin::Default);
        job.steady = Some(Steady {
            of: SteadyOf::Iops,
            slope,
            limit,
            percent: true,
        });
        job.steady_interval_ns = LOOK_NS;
        job.steady_duration_ns = 4 * LOOK_NS;
        Watch::of(&job).unwrap()
    }

    fn after(watch: &mut Watch, rates: &[u64]) -> Option<usize> {
        let mut requests = 0;
        (1..=rates.len()).find(|second| {
            requests += rates[second - 1];
            watch.look(*second as u64 * LOOK_NS, requests * 4096, requests)
        })
    }

    #[test]
    fn a_level_that_is_reached_is_steady_and_a_ramp_is_not() {
        let rates = [10, 50, 80, 100, 100, 101, 99, 100, 100];
        assert_eq!(after(&mut watch(false, 2.0), &rates), Some(7));
        let ramp: Vec<u64> = (1..20).map(|second| second * 100).collect();
        assert_eq!(after(&mut watch(true, 1.0), &ramp), None);
    }

    #[test]
    fn noise_without_a_trend_is_flat_to_a_slope_and_not_to_a_deviation() {
        let noise = [80, 120, 120, 80, 80, 120, 120, 80];
        assert!(after(&mut watch(true, 1.0), &noise).is_some());
        assert_eq!(after(&mut watch(false, 5.0), &noise), None);
        let mut seen = watch(true, 1.0);
        after(&mut seen, &noise);
        let state = seen.state(true);
        assert_eq!(
            (state.wanted.as_str(), state.duration_s),
            ("iops_slope:1.000000%", 4)
        );
    }

    #[test]
    fn the_first_figure_is_that_of_the_second_after_the_ramp() {
        let mut watch = watch(false, 5.0);
        (watch.ramp_ns, watch.window) = (2 * LOOK_NS, 1);
        assert_eq!(after(&mut watch, &[7, 7, 7, 7]), Some(3));
    }

    #[test]
    fn a_window_that_is_not_full_is_filled_up() {
        let mut seen = watch(true, 1.0);
        assert_eq!(seen.state(false).bw, [0.0; 4]);
        after(&mut seen, &[7, 7]);
        assert_eq!(seen.state(false).iops, [7.0, 7.0, 0.0, 0.0]);
    }

    /// Looks come as often as is asked for, and slopes count by seconds all the same.
    #[test]
    fn the_interval_of_looks_can_be_chosen() {
        let mut job = Job::new("a", Origin::Default);
        job.steady = Some(Steady {
            of: SteadyOf::Iops,
            slope: true,
            limit: 101.0,
            percent: false,
        });
        (job.steady_interval_ns, job.steady_duration_ns) = (LOOK_NS / 4, LOOK_NS);
        let mut watch = Watch::of(&job).unwrap();
        // 25 requests a second more each quarter: a slope of 100.
        let (mut requests, mut looks) = (0, 0);
        for quarter in 1..=4 {
            requests += (1000 + 25 * quarter) / 4;
            looks += 1;
            assert_eq!(watch.look(quarter * LOOK_NS / 4, 0, requests), looks == 4);
        }
        assert!((watch.state(true).slope - 100.0).abs() < 5.0);
    }
}
