//! Where the harness takes its time and its CPU times from: the machine, or a test's own clock.

use super::NullFloor;
use serde::{Deserialize, Serialize};
use ugeom_machine::{clock, cpu};

/// CPU time since some moment, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTimes {
    /// Of the thread that runs the cases.
    pub thread_ns: u64,
    /// Of all threads of this process.
    pub process_ns: u64,
    /// Of everything on this machine; the kernel counts it in ticks of usually 10 ms.
    pub machine_ns: u64,
    /// Time in which a core had work and the hypervisor ran something else; same ticks.
    pub steal_ns: u64,
    /// Of this process in user space, and of its children that have ended and were waited for.
    #[serde(default)]
    pub user_ns: u64,
    /// The same in the kernel.
    #[serde(default)]
    pub system_ns: u64,
    /// How often these waited for something and gave up their core for that.
    #[serde(default)]
    pub switches_voluntary: u64,
    /// How often their core was taken away.
    #[serde(default)]
    pub switches_involuntary: u64,
    /// Of everything on this machine, by kind; same ticks as `machine_ns`.
    #[serde(default)]
    pub shares: Shares,
    /// Of the core that worked most; same ticks.
    #[serde(default)]
    pub busiest_core_ns: u64,
}

/// The time of all cores of the machine together, ns; in the kernel's ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shares {
    /// CPU time in user space, nanoseconds.
    pub user_ns: u64,
    /// In user space at lowered priority.
    pub nice_ns: u64,
    /// CPU time in the kernel, nanoseconds.
    pub system_ns: u64,
    /// In interrupt handlers and their deferred work.
    pub interrupt_ns: u64,
    /// Nothing, whether or not some task waited for a device.
    pub idle_ns: u64,
}

impl Shares {
    fn of(times: &cpu::SystemTimes) -> Self {
        Self {
            user_ns: times.user_ns,
            nice_ns: times.nice_ns,
            system_ns: times.system_ns,
            interrupt_ns: times.irq_ns + times.softirq_ns,
            idle_ns: times.idle_ns + times.iowait_ns,
        }
    }

    fn since(&self, earlier: &Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            nice_ns: self.nice_ns.saturating_sub(earlier.nice_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            interrupt_ns: self.interrupt_ns.saturating_sub(earlier.interrupt_ns),
            idle_ns: self.idle_ns.saturating_sub(earlier.idle_ns),
        }
    }

    /// All of them together.
    pub fn total_ns(&self) -> u64 {
        let others = [
            self.nice_ns,
            self.system_ns,
            self.interrupt_ns,
            self.idle_ns,
        ];
        others.into_iter().fold(self.user_ns, u64::saturating_add)
    }
}

impl CpuTimes {
    /// Voluntary and involuntary context switches together.
    pub fn switches(&self) -> u64 {
        self.switches_voluntary
            .saturating_add(self.switches_involuntary)
    }

    /// CPU time of threads other than the one that runs the cases.
    pub fn helpers_ns(&self) -> u64 {
        self.process_ns.saturating_sub(self.thread_ns)
    }
}

/// All counters at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Since an unknown moment; `busiest_core_ns` has no meaning here.
    pub cpu: CpuTimes,
    /// The time that each core has worked, ns.
    pub cores_busy_ns: Vec<u64>,
}

impl Reading {
    /// The time since `earlier`.
    pub fn since(&self, earlier: &Self) -> CpuTimes {
        let less = |of: fn(&CpuTimes) -> u64| of(&self.cpu).saturating_sub(of(&earlier.cpu));
        let cores = self.cores_busy_ns.iter().zip(&earlier.cores_busy_ns);
        CpuTimes {
            thread_ns: less(|cpu| cpu.thread_ns),
            process_ns: less(|cpu| cpu.process_ns),
            machine_ns: less(|cpu| cpu.machine_ns),
            steal_ns: less(|cpu| cpu.steal_ns),
            user_ns: less(|cpu| cpu.user_ns),
            system_ns: less(|cpu| cpu.system_ns),
            switches_voluntary: less(|cpu| cpu.switches_voluntary),
            switches_involuntary: less(|cpu| cpu.switches_involuntary),
            shares: self.cpu.shares.since(&earlier.cpu.shares),
            busiest_core_ns: cores
                .map(|(now, before)| now.saturating_sub(*before))
                .max()
                .unwrap_or(0),
        }
    }
}

/// A source of times.
pub trait Meter {
    /// The time, ns from an unknown origin.
    fn now_ns(&self) -> u64;

    /// Reads all counters, whose differences are the use of a run.
    fn read(&self) -> Reading;

    /// The core on which the calling thread runs.
    fn core(&self) -> Option<u32> {
        None
    }

    /// The present time of the reference loop on these cores together, or on the current one if
    /// none is named, ns; none where time is not real.
    fn reference_ns(&self, _cores: &[usize]) -> Option<u64> {
        None
    }

    /// The present time of measuring nothing; none where time is not real.
    fn null_floor(&self) -> Option<NullFloor> {
        None
    }
}

/// The times of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Machine;

impl Meter for Machine {
    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    fn read(&self) -> Reading {
        // Without /proc the machine's share stays 0, which the report shows as unknown.
        let (machine, cores) = cpu::SystemTimes::now_with_cores().unwrap_or_default();
        let (own, children) = (cpu::Usage::of_process(), cpu::Usage::of_children());
        let switches = |of: fn(&cpu::ContextSwitches) -> u64| {
            of(&own.switches).saturating_add(of(&children.switches))
        };
        Reading {
            cpu: CpuTimes {
                thread_ns: cpu::thread_cpu_ns(),
                process_ns: cpu::process_cpu_ns(),
                machine_ns: machine.busy_ns(),
                steal_ns: machine.steal_ns,
                user_ns: own.user_ns + children.user_ns,
                system_ns: own.system_ns + children.system_ns,
                switches_voluntary: switches(|switches| switches.voluntary),
                switches_involuntary: switches(|switches| switches.involuntary),
                shares: Shares::of(&machine),
                busiest_core_ns: 0,
            },
            cores_busy_ns: cores.iter().map(cpu::SystemTimes::busy_ns).collect(),
        }
    }

    fn core(&self) -> Option<u32> {
        Some(cpu::current_core())
    }

    fn reference_ns(&self, cores: &[usize]) -> Option<u64> {
        super::loops::now_ns(cores)
    }

    fn null_floor(&self) -> Option<NullFloor> {
        Some(NullFloor::now())
    }
}
