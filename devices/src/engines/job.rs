//! The job of 2007 on an engine: random reads and writes of 4 KiB, half of each, so many at a time
//! and so many in all.

use super::account::Account;
use std::fs::File;
use std::sync::Arc;
use ugeom_engine::{Engine, Errno};
use ugeom_harness::{RunResult, Work};
use ugeom_load::door::{EngineDoor, Kind, Memory, Request};
use ugeom_load::drive::Queue;
use ugeom_load::places::Random;
use ugeom_load::recorder::{Recorder, Times};
use ugeom_load::{Failure, Mixed};
use ugeom_machine::buffer::Buffer;
use ugeom_machine::clock;

/// Bytes of a request, as in 2007.
pub(super) const BLOCK_BYTES: u64 = 4096;

/// How far apart the numbers lie that make a block different from all others, bytes.
const STAMP_BYTES: usize = 512;

/// Blocks of random bytes, each different from the others every [`STAMP_BYTES`].
pub(super) fn memory(depth: u32, random: &mut fastrand::Rng) -> Vec<Buffer> {
    let mut pattern = vec![0; BLOCK_BYTES as usize];
    random.fill(&mut pattern);
    let block = |_| {
        let mut buffer = Buffer::from_slice(&pattern);
        for piece in buffer.chunks_mut(STAMP_BYTES) {
            piece[..8].copy_from_slice(&random.u64(..).to_le_bytes());
        }
        buffer
    };
    (0..depth).map(block).collect()
}

/// The part of a file that is read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FilePart {
    pub first: u64,
    /// How many blocks it has.
    pub blocks: u64,
}

impl FilePart {
    /// Random blocks of it, half of which are written.
    pub fn requests(self, mut random: fastrand::Rng) -> Mixed<Random> {
        let kinds = random.fork();
        let places = Random::new(self.first * BLOCK_BYTES, BLOCK_BYTES, self.blocks, random);
        Mixed::new(places, BLOCK_BYTES as u32, 50, kinds)
    }
}

pub(super) struct EngineJob {
    queue: Queue<EngineDoor>,
    requests: Mixed<Random>,
}

/// How far a run has come.
struct Course<'a> {
    account: &'a mut Account,
    /// The clock when it was last read.
    now_ns: u64,
    /// Requests that had ended when the queue was full for the first time, and when that was.
    full: Option<(u64, u64)>,
    /// The same when there were requests to make for the last time.
    last: (u64, u64),
}

impl Course<'_> {
    /// Requests that ended while the queue was kept full, and how long that was, ns.
    fn steady(&self) -> Option<(u64, u64)> {
        let (first, since_ns) = self.full.filter(|full| full.1 < self.last.1)?;
        Some((self.last.0 - first, self.last.1 - since_ns))
    }
}

impl Recorder for Course<'_> {
    fn now(&mut self) -> u64 {
        clock::now_ns()
    }

    fn took(&mut self, request: &Request, times: Times) {
        let write = request.kind == Kind::Write;
        let stamps = [times.begun, times.issued, times.ended];
        self.account.ended(write, stamps);
    }

    fn seen(&mut self, now_ns: u64, in_flight: usize) {
        self.account.seen(now_ns - self.now_ns, in_flight);
        self.now_ns = now_ns;
    }

    fn filled(&mut self, is_full: bool, has_more: bool, done: u64) {
        if is_full {
            self.full.get_or_insert((done, self.now_ns));
        }
        if has_more {
            self.last = (done, self.now_ns);
        }
    }
}

impl EngineJob {
    /// A job on a part of `file`, with `depth` requests at a time.
    pub fn new(
        engine: Box<dyn Engine<Memory>>,
        file: &Arc<File>,
        depth: u32,
        part: FilePart,
        seed: u64,
    ) -> Result<Self, Errno> {
        let mut random = fastrand::Rng::with_seed(seed);
        let buffers = memory(depth, &mut random);
        let door = EngineDoor::with(engine, buffers, [Arc::clone(file)])?;
        Ok(Self {
            queue: Queue::new(door, depth),
            requests: part.requests(random),
        })
    }

    /// Makes so many requests. The first that fails ends it.
    pub fn run(&mut self, count: u64, account: &mut Account) -> Result<RunResult, Failure> {
        let begin_ns = clock::now_ns();
        let mut course = Course {
            account,
            now_ns: begin_ns,
            full: None,
            last: (0, begin_ns),
        };
        let requests = self.requests.by_ref().take(count as usize);
        let done = self.queue.run(requests, &mut course)?;
        let wall_ns = clock::now_ns() - begin_ns;
        let steady = course.steady();
        account.ran(wall_ns, steady);
        Ok(RunResult::taking(wall_ns).doing(Work::of(done.bytes, done.requests)))
    }
}
