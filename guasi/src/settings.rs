//! What a context is to be like.

use std::time::Duration;

use crate::context::{Context, GuasiError};

/// The most requests that a context can be made for.
pub const REQUESTS_MAX: u32 = 1 << 22;

/// The most priorities.
pub const PRIORITIES_MAX: u32 = 1 << 10;

/// The most workers: what 24 bits can number, and no system has as many threads.
pub(crate) const WORKERS_MAX: u32 = (1 << 24) - 1;

/// How long an idle worker above the minimum waits for work before it leaves.
pub const IDLE: Duration = Duration::from_secs(15);

/// How long who waits looks out before it sleeps: about what a sleep and a wake-up cost in a
/// virtual machine, so that waiting never costs more than twice what the better choice would have.
pub const SPIN: Duration = Duration::from_micros(50);

/// Makes a [`Context`].
#[derive(Clone, Debug)]
pub struct Settings {
    pub(crate) workers_min: u32,
    pub(crate) workers_max: u32,
    pub(crate) priorities: u32,
    pub(crate) requests: u32,
    pub(crate) idle: Duration,
    pub(crate) spin: Duration,
    pub(crate) stack_bytes: usize,
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
            stack_bytes: 128 << 10,
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

    /// For how long a worker without work, and a thread that fetches, looks out before it sleeps
    /// ([`SPIN`] unless set; zero: not at all). Each time that it goes to sleep has cost at most
    /// this much processor time.
    #[must_use]
    pub fn spin(mut self, spin: Duration) -> Settings {
        self.spin = spin;
        self
    }

    /// The stack of a worker (128 KiB unless set; the system's minimum at least).
    #[must_use]
    pub fn stack_bytes(mut self, bytes: usize) -> Settings {
        self.stack_bytes = bytes;
        self
    }

    /// Makes the context and starts its least number of workers.
    ///
    /// # Errors
    /// Settings out of range, workers that cannot be started.
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
        if self.workers_max > WORKERS_MAX || self.workers_min > self.workers_max {
            let limits = (0, self.workers_max.min(WORKERS_MAX));
            return wrong("the least number of workers", self.workers_min, limits);
        }
        Ok(())
    }
}
