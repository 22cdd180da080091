//! `--idle-prof`: how idle the processors were while the jobs ran, by the kernel's counters
//! (`/proc/stat`). fio's threads of lowest priority, which count what they get done, would use the
//! processors that other programs find idle.

use anyhow::{Context as _, Result};
use ugeom_fio::Idleness;
use ugeom_machine::cpu::SystemTimes;

/// The times of the processors when the jobs began.
pub struct IdleTimes {
    system: SystemTimes,
    cores: Vec<SystemTimes>,
    of_cores: bool,
}

impl IdleTimes {
    /// Begins now; `of_cores`: each processor is reported.
    ///
    /// # Errors
    /// `/proc/stat` cannot be read.
    pub fn begin(of_cores: bool) -> Result<Self> {
        let (system, cores) = SystemTimes::now_with_cores().context("--idle-prof")?;
        Ok(Self {
            system,
            cores,
            of_cores,
        })
    }

    /// The idle share since then.
    pub fn end(self) -> Result<Idleness> {
        let now = Self::begin(self.of_cores)?;
        let cores = now.cores.iter().zip(&self.cores);
        let cores = cores.filter(|_| self.of_cores);
        Ok(Idleness {
            system: idle_percent(&now.system.since(&self.system)),
            cores: cores
                .map(|(now, then)| idle_percent(&now.since(then)))
                .collect(),
        })
    }
}

/// The share of the time without work, percent; time that the hypervisor took counts as work.
fn idle_percent(times: &SystemTimes) -> f64 {
    let idle_ns = times.idle_ns + times.iowait_ns;
    let all_ns = idle_ns + times.busy_ns() + times.steal_ns;
    100.0 * idle_ns as f64 / all_ns.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_io_is_idle_and_stolen_time_is_not() {
        let times = SystemTimes {
            user_ns: 20,
            idle_ns: 40,
            iowait_ns: 20,
            steal_ns: 20,
            ..SystemTimes::default()
        };
        assert_eq!(idle_percent(&times), 60.0);
        assert_eq!(idle_percent(&SystemTimes::default()), 0.0);
    }
}
