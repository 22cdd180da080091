//! The machine and its load: cores, affinity, model, load and CPU time.
//!
//! Sources: proc(5) (`/proc/stat`, `/proc/cpuinfo`), sysinfo(2), getrusage(2), clock_gettime(2),
//! sched_setaffinity(2), `/sys/class/dmi/id`.

use std::fs;
use std::io;
use std::path::Path;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Number of cores that are online.
pub fn online_cores() -> usize {
    // SAFETY: takes a number, touches no memory.
    let cores = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    usize::try_from(cores).unwrap_or(1).max(1)
}

/// Number of cores that the system has, whether they are online or not.
pub fn configured_cores() -> usize {
    // SAFETY: takes a number, touches no memory.
    let cores = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    usize::try_from(cores).unwrap_or(1).max(1)
}

/// Number of cores that the system could ever have online, for which drivers keep queues
/// (`/sys/devices/system/cpu/possible`); those that are online where it does not say.
pub fn possible_cores() -> usize {
    let text = fs::read_to_string("/sys/devices/system/cpu/possible");
    let count = text.ok().and_then(|text| count_in(text.trim()));
    count.unwrap_or_else(online_cores)
}

/// How many numbers a list of ranges such as `0-3,8` names.
fn count_in(ranges: &str) -> Option<usize> {
    let counts = ranges.split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    });
    counts.sum()
}

/// The cores on which a thread may run.
#[derive(Clone, PartialEq, Eq)]
pub struct Affinity {
    set: CpuSet,
}

impl Affinity {
    /// The cores with these numbers.
    ///
    /// # Errors
    /// EINVAL when there is none, or one beyond the 1024 that the system call knows.
    pub fn of(cores: &[usize]) -> io::Result<Affinity> {
        let mut set = CpuSet::new();
        for &core in cores {
            if core >= CpuSet::MAX_CPU {
                let limit = CpuSet::MAX_CPU;
                let message = format!("core {core} is beyond the limit of {limit}");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
            }
            set.set(core);
        }
        if cores.is_empty() {
            let message = "a thread needs at least one core to run on";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Ok(Affinity { set })
    }

    /// The cores on which the calling thread may run now.
    ///
    /// # Errors
    /// The error of sched_getaffinity(2): EINVAL on machines with more than 1024 cores.
    pub fn current() -> io::Result<Affinity> {
        Ok(Affinity {
            set: sched_getaffinity(None)?,
        })
    }

    /// Lets the calling thread, and threads that it starts from now on, run on these cores only.
    ///
    /// # Errors
    /// EINVAL when none of the cores is online and allowed to the process.
    pub fn apply(&self) -> io::Result<()> {
        Ok(sched_setaffinity(None, &self.set)?)
    }

    /// The cores' numbers, ascending.
    pub fn cores(&self) -> Vec<usize> {
        (0..CpuSet::MAX_CPU)
            .filter(|&core| self.set.is_set(core))
            .collect()
    }
}

impl std::fmt::Debug for Affinity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Affinity").field(&self.cores()).finish()
    }
}

/// Pins the calling thread to `cores` and returns where it was allowed to run before, to be
/// restored with [`Affinity::apply`].
///
/// # Errors
/// As [`Affinity::of`] and [`Affinity::apply`].
pub fn pin(cores: &[usize]) -> io::Result<Affinity> {
    let before = Affinity::current()?;
    Affinity::of(cores)?.apply()?;
    Ok(before)
}

/// The processor's name as the kernel tells it, such as `Intel(R) Xeon(R) CPU @ 2.80GHz`, or the
/// architecture where it tells none.
pub fn model_name() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    model_in(&text).unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// Finds the name in the text of `/proc/cpuinfo`; the key differs between architectures.
fn model_in(cpuinfo: &str) -> Option<String> {
    ["model name", "Model", "cpu model", "cpu"]
        .iter()
        .find_map(|wanted| {
            cpuinfo.lines().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                (key.trim() == *wanted && !value.trim().is_empty()).then(|| value.trim().to_owned())
            })
        })
}

/// Whether this is a virtual machine: the processor says so (CPUID 1, ECX bit 31, which every
/// hypervisor of note sets), or the firmware's tables name one.
pub fn is_virtual_machine() -> bool {
    hypervisor_flag() || dmi_names_a_hypervisor(Path::new("/sys/class/dmi/id"))
}

#[cfg(target_arch = "x86_64")]
fn hypervisor_flag() -> bool {
    std::arch::x86_64::__cpuid(1).ecx & (1 << 31) != 0
}

#[cfg(not(target_arch = "x86_64"))]
fn hypervisor_flag() -> bool {
    Path::new("/sys/hypervisor/type").exists()
}

fn dmi_names_a_hypervisor(folder: &Path) -> bool {
    const NAMES: [&str; 9] = [
        "qemu",
        "kvm",
        "vmware",
        "virtualbox",
        "xen",
        "bochs",
        "virtual machine",
        "bhyve",
        "google compute engine",
    ];
    ["sys_vendor", "product_name", "bios_vendor"]
        .iter()
        .any(|file| {
            let text = fs::read_to_string(folder.join(file))
                .unwrap_or_default()
                .to_lowercase();
            NAMES.iter().any(|name| text.contains(name))
        })
}

/// Number of runnable or blocked tasks, averaged over 1, 5 and 15 minutes.
pub fn load_average() -> [f64; 3] {
    /// Fixed-point scale of the figures of sysinfo(2).
    const SCALE: f64 = 65_536.0;
    rustix::system::sysinfo()
        .loads
        .map(|load| load as f64 / SCALE)
}

/// Time that all cores together have spent since boot, by use, in nanoseconds. The
/// kernel counts in ticks of usually 10 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SystemTimes {
    /// In user space, at normal priority; includes running virtual machines.
    pub user_ns: u64,
    /// In user space, at lowered priority.
    pub nice_ns: u64,
    /// CPU time in the kernel, nanoseconds.
    pub system_ns: u64,
    /// Time without work, nanoseconds.
    pub idle_ns: u64,
    /// Doing nothing while some task of this core waits for I/O.
    pub iowait_ns: u64,
    /// Time in interrupt handlers, nanoseconds.
    pub irq_ns: u64,
    /// In deferred interrupt work.
    pub softirq_ns: u64,
    /// Runnable, but the hypervisor ran something else.
    pub steal_ns: u64,
}

impl SystemTimes {
    /// The times since boot.
    ///
    /// # Errors
    /// When `/proc/stat` cannot be read or has no line of totals.
    pub fn now() -> io::Result<SystemTimes> {
        Ok(SystemTimes::now_with_cores()?.0)
    }

    /// The times of all cores together, and of each core that is online.
    ///
    /// # Errors
    /// As [`SystemTimes::now`].
    pub fn now_with_cores() -> io::Result<(SystemTimes, Vec<SystemTimes>)> {
        let text = fs::read_to_string("/proc/stat")?;
        // SAFETY: takes a number, touches no memory.
        let ticks_per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        let tick_ns = 1_000_000_000 / u64::try_from(ticks_per_second).unwrap_or(100).max(1);
        let totals = SystemTimes::parse(&text, tick_ns).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "/proc/stat has no totals of CPU time",
            )
        })?;
        Ok((totals, SystemTimes::parse_cores(&text, tick_ns)))
    }

    fn parse(stat: &str, tick_ns: u64) -> Option<SystemTimes> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        SystemTimes::parse_line(line, tick_ns)
    }

    /// The lines `cpu0`, `cpu1` and so on.
    fn parse_cores(stat: &str, tick_ns: u64) -> Vec<SystemTimes> {
        let core = |line: &str| {
            let (number, times) = line.strip_prefix("cpu")?.split_once(' ')?;
            number.parse::<u32>().ok()?;
            SystemTimes::parse_line(times, tick_ns)
        };
        stat.lines().filter_map(core).collect()
    }

    fn parse_line(line: &str, tick_ns: u64) -> Option<SystemTimes> {
        let mut fields = line.split_ascii_whitespace().map(str::parse::<u64>);
        let mut first = || Some(fields.next()?.ok()?.saturating_mul(tick_ns));
        let (user_ns, nice_ns, system_ns, idle_ns) = (first()?, first()?, first()?, first()?);
        // Kernels before 2.6.11 lack the rest.
        let mut later = || first().unwrap_or(0);
        let (iowait_ns, irq_ns, softirq_ns, steal_ns) = (later(), later(), later(), later());
        let busy = SystemTimes {
            user_ns,
            nice_ns,
            system_ns,
            idle_ns,
            ..Default::default()
        };
        Some(SystemTimes {
            iowait_ns,
            irq_ns,
            softirq_ns,
            steal_ns,
            ..busy
        })
    }

    /// The time since `earlier`.
    pub fn since(&self, earlier: &SystemTimes) -> SystemTimes {
        SystemTimes {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            nice_ns: self.nice_ns.saturating_sub(earlier.nice_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            idle_ns: self.idle_ns.saturating_sub(earlier.idle_ns),
            iowait_ns: self.iowait_ns.saturating_sub(earlier.iowait_ns),
            irq_ns: self.irq_ns.saturating_sub(earlier.irq_ns),
            softirq_ns: self.softirq_ns.saturating_sub(earlier.softirq_ns),
            steal_ns: self.steal_ns.saturating_sub(earlier.steal_ns),
        }
    }

    /// Time in which cores of this machine worked: all but idle, waiting and stolen time.
    pub fn busy_ns(&self) -> u64 {
        self.user_ns + self.nice_ns + self.system_ns + self.irq_ns + self.softirq_ns
    }
}

/// CPU time of all threads of this process, in user space and in the kernel, in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    cpu_clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of the calling thread, in user space and in the kernel, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    cpu_clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn cpu_clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a timespec of ours; these two clocks always exist.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// How often the kernel took the CPU from one task and gave it to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextSwitches {
    /// Because the task waited for something.
    pub voluntary: u64,
    /// Because its time was up or another task was more urgent.
    pub involuntary: u64,
}

impl ContextSwitches {
    /// The switches since `earlier`.
    pub fn since(&self, earlier: &ContextSwitches) -> ContextSwitches {
        ContextSwitches {
            voluntary: self.voluntary.saturating_sub(earlier.voluntary),
            involuntary: self.involuntary.saturating_sub(earlier.involuntary),
        }
    }
}

/// The usage of a process, a thread, or the children of a process by getrusage(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user space, ns.
    pub user_ns: u64,
    /// CPU time in the kernel, ns.
    pub system_ns: u64,
    /// Context switches, voluntary and involuntary.
    pub switches: ContextSwitches,
    /// Page faults that were served from a disk.
    pub faults_major: u64,
    /// Page faults that were served from memory.
    pub faults_minor: u64,
}

impl Usage {
    /// All threads of this process so far.
    pub fn of_process() -> Usage {
        Usage::of(libc::RUSAGE_SELF)
    }

    /// The calling thread so far.
    pub fn of_thread() -> Usage {
        Usage::of(libc::RUSAGE_THREAD)
    }

    /// The children that have ended and were waited for, with theirs.
    pub fn of_children() -> Usage {
        Usage::of(libc::RUSAGE_CHILDREN)
    }

    /// The thread `tid` of this process so far; times are rounded down to the kernel's units of
    /// 10 ms. `None` when there is no such thread.
    ///
    /// Source: proc_pid_stat(5), fields 10, 12, 14 and 15; proc_pid_status(5).
    pub fn of_task(tid: i32) -> Option<Usage> {
        let folder = format!("/proc/self/task/{tid}");
        let stat = fs::read_to_string(format!("{folder}/stat")).ok()?;
        let status = fs::read_to_string(format!("{folder}/status")).ok()?;
        // SAFETY: a question about a constant of the system.
        let ticks_per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        let tick_ns = 1_000_000_000 / u64::try_from(ticks_per_second).ok()?.max(1);
        Usage::parse_task(&stat, &status, tick_ns)
    }

    fn parse_task(stat: &str, status: &str, tick_ns: u64) -> Option<Usage> {
        // The name of the program, which may hold anything, ends with the last parenthesis; the
        // field after it is the third.
        let (_, fields) = stat.rsplit_once(')')?;
        let field = |number: usize| -> Option<u64> {
            fields
                .split_ascii_whitespace()
                .nth(number - 3)?
                .parse()
                .ok()
        };
        let count = |key: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            line.trim().parse().ok()
        };
        Some(Usage {
            user_ns: field(14)? * tick_ns,
            system_ns: field(15)? * tick_ns,
            switches: ContextSwitches {
                voluntary: count("voluntary_ctxt_switches:")?,
                involuntary: count("nonvoluntary_ctxt_switches:")?,
            },
            faults_major: field(12)?,
            faults_minor: field(10)?,
        })
    }

    /// The usage since `earlier`.
    pub fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            switches: self.switches.since(&earlier.switches),
            faults_major: self.faults_major.saturating_sub(earlier.faults_major),
            faults_minor: self.faults_minor.saturating_sub(earlier.faults_minor),
        }
    }

    /// The usage of two threads together.
    pub fn plus(&self, other: &Usage) -> Usage {
        Usage {
            user_ns: self.user_ns + other.user_ns,
            system_ns: self.system_ns + other.system_ns,
            switches: ContextSwitches {
                voluntary: self.switches.voluntary + other.switches.voluntary,
                involuntary: self.switches.involuntary + other.switches.involuntary,
            },
            faults_major: self.faults_major + other.faults_major,
            faults_minor: self.faults_minor + other.faults_minor,
        }
    }

    fn of(who: libc::c_int) -> Usage {
        // SAFETY: a structure of integers, for which zero is a valid value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is to a rusage of ours.
        unsafe { libc::getrusage(who, &mut usage) };
        let ns =
            |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
        Usage {
            user_ns: ns(usage.ru_utime),
            system_ns: ns(usage.ru_stime),
            switches: ContextSwitches {
                voluntary: u64::try_from(usage.ru_nvcsw).unwrap_or(0),
                involuntary: u64::try_from(usage.ru_nivcsw).unwrap_or(0),
            },
            faults_major: u64::try_from(usage.ru_majflt).unwrap_or(0),
            faults_minor: u64::try_from(usage.ru_minflt).unwrap_or(0),
        }
    }
}

/// The core on which the calling thread runs at this moment.
pub fn current_core() -> u32 {
    rustix::thread::sched_getcpu() as u32
}

#[cfg(all(test, not(miri)))]
mod tests;
