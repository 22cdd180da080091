//! Where the counters of a device come from: the kernel's block devices, and the stacks of this
//! program, which count for themselves.

use std::path::Path;
use std::sync::Arc;
use ugeom_format::diskstats::{self, SECTOR_BYTES, Stat};
use ugeom_harness::{Counters, DeviceCounts};
use ugeom_machine::block_device::{self, BlockDevice};
use ugeom_stack::{Command, ProviderId, Stack, Totals};

const NS_PER_MS: u64 = 1_000_000;

/// A block device of the kernel.
#[derive(Clone, Debug)]
pub struct KernelDevice {
    device: BlockDevice,
}

impl KernelDevice {
    /// The device that a path ends at first: the disk of a file's file system, or the block device
    /// itself. None where the system tells of none.
    pub fn below(path: &Path) -> Option<Self> {
        let devices = block_device::below(path).unwrap_or_default();
        devices.into_iter().next().map(Self::from)
    }
}

impl From<BlockDevice> for KernelDevice {
    fn from(device: BlockDevice) -> Self {
        Self { device }
    }
}

impl Counters for KernelDevice {
    fn name(&self) -> &str {
        &self.device.name
    }

    fn read(&self) -> Option<DeviceCounts> {
        let text = self.device.stat().ok()?;
        diskstats::parse_stat(&text).ok().map(|stat| counts(&stat))
    }
}

/// Bytes that this process has caused to be read from devices: those that it requested and the page
/// cache did not have. None where the system does not tell (proc_pid_io(5)).
pub fn read_by_this_process_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("read_bytes:"));
    line?.trim().parse().ok()
}

/// The kernel's counts, in this program's units.
pub fn counts(stat: &Stat) -> DeviceCounts {
    let bytes = |sectors: u64| sectors.saturating_mul(SECTOR_BYTES);
    let ns = |ms: u64| ms.saturating_mul(NS_PER_MS);
    let deletes = stat.discards.unwrap_or_default();
    let flushes = stat.flushes.unwrap_or_default();
    DeviceCounts {
        reads: stat.reads.completed,
        read_bytes: bytes(stat.reads.sectors),
        read_merges: stat.reads.merged,
        read_ns: ns(stat.reads.time_ms),
        writes: stat.writes.completed,
        write_bytes: bytes(stat.writes.sectors),
        write_merges: stat.writes.merged,
        write_ns: ns(stat.writes.time_ms),
        deletes: deletes.completed,
        delete_bytes: bytes(deletes.sectors),
        delete_ns: ns(deletes.time_ms),
        flushes: flushes.completed,
        flush_ns: ns(flushes.time_ms),
        busy_ns: ns(stat.busy_ms),
        queue_ns: ns(stat.queue_ms),
    }
}

/// A provider of a stack, as its statistics count it.
pub struct StackDevice {
    name: String,
    stack: Stack,
    provider: ProviderId,
}

impl StackDevice {
    /// The provider at the bottom of a stack (or any other of it) as the device.
    pub fn of(name: &str, stack: &Stack, provider: ProviderId) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            stack: stack.clone(),
            provider,
        })
    }
}

impl Counters for StackDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn read(&self) -> Option<DeviceCounts> {
        let totals = self.stack.statistics(self.provider).ok()?;
        Some(counts_of(&totals))
    }
}

/// The counts of a stack. It knows no merges, and times only where they are sampled, so that those
/// stay 0.
fn counts_of(totals: &Totals) -> DeviceCounts {
    let of = |command: Command| {
        let index = command as usize;
        (totals.operations[index], totals.bytes[index])
    };
    let ((reads, read_bytes), (writes, write_bytes)) = (of(Command::Read), of(Command::Write));
    let (deletes, delete_bytes) = of(Command::Delete);
    DeviceCounts {
        reads,
        read_bytes,
        writes,
        write_bytes,
        deletes,
        delete_bytes,
        flushes: of(Command::Flush).0,
        ..DeviceCounts::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ugeom_classes::{TargetOptions, open_target};
    use ugeom_stack::Delta;

    #[test]
    fn the_kernels_units_become_bytes_and_nanoseconds() {
        let text = "7 1 100 3 5 2 40 8 0 9 11 6 0 48 1 4 2";
        let counts = counts(&diskstats::parse_stat(text).unwrap());
        assert_eq!(
            (counts.reads, counts.read_merges, counts.read_bytes),
            (7, 1, 51_200)
        );
        assert_eq!(
            (counts.writes, counts.write_bytes, counts.write_ns),
            (5, 20_480, 8_000_000)
        );
        assert_eq!((counts.deletes, counts.delete_bytes), (6, 24_576));
        assert_eq!((counts.flushes, counts.flush_ns), (4, 2_000_000));
        assert_eq!((counts.busy_ns, counts.queue_ns), (9_000_000, 11_000_000));
    }

    #[test]
    fn a_stack_counts_what_reaches_a_provider() {
        let target = open_target("md:1m | nop", &TargetOptions::default()).unwrap();
        let device = StackDevice::of("md0", &target.stack, target.bottom);
        let before = device.read().unwrap();
        let opened = target.open(Delta::READ_WRITE).unwrap();
        let mut channel = target.stack.channel(1).unwrap();
        channel.read(&opened, 0, &mut [0; 4096]).unwrap();
        channel.read(&opened, 0, &mut [0; 512]).unwrap();
        channel.write(&opened, 512, &[0; 512]).unwrap();
        channel.flush(&opened).unwrap();
        let done = device.read().unwrap().since(&before);
        assert_eq!((done.reads, done.read_bytes), (2, 4608));
        assert_eq!((done.writes, done.write_bytes, done.flushes), (1, 512, 1));
        assert_eq!((device.name(), done.busy_ns), ("md0", 0));
    }

    #[test]
    fn what_the_process_reads_from_devices_only_grows() {
        let now = || read_by_this_process_bytes();
        let (before, after) = (now(), now());
        // A kernel may be built without these accounts.
        assert_eq!(before.is_some(), Path::new("/proc/self/io").exists());
        assert!(before <= after);
    }

    #[test]
    fn a_path_without_a_device_has_no_counters() {
        assert!(KernelDevice::below(Path::new("/proc/self/stat")).is_none());
        assert!(KernelDevice::below(Path::new("/no/such/path")).is_none());
    }
}
