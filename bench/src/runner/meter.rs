//! Where the runner takes its time and its CPU times from: the machine, or a test's own clock.

use serde::{Deserialize, Serialize};
use ugeom_machine::{clock, cpu};

/// CPU time since some moment, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTimes {
    /// Of the thread that runs the cells.
    pub thread_ns: u64,
    /// Of all threads of this process.
    pub process_ns: u64,
    /// Of everything on this machine; the kernel counts it in ticks of usually 10 ms.
    pub machine_ns: u64,
    /// Time in which a core had work and the hypervisor ran something else; same ticks.
    pub steal_ns: u64,
}

impl CpuTimes {
    /// What was spent since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            thread_ns: self.thread_ns.saturating_sub(earlier.thread_ns),
            process_ns: self.process_ns.saturating_sub(earlier.process_ns),
            machine_ns: self.machine_ns.saturating_sub(earlier.machine_ns),
            steal_ns: self.steal_ns.saturating_sub(earlier.steal_ns),
        }
    }

    /// CPU time of threads other than the one that runs the cells.
    pub fn helpers_ns(&self) -> u64 {
        self.process_ns.saturating_sub(self.thread_ns)
    }
}

/// A source of times.
pub trait Meter {
    /// The time, ns from an unknown origin.
    fn now_ns(&self) -> u64;

    /// CPU times, ns from an unknown origin.
    fn cpu(&self) -> CpuTimes;
}

/// The times of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Machine;

impl Meter for Machine {
    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    fn cpu(&self) -> CpuTimes {
        // Without /proc the machine's share stays 0, which the report shows as unknown.
        let machine = cpu::SystemTimes::now().unwrap_or_default();
        CpuTimes {
            thread_ns: cpu::thread_cpu_ns(),
            process_ns: cpu::process_cpu_ns(),
            machine_ns: machine.busy_ns(),
            steal_ns: machine.steal_ns,
        }
    }
}
