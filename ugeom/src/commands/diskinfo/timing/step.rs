//! One measured line of diskinfo, and the figures that are computed of it.

/// The kind of measurement of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// The overhead of a command: blocks, and one sector again and again.
    Overhead,
    /// Sectors far from each other, or side by side.
    Seek,
    /// Blocks of a megabyte, one after the other.
    Transfer,
    /// Blocks at random places, queue depth 128.
    Read,
    /// Blocks at random places, each made durable before the next.
    Write,
}

/// So many requests of one size, and the time they took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its kind.
    pub kind: StepKind,
    /// Its name within the kind, as diskinfo prints it: `Full stroke`, `4 kbytes`.
    pub name: String,
    /// Number of requests in the step.
    pub requests: u64,
    /// How much each moved, bytes.
    pub bytes_each: u64,
    /// From the first request to the end of the last, ns.
    pub taken_ns: u64,
}

impl Step {
    /// The time it took, s.
    pub fn seconds(&self) -> f64 {
        self.taken_ns as f64 / 1e9
    }

    /// The time of one request, s. With several in flight it is their share of the whole.
    pub fn seconds_each(&self) -> f64 {
        self.seconds() / self.requests as f64
    }

    /// All that was moved, bytes.
    pub fn bytes(&self) -> u64 {
        self.requests * self.bytes_each
    }

    /// Requests in a second.
    pub fn per_second(&self) -> f64 {
        self.requests as f64 / self.seconds()
    }

    pub fn bytes_per_second(&self) -> f64 {
        self.bytes() as f64 / self.seconds()
    }
}
