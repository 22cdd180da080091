//! Threads that begin together, each on a core of its own where that is asked for.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use ugeom_harness::rounds::CROWDED_NS;
use ugeom_harness::{HarnessError, Seats, crew};
use ugeom_machine::clock;
use ugeom_machine::cpu::{self, Affinity};

/// Where the threads of a case run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cores {
    /// Where the system puts them: right when other threads work for them, too.
    Any,
    /// Each on a core of its own, when there are enough: right for how well work divides. Left to
    /// itself, the system lets two new threads share a core for some milliseconds.
    OneEach,
}

impl Cores {
    /// Places for so many threads; none where the system chooses.
    pub(crate) fn seats(self, threads: usize) -> Option<Seats> {
        match self {
            Self::Any => None,
            Self::OneEach => Some(Seats::of(threads)),
        }
    }
}

/// The work of a thread, with its first and its last moment.
pub struct Span<T> {
    start_ns: u64,
    end_ns: u64,
    done: T,
}

impl<T> Span<T> {
    /// Takes the time of some work.
    ///
    /// # Errors
    /// The error of the work.
    #[inline(always)]
    pub fn of(work: impl FnOnce() -> Result<T, HarnessError>) -> Result<Self, HarnessError> {
        let start_ns = clock::now_ns();
        let done = work()?;
        Ok(Self {
            start_ns,
            end_ns: clock::now_ns(),
            done,
        })
    }
}

/// Lets a thread do `work` on each item, this thread on the first one, and begins on all together.
/// Returns the time from the first start to the last end, ns, and the work of each.
///
/// # Errors
/// The error of the first work, or that a thread could not be started, or panicked.
pub fn together<I: Send, T: Send>(
    name: &str,
    seats: Option<&Seats>,
    items: impl ExactSizeIterator<Item = I>,
    work: impl Fn(usize, I) -> Result<Span<T>, HarnessError> + Sync,
) -> Result<(u64, Vec<T>), HarnessError> {
    let start = Start::new(items.len(), seats);
    let one = |(index, item): (usize, I)| {
        let before = start.wait(index);
        let span = work(index, item);
        // A thread that cannot be put back stays where it is: no figure is wrong for that.
        let _ = before.map(|before| before.apply());
        span
    };
    let one = &one;
    let spans = std::thread::scope(|scope| {
        let mut numbered = items.enumerate();
        let own = numbered.next();
        let others = crew::start(scope, numbered, one)?;
        let mut spans: Vec<_> = own.into_iter().map(|own| Some(one(own))).collect();
        spans.extend(others.join());
        Ok(spans)
    });
    let (mut first_ns, mut last_ns) = (u64::MAX, 0);
    let mut all = Vec::new();
    for span in spans.map_err(crew::not_started(name))? {
        let panicked = || HarnessError::Thread {
            case: name.to_owned(),
            problem: "a worker panicked".to_owned(),
        };
        let span = span.ok_or_else(panicked)??;
        first_ns = first_ns.min(span.start_ns);
        last_ns = last_ns.max(span.end_ns);
        all.push(span.done);
    }
    Ok((last_ns.saturating_sub(first_ns), all))
}

/// Lets several threads begin at the same moment.
struct Start {
    /// The cores to run on, one a thread; empty when the system chooses.
    cores: Vec<usize>,
    threads: usize,
    arrived: AtomicUsize,
    /// When each thread was last seen awake, ns.
    awake_ns: Vec<AtomicU64>,
    /// One waited so long that other programs have the cores: to try again takes as long again.
    crowded: AtomicBool,
    barrier: Barrier,
}

/// Threads begin together when their last readings of the clock are no further apart, ns.
const SKEW_NS: u64 = 20_000;

/// So often they try: on a busy machine one that waits may lose its core before the last arrives.
const STARTS_MAX: usize = 3;

impl Start {
    fn new(threads: usize, seats: Option<&Seats>) -> Self {
        Self {
            cores: seats.map(Seats::cores).unwrap_or_default(),
            threads,
            arrived: AtomicUsize::new(0),
            awake_ns: (0..threads).map(|_| AtomicU64::new(0)).collect(),
            crowded: AtomicBool::new(false),
            barrier: Barrier::new(threads),
        }
    }

    /// Waits for the others; returns where the thread was allowed to run before.
    fn wait(&self, index: usize) -> Option<Affinity> {
        let Some(core) = self.cores.get(index) else {
            self.barrier.wait();
            return None;
        };
        let before = cpu::pin(&[*core]).ok();
        // Each has a core of its own, so waiting awake takes no core from another, and none starts
        // late because it had to be woken. Where another program took the core of one that waited,
        // that one starts milliseconds after the last, so that they wait once more, all awake now.
        for attempt in 0..STARTS_MAX {
            let began_ns = clock::now_ns();
            self.gather(3 * attempt + 1);
            if clock::now_ns().saturating_sub(began_ns) > CROWDED_NS {
                self.crowded.store(true, Ordering::Release);
            }
            if let Some(awake_ns) = self.awake_ns.get(index) {
                awake_ns.store(clock::now_ns(), Ordering::Release);
            }
            self.gather(3 * attempt + 2);
            if self.crowded.load(Ordering::Acquire) {
                break;
            }
            let seen = || self.awake_ns.iter().map(|ns| ns.load(Ordering::Acquire));
            let skew_ns = seen().max().unwrap_or(0) - seen().min().unwrap_or(0);
            self.gather(3 * attempt + 3);
            if skew_ns <= SKEW_NS {
                break;
            }
        }
        before
    }

    /// Waits until all threads have come for the `nth` time.
    fn gather(&self, nth: usize) {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        while self.arrived.load(Ordering::Acquire) < nth * self.threads {
            std::hint::spin_loop();
        }
    }
}
