//! The machine and its load: the header of every result, because a figure without its machine means
//! nothing.
//!
//! Sources: `ugeom_machine::cpu`, proc(5), uname(2),
//! Documentation/ABI/stable/sysfs-devices-system-cpu (governor),
//! Documentation/ABI/testing/sysfs-devices-system-clocksource.

mod content;
mod limits;
mod medium;
mod target;
mod wakeups;

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use ugeom_machine::{clock, cpu};
use ugeom_measure::units::size_human;

pub use target::{TEMPORARY_FILE, TargetFacts, device_below};
pub use wakeups::{Trips, Wakeups};

/// Facts about the machine at the start of a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Cores that are online.
    pub cores: u64,
    /// Cores on which this process may run.
    pub cores_allowed: u64,
    /// How many whole cores these are, as the system tells it: fewer where some of them are the
    /// threads of one core. A virtual machine may not know; none when the system does not tell.
    #[serde(default)]
    pub cores_whole: Option<u64>,
    /// Name of the processor, as the system reports it.
    pub cpu_model: String,
    /// Whether this is a virtual machine, whose hypervisor may take cores away at any time.
    pub virtual_machine: bool,
    /// Release of the kernel, as `uname -r` prints it.
    pub kernel: String,
    /// Runnable or blocked tasks, averaged over 1, 5 and 15 minutes.
    pub load: [f64; 3],
    /// The frequency governor of the first core, when the system tells it.
    pub governor: Option<String>,
    /// The kernel's clock source, when the system tells it.
    pub clock_source: Option<String>,
    /// Whether short times are taken from the processor's time stamp counter.
    pub ticks_are_tsc: bool,
    /// Seconds since 1970 at the start, UTC.
    pub started_unix_s: u64,
    /// Memory of the machine, bytes.
    #[serde(default)]
    pub memory_bytes: u64,
    /// Memory that is free or can be had, bytes.
    #[serde(default)]
    pub memory_available_bytes: u64,
    /// The share of the time since the start of the machine in which its cores had work and the
    /// hypervisor ran something else, per cent.
    #[serde(default)]
    pub steal_percent: f64,
    /// Whether the machine runs on its battery.
    #[serde(default)]
    pub on_battery: bool,
    /// The cores' worth of time that a control group limits this process to; none without a limit.
    #[serde(default)]
    pub cpu_limit: Option<f64>,
    /// The cost of waking another thread; none where it was not measured.
    #[serde(default)]
    pub wakeups: Option<Wakeups>,
}

impl Host {
    /// The facts of this machine, now.
    pub fn now() -> Self {
        Self::below(Path::new("/sys"))
    }

    /// The same with another folder in place of `/sys`.
    fn below(sys: &Path) -> Self {
        let cores = cpu::online_cores() as u64;
        let allowed = cpu::Affinity::current().map(|affinity| affinity.cores());
        let allowed = allowed.unwrap_or_default();
        let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let uname = rustix::system::uname();
        Self {
            cores,
            cores_allowed: match allowed.len() as u64 {
                0 => cores,
                some => some,
            },
            cores_whole: whole_cores(sys, &allowed),
            cpu_model: cpu::model_name(),
            virtual_machine: cpu::is_virtual_machine(),
            kernel: uname.release().to_string_lossy().into_owned(),
            load: cpu::load_average(),
            governor: word(&sys.join("devices/system/cpu/cpu0/cpufreq/scaling_governor")),
            clock_source: word(
                &sys.join("devices/system/clocksource/clocksource0/current_clocksource"),
            ),
            ticks_are_tsc: clock::ticks_are_tsc(),
            started_unix_s: since_1970.map_or(0, |time| time.as_secs()),
            memory_bytes: memory("MemTotal:"),
            memory_available_bytes: memory("MemAvailable:"),
            steal_percent: steal_percent(),
            on_battery: limits::on_battery(sys),
            cpu_limit: limits::cpu_limit(sys),
            wakeups: None,
        }
    }

    /// The facts for a process of several: the first one measures what waking a thread costs.
    pub fn of_process(number: u32) -> Self {
        match number {
            0 => Self::now().with_wakeups(),
            _ => Self::now(),
        }
    }

    /// The same facts, and the cost of waking another thread here: some 60 ms of both cores.
    #[must_use]
    pub fn with_wakeups(mut self) -> Self {
        self.wakeups = Some(Wakeups::measure());
        self
    }

    /// The conditions that may distort figures from this machine, a sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.load[0] > self.cores as f64 * 0.5 {
            warnings.push(format!(
                "other work is running (load {:.1} on {} cores): stop it and repeat",
                self.load[0], self.cores
            ));
        }
        if self.steal_percent >= STEAL_PERCENT_MAX {
            warnings.push(format!(
                "steal time was {:.1} % since boot: the host was busy, and times may be too long",
                self.steal_percent
            ));
        }
        if self.cores_allowed < 2 {
            warnings.push("there is one core only: two threads cannot run side by side".to_owned());
        }
        if let Some(whole) = self.cores_whole
            && whole < self.cores_allowed
        {
            warnings.push(format!(
                "{} processors are hyperthreads of {whole} cores: two on one core share its units",
                self.cores_allowed
            ));
        }
        if self.on_battery {
            warnings.push(
                "the machine runs on battery, which may lower its clock: connect the power \
                         supply"
                    .to_owned(),
            );
        }
        if let Some(limit) = self.cpu_limit {
            warnings.push(format!(
                "a cgroup limits this process to {limit:.1} cores (cpu.max): it is throttled above \
                 that, raise the limit"
            ));
        }
        if let Some(governor) = &self.governor
            && governor != "performance"
        {
            warnings.push(format!(
                "the CPU frequency may change (governor {governor}): set it to performance"
            ));
        }
        warnings
    }
}

/// `2 cores of Intel Xeon, virtual machine, Linux 6.1, load 0.3`.
impl fmt::Display for Host {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores = if self.cores == 1 { "core" } else { "cores" };
        write!(out, "{} {cores} of {}", self.cores, self.cpu_model)?;
        if self.cores_allowed < self.cores {
            write!(out, " ({} allowed to this process)", self.cores_allowed)?;
        }
        let machine = if self.virtual_machine {
            "a virtual machine"
        } else {
            "no virtual machine"
        };
        write!(
            out,
            ", {machine}, Linux {}, load {:.1}",
            self.kernel, self.load[0]
        )?;
        if let Some(governor) = &self.governor {
            write!(out, ", governor {governor}")?;
        }
        if let Some(source) = &self.clock_source {
            write!(out, ", clock {source}")?;
        }
        if self.memory_bytes > 0 {
            write!(out, ", {} of memory", size_human(self.memory_bytes))?;
        }
        Ok(())
    }
}

/// Cores that were taken away for more than this share of the time are a warning, per cent.
pub const STEAL_PERCENT_MAX: f64 = 1.0;

/// A size of `/proc/meminfo`, bytes; 0 where it is not told.
fn memory(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0).saturating_mul(1024)
}

/// How many cores the processors with these numbers belong to: each core has one list of its
/// threads.
fn whole_cores(sys: &Path, processors: &[usize]) -> Option<u64> {
    let threads = |number: &usize| {
        let folder = format!("devices/system/cpu/cpu{number}/topology");
        word(&sys.join(folder).join("thread_siblings_list"))
    };
    let lists: Option<BTreeSet<String>> = processors.iter().map(threads).collect();
    lists
        .map(|lists| lists.len() as u64)
        .filter(|whole| *whole > 0)
}

fn steal_percent() -> f64 {
    let times = cpu::SystemTimes::now().unwrap_or_default();
    let all = times.busy_ns() + times.idle_ns + times.iowait_ns + times.steal_ns;
    times.steal_ns as f64 * 100.0 / all.max(1) as f64
}

/// The one word that a file of sysfs holds.
fn word(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ugeom_testkit::has;

    fn quiet() -> Host {
        Host {
            cores: 2,
            cores_allowed: 2,
            cores_whole: Some(2),
            cpu_model: "Test CPU".into(),
            virtual_machine: true,
            kernel: "6.1".into(),
            load: [0.25, 0.0, 0.0],
            governor: None,
            clock_source: Some("tsc".into()),
            ticks_are_tsc: true,
            started_unix_s: 1_033_936_107,
            memory_bytes: 8 << 30,
            memory_available_bytes: 6 << 30,
            steal_percent: 0.0,
            on_battery: false,
            cpu_limit: None,
            wakeups: None,
        }
    }

    #[test]
    fn a_host_is_described_in_one_line() {
        assert_eq!(
            quiet().to_string(),
            "2 cores of Test CPU, a virtual machine, Linux 6.1, load 0.2, clock tsc, \
             8 GiB of memory"
        );
        assert!(quiet().warnings().is_empty());
    }

    #[test]
    fn threads_of_one_core_are_told_from_whole_cores() {
        let sys = tempfile::tempdir().unwrap();
        assert_eq!(whole_cores(sys.path(), &[0, 1]), None);
        for (number, threads) in ["0,2", "1,3", "0,2", "1,3"].iter().enumerate() {
            let folder = format!("devices/system/cpu/cpu{number}/topology");
            let folder = sys.path().join(folder);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("thread_siblings_list"), threads).unwrap();
        }
        assert_eq!(whole_cores(sys.path(), &[0, 1, 2, 3]), Some(2));
        assert_eq!(whole_cores(sys.path(), &[0, 2]), Some(1));
        assert_eq!(whole_cores(sys.path(), &[]), None);
        let host = Host {
            cores_whole: Some(1),
            ..quiet()
        };
        let warnings = host.warnings().join("; ");
        has(&warnings, "2 processors are hyperthreads of 1 cores");
    }

    #[test]
    fn a_busy_machine_has_a_warning_for_each_disturbance() {
        let governor = Some("powersave".to_owned());
        let busy = Host {
            load: [1.7, 0.0, 0.0],
            cores_allowed: 1,
            steal_percent: 2.5,
            governor,
            on_battery: true,
            cpu_limit: Some(1.5),
            ..quiet()
        };
        let warnings = busy.warnings().join("; ");
        for words in [
            "runs on battery",
            "a cgroup limits this process to 1.5 cores (cpu.max)",
            "CPU frequency may change (governor powersave): set it to performance",
        ] {
            assert!(warnings.contains(words), "{words}: {warnings}");
        }
        let performance = Host {
            governor: Some("performance".to_owned()),
            ..quiet()
        };
        assert_eq!(performance.warnings(), [""; 0]);
        has(
            &warnings,
            "other work is running (load 1.7 on 2 cores): stop it",
        );
        has(&warnings, "one core only");
        has(&warnings, "powersave");
        has(&warnings, "steal time was 2.5 % since boot");
        assert!(busy.to_string().contains("(1 allowed to this process)"));
    }

    #[test]
    fn facts_are_read_where_the_system_has_them() {
        let sys = tempfile::tempdir().unwrap();
        assert_eq!(Host::below(sys.path()).governor, None);
        let folder = sys.path().join("devices/system/cpu/cpu0/cpufreq");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("scaling_governor"), "performance\n").unwrap();
        let host = Host::below(sys.path());
        assert_eq!(host.governor.as_deref(), Some("performance"));
        assert!(host.cores >= 1 && !host.kernel.is_empty() && host.started_unix_s > 1_700_000_000);
    }
}
