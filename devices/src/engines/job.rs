//! The job of 2007 on an engine: random reads and writes of 4 KiB, half of each, so many at a time
//! and so many in all.

use super::account::Account;
use std::fs::File;
use std::io;
use std::sync::Arc;
use ugeom_engine::{Completion, Engine, Errno, FileId, Op, OpKind};
use ugeom_harness::{RunResult, Work};
use ugeom_machine::buffer::Buffer;
use ugeom_machine::clock;

/// Bytes of a request, as in 2007.
pub(super) const BLOCK_BYTES: u64 = 4096;

/// More requests are not held back to be handed over together. Fewer are, when fewer are under way:
/// what has run dry gets its next request at once.
const BATCH_MAX: usize = 8;

/// How far apart the numbers lie that make a block different from all others, bytes.
const STAMP_BYTES: usize = 512;

/// The memory that travels through the engine, and its number.
pub(super) type Memory = (Buffer, u32);

/// Blocks of random bytes, each different from the others every [`STAMP_BYTES`].
pub(super) fn memory(depth: u32, random: &mut fastrand::Rng) -> Vec<Memory> {
    let mut pattern = vec![0; BLOCK_BYTES as usize];
    random.fill(&mut pattern);
    let block = |number| {
        let mut buffer = Buffer::from_slice(&pattern);
        for piece in buffer.chunks_mut(STAMP_BYTES) {
            piece[..8].copy_from_slice(&random.u64(..).to_le_bytes());
        }
        (buffer, number)
    };
    (0..depth).map(block).collect()
}

/// The part of a file that is read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Its first block.
    pub first: u64,
    /// How many blocks it has.
    pub blocks: u64,
}

impl Part {
    /// A block of it, bytes from the beginning of the file.
    pub fn offset(self, random: &mut fastrand::Rng) -> u64 {
        (self.first + random.u64(..self.blocks)) * BLOCK_BYTES
    }
}

/// A request: what it is, and when it began and was handed over.
#[derive(Clone, Copy, Default)]
struct Request {
    write: bool,
    start_ns: u64,
    issued_ns: u64,
}

/// The job.
pub(super) struct EngineJob {
    engine: Box<dyn Engine<Memory>>,
    file: FileId,
    part: Part,
    random: fastrand::Rng,
    free: Vec<Memory>,
    requests: Vec<Request>,
    /// Those that were made and not handed over.
    held: Vec<u32>,
}

/// How far a run has come.
struct Course {
    left: u64,
    ended: u64,
    /// The clock when it was last read.
    now_ns: u64,
    /// Requests that had ended when the queue was full for the first time, and when that was.
    full: Option<(u64, u64)>,
    /// The same when there were requests to make for the last time.
    last: (u64, u64),
}

impl Course {
    fn new(count: u64) -> Self {
        let now_ns = clock::now_ns();
        Self {
            left: count,
            ended: 0,
            now_ns,
            full: None,
            last: (0, now_ns),
        }
    }

    /// Reads the clock; `in_flight` requests were under way since it was read before.
    fn look(&mut self, in_flight: usize, account: &mut Account) {
        let now_ns = clock::now_ns();
        account.seen(now_ns - self.now_ns, in_flight);
        self.now_ns = now_ns;
    }

    /// Requests that ended while the queue was kept full, and how long that was, ns.
    fn steady(&self) -> Option<(u64, u64)> {
        let (first, since_ns) = self.full.filter(|full| full.1 < self.last.1)?;
        Some((self.last.0 - first, self.last.1 - since_ns))
    }
}

impl EngineJob {
    /// A job on a part of `file`, with `depth` requests at a time.
    pub fn new(
        mut engine: Box<dyn Engine<Memory>>,
        file: &Arc<File>,
        depth: u32,
        part: Part,
        seed: u64,
    ) -> io::Result<Self> {
        let file = engine.register(Arc::clone(file))?;
        let mut random = fastrand::Rng::with_seed(seed);
        let free = memory(depth, &mut random);
        Ok(Self {
            engine,
            file,
            part,
            random,
            free,
            requests: vec![Request::default(); depth as usize],
            held: Vec::with_capacity(depth as usize),
        })
    }

    /// Makes so many requests. The first that fails ends it.
    pub fn run(&mut self, count: u64, account: &mut Account) -> Result<RunResult, Errno> {
        let mut course = Course::new(count);
        let begin_ns = course.now_ns;
        while course.ended < count {
            while course.left > 0
                && let Some(memory) = self.free.pop()
            {
                course.left -= 1;
                self.submit(memory, course.now_ns);
                let under_way = self.engine.in_flight() - self.held.len();
                if self.held.len() >= under_way.clamp(1, BATCH_MAX) {
                    self.hand_over(&mut course, account);
                }
            }
            self.hand_over(&mut course, account);
            if self.free.is_empty() {
                course.full.get_or_insert((course.ended, course.now_ns));
            }
            if course.left > 0 {
                course.last = (course.ended, course.now_ns);
            }
            self.reap(&mut course, account)?;
        }
        let wall_ns = clock::now_ns() - begin_ns;
        account.ran(wall_ns, course.steady());
        Ok(RunResult::taking(wall_ns).doing(Work::of(count * BLOCK_BYTES, count)))
    }

    fn submit(&mut self, memory: Memory, now_ns: u64) {
        let write = self.random.bool();
        self.held.push(memory.1);
        self.requests[memory.1 as usize] = Request {
            write,
            start_ns: now_ns,
            issued_ns: now_ns,
        };
        let op = Op {
            kind: if write {
                OpKind::Write { durable: false }
            } else {
                OpKind::Read
            },
            file: self.file,
            offset: self.part.offset(&mut self.random),
            length: BLOCK_BYTES,
        };
        self.engine.submit(op, memory);
    }

    fn hand_over(&mut self, course: &mut Course, account: &mut Account) {
        if self.held.is_empty() {
            return;
        }
        self.engine.flush_submissions();
        course.look(self.engine.in_flight(), account);
        for number in self.held.drain(..) {
            self.requests[number as usize].issued_ns = course.now_ns;
        }
    }

    /// Takes what has ended, after sleeping for it if there is nothing yet.
    fn reap(&mut self, course: &mut Course, account: &mut Account) -> Result<(), Errno> {
        let in_flight = self.engine.in_flight();
        let (free, requests) = (&mut self.free, &self.requests);
        let (mut failed, mut is_first) = (None, true);
        self.engine
            .reap(&mut |Completion { memory, result }: Completion<Memory>| {
                if std::mem::take(&mut is_first) {
                    course.look(in_flight, account);
                }
                let request = &requests[memory.1 as usize];
                let stamps = [request.start_ns, request.issued_ns, course.now_ns];
                account.ended(request.write, stamps);
                match result {
                    Ok(BLOCK_BYTES) => {}
                    Ok(_) => failed = Some(Errno::IO),
                    Err(errno) => failed = Some(errno),
                }
                free.push(memory);
                course.ended += 1;
            });
        if is_first {
            self.engine
                .wait(None)
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        }
        failed.map_or(Ok(()), Err)
    }
}
