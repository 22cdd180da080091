//! The engine `simulated`, for tests: real files behind a disk that does everything a disk may do.
//!
//! A [`Simulation`] is one machine: a seed, a clock that only moves when operations end, and the
//! state of the disk's cache. Its engines complete operations in an order that the seed decides,
//! cut transfers short, interrupt calls and fail them. A write that has completed and was not
//! flushed lies in the cache; one in flight has reached the disk in some of its sectors.
//! [`Simulation::crash`] takes the power away: unflushed writes are lost, sector by sector, as
//! the seed decides, and all operations fail until [`Simulation::restart`].
//!
//! ```text
//!   submit --> backlog --> due at now + delay --reap--> clock moves on --> step on the file
//!                             |                                              |
//!                  (a write: some sectors now)               (old sectors kept until a flush)
//! ```
//!
//! The same seed and the same operations give the same run. Nothing sleeps. Limits of the model:
//! sectors have [`SECTOR_BYTES`] and are never torn themselves; a file's length, discards and
//! zeroed ranges are durable at once; only regular files lose anything.

mod cache;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use ugeom_machine::mutex::Mutex;

use rustix::fs::OFlags;
use ugeom_machine::buffer::{IoMemory, Segment};

use crate::calls;
use crate::op::{Completion, Engine, Errno, FileId, Op, Ticket};
use crate::progress::{Call, Step};
use crate::queue::{Queue, by_queue};
use cache::Cache;
pub use cache::{Crash, SECTOR_BYTES};

/// The faults of a simulated disk, and its latency.
#[derive(Clone, Debug)]
pub struct Faults {
    /// Decides everything that is left to chance.
    pub seed: u64,
    /// How long a call takes, in simulated nanoseconds.
    pub delay_ns: RangeInclusive<u64>,
    /// The probability that a transfer of more than a sector is short.
    pub short: f64,
    /// The probability that a call is interrupted (EINTR) or put off (EAGAIN).
    pub interrupted: f64,
    /// The probability that a call fails (EIO).
    pub failed: f64,
}

impl Default for Faults {
    /// Seed 0; 50 to 150 us; a tenth of all transfers short, a tenth of all calls interrupted,
    /// none failed.
    fn default() -> Self {
        Faults {
            seed: 0,
            delay_ns: 50_000..=150_000,
            short: 0.1,
            interrupted: 0.1,
            failed: 0.0,
        }
    }
}

/// A machine that engines run on. Clones are the same machine.
#[derive(Clone)]
pub struct Simulation {
    world: Arc<Mutex<World>>,
}

struct World {
    faults: Faults,
    random: fastrand::Rng,
    now_ns: u64,
    /// There is no power.
    off: bool,
    /// Number of losses of power: calls from before one have no effect after it.
    crashes: u64,
    /// Counts calls, to tell which writes a flush covers.
    calls: u64,
    cache: Cache,
}

impl Simulation {
    /// A machine with an empty cache at time 0.
    pub fn new(faults: Faults) -> Simulation {
        let world = World {
            random: fastrand::Rng::with_seed(faults.seed),
            faults,
            now_ns: 0,
            off: false,
            crashes: 0,
            calls: 0,
            cache: Cache::default(),
        };
        Simulation {
            world: Arc::new(Mutex::new(world)),
        }
    }

    /// An engine with at most `depth` operations on the disk at a time.
    #[must_use]
    pub fn engine<M: IoMemory + 'static>(&self, depth: u32) -> SimulatedEngine<M> {
        SimulatedEngine {
            simulation: self.clone(),
            queue: Queue::new(depth.max(1)),
            due: BinaryHeap::new(),
        }
    }

    /// The simulated time, nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.world.lock().now_ns
    }

    /// Takes the power away, and returns the lost writes. Operations in flight, and all later ones,
    /// fail with EIO.
    ///
    /// # Errors
    /// When the files cannot be put into the state that the disk would be in.
    pub fn crash(&self) -> io::Result<Crash> {
        let world = &mut *self.world.lock();
        world.off = true;
        world.crashes += 1;
        world.cache.lose(&mut world.random)
    }

    /// Gives the power back.
    pub fn restart(&self) {
        self.world.lock().off = false;
    }
}

/// When a call ends. Ordered by time, then by the order of submission.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at_ns: u64,
    call: u64,
    index: u32,
    crashes: u64,
}

/// Runs operations on a simulated disk.
pub struct SimulatedEngine<M: IoMemory + 'static> {
    simulation: Simulation,
    queue: Queue<M>,
    due: BinaryHeap<Reverse<Due>>,
}

impl<M: IoMemory + 'static> SimulatedEngine<M> {
    /// Puts the next step of an operation on the disk.
    fn launch(&mut self, index: u32) {
        let file = self.queue.table.slot(index).op.file;
        let file = Arc::clone(self.queue.files.held(file).file());
        let Some(prepared) = self.queue.prepare(index) else { return };
        let world = &mut *self.simulation.world.lock();
        world.calls += 1;
        let delay_ns = world.random.u64(world.faults.delay_ns.clone());
        if !world.off && matches!(prepared.step.call, Call::Write { .. }) {
            // SAFETY: the pieces are alive and no other code's while the operation is in the queue.
            let bytes = unsafe { gathered(prepared.pieces) };
            // A write that fails as a whole fails when it is submitted.
            let _ = world.write_some(&file, prepared.step.offset, &bytes);
        }
        self.due.push(Reverse(Due {
            at_ns: world.now_ns.saturating_add(delay_ns),
            call: world.calls,
            index,
            crashes: world.crashes,
        }));
        self.queue.handed_on(index);
    }

    /// Makes the call that was due.
    fn perform(&mut self, due: &Due) {
        let file = self.queue.table.slot(due.index).op.file;
        let file = Arc::clone(self.queue.files.held(file).file());
        let asked = self.queue.asked(due.index);
        let world = &mut *self.simulation.world.lock();
        world.now_ns = world.now_ns.max(due.at_ns);
        let result = match asked {
            Some((step, pieces)) if !world.off && world.crashes == due.crashes => {
                // SAFETY: as in `launch`.
                unsafe { world.perform(&file, due.call, &step, pieces) }
            }
            _ => Err(Errno::IO),
        };
        self.queue.absorb(due.index, result);
    }
}

/// The bytes of the pieces, one after another.
///
/// # Safety
/// The pieces are alive, and accessed by no other code.
unsafe fn gathered(pieces: &[Segment]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for piece in pieces {
        // SAFETY: the caller's promise; segments are initialised (contract of `IoMemory`).
        bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(piece.base, piece.len) });
    }
    bytes
}

impl World {
    fn chance(&mut self, probability: f64) -> bool {
        self.random.f64() < probability
    }

    /// A write is on its way: a random part of its sectors arrives now. For files that keep their
    /// length, and without O_DIRECT's rules, nothing else can see that.
    fn write_some(&mut self, file: &Arc<File>, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let access = rustix::fs::fcntl_getfl(file)?;
        if !access.intersects(OFlags::WRONLY | OFlags::RDWR) {
            return Ok(());
        }
        let end = file.metadata()?.len();
        let sectors = cache::sectors(offset, bytes.len() as u64);
        for (start, range) in sectors {
            if start + range.len() as u64 <= end && self.random.bool() {
                self.cache.write(file, self.calls, start, &bytes[range])?;
            }
        }
        Ok(())
    }

    /// # Safety
    /// The pieces are those of the step, alive, and accessed by no other code.
    unsafe fn perform(
        &mut self,
        file: &Arc<File>,
        call: u64,
        step: &Step,
        pieces: &[Segment],
    ) -> Result<u64, Errno> {
        if self.chance(self.faults.interrupted) {
            let interrupted = [Errno::INTR, Errno::AGAIN];
            return Err(interrupted[usize::from(self.random.bool())]);
        }
        if self.chance(self.faults.failed) {
            return Err(Errno::IO);
        }
        let mut shorter = Vec::new();
        let (mut step, mut pieces) = (*step, pieces);
        let transfer = matches!(step.call, Call::Read | Call::Write { .. });
        if transfer && step.length > SECTOR_BYTES && self.chance(self.faults.short) {
            let sectors = (step.length - 1) / SECTOR_BYTES;
            step.length = self.random.u64(1..=sectors) * SECTOR_BYTES;
            shorter.extend(cut(pieces, step.length));
            pieces = &shorter;
        }
        if matches!(step.call, Call::Write { .. }) {
            self.cache.keep(file, self.calls, step.offset, step.length);
        }
        // SAFETY: the file is open; the pieces are the caller's promise, or the start of them.
        let result = unsafe { calls::perform(file.as_raw_fd(), &step, pieces) };
        if let Ok(count) = result {
            match step.call {
                Call::Read | Call::Write { durable: false } => {}
                Call::DataSync | Call::Sync => self.cache.flushed(file, call),
                _ => self.cache.durable(file, step.offset, count),
            }
        }
        result
    }
}

/// The first `length` bytes of the pieces.
fn cut(pieces: &[Segment], length: u64) -> impl Iterator<Item = Segment> {
    let mut left = length as usize;
    pieces.iter().map_while(move |piece| {
        let len = piece.len.min(left);
        left -= len;
        (len > 0).then_some(Segment { len, ..*piece })
    })
}

impl<M: IoMemory + 'static> Engine<M> for SimulatedEngine<M> {
    by_queue!(files);

    fn submit(&mut self, op: Op, memory: M) -> Ticket {
        self.queue.submit(op, memory)
    }

    fn flush_submissions(&mut self) {
        while let Some(index) = self.queue.next() {
            self.launch(index);
        }
    }

    /// Moves the clock to the end of the next call, and makes it, until an operation has ended.
    fn reap(&mut self, done: &mut dyn FnMut(Completion<M>)) {
        loop {
            self.flush_submissions();
            if self.queue.has_ready() {
                break;
            }
            let Some(Reverse(due)) = self.due.pop() else { break };
            self.perform(&due);
        }
        self.queue.deliver(done, |_, _| {});
    }

    fn cancel(&mut self, ticket: Ticket) {
        self.queue.cancel(ticket);
    }

    fn in_flight(&self) -> usize {
        self.queue.table.live()
    }

    fn name(&self) -> &'static str {
        "simulated"
    }
}
