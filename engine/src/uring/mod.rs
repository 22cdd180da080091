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
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use io_uring::{IoUring, cqueue, types};
use ugeom_machine::buffer::IoMemory;

use crate::calls;
use crate::files::{Files, Registered};
use crate::op::{Completion, Engine, Errno, FileId, Op, Ticket};
use crate::open::EngineError;
use crate::progress::settled;
use crate::table::{List, Place, Table};
use entry::Target;

/// Completions taken from the ring at a time.
const BATCH: usize = 32;

/// How often a batch is offered again while the kernel has no resources for it, before that is
/// left to the next call.
const OFFERS_MAX: u32 = 100;

/// Runs operations through io_uring.
pub struct UringEngine<M: IoMemory + 'static> {
    ring: IoUring,
    files: Files,
    /// The ring has a table of files.
    has_file_table: bool,
    table: Table<M>,
    /// To be given to the kernel.
    backlog: List,
    /// To be given to the caller.
    ready: List,
    /// Entries given to the kernel (or to the submission ring) and not yet completed.
    in_kernel: usize,
    depth: usize,
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
        let (ring, has_file_table) = setup::ring(depth.next_power_of_two())?;
        Ok(UringEngine {
            ring,
            files: Files::default(),
            has_file_table,
            table: Table::new(),
            backlog: List::new(),
            ready: List::new(),
            in_kernel: 0,
            depth: depth as usize,
            trouble: None,
        })
    }

    fn finish(&mut self, index: u32, result: Result<u64, Errno>) {
        self.table.slot(index).place = Place::Ready(result);
        self.table.push(&mut self.ready, index);
    }

    fn enqueue(&mut self, index: u32) {
        self.table.slot(index).place = Place::Queued;
        self.table.push(&mut self.backlog, index);
    }

    /// Moves operations from the backlog to the submission ring while both have some.
    fn refill(&mut self) {
        while self.in_kernel < self.depth && !self.ring.submission().is_full() {
            let Some(index) = self.table.pop(&mut self.backlog) else {
                return;
            };
            self.launch(index);
        }
    }

    /// Puts the next step of an operation on the submission ring, which has room.
    fn launch(&mut self, index: u32) {
        let ticket = self.table.ticket(index);
        loop {
            let slot = self.table.slot(index);
            let Some(memory) = &slot.memory else { return };
            let file = self.files.held(slot.op.file);
            let step = slot.progress.step(&slot.op, memory, file);
            let target = match file.in_kernel_table {
                true => Target::Registered(slot.op.file.index),
                false => Target::Descriptor(file.fd()),
            };
            let Some(entry) = entry::entry(target, &step, slot.progress.pieces()) else {
                // SAFETY: the file is held until the operation ends; the step has no pieces.
                let result = unsafe { calls::perform(file.fd(), &step, &[]) };
                match slot.progress.absorb(&slot.op, memory, file, result) {
                    Some(end) => return self.finish(index, end),
                    None => continue,
                }
            };
            let entry = entry.user_data(entry::user_data(ticket));
            slot.place = Place::Kernel;
            // SAFETY: memory and pieces stay valid and untouched until the completion (see the
            // head of this file), for which dropping the engine waits, too.
            if unsafe { self.ring.submission().push(&entry) }.is_ok() {
                self.in_kernel += 1;
            } else {
                // No room after all: the step, which took no effect, is made again later.
                self.enqueue(index);
            }
            return;
        }
    }

    /// Takes what the kernel has completed from its ring.
    fn collect(&mut self) {
        loop {
            let mut room = [const { MaybeUninit::<cqueue::Entry>::uninit() }; BATCH];
            let entries = self.ring.completion().fill(&mut room);
            if entries.is_empty() {
                return;
            }
            for entry in entries {
                if let Some(index) = entry::index(entry.user_data()) {
                    self.in_kernel -= 1;
                    self.absorb(index, entry.result());
                }
            }
        }
    }

    fn absorb(&mut self, index: u32, result: i32) {
        let result = match u64::try_from(result) {
            Ok(count) => Ok(count),
            Err(_) => Err(Errno::from_raw_os_error(-result)),
        };
        let slot = self.table.slot(index);
        let Some(memory) = &slot.memory else { return };
        let file = self.files.held(slot.op.file);
        match slot.progress.absorb(&slot.op, memory, file, result) {
            Some(end) => self.finish(index, end),
            None if slot.cancelled => self.finish(index, Err(Errno::CANCELED)),
            None => {
                // What has begun goes before what has not.
                slot.place = Place::Queued;
                self.table.push_front(&mut self.backlog, index);
            }
        }
    }

    fn deliver(&mut self, done: &mut dyn FnMut(Completion<M>)) {
        while let Some(index) = self.table.pop(&mut self.ready) {
            let slot = self.table.slot(index);
            let (place, op, holds_file) = (slot.place, slot.op, slot.holds_file);
            if holds_file && let Some(file) = self.files.release(op.file) {
                self.forget_file(&file, op.file.index);
            }
            let memory = self.table.remove(index);
            if let (Some(memory), Place::Ready(result)) = (memory, place) {
                done(Completion { memory, result });
            }
        }
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

    /// Submits what there is, and sleeps until the kernel has completed something.
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

    fn forget_file(&self, file: &Registered, index: u32) {
        if file.in_kernel_table {
            // It cannot fail for an index inside the table; if it did, the file would only stay
            // open until the next one takes its place.
            let _ = self.ring.submitter().register_files_update(index, &[-1]);
        }
    }

    fn request_cancel(&mut self, index: u32) {
        let entry = entry::cancellation(self.table.ticket(index));
        if self.ring.submission().is_full() {
            self.enter();
        }
        // SAFETY: the entry points to no memory. Without room the operation ends by itself.
        let _ = unsafe { self.ring.submission().push(&entry) };
    }
}

impl<M: IoMemory + 'static> Engine<M> for UringEngine<M> {
    fn register(&mut self, file: Arc<File>) -> Result<FileId, Errno> {
        let fd = file.as_raw_fd();
        let id = self.files.register(file)?;
        if self.has_file_table && id.index < setup::FILES_MAX {
            let updated = self.ring.submitter().register_files_update(id.index, &[fd]);
            self.files.held(id).in_kernel_table = updated.is_ok_and(|count| count == 1);
        }
        Ok(id)
    }

    fn unregister(&mut self, id: FileId) {
        if let Some(file) = self.files.unregister(id) {
            self.forget_file(&file, id.index);
        }
    }

    fn submit(&mut self, op: Op, memory: M) -> Ticket {
        let settled = settled(&op, &memory);
        let index = self.table.insert(op, memory);
        let ticket = self.table.ticket(index);
        if !self.files.acquire(op.file) {
            self.finish(index, Err(Errno::BADF));
            return ticket;
        }
        self.table.slot(index).holds_file = true;
        match settled {
            Some(result) => self.finish(index, result),
            None => {
                self.enqueue(index);
                self.refill();
            }
        }
        ticket
    }

    fn flush_submissions(&mut self) {
        self.enter();
    }

    fn reap(&mut self, done: &mut dyn FnMut(Completion<M>)) {
        self.enter();
        self.collect();
        self.refill();
        self.enter();
        self.deliver(done);
    }

    fn cancel(&mut self, ticket: Ticket) {
        let Some(index) = self.table.find(ticket) else {
            return;
        };
        let slot = self.table.slot(index);
        let again = mem::replace(&mut slot.cancelled, true);
        match slot.place {
            Place::Queued => {
                self.table.unlink(&mut self.backlog, index);
                self.finish(index, Err(Errno::CANCELED));
            }
            Place::Kernel if !again => self.request_cancel(index),
            _ => {}
        }
    }

    fn in_flight(&self) -> usize {
        self.table.live()
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the ring keeps its descriptor open for as long as the borrow of the engine lasts.
        Some(unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) })
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.refill();
        if self.in_kernel == 0 || !self.ready.is_empty() || !self.ring.completion().is_empty() {
            return Ok(());
        }
        self.sleep(timeout)
    }

    fn name(&self) -> &'static str {
        "io_uring"
    }
}

impl<M: IoMemory + 'static> Drop for UringEngine<M> {
    /// Cancels what the kernel has, and waits for it: it writes to our memory until then.
    fn drop(&mut self) {
        while let Some(index) = self.table.pop(&mut self.backlog) {
            self.finish(index, Err(Errno::CANCELED));
        }
        let indexes: Vec<u32> = self.table.in_kernel().collect();
        for index in indexes {
            self.table.slot(index).cancelled = true;
            self.request_cancel(index);
        }
        while self.in_kernel > 0 {
            self.collect();
            if self.in_kernel > 0 && self.sleep(None).is_err() {
                // The kernel may still use the memory, and nobody can tell for how long: it is
                // better lost than used twice.
                mem::forget(mem::replace(&mut self.table, Table::new()));
                return;
            }
        }
    }
}
