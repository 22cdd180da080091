//! The engine `io_uring`: operations go to the kernel through one ring and come back through
//! another (io_uring(7)), in batches of any size, with a system call a batch or less.
//!
//! ```text
//!   submit --> backlog --> submission ring --> kernel --> completion ring --> ready --> reap
//!                   (at most `depth` between the rings)         |
//!                          ^------ short, or put off -----------+
//! ```
//!
//! Entries of the submission ring point to an operation's memory and to its list of pieces. Both
//! stay where they are until the kernel is done: the memory by the contract of `IoMemory`, the
//! pieces because a slot's list is only touched between one step and the next.
//!
//! BLKDISCARD has no entry and is made on the spot, when the operation leaves the backlog.

mod entry;
mod setup;
#[cfg(all(test, not(miri)))]
mod tests;

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use io_uring::{IoUring, types};
use ugeom_machine::buffer::{IoMemory, Pool, Segment};

use crate::calls;
use crate::choice::EngineError;
use crate::completions::each_completion;
use crate::files::Registered;
use crate::op::{Completion, Engine, Errno, FileId, Op, Ticket};
use crate::priorities::Priorities;
use crate::progress::{Call, Step};
use crate::queue::{Queue, by_queue};
use entry::Target;
use setup::Tables;
pub(crate) use setup::poll_ring;

/// How often a batch is offered again while the kernel has no resources for it, before that is
/// left to the next call.
const OFFERS_MAX: u32 = 100;

/// Runs operations through io_uring.
pub struct UringEngine<M: IoMemory + 'static> {
    ring: IoUring,
    tables: Tables,
    /// Memory that the kernel knows, by its number there. Kept alive, so that nothing else can
    /// ever lie at its addresses.
    pools: Vec<Arc<Pool>>,
    queue: Queue<M>,
    priorities: Priorities,
    /// Why the kernel takes no more entries.
    trouble: Option<io::Error>,
}

impl<M: IoMemory + 'static> UringEngine<M> {
    /// Makes a ring for `depth` (1 to 32768) operations at a time.
    ///
    /// # Errors
    /// When the kernel has no io_uring, does not let us use it, or lacks a part that is needed.
    pub fn open(depth: u32) -> Result<UringEngine<M>, EngineError> {
        let depth = depth.clamp(1, setup::ENTRIES_MAX);
        let (ring, tables) = setup::ring(depth.next_power_of_two())?;
        Ok(UringEngine {
            ring,
            tables,
            pools: Vec::new(),
            queue: Queue::new(depth),
            priorities: Priorities::default(),
            trouble: None,
        })
    }

    /// Moves operations from the backlog to the submission ring while both have some.
    fn refill(&mut self) {
        while self.queue.has_room() && !self.ring.submission().is_full() {
            let Some(index) = self.queue.next() else { return };
            self.launch(index);
        }
    }

    /// Puts the next step of an operation on the submission ring, which has room.
    fn launch(&mut self, index: u32) {
        while let Some(prepared) = self.queue.prepare(index) {
            let target = match prepared.in_kernel_table {
                Some(file) => Target::Registered(file),
                None => Target::Descriptor(prepared.fd),
            };
            let registered = registered(&self.pools, &prepared.step, prepared.pieces);
            let priority = self.priorities.of(index);
            let (step, pieces) = (&prepared.step, prepared.pieces);
            let entry = entry::entry(target, step, pieces, registered, priority);
            let Some(entry) = entry else {
                // SAFETY: the file is held until the operation ends; the step has no pieces.
                let result = unsafe { calls::perform(prepared.fd, &prepared.step, &[]) };
                if self.queue.absorb_inline(index, result) {
                    return;
                }
                continue;
            };
            let entry = entry.user_data(entry::user_data(prepared.ticket));
            // SAFETY: memory and pieces stay valid and untouched until the completion (see the
            // head of this file), for which dropping the engine waits, too.
            if unsafe { self.ring.submission().push(&entry) }.is_ok() {
                self.queue.handed_on(index);
            } else {
                // No room after all: the step, which took no effect, is made again later.
                self.queue.put_off(index);
            }
            return;
        }
    }

    /// Takes completions from the kernel's ring.
    fn collect(&mut self) {
        each_completion(&mut self.ring, |entry| {
            if let Some(index) = entry::index(entry.user_data()) {
                let result = match u64::try_from(entry.result()) {
                    Ok(count) => Ok(count),
                    Err(_) => Err(Errno::from_raw_os_error(-entry.result())),
                };
                self.queue.absorb(index, result);
            }
        });
    }

    /// Enters the kernel if there is a reason to: entries to submit, or completions that it can
    /// only post when we enter.
    fn enter(&mut self) {
        for _ in 0..OFFERS_MAX {
            let queue = self.ring.submission();
            if queue.is_empty() && !queue.taskrun() && !queue.cq_overflow() {
                return;
            }
            drop(queue);
            match self.ring.submit() {
                Ok(_) => self.trouble = None,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(libc::EAGAIN) => std::thread::yield_now(),
                    // The completion ring is full: it has to be emptied first.
                    Some(libc::EBUSY) => return,
                    _ => {
                        self.trouble = Some(error);
                        return;
                    }
                },
            }
        }
    }

    /// Submits staged operations, and sleeps until one completes.
    fn sleep(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let timespec = timeout.map(types::Timespec::from);
        let mut arguments = types::SubmitArgs::new();
        if let Some(timespec) = &timespec {
            arguments = arguments.timespec(timespec);
        }
        match self.ring.submitter().submit_with_args(1, &arguments) {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                Some(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY) => Ok(()),
                _ => Err(self.trouble.take().unwrap_or(error)),
            },
        }
    }

    fn request_cancel(&mut self, index: u32) {
        let entry = entry::cancellation(self.queue.table.ticket(index));
        if self.ring.submission().is_full() {
            self.enter();
        }
        // SAFETY: the entry points to no memory. Without room the operation ends by itself.
        let _ = unsafe { self.ring.submission().push(&entry) };
    }
}

/// The number of the registered memory in which a transfer's only piece lies.
fn registered(pools: &[Arc<Pool>], step: &Step, pieces: &[Segment]) -> Option<u16> {
    let ([piece], Call::Read | Call::Write { .. }) = (pieces, step.call) else { return None };
    let start = piece.base.addr();
    let holds = |pool: &Arc<Pool>| {
        let Segment { base, len } = pool.segment();
        let within = start.checked_sub(base.addr());
        within.is_some_and(|at| at <= len && piece.len <= len - at)
    };
    let number = pools.iter().position(holds)?;
    u16::try_from(number).ok()
}

/// Takes a file out of the kernel's table.
fn forget_file(ring: &IoUring, file: &Registered, index: u32) {
    if file.in_kernel_table {
        // It cannot fail for an index inside the table; if it did, the file would only stay
        // open until the next one takes its place.
        let _ = ring.submitter().register_files_update(index, &[-1]);
    }
}

impl<M: IoMemory + 'static> Engine<M> for UringEngine<M> {
    fn register(&mut self, file: Arc<File>) -> Result<FileId, Errno> {
        let fd = file.as_raw_fd();
        let id = self.queue.files.register(file)?;
        if self.tables.files && id.index < setup::FILES_MAX {
            let updated = self.ring.submitter().register_files_update(id.index, &[fd]);
            self.queue.files.held(id).in_kernel_table = updated.is_ok_and(|count| count == 1);
        }
        Ok(id)
    }

    fn register_memory(&mut self, pool: &Arc<Pool>) -> bool {
        if self.pools.iter().any(|known| Arc::ptr_eq(known, pool)) {
            return true;
        }
        let number = self.pools.len() as u32;
        let Segment { base, len } = pool.segment();
        if !self.tables.memory || number >= setup::POOLS_MAX || len == 0 {
            return false;
        }
        let memory = libc::iovec {
            iov_base: base.cast(),
            iov_len: len,
        };
        let ring = self.ring.submitter();
        // SAFETY: the pool lives as long as the engine, and only operations on its buffers, which
        // the engine owns then, use the memory. It fails where more may not be locked
        // (RLIMIT_MEMLOCK), or beyond 1 GiB.
        let registered = unsafe { ring.register_buffers_update(number, &[memory], None) };
        if registered.is_ok() {
            self.pools.push(Arc::clone(pool));
        }
        registered.is_ok()
    }

    fn unregister(&mut self, id: FileId) {
        if let Some(file) = self.queue.files.unregister(id) {
            forget_file(&self.ring, &file, id.index);
        }
    }

    fn reap(&mut self, done: &mut dyn FnMut(Completion<M>)) {
        self.enter();
        self.collect();
        self.refill();
        self.enter();
        let ring = &self.ring;
        self.queue
            .deliver(done, |file, index| forget_file(ring, file, index));
    }

    by_queue!(submit with priorities);

    by_queue!(flush and cancel);

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the ring keeps its descriptor open for as long as the borrow of the engine
        // lasts.
        Some(unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) })
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.refill();
        let ended = self.queue.has_ready() || !self.ring.completion().is_empty();
        if self.queue.outside() == 0 || ended {
            return Ok(());
        }
        self.sleep(timeout)
    }

    fn name(&self) -> &'static str {
        "io_uring"
    }
}

impl<M: IoMemory + 'static> Drop for UringEngine<M> {
    /// Cancels the kernel's operations, and waits for them: it writes to our memory until then.
    fn drop(&mut self) {
        for index in self.queue.abandon() {
            self.request_cancel(index);
        }
        while self.queue.outside() > 0 {
            self.collect();
            // Nothing may be handed on again: `absorb` ends what was cancelled.
            if self.queue.outside() > 0 && self.sleep(None).is_err() {
                return self.queue.leak();
            }
        }
    }
}
