//! The work of cells: moving blocks of a file by system calls, of a provider through its stack,
//! one at a time or many.

use super::walk::Walk;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;
use ugeom_harness::HarnessError;
use ugeom_harness::crew;
use ugeom_harness::{Cell, RunResult, Work};
use ugeom_machine::buffer::Buffer;
use ugeom_machine::clock;
use ugeom_stack::{Channel, Delta, Finished, IoError, Opened, ProviderId, Stack};

/// What all cells of a sweep need.
#[derive(Clone, Copy)]
pub(super) struct Moving<'a> {
    /// Bytes of one block.
    pub block_bytes: u64,
    /// Whether blocks are written.
    pub write: bool,
    /// The seed of what is written.
    pub seed: u64,
    /// Set when the user stops it: a run ends then.
    pub cancelled: &'a AtomicBool,
}

/// What memory holds before anything was read into it.
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

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    fn delta(&self) -> Delta {
        if self.write {
            Delta::READ_WRITE
        } else {
            Delta::READ
        }
    }

    fn result(&self, ns_total: u64, transactions: u64) -> RunResult {
        let bytes = transactions * self.block_bytes;
        RunResult::taking(ns_total.max(1)).doing(Work::of(bytes, transactions))
    }
}

/// A file or block device, and its name for errors.
#[derive(Clone)]
pub(super) struct Named {
    pub path: String,
    pub file: Arc<File>,
    /// Writes stay in the system's cache until it is told to write them.
    pub cached: bool,
}

impl Named {
    fn move_block(
        &self,
        write: bool,
        offset: u64,
        buffer: &mut Buffer,
    ) -> Result<(), HarnessError> {
        let moved = match write {
            true => rustix::io::pwrite(&self.file, buffer, offset),
            false => rustix::io::pread(&self.file, &mut buffer[..], offset),
        };
        match moved {
            Ok(moved) if moved == buffer.len() => Ok(()),
            Ok(moved) => Err(HarnessError::Short {
                path: self.path.clone(),
                offset_bytes: offset,
                wanted_bytes: buffer.len() as u64,
                got_bytes: moved as u64,
            }),
            Err(errno) => Err(self.refused(write, offset, errno.into())),
        }
    }

    fn refused(&self, write: bool, offset: u64, source: io::Error) -> HarnessError {
        let operation = if write { "writing" } else { "reading" };
        HarnessError::Os {
            path: format!("{} at offset {offset}", self.path),
            operation,
            source,
        }
    }

    /// Whether a block of that size can be read past the cache, as the sectors of some devices are
    /// larger.
    pub fn can_read(&self, block_bytes: u64) -> Result<(), HarnessError> {
        self.move_block(false, 0, &mut Buffer::new(block_bytes as usize))
    }

    /// Makes what was written durable, where it is not yet.
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
    mut walk: Walk,
    moving: Moving<'a>,
) -> Cell<'a> {
    Cell::new(name, move |iterations| {
        let mut buffer = moving.buffer();
        let start_ns = clock::now_ns();
        let mut done = 0;
        while done < iterations && !moving.is_cancelled() {
            named.move_block(moving.write, walk.next_offset(), &mut buffer)?;
            done += 1;
        }
        named.settle(moving.write)?;
        Ok(moving.result(clock::now_ns() - start_ns, done))
    })
}

/// The same by `threads` threads, each with one block under way.
pub(super) fn by_threads<'a>(
    name: &str,
    named: Named,
    walk: Walk,
    moving: Moving<'a>,
    threads: u64,
) -> Cell<'a> {
    let mut walks: Vec<Walk> = (0..threads).map(|_| walk.clone()).collect();
    let cell = name.to_owned();
    let run = move |iterations: u64| {
        let barrier = Barrier::new(walks.len());
        let each = iterations / threads;
        let one = |walk: &mut Walk| -> Result<(u64, u64), HarnessError> {
            let mut buffer = moving.buffer();
            barrier.wait();
            let start_ns = clock::now_ns();
            for _ in 0..each {
                if moving.is_cancelled() {
                    break;
                }
                named.move_block(moving.write, walk.next_offset(), &mut buffer)?;
            }
            Ok((start_ns, clock::now_ns()))
        };
        let spans = std::thread::scope(|scope| {
            crew::start(scope, walks.iter_mut(), one).map(crew::Crew::join)
        });
        let spans = spans.map_err(crew::not_started(&cell))?;
        let (mut first_ns, mut last_ns) = (u64::MAX, 0);
        for span in spans {
            let (start_ns, end_ns) = span.ok_or_else(|| HarnessError::Thread {
                cell: cell.clone(),
                problem: "a reading thread panicked".to_owned(),
            })??;
            first_ns = first_ns.min(start_ns);
            last_ns = last_ns.max(end_ns);
        }
        Ok(moving.result(last_ns.saturating_sub(first_ns), each * threads))
    };
    Cell::new(name, run).in_steps_of(threads)
}

/// Moves blocks of a provider, one after the other.
///
/// # Errors
/// [`HarnessError::Stack`] when it cannot be opened.
pub(super) fn by_stack<'a>(
    name: &str,
    (stack, provider): (&Stack, ProviderId),
    mut walk: Walk,
    moving: Moving<'a>,
) -> Result<Cell<'a>, HarnessError> {
    let opened = stack
        .open(provider, moving.delta())
        .map_err(HarnessError::stack)?;
    let mut channel = stack.channel(1).map_err(HarnessError::stack)?;
    let cell = name.to_owned();
    Ok(Cell::new(name, move |iterations| {
        let mut buffer = moving.buffer();
        let start_ns = clock::now_ns();
        let mut done = 0;
        while done < iterations && !moving.is_cancelled() {
            let offset = walk.next_offset();
            let moved = match moving.write {
                true => channel.write(&opened, offset, &buffer),
                false => channel.read(&opened, offset, &mut buffer),
            };
            if !moved.as_ref().is_ok_and(|moved| *moved == buffer.len()) {
                return Err(refused(&cell, &moving, offset, moved.map(|one| one as u64)));
            }
            done += 1;
        }
        Ok(moving.result(clock::now_ns() - start_ns, done))
    }))
}

#[cold]
fn refused(
    cell: &str,
    moving: &Moving<'_>,
    offset_bytes: u64,
    moved: Result<u64, IoError>,
) -> HarnessError {
    let cell = cell.to_owned();
    match moved {
        Err(source) => HarnessError::request(cell, source),
        Ok(got_bytes) => HarnessError::Short {
            path: cell,
            offset_bytes,
            wanted_bytes: moving.block_bytes,
            got_bytes,
        },
    }
}

/// No block takes longer than this, or it is lost.
const LOST_AFTER: Duration = Duration::from_secs(60);

/// Moves blocks of a provider, `depth` of them under way at a time.
///
/// # Errors
/// [`HarnessError::Stack`] when it cannot be opened.
pub(super) fn in_queue<'a>(
    name: &str,
    (stack, provider): (&Stack, ProviderId),
    walk: Walk,
    moving: Moving<'a>,
    depth: u64,
) -> Result<Cell<'a>, HarnessError> {
    let mut queue = Queue {
        cell: name.to_owned(),
        opened: stack
            .open(provider, moving.delta())
            .map_err(HarnessError::stack)?,
        channel: stack.channel(depth as usize).map_err(HarnessError::stack)?,
        idle: Vec::new(),
        walk,
        moving,
    };
    Ok(Cell::new(name, move |iterations| queue.run(iterations, depth)).in_steps_of(depth))
}

/// A channel that is kept full.
struct Queue<'a> {
    cell: String,
    opened: Opened,
    channel: Channel,
    /// Bios that wait to be sent again.
    idle: Vec<Finished>,
    walk: Walk,
    moving: Moving<'a>,
}

impl Queue<'_> {
    fn run(&mut self, iterations: u64, depth: u64) -> Result<RunResult, HarnessError> {
        let start_ns = clock::now_ns();
        let (mut sent, mut done) = (0, 0);
        loop {
            let enough = iterations.min(if self.moving.is_cancelled() {
                sent
            } else {
                u64::MAX
            });
            while sent < enough && sent - done < depth {
                self.send();
                sent += 1;
            }
            if done == sent {
                return Ok(self.moving.result(clock::now_ns() - start_ns, done));
            }
            done += self.collect()?;
        }
    }

    fn send(&mut self) {
        let offset = self.walk.next_offset();
        let draft = match self.idle.pop() {
            Some(finished) => Some(finished.again().at(offset)),
            None => self.channel.bio().map(|draft| match self.moving.write {
                true => draft.write(offset, self.moving.buffer()),
                false => draft.read(offset, self.moving.buffer()),
            }),
        };
        // There is one for each that may be under way.
        if let Some(draft) = draft {
            self.channel.submit(&self.opened, draft);
        }
    }

    /// Waits for at least one; how many came.
    fn collect(&mut self) -> Result<u64, HarnessError> {
        if self.channel.wait(Some(LOST_AFTER)) == 0 {
            return Err(HarnessError::Thread {
                cell: self.cell.clone(),
                problem: "a request did not complete within a minute".to_owned(),
            });
        }
        let mut came = 0;
        while let Some(finished) = self.channel.finished() {
            let moved = match self.channel.explain(&finished) {
                Some(error) => Err(error),
                None => Ok(finished.result().unwrap_or(0)),
            };
            if !moved
                .as_ref()
                .is_ok_and(|moved| *moved == self.moving.block_bytes)
            {
                return Err(refused(&self.cell, &self.moving, 0, moved));
            }
            self.idle.push(finished);
            came += 1;
        }
        Ok(came)
    }
}
