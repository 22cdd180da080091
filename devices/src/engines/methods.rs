//! The methods of keeping many requests in flight that are compared.

use ugeom_engine::{
    Choice, Engine, EngineError, EngineOptions, GuasiOptions, Workers, open_engine_with,
};
use ugeom_guasi::Backend;
use ugeom_load::door::Memory;

/// GUASI's workers in 2007: fio started it with at least 32 of them, and as many as requests at a
/// time, but no more than 2000.
const WORKERS: (u32, u32) = (32, 2000);

/// More plain threads are not started: their requests wait in the program and not in the kernel.
pub(super) const THREADS_MAX: u32 = 1000;

/// A method of keeping many requests in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// The kernel's asynchronous I/O of 2002.
    Libaio,
    /// The kernel's io_uring, of 2019.
    IoUring,
    /// GUASI, whose worker threads block in the calls.
    Workers,
    /// GUASI, which hands calls to an io_uring.
    Ring,
    /// A thread for each request, without any library.
    Threads,
}

impl Method {
    /// All, in the order of reports. The first is the base of the others.
    pub const ALL: [Self; 5] = [
        Self::Libaio,
        Self::IoUring,
        Self::Workers,
        Self::Ring,
        Self::Threads,
    ];

    /// The name in cases, figures and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Libaio => "libaio",
            Self::IoUring => "io_uring",
            Self::Workers => "guasi-workers",
            Self::Ring => "guasi-ring",
            Self::Threads => "threads",
        }
    }

    /// The least share of libaio's rate that it is to reach, the lower end of the interval; none
    /// where nothing was set.
    pub fn goal(self) -> Option<f64> {
        match self {
            Self::Workers => Some(0.9),
            Self::Ring => Some(1.0),
            Self::Libaio | Self::IoUring | Self::Threads => None,
        }
    }

    /// How many threads make the calls, for a number of requests at a time.
    pub fn threads(self, depth: u32) -> u32 {
        match self {
            Self::Workers => depth.clamp(WORKERS.0, WORKERS.1),
            Self::Threads => depth.min(THREADS_MAX),
            Self::Libaio | Self::IoUring | Self::Ring => 0,
        }
    }

    /// The engine; none for plain threads, which have none.
    ///
    /// # Errors
    /// Why the system has no such engine.
    pub fn open(self, depth: u32) -> Result<Option<Box<dyn Engine<Memory>>>, EngineError> {
        let (choice, backend) = match self {
            Self::Libaio => (Choice::Libaio, Backend::Workers),
            Self::IoUring => (Choice::IoUring, Backend::Workers),
            Self::Workers => (Choice::Guasi, Backend::Workers),
            Self::Ring => (Choice::Guasi, Backend::Ring),
            Self::Threads => return Ok(None),
        };
        // The ring is on its own: what it leaves to workers is not in this job.
        let workers = match self {
            Self::Ring => None,
            _ => Some(Workers {
                min: WORKERS.0,
                max: self.threads(depth).max(WORKERS.0),
            }),
        };
        let guasi = GuasiOptions {
            workers,
            backend,
            ..GuasiOptions::default()
        };
        let opened = open_engine_with(choice, EngineOptions::new(depth, guasi))?;
        Ok(Some(opened.0))
    }
}
