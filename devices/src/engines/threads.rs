//! The job of 2007 without any library: a thread for each request, which makes one blocking call
//! after another.

use super::account::Account;
use super::job::{BLOCK_BYTES, FilePart};
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use ugeom_harness::HarnessError;
use ugeom_harness::{RunResult, Work};
use ugeom_load::Failure;
use ugeom_load::door::{Calls, Kind, Request, file_calls};
use ugeom_load::drive::{Done, one_by_one};
use ugeom_load::recorder::{Recorder, Times};
use ugeom_machine::buffer::Buffer;
use ugeom_machine::clock;
use ugeom_machine::mutex::{Condvar, Mutex};
use ugeom_measure::AtomicHistogram;

/// The stack of a thread that makes one call after another, bytes.
const STACK_BYTES: usize = 64 << 10;

/// State shared by the threads of a run.
struct Shared<'a> {
    file: &'a File,
    part: FilePart,
    /// Requests that no thread has taken yet.
    left: AtomicU64,
    gate: Gate,
    /// How long reads and writes took. One for all: a thousand threads with histograms of their
    /// own would fill the caches with them.
    took: [AtomicHistogram; 2],
}

/// Makes `count` requests with so many threads on a part of a file.
///
/// # Errors
/// When a thread cannot be started, or a call fails.
pub(super) fn by_threads(
    case: &str,
    file: &File,
    (threads, part, seed): (u32, FilePart, u64),
    count: u64,
    account: &mut Account,
) -> Result<RunResult, HarnessError> {
    let shared = Shared {
        file,
        part,
        left: AtomicU64::new(count),
        gate: Gate::default(),
        took: [AtomicHistogram::new(), AtomicHistogram::new()],
    };
    let trouble = |problem: String| HarnessError::Thread {
        case: case.to_owned(),
        problem,
    };
    let (parts, begin_ns) = std::thread::scope(|scope| {
        let mut handles = Vec::new();
        for number in 0..threads {
            let shared = &shared;
            let work = move || shared.calls(seed ^ u64::from(number) << 32);
            let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
            match builder.spawn_scoped(scope, work) {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    // Those that wait at the gate find nothing to do behind it.
                    shared.left.store(0, Ordering::Relaxed);
                    shared.gate.open();
                    return Err(trouble(format!("thread {number} of {threads}: {error}")));
                }
            }
        }
        shared.gate.open();
        let begin_ns = clock::now_ns();
        let ended: Result<Vec<_>, _> = handles
            .into_iter()
            .map(|handle| handle.join().map_err(|_| trouble("it panicked".to_owned())))
            .collect();
        Ok((ended?, begin_ns))
    })?;
    let wall_ns = clock::now_ns() - begin_ns;
    for part in parts {
        part.map_err(|failure| failure.in_case(case))?;
    }
    account.ran(wall_ns, None);
    for (write, took) in [false, true].into_iter().zip(&shared.took) {
        account.called(write, &took.snapshot());
    }
    Ok(RunResult::taking(wall_ns).doing(Work::of(count * BLOCK_BYTES, count)))
}

impl Shared<'_> {
    /// The work of one thread.
    fn calls(&self, seed: u64) -> Result<Done, Failure> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut buffer = Buffer::new(BLOCK_BYTES as usize);
        random.fill(&mut buffer);
        let mut door = Calls::new(buffer, file_calls(self.file));
        let mut requests = self.part.requests(random);
        let take = |left: u64| left.checked_sub(1);
        let mut taken = || {
            let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
            self.left.try_update(set, fetch, take).ok()?;
            requests.next()
        };
        self.gate.wait();
        one_by_one(&mut door, std::iter::from_fn(&mut taken), &mut { self })
    }
}

impl Recorder for &Shared<'_> {
    fn now(&mut self) -> u64 {
        clock::now_ns()
    }

    fn took(&mut self, request: &Request, times: Times) {
        let write = usize::from(request.kind == Kind::Write);
        self.took[write].record_shared(times.ended - times.begun);
    }
}

/// Lets threads begin together once all of them are there.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn open(&self) {
        *self.is_open.lock() = true;
        self.changed.notify_all();
    }

    fn wait(&self) {
        let is_open = self.is_open.lock();
        drop(self.changed.wait_while(is_open, |is_open| !*is_open));
    }
}
