//! The load of the device below a case during a run: the counters of a kernel's device, or of a
//! stack. They are read right before and right after the run, so that they belong to it alone as
//! long as no other program uses the device.

use serde::{Deserialize, Serialize};

/// A source of counters that only grow.
pub trait Counters {
    /// The device's name, such as `vda` or `md0`.
    fn name(&self) -> &str;

    /// The counts since some moment; none when they cannot be read now.
    fn read(&self) -> Option<DeviceCounts>;
}

/// The counters of a device since some moment. Which of these a device counts depends on its kind:
/// the kernel counts all of them (Documentation/admin-guide/iostats.rst), a stack has no merges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceCounts {
    /// Reads that were completed.
    pub reads: u64,
    /// Bytes that they read.
    pub read_bytes: u64,
    /// Reads that were joined to another one before the device saw them.
    pub read_merges: u64,
    /// The time that all reads spent waiting and being served, added up, ns.
    pub read_ns: u64,
    /// Writes that were completed.
    pub writes: u64,
    /// Bytes that they wrote.
    pub write_bytes: u64,
    /// Writes that were joined to another one before the device saw them.
    pub write_merges: u64,
    /// The time that all writes spent waiting and being served, added up, ns.
    pub write_ns: u64,
    /// Deletes (discards) that were completed.
    pub deletes: u64,
    /// Bytes that they deleted.
    pub delete_bytes: u64,
    /// The time that all deletes spent waiting and being served, added up, ns.
    pub delete_ns: u64,
    /// Flushes that were completed.
    pub flushes: u64,
    /// The time that all flushes spent waiting and being served, added up, ns.
    pub flush_ns: u64,
    /// The time in which the device had anything to do, ns.
    pub busy_ns: u64,
    /// The time that requests spent in the queue and being served, added up over requests, ns.
    pub queue_ns: u64,
}

impl DeviceCounts {
    /// The difference to `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        let less = |now: u64, before: u64| now.saturating_sub(before);
        Self {
            reads: less(self.reads, earlier.reads),
            read_bytes: less(self.read_bytes, earlier.read_bytes),
            read_merges: less(self.read_merges, earlier.read_merges),
            read_ns: less(self.read_ns, earlier.read_ns),
            writes: less(self.writes, earlier.writes),
            write_bytes: less(self.write_bytes, earlier.write_bytes),
            write_merges: less(self.write_merges, earlier.write_merges),
            write_ns: less(self.write_ns, earlier.write_ns),
            deletes: less(self.deletes, earlier.deletes),
            delete_bytes: less(self.delete_bytes, earlier.delete_bytes),
            delete_ns: less(self.delete_ns, earlier.delete_ns),
            flushes: less(self.flushes, earlier.flushes),
            flush_ns: less(self.flush_ns, earlier.flush_ns),
            busy_ns: less(self.busy_ns, earlier.busy_ns),
            queue_ns: less(self.queue_ns, earlier.queue_ns),
        }
    }

    /// All transfers: reads, writes and deletes.
    pub fn transfers(&self) -> u64 {
        total([self.reads, self.writes, self.deletes])
    }

    /// The bytes of all transfers.
    pub fn bytes(&self) -> u64 {
        total([self.read_bytes, self.write_bytes, self.delete_bytes])
    }
}

/// A sum. Documents come from anywhere, and what they count need not be possible.
pub fn total(numbers: impl IntoIterator<Item = u64>) -> u64 {
    numbers.into_iter().fold(0, u64::saturating_add)
}
