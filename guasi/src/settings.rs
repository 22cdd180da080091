//! The settings of a context.

use std::str::FromStr;
use std::time::Duration;

use crate::context::{Context, GuasiError};

/// The most requests that a context can be made for.
pub const REQUESTS_MAX: u32 = 1 << 22;

/// The most priorities of a context.
pub const PRIORITIES_MAX: u32 = 1 << 20;

/// The most workers: what 24 bits can number, and no system has as many threads.
pub(crate) const WORKERS_MAX: u32 = (1 << 24) - 1;

/// How long an idle worker above the minimum waits for work before it leaves.
pub const IDLE: Duration = Duration::from_secs(15);

/// How long a thread that waits polls before it sleeps: about what a sleep and a wake-up cost in a
/// virtual machine, so that waiting never costs more than twice what the better choice would have.
pub const SPIN: Duration = Duration::from_micros(50);

/// How many requests the kernel has at a time through a ring: many more than a disk works on at
/// once, and few enough for priorities to mean something.
pub const RING_DEPTH: u32 = 1024;

/// The largest depth of a ring.
pub(crate) const RING_DEPTH_MAX: u32 = 1 << 15;

/// Executor of the calls that an io_uring could run ([`IoCall`](crate::IoCall) lists them).
/// Everything else is for workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Backend {
    /// Threads of the context, which block in the calls.
    #[default]
    Workers,
    /// An io_uring; there is no context without one.
    Ring,
    /// An io_uring where the kernel allows it, else workers.
    Auto,
}

impl Backend {
    /// Every backend that a setting can name.
    pub const ALL: [Backend; 3] = [Backend::Workers, Backend::Ring, Backend::Auto];

    /// The name as the user writes it.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Workers => "workers",
            Backend::Ring => "ring",
            Backend::Auto => "auto",
        }
    }
}

impl FromStr for Backend {
    type Err = String;

    fn from_str(text: &str) -> Result<Backend, String> {
        let found = Backend::ALL
            .into_iter()
            .find(|backend| backend.name() == text);
        found.ok_or_else(|| format!("`{text}` is not one of workers, ring and auto"))
    }
}

/// The settings of a [`Context`].
#[derive(Clone, Debug)]
pub struct Settings {
    pub(crate) workers_min: u32,
    pub(crate) workers_max: u32,
    pub(crate) priorities: u32,
    pub(crate) requests: u32,
    pub(crate) idle: Duration,
    pub(crate) spin: Duration,
    /// 0: the system's default.
    pub(crate) stack_bytes: usize,
    pub(crate) backend: Backend,
    pub(crate) ring_depth: u32,
    pub(crate) one_thread: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            workers_min: 0,
            workers_max: WORKERS_MAX,
            priorities: 1,
            requests: 1 << 16,
            idle: IDLE,
            spin: SPIN,
            stack_bytes: 0,
            backend: Backend::Workers,
            ring_depth: RING_DEPTH,
            one_thread: false,
        }
    }
}

impl Settings {
    /// No worker at first and as many as needed, one priority, room for 65,536 requests.
    pub fn new() -> Settings {
        Settings::default()
    }

    /// Between `min` and `max` workers. The minimum is started with the context and stays; a
    /// maximum of 0 is as many as needed.
    #[must_use]
    pub fn workers(mut self, min: u32, max: u32) -> Settings {
        self.workers_min = min;
        self.workers_max = if max == 0 { WORKERS_MAX } else { max };
        self
    }

    /// Priorities 0 (served first) to `count` - 1, with `count` from 1 to [`PRIORITIES_MAX`].
    #[must_use]
    pub fn priorities(mut self, count: u32) -> Settings {
        self.priorities = count;
        self
    }

    /// Room for `count` requests from submission to release, at most [`REQUESTS_MAX`]; it is
    /// rounded up to a power of two. Room that is never used costs no memory.
    #[must_use]
    pub fn requests(mut self, count: u32) -> Settings {
        self.requests = count;
        self
    }

    /// After how long without work a worker above the minimum leaves ([`IDLE`] unless set).
    #[must_use]
    pub fn idle(mut self, idle: Duration) -> Settings {
        self.idle = idle;
        self
    }

    /// For how long a worker without work, and a thread that fetches, polls before it sleeps
    /// ([`SPIN`] unless set; zero: not at all). Each time that it goes to sleep has cost at most
    /// this much processor time.
    #[must_use]
    pub fn spin(mut self, spin: Duration) -> Settings {
        self.spin = spin;
        self
    }

    /// The stack of a worker, in bytes, the system's minimum at least. Unless set, or with 0, it is
    /// that of any thread: pthread_setattr_default_np(3), ulimit -s, or 8 MiB, of which only what
    /// is touched takes memory.
    #[must_use]
    pub fn stack_bytes(mut self, bytes: usize) -> Settings {
        self.stack_bytes = bytes;
        self
    }

    /// Executor of system calls; default: workers.
    #[must_use]
    pub fn backend(mut self, backend: Backend) -> Settings {
        self.backend = backend;
        self
    }

    /// How many requests the kernel has at a time through the ring, 1 to [`RING_DEPTH_MAX`]
    /// ([`RING_DEPTH`] unless set). The others wait, and go by priority.
    #[must_use]
    pub fn ring_depth(mut self, depth: u32) -> Settings {
        self.ring_depth = depth;
        self
    }

    /// Says that the thread that submits is the one that fetches. Completions in the ring then wait
    /// until that thread enters the kernel, which saves an interruption for each. Without it a
    /// context does so until a second thread submits or fetches. Where another thread fetches all
    /// the same, it may hear of completions as late as by the submitter's next interrupt of the
    /// clock.
    #[must_use]
    pub fn one_thread(mut self, one_thread: bool) -> Settings {
        self.one_thread = one_thread;
        self
    }

    /// Makes the context and starts its least number of workers.
    ///
    /// # Errors
    /// Settings out of range, workers that cannot be started, `Backend::Ring` without a ring.
    pub fn open(&self) -> Result<Context, GuasiError> {
        Context::open(self)
    }

    pub(crate) fn check(&self) -> Result<(), GuasiError> {
        let wrong = |what, value: u32, limits| {
            Err(GuasiError::Setting {
                what,
                value,
                limits,
            })
        };
        if self.priorities == 0 || self.priorities > PRIORITIES_MAX {
            return wrong(
                "the number of priorities",
                self.priorities,
                (1, PRIORITIES_MAX),
            );
        }
        if self.requests == 0 || self.requests > REQUESTS_MAX {
            return wrong("the number of requests", self.requests, (1, REQUESTS_MAX));
        }
        if self.ring_depth == 0 || self.ring_depth > RING_DEPTH_MAX {
            return wrong(
                "the depth of the ring",
                self.ring_depth,
                (1, RING_DEPTH_MAX),
            );
        }
        if self.workers_max > WORKERS_MAX || self.workers_min > self.workers_max {
            let limits = (0, self.workers_max.min(WORKERS_MAX));
            return wrong("the least number of workers", self.workers_min, limits);
        }
        Ok(())
    }
}
