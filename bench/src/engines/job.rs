//! The job of 2007: random reads and writes of 4 KiB, half of each, so many at a time and so many
//! in all, on an engine or by one thread for each request.

use super::subject::{Latency, Side};
use crate::BenchError;
use crate::harness::{RunResult, Work};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use ugeom_engine::{Completion, Engine, Errno, FileId, Kind, Op};
use ugeom_machine::buffer::Buffer;
use ugeom_machine::clock;
use ugeom_measure::Histogram;

/// Bytes of a request, as in 2007.
pub(super) const BLOCK_BYTES: u64 = 4096;

/// The stack of a thread that makes one call after another, bytes.
const STACK_BYTES: usize = 64 << 10;

/// What the requests of one kind took, over all runs of a cell.
#[derive(Default)]
pub(super) struct Times {
    submitting: Histogram,
    completing: Histogram,
    whole: Histogram,
}

impl Times {
    fn record(&mut self, start_ns: u64, issued_ns: u64, end_ns: u64) {
        self.submitting.record(issued_ns.saturating_sub(start_ns));
        self.completing.record(end_ns.saturating_sub(issued_ns));
        self.whole.record(end_ns.saturating_sub(start_ns));
    }

    fn merge(&mut self, other: &Self) {
        self.submitting.merge(&other.submitting);
        self.completing.merge(&other.completing);
        self.whole.merge(&other.whole);
    }

    fn side(&self) -> Side {
        Side {
            requests: self.whole.count(),
            submitting: Latency::of(&self.submitting),
            completing: Latency::of(&self.completing),
            whole: Latency::of(&self.whole),
        }
    }
}

/// What a cell did, over all its runs.
#[derive(Default)]
pub(super) struct Account {
    reads: Times,
    writes: Times,
    wall_ns: u64,
    /// Requests that ended while the queue was kept full, and how long that was, ns.
    steady: (u64, u64),
    /// The sum of the requests in flight times how long they were, ns.
    in_flight_ns: u128,
}

impl Account {
    pub fn sides(&self) -> (Side, Side) {
        (self.reads.side(), self.writes.side())
    }

    /// Requests a second while the queue was kept full; none where no such time was.
    pub fn steady_per_second(&self) -> Option<f64> {
        let (requests, ns) = self.steady;
        (requests > 0 && ns > 0).then(|| requests as f64 * 1e9 / ns as f64)
    }

    /// The mean number in flight, seen by looking; none where nobody looked.
    pub fn in_flight(&self) -> Option<f64> {
        (self.in_flight_ns > 0).then(|| self.in_flight_ns as f64 / self.wall_ns.max(1) as f64)
    }

    /// The same by Little's law: requests a second times the mean time of one.
    pub fn in_flight_by_law(&self) -> f64 {
        let sum = self.reads.whole.sum() + self.writes.whole.sum();
        sum as f64 / self.wall_ns.max(1) as f64
    }

    fn of(&mut self, write: bool) -> &mut Times {
        if write {
            &mut self.writes
        } else {
            &mut self.reads
        }
    }
}

/// A request: its memory, and when it began.
pub(super) struct Request {
    write: bool,
    start_ns: u64,
    issued_ns: u64,
}

/// The memory that travels through the engine.
pub(super) type Memory = (Buffer, u32);

/// The job on an engine.
pub(super) struct Job {
    engine: Box<dyn Engine<Memory>>,
    file: FileId,
    depth: usize,
    blocks: u64,
    random: fastrand::Rng,
    free: Vec<Memory>,
    requests: Vec<Request>,
}

impl Job {
    /// A job on `file`, which has so many blocks, with `depth` requests at a time.
    pub fn new(
        mut engine: Box<dyn Engine<Memory>>,
        file: &Arc<File>,
        depth: u32,
        blocks: u64,
        seed: u64,
    ) -> io::Result<Self> {
        let file = engine.register(Arc::clone(file))?;
        let mut random = fastrand::Rng::with_seed(seed);
        let memory = |number| {
            let mut buffer = Buffer::new(BLOCK_BYTES as usize);
            random.fill(&mut buffer);
            (buffer, number)
        };
        let free = (0..depth).map(memory).collect();
        let request = |_| Request {
            write: false,
            start_ns: 0,
            issued_ns: 0,
        };
        Ok(Self {
            engine,
            file,
            depth: depth as usize,
            blocks,
            random,
            free,
            requests: (0..depth).map(request).collect(),
        })
    }

    /// Makes so many requests, random or (`mixed` false) reads only. The first that fails ends it.
    pub fn run(
        &mut self,
        count: u64,
        mixed: bool,
        account: &mut Account,
    ) -> Result<RunResult, Errno> {
        let begin_ns = clock::now_ns();
        let (mut left, mut ended, mut looked_ns) = (count, 0, begin_ns);
        let (mut full, mut last): (Option<(u64, u64)>, _) = (None, (0, begin_ns));
        let mut issued = Vec::with_capacity(self.depth);
        while ended < count {
            while left > 0 {
                let Some(memory) = self.free.pop() else { break };
                left -= 1;
                issued.push(memory.1);
                self.submit(memory, mixed);
            }
            self.engine.flush_submissions();
            let now_ns = clock::now_ns();
            for number in issued.drain(..) {
                self.requests[number as usize].issued_ns = now_ns;
            }
            if self.free.is_empty() {
                full.get_or_insert((ended, now_ns));
            }
            if left > 0 {
                last = (ended, now_ns);
            }
            account.in_flight_ns +=
                u128::from(now_ns - looked_ns) * self.engine.in_flight() as u128;
            looked_ns = now_ns;
            ended += self.reap(account)?;
        }
        let wall_ns = clock::now_ns() - begin_ns;
        account.wall_ns += wall_ns;
        if let Some((first, since_ns)) = full.filter(|full| full.1 < last.1) {
            account.steady.0 += last.0 - first;
            account.steady.1 += last.1 - since_ns;
        }
        Ok(RunResult::taking(wall_ns).doing(Work::of(count * BLOCK_BYTES, count)))
    }

    fn submit(&mut self, memory: Memory, mixed: bool) {
        let write = mixed && self.random.bool();
        let request = &mut self.requests[memory.1 as usize];
        request.write = write;
        request.start_ns = clock::now_ns();
        let op = Op {
            kind: if write {
                Kind::Write { durable: false }
            } else {
                Kind::Read
            },
            file: self.file,
            offset: self.random.u64(..self.blocks) * BLOCK_BYTES,
            length: BLOCK_BYTES,
        };
        self.engine.submit(op, memory);
    }

    /// Takes what has ended, after sleeping for it if there is nothing yet.
    fn reap(&mut self, account: &mut Account) -> Result<u64, Errno> {
        let (free, requests) = (&mut self.free, &self.requests);
        let (mut ended, mut failed) = (0, None);
        let mut end_ns = None;
        let mut done = |Completion { memory, result }: Completion<Memory>| {
            let end_ns = *end_ns.get_or_insert_with(clock::now_ns);
            let request = &requests[memory.1 as usize];
            let issued_ns = request.issued_ns.max(request.start_ns);
            account
                .of(request.write)
                .record(request.start_ns, issued_ns, end_ns);
            match result {
                Ok(BLOCK_BYTES) => {}
                Ok(_) => failed = Some(Errno::IO),
                Err(errno) => failed = Some(errno),
            }
            free.push(memory);
            ended += 1;
        };
        self.engine.reap(&mut done);
        if ended == 0 {
            self.engine
                .wait(None)
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        }
        failed.map_or(Ok(ended), Err)
    }
}

/// One call after another in each of `threads` threads: `count` calls in all.
pub(super) fn by_threads(
    cell: &str,
    file: &File,
    (threads, blocks, seed): (u32, u64, u64),
    count: u64,
    account: &mut Account,
) -> Result<RunResult, BenchError> {
    let left = AtomicU64::new(count);
    let gate = Gate::default();
    let trouble = |problem: String| BenchError::Thread {
        cell: cell.to_owned(),
        problem,
    };
    let (parts, begin_ns) = std::thread::scope(|scope| {
        let mut handles = Vec::new();
        for number in 0..threads {
            let (left, gate) = (&left, &gate);
            let work = move || calls(file, blocks, seed ^ u64::from(number) << 32, left, gate);
            let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
            match builder.spawn_scoped(scope, work) {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    // Those that wait at the gate find nothing to do behind it.
                    left.store(0, Ordering::Relaxed);
                    gate.open();
                    return Err(trouble(format!("thread {number} of {threads}: {error}")));
                }
            }
        }
        gate.open();
        let begin_ns = clock::now_ns();
        let ended: Result<Vec<_>, _> = handles
            .into_iter()
            .map(|handle| handle.join().map_err(|_| trouble("it panicked".to_owned())))
            .collect();
        Ok((ended?, begin_ns))
    })?;
    let wall_ns = clock::now_ns() - begin_ns;
    account.wall_ns += wall_ns;
    for part in parts {
        let (reads, writes) = part.map_err(BenchError::os(cell, "random reads and writes"))?;
        account.reads.merge(&reads);
        account.writes.merge(&writes);
    }
    Ok(RunResult::taking(wall_ns).doing(Work::of(count * BLOCK_BYTES, count)))
}

/// Lets threads begin together once all of them are there.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn open(&self) {
        *self.is_open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    fn wait(&self) {
        let is_open = self.is_open.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_while(is_open, |is_open| !*is_open));
    }
}

/// What one thread does.
fn calls(
    file: &File,
    blocks: u64,
    seed: u64,
    left: &AtomicU64,
    gate: &Gate,
) -> io::Result<(Times, Times)> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut buffer = Buffer::new(BLOCK_BYTES as usize);
    random.fill(&mut buffer);
    let (mut reads, mut writes) = (Times::default(), Times::default());
    gate.wait();
    let take = |left: u64| left.checked_sub(1);
    while left
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
        .is_ok()
    {
        let offset = random.u64(..blocks) * BLOCK_BYTES;
        let start_ns = clock::now_ns();
        let times = if random.bool() {
            file.write_all_at(&buffer, offset)?;
            &mut writes
        } else {
            file.read_exact_at(&mut buffer, offset)?;
            &mut reads
        };
        times.record(start_ns, start_ns, clock::now_ns());
    }
    Ok((reads, writes))
}
