//! The flusher: a thread that writes dirty blocks, in runs sorted by offset, through the cache's
//! own consumer.
//!
//! ```text
//!   wait (blocked) --> all dirty blocks, sorted --> groups of neighbours, entered as writers
//!     ^                                             | under each block's lock: copy, cleaning
//!     |                                             v
//!     +-- let waiting requests go on <-- done <-- WRITE, WRITE, ... (neighbours in one)
//! ```
//!
//! A pass writes everything that was dirty when it began, once. It begins when a request waits for
//! it, when half as much is dirty as may be, after 100 ms without writes, and at the latest
//! after 5 s.

use super::blocked::{BlockedWrites, FlushTimer, Order};
use super::report::{Failure, Report};
use super::start::nothing_failed;
use crate::cache::Cache;
use crate::cache::counts::Count;
use crate::cache::index::Index;
use std::mem;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};
use ugeom_machine::buffer::Buffer;
use ugeom_stack::{Channel, Command, Errno, Finished, IoError, Lower, Opened, StackError};

/// Writes below at a time.
const DEPTH: usize = 16;
/// The longest of them, bytes.
const RUN_BYTES_MAX: u64 = 256 << 10;
/// How long a pass waits for another request's change of a block that it has to write.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long it waits before it looks again.
const PAUSE: Duration = Duration::from_millis(1);

/// The flusher's way down, while it needs one.
struct Way {
    channel: Channel,
    consumer: Opened,
}

/// Neighbouring blocks that are written together.
#[derive(Default)]
struct Group {
    /// Its number among the writers.
    number: usize,
    first: u64,
    last: u64,
    /// Writes that are not back yet.
    left: usize,
    /// All of its writes are on their way.
    sent: bool,
    /// The failed block and its parts.
    failed: Vec<(u64, u64)>,
}

/// A stretch of bytes for one write.
struct Run {
    offset: u64,
    length: usize,
    buffer: Buffer,
}

/// The flusher's own state.
pub(super) struct Flusher<I: Index> {
    blocked: Arc<BlockedWrites>,
    report: Arc<Report>,
    lower: Arc<OnceLock<Lower>>,
    cache: Weak<Cache<I>>,
    way: Option<Way>,
    /// Blocks of this pass that are still to be written.
    blocks: Vec<u64>,
    /// Those that another request has.
    postponed: Vec<u64>,
    groups: Vec<Option<Group>>,
    runs: Vec<Run>,
    spare: Vec<Buffer>,
    /// The last pass failed: each block is now written alone, so that one bad sector costs no
    /// others.
    single: bool,
    failure: Option<Failure>,
}

impl<I: Index> Flusher<I> {
    pub fn new(
        blocked: Arc<BlockedWrites>,
        report: Arc<Report>,
        lower: Arc<OnceLock<Lower>>,
        cache: Weak<Cache<I>>,
    ) -> Self {
        Self {
            blocked,
            report,
            lower,
            cache,
            way: None,
            blocks: Vec::new(),
            postponed: Vec::new(),
            groups: Vec::new(),
            runs: Vec::new(),
            spare: Vec::new(),
            single: false,
            failure: None,
        }
    }

    /// Obeys orders until one of them is to stop, or the cache is gone.
    pub fn run(mut self) {
        let _deserted = Deserts(Arc::clone(&self.blocked));
        let mut timer = FlushTimer::default();
        loop {
            let blocked = Arc::clone(&self.blocked);
            let cache = Weak::clone(&self.cache);
            let writes = || Some(cache.upgrade()?.store.lanes.totals().writes);
            // A channel keeps the stack alive, and old pictures of it.
            let order = blocked.wait(&mut timer, writes, || self.way = None);
            if order.stop {
                return;
            }
            let Some(cache) = self.cache.upgrade() else { return };
            let settles = order.settle;
            let (failed, settled) = self.obey(&cache, order);
            timer.begin_again(failed);
            // The settling thread may destroy the cache next, and must report the remaining losses:
            // this thread must not hold the last reference.
            drop(cache);
            if let Some(number) = settles {
                self.blocked.answer(number, settled);
            }
        }
    }

    /// Serves the waiting requests; true when something could not be written, and how
    /// settling went.
    fn obey(&mut self, cache: &Cache<I>, mut order: Order) -> (bool, Result<(), IoError>) {
        if order.settle.is_some() {
            self.blocked.begin_to_settle();
        }
        let failure = self.pass(cache);
        self.report.pass(failure.as_ref());
        self.single = failure.is_some();
        self.blocked.set_stuck(failure.is_some());
        while let Some(bio) = order.drains.pop() {
            match &failure {
                None => bio.resume(),
                Some(_) => bio.fail(
                    Errno::IO,
                    "dirty data could not be written below; the cache keeps it",
                ),
            }
        }
        let settled = match &failure {
            Some(failure) => Err(failure.error.clone()),
            None if order.settle.is_some() => self.settle(cache),
            None => Ok(()),
        };
        if order.settle.is_some() {
            self.way = None;
        }
        (failure.is_some(), settled)
    }

    /// Makes the layer below durable. Data that the layer there has lost meanwhile is written
    /// again, once.
    fn settle(&mut self, cache: &Cache<I>) -> Result<(), IoError> {
        let Err(error) = self.flush(cache) else { return Ok(()) };
        if cache.store.dirty.buffers() > 0 {
            if let Some(failure) = self.pass(cache) {
                return Err(failure.error);
            }
            self.flush(cache)?;
        }
        Err(error)
    }

    /// FLUSH below. A provider without one has nothing to flush.
    fn flush(&mut self, cache: &Cache<I>) -> Result<(), IoError> {
        let way = self.way().map_err(|error| no_way(&error))?;
        let round = cache.store.dirty.unflushed.begin_flush();
        let flushed = way.channel.flush(&way.consumer);
        let result = flushed.as_ref().map_err(|error| error.errno);
        let well = nothing_failed(result);
        if let Some(back) = &cache.back {
            back.flushed(cache, round, well);
        }
        if well { Ok(()) } else { flushed }
    }

    fn way(&mut self) -> Result<&mut Way, StackError> {
        if let Some(ref mut way) = self.way {
            return Ok(way);
        }
        let lower = self.lower.get().ok_or_else(not_attached)?;
        Ok(self.way.insert(Way {
            channel: lower.channel(DEPTH)?,
            consumer: lower.consumer(0)?,
        }))
    }

    /// Writes everything that is dirty now.
    fn pass(&mut self, cache: &Cache<I>) -> Option<Failure> {
        self.failure = None;
        let mut blocks = mem::take(&mut self.blocks);
        cache.store.dirty_blocks(&mut blocks);
        let begun = Instant::now();
        if !blocks.is_empty()
            && let Err(error) = self.way()
        {
            self.fail(blocks[0] << cache.shift, 0, no_way(&error));
            blocks.clear();
        }
        while !blocks.is_empty() {
            let most = match self.single {
                true => 1,
                false => (RUN_BYTES_MAX >> cache.shift).max(1),
            };
            for neighbours in blocks.chunk_by(|one, next| one + 1 == *next) {
                for group in neighbours.chunks(most as usize) {
                    self.write_group(cache, group);
                }
            }
            while self.groups.iter().any(Option::is_some) {
                self.collect(cache);
            }
            mem::swap(&mut blocks, &mut self.postponed);
            self.postponed.clear();
            blocks.retain(|block| cache.store.is_dirty(*block));
            if blocks.is_empty() {
                break;
            }
            if begun.elapsed() > CHANGE_TIMEOUT {
                self.fail(
                    blocks[0] << cache.shift,
                    0,
                    in_the_way(blocks[0] << cache.shift),
                );
                blocks.clear();
            } else {
                std::thread::sleep(PAUSE);
            }
        }
        self.blocks = blocks;
        self.failure.take()
    }

    /// Starts to write neighbouring blocks.
    fn write_group(&mut self, cache: &Cache<I>, blocks: &[u64]) {
        let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else { return };
        let (first, last) = (*first, *last);
        let Some(number) = cache.store.writers.try_enter(first, last, true) else {
            self.postponed.extend_from_slice(blocks);
            return;
        };
        for block in blocks {
            self.take_block(cache, *block);
        }
        let place = match self.groups.iter().position(Option::is_none) {
            Some(free) => free,
            None => {
                self.groups.push(None);
                self.groups.len() - 1
            }
        };
        self.groups[place] = Some(Group {
            number,
            first,
            last,
            ..Group::default()
        });
        let mut runs = mem::take(&mut self.runs);
        for run in runs.drain(..) {
            self.submit(cache, place, run);
        }
        self.runs = runs;
        if let Some(group) = &mut self.groups[place] {
            group.sent = true;
        }
        self.end_if_done(cache, place);
    }

    /// Copies the dirty parts of a block into runs.
    fn take_block(&mut self, cache: &Cache<I>, block: u64) {
        let Self {
            runs,
            spare,
            single,
            ..
        } = self;
        let (store, held) = (&cache.store, cache.held_bytes(block) as usize);
        store.begin_cleaning(block, |slot, parts| {
            for (within, length) in store.dirty.stretches(parts, held) {
                let offset = (block << cache.shift) + within as u64;
                let follows = |run: &&mut Run| {
                    let room = RUN_BYTES_MAX as usize - run.length;
                    !*single && run.offset + run.length as u64 == offset && length <= room
                };
                let run = match runs.last_mut().filter(follows) {
                    Some(run) => run,
                    None => {
                        let buffer = spare.pop();
                        let buffer = buffer.unwrap_or_else(|| Buffer::new(RUN_BYTES_MAX as usize));
                        runs.push(Run {
                            offset,
                            length: 0,
                            buffer,
                        });
                        let last = runs.len() - 1;
                        &mut runs[last]
                    }
                };
                let to = run.length..run.length + length;
                store.copyout(slot, within, &mut run.buffer[to]);
                run.length += length;
            }
        });
    }

    fn submit(&mut self, cache: &Cache<I>, place: usize, run: Run) {
        loop {
            let Some(way) = &mut self.way else {
                let error = no_way(&not_attached());
                return self.run_failed(cache, place, (run.offset, run.length as u64), error);
            };
            if let Some(draft) = way.channel.bio() {
                let draft = draft.write(run.offset, run.buffer);
                let draft = draft.length(run.length as u64).cookie(place as u64);
                if let Some(group) = &mut self.groups[place] {
                    group.left += 1;
                }
                cache.store.lanes.add(Count::WritesBelow, 1);
                way.channel.submit(&way.consumer, draft);
                return;
            }
            self.collect(cache);
        }
    }

    /// Waits for writes to come back, and takes them.
    fn collect(&mut self, cache: &Cache<I>) {
        if let Some(way) = &mut self.way {
            way.channel.wait(None);
        }
        while let Some(finished) = self.way.as_mut().and_then(|way| way.channel.finished()) {
            self.finished(cache, finished);
        }
    }

    fn finished(&mut self, cache: &Cache<I>, mut finished: Finished) {
        let place = finished.cookie() as usize;
        let (offset, length) = (finished.offset(), finished.length());
        if finished.result() != Ok(length) {
            let explained = self
                .way
                .as_ref()
                .and_then(|way| way.channel.explain(&finished));
            let error = explained.unwrap_or_else(|| past_the_end(offset, length));
            self.run_failed(cache, place, (offset, length), error);
        }
        self.spare.extend(finished.take_buffer());
        if let Some(way) = &mut self.way {
            way.channel.recycle(finished);
        }
        if let Some(group) = &mut self.groups[place] {
            group.left -= 1;
        }
        self.end_if_done(cache, place);
    }

    /// Notes which parts of which blocks did not get below.
    fn run_failed(
        &mut self,
        cache: &Cache<I>,
        place: usize,
        (offset, length): (u64, u64),
        error: IoError,
    ) {
        cache.store.lanes.add(Count::WriteErrors, 1);
        self.fail(offset, length, error);
        let end = offset + length;
        let (first, last) = (offset >> cache.shift, (end - 1) >> cache.shift);
        for block in first..=last {
            let start = block << cache.shift;
            let from = offset.max(start);
            let until = end.min(start + cache.block_bytes);
            let dirty = &cache.store.dirty;
            let parts = dirty.touched((from - start) as usize, (until - from) as usize);
            if let Some(group) = &mut self.groups[place] {
                group.failed.push((block, parts));
            }
        }
    }

    fn fail(&mut self, offset: u64, bytes: u64, error: IoError) {
        let failure = self.failure.get_or_insert(Failure {
            error,
            first_offset: offset,
            bytes: 0,
        });
        failure.first_offset = failure.first_offset.min(offset);
        failure.bytes += bytes;
    }

    /// When all writes of a group are back, its blocks are clean, except those of failed writes.
    fn end_if_done(&mut self, cache: &Cache<I>, place: usize) {
        let done = |group: &mut Group| group.sent && group.left == 0;
        let Some(group) = self.groups[place].take_if(done) else { return };
        for block in group.first..=group.last {
            let failed = group.failed.iter().filter(|(of, _)| *of == block);
            let parts = failed.fold(0, |all, (_, parts)| all | parts);
            let held = cache.held_bytes(block) as usize;
            let left = match held {
                0 => 0,
                held => parts & cache.store.dirty.touched(0, held),
            };
            if !cache.store.end_cleaning(block, left) || left != parts {
                let bytes = cache.store.dirty.bytes_in(parts & !left, 1 << cache.shift);
                self.report.lost(block << cache.shift, bytes);
            }
        }
        cache.store.writers.leave(group.number);
        self.blocked.let_writers_go();
    }
}

fn not_attached() -> StackError {
    StackError::System {
        what: "the cache is not part of a stack",
        error: Errno::NXIO,
    }
}

fn no_way(error: &StackError) -> IoError {
    IoError {
        errno: error.errno(),
        command: Command::Write,
        provider: "the cache".into(),
        offset_bytes: 0,
        length_bytes: 0,
        reason: error.to_string(),
    }
}

fn in_the_way(offset_bytes: u64) -> IoError {
    IoError {
        errno: Errno::BUSY,
        command: Command::Write,
        provider: "the cache".into(),
        offset_bytes,
        length_bytes: 0,
        reason: "another change of the block is in flight, and its thread does not poll for it"
            .into(),
    }
}

fn past_the_end(offset_bytes: u64, length_bytes: u64) -> IoError {
    IoError {
        errno: Errno::IO,
        command: Command::Write,
        provider: "the provider below the cache".into(),
        offset_bytes,
        length_bytes,
        reason: "the media has become shorter".into(),
    }
}

/// Releases the waiting requests when the thread ends, also by a panic.
struct Deserts(Arc<BlockedWrites>);

impl Drop for Deserts {
    fn drop(&mut self) {
        self.0.desert();
    }
}
