//! The work of cases: moving blocks of a file by system calls, of a provider through its stack,
//! one at a time or many.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use ugeom_harness::HarnessError;
use ugeom_harness::{Case, RunResult, Work};
use ugeom_load::Failure;
use ugeom_load::door::{Calls, Direct, Door, Kind, Request, StackCalls, StackDoor, file_calls};
use ugeom_load::drive::{Done, Queue, one_by_one};
use ugeom_load::places::Either;
use ugeom_load::recorder::Unwatched;
use ugeom_load::start::{Span, together};
use ugeom_machine::buffer::Buffer;
use ugeom_machine::clock;
use ugeom_stack::{Delta, Opened, ProviderId, Stack};

/// Parameters shared by all cases of a sweep.
#[derive(Clone, Copy)]
pub(super) struct Moving<'a> {
    /// Bytes of one block.
    pub block_bytes: u64,
    /// Whether blocks are written.
    pub write: bool,
    /// The seed of the written data.
    pub seed: u64,
    /// Set when the user stops it: a run ends then.
    pub cancelled: &'a AtomicBool,
}

/// The initial content of memory, before a read.
const UNREAD: u8 = 0xa5;

impl Moving<'_> {
    /// Memory for a block, with content that cannot be compressed, and all of it there already.
    ///
    /// Each run takes its own: whether the pages of a large block happen to lie side by side in
    /// the machine's memory changes the time of a transfer by up to half, and one piece of luck
    /// must not stand for all rounds.
    fn buffer(&self) -> Buffer {
        let mut buffer = Buffer::new(self.block_bytes as usize);
        match self.write {
            true => fastrand::Rng::with_seed(self.seed).fill(&mut buffer),
            false => buffer.fill(UNREAD),
        }
        buffer
    }

    /// Moves so many blocks, one after the other; fewer when the user stops it.
    fn one_by_one(
        &self,
        door: &mut impl Direct,
        places: &mut Either,
        count: u64,
    ) -> Result<Done, Failure> {
        one_by_one(door, self.requests(places, count), &mut Unwatched)
    }

    fn requests(&self, places: &mut Either, count: u64) -> impl Iterator<Item = Request> {
        let kind = if self.write { Kind::Write } else { Kind::Read };
        let (length, cancelled) = (self.block_bytes as u32, self.cancelled);
        let going = move |_: &u64| !cancelled.load(Ordering::Relaxed);
        let places = places.take(count as usize).take_while(going);
        places.map(move |offset| Request::of(kind, offset, length))
    }

    fn delta(&self) -> Delta {
        Delta::of_user(self.write)
    }

    fn open(&self, (stack, provider): (&Stack, ProviderId)) -> Result<Arc<Opened>, HarnessError> {
        let opened = stack.open(provider, self.delta());
        Ok(Arc::new(opened.map_err(HarnessError::stack)?))
    }
}

fn result(ns_total: u64, done: Done) -> RunResult {
    RunResult::taking(ns_total.max(1)).doing(Work::of(done.bytes, done.requests))
}

/// A file or block device, and its name for errors.
#[derive(Clone)]
pub(super) struct Named {
    pub path: String,
    pub file: Arc<File>,
    /// Writes stay in the page cache until it is told to write them.
    pub cached: bool,
}

impl Named {
    /// Whether a block of that size can be read past the cache, as the sectors of some devices are
    /// larger.
    pub fn can_read(&self, block_bytes: u64) -> Result<(), HarnessError> {
        let mut door = Calls::new(Buffer::new(block_bytes as usize), file_calls(&*self.file));
        let first = [Request::read(0, block_bytes as u32)];
        let read = one_by_one(&mut door, first, &mut Unwatched);
        read.map(drop)
            .map_err(|failure| failure.in_case(&self.path))
    }

    /// Moves so many blocks by system calls.
    fn calls(
        &self,
        moving: &Moving<'_>,
        buffer: Buffer,
        places: &mut Either,
        count: u64,
    ) -> Result<Done, HarnessError> {
        let mut door = Calls::new(buffer, file_calls(&*self.file));
        let done = moving.one_by_one(&mut door, places, count);
        done.map_err(|failure| failure.in_case(&self.path))
    }

    /// Makes the writes durable, where they are not yet.
    fn settle(&self, write: bool) -> Result<(), HarnessError> {
        if write && self.cached {
            let synced = rustix::fs::fdatasync(&self.file);
            synced.map_err(|errno| HarnessError::os(&self.path, "syncing")(errno.into()))?;
        }
        Ok(())
    }
}

/// Moves blocks by system calls, one after the other, as dd does. Writes through the cache end
/// when they are on the disk.
pub(super) fn by_calls<'a>(
    name: &str,
    named: Named,
    mut places: Either,
    moving: Moving<'a>,
) -> Case<'a> {
    Case::new(name, move |iterations| {
        let buffer = moving.buffer();
        let start_ns = clock::now_ns();
        let done = named.calls(&moving, buffer, &mut places, iterations)?;
        named.settle(moving.write)?;
        Ok(result(clock::now_ns() - start_ns, done))
    })
}

/// The same by `threads` threads, each with one block in flight.
pub(super) fn by_threads<'a>(
    name: &str,
    named: Named,
    places: &Either,
    moving: Moving<'a>,
    threads: u64,
) -> Case<'a> {
    let mut all: Vec<Either> = (0..threads).map(|_| places.clone()).collect();
    let case = name.to_owned();
    let run = move |iterations: u64| {
        let one = |_, places: &mut Either| {
            let buffer = moving.buffer();
            Span::of(|| named.calls(&moving, buffer, places, iterations / threads))
        };
        let (ns, done) = together(&case, None, all.iter_mut(), one)?;
        let done = Done {
            requests: done.iter().map(|done| done.requests).sum(),
            bytes: done.iter().map(|done| done.bytes).sum(),
        };
        Ok(result(ns, done))
    };
    Case::new(name, run).in_steps_of(threads)
}

/// Moves blocks of a provider, one after the other.
///
/// # Errors
/// [`HarnessError::Stack`] when it cannot be opened.
pub(super) fn by_stack<'a>(
    name: &str,
    at: (&Stack, ProviderId),
    mut places: Either,
    moving: Moving<'a>,
) -> Result<Case<'a>, HarnessError> {
    let opened = moving.open(at)?;
    let mut channel = at.0.channel(1).map_err(HarnessError::stack)?;
    let case = name.to_owned();
    Ok(Case::new(name, move |iterations| {
        let mut buffer = moving.buffer();
        let start_ns = clock::now_ns();
        let mut door = StackCalls::new(&mut channel, &opened, &mut buffer);
        let done = moving.one_by_one(&mut door, &mut places, iterations);
        let done = done.map_err(|failure| failure.in_case(&case))?;
        Ok(result(clock::now_ns() - start_ns, done))
    }))
}

/// Moves blocks of a provider, `depth` of them in flight.
///
/// # Errors
/// [`HarnessError::Stack`] when it cannot be opened.
pub(super) fn in_queue<'a>(
    name: &str,
    at: (&Stack, ProviderId),
    mut places: Either,
    moving: Moving<'a>,
    depth: u64,
) -> Result<Case<'a>, HarnessError> {
    let slots = depth as u32;
    let channel = at.0.channel(depth as usize).map_err(HarnessError::stack)?;
    let mut door = StackDoor::new(
        channel,
        moving.open(at)?,
        slots,
        moving.block_bytes as usize,
    );
    for slot in 0..slots {
        door.buffer(slot).copy_from_slice(&moving.buffer());
    }
    let mut queue = Queue::new(door, slots);
    let case = name.to_owned();
    let run = move |iterations| {
        let start_ns = clock::now_ns();
        let done = queue.run(moving.requests(&mut places, iterations), &mut Unwatched);
        let done = done.map_err(|failure| failure.in_case(&case))?;
        Ok(result(clock::now_ns() - start_ns, done))
    };
    Ok(Case::new(name, run).in_steps_of(depth))
}
